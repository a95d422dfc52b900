//! The options of a database; all have defaults.
//!
//! [`Options`] is what a program gives, and may leave alone. [`settings`] resolves them into the
//! numbers with which the engine works: every size follows from the memory budget by a fixed split.

mod machine;
mod setters;
pub mod settings;
#[cfg(test)]
mod tests;

use crate::base::{Clock, CompactionFilter, Comparator, MergeOperator, SystemClock};
use crate::events::EventListener;
use crate::fs::Fs;
use crate::sync::Gates;
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// What a finished write survives (contract C1).
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use esker::{Db, Durability, Options};
/// let mut options = Options::default();
/// options.durability = Durability::Disk; // The class of all writes,
/// let orders = Db::open_with(&dir, options)?.default_keyspace();
/// orders.insert("order:1", "paid")?;
/// // except of those that name another class.
/// orders.insert_with("cache:1", "...", Durability::Buffered)?;
/// assert!(Durability::Buffered < Durability::Disk);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum Durability {
    /// Nothing until it is flushed: the write is not logged (R13).
    Buffered,
    /// The end of the process.
    #[default]
    Process,
    /// A power cut: the write returns after a sync, which a group of writers shares.
    Disk,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Buffered => "buffered",
            Self::Process => "process",
            Self::Disk => "disk",
        })
    }
}

/// Reads a class from its name in lower case, as a program's configuration has it.
///
/// # Example
/// ```
/// use esker::Durability;
/// assert_eq!("disk".parse::<Durability>()?, Durability::Disk);
/// assert_eq!(Durability::Process.to_string(), "process");
/// assert!("safe".parse::<Durability>().is_err());
/// # Ok::<(), esker::Error>(())
/// ```
impl FromStr for Durability {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::Buffered, Self::Process, Self::Disk];
        all.into_iter().find(|class| class.to_string() == name).ok_or_else(|| {
            let what = "is no durability class: give buffered, process or disk";
            Error::invalid(format!("{name:?} {what}"))
        })
    }
}

/// How blocks of runs are compressed.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use esker::{Compression, Db, Options};
/// let mut options = Options::default();
/// options.compression = Compression::Zstd;
/// // Each block says how it is compressed, so the option can differ at each open.
/// let db = Db::open_with(&dir, options)?;
/// db.insert("letter", "a".repeat(10_000))?;
/// db.compact()?;
/// assert_eq!(db.get("letter")?.map(|value| value.len()), Some(10_000));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Compression {
    /// No compression for young data, LZ4 for settled data: that over which no run waits. Settled data that
    /// has not been read for [`Options::cold_after`] is compressed with Zstandard, and with LZ4 again when
    /// it is read often.
    #[default]
    Auto,
    /// No compression. Data that is compressed stays so until a compaction rewrites it.
    None,
    /// LZ4 for all data.
    Lz4,
    /// No compression for young data, Zstandard at level 3 for settled data.
    Zstd,
}

/// How records reach the files (R10).
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let mut options = esker::Options::default();
/// options.log = esker::LogKind::Plain; // One system call for each write.
/// let db = esker::Db::open_with(&dir, options)?;
/// db.insert("k", "v")?;
/// assert_eq!(db.get("k")?, Some(b"v".to_vec()));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogKind {
    /// Mapped where the file system can map, else plain.
    #[default]
    Auto,
    /// One positioned write per record, under a lock.
    Plain,
    /// Copies into shared mappings.
    Mapped,
}

/// What open does when the log is damaged (R30).
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use esker::{Db, Error, Options, Recovery};
/// let db = match Db::open(&dir) {
///     Err(Error::Corruption(damage)) => {
///         println!("the log is damaged and is kept up to there: {}", damage.detail);
///         let mut options = Options::default();
///         options.recovery = Recovery::KeepPrefix;
///         Db::open_with(&dir, options)?
///     }
///     opened => opened?,
/// };
/// db.insert("k", "v")?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Recovery {
    /// Refuses to open, with an error that names the choices.
    #[default]
    Refuse,
    /// Keeps the log up to the damage and discards the rest.
    KeepPrefix,
}

/// The options of a database. `Options::default()` suits most programs.
///
/// # Example
/// ```
/// use esker::{Db, Durability, Options};
/// # let dir = tempfile::tempdir().unwrap();
/// let db = Db::open_with(&dir, Options::new().memory(64 << 20).durability(Durability::Disk))?;
/// db.insert("key", "value")?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The memory budget: bytes for write buffers, cache, indexes and filters together. Default: a
    /// quarter of the machine's memory or of the least limit of its control groups. At least 1 MiB.
    pub memory: Option<u64>,
    /// The default durability class of writes. Default: [`Durability::Process`].
    pub durability: Durability,
    /// Whether open creates a database if there is none. Default: true.
    pub create_if_missing: bool,
    /// Whether open refuses an existing database. Default: false.
    pub error_if_exists: bool,
    /// Whether open changes nothing: no writes, no background work. Default: false.
    pub read_only: bool,
    /// How many compactions may run at the same time, from 1 to 64. Each has a thread that merges at low
    /// priority, so that callers get the processor first; flushes have a thread of their own. With 1, a
    /// single thread of normal priority flushes and compacts. Default: the number of cores that the process may
    /// use (its affinity and, on Linux, the processor quota of its cgroup count), at least 2.
    pub workers: Option<usize>,
    /// How blocks are compressed. Default: [`Compression::Auto`].
    pub compression: Compression,
    /// Values with at least so many bytes are separated from their keys: compactions then move only
    /// references to them, and write a value again where much of what lies around it is dead. `None`: no
    /// value is. Default: 4,096. What is separated stays readable whatever the option says.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut options = esker::Options::default();
    /// options.separate_values_from = Some(1024);
    /// let db = esker::Db::open_with(&dir, options)?;
    /// db.insert("picture", vec![7; 100_000])?;
    /// db.flush()?;
    /// assert_eq!(db.get("picture")?.map(|value| value.len()), Some(100_000));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub separate_values_from: Option<u32>,
    /// After which time settled data that nobody reads is compressed with Zstandard, if
    /// [`Self::compression`] is [`Compression::Auto`] and nobody writes for a moment. The time is that of
    /// [`Self::clock`], and begins again when the database is opened. `None`: never. Default: an hour.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut options = esker::Options::default();
    /// options.cold_after = Some(std::time::Duration::from_secs(24 * 3600));
    /// esker::Db::open_with(&dir, options)?.insert("k", "v")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub cold_after: Option<Duration>,
    /// How the log is written. Default: [`LogKind::Auto`].
    pub log: LogKind,
    /// What open does about a damaged log. Default: [`Recovery::Refuse`].
    pub recovery: Recovery,
    /// The longest time that a `Process` write stays unsynced, which bounds what a power cut can
    /// lose. `None`: only [`crate::Db::sync`] and the system sync it. Default: 5 seconds.
    pub sync_interval: Option<Duration>,
    /// The custom comparators of keyspaces, found by their stored names. Default: none.
    pub comparators: Vec<Arc<dyn Comparator>>,
    /// The merge operators of keyspaces, found by their stored names. Built-in operators need not
    /// be given. Default: none.
    pub merge_operators: Vec<Arc<dyn MergeOperator>>,
    /// The compaction filters of keyspaces, found by their stored names. A keyspace can be used
    /// without its filter; its entries are then not filtered. Default: none.
    pub compaction_filters: Vec<Arc<dyn CompactionFilter>>,
    /// The clock by which entries expire. Default: the system's clock.
    pub clock: Arc<dyn Clock>,
    /// The file system. Default: the operating system's.
    pub fs: Arc<dyn Fs>,
    /// How many times the live data the run files may take, from 1.1 to 100. Beyond that, partitions are
    /// compacted in which little has to be rewritten for what is freed, as soon as no other compaction is
    /// due. Only what can be freed counts, not what snapshots, iterators and branches hold, and not the
    /// first 16 MiB. A smaller number costs more writes, a larger one fewer. Default: 1.45.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut options = esker::Options::default();
    /// options.max_space_amplification = 1.2;
    /// let db = esker::Db::open_with(&dir, options)?;
    /// let stats = db.stats();
    /// assert!(stats.reclaimable_bytes <= stats.reclaimable_bytes_max);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub max_space_amplification: f64,
    /// Bytes of one write buffer (a set of memtables). Default: a 32nd of `memory`, of which 64 MiB are
    /// used until the data are 16 times that. Small sizes are for tests.
    pub memtable_bytes: Option<u64>,
    /// Bytes of one partition's base. Default: 8 write buffers, from 4 to 64 MiB, but 4/3 of a write
    /// buffer where that is more, up to 256 MiB. Small sizes are for tests.
    pub partition_bytes: Option<u64>,
    /// Bytes of one run segment. Default: 1 MiB. Small sizes are for tests.
    pub segment_bytes: u32,
    /// Bytes of one block before compression. Default: 4 KiB.
    pub block_bytes: u32,
    /// Bytes of the largest log file, at most a 32nd of `memory`. Default: 64 MiB. Small sizes are for
    /// tests.
    pub log_file_bytes: u32,
    /// Is told about events: flushes, compactions, stalls of writers, damage and others; see
    /// [`EventListener`]. A closure with an argument of type `&Event` will do. Default: none.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// use esker::{Db, Event, EventKind, Options};
    /// use std::sync::Arc;
    /// let mut options = Options::default();
    /// options.on_event = Some(Arc::new(|event: &Event| {
    ///     if let EventKind::WriteStallBegin { cause, .. } = &event.kind {
    ///         eprintln!("writers are slowed: {cause}");
    ///     }
    /// }));
    /// Db::open_with(&dir, options)?.insert("k", "v")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub on_event: Option<Arc<dyn EventListener>>,
    /// An operation that takes at least this long becomes an event
    /// ([`EventKind::SlowOperation`](crate::EventKind::SlowOperation)), and so does a wait for log
    /// space, a sync or a lock ([`EventKind::LongWait`](crate::EventKind::LongWait)). Default: 100
    /// milliseconds.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut options = esker::Options::default();
    /// options.slow_operation = std::time::Duration::from_millis(5);
    /// esker::Db::open_with(&dir, options)?.insert("k", "v")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub slow_operation: Duration,
    /// Whether the database writes files about itself into its directory: `EVENTS` with at most
    /// about 2 MiB of events, and `STATISTICS`, from which other processes read the statistics. It
    /// needs neither file, and a database that is opened only for reading writes none. Default: yes
    /// on the operating system's file system, no on any other.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut options = esker::Options::default();
    /// options.monitor = Some(false);
    /// esker::Db::open_with(&dir, options)?.close()?;
    /// assert!(!dir.path().join("EVENTS").exists());
    /// esker::Db::open(&dir)?.close()?;
    /// assert!(dir.path().join("EVENTS").exists());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub monitor: Option<bool>,
    /// Holds the background work at named points, for tests. Default: none.
    #[doc(hidden)]
    pub gates: Option<Arc<dyn Gates>>,
    /// Gives every keyspace tiers of this shape, for tests: tiers arise by themselves only in large
    /// databases.
    #[doc(hidden)]
    pub small_tiers: Option<SmallTiers>,
    /// Takes all data that is cold for worth being compressed, and data for warm that is read once, for tests.
    #[doc(hidden)]
    pub small_cold: bool,
    /// Puts the log to rest soon, and makes what it then keeps small, for tests.
    #[doc(hidden)]
    pub small_rest: Option<SmallRest>,
    /// The dead bytes that do not count, for tests; otherwise 16 MiB.
    #[doc(hidden)]
    pub small_space: Option<u64>,
    /// Bytes of the cache, whatever the budget leaves, for tests: the smallest budget gives it 640 KiB, which is more
    /// than all data of a short test.
    #[doc(hidden)]
    pub small_cache: Option<u64>,
}

/// When and how a log rests in tests.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallRest {
    /// The pause after which it rests, whatever was written.
    pub after: Duration,
    /// The bytes of the first log file, and of the one that a log at rest has.
    pub file_bytes: u32,
}

/// The shape of tiers in tests.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallTiers {
    /// How many tiers there are.
    pub count: usize,
    /// How many children a span begins with.
    pub fan_out: usize,
    /// At how many runs a span is due.
    pub runs: usize,
    /// How many partitions a flush may touch that goes past the tiers.
    pub direct: usize,
    /// Whether trees are tightened while nobody writes, however small they are.
    pub tightens: bool,
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
            separate_values_from: Some(4096),
            cold_after: Some(Duration::from_secs(3600)),
            log: LogKind::default(),
            recovery: Recovery::default(),
            sync_interval: Some(Duration::from_secs(5)),
            comparators: Vec::new(),
            merge_operators: Vec::new(),
            compaction_filters: Vec::new(),
            clock: Arc::new(SystemClock),
            fs: crate::fs::os(),
            max_space_amplification: 1.45,
            memtable_bytes: None,
            partition_bytes: None,
            segment_bytes: 1 << 20,
            block_bytes: 4 << 10,
            log_file_bytes: 64 << 20,
            on_event: None,
            slow_operation: Duration::from_millis(100),
            monitor: None,
            gates: None,
            small_tiers: None,
            small_cold: false,
            small_rest: None,
            small_space: None,
            small_cache: None,
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
