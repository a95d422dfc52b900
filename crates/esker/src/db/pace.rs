//! Pacing: writers are slowed smoothly before anything is full, and stopped only by the memory
//! limit.
//!
//! Two debts are watched. *Flush debt*: bytes in memtables against their budget. *Merge debt*:
//! bytes in deltas against the bases under them. Below a knee nothing happens. Between the knee
//! and the limit, writers get a rate that is a multiple of the measured drain rate and falls from
//! twice that rate to a fraction of it: so the debt settles where the rate equals the drain, and
//! there is no threshold at which everything stops (SILK and bLSM argue for the same shape).
//!
//! The rate is kept by one virtual clock (the leaky bucket known as GCRA): a writer moves the
//! clock on by what its bytes cost and waits until its own start time. While nobody is paced, all
//! this is one load per write.

use crate::db::counters::Background;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const OPEN: u8 = 0;
const PACED_BY_FLUSH: u8 = 1;
const PACED_BY_MERGE: u8 = 2;
const STOPPED: u8 = 3;

/// Fill of the write buffers above which writers are paced.
const FLUSH_KNEE: f64 = 0.5;
/// Deltas over bases above which writers are paced.
const MERGE_KNEE: f64 = 1.0;
/// Deltas over bases at which the rate is lowest.
const MERGE_LIMIT: f64 = 2.0;
/// Rate at the knee and at the limit, as multiples of the drain rate.
const RATE_AT_KNEE: f64 = 2.0;
const RATE_AT_LIMIT: f64 = 0.25;
/// Waits shorter than this are not worth a system call; they stay on the clock.
const WAIT_MIN: Duration = Duration::from_micros(300);
/// Longest single wait, so that pacing never shows as a pause.
const WAIT_MAX: Duration = Duration::from_millis(20);
/// Rates are never below this, so that a wrong measurement cannot freeze writers.
const RATE_MIN: f64 = (1 << 20) as f64;

/// What the pacer decides from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Debts {
    /// Bytes in all memtables.
    pub memtables: u64,
    /// Their budget.
    pub budget: u64,
    /// Bytes in all deltas.
    pub deltas: u64,
    /// Bytes in all bases, or the floor under which ratios mean little.
    pub bases: u64,
}

/// Decides how fast writers may go.
#[derive(Debug)]
pub struct Pacer {
    mode: AtomicU8,
    /// Whether deltas are above the knee.
    merges_late: AtomicBool,
    /// Bytes per second while paced.
    rate: AtomicU64,
    /// The virtual clock, in nanoseconds since `epoch`.
    clock: AtomicU64,
    epoch: Instant,
    flush_drain: AtomicU64,
    merge_drain: AtomicU64,
}

/// What a writer has to do before its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Go on.
    Go,
    /// Wait this long first, then go on.
    Wait(Duration),
    /// Wait until memory is free, then ask again.
    Stop,
}

impl Default for Pacer {
    fn default() -> Self {
        Self {
            mode: AtomicU8::new(OPEN),
            merges_late: AtomicBool::new(false),
            rate: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            epoch: Instant::now(),
            // Until something is measured: a slow disk's rate.
            flush_drain: AtomicU64::new(100 << 20),
            merge_drain: AtomicU64::new(50 << 20),
        }
    }
}

/// The rate, as a multiple of the drain, at `debt` between `knee` and `limit`.
fn slope(debt: f64, knee: f64, limit: f64) -> f64 {
    let along = ((debt - knee) / (limit - knee)).clamp(0.0, 1.0);
    RATE_AT_KNEE + (RATE_AT_LIMIT - RATE_AT_KNEE) * along
}

fn blend(old: &AtomicU64, bytes: u64, took: Duration) {
    let seconds = took.as_secs_f64().max(1e-4);
    let measured = bytes as f64 / seconds;
    let blended = old.load(Ordering::Relaxed) as f64 * 0.7 + measured * 0.3;
    old.store(blended as u64, Ordering::Relaxed);
}

impl Pacer {
    /// Learns how fast a flush freed memtable bytes.
    pub fn flushed(&self, bytes: u64, took: Duration) {
        blend(&self.flush_drain, bytes, took);
    }

    /// Learns how fast a merge took in delta bytes.
    pub fn merged(&self, bytes: u64, took: Duration) {
        blend(&self.merge_drain, bytes, took);
    }

    /// Decides anew.
    pub fn update(&self, debts: Debts) {
        let fill = debts.memtables as f64 / debts.budget.max(1) as f64;
        let ratio = debts.deltas as f64 / debts.bases.max(1) as f64;
        let drain = |rate: &AtomicU64| rate.load(Ordering::Relaxed) as f64;
        let by_flush =
            (fill > FLUSH_KNEE).then(|| drain(&self.flush_drain) * slope(fill, FLUSH_KNEE, 1.0));
        let by_merge = (ratio > MERGE_KNEE)
            .then(|| drain(&self.merge_drain) * slope(ratio, MERGE_KNEE, MERGE_LIMIT));
        let (mode, rate) = match (by_flush, by_merge) {
            _ if fill >= 1.0 => (STOPPED, 0.0),
            (None, None) => (OPEN, 0.0),
            (Some(flush), Some(merge)) if merge < flush => (PACED_BY_MERGE, merge),
            (Some(flush), _) => (PACED_BY_FLUSH, flush),
            (None, Some(merge)) => (PACED_BY_MERGE, merge),
        };
        self.merges_late.store(ratio > MERGE_KNEE, Ordering::Relaxed);
        self.rate.store(rate.max(RATE_MIN) as u64, Ordering::Relaxed);
        self.mode.store(mode, Ordering::Release);
    }

    /// Whether writers may go on without asking.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.mode.load(Ordering::Acquire) == OPEN
    }

    /// Whether there is so much to merge that writers are slowed for it.
    pub fn merges_are_late(&self) -> bool {
        self.merges_late.load(Ordering::Relaxed)
    }

    /// Whether writers are stopped by the memory limit.
    pub fn is_stopped(&self) -> bool {
        self.mode.load(Ordering::Acquire) == STOPPED
    }

    /// What a writer of `bytes` has to do; called only while not open.
    pub fn admit(&self, bytes: u64) -> Admission {
        match self.mode.load(Ordering::Acquire) {
            OPEN => return Admission::Go,
            STOPPED => return Admission::Stop,
            _ => {}
        }
        let now = self.epoch.elapsed().as_nanos() as u64;
        let rate = self.rate.load(Ordering::Relaxed).max(1);
        let cost = (u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64;
        // Unused time is not saved up: the clock never falls behind the real one.
        let moved = self.clock.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |clock| {
            Some(clock.max(now).min(now + WAIT_MAX.as_nanos() as u64) + cost)
        });
        let start = moved.unwrap_or(now).max(now);
        let wait = Duration::from_nanos(start - now);
        if wait < WAIT_MIN { Admission::Go } else { Admission::Wait(wait.min(WAIT_MAX)) }
    }

    /// Notes how long a writer was paced, under the reason that holds now.
    pub fn note_wait(&self, counters: &Background, took: Duration) {
        let nanos = took.as_nanos() as u64;
        let reason = match self.mode.load(Ordering::Acquire) {
            PACED_BY_MERGE => &counters.stall_merge_nanos,
            STOPPED => &counters.stall_memory_nanos,
            _ => &counters.stall_flush_nanos,
        };
        reason.fetch_add(nanos, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
