//! Where frames get their memory from.
//!
//! Most blocks have about the same size. Frames of a size that many have come from *chunks*, which are
//! huge pages if the cache is large enough, so that a new frame costs no page faults of its own and a
//! lookup few misses of the TLB. All frames of a chunk take the same number of bytes. Where the chunks of
//! memtables have the same size, both come from one pool ([`ChunkPool`]). Other frames come from the
//! allocator. Frames are freed by other threads than those that made them, and in another order, which an
//! allocator answers with memory that nobody uses; so a small cache has chunks too.
//!
//! 1. A cache is much larger than a chunk, and chunks are made only for a size whose frames fill
//!    several, so free parts of chunks stay a small share of what is in use.
//! 2. A chunk without frames goes back to the pool, except the only one of its size that has room.
//! 3. Free frames are taken from the chunk that had one freed last, so the others can become empty.
//!    The queues of the cache evict about in the order of insertion, so frames that were made
//!    together leave together.
//! 4. The bytes of a frame behind its header are initialised: those of a chunk are, only the header's part
//!    of a free frame is used for anything else, and a chunk that goes back has zeroes there.
//!
//! The scheme is that of slab allocators (Bonwick, USENIX 1994).
#![allow(unsafe_code, reason = "takes memory from mappings and from the allocator")]

use super::counters::Total;
use crate::budget::ChunkPool;
use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The alignment of frames.
pub(super) const ALIGN: usize = 64;
/// The header of a frame has at most so many bytes.
pub(super) const HEADER_BYTES_MAX: usize = 2 * ALIGN;

/// At most this part of the capacity waits after it was evicted, but what is less than `RETIRED_BYTES_MIN` may.
const RETIRED: u64 = 8;
const RETIRED_BYTES_MIN: u64 = 1 << 20;
/// A cache has at least so many chunks (invariant 1).
const CHUNKS_MIN: u64 = 80;
/// A chunk has at least so many bytes; a smaller cache has none.
#[cfg(all(target_os = "linux", not(loom)))]
const CHUNK_BYTES_MIN: u64 = 64 << 10;

/// The memory of the frames of one cache.
#[derive(Debug)]
pub(super) struct FrameMemory {
    allocated: Total,
    /// What of it was evicted and waits until no reader can use it.
    retired: Total,
    retired_max: u64,
    #[cfg(all(target_os = "linux", not(loom)))]
    chunks: Option<chunks::Chunks>,
}

/// Memory of one frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) start: NonNull<u8>,
    /// What was asked for.
    pub(super) asked: usize,
    pub(super) in_chunk: bool,
}

impl Piece {
    /// What it takes: at least what was asked for.
    pub(super) fn bytes(self) -> usize {
        #[cfg(all(target_os = "linux", not(loom)))]
        if self.in_chunk {
            return chunks::rounded(self.asked);
        }
        self.asked
    }
}

impl FrameMemory {
    /// The memory for a cache of this capacity.
    pub(super) fn new(capacity: u64, _pool: &Arc<ChunkPool>) -> Self {
        let _chunk_bytes = capacity / CHUNKS_MIN;
        let memory = Self {
            allocated: Total::new(0),
            retired: Total::new(0),
            retired_max: (capacity / RETIRED).max(RETIRED_BYTES_MIN),
            #[cfg(all(target_os = "linux", not(loom)))]
            chunks: (_chunk_bytes >= CHUNK_BYTES_MIN)
                .then(|| chunks::Chunks::new(_chunk_bytes, _pool)),
        };
        memory.set_capacity(capacity);
        memory
    }

    /// The cache keeps about so many bytes.
    pub(super) fn set_capacity(&self, _bytes: u64) {
        #[cfg(all(target_os = "linux", not(loom)))]
        if let Some(chunks) = &self.chunks {
            chunks.set_capacity(_bytes);
        }
    }

    /// An index of so many bytes came, or went: it takes a part of the capacity.
    pub(super) fn count_index(&self, _bytes: u64, _came: bool) {
        #[cfg(all(target_os = "linux", not(loom)))]
        if let Some(chunks) = &self.chunks {
            chunks.count_index(_bytes, _came);
        }
    }

    fn count_other(&self, _bytes: u64, _came: bool) {
        #[cfg(all(target_os = "linux", not(loom)))]
        if let Some(chunks) = &self.chunks {
            chunks.count_other(_bytes, _came);
        }
    }

    /// The bytes of all frames.
    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    /// Frames of so many bytes were evicted, and wait.
    pub(super) fn retire(&self, bytes: u64) {
        self.retired.fetch_add(bytes, Ordering::Relaxed);
    }

    /// These frames wait no longer.
    pub(super) fn release(&self, bytes: u64) {
        self.retired.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether so much waits that nothing should be evicted now. A model has too few frames for that.
    pub(super) fn is_full_of_retired(&self) -> bool {
        // Seeded: evicted blocks take any amount of memory while some reader is not scheduled.
        bug!("cache_retired_blocks_without_bound", return false);
        !cfg!(loom) && self.retired.load(Ordering::Relaxed) > self.retired_max
    }

    /// At least so many bytes, more than none, aligned to [`ALIGN`]. Those behind the first
    /// [`ALIGN`] are initialised (invariant 4).
    pub(super) fn allocate(&self, bytes: usize) -> Piece {
        let piece = self.try_chunk(bytes).unwrap_or_else(|| by_allocator(bytes));
        self.allocated.fetch_add(piece.bytes() as u64, Ordering::Relaxed);
        if !piece.in_chunk {
            self.count_other(piece.bytes() as u64, true);
        }
        piece
    }

    /// # Safety
    /// The piece comes from `allocate` of the same object, and nobody uses it any more.
    pub(super) unsafe fn free(&self, piece: Piece) {
        self.allocated.fetch_sub(piece.bytes() as u64, Ordering::Relaxed);
        #[cfg(all(target_os = "linux", not(loom)))]
        if let Some(chunks) = &self.chunks {
            // SAFETY: as the caller promises.
            unsafe { chunks.free(piece) };
        }
        if !piece.in_chunk {
            self.count_other(piece.bytes() as u64, false);
            // Under the model checker the memory stays allocated, so that the checker detects a
            // later use.
            #[cfg(not(loom))]
            // SAFETY: it was allocated with this very layout.
            unsafe {
                alloc::dealloc(piece.start.as_ptr(), layout(piece.asked));
            }
        }
    }

    #[cfg(all(target_os = "linux", not(loom)))]
    fn try_chunk(&self, bytes: usize) -> Option<Piece> {
        self.chunks.as_ref()?.allocate(bytes)
    }

    #[cfg(not(all(target_os = "linux", not(loom))))]
    fn try_chunk(&self, _bytes: usize) -> Option<Piece> {
        None
    }

    /// Bytes of chunks.
    #[cfg(all(test, target_os = "linux", not(loom)))]
    pub(super) fn mapped(&self) -> usize {
        self.chunks.as_ref().map_or(0, chunks::Chunks::mapped)
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN).expect("blocks are bounded far below the address space")
}

fn by_allocator(bytes: usize) -> Piece {
    let layout = layout(bytes);
    // SAFETY: the size is not zero.
    let start = unsafe { alloc::alloc_zeroed(layout) };
    match NonNull::new(start) {
        Some(start) => Piece { start, asked: bytes, in_chunk: false },
        None => alloc::handle_alloc_error(layout),
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
mod chunks {
    use super::{ALIGN, HEADER_BYTES_MAX, Piece};
    use crate::budget::{self, ChunkPool};
    use parking_lot::Mutex;
    use std::ptr::NonNull;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    /// A huge page.
    const CHUNK_BYTES_MAX: usize = 2 << 20;
    /// Frames of one size that come from the allocator before the first chunk, in chunks.
    const CHUNKS_BEFORE: usize = 4;
    /// A chunk has at least so many frames, so that little of it is lost at its end.
    const FRAMES_MIN: usize = 8;
    /// A size is rounded up to one of 16 steps between powers of two.
    const STEPS: usize = 16;
    /// The powers: frames of more than 1 KiB and up to 64 KiB come from chunks.
    const POWERS: std::ops::Range<usize> = 10..16;

    /// The chunks of each size.
    #[derive(Debug)]
    pub(super) struct Chunks {
        /// Bytes of a chunk, a power of two.
        bytes: usize,
        /// Where they come from, if its chunks have this size.
        pool: Option<Arc<ChunkPool>>,
        /// How many there are.
        count: AtomicUsize,
        /// Bytes that the cache keeps, and what else it has than chunks: indexes, and other frames.
        capacity: AtomicU64,
        others: AtomicU64,
        classes: [Mutex<Class>; STEPS * (POWERS.end - POWERS.start)],
    }

    /// The chunks of one size.
    #[derive(Debug, Default)]
    struct Class {
        /// Those with room.
        open: Vec<OpenChunk>,
        /// How many there are.
        count: usize,
        /// Bytes of frames of this size that came from the allocator.
        elsewhere: usize,
    }

    /// A chunk is only used under the lock of its class.
    #[derive(Debug)]
    struct OpenChunk(NonNull<Chunk>);

    // SAFETY: whoever has the class has its chunks.
    unsafe impl Send for OpenChunk {}

    /// The first bytes of a chunk.
    #[repr(C, align(64))]
    struct Chunk {
        /// Frames that were freed.
        free: Option<NonNull<Free>>,
        /// Frames at the end that were never used.
        fresh: usize,
        /// Frames in use.
        used: usize,
        /// Where it stands in `Class::open`, or `FULL`.
        place: usize,
    }

    const FULL: usize = usize::MAX;

    /// A free frame.
    struct Free {
        next: Option<NonNull<Free>>,
    }

    fn class_of(bytes: usize) -> Option<usize> {
        let log = bytes.checked_sub(1)?.checked_ilog2()? as usize;
        let steps = (bytes - 1) >> log.checked_sub(STEPS.ilog2() as usize)?;
        POWERS.contains(&log).then(|| (log - POWERS.start) * STEPS + steps - STEPS)
    }

    fn class_bytes(class: usize) -> usize {
        let log = class / STEPS + POWERS.start;
        (class % STEPS + STEPS + 1) << (log - STEPS.ilog2() as usize)
    }

    /// The bytes of a frame in a chunk that was asked for with so many.
    pub(super) fn rounded(asked: usize) -> usize {
        class_of(asked).map_or(asked, class_bytes)
    }

    impl Chunks {
        /// Chunks of at most so many bytes.
        pub(super) fn new(most: u64, pool: &Arc<ChunkPool>) -> Self {
            let most = usize::try_from(most).unwrap_or(CHUNK_BYTES_MAX).clamp(1, CHUNK_BYTES_MAX);
            let bytes = 1 << most.ilog2();
            let pool = Some(pool).filter(|pool| pool.chunk_bytes() == bytes).cloned();
            Self {
                bytes,
                pool,
                count: AtomicUsize::new(0),
                capacity: AtomicU64::new(0),
                others: AtomicU64::new(0),
                classes: std::array::from_fn(|_| Mutex::default()),
            }
        }

        pub(super) fn allocate(&self, asked: usize) -> Option<Piece> {
            let class = class_of(asked)?;
            let bytes = class_bytes(class);
            if frames(self.bytes, bytes) < FRAMES_MIN {
                return None;
            }
            let mut class = self.classes[class].lock();
            if class.open.is_empty() {
                if class.count == 0 && class.elsewhere < CHUNKS_BEFORE * self.bytes {
                    class.elsewhere += bytes;
                    return None;
                }
                let Some(memory) = self.take() else {
                    class.elsewhere += bytes;
                    return None;
                };
                class.count += 1;
                class.push(Chunk::begin(memory, bytes));
            }
            let start = class.take(self.bytes, bytes)?;
            Some(Piece { start, asked, in_chunk: true })
        }

        /// # Safety
        /// The piece was allocated here, or was asked for here and then came from the allocator, and
        /// nobody uses it any more.
        pub(super) unsafe fn free(&self, piece: Piece) {
            let Some(class) = class_of(piece.asked) else { return };
            let bytes = class_bytes(class);
            let mut class = self.classes[class].lock();
            if piece.in_chunk {
                // SAFETY: as the caller promises; it is of this class, whose lock is held.
                let empty = unsafe { class.put_back(self.bytes, piece.start) };
                drop(class);
                if let Some(chunk) = empty {
                    // SAFETY: no frame of it is in use, and its class does not have it any more.
                    unsafe { self.give(chunk, bytes) };
                }
            } else {
                class.elsewhere = class.elsewhere.saturating_sub(bytes);
            }
        }

        /// The cache keeps about so many bytes.
        pub(super) fn set_capacity(&self, bytes: u64) {
            self.capacity.store(bytes, Ordering::Relaxed);
            self.tell();
        }

        /// An index of so many bytes came, or went.
        pub(super) fn count_index(&self, bytes: u64, came: bool) {
            self.count_other(bytes, came);
            self.tell();
        }

        /// A frame of so many bytes came from the allocator, or went.
        pub(super) fn count_other(&self, bytes: u64, came: bool) {
            match came {
                true => self.others.fetch_add(bytes, Ordering::Relaxed),
                false => self.others.fetch_sub(bytes, Ordering::Relaxed),
            };
        }

        fn take(&self) -> Option<budget::Chunk> {
            let Some(pool) = &self.pool else { return budget::Chunk::new(self.bytes) };
            let chunk = pool.take_for_cache()?;
            self.count.fetch_add(1, Ordering::Relaxed);
            self.tell();
            Some(chunk)
        }

        /// Gives a chunk back of which no frame is in use.
        ///
        /// # Safety
        /// Nobody uses the chunk or a frame of it any more. Its frames have `bytes`.
        unsafe fn give(&self, chunk: NonNull<Chunk>, bytes: usize) {
            // SAFETY: as the caller promises.
            let memory = unsafe { Chunk::end(chunk, (self.bytes, bytes), self.pool.is_some()) };
            if let Some(pool) = &self.pool {
                self.count.fetch_sub(1, Ordering::Relaxed);
                self.tell();
                pool.give(memory);
            }
        }

        /// Tells the pool how many chunks the cache may still have.
        fn tell(&self) {
            let load = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
            let room = || {
                let chunks = (self.count.load(Ordering::Relaxed) * self.bytes) as u64;
                let taken = chunks + load(&self.others);
                let room = load(&self.capacity).saturating_sub(taken) / self.bytes as u64;
                usize::try_from(room).unwrap_or(usize::MAX)
            };
            if let Some(pool) = &self.pool {
                pool.set_room_of_cache(room);
            }
        }

        #[cfg(test)]
        pub(super) fn mapped(&self) -> usize {
            self.classes.iter().map(|class| class.lock().count * self.bytes).sum()
        }
    }

    impl Class {
        fn push(&mut self, mut chunk: NonNull<Chunk>) {
            // SAFETY: chunks are used under the lock of their class, which the caller holds.
            unsafe { chunk.as_mut() }.place = self.open.len();
            self.open.push(OpenChunk(chunk));
        }

        fn remove(&mut self, place: usize) {
            self.open.swap_remove(place);
            if let Some(moved) = self.open.get_mut(place) {
                // SAFETY: as in `push`.
                unsafe { moved.0.as_mut() }.place = place;
            }
        }

        /// A free frame of the last open chunk.
        fn take(&mut self, chunk_bytes: usize, bytes: usize) -> Option<NonNull<u8>> {
            let place = self.open.len().checked_sub(1)?;
            let start = self.open[place].0;
            // SAFETY: as in `push`.
            let chunk = unsafe { &mut *start.as_ptr() };
            let frame = match chunk.free {
                Some(free) => {
                    // SAFETY: what is in the list was written by `put_back` and is in no other use.
                    let next = unsafe { free.as_ref() }.next;
                    // Seeded: two blocks share the memory of one frame.
                    chunk.free =
                        if bug!("cache_one_frame_for_two_blocks") { Some(free) } else { next };
                    free.cast()
                }
                None => {
                    let frames = frames(chunk_bytes, bytes);
                    let at = size_of::<Chunk>() + (frames - chunk.fresh) * bytes;
                    chunk.fresh -= 1;
                    // SAFETY: an open chunk without freed frames has fresh ones, the last of which
                    // ends inside the mapping.
                    unsafe { start.cast::<u8>().add(at) }
                }
            };
            chunk.used += 1;
            if chunk.free.is_none() && chunk.fresh == 0 {
                chunk.place = FULL;
                self.open.pop();
            }
            Some(frame)
        }

        /// Returns the frame's chunk if it has no more frames and the class does not keep it.
        ///
        /// # Safety
        /// The frame is one of a chunk of this class, and nobody uses it any more.
        unsafe fn put_back(
            &mut self,
            chunk_bytes: usize,
            frame: NonNull<u8>,
        ) -> Option<NonNull<Chunk>> {
            let inside = frame.addr().get() % chunk_bytes;
            // SAFETY: chunks are aligned to their size, so this is the begin of the frame's.
            let start = unsafe { frame.sub(inside) }.cast::<Chunk>();
            // SAFETY: as in `push`.
            let chunk = unsafe { &mut *start.as_ptr() };
            let free = frame.cast::<Free>();
            // SAFETY: the frame is aligned for it, large enough, and not used.
            unsafe { free.write(Free { next: chunk.free }) };
            chunk.free = Some(free);
            chunk.used -= 1;
            let (place, used) = (chunk.place, chunk.used);
            if place == FULL {
                self.push(start);
            } else if used == 0 && self.open.len() > 1 {
                self.remove(place);
                self.count -= 1;
                return Some(start);
            }
            None
        }
    }

    /// The frames of a chunk.
    fn frames(chunk_bytes: usize, bytes: usize) -> usize {
        (chunk_bytes - size_of::<Chunk>()) / bytes
    }

    impl Drop for Chunks {
        fn drop(&mut self) {
            for class in 0..self.classes.len() {
                let open = std::mem::take(&mut self.classes[class].get_mut().open);
                for chunk in open {
                    // SAFETY: each frame keeps this object alive, so no chunk has any.
                    unsafe { self.give(chunk.0, class_bytes(class)) };
                }
            }
        }
    }

    impl Chunk {
        /// A chunk for frames of `bytes` in this memory, which is aligned to its size.
        fn begin(memory: budget::Chunk, bytes: usize) -> NonNull<Self> {
            let fresh = frames(memory.bytes(), bytes);
            let chunk = memory.into_start().cast::<Self>();
            let head = Self { free: None, fresh, used: 0, place: FULL };
            // SAFETY: the memory is writable, aligned and large enough.
            unsafe { chunk.write(head) };
            chunk
        }

        /// The memory of a chunk. If it is used `again`, it has zeroes where a header may have left bytes
        /// without a value.
        ///
        /// # Safety
        /// Nobody uses the chunk or a frame of it any more. It has `chunk_bytes`, and frames of `bytes`.
        unsafe fn end(
            chunk: NonNull<Self>,
            (chunk_bytes, bytes): (usize, usize),
            again: bool,
        ) -> budget::Chunk {
            let start = chunk.cast::<u8>();
            for frame in (0..frames(chunk_bytes, bytes)).filter(|_| again) {
                // SAFETY: all frames lie inside the chunk, and nobody uses them.
                unsafe {
                    start.add(size_of::<Self>() + frame * bytes).write_bytes(0, HEADER_BYTES_MAX);
                }
            }
            // SAFETY: so does the head.
            unsafe { start.write_bytes(0, size_of::<Self>()) };
            // SAFETY: it was made of a chunk of so many bytes.
            unsafe { budget::Chunk::from_start(start, chunk_bytes) }
        }
    }

    const _: () = assert!(size_of::<Chunk>() == ALIGN);
}
