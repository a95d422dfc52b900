//! One log file that takes records.
//!
//! An [`AllocatedFile`] is a file with its allocated space and, for the mapped log, its mapping; it
//! can be used several times. A [`LogFile`] is one use of it: a window of the log. Preparation
//! makes the header durable before a writer may reserve space in the window (R4). After that, a
//! write is a copy into the mapping or one positioned write.

use super::format::{HEADER_BYTES, LogFileHeader};
use crate::base::{NumberedName, Seq};
use crate::error::{Error, IoContext, Result};
use crate::fs::{File, Fs, LogMap, OpenMode};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: NumberedName = NumberedName { prefix: "", digits: 10, suffix: ".log" };

/// The name of the log file with this number.
pub fn file_name(number: u64) -> String {
    NAME.of(number)
}

/// The number of the log file with this name; None for names that are not ours.
pub fn file_number(name: &str) -> Option<u64> {
    NAME.number(name)
}

/// No page is larger.
const PAGE_BYTES_MAX: u64 = 64 << 10;

/// If less is synced, the calls that release pages cost more than they save.
pub const RELEASE_BYTES_MIN: u64 = 256 << 10;

/// How records get into the file (R10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// One positioned write per piece.
    Plain,
    /// A copy into a shared mapping.
    Mapped,
}

/// A file with allocated space, which the log uses several times.
#[derive(Debug)]
pub struct AllocatedFile {
    path: PathBuf,
    capacity: u64,
    file: Arc<dyn File>,
    map: Option<Box<dyn LogMap>>,
}

impl AllocatedFile {
    /// Makes a file with `capacity` bytes of real space for records (R9). The directory entry is
    /// not durable yet. A failed attempt leaves no file behind.
    pub fn create(fs: &dyn Fs, path: PathBuf, capacity: u64, medium: Medium) -> Result<Self> {
        let file = fs.open(&path, OpenMode::CreateNew).context("create", &path)?;
        let made = Self::fill(file, &path, capacity, medium);
        if made.is_err() {
            // The name is not used again. If removing the file fails too, recovery finds a blank
            // file.
            let _ = fs.remove_file(&path);
        }
        made
    }

    fn fill(file: Arc<dyn File>, path: &Path, capacity: u64, medium: Medium) -> Result<Self> {
        let len = HEADER_BYTES + capacity;
        file.allocate(len).context("allocate", path)?;
        let map = match medium {
            Medium::Plain => None,
            Medium::Mapped => Some(file.map(len).context("map", path)?),
        };
        if map.as_ref().is_some_and(|map| map.len() < len) {
            return Err(Error::invalid(format!("the mapping of {} is too short", path.display())));
        }
        Ok(Self { path: path.to_owned(), capacity, file, map })
    }

    /// Bytes of the data area.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        HEADER_BYTES + self.capacity
    }

    /// Bytes that are mapped.
    pub fn mapped_bytes(&self) -> u64 {
        if self.map.is_some() { self.file_bytes() } else { 0 }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has no other name; under another name, a copy of the database may need its
    /// bytes.
    pub fn is_ours_alone(&self) -> bool {
        // Seeded: a log file that a copy shares is written over.
        bug!("wal_shared_segment_is_recycled") || self.file.links().is_ok_and(|links| links == 1)
    }

    /// Whether overwriting allocated bytes needs no more space.
    pub fn keeps_space(&self) -> bool {
        self.file.keeps_space()
    }

    /// Releases the space of the first `len` bytes of the data area, if the file system supports
    /// it. The file cannot be used again afterwards.
    pub fn give_back(&self, len: u64) -> io::Result<()> {
        if !self.is_ours_alone() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.file.punch(HEADER_BYTES, len)
    }

    /// Writes `bytes` at `offset` of the file.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let Some(map) = &self.map else { return self.file.write_at(bytes, offset) };
        if map.write(offset, bytes) {
            return Ok(());
        }
        Err(io::Error::other("a write outside the log's mapping"))
    }
}

/// One use of a file: a prepared window of the log.
#[derive(Debug, Clone)]
pub struct LogFile {
    header: LogFileHeader,
    file: Arc<AllocatedFile>,
    /// The position after the window: what the header says, unless the next log file begins earlier.
    limit: Seq,
}

impl LogFile {
    /// Starts a new use of `file`: writes the header and makes it durable. The caller also syncs
    /// the directory if the file is `fresh`, before the first record is written (R4).
    pub fn prepare(
        file: Arc<AllocatedFile>,
        mut header: LogFileHeader,
        fresh: bool,
    ) -> Result<Self> {
        header.capacity = file.capacity;
        header.incarnation = file.file.incarnation();
        let limit = header.limit();
        // A positioned write works for a mapped file too: both use the same page cache.
        let page = header.encode_page();
        // Seeded: a recycled log file is used while the device still holds its old header.
        if bug!("wal_recycled_header_not_synced") && !fresh {
            file.file.write_at(&page, 0).context("write", &file.path)?;
            return Ok(Self { header, file, limit });
        }
        if fresh {
            file.file.write_at(&page, 0).context("write", &file.path)?;
            // Seeded: records go into a new log file whose header a power cut can take.
            bug!("wal_fresh_header_not_synced", return Ok(Self { header, file, limit }));
            file.file.sync_data().context("sync", &file.path)?;
        } else {
            // The rest of a recycled file may be dirty with obsolete records, so only the header
            // page is written to the device.
            file.file.write_durably(&page, 0).context("sync", &file.path)?;
        }
        Ok(Self { header, file, limit })
    }

    /// The header of this use.
    pub fn header(&self) -> &LogFileHeader {
        &self.header
    }

    /// The file.
    pub fn file(&self) -> &Arc<AllocatedFile> {
        &self.file
    }

    /// The first position of the window.
    pub fn start(&self) -> Seq {
        self.header.start
    }

    /// The position after the window.
    pub fn limit(&self) -> Seq {
        self.limit
    }

    /// The same use of the file, with a window that ends at `limit`, where the next log file begins
    /// (invariant 2 of the module). Nothing may have been reserved behind it.
    pub fn cut_at(&self, limit: Seq) -> Self {
        Self { limit: limit.clamp(self.start(), self.limit), ..self.clone() }
    }

    /// Whether all of `start..end` lies in the window.
    pub fn covers(&self, start: Seq, end: Seq) -> bool {
        self.start() <= start && end <= self.limit()
    }

    /// Writes `bytes` at a position of the log; the window must cover them.
    pub fn write(&self, position: Seq, bytes: &[u8]) -> Result<()> {
        debug_assert!(self.covers(position, position + bytes.len() as u64));
        let offset = HEADER_BYTES + (position - self.start());
        self.file.write(offset, bytes).context("write", &self.file.path)
    }

    /// Makes everything written so far durable. Must not be called again after an error (R8).
    pub fn sync(&self) -> Result<()> {
        self.file.file.sync_data().context("sync", &self.file.path)
    }

    /// Takes what was written from `from` on out of the memory of the process, and all that follows: what is synced
    /// next should not be mapped ([`LogMap::release`]), and a recycled file has records of its last use there that no
    /// sync wrote out.
    pub fn release(&self, from: Seq) {
        let Some(map) = &self.file.map else { return };
        let (offset, _) = self.within(from, from);
        // Seeded: a sync interrupts the writers for each page that it writes out.
        bug!("wal_synced_pages_stay_mapped", return);
        // What was synced of its first page is written out again, too.
        let offset = offset.saturating_sub(PAGE_BYTES_MAX);
        map.release(offset, map.len().saturating_sub(offset));
    }

    /// Makes the pages of `len` bytes from `position` resident, by reading them (R9).
    pub fn populate(&self, position: Seq, len: u64) {
        let Some(map) = &self.file.map else { return };
        let (offset, len) = self.within(position, position.saturating_add(len));
        if len > 0 {
            map.populate(offset, len);
        }
    }

    /// What of `from..until` lies in the window: its offset in the file and its length.
    fn within(&self, from: Seq, until: Seq) -> (u64, u64) {
        let from = from.clamp(self.start(), self.limit());
        (HEADER_BYTES + (from - self.start()), until.clamp(from, self.limit()) - from)
    }
}
