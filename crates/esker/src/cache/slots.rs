//! Slots: where the index of a run segment finds the frames of its blocks.
//!
//! They belong to one segment and to one cache: a block that is not there is loaded through them,
//! and the cache takes all of them out again when the segment goes.

use super::block_cache::{BlockCache, Kept};
use super::frame::{FrameBuf, FramePin, FrameView, SOUGHT_LINES, Slot};
use super::slice::Slice;
use crate::error::Result;
use crate::sync::Guard;
use std::fmt;
use std::sync::Arc;

/// Cache lines that a scan touches before the processor has seen that it goes through them: these, and keys.
const SCANNED_LINES: usize = 12;

/// One slot per block of a segment.
///
/// The cache keeps the frames until the owner of the slots calls [`Slots::clear`] in the end.
pub struct Slots {
    cache: Arc<BlockCache>,
    /// Shared with the frames, each of which knows its slot.
    slots: Arc<Slice<Slot>>,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("len", &self.slots.len()).finish_non_exhaustive()
    }
}

impl Slots {
    /// `count` empty slots of `cache`.
    pub fn new(cache: &Arc<BlockCache>, count: usize) -> Self {
        let empty = (0..count).map(|_| Slot::empty());
        let slots = Slice::collect(Some(cache.memory()), count, empty).into();
        Self { cache: Arc::clone(cache), slots }
    }

    /// Bytes of memory that they take.
    pub fn memory(&self) -> usize {
        self.slots.memory()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The cache they belong to.
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// The frame of block `i`, if it is cached, for as long as the epoch lasts.
    #[inline]
    pub fn get<'g>(&self, i: usize, guard: &'g Guard) -> Option<FrameView<'g>> {
        self.slots[i].view(guard)
    }

    /// Starts to fetch the slot of block `i`.
    #[inline]
    pub fn prefetch(&self, i: usize) {
        self.slots[i].prefetch();
    }

    /// Starts to fetch what a seek touches of block `i`, if it is cached.
    #[inline]
    pub fn prefetch_frame(&self, i: usize) {
        self.slots[i].prefetch_frame(SOUGHT_LINES);
    }

    /// Starts to fetch what a scan touches first of block `i`, if there is such a block and it is cached.
    #[inline]
    pub fn prefetch_scanned(&self, i: usize) {
        if let Some(slot) = self.slots.get(i) {
            slot.prefetch_frame(SCANNED_LINES);
        }
    }

    /// Whether block `i` is not cached, at this moment.
    pub fn is_vacant(&self, i: usize) -> bool {
        self.slots[i].vacancy().is_some()
    }

    /// Whether there is room for many more blocks like `i`.
    pub fn has_much_room(&self, i: usize) -> bool {
        self.cache.has_much_room(&self.slots[i])
    }

    /// A pin of block `i`, if it is cached.
    pub fn pin(&self, i: usize) -> Option<FramePin> {
        self.slots[i].pin()
    }

    /// A pin of block `i`, which `read` provides, with about so many bytes, if it is not cached; it is told
    /// whether the block will be kept. At most one thread at a time reads a block that is. Must not be called inside an
    /// epoch, because it does I/O.
    pub fn load(
        &self,
        i: usize,
        bytes: u64,
        read: impl FnOnce(Kept) -> Result<FrameBuf>,
    ) -> Result<FramePin> {
        self.cache.load(&self.slots, i, bytes, read)
    }

    /// Offers a block that was read ahead of its reader; the pin is of the offered frame.
    pub fn offer(&self, i: usize, frame: FrameBuf) -> FramePin {
        self.cache.insert_ahead(&self.slots, i, frame)
    }

    /// Offers a block that nobody asked for: it is kept only if there is room without an eviction.
    pub fn offer_to_room(&self, i: usize, frame: FrameBuf) {
        self.cache.insert_to_room(&self.slots, i, frame);
    }

    /// Takes all frames out of the cache. No thread may load blocks of these slots any more.
    pub fn clear(&self) {
        self.cache.remove_all(&self.slots);
    }
}
