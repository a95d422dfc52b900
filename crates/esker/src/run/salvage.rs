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

mod blocks;

pub use blocks::{Found, SavedValue, SegmentReader};

use super::file_name;
use super::header::{HEADER_BYTES, check_header};
use super::index::{FOOTER_BYTES, MAGIC, Tail, read_u24};
use super::meta::{SegmentKind, SegmentMeta};
use crate::base::codec::{DecodeError, Decoded, Reader, checksum};
use crate::base::rangedel::Fragments;
use crate::base::{FileId, KeyOrder, limits};
use crate::error::{Error, IoContext, Result};
use crate::fs::{File, Fs, OpenMode};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are searched for segments at a time.
const SCAN_BYTES: u64 = 1 << 20;
/// The longest description of a segment: two bounds, numbers, and a list of value segments.
const INFO_BYTES_MAX: u64 = 2 * limits::BOUND_BYTES_MAX as u64 + (4 << 20);
/// Bytes that a search may read and checksum: for each byte of the range, and in addition.
const EFFORT_PER_BYTE: u64 = 64;
const EFFORT_BYTES: u64 = 1 << 20;

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
