//! Values of a given compressibility, without work per value.
//!
//! A pool is filled once: pieces of a hundred bytes, each a random part followed by its own
//! repetition, so that a compressor shrinks the pool to about the ratio asked for (LevelDB's
//! `CompressibleString` does the same). A value is a window of the pool; windows advance by the
//! value's length and start elsewhere in every stream, so neighbours in a block differ.

use crate::dist::Stream;
use crate::keys::mix;
use rand::RngCore;

/// Bytes of one piece; a piece's repetition never reaches into the next piece.
const PIECE: usize = 100;
/// The pool's size unless values are large.
const POOL: usize = 1 << 20;

/// The bytes that values are cut from.
#[derive(Debug)]
pub struct ValuePool {
    bytes: Vec<u8>,
}

impl ValuePool {
    /// A pool for values up to `largest` bytes that shrink to `ratio` (0 to 1) of their size.
    pub fn new(largest: usize, ratio: f64, seed: u64) -> Self {
        let mut rng = Stream { seed: mix(seed), round: 0, step: 0, thread: 0 }.rng();
        let size = POOL.max(4 * largest).next_multiple_of(PIECE);
        let random = ((PIECE as f64 * ratio.clamp(0.0, 1.0)).round() as usize).max(1);
        let mut bytes = vec![0; size];
        for piece in bytes.chunks_exact_mut(PIECE) {
            rng.fill_bytes(&mut piece[..random]);
            for i in random..PIECE {
                piece[i] = piece[i - random];
            }
        }
        Self { bytes }
    }

    /// A source of values for one thread.
    pub fn source(&self, start: u64) -> ValueSource<'_> {
        let pieces = (self.bytes.len() / PIECE) as u64;
        ValueSource { pool: &self.bytes, at: (start % pieces) as usize * PIECE }
    }
}

/// Cuts values from the pool.
#[derive(Debug, Clone)]
pub struct ValueSource<'a> {
    pool: &'a [u8],
    at: usize,
}

impl<'a> ValueSource<'a> {
    /// The next value; `len` is at most the `largest` that the pool was made for.
    pub fn next(&mut self, len: usize) -> &'a [u8] {
        if self.at + len > self.pool.len() {
            self.at = 0;
        }
        let value = &self.pool[self.at..self.at + len];
        self.at += len;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the bytes that a window compressor could not copy: those that start no repetition of
    /// four bytes seen within the last hundred.
    fn novel_fraction(bytes: &[u8]) -> f64 {
        let mut novel = 0;
        let mut i = 0;
        while i + 4 <= bytes.len() {
            let window = &bytes[i.saturating_sub(PIECE)..i];
            if window.windows(4).any(|w| w == &bytes[i..i + 4]) {
                i += 4;
            } else {
                novel += 1;
                i += 1;
            }
        }
        f64::from(novel) / bytes.len() as f64
    }

    #[test]
    fn the_pool_shrinks_as_asked() {
        for ratio in [0.25, 0.5, 0.75, 1.0] {
            let pool = ValuePool::new(100, ratio, 3);
            let mut source = pool.source(17);
            let sample: Vec<u8> = (0..500).flat_map(|_| source.next(100).to_vec()).collect();
            let measured = novel_fraction(&sample);
            assert!((measured - ratio).abs() < 0.06, "asked {ratio}, got {measured}");
        }
    }

    #[test]
    fn windows_advance_wrap_and_have_the_length() {
        let pool = ValuePool::new(100_000, 0.5, 3);
        let mut source = pool.source(u64::MAX);
        for len in [0, 1, 100_000, 99_999, 1, 100_000, 100_000, 100_000, 100_000] {
            assert_eq!(source.next(len).len(), len);
        }
        let mut source = pool.source(0);
        assert_ne!(source.next(100), source.next(100));
    }
}
