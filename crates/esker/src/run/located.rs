//! Where a key would be: the first half of a lookup, so that the halves of several lookups can interleave.
//!
//! A lookup waits for memory several times, each time for an address that the last wait gave. [`Run::locate`] goes as
//! far as the block, [`Located::prefetch`] starts to fetch its frame, and [`Located::get`] looks into it: a caller that
//! does each for many keys before the next waits for all of them at once (`lookup/together.rs`).

use super::get::{Access, Probe, Wanted};
use super::index::Index;
use super::segment::Segment;
use super::{Role, Run};
use crate::base::KeyOrder;
use crate::error::Result;
use crate::sync::Guard;
use crate::trace::Plain;
use std::sync::Arc;

/// What a run's index in memory says about a key.
pub enum Location<'g> {
    /// The run has no version of the key; whether its filter said so.
    Absent(bool),
    /// It may have one, and only a search of its own tells.
    Unknown,
    /// The index of the segment that may have one is not in memory.
    Unread(&'g Arc<Segment>),
    /// If it has one, it is there.
    Block(Located<'g>),
}

/// The block in which a run has a key, if it has it.
#[derive(Clone, Copy)]
pub struct Located<'g> {
    pub(super) run: &'g Run,
    pub(super) segment: &'g Arc<Segment>,
    pub(super) index: &'g Index,
    pub(super) block: usize,
    /// Whether a filter said that the run may have the key.
    pub filtered: bool,
}

impl Run {
    /// Finds the block of a key in an index that is in memory, and starts to fetch what leads to its frame.
    #[inline]
    pub fn locate<'g, O: KeyOrder>(
        &'g self,
        order: &O,
        wanted: Wanted<'_>,
        guard: &'g Guard,
    ) -> Location<'g> {
        // Seeded: range deletes in runs hide nothing from reads of several keys.
        if !self.tombstones.is_empty() && !bug!("run_range_deletes_not_located") {
            return Location::Unknown;
        }
        self.locate_entry(order, wanted, guard)
    }

    /// The same, though range tombstones of the run may hide the entry.
    #[inline]
    pub(super) fn locate_entry<'g, O: KeyOrder>(
        &'g self,
        order: &O,
        wanted: Wanted<'_>,
        guard: &'g Guard,
    ) -> Location<'g> {
        let Some(segment) = self.fences.find(order, wanted.key) else {
            return Location::Absent(false);
        };
        let segment = &self.segments[segment];
        let Some(index) = segment.index_cached(guard) else { return Location::Unread(segment) };
        let filtered = wanted.asks_filter_of(self.role) && !index.filter.is_empty();
        if filtered && !index.filter.may_contain(wanted.hash) {
            return Location::Absent(true);
        }
        let Some(block) = index.first_block(order, wanted.key) else {
            return Location::Absent(false);
        };
        index.slots.prefetch(block);
        Location::Block(Located { run: self, segment, index, block, filtered })
    }
}

impl<'g> Located<'g> {
    /// Starts to fetch the block's frame.
    #[inline]
    pub fn prefetch(&self) {
        self.index.slots.prefetch_frame(self.block);
    }

    /// Whether it is in memory, at this moment.
    #[inline]
    pub fn is_cached(&self) -> bool {
        !self.index.slots.is_vacant(self.block)
    }

    /// Whether nothing older than the run can have the key.
    pub fn is_base(&self) -> bool {
        self.run.role == Role::Base
    }

    /// The second half of [`Run::get`], without I/O.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn get<O: KeyOrder>(
        &self,
        order: &O,
        wanted: Wanted<'_>,
        guard: &'g Guard,
    ) -> Result<Probe<'g>> {
        let (Self { segment, index, block, filtered, .. }, access) = (*self, Access::Cached(guard));
        self.run.get_from(order, wanted, access, (segment, index, block, filtered), &mut Plain)
    }
}
