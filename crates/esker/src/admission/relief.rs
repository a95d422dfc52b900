//! What the database remembers while it searches for space (C7).
//!
//! The search itself is in `db/full.rs`. This module only keeps its state: when the search ended, how
//! much it found, which run segments it has rewritten, and what a write has tried so far.

use crate::base::Seq;
use crate::compaction::thin_candidates::Thinned;
use crate::directory::reserve::Claim;
use crate::error::SpaceHeld;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a caller waits at most for calls that use old states: one that waits for the background, work
/// that lacks space, and work after which a write is refused. The last is the longest: on a busy machine a
/// thread may not be scheduled for seconds, and what it holds may be all there is to free.
pub const IDLE_PATIENCE: Duration = Duration::from_millis(250);
/// The same for work that lacks space.
pub const PASSING_PATIENCE: Duration = Duration::from_secs(1);
/// The same for work after which a write is refused.
pub const LAST_PATIENCE: Duration = Duration::from_secs(8);

/// A moment: what is visible, and the snapshots. At the same moment the same space can be freed,
/// apart from what readers and others release.
#[derive(Debug, PartialEq, Eq)]
pub struct Moment {
    /// The end of the published writes.
    pub visible: Seq,
    /// The positions of the snapshots.
    pub snapshots: Vec<Seq>,
}

/// How often space is released for one piece of work.
pub const ATTEMPTS: u32 = 8;
/// How much space relief leaves free outside the reserve, if it can.
pub const RELIEF_BYTES: u64 = 1 << 20;
/// A segment is rewritten if at least this part of it is hidden, unless a caller waits for less.
pub const EASY_PART: f64 = 0.125;
/// The first and the longest pause after which such a caller looks again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(128));
/// How long the result holds that nothing can be freed: the removal of a checkpoint gives no signal.
const EXHAUSTED_FOR: Duration = Duration::from_secs(60);

/// What is remembered of the search for space.
#[derive(Debug, Default)]
pub struct Relief {
    /// When relief ended, and the moment at which it had begun.
    pub exhausted: Mutex<Option<(Instant, Moment)>>,
    /// How often space was freed.
    pub gains: AtomicU64,
    /// Whether the last write of data found no room. The reserve may be whole nevertheless.
    pub refused: AtomicBool,
    /// How often partitions were cut into parts because they could not be compacted as a whole.
    pub cuts: AtomicU64,
    /// The run segments that were examined.
    pub thinned: Mutex<Thinned>,
    /// The last result of the search for what holds space.
    pub last_held: LastHeld,
}

impl Relief {
    /// How often space was freed.
    pub fn gained(&self) -> u64 {
        self.gains.load(Ordering::Acquire)
    }

    /// Whether relief has freed all that can be freed now; `moment` is the present.
    pub fn is_exhausted(&self, moment: impl FnOnce() -> Moment) -> bool {
        let exhausted = self.exhausted.lock();
        exhausted
            .as_ref()
            .is_some_and(|(at, then)| at.elapsed() < EXHAUSTED_FOR && *then == moment())
    }
}

/// The pauses of a caller that waits for something that ends without a signal: each is twice as long as the
/// one before, up to a bound. The time that has passed ends them and not their number, because other work may
/// cut a pause short.
#[derive(Debug)]
pub struct Pauses {
    began: Instant,
    patience: Duration,
    next: Duration,
}

impl Pauses {
    /// Pauses for so long altogether.
    pub fn of(patience: Duration) -> Self {
        Self { began: Instant::now(), patience, next: PAUSES.0 }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let rest = self.patience.saturating_sub(self.began.elapsed());
        let pause = self.next.min(rest);
        self.next = (self.next * 2).min(PAUSES.1);
        (!pause.is_zero()).then_some(pause)
    }
}

/// What a write that found no space has tried so far.
#[derive(Debug, Default)]
pub struct Way {
    /// How often space was released for it.
    pub attempts: u32,
    /// Its use of the reserve.
    pub claim: Option<Claim>,
    /// What [`Relief::gained`] was when it was tried last.
    pub gains: u64,
    /// Whether it is not to wait for space.
    pub impatient: bool,
}

/// The last result, and the state that it describes: refused writes change nothing.
#[derive(Debug, Default)]
pub struct LastHeld(Mutex<Option<(Held, Arc<SpaceHeld>)>>);

/// The address of a version, how many snapshots there were, and how many replaced states.
type Held = (usize, usize, usize);

impl LastHeld {
    /// The last result if it is of this state and these snapshots, otherwise that of `find`.
    pub fn of(&self, now: Held, find: impl FnOnce() -> SpaceHeld) -> Arc<SpaceHeld> {
        let mut last = self.0.lock();
        if let Some((_, held)) = last.as_ref().filter(|(of, _)| *of == now) {
            return held.clone();
        }
        let held = Arc::new(find());
        *last = Some((now, held.clone()));
        held
    }
}
