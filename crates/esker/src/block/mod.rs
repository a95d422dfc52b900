//! The unit of reading: about 4 KiB of sorted entries, laid out so that a lookup touches two or
//! three cache lines.
//!
//! The front of a block holds what a search needs: the common prefix of all keys, one byte of hash
//! per entry (*tags*, for equality), and the four bytes after the prefix as a big-endian number
//! (*heads*, for order). Key remainders and values follow. Where all keys or all values have one
//! length, no offsets are stored. Sequence numbers and kinds are a separate column. A block of old
//! `Put`s does not have it, and reads then skip version checks.
//!
//! [`Layout::parse`] checks a block once; after that, no access can leave its bytes.
//! `docs/file-formats.md` describes the format byte by byte.
//!
//! 1. The layout of a parsed block fits its bytes exactly; every offset in it is in range.
//! 2. Entries are sorted by key, and from new to old within a key (kept by the writer, checked by
//!    verification, and not needed for memory safety).
//! 3. In a parsed block every kind is known, and every expiring value has its time.
//! 4. Blocks under a custom comparator have neither prefix, tags nor heads (R15).

mod builder;
mod codec;
mod dictionary;
mod layout;
mod search;
#[cfg(test)]
mod tests;

pub use builder::{Builder, single};
pub use codec::{
    Codec, EncodedBlock, Encoder, TRAILER_BYTES, decompress, encoded_max, expansion_max,
};
pub use dictionary::{DICTIONARY_BYTES_MAX, Dictionary};
pub use layout::{Block, Layout};

use crate::base::limits;

/// The maximal length of a raw block: one entry of the largest size and its overhead.
pub const RAW_BYTES_MAX: u64 = limits::VALUE_BYTES_MAX + limits::KEY_BYTES_MAX as u64 + 64;

/// The tag of a key with this hash.
#[inline]
pub fn tag_of(hash: u64) -> u8 {
    hash as u8
}
