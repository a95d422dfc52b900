//! The tail of a run segment: filter, index, description and footer, and its form in memory.

use super::fence::Fences;
use super::meta::{Numbering, SegmentKind, SegmentMeta};
use super::stored::StoredBytes;
use crate::base::codec::{DecodeError, Decoded, Reader, checksum, put_bytes, put_varint};
use crate::base::{FileId, KeyOrder, limits};
use crate::block::{
    Codec, DICTIONARY_BYTES_MAX, Dictionary, TRAILER_BYTES, encoded_max, expansion_max,
};
use crate::cache::{BlockCache, IndexEntry, Slice, Slots};
use crate::filter::{Filter, Line};
use crate::sync::primitives;
use std::cmp::Ordering;
use std::sync::Arc;

/// Bytes of the footer.
pub(super) const FOOTER_BYTES: usize = 40;
pub(super) const MAGIC: &[u8; 8] = b"eskerseg";

/// What an index takes beside its parts that grow: itself, its slots, its place in the queues of the cache, and
/// what the allocator adds to each. It counts where segments are small.
const ALONE_BYTES: usize = size_of::<Index>() + size_of::<IndexEntry>() + 128;

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

/// What is around the dictionary in its section: its length before it, a checksum behind it.
const AROUND_DICTIONARY: usize = 12;

/// The sections of a tail that is written.
pub(super) struct Sections<'a> {
    pub dictionary: Option<&'a Dictionary>,
    pub filter: &'a Filter,
    pub index: &'a [u8],
}

/// Appends a tail to `out` and completes `meta`, whose lengths then cover it. `offset` is where
/// the tail begins in the file.
pub(super) fn encode_tail(
    meta: &mut SegmentMeta,
    offset: u64,
    sections: &Sections<'_>,
    out: &mut Vec<u8>,
) {
    let Sections { dictionary, filter, index } = *sections;
    let start = out.len();
    if let Some(dictionary) = dictionary {
        out.extend_from_slice(&(dictionary.bytes().len() as u32).to_le_bytes());
        out.extend_from_slice(dictionary.bytes());
        let sum = checksum(meta.file, offset, &out[start..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }
    let dictionary_len = (out.len() - start) as u32;
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
    out.push(filter.probes());
    out.extend_from_slice(&dictionary_len.to_le_bytes()[..3]);
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
    let (min_seq, max_seq) = meta.stored_seqs();
    let stored = SegmentMeta { min_seq, max_seq, ingested: false, ..meta.clone() };
    SegmentMeta { len: 0, tail_len: 0, checksum: 0, ..stored }
}

/// The sections of a tail whose checksum matched.
pub(super) struct Tail<'a> {
    /// The section of the dictionary, empty if there is none.
    pub dictionary: &'a [u8],
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
        let dictionary = read_u24(&mut footer)? as usize;
        let blocks_len = footer.u64()?;
        let magic = footer.take(8)?;
        if footer.u64()? != meta.checksum || magic != MAGIC {
            return Err(DecodeError("the footer is not one of a segment"));
        }
        let mut sections = Reader::new(&bytes[..body]);
        let [filter, index, info] = lens;
        let dictionary = sections.take(dictionary)?;
        if !dictionary.is_empty() && meta.kind != SegmentKind::Data {
            return Err(DecodeError("range tombstones have a dictionary"));
        }
        let filter = sections.take(filter)?;
        let index = sections.take(index)?;
        let mut info = Reader::new(sections.take(info)?);
        if !sections.is_empty() || blocks_len != meta.blocks_len() {
            return Err(DecodeError("the sections do not add up to the segment"));
        }
        if SegmentMeta::decode(&mut info)? != describe(meta) || !info.is_empty() {
            return Err(DecodeError("the description differs from the manifest's"));
        }
        Ok(Self { dictionary, filter, probes, index })
    }
}

/// The last three bytes but one of the first half of a footer: the length of the dictionary's section.
pub(super) fn read_u24(reader: &mut Reader<'_>) -> Decoded<u32> {
    let bytes = reader.take(3)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]))
}

/// The dictionary in a section at `offset` of a file, which need not end with it; `None`: the section is
/// empty. It has a checksum of its own, so that it can be used where the rest of the tail is damaged.
pub(super) fn read_dictionary(
    section: &[u8],
    file: FileId,
    offset: u64,
) -> Decoded<Option<Dictionary>> {
    if section.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(section);
    let len = reader.u32()? as usize;
    if len > DICTIONARY_BYTES_MAX {
        return Err(DecodeError("the length of a dictionary is out of bounds"));
    }
    let bytes = reader.take(len)?;
    // Seeded: a damaged dictionary is used.
    let unchecked = bug!("run_dictionary_checksum_not_checked");
    if reader.u64()? != checksum(file, offset, &section[..4 + len]) && !unchecked {
        return Err(DecodeError("the checksum of a dictionary does not match"));
    }
    Dictionary::new(bytes).map(Some)
}

fn section_len(dictionary: &Dictionary) -> usize {
    dictionary.bytes().len() + AROUND_DICTIONARY
}

/// Whether the dictionary of a tail, whatever else is in it, is damaged.
pub(super) fn has_damaged_dictionary(tail: &[u8], meta: &SegmentMeta) -> bool {
    let footer = tail.len().checked_sub(FOOTER_BYTES).map(|at| &tail[at..]);
    let len = footer.and_then(|footer| read_u24(&mut Reader::new(&footer[13..])).ok());
    let section = tail.get(..len.unwrap_or(0) as usize);
    section.is_some_and(|section| read_dictionary(section, meta.file, meta.tail_offset()).is_err())
}

/// An index that its segment and readers share.
pub(super) type SharedIndex = primitives::Arc<Index>;

/// The index of a data segment, in memory.
#[derive(Debug)]
pub(super) struct Index {
    pub fences: Fences,
    pub places: Slice<Place>,
    pub slots: Slots,
    pub filter: Filter<Slice<Line>>,
    /// What blocks are decompressed with.
    pub dictionary: Option<Dictionary>,
    /// Some block is continued.
    pub any_continued: bool,
    /// Where the sequence numbers are.
    pub numbering: Numbering,
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
        let home = Some(cache.memory());
        let filter = Filter::decode(tail.filter, tail.probes, |count, lines| {
            Slice::collect(home, count, lines)
        })?;
        let dictionary = read_dictionary(tail.dictionary, meta.file, meta.tail_offset())?;
        if tail.dictionary.len() != dictionary.as_ref().map_or(0, section_len) {
            return Err(DecodeError("a dictionary does not fill its section"));
        }
        let mut reader = Reader::new(tail.index);
        // A block takes at least 12 bytes of index, which bounds the allocation.
        let count = reader.varint_max(tail.index.len() as u64 / 12)? as usize;
        if count == 0 {
            return Err(DecodeError("the index has no blocks"));
        }
        let mut places = Slice::with_room(home, count);
        let mut ends = Slice::with_room(home, count);
        // Fences are short, so that this is about their length.
        let mut keys: Vec<u8> = Vec::with_capacity(tail.index.len());
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
        let fences = Fences::of(home, meta.bytewise, (&keys, ends));
        let any_continued = places.iter().any(|place: &Place| place.continued);
        let slots = Slots::new(cache, count);
        let lists = fences.bytes() + places.memory() + slots.memory();
        let mut bytes = ALONE_BYTES + lists + filter.lines().memory();
        // Seeded: dictionaries are not counted as memory in use.
        if !bug!("run_dictionaries_cost_no_memory") {
            bytes += dictionary.as_ref().map_or(0, Dictionary::memory);
        }
        cache.charge_index(bytes as u64, filter.bytes() as u64);
        Ok(Self {
            fences,
            any_continued,
            places,
            numbering: meta.numbering(),
            slots,
            filter,
            dictionary,
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
