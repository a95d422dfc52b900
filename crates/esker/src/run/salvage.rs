//! Reading the whole parts of a damaged run file, for repair and for inspection.
//!
//! Ordinary reads refuse every part that contradicts a reference to it. This module reads
//! everything that is still readable and never returns wrong data. A stored block has its own
//! checksum, salted with file id and offset, so it can be checked even if the manifest, the header
//! of its file or the tail of its segment is lost.
//!
//! 1. It returns nothing without a matching checksum of its own.
//! 2. A lost block never hides another: every block is searched where the index says. Without a
//!    usable index, blocks are searched one after the other, as they were written.
//! 3. The length of the searched range bounds the bytes that a search reads and checksums, whatever
//!    the content ([`Effort`]).

use super::file_name;
use super::header::{HEADER_BYTES, check_header};
use super::index::{FOOTER_BYTES, MAGIC, Place, Tail, read_dictionary, read_place, read_u24};
use super::meta::{SegmentKind, SegmentMeta};
use super::reference::ValueRef;
use crate::base::codec::{DecodeError, Decoded, Reader, checksum};
use crate::base::rangedel::Fragments;
use crate::base::{FileId, KeyOrder, limits};
use crate::block::{
    Block, Codec, Dictionary, EncodedBlock, Layout, RAW_BYTES_MAX, TRAILER_BYTES, expansion_max,
};
use crate::error::{Error, IoContext, Result};
use crate::fs::{File, Fs, OpenMode};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are searched for segments at a time.
const SCAN_BYTES: u64 = 1 << 20;
/// The longest description of a segment: two bounds, numbers, and a list of value segments.
const INFO_BYTES_MAX: u64 = 2 * limits::BOUND_BYTES_MAX as u64 + (4 << 20);
/// Length of the first piece in which a block is searched.
const WINDOW_BYTES: u64 = 16 << 10;
/// Bytes that a search may read and checksum: for each byte of the range, and in addition.
const EFFORT_PER_BYTE: u64 = 64;
const EFFORT_BYTES: u64 = 1 << 20;
/// Fences are shortened in an index, so they are kept only up to this many times its length.
const FENCES_PER_BYTE: usize = 64;

/// The bytes that a search may still read and checksum.
#[derive(Debug)]
struct Effort {
    left: u64,
}

impl Effort {
    /// For a search through `len` bytes.
    fn new(len: u64) -> Self {
        Self { left: len.saturating_mul(EFFORT_PER_BYTE).saturating_add(EFFORT_BYTES) }
    }

    /// Takes bytes away; false if fewer are left.
    fn spend(&mut self, bytes: u64) -> bool {
        let enough = bytes <= self.left;
        self.left = self.left.saturating_sub(bytes);
        enough
    }
}

/// A run file that may be damaged anywhere.
#[derive(Debug)]
pub struct DamagedFile {
    id: FileId,
    path: PathBuf,
    file: Arc<dyn File>,
    len: u64,
    header: Result<u32>,
}

/// A part of a segment that cannot be read.
#[derive(Debug, Clone)]
pub struct LostPart {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The part of the format.
    pub section: &'static str,
    /// What is wrong.
    pub detail: &'static str,
    /// The first key that may be concerned, and the first key (or last possible one) behind.
    pub range: (Vec<u8>, Vec<u8>),
}

impl DamagedFile {
    /// Opens run file `id` of the data directory `dir`.
    pub fn open(fs: &dyn Fs, dir: &Path, id: FileId) -> Result<Self> {
        Self::open_path(fs, dir.join(file_name(id)), id)
    }

    /// Opens a run file at any path. A whole header of an unknown version is refused, because the
    /// rest of the file may then have another format (C9).
    pub fn open_path(fs: &dyn Fs, path: PathBuf, id: FileId) -> Result<Self> {
        let file = fs.open(&path, OpenMode::Read).context("open", &path)?;
        let len = file.len().context("measure", &path)?;
        let mut bytes = [0; HEADER_BYTES];
        let header = match file.read_at(&mut bytes, 0) {
            Ok(()) => check_header(&bytes, id, &path),
            Err(_) => Err(Error::corruption(&path, 0, "run header", "it cannot be read")),
        };
        let sealed = bytes[56..] == checksum(id, 0, &bytes[..56]).to_le_bytes();
        match header {
            Err(error @ Error::UnknownFormat { .. }) if sealed => Err(error),
            header => Ok(Self { id, path, file, len, header }),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its format version, or what is wrong with its header.
    pub fn header(&self) -> &Result<u32> {
        &self.header
    }

    fn read(&self, offset: u64, len: u64) -> Decoded<Vec<u8>> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(DecodeError("the file ends before"));
        }
        let mut bytes = vec![0; len as usize];
        self.file
            .read_at(&mut bytes, offset)
            .map_err(|_| DecodeError("the device does not give it back"))?;
        Ok(bytes)
    }

    /// The segments of the file, found by the marks in their footers: no manifest is needed.
    /// Segments whose space was released have no mark any more. No two segments overlap: a mark
    /// within a segment is user data.
    pub fn segments(&self) -> Vec<SegmentMeta> {
        let mut effort = Effort::new(self.len);
        self.segments_within(&mut effort)
    }

    fn segments_within(&self, effort: &mut Effort) -> Vec<SegmentMeta> {
        let mut found: Vec<SegmentMeta> = Vec::new();
        let mut at = 0;
        while at < self.len {
            let len = SCAN_BYTES.min(self.len - at);
            // The last bytes of a piece are searched again with the next piece.
            let step = if at + len == self.len { len } else { len - MAGIC.len() as u64 + 1 };
            if let Ok(bytes) = self.read(at, len) {
                let marks = bytes.windows(MAGIC.len()).enumerate();
                let marks = marks.filter(|(_, bytes)| *bytes == MAGIC).map(|(i, _)| at + i as u64);
                for mark in marks {
                    if let Some(meta) = self.segment_at(mark, effort) {
                        self.place_among(&mut found, meta, effort);
                    }
                }
            }
            at += step.max(1);
        }
        found
    }

    /// Adds a segment. If it overlaps segments found before, those with a whole tail stay.
    fn place_among(&self, found: &mut Vec<SegmentMeta>, meta: SegmentMeta, effort: &mut Effort) {
        let mut proves = |meta: &SegmentMeta| {
            effort.spend(u64::from(meta.tail_len)) && self.check_tail(meta).is_ok()
        };
        let overlaps = |last: &SegmentMeta| last.end() > meta.offset;
        if found.last().is_some_and(overlaps) {
            if found.last().is_some_and(|last| last.end() == meta.end()) || !proves(&meta) {
                return;
            }
            while found.last().is_some_and(|last| overlaps(last) && !proves(last)) {
                found.pop();
            }
        }
        if !found.last().is_some_and(overlaps) {
            found.push(meta);
        }
    }

    /// The segment whose footer has its mark at `mark`, if what the footer says makes sense.
    fn segment_at(&self, mark: u64, effort: &mut Effort) -> Option<SegmentMeta> {
        let end = mark + 16;
        let footer_at = end.checked_sub(FOOTER_BYTES as u64)?;
        let bytes = self.read(footer_at, FOOTER_BYTES as u64).ok()?;
        let footer = Footer::parse(&bytes)?;
        let tail_len = FOOTER_BYTES as u64 + footer.dictionary + footer.lens.iter().sum::<u64>();
        let tail_offset = end.checked_sub(tail_len)?;
        let info_at = footer_at.checked_sub(footer.lens[2])?;
        let begins = tail_offset.checked_sub(footer.blocks_len)?;
        if footer.lens[2] > INFO_BYTES_MAX || !effort.spend(footer.lens[2]) {
            return None;
        }
        let info = self.read(info_at, footer.lens[2]).ok()?;
        let mut meta = SegmentMeta::decode(&mut Reader::new(&info)).ok()?;
        if meta.file != self.id || meta.offset != begins {
            return None;
        }
        meta.tail_len = u32::try_from(tail_len).ok()?;
        meta.len = end - begins;
        meta.checksum = footer.checksum;
        Some(meta)
    }

    /// A reader of the blocks of a data segment, or of the values of a value segment.
    pub fn blocks(self: &Arc<Self>, meta: &SegmentMeta) -> SegmentReader {
        SegmentReader::open(self.clone(), meta)
    }

    /// Whether a segment's tail is whole and the one that `meta` describes.
    pub fn check_tail(&self, meta: &SegmentMeta) -> Decoded<()> {
        Tail::parse(&self.read(meta.tail_offset(), u64::from(meta.tail_len))?, meta).map(|_| ())
    }

    /// The range tombstones of a segment of that kind.
    pub fn fragments<O: KeyOrder>(&self, order: &O, meta: &SegmentMeta) -> Decoded<Fragments> {
        if meta.kind != SegmentKind::Tombstones {
            return Err(DecodeError("data stands among range tombstones"));
        }
        let bytes = self.read(meta.tail_offset(), u64::from(meta.tail_len))?;
        let tail = Tail::parse(&bytes, meta)?;
        Fragments::decode_at(order, &mut Reader::new(tail.index), meta.ingested_seq())
    }
}

/// A footer by its form; its checksum is not checked.
struct Footer {
    /// Lengths of filter, index and description.
    lens: [u64; 3],
    /// Length of the dictionary's section.
    dictionary: u64,
    blocks_len: u64,
    checksum: u64,
}

impl Footer {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let mut len = || reader.u32().ok().map(u64::from);
        let lens = [len()?, len()?, len()?];
        reader.u8().ok()?;
        let dictionary = u64::from(read_u24(&mut reader).ok()?);
        let blocks_len = reader.u64().ok()?;
        if reader.take(8).ok()? != MAGIC {
            return None;
        }
        Some(Self { lens, dictionary, blocks_len, checksum: reader.u64().ok()? })
    }
}

/// Reads the blocks of a segment one after the other, and notes what is lost between them.
#[derive(Debug)]
pub struct SegmentReader {
    file: Arc<DamagedFile>,
    meta: SegmentMeta,
    /// Where the index says that blocks stand, with their fences.
    places: Vec<(Place, Vec<u8>)>,
    /// Whether the index is whole; otherwise it is only a hint.
    trusted: bool,
    /// Without a whole index, where the first blocks were found one after the other, and their lengths.
    numbered: Option<Vec<(u64, u64)>>,
    dictionary: Option<Dictionary>,
    next: usize,
    at: u64,
    raw: Vec<u8>,
    layout: Option<Layout>,
    place: Option<Found>,
    lost: Vec<LostPart>,
    blocks: u64,
    /// The effort left for blocks whose places no index gives.
    effort: Effort,
}

/// Where a block was found.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// Its offset in the file.
    pub offset: u64,
    /// The length of the stored block.
    pub len: u64,
    /// How it is compressed.
    pub codec: Codec,
}

impl SegmentReader {
    fn open(file: Arc<DamagedFile>, meta: &SegmentMeta) -> Self {
        let mut reader = Self {
            at: meta.offset,
            meta: meta.clone(),
            places: Vec::new(),
            trusted: false,
            numbered: None,
            dictionary: None,
            next: 0,
            raw: Vec::new(),
            layout: None,
            place: None,
            lost: Vec::new(),
            blocks: 0,
            effort: Effort::new(meta.len.min(file.len)),
            file,
        };
        if let Err(error) = reader.load_index() {
            reader.lose(meta.tail_offset(), u64::from(meta.tail_len), "segment tail", error.0);
        }
        reader
    }

    /// Reads the index; of a damaged tail, the part that makes sense.
    fn load_index(&mut self) -> Decoded<()> {
        let bytes = self.file.read(self.meta.tail_offset(), u64::from(self.meta.tail_len))?;
        match Tail::parse(&bytes, &self.meta) {
            Ok(tail) => {
                self.places = read_places(tail.index, self.meta.offset).0;
                self.trusted = true;
                self.load_dictionary(tail.dictionary)
            }
            Err(error) => {
                let footer = &bytes[bytes.len().saturating_sub(FOOTER_BYTES)..];
                if let Some(footer) = Footer::parse(footer) {
                    let within = |at: u64| at.min(bytes.len() as u64) as usize;
                    let start = footer.dictionary + footer.lens[0];
                    let index = &bytes[within(start)..within(start + footer.lens[1])];
                    self.places = read_places(index, self.meta.offset).0;
                }
                // A tail without a dictionary begins with something else, which has no such checksum.
                let _ = self.load_dictionary(&bytes);
                Err(error)
            }
        }
    }

    /// Takes the dictionary at the beginning of these bytes, with which the tail begins.
    fn load_dictionary(&mut self, bytes: &[u8]) -> Decoded<()> {
        let offset = self.meta.tail_offset();
        self.dictionary = read_dictionary(bytes, self.meta.file, offset)?;
        Ok(())
    }

    /// The description of the segment.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// Bytes of its dictionary, if it has one that is whole. The tail begins with it.
    pub fn dictionary_bytes(&self) -> Option<usize> {
        self.dictionary.as_ref().map(|dictionary| dictionary.bytes().len())
    }

    /// The file that holds it.
    pub fn file(&self) -> &Arc<DamagedFile> {
        &self.file
    }

    /// The lost parts found so far.
    pub fn lost(&self) -> &[LostPart] {
        &self.lost
    }

    /// How many blocks were read so far.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The place of the present block.
    pub fn place(&self) -> Option<Found> {
        self.place
    }

    /// The present block.
    pub fn block(&self) -> Option<Block<'_>> {
        self.layout.as_ref().map(|layout| Block::new(&self.raw, layout))
    }

    /// Goes to the next block that is whole; false if there is none.
    pub fn advance(&mut self) -> bool {
        self.layout = None;
        self.place = None;
        loop {
            let step = if self.trusted { self.step_indexed() } else { self.step_searching() };
            match step {
                Step::Block => {
                    self.blocks += 1;
                    return true;
                }
                Step::Lost => {}
                Step::End => return false,
            }
        }
    }

    /// The stored value of a reference, if this is a value segment and the value is whole.
    pub fn value(&mut self, reference: ValueRef) -> Decoded<Vec<u8>> {
        let ValueRef { block, len, piece, .. } = reference;
        let blocks = if piece > 0 { len.div_ceil(piece) } else { 1 };
        let mut value = Vec::new();
        for number in block..block.saturating_add(blocks) {
            value.extend_from_slice(self.value_block(number)?);
        }
        match value.len() == len as usize {
            true => Ok(value),
            false => Err(DecodeError("a value is not the one that its key refers to")),
        }
    }

    /// What the block with this number holds.
    fn value_block(&mut self, number: u32) -> Decoded<&[u8]> {
        let (offset, len) = self
            .found(number as usize)
            .ok_or(DecodeError("its value segment does not say where it is"))?;
        self.take(offset, len)?;
        let block = self.layout.as_ref().map(|layout| Block::new(&self.raw, layout));
        match block.filter(|block| block.count() == 1) {
            Some(block) => Ok(block.value(0)),
            None => Err(DecodeError("a value's block has other entries")),
        }
    }

    /// Where the block with this number stands. Without a whole index, it is counted from the first on, as
    /// far as no block is lost; behind that, the damaged index may still say it.
    fn found(&mut self, number: usize) -> Option<(u64, u64)> {
        // Seeded: with the index of a value segment, a repair loses values that a plan found.
        if !self.trusted && !bug!("run_values_lost_with_their_index") {
            let numbered = self.numbered.take().unwrap_or_else(|| self.number_blocks());
            let found = numbered.get(number).copied();
            self.numbered = Some(numbered);
            if found.is_some() {
                return found;
            }
        }
        self.places.get(number).map(|(place, _)| (place.offset, u64::from(place.len)))
    }

    fn number_blocks(&mut self) -> Vec<(u64, u64)> {
        let end = self.meta.tail_offset().min(self.file.len);
        let (mut at, mut found) = (self.meta.offset, Vec::new());
        while at < end
            && let Some(len) = self.length_at(at, end)
        {
            found.push((at, len));
            at += len;
        }
        found
    }

    fn step_indexed(&mut self) -> Step {
        let Some((place, _)) = self.places.get(self.next) else { return Step::End };
        let place = *place;
        self.next += 1;
        match self.take(place.offset, u64::from(place.len)) {
            Ok(()) => Step::Block,
            Err(error) => {
                self.lose(place.offset, u64::from(place.len), "block", error.0);
                Step::Lost
            }
        }
    }

    /// Without an index, blocks follow each other. Behind a lost block, the damaged index may still
    /// say where a later one begins.
    fn step_searching(&mut self) -> Step {
        let end = self.meta.tail_offset().min(self.file.len);
        if self.at >= end {
            // The part that a truncated file does not hold is lost too.
            let missing = self.meta.tail_offset().saturating_sub(self.at);
            if missing > 0 {
                self.lose(self.at, missing, "block", "the file ends before");
                self.at = self.meta.tail_offset();
            }
            return Step::End;
        }
        if let Some(len) = self.length_at(self.at, end)
            && self.take(self.at, len).is_ok()
        {
            self.at += len;
            return Step::Block;
        }
        let hint = self.places.iter().map(|(place, _)| place.offset).find(|o| *o > self.at);
        let next = hint.filter(|hint| *hint < end).unwrap_or(end);
        self.lose(self.at, next - self.at, "block", "no whole block is found here");
        self.at = next;
        Step::Lost
    }

    /// The length of the stored block at `offset`, which ends before `end`: the one for which the
    /// trailer's checksum is right. Most blocks are short, so the search begins with a short piece.
    fn length_at(&mut self, offset: u64, end: u64) -> Option<u64> {
        let (mut window, mut tried) = (WINDOW_BYTES, TRAILER_BYTES);
        loop {
            let reach = window.min(end - offset);
            if !self.effort.spend(reach) {
                return None;
            }
            let bytes = self.file.read(offset, reach).ok()?;
            for len in tried..=bytes.len() {
                if !may_end_block(&bytes[..len]) {
                    continue;
                }
                if !self.effort.spend(len as u64) {
                    return None;
                }
                if sum_fits(self.file.id, offset, &bytes[..len]) {
                    return Some(len as u64);
                }
            }
            if reach == end - offset {
                return None;
            }
            tried = bytes.len() + 1;
            window *= 4;
        }
    }

    fn take(&mut self, offset: u64, len: u64) -> Decoded<()> {
        let bytes = self.file.read(offset, len)?;
        let own = bytes.last_chunk::<8>().ok_or(DecodeError("a block is too short"))?;
        let stored = EncodedBlock::check(&bytes, self.file.id, offset, u64::from_le_bytes(*own))?;
        self.raw.clear();
        self.raw.resize(stored.raw_len, 0);
        stored.decode_into(&mut self.raw, self.dictionary.as_ref())?;
        self.layout = Some(Layout::parse(&self.raw)?);
        self.place = Some(Found { offset, len, codec: stored.codec });
        Ok(())
    }

    fn lose(&mut self, offset: u64, len: u64, section: &'static str, detail: &'static str) {
        let begin = self.places.partition_point(|(place, _)| place.offset <= offset);
        let after = self.places.partition_point(|(place, _)| place.offset < offset + len);
        let known = |key: &&Vec<u8>| !key.is_empty();
        let fence =
            |i: Option<usize>| i.and_then(|i| self.places.get(i)).map(|(_, key)| key).filter(known);
        let low = fence(begin.checked_sub(1)).unwrap_or(&self.meta.min_key).clone();
        let high = fence(Some(after)).unwrap_or(&self.meta.max_key).clone();
        self.lost.push(LostPart { offset, len, section, detail, range: (low, high) });
    }
}

enum Step {
    Block,
    Lost,
    End,
}

/// Whether these bytes end like a stored block: checks codec and raw length first, because they
/// reject almost everything before a checksum is needed.
fn may_end_block(bytes: &[u8]) -> bool {
    let (payload, trailer) = bytes.split_at(bytes.len() - TRAILER_BYTES);
    let mut raw_len = [0; 4];
    raw_len.copy_from_slice(&trailer[1..5]);
    let (raw_len, payload_len) = (u64::from(u32::from_le_bytes(raw_len)), payload.len() as u64);
    match Codec::from_u8(trailer[0]) {
        Some(Codec::Raw) => raw_len == payload_len,
        // A block is compressed only where that makes it smaller.
        Some(Codec::Lz4 | Codec::Zstd) => {
            raw_len > payload_len && raw_len <= expansion_max(payload.len()).min(RAW_BYTES_MAX)
        }
        None => false,
    }
}

fn sum_fits(file: FileId, offset: u64, bytes: &[u8]) -> bool {
    let (summed, sum) = bytes.split_at(bytes.len() - 8);
    *sum == checksum(file, offset, summed).to_le_bytes()
}

/// The places and fences of an index that make sense, and whether all of them do.
fn read_places(index: &[u8], mut offset: u64) -> (Vec<(Place, Vec<u8>)>, bool) {
    let mut places: Vec<(Place, Vec<u8>)> = Vec::new();
    let mut reader = Reader::new(index);
    let Ok(count) = reader.varint() else { return (places, false) };
    let (mut fence, mut kept) = (Vec::new(), 0usize);
    let mut read = || -> Decoded<(Place, Vec<u8>)> {
        let place = read_place(&mut reader, offset)?;
        offset = place.end();
        let shared = reader.varint_max(fence.len() as u64)? as usize;
        fence.truncate(shared);
        fence.extend_from_slice(reader.bytes(limits::KEY_BYTES_MAX - shared)?);
        // A few bytes may expand to a key of 64 KiB. An empty fence excludes nothing.
        kept += fence.len();
        let known = kept <= index.len().saturating_mul(FENCES_PER_BYTE);
        Ok((place, if known { fence.clone() } else { Vec::new() }))
    };
    while (places.len() as u64) < count {
        match read() {
            Ok(place) => places.push(place),
            Err(_) => return (places, false),
        }
    }
    (places, true)
}
