//! An iterator and what it must still show.

use crate::model::{Expected, Folded, is_folded};
use esker::Iter;

/// An iterator and what it must still show.
pub(super) struct Walk {
    iter: Iter,
    slot: usize,
    expected: Expected,
}

impl Walk {
    /// An iterator that must show this.
    pub(super) fn new(iter: Iter, slot: usize, expected: Expected) -> Self {
        Self { iter, slot, expected }
    }

    /// The slot of which it shows a part.
    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    /// Moves one end by some entries.
    pub(super) fn run(&mut self, forward: bool, count: usize) {
        for _ in 0..count {
            let found = if forward { self.iter.next_entry() } else { self.iter.next_back_entry() };
            let found = found.unwrap_or_else(|e| panic!("iterator: {e}"));
            assert!(
                self.expected.take(forward, found),
                "slot {}, forward {forward}: key {:?}, not at {}",
                self.slot,
                found.map(|(key, _)| key.escape_ascii().to_string()),
                self.expected.told(),
            );
            if found.is_none() {
                return;
            }
        }
    }

    /// Places the front.
    pub(super) fn seek(&mut self, key: &[u8]) {
        self.iter.seek(key).unwrap_or_else(|e| panic!("seek: {e}"));
        let folded = is_folded(self.slot);
        let order = |a: &[u8], b: &[u8]| {
            if folded { esker::Comparator::compare(&Folded, a, b) } else { a.cmp(b) }
        };
        self.expected.seek(|have| order(have, key).is_lt());
    }
}
