//! Checked decoding (and the matching encoding) of bytes that come from a disk.
//!
//! Every length is compared with the bytes that remain and with a stated maximum before it is
//! used (C5). Integers are little-endian; varints are LEB128, at most 10 bytes, in their shortest
//! form only.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Appends `value` as a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number of bytes that [`put_varint`] appends.
pub fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends a varint length and the bytes.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// What was wrong while decoding; the caller adds file and offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError(pub &'static str);

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// The result of decoding.
pub type Decoded<T> = Result<T, DecodeError>;

/// A reader over bytes of a file that never reads past their end.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The number of bytes that were read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The number of bytes that are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Decoded<&'a [u8]> {
        let end = self.position.checked_add(len).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(DecodeError("a length exceeds the bytes that remain"))?;
        let taken = &self.bytes[self.position..end];
        self.position = end;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Decoded<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// The next two bytes as a number.
    pub fn u16(&mut self) -> Decoded<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// The next four bytes as a number.
    pub fn u32(&mut self) -> Decoded<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The next eight bytes as a number.
    #[inline]
    pub fn u64(&mut self) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The next varint.
    #[inline]
    pub fn varint(&mut self) -> Decoded<u64> {
        match self.bytes.get(self.position) {
            Some(byte) if *byte < 0x80 => {
                self.position += 1;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Decoded<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError("a varint exceeds 64 bits"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                if byte == 0 && shift > 0 {
                    return Err(DecodeError("a varint is not in its shortest form"));
                }
                return Ok(value);
            }
        }
        Err(DecodeError("a varint is longer than 10 bytes"))
    }

    /// The next varint, which must not exceed `max`.
    #[inline]
    pub fn varint_max(&mut self, max: u64) -> Decoded<u64> {
        let value = self.varint()?;
        if value > max {
            return Err(DecodeError("a number exceeds its maximum"));
        }
        Ok(value)
    }

    /// The next byte string, of at most `max` bytes.
    #[inline]
    pub fn bytes(&mut self, max: usize) -> Decoded<&'a [u8]> {
        let len = self.varint_max(max as u64)?;
        self.take(len as usize)
    }
}

/// XXH3 of `bytes`, salted with their place: a block that is read from the wrong place, or from a
/// swapped file, has the wrong checksum.
pub fn checksum(salt: u64, offset: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, salt ^ offset.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// XXH3 over several pieces, salted like [`checksum`]; equal to it over their concatenation.
pub fn checksum_pieces(salt: u64, offset: u64, pieces: &[&[u8]]) -> u64 {
    let mut hasher = Xxh3::with_seed(salt ^ offset.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for piece in pieces {
        hasher.update(piece);
    }
    hasher.digest()
}

/// The hash of a user key, from which tags and filters draw their bits.
#[inline]
pub fn hash_key(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

#[cfg(test)]
mod tests;
