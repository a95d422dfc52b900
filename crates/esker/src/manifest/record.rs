//! One record of the manifest: length, kind, checksum and payload.
//!
//! The checksum covers kind and payload and is salted with the nonce of the file and the offset of
//! the record, so that a whole record proves that it was written to this place of this file.

use crate::base::codec::{Reader, checksum_pieces};

/// Bytes of a record before its payload.
pub(super) const RECORD_HEADER_LEN: usize = 16;
/// The payload is an edit.
pub(super) const KIND_EDIT: u32 = 1;
/// The payload is the number of the manifest that takes this one's place.
pub(super) const KIND_SUCCESSOR: u32 = 2;

/// The checksum of a record, and all of its bytes.
pub(super) fn encode_record(nonce: u64, offset: u64, kind: u32, payload: &[u8]) -> (u64, Vec<u8>) {
    let kind_bytes = kind.to_le_bytes();
    let sum = checksum_pieces(nonce, offset, &[&kind_bytes, payload]);
    let mut record = Vec::with_capacity(RECORD_HEADER_LEN + payload.len() + 8);
    record.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    record.extend_from_slice(&kind_bytes);
    record.extend_from_slice(&sum.to_le_bytes());
    record.extend_from_slice(payload);
    record.resize(record.len().next_multiple_of(8), 0);
    (sum, record)
}

/// A whole record.
pub(super) struct Record<'a> {
    pub kind: u32,
    pub payload: &'a [u8],
    pub sum: u64,
}

/// The whole record at `offset`, if there is one.
pub(super) fn record_at(bytes: &[u8], offset: usize, nonce: u64) -> Option<Record<'_>> {
    let mut reader = Reader::new(bytes.get(offset..)?);
    let len = reader.u32().ok()? as usize;
    let kind_bytes = reader.take(4).ok()?;
    let sum = reader.u64().ok()?;
    let payload = reader.take(len).ok()?;
    if sum != checksum_pieces(nonce, offset as u64, &[kind_bytes, payload]) {
        return None;
    }
    let kind = Reader::new(kind_bytes).u32().ok()?;
    Some(Record { kind, payload, sum })
}
