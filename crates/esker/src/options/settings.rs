//! The resolved options: every size that the engine works with follows from the memory budget, by
//! the fixed split below. Only flushes and partitions also grow with the data, up to what the budget
//! allows.
//!
//! | share of `memory` | for |
//! |---|---|
//! | 1/8 | memtables: one set that takes writes and up to three that wait for their flush |
//! | 1/16 | flushed sets of memtables that open transactions may still need |
//! | 5/8 | cached blocks, indexes and filters |
//! | 1/16 | what compactions read ahead, each at most 4 MiB |
//! | the rest | the other buffers of flushes and compactions (1/16), log files and what describes the tree (1/16) |

use crate::base::Millis;
use crate::base::limits::VALUE_BYTES_MAX;
use crate::block::Codec;
use crate::budget::process::Member;
use crate::error::{Error, Result};
use crate::options::{Compression, Durability, Options, SmallTiers, machine};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MEMORY_BYTES_MIN: u64 = 1 << 20;
/// A set of memtables is not larger than this, unless a size is asked for: its memory is freed only when
/// all of it is flushed, and what it holds is replayed after a crash.
const MEMTABLE_BYTES_MAX: u64 = 256 << 20;
const MEMTABLE_BYTES_MIN: u64 = 16 << 10;
/// Larger sets are made only where the data are this many sets: there a larger flush saves a rewrite of
/// what is below it. Where there are fewer, the caches of processor and kernel hold small sets better
/// (docs/decisions/0012).
const DATA_PER_SET: u64 = 16;
const SMALL_SET_BYTES: u64 = 64 << 20;
/// Small memtables of a set have this size: a search in one finds its nodes in the processor's caches.
const TABLE_BYTES: u64 = 4 << 20;
/// A set whose size was asked for has so many small memtables.
const TABLES_ASKED: u64 = 16;
/// A set has at most this many small memtables for its bytewise keyspaces. Models add few.
pub const TABLES_MAX: usize = if cfg!(loom) { 4 } else { 64 };
/// Dead bytes that nobody minds: a database of a few megabytes would be compacted all the time.
const SPACE_RESERVE: u64 = 16 << 20;
const SPACE_LEAST: f64 = 1.1;
const SPACE_MOST: f64 = 100.0;
/// Bases of partitions are this many flushes large, within the first two bounds: then compactions of a
/// partition come about as rarely as pushes of a span, and a piece of a run is not too small. Larger
/// partitions make larger compactions, so a partition has more than `PARTITION_BYTES` only to be a third
/// larger than a flush, and never more than `PARTITION_BYTES_MAX`.
const PARTITION_FLUSHES: u64 = 8;
const PARTITION_BYTES_MIN: u64 = 4 << 20;
const PARTITION_BYTES: u64 = 64 << 20;
const PARTITION_BYTES_MAX: u64 = 256 << 20;
/// What all compactions together read ahead has this part of the budget, but what one reads ahead stays
/// within these bounds: larger pieces save nothing more.
const READ_AHEAD: u64 = 16;
const READ_AHEAD_BYTES_MIN: u64 = 128 << 10;
const READ_AHEAD_BYTES_MAX: u64 = 4 << 20;
/// Bounds of what is read ahead from one run.
const PIECE_BYTES_MIN: u64 = 16 << 10;
const PIECE_BYTES_MAX: u64 = 256 << 10;
/// Bytes of each piece of a value that comes in pieces: a reader and a writer of one have two of them in memory.
const VALUE_PIECE_BYTES_MAX: u32 = 256 << 10;
/// A flush or compaction collects this part of the budget before it writes it, within these bounds.
const COLLECTED: u64 = 128;
const COLLECTED_BYTES_MIN: u64 = 64 << 10;
const COLLECTED_BYTES_MAX: u64 = 512 << 10;
/// Unless the program says how many workers there are, each has at least so much of the budget: a
/// compaction has about one run segment in memory, with its index and filter, beside its buffers.
const WORKER_BYTES: u64 = 12 << 20;
/// A log file has at most this part of the budget, but not less than it begins with.
const LOG_FILES: u64 = 32;
const LOG_FILE_BYTES_MIN: u64 = 256 << 10;
/// Sets of memtables: one active and this many sealed ones.
pub const SEALED_MAX: u64 = 3;
/// Memory for this many flushed memtables may be kept for transactions that began before the flush.
pub const HISTORY_SETS: u64 = 2;
/// A memtable is sealed when the log after its start is this many times the memtable's size.
/// Entries take less room in the log than in memory, so this matters only for what fills no
/// memtable: writes that were refused after their reservation, and changes of keyspaces.
pub const LOG_PER_MEMTABLE: u64 = 2;

/// How much dead space a database may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpaceBound {
    /// Bytes of run files over live bytes.
    pub amplification: f64,
    /// Dead bytes that do not count.
    pub reserve: u64,
}

/// Numbers that hold while the database is open.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The memory budget.
    pub memory: u64,
    /// The same among those of the other open databases.
    pub member: Arc<Member>,
    /// Bytes at which a set of memtables is sealed at the latest: what takes memory for each set counts
    /// with it.
    pub memtable_bytes: u64,
    /// Bytes at which a set is sealed while there are few data.
    pub small_set_bytes: u64,
    /// Bytes of one of the small memtables that bytewise keyspaces have in a set.
    pub table_bytes: u64,
    /// Bytes of flushed memtables that are kept for open transactions.
    pub history_bytes: u64,
    /// Bytes of cached blocks: their share of the split.
    pub cache_bytes: u64,
    /// Whether that was asked for: then they may never have anything else.
    pub small_cache: bool,
    /// What they may have now.
    pub cache_now: Arc<AtomicU64>,
    /// Bytes of the largest log file: two of them are in memory, mapped, while writes come in.
    pub log_file_bytes: u64,
    /// Largest value and batch.
    pub batch_bytes_max: u64,
    /// Processors that the process may use, of which background work leaves one to the program; no bound
    /// where a test holds threads.
    pub processors: usize,
    /// Workers that compact.
    pub workers: usize,
    /// Whether one worker does everything in turns.
    pub alone: bool,
    /// Bytes that one compaction reads ahead, of all runs that it merges.
    pub read_ahead_bytes: u64,
    /// Bytes that a flush or compaction collects before it writes them.
    pub collected_bytes: u32,
    /// Bytes of a partition, where they were asked for.
    pub partition_bytes: Option<u64>,
    /// Bytes of all bases at present.
    pub data: Arc<AtomicU64>,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// Bytes of a raw block.
    pub block_bytes: u32,
    /// How blocks are compressed.
    pub compression: Compression,
    /// Values with so many bytes are separated from their keys; `u32::MAX`: none.
    pub separate_from: u32,
    /// When data is cold; `None`: never.
    pub cold: Option<Cold>,
    /// Class of writes that do not say one.
    pub durability: Durability,
    /// Longest time that a logged write stays unsynced.
    pub sync_interval: Option<Duration>,
    /// Tiers of a given shape, for tests.
    pub small_tiers: Option<SmallTiers>,
    /// How much dead space there may be.
    pub space: SpaceBound,
    /// The pause after which the log rests, if a test says so.
    pub rest_after: Option<Duration>,
}

impl Settings {
    /// Resolves the options.
    pub fn new(options: &Options) -> Result<Self> {
        let memory = options.memory.unwrap_or_else(default_memory);
        if memory < MEMORY_BYTES_MIN {
            return Err(Error::invalid(format!(
                "memory is {memory} bytes: give at least {MEMORY_BYTES_MIN}"
            )));
        }
        let memtable_bytes = options
            .memtable_bytes
            .unwrap_or(memory / (8 * (SEALED_MAX + 1)))
            .clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES_MAX.max(options.memtable_bytes.unwrap_or(0)));
        let (asked, cache_bytes) = (options.memtable_bytes.is_some(), cache_bytes(memory, options));
        let separate_from = options.separate_values_from.unwrap_or(u32::MAX);
        let small_set_bytes =
            if asked { memtable_bytes } else { memtable_bytes.min(SMALL_SET_BYTES) };
        for (name, value, min, max) in [
            (
                "partition_bytes",
                options.partition_bytes.unwrap_or(PARTITION_BYTES),
                4 << 10,
                16 << 30,
            ),
            ("segment_bytes", u64::from(options.segment_bytes), 1 << 10, 64 << 20),
            ("block_bytes", u64::from(options.block_bytes), 256, 32 << 10),
            ("log_file_bytes", u64::from(options.log_file_bytes), 16 << 10, 1 << 30),
            ("separate_values_from", u64::from(separate_from), 16, u64::from(u32::MAX)),
        ] {
            if value < min || value > max {
                return Err(Error::invalid(format!(
                    "{name} is {value}: give a number from {min} to {max}"
                )));
            }
        }
        // This follows the processors that the process may run on, and the quotas of its control groups.
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let usual = processors.max(2).min((memory / WORKER_BYTES).max(1) as usize);
        let workers = options.workers.unwrap_or(usual).clamp(1, 64);
        Ok(Self {
            memory,
            member: Member::new(memory).into(),
            memtable_bytes,
            small_set_bytes,
            table_bytes: table_bytes(memtable_bytes, asked),
            history_bytes: memtable_bytes * HISTORY_SETS,
            cache_bytes,
            small_cache: options.small_cache.is_some(),
            cache_now: Arc::new(AtomicU64::new(cache_bytes)),
            log_file_bytes: u64::from(options.log_file_bytes)
                .min((memory / LOG_FILES).max(LOG_FILE_BYTES_MIN)),
            batch_bytes_max: (memory / 8).min(VALUE_BYTES_MAX + (1 << 20)),
            processors: if options.gates.is_some() { usize::MAX } else { processors },
            workers,
            alone: options.workers.is_some_and(|asked| asked <= 1),
            read_ahead_bytes: (memory / READ_AHEAD / workers as u64)
                .clamp(READ_AHEAD_BYTES_MIN, READ_AHEAD_BYTES_MAX),
            collected_bytes: (memory / COLLECTED).clamp(COLLECTED_BYTES_MIN, COLLECTED_BYTES_MAX)
                as u32,
            partition_bytes: options.partition_bytes,
            data: Arc::default(),
            segment_bytes: options.segment_bytes,
            block_bytes: options.block_bytes,
            compression: options.compression,
            separate_from,
            cold: Cold::new(options),
            durability: options.durability,
            sync_interval: options.sync_interval,
            small_tiers: options.small_tiers,
            space: space_bound(options)?,
            rest_after: options.small_rest.map(|rest| rest.after),
        })
    }

    /// Whether flushes have a thread of their own, and workers merge on threads of low priority. A single
    /// worker does everything.
    pub fn flushes_apart(&self) -> bool {
        !self.alone
    }

    /// Bytes that a compaction reads at once from each of so many runs.
    pub fn piece_bytes(&self, runs: usize) -> u64 {
        // Seeded: what a compaction reads ahead grows with the number of runs.
        let runs = if bug!("options_read_ahead_without_bound") { 1 } else { runs.max(1) as u64 };
        (self.read_ahead_bytes / runs).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX)
    }

    /// Refuses a value that is longer than the budget allows.
    #[inline]
    pub fn check_value_len(&self, len: u64) -> Result<()> {
        let max = self.batch_bytes_max.min(VALUE_BYTES_MAX);
        if len > max { Err(Error::ValueTooLarge { len, max }) } else { Ok(()) }
    }

    /// Bytes of each piece of a value that comes in pieces.
    pub fn value_piece_bytes(&self) -> u32 {
        (self.segment_bytes / 4).min(VALUE_PIECE_BYTES_MAX)
    }

    /// Says how many bytes all bases have: the next flushes and partitions have the size that is best for
    /// them.
    pub fn follow(&self, base_bytes: u64) {
        self.data.store(base_bytes, Ordering::Relaxed);
    }

    /// What the cache may have now, in bytes: its share of the split, or what others leave.
    pub fn cache_capacity(&self) -> u64 {
        self.cache_now.load(Ordering::Relaxed)
    }

    /// Notes what the cache may have.
    pub fn set_cache_capacity(&self, bytes: u64) {
        self.cache_now.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that one flush takes.
    pub fn flush_bytes(&self) -> u64 {
        let data = self.data.load(Ordering::Relaxed);
        (data / DATA_PER_SET).clamp(self.small_set_bytes, self.memtable_bytes)
    }

    /// Bytes at which a partition's base counts as full; the base is split at one and a half times that.
    pub fn partition_bytes(&self) -> u64 {
        let flush = self.flush_bytes();
        let usual = (flush * PARTITION_FLUSHES).clamp(PARTITION_BYTES_MIN, PARTITION_BYTES);
        self.partition_bytes.unwrap_or(usual.max(flush / 3 * 4).min(PARTITION_BYTES_MAX))
    }

    /// The sizes of the next set of memtables.
    pub fn memtable_sizes(&self) -> MemtableSizes {
        MemtableSizes { set_bytes: self.flush_bytes(), table_bytes: self.table_bytes }
    }

    /// The codec of new blocks; `settled`: the data is expected to stay for long.
    pub fn codec(&self, settled: bool) -> Codec {
        match (self.compression, settled) {
            (Compression::None, _) | (Compression::Auto | Compression::Zstd, false) => Codec::Raw,
            (Compression::Auto, true) | (Compression::Lz4, _) => Codec::Lz4,
            (Compression::Zstd, true) => Codec::Zstd,
        }
    }
}

/// When data is cold and when it is warm again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cold {
    /// The time in which nobody reads it.
    pub after: Millis,
    /// In tests: whatever it saves, and after one read.
    pub easily: bool,
}

impl Cold {
    /// Of the ways to compress only one leaves a choice.
    fn new(options: &Options) -> Option<Self> {
        let after = options.cold_after.filter(|_| options.compression == Compression::Auto)?;
        let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).max(1);
        Some(Self { after, easily: options.small_cold })
    }
}

/// Bytes that all memtables together may take, the largest set of which may have `set_bytes`: the only
/// hard stop for writers.
pub fn write_budget(set_bytes: u64) -> u64 {
    set_bytes * (SEALED_MAX + 1)
}

/// Bytes of log that all memtables together may keep; beyond them writers stop too.
pub fn log_budget(set_bytes: u64) -> u64 {
    write_budget(set_bytes) * LOG_PER_MEMTABLE
}

/// Sizes of a set of memtables.
#[derive(Debug, Clone, Copy)]
pub struct MemtableSizes {
    /// Bytes at which it is sealed.
    pub set_bytes: u64,
    /// Bytes after which bytewise writes go to the next small memtable.
    pub table_bytes: u64,
}

/// Bytes of a small memtable in a set; `asked`: the size of the set was asked for.
fn table_bytes(memtable_bytes: u64, asked: bool) -> u64 {
    let bytes = match asked {
        true => (memtable_bytes / TABLES_ASKED).max(MEMTABLE_BYTES_MIN / 4),
        false => TABLE_BYTES,
    };
    bytes.max(memtable_bytes / TABLES_MAX as u64).min(memtable_bytes)
}

/// Bytes of cached blocks in the split; a test may ask for less.
fn cache_bytes(memory: u64, options: &Options) -> u64 {
    options.small_cache.unwrap_or(memory / 8 * 5)
}

/// How much dead space there may be.
fn space_bound(options: &Options) -> Result<SpaceBound> {
    let amplification = options.max_space_amplification;
    if !(SPACE_LEAST..=SPACE_MOST).contains(&amplification) {
        return Err(Error::invalid(format!(
            "max_space_amplification is {amplification}: give a number from {SPACE_LEAST} to {SPACE_MOST}"
        )));
    }
    Ok(SpaceBound { amplification, reserve: options.small_space.unwrap_or(SPACE_RESERVE) })
}

/// A quarter of the machine's memory, or of the least limit of the process's control groups where that is smaller.
fn default_memory() -> u64 {
    // If nothing is known, 1 GiB is a cautious guess of the machine's memory.
    (machine::memory().unwrap_or(1 << 30) / 4).max(MEMORY_BYTES_MIN)
}

#[cfg(test)]
mod tests;
