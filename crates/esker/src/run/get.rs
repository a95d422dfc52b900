//! Point reads of a run.

use super::index::Index;
use super::pieces::Pieces;
use super::segment::Segment;
use super::{Role, Run};
use crate::base::{KeyOrder, Kind, Seq};
use crate::block::{Block, tag_of};
use crate::cache::{BlockCache, FramePin, FrameView};
use crate::error::Result;
use crate::sync::Guard;
use crate::trace::{FilterAnswer, Outcome, Purpose, Recorder};
use std::sync::Arc;

/// How a lookup may get its data.
#[derive(Debug, Clone, Copy)]
pub enum Access<'g> {
    /// Only what is in memory, under an epoch; never any I/O.
    Cached(&'g Guard),
    /// Reads what is missing. Do not use it inside an epoch.
    Read,
    /// As [`Access::Read`], but a value in pieces stays where it is.
    Pieces,
}

/// A block that stays readable for `'g`.
#[derive(Debug)]
pub enum BlockRef<'g> {
    /// An epoch protects it.
    Epoch(FrameView<'g>),
    /// A reference count protects it.
    Pinned(FramePin),
    /// Its value is in pieces, which were not read: the block has what stands before the reference.
    Pieces(Box<(FramePin, Pieces)>),
}

impl BlockRef<'_> {
    /// The block.
    #[inline]
    pub fn block(&self) -> Block<'_> {
        match self {
            Self::Epoch(view) => view.block(),
            Self::Pinned(pin) => pin.block(),
            Self::Pieces(held) => held.0.block(),
        }
    }

    /// Its bytes.
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Epoch(view) => view.bytes(),
            Self::Pinned(pin) => pin.bytes(),
            Self::Pieces(held) => held.0.bytes(),
        }
    }

    /// The value in pieces that was found.
    pub fn pieces(&self) -> Option<&Pieces> {
        match self {
            Self::Pieces(held) => Some(&held.1),
            Self::Epoch(_) | Self::Pinned(_) => None,
        }
    }

    /// One more pin of the block, which outlives the epoch.
    pub fn pin(&self) -> FramePin {
        match self {
            Self::Epoch(view) => view.pin(),
            Self::Pinned(pin) => pin.view().pin(),
            Self::Pieces(held) => held.0.view().pin(),
        }
    }

    /// A pin of the block, which outlives the epoch.
    pub fn into_pin(self) -> FramePin {
        match self {
            Self::Epoch(view) => view.pin(),
            Self::Pinned(pin) => pin,
            Self::Pieces(held) => held.0,
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
        &self.block.bytes()[self.range.0..self.range.1]
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

/// What a lookup looks for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'k> {
    /// The key.
    pub key: &'k [u8],
    /// `base::codec::hash_key(key)` (any number with a custom comparator).
    pub hash: u64,
    /// Versions with smaller sequence numbers count.
    pub below: Seq,
    /// The key is probably absent: the filter of a base is asked first, as that of a delta always is.
    pub doubtful: bool,
}

impl Wanted<'_> {
    /// Whether the filter of a run in this role is asked before its index.
    #[inline]
    pub(super) fn asks_filter_of(&self, role: Role) -> bool {
        role == Role::Delta || self.doubtful
    }
}

impl Run {
    /// The newest version of the wanted key. Range tombstones are not applied.
    #[inline(always)]
    pub fn get<'g, O: KeyOrder, T: Recorder>(
        &'g self,
        order: &O,
        wanted: Wanted<'_>,
        access: Access<'g>,
        cache: &Arc<BlockCache>,
        recorder: &mut T,
    ) -> Result<Probe<'g>> {
        let Some(segment) = self.fences.find(order, wanted.key) else {
            recorder.reason(Outcome::OutsideSegments);
            return Ok(Probe::Absent);
        };
        let segment = &*self.segments[segment];
        if T::RECORDS {
            recorder.segment(segment.meta().file, segment.meta().offset);
        }
        match access {
            Access::Cached(guard) => match segment.index_cached(guard) {
                Some(index) => self.get_in(segment, index, order, wanted, access, recorder),
                None => Ok(Probe::NeedsIo),
            },
            Access::Read | Access::Pieces => {
                let index = segment.index(cache, Purpose::Get)?;
                self.get_in(segment, &index, order, wanted, access, recorder)
            }
        }
    }

    /// [`Self::get`] in the segment that may have the key.
    #[inline(always)]
    fn get_in<'g, O: KeyOrder, T: Recorder>(
        &self,
        segment: &Segment,
        index: &Index,
        order: &O,
        wanted: Wanted<'_>,
        access: Access<'g>,
        recorder: &mut T,
    ) -> Result<Probe<'g>> {
        let filtered = wanted.asks_filter_of(self.role) && !index.filter.is_empty();
        if filtered && !index.filter.may_contain(wanted.hash) {
            recorder.filter(FilterAnswer::Absent);
            recorder.reason(Outcome::FilterAbsent);
            return Ok(Probe::Absent);
        }
        let Some(first) = index.first_block(order, wanted.key) else { return Ok(Probe::Absent) };
        self.get_from(order, wanted, access, (segment, index, first, filtered), recorder)
    }

    /// [`Self::get`] from the first block on that may have the key; whether a filter let the lookup pass.
    #[inline(always)]
    pub(super) fn get_from<'g, O: KeyOrder, T: Recorder>(
        &self,
        order: &O,
        wanted: Wanted<'_>,
        access: Access<'g>,
        (segment, index, first, filtered): (&Segment, &Index, usize, bool),
        recorder: &mut T,
    ) -> Result<Probe<'g>> {
        let mut lookup =
            Lookup { order, wanted, access, role: self.role, segment, index, filtered, recorder };
        let mut probe = lookup.in_block(first)?;
        let mut block = first + 1;
        // Seeded: a get finds no version that lies in the second block of its key.
        bug!("run_versions_in_next_block_missed", return Ok(probe));
        while matches!(probe, Probe::Absent) && index.continues(order, block, wanted.key) {
            probe = lookup.in_block(block)?;
            block += 1;
        }
        lookup.judge_filter(&probe);
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
                (None, Access::Read | Access::Pieces) => segment.fragments(order)?,
            };
            // Seeded: of several lists of range deletes in a run only the last counts.
            bug!("run_last_tombstone_list_counts", newest = 0);
            newest = newest.max(fragments.covering_seq(order, key, below));
        }
        Ok(Some(newest))
    }
}

/// A lookup that has found its segment.
struct Lookup<'a, 'g, O, T> {
    order: &'a O,
    wanted: Wanted<'a>,
    access: Access<'g>,
    role: Role,
    segment: &'a Segment,
    index: &'a Index,
    /// Whether a filter let the lookup pass.
    filtered: bool,
    recorder: &'a mut T,
}

impl<'g, O: KeyOrder, T: Recorder> Lookup<'_, 'g, O, T> {
    #[inline]
    fn in_block(&mut self, i: usize) -> Result<Probe<'g>> {
        let block = match self.access {
            Access::Cached(guard) => match self.index.slots.get(i, guard) {
                Some(view) => {
                    view.prefetch();
                    view.touch();
                    self.recorder.cached_block();
                    BlockRef::Epoch(view)
                }
                None if self.excluded() => return Ok(Probe::Absent),
                None => return Ok(Probe::NeedsIo),
            },
            Access::Read | Access::Pieces => match self.pin(i)? {
                Some(pin) => BlockRef::Pinned(pin),
                None => return Ok(Probe::Absent),
            },
        };
        let Wanted { key, hash, below, .. } = self.wanted;
        let (numbering, below) = (self.index.numbering, self.index.numbering.bound(below));
        let found = {
            let block = block.block();
            let found = block.get(self.order, key, tag_of(hash), below);
            if T::RECORDS {
                self.recorder.compared(block.compared(key, tag_of(hash), found));
            }
            found.map(|entry| (block.version(entry), block.value_range(entry)))
        };
        let Some(((stored, kind), range)) = found else { return Ok(Probe::Absent) };
        let seq = numbering.seq(stored);
        if kind.is_separated() {
            return self.separated((seq, kind), &block, range);
        }
        Ok(Probe::Found(Found { seq, kind, block, range }))
    }

    /// Goes on to the value of an entry that refers to one.
    #[cold]
    fn separated(
        &mut self,
        (seq, kind): (Seq, Kind),
        block: &BlockRef<'_>,
        range: (usize, usize),
    ) -> Result<Probe<'g>> {
        let stored = &block.bytes()[range.0..range.1];
        let (reference, values) = self.segment.referred(kind, stored)?;
        let cache = self.index.slots.cache();
        let block = match self.access {
            Access::Cached(_) if reference.is_in_pieces() => return Ok(Probe::NeedsIo),
            Access::Pieces if reference.is_in_pieces() => {
                let head = kind.joined().value_bytes_min();
                let (values, cache) = (values.clone(), cache.clone());
                let pieces = Pieces { values, reference, cache, head: head as u32 };
                let block = BlockRef::Pieces(Box::new((block.pin(), pieces)));
                let (kind, range) = (kind.joined(), (range.0, range.0 + head));
                return Ok(Probe::Found(Found { seq, kind, block, range }));
            }
            Access::Cached(guard) => {
                let Some(index) = values.index_cached(guard) else { return Ok(Probe::NeedsIo) };
                let block = values.value_block(reference, index)?;
                let Some(view) = index.slots.get(block, guard) else { return Ok(Probe::NeedsIo) };
                view.touch();
                self.recorder.cached_block();
                BlockRef::Epoch(view)
            }
            Access::Read | Access::Pieces => {
                BlockRef::Pinned(values.load_value(reference, cache, Purpose::Get)?)
            }
        };
        let range = values.value_in(reference, block.block())?;
        Ok(Probe::Found(Found { seq, kind: kind.joined(), block, range }))
    }

    /// Says what the filter that let the lookup pass was worth.
    #[inline]
    fn judge_filter(&mut self, probe: &Probe<'_>) {
        if !self.filtered {
            return;
        }
        match probe {
            Probe::Found(_) => self.recorder.filter(FilterAnswer::Found),
            Probe::Absent => {
                self.recorder.filter(FilterAnswer::FalsePositive);
                self.recorder.reason(Outcome::FalsePositive);
            }
            Probe::NeedsIo => {}
        }
    }

    /// Whether the filter of a base, which was not checked before, says that the key is absent, so
    /// that no I/O is needed.
    fn excluded(&mut self) -> bool {
        let filter = &self.index.filter;
        if self.role != Role::Base || filter.is_empty() || self.filtered {
            return false;
        }
        self.filtered = filter.may_contain(self.wanted.hash);
        if !self.filtered {
            self.recorder.filter(FilterAnswer::Absent);
            self.recorder.reason(Outcome::FilterAbsent);
        }
        !self.filtered
    }

    #[cold]
    fn pin(&mut self, i: usize) -> Result<Option<FramePin>> {
        if let Some(pin) = self.index.slots.pin(i) {
            pin.view().touch();
            self.index.slots.cache().count_hit();
            return Ok(Some(pin));
        }
        if self.excluded() {
            return Ok(None);
        }
        self.segment.block(self.index, i, Purpose::Get).map(Some)
    }
}
