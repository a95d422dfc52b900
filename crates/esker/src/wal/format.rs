//! The bytes of the log: log file headers and record headers.
//!
//! This module only encodes and decodes; it accesses no file. Every checksum is salted with the
//! nonce of the log file's present use and with the position in the log (R4), so the checksum of a
//! record from an earlier use of the file, or from another position, does not match. All integers
//! are little-endian. `docs/file-formats.md` describes the layout byte by byte; these constants are
//! the only other place that knows it.

use crate::base::codec::{Reader, checksum, checksum_pieces};
use crate::base::{SEQ_MAX, Seq};
use crate::fs::Incarnation;

/// The first eight bytes of a log file.
pub const MAGIC: [u8; 8] = *b"ESKERLOG";
/// The format version that this build writes, and the newest that it reads.
pub const VERSION: u32 = 3;
/// The oldest version that is read: its log files carry no life, and its end marks no payload. Log
/// files of version 2 are as those of version 3.
const VERSION_MIN: u32 = 1;
/// Bytes before the first record byte of a log file: one page, so that data is page-aligned.
pub const HEADER_BYTES: u64 = 4096;
/// Where the second copy of the log file header stands; it shares no device sector with the first.
pub const COPY_OFFSET: usize = 2048;
/// Bytes of one copy of the log file header.
pub const SEGMENT_HEADER_LEN: usize = 104;
/// Bytes of a record header.
pub const RECORD_HEADER_LEN: usize = 24;
/// Records start at multiples of this: positions fit a packed word, and a search for records behind
/// damage has few places to try (R6).
pub const ALIGNMENT: u64 = 8;
/// Longest payload of one record, in bytes.
pub const PAYLOAD_BYTES_MAX: u64 = 1 << 30;
/// Smallest and largest data area of a log file, in bytes; multiples of 4 KiB lie between.
pub const CAPACITY_MIN: u64 = 4096;
/// See [`CAPACITY_MIN`].
pub const CAPACITY_MAX: u64 = 1 << 32;

/// Operation counts from here on do not fit the header; eight bytes before the payload hold them.
const OPERATIONS_ESCAPE: u32 = 0x00FF_FFFF;
/// Stands for a distance to the published or synced position that does not fit: the record then
/// claims nothing.
const DISTANCE_UNKNOWN: u32 = u32::MAX;
/// Salt of the checksum of the log file header, which is checked before the nonce is known.
const HEADER_SALT: u64 = 0x6573_6B65_722D_6C67;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Only takes up positions: for a write that failed its check (R2), or one of class `Buffered`
    /// (R13).
    Void = 0,
    /// One batch of operations.
    Batch = 1,
    /// The log was closed here and nothing follows (R6).
    End = 2,
}

impl RecordKind {
    /// The kind with this number. Numbers 3 (transaction commit) and 4 (branch point) are
    /// reserved; a record of an unknown kind is refused.
    pub fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Void),
            1 => Some(Self::Batch),
            2 => Some(Self::End),
            _ => None,
        }
    }
}

/// A record header in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Where the record starts in the log.
    pub position: Seq,
    /// What it is.
    pub kind: RecordKind,
    /// How many operations its payload holds; only for batches.
    pub operations: u32,
    /// Bytes after the header: with the bytes for a large operation count, without padding.
    pub payload_len: u32,
    /// Checksum of those bytes; 0 for voids, whose bytes mean nothing.
    pub payload_sum: u32,
    /// Everything before this position was published when the record's writer reserved.
    pub published: Seq,
    /// Everything before this position was durable when the record's writer reserved.
    pub synced: Seq,
}

impl Record {
    /// The position after the record, padding included.
    pub fn end(&self) -> Seq {
        self.position + record_bytes(u64::from(self.payload_len))
    }

    /// Bytes before the payload proper that hold a large operation count.
    pub fn escape_len(&self) -> usize {
        operations_prefix(self.operations).len()
    }

    /// The header's bytes, for a log file use with this nonce.
    pub fn encode(&self, nonce: u64) -> [u8; RECORD_HEADER_LEN] {
        let mut bytes = [0; RECORD_HEADER_LEN];
        bytes[4..8].copy_from_slice(&self.payload_sum.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_len.to_le_bytes());
        let published = distance(self.position, self.published);
        let synced = distance(self.position, self.synced);
        bytes[12..16].copy_from_slice(&published.to_le_bytes());
        bytes[16..20].copy_from_slice(&synced.to_le_bytes());
        let operations = self.operations.min(OPERATIONS_ESCAPE);
        let word = (operations << 8) | self.kind as u32;
        bytes[20..24].copy_from_slice(&word.to_le_bytes());
        let sum = checksum(nonce, self.position, &bytes[4..]) as u32;
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The header that starts at `position`, if these bytes are one. An escaped operation count is
    /// still unknown here and has its escape value; see [`Record::unescape`].
    pub fn decode(nonce: u64, position: Seq, bytes: &[u8; RECORD_HEADER_LEN]) -> Option<Self> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let kind = RecordKind::from_u8(bytes[20])?;
        let payload_len = word(8);
        // The bounds are checked before the checksum: they are cheaper and reject most garbage.
        if u64::from(payload_len) > PAYLOAD_BYTES_MAX + 8 || position >= SEQ_MAX {
            return None;
        }
        let published = undistance(position, word(12))?;
        let synced = undistance(position, word(16))?;
        if checksum(nonce, position, &bytes[4..]) as u32 != word(0) {
            return None;
        }
        let operations = word(20) >> 8;
        let record = Self {
            position,
            kind,
            operations,
            payload_len,
            payload_sum: word(4),
            published,
            synced,
        };
        (operations < OPERATIONS_ESCAPE || payload_len >= 8).then_some(record)
    }

    /// Splits an escaped operation count off the payload, if the header says that there is one.
    /// None if the count makes no sense.
    pub fn unescape<'a>(&mut self, payload: &'a [u8]) -> Option<&'a [u8]> {
        if self.operations < OPERATIONS_ESCAPE {
            return Some(payload);
        }
        let (count, rest) = payload.split_first_chunk::<8>()?;
        self.operations = u32::try_from(u64::from_le_bytes(*count)).ok()?;
        (self.operations >= OPERATIONS_ESCAPE).then_some(rest)
    }
}

/// Bytes that a record with `payload_len` bytes after its header takes in the log.
pub fn record_bytes(payload_len: u64) -> u64 {
    RECORD_HEADER_LEN as u64 + payload_len.next_multiple_of(ALIGNMENT)
}

/// The bytes before the payload of a batch with this many operations: none, or eight.
pub fn operations_prefix(operations: u32) -> OperationsPrefix {
    let len = if operations < OPERATIONS_ESCAPE { 0 } else { 8 };
    OperationsPrefix { bytes: u64::from(operations).to_le_bytes(), len }
}

/// See [`operations_prefix`].
#[derive(Debug, Clone, Copy)]
pub struct OperationsPrefix {
    bytes: [u8; 8],
    len: usize,
}

impl std::ops::Deref for OperationsPrefix {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The checksum of a record's payload, prefix included.
pub fn payload_sum(nonce: u64, position: Seq, prefix: &[u8], payload: &[u8]) -> u32 {
    // The offset differs from that of the header, so a header checksum never matches a payload.
    let offset = position + RECORD_HEADER_LEN as u64;
    if prefix.is_empty() {
        return checksum(nonce, offset, payload) as u32;
    }
    checksum_pieces(nonce, offset, &[prefix, payload]) as u32
}

/// How far `earlier` lies before `position`, in units of 8 bytes. A distance that does not fit is
/// written as unknown: claiming less is safe.
fn distance(position: Seq, earlier: Seq) -> u32 {
    let units = position.saturating_sub(earlier).div_ceil(ALIGNMENT);
    u32::try_from(units).unwrap_or(DISTANCE_UNKNOWN)
}

/// The position that a distance means; None if it would be before the first byte of the log.
fn undistance(position: Seq, units: u32) -> Option<Seq> {
    if units == DISTANCE_UNKNOWN {
        return Some(0);
    }
    position.checked_sub(u64::from(units) * ALIGNMENT)
}

/// The header of a log file: which window of the log this use of the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogFileHeader {
    /// Drawn at random for each use of a file; salts all records (R4).
    pub nonce: u64,
    /// Counts the uses of log files, including failed attempts; the newest use has the highest
    /// number.
    pub serial: u64,
    /// Log position of the first byte of the data area; also the final end of the predecessor.
    pub start: Seq,
    /// Bytes of the data area.
    pub capacity: u64,
    /// Nonce of the log file that the log continues from; 0 for the first of a log.
    pub predecessor: u64,
    /// The file's life when this use of it was prepared (R6).
    pub incarnation: Incarnation,
    /// The life of the database in which this use was prepared: a number that grows with each
    /// opening for writing. 0 if it is not known.
    pub life: u64,
}

/// What the header page of a log file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderPage {
    /// At least one copy is whole.
    Valid(LogFileHeader),
    /// Nothing but zeros, or no bytes at all, or a part of one copy: a preparation that a power cut
    /// interrupted.
    Blank,
    /// A format version that this build does not know (C9).
    Unknown(u32),
    /// Bytes that are no header.
    Damaged,
}

impl LogFileHeader {
    /// The position after the data area.
    pub fn limit(&self) -> Seq {
        self.start + self.capacity
    }

    /// The header page: two copies, the rest zeros.
    pub fn encode_page(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(SEGMENT_HEADER_LEN);
        copy.extend_from_slice(&MAGIC);
        copy.extend_from_slice(&VERSION.to_le_bytes());
        copy.extend_from_slice(&0u32.to_le_bytes());
        let numbers = [self.nonce, self.serial, self.start, self.capacity, self.predecessor];
        for number in numbers {
            copy.extend_from_slice(&number.to_le_bytes());
        }
        copy.extend_from_slice(&self.incarnation.0);
        copy.extend_from_slice(&self.life.to_le_bytes());
        copy.extend_from_slice(&checksum(HEADER_SALT, 0, &copy).to_le_bytes());
        debug_assert_eq!(copy.len(), SEGMENT_HEADER_LEN);
        let mut page = vec![0; HEADER_BYTES as usize];
        page[..SEGMENT_HEADER_LEN].copy_from_slice(&copy);
        page[COPY_OFFSET..COPY_OFFSET + SEGMENT_HEADER_LEN].copy_from_slice(&copy);
        page
    }

    /// Reads a header page, which may be shorter than it should be. If the copies differ, a power
    /// cut interrupted a preparation. Either copy is right then: the older one names only positions
    /// that were released, and the newer one has no records yet. A page with only a part of one
    /// copy is an interrupted preparation too: the first record is written only after both copies
    /// are durable (R4).
    pub fn decode_page(page: &[u8]) -> HeaderPage {
        if page.iter().all(|byte| *byte == 0) {
            return HeaderPage::Blank;
        }
        let copies = [page, page.get(COPY_OFFSET..).unwrap_or_default()];
        if let Some(header) = copies.iter().find_map(|copy| Self::decode_copy(copy)) {
            return HeaderPage::Valid(header);
        }
        // Seeded: a preparation of which a power cut left a few bytes refuses the database.
        if is_cut_off(page) && !bug!("wal_cut_off_header_is_damage") {
            return HeaderPage::Blank;
        }
        let versions = copies.map(declared_version);
        match versions {
            [Some(a), Some(b)] if a == b && !is_known(a) => HeaderPage::Unknown(a),
            _ => HeaderPage::Damaged,
        }
    }

    /// The format version of the copy that counts in a header page.
    pub fn version_of(page: &[u8]) -> Option<u32> {
        let copies = [page, page.get(COPY_OFFSET..).unwrap_or_default()];
        let whole = copies.into_iter().find(|copy| Self::decode_copy(copy).is_some());
        whole.and_then(declared_version)
    }

    fn decode_copy(copy: &[u8]) -> Option<Self> {
        let bytes = copy.get(..SEGMENT_HEADER_LEN)?;
        let (covered, sum) = bytes.split_last_chunk::<8>()?;
        if checksum(HEADER_SALT, 0, covered) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut reader = Reader::new(covered);
        if reader.take(8).ok()? != MAGIC || !is_known(reader.u32().ok()?) {
            return None;
        }
        reader.u32().ok()?;
        let mut number = || reader.u64().ok();
        let (nonce, serial, start) = (number()?, number()?, number()?);
        let (capacity, predecessor) = (number()?, number()?);
        let mut incarnation = Incarnation::default();
        incarnation.0.copy_from_slice(reader.take(32).ok()?);
        let life = reader.u64().ok()?;
        let header = Self { nonce, serial, start, capacity, predecessor, incarnation, life };
        header.is_sane().then_some(header)
    }

    /// A crafted file can have a valid checksum, so every field used in a computation must be
    /// bounded.
    fn is_sane(&self) -> bool {
        self.nonce != 0
            && self.serial < u64::MAX
            && self.start.is_multiple_of(ALIGNMENT)
            && self.start < SEQ_MAX
            && self.capacity.is_multiple_of(CAPACITY_MIN)
            && (CAPACITY_MIN..=CAPACITY_MAX).contains(&self.capacity)
    }
}

/// Whether a page holds a part of one copy and nothing else: the first copy from its beginning, or
/// the second copy up to its end. Of the one write that prepares a fresh file, a device keeps
/// everything before some byte or everything after it, and only fresh files have zeros around a
/// torn copy: a file with a torn page is removed, never written again.
fn is_cut_off(page: &[u8]) -> bool {
    let Some(first) = page.iter().position(|byte| *byte != 0) else { return false };
    let end = page.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let begun = end < SEGMENT_HEADER_LEN && MAGIC.starts_with(&page[..end.min(MAGIC.len())]);
    // Seeded: only the beginning of the first copy is known as a part of a header.
    let ended = !bug!("wal_end_of_header_is_damage")
        && first > COPY_OFFSET
        && end <= COPY_OFFSET + SEGMENT_HEADER_LEN;
    begun || ended
}

fn is_known(version: u32) -> bool {
    (VERSION_MIN..=VERSION).contains(&version)
}

fn declared_version(copy: &[u8]) -> Option<u32> {
    let mut reader = Reader::new(copy);
    (reader.take(8).ok()? == MAGIC).then(|| reader.u32().ok())?
}
