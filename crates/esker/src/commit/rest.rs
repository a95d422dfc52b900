//! When a log is put to rest: when nothing was written for a while. What that means is in
//! `commit/space/rest.rs`.

use crate::base::Seq;
use std::time::{Duration, Instant};

/// The log rests when nothing was written for this long, if enough was written before. Writers that
/// pause for less find their log files ready, so a stream of 10 writes a second never rests.
pub(super) const REST_AFTER: Duration = Duration::from_secs(5);
/// The log rests after this long whatever was written, if that gains anything.
const REST_ANYWAY_AFTER: Duration = Duration::from_secs(60);
/// The divisor of the bytes of a flush, or of all data, that must have been written since the last rest
/// for it to be worth one soon. So pauses at most multiply the flushes by this, and rewrite a small
/// tree as rarely.
const WORTH_DIVISOR: u64 = 8;

/// When a log is put to rest. Pure: nothing here does I/O or reads a clock.
///
/// 1. Never as long as that would gain nothing: its files are no larger than those of a log at rest.
/// 2. After [`REST_AFTER`] without a write, if an eighth of a flush or an eighth of the data was written
///    since the last rest; otherwise after [`REST_ANYWAY_AFTER`].
/// 3. Once: then not before the next write, unless what the log holds could not be flushed.
#[derive(Debug)]
pub(super) struct Rest {
    /// The end of the writes when somebody looked last, and when it was first seen.
    seen: (Seq, Instant),
    /// The end of the log at the last rest.
    ended: Seq,
    /// Whether the last rest left log files for what they hold, and nobody flushes it.
    unfinished: bool,
}

/// Whether a log is to be put to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resting {
    /// There is nothing to gain until the next write.
    Nothing,
    /// It is due after so long, unless there are writes.
    After(Duration),
    /// It is due.
    Now,
}

/// The bytes that decide how long a pause must be.
#[derive(Debug, Clone, Copy)]
pub struct RestBytes {
    /// What a flush takes.
    pub flush: u64,
    /// All data in partitions.
    pub data: u64,
    /// A pause that is enough, if a test says so.
    pub pause: Option<Duration>,
}

impl Rest {
    /// A log that was opened now.
    pub(super) fn new(visible: Seq, now: Instant) -> Self {
        Self { seen: (visible, now), ended: visible, unfinished: false }
    }

    /// Looks at the end of the writes; `gain`: what log files take beyond what they take at rest.
    pub(super) fn look(
        &mut self,
        visible: Seq,
        now: Instant,
        gain: u64,
        bytes: RestBytes,
    ) -> Resting {
        if visible != self.seen.0 {
            self.seen = (visible, now);
        }
        // Somebody has flushed what the last rest left.
        self.unfinished &= gain > 0;
        // Seeded: a log that has rested is put to rest again and again.
        let rested = visible == self.ended && !self.unfinished && !bug!("commit_log_rests_again");
        if rested || gain == 0 {
            return Resting::Nothing;
        }
        let written = visible.saturating_sub(self.ended);
        let enough = self.unfinished || written >= bytes.flush.min(bytes.data) / WORTH_DIVISOR;
        // Seeded: each pause of a trickle of writes makes a flush.
        let enough = enough || bug!("commit_log_rests_for_little");
        let pause = if enough { REST_AFTER } else { REST_ANYWAY_AFTER };
        let pause = bytes.pause.unwrap_or(pause);
        match pause.saturating_sub(now.saturating_duration_since(self.seen.1)) {
            Duration::ZERO => Resting::Now,
            left => Resting::After(left),
        }
    }

    /// Notes that the log was put to rest, up to this position.
    pub(super) fn ended(&mut self, visible: Seq) {
        (self.ended, self.unfinished) = (visible, false);
    }

    /// Notes that log files of the last rest are still needed, and that what needs them could not be sealed.
    pub(super) fn left_unfinished(&mut self) {
        // Seeded: the log files stay until somebody writes again.
        self.unfinished = !bug!("commit_log_rests_unfinished");
    }
}

#[cfg(test)]
mod tests;
