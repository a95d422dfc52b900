//! What readers keep from being freed, as statistics show it.
//!
//! Old data stays as long as somebody may read it: a snapshot or a named snapshot, an iterator, a
//! transaction, or a value that is still in use. Each has its numbers here, so that a database that
//! grows says who is the reason.

use std::time::Duration;

/// Memory and space that readers keep from being freed.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// let snapshot = db.snapshot()?;
/// assert_eq!(db.stats().held.snapshots, 1);
/// drop(snapshot);
/// assert_eq!(db.stats().held.snapshots, 0);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldUse {
    /// Moments that snapshots of this process hold: compactions keep what was visible then. Named
    /// snapshots are branches and are not counted.
    pub snapshots: u64,
    /// The age of the oldest of these moments.
    pub oldest_snapshot: Duration,
    /// Earlier states of the database that iterators and other readers still use.
    pub states: u64,
    /// How long ago the oldest of these states was replaced.
    pub oldest_state: Duration,
    /// Bytes in run files to which only those states refer.
    pub data: u64,
    /// Iterators that are open.
    pub iterators: u64,
    /// Bytes of blocks that the cache has evicted and that values or iterators still use.
    pub evicted: u64,
    /// Bytes of blocks and indexes that iterators, [`crate::PinnedValue`] and readers of values hold, so that they cannot be evicted.
    pub pinned: u64,
    /// Transactions that are open.
    pub transactions: u64,
    /// How long the oldest of them has been open.
    pub oldest_transaction: Duration,
    /// Bytes of flushed memtables that are kept to check what transactions read.
    pub transactions_memory: u64,
}

/// A moment that snapshots of this process hold.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?;
/// let snapshot = db.snapshot_with_label("nightly report")?;
/// let listed = &db.stats().snapshots[0];
/// assert_eq!((&listed.label[..], listed.count), ("nightly report", 1));
/// assert_eq!(listed.position, snapshot.position());
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotUse {
    /// The log position of the moment.
    pub position: u64,
    /// The labels of the snapshots, with commas between them; empty: they have none.
    pub label: String,
    /// How long ago the moment was.
    pub age: Duration,
    /// How many snapshots hold it.
    pub count: u64,
}

/// A branch or a named snapshot that holds data of its own.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// db.snapshot_named("monday")?;
/// db.insert("key", "other")?;
/// db.compact()?;
/// let monday = &db.stats().branches[0];
/// assert!(monday.name == "monday" && monday.data > 0);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BranchUse {
    /// Its name.
    pub name: String,
    /// Bytes in run files to which only it refers.
    pub data: u64,
}
