//! Destroying and repairing databases. The engine does both; here stands where LevelDB's interface
//! answers differently: destroying what is not there is no error, and neither is destroying a
//! directory that holds nothing of a database.

use crate::comparator::{BYTEWISE, Order};
use crate::open::engine_options;
use crate::options::leveldb_options_t;
use crate::status::Result;
use esker::{Comparator, Db, Error, Options};
use std::path::Path;
use std::sync::Arc;

/// Removes the files of a database, and its directory if it is then empty. All other files stay.
/// Without a database there is nothing to do, as in LevelDB.
pub(crate) fn destroy(path: &Path) -> Result<()> {
    match Db::destroy(path, &Options::default()) {
        // What has this file is a database, only not Esker's.
        Err(Error::NotADatabase { import: None, .. }) if !path.join("CURRENT").exists() => Ok(()),
        destroyed => Ok(destroyed?),
    }
}

/// Does not change an intact database. Saves what can be read of a damaged one into a new database,
/// which takes its place; the damaged one is kept beside it.
pub(crate) fn repair(path: &Path, options: &leveldb_options_t, order: Option<Order>) -> Result<()> {
    let order = order.filter(|order| order.name() != BYTEWISE).map(Arc::new);
    Db::repair(path, &engine_options(options, order))?;
    Ok(())
}
