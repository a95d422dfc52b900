//! Iterators that a machine goes on with, now and much later.

use super::Machine;
use super::walk::Walk;
use crate::harness::keyspace;
use crate::model::is_folded;
use std::ops::Bound;

/// The iterators of a machine that has a crowd of them: together they hold more than their share.
const CROWD: usize = 60;
const NEW_IN_CROWD: usize = 12;

impl Machine {
    /// An iterator over a random part of a slot, and what it must show.
    fn iterator(&mut self) -> Walk {
        let slot = self.make.slot(&self.model);
        let moment = self.moment(slot);
        let model = moment.map_or(&self.model, |index| &self.held[index].model).clone();
        let map = model.map(slot).unwrap_or_else(|| unreachable!("the slot is live"));
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let how = self.below(10);
        let (start, end) = self.make.bounds(slot);
        let prefix = self.make.key(slot);
        let prefix = &prefix[..self.below(prefix.len() + 1)];
        let held = moment.map(|index| &self.held[index].snapshot);
        let mut low = start.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let mut high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        if !is_folded(slot) && how.is_multiple_of(2) {
            // Byte order has a next key, so all kinds of bounds work there.
            low = start.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            high = end.as_deref().map_or(Bound::Unbounded, Bound::Included);
        }
        let all = map.expected(Bound::Unbounded, Bound::Unbounded);
        let (iter, expected) = match (held, how) {
            (None, 0..=2) => (handle.iter(), all),
            (Some(held), 0..=2) => (held.iter(&handle), all),
            (held, 3 | 4) if !is_folded(slot) => {
                let iter = match held {
                    None => handle.prefix(prefix),
                    Some(held) => held.prefix(&handle, prefix),
                };
                (iter, all.with_prefix(prefix))
            }
            (None, _) => (handle.range::<&[u8]>((low, high)), map.expected(low, high)),
            (Some(held), _) => (held.range::<&[u8]>(&handle, (low, high)), map.expected(low, high)),
        };
        let iter = iter.unwrap_or_else(|e| panic!("iterator: {e}"));
        Walk::new(iter, slot, expected)
    }

    pub(super) fn scan(&mut self) {
        let mut walk = self.iterator();
        match self.below(5) {
            0 => walk.run(true, usize::MAX),
            1 => walk.run(false, usize::MAX),
            _ => {
                for _ in 0..1 + self.below(12) {
                    self.move_walk(&mut walk);
                }
            }
        }
    }

    fn move_walk(&mut self, walk: &mut Walk) {
        let count = 1 + self.below(20);
        match self.below(8) {
            0 | 1 => {
                let key = self.make.key(walk.slot());
                walk.seek(&key);
            }
            2..=4 => walk.run(true, count),
            _ => walk.run(false, count),
        }
    }

    /// An iterator that is forgotten for a while, or a crowd of them.
    pub(super) fn start_walk(&mut self) {
        let (most, new) = if self.habits.crowded { (CROWD, NEW_IN_CROWD) } else { (4, 1) };
        for _ in 0..new {
            if self.walks.len() >= most {
                let index = self.below(self.walks.len());
                self.walks.swap_remove(index);
            }
            let mut walk = self.iterator();
            if new > 1 {
                walk.run(true, 1);
            }
            self.walks.push(walk);
        }
    }

    /// Goes on with an iterator that was made long ago.
    pub(super) fn walk_on(&mut self) {
        if self.walks.is_empty() {
            return;
        }
        let index = self.below(self.walks.len());
        let mut walk = self.walks.swap_remove(index);
        self.move_walk(&mut walk);
        self.walks.push(walk);
    }
}
