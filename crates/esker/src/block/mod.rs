//! The unit of reading: about 4 KiB of sorted entries, laid out so that a lookup touches two or
//! three cache lines.
//!
//! What a search needs stands together at the front: the common prefix of all keys, one byte of
//! hash per entry (*tags*, for equality), and the four bytes after the prefix as a big-endian
//! number (*heads*, for order). Key remainders and values follow. Where all keys or all values
//! have one length, no offsets are stored. Sequence numbers and kinds are a column of their own,
//! absent where everything is an old `Put`: then a read skips version checks altogether.
//!
//! A block is checked once, by [`Layout::parse`]; after that no access can leave its bytes. The
//! format is described byte by byte in `docs/file-formats.md`.
//!
//! 1. The layout of a parsed block fits its bytes exactly; every offset in it is in range.
//! 2. Entries are sorted by key, and from new to old within a key (kept by the writer, checked by
//!    verification, and not needed for memory safety).
//! 3. In a parsed block every kind is known, and what expires says when.
//! 4. Blocks under a custom comparator have neither prefix, tags nor heads (R15).

mod builder;
mod layout;
mod search;
mod stored;
#[cfg(test)]
mod tests;

pub use builder::Builder;
pub use layout::{Block, Layout};
pub use stored::{Codec, Encoder, Stored, TRAILER_BYTES, decompress, expansion_max, stored_max};

use crate::base::limits;

/// Bytes of a raw block at most: one entry of the largest size and what surrounds it.
pub const RAW_BYTES_MAX: u64 = limits::VALUE_BYTES_MAX + limits::KEY_BYTES_MAX as u64 + 64;

/// The tag of a key with this hash.
#[inline]
pub fn tag_of(hash: u64) -> u8 {
    hash as u8
}
