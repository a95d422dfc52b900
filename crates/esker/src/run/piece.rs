//! What a compaction reads ahead of one run.
//!
//! The bytes lie in a mapping, so that they go back to the system with the cursor, whichever thread it was used
//! on; they are counted in the account of buffers.

use super::index::{Index, Place};
use crate::budget::{Lease, Pages};
use crate::cache::{BlockCache, FramePin};
use std::ops::Range;

/// Where a cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// A piece of a segment, as compactions read them.
#[derive(Debug)]
pub(super) struct Piece {
    pub segment: usize,
    /// The offset of its bytes in the file.
    pub offset: u64,
    pub len: usize,
    /// Begins with its bytes.
    pub pages: Pages,
    pub scratch: Vec<u8>,
    lease: Lease,
}

impl Piece {
    pub fn of(cache: &BlockCache) -> Self {
        let (pages, lease) = (Pages::default(), cache.buffers().lease());
        Self { segment: 0, offset: 0, len: 0, pages, scratch: Vec::new(), lease }
    }

    /// Room for `len` bytes, of which nothing is known yet. `usual`: bytes of most pieces.
    pub fn make_room(&mut self, len: usize, usual: u64) {
        // Cleared first: a failed read must not leave a piece that looks whole.
        self.len = 0;
        let most = usize::try_from(4 * usual).unwrap_or(usize::MAX).max(len);
        if !(len..=most).contains(&self.pages.len()) {
            self.pages = Pages::default();
            self.pages = Pages::new(len.max(usual as usize));
        }
        self.count();
    }

    pub fn count(&mut self) {
        self.lease.set((self.pages.len() + self.scratch.capacity()) as u64);
    }
}

/// Where the bytes of a cursor's block are.
#[derive(Debug)]
pub(super) enum Source {
    Nowhere,
    Frame(FramePin),
    /// In the piece that was read last.
    Piece(Range<usize>),
    /// Decompressed.
    Scratch,
}

impl Source {
    /// The bytes of the block.
    #[inline]
    pub fn bytes<'s>(&'s self, piece: Option<&'s Piece>) -> &'s [u8] {
        match (self, piece) {
            (Self::Frame(pin), _) => pin.bytes(),
            (Self::Piece(range), Some(piece)) => &piece.pages[range.clone()],
            (Self::Scratch, Some(piece)) => &piece.scratch,
            _ => &[],
        }
    }
}

/// Shortens a range of blocks to about `most` bytes, keeping `block`, which is at its near end.
pub(super) fn limit_bytes(
    index: &Index,
    range: Range<usize>,
    block: usize,
    (direction, most): (Direction, u64),
) -> Range<usize> {
    let places = &index.places;
    match direction {
        Direction::Forward => {
            let start = places[block].offset;
            let fits = |place: &Place| place.end() - start <= most;
            let more = places[block + 1..range.end].iter().take_while(|place| fits(place)).count();
            block..block + 1 + more
        }
        Direction::Backward => {
            let end = places[block].end();
            let fits = |place: &Place| end - place.offset <= most;
            let before = places[range.start..block].iter().rev();
            block - before.take_while(|place| fits(place)).count()..block + 1
        }
    }
}
