//! What iterators keep from being freed, and how much of it they may.
//!
//! An iterator holds one block of each run that it merges, and the index of its run segment, so that a step
//! costs no look into the cache. What it holds cannot be evicted, and a program may forget a thousand
//! iterators. So what all of them hold is counted. Beyond a bound an iterator keeps a copy of the entry on
//! which it stands, lets everything else go, and seeks when it moves again.
//!
//! 1. What an iterator holds is counted from when it takes a block until it lets go or is dropped. An index
//!    that several iterators hold counts for each.
//! 2. An iterator that was just positioned keeps its blocks while others hold at most the share, and one that
//!    has moved several times while they hold at most twice as much. One that is alone always does.

use super::counters::Total;
use std::sync::atomic::Ordering;

/// The share is this part of the capacity: an eighth of the memory budget.
const SHARE: u64 = 5;

/// Looks after which an iterator is in motion, and moves between two looks.
const LOOKS_AT_REST: u32 = 4;
const MOVES_PER_LOOK: u32 = 64;

/// The account of what iterators hold.
#[derive(Debug)]
pub struct Pins {
    bytes: Total,
    let_go: Total,
    share: Total,
}

impl Pins {
    pub(super) fn new(capacity: u64) -> Self {
        Self { bytes: Total::new(0), let_go: Total::new(0), share: Total::new(capacity / SHARE) }
    }

    /// An iterator holds so many bytes more, modulo 2^64: so one addition also subtracts.
    #[inline]
    pub(super) fn add(&self, more: u64) {
        self.bytes.fetch_add(more, Ordering::Relaxed);
    }

    /// Bytes of blocks and indexes that iterators hold.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How often an iterator let go what it held.
    pub fn let_go(&self) -> u64 {
        self.let_go.load(Ordering::Relaxed)
    }

    /// Whether an iterator that holds so many bytes is to let them go; `moves`: it is in motion.
    fn are_much(&self, own: u64, moves: bool) -> bool {
        // Seeded: iterators hold blocks without a bound.
        bug!("cache_iterators_hold_without_bound", return false);
        let share = self.share.load(Ordering::Relaxed);
        self.bytes().saturating_sub(own) > if moves { 2 * share } else { share }
    }
}

/// When an iterator looks whether iterators hold too much: at its first moves after it was positioned, then
/// rarely, and at every move while they do.
#[derive(Debug, Default)]
pub struct Looks {
    /// Moves until the next one.
    left: u32,
    /// How many there were since the iterator was positioned.
    count: u32,
}

impl Looks {
    /// Whether a look is due at this move.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.left = self.left.wrapping_sub(1);
        self.left == 0
    }

    /// Looks. True: an iterator that holds so many bytes is to let them go, which is counted.
    pub fn are_much(&mut self, pins: &Pins, own: u64) -> bool {
        let much = own > 0 && pins.are_much(own, self.count >= LOOKS_AT_REST);
        self.left = if much { 1 } else { MOVES_PER_LOOK };
        self.count = self.count.saturating_add(1);
        if much {
            pins.let_go.fetch_add(1, Ordering::Relaxed);
        }
        much
    }
}
