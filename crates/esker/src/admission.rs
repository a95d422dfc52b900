//! Pacing: writers are slowed smoothly before a limit is reached, and stopped only by the memory
//! limit.
//!
//! The pacer watches two debts. *Flush debt* is the ratio of bytes in memtables to their budget.
//! *Compaction debt* is the number of runs over a key against its bound
//! ([`policy`](crate::compaction::policy)), and the ratio of bytes in deltas to the bases under them;
//! the one that asks for the lower rate counts. Below a knee nothing happens. Between the knee and
//! the limit, writers get a rate that is a multiple of the measured drain rate and falls from twice
//! that rate to a fraction of it. So the debt settles where the rate equals the drain, and at no
//! threshold does everything stop (SILK and bLSM argue for the same shape).
//!
//! The drain rate of compactions is that at which the workers can take in what is written. A byte
//! goes through each tier and into a partition, so the times of these steps add up. Each step is
//! measured by itself, as the time for a byte that enters it.
//!
//! Flush debt also makes the log long: the log is kept from the start of the oldest memtable.
//! Writes that were refused after their reservation fill the log and no memtable. So the bytes of
//! the log have a budget of their own, and the fuller budget counts.
//!
//! Writers keep to the rate by a line, in which each takes as many places as it has bytes. The head
//! of the line advances at the present rate. A writer goes when the head has reached its first
//! byte, so the writers behind it also wait for its bytes. A woken writer calls again and keeps its
//! place. While no writer is paced, all this is one load per write.

pub mod relief;

use crate::base::Seq;
use crate::compaction::policy::{self, TIERS_MAX};
use crate::events::{EventBus, EventKind};
use crate::manifest::Totals;
use crate::options::settings::{log_budget, write_budget};
use crate::state::State;
use crate::waits::Cause;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const OPEN: u8 = 0;
const PACED_BY_FLUSH: u8 = 1;
const PACED_BY_COMPACTION: u8 = 2;
const STOPPED: u8 = 3;
const FULL: u8 = 4;

/// Fill of the write buffers above which writers are paced.
const FLUSH_KNEE: f64 = 0.5;
/// Deltas over bases above which writers are paced.
const COMPACTION_KNEE: f64 = 1.0;
/// Deltas over bases at which the rate is lowest.
const COMPACTION_LIMIT: f64 = 2.0;
/// Shorter waits are not worth a system call; the next writers wait for them.
const WAIT_MIN: Duration = Duration::from_micros(300);
/// A writer calls again after this time at the latest, since the rate may have risen.
const WAIT_MAX: Duration = Duration::from_millis(20);
/// The head may run ahead by this time while no thread writes: sleepers wake a little late.
const SAVED_MAX: Duration = Duration::from_millis(1);
/// Ratios to bases of fewer bytes than this many sets of memtables mean little.
const BASES_MIN_SETS: u64 = 8;
/// Writers that asked before this time may have ended.
const LATELY: Duration = Duration::from_millis(100);
/// Rates are never below this, so that a wrong measurement cannot stop writers.
const RATE_MIN: f64 = (1 << 20) as f64;
/// The time of a step for a byte, in picoseconds, until one is measured: 50 MiB/s.
const STEP_TIME: u64 = 19_000;
/// A step with so many bytes counts in full.
const STEP_BYTES: f64 = (8 << 20) as f64;

/// The input of the pacer's decisions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Debts {
    /// Bytes in all memtables.
    pub memtables: u64,
    /// Their budget.
    pub budget: u64,
    /// Bytes of log that are kept for memtables.
    pub log: u64,
    /// Their budget.
    pub log_budget: u64,
    /// Whether the device is full: writers must call the pacer, but are not slowed.
    pub tight: bool,
    /// Bytes in all deltas.
    pub deltas: u64,
    /// Bytes in all bases, or a minimum below which ratios mean little.
    pub bases: u64,
}

impl Debts {
    /// Those of a state and the sums over its trees; `reserved`: the end of the log, `tight`: the device
    /// is full.
    pub fn of(state: &State, totals: &Totals, reserved: Seq, tight: bool) -> Self {
        // Sets that were made when there were fewer data are smaller than the next ones.
        let set_bytes = state.set_bytes_max();
        Self {
            memtables: state.sealed_bytes() + state.active().bytes(),
            budget: write_budget(set_bytes),
            log: reserved.saturating_sub(state.log_start()),
            log_budget: log_budget(set_bytes),
            tight,
            deltas: totals.delta_bytes,
            bases: totals.base_bytes.max(BASES_MIN_SETS * set_bytes),
        }
    }
}

/// What the runs over a key say about the rate of writers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pressure {
    /// The rate that they allow, as a multiple of the drain; `None`: any.
    pub allowed: Option<f64>,
    /// Whether no further run should lie over some key.
    pub full: bool,
    /// How many tiers a byte goes through.
    pub tiers: usize,
    /// Workers that compact at the same time.
    pub workers: usize,
}

/// What the pacer does with writers.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let pace = db.stats().pace;
/// assert_eq!((pace.mode, pace.limit), (esker::PaceMode::Open, 0));
/// assert_eq!(pace.mode.as_str(), "open");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaceMode {
    /// Writers go on without a limit.
    #[default]
    Open,
    /// Writers keep to a rate, because memtables fill faster than flushes empty them.
    FlushDebt,
    /// Writers keep to a rate, because deltas arrive faster than compactions rewrite them.
    CompactionDebt,
    /// Writers wait until memory is free.
    Stopped,
    /// The device is full: writes of data are refused, or wait until space is freed.
    DiskFull,
}

impl PaceMode {
    /// The names of all modes, in order.
    pub(crate) const NAMES: [&'static str; 5] =
        ["open", "flush_debt", "compaction_debt", "stopped", "disk_full"];

    /// The mode's name in all outputs.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::PaceMode::CompactionDebt.as_str(), "compaction_debt");
    /// ```
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The mode of this number, as `mode as u64` gives it.
    pub(crate) fn numbered(number: u64) -> Option<Self> {
        let all =
            [Self::Open, Self::FlushDebt, Self::CompactionDebt, Self::Stopped, Self::DiskFull];
        all.get(usize::try_from(number).ok()?).copied()
    }
}

/// Decides how fast writers may go.
#[derive(Debug)]
pub struct Pacer {
    mode: AtomicU8,
    /// Whether deltas exceed the knee, or runs come near their bound.
    compactions_late: AtomicBool,
    line: Mutex<Line>,
    epoch: Instant,
    /// When the last flush ended.
    flushed_at: Mutex<Instant>,
    flush_drain: AtomicU64,
    pressure: Mutex<Pressure>,
    /// How long a compaction takes for a byte of deltas, and a push for a byte of runs, by tier, in
    /// picoseconds.
    step_times: [AtomicU64; TIERS_MAX + 1],
    /// Is told when writers begin and cease to be slowed.
    events: Arc<EventBus>,
}

/// Writers that wait for the rate, in bytes.
#[derive(Debug, Default)]
struct Line {
    /// Bytes per second; 0: the head does not move.
    rate: f64,
    /// The number of places that were ever taken.
    taken: u64,
    /// The head: places before it may go.
    head: f64,
    /// When the head last moved, since the pacer's epoch.
    moved: Duration,
    /// When a writer last asked, since the pacer's epoch.
    asked: Duration,
    /// Since when the mode is what it is, since the pacer's epoch.
    since: Duration,
}

impl Line {
    fn advance(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.moved).as_secs_f64();
        let saved = self.rate * SAVED_MAX.as_secs_f64();
        self.head = (self.head + elapsed * self.rate).min(self.taken as f64 + saved);
        self.moved = self.moved.max(now);
    }

    /// How long the head takes to reach a place.
    fn time_to(&self, place: u64) -> Duration {
        let missing = (place as f64 - self.head).max(0.0);
        Duration::try_from_secs_f64(missing / self.rate.max(1.0)).unwrap_or(Duration::MAX)
    }
}

/// What a writer must do before its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Go on.
    Go,
    /// Wait for this, at most this long, then call again.
    Wait(Duration, Cause),
    /// Wait until memory is free, then call again.
    Stop,
}

impl Default for Pacer {
    fn default() -> Self {
        Self::new(Arc::new(EventBus::new(false)))
    }
}

/// The cause for which writers are slowed or stopped in this mode; `None`: they are not.
fn cause(mode: u8) -> Option<&'static str> {
    match mode {
        PACED_BY_FLUSH => Some("flush_debt"),
        PACED_BY_COMPACTION => Some("compaction_debt"),
        STOPPED => Some("memory"),
        FULL => Some("disk_full"),
        _ => None,
    }
}

/// The rate, as a multiple of the drain, at `debt` between `knee` and `limit`; `None`: any, up to the
/// knee.
fn pace(debt: f64, knee: f64, limit: f64) -> Option<f64> {
    policy::pace((debt - knee) / (limit - knee))
}

fn blend(old: &AtomicU64, bytes: u64, took: Duration) {
    let seconds = took.as_secs_f64().max(1e-4);
    let measured = bytes as f64 / seconds;
    let blended = old.load(Ordering::Relaxed) as f64 * 0.7 + measured * 0.3;
    old.store(blended as u64, Ordering::Relaxed);
}

impl Pacer {
    /// A pacer that slows nobody yet, and reports when it does.
    pub fn new(events: Arc<EventBus>) -> Self {
        let epoch = Instant::now();
        Self {
            mode: AtomicU8::new(OPEN),
            compactions_late: AtomicBool::new(false),
            line: Mutex::default(),
            epoch,
            flushed_at: Mutex::new(epoch),
            // Until something is measured, this is the rate of a slow disk.
            flush_drain: AtomicU64::new(100 << 20),
            pressure: Mutex::default(),
            step_times: std::array::from_fn(|_| AtomicU64::new(STEP_TIME)),
            events,
        }
    }

    /// Measures how fast memtable bytes become free: `bytes` became free now, and had waited for
    /// their flush since `waited_since`. The time in which the worker did other work counts too:
    /// writers must not be faster than the worker is with all its work.
    pub fn flushed(&self, bytes: u64, waited_since: Instant) {
        let now = Instant::now();
        let before = std::mem::replace(&mut *self.flushed_at.lock(), now);
        blend(&self.flush_drain, bytes, now.saturating_duration_since(before.max(waited_since)));
    }

    /// Measures how fast a compaction took in bytes of deltas, or a push bytes of the runs of a tier;
    /// `tier` is 0 for compactions.
    pub fn compacted(&self, tier: usize, bytes: u64, took: Duration) {
        let Some(time) = self.step_times.get(tier).filter(|_| bytes > 0) else { return };
        // A few bytes take the time of a sync, which says nothing of many.
        let weight = 0.3 * (bytes as f64 / STEP_BYTES).min(1.0);
        let measured = took.as_secs_f64() * 1e12 / bytes as f64;
        let before = time.load(Ordering::Relaxed) as f64;
        time.store((before + (measured - before) * weight) as u64, Ordering::Relaxed);
    }

    /// Takes in how full the trees are; [`Self::update`] acts on it.
    pub fn press(&self, pressure: Pressure) {
        *self.pressure.lock() = pressure;
    }

    /// Whether no further run should lie over some key.
    pub fn runs_are_full(&self) -> bool {
        self.pressure.lock().full
    }

    /// The rate at which workers take in what is written, in bytes per second.
    fn compaction_drain(&self, pressure: Pressure) -> f64 {
        let steps = self.step_times.iter().take(pressure.tiers + 1);
        let time: u64 = steps.map(|time| time.load(Ordering::Relaxed)).sum();
        pressure.workers.max(1) as f64 * 1e12 / time.max(1) as f64
    }

    /// Updates the decision. Returns whether waiting writers may go on now.
    pub fn update(&self, debts: Debts) -> bool {
        self.update_at(debts, self.epoch.elapsed())
    }

    fn update_at(&self, debts: Debts, now: Duration) -> bool {
        let share = |bytes: u64, budget: u64| bytes as f64 / budget.max(1) as f64;
        let fill = share(debts.memtables, debts.budget).max(share(debts.log, debts.log_budget));
        let ratio = share(debts.deltas, debts.bases);
        let flush_drain = self.flush_drain.load(Ordering::Relaxed) as f64;
        let by_flush = pace(fill, FLUSH_KNEE, 1.0).map(|multiple| multiple * flush_drain);
        let by_bytes = pace(ratio, COMPACTION_KNEE, COMPACTION_LIMIT);
        let pressure = *self.pressure.lock();
        let multiple = by_bytes.into_iter().chain(pressure.allowed).reduce(f64::min);
        let by_compaction = multiple.map(|multiple| multiple * self.compaction_drain(pressure));
        let (mode, rate) = match (by_flush, by_compaction) {
            _ if fill >= 1.0 => (STOPPED, 0.0),
            _ if debts.tight => (FULL, 0.0),
            (None, None) => (OPEN, 0.0),
            (Some(flush), Some(merge)) if merge < flush => (PACED_BY_COMPACTION, merge),
            (Some(flush), _) => (PACED_BY_FLUSH, flush),
            (None, Some(merge)) => (PACED_BY_COMPACTION, merge),
        };
        self.compactions_late.store(multiple.is_some(), Ordering::Relaxed);
        let mut line = self.line.lock();
        line.advance(now);
        let rate_before = line.rate;
        line.rate = if mode == STOPPED { 0.0 } else { rate.max(RATE_MIN) };
        if mode == OPEN {
            line.head = line.taken as f64;
        }
        // The mode is set under the line's lock, so decisions and modes are in the same order.
        let before = self.mode.swap(mode, Ordering::AcqRel);
        if before != mode {
            let since = std::mem::replace(&mut line.since, now);
            self.tell((before, rate_before), (mode, line.rate), now.saturating_sub(since));
        }
        before != mode && (mode == OPEN || before == STOPPED)
    }

    /// How long ago the database was opened.
    pub fn uptime(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Reports a change of the mode; each mode comes with its rate.
    fn tell(&self, before: (u8, f64), now: (u8, f64), duration: Duration) {
        let rate = |(mode, rate): (u8, f64)| {
            [PACED_BY_FLUSH, PACED_BY_COMPACTION].contains(&mode).then_some(rate as u64)
        };
        if let Some(cause) = cause(before.0) {
            let rate = rate(before);
            self.events.emit(EventKind::WriteStallEnd { cause, rate, duration });
        }
        if let Some(cause) = cause(now.0) {
            self.events.emit(EventKind::WriteStallBegin { cause, rate: rate(now) });
        }
    }

    /// Whether writers may go on without a call to the pacer.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.mode.load(Ordering::Acquire) == OPEN
    }

    /// Whether writers are slowed and one was there lately.
    pub fn slows_a_writer(&self) -> bool {
        self.slows_a_writer_at(self.epoch.elapsed())
    }

    fn slows_a_writer_at(&self, now: Duration) -> bool {
        let asked = self.line.lock().asked;
        match self.mode.load(Ordering::Acquire) {
            OPEN | FULL => false,
            STOPPED => true,
            _ => now.saturating_sub(asked) < LATELY,
        }
    }

    /// Whether writers are slowed because so many compactions are due.
    pub fn compactions_are_late(&self) -> bool {
        self.compactions_late.load(Ordering::Relaxed)
    }

    /// What a writer of `bytes` must do; called only while not open. `place` is the writer's place
    /// in the line: its first call takes the place, and later calls keep it.
    pub fn admit(&self, bytes: u64, place: &mut Option<u64>) -> Admission {
        self.admit_at(bytes, place, self.epoch.elapsed())
    }

    fn admit_at(&self, bytes: u64, place: &mut Option<u64>, now: Duration) -> Admission {
        let mut line = self.line.lock();
        let cause = match self.mode.load(Ordering::Acquire) {
            OPEN | FULL => return Admission::Go,
            STOPPED => return Admission::Stop,
            PACED_BY_COMPACTION => Cause::CompactionDebt,
            _ => Cause::FlushDebt,
        };
        line.advance(now);
        line.asked = now;
        let place = *place.get_or_insert_with(|| {
            line.taken += bytes;
            line.taken - bytes
        });
        let wait = line.time_to(place);
        if wait < WAIT_MIN { Admission::Go } else { Admission::Wait(wait.min(WAIT_MAX), cause) }
    }

    /// What the pacer does with writers now, and the rate in force in bytes per second; 0: there is
    /// none.
    pub fn pace(&self) -> (PaceMode, u64) {
        let line = self.line.lock();
        let mode = self.mode.load(Ordering::Acquire);
        let rate = line.rate as u64;
        match mode {
            OPEN => (PaceMode::Open, 0),
            PACED_BY_FLUSH => (PaceMode::FlushDebt, rate),
            PACED_BY_COMPACTION => (PaceMode::CompactionDebt, rate),
            STOPPED => (PaceMode::Stopped, 0),
            _ => (PaceMode::DiskFull, 0),
        }
    }
}

#[cfg(test)]
mod tests;
