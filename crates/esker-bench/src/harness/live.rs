//! Which keys are present, from which space amplification is computed.
//!
//! There is one bit per key number, set by fills and cleared by deletes. Threads share the words, but
//! write a word only if the bit changes, so a workload that overwrites only reads them. If two threads
//! put and delete the same key at the same time, the bit may end up either way. No workload of this
//! harness does that, so the count is exact.

use std::sync::atomic::{AtomicU64, Ordering};

/// A set of key numbers.
#[derive(Debug)]
pub struct LiveKeys {
    words: Vec<AtomicU64>,
}

impl LiveKeys {
    /// The empty set, for numbers below `num`.
    pub fn new(num: u64) -> Self {
        let words = num.div_ceil(64) as usize;
        Self { words: std::iter::repeat_with(|| AtomicU64::new(0)).take(words).collect() }
    }

    /// Adds a number.
    pub fn insert(&self, number: u64) {
        let (word, bit) = self.place(number);
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Removes a number.
    pub fn remove(&self, number: u64) {
        let (word, bit) = self.place(number);
        if word.load(Ordering::Relaxed) & bit != 0 {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Whether a number is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let (word, bit) = self.place(number);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// How many numbers are in the set.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }

    fn place(&self, number: u64) -> (&AtomicU64, u64) {
        (&self.words[(number / 64) as usize], 1 << (number % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_distinct_numbers() {
        let live = LiveKeys::new(130);
        for number in [0, 63, 64, 129, 64, 0] {
            live.insert(number);
        }
        assert_eq!(live.count(), 4);
        assert!(live.contains(129) && !live.contains(128));
        live.remove(64);
        live.remove(64);
        live.remove(1);
        assert_eq!(live.count(), 3);
    }
}
