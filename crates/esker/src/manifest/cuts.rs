//! Keys that cut a range into parts of about equal bytes, from descriptions of segments alone.
//!
//! The first keys of segments cut the range into *pieces*. Where segments overlap, the bytes of each are taken to lie
//! evenly among the pieces that it reaches over. A segment of which a bound cuts something off counts half. The piece
//! boundary nearest to each multiple of the share is where the range is cut.
//!
//! So a part has at most its share and the largest piece, as these bytes are counted: each of its ends is at most half
//! a piece away from where it should be. Where one run holds everything, a piece is a segment, and its bytes are
//! exact. Where runs overlap, each run may have a segment more at either end than was assumed.

use super::extents::Extent;
use crate::base::KeyOrder;

/// More parts are not made.
const PARTS_MAX: usize = u32::MAX as usize;

/// At most `parts - 1` keys, ascending, that cut what these extents hold into parts of about equal bytes. Each is
/// the first key of an extent, and greater than that of the first.
pub fn cuts<O: KeyOrder>(order: &O, extents: &[Extent<'_>], parts: usize) -> Vec<Vec<u8>> {
    let parts = parts.clamp(1, PARTS_MAX) as u128;
    let mut keys: Vec<&[u8]> = extents.iter().map(|extent| extent.low).collect();
    keys.dedup_by(|next, before| order.compare(before, next).is_eq());
    let ends = ends_of_pieces(order, extents, &keys);
    let total = ends.last().copied().unwrap_or(0);
    // How many of the places where the range should be cut lie before half of `twice`.
    let before = |twice: u128| match twice * parts {
        0 => 0,
        scaled => (scaled.div_ceil(2 * total) - 1).min(parts - 1),
    };
    let mut cut = Vec::new();
    let mut last = 0;
    for (at, key) in keys.iter().enumerate().skip(1) {
        let bytes = ends[at - 1];
        let previous = at.checked_sub(2).map_or(0, |at| ends[at]);
        let nearest = before(previous + bytes) < before(bytes + ends[at]);
        if nearest && last < bytes && bytes < total {
            cut.push(key.to_vec());
            last = bytes;
        }
    }
    cut
}

/// The bytes up to the end of each piece; `keys` are the first keys of the pieces.
fn ends_of_pieces<O: KeyOrder>(order: &O, extents: &[Extent<'_>], keys: &[&[u8]]) -> Vec<u128> {
    // What each piece has more than the one before it, modulo 2 to the 128th.
    let mut more = vec![0_u128; keys.len() + 1];
    let mut alone = vec![0_u128; keys.len()];
    let mut first = 0;
    for extent in extents {
        if order.compare(keys[first], extent.low).is_lt() {
            first = (first + 1).min(keys.len() - 1);
        }
        let over = keys[first..].partition_point(|key| extent.end.is_behind(order, Some(*key)));
        let over = over.max(1);
        // Seeded: a range is cut into parts of about as many segments, whatever these hold.
        let weight =
            if bug!("manifest_segments_weigh_the_same") { 1 } else { extent.meta.weight() };
        let weight = u128::from(weight).div_ceil(if extent.is_whole() { 1 } else { 2 });
        let each = weight / over as u128;
        more[first] = more[first].wrapping_add(each);
        more[first + over] = more[first + over].wrapping_sub(each);
        alone[first] += weight - each * over as u128;
    }
    let (mut each, mut sum) = (0_u128, 0_u128);
    let add = |(more, alone): (u128, u128)| {
        each = each.wrapping_add(more);
        sum += each + alone;
        sum
    };
    more.into_iter().zip(alone).map(add).collect()
}
