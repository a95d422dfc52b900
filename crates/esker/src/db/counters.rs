//! Statistics that are always on (R29).
//!
//! Counters are exact: each thread owns a block of them per database and adds with a plain load
//! and store, so nothing is shared on the hot path; a reader sums the blocks. One call in
//! [`SAMPLE_EVERY`] is timed, because two clock reads would cost a tenth of a fast get.

use crate::db::stats::Latency;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One call in this many is timed.
pub const SAMPLE_EVERY: u64 = 64;

/// Whether the call with this number is timed. The numbers are spread by the golden ratio (Fibonacci
/// hashing, Knuth) instead of taken at regular distances, or a program that alternates between two
/// kinds of calls would have only one kind timed.
#[inline]
fn is_sampled(call: u64) -> bool {
    call.wrapping_mul(0x9E37_79B9_7F4A_7C15) < u64::MAX / SAMPLE_EVERY
}

/// What is counted by the threads that call the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Each is named like the field of `Stats` that shows it.
pub enum Counter {
    Puts,
    Deletes,
    RangeDeletes,
    Commits,
    UserBytes,
    Gets,
    GetsFound,
    Scans,
    Scanned,
}

const COUNTERS: usize = Counter::Scanned as usize + 1;

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Each is named like the field of `Stats` that shows it.
pub enum Timed {
    Put,
    Get,
    Scan,
    Sync,
}

const TIMED: usize = Timed::Sync as usize + 1;

/// The counters of one thread.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ThreadBlock {
    values: [AtomicU64; COUNTERS],
    calls: AtomicU64,
}

/// Buckets of a histogram: 16 per power of two of nanoseconds, up to about 36 minutes.
const BUCKETS: usize = 16 * 41;

#[derive(Debug)]
struct Histogram {
    buckets: Box<[AtomicU64]>,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), max: AtomicU64::new(0) }
    }
}

/// The lower bound of bucket `index`, in nanoseconds.
fn bucket_floor(index: usize) -> u64 {
    match index {
        0..16 => index as u64,
        _ => (16 + (index as u64 & 15)) << (index / 16 - 1),
    }
}

fn bucket_of(nanos: u64) -> usize {
    if nanos < 16 {
        return nanos as usize;
    }
    let shift = 59 - nanos.leading_zeros() as usize;
    (16 * (shift + 1) + ((nanos >> shift) as usize & 15)).min(BUCKETS - 1)
}

impl Histogram {
    fn record(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
        self.max.fetch_max(nanos, Ordering::Relaxed);
    }

    fn summary(&self) -> Latency {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Ordering::Relaxed)).collect();
        let samples: u64 = counts.iter().sum();
        let max = self.max.load(Ordering::Relaxed);
        let percentile = |permille: u64| {
            let rank = (samples * permille).div_ceil(1000).max(1);
            let mut seen = 0;
            let reached = |count: &u64| {
                seen += count;
                seen >= rank
            };
            let bucket = counts.iter().position(reached).unwrap_or(0);
            Duration::from_nanos(bucket_floor(bucket).min(max))
        };
        if samples == 0 {
            return Latency::default();
        }
        Latency {
            samples,
            p50: percentile(500),
            p99: percentile(990),
            p999: percentile(999),
            max: Duration::from_nanos(max),
        }
    }
}

/// Counters of the background; rare enough to be shared.
#[derive(Debug, Default)]
#[allow(missing_docs)] // Each is named like the field of `Stats` that shows it.
pub struct Background {
    pub flushes: AtomicU64,
    pub merges: AtomicU64,
    pub segments_adopted: AtomicU64,
    pub flush_bytes: AtomicU64,
    pub merge_bytes: AtomicU64,
    pub manifest_bytes: AtomicU64,
    pub stall_flush_nanos: AtomicU64,
    pub stall_merge_nanos: AtomicU64,
    pub stall_memory_nanos: AtomicU64,
}

/// All counters of a database.
#[derive(Debug)]
pub struct Counters {
    id: u64,
    threads: Mutex<Vec<Arc<ThreadBlock>>>,
    retired: ThreadBlock,
    histograms: [Histogram; TIMED],
    /// Counters of the background.
    pub background: Background,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// This thread's block in the database that it called last.
    static BLOCK: RefCell<Option<(u64, Arc<ThreadBlock>)>> = const { RefCell::new(None) };
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            threads: Mutex::default(),
            retired: ThreadBlock::default(),
            histograms: Default::default(),
            background: Background::default(),
        }
    }
}

/// Adds to a counter that only this thread writes.
#[inline]
fn add_owned(value: &AtomicU64, n: u64) {
    value.store(value.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

impl Counters {
    /// Adds to counters of the calling thread and says when the call began, if it is to be timed.
    #[inline]
    pub fn begin(&self, counts: &[(Counter, u64)]) -> Option<Instant> {
        if cfg!(feature = "bench-no-stats") {
            return None;
        }
        self.with_block(|block| {
            for (counter, n) in counts {
                add_owned(&block.values[*counter as usize], *n);
            }
            let calls = block.calls.load(Ordering::Relaxed);
            block.calls.store(calls + 1, Ordering::Relaxed);
            is_sampled(calls).then(Instant::now)
        })
    }

    /// Adds to one counter of the calling thread.
    #[inline]
    pub fn add(&self, counter: Counter, n: u64) {
        if !cfg!(feature = "bench-no-stats") {
            self.with_block(|block| add_owned(&block.values[counter as usize], n));
        }
    }

    /// Notes how long a call took that began at `started`.
    #[inline]
    pub fn end(&self, timed: Timed, started: Option<Instant>) {
        if let Some(started) = started {
            self.record(timed, started.elapsed());
        }
    }

    /// Notes how long a call took.
    pub fn record(&self, timed: Timed, took: Duration) {
        self.histograms[timed as usize].record(took);
    }

    #[inline]
    fn with_block<R>(&self, f: impl FnOnce(&ThreadBlock) -> R) -> R {
        BLOCK.with(|cell| {
            let mut block = cell.borrow_mut();
            match &*block {
                Some((id, block)) if *id == self.id => f(block),
                _ => {
                    let new = self.new_block();
                    let result = f(&new);
                    *block = Some((self.id, new));
                    result
                }
            }
        })
    }

    /// A block for a thread that has none here, or that called another database in between. Blocks
    /// that no thread holds any more are folded into one.
    #[cold]
    fn new_block(&self) -> Arc<ThreadBlock> {
        let mut threads = self.threads.lock();
        threads.retain(|block| {
            let held = Arc::strong_count(block) > 1;
            if !held {
                for (total, value) in self.retired.values.iter().zip(&block.values) {
                    add_owned(total, value.load(Ordering::Relaxed));
                }
            }
            held
        });
        let block = Arc::new(ThreadBlock::default());
        threads.push(block.clone());
        block
    }

    /// The sum of a counter over all threads.
    pub fn total(&self, counter: Counter) -> u64 {
        let threads = self.threads.lock();
        let at = counter as usize;
        let sum: u64 = threads.iter().map(|block| block.values[at].load(Ordering::Relaxed)).sum();
        sum + self.retired.values[at].load(Ordering::Relaxed)
    }

    /// A summary of what was timed.
    pub fn latency(&self, timed: Timed) -> Latency {
        self.histograms[timed as usize].summary()
    }
}

#[cfg(test)]
mod tests;
