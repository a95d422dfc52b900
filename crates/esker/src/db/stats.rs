//! What a database knows about itself: exact counters, sampled latencies, the shape of the tree.

use std::time::Duration;

/// A summary of sampled latencies (one call in 64 is timed, R29).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Latency {
    /// How many calls were timed.
    pub samples: u64,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The 99.9th percentile.
    pub p999: Duration,
    /// The longest that was sampled.
    pub max: Duration,
}

/// Bytes that the engine wrote, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BytesWritten {
    /// Keys and values that users wrote.
    pub user: u64,
    /// The write-ahead log.
    pub log: u64,
    /// Flushes of memtables.
    pub flush: u64,
    /// Merges of deltas into bases.
    pub merge: u64,
    /// The manifest and superblocks.
    pub manifest: u64,
}

/// Time that writers waited, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stalls {
    /// Paced because memtables fill faster than they are flushed.
    pub flush_debt: Duration,
    /// Paced because deltas arrive faster than they are merged.
    pub merge_debt: Duration,
    /// Stopped because all write buffers were full.
    pub memory: Duration,
    /// Waited for a log segment to be prepared.
    pub log_space: Duration,
    /// Waited for a sync.
    pub sync: Duration,
}

/// Memory in use, by owner, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The one number that bounds the rest.
    pub limit: u64,
    /// Memtables that take writes or wait for their flush.
    pub memtables: u64,
    /// Blocks: those in the cache, and those that left it and that somebody still reads.
    pub cache: u64,
    /// Indexes and filters of runs.
    pub indexes: u64,
    /// Memtables that were flushed and that iterators and readers still hold.
    pub held: u64,
}

/// What readers keep from being given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldUse {
    /// Moments that snapshots of this process hold: what was visible then is kept by compactions.
    /// Named snapshots are branches, and not counted.
    pub snapshots: u64,
    /// How long ago the oldest of them was.
    pub oldest_snapshot: Duration,
    /// Earlier states of the database that iterators and other readers still look at.
    pub states: u64,
    /// Bytes in files of runs that only those states refer to.
    pub data: u64,
}

/// The shape of one keyspace's tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeShape {
    /// The keyspace's name.
    pub keyspace: String,
    /// How many partitions it has.
    pub partitions: u64,
    /// Bytes and entries of all bases.
    pub base: LevelShape,
    /// Bytes and entries of all deltas, from the newest (first) to the oldest.
    pub deltas: Vec<LevelShape>,
}

/// One level of a tree, over all partitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelShape {
    /// How many runs.
    pub runs: u64,
    /// How many segments.
    pub segments: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Entries, tombstones included.
    pub entries: u64,
}

/// One segment of a tree: a sorted piece of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentShape {
    /// 0: in a partition's base; 1: in its oldest delta, and so on.
    pub age: u64,
    /// The number of the file that holds it.
    pub file: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Entries, deletes included; or range tombstones, if it holds those.
    pub entries: u64,
    /// Its first key; for range tombstones the lowest bound, empty if there is none.
    pub smallest: Vec<u8>,
    /// Its last key; for range tombstones the highest bound, empty if there is none.
    pub largest: Vec<u8>,
    /// Whether it holds range tombstones.
    pub tombstones: bool,
}

/// What a database knows about itself. Counters count since open.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Entries put.
    pub puts: u64,
    /// Entries deleted, one by one.
    pub deletes: u64,
    /// Ranges deleted.
    pub range_deletes: u64,
    /// Batches committed, single writes included.
    pub commits: u64,
    /// Point reads.
    pub gets: u64,
    /// Point reads that found a value.
    pub gets_found: u64,
    /// Iterators made.
    pub scans: u64,
    /// Entries that iterators returned.
    pub scanned: u64,
    /// Entries that iterators passed on their way and did not return: deleted ones, older versions,
    /// and what was written after the iterator's moment.
    pub skipped: u64,
    /// Log syncs.
    pub syncs: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Merges done.
    pub merges: u64,
    /// Operands that flushes and merges applied to a value or joined with another operand, with
    /// the values that they were applied to.
    pub operands_folded: u64,
    /// Entries that flushes and merges removed because they had expired.
    pub entries_expired: u64,
    /// Entries that compaction filters removed or changed.
    pub entries_filtered: u64,
    /// Segments that merges took over without rewriting them.
    pub segments_adopted: u64,
    /// Latency of writes.
    pub put_latency: Latency,
    /// Latency of point reads.
    pub get_latency: Latency,
    /// Latency of making and positioning an iterator.
    pub scan_latency: Latency,
    /// Latency of log syncs.
    pub sync_latency: Latency,
    /// Bytes written by cause.
    pub written: BytesWritten,
    /// Bytes of blocks read from files.
    pub bytes_read: u64,
    /// Point reads that a cached block answered with a value, and blocks that iterators found in
    /// the cache.
    pub cache_hits: u64,
    /// Blocks read because they were not cached.
    pub cache_misses: u64,
    /// Time that writers waited, by reason.
    pub stalls: Stalls,
    /// Memory by owner.
    pub memory: MemoryUse,
    /// What readers keep from being given back.
    pub held: HeldUse,
    /// Bytes that merges still have to write before the tree has its shape.
    pub merge_debt: u64,
    /// Bytes that files of runs take on the device.
    pub data_file_bytes: u64,
    /// Bytes that log files take on the device.
    pub log_file_bytes: u64,
    /// One entry per keyspace.
    pub trees: Vec<TreeShape>,
}

impl Stats {
    /// Engine-counted write amplification without the log: bytes written by flushes and merges
    /// per byte that users wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.written.user == 0 {
            return 0.0;
        }
        (self.written.flush + self.written.merge) as f64 / self.written.user as f64
    }
}
