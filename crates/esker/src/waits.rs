//! Waiting, by cause: how often calls waited, how long, and a histogram.
//!
//! A call that is about to wait calls [`Waits::begin`] with the cause; when it drops the guard, the
//! wait is recorded. All waits are cold: a call that does not wait never comes here. So the numbers
//! are shared by all threads.
//!
//! Each end of a wait is also added to a tally of the calling thread ([`take_tally`]). A call that
//! was slow reads there what it waited for. The thread's notes also hold when a timed put began
//! ([`note_start`]): so a put that neither waited nor is timed looks at one byte when it ends.
//!
//! A wait for log space, for a sync or for a lock that took at least
//! [`crate::Options::slow_operation`] is an event of its own. Waits for the other causes are part of
//! stalls, whose beginning and end are events (`admission.rs`). Shorter waits are no events, because
//! they come with every write of class `Disk` and would fill the file of events.

pub use crate::error::Cause;
use crate::events::{EventBus, EventKind};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many causes there are.
pub const CAUSES: usize = Cause::ALL.len();

/// How many buckets a histogram of waits has.
pub const BUCKETS: usize = BUCKETS_UPTO.len();

/// The upper bounds of the buckets, in nanoseconds: about half a power of ten apart, from 10 µs to
/// 100 s; the last one has no bound.
pub const BUCKETS_UPTO: [u64; 16] = [
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
    100_000_000_000,
    u64::MAX,
];

/// The waits of one cause that have ended.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?;
/// db.sync()?;
/// let sync = db.stats().waits.sync;
/// assert_eq!((sync.count, sync.buckets.iter().sum::<u64>()), (1, 1));
/// for (upto, count) in esker::Waited::UPTO.iter().zip(sync.buckets) {
///     println!("at most {upto:?}: {count}");
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waited {
    /// How many ended.
    pub count: u64,
    /// How long they took together.
    pub total: Duration,
    /// How many were in each bucket: as long as its bound, and longer than the one before.
    pub buckets: [u64; BUCKETS],
}

impl Waited {
    /// The longest wait of each bucket: about half a power of ten apart, from 10 µs to 100 s; the
    /// last one has no bound.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::Waited::UPTO[4], std::time::Duration::from_millis(1));
    /// ```
    pub const UPTO: [Duration; BUCKETS] = {
        let mut bounds = [Duration::MAX; BUCKETS];
        let mut at = 0;
        while at + 1 < BUCKETS {
            bounds[at] = Duration::from_nanos(BUCKETS_UPTO[at]);
            at += 1;
        }
        bounds
    };
}

/// What the calls of a thread waited for, in nanoseconds, by the number of the cause.
pub type Tally = [u64; CAUSES];

/// What a call of the thread has to tell when it ends.
#[derive(Debug, Clone, Copy, Default)]
struct Notes {
    waited: Tally,
    /// When the call began, in nanoseconds since an origin that the caller knows; 0: not timed.
    started: u64,
}

thread_local! {
    /// Whether there are notes: one byte for calls that have none. What the notes hold without it
    /// is forgotten.
    static NOTED: Cell<bool> = const { Cell::new(false) };
    static NOTES: Cell<Notes> = const { Cell::new(Notes { waited: [0; CAUSES], started: 0 }) };
}

fn note(change: impl FnOnce(&mut Notes)) {
    let noted = NOTED.try_with(|noted| noted.replace(true)).unwrap_or(false);
    let _ = NOTES.try_with(|cell| {
        let mut notes = if noted { cell.get() } else { Notes::default() };
        change(&mut notes);
        cell.set(notes);
    });
}

/// What the calling thread waited for since the last call of this function. It leaves no notes.
pub fn take_tally() -> Tally {
    let noted = NOTED.try_with(|noted| noted.replace(false)).unwrap_or(false);
    let notes = NOTES.try_with(Cell::take).unwrap_or_default();
    if noted { notes.waited } else { Tally::default() }
}

/// Notes that the calling thread's call is timed and began then. `started` is not 0.
pub fn note_start(started: u64) {
    note(|notes| notes.started = started);
}

/// When the calling thread's call began, if it is timed. It is forgotten; waits stay.
pub fn take_start() -> Option<u64> {
    if !has_notes() {
        return None;
    }
    let mut started = 0;
    note(|notes| started = std::mem::take(&mut notes.started));
    (started != 0).then_some(started)
}

/// Forgets the notes of the calling thread: what [`take_tally`] does, in one instruction.
#[inline]
pub fn forget_notes() {
    NOTED.with(|noted| noted.set(false));
}

/// Whether the calling thread waited, or began to time a call, since the last call of
/// [`take_tally`] or [`forget_notes`].
#[inline]
pub fn has_notes() -> bool {
    NOTED.with(Cell::get)
}

#[derive(Debug, Default)]
struct Kept {
    nanos: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

/// All waits of a database since it was opened.
#[derive(Debug, Default)]
pub struct Waits {
    kept: [Kept; CAUSES],
    /// Is told about waits that took at least this long; `None`: nobody is.
    events: Option<(Arc<EventBus>, Duration)>,
}

/// A wait under way; dropping it records it.
#[derive(Debug)]
pub struct Wait<'a> {
    waits: &'a Waits,
    cause: Cause,
    begun: Instant,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.waits.record(self.cause, self.begun.elapsed());
    }
}

impl Waits {
    /// No waits yet. `events` is told about those that take at least `limit`.
    pub fn new(events: Arc<EventBus>, limit: Duration) -> Self {
        Self { events: Some((events, limit)), ..Self::default() }
    }

    /// Begins a wait, which ends when the guard is dropped.
    pub fn begin(&self, cause: Cause) -> Wait<'_> {
        Wait { waits: self, cause, begun: Instant::now() }
    }

    /// Records a wait that has ended on the calling thread.
    pub fn record(&self, cause: Cause, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let kept = &self.kept[cause as usize];
        kept.nanos.fetch_add(nanos, Ordering::Relaxed);
        let bucket = BUCKETS_UPTO.partition_point(|upto| *upto < nanos);
        kept.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        note(|notes| {
            let sum = &mut notes.waited[cause as usize];
            *sum = sum.saturating_add(nanos);
        });
        self.tell(cause, took);
    }

    fn tell(&self, cause: Cause, duration: Duration) {
        if let Some((events, limit)) = &self.events
            && duration >= *limit
            && !cause.has_stalls()
        {
            events.emit(EventKind::LongWait { cause: cause.as_str(), duration });
        }
    }

    /// The waits of a cause that have ended.
    pub fn of(&self, cause: Cause) -> Waited {
        let kept = &self.kept[cause as usize];
        let buckets = kept.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        let total = Duration::from_nanos(kept.nanos.load(Ordering::Relaxed));
        Waited { count: buckets.iter().sum(), total, buckets }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
