//! Run segments: a meta, a file, and an index that is loaded when it is needed, and evicted when the
//! cache has no room for it.

use super::file::RunFile;
use super::index::{Index, Place, SharedIndex, Tail, has_damaged_dictionary};
use super::meta::{SegmentKind, SegmentMeta};
use super::reference::ValueUse;
use super::stored::Storage;
use crate::base::KeyOrder;
use crate::base::codec::{DecodeError, Reader};
use crate::base::rangedel::Fragments;
use crate::block::{Codec, EncodedBlock, Layout};
use crate::budget::Lease;
use crate::cache::{BlockCache, FrameBuf, IndexEntry, Kept, Resident};
use crate::error::{Error, IoContext, Result};
use crate::sync::primitives::{AtomicU8, Mutex, OnceLock};
use crate::sync::{EpochSlot, Guard, Point};
use crate::trace::Purpose;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Buffers beyond this are not kept between reads.
const SCRATCH_BYTES_MAX: u64 = 1 << 20;

thread_local! {
    /// The buffer of compressed blocks, which are then decompressed into their frames.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Who asks whether a segment was used: the cache, and those that look at temperatures.
const FOR_CACHE: u8 = 1;
const FOR_LOOKS: u8 = 2;

/// What the places of a segment in a run and in maps take, with a part of what its file takes.
const PLACES_BYTES: usize = 256;

/// A piece of a run: the unit of sharing.
#[derive(Debug)]
pub struct Segment {
    /// The index, if it is in memory, and for whom it was used since they asked last.
    pub(super) index: EpochSlot<Index>,
    used: AtomicU8,
    meta: SegmentMeta,
    file: Arc<RunFile>,
    /// The value segments that the meta lists.
    values: Box<[Arc<Self>]>,
    /// For a value segment: bytes of the values to which segments refer that are there.
    referred: AtomicU64,
    /// What the cache refers to while the index is in memory.
    me: Weak<Self>,
    /// The list of range tombstones, if it is in memory, and its account.
    fragments: OnceLock<(Arc<Fragments>, Option<Lease>)>,
    pub(super) storage: Storage,
    loading: Mutex<()>,
    obsolete: AtomicBool,
}

impl Segment {
    /// The segment that `meta` describes, in `file`, without value segments. Nothing is read yet.
    pub fn new(meta: SegmentMeta, file: Arc<RunFile>) -> Arc<Self> {
        Self::with_values(meta, file, Box::default())
    }

    /// The segment that `meta` describes, in `file`, with the value segments that it lists, in that order.
    /// Nothing is read yet.
    pub fn with_values(
        meta: SegmentMeta,
        file: Arc<RunFile>,
        values: Box<[Arc<Self>]>,
    ) -> Arc<Self> {
        for (used, values) in meta.values.iter().zip(&values) {
            values.referred.fetch_add(used.bytes, Ordering::Relaxed);
        }
        Arc::new_cyclic(|me| Self {
            index: EpochSlot::empty(),
            used: AtomicU8::new(0),
            meta,
            file,
            values,
            referred: AtomicU64::new(0),
            me: me.clone(),
            fragments: OnceLock::default(),
            storage: Storage::default(),
            loading: Mutex::new(()),
            obsolete: AtomicBool::new(false),
        })
    }

    /// The object for a description, with those for the value segments that it lists. `object` gives the
    /// one for each.
    pub fn of(
        meta: &SegmentMeta,
        mut object: impl FnMut(&SegmentMeta, Box<[Arc<Self>]>) -> Arc<Self>,
    ) -> Arc<Self> {
        let values = meta.values.iter().map(|used| SegmentMeta::of_values(used.values));
        let values = values.map(|meta| object(&meta, Box::default())).collect();
        object(meta, values)
    }

    /// Its description in the manifest.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// The value segments to which its entries refer, in the order of the meta.
    pub fn values(&self) -> &[Arc<Self>] {
        &self.values
    }

    /// Of a value segment, the bytes of its values to which no segment refers. What only old versions of the
    /// tree refer to, which somebody still reads, is not among them.
    pub fn dead_bytes(&self) -> u64 {
        self.meta.raw_bytes.saturating_sub(self.referred.load(Ordering::Relaxed))
    }

    /// Of a value segment, the bytes of its values to which segments refer that are there, in whatever tree: what
    /// two of them refer to counts twice.
    pub fn referred_bytes(&self) -> u64 {
        self.referred.load(Ordering::Relaxed)
    }

    /// The segment, and the value segments to which it refers.
    pub fn with_its_values(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::once(self).chain(self.values.iter())
    }

    /// About the memory that it takes without its index: itself, its keys, what it lists, its places in a run and in
    /// the store, and a part of its file.
    pub fn described_bytes(&self) -> u64 {
        let keys = self.meta.min_key.len() + self.meta.max_key.len();
        let values = self.values.len() * (size_of::<ValueUse>() + size_of::<Arc<Self>>());
        (size_of::<Self>() + keys + values + PLACES_BYTES) as u64
    }

    /// The file that holds it.
    pub fn file(&self) -> &Arc<RunFile> {
        &self.file
    }

    /// Marks the segment as one to which no durable state refers; the drop of the last reference
    /// reports its bytes.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// Whether the index (or the list of range tombstones) is in memory.
    pub fn is_loaded(&self) -> bool {
        self.index.is_full() || self.fragments.get().is_some()
    }

    pub(super) fn corrupt(&self, offset: u64, section: &'static str, detail: &str) -> Error {
        let mut error = Error::corruption(self.file.path(), offset, section, detail);
        if let Error::Corruption(corruption) = &mut error
            && self.meta.kind == SegmentKind::Data
        {
            corruption.key_range = Some((self.meta.min_key.clone(), self.meta.max_key.clone()));
        }
        error
    }

    fn corrupt_tail(&self, error: DecodeError) -> Error {
        self.corrupt(self.meta.tail_offset(), "segment tail", error.0)
    }

    /// The error of a tail with these bytes. Without its dictionary no block of a segment can be read, so
    /// damage of a dictionary is named.
    fn corrupt_tail_of(&self, bytes: &[u8], error: DecodeError) -> Error {
        if !has_damaged_dictionary(bytes, &self.meta) {
            return self.corrupt_tail(error);
        }
        self.corrupt(self.meta.tail_offset(), "dictionary", error.0)
    }

    fn corrupt_block(&self, place: &Place, error: DecodeError) -> Error {
        self.corrupt(place.offset, "block", error.0)
    }

    pub(super) fn read_tail(&self) -> Result<(Vec<u8>, Duration)> {
        let offset = self.meta.tail_offset();
        let file_len = self.file.file()?.len().context("measure", self.file.path())?;
        // Checked before an allocation of the length that the manifest states.
        if self.meta.end() > file_len {
            return Err(self.corrupt(offset, "segment tail", "the file ends before the segment"));
        }
        let mut bytes = vec![0; self.meta.tail_len as usize];
        let took = self.file.read(&mut bytes, offset, "segment tail")?;
        Ok((bytes, took))
    }

    /// The index, if it is in memory, for as long as the epoch lasts.
    #[inline]
    pub(super) fn index_cached<'g>(&'g self, guard: &'g Guard) -> Option<&'g Index> {
        let index = self.index.load(guard);
        if index.is_some() {
            self.touch();
        }
        index
    }

    #[inline]
    fn touch(&self) {
        // Written only once, so that the line of a segment in use stays shared between cores.
        if self.used.load(Ordering::Relaxed) != FOR_CACHE | FOR_LOOKS {
            self.used.store(FOR_CACHE | FOR_LOOKS, Ordering::Relaxed);
        }
    }

    /// The index; read if it is not in memory, and kept there unless much that was evicted waits for readers. Do not
    /// call it inside an epoch.
    pub(super) fn index(&self, cache: &Arc<BlockCache>, purpose: Purpose) -> Result<SharedIndex> {
        // What a compaction reads is not read by anybody.
        let reads = matches!(purpose, Purpose::Get | Purpose::Scan);
        if let Some(index) = self.index.load_arc() {
            match reads {
                true => self.touch(),
                false => _ = self.used.fetch_or(FOR_CACHE, Ordering::Relaxed),
            }
            return Ok(index);
        }
        if reads {
            self.used.fetch_or(FOR_LOOKS, Ordering::Relaxed);
            cache.gate(Point::IndexLoads);
        }
        let index = {
            let _loading = self.loading.lock();
            if let Some(index) = self.index.load_arc() {
                return Ok(index);
            }
            let index = self.read_index(cache, purpose)?;
            if cache.keeps_indexes() { self.fill(index) } else { SharedIndex::new(index) }
        };
        if let Some(entry) = &index.entry {
            if reads {
                cache.gate(Point::IndexLoaded);
            }
            // Seeded: an index that a read has loaded stands in no queue, and never leaves.
            bug!("run_loaded_index_in_no_queue", return Ok(index));
            cache.insert_index(entry.clone());
        }
        Ok(index)
    }

    fn take_used_for(&self, whom: u8) -> bool {
        self.used.load(Ordering::Relaxed) & whom != 0
            && self.used.fetch_and(!whom, Ordering::Relaxed) & whom != 0
    }

    /// Whether readers have used it since [`Self::take_read`].
    pub(super) fn was_read(&self) -> bool {
        self.used.load(Ordering::Relaxed) & FOR_LOOKS != 0
    }

    /// Whether readers have used it since the last call.
    pub(super) fn take_read(&self) -> bool {
        self.take_used_for(FOR_LOOKS)
    }

    fn fill(&self, mut index: Index) -> SharedIndex {
        index.entry = Some(Arc::new(IndexEntry::new(self.me.clone(), index.bytes())));
        let index = SharedIndex::new(index);
        self.index.fill(index.clone());
        index
    }

    /// Keeps the index of a segment that was just written, which nobody else has seen, as one that was read.
    pub(super) fn keep(&self, index: Index) {
        if !index.slots.cache().keeps_indexes() {
            return;
        }
        let index = self.fill(index);
        if let Some(entry) = &index.entry {
            index.slots.cache().insert_index(entry.clone());
        }
    }

    /// The index; read if it is not in memory, but not kept there.
    pub(super) fn index_once(
        &self,
        cache: &Arc<BlockCache>,
        purpose: Purpose,
    ) -> Result<SharedIndex> {
        match self.index.load_arc() {
            Some(index) => Ok(index),
            None => self.read_index(cache, purpose).map(SharedIndex::new),
        }
    }

    pub(super) fn read_index(&self, cache: &Arc<BlockCache>, purpose: Purpose) -> Result<Index> {
        if self.meta.kind == SegmentKind::Tombstones {
            return Err(self.corrupt_tail(DecodeError("range tombstones stand among data")));
        }
        let (bytes, took) = self.read_tail()?;
        cache.count_read(purpose, bytes.len() as u64, took);
        let index = self.decode_index(&bytes, cache)?;
        self.storage.bytes.get_or_init(|| index.stored());
        Ok(index)
    }

    /// The index in a tail.
    pub(super) fn decode_index(&self, bytes: &[u8], cache: &Arc<BlockCache>) -> Result<Index> {
        let index =
            Tail::parse(bytes, &self.meta).and_then(|tail| Index::decode(&tail, &self.meta, cache));
        index.map_err(|error| self.corrupt_tail_of(bytes, error))
    }

    /// Reads the index if it is not in memory, so that cached lookups can use it.
    pub fn load(&self, cache: &Arc<BlockCache>) -> Result<()> {
        self.index(cache, Purpose::Other).map(|_| ())
    }

    /// About how many bytes of the segment precede `key`: whole blocks, and the tail with the last
    /// one. Reads the index if it is not in memory.
    pub fn bytes_before<O: KeyOrder>(
        &self,
        order: &O,
        key: &[u8],
        cache: &Arc<BlockCache>,
    ) -> Result<u64> {
        if order.compare(key, &self.meta.min_key).is_le() {
            return Ok(0);
        }
        if order.compare(key, &self.meta.max_key).is_gt() {
            return Ok(self.meta.len);
        }
        let index = self.index(cache, Purpose::Other)?;
        let block = index.first_block(order, key).unwrap_or(0);
        Ok(index.places[block].offset - self.meta.offset)
    }

    /// The range tombstones, if they are in memory.
    #[inline]
    pub fn fragments_cached(&self) -> Option<&Arc<Fragments>> {
        self.fragments.get().map(|(fragments, _)| fragments)
    }

    /// The range tombstones of a segment of that kind; read if they are not in memory. All callers
    /// share one list.
    pub fn fragments<O: KeyOrder>(&self, order: &O) -> Result<&Arc<Fragments>> {
        if let Some(fragments) = self.fragments_cached() {
            return Ok(fragments);
        }
        let _loading = self.loading.lock();
        if let Some(fragments) = self.fragments_cached() {
            return Ok(fragments);
        }
        let fragments = Arc::new(self.read_fragments(order)?);
        let lease = self.file.count_tombstones(fragments.memory_bytes());
        Ok(&self.fragments.get_or_init(|| (fragments, lease)).0)
    }

    pub(super) fn read_fragments<O: KeyOrder>(&self, order: &O) -> Result<Fragments> {
        if self.meta.kind != SegmentKind::Tombstones {
            return Err(self.corrupt_tail(DecodeError("data stands among range tombstones")));
        }
        let (bytes, _) = self.read_tail()?;
        let decode = || {
            let tail = Tail::parse(&bytes, &self.meta)?;
            let mut reader = Reader::new(tail.index);
            let ingested = self.meta.ingested_seq();
            let fragments = Fragments::decode_at(order, &mut reader, ingested)?;
            let described = fragments.len() as u64 == self.meta.entries
                && fragments.min_seq() >= self.meta.min_seq
                && fragments.max_seq() <= self.meta.max_seq;
            if !reader.is_empty() || !described {
                return Err(DecodeError("the range tombstones are not those described"));
            }
            Ok(fragments)
        };
        decode().map_err(|error| self.corrupt_tail(error))
    }

    /// Reads one block into a frame of its own.
    pub(super) fn read_block(&self, index: &Index, i: usize, purpose: Purpose) -> Result<FrameBuf> {
        self.read_block_for(index, i, purpose, Kept::Yes)
    }

    /// The same for a block that is kept, or not.
    pub(super) fn read_block_for(
        &self,
        index: &Index,
        i: usize,
        purpose: Purpose,
        kept: Kept,
    ) -> Result<FrameBuf> {
        let place = &index.places[i];
        let cache = index.slots.cache();
        self.storage.heat.count(purpose, u64::from(place.len));
        if place.codec == Codec::Raw {
            // Read in place; the trailer stays in the frame behind the block, unused.
            let mut frame = cache.frame_for(kept, place.len as usize);
            let took = self.file.read(frame.bytes_mut(), place.offset, "block")?;
            cache.count_read(purpose, u64::from(place.len), took);
            let layout = self.check_raw(place, frame.bytes_mut());
            frame.set_layout(layout.map_err(|error| self.corrupt_block(place, error))?);
            return Ok(frame);
        }
        let stored = (place.offset, place.len.into());
        self.read_bytes(cache, stored, (purpose, SCRATCH_BYTES_MAX), |bytes| {
            self.frame_from(index, place, bytes, kept)
        })
    }

    /// Reads stored bytes, and passes them to `then`. The thread keeps the buffer for its next read if it is not larger
    /// than `kept`.
    pub(super) fn read_bytes<T>(
        &self,
        cache: &BlockCache,
        (offset, len): (u64, u64),
        (purpose, kept): (Purpose, u64),
        then: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        // Taken out, so that whatever `then` sets going may read, too.
        let mut scratch = SCRATCH.take();
        scratch.resize(len as usize, 0);
        let took = self.file.read(&mut scratch, offset, "block")?;
        cache.count_read(purpose, len, took);
        let done = then(&scratch);
        if scratch.capacity() as u64 <= kept {
            SCRATCH.set(scratch);
        }
        done
    }

    fn check_raw(&self, place: &Place, bytes: &[u8]) -> Result<Layout, DecodeError> {
        let stored = self.check_stored(place, bytes)?;
        Layout::parse(stored.payload)
    }

    /// Checks the bytes of a stored block against its index entry.
    pub(super) fn check_stored<'a>(
        &self,
        place: &Place,
        bytes: &'a [u8],
    ) -> Result<EncodedBlock<'a>, DecodeError> {
        let stored = EncodedBlock::check(bytes, self.meta.file, place.offset, place.checksum)?;
        if stored.codec != place.codec {
            return Err(DecodeError("the codec of a block differs from the index's"));
        }
        Ok(stored)
    }

    pub(super) fn frame_from(
        &self,
        index: &Index,
        place: &Place,
        bytes: &[u8],
        kept: Kept,
    ) -> Result<FrameBuf> {
        let decode = || {
            let stored = self.check_stored(place, bytes)?;
            let mut frame = index.slots.cache().frame_for(kept, stored.raw_len);
            stored.decode_into(frame.bytes_mut(), index.dictionary.as_ref())?;
            let layout = Layout::parse(frame.bytes_mut())?;
            frame.set_layout(layout);
            Ok(frame)
        };
        decode().map_err(|error| self.corrupt_block(place, error))
    }

    /// Checks a stored block and leaves the raw one in `bytes` or `scratch`: the range says where
    /// in `bytes`, `None` means all of `scratch`.
    pub(super) fn decode_block(
        &self,
        index: &Index,
        place: &Place,
        bytes: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<(Layout, Option<Range<usize>>)> {
        let mut decode = || {
            let stored = self.check_stored(place, bytes)?;
            if stored.codec == Codec::Raw {
                let layout = Layout::parse(stored.payload)?;
                return Ok((layout, Some(0..stored.payload.len())));
            }
            scratch.resize(stored.raw_len, 0);
            stored.decode_into(scratch, index.dictionary.as_ref())?;
            Ok((Layout::parse(scratch)?, None))
        };
        decode().map_err(|error| self.corrupt_block(place, error))
    }
}

impl Resident for Segment {
    fn take_used(&self) -> bool {
        self.take_used_for(FOR_CACHE)
    }

    fn evict(&self) {
        self.index.clear();
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // Seeded: no value counts as dead, so none is ever given back before all of its neighbours.
        let all = if bug!("run_dead_values_not_counted") { 0 } else { usize::MAX };
        for (used, values) in self.meta.values.iter().zip(&self.values).take(all) {
            values.referred.fetch_sub(used.bytes, Ordering::Relaxed);
        }
        if let Some(index) = self.index.get_mut()
            && let Some(entry) = &index.entry
        {
            index.slots.cache().remove_index(entry);
        }
        if *self.obsolete.get_mut() {
            self.file.reclaim_slice(self.meta.offset, self.meta.len);
            // What a compaction wrote in vain is not obsolete, and makes nothing dead that was alive.
            if !self.values.is_empty() {
                self.file.report_dead_values();
            }
        }
    }
}
