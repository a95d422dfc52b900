//! Uniform samples of a range.

use super::range::Pair;
use crate::state::counts::Piece;
use crate::{Keyspace, Result};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::RangeBounds;

/// A source of random numbers: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `bound`, which is not 0, each as likely as any other: what would favour some is drawn again
    /// (Lemire, TOMACS 2019).
    fn below(&mut self, bound: u64) -> u64 {
        let unfair = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next()) * u128::from(bound);
            if wide as u64 >= unfair {
                return (wide >> 64) as u64;
            }
        }
    }

    /// `count` different numbers less than `total`, in ascending order; each choice is as likely as any other (Bentley and
    /// Floyd, CACM 1987). All numbers, if there are not more.
    fn choose(&mut self, count: u64, total: u64) -> BTreeSet<u64> {
        let mut chosen = BTreeSet::new();
        for last in total.saturating_sub(count)..total {
            let drawn = self.below(last + 1);
            // Seeded: what is drawn twice is drawn again from a smaller range, so the last entries are rare.
            let instead = if bug!("api_samples_favour_the_first") { drawn / 2 } else { last };
            if !chosen.insert(drawn) {
                chosen.insert(instead);
            }
        }
        chosen
    }
}

impl Keyspace {
    /// `count` entries of a range, chosen at random, in key order: each choice is as likely as any other, whatever the keys
    /// and the runs are. All entries of the range, if it does not have more.
    ///
    /// It counts the range as [`Keyspace::count`] does, and then reads the parts in which chosen entries lie: run segments, or
    /// what it had to read to count it.
    ///
    /// # Errors
    /// As [`Keyspace::count`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let orders = db.keyspace("orders")?;
    /// for number in 0..1000_u32 {
    ///     orders.insert(number.to_be_bytes(), "7")?;
    /// }
    /// let sample = orders.sample::<&[u8]>(.., 20)?;
    /// assert_eq!(sample.len(), 20);
    /// assert!(sample.is_sorted());
    /// let sum: u64 = sample.iter().map(|(_, value)| u64::from(value[0] - b'0')).sum();
    /// assert_eq!(sum / 20, 7); // The mean of all values, estimated.
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn sample<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        count: usize,
    ) -> Result<Vec<Pair>> {
        let (now, pieces) = self.pieces(range)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut counted = Vec::with_capacity(pieces.len());
        let mut total = 0_u64;
        for Piece { bounds, entries } in pieces {
            let entries = match entries {
                Some(entries) => entries,
                None => self.count_read(bounds.clone(), &now)?,
            };
            counted.push((bounds, total..total.saturating_add(entries)));
            total = total.saturating_add(entries);
        }
        // A new `RandomState` has keys that the system drew at random.
        let seed = RandomState::new().build_hasher().finish();
        let mut chosen = Chance(seed).choose(count as u64, total);
        let mut sample = Vec::with_capacity(chosen.len());
        for (bounds, numbers) in counted {
            let behind = chosen.split_off(&numbers.end);
            let here = std::mem::replace(&mut chosen, behind);
            if !here.is_empty() {
                let here = here.into_iter().map(|number| number - numbers.start);
                self.take_numbers(bounds, here, &now, &mut sample)?;
            }
        }
        Ok(sample)
    }
}

#[cfg(test)]
mod tests;
