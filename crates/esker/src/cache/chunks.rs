//! The chunks of [`FrameMemory`](super::memory::FrameMemory): slabs, each for pieces of one size (Bonwick, USENIX
//! 1994). Invariants 1 to 4 stand there.
#![allow(unsafe_code, reason = "takes memory from mappings and hands out pieces of it")]

use super::chunk::{Chunk, FULL, Shape};
use super::piece::{CLASSES, Origin, Piece, class_bytes, class_of};
use crate::budget::{self, ChunkPool, PAGE_BYTES};
use parking_lot::Mutex;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A huge page.
const CHUNK_BYTES_MAX: usize = 2 << 20;

/// From so many bytes of slices on, their chunks come by huge pages.
const HUGE_AFTER: usize = 4 * CHUNK_BYTES_MAX;

/// What chunks are for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Habits {
    /// Pieces of one size that come from the allocator before the first chunk, in chunks.
    before: usize,
    /// A chunk has at least so many pieces, so that little of it is lost at its end.
    least: usize,
    /// Whether the last chunk of a size stays when it has no piece.
    waits: bool,
    /// So many chunks without a piece wait for the next size that needs one, where no pool has them.
    spare: usize,
    /// Chunks of small pieces may be smaller by this divisor: they have room for about [`PIECES`].
    smaller: usize,
    /// Where a cache has all that it may have, or has no pool, free pieces that were used may take the capacity divided by
    /// this, within [`UNUSED_BYTES_MIN`] and [`UNUSED_BYTES_MAX`]; beyond that the system gets their pages. A huge page of
    /// which it gets a part is none any more, and each part interrupts all threads of the process.
    unused: u64,
}

/// See [`Habits::unused`]. The thread that frees a piece too many has all pages released.
const UNUSED_BYTES_MIN: u64 = 256 << 10;
const UNUSED_BYTES_MAX: u64 = 64 << 20;
/// A thread goes so many times over all chunks when others free pieces meanwhile.
const PASSES_MAX: usize = 3;
/// See [`Habits::smaller`].
const PIECES: usize = 8;

/// Of frames: most have a few sizes, which all of the cache goes through.
pub(super) const OF_FRAMES: Habits =
    Habits { before: 4, least: 8, waits: true, spare: 0, smaller: 1, unused: 16 };
/// Of slices: each index has several, of sizes that differ, and all of them come and go at random. A compaction does not
/// keep the indexes that it reads, so a few chunks come and go all the time.
pub(super) const OF_SLICES: Habits =
    Habits { before: 0, least: 2, waits: false, spare: 4, smaller: 8, unused: 32 };

/// The chunks of each size.
#[derive(Debug)]
pub(super) struct Chunks {
    habits: Habits,
    /// Bytes of the largest chunks, a power of two.
    bytes: usize,
    /// Where they come from, if its chunks have this size.
    pool: Option<Arc<ChunkPool>>,
    /// Those that wait where no pool has them.
    spare: Mutex<Vec<budget::Chunk>>,
    /// Bytes of all chunks where no pool has them, with those that wait.
    alone: AtomicUsize,
    /// How many there are.
    count: AtomicUsize,
    /// Bytes that the cache keeps, and what else it has than chunks: indexes, and other frames.
    capacity: AtomicU64,
    others: AtomicU64,
    /// Bytes of free pieces that are not clean, and from how many on the system gets their pages.
    unused: AtomicU64,
    release_at: AtomicU64,
    /// Bytes of clean pieces, and what of them stayed resident with the pages that they share with others.
    clean: AtomicU64,
    left: AtomicU64,
    classes: [Mutex<Class>; CLASSES],
}

/// The chunks of one size.
#[derive(Debug)]
struct Class {
    shape: Shape,
    /// Those with room.
    open: Vec<Chunk>,
    /// How many there are.
    count: usize,
    /// Bytes of frames of this size that came from the allocator.
    elsewhere: usize,
}

impl Chunks {
    /// Chunks of at most so many bytes, from a pool if its chunks have the same size.
    pub(super) fn new(habits: Habits, most: u64, pool: Option<&Arc<ChunkPool>>) -> Self {
        let most = usize::try_from(most).unwrap_or(CHUNK_BYTES_MAX).clamp(1, CHUNK_BYTES_MAX);
        let bytes = 1 << most.ilog2();
        let pool = pool.filter(|pool| pool.chunk_bytes() == bytes).cloned();
        let class = |class: usize| {
            let shape =
                Shape::new(chunk_bytes(habits, bytes, class_bytes(class)), class_bytes(class));
            Mutex::new(Class { shape, open: Vec::new(), count: 0, elsewhere: 0 })
        };
        Self {
            habits,
            bytes,
            pool,
            spare: Mutex::default(),
            alone: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            capacity: AtomicU64::new(0),
            others: AtomicU64::new(0),
            unused: AtomicU64::new(0),
            release_at: AtomicU64::new(UNUSED_BYTES_MIN),
            clean: AtomicU64::new(0),
            left: AtomicU64::new(0),
            classes: std::array::from_fn(class),
        }
    }

    pub(super) fn allocate(&self, asked: usize) -> Option<Piece> {
        let mut class = self.classes[class_of(asked)?].lock();
        let (shape, mut came) = (class.shape, false);
        if shape.pieces < self.habits.least {
            return None;
        }
        if class.open.is_empty() {
            if class.count == 0 && class.elsewhere < self.habits.before * shape.chunk {
                class.elsewhere += shape.piece;
                return None;
            }
            let Some(memory) = self.take(shape.chunk) else {
                class.elsewhere += shape.piece;
                return None;
            };
            class.count += 1;
            class.push(Chunk::begin(memory, shape));
            self.clean.fetch_add((shape.pieces * shape.piece) as u64, Ordering::Relaxed);
            came = true;
        }
        let (start, clean, left) = class.take()?;
        // Under the lock: what another thread takes off may be part of what this one adds.
        if left != 0 {
            self.left.fetch_add(left, Ordering::Relaxed);
        }
        drop(class);
        let of = if clean { &self.clean } else { &self.unused };
        of.fetch_sub(shape.piece as u64, Ordering::Relaxed);
        if came {
            self.look();
        }
        Some(Piece { start, asked, origin: Origin::Chunk })
    }

    /// # Safety
    /// The piece was allocated here, or was asked for here and then came from the allocator, and
    /// nobody uses it any more.
    pub(super) unsafe fn free(&self, piece: Piece) {
        let Some(class) = class_of(piece.asked) else { return };
        let mut class = self.classes[class].lock();
        let shape = class.shape;
        if piece.origin != Origin::Chunk {
            class.elsewhere = class.elsewhere.saturating_sub(shape.piece);
            return;
        }
        // SAFETY: as the caller promises; it is of this class, whose lock is held.
        let empty = unsafe { class.put_back(piece.start, self.habits.waits) };
        self.unused.fetch_add(shape.piece as u64, Ordering::Relaxed);
        if let Some(chunk) = empty {
            // SAFETY: the lock of the class is held, and the chunk has its shape.
            let (dirty, left) = unsafe { (chunk.dirty(shape) * shape.piece, chunk.left()) };
            let clean = shape.pieces * shape.piece - dirty;
            self.unused.fetch_sub(dirty as u64, Ordering::Relaxed);
            self.clean.fetch_sub(clean as u64, Ordering::Relaxed);
            self.left.fetch_sub(left as u64, Ordering::Relaxed);
            drop(class);
            // SAFETY: no piece of it is in use, and its class does not have it any more.
            unsafe { self.give(chunk, shape) };
        } else {
            drop(class);
            self.look();
        }
    }

    /// Lets the system have the pages of free pieces if these are too many. No lock of a class may be held.
    #[inline]
    fn look(&self) {
        let unused = self.unused.load(Ordering::Relaxed);
        if unused > self.release_at.load(Ordering::Relaxed) && self.is_over() {
            self.release();
        }
    }

    /// Whether the cache has as much memory as it may have, so that only few free pieces may wait beside it. Where no
    /// pool gives the chunks this is not known, and counts as true.
    fn is_over(&self) -> bool {
        let load = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
        // Seeded: free pieces go to the system, page by page, although the cache has not what it may have.
        let known = self.pool.is_some() && !bug!("cache_free_pieces_never_wait");
        // Seeded: free pieces wait beside a cache that has all that it may have.
        bug!("cache_free_pieces_wait_for_ever", return false);
        let resident = (self.taken() + load(&self.left)).saturating_sub(load(&self.clean));
        !known || resident > load(&self.capacity)
    }

    /// Lets the system have the pages of free pieces.
    #[cold]
    fn release(&self) {
        if self.release_at.swap(u64::MAX, Ordering::Relaxed) == u64::MAX {
            // Another thread is at it.
            return;
        }
        for pass in 1.. {
            let most = self.unused_max();
            let cleaned = self.release_all();
            let unused = self.unused.load(Ordering::Relaxed);
            // What was freed meanwhile may be too much again: other threads do not come here. Where the system takes
            // nothing, this is not tried each time.
            if cleaned > 0 && unused > most && pass < PASSES_MAX {
                continue;
            }
            let at = if unused > most { 2 * unused } else { most };
            self.release_at.store(at, Ordering::Relaxed);
            // The capacity may change meanwhile.
            if self.unused_max() == most {
                return;
            }
        }
    }

    /// Lets the system have the pages of free pieces once, and returns the bytes of pieces that are clean since.
    fn release_all(&self) -> usize {
        // Seeded: what is free in chunks that stay is resident for ever.
        bug!("cache_free_pieces_stay_resident", return 0);
        let of_class = |class: &Mutex<Class>| {
            let class = class.lock();
            class.open.iter().map(|chunk| self.release_from(chunk, class.shape)).sum::<usize>()
        };
        self.classes.iter().map(of_class).sum()
    }

    /// The same of one chunk, the lock of whose class is held.
    fn release_from(&self, chunk: &Chunk, shape: Shape) -> usize {
        // SAFETY: the lock of the class is held, and the chunk has its shape.
        let (before, cleaned, left) =
            unsafe { (chunk.left(), chunk.release(shape) * shape.piece, chunk.left()) };
        self.unused.fetch_sub(cleaned as u64, Ordering::Relaxed);
        self.clean.fetch_add(cleaned as u64, Ordering::Relaxed);
        self.left.fetch_add((left as u64).wrapping_sub(before as u64), Ordering::Relaxed);
        cleaned
    }

    /// Bytes that wait and are resident: free pieces, and chunks that nobody has.
    pub(super) fn unused(&self) -> u64 {
        let spare: usize = self.spare.lock().iter().map(budget::Chunk::bytes).sum();
        let free = self.unused.load(Ordering::Relaxed) + self.left.load(Ordering::Relaxed);
        free + spare as u64
    }

    /// Bytes of free pieces that may be resident, even where the cache has all that it may have.
    fn unused_max(&self) -> u64 {
        let most = self.capacity.load(Ordering::Relaxed) / self.habits.unused;
        most.clamp(UNUSED_BYTES_MIN, UNUSED_BYTES_MAX)
    }

    /// Bytes of chunks, and what else the cache has.
    fn taken(&self) -> u64 {
        let chunks = (self.count.load(Ordering::Relaxed) * self.bytes) as u64;
        chunks + self.others.load(Ordering::Relaxed)
    }

    /// The cache keeps about so many bytes.
    pub(super) fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Ordering::Relaxed);
        let most = self.unused_max();
        self.release_at.store(most, Ordering::Relaxed);
        self.look();
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
        if came {
            self.look();
        }
    }

    fn take(&self, chunk_bytes: usize) -> Option<budget::Chunk> {
        let Some(pool) = &self.pool else { return self.take_alone(chunk_bytes) };
        let chunk = pool.take_for_cache()?;
        self.count.fetch_add(1, Ordering::Relaxed);
        self.tell();
        Some(chunk)
    }

    /// A chunk where no pool has them. Once there are many, those of a huge page come together, so that each lookup needs
    /// less of the TLB; few would take memory that nobody uses.
    fn take_alone(&self, chunk_bytes: usize) -> Option<budget::Chunk> {
        let mut spare = self.spare.lock();
        if let Some(at) = spare.iter().position(|chunk| chunk.bytes() == chunk_bytes) {
            return Some(spare.swap_remove(at));
        }
        // Seeded: the first index takes a huge page.
        let huge = self.by_huge_pages(chunk_bytes) || bug!("cache_first_slice_takes_a_huge_page");
        let mut came = match huge {
            true => budget::Chunk::of_huge_page(chunk_bytes),
            false => budget::Chunk::new(chunk_bytes).into_iter().collect(),
        };
        self.alone.fetch_add(came.len() * chunk_bytes, Ordering::Relaxed);
        let chunk = came.pop();
        spare.append(&mut came);
        chunk
    }

    /// Whether chunks of so many bytes come by huge pages now: in a large cache that has many.
    fn by_huge_pages(&self, chunk_bytes: usize) -> bool {
        let large = self.bytes == CHUNK_BYTES_MAX && budget::Chunk::may_be_part(chunk_bytes);
        large && self.alone.load(Ordering::Relaxed) >= HUGE_AFTER
    }

    /// Gives a chunk back where no pool takes it.
    fn give_alone(&self, memory: budget::Chunk) {
        let mut spare = self.spare.lock();
        let waiting: usize = spare.iter().map(budget::Chunk::bytes).sum();
        let parts = self.by_huge_pages(memory.bytes());
        if spare.len() < self.habits.spare || (parts && waiting < CHUNK_BYTES_MAX) {
            spare.push(memory);
            return;
        }
        self.alone.fetch_sub(memory.bytes(), Ordering::Relaxed);
        drop(spare);
        drop(memory);
    }

    /// Gives a chunk back of which no piece is in use.
    ///
    /// # Safety
    /// Nobody uses the chunk or a piece of it any more. It has this shape.
    unsafe fn give(&self, chunk: Chunk, shape: Shape) {
        let again = self.pool.is_some() || self.habits.spare > 0;
        // SAFETY: as the caller promises.
        let memory = unsafe { chunk.end(shape, again) };
        let Some(pool) = &self.pool else { return self.give_alone(memory) };
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.tell();
        pool.give(memory);
    }

    /// Tells the pool how many chunks the cache may still have.
    fn tell(&self) {
        let room = || {
            let capacity = self.capacity.load(Ordering::Relaxed);
            let room = capacity.saturating_sub(self.taken()) / self.bytes as u64;
            usize::try_from(room).unwrap_or(usize::MAX)
        };
        if let Some(pool) = &self.pool {
            pool.set_room_of_cache(room);
        }
    }

    #[cfg(test)]
    pub(super) fn mapped(&self) -> usize {
        let spare: usize = self.spare.lock().iter().map(budget::Chunk::bytes).sum();
        let bytes = |class: &Mutex<Class>| {
            let class = class.lock();
            class.count * class.shape.chunk
        };
        self.classes.iter().map(bytes).sum::<usize>() + spare
    }

    /// Bytes of pieces that are in use or not clean: what is resident of them, up to parts of pages.
    #[cfg(test)]
    pub(super) fn touched(&self) -> usize {
        let of_class = |class: &Mutex<Class>| {
            let class = class.lock();
            // SAFETY: the lock of the class is held, and the chunks have its shape.
            let resident = |chunk: &Chunk| unsafe { chunk.used() + chunk.dirty(class.shape) };
            let full = class.count - class.open.len();
            let open: usize = class.open.iter().map(resident).sum();
            (full * class.shape.pieces + open) * class.shape.piece
        };
        self.classes.iter().map(of_class).sum()
    }
}

/// Bytes of a chunk for pieces of so many, where the largest have `most`.
fn chunk_bytes(habits: Habits, most: usize, piece: usize) -> usize {
    let some = (PIECES * piece).next_power_of_two();
    some.clamp((most / habits.smaller).max(PAGE_BYTES), most)
}

impl Class {
    fn push(&mut self, chunk: Chunk) {
        // SAFETY: whoever has the class has its lock.
        unsafe { chunk.set_place(self.open.len()) };
        self.open.push(chunk);
    }

    fn remove(&mut self, place: usize) {
        self.open.swap_remove(place);
        if let Some(moved) = self.open.get(place) {
            // SAFETY: as in `push`.
            unsafe { moved.set_place(place) };
        }
    }

    /// A free piece of the last open chunk, whether it was clean, and what was added, modulo 2^64, to the bytes of clean
    /// pieces that are resident.
    fn take(&mut self) -> Option<(NonNull<u8>, bool, u64)> {
        let chunk = *self.open.last()?;
        // SAFETY: as in `push`; all chunks of a class have its shape.
        unsafe {
            let before = chunk.left();
            let (start, clean) = chunk.take(self.shape)?;
            if chunk.used() == self.shape.pieces {
                chunk.set_place(FULL);
                self.open.pop();
            }
            Some((start, clean, (chunk.left() as u64).wrapping_sub(before as u64)))
        }
    }

    /// Returns the piece's chunk if it has no more pieces and the class does not keep it.
    ///
    /// # Safety
    /// The piece is one of a chunk of this class, and nobody uses it any more.
    unsafe fn put_back(&mut self, piece: NonNull<u8>, waits: bool) -> Option<Chunk> {
        // SAFETY: as the caller promises; whoever has the class has its lock.
        let (chunk, used, place) = unsafe {
            let (chunk, number) = Chunk::of(piece, self.shape);
            let used = chunk.put_back(self.shape, number);
            (chunk, used, chunk.place())
        };
        // Seeded: chunks of slices stay when nobody uses them.
        let waits = waits || bug!("cache_empty_chunks_of_slices_stay");
        if place == FULL {
            self.push(chunk);
        } else if used == 0 && (self.open.len() > 1 || !waits) {
            self.remove(place);
            self.count -= 1;
            return Some(chunk);
        }
        None
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        for class in 0..self.classes.len() {
            let class = self.classes[class].get_mut();
            let (open, shape) = (std::mem::take(&mut class.open), class.shape);
            for chunk in open {
                // SAFETY: each piece keeps this object alive, so no chunk has any.
                unsafe { self.give(chunk, shape) };
            }
        }
    }
}
