//! LevelDB's log format, in which its write-ahead logs and manifests are kept, and RocksDB's
//! manifests too: records in blocks of 32 KiB, cut into fragments where they do not fit.

use super::checksum::masked_crc;
use super::fault::{damaged, failed};
use crate::{Engine, Result};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const BLOCK_BYTES: usize = 32 << 10;
const HEAD_BYTES: usize = 7;

const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Reads records one after the other.
pub struct Log {
    engine: Engine,
    path: PathBuf,
    file: File,
    block: Vec<u8>,
    /// Where in the block to go on.
    at: usize,
    /// Where in the file the block begins.
    start: u64,
    last_block: bool,
    record: Vec<u8>,
    torn: bool,
}

impl Log {
    pub fn open(engine: Engine, path: &Path) -> Result<Self> {
        let file = crate::foreign::open(path).map_err(failed("open", path))?;
        Ok(Self {
            engine,
            path: path.to_owned(),
            file,
            block: Vec::new(),
            at: 0,
            start: 0,
            last_block: false,
            record: Vec::new(),
            torn: false,
        })
    }

    /// Where reading stands in the file.
    pub fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Whether the file ends in the middle of a record.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// The next record. A torn end, a record that was never written whole, counts as the end, as in
    /// LevelDB. If whole records follow it in the block, its length is damaged; LevelDB would lose
    /// those records in silence.
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        self.record.clear();
        let mut inside = false;
        loop {
            if self.block.len() - self.at < HEAD_BYTES {
                if self.last_block {
                    self.torn = inside || self.at < self.block.len();
                    return Ok(None);
                }
                self.fill()?;
                continue;
            }
            let head = &self.block[self.at..self.at + HEAD_BYTES];
            let stored = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let (len, kind) = (usize::from(u16::from_le_bytes([head[4], head[5]])), head[6]);
            let from = self.at + HEAD_BYTES;
            let Some(data) = self.block.get(from..from + len) else {
                if self.last_block && !self.records_follow(from) {
                    self.torn = true;
                    return Ok(None);
                }
                return Err(self.bad("a record is longer than its block"));
            };
            if kind == 0 && len == 0 {
                // Space that was allocated ahead: nothing more in this block. RocksDB writes empty
                // records, so a damaged kind alone looks the same.
                if self.block[self.at..].iter().any(|byte| *byte != 0) {
                    return Err(self.bad("a record has no kind"));
                }
                if inside {
                    return Err(self.bad("a record has no end"));
                }
                self.at = self.block.len();
                continue;
            }
            if masked_crc(&[&[kind], data]) != stored {
                return Err(self.bad("a record does not match its checksum"));
            }
            match (kind, inside) {
                (FULL | FIRST, false) | (MIDDLE | LAST, true) => {}
                // An empty first fragment at the end of a block, as old versions wrote it.
                (FULL | FIRST, true) if self.record.is_empty() => {}
                _ => return Err(self.bad("the fragments of a record are not in order")),
            }
            self.record.extend_from_slice(data);
            self.at = from + len;
            inside = true;
            if matches!(kind, FULL | LAST) {
                return Ok(Some(&self.record));
            }
        }
    }

    /// Whether a record with a right checksum stands anywhere behind `from` in the block.
    fn records_follow(&self, from: usize) -> bool {
        (from..self.block.len().saturating_sub(HEAD_BYTES)).any(|at| {
            let head = &self.block[at..at + HEAD_BYTES];
            let (len, kind) = (usize::from(u16::from_le_bytes([head[4], head[5]])), head[6]);
            let data = self.block.get(at + HEAD_BYTES..at + HEAD_BYTES + len);
            let data = data.filter(|_| (FULL..=LAST).contains(&kind));
            data.is_some_and(|data| masked_crc(&[&[kind], data]).to_le_bytes() == head[..4])
        })
    }

    fn fill(&mut self) -> Result<()> {
        self.start += self.block.len() as u64;
        self.at = 0;
        self.block.clear();
        let mut limited = (&mut self.file).take(BLOCK_BYTES as u64);
        limited.read_to_end(&mut self.block).map_err(failed("read", &self.path))?;
        self.last_block = self.block.len() < BLOCK_BYTES;
        Ok(())
    }

    pub fn bad(&self, what: &str) -> crate::Error {
        damaged(self.engine, &self.path, self.offset(), what)
    }
}
