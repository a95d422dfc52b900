use super::*;
use crate::base::codec::Reader;
use crate::base::{Bytewise, Comparator, CustomOrder, KeyOrder, SEQ_MAX, Seq};
use std::sync::Arc;

/// A small generator (SplitMix64), seeded from `ESKER_SEED` or a default.
struct Random(u64);

impl Random {
    fn new(salt: u64) -> Self {
        let seed = std::env::var("ESKER_SEED").ok().and_then(|text| text.parse().ok());
        let seed: u64 = seed.unwrap_or(1);
        eprintln!("ESKER_SEED={seed}");
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % bound
    }

    /// Keys of up to two letters out of four, the empty key included.
    fn key(&mut self) -> Vec<u8> {
        (0..self.below(3)).map(|_| [0, b'a', b'b', 0xff][self.below(4) as usize]).collect()
    }

    fn bound(&mut self) -> Option<Vec<u8>> {
        (self.below(8) > 0).then(|| self.key())
    }

    fn tombstones(&mut self, count: u64) -> Vec<RangeTombstone> {
        let one = |random: &mut Self| RangeTombstone {
            start: random.bound(),
            end: random.bound(),
            seq: random.below(20),
        };
        (0..self.below(count)).map(|_| one(self)).collect()
    }
}

fn all_keys() -> Vec<Vec<u8>> {
    let letters = [0, b'a', b'b', 0xff];
    let mut keys = vec![vec![]];
    for a in letters {
        keys.push(vec![a]);
        keys.extend(letters.map(|b| vec![a, b]));
        keys.push(vec![a, b'a', 0]);
    }
    keys
}

#[derive(Debug)]
struct Reverse;

impl Comparator for Reverse {
    fn name(&self) -> &str {
        "reverse"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

fn brute<O: KeyOrder>(order: &O, list: &[RangeTombstone], key: &[u8], below: Seq) -> Seq {
    let covering = list.iter().filter(|t| t.seq < below && t.contains(order, key));
    covering.map(|t| t.seq).max().unwrap_or(0)
}

fn check_against_brute_force<O: KeyOrder>(order: &O, random: &mut Random) {
    let list = random.tombstones(9);
    let fragments = Fragments::build(order, list.clone());
    let (low, high) = (random.bound(), random.bound());
    let clipped = fragments.clip(order, low.as_deref(), high.as_deref());
    let whole = fragments.covers_all(order, low.as_deref(), high.as_deref(), 15);
    let window = RangeTombstone { start: low, end: high, seq: 1 };
    let snapshots = [random.below(20), random.below(20)];
    let compact = fragments.compact(&snapshots);
    let mut keys = all_keys();
    keys.sort_by(|a, b| order.compare(a, b));
    for key in &keys {
        for below in (0..22).chain([SEQ_MAX]) {
            let expected = brute(order, &list, key, below);
            assert_eq!(fragments.covering_seq(order, key, below), expected, "{list:?} {key:?}");
            let covering = fragments.covering(order, key, below);
            assert_eq!(covering.seqs, expected);
            assert!(covering.start.is_none_or(|start| order.compare(start, key).is_le()));
            assert!(covering.end.is_none_or(|end| order.compare(key, end).is_lt()));
            let inside = if window.contains(order, key) { expected } else { 0 };
            assert_eq!(clipped.covering_seq(order, key, below), inside, "{list:?} {window:?}");
        }
        for below in snapshots.into_iter().chain([SEQ_MAX]) {
            let expected = brute(order, &list, key, below);
            assert_eq!(compact.covering_seq(order, key, below), expected, "{list:?} {snapshots:?}");
        }
        let fragment = fragments.iter().find(|fragment| {
            fragment.start.is_none_or(|start| order.compare(start, key).is_le())
                && fragment.end.is_none_or(|end| order.compare(key, end).is_lt())
        });
        let mut seqs: Vec<Seq> =
            list.iter().filter(|t| t.seq > 0 && t.contains(order, key)).map(|t| t.seq).collect();
        seqs.sort_unstable_by(|a, b| b.cmp(a));
        seqs.dedup();
        assert_eq!(fragment.map(|fragment| fragment.seqs).unwrap_or_default(), seqs, "{list:?}");
    }
    for compacted in compact.iter() {
        assert!(compacted.seqs.len() <= 3, "one for each snapshot and the newest");
    }
    for key in keys.iter().filter(|key| window.contains(order, key)) {
        assert!(whole <= brute(order, &list, key, 15), "{list:?} {window:?} {key:?}");
    }
    let (start, end) = (window.start.as_deref(), window.end.as_deref());
    let encloses = |t: &&RangeTombstone| {
        compare_starts(order, t.start.as_deref(), start).is_le()
            && compare_ends(order, end, t.end.as_deref()).is_le()
            && t.seq < 15
    };
    let newest = list.iter().filter(encloses).map(|t| t.seq).max().unwrap_or(0);
    let holds_keys = fragments.within(order, start, end).is_some();
    assert!(whole >= newest || !holds_keys, "{list:?} {window:?}: {whole}");
    let mut bounds = [random.key(), random.key(), random.key()];
    bounds.sort_by(|a, b| order.compare(a, b));
    let ends = bounds.iter().map(|key| Some(key.as_slice())).chain([None]);
    let mut cutter = Cutter::new(&fragments);
    let mut start = None;
    for end in ends {
        assert_eq!(cutter.cut(order, start, end), fragments.clip(order, start, end), "{list:?}");
        start = end;
    }
    let mut cutter = Cutter::new(&fragments);
    for key in &keys {
        let next = cutter.next_start(order, Some(key)).map(|start| start.unwrap_or_default());
        let covered = |key: &&Vec<u8>| brute(order, &list, key, SEQ_MAX) > 0;
        let found = keys.iter().filter(|other| order.compare(key, other).is_le()).find(covered);
        // Between the keys of the universe there are others.
        let early = next.is_some_and(|next| found.is_none_or(|f| order.compare(next, f).is_le()));
        assert!(early || found.is_none(), "{list:?} {key:?}: {next:?}, not {found:?}");
        if let Some(next) = next {
            assert!(brute(order, &list, next, SEQ_MAX) > 0 && order.compare(key, next).is_le());
        }
    }
    // The universe is not dense, so the result for a whole range may be smaller than the results
    // for its keys, but never larger.
    for (i, low) in keys.iter().enumerate() {
        for high in &keys[i..] {
            let below = random.below(22);
            let covered = fragments.covers_range(order, low, high, below);
            let between = keys
                .iter()
                .filter(|key| order.compare(low, key).is_le() && order.compare(key, high).is_le());
            let least = between.map(|key| brute(order, &list, key, below)).min().unwrap_or(0);
            assert!(covered <= least, "{list:?} {low:?}..={high:?} below {below}");
            if low == high {
                assert_eq!(covered, least);
            }
        }
    }
    let mut stored = Vec::new();
    fragments.encode(&mut stored);
    let mut reader = Reader::new(&stored);
    assert_eq!(Fragments::decode(order, &mut reader).as_ref(), Ok(&fragments));
    assert!(reader.is_empty());
    let again = Fragments::build(order, fragments.tombstones().collect());
    assert_eq!(again, fragments);
}

#[test]
fn agree_with_brute_force() {
    let mut random = Random::new(1);
    let custom = CustomOrder::new(Arc::new(Reverse));
    for _ in 0..150 {
        check_against_brute_force(&Bytewise, &mut random);
        check_against_brute_force(&custom, &mut random);
    }
}

fn tombstone(start: &str, end: &str, seq: Seq) -> RangeTombstone {
    RangeTombstone { start: Some(start.into()), end: Some(end.into()), seq }
}

#[test]
fn a_chain_of_fragments_covers_a_range() {
    let list = vec![tombstone("b", "d", 7), tombstone("d", "f", 5), tombstone("a", "z", 2)];
    let fragments = Fragments::build(&Bytewise, list);
    assert_eq!(fragments.covers_range(&Bytewise, b"b", b"e", 9), 5);
    assert_eq!(fragments.covers_range(&Bytewise, b"b", b"c", 9), 7);
    // The end of a tombstone is not covered by it.
    assert_eq!(fragments.covers_range(&Bytewise, b"b", b"f", 9), 2);
    assert_eq!(fragments.covers_range(&Bytewise, b"b", b"e", 6), 2);
    assert_eq!(fragments.covers_range(&Bytewise, b"b", b"z", 9), 0);
    assert_eq!(fragments.covers_range(&Bytewise, b"e", b"b", 9), 0);
    assert_eq!(fragments.hull(), Some((Some(&b"a"[..]), Some(&b"z"[..]))));
    assert_eq!((fragments.min_seq(), fragments.max_seq(), fragments.len()), (2, 7, 3));
}

#[test]
fn nested_ranges_take_less_than_quadratic_space() {
    let key = |i: u64| Some(i.to_be_bytes().to_vec());
    let queue = (1..=20_000).map(|i| RangeTombstone { start: None, end: key(i), seq: i });
    let fragments = Fragments::build(&Bytewise, queue.collect());
    // With one list per fragment there would be 200 million numbers.
    assert!(fragments.stored() < 20_000 * 32, "{}", fragments.stored());
    for i in [0u64, 1, 777, 19_999] {
        assert_eq!(fragments.covering_seq(&Bytewise, &i.to_be_bytes(), SEQ_MAX), 20_000);
        assert_eq!(fragments.covering_seq(&Bytewise, &i.to_be_bytes(), i + 2), i + 1);
        assert_eq!(fragments.covering_seq(&Bytewise, &i.to_be_bytes(), i + 1), 0);
    }
    let compact = fragments.compact(&[]);
    assert_eq!(compact.tombstones().collect::<Vec<_>>().len(), 1);
    assert_eq!(compact.bounds.len(), 1);
}

#[test]
fn damaged_bytes_are_refused_or_say_something_else() {
    let mut random = Random::new(2);
    for _ in 0..40 {
        let fragments = Fragments::build(&Bytewise, random.tombstones(9));
        let mut stored = Vec::new();
        fragments.encode(&mut stored);
        for len in 0..stored.len() {
            let result = Fragments::decode(&Bytewise, &mut Reader::new(&stored[..len]));
            assert!(result.is_err(), "{len} of {} bytes were accepted", stored.len());
        }
        for bit in 0..stored.len() * 8 {
            let mut damaged = stored.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let mut reader = Reader::new(&damaged);
            // The checksum around it finds every flip. Here, whatever is accepted must be exactly
            // what the bytes say.
            if let Ok(accepted) = Fragments::decode(&Bytewise, &mut reader) {
                let mut again = Vec::new();
                accepted.encode(&mut again);
                assert_eq!(again, damaged[..reader.position()]);
                assert_ne!(accepted, fragments);
                let rebuilt = Fragments::build(&Bytewise, accepted.tombstones().collect());
                assert_eq!(rebuilt, accepted);
            }
        }
    }
}

#[test]
fn hostile_counts_allocate_nothing() {
    for stored in [
        &[0xff, 0xff, 0xff, 0xff, 0x0f, 0][..],
        &[0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0],
        &[0, 1, 0, 0, 1],          // an empty span
        &[0, 1, 0, 1, 0],          // sequence number 0
        &[0, 1, 0, 2, 1],          // a fragment too far
        &[1, 1, b'a', 1, 0, 2, 1], // a bound that nothing uses
        &[2, 1, b'a', 1, b'a', 0], // bounds that do not ascend
    ] {
        assert!(Fragments::decode(&Bytewise, &mut Reader::new(stored)).is_err(), "{stored:?}");
    }
    let everything = Fragments::decode(&Bytewise, &mut Reader::new(&[0, 1, 0, 1, 9]));
    let everything = everything.expect("one tombstone over everything is valid");
    assert_eq!(everything.covering_seq(&Bytewise, b"", 10), 9);
}
