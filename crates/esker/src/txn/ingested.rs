//! What was ingested, as far as transactions must know: ranges of keys, and the position of each.
//!
//! Ingested entries are in no memtable, so validation finds them here. It compares ranges of keys and reads
//! no entries: a transaction that read between two keys of a run segment counts as one that read a key.

use crate::base::{KeyOrder, KeyspaceId, Seq};
use crate::iter::Bounds;

/// Ranges that are kept of one ingestion, and so many of those that it removed.
const RANGES_MAX: usize = 256;

/// A range of keys from its start to before its end; `None`: it has no such end.
pub type HalfOpen = (Option<Vec<u8>>, Option<Vec<u8>>);

/// What one ingestion wrote to a keyspace.
#[derive(Debug, Clone)]
pub struct Ingested {
    /// Its position.
    pub seq: Seq,
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// First and last keys of entries, ascending.
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
    /// Ranges that were removed, ascending.
    removed: Vec<HalfOpen>,
}

/// How many of so many ranges are joined into one.
fn share(ranges: usize) -> usize {
    ranges.div_ceil(RANGES_MAX).max(1)
}

impl Ingested {
    /// Entries at `seq` in ranges with these first and last keys, and range tombstones there, both
    /// ascending in the keyspace's order. Where there are many, some are joined.
    pub fn new(
        seq: Seq,
        keyspace: KeyspaceId,
        ends: impl ExactSizeIterator<Item = (Vec<u8>, Vec<u8>)>,
        removed: &[HalfOpen],
    ) -> Self {
        let joined = share(ends.len());
        let mut ranges: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (number, (first, last)) in ends.enumerate() {
            match ranges.last_mut() {
                Some(range) if number % joined != 0 => range.1 = last,
                _ => ranges.push((first, last)),
            }
        }
        let whole = |few: &[HalfOpen]| {
            let (first, last) = (few.first(), few.last());
            (first.and_then(|one| one.0.clone()), last.and_then(|one| one.1.clone()))
        };
        let removed = removed.chunks(share(removed.len())).map(whole).collect();
        // Seeded: a transaction commits over keys that an ingestion removed since it read them.
        let removed = if bug!("txn_ingested_removals_not_seen") { Vec::new() } else { removed };
        Self { seq, keyspace, ranges, removed }
    }

    /// Whether a key may have been ingested or removed.
    pub fn touches_key<O: KeyOrder>(&self, order: &O, key: &[u8]) -> bool {
        let at = self.ranges.partition_point(|(_, last)| order.compare(last, key).is_lt());
        let put = self.ranges.get(at).is_some_and(|(first, _)| order.compare(first, key).is_le());
        let ended =
            |(_, end): &HalfOpen| end.as_ref().is_some_and(|end| order.compare(end, key).is_le());
        let removed = self.removed.get(self.removed.partition_point(ended));
        let begun = |start: &Vec<u8>| order.compare(start, key).is_le();
        put || removed.is_some_and(|(start, _)| start.as_ref().is_none_or(begun))
    }

    /// A key within `bounds` that may have been ingested or removed; the empty one stands for the beginning
    /// of a range without a start.
    pub fn within<O: KeyOrder>(&self, order: &O, bounds: &Bounds) -> Option<&[u8]> {
        let touches = |(first, last): &&(Vec<u8>, Vec<u8>)| bounds.touch(order, (first, last));
        let put = self.ranges.iter().find(touches).map(|(first, _)| first.as_slice());
        let meets =
            |(start, end): &&HalfOpen| bounds.meet(order, (start.as_deref(), end.as_deref()));
        let removed = || self.removed.iter().find(meets);
        put.or_else(|| removed().map(|(start, _)| start.as_deref().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Bytewise, KeyBuf};
    use std::ops::Bound;

    fn own(key: &str) -> Vec<u8> {
        key.as_bytes().to_vec()
    }

    fn kept(key: &str) -> KeyBuf {
        key.as_bytes().into()
    }

    fn ingested(ends: &[(&str, &str)], removed: &[(Option<&str>, Option<&str>)]) -> Ingested {
        let ends: Vec<_> = ends.iter().map(|(a, b)| (own(a), own(b))).collect();
        let removed: Vec<_> = removed.iter().map(|(a, b)| (a.map(own), b.map(own))).collect();
        Ingested::new(8, 0, ends.into_iter(), &removed)
    }

    #[test]
    fn keys_and_ranges_are_found_between_the_ends_and_not_elsewhere() {
        let some = ingested(&[("b", "d"), ("f", "f"), ("h", "k")], &[]);
        let holds = |key: &str| some.touches_key(&Bytewise, key.as_bytes());
        for (key, held) in [("a", false), ("b", true), ("c", true), ("d", true), ("e", false)] {
            assert_eq!(holds(key), held, "{key}");
        }
        assert!(holds("f") && !holds("g") && !holds("l"));
        let within = |low: Bound<&str>, high: Bound<&str>| {
            some.within(&Bytewise, &Bounds { low: low.map(kept), high: high.map(kept) }).is_some()
        };
        use Bound::{Excluded, Included, Unbounded};
        assert!(within(Unbounded, Unbounded) && within(Included("k"), Unbounded));
        assert!(!within(Excluded("k"), Unbounded) && !within(Unbounded, Excluded("b")));
        assert!(within(Unbounded, Included("b")) && !within(Excluded("d"), Excluded("f")));
        assert!(within(Excluded("d"), Included("f")) && !within(Included("l"), Unbounded));
    }

    #[test]
    fn removed_ranges_are_found_up_to_before_their_ends() {
        let some = ingested(&[], &[(None, Some("b")), (Some("d"), Some("f")), (Some("x"), None)]);
        for (key, held) in [
            ("", true),
            ("az", true),
            ("b", false),
            ("c", false),
            ("d", true),
            ("ez", true),
            ("f", false),
            ("x", true),
            ("zz", true),
        ] {
            assert_eq!(some.touches_key(&Bytewise, key.as_bytes()), held, "{key}");
        }
        let within = |low: Bound<&str>, high: Bound<&str>| {
            some.within(&Bytewise, &Bounds { low: low.map(kept), high: high.map(kept) })
        };
        use Bound::{Excluded, Included, Unbounded};
        assert_eq!(within(Included("b"), Included("d")), Some(&b"d"[..]));
        assert_eq!(within(Included("b"), Excluded("d")), None);
        assert_eq!(within(Included("f"), Excluded("x")), None);
        assert_eq!(within(Included("f"), Unbounded), Some(&b"x"[..]));
        assert_eq!(within(Unbounded, Included("a")), Some(&b""[..]));
    }

    #[test]
    fn many_ranges_are_joined_and_none_is_lost() {
        let key = |n: u32| n.to_be_bytes().to_vec();
        let ends: Vec<_> = (0..1000u32).map(|n| (key(n), key(n))).collect();
        let removed: Vec<_> =
            (1000..2000u32).step_by(2).map(|n| (Some(key(n)), Some(key(n + 1)))).collect();
        let many = Ingested::new(8, 0, ends.into_iter(), &removed);
        assert!(many.ranges.len() <= RANGES_MAX && many.removed.len() <= RANGES_MAX);
        assert!((0..1000u32).all(|n| many.touches_key(&Bytewise, &key(n))));
        assert!((1000..2000u32).step_by(2).all(|n| many.touches_key(&Bytewise, &key(n))));
        assert!(!many.touches_key(&Bytewise, &key(2000)));
    }
}
