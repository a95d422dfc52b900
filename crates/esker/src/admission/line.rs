//! The line in which writers wait for the rate.
//!
//! 1. Each writer takes as many places as it has bytes, once, and keeps them however often it asks.
//!    So nobody overtakes, and no writer is starved.
//! 2. The head advances at the rate; a writer goes when the head has reached its first place.
//! 3. The places of a writer that gave up are skipped when the head gets there: nobody waits for
//!    bytes that are not written. Those at the end are taken back at once, so what is remembered of
//!    writers that gave up is bounded by the writers that wait, however often they are refused.

use super::controller::Course;
use std::collections::BTreeMap;
use std::time::Duration;

/// The head may run ahead by this time while no thread writes: sleepers wake a little late.
pub(super) const SAVED_MAX: Duration = Duration::from_millis(1);

/// Writers that wait for the rate, in bytes.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Bytes per second; 0: the head does not move.
    pub rate: f64,
    /// The number of places that were ever taken.
    pub taken: u64,
    /// The head: places before it may go.
    head: f64,
    /// Places that were given up, and how many from there on.
    left: BTreeMap<u64, u64>,
    /// When the head last moved, since the pacer's epoch.
    moved: Duration,
    /// When a writer last asked, since the pacer's epoch.
    pub asked: Duration,
    /// What the controller remembers, and when it decided, since the pacer's epoch.
    pub course: Course,
    pub decided: Duration,
    /// How long a stop lasts: an estimate.
    pub memory_after: Duration,
    /// Since when the mode is what it is, since the pacer's epoch.
    pub since: Duration,
}

impl Line {
    pub(super) fn advance(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.moved).as_secs_f64();
        let mut head = self.head + elapsed * self.rate;
        while let Some(first) = self.left.first_entry()
            && *first.key() as f64 <= head
        {
            head += first.remove() as f64;
        }
        let saved = self.rate * SAVED_MAX.as_secs_f64();
        self.head = head.min(self.taken as f64 + saved);
        self.moved = self.moved.max(now);
    }

    /// Takes places behind all others; returns the first.
    pub(super) fn take(&mut self, bytes: u64) -> u64 {
        let place = self.taken;
        self.taken = place.saturating_add(bytes);
        place
    }

    /// Gives up places that were not used.
    pub(super) fn leave(&mut self, place: u64, bytes: u64) {
        if bytes > 0 && place as f64 >= self.head {
            self.left.insert(place, bytes);
        }
        while let Some(last) = self.left.last_entry()
            && last.key() + last.get() == self.taken
        {
            self.taken -= last.remove();
        }
    }

    /// How many writers that gave up are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.left.len()
    }

    /// Lets everybody go who has a place.
    pub(super) fn release(&mut self) {
        self.head = self.taken as f64;
        self.left.clear();
    }

    /// Whether the head has not come to the end.
    pub(super) fn is_waited_in(&self) -> bool {
        self.head < self.taken as f64
    }

    /// How long the head takes to reach a place.
    pub(super) fn time_to(&self, place: u64) -> Duration {
        let left: u64 = self.left.range(..place).map(|(_, bytes)| bytes).sum();
        let missing = (place as f64 - left as f64 - self.head).max(0.0);
        Duration::try_from_secs_f64(missing / self.rate.max(1.0)).unwrap_or(Duration::MAX)
    }
}
