//! An iterator that a machine goes on with, now and much later.

use crate::model::{Folded, Pair, is_folded};
use esker::Iter;

/// An iterator and what it must still show.
pub(super) struct Walk {
    pub(super) iter: Iter,
    pub(super) slot: usize,
    pub(super) pairs: Vec<Pair>,
    pub(super) front: usize,
    pub(super) back: usize,
}

impl Walk {
    /// Moves one end by some entries.
    pub(super) fn run(&mut self, forward: bool, count: usize) {
        for _ in 0..count {
            let left = self.front < self.back;
            let want = match (left, forward) {
                (false, _) => None,
                (true, true) => Some(&self.pairs[self.front]),
                (true, false) => Some(&self.pairs[self.back - 1]),
            };
            let found = if forward { self.iter.next_entry() } else { self.iter.next_back_entry() };
            let found = found.unwrap_or_else(|e| panic!("iterator: {e}"));
            assert!(
                found == want.map(|(key, value)| (&key[..], &value[..])),
                "slot {}, forward {forward}, {}..{} of {}: key {:?}, not {:?}",
                self.slot,
                self.front,
                self.back,
                self.pairs.len(),
                found.map(|(key, _)| key.escape_ascii().to_string()),
                want.map(|(key, _)| key.escape_ascii().to_string()),
            );
            match (left, forward) {
                (false, _) => return,
                (true, true) => self.front += 1,
                (true, false) => self.back -= 1,
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
        self.front = self.pairs.partition_point(|(have, _)| order(have, key).is_lt());
    }
}
