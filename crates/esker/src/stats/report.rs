//! Statistics of a database: exact counters, sampled latencies, the shape of the tree.

use super::held::{BranchUse, HeldUse, SnapshotUse};
use crate::admission::PaceMode;
pub use crate::sync::Latency;
pub use crate::trace::SlowOperation;
use crate::waits::{Cause, Waited};
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
    /// Ingestions that were committed.
    pub ingestion: u64,
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
    /// Waited for space on a full device.
    pub disk_full: Duration,
    /// Waited for a lock that another transaction held.
    pub lock: Duration,
}

impl Stalls {
    pub(super) fn of(waits: &WaitTimes) -> Self {
        Self {
            flush_debt: waits.flush_debt.total,
            compaction_debt: waits.compaction_debt.total,
            memory: waits.memory.total,
            log_space: waits.log_space.total,
            sync: waits.sync.total,
            disk_full: waits.disk_full.total,
            lock: waits.lock.total,
        }
    }
}

/// Memory in use, by owner, in bytes.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// let memory = db.stats().memory;
/// assert!(memory.total() > 0 && memory.total() < memory.limit);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The memory budget.
    pub limit: u64,
    /// Memtables that take writes or wait for their flush, and memory that waits for the next ones.
    pub memtables: u64,
    /// Blocks in the cache, evicted blocks that are still being read, and memory that waits for the next blocks and
    /// indexes.
    pub cache: u64,
    /// Indexes of run segments.
    pub indexes: u64,
    /// Filters of run segments.
    pub filters: u64,
    /// Buffers of flushes and compactions.
    pub buffers: u64,
    /// The most that these were since the database was opened. It is no part of the total.
    pub buffers_max: u64,
    /// Log files that are mapped: at most so much of them is resident.
    pub log: u64,
    /// Flushed memtables that iterators and other readers still hold.
    pub held: u64,
    /// What describes keyspaces, partitions, runs and run segments; about.
    pub description: u64,
    /// What open transactions wrote, and the keys and ranges that they read; about.
    pub transactions: u64,
    /// Lists of range tombstones: of memtables, and those that were read from run files.
    pub tombstones: u64,
    /// Iterators and cursors themselves, with their buffers. The blocks that they hold are in the cache.
    pub iterators: u64,
    /// Batches, what the layer for C handed out and was not freed (values, lists, errors), and what the layer for
    /// Python keeps between calls. It is the sum of the process, whatever the number of its databases.
    pub clients: u64,
    /// What blocks, indexes and filters may have: what the others leave. It is no part of the total.
    pub cache_limit: u64,
}

impl MemoryUse {
    /// All of it, in bytes, to be compared with the limit.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # db.insert("key", "value")?;
    /// let memory = db.stats().memory;
    /// println!("{} of {} bytes are in use", memory.total(), memory.limit);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn total(&self) -> u64 {
        let cached = self.cache + self.indexes + self.filters;
        let readers = self.transactions + self.tombstones + self.iterators + self.clients;
        self.memtables + cached + self.buffers + self.log + self.held + self.description + readers
    }
}

/// How calls waited, by cause: counts, total times and histograms since open.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// db.sync()?;
/// let waits = db.stats().waits;
/// assert_eq!(waits.sync.count, 1);
/// for cause in esker::Cause::ALL {
///     println!("{}: {:?}", cause.as_str(), waits.of(cause).total);
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitTimes {
    /// Paced because memtables fill faster than flushes empty them.
    pub flush_debt: Waited,
    /// Paced because deltas arrive faster than compactions rewrite them.
    pub compaction_debt: Waited,
    /// Stopped because all write buffers were full.
    pub memory: Waited,
    /// Waited for a log file to be prepared.
    pub log_space: Waited,
    /// Waited for a sync of the log.
    pub sync: Waited,
    /// Waited for space on a full device.
    pub disk_full: Waited,
    /// Waited for a lock that another transaction held.
    pub lock: Waited,
}

impl WaitTimes {
    /// The waits of a cause.
    ///
    /// # Example
    /// ```
    /// let waits = esker::Stats::default().waits;
    /// assert_eq!(waits.of(esker::Cause::Lock), &waits.lock);
    /// ```
    pub fn of(&self, cause: Cause) -> &Waited {
        match cause {
            Cause::FlushDebt => &self.flush_debt,
            Cause::CompactionDebt => &self.compaction_debt,
            Cause::Memory => &self.memory,
            Cause::LogSpace => &self.log_space,
            Cause::Sync => &self.sync,
            Cause::DiskFull => &self.disk_full,
            Cause::Lock => &self.lock,
        }
    }
}

/// What the database does with writers to keep up with them.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let pace = db.stats().pace;
/// if pace.limit > 0 {
///     println!("writers keep to {} bytes/s: {}", pace.limit, pace.mode.as_str());
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pace {
    /// Why writers are slowed, if they are.
    pub mode: PaceMode,
    /// The rate in force, in bytes per second; 0: there is none.
    pub limit: u64,
}

/// Positions of the log, in bytes since the database was made, and what keeps the log.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// let log = db.stats().log;
/// assert!(log.start <= log.synced && log.synced <= log.visible && log.visible <= log.reserved);
/// assert_eq!(log.holder, esker::LogHolder::Memtable);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogUse {
    /// Memtables need the log from here on.
    pub start: u64,
    /// Everything before this position is on the device.
    pub synced: u64,
    /// Everything before this position is visible to readers.
    pub visible: u64,
    /// The next write begins here.
    pub reserved: u64,
    /// What keeps the log from `start` on.
    pub holder: LogHolder,
}

/// What keeps the log that is kept.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?;
/// db.flush()?;
/// assert_eq!(db.stats().log.holder, esker::LogHolder::Nothing);
/// assert_eq!(db.stats().log.holder.as_str(), "nothing");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogHolder {
    /// Nothing: everything is flushed.
    #[default]
    Nothing,
    /// The memtable that takes writes.
    Memtable,
    /// A full memtable that waits for its flush.
    PendingFlush,
    /// A full memtable whose flush has failed and is tried again.
    FailedFlush,
}

impl LogHolder {
    /// The names of all holders, in order.
    pub(super) const NAMES: [&'static str; 4] =
        ["nothing", "memtable", "pending_flush", "failed_flush"];

    /// The holder's name in all outputs.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::LogHolder::PendingFlush.as_str(), "pending_flush");
    /// ```
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The holder of this number, as `holder as u64` gives it.
    pub(super) fn numbered(number: u64) -> Option<Self> {
        let all = [Self::Nothing, Self::Memtable, Self::PendingFlush, Self::FailedFlush];
        all.get(usize::try_from(number).ok()?).copied()
    }
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
    /// The runs that wait in each tier, from tier 1, which is directly above the partitions, to the
    /// top one. Empty while the tree is so small that it needs no tiers.
    pub tiers: Vec<LevelShape>,
    /// Bytes that compactions of the keyspace which are due have to read.
    pub compaction_debt: u64,
}

/// One level of a tree, over all partitions, or a tier, over all its spans.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// db.compact()?;
/// let base = db.stats().trees[0].base;
/// assert_eq!((base.runs, base.segments, base.entries), (1, 1, 1));
/// assert!(base.raw_bytes > 0 && base.lz4_bytes == 0); // Too little to be compressed.
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
    /// Bytes of blocks that are not compressed.
    pub raw_bytes: u64,
    /// Bytes of blocks that are compressed with LZ4.
    pub lz4_bytes: u64,
    /// Bytes of blocks that are compressed with Zstandard.
    pub zstd_bytes: u64,
    /// Bytes of run segments of which nothing was read since the database was opened, so that it is
    /// not known how their blocks are compressed.
    pub unread_bytes: u64,
    /// Bytes of separated values to which the level refers, whatever their compression.
    pub value_bytes: u64,
    /// Those of them that lie in value segments which are known to be compressed with Zstandard.
    pub value_zstd_bytes: u64,
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
    /// The tier that refers to it; 0: a partition does.
    pub tier: u64,
    /// 0: in a partition's base; 1: in its oldest delta, or in the oldest run of a span, and so on.
    pub age: u64,
    /// The number of the file that holds it.
    pub file: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Bytes on disk, with the separated values to which it refers.
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
            /// The slowest operations of the last hour: at most 16 gets, 16 scans, 16 puts, 16 syncs
            /// and 16 waits for locks, each from the slowest to the fastest. All operations that read files or sync the log are
            /// considered, and one in 128 of the others.
            pub slowest: Vec<SlowOperation>,
            /// Bytes written by cause.
            pub written: BytesWritten,
            /// Time that writers waited, by reason.
            pub stalls: Stalls,
            /// How calls waited, by cause; `stalls` has the total times of these.
            pub waits: WaitTimes,
            /// What the database does with writers to keep up with them.
            pub pace: Pace,
            /// Positions of the log, and what keeps it.
            pub log: LogUse,
            /// The time since the database was opened.
            pub uptime: Duration,
            /// Memory by owner.
            pub memory: MemoryUse,
            /// Memory and space that readers keep from being freed.
            pub held: HeldUse,
            /// The oldest moments that snapshots of this process hold, at most 64.
            pub snapshots: Vec<SnapshotUse>,
            /// Branches and named snapshots that hold data of their own, at most 64, those with
            /// most of it first.
            pub branches: Vec<BranchUse>,
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
    /// The write amplification without the log: bytes that flushes, compactions and ingestions wrote per
    /// byte that users wrote; 0 before the first write.
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
        let BytesWritten { user, flush, compaction, ingestion, .. } = self.written;
        (flush + compaction + ingestion) as f64 / user as f64
    }
}
