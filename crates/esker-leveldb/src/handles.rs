//! What stands behind the handles of databases and snapshots.

use esker::{Db, Keyspace, Snapshot};

/// An open database.
#[derive(Debug)]
pub struct leveldb_t {
    pub(crate) db: Db,
    /// Holds the entries.
    pub(crate) entries: Keyspace,
}

/// The state of a database at one moment.
#[derive(Debug)]
pub struct leveldb_snapshot_t {
    pub(crate) snapshot: Snapshot,
}
