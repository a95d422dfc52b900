//! Histograms of durations, and what statistics show of them.
//!
//! The buckets grow with the duration, 16 for each power of two, so a percentile is at most a
//! sixteenth below the true one. All threads share the buckets of a histogram: what is recorded
//! often is sampled by the caller.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A summary of sampled latencies (one call in 128 is timed, R29).
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// for n in 0..1000_u32 {
///     db.insert(n.to_be_bytes(), "...")?;
/// }
/// let puts = db.stats().put_latency;
/// assert!(puts.samples > 0 && puts.p50 <= puts.p99 && puts.p99 <= puts.max);
/// # Ok::<(), esker::Error>(())
/// ```
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
    /// The longest sampled latency.
    pub max: Duration,
    /// The sum of the sampled latencies, from their buckets: at most 1/16 too low.
    pub total: Duration,
}

/// A time in nanoseconds.
pub fn nanos_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Buckets of a histogram: 16 per power of two of nanoseconds, up to about 36 minutes.
const BUCKETS: usize = 16 * 41;

/// How long things took: a count for each of 656 ranges of durations.
#[derive(Debug)]
pub struct Histogram {
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
    /// Adds a duration.
    pub fn record(&self, took: Duration) {
        let nanos = nanos_of(took);
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
        if nanos > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    /// Percentiles of what was recorded; all zero before the first.
    pub fn summary(&self) -> Latency {
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

#[cfg(all(test, not(loom)))]
mod tests;
