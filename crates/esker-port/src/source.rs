//! What the reader of another store gives to an import.
//!
//! Each store that can be imported has a module with a type that implements [`Source`]: it opens the
//! store's directory without changing it, and hands keyspaces and entries to the import's
//! [`Sink`].

use crate::Result;
use crate::sink::Sink;
use esker::Comparator;
use std::sync::Arc;

/// How a store is imported.
///
/// # Example
/// ```
/// use esker_port::{Engine, Import, ImportOptions, Quiet};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # let old = std::path::Path::new("tests/fixtures/leveldb/db");
/// let mut options = ImportOptions::default();
/// options.keyspace = "old".to_owned();
/// Import::open(Engine::LevelDb, old, options)?.run(&db, &mut Quiet)?;
/// assert!(db.keyspaces()?.contains(&"old".to_owned()));
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Custom comparators of keyspaces, found by the names that the source has for them.
    pub comparators: Vec<Arc<dyn Comparator>>,
    /// The keyspace for entries that are in no named keyspace of the source.
    pub keyspace: String,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { comparators: Vec::new(), keyspace: "default".to_owned() }
    }
}

impl std::fmt::Debug for ImportOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let comparators: Vec<&str> = self.comparators.iter().map(|order| order.name()).collect();
        f.debug_struct("ImportOptions")
            .field("comparators", &comparators)
            .field("keyspace", &self.keyspace)
            .finish()
    }
}

/// A store that was opened and is read from its first entry to its last.
pub(crate) trait Source: Send {
    /// Bytes to read, where that is known.
    fn total_bytes(&self) -> Option<u64>;

    /// Hands all keyspaces and entries over.
    fn read(self: Box<Self>, options: &ImportOptions, sink: &mut Sink) -> Result<()>;
}
