//! Statistics that are always on (R29).
//!
//! Counters are exact. Each thread adds to its own stripe, so nothing is shared on the hot path; a
//! query sums the stripes. Only one call in [`SAMPLE_EVERY`] is timed, because two clock reads
//! would cost a tenth of a fast get.

use super::report::{Latency, Stats};
use crate::sync::{Lane, Stripes};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One call in this many is timed.
pub const SAMPLE_EVERY: u64 = 64;

/// Whether the call with this number is timed. The golden ratio spreads the numbers (Fibonacci
/// hashing, Knuth). With regular distances, a program that alternates between two kinds of calls
/// would have only one kind timed.
#[inline]
fn is_sampled(call: u64) -> bool {
    call.wrapping_mul(0x9E37_79B9_7F4A_7C15) < u64::MAX / SAMPLE_EVERY
}

macro_rules! define_counters {
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
        /// What is counted by the threads that call the database.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Counter {
            $($(#[doc = $call_doc])* $variant,)*
            /// Bytes of keys and values that were written.
            UserBytes,
            /// Point reads that found nothing.
            GetsMissing,
            /// Point reads that no cached block answered.
            GetsElsewhere,
            /// Positionings of iterators.
            Seeks,
        }

        /// Counters of the background work; they change rarely enough to be shared by all threads.
        #[derive(Debug, Default)]
        pub struct Background {
            $($(#[doc = $background_doc])* pub $background: AtomicU64,)*
            /// Bytes that flushes wrote.
            pub flush_bytes: AtomicU64,
            /// Bytes that compactions wrote.
            pub compaction_bytes: AtomicU64,
            /// Bytes of the manifest.
            pub manifest_bytes: AtomicU64,
        }

        impl Counters {
            /// Copies the counters that are kept here into `stats`.
            pub fn read_into(&self, stats: &mut Stats) {
                $(stats.$call = self.total(Counter::$variant);)*
                $(stats.$background = self.background.$background.load(Ordering::Relaxed);)*
            }
        }
    };
}
super::table::metrics!(define_counters);

/// What a batch writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Entries put, operands included.
    pub puts: u64,
    /// Point deletes.
    pub deletes: u64,
    /// Range deletes.
    pub range_deletes: u64,
    /// Bytes of keys and values.
    pub user_bytes: u64,
}

impl AddAssign for WriteCounts {
    fn add_assign(&mut self, other: Self) {
        self.puts += other.puts;
        self.deletes += other.deletes;
        self.range_deletes += other.range_deletes;
        self.user_bytes += other.user_bytes;
    }
}

/// How many counters there are.
pub const COUNTERS: usize = Counter::Seeks as usize + 1;

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
        let nanos = |(bucket, count): (usize, &u64)| bucket_floor(bucket).saturating_mul(*count);
        let total = counts.iter().enumerate().map(nanos).fold(0, u64::saturating_add);
        Latency {
            samples,
            p50: percentile(500),
            p99: percentile(990),
            p999: percentile(999),
            max: Duration::from_nanos(max),
            total: Duration::from_nanos(total),
        }
    }
}

/// All counters of a database.
#[derive(Debug, Default)]
pub struct Counters {
    calls: Stripes<COUNTERS>,
    histograms: [Histogram; TIMED],
    /// Counters of the background.
    pub background: Background,
}

/// The clock reading at the beginning of a call, if the call is timed.
#[inline]
fn sample(count: u64) -> Option<Instant> {
    if is_sampled(count) { start_clock() } else { None }
}

#[cold]
fn start_clock() -> Option<Instant> {
    Some(Instant::now())
}

impl Counters {
    /// Counts a call and returns when it began, if it is timed.
    #[inline]
    pub fn begin(&self, call: Counter) -> Option<Instant> {
        if cfg!(feature = "bench-no-stats") {
            return None;
        }
        sample(self.calls.lane().add(call as usize, 1))
    }

    /// The calling thread's counters, for a call that counts more than once.
    #[inline]
    pub fn lane(&self) -> Lane<'_, COUNTERS> {
        self.calls.lane()
    }

    /// Counts a call in a lane and returns when it began, if it is timed.
    #[inline]
    pub fn begin_in(lane: Lane<'_, COUNTERS>, call: Counter) -> Option<Instant> {
        if cfg!(feature = "bench-no-stats") {
            return None;
        }
        sample(lane.add(call as usize, 1))
    }

    /// Counts a committed batch and returns when it began, if it is timed.
    #[inline]
    pub fn begin_commit(&self, counts: WriteCounts) -> Option<Instant> {
        let WriteCounts { puts, deletes, range_deletes, user_bytes } = counts;
        if cfg!(feature = "bench-no-stats") {
            return None;
        }
        let lane = self.calls.lane();
        lane.add(Counter::Puts as usize, puts);
        lane.add(Counter::UserBytes as usize, user_bytes);
        if deletes | range_deletes != 0 {
            lane.add(Counter::Deletes as usize, deletes);
            lane.add(Counter::RangeDeletes as usize, range_deletes);
        }
        sample(lane.add(Counter::Commits as usize, 1))
    }

    /// Adds to one counter of the calling thread.
    #[inline]
    pub fn add(&self, counter: Counter, n: u64) {
        if !cfg!(feature = "bench-no-stats") {
            self.calls.lane().add(counter as usize, n);
        }
    }

    /// Records the duration of a call that began at `started`.
    #[inline]
    pub fn end(&self, timed: Timed, started: Option<Instant>) {
        if let Some(started) = started {
            self.record(timed, started.elapsed());
        }
    }

    /// Records the duration of a call.
    pub fn record(&self, timed: Timed, took: Duration) {
        self.histograms[timed as usize].record(took);
    }

    /// The sum of a counter over all threads.
    pub fn total(&self, counter: Counter) -> u64 {
        self.calls.sum(counter as usize)
    }

    /// A summary of what was timed.
    pub fn latency(&self, timed: Timed) -> Latency {
        self.histograms[timed as usize].summary()
    }
}

#[cfg(test)]
mod tests;
