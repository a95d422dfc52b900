//! Blocks that are read together with one that is wanted.
//!
//! A scan reads ahead where it goes ([`Segment::block_ahead`]). A get or the begin of a scan wants one block
//! ([`Segment::block`]), but while the cache has much room its neighbours come along: after a load, or when a database was
//! opened, nearly every read misses, and most of what such a read costs is not in proportion to its bytes: it searches
//! twice, calls the system, and takes locks. With 16 blocks in one call, each costs about a third.
//!
//! 1. Neighbours take free room only, and none once the cache is nearly full: where data are larger than the cache, they
//!    cost what it takes to fill it, once, and again what compactions have emptied.
//! 2. They are those next to the wanted block that are not cached, without a gap. Nothing is read a second time, unless
//!    two threads begin in one group at once, or blocks are much larger in memory than in the file.
//! 3. Damage in a neighbour is left to the reader that wants it.

use super::index::Index;
use super::segment::Segment;
use crate::cache::{FrameBuf, FramePin};
use crate::error::Result;
use crate::trace::Purpose;
use std::ops::Range;

/// Blocks that are read together: groups of so many, in the order of the segment.
const GROUP: usize = 16;
/// Where blocks are large, a group has at most so many stored bytes, and about so many in memory.
const GROUP_BYTES: u64 = 64 << 10;
const GROUP_MEMORY: u64 = 96 << 10;

impl Segment {
    /// A pin of a block through the cache. While that has much room, neighbours are read with it.
    pub(super) fn block(&self, index: &Index, i: usize, purpose: Purpose) -> Result<FramePin> {
        index.slots.load(i, || {
            let group = neighbours(index, i);
            if group.len() < 2 {
                return self.read_block(index, i, purpose);
            }
            self.read_group(index, i, (group, GROUP_MEMORY), purpose, |n, frame| {
                index.slots.offer_to_room(n, frame);
            })
        })
    }

    /// A pin of block `wanted`; if it is not cached, the blocks of `ahead` (which includes it)
    /// are read with it in one request.
    pub(super) fn block_ahead(
        &self,
        index: &Index,
        wanted: usize,
        ahead: Range<usize>,
    ) -> Result<FramePin> {
        index.slots.load(wanted, || {
            self.read_group(index, wanted, (ahead, u64::MAX), Purpose::Scan, |n, frame| {
                index.slots.offer(n, frame);
            })
        })
    }

    /// Reads a group of blocks at once, offers the others, and returns the wanted one. Others are left out if all that
    /// are like the wanted one take more than `memory`.
    fn read_group(
        &self,
        index: &Index,
        wanted: usize,
        (group, memory): (Range<usize>, u64),
        purpose: Purpose,
        offer: impl Fn(usize, FrameBuf),
    ) -> Result<FrameBuf> {
        let (first, len) = stored(index, &group);
        self.storage.heat.count(purpose, len);
        self.read_bytes(index.slots.cache(), (first, len), (purpose, GROUP_BYTES), |bytes| {
            let frame = |n: usize| {
                let place = &index.places[n];
                let start = (place.offset - first) as usize;
                self.frame_from(index, place, &bytes[start..start + place.len as usize])
            };
            let found = frame(wanted)?;
            let mut taken = found.size();
            for n in group.filter(|n| *n != wanted) {
                if taken.saturating_add(found.size()) > memory {
                    break;
                }
                if let Ok(frame) = frame(n) {
                    taken += frame.size();
                    offer(n, frame);
                }
            }
            Ok(found)
        })
    }
}

/// Where the stored bytes of some blocks begin, and how many there are.
fn stored(index: &Index, blocks: &Range<usize>) -> (u64, u64) {
    let first = index.places[blocks.start].offset;
    (first, index.places[blocks.end - 1].end() - first)
}

/// The blocks that are read with block `i`: itself, and those around it in its group that are not cached.
fn neighbours(index: &Index, i: usize) -> Range<usize> {
    // Seeded: neighbours are read while the cache is full.
    if !index.slots.has_much_room(i) && !bug!("run_neighbours_read_without_room") {
        return i..i + 1;
    }
    let missing = |n: &usize| index.slots.is_vacant(*n);
    let (begin, end) = (i - i % GROUP, (i - i % GROUP + GROUP).min(index.places.len()));
    let first = (begin..i).rev().take_while(missing).last().unwrap_or(i);
    let last = (i + 1..end).take_while(missing).last().unwrap_or(i);
    let mut group = first..last + 1;
    while group.len() > 1 && stored(index, &group).1 > GROUP_BYTES {
        match i - group.start < group.end - 1 - i {
            true => group.end -= 1,
            false => group.start += 1,
        }
    }
    group
}
