//! The memory of one memtable: chunks that are filled from front to back and freed together.
//!
//! An allocation is one `fetch_add` on the fill mark of the present chunk. Only a thread that
//! reaches its end takes a lock, to install the next chunk. Chunks start small, so that a keyspace
//! with three entries costs three pages. The largest come from a pool ([`ChunkPool`]) and are huge pages,
//! or less where a set of memtables is small, so that little of a set's memory is never used: a search in a
//! large memtable touches a different page with nearly every node, and small pages would add a TLB miss to
//! each cache miss. From 128 KiB on, smaller ones have mappings of their own: what an allocator is given back in large
//! pieces makes it keep more of what it has free (docs/decisions/0023).
//!
//! Invariants:
//! 1. A byte range is handed out once; its memory stays in place until the arena is dropped.
//! 2. `current` points to a chunk that `chunks` owns.
//! 3. What is written to an arena has no byte that is not initialised (see [`ChunkPool`]).

use crate::budget::{self, ChunkPool, map, unmap};
use parking_lot::Mutex;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The alignment of every allocation.
pub(super) const ALIGN: usize = 8;
const CHUNK_ALIGN: usize = 64;
const FIRST_CHUNK: usize = 16 << 10;
/// From this size on, chunks of the arena itself are mapped. What is alone in its chunk is not: a value would
/// cost a mapping each.
const MAPPED_FROM: usize = 128 << 10;
/// Allocations larger than this part of the largest chunks get a chunk of their own, so that they do not
/// waste the end of a chunk.
const SHARED: usize = 8;

/// Whose memory a chunk is.
enum Owner {
    Allocator,
    Mapping,
    /// The pool's, which gets it back.
    Pool(budget::Chunk),
}

struct Chunk {
    base: NonNull<u8>,
    len: usize,
    owner: Owner,
    /// The fill mark. It runs past the end of the chunk when allocations no longer fit.
    used: AtomicUsize,
}

/// See the head of this module.
pub(super) struct Arena {
    current: AtomicPtr<Chunk>,
    chunks: Mutex<Vec<NonNull<Chunk>>>,
    /// The bytes of all chunks but the present one.
    finished: AtomicUsize,
    pool: Arc<ChunkPool>,
    /// Bytes of the largest allocation that is not alone in its chunk.
    shared_max: usize,
}

// SAFETY: the chunks are owned by the arena and reached only through atomics and its lock; the
// memory handed out is raw, and what is stored there is the caller's business.
#[allow(unsafe_code, reason = "raw pointers to chunks are owned, as a `Box` would be")]
unsafe impl Send for Arena {}
// SAFETY: as above; `&Arena` gives access only to atomics and to the lock.
#[allow(unsafe_code, reason = "raw pointers to chunks are owned, as a `Box` would be")]
unsafe impl Sync for Arena {}

impl Arena {
    pub(super) fn new(pool: Arc<ChunkPool>) -> Self {
        let first = Self::alone(FIRST_CHUNK);
        let shared_max = pool.chunk_bytes() / SHARED;
        Self {
            current: AtomicPtr::new(first.as_ptr()),
            chunks: Mutex::new(vec![first]),
            finished: AtomicUsize::new(0),
            pool,
            shared_max,
        }
    }

    /// The bytes that were taken from the system and are in use; of the present chunk, the bytes
    /// that were handed out.
    pub(super) fn bytes(&self) -> usize {
        let (current, size) = self.current();
        let used = current.load(Ordering::Relaxed).min(size);
        self.finished.load(Ordering::Relaxed) + used
    }

    /// The bytes of all chunks.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.finished.load(Ordering::Relaxed) + self.current().1
    }

    /// Hands out `size` bytes, not initialised, at an address that is a multiple of [`ALIGN`].
    #[inline]
    pub(super) fn allocate(&self, size: usize) -> NonNull<u8> {
        let size = size.next_multiple_of(ALIGN);
        if size > self.shared_max {
            return self.allocate_alone(size);
        }
        loop {
            let current = self.current.load(Ordering::Acquire);
            if let Some(place) = Self::take(current, size) {
                return place;
            }
            self.refill(current, size);
        }
    }

    /// Moves the fill mark of `chunk`, if `size` bytes still fit.
    #[inline]
    #[allow(unsafe_code, reason = "the chunk is reached through an atomic pointer")]
    fn take(chunk: *mut Chunk, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: `chunk` was loaded from `current` of a living arena (invariant 2); chunks are
        // freed only when the arena is dropped.
        let chunk = unsafe { &*chunk };
        let offset = chunk.used.fetch_add(size, Ordering::Relaxed);
        if offset + size > chunk.len {
            return None;
        }
        // SAFETY: `offset + size` is within the chunk's allocation, as was just checked.
        Some(unsafe { chunk.base.add(offset) })
    }

    #[allow(unsafe_code, reason = "the chunk is reached through an atomic pointer")]
    fn current(&self) -> (&AtomicUsize, usize) {
        // SAFETY: invariant 2; the reference does not outlive the borrow of the arena.
        let chunk = unsafe { &*self.current.load(Ordering::Acquire) };
        (&chunk.used, chunk.len)
    }

    /// Puts the next chunk in place, unless another thread already did.
    #[cold]
    fn refill(&self, full: *mut Chunk, size: usize) {
        let mut chunks = self.chunks.lock();
        if self.current.load(Ordering::Relaxed) != full {
            return;
        }
        let (_, full_size) = self.current();
        let wanted = (full_size * 4).max(size.next_power_of_two());
        let next = match wanted >= self.pool.chunk_bytes() {
            true => Self::pooled(&self.pool),
            false => Self::mapped(wanted).unwrap_or_else(|| Self::alone(wanted)),
        };
        chunks.push(next);
        self.finished.fetch_add(full_size, Ordering::Relaxed);
        // Release: a thread that sees the pointer sees the initialised chunk.
        self.current.store(next.as_ptr(), Ordering::Release);
    }

    #[cold]
    #[allow(unsafe_code, reason = "the chunk was made here")]
    fn allocate_alone(&self, size: usize) -> NonNull<u8> {
        let chunk = Self::alone(size);
        self.chunks.lock().push(chunk);
        self.finished.fetch_add(size, Ordering::Relaxed);
        // SAFETY: the chunk was just made and is owned by `chunks`.
        unsafe { chunk.as_ref() }.base
    }

    /// A chunk of the pool.
    fn pooled(pool: &ChunkPool) -> NonNull<Chunk> {
        let Some(chunk) = pool.take() else { handle_alloc_error(Layout::new::<Chunk>()) };
        Self::chunk(chunk.start(), chunk.bytes(), Owner::Pool(chunk))
    }

    /// A chunk in a mapping of its own, if it is large enough for one and the system has it.
    fn mapped(size: usize) -> Option<NonNull<Chunk>> {
        let base = (size >= MAPPED_FROM).then(|| map(size)).flatten()?;
        Some(Self::chunk(base, size, Owner::Mapping))
    }

    /// A chunk of the allocator.
    #[allow(unsafe_code, reason = "memory that is not initialised can only be had this way")]
    fn alone(size: usize) -> NonNull<Chunk> {
        let Some(layout) = layout(size) else { handle_alloc_error(Layout::new::<Chunk>()) };
        // SAFETY: the size is not zero: it is a chunk size or larger than a part of one.
        let base = NonNull::new(unsafe { alloc(layout) });
        Self::chunk(base.unwrap_or_else(|| handle_alloc_error(layout)), size, Owner::Allocator)
    }

    fn chunk(base: NonNull<u8>, len: usize, owner: Owner) -> NonNull<Chunk> {
        let chunk = Box::new(Chunk { base, len, owner, used: AtomicUsize::new(0) });
        // From here on only the raw pointer is used, until the arena is dropped.
        NonNull::from(Box::leak(chunk))
    }
}

/// The layout of a chunk of the allocator. An invalid one needs a size near `isize::MAX`; entries are
/// limited far below (R19).
fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size, CHUNK_ALIGN).ok()
}

impl Drop for Arena {
    #[allow(unsafe_code, reason = "frees what `alone` and `mapped` took")]
    fn drop(&mut self) {
        for chunk in self.chunks.get_mut().drain(..) {
            // SAFETY: the pointer came from `Box::leak` in `Self::chunk` and is freed once, here.
            let chunk = unsafe { Box::from_raw(chunk.as_ptr()) };
            match (chunk.owner, layout(chunk.len)) {
                (Owner::Pool(pooled), _) => self.pool.give(pooled),
                // SAFETY: `mapped` mapped `base` with so many bytes, and the arena goes.
                (Owner::Mapping, _) => unsafe { unmap(chunk.base, chunk.len) },
                // SAFETY: `alone` allocated `base` with this very layout.
                (Owner::Allocator, Some(layout)) => unsafe { dealloc(chunk.base.as_ptr(), layout) },
                (Owner::Allocator, None) => {}
            }
        }
    }
}
