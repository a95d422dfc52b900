//! The cache itself: its shards, its locks for single flights, and its counters.
//!
//! A block comes in through `load` or `insert`, which put its frame into a slot and into a queue
//! under the lock of the slot's shard; it leaves when the shard evicts it or its segment goes.

use super::counters::{Counters, ReadStats, Total};
use super::frame::{FrameBuf, FramePin, Slot};
use super::indexes::IndexEntry;
use super::memory::FrameMemory;
use super::pins::Pins;
use super::shard::{Item, Leaving, Shard};
use super::slice::Slice;
use crate::budget::{Buffers, ChunkPool};
use crate::error::Result;
use crate::sync::primitives::Mutex;
use crate::sync::{Gates, KnownGates, Point, pin};
use crate::trace::Purpose;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes of capacity per shard: a smaller shard is not worth its lock.
const SHARD_BYTES: u64 = 16 << 20;
const SHARDS_MAX: u64 = 16;
/// Locks that keep two threads from reading the same block at once. Unrelated blocks that share
/// one wait for each other, which is harmless and rare.
const FLIGHTS: usize = if cfg!(loom) { 1 } else { 1024 };

/// Whether a block that was missed is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is.
    Yes,
    /// It is read once, and freed when its reader has ended.
    No,
}

/// Counters and contents of the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CacheStats {
    /// Blocks that were found.
    pub hits: u64,
    /// Blocks that were read from a file.
    pub misses: u64,
    /// Bytes of frames in the cache.
    pub bytes: u64,
    /// Bytes of frames in memory: also evicted ones that are still pinned or in use.
    pub allocated: u64,
    /// Bytes of loaded indexes and filters.
    pub index_bytes: u64,
    /// The part of these that filters take.
    pub filter_bytes: u64,
    /// Bytes read from files to fill frames.
    pub bytes_read: u64,
    /// Reads from files.
    pub reads: ReadStats,
}

/// A cache for the blocks of all runs of a database.
#[derive(Debug)]
pub struct BlockCache {
    shards: Box<[Mutex<Shard>]>,
    flights: Box<[Mutex<()>]>,
    counters: Counters,
    memory: Arc<FrameMemory>,
    index_bytes: Total,
    filter_bytes: Total,
    /// Bytes of frames that wait for their slots.
    waiting: Arc<Total>,
    capacity: Total,
    buffers: Arc<Buffers>,
    gates: KnownGates,
}

impl BlockCache {
    /// A cache that keeps about `capacity_bytes` of frames and indexes.
    pub fn new(capacity_bytes: u64) -> Self {
        Self::with_pool(capacity_bytes, &Arc::new(ChunkPool::keeping_none()))
    }

    /// As [`Self::new`], with memory from a pool where that fits.
    pub fn with_pool(capacity_bytes: u64, pool: &Arc<ChunkPool>) -> Self {
        let shards = (capacity_bytes / SHARD_BYTES).clamp(1, SHARDS_MAX);
        let waiting = Arc::<Total>::default();
        let shard = |_| Mutex::new(Shard::new(capacity_bytes / shards, &waiting, shards));
        Self {
            shards: (0..shards).map(shard).collect(),
            flights: (0..FLIGHTS).map(|_| Mutex::new(())).collect(),
            counters: Counters::default(),
            memory: Arc::new(FrameMemory::new(capacity_bytes, pool)),
            index_bytes: Total::new(0),
            filter_bytes: Total::new(0),
            waiting,
            capacity: Total::new(capacity_bytes),
            buffers: Arc::default(),
            gates: KnownGates::default(),
        }
    }

    /// The same, with the gates of its database, if there are any.
    pub fn at(self, gates: &Option<Arc<dyn Gates>>) -> Self {
        Self { gates: KnownGates::new(gates), ..self }
    }

    /// Reports where the calling thread is; a test may hold it there. It holds no lock of the cache.
    pub fn gate(&self, point: Point) {
        self.gates.pass(point);
    }

    /// The account of what is read and written past the cache.
    pub fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }

    /// Bytes of memory that waits for the next frames and indexes, and was used before.
    pub fn unused(&self) -> u64 {
        self.memory.unused()
    }

    /// Bytes of frames that wait for their slots.
    pub(super) fn waiting(&self) -> &Arc<Total> {
        &self.waiting
    }

    /// The bytes that it may keep at this moment.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// The account of what iterators hold.
    pub fn pins(&self) -> &Pins {
        self.memory.pins()
    }

    /// Changes the capacity; a smaller one takes effect at once.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.capacity.store(capacity_bytes, Ordering::Relaxed);
        for shard in &self.shards {
            let mut leaving = Leaving::default();
            shard.lock().set_capacity(capacity_bytes / self.shards.len() as u64, &mut leaving);
            self.retire(leaving);
        }
        self.memory.set_capacity(capacity_bytes);
    }

    /// Evicts everything, and keeps nothing from now on. What the blocks took is freed with the last of a chunk: who
    /// clears a cache frees all of it, and pages that went before, each for itself, would come back for that.
    pub fn clear(&self) {
        let mut leaving = Leaving::default();
        for shard in &self.shards {
            shard.lock().set_capacity(0, &mut leaving);
        }
        self.release(leaving);
    }

    /// Takes an index that was loaded, and evicts what does not fit any more.
    pub fn insert_index(&self, index: Arc<IndexEntry>) {
        let mut leaving = Leaving::default();
        self.shard_of(&index).lock().insert_index(index, &mut leaving);
        self.retire(leaving);
    }

    /// An index goes with its owner.
    pub fn remove_index(&self, index: &Arc<IndexEntry>) {
        // Seeded: indexes of segments that are gone take a part of the capacity for ever.
        bug!("cache_indexes_that_went_still_count", return);
        let mut shard = self.shard_of(index).lock();
        // If it was evicted at the same time, nothing stands at its position any more.
        shard.remove(index.position());
    }

    fn shard_of(&self, index: &Arc<IndexEntry>) -> &Mutex<Shard> {
        self.shard(Arc::as_ptr(index).addr())
    }

    /// Bytes of the indexes that are kept: those in memory without those that readers still hold.
    #[cfg(test)]
    pub fn kept_index_bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().index_bytes()).sum()
    }

    /// Where frames and slices get their memory from.
    pub fn memory(&self) -> &Arc<FrameMemory> {
        &self.memory
    }

    /// Bytes of the chunks that slices come from, and what of them is resident.
    #[cfg(all(test, target_os = "linux", not(loom)))]
    pub fn mapped_for_slices(&self) -> (usize, usize) {
        self.memory.mapped_for_slices()
    }

    /// Bytes of the chunks that frames come from.
    #[cfg(all(test, target_os = "linux", not(loom)))]
    pub fn mapped(&self) -> usize {
        self.memory.mapped()
    }

    /// The counters and contents of the cache. Exact when no thread uses it.
    pub fn stats(&self) -> CacheStats {
        let (hits, misses) = self.counters.sum();
        let reads = self.counters.reads();
        CacheStats {
            hits,
            misses,
            reads,
            bytes: self.shards.iter().map(|shard| shard.lock().frame_bytes()).sum(),
            allocated: self.memory.allocated(),
            index_bytes: self.index_bytes.load(Ordering::Relaxed),
            filter_bytes: self.filter_bytes.load(Ordering::Relaxed),
            bytes_read: reads.bytes.iter().sum(),
        }
    }

    /// A frame with room for `capacity` bytes, which is not in the cache yet. They have any value.
    pub fn frame(&self, capacity: usize) -> FrameBuf {
        FrameBuf::new(capacity, &self.memory)
    }

    /// The same for a block that was just missed.
    pub fn frame_for(&self, kept: Kept, capacity: usize) -> FrameBuf {
        match kept {
            Kept::Yes => self.frame(capacity),
            Kept::No => FrameBuf::once(capacity, &self.memory),
        }
    }

    /// Counts a block that was found.
    #[inline]
    pub fn count_hit(&self) {
        self.counters.hit();
    }

    /// Counts a read of a file.
    pub fn count_read(&self, purpose: Purpose, bytes: u64, took: Duration) {
        self.counters.read(purpose, bytes, took);
    }

    /// Counts the memory of an index that was loaded, and what of it is a filter.
    pub fn charge_index(&self, bytes: u64, filter: u64) {
        self.index_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.memory.count_index(bytes, true);
        self.filter_bytes.fetch_add(filter, Ordering::Relaxed);
    }

    /// Takes back what [`Self::charge_index`] counted.
    pub fn discharge_index(&self, bytes: u64, filter: u64) {
        self.index_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.count_index(bytes, false);
        self.filter_bytes.fetch_sub(filter, Ordering::Relaxed);
    }

    fn shard(&self, address: usize) -> &Mutex<Shard> {
        &self.shards[spread(address) % self.shards.len()]
    }

    /// Puts a frame into slot `i` which a reader will ask for next, unless it cannot be kept.
    pub(super) fn insert_ahead(
        &self,
        slots: &Arc<Slice<Slot>>,
        i: usize,
        frame: FrameBuf,
    ) -> FramePin {
        // Seeded: most blocks that a scan reads ahead are read again when it comes to them.
        let sampled = bug!("cache_blocks_read_ahead_are_sampled");
        let (pin, leaving) = self.insert(slots, i, frame, |shard, size| match sampled {
            true => shard.admits(&slots[i], size),
            false => shard.may_keep(size),
        });
        // The scan is alone with the block that it wants (`load`), so no test may hold it here.
        self.release(leaving);
        pin
    }

    /// Puts a frame into slot `i`, unless the slot is taken, its shard does not want a frame of its size, or much that
    /// was evicted before it still waits for readers.
    /// The frame can be used either way. The caller retires what has to leave for it.
    fn insert(
        &self,
        slots: &Arc<Slice<Slot>>,
        i: usize,
        frame: FrameBuf,
        wants: impl FnOnce(&mut Shard, u64) -> bool,
    ) -> (FramePin, Leaving) {
        let shard = self.shard(slots[i].address());
        let mut leaving = Leaving::default();
        if self.memory.is_full_of_retired() || !wants(&mut shard.lock(), frame.size()) {
            return (frame.share(None), leaving);
        }
        let pin = frame.share(Some((Arc::clone(slots), i as u32)));
        let mut shard = shard.lock();
        if let Some(ghost) = slots[i].vacancy() {
            shard.insert(pin.clone(), ghost, &mut leaving);
            slots[i].publish(&pin);
        }
        shard.shrink(&mut leaving);
        drop(shard);
        (pin, leaving)
    }

    /// Puts a frame into slot `i` if the shard has room for it and the slot is free.
    pub(super) fn insert_to_room(&self, slots: &Arc<Slice<Slot>>, i: usize, frame: FrameBuf) {
        let shard = self.shard(slots[i].address());
        // Seeded: what is written evicts what is read.
        let any = bug!("cache_written_blocks_evict");
        if self.memory.is_full_of_retired() {
            return;
        }
        let pin = frame.share(Some((Arc::clone(slots), i as u32)));
        let mut leaving = Leaving::default();
        {
            let mut shard = shard.lock();
            if (any || shard.room() >= pin.size() && shard.may_keep(pin.size()))
                && let Some(ghost) = slots[i].vacancy()
            {
                // There is room, whatever has begun to wait for its slots since.
                match any {
                    true => shard.insert(pin.clone(), ghost, &mut leaving),
                    false => shard.add(pin.clone(), ghost),
                }
                slots[i].publish(&pin);
            }
        }
        self.retire(leaving);
    }

    /// Whether the shard of a slot has room for more than a few blocks, and takes them now.
    pub(super) fn has_much_room(&self, slot: &Slot) -> bool {
        !self.memory.is_full_of_retired() && self.shard(slot.address()).lock().has_much_room()
    }

    /// The bytes that fit without an eviction.
    pub fn room(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().room()).sum()
    }

    /// The block of slot `i`, of about so many bytes, read by `read` if it is not there. Not to be called inside an
    /// epoch.
    ///
    /// Whether the block is kept is decided before it is read: what is not kept is read without a lock, and into
    /// memory that no other processor has used last.
    pub(super) fn load(
        &self,
        slots: &Arc<Slice<Slot>>,
        i: usize,
        bytes: u64,
        read: impl FnOnce(Kept) -> Result<FrameBuf>,
    ) -> Result<FramePin> {
        if let Some(pin) = slots[i].pin() {
            self.counters.hit();
            return Ok(pin);
        }
        if !self.admits(&slots[i], bytes) {
            self.counters.miss();
            return read(Kept::No).map(FrameBuf::detached);
        }
        let flight = self.flights[spread(slots[i].address()) % FLIGHTS].lock();
        if let Some(pin) = slots[i].pin() {
            self.counters.hit();
            return Ok(pin);
        }
        self.counters.miss();
        let frame = read(Kept::Yes)?;
        let (pin, leaving) = self.insert(slots, i, frame, |shard, size| shard.may_keep(size));
        // Others find the block from here on, and need not wait until what left for it is retired.
        drop(flight);
        self.retire(leaving);
        Ok(pin)
    }

    /// Whether a block of about so many bytes that was missed is kept.
    fn admits(&self, slot: &Slot, bytes: u64) -> bool {
        !self.memory.is_full_of_retired() && self.shard(slot.address()).lock().admits(slot, bytes)
    }

    /// Whether an index that was read is kept, so that others find it (invariant 3 of the module above).
    pub fn keeps_indexes(&self) -> bool {
        !self.memory.is_full_of_retired()
    }

    /// Evicts indexes, and drops the references to frames after a grace period (invariant 2). The caller
    /// holds no lock, and a test may hold it.
    fn retire(&self, leaving: Leaving) {
        if !leaving.frames.is_empty() {
            self.gate(Point::BlocksLeave);
        }
        if !leaving.evicted.is_empty() {
            self.gate(Point::IndexLeaves);
        }
        self.release(leaving);
    }

    /// The same, but no test may hold the caller. No lock of a shard is held.
    fn release(&self, leaving: Leaving) {
        let Leaving { frames, evicted, seen } = leaving;
        let mut indexes = evicted.iter().map(|(_, bytes)| bytes).sum();
        // Seeded: evicted indexes take any amount of memory while some reader is not scheduled.
        bug!("cache_evicted_indexes_without_bound", indexes = 0);
        evicted.iter().for_each(|(owner, _)| owner.evict());
        drop((evicted, seen));
        if frames.is_empty() && indexes == 0 {
            return;
        }
        // Two functions: what one of them captures fits in the collector's bag, without memory of its own.
        let guard = pin();
        if indexes > 0 {
            let memory = Arc::clone(&self.memory);
            memory.retire(indexes);
            guard.defer(move || memory.release(indexes));
        }
        if !frames.is_empty() {
            frames.iter().for_each(FramePin::retire);
            guard.defer(move || frames.into_iter().for_each(FramePin::release));
        }
        guard.flush();
    }

    /// Removes every frame of `slots`: their segment goes away.
    pub(super) fn remove_all(&self, slots: &[Slot]) {
        let mut leaving = Leaving::default();
        // Entering an epoch may drop values that other threads retired, segments among them, and so
        // call this function again: this thread must hold no lock then. Entering the epoch a second
        // time, below, drops nothing.
        let guard = pin();
        for slot in slots {
            if slot.vacancy().is_some() {
                continue;
            }
            let mut shard = self.shard(slot.address()).lock();
            // The frame may have been evicted before the lock was taken.
            if let Some(position) = slot.take(&guard)
                && let Some(Item::Frame(frame)) = shard.remove(position)
            {
                leaving.frames.push(frame);
            }
        }
        drop(guard);
        // Whoever drops a segment may hold any lock of the database.
        self.release(leaving);
    }
}

/// Mixes the address of a slot. Slots are 8 bytes apart, and neighbours should get different
/// shards.
fn spread(address: usize) -> usize {
    ((address as u64 >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
}
