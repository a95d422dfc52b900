//! From options to an open database and the keyspace with its entries.
//!
//! 1. A database in byte order has its entries in the keyspace `default`, where every other
//!    interface of Esker sees them first.
//! 2. One with a comparator has them in the keyspace [`KEYSPACE`], in that order, because the
//!    order of `default` is fixed.
//! 3. A new database in byte order gets [`KEYSPACE`] too, in byte order and empty. It records
//!    that the order was chosen: without it, an empty database would take any comparator later,
//!    where LevelDB refuses. A crash before it is made leaves an empty database, which may still
//!    become either.

use crate::comparator::{BYTEWISE, Order};
use crate::options::leveldb_options_t;
use crate::status::{Result, Status};
use esker::{Comparator, Compression, Db, Error, Keyspace, Options};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The keyspace that records the order, and holds the entries unless that is byte order.
pub(crate) const KEYSPACE: &str = "leveldb";

/// With a cache given, a database uses at least so much memory: an eighth of it bounds the size
/// of values and batches.
const MEMORY_BYTES_MIN: u64 = 256 << 20;

/// Opens the database in a directory; its entries are in the keyspace.
pub(crate) fn open(
    path: &Path,
    options: &leveldb_options_t,
    order: Option<Order>,
) -> Result<(Db, Keyspace)> {
    // A program may pass the default order by its name.
    let order = order.filter(|order| order.name() != BYTEWISE).map(Arc::new);
    let asked = order.as_ref().map_or(BYTEWISE.to_owned(), |order| order.name().to_owned());
    let opened = Db::open_with(path, engine_options(options, order.clone()));
    let db = opened.map_err(|error| match &error {
        // LevelDB's answer where the parent directory is missing. A read has no such answer: there it means that the
        // key is absent.
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Status::not_found(&error)
        }
        _ => Status::from(&error),
    })?;
    match choose(&db, order) {
        Ok(keyspace) => Ok((db, keyspace)),
        Err(error) => {
            // Nothing was written, so a close that fails loses nothing.
            let _ = db.close();
            Err(match error {
                Error::ComparatorMismatch { stored, .. } => {
                    let stored = if stored == "bytewise" { BYTEWISE } else { &stored };
                    Status::mismatch(stored, &asked)
                }
                Error::ComparatorMissing { comparator, .. } => {
                    Status::mismatch(&comparator, &asked)
                }
                other => Status::from(other),
            })
        }
    }
}

/// The engine's options for these.
pub(crate) fn engine_options(options: &leveldb_options_t, order: Option<Arc<Order>>) -> Options {
    let mut engine = Options::default();
    engine.create_if_missing = options.create_if_missing;
    engine.error_if_exists = options.error_if_exists;
    engine.compression = if options.compress { Compression::Auto } else { Compression::None };
    engine.memory = options.cache_bytes.map(|cache| {
        // Half of the memory is for cached blocks, an eighth for write buffers.
        let cache = (cache as u64).saturating_mul(2);
        let buffers = (options.write_buffer_bytes as u64).saturating_mul(64);
        cache.max(buffers).max(MEMORY_BYTES_MIN)
    });
    engine.comparators.extend(order.map(|order| order as Arc<dyn Comparator>));
    engine
}

/// The keyspace with the entries.
fn choose(db: &Db, order: Option<Arc<Order>>) -> Result<Keyspace, Error> {
    let names = db.keyspaces()?;
    let marked = names.iter().any(|name| name == KEYSPACE);
    let default = db.default_keyspace();
    // What was written by another interface of Esker is in byte order.
    let undecided = !marked && names.len() == 1 && db.first_key_value()?.is_none();
    match order {
        Some(order) if marked || undecided => db.keyspace_ordered(KEYSPACE, order),
        Some(order) => Err(Error::ComparatorMismatch {
            keyspace: default.name().to_owned(),
            stored: "bytewise".to_owned(),
            asked: order.name().to_owned(),
        }),
        None => {
            if marked || undecided {
                db.keyspace(KEYSPACE)?;
            }
            Ok(default)
        }
    }
}
