//! Reads the blocks of a segment that may be damaged anywhere.
//!
//! With a whole index, every block is searched where it says. Without one, blocks are searched one after the
//! other; what is left of the index says where to go on behind a lost block.

use super::{DamagedFile, Effort, Footer, LostPart};
use crate::base::codec::{DecodeError, Decoded, Reader, checksum};
use crate::base::{FileId, limits};
use crate::block::{
    Block, Codec, Dictionary, EncodedBlock, Layout, RAW_BYTES_MAX, TRAILER_BYTES, expansion_max,
};
use crate::error::{Error, Result};
use crate::run::index::{FOOTER_BYTES, Place, Tail, read_dictionary, read_place};
use crate::run::meta::SegmentMeta;
use crate::run::reference::ValueRef;
use crate::run::writer::Source;
use std::ops::Range;
use std::sync::Arc;

/// Length of the first piece in which a block is searched; stored values may be short.
const WINDOW_BYTES: u64 = 1 << 10;
/// Fences are shortened in an index, so they are kept only up to this many times its length.
const FENCES_PER_BYTE: usize = 64;

/// Reads the blocks of a segment one after the other, and notes what is lost between them.
#[derive(Debug)]
pub struct SegmentReader {
    file: Arc<DamagedFile>,
    meta: SegmentMeta,
    /// Where the index says that blocks stand, with their fences.
    places: Vec<(Place, Vec<u8>)>,
    /// Whether the index is whole; otherwise it is only a hint.
    trusted: bool,
    /// Without a whole index, where the first blocks were found one after the other.
    numbered: Option<Vec<Whereabouts>>,
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

/// Where a block should be, and the checksum that the index gives it: a damaged one may lead to another block.
#[derive(Debug, Clone, Copy)]
struct Whereabouts {
    offset: u64,
    len: u64,
    checksum: Option<u64>,
}

impl Whereabouts {
    fn of(place: &Place) -> Self {
        let Place { offset, len, checksum, .. } = *place;
        Self { offset, len: u64::from(len), checksum: Some(checksum) }
    }
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
    pub(super) fn open(file: Arc<DamagedFile>, meta: &SegmentMeta) -> Self {
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
                self.places = read_places(tail.index, self.meta.offset);
                self.trusted = true;
                self.load_dictionary(tail.dictionary)
            }
            Err(error) => {
                let footer = &bytes[bytes.len().saturating_sub(FOOTER_BYTES)..];
                if let Some(footer) = Footer::parse(footer) {
                    let within = |at: u64| at.min(bytes.len() as u64) as usize;
                    let start = footer.dictionary + footer.lens[0];
                    let index = &bytes[within(start)..within(start + footer.lens[1])];
                    self.places = read_places(index, self.meta.offset);
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
        let mut value = Vec::new();
        for number in blocks_of(reference) {
            value.extend_from_slice(self.value_block(number)?);
        }
        check_len(reference, value.len() as u64).map(|()| value)
    }

    /// Whether [`Self::value`] would return one. It reads all of it, a piece at a time.
    pub fn check_value(&mut self, reference: ValueRef) -> Decoded<()> {
        let mut len = 0;
        for number in blocks_of(reference) {
            len += self.value_block(number)?.len() as u64;
        }
        // Seeded: a repair saves a value in pieces of which some are missing.
        bug!("run_saved_pieces_not_counted", return Ok(()));
        check_len(reference, len)
    }

    /// The stored value of a reference, to be read in pieces.
    pub fn saved(&mut self, reference: ValueRef) -> SavedValue<'_> {
        let blocks = blocks_of(reference);
        SavedValue { reader: self, blocks, held: Vec::new(), failed: false }
    }

    /// What the block with this number holds.
    fn value_block(&mut self, number: u32) -> Decoded<&[u8]> {
        let place = self.found(number as usize);
        let place = place.ok_or(DecodeError("its value segment does not say where it is"))?;
        self.take(place)?;
        let block = self.layout.as_ref().map(|layout| Block::new(&self.raw, layout));
        match block.filter(|block| block.count() == 1) {
            Some(block) => Ok(block.value(0)),
            None => Err(DecodeError("a value's block has other entries")),
        }
    }

    /// Where the block with this number stands. Without a whole index, it is counted from the first on, as
    /// far as no block is lost; behind that, the damaged index may still say it.
    fn found(&mut self, number: usize) -> Option<Whereabouts> {
        // Seeded: with the index of a value segment, a repair loses values that a plan found.
        let counts = !self.trusted && !bug!("run_values_lost_with_their_index");
        if counts && self.numbered.is_none() {
            self.numbered = Some(self.number_blocks());
        }
        let numbered = self.numbered.as_ref().and_then(|numbered| numbered.get(number)).copied();
        numbered.or_else(|| self.places.get(number).map(|(place, _)| Whereabouts::of(place)))
    }

    fn number_blocks(&mut self) -> Vec<Whereabouts> {
        let end = self.meta.tail_offset().min(self.file.len);
        let (mut at, mut found) = (self.meta.offset, Vec::new());
        while at < end
            && let Some(len) = self.length_at(at, end)
        {
            found.push(Whereabouts { offset: at, len, checksum: None });
            at += len;
        }
        found
    }

    fn step_indexed(&mut self) -> Step {
        let Some((place, _)) = self.places.get(self.next) else { return Step::End };
        let place = Whereabouts::of(place);
        self.next += 1;
        match self.take(place) {
            Ok(()) => Step::Block,
            Err(error) => {
                self.lose(place.offset, place.len, "block", error.0);
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
            && self.take(Whereabouts { offset: self.at, len, checksum: None }).is_ok()
        {
            self.at += len;
            return Step::Block;
        }
        let hint = self.hint(self.at + 1).map(|place| place.offset);
        let next = hint.filter(|hint| *hint < end).unwrap_or(end);
        self.lose(self.at, next - self.at, "block", "no whole block is found here");
        self.at = next;
        Step::Lost
    }

    /// The length of the stored block at `offset`, which ends before `end`: the one for which the
    /// trailer's checksum is right. The damaged index may say it.
    fn length_at(&mut self, offset: u64, end: u64) -> Option<u64> {
        let hint = self.hint(offset);
        if let Some(hint) = hint.filter(|hint| hint.offset == offset && hint.end() <= end)
            && self.effort.spend(u64::from(hint.len))
            && let Ok(bytes) = self.file.read(offset, u64::from(hint.len))
            && sum_fits(self.file.id, offset, &bytes)
        {
            return Some(u64::from(hint.len));
        }
        self.searched_length(offset, end)
    }

    /// The first block at or behind `offset` of which a damaged index still says where it stands.
    fn hint(&self, offset: u64) -> Option<Place> {
        let at = self.places.partition_point(|(place, _)| place.offset < offset);
        self.places.get(at).map(|(place, _)| *place)
    }

    /// Most blocks are short, so the search begins with a short piece.
    fn searched_length(&mut self, offset: u64, end: u64) -> Option<u64> {
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

    fn take(&mut self, place: Whereabouts) -> Decoded<()> {
        let Whereabouts { offset, len, checksum } = place;
        let bytes = self.file.read(offset, len)?;
        let own = bytes.last_chunk::<8>().ok_or(DecodeError("a block is too short"))?;
        let checksum = checksum.unwrap_or(u64::from_le_bytes(*own));
        let stored = EncodedBlock::check(&bytes, self.file.id, offset, checksum)?;
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

/// The stored value of a reference, which is read a piece at a time.
#[derive(Debug)]
pub struct SavedValue<'r> {
    reader: &'r mut SegmentReader,
    /// The blocks that were not read yet.
    blocks: Range<u32>,
    /// What was read and not handed over: pieces of another size may be asked for.
    held: Vec<u8>,
    failed: bool,
}

impl Source for SavedValue<'_> {
    fn next(&mut self, piece: &mut Vec<u8>, bytes: usize) -> Result<()> {
        while self.held.len() < bytes
            && let Some(number) = self.blocks.next()
        {
            let (file, at) = (self.reader.file.clone(), self.reader.meta.offset);
            let read = self.reader.value_block(number);
            let read = read.inspect_err(|_| self.failed = true);
            let failed = |error: DecodeError| Error::corruption(file.path(), at, "value", error.0);
            self.held.extend_from_slice(read.map_err(failed)?);
        }
        let now = bytes.min(self.held.len());
        piece.clear();
        piece.extend(self.held.drain(..now));
        Ok(())
    }

    fn has_failed(&self) -> bool {
        self.failed
    }
}

/// The numbers of the blocks that are a value.
fn blocks_of(reference: ValueRef) -> Range<u32> {
    let ValueRef { block, len, piece, .. } = reference;
    let blocks = if piece > 0 { len.div_ceil(piece) } else { 1 };
    block..block.saturating_add(blocks)
}

fn check_len(reference: ValueRef, len: u64) -> Decoded<()> {
    match len == u64::from(reference.len) {
        true => Ok(()),
        false => Err(DecodeError("a value is not the one that its key refers to")),
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

/// The places and fences of an index, up to the first that makes no sense.
fn read_places(index: &[u8], mut offset: u64) -> Vec<(Place, Vec<u8>)> {
    let mut places: Vec<(Place, Vec<u8>)> = Vec::new();
    let mut reader = Reader::new(index);
    let Ok(count) = reader.varint() else { return places };
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
            Err(_) => break,
        }
    }
    places
}
