//! What range tombstones hide from an iterator, and leaps over it.

use super::{LEAP_AFTER, VisibleIter};
use crate::base::{Cursor, KeyOrder, Seq};
use crate::error::Result;
use crate::iter::Tombstones;

impl<C: Cursor + 'static, O: KeyOrder, T: Tombstones> VisibleIter<C, O, T> {
    pub(super) fn tree_is_covered(&mut self) -> bool {
        let key = self.tree.key();
        let (cover, entered) = self.cover.seq_at(&self.order, &self.tombstones, key, self.at);
        self.count_covered(cover > self.tree.seq(), entered)
    }

    pub(super) fn key_is_covered(&mut self, seq: Seq) -> bool {
        let (cover, entered) = self.cover.seq_at(&self.order, &self.tombstones, &self.key, self.at);
        self.count_covered(cover > seq, entered)
    }

    pub(super) fn count_covered(&mut self, covered: bool, entered: bool) -> bool {
        if entered || !covered {
            self.covered = 0;
        }
        self.covered += u32::from(covered);
        covered
    }

    /// If a span hid many consecutive entries, moves every source without newer entries than the
    /// span's tombstone to the end of the span. The tombstone hides all entries that this passes,
    /// and every entry that one of them would have hidden. Returns whether the tree moved.
    pub(super) fn leap_over_span(&mut self, backward: bool) -> Result<bool> {
        if !self.covered.is_multiple_of(LEAP_AFTER) || !self.tree.valid() {
            return Ok(false);
        }
        let cover = self.cover.last_seq();
        // Seeded: a scan that leaps over a range tombstone misses what was written there since.
        let cover = if bug!("iter_leap_over_newer") { Seq::MAX } else { cover };
        let seq_bounds = self.sources.as_ref().map_or(&[][..], |sources| sources.seq_bounds());
        let eligible = |source: usize| seq_bounds[source] <= cover;
        if !seq_bounds.iter().any(|bound| *bound <= cover) {
            return Ok(false);
        }
        let (low, high) = self.cover.span();
        self.tree.leap(if backward { low } else { high }, eligible)?;
        Ok(true)
    }
}
