//! Separated values: where they lie, and what a segment knows of the value segments that it refers to.
//!
//! A large value lies in a *value segment*, apart from its key: an entry holds a [`ValueRef`] in its
//! place. So compactions move keys and references, and leave values where they are (Lu et al.: "WiscKey",
//! 2016; RocksDB's BlobDB; Pebble's value separation).
//!
//! 1. A value segment is never changed. It is referred to by data segments only, and each of these lists
//!    what it refers to ([`ValueUse`]), with the bytes: what is dead in a value segment follows from the
//!    segments that are there, and no counter can drift (S20).
//! 2. A value moves only in the compaction that writes its reference anew.
//! 3. A value that came in pieces has a value segment of its own, in whose blocks the pieces lie. So it can be
//!    written and read without memory for all of it, and it never moves: it is alive or dead as a whole.
//! 4. A data segment keeps the value segments that it refers to alive, so a reader that has the
//!    one has the other (R22).

use crate::base::codec::{DecodeError, Decoded, Reader, put_varint};
use crate::base::{EXPIRY_BYTES, FileId, Kind, limits, split};

/// Where a separated value lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRef {
    /// The file of the value segment.
    pub file: FileId,
    /// Where the value segment begins.
    pub offset: u64,
    /// The number of the block that is the value.
    pub block: u32,
    /// Bytes of the value in its stored form.
    pub len: u32,
    /// Bytes of each block but the last, if the value is in pieces: then `block` is 0, and all blocks are the
    /// value. 0: it is one block.
    pub piece: u32,
}

impl ValueRef {
    /// Appends the form that stands in an entry of this kind, whose stored value was `stored`: a value that
    /// expires says when before the reference too.
    pub(super) fn encode(&self, kind: Kind, stored: &[u8], out: &mut Vec<u8>) {
        if kind.expires() {
            out.extend_from_slice(&stored[..EXPIRY_BYTES.min(stored.len())]);
        }
        put_varint(out, self.file);
        put_varint(out, self.offset);
        put_varint(out, u64::from(self.block));
        put_varint(out, u64::from(self.len));
        if self.piece > 0 {
            put_varint(out, u64::from(self.piece));
        }
    }

    /// Whether the value is in pieces.
    #[inline]
    pub fn is_in_pieces(&self) -> bool {
        self.piece > 0
    }

    /// The reference in an entry of this kind.
    pub fn decode(kind: Kind, stored: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(split(kind, stored).1);
        let (file, offset) = (reader.varint()?, reader.varint()?);
        let block = reader.varint_max(u64::from(u32::MAX))? as u32;
        let len = reader.varint_max(limits::VALUE_BYTES_MAX + EXPIRY_BYTES as u64)? as u32;
        let piece = if reader.is_empty() { None } else { Some(reader.varint_max(u64::from(len))?) };
        if !reader.is_empty() {
            return Err(DecodeError("a reference to a value has bytes behind it"));
        }
        if piece == Some(0) || piece.is_some() && block > 0 {
            return Err(DecodeError("a value in pieces does not begin with a whole one"));
        }
        let piece = piece.unwrap_or(0) as u32;
        Ok(Self { file, offset, block, len, piece })
    }

    /// The file and the offset of the value segment.
    pub fn place(&self) -> (FileId, u64) {
        (self.file, self.offset)
    }
}

/// A value segment, as the segments that refer to it describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValuesMeta {
    /// The file that holds it.
    pub file: FileId,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Bytes of its tail.
    pub tail_len: u32,
    /// How many values it has.
    pub entries: u64,
    /// Bytes of its values in their stored form.
    pub raw_bytes: u64,
    /// The salted checksum of the tail.
    pub checksum: u64,
}

/// What a data segment refers to in a value segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueUse {
    /// The value segment.
    pub values: ValuesMeta,
    /// How many of its values.
    pub entries: u64,
    /// Their bytes in their stored form.
    pub bytes: u64,
}

impl ValueUse {
    /// The value segment.
    pub fn place(&self) -> (FileId, u64) {
        (self.values.file, self.values.offset)
    }

    /// Whether it may be a value in pieces, which has a value segment of several blocks of its own.
    pub fn is_in_pieces(&self) -> bool {
        self.entries == 1 && self.values.entries > 1 && self.bytes == self.values.raw_bytes
    }

    /// Its part of the bytes on disk: compression is spread evenly.
    pub fn disk_bytes(&self) -> u64 {
        let (bytes, all) = (u128::from(self.bytes), u128::from(self.values.raw_bytes.max(1)));
        (u128::from(self.values.len) * bytes / all) as u64
    }

    /// Appends the stored form.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let ValuesMeta { file, offset, len, tail_len, entries, raw_bytes, checksum } = self.values;
        for number in [file, offset, len, u64::from(tail_len), entries, raw_bytes] {
            put_varint(out, number);
        }
        out.extend_from_slice(&checksum.to_le_bytes());
        put_varint(out, self.entries);
        put_varint(out, self.bytes);
    }

    /// Reads the stored form.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let (file, offset, len) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let tail_len = reader.varint_max(u64::from(u32::MAX))? as u32;
        let fits = offset.checked_add(len).is_some_and(|end| end <= i64::MAX as u64);
        if !fits || u64::from(tail_len) > len {
            return Err(DecodeError("a value segment has an impossible length"));
        }
        let (entries, raw_bytes, checksum) = (reader.varint()?, reader.varint()?, reader.u64()?);
        let values = ValuesMeta { file, offset, len, tail_len, entries, raw_bytes, checksum };
        let (entries, bytes) = (reader.varint_max(entries)?, reader.varint_max(raw_bytes)?);
        Ok(Self { values, entries, bytes })
    }
}
