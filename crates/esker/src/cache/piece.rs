//! Pieces of memory, and the sizes that those from chunks have.

use crate::budget::PAGE_BYTES;
use std::ptr::NonNull;

/// The alignment of frames.
pub(super) const ALIGN: usize = 64;
/// The header of a frame has at most so many bytes.
pub(super) const HEADER_BYTES_MAX: usize = 2 * ALIGN;

/// A size is rounded up to one of 16 steps between powers of two.
const STEPS: usize = 16;
/// The powers: pieces of more than 1 KiB and up to 512 KiB may come from chunks.
const POWERS: std::ops::Range<usize> = 10..19;
/// The bytes of a piece that a thread uses again and again ([`Origin::Spare`]).
pub(super) const SPARE_BYTES: usize = 12 << 10;
/// How many sizes there are.
#[cfg(all(target_os = "linux", not(loom)))]
pub(super) const CLASSES: usize = STEPS * (POWERS.end - POWERS.start);

/// Memory of one frame, or of one slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) start: NonNull<u8>,
    /// What was asked for.
    pub(super) asked: usize,
    pub(super) origin: Origin,
}

/// Where a piece comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A chunk, with others of its size.
    Chunk,
    /// A mapping of its own.
    Mapping,
    /// The allocator of the program.
    Allocator,
    /// The allocator; the thread that frees it keeps it for its next frame that is read once.
    Spare,
}

impl Piece {
    /// What it takes: at least what was asked for.
    pub(super) fn bytes(self) -> usize {
        match self.origin {
            Origin::Chunk => class_of(self.asked).map_or(self.asked, class_bytes),
            Origin::Mapping => self.asked.next_multiple_of(PAGE_BYTES),
            Origin::Allocator => self.asked,
            Origin::Spare => SPARE_BYTES,
        }
    }
}

/// The class of a size, if pieces of it may come from chunks.
pub(super) fn class_of(bytes: usize) -> Option<usize> {
    let log = bytes.checked_sub(1)?.checked_ilog2()? as usize;
    let steps = (bytes - 1) >> log.checked_sub(STEPS.ilog2() as usize)?;
    POWERS.contains(&log).then(|| (log - POWERS.start) * STEPS + steps - STEPS)
}

/// The bytes of each piece of a class.
pub(super) fn class_bytes(class: usize) -> usize {
    let log = class / STEPS + POWERS.start;
    (class % STEPS + STEPS + 1) << (log - STEPS.ilog2() as usize)
}
