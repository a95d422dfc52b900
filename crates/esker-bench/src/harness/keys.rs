//! Keys from numbers: formats, keys that are certainly absent, and permutations.
//!
//! A workload computes with numbers `0..num`; an engine gets byte strings in the same order. There are
//! two styles because each suits other engines: LevelDB's `db_bench` prints sixteen decimal digits
//! (long common prefixes, the bytes that differ come late), RocksDB's writes eight big-endian bytes
//! (the bytes that differ come first). Both are padded on the right with `0` to the size asked for.
//!
//! Invariants:
//! 1. Different numbers have different keys, in the same order, for all numbers that [`KeyFormat::new`]
//!    admitted.
//! 2. A key from [`KeyFormat::missing`] is never equal to a key from [`KeyFormat::write`], has the same
//!    length, and sorts inside the range of the present ones.
//! 3. A [`Permutation`] maps `0..num` onto itself one to one, with constant memory.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How a number becomes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyStyle {
    /// Decimal digits, zero-padded on the left to 16 (LevelDB's `db_bench`).
    #[default]
    Decimal,
    /// Big-endian bytes, 8 of them (RocksDB's `db_bench`).
    Binary,
}

/// Digits of a decimal key; a longer key is padded on the right.
const DIGITS: usize = 16;
/// Bytes of a binary key's number.
const BYTES: usize = 8;
/// "00", "01", … "99": two digits are printed at a time.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

/// A checked combination of style and size.
#[derive(Debug, Clone, Copy)]
pub struct KeyFormat {
    style: KeyStyle,
    size: usize,
    /// Bytes that the number takes; the rest is padding.
    number: usize,
}

impl KeyFormat {
    /// Refuses sizes that cannot tell `numbers` keys apart.
    pub fn new(style: KeyStyle, size: usize, numbers: u64) -> Result<Self> {
        let (number, room) = match style {
            KeyStyle::Decimal => {
                let digits = size.min(DIGITS);
                (digits, 10_u64.checked_pow(digits as u32))
            }
            KeyStyle::Binary => {
                let bytes = size.min(BYTES);
                (bytes, 1_u64.checked_shl(8 * bytes as u32))
            }
        };
        if size == 0 || size > 65_535 || room.is_some_and(|room| numbers > room) {
            return Err(Error::usage(format!(
                "--key-size {size} cannot hold {numbers} different keys: give a size up to 65535 \
                 that can, 16 for instance"
            )));
        }
        Ok(Self { style, size, number })
    }

    /// The length of every key.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A buffer for [`KeyFormat::write`], padding in place.
    pub fn buffer(&self) -> Vec<u8> {
        vec![b'0'; self.size]
    }

    /// Formats `number` into a buffer from [`KeyFormat::buffer`].
    pub fn write(&self, number: u64, key: &mut [u8]) {
        match self.style {
            KeyStyle::Decimal => write_decimal(number, &mut key[..self.number]),
            KeyStyle::Binary => {
                let bytes = number.to_be_bytes();
                key[..self.number].copy_from_slice(&bytes[BYTES - self.number..]);
            }
        }
        if self.size > self.number {
            // A missing key may have changed the padding of this buffer.
            key[self.size - 1] = b'0';
        }
    }

    /// Whether this format has room for keys that are surely absent.
    pub fn has_missing(&self) -> bool {
        self.style == KeyStyle::Decimal || self.size > self.number
    }

    /// Formats a key that no number has, right behind the one of `number`.
    pub fn missing(&self, number: u64, key: &mut [u8]) {
        self.write(number, key);
        // A digit becomes a letter, which no decimal key and no padding holds.
        let last = &mut key[self.size - 1];
        *last = last.wrapping_add(b'A' - b'0');
    }
}

fn write_decimal(mut number: u64, out: &mut [u8]) {
    let mut end = out.len();
    while end >= 2 {
        let pair = PAIRS[(number % 100) as usize];
        out[end - 2..end].copy_from_slice(&pair);
        number /= 100;
        end -= 2;
    }
    if end == 1 {
        out[0] = b'0' + (number % 10) as u8;
    }
}

/// A pseudo-random permutation of `0..num`.
///
/// A Feistel network over the next even power of two, walked until the value falls inside the
/// range ("cycle walking", Black and Rogaway, 2002): at most four times on average.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    num: u64,
    half: u32,
    rounds: [u64; 4],
}

impl Permutation {
    /// The permutation of `0..num` that `seed` names.
    pub fn new(num: u64, seed: u64) -> Self {
        let bits = 64 - num.saturating_sub(1).leading_zeros();
        let half = bits.div_ceil(2).max(1);
        let rounds = std::array::from_fn(|i| mix(seed ^ mix(i as u64 + 1)));
        Self { num, half, rounds }
    }

    /// Where `index` (below `num`) goes.
    pub fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.num);
        let mut value = index;
        loop {
            value = self.encrypt(value);
            if value < self.num {
                return value;
            }
        }
    }

    /// What goes to `place` (below `num`): the inverse of [`Self::at`].
    pub fn back(&self, place: u64) -> u64 {
        debug_assert!(place < self.num);
        let mut value = place;
        loop {
            value = self.decrypt(value);
            if value < self.num {
                return value;
            }
        }
    }

    fn decrypt(&self, value: u64) -> u64 {
        let mask = (1_u64 << self.half) - 1;
        let (mut left, mut right) = (value >> self.half, value & mask);
        for round in self.rounds.iter().rev() {
            (left, right) = (right ^ (mix(left ^ round) & mask), left);
        }
        left << self.half | right
    }

    fn encrypt(&self, value: u64) -> u64 {
        let mask = (1_u64 << self.half) - 1;
        let (mut left, mut right) = (value >> self.half, value & mask);
        for round in self.rounds {
            (left, right) = (right, left ^ (mix(right ^ round) & mask));
        }
        left << self.half | right
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014): spreads every input bit over all.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
