//! From block to block: through the cache, or past it in large pieces.

use super::super::index::{Index, SharedIndex};
use super::super::neighbours::STREAK_MIN;
use super::super::piece::{Direction, Piece, Source, limit_bytes};
use super::super::segment::Segment;
use super::RunCursor;
use crate::base::KeyOrder;
use crate::block::Layout;
use crate::cache::BlockCache;
use crate::error::Result;
use crate::trace::Purpose;
use std::sync::Arc;

impl<O: KeyOrder> RunCursor<O> {
    /// The index of a segment.
    pub(super) fn index(&mut self, segment: usize) -> Result<&Index> {
        let (owner, cache) = (&self.run.segments[segment], self.holder.cache());
        let index = held_index(&mut self.index, (segment, owner), (cache, self.fill_cache));
        index.map(|index| &**index)
    }

    /// Moves into a block without choosing an entry.
    pub(super) fn enter(
        &mut self,
        segment: usize,
        block: usize,
        direction: Direction,
    ) -> Result<()> {
        self.valid = false;
        let (owner, cache) = (&self.run.segments[segment], self.holder.cache());
        let index = held_index(&mut self.index, (segment, owner), (cache, self.fill_cache))?;
        let numbering = index.numbering;
        let layout = if self.fill_cache {
            let pin = owner.scanned_block(index, block, (direction, self.streak))?;
            let layout = *pin.block().layout();
            self.holder.hold(pin.size() + index.bytes());
            self.source = Source::Frame(pin);
            layout
        } else {
            let (run, index) = (self.run.clone(), index.clone());
            self.source = Source::Nowhere;
            self.enter_piece(segment, &run.segments[segment], &index, block, direction)?
        };
        (self.segment, self.block, self.numbering) = (segment, block, numbering);
        self.count = layout.count();
        self.layout = Some(layout);
        Ok(())
    }

    fn enter_piece(
        &mut self,
        segment: usize,
        owner: &Segment,
        index: &Index,
        block: usize,
        direction: Direction,
    ) -> Result<Layout> {
        let place = index.places[block];
        let (cache, usual) = (self.holder.cache(), self.piece_bytes);
        let piece = &mut **self.piece.get_or_insert_with(|| Box::new(Piece::of(cache)));
        let held = piece.offset..piece.offset + piece.len as u64;
        if piece.segment != segment || place.offset < held.start || place.end() > held.end {
            let whole = match direction {
                Direction::Forward => block..index.places.len(),
                Direction::Backward => 0..block + 1,
            };
            let range = limit_bytes(index, whole, block, (direction, usual));
            let offset = index.places[range.start].offset;
            let len = (index.places[range.end - 1].end() - offset) as usize;
            piece.make_room(len, usual);
            let took = owner.file().read(&mut piece.pages[..len], offset, "block")?;
            (piece.segment, piece.offset, piece.len) = (segment, offset, len);
            cache.count_read(Purpose::Compaction, len as u64, took);
        }
        let start = (place.offset - piece.offset) as usize;
        let stored = &piece.pages[start..start + place.len as usize];
        let kept = piece.scratch.capacity();
        let (layout, raw) = owner.decode_block(index, &place, stored, &mut piece.scratch)?;
        if piece.scratch.capacity() != kept {
            piece.count();
        }
        self.source = match raw {
            Some(range) => Source::Piece(start + range.start..start + range.end),
            None => Source::Scratch,
        };
        Ok(layout)
    }

    /// The index of the current segment, if it is there.
    fn current_index(&self) -> Option<&SharedIndex> {
        let (_, index) = self.index.as_ref().filter(|(held, _)| *held == self.segment)?;
        Some(index)
    }

    /// The block after the current one.
    fn following(&self) -> Option<(usize, usize)> {
        let index = self.current_index()?;
        if self.block + 1 < index.places.len() {
            return Some((self.segment, self.block + 1));
        }
        (self.segment + 1 < self.run.segments.len()).then_some((self.segment + 1, 0))
    }

    /// Whether the block before may end with a newer version of the key with which this one begins.
    pub(super) fn may_continue(&self) -> bool {
        // Seeded: a scan from the end shows an old entry where a newer one ends the block before.
        bug!("run_block_before_not_looked_at", return false);
        let place = self.current_index().and_then(|index| index.places.get(self.block));
        self.block == 0 || place.is_none_or(|place| place.continued)
    }

    /// The block before the current one.
    fn preceding(&mut self) -> Result<Option<(usize, usize)>> {
        if self.block > 0 {
            return Ok(Some((self.segment, self.block - 1)));
        }
        let Some(segment) = self.segment.checked_sub(1) else { return Ok(None) };
        let blocks = self.index(segment)?.places.len();
        Ok(Some((segment, blocks - 1)))
    }

    pub(super) fn step_block(&mut self, direction: Direction) -> Result<()> {
        self.valid = false;
        let next = match direction {
            Direction::Forward => self.following(),
            Direction::Backward => self.preceding()?,
        };
        let Some((segment, block)) = next else { return Ok(()) };
        self.streak += 1;
        self.enter(segment, block, direction)?;
        let entry = if direction == Direction::Forward { 0 } else { self.count - 1 };
        self.show(entry, false);
        self.ask_for_next(direction);
        self.ask_for_segment(direction);
        Ok(())
    }

    /// In the middle of a segment, a scan that has come far asks for the begin of the following one: for about as much as
    /// it came through.
    fn ask_for_segment(&self, direction: Direction) {
        let Some(index) = self.current_index().filter(|_| self.fill_cache) else { return };
        let blocks = index.places.len();
        if self.block != blocks / 2 || self.streak < STREAK_MIN {
            return;
        }
        let here = &self.run.segments[self.segment];
        let bytes = here.meta().blocks_len() / blocks as u64 * self.streak as u64;
        let next = match direction {
            Direction::Forward => self.segment + 1,
            Direction::Backward => self.segment.wrapping_sub(1),
        };
        if let Some(segment) = self.run.segments.get(next) {
            segment.ask_to_enter(direction, bytes);
        }
    }

    /// Starts to fetch what the next step to a block touches first.
    fn ask_for_next(&self, direction: Direction) {
        let next = match direction {
            Direction::Forward => self.block + 1,
            Direction::Backward => self.block.wrapping_sub(1),
        };
        if let Some(index) = self.current_index().filter(|_| self.fill_cache) {
            index.slots.prefetch_scanned(next);
        }
    }
}

/// The index of a segment, which is loaded unless it is `held` already; `through`: whether reads go through the cache.
/// Compactions do not keep the indexes that they read: their segments go. Readers of the same run share the counts
/// of references to it and to its indexes, so a cursor counts none that it can do without.
pub(super) fn held_index<'h>(
    held: &'h mut Option<(usize, SharedIndex)>,
    (segment, owner): (usize, &Segment),
    (cache, through): (&Arc<BlockCache>, bool),
) -> Result<&'h SharedIndex> {
    let found = match held.take_if(|(held, _)| *held == segment) {
        Some(found) => found,
        None if through => (segment, owner.index(cache, Purpose::Scan)?),
        None => (segment, owner.index_once(cache, Purpose::Compaction)?),
    };
    Ok(&held.insert(found).1)
}
