//! Blocked Bloom filters: one cache line per key.
//!
//! The hash of a key (`base::codec::hash_key`) picks one line of 64 bytes and a few bits in it, so
//! that a probe costs one cache miss whatever the size of the filter (Putze, Sanders, Singler:
//! "Cache-, Hash- and Space-Efficient Bloom Filters", 2007; the way bits are drawn follows
//! RocksDB's FastLocalBloom). Filters are built for bytewise keyspaces only: under a custom
//! comparator different bytes may be the same key (R15).
//!
//! On disk a filter is its lines, as 8 little-endian words each; the number of probes stands
//! beside it.

#[cfg(test)]
mod tests;

use crate::base::codec::{DecodeError, Decoded};
use std::ops::Deref;

/// Bytes of a line.
pub const LINE_BYTES: usize = 64;

/// Most probes of a key.
const PROBES_MAX: u8 = 16;

/// What a key has its bits in.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Line([u64; 8]);

/// A filter over the hashes of keys, with its lines in memory of some kind; an empty one says "perhaps" to every
/// key.
#[derive(Debug, Clone, Default)]
pub struct Filter<L = Box<[Line]>> {
    lines: L,
    probes: u8,
}

/// How many probes suit so many bits per key. Fewer than the textbook's ln 2: the keys of one
/// line are not spread evenly.
fn probes_for(bits_per_key: u32) -> u8 {
    match bits_per_key {
        0..=4 => 2,
        5..=6 => 3,
        7 => 4,
        8 => 5,
        9..=11 => 6,
        12..=14 => 8,
        _ => 10,
    }
}

#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

impl Filter {
    /// Builds a filter for keys with these hashes; empty if `bits_per_key` is 0.
    pub fn build(hashes: impl ExactSizeIterator<Item = u64>, bits_per_key: u32) -> Self {
        if bits_per_key == 0 || hashes.len() == 0 {
            return Self::default();
        }
        let bits = hashes.len() as u64 * u64::from(bits_per_key);
        let count = bits.div_ceil(LINE_BYTES as u64 * 8) as usize;
        let probes = probes_for(bits_per_key);
        let mut lines = vec![Line([0; 8]); count].into_boxed_slice();
        for hash in hashes {
            let line = &mut lines[line_of(hash, count)].0;
            let mut bits = hash as u32;
            for _ in 0..probes {
                let position = bits >> 23;
                line[(position >> 6) as usize] |= 1 << (position & 63);
                bits = bits.wrapping_mul(0x9E37_79B9);
            }
        }
        Self { lines, probes }
    }
}

impl<L: Deref<Target = [Line]>> Filter<L> {
    /// Whether a key with this hash may be among those the filter was built for.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        if self.lines.is_empty() {
            return true;
        }
        // Seeded: one key of 64 is denied by the filter of its segment.
        bug!("filter_denies_keys", return !hash.is_multiple_of(64));
        let line = &self.lines[line_of(hash, self.lines.len())].0;
        let mut bits = hash as u32;
        for _ in 0..self.probes {
            let position = bits >> 23;
            if line[(position >> 6) as usize] >> (position & 63) & 1 == 0 {
                return false;
            }
            bits = bits.wrapping_mul(0x9E37_79B9);
        }
        true
    }

    /// The lines.
    pub fn lines(&self) -> &L {
        &self.lines
    }

    /// Whether it filters nothing.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// How many bits of a line each key sets.
    pub fn probes(&self) -> u8 {
        self.probes
    }

    /// Its size in bytes, in memory and on disk.
    pub fn bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    /// Appends the lines to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.bytes());
        for line in &*self.lines {
            for word in line.0 {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
    }

    /// Reads a filter from all of `bytes`; `collect` makes the lines, of which it gets the number.
    pub fn decode(
        bytes: &[u8],
        probes: u8,
        collect: impl FnOnce(usize, &mut dyn Iterator<Item = Line>) -> L,
    ) -> Decoded<Self> {
        if !bytes.len().is_multiple_of(LINE_BYTES) || probes > PROBES_MAX {
            return Err(DecodeError("the filter has an impossible size"));
        }
        let mut lines = bytes.chunks_exact(LINE_BYTES).map(|line| {
            let mut words = [0; 8];
            for (word, bytes) in words.iter_mut().zip(line.chunks_exact(8)) {
                let mut array = [0; 8];
                array.copy_from_slice(bytes);
                *word = u64::from_le_bytes(array);
            }
            Line(words)
        });
        Ok(Self { lines: collect(bytes.len() / LINE_BYTES, &mut lines), probes })
    }
}
