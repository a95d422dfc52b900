//! Some blocks of a segment, by which the others are judged.

use super::index::Place;
use crate::block::{Codec, TRAILER_BYTES};
use crate::cache::FrameBuf;

/// At most `count` of `all` places, evenly spread.
pub(super) fn spread(all: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(all);
    (0..count).map(move |number| (2 * number + 1) * all / (2 * count))
}

/// The bytes of a block in its frame, without the trailer that stays behind one that is stored raw.
pub(super) fn block_bytes<'f>(frame: &'f mut FrameBuf, place: &Place) -> &'f [u8] {
    let raw = frame.bytes_mut();
    let end = if place.codec == Codec::Raw { TRAILER_BYTES } else { 0 };
    &raw[..raw.len() - end]
}
