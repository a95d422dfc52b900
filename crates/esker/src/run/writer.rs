//! Writing a run file: segments one behind the other.
//!
//! Entries arrive sorted. A block ends at its size, and a segment at its size too, but never
//! between two versions of a key. Bytes go to the file in large pieces. A file may hold segments of
//! several keyspaces and orders (R28): the order comes with each entry and may change where a
//! segment ends.

mod appending;
mod hashes;
mod large;
mod limits;
mod options;
mod pieces;
mod separation;

use super::fetch::KnownValues;
use super::header::{Features, HEADER_BYTES, PLAIN_VERSION, file_name, header};
use super::index::{IndexBuilder, Sections, encode_tail};
use super::meta::{SegmentKind, SegmentMeta, Specials};
use super::reference::ValueUse;
use super::stored::StoredBytes;
use super::warm::{Warm, Written, WrittenValues};
use crate::base::codec::hash_key;
use crate::base::rangedel::Fragments;
use crate::base::{FileId, KeyOrder, Kind, Seq};
use crate::block::{Builder, Codec, Dictionary, Encoder, tag_of};
use crate::budget::{Buffers, Collector};
use crate::cache::BlockCache;
use crate::error::{Error, IoContext, Result};
use crate::filter::Filter;
use crate::fs::{File, Fs, OpenMode};
use crate::sync::both;
use appending::{Appending, Stored};
use hashes::Hashes;
use limits::{check_limits, out_of_order, separator};
pub use options::WriterOptions;
pub use pieces::Source;
pub use separation::MovedBytes;
use separation::Separation;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Room for the block with which the collected bytes suffice.
const ROOM_BYTES: usize = 64 << 10;
/// Room for what a tail has beside filter and index.
const TAIL_ROOM: usize = 4 << 10;
/// Segments of at least this size begin at multiples of 4 KiB, so that a hole can cover a whole
/// segment.
const PAGED_SEGMENT_BYTES: u64 = 64 << 10;

/// The segment being written.
#[derive(Debug, Default)]
struct Open {
    /// Whether it has entries.
    begun: bool,
    bytewise: bool,
    offset: u64,
    entries: u64,
    deletes: u64,
    shadowed: bool,
    specials: Specials,
    raw_bytes: u64,
    min_key: Vec<u8>,
    min_seq: Seq,
    max_seq: Seq,
    hashes: Hashes,
    /// The first key of the block being filled.
    block_first: Vec<u8>,
    /// The last key of the block before it.
    block_before: Vec<u8>,
    blocks: u64,
    /// The block being filled begins with versions of the last key of the previous block.
    continued: bool,
}

/// Writes one run file.
#[derive(Debug)]
pub struct RunWriter {
    fs: Arc<dyn Fs>,
    file: Arc<dyn File>,
    path: PathBuf,
    id: FileId,
    options: WriterOptions,
    /// Bytes that follow those in the file.
    buffer: Collector,
    written: u64,
    block: Builder,
    raw: Vec<u8>,
    encoder: Encoder,
    /// What is written now is cold; with which dictionary.
    cold: Option<Option<Arc<Dictionary>>>,
    features: Features,
    index: IndexBuilder,
    open: Open,
    last_key: Vec<u8>,
    last_seq: Seq,
    hash: u64,
    segments: Vec<Written>,
    warm: Option<Warm>,
    separation: Separation,
}

impl RunWriter {
    /// Creates the file with this id in `dir`.
    pub fn create(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        id: FileId,
        options: WriterOptions,
    ) -> Result<Self> {
        let path = dir.join(file_name(id));
        let file = fs.open(&path, OpenMode::CreateNew).context("create", &path)?;
        let mut buffer = Collector::uncounted(options.collected_bytes as usize + ROOM_BYTES);
        buffer.extend_from_slice(&header(id, PLAIN_VERSION));
        debug_assert_eq!(buffer.len(), HEADER_BYTES);
        Ok(Self {
            fs: Arc::clone(fs),
            file,
            path,
            id,
            options,
            buffer,
            written: 0,
            block: Builder::default(),
            raw: Vec::new(),
            encoder: Encoder::default(),
            cold: None,
            features: Features::default(),
            index: IndexBuilder::default(),
            open: Open::default(),
            last_key: Vec::new(),
            last_seq: 0,
            hash: 0,
            segments: Vec::new(),
            warm: None,
            separation: Separation::default(),
        })
    }

    /// Puts the blocks of the segments that follow into this cache, as long as it has room.
    pub fn keep_in(&mut self, cache: &Arc<BlockCache>) {
        self.warm = Some(Warm::new(cache));
        self.separation.keep_in(cache);
    }

    /// The value segments to which entries may refer that are added from now on, if they are not told yet.
    pub fn know(&mut self, values: &mut Option<KnownValues>) {
        if let Some(values) = values.take() {
            self.separation.known = values;
        }
    }

    /// Counts its buffers, and lets the next writer use the largest.
    pub fn count_in(&mut self, buffers: &Arc<Buffers>) {
        self.buffer.count_in(buffers);
    }

    /// Counts the memory of the writer, with so many bytes of a filter and an index under construction.
    fn count_memory(&mut self, tail: usize) {
        let hashes = self.open.hashes.memory();
        let blocks = self.block.memory() + self.raw.capacity() + self.encoder.memory();
        let blocks = blocks + self.separation.memory();
        self.buffer.count((hashes + blocks + self.index.memory() + tail) as u64);
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Adds an entry behind the last one of its segment: its key must be greater, or equal with a
    /// smaller sequence number. The value of a delete is not kept. A large value is separated from its key;
    /// a reference must be to a value segment that the writer [knows](Self::know).
    #[inline]
    pub fn add<O: KeyOrder>(
        &mut self,
        order: &O,
        key: &[u8],
        seq: Seq,
        kind: Kind,
        value: &[u8],
    ) -> Result<()> {
        let value = if kind == Kind::Delete { &[] } else { value };
        check_limits(key, value)?;
        if kind.is_separated() || value.len() >= self.options.separate_from as usize {
            return self.add_large(order, key, seq, kind, value);
        }
        self.add_whole(order, key, (seq, kind), value)
    }

    /// Adds an entry with what it has as its value.
    #[inline]
    pub(super) fn add_whole<O: KeyOrder>(
        &mut self,
        order: &O,
        key: &[u8],
        (seq, kind): (Seq, Kind),
        value: &[u8],
    ) -> Result<()> {
        let fresh = self.is_fresh(order, key, seq)?;
        self.make_place::<O>(key, value.len(), fresh)?;
        self.put::<O>(key, (seq, kind), (value, value.len()), fresh);
        Ok(())
    }

    /// Whether an entry does not have the key of the one before it in its segment.
    #[inline]
    pub(super) fn is_fresh<O: KeyOrder>(&self, order: &O, key: &[u8], seq: Seq) -> Result<bool> {
        if !self.open.begun {
            return Ok(true);
        }
        match order.compare(&self.last_key, key) {
            Ordering::Less => Ok(true),
            Ordering::Equal if seq < self.last_seq => Ok(false),
            _ => Err(out_of_order()),
        }
    }

    /// Ends the block and the segment if an entry does not belong to them any more, and begins the next ones.
    #[inline]
    pub(super) fn make_place<O: KeyOrder>(
        &mut self,
        key: &[u8],
        value_bytes: usize,
        fresh: bool,
    ) -> Result<()> {
        if self.open.begun {
            if fresh && self.is_full() {
                self.cut()?;
            } else {
                let estimate = self.block.estimate_with(key.len() + value_bytes);
                if estimate > self.options.block_bytes as usize {
                    self.end_block(fresh)?;
                    self.open.continued = !fresh;
                    self.open.block_first.extend_from_slice(key);
                }
            }
        }
        if !self.open.begun {
            self.begin(O::BYTEWISE, key)?;
        } else if self.open.bytewise != O::BYTEWISE {
            return Err(Error::invalid("the order changed within a segment: cut it first"));
        }
        Ok(())
    }

    /// Whether the segment has its size.
    #[inline]
    fn is_full(&self) -> bool {
        let blocks = match self.separation.holds_blocks {
            true => 0,
            false => self.position() - self.open.offset,
        };
        blocks.max(self.separation.size()) >= u64::from(self.options.segment_bytes)
    }

    /// Adds an entry to the block, for which there is room; `bytes`: those of its value, wherever it is.
    #[inline]
    pub(super) fn put<O: KeyOrder>(
        &mut self,
        key: &[u8],
        (seq, kind): (Seq, Kind),
        (value, bytes): (&[u8], usize),
        fresh: bool,
    ) {
        if fresh {
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
            if O::BYTEWISE {
                self.hash = hash_key(key);
                if self.options.bits_per_key > 0 {
                    self.open.hashes.push(self.hash);
                }
            }
        }
        self.last_seq = seq;
        self.open.shadowed |= !fresh;
        // Seeded: old versions stay for good in a segment that nothing overlaps.
        bug!("run_shadowed_versions_not_noted", self.open.shadowed = false);
        self.count(seq, kind, value, key.len() + bytes);
        self.block.add(key, tag_of(self.hash), seq, kind, value);
    }

    #[inline]
    fn count(&mut self, seq: Seq, kind: Kind, value: &[u8], bytes: usize) {
        let open = &mut self.open;
        open.entries += 1;
        open.deletes += u64::from(kind == Kind::Delete);
        // Seeded: a segment with deletes is taken for one without.
        bug!("run_deletes_not_counted", open.deletes = 0);
        open.specials.count(kind, value);
        open.raw_bytes += bytes as u64;
        open.min_seq = open.min_seq.min(seq);
        // Seeded: a segment takes its last entry for its oldest.
        bug!("run_least_sequence_is_the_last", open.min_seq = seq);
        open.max_seq = open.max_seq.max(seq);
    }

    fn begin(&mut self, bytewise: bool, key: &[u8]) -> Result<()> {
        self.write_if_full()?;
        self.align_segment(u64::from(self.options.segment_bytes));
        let mut hashes = std::mem::take(&mut self.open.hashes);
        hashes.clear();
        self.open = Open {
            begun: true,
            bytewise,
            offset: self.position(),
            min_key: key.to_vec(),
            min_seq: Seq::MAX,
            hashes,
            block_first: key.to_vec(),
            ..Open::default()
        };
        self.index.clear();
        self.block.reset(bytewise);
        self.separation.holds_blocks = self.separation.expects_values;
        // Nobody is going to read what is cold.
        if let Some(warm) = self.warm.as_mut().filter(|_| self.cold.is_none()) {
            warm.begin(self.options.segment_bytes);
        }
        Ok(())
    }

    /// Goes to where a segment of this size may begin.
    fn align_segment(&mut self, bytes: u64) {
        self.align(if bytes >= PAGED_SEGMENT_BYTES { 4096 } else { 8 });
    }

    fn align(&mut self, unit: u64) {
        let padding = self.position().next_multiple_of(unit) - self.position();
        let len = self.buffer.len() + padding as usize;
        self.buffer.resize(len, 0);
    }

    /// Writes the block that was filled. `fresh`: the next block begins with another key.
    fn end_block(&mut self, fresh: bool) -> Result<()> {
        let open = &mut self.open;
        // The first fence is the first key; the others only need to be greater than the previous
        // key.
        let shorten = open.bytewise && open.blocks > 0 && !open.continued;
        let mut first = std::mem::take(&mut open.block_first);
        let fence = if shorten { separator(&open.block_before, &first) } else { &first[..] };
        let continued = open.continued;
        if self.separation.holds_blocks {
            self.separation.hold(&self.block, fence.to_vec(), continued);
        } else {
            self.store_block(fence, continued);
        }
        first.clear();
        let open = &mut self.open;
        open.block_first = first;
        open.blocks += 1;
        open.block_before.clear();
        if fresh {
            open.block_before.extend_from_slice(&self.last_key);
        }
        self.block.reset(open.bytewise);
        self.write_if_full()
    }

    /// Appends the block that was filled to the segment.
    fn store_block(&mut self, fence: &[u8], continued: bool) {
        let (codec, offset) = (self.codec(), self.position());
        let Self { id, block, buffer, encoder, raw, warm, .. } = self;
        let (file, warm) = (*id, warm.as_mut());
        let to = Appending { file, offset, codec, buffer, encoder, warm };
        let Stored { len, codec, checksum } = to.block(block, raw);
        self.index.add(fence, len, codec, checksum, continued);
    }

    /// Appends a block that waited to the segment.
    fn store_raw(&mut self, raw: &[u8], fence: &[u8], continued: bool) {
        let (codec, offset) = (self.codec(), self.position());
        let Self { id, buffer, encoder, warm, .. } = self;
        let (file, warm) = (*id, warm.as_mut());
        let to = Appending { file, offset, codec, buffer, encoder, warm };
        let Stored { len, codec, checksum } = to.raw(raw);
        self.index.add(fence, len, codec, checksum, continued);
    }

    /// Ends the segment; the next entry begins another, which may have another order and any
    /// key. Does nothing between segments.
    pub fn cut(&mut self) -> Result<()> {
        if !self.open.begun {
            return Ok(());
        }
        self.end_block(true)?;
        let values = self.end_values()?;
        let filter = Filter::build(self.open.hashes.iter(), self.options.bits_per_key);
        let mut index = Vec::new();
        self.index.finish(&mut index);
        let open = &mut self.open;
        open.begun = false;
        let meta = SegmentMeta {
            file: self.id,
            offset: open.offset,
            len: 0,
            tail_len: 0,
            kind: SegmentKind::Data,
            bytewise: open.bytewise,
            shadowed: open.shadowed,
            entries: open.entries,
            deletes: open.deletes,
            raw_bytes: open.raw_bytes,
            min_key: std::mem::take(&mut open.min_key),
            max_key: self.last_key.clone(),
            min_seq: open.min_seq,
            max_seq: open.max_seq,
            ingested: false,
            specials: open.specials,
            values: self.separation.take_uses(),
            checksum: 0,
        };
        self.features.separated |= !meta.values.is_empty();
        self.features.pieces |= meta.values.iter().any(ValueUse::is_in_pieces);
        self.end_segment(meta, &filter, &index, values)
    }

    fn end_segment(
        &mut self,
        mut meta: SegmentMeta,
        filter: &Filter,
        index: &[u8],
        values: WrittenValues,
    ) -> Result<()> {
        let cold = self.cold.as_ref().filter(|_| meta.kind == SegmentKind::Data);
        let used = cold.filter(|_| self.index.stored().zstd > 0);
        let dictionary = used.cloned().flatten();
        self.features.dictionary |= dictionary.is_some();
        let sections = Sections { dictionary: dictionary.as_deref(), filter, index };
        let start = self.append_tail(&mut meta, &sections)?;
        let warm = self.warm.as_mut().filter(|_| meta.kind == SegmentKind::Data);
        let index = warm.and_then(|warm| warm.end(&meta, &self.buffer[start..]));
        let compressed = self.compresses();
        let stored = match meta.kind {
            SegmentKind::Data => self.index.stored(),
            SegmentKind::Tombstones | SegmentKind::Values => StoredBytes::default(),
        };
        let cold = self.cold.is_some();
        self.segments.push(Written { meta, index, stored, compressed, cold, values });
        self.write_if_full()
    }

    /// Appends a tail and completes `meta`; returns where it begins in what is collected.
    fn append_tail(&mut self, meta: &mut SegmentMeta, sections: &Sections<'_>) -> Result<usize> {
        let tail = sections.filter.bytes() + sections.index.len();
        if tail as u64 > u64::from(u32::MAX) / 2 {
            return Err(Error::invalid("the index of a segment is too large"));
        }
        if !self.buffer.has_room(tail + TAIL_ROOM) {
            self.flush_if(1)?;
        }
        self.count_memory(tail);
        let (offset, start) = (self.position(), self.buffer.len());
        encode_tail(meta, offset, sections, &mut self.buffer);
        Ok(start)
    }

    /// Ends the segment and writes one of range tombstones, if there are any.
    pub fn add_tombstones<O: KeyOrder>(&mut self, fragments: &Fragments) -> Result<()> {
        self.cut()?;
        let Some((low, high)) = fragments.hull() else { return Ok(()) };
        // They are small and are released with their file.
        self.align(8);
        let mut payload = Vec::new();
        fragments.encode(&mut payload);
        let meta = SegmentMeta {
            file: self.id,
            offset: self.position(),
            len: 0,
            tail_len: 0,
            kind: SegmentKind::Tombstones,
            bytewise: O::BYTEWISE,
            shadowed: false,
            entries: fragments.len() as u64,
            deletes: 0,
            raw_bytes: payload.len() as u64,
            min_key: low.unwrap_or_default().to_vec(),
            max_key: high.unwrap_or_default().to_vec(),
            min_seq: fragments.min_seq(),
            max_seq: fragments.max_seq(),
            ingested: false,
            specials: Specials::default(),
            values: Box::default(),
            checksum: 0,
        };
        self.end_segment(meta, &Filter::default(), &payload, WrittenValues::default())
    }

    /// Whether blocks are compressed where that makes them smaller.
    pub fn compresses(&self) -> bool {
        self.codec() != Codec::Raw
    }

    fn codec(&self) -> Codec {
        if self.cold.is_some() { Codec::Zstd } else { self.options.codec }
    }

    /// Writes the segments that follow as cold data, with Zstandard and this dictionary, or again as the
    /// options say.
    pub fn set_cold(&mut self, cold: Option<Option<Arc<Dictionary>>>) -> Result<()> {
        if self.cold.is_none() && cold.is_none() {
            return Ok(());
        }
        self.cut()?;
        self.encoder.set_dictionary(cold.as_ref().and_then(|dictionary| dictionary.as_deref()));
        self.cold = cold;
        Ok(())
    }

    /// Ends the segment, and writes the next ones as `options` say.
    pub fn set_options(&mut self, options: WriterOptions) -> Result<()> {
        self.cut()?;
        self.options = options;
        Ok(())
    }

    /// The segments that were ended since the last call.
    pub fn take_segments(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.segments)
    }

    /// Bytes of the file so far, those still collected included.
    pub fn bytes_written(&self) -> u64 {
        self.position()
    }

    /// Bytes of keys and values in the segment being written.
    pub fn segment_raw_bytes(&self) -> u64 {
        if self.open.begun { self.open.raw_bytes } else { 0 }
    }

    /// The file's id.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write_if_full(&mut self) -> Result<()> {
        self.flush_if(self.options.collected_bytes as usize)
    }

    fn flush_if(&mut self, at_least: usize) -> Result<()> {
        if self.buffer.len() < at_least {
            return Ok(());
        }
        self.file.write_at(&self.buffer, self.written).context("write", &self.path)?;
        self.written += self.buffer.len() as u64;
        self.count_memory(0);
        self.buffer.empty();
        Ok(())
    }

    /// Ends the last segment and makes the file's contents durable; returns the segments that
    /// were not taken yet. The caller syncs the directory, and adds nothing more.
    pub fn finish(&mut self) -> Result<Vec<Written>> {
        self.cut()?;
        self.flush_if(1)?;
        let version = self.features.version();
        if version != PLAIN_VERSION {
            let header = header(self.id, version);
            self.file.write_at(&header, 0).context("write", &self.path)?;
        }
        // Seeded: the log is given back for a run that is not durable.
        bug!("run_file_not_synced", return Ok(self.take_segments()));
        self.file.sync_data().context("sync", &self.path)?;
        Ok(self.take_segments())
    }

    /// Removes the file.
    pub fn abandon(self) -> Result<()> {
        let Self { fs, file, path, .. } = self;
        drop(file);
        fs.remove_file(&path).context("remove", &path)
    }
}

/// Makes files durable, as [`RunWriter::finish`] does, together with their names.
pub fn finish_files(writers: &mut [RunWriter], fs: &Arc<dyn Fs>, directory: &Path) -> Result<()> {
    match writers {
        [] => return Ok(()),
        // The device takes what both syncs write at the same time.
        [first, second] => {
            let (second, first) = both("esker-flush", || second.finish(), || first.finish());
            first.and(second)?;
        }
        others => others.iter_mut().try_for_each(|writer| writer.finish().map(drop))?,
    }
    // Seeded: a power cut removes the name of a run that the manifest refers to.
    bug!("run_name_not_synced", return Ok(()));
    fs.sync_dir(directory).context("sync", directory)
}
