//! A checksum of results that does not depend on the order in which threads ran.
//!
//! Every result has a hash: of its key and value (XXH3, seeded with the hash of the key), or of the key
//! alone if there was no entry. A scan chains the hashes of its entries, because their order matters.
//! The checksum is the sum of the hashes of all results, modulo 2⁶⁴. A sum does not depend on an order,
//! so sixteen threads that read the same keys get the same checksum as one thread.
//!
//! Databases that return the same results have the same checksum. Databases that return different
//! results have the same one with a probability of about 2⁻⁶⁴; nobody is expected to forge results.

use std::hint::black_box;
use std::time::Instant;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// What is added for a key that was not found, so that it differs from an empty value.
const MISSING: u64 = 0x6E6F_7468_696E_6721;

/// A sum of hashes of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checksum(u64);

impl Checksum {
    /// Adds a read that found an entry.
    #[inline]
    pub fn found(&mut self, key: &[u8], value: &[u8]) {
        self.0 = self.0.wrapping_add(entry(key, value));
    }

    /// Adds a read that found none.
    #[inline]
    pub fn missing(&mut self, key: &[u8]) {
        self.0 = self.0.wrapping_add(xxh3_64_with_seed(key, MISSING));
    }

    /// Adds a scan.
    #[inline]
    pub fn scan(&mut self, scan: Scan) {
        self.0 = self.0.wrapping_add(scan.0);
    }

    /// Adds what another thread summed.
    pub fn merge(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }

    /// The sum.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// What was read back after a step, and how it compares with what was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// Of everything that was read.
    pub checksum: Checksum,
    /// Results that were compared with what was written.
    pub compared: u64,
    /// Those that were wrong.
    pub wrong: u64,
    /// The first of them, in words.
    pub first_wrong: Option<String>,
}

impl ReadBack {
    /// Counts a wrong result; only the first is put into words.
    pub fn wrong(&mut self, what: impl FnOnce() -> String) {
        self.wrong += 1;
        self.first_wrong.get_or_insert_with(what);
    }
}

/// The hash of one scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scan(u64);

impl Scan {
    /// Adds the next entry.
    #[inline]
    pub fn entry(&mut self, key: &[u8], value: &[u8]) {
        self.0 = self.0.rotate_left(5).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ entry(key, value);
    }
}

#[inline]
fn entry(key: &[u8], value: &[u8]) -> u64 {
    xxh3_64_with_seed(value, xxh3_64(key))
}

/// What one entry of this size adds to an operation, in nanoseconds. It is the same for every engine.
pub fn cost_ns(key_size: usize, value_size: usize) -> f64 {
    const ROUNDS: u32 = 20_000;
    let (key, value) = (vec![7; key_size], vec![9; value_size]);
    let start = Instant::now();
    let mut sum = Checksum::default();
    for _ in 0..ROUNDS {
        sum.found(black_box(&key), black_box(&value));
    }
    black_box(sum);
    start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reads: &[(&str, Option<&str>)]) -> Checksum {
        let mut sum = Checksum::default();
        for (key, value) in reads {
            match value {
                Some(value) => sum.found(key.as_bytes(), value.as_bytes()),
                None => sum.missing(key.as_bytes()),
            }
        }
        sum
    }

    #[test]
    fn the_order_of_reads_does_not_count_and_everything_else_does() {
        let base = of(&[("a", Some("1")), ("b", None), ("c", Some("3"))]);
        let mut parts = of(&[("c", Some("3"))]);
        parts.merge(of(&[("b", None), ("a", Some("1"))]));
        assert_eq!(parts, base);
        let others: [&[_]; 6] = [
            &[("a", Some("1")), ("b", None)],
            &[("a", Some("1")), ("b", Some("")), ("c", Some("3"))],
            &[("a", Some("3")), ("b", None), ("c", Some("1"))],
            &[("a", Some("1")), ("b", None), ("c", None)],
            &[("a", Some("1")), ("b", None), ("c", Some("3")), ("c", Some("3"))],
            &[("ab", Some("1")), ("", None), ("c", Some("3"))],
        ];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(of(other), base, "case {i}");
        }
    }

    #[test]
    fn the_order_within_a_scan_counts() {
        let scan = |entries: &[(&str, &str)]| {
            let mut scan = Scan::default();
            entries.iter().for_each(|(k, v)| scan.entry(k.as_bytes(), v.as_bytes()));
            scan
        };
        let base = scan(&[("a", "1"), ("b", "2")]);
        assert_eq!(base, scan(&[("a", "1"), ("b", "2")]));
        assert_ne!(base, scan(&[("b", "2"), ("a", "1")]));
        assert_ne!(base, scan(&[("a", "1")]));
        assert_ne!(base, scan(&[("a", "1"), ("b", "2"), ("c", "3")]));
    }

    #[test]
    fn the_cost_is_a_time() {
        let cost = cost_ns(16, 100);
        assert!(cost > 0.0 && cost.is_finite());
    }
}
