//! Slots: where a segment's index finds the frames of its blocks.
//!
//! A slot holds the address of a frame, which is even, or an odd number: nothing is loaded, and
//! the number tells when a frame left the small queue unused (1: never).
#![allow(unsafe_code, reason = "frames are read through pointers that an epoch keeps valid")]

use super::frame::Header;
use super::{BlockCache, FrameBuf, FramePin, FrameView};
use crate::error::Result;
use crate::sync::primitives::{AtomicPtr, Ordering};
use crate::sync::{Guard, pin};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// One slot per block of a segment.
///
/// Frames hold their slots alive, so the owner of the slots calls [`Slots::clear`] in the end.
pub struct Slots {
    cache: Arc<BlockCache>,
    slots: Box<[AtomicPtr<Header>]>,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("len", &self.slots.len()).finish_non_exhaustive()
    }
}

fn is_frame(pointer: *mut Header) -> bool {
    pointer.addr() & 1 == 0
}

impl Slots {
    /// `count` empty slots of `cache`.
    pub fn new(cache: &Arc<BlockCache>, count: usize) -> Arc<Self> {
        let empty = || AtomicPtr::new(ptr::without_provenance_mut(1));
        Arc::new(Self { cache: Arc::clone(cache), slots: (0..count).map(|_| empty()).collect() })
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
    pub fn get<'g>(&'g self, i: usize, _guard: &'g Guard) -> Option<FrameView<'g>> {
        let pointer = self.slots[i].load(Ordering::Acquire);
        if !is_frame(pointer) {
            return None;
        }
        let frame = NonNull::new(pointer)?;
        // SAFETY: a frame in a slot is in a queue (invariant 1), and the queue's reference is
        // dropped only after a grace period (invariant 2), which cannot end before `'g` does.
        Some(unsafe { FrameView::new(frame) })
    }

    /// A pin of block `i`, if it is cached.
    pub fn pin(&self, i: usize) -> Option<FramePin> {
        let guard = pin();
        self.get(i, &guard).map(FrameView::pin)
    }

    /// A pin of block `i`, which `read` provides if it is not cached. At most one thread reads a
    /// block at a time. Must not be called inside an epoch, because it does I/O.
    pub fn load(
        self: &Arc<Self>,
        i: usize,
        read: impl FnOnce() -> Result<FrameBuf>,
    ) -> Result<FramePin> {
        self.cache.load(self, i, read)
    }

    /// Offers a block that was read ahead; the pin is of the offered frame.
    pub fn offer(self: &Arc<Self>, i: usize, frame: FrameBuf) -> FramePin {
        self.cache.insert(self, i, frame)
    }

    /// Takes all frames out of the cache. No thread may load blocks of these slots any more.
    pub fn clear(&self) {
        self.cache.remove_all(self);
    }

    pub(super) fn address(&self, i: usize) -> usize {
        ptr::from_ref(&self.slots[i]).addr()
    }

    /// The odd number of an empty slot.
    pub(super) fn vacancy(&self, i: usize) -> Option<u64> {
        let pointer = self.slots[i].load(Ordering::Relaxed);
        (!is_frame(pointer)).then(|| pointer.addr() as u64)
    }

    /// Puts a frame into an empty slot; under the shard's lock.
    pub(super) fn publish(&self, i: usize, frame: &FramePin) {
        self.slots[i].store(frame.pointer(), Ordering::Release);
    }

    /// Empties a slot, leaving an odd number; under the shard's lock.
    pub(super) fn vacate(&self, i: usize, ghost: u64) {
        self.slots[i].store(ptr::without_provenance_mut(ghost as usize | 1), Ordering::Release);
    }

    /// Empties a slot and tells where its frame stands in the queues; under the shard's lock.
    pub(super) fn take(&self, i: usize, guard: &Guard) -> Option<u64> {
        let position = self.get(i, guard)?.position();
        self.vacate(i, 1);
        Some(position)
    }
}
