//! One chunk: pieces of one size, behind a head that says which are free.
//!
//! Nothing is in a free piece, so the system can have its pages ([`Chunk::release`]). A piece that nobody has used since
//! then, or since the chunk was made, is *clean*: it takes no memory, but for parts of pages that it shares with a piece in
//! use. Of one chunk, pieces that were used are taken again before clean ones.
#![allow(unsafe_code, reason = "the head of a chunk lies in raw memory, as its pieces do")]

use super::piece::{ALIGN, HEADER_BYTES_MAX};
use crate::budget::{self, RELEASE_BYTES, allow_huge, release};
use std::cell::Cell;
use std::ptr::NonNull;

/// Bits of a word of a map.
const WORD: usize = u64::BITS as usize;

/// The chunks of one class: their bytes, those of a piece, how many pieces there are, and where the first one is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) chunk: usize,
    pub(super) piece: usize,
    pub(super) pieces: usize,
    first: usize,
}

impl Shape {
    pub(super) fn new(chunk: usize, piece: usize) -> Self {
        let mut pieces = chunk.saturating_sub(size_of::<Head>()) / piece;
        while pieces > 0 && head_bytes(pieces) + pieces * piece > chunk {
            pieces -= 1;
        }
        Self { chunk, piece, pieces, first: head_bytes(pieces) }
    }

    fn words(&self) -> usize {
        self.pieces.div_ceil(WORD)
    }

    /// The bytes of the whole pages in these pieces: where they begin, and how many.
    fn pages(&self, first: usize, end: usize) -> (usize, usize) {
        let [from, upto] = [first, end].map(|at| self.first + at * self.piece);
        let begin = from.next_multiple_of(RELEASE_BYTES);
        (begin, (upto - upto % RELEASE_BYTES).saturating_sub(begin))
    }

    /// The bytes of these pieces that are in no whole page of them.
    fn beside_pages(&self, first: usize, end: usize) -> usize {
        (end - first) * self.piece - self.pages(first, end).1
    }
}

/// Bytes of the head and of both maps.
fn head_bytes(pieces: usize) -> usize {
    (size_of::<Head>() + 2 * pieces.div_ceil(WORD) * size_of::<u64>()).next_multiple_of(ALIGN)
}

/// The first bytes of a chunk; the maps follow.
#[repr(C)]
struct Head {
    /// Pieces in use.
    used: Cell<usize>,
    /// Where the chunk stands in the list of those of its class with room, or [`FULL`].
    place: Cell<usize>,
    /// Bytes of clean pieces that did not go to the system when pages were last released.
    left: Cell<usize>,
    /// Whether pages were released: the chunk is no huge page any more.
    parted: Cell<bool>,
}

/// See [`Head::place`].
pub(super) const FULL: usize = usize::MAX;

/// A chunk in use. It is only used under the lock of its class, so two copies of this are never used at the same time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    start: NonNull<u8>,
}

// SAFETY: whoever has the class has its chunks.
unsafe impl Send for Chunk {}

/// The two maps of a chunk, a bit for each piece.
struct Maps<'c> {
    /// Pieces that nobody uses.
    free: &'c [Cell<u64>],
    /// Those of them that are not clean.
    dirty: &'c [Cell<u64>],
}

/// Whether a map has the bit of a piece.
fn has(map: &[Cell<u64>], number: usize) -> bool {
    map[number / WORD].get() >> (number % WORD) & 1 == 1
}

/// Sets or clears the bit of a piece.
fn set(map: &[Cell<u64>], number: usize, on: bool) {
    let (word, bit) = (&map[number / WORD], 1 << (number % WORD));
    word.set(if on { word.get() | bit } else { word.get() & !bit });
}

/// The first piece whose bit is set.
fn first(map: &[Cell<u64>]) -> Option<usize> {
    let word = map.iter().position(|word| word.get() != 0)?;
    Some(word * WORD + map[word].get().trailing_zeros() as usize)
}

impl Chunk {
    /// A chunk in this memory, which is aligned to its size and has the size of the shape.
    pub(super) fn begin(memory: budget::Chunk, shape: Shape) -> Self {
        let chunk = Self { start: memory.into_start() };
        let (used, place) = (Cell::new(0), Cell::new(FULL));
        let head = Head { used, place, left: Cell::new(0), parted: Cell::new(false) };
        // SAFETY: the memory is writable, aligned and large enough for the head and the maps, which are zeroes now.
        unsafe {
            chunk.start.write_bytes(0, shape.first);
            chunk.start.cast::<Head>().write(head);
        }
        // SAFETY: nobody else knows the chunk.
        let maps = unsafe { chunk.maps(shape) };
        (0..shape.pieces).for_each(|piece| set(maps.free, piece, true));
        chunk
    }

    /// The memory of a chunk. If it is used `again`, it has zeroes where a header of a frame may have left bytes without
    /// a value.
    ///
    /// # Safety
    /// Nobody uses the chunk or a piece of it any more, and it has this shape.
    pub(super) unsafe fn end(self, shape: Shape, again: bool) -> budget::Chunk {
        for piece in (0..shape.pieces).filter(|_| again) {
            // SAFETY: all pieces lie inside the chunk, and nobody uses them.
            unsafe { self.piece(shape, piece).write_bytes(0, HEADER_BYTES_MAX) };
        }
        // SAFETY: as the caller promises.
        if unsafe { self.head() }.parted.get() {
            allow_huge(self.start, shape.chunk, true);
        }
        // SAFETY: the head lies inside the chunk, too; and the memory was that of a chunk of so many bytes.
        unsafe {
            self.start.write_bytes(0, shape.first);
            budget::Chunk::from_start(self.start, shape.chunk)
        }
    }

    /// The chunk of a piece, which is aligned to its size, and the number of the piece.
    ///
    /// # Safety
    /// The piece is one of a chunk of this shape.
    pub(super) unsafe fn of(piece: NonNull<u8>, shape: Shape) -> (Self, usize) {
        let inside = piece.addr().get() % shape.chunk;
        // SAFETY: as the caller promises, the chunk begins there.
        let start = unsafe { piece.sub(inside) };
        (Self { start }, (inside - shape.first) / shape.piece)
    }

    /// # Safety
    /// The lock of the class is held.
    unsafe fn head(&self) -> &Head {
        // SAFETY: the head was written by `begin`, and whoever holds the lock is the only one who uses it.
        unsafe { self.start.cast::<Head>().as_ref() }
    }

    /// # Safety
    /// The lock of the class is held, and the chunk has this shape.
    unsafe fn maps(&self, shape: Shape) -> Maps<'_> {
        let words = shape.words();
        // SAFETY: the maps lie behind the head, inside the chunk; its memory is initialised, and each has so many words.
        unsafe {
            let free = self.start.add(size_of::<Head>()).cast::<Cell<u64>>().as_ptr();
            Maps {
                free: std::slice::from_raw_parts(free, words),
                dirty: std::slice::from_raw_parts(free.add(words), words),
            }
        }
    }

    /// # Safety
    /// The chunk has this shape, and so many pieces.
    unsafe fn piece(&self, shape: Shape, number: usize) -> NonNull<u8> {
        // SAFETY: as the caller promises; all pieces lie inside the chunk.
        unsafe { self.start.add(shape.first + number * shape.piece) }
    }

    /// Where it stands in the list of its class.
    ///
    /// # Safety
    /// The lock of the class is held.
    pub(super) unsafe fn place(&self) -> usize {
        // SAFETY: as the caller promises.
        unsafe { self.head() }.place.get()
    }

    /// # Safety
    /// The lock of the class is held.
    pub(super) unsafe fn set_place(&self, place: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.head() }.place.set(place);
    }

    /// Pieces in use.
    ///
    /// # Safety
    /// The lock of the class is held.
    pub(super) unsafe fn used(&self) -> usize {
        // SAFETY: as the caller promises.
        unsafe { self.head() }.used.get()
    }

    /// A free piece, if there is one, and whether it was clean.
    ///
    /// # Safety
    /// The lock of the class is held, and the chunk has this shape.
    pub(super) unsafe fn take(&self, shape: Shape) -> Option<(NonNull<u8>, bool)> {
        // SAFETY: as the caller promises.
        let maps = unsafe { self.maps(shape) };
        let dirty = first(maps.dirty);
        let number = dirty.or_else(|| first(maps.free))?;
        if dirty.is_none() {
            // SAFETY: as the caller promises.
            unsafe { self.part(shape, number) };
        }
        set(maps.dirty, number, false);
        // Seeded: two blocks share the memory of one frame.
        if !bug!("cache_one_frame_for_two_blocks") {
            set(maps.free, number, false);
        }
        // SAFETY: as the caller promises; a map has a bit for each piece and no other.
        unsafe {
            self.head().used.update(|used| used + 1);
            Some((self.piece(shape, number), dirty.is_none()))
        }
    }

    /// Clean piece `number` is taken from those around it: what is resident of them changes, and nothing of it is left
    /// beside those in use.
    ///
    /// # Safety
    /// The lock of the class is held, and the chunk has this shape.
    unsafe fn part(&self, shape: Shape, number: usize) {
        // SAFETY: as the caller promises.
        let (maps, head) = unsafe { (self.maps(shape), self.head()) };
        // Seeded: what a block takes is counted as resident beside it, too.
        bug!("cache_clean_pieces_taken_count_twice", return);
        if !head.parted.get() && head.left.get() == 0 {
            // Its clean pieces were never used.
            return;
        }
        // Pieces further away than a page share none with this one.
        let near = RELEASE_BYTES.div_ceil(shape.piece);
        let from = number.saturating_sub(near);
        let first = (from..number).rev().take_while(|at| has(maps.free, *at)).last();
        let upto = shape.pieces.min(number + 1 + near);
        let last = (number + 1..upto).take_while(|at| has(maps.free, *at)).last();
        let (first, end) = (first.unwrap_or(number), last.map_or(number + 1, |last| last + 1));
        let now = shape.beside_pages(first, number) + shape.beside_pages(number + 1, end);
        let left = head.left.get() + now;
        head.left.set(left.saturating_sub(shape.beside_pages(first, end)));
    }

    /// Takes a piece back, and returns how many are in use.
    ///
    /// # Safety
    /// The lock of the class is held, the chunk has this shape, and nobody uses the piece any more.
    pub(super) unsafe fn put_back(&self, shape: Shape, number: usize) -> usize {
        // SAFETY: as the caller promises.
        let maps = unsafe { self.maps(shape) };
        set(maps.free, number, true);
        set(maps.dirty, number, true);
        // SAFETY: as the caller promises.
        let used = unsafe { &self.head().used };
        used.set(used.get() - 1);
        used.get()
    }

    /// How many pieces are free and not clean.
    ///
    /// # Safety
    /// The lock of the class is held, and the chunk has this shape.
    pub(super) unsafe fn dirty(&self, shape: Shape) -> usize {
        // SAFETY: as the caller promises.
        let maps = unsafe { self.maps(shape) };
        maps.dirty.iter().map(|word| word.get().count_ones() as usize).sum()
    }

    /// Bytes of clean pieces that stay resident, as far as is known.
    ///
    /// # Safety
    /// The lock of the class is held.
    pub(super) unsafe fn left(&self) -> usize {
        // SAFETY: as the caller promises.
        unsafe { self.head() }.left.get()
    }

    /// Lets the system have the pages in which there are only free pieces, and returns how many pieces that made clean.
    /// Pages that a piece in use begins or ends in stay.
    ///
    /// # Safety
    /// The lock of the class is held, and the chunk has this shape.
    pub(super) unsafe fn release(&self, shape: Shape) -> usize {
        // SAFETY: as the caller promises.
        let (maps, head) = unsafe { (self.maps(shape), self.head()) };
        let (mut number, mut cleaned, mut left) = (0, 0, 0);
        while number < shape.pieces {
            let first = number;
            let mut dirty = 0;
            while number < shape.pieces && has(maps.free, number) {
                dirty += usize::from(has(maps.dirty, number));
                number += 1;
            }
            let end = number;
            let (begin, pages) = shape.pages(first, end);
            number += 1;
            if dirty > 0 {
                if pages > 0 && !head.parted.replace(true) {
                    allow_huge(self.start, shape.chunk, false);
                }
                // SAFETY: nobody uses these pages: all pieces in them are free, and the head is before them. They are
                // part of a chunk, whose memory is a mapping where `release` does anything.
                if pages > 0 && !unsafe { release(self.start.add(begin), pages) } {
                    continue;
                }
                cleaned += dirty;
                (first..end).for_each(|at| set(maps.dirty, at, false));
            }
            left += shape.beside_pages(first, end);
        }
        // Clean pieces that were never used are among them, so this is at least what is resident of the clean ones.
        head.left.set(left);
        cleaned
    }
}
