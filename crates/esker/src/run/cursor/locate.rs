//! Where a seek in a run goes: what is known of it without reading, and ahead of its time.

use super::blocks::held_index;
use super::{Located, RunCursor};
use crate::base::{KeyOrder, Seq};
use crate::error::Result;

impl<O: KeyOrder> RunCursor<O> {
    /// The first entry at or after (`key`, `below`), if it is in the block where the cursor stands and is not the first one
    /// there: what lies before the block is less, so a seek need not begin at the root. Most blocks where it is not are told
    /// by the prefix of their keys.
    pub(in crate::run) fn near(&self, key: &[u8], below: Seq) -> Option<usize> {
        // Past the cache, cursors only go on.
        let stands = self.valid && !self.waiting && self.fill_cache;
        let block = self.current().filter(|_| stands)?;
        let found = block.lower_bound(&self.order, key, self.numbering.bound(below));
        // Seeded: a seek to what lies before the block ends at its first entry.
        let first = usize::from(!bug!("run_near_seek_back_ends_at_the_block"));
        (first..self.count).contains(&found).then_some(found)
    }

    /// Moves to another entry of the block where the cursor stands.
    pub(super) fn stay(&mut self, entry: usize) {
        (self.located, self.streak) = (None, 0);
        self.show(entry, true);
    }

    /// The segment and the first block that may hold `key`; `None`: the run begins behind it.
    pub(super) fn locate(&mut self, key: &[u8]) -> Result<Option<Located>> {
        if let Some(located) = self.located.take() {
            return Ok(Some(located));
        }
        let Some(segment) = self.run.fences.find(&self.order, key) else { return Ok(None) };
        self.locate_in(segment, key).map(Some)
    }

    /// The segment at whose first entry a seek to `key` ends, if that is known without reading: the key
    /// lies before the run or between two segments. It is the number of segments if the run ends before
    /// the key.
    pub(super) fn segment_behind(&self, key: &[u8]) -> Option<usize> {
        let before = match self.located {
            // Keys behind a segment are located in its last block.
            Some((segment, block)) => {
                let (_, index) = self.index.as_ref().filter(|(held, _)| *held == segment)?;
                (block + 1 == index.places.len()).then_some(segment)?
            }
            None => match self.run.fences.find(&self.order, key) {
                Some(segment) => segment,
                None => return Some(0),
            },
        };
        let last = &self.run.segments[before].meta().max_key;
        self.order.compare(last, key).is_lt().then_some(before + 1)
    }

    /// Waits at the first entry of a segment, or behind the last one.
    pub(super) fn wait_at(&mut self, segment: usize) {
        let Some(owner) = self.run.segments.get(segment) else { return };
        self.key.clear();
        self.key.extend_from_slice(&owner.meta().min_key);
        self.segment = segment;
        (self.valid, self.waiting) = (true, true);
    }

    pub(super) fn locate_in(&mut self, segment: usize, key: &[u8]) -> Result<Located> {
        let (owner, cache) = (&self.run.segments[segment], self.holder.cache());
        let index = held_index(&mut self.index, (segment, owner), (cache, self.fill_cache))?;
        Ok((segment, index.first_block(&self.order, key).unwrap_or(0)))
    }

    /// Locates a key ahead of its seek. What is not in memory is left to the seek, which can fail.
    pub(super) fn locate_ahead(&mut self, key: &[u8]) {
        self.located = None;
        if !self.fill_cache {
            return;
        }
        let Some(segment) = self.run.fences.find(&self.order, key) else { return };
        if self.run.segments[segment].is_loaded() {
            self.located = self.locate_in(segment, key).ok();
        }
    }
}
