//! Fields that several records of the manifest have: bounds, names and lists.
//!
//! Every length is checked before anything is allocated for it: a bound and a name against their
//! limits, a list against the bytes that remain (C5).

use crate::base::codec::{DecodeError, Decoded, Reader, put_bytes};
use crate::base::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX};

/// Appends a bound that may be absent.
pub(super) fn put_key(out: &mut Vec<u8>, key: Option<&[u8]>) {
    out.push(u8::from(key.is_some()));
    if let Some(key) = key {
        put_bytes(out, key);
    }
}

/// Reads a bound that may be absent.
pub(super) fn read_key(reader: &mut Reader<'_>) -> Decoded<Option<Vec<u8>>> {
    match reader.u8()? {
        0 => Ok(None),
        1 => Ok(Some(reader.bytes(KEY_BYTES_MAX)?.to_vec())),
        _ => Err(DecodeError("a bound is neither there nor absent")),
    }
}

/// Reads the name of a keyspace, a branch or a function.
pub(super) fn read_name(reader: &mut Reader<'_>) -> Decoded<String> {
    let bytes = reader.bytes(NAME_BYTES_MAX)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError("a name is not UTF-8"))
}

/// Reads a list whose length is checked against the bytes that remain: every element takes at
/// least `bytes_min` bytes.
pub(super) fn read_list<T>(
    reader: &mut Reader<'_>,
    bytes_min: usize,
    mut read: impl FnMut(&mut Reader<'_>) -> Decoded<T>,
) -> Decoded<Vec<T>> {
    let max = reader.remaining() / bytes_min;
    let count = reader.varint_max(max as u64)? as usize;
    (0..count).map(|_| read(reader)).collect()
}
