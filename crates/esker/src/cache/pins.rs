//! What iterators keep from being freed, and how much of it they may.
//!
//! An iterator holds one block of each run that it merges, and the index of its run segment, so that a step
//! costs no look into the cache. What it holds cannot be evicted, and a program may forget a thousand
//! iterators. So what all of them hold is counted. Beyond a bound an iterator keeps a copy of the entry on
//! which it stands, lets everything else go, and seeks when it moves again.
//!
//! An iterator that nobody moves cannot let go, so it must not take the bound from all others. Therefore each
//! has a share of its own. Beyond the bound those let go that hold more than that, and the shares of the others
//! are added up by iterator, each with at most its share: one that was forgotten takes one share, whatever it holds.
//!
//! 1. What an iterator holds is counted from when it takes a block until it lets go or is dropped. An index
//!    that several iterators hold counts for each.
//! 2. An iterator that was just positioned keeps its blocks while others hold at most the bound, and one that
//!    has moved several times while they hold at most twice as much. One that is alone always does.
//! 3. Beyond that, an iterator that holds at most its share keeps its blocks while the shares of the others, as
//!    of their last looks, take at most the bound.
//! 4. A value that a program keeps ([`Held::keep`](crate::lookup::Held::keep)) holds its block as an iterator does, and has no
//!    share. Beyond the bound it is copied.
//! 5. What is held is counted by thread ([`Sums`]): an iterator that is made, positioned and dropped writes to no
//!    line that other threads write, unless it holds more than a [step](STEPS) or the bound is near.

use super::counters::Total;
use crate::sync::Sums;
use std::sync::atomic::Ordering;

/// The bound is this part of the capacity: an eighth of the memory budget.
const BOUND: u64 = 5;
/// The share of one iterator is this part of the bound.
const SHARES: u64 = 8;
/// What a thread counts alone is less than this part of the bound. The bound is near where it might be exceeded with so
/// much for each thread; there all threads' counts are added up.
const STEPS: u64 = 128;

/// Looks after which an iterator is in motion, and moves between two looks.
const LOOKS_AT_REST: u32 = 4;
const MOVES_PER_LOOK: u32 = 64;

/// The sums: bytes of blocks and indexes that iterators hold; the same, of each at most its share; and bytes of the
/// iterators themselves, with their buffers.
const HELD: usize = 0;
const OF_SHARES: usize = 1;
const ITERATORS: usize = 2;

/// The account of what iterators hold.
#[derive(Debug)]
pub struct Pins {
    sums: Sums<3>,
    let_go: Total,
    /// It follows from the memory budget, which does not change while a database is open.
    bound: u64,
}

impl Pins {
    pub(super) fn new(capacity: u64) -> Self {
        let bound = capacity / BOUND;
        Self { sums: Sums::new(bound / STEPS), let_go: Total::new(0), bound }
    }

    /// An iterator, or a value that was kept, holds so many bytes more, modulo 2^64: so one addition also subtracts.
    #[inline]
    pub fn add(&self, more: u64) {
        self.sums.add(HELD, more);
    }

    /// Whether all of them hold at most the bound.
    pub fn have_room(&self) -> bool {
        !self.sums.exceeds(HELD, self.bound)
    }

    /// Bytes of blocks and indexes that iterators hold, and of blocks with values that were kept.
    pub fn bytes(&self) -> u64 {
        self.sums.get(HELD)
    }

    /// Bytes of the iterators themselves, with their buffers.
    pub fn iterator_bytes(&self) -> u64 {
        self.sums.get(ITERATORS)
    }

    /// How often an iterator let go what it held.
    pub fn let_go(&self) -> u64 {
        self.let_go.load(Ordering::Relaxed)
    }

    /// What an iterator that holds so many bytes takes of the shares.
    fn share(&self, own: u64) -> u64 {
        own.min(self.bound / SHARES)
    }

    /// Whether an iterator that holds so many bytes, and of the shares had `share` when it looked last, is to let
    /// them go; `moves`: it is in motion.
    fn are_much(&self, own: u64, share: u64, moves: bool) -> bool {
        // Seeded: iterators hold blocks without a bound.
        bug!("cache_iterators_hold_without_bound", return false);
        let bound = if moves { 2 * self.bound } else { self.bound };
        if !self.sums.exceeds(HELD, bound.saturating_add(own)) {
            return false;
        }
        // Seeded: one iterator that was forgotten makes all others search again.
        let is_small = own <= self.share(own) && !bug!("cache_pins_have_one_owner");
        let others_fit = || !self.sums.exceeds(OF_SHARES, self.bound.saturating_add(share));
        // Seeded: the shares of iterators are without a bound.
        !(is_small && (others_fit() || bug!("cache_shares_of_pins_without_bound")))
    }
}

/// The part of one iterator in the account; its owner [ends](Self::end) it. It looks whether iterators hold too much: at
/// its first moves after it was positioned, then rarely, and at every move while they do. It does not refer to the
/// account: counting references would be a write to a line of all threads.
#[derive(Debug, Default)]
pub struct Looks {
    /// What it takes of the shares.
    share: u64,
    /// Bytes of the iterator itself.
    itself: u64,
    /// Moves until the next look.
    left: u32,
    /// How many there were since the iterator was positioned.
    count: u32,
}

impl Looks {
    /// The iterator was positioned.
    pub fn begin(&mut self) {
        (self.left, self.count) = (0, 0);
    }

    /// Whether a look is due at this move.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.left = self.left.wrapping_sub(1);
        self.left == 0
    }

    /// Looks. True: an iterator that holds so many bytes is to let them go, which is counted. One that cannot do
    /// so where it stands is asked again at its next move.
    pub fn lets_go(&mut self, pins: &Pins, own: u64, can: bool) -> bool {
        let moves = self.count >= LOOKS_AT_REST;
        let much = own > 0 && pins.are_much(own, self.share, moves);
        self.left = if much { 1 } else { MOVES_PER_LOOK };
        self.count = self.count.saturating_add(1);
        if much && can {
            pins.let_go.fetch_add(1, Ordering::Relaxed);
            self.take(pins, 0);
            return true;
        }
        self.take(pins, pins.share(own));
        false
    }

    /// The iterator itself takes so many bytes.
    pub fn count_itself(&mut self, pins: &Pins, bytes: u64) {
        // Seeded: iterators are in nobody's account.
        bug!("cache_iterators_not_counted", return);
        change(pins, ITERATORS, &mut self.itself, bytes);
    }

    /// The iterator takes so much of the shares.
    fn take(&mut self, pins: &Pins, share: u64) {
        change(pins, OF_SHARES, &mut self.share, share);
    }

    /// The iterator is gone.
    pub fn end(&mut self, pins: &Pins) {
        // Seeded: iterators that are gone still count.
        if !bug!("cache_iterators_never_end") {
            change(pins, ITERATORS, &mut self.itself, 0);
        }
        // Seeded: iterators that are gone keep their shares, so others search again.
        bug!("cache_shares_of_dropped_iterators_stay", return);
        self.take(pins, 0);
    }
}

/// Changes what an iterator counts in a sum.
fn change(pins: &Pins, sum: usize, counted: &mut u64, now: u64) {
    if now != *counted {
        pins.sums.add(sum, now.wrapping_sub(*counted));
        *counted = now;
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
