//! The two queues of one shard of the cache, small and main: first in, first out, with a second
//! chance, and what enters them.
//!
//! Where everything that is read is kept, a read of a cold block costs an eviction, memory that no processor has seen
//! for long, and locks, and what it evicts is read again as soon. So once a shard has no room,
//!
//! 1. a block is kept at once if it was missed a short while ago (in misses of a quarter of the capacity); of the others
//!    one in [`SAMPLED`] is kept, by chance, and its slot remembers when the rest were missed;
//! 2. those that a scan reads ahead are kept until it comes to them;
//! 3. and all are kept while the queues hold what nobody reads any more: of the frames that the main queue had to give
//!    up lately, nearly none had been used since its last turn; or the small queue has more than half of the capacity,
//!    because whoever wrote blocks kept them, or they came along with others, and of those that it gave up lately few had
//!    been used since they came.

use super::counters::Total;
use super::frame::{FramePin, Slot};
use super::indexes::{IndexEntry, Resident};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// So many places behind the front, headers are fetched.
const PREFETCHED: usize = 4;
/// See [`Shard::has_much_room`].
const MUCH_ROOM: u64 = 16;
/// One of so many blocks is kept that were not missed a short while ago.
const SAMPLED: u64 = 8;
/// The capacity divided by this: bytes of misses within which a block comes back soon. Iterators hold up to a fifth
/// before they let blocks go, and read them again.
const SOON: u64 = 4;
/// The share of unused frames at the front of the main queue, out of [`WHOLE`], above which all blocks are kept.
const STALE: u32 = 15 * WHOLE / 16;
/// That of the small queue.
const UNREAD: u32 = 7 * WHOLE / 8;
const WHOLE: u32 = 1 << 16;
/// The last frame counts as much in that share as one of so many.
const STALE_OF: u32 = 64;
/// While the main queue makes all blocks be kept, each miss takes so much of its share away.
const FORGOTTEN_OF: u32 = 4096;

/// The bit of a position that tells the queue.
const MAIN: u64 = 1 << 63;

/// What stands in a queue.
#[derive(Debug)]
pub(super) enum Item {
    Frame(FramePin),
    Index(Arc<IndexEntry>),
}

impl Item {
    fn size(&self) -> u64 {
        match self {
            Self::Frame(frame) => frame.size(),
            Self::Index(index) => index.bytes,
        }
    }

    fn index_bytes(&self) -> u64 {
        match self {
            Self::Frame(_) => 0,
            Self::Index(index) => index.bytes,
        }
    }

    fn set_position(&self, position: u64) {
        match self {
            Self::Frame(frame) => frame.set_position(position),
            Self::Index(index) => index.set_position(position),
        }
    }
}

/// What has left the queues, and what must not be dropped under the lock.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    pub(super) frames: Vec<FramePin>,
    /// Owners of indexes that are evicted, with the bytes of these.
    pub(super) evicted: Vec<(Arc<dyn Resident>, u64)>,
    /// Owners of indexes that stay.
    pub(super) seen: Vec<Arc<dyn Resident>>,
}

/// A queue that supports removal from the middle: a removal leaves a hole, which stays until it
/// reaches the front or until holes outnumber what stands there.
#[derive(Debug, Default)]
struct Fifo {
    items: VecDeque<Option<Item>>,
    /// The position of the front.
    front: u64,
    holes: usize,
    bytes: u64,
    /// The part of `bytes` that indexes take.
    index_bytes: u64,
    /// The share of frames that it gave up lately and that were not used, in the small queue since they came, in the main
    /// queue since their last turn; out of [`WHOLE`].
    unused: u32,
}

impl Fifo {
    /// Counts a frame that the queue gave up.
    fn count_front(&mut self, used: bool) {
        self.unused -= self.unused / STALE_OF;
        self.unused += if used { 0 } else { WHOLE / STALE_OF };
    }

    fn push(&mut self, item: Item, queue: u64) {
        item.set_position((self.front + self.items.len() as u64) | queue);
        self.bytes += item.size();
        self.index_bytes += item.index_bytes();
        self.items.push_back(Some(item));
    }

    /// Starts to fetch what stands a little behind the front: to evict it, its header is read, which no other reader
    /// has touched for long.
    fn prefetch(&self) {
        if let Some(Some(Item::Frame(frame))) = self.items.get(PREFETCHED) {
            frame.prefetch_header();
        }
    }

    fn subtract(&mut self, item: &Item) {
        self.bytes -= item.size();
        self.index_bytes -= item.index_bytes();
    }

    fn pop(&mut self) -> Option<Item> {
        self.prefetch();
        while let Some(front) = self.items.pop_front() {
            self.front += 1;
            if let Some(item) = front {
                self.subtract(&item);
                return Some(item);
            }
            self.holes -= 1;
        }
        None
    }

    fn remove(&mut self, position: u64, queue: u64) -> Option<Item> {
        let index = usize::try_from((position & !MAIN).checked_sub(self.front)?).ok()?;
        let item = self.items.get_mut(index)?.take()?;
        self.subtract(&item);
        self.holes += 1;
        if self.holes > 32 && self.holes > self.items.len() / 2 {
            let items = std::mem::take(&mut self.items);
            (self.holes, self.bytes, self.index_bytes) = (0, 0, 0);
            items.into_iter().flatten().for_each(|item| self.push(item, queue));
        }
        Some(item)
    }
}

/// Queues and capacity of one shard.
#[derive(Debug)]
pub(super) struct Shard {
    capacity: u64,
    /// Bytes of frames that wait for their slots, of which each of so many shards has a part.
    waiting: (Arc<Total>, u64),
    small: Fifo,
    main: Fifo,
    /// Bytes that left the small queue unused, or did not enter it: the clock of the ghost queue.
    ghost_clock: u64,
    /// The state of the generator that samples blocks.
    random: u64,
}

impl Shard {
    /// One of so many shards; its share of `waiting` is not for its queues.
    pub(super) fn new(capacity: u64, waiting: &Arc<Total>, shards: u64) -> Self {
        let waiting = (Arc::clone(waiting), shards);
        // Until it has given up some, its frames count as unused.
        let small = Fifo { unused: WHOLE, ..Fifo::default() };
        let main = Fifo::default();
        Self { capacity, waiting, small, main, ghost_clock: 0, random: capacity | 1 }
    }

    /// The bytes that the queues may have.
    fn limit(&self) -> u64 {
        // Seeded: what waits for its slots is memory beside that of the cache.
        bug!("cache_waiting_frames_not_counted", return self.capacity);
        let (waiting, shards) = &self.waiting;
        self.capacity.saturating_sub(waiting.load(Ordering::Relaxed) / shards)
    }

    pub(super) fn set_capacity(&mut self, capacity: u64, leaving: &mut Leaving) {
        self.capacity = capacity;
        self.shrink(leaving);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.small.bytes + self.main.bytes
    }

    /// The bytes that fit without an eviction.
    pub(super) fn room(&self) -> u64 {
        self.limit().saturating_sub(self.bytes())
    }

    /// Whether the room is more than a sixteenth of the capacity.
    pub(super) fn has_much_room(&self) -> bool {
        self.room() > self.capacity / MUCH_ROOM
    }

    /// The bytes of frames.
    pub(super) fn frame_bytes(&self) -> u64 {
        self.bytes() - self.index_bytes()
    }

    /// The bytes of indexes.
    pub(super) fn index_bytes(&self) -> u64 {
        self.main.index_bytes
    }

    /// Takes an index. Nothing leaves for what waits: those who write would make room for what they write next, again
    /// and again.
    pub(super) fn insert_index(&mut self, index: Arc<IndexEntry>, leaving: &mut Leaving) {
        self.shrink_to(self.capacity.saturating_sub(index.bytes), leaving);
        self.main.push(Item::Index(index), MAIN);
    }

    /// Whether a frame of this size may be kept: a huge one would evict everything else.
    pub(super) fn may_keep(&self, size: u64) -> bool {
        size <= self.capacity / 4
    }

    /// Whether a frame of this size that was read for this slot is kept. If not, the slot remembers its miss.
    pub(super) fn admits(&mut self, slot: &Slot, size: u64) -> bool {
        if !self.may_keep(size) {
            return false;
        }
        if size <= self.room() || self.is_stale() {
            return true;
        }
        let Some(ghost) = slot.vacancy() else { return false };
        // Seeded: a block that is missed again and again is sampled like any other.
        let soon = !bug!("cache_blocks_missed_again_are_sampled")
            && self.missed_within(ghost, self.capacity / SOON);
        if soon || self.samples() {
            return true;
        }
        self.ghost_clock += size;
        slot.vacate(self.ghost());
        false
    }

    /// Whether the queues hold what nobody reads any more. For the main queue that is found out anew, by what it gives up;
    /// it gives up nothing while blocks that are read once pass through the small queue.
    fn is_stale(&mut self) -> bool {
        // Seeded: what nobody reads any more keeps new blocks out.
        bug!("cache_stale_blocks_keep_others_out", return false);
        // Seeded: blocks that nobody has read yet keep others out.
        let many = self.small.bytes > self.capacity / 2 && !bug!("cache_unread_blocks_stay");
        // Seeded: what came along with others is replaced by whatever is read, although readers use it.
        let unread =
            many && (self.small.unused > UNREAD || bug!("cache_first_blocks_are_replaced"));
        let moved = self.main.unused > STALE;
        if moved {
            self.main.unused -= self.main.unused / FORGOTTEN_OF;
        }
        unread || moved
    }

    /// The number for a slot whose block is missing from now on.
    fn ghost(&self) -> u64 {
        self.ghost_clock << 1 | 1
    }

    /// One in [`SAMPLED`], by chance: in turn, a loop over many blocks would keep the same ones again and again.
    fn samples(&mut self) -> bool {
        // Seeded: each block that is read evicts another one.
        bug!("cache_full_keeps_all_blocks", return true);
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33).is_multiple_of(SAMPLED)
    }

    /// Whether the block whose slot held this number was missed, or left the small queue, so few bytes of misses ago.
    fn missed_within(&self, ghost: u64, bytes: u64) -> bool {
        let left = ghost >> 1;
        left != 0 && self.ghost_clock.saturating_sub(left) < bytes
    }

    /// Takes a frame whose slot held the number `ghost`.
    pub(super) fn insert(&mut self, frame: FramePin, ghost: u64, leaving: &mut Leaving) {
        // Makes room first, so that the new frame does not evict itself; the clock goes on with it.
        let came_back = self.missed_within(ghost, self.capacity);
        self.shrink_to(self.limit().saturating_sub(frame.size()), leaving);
        self.push(frame, came_back);
    }

    /// Takes a frame for which there is room, and whose slot held the number `ghost`.
    pub(super) fn add(&mut self, frame: FramePin, ghost: u64) {
        let came_back = self.missed_within(ghost, self.capacity);
        self.push(frame, came_back);
    }

    fn push(&mut self, frame: FramePin, came_back: bool) {
        if came_back {
            self.main.push(Item::Frame(frame), MAIN);
        } else {
            self.small.push(Item::Frame(frame), 0);
        }
    }

    /// Evicts until everything fits.
    pub(super) fn shrink(&mut self, leaving: &mut Leaving) {
        self.shrink_to(self.limit(), leaving);
    }

    fn shrink_to(&mut self, limit: u64, leaving: &mut Leaving) {
        while self.bytes() > limit {
            let from_small = self.small.bytes > self.capacity / 10 || self.main.bytes == 0;
            let queue = if from_small { &mut self.small } else { &mut self.main };
            let frame = match queue.pop() {
                Some(Item::Frame(frame)) => frame,
                Some(Item::Index(index)) => {
                    self.judge(index, leaving);
                    continue;
                }
                None => return,
            };
            // A used frame gets another round. Each round clears a bit that only readers set, so
            // this ends.
            let used = frame.take_used();
            queue.count_front(used);
            if used {
                self.main.push(Item::Frame(frame), MAIN);
                continue;
            }
            let mut ghost = 1;
            if from_small {
                self.ghost_clock += frame.size();
                ghost = self.ghost();
            }
            if let Some(slot) = frame.home() {
                slot.vacate(ghost);
            }
            leaving.frames.push(frame);
        }
    }

    /// Gives a used index another round, and evicts others.
    fn judge(&mut self, index: Arc<IndexEntry>, leaving: &mut Leaving) {
        let Some(owner) = index.owner.upgrade() else { return };
        // Seeded: indexes stay loaded once they were read.
        if bug!("cache_indexes_are_never_evicted") {
            leaving.seen.push(owner);
        } else if owner.take_used() {
            leaving.seen.push(owner);
            self.main.push(Item::Index(index), MAIN);
        } else {
            leaving.evicted.push((owner, index.bytes));
        }
    }

    pub(super) fn remove(&mut self, position: u64) -> Option<Item> {
        if position & MAIN != 0 {
            self.main.remove(position, MAIN)
        } else {
            self.small.remove(position, 0)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
