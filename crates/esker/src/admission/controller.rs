//! The controller: what is to happen to writers, as pure functions of debts, rates and budgets.
//!
//! The engine and the simulator (`cargo xtask simulate-pacing`) call the same functions. Nothing here
//! looks at a clock, and what has to be remembered from one decision to the next is an argument.

use crate::compaction::policy;
use crate::compaction::pressure::Fullness;
use crate::error::Cause;
use crate::options::settings::SEALED_MAX;
use std::time::Duration;

/// Fill of the write buffers above which writers are paced.
const FLUSH_KNEE: f64 = 0.5;
/// Deltas over bases above which writers are paced.
const COMPACTION_KNEE: f64 = 1.0;
/// Deltas over bases at which the rate is lowest.
const COMPACTION_LIMIT: f64 = 2.0;
/// The rate when memory is all but full, as a multiple of that at which it becomes free.
const RATE_AT_STOP: f64 = 0.05;
/// What the multiple goes towards while compactions allow any rate.
const RATE_OF_OPEN: f64 = 3.0;
/// Rates are never below this, so that a wrong measurement cannot stop writers.
const RATE_MIN: f64 = (1 << 20) as f64;
/// A step with so many bytes counts in full.
const STEP_BYTES: f64 = (8 << 20) as f64;

/// The input of the pacer's decisions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Debts {
    /// Bytes in all memtables.
    pub memtables: u64,
    /// Their budget.
    pub budget: u64,
    /// How long the oldest full set of memtables has waited until its flush ended; `None`: none waits.
    /// The pacer counts from the end of the flush before it.
    pub flush_takes: Option<Duration>,
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
    /// Bytes of deltas that stay because of damage: no work takes them away, so nobody waits for
    /// it (S16).
    pub left: u64,
}

impl Pressure {
    /// What trees say that are so full.
    pub fn of(trees: Fullness, workers: usize) -> Self {
        let Fullness { fill, tiers, left } = trees;
        Self { allowed: policy::pace(fill), full: fill >= 1.0, tiers, workers, left }
    }
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

    /// The cause for which writers wait in this mode; `None`: they do not.
    pub(crate) fn cause(self) -> Option<Cause> {
        match self {
            Self::Open => None,
            Self::FlushDebt => Some(Cause::FlushDebt),
            Self::CompactionDebt => Some(Cause::CompactionDebt),
            Self::Stopped => Some(Cause::Memory),
            Self::DiskFull => Some(Cause::DiskFull),
        }
    }

    /// The mode of this number, as `mode as u64` gives it.
    pub(crate) fn numbered(number: u64) -> Option<Self> {
        let all =
            [Self::Open, Self::FlushDebt, Self::CompactionDebt, Self::Stopped, Self::DiskFull];
        all.get(usize::try_from(number).ok()?).copied()
    }
}

/// The rates at which background work takes in what is written, in bytes per second.
#[derive(Debug, Clone, Copy)]
pub struct Drains {
    /// How fast flushes free memory.
    pub flush: f64,
    /// How fast the workers take runs down through all tiers.
    pub compaction: f64,
}

/// What is to happen to writers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceDecision {
    /// What is done with them.
    pub mode: PaceMode,
    /// The rate that they keep to, in bytes per second; 0: they are stopped.
    pub rate: f64,
    /// Whether compactions alone would have them slowed.
    pub compactions_late: bool,
    /// How long it takes until a flush frees memory: an estimate.
    pub memory_after: Duration,
}

/// What the controller remembers from one decision to the next.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// The rate that compactions allow, as a multiple of their drain.
    multiple: f64,
}

impl Default for Course {
    fn default() -> Self {
        Self { multiple: policy::RATE_AT_KNEE }
    }
}

impl Course {
    /// Goes towards what is allowed now; `time` is how long most of the way takes. Returns the
    /// multiple for writers; `None`: any. Where nobody waits nobody has to be held back any longer.
    ///
    /// The runs over a key come and go by whole flushes and pushes. A rate that followed them at once
    /// would be a quarter of the drain now and twice the drain a moment later.
    fn follow(
        &mut self,
        allowed: Option<f64>,
        (elapsed, waiting): (Duration, bool),
        time: f64,
    ) -> Option<f64> {
        let target = allowed.unwrap_or(RATE_OF_OPEN);
        let part = -(-elapsed.as_secs_f64() / time.max(1e-9)).exp_m1();
        // Seeded: writers are slowed and let go by jerks.
        let part = if bug!("admission_rate_jumps") { 1.0 } else { part };
        self.multiple += (target - self.multiple) * part;
        self.multiple = self.multiple.min(policy::RATE_AT_KNEE);
        let back = !waiting || self.multiple >= policy::RATE_AT_KNEE;
        Some(self.multiple).filter(|_| allowed.is_some() || !back)
    }
}

/// How fast memory becomes free now: what was measured when flushes ended, or less if a flush that is
/// under way shows it, or flushes wait for compactions. `set` is what a flush frees.
fn freeing(debts: &Debts, pressure: &Pressure, drains: Drains, set: f64) -> f64 {
    let under_way = debts.flush_takes.map_or(f64::INFINITY, |took| set / took.as_secs_f64());
    // Seeded: a device that has become slow is noticed only when a flush has ended.
    let under_way =
        if bug!("admission_slow_flush_not_noticed") { f64::INFINITY } else { under_way };
    let flush = drains.flush.min(under_way);
    if pressure.full { flush.min(drains.compaction) } else { flush }
}

/// The rate as a multiple of that at which memory becomes free. It falls nearly to nothing, so that
/// memory is not full before the flush ends that frees some.
fn pace_by_memory(fill: f64) -> Option<f64> {
    let part = (fill - FLUSH_KNEE) / (1.0 - FLUSH_KNEE);
    (part > 0.0).then(|| (policy::RATE_AT_KNEE * (1.0 - part)).max(RATE_AT_STOP))
}

/// Decides what happens to writers, `elapsed` after the decision before. `course` is what that one
/// left, and `waiting` whether writers wait for their turn.
pub fn decide(
    debts: &Debts,
    pressure: &Pressure,
    drains: Drains,
    course: &mut Course,
    (elapsed, waiting): (Duration, bool),
) -> PaceDecision {
    let share = |bytes: u64, budget: u64| bytes as f64 / budget.max(1) as f64;
    let fill = share(debts.memtables, debts.budget).max(share(debts.log, debts.log_budget));
    // Seeded: deltas over a damaged base slow writers down for ever.
    let left = if bug!("admission_damage_paces_writers") { 0 } else { pressure.left };
    let ratio = share(debts.deltas.saturating_sub(left), debts.bases);
    let set = debts.budget as f64 / (SEALED_MAX + 1) as f64;
    let frees = freeing(debts, pressure, drains, set);
    let by_flush = pace_by_memory(fill).map(|multiple| multiple * frees);
    let by_bytes = policy::pace((ratio - COMPACTION_KNEE) / (COMPACTION_LIMIT - COMPACTION_KNEE));
    let allowed = by_bytes.into_iter().chain(pressure.allowed).reduce(f64::min);
    // In the time in which the workers take in a flush.
    let time = set / drains.compaction.max(RATE_MIN);
    let multiple = course.follow(allowed, (elapsed, waiting), time);
    let by_compaction = multiple.map(|multiple| multiple * drains.compaction);
    let (mode, rate) = match (by_flush, by_compaction) {
        _ if fill >= 1.0 => (PaceMode::Stopped, 0.0),
        _ if debts.tight => (PaceMode::DiskFull, 0.0),
        (None, None) => (PaceMode::Open, 0.0),
        (Some(flush), Some(merge)) if merge < flush => (PaceMode::CompactionDebt, merge),
        (Some(flush), _) => (PaceMode::FlushDebt, flush),
        (None, Some(merge)) => (PaceMode::CompactionDebt, merge),
    };
    let rate = if mode == PaceMode::Stopped { 0.0 } else { rate.max(RATE_MIN) };
    let memory_after = Duration::try_from_secs_f64(set / frees.max(RATE_MIN)).unwrap_or_default();
    PaceDecision { mode, rate, compactions_late: allowed.is_some(), memory_after }
}

/// The drain of flushes after one that freed `bytes` in `took`.
pub fn flush_drain(before: f64, bytes: u64, took: Duration) -> f64 {
    let measured = bytes as f64 / took.as_secs_f64().max(1e-4);
    before * 0.7 + measured * 0.3
}

/// The time of a step for a byte, in picoseconds, after one that took in `bytes` in `took`.
pub fn step_time(before: u64, bytes: u64, took: Duration) -> u64 {
    // A few bytes take the time of a sync, which says nothing of many.
    let weight = 0.3 * (bytes as f64 / STEP_BYTES).min(1.0);
    let measured = took.as_secs_f64() * 1e12 / bytes.max(1) as f64;
    let before = before as f64;
    (before + (measured - before) * weight) as u64
}

/// The rate at which workers take in what is written, in bytes per second. A byte goes through all
/// steps, so their times add up.
pub fn compaction_drain(step_times: impl Iterator<Item = u64>, workers: usize) -> f64 {
    let time: u64 = step_times.sum();
    workers.max(1) as f64 * 1e12 / time.max(1) as f64
}
