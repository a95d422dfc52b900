//! LevelDB's tables: blocks of entries with shared prefixes, an index of them, a footer.

use super::checksum::masked_crc;
use super::fault::{bad, failed};
use super::key::{TAG_BYTES, Tag, split};
use crate::{Error, Result};
use esker::internals::base::codec::{DecodeError, Decoded, Reader};
use esker::internals::base::limits::VALUE_BYTES_MAX;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

const FOOTER_BYTES: u64 = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// Behind each block: how it is packed, and a checksum.
const TRAILER_BYTES: usize = 5;
const PLAIN: u8 = 0;
const SNAPPY: u8 = 1;
const ZSTD: u8 = 2;
/// A block has about 4 KiB, and more only if an entry has; this is beyond what LevelDB can write.
const BLOCK_BYTES_MAX: usize = u32::MAX as usize;
/// The most that a block holds besides a value of the largest size that can be stored here.
const BLOCK_REST_MAX: u64 = 1 << 20;
/// Neighbouring blocks are read together.
const READ_BYTES: usize = 512 << 10;

/// Where a block stands, without its trailer.
#[derive(Debug, Clone, Copy)]
struct Handle {
    offset: u64,
    size: usize,
}

/// Steps over the entries of a table.
pub struct Table {
    path: PathBuf,
    file: File,
    len: u64,
    blocks: std::vec::IntoIter<Handle>,
    window: Vec<u8>,
    window_at: u64,
    block: Block,
    /// Where the present block stands.
    at: u64,
}

impl Table {
    /// Opens a table on its first entry.
    pub fn open(path: &Path) -> Result<Self> {
        let file = crate::foreign::open(path).map_err(failed("open", path))?;
        let len = file.metadata().map_err(failed("look at", path))?.len();
        let mut table = Self {
            path: path.to_owned(),
            file,
            len,
            blocks: Vec::new().into_iter(),
            window: Vec::new(),
            window_at: 0,
            block: Block::default(),
            at: 0,
        };
        let footer = len.checked_sub(FOOTER_BYTES);
        let footer_at = footer.ok_or_else(|| bad(path, 0, "the file is too short for a table"))?;
        let footer = table.bytes(footer_at, FOOTER_BYTES as usize)?;
        let mut magic = Reader::new(&footer[FOOTER_BYTES as usize - 8..]);
        if magic.u64() != Ok(MAGIC) {
            return Err(bad(path, footer_at, "the footer is not that of a table"));
        }
        let mut reader = Reader::new(&footer);
        let index = handle(&mut reader).and_then(|_meta| handle(&mut reader));
        let index = index.map_err(|error| bad(path, footer_at, error))?;
        let mut block = Block::default();
        table.read_block(index, &mut block)?;
        let mut handles = Vec::new();
        while block.next().map_err(|error| bad(path, index.offset, error))? {
            let handle = handle(&mut Reader::new(block.value()));
            handles.push(handle.map_err(|error| bad(path, index.offset, error))?);
        }
        table.blocks = handles.into_iter();
        table.step()?;
        Ok(table)
    }

    pub fn valid(&self) -> bool {
        self.block.valid
    }

    /// The user's key, and LevelDB's part of it.
    pub fn key(&self) -> (&[u8], Tag) {
        split(&self.block.key)
    }

    pub fn value(&self) -> &[u8] {
        self.block.value()
    }

    /// How much of the file is behind the cursor.
    pub fn offset(&self) -> u64 {
        if self.block.valid { self.at } else { self.len }
    }

    /// Moves to the next entry.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        loop {
            match self.block.next() {
                Ok(true) if self.block.key.len() >= TAG_BYTES => return Ok(()),
                Ok(true) => return Err(bad(&self.path, self.at, "a key is too short")),
                Ok(false) => {}
                Err(error) => return Err(bad(&self.path, self.at, error)),
            }
            let Some(handle) = self.blocks.next() else { return Ok(()) };
            self.at = handle.offset;
            let mut block = std::mem::take(&mut self.block);
            self.read_block(handle, &mut block)?;
            self.block = block;
        }
    }

    fn read_block(&mut self, handle: Handle, block: &mut Block) -> Result<()> {
        let wrong = |what: &str| bad(&self.path, handle.offset, what);
        let whole = handle.size.checked_add(TRAILER_BYTES);
        let end = whole.and_then(|whole| handle.offset.checked_add(whole as u64));
        let (Some(whole), Some(end)) = (whole, end) else {
            return Err(wrong("a block reaches beyond the file"));
        };
        if end > self.len {
            return Err(wrong("a block reaches beyond the file"));
        }
        let inside =
            handle.offset >= self.window_at && end <= self.window_at + self.window.len() as u64;
        if !inside {
            let ahead = (self.len - handle.offset).min(READ_BYTES.max(whole) as u64);
            let mut window = std::mem::take(&mut self.window);
            self.read_at(handle.offset, ahead as usize, &mut window)?;
            (self.window, self.window_at) = (window, handle.offset);
        }
        let from = (handle.offset - self.window_at) as usize;
        let stored = &self.window[from..from + whole];
        let (data, trailer) = stored.split_at(handle.size);
        let wrong = |what: &str| bad(&self.path, handle.offset, what);
        let sum = u32::from_le_bytes([trailer[1], trailer[2], trailer[3], trailer[4]]);
        if masked_crc(&[data, &trailer[..1]]) != sum {
            return Err(wrong("a block does not match its checksum"));
        }
        block.load(trailer[0], data).map_err(|error| wrong(error.0))
    }

    fn bytes(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_at(offset, len, &mut bytes)?;
        Ok(bytes)
    }

    fn read_at(&self, offset: u64, len: usize, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.clear();
        let mut file = &self.file;
        let read = file
            .seek(SeekFrom::Start(offset))
            .and_then(|_| file.take(len as u64).read_to_end(bytes));
        match read {
            Ok(read) if read == len => Ok(()),
            Ok(_) => Err(bad(&self.path, offset, "the file became shorter")),
            Err(error) => Err(Error::io("read", self.path.display().to_string(), error)),
        }
    }
}

fn handle(reader: &mut Reader<'_>) -> Decoded<Handle> {
    Ok(Handle {
        offset: reader.varint()?,
        size: reader.varint_max(BLOCK_BYTES_MAX as u64)? as usize,
    })
}

/// Steps over the entries of a block.
#[derive(Default)]
struct Block {
    data: Vec<u8>,
    /// Where the entries end and the restart points begin.
    end: usize,
    at: usize,
    key: Vec<u8>,
    value: Range<usize>,
    valid: bool,
}

impl Block {
    fn load(&mut self, packing: u8, stored: &[u8]) -> Decoded<()> {
        self.data.clear();
        match packing {
            PLAIN => self.data.extend_from_slice(stored),
            SNAPPY => {
                let wrong = |_| DecodeError("a block cannot be unpacked with Snappy");
                let len = snap::raw::decompress_len(stored).map_err(wrong)?;
                // Snappy makes data at most about 21 times as small: a greater length is a lie,
                // and not to be allocated.
                if len > stored.len().saturating_mul(64).saturating_add(64) {
                    return Err(DecodeError("a block cannot be unpacked with Snappy"));
                }
                self.data.resize(len, 0);
                snap::raw::Decoder::new().decompress(stored, &mut self.data).map_err(wrong)?;
            }
            ZSTD => {
                let wrong = |_| DecodeError("a block cannot be unpacked with Zstandard");
                let decoder = zstd::stream::read::Decoder::new(stored).map_err(wrong)?;
                // A few bytes may stand for any number of equal ones.
                let most = VALUE_BYTES_MAX + BLOCK_REST_MAX;
                decoder.take(most + 1).read_to_end(&mut self.data).map_err(wrong)?;
                if self.data.len() as u64 > most {
                    return Err(DecodeError("a block is larger than it can be"));
                }
            }
            _ => return Err(DecodeError("a block is packed in a way that is not known")),
        }
        let count = self.data.len().checked_sub(4);
        let count_at = count.ok_or(DecodeError("a block is too short"))?;
        let restarts = Reader::new(&self.data[count_at..]).u32()? as usize;
        let end = restarts.checked_mul(4).and_then(|bytes| count_at.checked_sub(bytes));
        self.end = end.ok_or(DecodeError("a block has more restart points than bytes"))?;
        (self.at, self.valid) = (0, false);
        self.key.clear();
        Ok(())
    }

    fn value(&self) -> &[u8] {
        &self.data[self.value.clone()]
    }

    #[inline]
    fn next(&mut self) -> Decoded<bool> {
        self.valid = false;
        if self.at >= self.end {
            return Ok(false);
        }
        let mut reader = Reader::new(&self.data[self.at..self.end]);
        let shared = length(&mut reader)?;
        let (unshared, value) = (length(&mut reader)?, length(&mut reader)?);
        if shared > self.key.len() {
            return Err(DecodeError("an entry shares more than there is"));
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(reader.take(unshared)?);
        reader.take(value)?;
        let end = self.at + reader.position();
        self.value = end - value..end;
        self.at = end;
        self.valid = true;
        Ok(true)
    }
}

/// A length; nearly all are below 128.
#[inline]
fn length(reader: &mut Reader<'_>) -> Decoded<usize> {
    reader.varint_max(u64::from(u32::MAX)).map(|length| length as usize)
}
