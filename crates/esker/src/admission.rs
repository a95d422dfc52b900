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
//! Writers keep to the rate by a line (`line.rs`), in which each takes as many places as it has bytes.
//! The head of the line advances at the present rate. A writer goes when the head has reached its
//! first byte, so the writers behind it also wait for its bytes. A woken writer calls again and keeps
//! its place, also over a stop. A write that does not wait takes places only if it may go at once.
//! While no writer is paced, all this is one load per write.
//!
//! What follows from the debts is a pure function (`controller.rs`), which a simulator drives
//! (`cargo xtask simulate-pacing`, docs/pacing.md).

mod controller;
pub mod governor;
mod line;
pub mod relief;
mod share;

pub use controller::{Course, Debts, Drains, PaceDecision, PaceMode, Pressure, decide};
pub use share::{Share, take_paused};

use crate::base::Seq;
use crate::compaction::policy::TIERS_MAX;
use crate::error::Error;
use crate::events::{EventBus, EventKind};
use crate::manifest::Totals;
use crate::options::Durability;
use crate::options::settings::{log_budget, write_budget};
use crate::state::State;
use crate::waits::Cause;
use line::Line;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Shorter waits are not worth a system call; the next writers wait for them.
const WAIT_MIN: Duration = Duration::from_micros(300);
/// Ratios to bases of fewer bytes than this many sets of memtables mean little.
const BASES_MIN_SETS: u64 = 8;
/// A writer that is near the head calls again after this time, since the rate may have risen.
const NAP_MIN: Duration = Duration::from_millis(20);
/// A writer calls again after this time at the latest.
const NAP_MAX: Duration = Duration::from_secs(1);
/// A writer far from the head calls again after this part of the time until its turn: it would be late
/// only if the rate rose by more than this factor meanwhile. So many writers in a long line do not all
/// wake all the time.
const NAP_PART: u32 = 4;
/// Writers that asked before this time may have ended.
const LATELY: Duration = Duration::from_millis(100);
/// The time of a step for a byte, in picoseconds, until one is measured: 50 MiB/s.
const STEP_TIME: u64 = 19_000;
/// The rate at which flushes free memory until it is measured, in bytes per second: a slow disk's.
const FLUSH_DRAIN: u64 = 100 << 20;
/// A writer that would wait for space on a full device had better wait this long.
const SPACE_AFTER: Duration = Duration::from_millis(100);

/// What a writer is told that does not wait.
pub fn would_block(reason: Cause, retry_after: Option<Duration>) -> Error {
    Error::WouldBlock { reason, retry_after: retry_after.unwrap_or(SPACE_AFTER) }
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
            flush_takes: state.flush_takes(),
            deltas: totals.delta_bytes,
            bases: totals.base_bytes.max(BASES_MIN_SETS * set_bytes),
        }
    }
}

/// How a write is made.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Its durability class.
    pub durability: Durability,
    /// Whether it waits for its turn, for memory and for space.
    pub waits: bool,
}

impl From<Durability> for Terms {
    fn from(durability: Durability) -> Self {
        Self { durability, waits: true }
    }
}

impl Terms {
    /// Those of a write that does not wait.
    pub fn impatient(durability: Durability) -> Self {
        Self { durability, waits: false }
    }
}

/// Decides how fast writers may go.
#[derive(Debug)]
pub struct Pacer {
    mode: AtomicU8,
    /// How many callers have writers stop whatever the debts are.
    held: AtomicUsize,
    /// Whether deltas exceed the knee, or runs come near their bound.
    compactions_late: AtomicBool,
    line: Mutex<Line>,
    epoch: Instant,
    /// When the last flush ended, since the epoch.
    flushed_at: Mutex<Duration>,
    flush_drain: AtomicU64,
    pressure: Mutex<Pressure>,
    /// Held while somebody looks how full trees are, so that what was seen later counts.
    pressing: Mutex<()>,
    /// How long a compaction takes for a byte of deltas, and a push for a byte of runs, by tier, in
    /// picoseconds.
    step_times: [AtomicU64; TIERS_MAX + 1],
    /// How many threads of background work run at the same time.
    share: Share,
    /// Is told when writers begin and cease to be slowed.
    events: Arc<EventBus>,
}

/// What a writer must do before its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Go on.
    Go,
    /// Wait for this, at most this long, then call again.
    Wait(Duration, Cause),
    /// Wait until memory is free, then call again; that takes about this long.
    Stop(Duration),
}

/// A writer on its way through admission. When it is dropped before it may go, its place is free.
#[derive(Debug)]
pub struct Turn<'a> {
    pacer: &'a Pacer,
    bytes: u64,
    place: Option<u64>,
    waits: bool,
}

impl Turn<'_> {
    /// What the writer must do now. A writer that does not wait is told how long it would take, and
    /// has no place afterwards.
    pub fn ask(&mut self) -> Admission {
        let now = self.pacer.epoch.elapsed();
        if self.waits {
            self.pacer.admit_at(self.bytes, &mut self.place, now)
        } else {
            self.pacer.try_admit_at(self.bytes, now)
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.pacer.leave(place, self.bytes);
        }
    }
}

impl Default for Pacer {
    fn default() -> Self {
        Self::new(Arc::new(EventBus::new(false)), Share::new(usize::MAX))
    }
}

impl Pacer {
    /// A pacer that slows nobody yet, and reports when it does.
    pub fn new(events: Arc<EventBus>, share: Share) -> Self {
        let epoch = Instant::now();
        Self {
            mode: AtomicU8::new(PaceMode::Open as u8),
            held: AtomicUsize::new(0),
            compactions_late: AtomicBool::new(false),
            line: Mutex::default(),
            epoch,
            flushed_at: Mutex::default(),
            flush_drain: AtomicU64::new(FLUSH_DRAIN),
            pressure: Mutex::default(),
            pressing: Mutex::default(),
            step_times: std::array::from_fn(|_| AtomicU64::new(STEP_TIME)),
            share,
            events,
        }
    }

    /// Measures how fast memtable bytes become free: `bytes` became free now, and had waited for
    /// their flush since `waited_since`. The time in which the worker did other work counts too:
    /// writers must not be faster than the worker is with all its work.
    pub fn flushed(&self, bytes: u64, waited_since: Instant) {
        let since = waited_since.saturating_duration_since(self.epoch);
        self.flushed_at(bytes, since, self.epoch.elapsed());
    }

    /// As [`Self::flushed`], at a time since the epoch.
    pub fn flushed_at(&self, bytes: u64, waited_since: Duration, now: Duration) {
        let before = std::mem::replace(&mut *self.flushed_at.lock(), now);
        let took = now.saturating_sub(before.max(waited_since));
        let drain = self.flush_drain.load(Ordering::Relaxed) as f64;
        let drain = controller::flush_drain(drain, bytes, took);
        self.flush_drain.store(drain as u64, Ordering::Relaxed);
    }

    /// Measures how fast a compaction took in bytes of deltas, or a push bytes of the runs of a tier;
    /// `tier` is 0 for compactions.
    pub fn compacted(&self, tier: usize, bytes: u64, took: Duration) {
        let Some(time) = self.step_times.get(tier).filter(|_| bytes > 0) else { return };
        let blended = controller::step_time(time.load(Ordering::Relaxed), bytes, took);
        time.store(blended, Ordering::Relaxed);
    }

    /// Takes in how full the trees are; [`Self::update`] acts on it.
    pub fn press(&self, pressure: Pressure) {
        *self.pressure.lock() = pressure;
    }

    /// As [`Self::press`], with what `look` sees: of several threads that look, the last counts.
    pub fn press_with(&self, look: impl FnOnce() -> Pressure) {
        let _one_at_a_time = self.pressing.lock();
        self.press(look());
    }

    /// Whether no further run should lie over some key.
    pub fn runs_are_full(&self) -> bool {
        self.pressure.lock().full
    }

    /// The measured drains.
    pub fn drains(&self) -> Drains {
        self.drains_under(&self.pressure.lock())
    }

    fn drains_under(&self, pressure: &Pressure) -> Drains {
        let steps = self.step_times.iter().take(pressure.tiers + 1);
        let times = steps.map(|time| time.load(Ordering::Relaxed));
        Drains {
            flush: self.flush_drain.load(Ordering::Relaxed) as f64,
            compaction: controller::compaction_drain(times, pressure.workers),
        }
    }

    /// Updates the decision. Returns whether waiting writers may go on now.
    pub fn update(&self, debts: Debts) -> bool {
        self.update_at(debts, self.epoch.elapsed())
    }

    /// As [`Self::update`], at a time since the epoch.
    pub fn update_at(&self, mut debts: Debts, now: Duration) -> bool {
        let since_flush = now.saturating_sub(*self.flushed_at.lock());
        debts.flush_takes = debts.flush_takes.map(|took| took.min(since_flush));
        let pressure = *self.pressure.lock();
        let drains = self.drains_under(&pressure);
        let mut line = self.line.lock();
        line.advance(now);
        let elapsed = now.saturating_sub(std::mem::replace(&mut line.decided, now));
        let waiting = line.is_waited_in();
        let decision = decide(&debts, &pressure, drains, &mut line.course, (elapsed, waiting));
        let held = self.held.load(Ordering::Acquire) > 0;
        let mode = if held { PaceMode::Stopped } else { decision.mode };
        self.compactions_late.store(decision.compactions_late, Ordering::Relaxed);
        let rate_before = line.rate;
        line.rate = decision.rate;
        line.memory_after = decision.memory_after;
        self.share.follow(mode == PaceMode::Open && !decision.compactions_late);
        if mode == PaceMode::Open {
            line.release();
        }
        // The mode is set under the line's lock, so decisions and modes are in the same order.
        let before = self.mode.swap(mode as u8, Ordering::AcqRel);
        let before = PaceMode::numbered(before.into()).unwrap_or_default();
        if before != mode {
            let since = std::mem::replace(&mut line.since, now);
            self.tell((before, rate_before), (mode, line.rate), now.saturating_sub(since));
        }
        let goes = [PaceMode::Open, PaceMode::DiskFull].contains(&mode);
        before != mode && (goes || before == PaceMode::Stopped)
    }

    /// Begins or ends to stop writers whatever the debts are; [`Self::update`] acts on it.
    pub fn hold(&self, begins: bool) {
        match begins {
            true => self.held.fetch_add(1, Ordering::AcqRel),
            false => self.held.fetch_sub(1, Ordering::AcqRel),
        };
    }

    /// How many threads of background work run.
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// How long ago the database was opened.
    pub fn uptime(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Reports a change of the mode; each mode comes with its rate.
    fn tell(&self, before: (PaceMode, f64), now: (PaceMode, f64), duration: Duration) {
        let rate = |(mode, rate): (PaceMode, f64)| {
            [PaceMode::FlushDebt, PaceMode::CompactionDebt].contains(&mode).then_some(rate as u64)
        };
        let cause = |mode: PaceMode| mode.cause().map(Cause::as_str);
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
        self.mode.load(Ordering::Acquire) == PaceMode::Open as u8
    }

    fn mode(&self) -> PaceMode {
        PaceMode::numbered(self.mode.load(Ordering::Acquire).into()).unwrap_or_default()
    }

    /// Whether writers are slowed and one was there lately.
    pub fn slows_a_writer(&self) -> bool {
        self.slows_a_writer_at(self.epoch.elapsed())
    }

    fn slows_a_writer_at(&self, now: Duration) -> bool {
        let asked = self.line.lock().asked;
        match self.mode() {
            PaceMode::Open | PaceMode::DiskFull => false,
            PaceMode::Stopped => true,
            _ => now.saturating_sub(asked) < LATELY,
        }
    }

    /// Whether writers are slowed because so many compactions are due.
    pub fn compactions_are_late(&self) -> bool {
        self.compactions_late.load(Ordering::Relaxed)
    }

    /// The turn of a writer of `bytes`, asked for only while not open.
    pub fn turn(&self, bytes: u64, waits: bool) -> Turn<'_> {
        Turn { pacer: self, bytes, place: None, waits }
    }

    /// What a writer of `bytes` must do. `place` is the writer's place in the line: its first call
    /// takes the place, later calls keep it, and it is used up when the writer may go. A writer that
    /// gives up has to [leave](Self::leave).
    pub fn admit_at(&self, bytes: u64, place: &mut Option<u64>, now: Duration) -> Admission {
        let Some((mut line, cause)) = self.slowed_line(now) else {
            *place = None;
            return Admission::Go;
        };
        // Also who comes while all are stopped: otherwise a writer that is slow to wake would find
        // others before it after each stop.
        let first = *place.get_or_insert_with(|| line.take(bytes));
        if cause == Cause::Memory {
            return Admission::Stop(line.memory_after);
        }
        let wait = line.time_to(first);
        if wait < WAIT_MIN {
            *place = None;
            return Admission::Go;
        }
        let nap = (wait / NAP_PART).clamp(NAP_MIN, NAP_MAX);
        Admission::Wait(wait.min(nap), cause)
    }

    /// What a writer of `bytes` must do that does not wait: go on, or come back after this time. It
    /// goes when nobody waits before it.
    pub fn try_admit_at(&self, bytes: u64, now: Duration) -> Admission {
        let Some((mut line, cause)) = self.slowed_line(now) else { return Admission::Go };
        if cause == Cause::Memory {
            return Admission::Stop(line.memory_after);
        }
        let wait = line.time_to(line.taken);
        // Seeded: a write that does not wait overtakes those that do.
        if wait < WAIT_MIN || bug!("admission_impatient_writers_overtake") {
            line.take(bytes);
            return Admission::Go;
        }
        Admission::Wait(wait, cause)
    }

    /// The line as a writer finds it that asks now, and why writers wait; `None`: they do not.
    fn slowed_line(&self, now: Duration) -> Option<(MutexGuard<'_, Line>, Cause)> {
        let mut line = self.line.lock();
        let cause = self.mode().cause().filter(|cause| *cause != Cause::DiskFull)?;
        line.advance(now);
        line.asked = now;
        Some((line, cause))
    }

    /// Frees the place of a writer that gave up: nobody waits for its bytes.
    pub fn leave(&self, place: u64, bytes: u64) {
        // Seeded: others wait for the bytes of writes that were given up.
        bug!("admission_places_left_are_waited_for", return);
        self.line.lock().leave(place, bytes);
    }

    /// What the pacer does with writers now, and the rate in force in bytes per second; 0: there is
    /// none.
    pub fn pace(&self) -> (PaceMode, u64) {
        let line = self.line.lock();
        match self.mode() {
            mode @ (PaceMode::FlushDebt | PaceMode::CompactionDebt) => (mode, line.rate as u64),
            mode => (mode, 0),
        }
    }
}

#[cfg(test)]
mod tests;
