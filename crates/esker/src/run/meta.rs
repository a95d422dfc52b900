//! The description of a run segment in the manifest.

use super::reference::{ValueUse, ValuesMeta};
use crate::base::codec::{DecodeError, Decoded, Reader, put_bytes, put_varint};
use crate::base::{FileId, Kind, Millis, SEQ_MAX, Seq, limits, split};

/// What a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// Entries.
    Data,
    /// Range tombstones.
    Tombstones,
    /// Values that are separated from their keys.
    Values,
}

const TOMBSTONES: u8 = 1;
const BYTEWISE: u8 = 2;
const SHADOWED: u8 = 4;
const SPECIAL: u8 = 8;
const INGESTED: u8 = 16;
const SEPARATED: u8 = 32;
const VALUES: u8 = 64;

/// What a segment holds beside puts and deletes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Specials {
    /// How many of its entries are operands.
    pub operands: u64,
    /// How many of its entries expire.
    pub expiring: u64,
    /// When the first of them does; 0 if there are none.
    pub first_expiry: Millis,
    /// When the last of them does; 0 if there are none.
    pub last_expiry: Millis,
}

impl Specials {
    /// Counts an entry.
    #[inline]
    pub fn count(&mut self, kind: Kind, stored: &[u8]) {
        if kind as u8 <= Kind::Put as u8 {
            return;
        }
        self.operands += u64::from(kind.is_operand());
        if let (Some(expiry), _) = split(kind, stored) {
            let first = self.expiring == 0 || expiry < self.first_expiry;
            self.first_expiry = if first { expiry } else { self.first_expiry };
            self.last_expiry = self.last_expiry.max(expiry);
            self.expiring += 1;
        }
    }

    /// Reads the stored form, which must say something.
    fn decode(reader: &mut Reader<'_>, entries: u64) -> Decoded<Self> {
        let (operands, expiring) = (reader.varint_max(entries)?, reader.varint_max(entries)?);
        let first_expiry = reader.varint()?;
        let last_expiry = first_expiry + reader.varint_max(Millis::MAX - first_expiry)?;
        let specials = Self { operands, expiring, first_expiry, last_expiry };
        match specials == Self::default() {
            true => Err(DecodeError("a segment counts entries that it does not have")),
            false => Ok(specials),
        }
    }

    /// Whether an entry has expired at `time`.
    pub fn any_expired(&self, time: Millis) -> bool {
        self.expiring > 0 && self.first_expiry <= time
    }

    /// How many entries have certainly expired at `time`: all that expire, or none.
    pub fn all_expired(&self, time: Millis) -> u64 {
        if self.last_expiry <= time { self.expiring } else { 0 }
    }
}

/// Where the sequence numbers of a segment's entries are: in its blocks, or, if it was ingested, only in
/// the manifest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbering(Seq);

impl Numbering {
    /// The sequence number of an entry whose block says `stored`.
    #[inline]
    pub fn seq(self, stored: Seq) -> Seq {
        // Seeded: what was ingested shows in old snapshots, and below what it replaces.
        bug!("run_ingested_entries_have_no_number", return stored);
        if self.0 == 0 { stored } else { self.0 }
    }

    /// What stands for `below` where the numbers of blocks are compared.
    #[inline]
    pub fn bound(self, below: Seq) -> Seq {
        // Seeded: a get at an old snapshot finds what was ingested later.
        bug!("run_ingested_entries_always_visible", return below);
        if self.0 == 0 { below } else { Seq::from(self.0 < below) }
    }
}

/// The description of a segment in the manifest: its place and its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentMeta {
    /// The file that holds it.
    pub file: FileId,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Bytes of its tail (filter, index, description, footer), at its end.
    pub tail_len: u32,
    /// What it holds.
    pub kind: SegmentKind,
    /// Whether its keys are in byte order.
    pub bytewise: bool,
    /// How many entries (or range tombstones) it has.
    pub entries: u64,
    /// How many of them are deletes.
    pub deletes: u64,
    /// Whether some key has more than one version in it.
    pub shadowed: bool,
    /// Bytes of keys and values.
    pub raw_bytes: u64,
    /// The first key; for range tombstones the lowest bound, empty if there is none.
    pub min_key: Vec<u8>,
    /// The last key; for range tombstones the highest bound, empty if there is none.
    pub max_key: Vec<u8>,
    /// The smallest sequence number.
    pub min_seq: Seq,
    /// The largest sequence number.
    pub max_seq: Seq,
    /// Whether its entries (or range tombstones) were ingested: all have the sequence number `min_seq`,
    /// which was not known when they were written. They say 0, and so does the description in the tail.
    pub ingested: bool,
    /// What it holds beside puts and deletes.
    pub specials: Specials,
    /// The value segments to which its entries refer, by file and offset.
    pub values: Box<[ValueUse]>,
    /// The salted checksum of the tail.
    pub checksum: u64,
}

impl SegmentMeta {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut flags = 0;
        flags |= match self.kind {
            SegmentKind::Data => 0,
            SegmentKind::Tombstones => TOMBSTONES,
            SegmentKind::Values => VALUES,
        };
        if !self.values.is_empty() {
            flags |= SEPARATED;
        }
        if self.bytewise {
            flags |= BYTEWISE;
        }
        if self.shadowed {
            flags |= SHADOWED;
        }
        let special = self.specials != Specials::default();
        if special {
            flags |= SPECIAL;
        }
        if self.ingested {
            flags |= INGESTED;
        }
        out.push(flags);
        put_varint(out, self.file);
        put_varint(out, self.offset);
        put_varint(out, self.len);
        put_varint(out, u64::from(self.tail_len));
        put_varint(out, self.entries);
        put_varint(out, self.deletes);
        put_varint(out, self.raw_bytes);
        put_bytes(out, &self.min_key);
        put_bytes(out, &self.max_key);
        put_varint(out, self.min_seq);
        put_varint(out, self.max_seq - self.min_seq);
        if special {
            let Specials { operands, expiring, first_expiry, last_expiry } = self.specials;
            put_varint(out, operands);
            put_varint(out, expiring);
            put_varint(out, first_expiry);
            put_varint(out, last_expiry - first_expiry);
        }
        if !self.values.is_empty() {
            put_varint(out, self.values.len() as u64);
            self.values.iter().for_each(|used| used.encode(out));
        }
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    /// Reads the stored form.
    pub fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let flags = reader.u8()?;
        if flags & !(TOMBSTONES | BYTEWISE | SHADOWED | SPECIAL | INGESTED | SEPARATED | VALUES)
            != 0
        {
            return Err(DecodeError("a segment has flags that are not known"));
        }
        let kind = match flags & (TOMBSTONES | VALUES) {
            0 => SegmentKind::Data,
            TOMBSTONES => SegmentKind::Tombstones,
            VALUES if flags == VALUES => SegmentKind::Values,
            _ => return Err(DecodeError("a segment is of two kinds")),
        };
        let file = reader.varint()?;
        let offset = reader.varint()?;
        let len = reader.varint()?;
        let tail_len = reader.varint_max(u64::from(u32::MAX))? as u32;
        // Bounds offsets to what every file system can address, so that sums cannot overflow.
        let fits = offset.checked_add(len).is_some_and(|end| end <= i64::MAX as u64);
        if !fits || u64::from(tail_len) > len {
            return Err(DecodeError("a segment has an impossible length"));
        }
        let entries = reader.varint()?;
        let deletes = reader.varint_max(entries)?;
        let raw_bytes = reader.varint()?;
        let key_max = match kind {
            SegmentKind::Data => limits::KEY_BYTES_MAX,
            SegmentKind::Tombstones => limits::BOUND_BYTES_MAX,
            SegmentKind::Values => 0,
        };
        let min_key = reader.bytes(key_max)?.to_vec();
        let max_key = reader.bytes(key_max)?.to_vec();
        let min_seq = reader.varint_max(SEQ_MAX)?;
        let max_seq = min_seq + reader.varint_max(SEQ_MAX - min_seq)?;
        let ingested = flags & INGESTED != 0;
        if ingested && (min_seq != max_seq || flags & SHADOWED != 0) {
            return Err(DecodeError("an ingested segment has entries of several sequence numbers"));
        }
        let specials = match flags & SPECIAL {
            0 => Specials::default(),
            _ => Specials::decode(reader, entries)?,
        };
        let values =
            if flags & SEPARATED != 0 { decode_values(reader, kind)? } else { Box::default() };
        Ok(Self {
            file,
            offset,
            len,
            tail_len,
            kind,
            bytewise: flags & BYTEWISE != 0,
            shadowed: flags & SHADOWED != 0,
            entries,
            deletes,
            raw_bytes,
            min_key,
            max_key,
            min_seq,
            max_seq,
            ingested,
            specials,
            values,
            checksum: reader.u64()?,
        })
    }

    /// The description of a value segment.
    pub fn of_values(values: ValuesMeta) -> Self {
        let ValuesMeta { file, offset, len, tail_len, entries, raw_bytes, checksum } = values;
        Self {
            file,
            offset,
            len,
            tail_len,
            kind: SegmentKind::Values,
            bytewise: false,
            shadowed: false,
            entries,
            deletes: 0,
            raw_bytes,
            min_key: Vec::new(),
            max_key: Vec::new(),
            min_seq: 0,
            max_seq: 0,
            ingested: false,
            specials: Specials::default(),
            values: Box::default(),
            checksum,
        }
    }

    /// The description of a value segment as those that refer to it repeat it.
    pub fn as_values(&self) -> ValuesMeta {
        let Self { file, offset, len, tail_len, entries, raw_bytes, checksum, .. } = *self;
        ValuesMeta { file, offset, len, tail_len, entries, raw_bytes, checksum }
    }

    /// Bytes on disk, with its part of the value segments to which it refers.
    pub fn weight(&self) -> u64 {
        self.values.iter().fold(self.len, |sum, used| sum.saturating_add(used.disk_bytes()))
    }

    /// The position at which it was ingested; 0: it was not.
    pub fn ingested_seq(&self) -> Seq {
        if self.ingested { self.min_seq } else { 0 }
    }

    /// Where the sequence numbers of its entries are.
    pub fn numbering(&self) -> Numbering {
        Numbering(self.ingested_seq())
    }

    /// The smallest and the largest sequence number in the blocks.
    pub fn stored_seqs(&self) -> (Seq, Seq) {
        if self.ingested { (0, 0) } else { (self.min_seq, self.max_seq) }
    }

    /// The same segment, ingested at a position.
    #[must_use]
    pub fn ingested_at(self, seq: Seq) -> Self {
        Self { min_seq: seq, max_seq: seq, ingested: true, ..self }
    }

    /// Its file and its offset, which name it.
    pub fn place(&self) -> (FileId, u64) {
        (self.file, self.offset)
    }

    /// Where the segment ends in its file.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// Where the tail begins in the file.
    pub fn tail_offset(&self) -> u64 {
        self.end() - u64::from(self.tail_len)
    }

    /// Bytes of the blocks.
    pub fn blocks_len(&self) -> u64 {
        self.len - u64::from(self.tail_len)
    }
}

/// The list of the value segments to which a data segment refers.
fn decode_values(reader: &mut Reader<'_>, kind: SegmentKind) -> Decoded<Box<[ValueUse]>> {
    // One takes at least 16 bytes, which bounds the allocation.
    let count = reader.varint_max(reader.remaining() as u64 / 16)? as usize;
    if kind != SegmentKind::Data || count == 0 {
        return Err(DecodeError("a segment refers to no values, or cannot"));
    }
    let values: Box<[ValueUse]> =
        (0..count).map(|_| ValueUse::decode(reader)).collect::<Decoded<_>>()?;
    if !values.is_sorted_by(|a, b| a.place() < b.place()) {
        return Err(DecodeError("the value segments of a segment are not in order"));
    }
    Ok(values)
}
