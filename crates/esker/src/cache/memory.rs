//! Where frames, and the slices of indexes, get their memory from.
//!
//! Most blocks have about the same size. Frames of a size that many have come from *chunks*, which are
//! huge pages if the cache is large enough, so that a new frame costs no page faults of its own and a
//! lookup few misses of the TLB. All frames of a chunk take the same number of bytes. Where the chunks of
//! memtables have the same size, both come from one pool ([`ChunkPool`]). Other frames come from the
//! allocator. Frames are freed by other threads than those that made them, and in another order, which an
//! allocator answers with memory that nobody uses; so a small cache has chunks too.
//!
//! Indexes and filters have chunks of their own ([`super::slice`]). An index has several slices, and those of a large
//! tree come and go at random: the allocator then keeps up to twice their bytes in free parts of its heaps, and
//! another heap for each thread (docs/decisions/0023). Where there are many, their chunks are parts of huge pages
//! (docs/decisions/0034): a lookup touches four or five lines of an index, each in another page.
//!
//! 1. A cache is much larger than a chunk, and chunks are made only for a size whose frames fill
//!    several, so free parts of chunks stay a small share of what is in use.
//! 2. A chunk without frames goes back to the pool, except the only one of its size that has room. One of slices goes
//!    back to the system, but for a few that wait for the next size.
//! 3. Free frames are taken from the chunk that had one freed last, so the others can become empty.
//!    The queues of the cache evict about in the order of insertion, so frames that were made
//!    together leave together. Indexes are evicted at random, and a cache that shrinks has free pieces in every chunk:
//!    where these come to more than a part of the capacity, and the cache has all that it may have
//!    ([`Habits`](super::chunks::Habits)), the system gets their pages.
//! 4. The bytes of a frame behind its header are initialised: those of a chunk are, nothing is in a free frame, and a
//!    chunk that goes back has zeroes where a header may have left bytes without a value.
//! 5. A frame that is read once has memory that its thread has just used for another one, if it is not large: it is in the
//!    processor's caches, and needs no lock. Each thread keeps one piece, of no database, until it ends.
//!
//! The scheme is that of slab allocators (`chunks.rs`).
#![allow(unsafe_code, reason = "takes memory from mappings and from the allocator")]

#[cfg(all(target_os = "linux", not(loom)))]
use super::chunks::{Chunks, OF_FRAMES, OF_SLICES};
use super::counters::Total;
use super::piece::{ALIGN, Origin, Piece, SPARE_BYTES};
use super::pins::Pins;
use crate::budget::{ChunkPool, map, unmap};
#[cfg(not(loom))]
use crate::fs::ForkGuard;
use std::alloc::{self, Layout};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// At most this part of the capacity waits after it was evicted, but what is less than `RETIRED_BYTES_MIN` may.
const RETIRED: u64 = 8;
const RETIRED_BYTES_MIN: u64 = 1 << 20;
/// A cache has at least so many chunks (invariant 1).
#[cfg(all(target_os = "linux", not(loom)))]
const CHUNKS_MIN: u64 = 80;
/// A chunk has at least so many bytes; a smaller cache has none.
#[cfg(all(target_os = "linux", not(loom)))]
const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// The same for slices, which have more sizes.
#[cfg(all(target_os = "linux", not(loom)))]
const SLICE_CHUNKS_MIN: u64 = 160;
#[cfg(all(target_os = "linux", not(loom)))]
const SLICE_CHUNK_BYTES_MIN: u64 = 32 << 10;

/// What is in no chunk has a mapping of its own from so many bytes on: a mapping costs some microseconds, and page
/// faults.
const MAPPED_MIN: usize = 16 << 10;

thread_local! {
    /// The memory of the last frame that this thread freed and that was read once (invariant 5).
    static SPARE: Cell<Option<Spare>> = const { Cell::new(None) };
}

/// Memory of [`SPARE_BYTES`] that nobody uses.
struct Spare(NonNull<u8>);

impl Drop for Spare {
    fn drop(&mut self) {
        let piece = Piece { start: self.0, asked: SPARE_BYTES, origin: Origin::Allocator };
        // SAFETY: it comes from `alone`, and whoever made this object does not use it any more.
        unsafe { free_alone(piece) };
    }
}

/// The memory of the frames of one cache.
#[derive(Debug)]
pub struct FrameMemory {
    allocated: Total,
    /// What of it was evicted and waits until no reader can use it.
    retired: Total,
    retired_max: u64,
    /// Here, so that a block which outlives its database still has its account.
    pins: Pins,
    /// The same for the question whether it may be freed in this process.
    #[cfg(not(loom))]
    fork: ForkGuard,
    #[cfg(all(target_os = "linux", not(loom)))]
    chunks: Option<Chunks>,
    #[cfg(all(target_os = "linux", not(loom)))]
    of_slices: Option<Chunks>,
}

impl FrameMemory {
    /// The memory for a cache of this capacity.
    pub(super) fn new(capacity: u64, _pool: &Arc<ChunkPool>) -> Self {
        #[cfg(all(target_os = "linux", not(loom)))]
        let chunks = |habits, parts, least, pool| {
            let bytes = capacity / parts;
            (bytes >= least).then(|| Chunks::new(habits, bytes, pool))
        };
        let memory = Self {
            allocated: Total::new(0),
            retired: Total::new(0),
            retired_max: (capacity / RETIRED).max(RETIRED_BYTES_MIN),
            pins: Pins::new(capacity),
            #[cfg(not(loom))]
            fork: ForkGuard::new(),
            #[cfg(all(target_os = "linux", not(loom)))]
            chunks: chunks(OF_FRAMES, CHUNKS_MIN, CHUNK_BYTES_MIN, Some(_pool)),
            #[cfg(all(target_os = "linux", not(loom)))]
            of_slices: chunks(OF_SLICES, SLICE_CHUNKS_MIN, SLICE_CHUNK_BYTES_MIN, None),
        };
        memory.set_capacity(capacity);
        memory
    }

    /// The cache keeps about so many bytes.
    pub(super) fn set_capacity(&self, _bytes: u64) {
        #[cfg(all(target_os = "linux", not(loom)))]
        for chunks in [&self.chunks, &self.of_slices].into_iter().flatten() {
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

    /// The account of what iterators hold.
    pub(super) fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Whether this is a forked child of the process that made it.
    #[cfg(not(loom))]
    pub(super) fn is_forked(&self) -> bool {
        self.fork.forked()
    }

    /// The bytes of all frames.
    pub fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    /// Bytes of free pieces of chunks that are resident.
    pub(super) fn unused(&self) -> u64 {
        #[cfg(all(target_os = "linux", not(loom)))]
        return [&self.chunks, &self.of_slices].into_iter().flatten().map(Chunks::unused).sum();
        #[cfg(not(all(target_os = "linux", not(loom))))]
        0
    }

    /// Frames or indexes of so many bytes were evicted, and wait.
    pub(super) fn retire(&self, bytes: u64) {
        self.retired.fetch_add(bytes, Ordering::Relaxed);
    }

    /// They wait no longer.
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
        let piece = self.try_chunk(bytes).unwrap_or_else(|| alone(bytes));
        self.allocated.fetch_add(piece.bytes() as u64, Ordering::Relaxed);
        if piece.origin != Origin::Chunk {
            self.count_other(piece.bytes() as u64, true);
        }
        piece
    }

    /// As [`Self::allocate`], for a frame that is read once and freed soon (invariant 5).
    pub(super) fn allocate_once(&self, bytes: usize) -> Piece {
        if cfg!(loom) || bytes > SPARE_BYTES {
            return self.allocate(bytes);
        }
        self.allocated.fetch_add(SPARE_BYTES as u64, Ordering::Relaxed);
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        let start = match spare.map(ManuallyDrop::new) {
            Some(spare) => spare.0,
            None => alone(SPARE_BYTES).start,
        };
        Piece { start, asked: bytes, origin: Origin::Spare }
    }

    /// # Safety
    /// The piece comes from `allocate` or `allocate_once` of the same object, and nobody uses it any more.
    pub(super) unsafe fn free(&self, piece: Piece) {
        self.allocated.fetch_sub(piece.bytes() as u64, Ordering::Relaxed);
        if piece.origin == Origin::Spare {
            let spare = Spare(piece.start);
            // Where the thread is at its end, the memory is freed at once.
            let _ = SPARE.try_with(|kept| kept.set(Some(spare)));
            return;
        }
        #[cfg(all(target_os = "linux", not(loom)))]
        if let Some(chunks) = &self.chunks {
            // SAFETY: as the caller promises.
            unsafe { chunks.free(piece) };
        }
        if piece.origin != Origin::Chunk {
            self.count_other(piece.bytes() as u64, false);
            // SAFETY: it has its memory alone, and nobody uses it any more.
            unsafe { free_alone(piece) };
        }
    }

    /// At least so many bytes for a slice, more than none, aligned to [`ALIGN`]. Whoever owns the index counts them.
    pub(super) fn allocate_slice(&self, bytes: usize) -> Piece {
        #[cfg(all(target_os = "linux", not(loom)))]
        if let Some(piece) = self.of_slices.as_ref().and_then(|chunks| chunks.allocate(bytes)) {
            return piece;
        }
        alone(bytes)
    }

    /// # Safety
    /// The piece comes from `allocate_slice` of the same object, and nobody uses it any more.
    pub(super) unsafe fn free_slice(&self, piece: Piece) {
        #[cfg(all(target_os = "linux", not(loom)))]
        if let Some(chunks) = self.of_slices.as_ref().filter(|_| piece.origin == Origin::Chunk) {
            // SAFETY: as the caller promises.
            unsafe { chunks.free(piece) };
            return;
        }
        // SAFETY: it has its memory alone, and nobody uses it any more.
        unsafe { free_alone(piece) };
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
        self.chunks.as_ref().map_or(0, Chunks::mapped)
    }

    /// Bytes of chunks of slices, and what of them is resident.
    #[cfg(all(test, target_os = "linux", not(loom)))]
    pub(super) fn mapped_for_slices(&self) -> (usize, usize) {
        self.of_slices.as_ref().map_or((0, 0), |chunks| (chunks.mapped(), chunks.touched()))
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN).expect("blocks are bounded far below the address space")
}

/// A piece of zeroes that is in no chunk. What is large has a mapping, so that its memory goes back to the system at
/// once, whatever the allocator keeps around it.
pub(super) fn alone(bytes: usize) -> Piece {
    if bytes >= MAPPED_MIN
        && let Some(start) = map(bytes)
    {
        return Piece { start, asked: bytes, origin: Origin::Mapping };
    }
    let layout = layout(bytes);
    // SAFETY: the size is not zero.
    let start = unsafe { alloc::alloc_zeroed(layout) };
    match NonNull::new(start) {
        Some(start) => Piece { start, asked: bytes, origin: Origin::Allocator },
        None => alloc::handle_alloc_error(layout),
    }
}

/// # Safety
/// The piece comes from [`alone`], and nobody uses it any more.
pub(super) unsafe fn free_alone(piece: Piece) {
    match piece.origin {
        // SAFETY: as the caller promises.
        Origin::Mapping => unsafe { unmap(piece.start, piece.asked) },
        // Under the model checker the memory stays allocated, so that the checker detects a later use.
        Origin::Allocator if !cfg!(loom) => {
            // SAFETY: it was allocated with this very layout.
            unsafe { alloc::dealloc(piece.start.as_ptr(), layout(piece.asked)) }
        }
        Origin::Chunk | Origin::Allocator | Origin::Spare => {}
    }
}
