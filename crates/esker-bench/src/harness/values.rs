//! Values of a given compressibility, without work per value.
//!
//! A pool is filled once: pieces of a hundred bytes, each a random part followed by its own repetition,
//! so that a compressor shrinks the pool to about the ratio asked for (LevelDB's `CompressibleString`
//! does the same). A value is a part of the pool, chosen by a hash of the step and of the key's number.
//!
//! Invariant: the value that a step writes under a key depends on the step and the key alone, not on
//! which thread writes it or when. What a database holds after a step is therefore the same for every
//! engine, in whatever order its threads ran, and results of engines can be compared byte for byte.

use crate::harness::dist::Stream;
use crate::harness::keys::mix;
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

    /// The value of `len` bytes that the step with this seed writes under key `number`; `len` is at
    /// most the `largest` that the pool was made for.
    pub fn value(&self, step_seed: u64, number: u64, len: usize) -> &[u8] {
        let starts = ((self.bytes.len() - len) / PIECE) as u64 + 1;
        let hash = mix(step_seed ^ mix(number));
        // The high half of a product is a number below `starts`, without a division.
        let at = ((u128::from(hash) * u128::from(starts)) >> 64) as usize * PIECE;
        &self.bytes[at..at + len]
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
            let sample: Vec<u8> = (0..500).flat_map(|n| pool.value(17, n, 100).to_vec()).collect();
            let measured = novel_fraction(&sample);
            assert!((measured - ratio).abs() < 0.06, "asked {ratio}, got {measured}");
        }
    }

    #[test]
    fn values_have_their_length_and_depend_on_step_and_key_alone() {
        let pool = ValuePool::new(100_000, 0.5, 3);
        for len in [0, 1, 100, 99_999, 100_000] {
            for number in 0..200 {
                let value = pool.value(7, number, len);
                assert_eq!(value.len(), len);
                assert_eq!(value, pool.value(7, number, len));
            }
        }
        assert_ne!(pool.value(7, 1, 100), pool.value(7, 2, 100));
        assert_ne!(pool.value(7, 1, 100), pool.value(8, 1, 100));
        let distinct: std::collections::HashSet<&[u8]> =
            (0..1_000).map(|number| pool.value(7, number, 100)).collect();
        assert!(distinct.len() > 850, "{}", distinct.len());
    }
}
