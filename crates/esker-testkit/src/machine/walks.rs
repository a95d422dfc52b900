//! Iterators and cursors that a machine goes on with, now and much later.

use super::Machine;
use super::walk::{Shows, Walk};
use crate::harness::keyspace;
use crate::model::is_folded;
use std::ops::Bound;

/// The iterators of a machine that has a crowd of them: together they hold more than their share.
const CROWD: usize = 60;
const NEW_IN_CROWD: usize = 12;

impl Machine {
    /// An iterator or a cursor over a random part of a slot, and what it must show. Every other step has cursors, which
    /// draws no number: seeds mean what they meant before.
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
        let range = || (low, high);
        let expected = match how {
            0..=2 => all,
            3 | 4 if !is_folded(slot) => all.with_prefix(prefix),
            _ => map.expected(low, high),
        };
        let as_cursor = self.steps.is_multiple_of(2);
        let cursor = match (held, how) {
            _ if !as_cursor => None,
            (None, 0..=2) => Some(handle.cursor()),
            (Some(held), 0..=2) => Some(held.cursor(&handle)),
            (_, 3 | 4) if !is_folded(slot) => None,
            (None, _) => Some(handle.cursor_in::<&[u8]>(range())),
            (Some(held), _) => Some(held.cursor_in::<&[u8]>(&handle, range())),
        };
        if let Some(cursor) = cursor {
            let cursor = cursor.unwrap_or_else(|e| panic!("cursor: {e}"));
            return Walk::new(Shows::Cursor(cursor, None), slot, expected);
        }
        let iter = match (held, how) {
            (None, 0..=2) => handle.iter(),
            (Some(held), 0..=2) => held.iter(&handle),
            (None, 3 | 4) if !is_folded(slot) => handle.prefix(prefix),
            (Some(held), 3 | 4) if !is_folded(slot) => held.prefix(&handle, prefix),
            (None, _) => handle.range::<&[u8]>(range()),
            (Some(held), _) => held.range::<&[u8]>(&handle, range()),
        };
        let iter = iter.unwrap_or_else(|e| panic!("iterator: {e}"));
        Walk::new(Shows::Iter(iter), slot, expected)
    }

    pub(super) fn scan(&mut self) {
        let mut walk = self.iterator();
        match self.below(5) {
            0 => self.run(&mut walk, true, usize::MAX),
            1 => self.run(&mut walk, false, usize::MAX),
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
            choice @ (0 | 1) => {
                let key = self.make.key(walk.slot());
                walk.seek(&key, choice == 1);
            }
            2..=4 => self.run(walk, true, count),
            _ => self.run(walk, false, count),
        }
    }

    fn run(&mut self, walk: &mut Walk, forward: bool, count: usize) {
        self.reached.cursors += u64::from(walk.is_cursor());
        walk.run(forward, count);
    }

    /// An iterator or a cursor that is forgotten for a while, or a crowd of them.
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

    /// Goes on with an iterator or a cursor that was made long ago.
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
