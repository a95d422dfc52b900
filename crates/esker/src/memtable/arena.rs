//! The memory of one memtable: chunks that are filled from front to back and freed together.
//!
//! An allocation is one `fetch_add` on the fill mark of the present chunk. Only a thread that
//! reaches its end takes a lock, to install the next chunk. Chunks start small, so that a keyspace
//! with three entries costs three pages, and grow to 2 MiB, or to less where a set of memtables is small,
//! so that little of a set's memory is never used. Those of 2 MiB are aligned to that and ask for a huge page: a search in a large memtable touches a different page with nearly every
//! node, and small pages would add a TLB miss to each cache miss.
//!
//! Invariants:
//! 1. A byte range is handed out once; its memory stays in place until the arena is dropped.
//! 2. `current` points to a chunk that `chunks` owns.

use parking_lot::Mutex;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The alignment of every allocation.
pub(super) const ALIGN: usize = 8;
const FIRST_CHUNK: usize = 16 << 10;
const LAST_CHUNK: usize = 2 << 20;
/// The largest chunks have this part of a set of memtables, within `LAST_CHUNK` and this least size.
const CHUNKS_PER_SET: usize = 4;
const LAST_CHUNK_MIN: usize = 128 << 10;
/// Allocations larger than this part of the largest chunks get a chunk of their own, so that they do not
/// waste the end of a chunk.
const SHARED: usize = 8;

/// Full-size chunks of dropped tables, for the next ones.
///
/// The first user of a new chunk pays for its page faults: measured, 200 µs at once for a huge
/// page, or 2 µs every 25 entries for small pages. A database that shares one pool among its
/// memtables pays this only while it grows.
#[derive(Debug)]
pub struct ChunkPool {
    spare: Mutex<Vec<Spare>>,
    chunks_max: usize,
    /// Bytes of the largest chunks, a power of two.
    chunk_bytes: usize,
}

/// An unused chunk, owned.
#[derive(Debug)]
struct Spare(NonNull<u8>, Layout);

// SAFETY: the memory is owned by this value and nobody else knows it.
#[allow(unsafe_code, reason = "a raw pointer that is owned, as a `Box` would be")]
unsafe impl Send for Spare {}

impl Drop for Spare {
    #[allow(unsafe_code, reason = "frees what `new_chunk` allocated")]
    fn drop(&mut self) {
        // SAFETY: a spare is made only of a chunk that was allocated with this layout.
        unsafe { dealloc(self.0.as_ptr(), self.1) };
    }
}

impl ChunkPool {
    /// A pool for sets of memtables of at most `set_bytes`, which keeps at most the bytes of one set.
    pub fn new(set_bytes: usize) -> Self {
        let part = (set_bytes / CHUNKS_PER_SET).clamp(LAST_CHUNK_MIN, LAST_CHUNK);
        // Seeded: a set takes memory that it cannot use before it is sealed.
        let part = if bug!("memtable_chunks_larger_than_sets") { LAST_CHUNK } else { part };
        let chunk_bytes = 1 << part.ilog2();
        Self { spare: Mutex::default(), chunks_max: set_bytes / chunk_bytes, chunk_bytes }
    }

    /// Bytes of the chunks that wait for the next table.
    pub fn bytes(&self) -> usize {
        self.spare.lock().len() * self.chunk_bytes
    }

    fn take(&self) -> Option<NonNull<u8>> {
        let spare = ManuallyDrop::new(self.spare.lock().pop()?);
        Some(spare.0)
    }

    /// Takes a chunk in, or frees it if the pool is full.
    fn give(&self, spare: Spare) {
        let mut spares = self.spare.lock();
        if spares.len() < self.chunks_max {
            spares.push(spare);
        }
    }
}

struct Chunk {
    base: NonNull<u8>,
    layout: Layout,
    /// The fill mark. It runs past the end of the chunk when allocations no longer fit.
    used: AtomicUsize,
}

/// See the head of this module.
pub(super) struct Arena {
    current: AtomicPtr<Chunk>,
    chunks: Mutex<Vec<NonNull<Chunk>>>,
    /// The bytes of all chunks but the present one.
    finished: AtomicUsize,
    pool: Option<Arc<ChunkPool>>,
    /// Bytes of the largest chunks, and of the largest allocation that is not alone in its chunk.
    chunk_bytes: usize,
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
    pub(super) fn new(pool: Option<Arc<ChunkPool>>) -> Self {
        let first = Self::new_chunk(FIRST_CHUNK, None);
        let chunk_bytes = pool.as_ref().map_or(LAST_CHUNK, |pool| pool.chunk_bytes);
        Self {
            current: AtomicPtr::new(first.as_ptr()),
            chunks: Mutex::new(vec![first]),
            finished: AtomicUsize::new(0),
            pool,
            chunk_bytes,
            shared_max: chunk_bytes / SHARED,
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
        if offset + size > chunk.layout.size() {
            return None;
        }
        // SAFETY: `offset + size` is within the chunk's allocation, as was just checked.
        Some(unsafe { chunk.base.add(offset) })
    }

    #[allow(unsafe_code, reason = "the chunk is reached through an atomic pointer")]
    fn current(&self) -> (&AtomicUsize, usize) {
        // SAFETY: invariant 2; the reference does not outlive the borrow of the arena.
        let chunk = unsafe { &*self.current.load(Ordering::Acquire) };
        (&chunk.used, chunk.layout.size())
    }

    /// Puts the next chunk in place, unless another thread already did.
    #[cold]
    fn refill(&self, full: *mut Chunk, size: usize) {
        let mut chunks = self.chunks.lock();
        if self.current.load(Ordering::Relaxed) != full {
            return;
        }
        let (_, full_size) = self.current();
        let wanted = (full_size * 4).max(size.next_power_of_two()).min(self.chunk_bytes);
        let next = Self::new_chunk(wanted, self.pool.as_deref());
        chunks.push(next);
        self.finished.fetch_add(full_size, Ordering::Relaxed);
        // Release: a thread that sees the pointer sees the initialised chunk.
        self.current.store(next.as_ptr(), Ordering::Release);
    }

    #[cold]
    #[allow(unsafe_code, reason = "the chunk was made here")]
    fn allocate_alone(&self, size: usize) -> NonNull<u8> {
        let chunk = Self::new_chunk(size, None);
        self.chunks.lock().push(chunk);
        self.finished.fetch_add(size, Ordering::Relaxed);
        // SAFETY: the chunk was just made and is owned by `chunks`.
        unsafe { chunk.as_ref() }.base
    }

    #[allow(unsafe_code, reason = "memory that is not initialised can only be had this way")]
    fn new_chunk(size: usize, pool: Option<&ChunkPool>) -> NonNull<Chunk> {
        let align = if size == LAST_CHUNK { LAST_CHUNK } else { 64 };
        // An invalid layout needs a size near `isize::MAX`; entries are limited far below (R19).
        let Ok(layout) = Layout::from_size_align(size, align) else {
            handle_alloc_error(Layout::new::<Chunk>())
        };
        let spare = pool.filter(|pool| size == pool.chunk_bytes).and_then(ChunkPool::take);
        let base = spare.unwrap_or_else(|| {
            // SAFETY: the size is not zero: it is a chunk size or larger than a part of one.
            let base = NonNull::new(unsafe { alloc(layout) });
            let base = base.unwrap_or_else(|| handle_alloc_error(layout));
            advise_huge_page(base, size);
            base
        });
        let chunk = Box::new(Chunk { base, layout, used: AtomicUsize::new(0) });
        // From here on only the raw pointer is used, until the arena is dropped.
        NonNull::from(Box::leak(chunk))
    }
}

impl Drop for Arena {
    #[allow(unsafe_code, reason = "frees what `new_chunk` allocated")]
    fn drop(&mut self) {
        for chunk in self.chunks.get_mut().drain(..) {
            // SAFETY: the pointer came from `Box::leak` in `new_chunk` and is freed once, here.
            let chunk = unsafe { Box::from_raw(chunk.as_ptr()) };
            let full = |pool: &&Arc<ChunkPool>| chunk.layout.size() == pool.chunk_bytes;
            if let Some(pool) = self.pool.as_ref().filter(full) {
                pool.give(Spare(chunk.base, chunk.layout));
                continue;
            }
            // SAFETY: `base` was allocated with this very layout.
            unsafe { dealloc(chunk.base.as_ptr(), chunk.layout) };
        }
    }
}

/// Asks for a huge page behind a large chunk. It is advice: a refusal changes nothing.
#[allow(unsafe_code, reason = "madvise takes a raw range")]
fn advise_huge_page(base: NonNull<u8>, size: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if size == LAST_CHUNK {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is exactly one chunk that was just allocated and that nobody else
        // knows; this advice does not change what the memory holds.
        let _refused = unsafe { madvise(base.as_ptr().cast(), size, Advice::LinuxHugepage) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (base, size);
}
