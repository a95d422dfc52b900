//! Searching for whole records where their beginnings are unknown.
//!
//! A record may begin at every multiple of 8, and the bytes there give its length. A crafted file
//! could therefore make each candidate cost a checksum over the rest of the file. So the length of
//! the file bounds the bytes that are checksummed in vain.

use super::record::{RECORD_HEADER_LEN, record_at};

/// Bytes that may be checksummed in vain, for each byte of the file.
const VAIN_PER_BYTE: u64 = 16;
/// Bytes that may be checksummed in vain in addition, for the whole file.
const VAIN_BYTES: u64 = 1 << 20;
/// Records begin at multiples of this.
const STEP: usize = 8;

/// A search through the bytes of a manifest.
#[derive(Debug)]
pub(super) struct Search<'a> {
    bytes: &'a [u8],
    nonce: u64,
    left: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(bytes: &'a [u8], nonce: u64) -> Self {
        Self { bytes, nonce, left: bytes.len() as u64 * VAIN_PER_BYTE + VAIN_BYTES }
    }

    /// The offset of the first whole record from `from` on.
    pub(super) fn find(&mut self, from: usize) -> Option<usize> {
        let bytes = self.bytes;
        let mut places = (from..bytes.len()).step_by(STEP);
        places.find(|at| {
            let header = bytes.get(*at..).and_then(|rest| rest.first_chunk::<4>());
            let len = header.map_or(usize::MAX, |len| u32::from_le_bytes(*len) as usize);
            // A record that would reach beyond the file needs no checksum.
            if len > (bytes.len() - at).saturating_sub(RECORD_HEADER_LEN) || self.is_spent() {
                return false;
            }
            let whole = record_at(bytes, *at, self.nonce).is_some();
            if !whole {
                self.left = self.left.saturating_sub((len + RECORD_HEADER_LEN) as u64);
            }
            whole
        })
    }

    /// Whether the search gave up: the rest of the file was not searched.
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Bytes that were checksummed in vain.
    #[cfg(test)]
    pub(super) fn vain(&self) -> u64 {
        self.bytes.len() as u64 * VAIN_PER_BYTE + VAIN_BYTES - self.left
    }
}

#[cfg(test)]
mod tests;
