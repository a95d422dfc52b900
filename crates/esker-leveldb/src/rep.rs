//! The bytes of a batch, as LevelDB keeps them: eight bytes for a sequence number, four for the
//! count of operations, and then each operation as its kind (1: put, 0: delete), its key and, for
//! a put, its value, both after their lengths as varints. Little-endian throughout.
//!
//! LevelDB's C++ interface exposes only its size. The same form has the same size, and both halves
//! of this library can share their code for batches.

use crate::status::{Result, Status};

/// Bytes before the first operation.
pub(crate) const HEADER_BYTES: usize = 12;
const COUNT: std::ops::Range<usize> = 8..12;

/// An operation of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    Put(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
}

/// An empty batch.
pub(crate) fn empty() -> Vec<u8> {
    vec![0; HEADER_BYTES]
}

/// Adds an operation.
pub(crate) fn push(rep: &mut Vec<u8>, op: Op<'_>) {
    let more = count(rep).wrapping_add(1);
    set_count(rep, more);
    match op {
        Op::Put(key, value) => {
            rep.push(1);
            put_bytes(rep, key);
            put_bytes(rep, value);
        }
        Op::Delete(key) => {
            rep.push(0);
            put_bytes(rep, key);
        }
    }
}

/// Adds all operations of another batch.
pub(crate) fn append(rep: &mut Vec<u8>, other: &[u8]) {
    let more = count(rep).wrapping_add(count(other));
    set_count(rep, more);
    rep.extend_from_slice(other.get(HEADER_BYTES..).unwrap_or_default());
}

/// Calls `each` with the operations, in their order.
pub(crate) fn read<'a>(rep: &'a [u8], mut each: impl FnMut(Op<'a>)) -> Result<()> {
    let mut rest = rep
        .get(HEADER_BYTES..)
        .ok_or_else(|| Status::corruption("malformed WriteBatch (too small)"))?;
    let mut found = 0_u32;
    while let Some((kind, after)) = rest.split_first() {
        rest = after;
        match kind {
            1 => {
                let pair = take_bytes(&mut rest).zip(take_bytes(&mut rest));
                let (key, value) = pair.ok_or_else(|| Status::corruption("bad WriteBatch Put"))?;
                each(Op::Put(key, value));
            }
            0 => {
                let key = take_bytes(&mut rest);
                each(Op::Delete(key.ok_or_else(|| Status::corruption("bad WriteBatch Delete"))?));
            }
            _ => return Err(Status::corruption("unknown WriteBatch tag")),
        }
        found = found.wrapping_add(1);
    }
    if found == count(rep) { Ok(()) } else { Err(Status::corruption("WriteBatch has wrong count")) }
}

fn count(rep: &[u8]) -> u32 {
    let bytes = rep.get(COUNT).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}

fn set_count(rep: &mut [u8], count: u32) {
    if let Some(place) = rep.get_mut(COUNT) {
        place.copy_from_slice(&count.to_le_bytes());
    }
}

fn put_bytes(rep: &mut Vec<u8>, bytes: &[u8]) {
    // LevelDB's lengths have 32 bits; the engine refuses a length that is too large when the batch
    // is written.
    let mut len = bytes.len() as u64;
    while len >= 0x80 {
        rep.push(len as u8 | 0x80);
        len >>= 7;
    }
    rep.push(len as u8);
    rep.extend_from_slice(bytes);
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (mut len, mut shift) = (0_u64, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        len |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
        if shift > 56 {
            return None;
        }
    }
    let (bytes, after) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    *rest = after;
    Some(bytes)
}

#[cfg(test)]
mod tests;
