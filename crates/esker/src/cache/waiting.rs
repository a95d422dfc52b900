//! Frames that wait for their slots: the blocks of a segment that is being written.
//!
//! The slots of a segment come into being with its index, behind its last block. Until then its frames are in no queue.
//! A segment of 1 MiB is several once it is decompressed, and each thread that flushes or compacts writes one of its own.
//!
//! 1. What waits counts as cached: the queues have so much less room. Without that, reads fill the room for which a
//!    thread has kept blocks, and a thread that is not scheduled keeps them for long.
//! 2. All that waits together is at most the room that the queues had when a segment began, without what others kept of
//!    it: so two that begin at once do not both take it. And it is at most half of the capacity, which may become
//!    smaller meanwhile.

use super::block_cache::BlockCache;
use super::frame::FrameBuf;
use super::slots::Slots;
use crate::block::Layout;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The frames of one segment.
#[derive(Debug)]
pub struct Waiting {
    cache: Arc<BlockCache>,
    frames: Vec<FrameBuf>,
    /// The room when the segment began; `None` if nothing is kept of it.
    room: Option<u64>,
}

impl Waiting {
    /// Nothing waits yet, nor is kept before [`Self::begin`].
    pub fn new(cache: &Arc<BlockCache>) -> Self {
        Self { cache: Arc::clone(cache), frames: Vec::new(), room: None }
    }

    /// The cache into which the blocks go.
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// A segment of about so many bytes begins. Without room for as much, nothing of it is kept.
    pub fn begin(&mut self, bytes: u64) {
        self.give_up();
        let room = self.cache.room();
        self.room = (room >= bytes).then(|| room + self.cache.waiting().load(Ordering::Relaxed));
    }

    /// Keeps the next block, which is not compressed. If there is no room for it, nothing of its segment is kept.
    pub fn keep(&mut self, raw: &[u8]) {
        let Some(room) = self.room else { return };
        // A block that was just built has a layout.
        let Ok(layout) = Layout::parse(raw) else { return self.give_up() };
        let mut frame = self.cache.frame(raw.len());
        let bytes = frame.size();
        let others = self.cache.waiting().fetch_add(bytes, Ordering::Relaxed);
        frame.bytes_mut().copy_from_slice(raw);
        frame.set_layout(layout);
        self.frames.push(frame);
        // Seeded: what several threads write is kept in the same room.
        let one_room = bug!("cache_written_blocks_wait_in_one_room");
        // The capacity may have become smaller since the segment began.
        if others + bytes > self.cache.capacity() / 2 || others + bytes > room && !one_room {
            self.give_up();
        }
    }

    /// The segment ends. Whether its blocks were kept, so that [`Self::offer`] has them.
    pub fn end(&mut self) -> bool {
        self.room.take().is_some()
    }

    /// The frames go into these slots, as long as there is room: frame `i` into slot `i`.
    pub fn offer(&mut self, slots: &Slots) {
        let Self { cache, frames, .. } = self;
        let last = slots.len().saturating_sub(1);
        for (i, frame) in frames.drain(..).enumerate() {
            cache.waiting().fetch_sub(frame.size(), Ordering::Relaxed);
            // Seeded: a block that was kept stands for another one of its segment.
            let i = if bug!("cache_kept_blocks_stand_in_wrong_slots") { last - i } else { i };
            if i <= last {
                slots.offer_to_room(i, frame);
            }
        }
    }

    /// Nothing of this segment is kept.
    fn give_up(&mut self) {
        self.room = None;
        let bytes = self.frames.iter().map(FrameBuf::size).sum();
        self.frames = Vec::new();
        // Seeded: what no longer waits takes room for ever.
        if !bug!("cache_frames_given_up_still_wait") {
            self.cache.waiting().fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.give_up();
    }
}
