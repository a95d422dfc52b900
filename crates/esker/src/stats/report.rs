//! Statistics of a database: exact counters, sampled latencies, the shape of the tree.

pub use crate::sync::Latency;
pub use crate::trace::SlowOperation;
use std::time::Duration;

/// Bytes that the engine wrote, by cause.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// db.flush()?;
/// let written = db.stats().written;
/// assert_eq!(written.user, 8);
/// assert!(written.flush > written.user); // A run has an index, a filter and checksums too.
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BytesWritten {
    /// Keys and values that users wrote.
    pub user: u64,
    /// The write-ahead log.
    pub log: u64,
    /// Flushes of memtables.
    pub flush: u64,
    /// Compactions.
    pub compaction: u64,
    /// The manifest and superblocks.
    pub manifest: u64,
}

/// Time that writers waited, by reason.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?;
/// let stalls = db.stats().stalls;
/// let paced = stalls.flush_debt + stalls.compaction_debt;
/// assert!(paced.is_zero(), "writers were slowed down for {paced:?}");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stalls {
    /// Paced because memtables fill faster than flushes empty them.
    pub flush_debt: Duration,
    /// Paced because deltas arrive faster than compactions rewrite them.
    pub compaction_debt: Duration,
    /// Stopped because all write buffers were full.
    pub memory: Duration,
    /// Waited for a log file to be prepared.
    pub log_space: Duration,
    /// Waited for a sync.
    pub sync: Duration,
}

/// Memory in use, by owner, in bytes.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// let memory = db.stats().memory;
/// let used = memory.memtables + memory.cache + memory.indexes + memory.held;
/// assert!(used > 0 && used < memory.limit);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The memory budget.
    pub limit: u64,
    /// Memtables that take writes or wait for their flush.
    pub memtables: u64,
    /// Blocks in the cache, and evicted blocks that are still being read.
    pub cache: u64,
    /// Indexes and filters of runs.
    pub indexes: u64,
    /// Flushed memtables that iterators and other readers still hold.
    pub held: u64,
}

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
    /// Bytes in run files to which only those states refer.
    pub data: u64,
}

/// The shape of one keyspace's tree.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.keyspace("fruit")?.insert("apple", "red")?;
/// db.flush()?;
/// let stats = db.stats();
/// let fruit = stats.trees.iter().find(|tree| tree.keyspace == "fruit").unwrap();
/// let runs = fruit.base.runs + fruit.deltas.iter().map(|delta| delta.runs).sum::<u64>();
/// assert_eq!(runs, 1);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeShape {
    /// The keyspace's name.
    pub keyspace: String,
    /// The number of partitions.
    pub partitions: u64,
    /// Bytes and entries of all bases.
    pub base: LevelShape,
    /// Bytes and entries of all deltas, from the newest (first) to the oldest.
    pub deltas: Vec<LevelShape>,
}

/// One level of a tree, over all partitions.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// db.compact()?;
/// let base = db.stats().trees[0].base;
/// assert_eq!((base.runs, base.segments, base.entries), (1, 1, 1));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelShape {
    /// The number of runs.
    pub runs: u64,
    /// The number of run segments.
    pub segments: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Entries, tombstones included.
    pub entries: u64,
}

/// One run segment of a tree.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("apple", "red")?; db.insert("pear", "green")?;
/// db.flush()?;
/// for segment in db.default_keyspace().segments()? {
///     assert_eq!((&segment.smallest[..], &segment.largest[..]), (&b"apple"[..], &b"pear"[..]));
///     assert_eq!(segment.entries, 2);
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentShape {
    /// 0: in a partition's base; 1: in its oldest delta, and so on.
    pub age: u64,
    /// The number of the file that holds it.
    pub file: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// The number of entries, deletes included, or of range tombstones, if it holds those.
    pub entries: u64,
    /// Its first key; for range tombstones the lowest bound, empty if there is none.
    pub smallest: Vec<u8>,
    /// Its last key; for range tombstones the highest bound, empty if there is none.
    pub largest: Vec<u8>,
    /// Whether it holds range tombstones.
    pub tombstones: bool,
}

macro_rules! define_stats {
    (
        calls { $($(#[doc = $call_doc:literal])* $call:ident = $variant:ident:
            $call_kind:ident $call_unit:ident $call_name:literal in $call_place:literal;)* }
        background { $($(#[doc = $background_doc:literal])* $background:ident:
            $background_kind:ident $background_unit:ident $background_name:literal
            in $background_place:literal;)* }
        computed { $($(#[doc = $computed_doc:literal])* $computed:ident:
            $computed_kind:ident $computed_unit:ident $computed_name:literal
            in $computed_place:literal;)* }
        $($rest:tt)*
    ) => {
        /// Statistics of a database. Counters count from open.
        ///
        /// # Example
        /// ```
        /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
        /// db.insert("apple", "red")?;
        /// db.get("apple")?;
        /// db.get("kiwi")?;
        /// let stats = db.stats();
        /// assert_eq!((stats.puts, stats.gets, stats.gets_found), (1, 2, 1));
        /// assert_eq!(stats.trees[0].keyspace, "default");
        /// # Ok::<(), esker::Error>(())
        /// ```
        #[derive(Debug, Clone, Default, PartialEq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[doc = $call_doc])* pub $call: u64,)*
            $($(#[doc = $background_doc])* pub $background: u64,)*
            $($(#[doc = $computed_doc])* pub $computed: u64,)*
            /// Latency of writes.
            pub put_latency: Latency,
            /// Latency of point reads.
            pub get_latency: Latency,
            /// Latency of making and positioning an iterator.
            pub scan_latency: Latency,
            /// Latency of log syncs.
            pub sync_latency: Latency,
            /// Latency of reads of blocks and indexes that the system's page cache served.
            pub page_cache_latency: Latency,
            /// Latency of reads of blocks and indexes from the device. Every one is timed.
            pub device_latency: Latency,
            /// The slowest operations of the last hour: at most 16 gets, 16 scans and 16 puts, each
            /// from the slowest to the fastest. All operations that read files or sync the log are
            /// considered, and one in 64 of the others.
            pub slowest: Vec<SlowOperation>,
            /// Bytes written by cause.
            pub written: BytesWritten,
            /// Time that writers waited, by reason.
            pub stalls: Stalls,
            /// Memory by owner.
            pub memory: MemoryUse,
            /// Memory and space that readers keep from being freed.
            pub held: HeldUse,
            /// One entry per keyspace.
            pub trees: Vec<TreeShape>,
        }

        impl Stats {
            /// Every counter with the name of its field, so that an output shows all of them.
            ///
            /// # Example
            /// ```
            /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
            /// db.insert("key", "value")?;
            /// assert!(db.stats().counters().any(|counter| counter == ("puts", 1)));
            /// # Ok::<(), esker::Error>(())
            /// ```
            pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [
                    $((stringify!($call), self.$call),)*
                    $((stringify!($background), self.$background),)*
                    $((stringify!($computed), self.$computed),)*
                ]
                .into_iter()
            }
        }
    };
}
super::table::metrics!(define_stats);

impl Stats {
    /// The write amplification without the log: bytes that flushes and compactions wrote per byte
    /// that users wrote; 0 before the first write.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.stats().write_amplification(), 0.0);
    /// db.insert("key", "value")?;
    /// db.flush()?;
    /// assert!(db.stats().write_amplification() > 1.0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn write_amplification(&self) -> f64 {
        if self.written.user == 0 {
            return 0.0;
        }
        (self.written.flush + self.written.compaction) as f64 / self.written.user as f64
    }
}
