//! Reading separated values: for gets, for cursors, and for the writer of a compaction.
//!
//! A value segment has the form of a data segment whose blocks have one entry each, so its blocks
//! go through the same cache and checks. What contradicts a reference is corruption.

use super::index::{Index, SharedIndex};
use super::piece::Direction;
use super::reference::{ValueRef, ValueUse};
use super::segment::Segment;
use crate::base::{FileId, Kind, LaterValue};
use crate::block::Block;
use crate::cache::{BlockCache, FramePin};
use crate::error::Result;
use crate::trace::Purpose;
use std::collections::HashMap;
use std::sync::Arc;

impl Segment {
    /// The reference in an entry of this segment, and the value segment that it names.
    pub(super) fn referred(&self, kind: Kind, stored: &[u8]) -> Result<(ValueRef, &Arc<Self>)> {
        let damaged = |detail: &'static str| self.corrupt(self.meta().offset, "block", detail);
        let reference = ValueRef::decode(kind, stored).map_err(|error| damaged(error.0))?;
        let found = self.meta().values.binary_search_by_key(&reference.place(), ValueUse::place);
        let values = found.ok().and_then(|at| self.values().get(at));
        let values =
            values.ok_or_else(|| damaged("a value is in no value segment that is named"))?;
        Ok((reference, values))
    }

    /// Where the value is in a block of this value segment, which must be the one that a reference
    /// says.
    pub(super) fn value_in(&self, reference: ValueRef, block: Block<'_>) -> Result<(usize, usize)> {
        let range = block.value_range(0);
        // Seeded: a value of another length is taken for the one that a key refers to.
        let same =
            range.1 - range.0 == reference.len as usize || bug!("run_value_length_not_checked");
        if block.count() != 1 || !same {
            return Err(self.misfit("a value is not the one that its key refers to"));
        }
        Ok(range)
    }

    /// The error of a value segment that is not what a reference says.
    pub(super) fn misfit(&self, detail: &'static str) -> crate::error::Error {
        self.corrupt(self.meta().offset, "value segment", detail)
    }

    /// The number of a value's block, if this value segment has so many.
    pub(super) fn value_block(&self, reference: ValueRef, index: &Index) -> Result<usize> {
        let block = reference.block as usize;
        // Seeded: a key has the value of the key behind it.
        let block = if bug!("run_reference_to_the_next_value") { block + 1 } else { block };
        if block >= index.places.len() {
            return Err(self.misfit("a value segment has fewer values than its references say"));
        }
        Ok(block)
    }

    /// A pin of a value's block, through the cache.
    pub(super) fn load_value(
        &self,
        reference: ValueRef,
        cache: &Arc<BlockCache>,
        purpose: Purpose,
    ) -> Result<FramePin> {
        let index = self.index(cache, purpose)?;
        if reference.is_in_pieces() {
            return self.join_pieces(reference, &index, purpose);
        }
        let block = self.value_block(reference, &index)?;
        self.block(&index, block, purpose)
    }

    /// What reads the value to which an entry of this segment refers.
    pub(super) fn value_later(
        &self,
        kind: Kind,
        stored: &[u8],
        cache: &Arc<BlockCache>,
    ) -> LaterValue {
        let found = self.referred(kind, stored);
        let (found, cache) = (found.map(|(at, values)| (at, values.clone())), cache.clone());
        Box::new(move || {
            let (reference, values) = found?;
            let pin = values.load_value(reference, &cache, Purpose::Scan)?;
            let range = values.value_in(reference, pin.block())?;
            Ok(pin.bytes()[range.0..range.1].to_vec())
        })
    }

    /// The value's block, read past the cache, and where the value is in it; with the index that the caller
    /// keeps.
    fn read_value(&self, reference: ValueRef, index: &Index) -> Result<(FramePin, (usize, usize))> {
        let block = self.value_block(reference, index)?;
        let pin = self.read_block(index, block, Purpose::Compaction)?.detached();
        let range = self.value_in(reference, pin.block())?;
        Ok((pin, range))
    }
}

/// The value of the entry under a cursor, once it was asked for.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    /// Whether the value of the entry is separated.
    pub separated: bool,
    pin: Option<FramePin>,
    /// The index of the value segment that was read last, past the cache.
    index: Option<((FileId, u64), SharedIndex)>,
    /// The value that a scan in key order reads next, and how many came in that order.
    next: Option<((FileId, u64), u32)>,
    streak: usize,
}

/// How values are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'c> {
    pub cache: &'c Arc<BlockCache>,
    pub through_cache: bool,
}

impl Reading<'_> {
    /// What they are read for.
    fn purpose(&self) -> Purpose {
        if self.through_cache { Purpose::Scan } else { Purpose::Compaction }
    }
}

impl Fetched {
    /// The cursor goes to another entry.
    pub(super) fn reset(&mut self, separated: bool) {
        self.separated = separated;
        self.pin = None;
    }

    /// Lets go what it holds.
    pub(super) fn let_go(&mut self) {
        *self = Self::default();
    }

    /// The bytes of the block that holds the value, if it was read.
    #[inline]
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.pin.as_ref().map(FramePin::bytes)
    }

    /// Whether the value is there, or stands in the entry.
    pub(super) fn is_there(&self) -> bool {
        !self.separated || self.pin.is_some()
    }

    /// Bytes of memory that it holds.
    pub(super) fn held(&self) -> u64 {
        self.pin.as_ref().map_or(0, FramePin::size)
    }

    /// Reads the value to which an entry of `owner` refers; returns where it is in its block.
    pub(super) fn fetch(
        &mut self,
        owner: &Segment,
        (kind, stored): (Kind, &[u8]),
        reading: Reading<'_>,
    ) -> Result<(usize, usize)> {
        let (reference, values) = owner.referred(kind, stored)?;
        let (pin, range) = if reference.is_in_pieces() {
            let pin = values.load_value(reference, reading.cache, reading.purpose())?;
            let range = values.value_in(reference, pin.block())?;
            (pin, range)
        } else if reading.through_cache {
            let pin = self.scan(values, reference, reading)?;
            let range = values.value_in(reference, pin.block())?;
            (pin, range)
        } else {
            let index = self.index_of(values, reading.cache)?;
            values.read_value(reference, &index)?
        };
        self.pin = Some(pin);
        Ok(range)
    }

    fn index_of(&mut self, values: &Segment, cache: &Arc<BlockCache>) -> Result<SharedIndex> {
        let place = values.meta().place();
        if let Some((_, index)) = self.index.as_ref().filter(|(held, _)| *held == place) {
            return Ok(index.clone());
        }
        let index = values.index_once(cache, Purpose::Compaction)?;
        self.index = Some((place, index.clone()));
        Ok(index)
    }

    /// Reads through the cache, and ahead if values are read in their order.
    fn scan(
        &mut self,
        values: &Segment,
        reference: ValueRef,
        reading: Reading<'_>,
    ) -> Result<FramePin> {
        let index = values.index(reading.cache, Purpose::Scan)?;
        let block = values.value_block(reference, &index)?;
        let here = (reference.place(), reference.block);
        self.streak = if self.next == Some(here) { self.streak + 1 } else { 0 };
        self.next = Some((reference.place(), reference.block.saturating_add(1)));
        values.scanned_block(&index, block, (Direction::Forward, self.streak))
    }
}

/// Why the values of a value segment are written anew, which says how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueMove {
    /// Much of the value segment is dead.
    Empties,
    /// The same, and it is compressed strongly, as is where its values go.
    EmptiesCold,
    /// It is not read.
    Cools,
    /// It is compressed strongly, and read often.
    Warms,
}

impl ValueMove {
    /// Whether the values are compressed with Zstandard.
    pub fn is_strong(self) -> bool {
        matches!(self, Self::EmptiesCold | Self::Cools)
    }
}

/// The block of a value, where the value is in it, and why it is written anew.
type MovedValue = (FramePin, (usize, usize), ValueMove);

/// The value segments to which the input of a compaction refers.
#[derive(Debug, Default)]
pub struct KnownValues {
    cache: Option<Arc<BlockCache>>,
    known: HashMap<(FileId, u64), Known>,
}

#[derive(Debug)]
struct Known {
    segment: Arc<Segment>,
    /// Why its values are written anew, if they are.
    moves: Option<ValueMove>,
    index: Option<SharedIndex>,
}

impl KnownValues {
    /// Those of these data segments; `moves` says of which the values are written anew, and why.
    pub fn of<'s>(
        cache: &Arc<BlockCache>,
        segments: impl Iterator<Item = &'s Arc<Segment>>,
        moves: impl Fn(&Segment) -> Option<ValueMove>,
    ) -> Self {
        let mut known = HashMap::new();
        for segment in segments.flat_map(|segment| segment.values()) {
            let place = segment.meta().place();
            known.entry(place).or_insert_with(|| Known {
                segment: segment.clone(),
                moves: moves(segment),
                index: None,
            });
        }
        Self { cache: Some(cache.clone()), known }
    }

    /// The value segment that a reference names.
    pub(super) fn get(&self, reference: ValueRef) -> Option<&Arc<Segment>> {
        self.known.get(&reference.place()).map(|known| &known.segment)
    }

    /// The value of a reference, where it is in its block and why it is written anew, if it is. One in pieces
    /// never is.
    pub(super) fn moved(&mut self, reference: ValueRef) -> Result<Option<MovedValue>> {
        let known = self.known.get_mut(&reference.place()).filter(|_| !reference.is_in_pieces());
        let Some((known, why)) = known.and_then(|known| known.moves.map(|why| (known, why))) else {
            return Ok(None);
        };
        let Some(cache) = &self.cache else { return Ok(None) };
        let index = match &known.index {
            Some(index) => index.clone(),
            None => {
                let index = known.segment.index_once(cache, Purpose::Compaction)?;
                known.index.insert(index).clone()
            }
        };
        let (pin, range) = known.segment.read_value(reference, &index)?;
        Ok(Some((pin, range, why)))
    }
}
