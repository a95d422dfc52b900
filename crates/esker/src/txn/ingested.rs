//! What was ingested, as far as transactions must know: ranges of keys, and the position of each.
//!
//! Ingested entries are in no memtable, so validation finds them here. It compares ranges of keys and reads
//! no entries: a transaction that read between two keys of a run segment counts as one that read a key.

use crate::base::{Bytewise, KeyspaceId, Seq};
use crate::iter::Bounds;

/// Ranges that are kept of one ingestion.
const RANGES_MAX: usize = 256;

/// What one ingestion wrote to a keyspace with byte order.
#[derive(Debug, Clone)]
pub struct Ingested {
    /// Its position.
    pub seq: Seq,
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// First and last keys, ascending.
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Ingested {
    /// Entries at `seq` in ranges with these first and last keys, ascending. Where there are many, some are
    /// joined.
    pub fn new(
        seq: Seq,
        keyspace: KeyspaceId,
        ends: impl ExactSizeIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Self {
        let joined = ends.len().div_ceil(RANGES_MAX).max(1);
        let mut ranges: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (number, (first, last)) in ends.enumerate() {
            match ranges.last_mut() {
                Some(range) if number % joined != 0 => range.1 = last,
                _ => ranges.push((first, last)),
            }
        }
        Self { seq, keyspace, ranges }
    }

    /// Whether a key may have been ingested.
    pub fn may_hold(&self, key: &[u8]) -> bool {
        let at = self.ranges.partition_point(|(_, last)| last.as_slice() < key);
        self.ranges.get(at).is_some_and(|(first, _)| first.as_slice() <= key)
    }

    /// A key within `bounds` that may have been ingested.
    pub fn within(&self, bounds: &Bounds) -> Option<&[u8]> {
        let touches = |(first, last): &&(Vec<u8>, Vec<u8>)| bounds.touch(&Bytewise, (first, last));
        self.ranges.iter().find(touches).map(|(first, _)| first.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Bound;

    fn ingested(ends: &[(&str, &str)]) -> Ingested {
        let ends = ends.iter().map(|(a, b)| (a.as_bytes().to_vec(), b.as_bytes().to_vec()));
        Ingested::new(8, 0, ends.collect::<Vec<_>>().into_iter())
    }

    #[test]
    fn keys_and_ranges_are_found_between_the_ends_and_not_elsewhere() {
        let some = ingested(&[("b", "d"), ("f", "f"), ("h", "k")]);
        for (key, held) in [("a", false), ("b", true), ("c", true), ("d", true), ("e", false)] {
            assert_eq!(some.may_hold(key.as_bytes()), held, "{key}");
        }
        assert!(some.may_hold(b"f") && !some.may_hold(b"g") && !some.may_hold(b"l"));
        let within = |low: Bound<&str>, high: Bound<&str>| {
            let own = |bound: Bound<&str>| bound.map(|key| key.as_bytes().to_vec());
            some.within(&Bounds { low: own(low), high: own(high) }).is_some()
        };
        use Bound::{Excluded, Included, Unbounded};
        assert!(within(Unbounded, Unbounded) && within(Included("k"), Unbounded));
        assert!(!within(Excluded("k"), Unbounded) && !within(Unbounded, Excluded("b")));
        assert!(within(Unbounded, Included("b")) && !within(Excluded("d"), Excluded("f")));
        assert!(within(Excluded("d"), Included("f")) && !within(Included("l"), Unbounded));
    }

    #[test]
    fn many_ranges_are_joined_and_none_is_lost() {
        let ends: Vec<_> =
            (0..1000u32).map(|n| (n.to_be_bytes().to_vec(), n.to_be_bytes().to_vec())).collect();
        let many = Ingested::new(8, 0, ends.into_iter());
        assert!(many.ranges.len() <= RANGES_MAX);
        assert!((0..1000u32).all(|n| many.may_hold(&n.to_be_bytes())));
        assert!(!many.may_hold(&1000u32.to_be_bytes()));
    }
}
