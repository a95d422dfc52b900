//! The slowest operations of the last hour.
//!
//! 1. Each kind of operation has two windows of half an hour: the present one and the one before.
//!    Each holds the slowest operations that ended in it, [`KEPT`] at most, so the memory is
//!    bounded, and what is shown is at least half an hour and at most an hour old.
//! 2. A thread takes the lock only if its operation was slower than the fastest one kept in a full
//!    window, or the window is over.
//! 3. No key and no value is kept.
//! 4. An operation that took at least [`crate::Options::slow_operation`] is also an event, kept or
//!    not.

use super::explanation::Explanation;
use super::phases::take_waits;
use super::tally::Tally;
use crate::events::{EventBus, EventKind};
use crate::sync::nanos_of;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Operations kept per kind and window.
const KEPT: usize = 16;
const WINDOW: Duration = Duration::from_secs(30 * 60);

/// The names of the kinds, in the order of [`Explanation::operation`].
pub(super) const KINDS: [&str; 5] = ["get", "scan", "put", "sync", "lock"];

/// One of the slowest operations ([`crate::Stats::slowest`]).
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.default_keyspace().insert_with("apple", "red", esker::Durability::Disk)?;
/// assert_eq!(db.stats().slowest.len(), 1);
/// for slow in db.stats().slowest {
///     println!("{:?}: {}", slow.when, slow.explanation);
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowOperation {
    /// When it ended.
    pub when: SystemTime,
    /// What it did, and how long it took. Its steps are there if it read a file or synced the log.
    pub explanation: Explanation,
}

#[derive(Debug, Default)]
struct Windows {
    /// By kind: the present window and the one before.
    kept: [[Vec<SlowOperation>; 2]; KINDS.len()],
}

/// Keeps the slowest operations.
#[derive(Debug)]
pub struct Slowest {
    origin: Instant,
    /// When the present window ends, in nanoseconds since `origin`.
    ends: AtomicU64,
    /// By kind: an operation that took no longer, in nanoseconds, is not kept.
    floors: [AtomicU64; KINDS.len()],
    windows: Mutex<Windows>,
    window: Duration,
    bus: Arc<EventBus>,
    /// Operations that took this long become events.
    limit: Duration,
}

impl Slowest {
    /// Nothing was slow yet. Operations that took `limit` go to `bus`.
    pub fn new(bus: Arc<EventBus>, limit: Duration) -> Self {
        Self::with_window(WINDOW, bus, limit)
    }

    fn with_window(window: Duration, bus: Arc<EventBus>, limit: Duration) -> Self {
        Self {
            bus,
            limit,
            origin: Instant::now(),
            ends: AtomicU64::new(nanos_of(window)),
            floors: Default::default(),
            windows: Mutex::default(),
            window,
        }
    }

    /// Offers an operation that took `took`; `explain` runs only if it is kept.
    pub fn offer(&self, kind: &str, took: Duration, explain: impl FnOnce() -> Explanation) {
        self.offer_at(self.origin.elapsed(), kind, took, explain);
    }

    /// Offers an operation that is explained already.
    pub fn offer_explained(&self, explanation: Explanation) {
        self.offer(explanation.operation, explanation.time, || explanation);
    }

    /// Offers an operation that was not timed, if it has waited: it took at least as long as its
    /// waits.
    #[cold]
    pub fn offer_waits(&self, kind: &'static str, keyspace: &str) {
        let waits = take_waits();
        if waits.is_empty() {
            return;
        }
        let time = waits.iter().map(|wait| wait.time).sum();
        let found = true;
        let of = |time| Explanation::of(kind, keyspace, time);
        self.offer(kind, time, || Explanation { found, waits, ..of(time) });
    }

    /// Offers an operation that began when the thread's tally was `before`. An operation that was
    /// not timed took at least as long as its reads.
    #[cold]
    pub fn offer_reads(
        &self,
        kind: &'static str,
        keyspace: &str,
        took: Option<Duration>,
        before: Tally,
    ) {
        let read = Tally::now().since(before);
        let time = took.unwrap_or(Duration::from_nanos(read.nanos));
        let (blocks, bytes_read) = (read.blocks, read.bytes);
        let of = |time| Explanation::of(kind, keyspace, time);
        self.offer(kind, time, || Explanation { found: true, blocks, bytes_read, ..of(time) });
    }

    fn offer_at(
        &self,
        now: Duration,
        kind: &str,
        took: Duration,
        explain: impl FnOnce() -> Explanation,
    ) {
        let Some(kind) = KINDS.iter().position(|known| *known == kind) else { return };
        let (now, nanos) = (nanos_of(now), nanos_of(took));
        let is_event = took >= self.limit && self.bus.is_listened();
        if !is_event
            && nanos <= self.floors[kind].load(Ordering::Relaxed)
            && now < self.ends.load(Ordering::Relaxed)
        {
            return;
        }
        let operation = SlowOperation { when: SystemTime::now(), explanation: explain() };
        if is_event {
            let waits = operation.explanation.waits.iter();
            let waits = waits.map(|wait| (wait.cause.as_str(), wait.time)).collect();
            let operation = operation.explanation.operation;
            self.bus.emit(EventKind::SlowOperation { operation, duration: took, waits });
        }
        let mut windows = self.windows.lock();
        self.turn(&mut windows, now);
        let kept = &mut windows.kept[kind][0];
        if kept.len() == KEPT {
            let fastest = (0..KEPT).min_by_key(|i| kept[*i].explanation.time);
            match fastest {
                Some(i) if kept[i].explanation.time < operation.explanation.time => {
                    kept[i] = operation;
                }
                _ => return,
            }
        } else {
            kept.push(operation);
        }
        if kept.len() == KEPT {
            let floor = kept.iter().map(|kept| kept.explanation.time).min();
            self.floors[kind].store(floor.map_or(0, nanos_of), Ordering::Relaxed);
        }
    }

    /// Begins a new window if the present one is over.
    fn turn(&self, windows: &mut Windows, now: u64) {
        let (ends, window) = (self.ends.load(Ordering::Relaxed), nanos_of(self.window).max(1));
        if now < ends {
            return;
        }
        let both = now - ends >= window;
        for (kept, floor) in windows.kept.iter_mut().zip(&self.floors) {
            let last = std::mem::take(&mut kept[0]);
            kept[1] = if both { Vec::new() } else { last };
            floor.store(0, Ordering::Relaxed);
        }
        self.ends.store(now + window - (now - ends) % window, Ordering::Relaxed);
    }

    /// The slowest operations, by kind, from the slowest to the fastest: at most 16 of each.
    pub fn list(&self) -> Vec<SlowOperation> {
        self.list_at(self.origin.elapsed())
    }

    fn list_at(&self, now: Duration) -> Vec<SlowOperation> {
        let mut windows = self.windows.lock();
        self.turn(&mut windows, nanos_of(now));
        let slowest = |kept: &[Vec<SlowOperation>; 2]| {
            let mut both: Vec<_> = kept.iter().flatten().cloned().collect();
            both.sort_by_key(|slow| std::cmp::Reverse(slow.explanation.time));
            both.truncate(KEPT);
            both
        };
        windows.kept.iter().flat_map(slowest).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
