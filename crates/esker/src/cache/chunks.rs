//! The chunks of [`FrameMemory`](super::memory::FrameMemory): slabs, each for pieces of one size (Bonwick, USENIX
//! 1994). Invariants 1 to 4 stand there.
#![allow(unsafe_code, reason = "takes memory from mappings and hands out pieces of it")]

use super::piece::{ALIGN, CLASSES, HEADER_BYTES_MAX, Origin, Piece, class_bytes, class_of};
use crate::budget::{self, ChunkPool, PAGE_BYTES};
use parking_lot::Mutex;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A huge page.
const CHUNK_BYTES_MAX: usize = 2 << 20;

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
}

/// See [`Habits::smaller`].
const PIECES: usize = 8;

/// Of frames: most have a few sizes, which all of the cache goes through.
pub(super) const OF_FRAMES: Habits =
    Habits { before: 4, least: 8, waits: true, spare: 0, smaller: 1 };
/// Of slices: each index has several, of sizes that differ, and all of them come and go at random. A compaction does not
/// keep the indexes that it reads, so a few chunks come and go all the time.
pub(super) const OF_SLICES: Habits =
    Habits { before: 0, least: 2, waits: false, spare: 4, smaller: 8 };

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
    /// How many there are.
    count: AtomicUsize,
    /// Bytes that the cache keeps, and what else it has than chunks: indexes, and other frames.
    capacity: AtomicU64,
    others: AtomicU64,
    classes: [Mutex<Class>; CLASSES],
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

impl Chunks {
    /// Chunks of at most so many bytes, from a pool if its chunks have the same size.
    pub(super) fn new(habits: Habits, most: u64, pool: Option<&Arc<ChunkPool>>) -> Self {
        let most = usize::try_from(most).unwrap_or(CHUNK_BYTES_MAX).clamp(1, CHUNK_BYTES_MAX);
        let bytes = 1 << most.ilog2();
        let pool = pool.filter(|pool| pool.chunk_bytes() == bytes).cloned();
        Self {
            habits,
            bytes,
            pool,
            spare: Mutex::default(),
            count: AtomicUsize::new(0),
            capacity: AtomicU64::new(0),
            others: AtomicU64::new(0),
            classes: std::array::from_fn(|_| Mutex::default()),
        }
    }

    pub(super) fn allocate(&self, asked: usize) -> Option<Piece> {
        let class = class_of(asked)?;
        let bytes = class_bytes(class);
        let chunk_bytes = self.chunk_bytes(bytes);
        if frames(chunk_bytes, bytes) < self.habits.least {
            return None;
        }
        let mut class = self.classes[class].lock();
        if class.open.is_empty() {
            if class.count == 0 && class.elsewhere < self.habits.before * chunk_bytes {
                class.elsewhere += bytes;
                return None;
            }
            let Some(memory) = self.take(chunk_bytes) else {
                class.elsewhere += bytes;
                return None;
            };
            class.count += 1;
            class.push(Chunk::begin(memory, bytes));
        }
        let start = class.take(chunk_bytes, bytes)?;
        Some(Piece { start, asked, origin: Origin::Chunk })
    }

    /// # Safety
    /// The piece was allocated here, or was asked for here and then came from the allocator, and
    /// nobody uses it any more.
    pub(super) unsafe fn free(&self, piece: Piece) {
        let Some(class) = class_of(piece.asked) else { return };
        let bytes = class_bytes(class);
        let mut class = self.classes[class].lock();
        if piece.origin == Origin::Chunk {
            // SAFETY: as the caller promises; it is of this class, whose lock is held.
            let empty =
                unsafe { class.put_back(self.chunk_bytes(bytes), piece.start, self.habits.waits) };
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

    /// Bytes of a chunk for pieces of so many.
    fn chunk_bytes(&self, bytes: usize) -> usize {
        let some = (PIECES * bytes).next_power_of_two();
        some.clamp((self.bytes / self.habits.smaller).max(PAGE_BYTES), self.bytes)
    }

    fn take(&self, chunk_bytes: usize) -> Option<budget::Chunk> {
        let Some(pool) = &self.pool else {
            let mut spare = self.spare.lock();
            let waits = spare.iter().position(|chunk| chunk.bytes() == chunk_bytes);
            let chunk = waits.map(|at| spare.swap_remove(at));
            drop(spare);
            return chunk.or_else(|| budget::Chunk::new(chunk_bytes));
        };
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
        let again = self.pool.is_some() || self.habits.spare > 0;
        // SAFETY: as the caller promises.
        let memory = unsafe { Chunk::end(chunk, (self.chunk_bytes(bytes), bytes), again) };
        let Some(pool) = &self.pool else {
            let mut spare = self.spare.lock();
            if spare.len() < self.habits.spare {
                spare.push(memory);
            }
            return;
        };
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.tell();
        pool.give(memory);
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
        let of_class = |(class, of): (usize, &Mutex<Class>)| {
            of.lock().count * self.chunk_bytes(class_bytes(class))
        };
        let spare: usize = self.spare.lock().iter().map(budget::Chunk::bytes).sum();
        self.classes.iter().enumerate().map(of_class).sum::<usize>() + spare
    }

    /// Bytes of pieces that were used once in the chunks that there are: what is resident of them.
    #[cfg(test)]
    pub(super) fn touched(&self) -> usize {
        let of_class = |(class, of): (usize, &Mutex<Class>)| {
            let (bytes, class) = (class_bytes(class), of.lock());
            // SAFETY: chunks are used under the lock of their class.
            let fresh = class.open.iter().map(|chunk| unsafe { chunk.0.as_ref() }.fresh);
            (class.count * frames(self.chunk_bytes(bytes), bytes) - fresh.sum::<usize>()) * bytes
        };
        self.classes.iter().enumerate().map(of_class).sum()
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
                chunk.free = if bug!("cache_one_frame_for_two_blocks") { Some(free) } else { next };
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
        waits: bool,
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
        // Seeded: chunks of slices stay when nobody uses them.
        let waits = waits || bug!("cache_empty_chunks_of_slices_stay");
        if place == FULL {
            self.push(start);
        } else if used == 0 && (self.open.len() > 1 || !waits) {
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
