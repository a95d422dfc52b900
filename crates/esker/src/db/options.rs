//! The options of a database: few, and none of them needed.

use crate::base::{Clock, CompactionFilter, Comparator, MergeOperator, SystemClock};
use crate::fs::Fs;
use crate::sync::Gates;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a finished write survives (contract C1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum Durability {
    /// Nothing until it is flushed: the write is not logged (R13).
    Buffered,
    /// The death of the process.
    #[default]
    Process,
    /// Power loss: acknowledged after a sync that a group of writers shares.
    Disk,
}

/// How blocks of runs are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Compression {
    /// Raw where data is young, LZ4 where it has settled.
    #[default]
    Auto,
    /// Never.
    None,
    /// LZ4 everywhere.
    Lz4,
    /// Zstandard, level 3, where data has settled; raw where it is young.
    Zstd,
}

pub use crate::commit::LogKind;

/// What open does when the log is damaged (R30).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Recovery {
    /// Refuses, and names the choices.
    #[default]
    Refuse,
    /// Keeps what stands before the damage and gives up the rest of the log.
    KeepPrefix,
}

/// The options of a database. `Options::default()` is meant to be right.
///
/// # Example
/// ```
/// use esker::{Db, Durability, Options};
/// # let dir = std::env::temp_dir().join(format!("esker-doc-options-{}", std::process::id()));
/// let mut options = Options::default();
/// options.durability = Durability::Disk;
/// options.memory = Some(64 << 20);
/// let db = Db::open_with(&dir, options)?;
/// db.insert("key", "value")?;
/// # db.close()?; std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of memory for everything: write buffers, cache, indexes, filters. Default: a quarter
    /// of the machine's memory or of the control group's limit. At least 1 MiB.
    pub memory: Option<u64>,
    /// What a write survives unless it says otherwise. Default: [`Durability::Process`].
    pub durability: Durability,
    /// Whether open makes a database where there is none. Default: true.
    pub create_if_missing: bool,
    /// Whether open refuses a database that is there. Default: false.
    pub error_if_exists: bool,
    /// Opens without changing a byte: no writes, no background work. Default: false.
    pub read_only: bool,
    /// Background worker threads. Default: half the cores, at least one.
    pub workers: Option<usize>,
    /// How blocks are compressed. Default: [`Compression::Auto`].
    pub compression: Compression,
    /// How the log is written. Default: [`LogKind::Auto`].
    pub log: LogKind,
    /// What open does about a damaged log. Default: [`Recovery::Refuse`].
    pub recovery: Recovery,
    /// The longest that a `Process` write stays unsynced: bounds what a power cut can take.
    /// Default: 5 seconds. `None`: only [`crate::Db::sync`] and the system decide.
    pub sync_interval: Option<Duration>,
    /// Comparators of the keyspaces that have one, found by their stored name. Default: none.
    pub comparators: Vec<Arc<dyn Comparator>>,
    /// Merge operators of the keyspaces that have one, found by their stored name. Those that come
    /// with the engine need not be given. Default: none.
    pub merge_operators: Vec<Arc<dyn MergeOperator>>,
    /// Compaction filters of the keyspaces that have one, found by their stored name. A keyspace
    /// whose filter is not given can be used; its entries are not filtered. Default: none.
    pub compaction_filters: Vec<Arc<dyn CompactionFilter>>,
    /// Where the time comes from by which entries expire. Default: the system's clock.
    pub clock: Arc<dyn Clock>,
    /// The file system. Default: the operating system's.
    pub fs: Arc<dyn Fs>,
    /// Bytes of one write buffer (memtable). Default: from `memory`. Small sizes are for tests.
    pub memtable_bytes: Option<u64>,
    /// Bytes of one partition's base. Default: 64 MiB. Small sizes are for tests.
    pub partition_bytes: u64,
    /// Bytes of one segment of a run. Default: 1 MiB. Small sizes are for tests.
    pub segment_bytes: u32,
    /// Bytes of one block before compression. Default: 4 KiB.
    pub block_bytes: u32,
    /// Bytes of the largest log segment. Default: 64 MiB. Small sizes are for tests.
    pub log_segment_bytes: u32,
    /// Holds the background at named points, for tests. Default: nobody does.
    #[doc(hidden)]
    pub gates: Option<Arc<dyn Gates>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: None,
            durability: Durability::default(),
            create_if_missing: true,
            error_if_exists: false,
            read_only: false,
            workers: None,
            compression: Compression::default(),
            log: LogKind::default(),
            recovery: Recovery::default(),
            sync_interval: Some(Duration::from_secs(5)),
            comparators: Vec::new(),
            merge_operators: Vec::new(),
            compaction_filters: Vec::new(),
            clock: Arc::new(SystemClock),
            fs: crate::fs::os(),
            memtable_bytes: None,
            partition_bytes: 64 << 20,
            segment_bytes: 1 << 20,
            block_bytes: 4 << 10,
            log_segment_bytes: 64 << 20,
            gates: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("memory", &self.memory)
            .field("durability", &self.durability)
            .field("read_only", &self.read_only)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}
