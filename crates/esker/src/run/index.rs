//! The tail of a run segment: filter, index, description and footer, and its form in memory.

use super::fence::Fences;
use super::meta::SegmentMeta;
use super::stored::StoredBytes;
use crate::base::codec::{DecodeError, Decoded, Reader, checksum, put_bytes, put_varint};
use crate::base::{KeyOrder, limits};
use crate::block::{Codec, TRAILER_BYTES, encoded_max, expansion_max};
use crate::cache::{BlockCache, IndexEntry, Slots};
use crate::filter::Filter;
use crate::sync::primitives;
use std::cmp::Ordering;
use std::sync::Arc;

/// Bytes of the footer.
pub(super) const FOOTER_BYTES: usize = 40;
pub(super) const MAGIC: &[u8; 8] = b"eskerseg";

/// What an index takes beside its parts that grow: itself, its slots, its place in the queues of the cache, and
/// what the allocator adds to each. It counts where segments are small.
const ALONE_BYTES: usize = size_of::<Index>() + size_of::<Slots>() + size_of::<IndexEntry>() + 128;

/// The place of a stored block, and what the block must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub offset: u64,
    pub checksum: u64,
    pub len: u32,
    pub codec: Codec,
    /// The first key of the block equals the last key of the previous block (R17).
    pub continued: bool,
}

impl Place {
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// Builds the index section while blocks are written.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    bytes: Vec<u8>,
    count: u64,
    last: Vec<u8>,
    stored: StoredBytes,
}

impl IndexBuilder {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.last.clear();
        self.stored = StoredBytes::default();
    }

    /// How the blocks so far are stored.
    pub(super) fn stored(&self) -> StoredBytes {
        self.stored
    }

    /// Bytes of memory that it has.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn add(&mut self, fence: &[u8], len: u32, codec: Codec, sum: u64, continued: bool) {
        let shared = fence.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        put_varint(&mut self.bytes, u64::from(len));
        self.bytes.push(codec as u8 | u8::from(continued) << 2);
        self.bytes.extend_from_slice(&sum.to_le_bytes());
        put_varint(&mut self.bytes, shared as u64);
        put_bytes(&mut self.bytes, &fence[shared..]);
        self.last.clear();
        self.last.extend_from_slice(fence);
        self.count += 1;
        self.stored.add(codec, len);
    }

    pub(super) fn finish(&self, out: &mut Vec<u8>) {
        put_varint(out, self.count);
        out.extend_from_slice(&self.bytes);
    }
}

/// Appends a tail to `out` and completes `meta`, whose lengths then cover it. `offset` is where
/// the tail begins in the file.
pub(super) fn encode_tail(
    meta: &mut SegmentMeta,
    offset: u64,
    filter: &Filter,
    index: &[u8],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    filter.encode(out);
    out.extend_from_slice(index);
    // The description states the length of the tail, so its own length must not depend on that. The
    // copy in the tail has zeros in the fields that only the manifest has.
    let info_start = out.len();
    describe(meta).encode(out);
    let info_len = out.len() - info_start;
    out.extend_from_slice(&(filter.bytes() as u32).to_le_bytes());
    out.extend_from_slice(&(index.len() as u32).to_le_bytes());
    out.extend_from_slice(&(info_len as u32).to_le_bytes());
    out.extend_from_slice(&[filter.probes(), 0, 0, 0]);
    out.extend_from_slice(&(offset - meta.offset).to_le_bytes());
    out.extend_from_slice(MAGIC);
    let sum = checksum(meta.file, offset, &out[start..]);
    out.extend_from_slice(&sum.to_le_bytes());
    meta.tail_len = (out.len() - start) as u32;
    meta.len = offset - meta.offset + u64::from(meta.tail_len);
    meta.checksum = sum;
}

/// The meta as it is stored in the tail.
fn describe(meta: &SegmentMeta) -> SegmentMeta {
    SegmentMeta { len: 0, tail_len: 0, checksum: 0, ..meta.clone() }
}

/// The sections of a tail whose checksum matched.
pub(super) struct Tail<'a> {
    pub filter: &'a [u8],
    pub probes: u8,
    pub index: &'a [u8],
}

impl<'a> Tail<'a> {
    pub(super) fn parse(bytes: &'a [u8], meta: &SegmentMeta) -> Decoded<Self> {
        let body = bytes.len().checked_sub(FOOTER_BYTES);
        let body = body.ok_or(DecodeError("the tail is shorter than its footer"))?;
        let summed = &bytes[..bytes.len() - 8];
        if checksum(meta.file, meta.tail_offset(), summed) != meta.checksum {
            return Err(DecodeError("the checksum does not match the manifest's"));
        }
        let mut footer = Reader::new(&bytes[body..]);
        let lens = [footer.u32()?, footer.u32()?, footer.u32()?].map(|len| len as usize);
        let probes = footer.u8()?;
        let reserved = footer.take(3)?;
        let blocks_len = footer.u64()?;
        let magic = footer.take(8)?;
        if footer.u64()? != meta.checksum || magic != MAGIC || reserved != [0; 3] {
            return Err(DecodeError("the footer is not one of a segment"));
        }
        let mut sections = Reader::new(&bytes[..body]);
        let [filter, index, info] = lens;
        let filter = sections.take(filter)?;
        let index = sections.take(index)?;
        let mut info = Reader::new(sections.take(info)?);
        if !sections.is_empty() || blocks_len != meta.blocks_len() {
            return Err(DecodeError("the sections do not add up to the segment"));
        }
        if SegmentMeta::decode(&mut info)? != describe(meta) || !info.is_empty() {
            return Err(DecodeError("the description differs from the manifest's"));
        }
        Ok(Self { filter, probes, index })
    }
}

/// An index that its segment and readers share.
pub(super) type SharedIndex = primitives::Arc<Index>;

/// The index of a data segment, in memory.
#[derive(Debug)]
pub(super) struct Index {
    pub fences: Fences,
    pub places: Box<[Place]>,
    pub slots: Arc<Slots>,
    pub filter: Filter,
    /// Some block is continued.
    pub any_continued: bool,
    /// What the cache knows of it, if it is kept.
    pub entry: Option<Arc<IndexEntry>>,
    charged: u64,
}

impl Index {
    pub(super) fn decode(
        tail: &Tail<'_>,
        meta: &SegmentMeta,
        cache: &Arc<BlockCache>,
    ) -> Decoded<Self> {
        let filter = Filter::decode(tail.filter, tail.probes)?;
        let mut reader = Reader::new(tail.index);
        // A block takes at least 12 bytes of index, which bounds the allocation.
        let count = reader.varint_max(tail.index.len() as u64 / 12)? as usize;
        if count == 0 {
            return Err(DecodeError("the index has no blocks"));
        }
        let mut places = Vec::with_capacity(count);
        // Fences are short, so that this is about their length.
        let mut keys: Vec<u8> = Vec::with_capacity(tail.index.len());
        let mut ends: Vec<usize> = Vec::with_capacity(count);
        let mut offset = meta.offset;
        let mut start = 0;
        for _ in 0..count {
            let place = read_place(&mut reader, offset)?;
            offset = place.end();
            let shared = reader.varint_max((keys.len() - start) as u64)? as usize;
            let suffix = reader.bytes(limits::KEY_BYTES_MAX - shared)?;
            // A fence is the beginning of the first key of its block, so a few bytes of index
            // cannot expand to a key of 64 KiB.
            if (shared + suffix.len()) as u64 > expansion_max(place.len as usize) {
                return Err(DecodeError("a fence is longer than its block can be"));
            }
            let next = keys.len();
            keys.extend_from_within(start..start + shared);
            keys.extend_from_slice(suffix);
            ends.push(keys.len());
            start = next;
            places.push(place);
        }
        if !reader.is_empty() || offset != meta.tail_offset() {
            return Err(DecodeError("the blocks do not add up to the segment"));
        }
        let key = |i: usize| &keys[if i == 0 { 0 } else { ends[i - 1] }..ends[i]];
        let fences = Fences::build(meta.bytewise, (0..count).map(key));
        let bytes =
            ALONE_BYTES + fences.bytes() + filter.bytes() + count * (size_of::<Place>() + 8);
        cache.charge_index(bytes as u64, filter.bytes() as u64);
        Ok(Self {
            fences,
            any_continued: places.iter().any(|place: &Place| place.continued),
            places: places.into(),
            slots: Slots::new(cache, count),
            filter,
            entry: None,
            charged: bytes as u64,
        })
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.charged
    }

    /// The first block that may hold versions of `key`; `None` if all keys are greater.
    #[inline]
    pub(super) fn first_block<O: KeyOrder>(&self, order: &O, key: &[u8]) -> Option<usize> {
        let found = self.fences.find(order, key)?;
        if !self.any_continued {
            return Some(found);
        }
        let mut block = found;
        // The fence of a continued block is the whole key that is continued.
        while self.continues(order, block, key) && block > 0 {
            block -= 1;
        }
        Some(block)
    }

    /// Whether block `i` begins with versions of `key` that continue the previous block.
    #[inline]
    pub(super) fn continues<O: KeyOrder>(&self, order: &O, i: usize, key: &[u8]) -> bool {
        self.any_continued
            && self.places.get(i).is_some_and(|place| place.continued)
            && self.fences.compare(order, i, key) == Ordering::Equal
    }
}

impl Index {
    /// How the blocks are stored.
    pub(super) fn stored(&self) -> StoredBytes {
        let mut sums = StoredBytes::default();
        self.places.iter().for_each(|place| sums.add(place.codec, place.len));
        sums
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.slots.clear();
        self.slots.cache().discharge_index(self.charged, self.filter.bytes() as u64);
    }
}

pub(super) fn read_place(reader: &mut Reader<'_>, offset: u64) -> Decoded<Place> {
    let len = reader.varint_max(encoded_max().min(u64::from(u32::MAX)))? as u32;
    if (len as usize) < TRAILER_BYTES {
        return Err(DecodeError("a block is shorter than its trailer"));
    }
    let flags = reader.u8()?;
    let codec = Codec::from_u8(flags & 3).filter(|_| flags < 8);
    let codec = codec.ok_or(DecodeError("a block has flags that are not known"))?;
    let checksum = reader.u64()?;
    Ok(Place { offset, checksum, len, codec, continued: flags & 4 != 0 })
}
