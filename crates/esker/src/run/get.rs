//! Point reads of a run.

use super::index::Index;
use super::segment::Segment;
use super::{Role, Run};
use crate::base::{KeyOrder, Kind, Seq};
use crate::block::{Block, tag_of};
use crate::cache::{BlockCache, FramePin, FrameView};
use crate::error::Result;
use crate::sync::Guard;
use std::sync::Arc;

/// How a lookup may get its data.
#[derive(Debug, Clone, Copy)]
pub enum Access<'g> {
    /// Only what is in memory, under an epoch; never any I/O.
    Cached(&'g Guard),
    /// Reads what is missing. Do not use it inside an epoch.
    Read,
}

/// A block that stays readable for `'g`.
#[derive(Debug)]
pub enum BlockRef<'g> {
    /// An epoch protects it.
    Epoch(FrameView<'g>),
    /// A reference count protects it.
    Pinned(FramePin),
}

impl BlockRef<'_> {
    /// The block.
    #[inline]
    pub fn block(&self) -> Block<'_> {
        match self {
            Self::Epoch(view) => view.block(),
            Self::Pinned(pin) => pin.block(),
        }
    }

    /// One more pin of the block, which outlives the epoch.
    pub fn pin(&self) -> FramePin {
        match self {
            Self::Epoch(view) => view.pin(),
            Self::Pinned(pin) => pin.view().pin(),
        }
    }

    /// A pin of the block, which outlives the epoch.
    pub fn into_pin(self) -> FramePin {
        match self {
            Self::Epoch(view) => view.pin(),
            Self::Pinned(pin) => pin,
        }
    }
}

/// An entry that was found; its value is in the block.
#[derive(Debug)]
pub struct Found<'g> {
    /// Its sequence number.
    pub seq: Seq,
    /// Its kind.
    pub kind: Kind,
    /// The block that holds it.
    pub block: BlockRef<'g>,
    /// The range of the value in the block's bytes.
    pub range: (usize, usize),
}

impl Found<'_> {
    /// The value; empty for a delete.
    #[inline]
    pub fn value(&self) -> &[u8] {
        let bytes = match &self.block {
            BlockRef::Epoch(view) => view.bytes(),
            BlockRef::Pinned(pin) => pin.bytes(),
        };
        &bytes[self.range.0..self.range.1]
    }
}

/// The result of a lookup in one run.
#[derive(Debug)]
pub enum Probe<'g> {
    /// The run has no visible version of the key.
    Absent,
    /// A needed block, index or list is not in memory.
    NeedsIo,
    /// The newest visible version.
    Found(Found<'g>),
}

impl Run {
    /// The newest version of `key` with a sequence number less than `below`. `hash` is
    /// `base::codec::hash_key(key)` (any number with a custom comparator). Range tombstones are not
    /// applied.
    #[inline]
    pub fn get<'g, O: KeyOrder>(
        &'g self,
        order: &O,
        key: &[u8],
        hash: u64,
        below: Seq,
        access: Access<'g>,
        cache: &Arc<BlockCache>,
    ) -> Result<Probe<'g>> {
        let Some(segment) = self.fences.find(order, key) else { return Ok(Probe::Absent) };
        let segment = &*self.segments[segment];
        let index = match (segment.index_cached(), access) {
            (Some(index), _) => index,
            (None, Access::Cached(_)) => return Ok(Probe::NeedsIo),
            (None, Access::Read) => segment.index(cache)?,
        };
        if self.role == Role::Delta && !index.filter.may_contain(hash) {
            return Ok(Probe::Absent);
        }
        let Some(first) = index.first_block(order, key) else { return Ok(Probe::Absent) };
        let lookup = Lookup { order, key, hash, below, access, role: self.role, segment, index };
        let mut probe = lookup.in_block(first)?;
        let mut block = first + 1;
        // Seeded: a get finds no version that lies in the second block of its key.
        bug!("run_versions_in_next_block_missed", return Ok(probe));
        while matches!(probe, Probe::Absent) && index.continues(order, block, key) {
            probe = lookup.in_block(block)?;
            block += 1;
        }
        Ok(probe)
    }

    /// The newest sequence number less than `below` of a range tombstone that covers `key`, 0 if
    /// there is none. `None`: what is needed is not in memory.
    #[inline]
    pub fn tombstone_seq<O: KeyOrder>(
        &self,
        order: &O,
        key: &[u8],
        below: Seq,
        access: Access<'_>,
    ) -> Result<Option<Seq>> {
        let mut newest = 0;
        for segment in &self.tombstones {
            let fragments = match (segment.fragments_cached(), access) {
                (Some(fragments), _) => fragments,
                (None, Access::Cached(_)) => return Ok(None),
                (None, Access::Read) => segment.fragments(order)?,
            };
            // Seeded: of several lists of range deletes in a run only the last counts.
            bug!("run_last_tombstone_list_counts", newest = 0);
            newest = newest.max(fragments.covering_seq(order, key, below));
        }
        Ok(Some(newest))
    }
}

/// A lookup that has found its segment.
struct Lookup<'a, 'g, O> {
    order: &'a O,
    key: &'a [u8],
    hash: u64,
    below: Seq,
    access: Access<'g>,
    role: Role,
    segment: &'g Segment,
    index: &'g Index,
}

impl<'g, O: KeyOrder> Lookup<'_, 'g, O> {
    #[inline]
    fn in_block(&self, i: usize) -> Result<Probe<'g>> {
        let block = match self.access {
            Access::Cached(guard) => match self.index.slots.get(i, guard) {
                Some(view) => {
                    view.prefetch();
                    view.touch();
                    BlockRef::Epoch(view)
                }
                None if self.excluded() => return Ok(Probe::Absent),
                None => return Ok(Probe::NeedsIo),
            },
            Access::Read => match self.pin(i)? {
                Some(pin) => BlockRef::Pinned(pin),
                None => return Ok(Probe::Absent),
            },
        };
        let found = {
            let block = block.block();
            let found = block.get(self.order, self.key, tag_of(self.hash), self.below);
            found.map(|entry| (block.version(entry), block.value_range(entry)))
        };
        let Some(((seq, kind), range)) = found else { return Ok(Probe::Absent) };
        Ok(Probe::Found(Found { seq, kind, block, range }))
    }

    /// Whether the filter of a base, which was not checked before, says that the key is absent, so
    /// that no I/O is needed.
    fn excluded(&self) -> bool {
        self.role == Role::Base && !self.index.filter.may_contain(self.hash)
    }

    #[cold]
    fn pin(&self, i: usize) -> Result<Option<FramePin>> {
        if let Some(pin) = self.index.slots.pin(i) {
            pin.view().touch();
            self.index.slots.cache().count_hit();
            return Ok(Some(pin));
        }
        if self.excluded() {
            return Ok(None);
        }
        self.segment.block(self.index, i).map(Some)
    }
}
