//! Checking a segment against its meta, index and filter.

use super::index::Index;
use super::meta::{SegmentKind, SegmentMeta, Specials};
use super::reference::{ValueRef, ValueUse};
use super::segment::Segment;
use crate::base::codec::{DecodeError, Decoded, hash_key};
use crate::base::{FileId, KeyOrder, Kind, Seq};
use crate::block::{Block, tag_of};
use crate::cache::BlockCache;
use crate::error::{Problem, Result, VerifyReport};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a verified segment holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SegmentCounts {
    /// Blocks.
    pub blocks: u64,
    /// Entries, or range tombstones.
    pub entries: u64,
    /// Entries that are deletes.
    pub deletes: u64,
    /// Bytes of keys and values.
    pub raw_bytes: u64,
    /// Bytes read from the file.
    pub bytes_read: u64,
}

impl Segment {
    /// Reads the whole segment from its file, without any cache. Checks all checksums, the order of
    /// the keys, tags and fences, that the filter has every key, and the counts of the meta.
    pub fn verify<O: KeyOrder>(&self, order: &O) -> Result<SegmentCounts> {
        self.verify_with(Some(order))
    }

    /// As [`Self::verify`], for a keyspace without its comparator: checks everything but the order.
    pub fn verify_unordered(&self) -> Result<SegmentCounts> {
        self.verify_with::<Unknown>(None)
    }

    /// Notes in `report` what a verification of the whole segment, in this keyspace, has found.
    pub fn note_verified(
        &self,
        keyspace: &str,
        checked: Result<SegmentCounts>,
        report: &mut VerifyReport,
    ) {
        match checked {
            Ok(verified) => {
                report.blocks += verified.blocks;
                report.entries += verified.entries;
                report.bytes += self.meta().len;
            }
            Err(error) => {
                let bounds = (self.meta().min_key.as_slice(), self.meta().max_key.as_slice());
                let error = error.in_keyspace(keyspace, Some(bounds));
                report.problems.push(Problem { path: self.file().path().to_owned(), error });
            }
        }
    }

    fn verify_with<O: KeyOrder>(&self, order: Option<&O>) -> Result<SegmentCounts> {
        let meta = self.meta();
        if meta.kind == SegmentKind::Values {
            return self.verify_values();
        }
        if meta.bytewise != O::BYTEWISE {
            return Err(self.corrupt(meta.offset, "segment", "the order is not the keyspace's"));
        }
        if meta.kind == SegmentKind::Tombstones {
            let entries = match order {
                Some(order) => self.read_fragments(order)?.len() as u64,
                None => self.read_tail().map(|_| meta.entries)?,
            };
            return Ok(SegmentCounts { entries, bytes_read: meta.len, ..SegmentCounts::default() });
        }
        let (bytes, _) = self.read_tail()?;
        // The index needs slots, but nothing is cached in them.
        let cache = Arc::new(BlockCache::new(0));
        let index = self.decode_index(&bytes, &cache)?;
        let mut check = Check::new(order, meta, &index);
        self.each_block(&index, |i, block| check.block(i, &block))?;
        check.counts.bytes_read = meta.len;
        check.end().map_err(|e| self.corrupt(meta.tail_offset(), "segment tail", e.0))
    }

    /// Reads the blocks one after the other, past the cache.
    fn each_block(
        &self,
        index: &Index,
        mut check: impl FnMut(usize, Block<'_>) -> Decoded<()>,
    ) -> Result<()> {
        let (mut stored, mut scratch) = (Vec::new(), Vec::new());
        for (i, place) in index.places.iter().enumerate() {
            stored.resize(place.len as usize, 0);
            self.file().read(&mut stored, place.offset, "block")?;
            let (layout, raw) = self.decode_block(index, place, &stored, &mut scratch)?;
            let raw = raw.map_or(&scratch[..], |range| &stored[range]);
            check(i, Block::new(raw, &layout))
                .map_err(|e| self.corrupt(place.offset, "block", e.0))?;
        }
        Ok(())
    }

    /// As [`Self::verify`], for a value segment. Its values are entries of the segments that refer to them,
    /// so none is counted here.
    fn verify_values(&self) -> Result<SegmentCounts> {
        let meta = self.meta();
        let (bytes, _) = self.read_tail()?;
        let index = self.decode_index(&bytes, &Arc::new(BlockCache::new(0)))?;
        let mut raw_bytes = 0;
        self.each_block(&index, |_, block| {
            raw_bytes += block.value(0).len() as u64;
            match block.count() {
                1 => Ok(()),
                _ => Err(DecodeError("a value's block has other entries")),
            }
        })?;
        if (index.places.len() as u64, raw_bytes) != (meta.entries, meta.raw_bytes) {
            return Err(self.misfit("the counts are not those described"));
        }
        let blocks = index.places.len() as u64;
        Ok(SegmentCounts { blocks, bytes_read: meta.len, ..SegmentCounts::default() })
    }
}

/// The order of keys whose comparator is missing.
#[derive(Debug, Clone)]
enum Unknown {}

impl KeyOrder for Unknown {
    const BYTEWISE: bool = false;

    fn compare(&self, _: &[u8], _: &[u8]) -> Ordering {
        match *self {}
    }
}

struct Check<'a, O> {
    /// `None`: unknown.
    order: Option<&'a O>,
    meta: &'a SegmentMeta,
    index: &'a Index,
    counts: SegmentCounts,
    last: Option<(Vec<u8>, Seq)>,
    seqs: (Seq, Seq),
    specials: Specials,
    /// The values that the entries refer to, by value segment.
    values: BTreeMap<(FileId, u64), (u64, u64)>,
    key: Vec<u8>,
}

impl<'a, O: KeyOrder> Check<'a, O> {
    fn new(order: Option<&'a O>, meta: &'a SegmentMeta, index: &'a Index) -> Self {
        let counts = SegmentCounts::default();
        let (seqs, specials) = ((Seq::MAX, 0), Specials::default());
        let values = BTreeMap::new();
        Self { order, meta, index, counts, last: None, seqs, specials, values, key: Vec::new() }
    }

    fn block(&mut self, i: usize, block: &Block<'_>) -> Decoded<()> {
        if block.layout().tagged() != O::BYTEWISE {
            return Err(DecodeError("the block's form is not that of its order"));
        }
        if let Some(order) = self.order {
            self.fence(order, i, block)?;
        }
        for entry in 0..block.count() {
            self.entry(block, entry)?;
        }
        self.counts.blocks += 1;
        Ok(())
    }

    /// The fence of a block is greater than the last key before it and not greater than its first
    /// key.
    fn fence(&mut self, order: &O, i: usize, block: &Block<'_>) -> Decoded<()> {
        block.key_into(0, &mut self.key);
        let below_first = self.index.fences.compare(order, i, &self.key);
        let continued = self.index.places[i].continued;
        let above_last = self.last.as_ref().map(|(last, _)| {
            let same = order.compare(last, &self.key).is_eq();
            (self.index.fences.compare(order, i, last), same)
        });
        let fence_fits = match above_last {
            None => below_first == Ordering::Equal && !continued,
            Some((_, true)) => below_first == Ordering::Equal && continued,
            Some((above, false)) => below_first.is_le() && above.is_gt() && !continued,
        };
        if !fence_fits {
            return Err(DecodeError("the index's fence does not separate the blocks"));
        }
        Ok(())
    }

    fn entry(&mut self, block: &Block<'_>, entry: usize) -> Decoded<()> {
        block.key_into(entry, &mut self.key);
        let (seq, kind) = block.version(entry);
        let value = block.value(entry);
        if let (Some(order), Some((last, last_seq))) = (self.order, &self.last) {
            let ordered = match order.compare(last, &self.key) {
                Ordering::Less => true,
                Ordering::Equal => seq < *last_seq,
                Ordering::Greater => false,
            };
            if !ordered {
                return Err(DecodeError("the entries are not in order"));
            }
        }
        if kind == Kind::Delete && !value.is_empty() {
            return Err(DecodeError("a delete has a value"));
        }
        if let Some(order) = self.order.filter(|_| O::BYTEWISE) {
            let hash = hash_key(&self.key);
            if block.tag(entry) != tag_of(hash) {
                return Err(DecodeError("the tag of an entry is wrong"));
            }
            if block.get(order, &self.key, tag_of(hash), seq + 1) != Some(entry)
                || block.lower_bound(order, &self.key, seq + 1) != entry
            {
                return Err(DecodeError("an entry cannot be found by its key"));
            }
            if !self.index.filter.may_contain(hash) {
                return Err(DecodeError("the filter denies a key of its segment"));
            }
        }
        self.counts.entries += 1;
        self.counts.deletes += u64::from(kind == Kind::Delete);
        self.specials.count(kind, value);
        let len = match kind.is_separated() {
            true => self.reference(kind, value)?,
            false => value.len(),
        };
        self.counts.raw_bytes += (self.key.len() + len) as u64;
        self.seqs = (self.seqs.0.min(seq), self.seqs.1.max(seq));
        let (last, last_seq) = self.last.get_or_insert_with(|| (Vec::new(), 0));
        if self.counts.entries == 1 && self.meta.min_key != self.key {
            return Err(DecodeError("the first key is not the one described"));
        }
        last.clear();
        last.extend_from_slice(&self.key);
        *last_seq = seq;
        Ok(())
    }

    /// Counts a value to which an entry refers; returns its bytes.
    fn reference(&mut self, kind: Kind, stored: &[u8]) -> Decoded<usize> {
        let reference = ValueRef::decode(kind, stored)?;
        let found = self.meta.values.binary_search_by_key(&reference.place(), ValueUse::place);
        let used = found.ok().map(|at| self.meta.values[at]);
        if used.is_none_or(|used| u64::from(reference.block) >= used.values.entries) {
            return Err(DecodeError("a value is in no value segment that is named"));
        }
        let (entries, bytes) = self.values.entry(reference.place()).or_default();
        *entries += 1;
        *bytes += u64::from(reference.len);
        Ok(reference.len as usize)
    }

    fn end(self) -> Decoded<SegmentCounts> {
        let (meta, counts) = (self.meta, self.counts);
        let last = self.last.map(|(last, _)| last).unwrap_or_default();
        if self.order.is_some_and(|order| !order.compare(&last, &meta.max_key).is_eq()) {
            return Err(DecodeError("the last key is not the one described"));
        }
        let found = (counts.entries, counts.deletes, counts.raw_bytes, self.seqs, self.specials);
        let seqs = meta.stored_seqs();
        if found != (meta.entries, meta.deletes, meta.raw_bytes, seqs, meta.specials) {
            return Err(DecodeError("the counts are not those described"));
        }
        let described = meta.values.iter().map(|used| (used.place(), (used.entries, used.bytes)));
        if !self.values.into_iter().eq(described) {
            return Err(DecodeError("the values are not those described"));
        }
        Ok(counts)
    }
}
