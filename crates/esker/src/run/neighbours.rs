//! Blocks that are read together with one that is wanted.
//!
//! A scan reads ahead where it goes ([`Segment::scanned_block`]). A get or the begin of a scan wants one block
//! ([`Segment::block`]), but while the cache has much room its neighbours come along: after a load, or when a database was
//! opened, nearly every read misses, and most of what such a read costs is not in proportion to its bytes: it searches
//! twice, calls the system, and takes locks. With 16 blocks in one call, each costs about a third.
//!
//! A neighbour is worth the gets that find it, and the more entries it has, the more these are. With values of 800 bytes,
//! five to a block, gets that brought 15 neighbours were a fifth as fast as those that bring one, until the cache was full.
//!
//! 1. A group has at most as many blocks as a block has pairs of entries.
//! 2. Neighbours take free room only, and none once the cache is nearly full: where data are larger than the cache, they
//!    cost what it takes to fill it, once, and again what compactions have emptied.
//! 3. They are those next to the wanted block that are not cached, without a gap. Nothing is read a second time, unless
//!    two threads begin in one group at once, or blocks are much larger in memory than in the file.
//! 4. Damage in a neighbour is left to the reader that wants it.

use super::index::Index;
use super::piece::{Direction, limit_bytes};
use super::segment::Segment;
use crate::cache::{FrameBuf, FramePin, Kept};
use crate::error::Result;
use crate::trace::Purpose;
use std::ops::Range;

/// Blocks that are read together: groups of at most so many, in the order of the segment.
const GROUP: usize = 16;
/// A group has as many blocks as a block has entries, divided by this (invariant 1).
const ENTRIES: u64 = 2;
/// Where blocks are large, a group has at most so many stored bytes, and about so many in memory.
const GROUP_BYTES: u64 = 64 << 10;
const GROUP_MEMORY: u64 = 96 << 10;
/// A block has about so many bytes in memory, unless its entries are large.
const BLOCK_BYTES: u64 = 4 << 10;

/// A scan reads ahead from so many blocks on.
pub(super) const STREAK_MIN: usize = 3;
/// From so many blocks on, it does so also if the cache is full: then what one that ends reads in vain is a quarter of what
/// it came through.
const STREAK_LONG: usize = 4 * AHEAD_MAX;
/// The maximal number of blocks that a scan reads ahead, and of their bytes.
const AHEAD_MAX: usize = 32;
const AHEAD_BYTES: u64 = 256 << 10;
/// A larger block is not asked for ahead: until it is read it would wait in the page cache.
const ASKED_BYTES_MAX: u64 = 4 << 20;

/// How many blocks a scan reads at once that has entered so many neighbouring ones: as many again, so that one that ends
/// anywhere has read at most twice what it came through, beside the neighbours of its first blocks.
fn ahead(streak: usize) -> usize {
    // Seeded: a scan of ten entries reads and decompresses blocks that it does not come to.
    bug!("run_short_scans_read_far_ahead", return if streak < 2 { 1 } else { AHEAD_MAX });
    if streak < STREAK_MIN { 1 } else { streak.min(AHEAD_MAX) }
}

/// How many blocks a scan of single blocks asks for that has entered so many: twice as many again, each time before it
/// has come through what it asked for before, until it reads many at once.
fn asked_ahead(streak: usize) -> usize {
    match streak {
        3 | 6 | 12 => 2 * streak,
        _ if streak >= 24 && streak % 16 == 8 => AHEAD_MAX,
        _ => 0,
    }
}

impl Segment {
    /// A pin of a block through the cache. While that has much room, neighbours are read with it.
    pub(super) fn block(&self, index: &Index, i: usize, purpose: Purpose) -> Result<FramePin> {
        index.slots.load(i, expected(index, i), |kept| {
            // What is not kept finds no room, and its neighbours would not find any either.
            let group = match kept {
                Kept::Yes => neighbours(index, self.group_len(index), i),
                Kept::No => i..i + 1,
            };
            if group.len() < 2 {
                // An iterator holds its block for any time.
                let kept = if purpose == Purpose::Get { kept } else { Kept::Yes };
                return self.read_block_for(index, i, purpose, kept);
            }
            self.read_group(index, i, (group, GROUP_MEMORY), purpose, |n, frame| {
                index.slots.offer_to_room(n, frame);
            })
        })
    }

    /// Which bytes [`Self::block`] reads for a block that is not cached, if the index is in memory.
    pub(super) fn reads_for(&self, i: usize) -> Option<(u64, u64)> {
        let index = self.index.load_arc()?;
        Some(stored(&index, &neighbours(&index, self.group_len(&index), i)))
    }

    /// A pin of a block through the cache, for a scan that has entered a `streak` of neighbouring blocks: if it is not
    /// cached, a scan that has come far reads those that follow in one request with it. Once the cache is full, each of
    /// them evicts another, which costs a short scan more than the request: until it has come through many blocks, it only
    /// asks the system for those that follow.
    pub(super) fn scanned_block(
        &self,
        index: &Index,
        wanted: usize,
        (direction, streak): (Direction, usize),
    ) -> Result<FramePin> {
        let ahead = ahead(streak);
        if ahead < 2 || !index.slots.is_vacant(wanted) {
            return self.block(index, wanted, Purpose::Scan);
        }
        if streak < STREAK_LONG && !index.slots.has_much_room(wanted) {
            self.ask_behind(index, wanted, (direction, asked_ahead(streak)));
            return self.block(index, wanted, Purpose::Scan);
        }
        let range = match direction {
            Direction::Forward => wanted..(wanted + ahead).min(index.places.len()),
            Direction::Backward => (wanted + 1).saturating_sub(ahead)..wanted + 1,
        };
        let range = limit_bytes(index, range, wanted, (direction, AHEAD_BYTES));
        let last = if direction == Direction::Forward { range.end - 1 } else { range.start };
        self.ask_behind(index, last, (direction, range.len()));
        index.slots.load(wanted, expected(index, wanted), |_| {
            self.read_group(index, wanted, (range, u64::MAX), Purpose::Scan, |n, frame| {
                index.slots.offer(n, frame);
            })
        })
    }

    /// Asks the system for so many blocks behind this one, where a scan goes on: a device reads them while the scan is busy
    /// with what it has.
    fn ask_behind(&self, index: &Index, block: usize, (direction, count): (Direction, usize)) {
        // Seeded: a scan waits for the device, and the device for the scan, in turns.
        bug!("run_scans_ask_for_nothing", return);
        let (near, behind) = match direction {
            Direction::Forward => (block + 1, block + 1..index.places.len().min(block + 1 + count)),
            Direction::Backward => (block.wrapping_sub(1), block.saturating_sub(count)..block),
        };
        if !behind.is_empty() && index.slots.is_vacant(near) {
            let behind = limit_bytes(index, behind, near, (direction, AHEAD_BYTES));
            let (first, len) = stored(index, &behind);
            self.ask(first, len);
        }
    }

    /// Asks for so many bytes, with which a scan begins that will come from a neighbouring segment, and the index.
    pub(super) fn ask_to_enter(&self, direction: Direction, bytes: u64) {
        // Seeded: a scan waits for the device at the begin of each segment.
        bug!("run_scans_ask_for_one_segment", return);
        let (meta, index) = (self.meta(), self.index.load_arc());
        let cached = |index: &Index| match direction {
            Direction::Forward => !index.slots.is_vacant(0),
            Direction::Backward => !index.slots.is_vacant(index.places.len() - 1),
        };
        match &index {
            Some(index) if cached(index) => return,
            Some(_) => {}
            None => self.ask(meta.tail_offset(), meta.tail_len.into()),
        }
        let len = meta.blocks_len().min(bytes).min(AHEAD_BYTES);
        match direction {
            Direction::Forward => self.ask(meta.offset, len),
            Direction::Backward => self.ask(meta.tail_offset() - len, len),
        }
    }

    fn ask(&self, offset: u64, len: u64) {
        if len <= ASKED_BYTES_MAX {
            self.file().read_ahead(offset, len);
        }
    }

    /// How many blocks are read together.
    fn group_len(&self, index: &Index) -> usize {
        // Seeded: whoever wants one large entry reads and decompresses fifteen others.
        bug!("run_neighbours_of_few_entries", return GROUP);
        let entries = self.meta().entries / index.places.len().max(1) as u64;
        (entries / ENTRIES).clamp(1, GROUP as u64) as usize
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
        self.read_bytes(index.slots.cache(), (first, len), (purpose, AHEAD_BYTES), |bytes| {
            let frame = |n: usize| {
                let place = &index.places[n];
                let start = (place.offset - first) as usize;
                let bytes = &bytes[start..start + place.len as usize];
                self.frame_from(index, place, bytes, Kept::Yes)
            };
            let found = frame(wanted)?;
            let mut taken = found.size();
            for n in group.filter(|n| *n != wanted && index.slots.is_vacant(*n)) {
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

/// About how many bytes a block has in memory: a compressed one says that only where it is stored.
fn expected(index: &Index, i: usize) -> u64 {
    u64::from(index.places[i].len).max(BLOCK_BYTES)
}

/// Where the stored bytes of some blocks begin, and how many there are.
fn stored(index: &Index, blocks: &Range<usize>) -> (u64, u64) {
    let first = index.places[blocks.start].offset;
    (first, index.places[blocks.end - 1].end() - first)
}

/// The blocks that are read with block `i`: itself, and those around it in its group of so many that are not cached.
fn neighbours(index: &Index, group: usize, i: usize) -> Range<usize> {
    // Seeded: neighbours are read while the cache is full.
    if group < 2 || !index.slots.has_much_room(i) && !bug!("run_neighbours_read_without_room") {
        return i..i + 1;
    }
    let missing = |n: &usize| index.slots.is_vacant(*n);
    let (begin, end) = (i - i % group, (i - i % group + group).min(index.places.len()));
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
