use super::bloom::Bloom;
use super::*;
use crate::base::rangedel::RangeTombstone;
use crate::base::testing::Counting;
use crate::base::{
    Bytewise, Comparator, Cursor, CustomOrder, KeyOrder, KeyspaceId, Kind, SEQ_MAX, Seq,
};
use crate::budget::ChunkPool;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A small generator (SplitMix64).
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Short keys with zeros and shared prefixes around the 8 bytes of the head and the 16 bytes
    /// of the fast comparison.
    pub fn key(&mut self) -> Vec<u8> {
        let prefix = [0, 0, 1, 7, 8, 9, 15, 16, 17][self.below(9) as usize];
        let mut key = vec![b'p'; prefix];
        key.extend((0..self.below(4)).map(|_| [0, b'a', 0xff][self.below(3) as usize]));
        key
    }
}

/// The seeds of a randomised test: that of `ESKER_SEED`, or some fixed ones.
pub(super) fn seeds(count: u64) -> Vec<u64> {
    let chosen = std::env::var("ESKER_SEED").ok().and_then(|text| text.parse().ok());
    chosen.map_or_else(|| (1..=count).collect(), |seed| vec![seed])
}

#[derive(Debug)]
struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "backwards"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

fn backwards() -> CustomOrder {
    CustomOrder::new(Arc::new(Backwards))
}

/// Entries in cursor order: key rank, sequence numbers from new to old.
type Model = BTreeMap<(KeyspaceId, Vec<u8>, Reverse<Seq>), (Kind, Vec<u8>)>;
type Row = (Vec<u8>, Seq, Kind, Vec<u8>);

fn row<O: KeyOrder>(cursor: &MemCursor<O>) -> Option<Row> {
    let peeked = cursor.valid().then(|| (cursor.key(), cursor.seq(), cursor.kind()));
    assert_eq!(cursor.peek(), peeked);
    cursor
        .valid()
        .then(|| (cursor.key().to_vec(), cursor.seq(), cursor.kind(), cursor.value().to_vec()))
}

/// The rows of one keyspace of the model in the order of the table.
fn rows<O: KeyOrder>(order: &O, model: &Model, keyspace: KeyspaceId) -> Vec<Row> {
    let of_keyspace = model.iter().filter(|((id, _, _), _)| *id == keyspace);
    let mut rows: Vec<Row> = of_keyspace
        .map(|((_, key, seq), (kind, value))| (key.clone(), seq.0, *kind, value.clone()))
        .collect();
    rows.sort_by(|a, b| order.compare(&a.0, &b.0).then(b.1.cmp(&a.1)));
    rows
}

fn check_cursor<O: KeyOrder>(
    table: &Arc<Memtable<O>>,
    keyspace: KeyspaceId,
    model: &Model,
    random: &mut Random,
) {
    let order = table.order().clone();
    let rows = rows(&order, model, keyspace);
    let mut cursor = table.cursor(keyspace);
    assert!(!cursor.valid());
    cursor.seek_to_first().unwrap();
    for expected in &rows {
        assert_eq!(row(&cursor).as_ref(), Some(expected));
        cursor.next().unwrap();
    }
    assert_eq!(row(&cursor), None);
    cursor.seek_to_last().unwrap();
    for expected in rows.iter().rev() {
        assert_eq!(row(&cursor).as_ref(), Some(expected));
        cursor.prev().unwrap();
    }
    assert_eq!(row(&cursor), None);
    for _ in 0..60 {
        let (key, below) =
            (random.key(), [0, random.below(300), SEQ_MAX][random.below(3) as usize]);
        let mut at = if random.below(2) == 0 {
            cursor.seek(&key, below).unwrap();
            let before =
                |row: &Row| order.compare(&row.0, &key).then(below.cmp(&(row.1 + 1))).is_lt();
            Some(rows.partition_point(before))
        } else {
            cursor.seek_before(&key).unwrap();
            rows.partition_point(|row| order.compare(&row.0, &key).is_lt()).checked_sub(1)
        };
        for _ in 0..8 {
            let expected = at.and_then(|at| rows.get(at));
            assert_eq!(row(&cursor).as_ref(), expected, "from {key:?} below {below}");
            if expected.is_none() {
                break;
            }
            at = if random.below(2) == 0 {
                cursor.next().unwrap();
                at.map(|at| at + 1)
            } else {
                cursor.prev().unwrap();
                at.and_then(|at| at.checked_sub(1))
            };
        }
    }
}

fn run_model<O: KeyOrder>(order: O, seed: u64, pending: bool) {
    eprintln!("ESKER_SEED={seed}");
    let mut random = Random(seed);
    let table = Arc::new(Memtable::new(order, 1 << 16));
    let mut model = Model::new();
    let keyspaces = [0, 1, 7, u32::MAX];
    for seq in 1..=300 {
        let keyspace = keyspaces[random.below(4) as usize];
        let key = random.key();
        let kind = Kind::from_u8(random.below(6) as u8).unwrap_or(Kind::Put);
        let value = match kind {
            Kind::Delete => vec![],
            _ => vec![seq as u8; random.below(40) as usize],
        };
        if pending {
            let entry = table.insert_pending(keyspace, &key, kind, &value);
            if random.below(8) == 0 {
                // The writer gave up: nobody ever sees the entry.
                continue;
            }
            table.publish(entry, seq);
        } else {
            table.insert(keyspace, &key, seq, kind, &value);
        }
        model.insert((keyspace, key, Reverse(seq)), (kind, value));
    }
    for keyspace in [0, 1, 2, 7, u32::MAX] {
        check_cursor(&table, keyspace, &model, &mut random);
        for _ in 0..200 {
            let (key, below) = (random.key(), random.below(310));
            let order = table.order();
            let versions = model.iter().filter(|((id, other, seq), _)| {
                *id == keyspace && order.compare(other, &key).is_eq() && seq.0 < below
            });
            let newest = versions.max_by_key(|((_, _, seq), _)| seq.0);
            let expected = newest.map(|((_, _, seq), (kind, value))| (seq.0, *kind, value.clone()));
            let found = table.get(keyspace, &key, below);
            assert_eq!(
                found.map(|f| (f.seq, f.kind, f.value.to_vec())),
                expected,
                "{key:?} {below}"
            );
        }
    }
    if !pending {
        let mut present: Vec<KeyspaceId> = model.keys().map(|key| key.0).collect();
        present.dedup();
        assert_eq!(table.keyspaces(), present);
        assert_eq!(table.entries(), model.len() as u64);
    }
}

#[test]
fn agrees_with_a_model() {
    for seed in seeds(40) {
        run_model(Bytewise, seed, false);
    }
}

#[test]
fn agrees_with_a_model_in_custom_order() {
    for seed in seeds(20) {
        run_model(backwards(), seed, false);
        run_model(backwards(), seed, true);
        run_model(Bytewise, seed, true);
    }
}

#[test]
fn a_new_table_is_empty() {
    let table = Arc::new(Memtable::new(Bytewise, 64 << 20));
    assert!(table.is_empty());
    assert_eq!((table.entries(), table.keyspaces()), (0, vec![]));
    assert!(table.bytes() <= (64 << 20) / 50, "{} bytes for nothing", table.bytes());
    assert_eq!(table.get(0, b"", SEQ_MAX), None);
    let mut cursor = table.cursor(0);
    cursor.seek_to_first().unwrap();
    assert!(!cursor.valid());
    cursor.seek_to_last().unwrap();
    assert!(!cursor.valid());
}

#[test]
fn extreme_keys_and_values() {
    let table = Arc::new(Memtable::new(Bytewise, 1 << 20));
    let long = vec![b'k'; 65_535];
    let large = vec![3; 9 << 20];
    table.insert(5, b"", 1, Kind::Put, b"empty");
    table.insert(5, &long, 2, Kind::Put, b"long");
    table.insert(5, b"large", 3, Kind::Put, &large);
    table.insert(5, b"a", 4, Kind::Put, b"short");
    table.insert(5, b"a\0", 5, Kind::Put, b"padded");
    let value = |key: &[u8]| table.get(5, key, SEQ_MAX).map(|found| found.value);
    assert_eq!(value(b""), Some(&b"empty"[..]));
    assert_eq!(value(&long), Some(&b"long"[..]));
    assert_eq!(value(b"large"), Some(&large[..]));
    assert_eq!(value(b"a"), Some(&b"short"[..]));
    assert_eq!(value(b"a\0"), Some(&b"padded"[..]));
    assert_eq!(value(b"a\0\0"), None);
    assert_eq!(value(&long[1..]), None);
    assert!(table.bytes() > large.len());
    let mut cursor = table.cursor(5);
    let mut keys = Vec::new();
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        keys.push(cursor.key().len());
        cursor.next().unwrap();
    }
    assert_eq!(keys, [0, 1, 2, 65_535, 5]);
    cursor.seek_before(b"").unwrap();
    assert!(!cursor.valid());
}

#[test]
fn runs_of_ascending_keys_stay_in_order() {
    // Two interleaved ascending runs, in the order of two different keyspaces, and one that
    // descends: with and without luck for the finger.
    let table = Arc::new(Memtable::new(Bytewise, 1 << 20));
    for i in 0..5_000u64 {
        table.insert(1, &i.to_be_bytes(), 3 * i + 1, Kind::Put, b"");
        table.insert(2, &i.to_be_bytes(), 3 * i + 2, Kind::Put, b"");
        table.insert(3, &(5_000 - i).to_be_bytes(), 3 * i + 3, Kind::Put, b"");
    }
    for (keyspace, first) in [(1, 0u64), (2, 0), (3, 1)] {
        let mut cursor = table.cursor(keyspace);
        cursor.seek_to_first().unwrap();
        for i in 0..5_000 {
            assert_eq!(cursor.key(), (first + i).to_be_bytes());
            cursor.next().unwrap();
        }
        assert!(!cursor.valid());
    }
}

#[test]
fn pending_entries_are_invisible_until_published() {
    let table = Arc::new(Memtable::new(backwards(), 1 << 16));
    table.insert(1, b"k", 3, Kind::Put, b"old");
    let first = table.insert_pending(1, b"k", Kind::Put, b"first");
    let second = table.insert_pending(1, b"k", Kind::Delete, b"");
    let other = table.insert_pending(1, b"j", Kind::Put, b"other");
    let newest = |below| table.get(1, b"k", below).map(|found| found.seq);
    assert_eq!(newest(SEQ_MAX), Some(3));
    let mut cursor = table.cursor(1);
    cursor.seek_to_first().unwrap();
    assert_eq!((cursor.key(), cursor.seq()), (&b"k"[..], 3));
    cursor.next().unwrap();
    assert!(!cursor.valid());
    // A later writer may publish first: its readers wait for the earlier one.
    table.publish(second, 11);
    assert_eq!(newest(10), Some(3));
    table.publish(first, 10);
    table.publish(other, 12);
    assert_eq!([newest(SEQ_MAX), newest(11), newest(10)], [Some(11), Some(10), Some(3)]);
    cursor.seek_to_last().unwrap();
    assert_eq!((cursor.key(), cursor.value()), (&b"j"[..], &b"other"[..]));
}

#[test]
#[should_panic(expected = "its own table")]
fn a_pending_entry_of_another_table_is_refused() {
    let (one, other) = (Memtable::new(Bytewise, 1 << 16), Memtable::new(Bytewise, 1 << 16));
    let pending = one.insert_pending(1, b"k", Kind::Put, b"");
    drop(one);
    other.publish(pending, 1);
}

#[test]
fn concurrent_inserts_and_reads() {
    const THREADS: u64 = 4;
    const EACH: u64 = if cfg!(miri) { 60 } else { 20_000 };
    let table = Arc::new(Memtable::new(Bytewise, 8 << 20));
    let done = AtomicBool::new(false);
    // Few keyspaces and colliding keys, so that threads meet at the same places.
    let entry = |thread: u64, i: u64| {
        let number = Random(thread << 32 | i).next() % 50_000;
        let key = if thread == 0 { format!("key{i:012}") } else { format!("key{number:06}") };
        ((i % 3) as KeyspaceId, key.into_bytes(), i * THREADS + thread + 1)
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let table = &table;
                scope.spawn(move || {
                    for i in 0..EACH {
                        let (keyspace, key, seq) = entry(thread, i);
                        table.insert(keyspace, &key, seq, Kind::Put, &seq.to_le_bytes());
                        let found = table.get(keyspace, &key, seq + 1).expect("own write");
                        assert_eq!((found.seq, found.value), (seq, &seq.to_le_bytes()[..]));
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut passes = 0;
            while !done.load(Ordering::Acquire) || passes == 0 {
                for keyspace in 0..3 {
                    let mut cursor = table.cursor(keyspace);
                    check_sorted(&mut cursor);
                }
                passes += 1;
            }
        });
        for writer in writers {
            writer.join().expect("a writer failed");
        }
        done.store(true, Ordering::Release);
        reader.join().expect("the reader failed");
    });
    assert_eq!(table.entries(), THREADS * EACH);
    for thread in 0..THREADS {
        for i in 0..EACH {
            let (keyspace, key, seq) = entry(thread, i);
            assert_eq!(table.get(keyspace, &key, seq + 1).map(|found| found.seq), Some(seq));
        }
    }
    let total: u64 = (0..3).map(|keyspace| check_sorted(&mut table.cursor(keyspace))).sum();
    assert_eq!(total, THREADS * EACH);
}

/// Walks forward and checks the order; returns the number of entries.
fn check_sorted(cursor: &mut MemCursor<Bytewise>) -> u64 {
    let mut last: Option<(Vec<u8>, Seq)> = None;
    let mut count = 0;
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        assert_eq!(cursor.value(), cursor.seq().to_le_bytes());
        if let Some((key, seq)) = &last {
            assert!((&key[..], Reverse(*seq)) < (cursor.key(), Reverse(cursor.seq())));
        }
        last = Some((cursor.key().to_vec(), cursor.seq()));
        count += 1;
        cursor.next().unwrap();
    }
    count
}

#[test]
fn range_tombstones_agree_with_brute_force() {
    for seed in seeds(6) {
        eprintln!("ESKER_SEED={seed}");
        let mut random = Random(seed);
        let table = Memtable::new(Bytewise, 1 << 16);
        let mut list = Vec::new();
        for seq in 1..400 {
            let keyspace = random.below(3) as KeyspaceId * BUCKET_STRIDE;
            let mut bound = || (random.below(9) > 0).then(|| random.key());
            let tombstone = RangeTombstone { start: bound(), end: bound(), seq };
            table.delete_range(keyspace, tombstone.clone());
            list.push((keyspace, tombstone));
            // Long runs without a read, and reads after every range delete.
            if seq < 200 && random.below(60) > 0 {
                continue;
            }
            for _ in 0..4 {
                let (key, below) = (random.key(), random.below(seq + 3));
                let keyspace = random.below(4) as KeyspaceId * BUCKET_STRIDE;
                let of_keyspace = list.iter().filter(|(id, _)| *id == keyspace).map(|(_, t)| t);
                let covering = of_keyspace.filter(|t| t.seq < below && t.contains(&Bytewise, &key));
                let expected = covering.map(|t| t.seq).max().unwrap_or(0);
                assert_eq!(table.tombstone_seq(keyspace, &key, below), expected);
                let view = table.tombstone_view(keyspace);
                assert_eq!(view.covering_seq(&Bytewise, &key, below), expected);
                let recent = view.since(below).filter(|t| t.contains(&Bytewise, &key));
                assert_eq!(
                    recent.map(|t| t.seq).max() > None,
                    list.iter().any(|(id, t)| *id == keyspace
                        && t.seq >= below
                        && t.contains(&Bytewise, &key)),
                );
                if seq % 50 == 0 {
                    let fragments = table.fragments(keyspace);
                    assert_eq!(fragments.covering_seq(&Bytewise, &key, below), expected);
                }
            }
        }
        let given = |keyspace| table.tombstones(keyspace).len();
        assert!(given(0) > 50 && given(0) <= list.iter().filter(|(id, _)| *id == 0).count());
        assert_eq!(table.keyspaces(), [0, BUCKET_STRIDE, 2 * BUCKET_STRIDE]);
        assert!(!table.is_empty() && table.entries() == 0);
    }
}

/// A queue that removes what it has read and looks for more: neither side pays again and again for
/// what was removed before.
#[test]
fn range_deletes_and_scans_that_alternate_stay_cheap() {
    let order = Counting::default();
    let table = Memtable::new(order.clone(), 1 << 16);
    let count = if cfg!(miri) { 200 } else { 8000usize };
    let mut most = 0;
    for number in 0..count {
        let bound = |number: usize| Some(number.to_be_bytes().to_vec());
        let (start, end) = (bound(2 * number), bound(2 * number + 1));
        let before = order.count();
        table.delete_range(1, RangeTombstone { start, end, seq: number as Seq + 1 });
        assert_eq!(order.count(), before, "a range delete compares nothing (R15)");
        let view = table.tombstone_view(1);
        let key = (2 * number).to_be_bytes();
        assert_eq!(view.covering_seq(&order, &key, SEQ_MAX), number as Seq + 1);
        most = most.max(order.count() - before);
    }
    let each = order.count() / count;
    // Each range is fragmented once per level, which costs about a sort.
    let levels = count.ilog2() as usize;
    assert!(each < 4 * levels * levels, "{each} comparisons for each, at most {most}");
}

/// Compares bytes, and notes whether a writer would have to wait meanwhile.
#[derive(Debug, Clone, Default)]
struct Watching {
    table: Arc<std::sync::OnceLock<std::sync::Weak<Memtable<Watching>>>>,
    seen: Arc<AtomicBool>,
}

impl KeyOrder for Watching {
    const BYTEWISE: bool = false;

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        let table = self.table.get().and_then(std::sync::Weak::upgrade);
        if table.is_some_and(|table| table.tombstones.stops_writers(1)) {
            self.seen.store(true, Ordering::Relaxed);
        }
        a.cmp(b)
    }
}

#[test]
fn no_key_is_compared_while_a_writer_would_have_to_wait() {
    let order = Watching::default();
    let table = Arc::new(Memtable::new(order.clone(), 1 << 16));
    order.table.set(Arc::downgrade(&table)).unwrap();
    for seq in 1..500u64 {
        let (start, end) = (Some(vec![(seq % 200) as u8]), Some(vec![(seq % 200) as u8 + 1]));
        table.delete_range(1, RangeTombstone { start, end, seq });
        if seq % 100 == 0 {
            let _ = table.tombstone_seq(1, &[7], SEQ_MAX);
            let _ = table.tombstone_view(1).since(1).count();
        }
    }
    assert!(!order.seen.load(Ordering::Relaxed), "the custom comparator ran under a writer's lock");
}

/// Keyspaces this far apart share a bucket of the tombstone lists.
const BUCKET_STRIDE: KeyspaceId = 256;

#[test]
fn many_range_deletes_are_seen_by_every_later_read() {
    let count = if cfg!(miri) { 100 } else { 10_000u64 };
    let table = Memtable::new(Bytewise, 1 << 16);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let table = &table;
            scope.spawn(move || {
                for i in (thread..count).step_by(2) {
                    let (start, end) = (i.to_be_bytes().to_vec(), (i + 1).to_be_bytes().to_vec());
                    let tombstone =
                        RangeTombstone { start: Some(start), end: Some(end), seq: i + 1 };
                    table.delete_range(4, tombstone);
                    let seen = table.tombstone_seq(4, &i.to_be_bytes(), SEQ_MAX);
                    assert_eq!(seen, i + 1);
                }
            });
        }
    });
    for i in 0..count {
        assert_eq!(table.tombstone_seq(4, &i.to_be_bytes(), SEQ_MAX), i + 1);
    }
    assert_eq!(table.tombstones(4).len() as u64, count);
}

#[test]
fn a_long_tail_of_range_deletes_is_dropped_without_recursion() {
    let table = Memtable::new(Bytewise, 1 << 16);
    let count = if cfg!(miri) { 100 } else { 300_000 };
    for seq in 1..=count {
        table.delete_range(1, RangeTombstone { start: None, end: None, seq });
    }
    assert_eq!(table.tombstone_seq(1, b"k", SEQ_MAX), count);
    let unread = Memtable::new(Bytewise, 1 << 16);
    for seq in 1..=count {
        let keyspace = (seq % 20_000) as KeyspaceId;
        unread.delete_range(keyspace, RangeTombstone { start: None, end: None, seq });
        unread.delete_range(0, RangeTombstone { start: None, end: None, seq });
    }
}

#[test]
fn the_filter_knows_what_was_inserted_and_little_else() {
    let bloom = Bloom::new(1 << 20);
    let entries = (1u64 << 20) / 100;
    for i in 0..entries {
        bloom.set(bloom.place(1, Random(i).next()).expect("the filter is on"));
    }
    let says_maybe = |keyspace, from: u64| {
        let places = (from..from + entries).map(|i| bloom.place(keyspace, Random(i).next()));
        places.flatten().filter(|place| bloom.may_contain(*place)).count()
    };
    assert_eq!(says_maybe(1, 0) as u64, entries);
    let wrong = says_maybe(1, 1 << 40) + says_maybe(2, 0);
    assert!((wrong as u64) < entries / 25, "{wrong} of {} are wrong", 2 * entries);
    assert!(bloom.bytes() <= (1 << 20) / 50);
    assert!(Bloom::off().place(1, 2).is_none());
}

#[test]
fn a_pool_keeps_chunks_for_the_next_table() {
    let pool = Arc::new(ChunkPool::new(9 << 20));
    for round in 1..=3u8 {
        let table = Memtable::with_pool(Bytewise, 1 << 20, Arc::clone(&pool));
        for i in 0..9_000u64 {
            table.insert(1, &i.to_be_bytes(), i + 1, Kind::Put, &[round; 1000]);
        }
        for i in 0..9_000u64 {
            let found = table.get(1, &i.to_be_bytes(), SEQ_MAX).expect("it was inserted");
            assert_eq!(found.value, [round; 1000]);
        }
        assert!(table.bytes() > 9_000_000);
        if round > 1 {
            assert_eq!(pool.bytes().0, 0, "the table took them");
        }
        drop(table);
        assert_eq!(pool.bytes(), (8 << 20, 0), "whole chunks, as many as the limit allows");
    }
}

/// A set of 512 KiB took chunks of 16, 64 and 256 KiB and one of a MiB.
#[test]
fn a_small_set_leaves_little_of_its_memory_unused() {
    for set in [256 << 10, 512 << 10, 2 << 20, 8 << 20] {
        let pool = Arc::new(ChunkPool::new(set));
        let table = Memtable::with_pool(Bytewise, set, Arc::clone(&pool));
        for i in 0u64.. {
            if table.bytes() >= set {
                break;
            }
            table.insert(1, &i.to_be_bytes(), i + 1, Kind::Put, &[1; 100]);
        }
        let taken = table.memory();
        assert!(taken <= set + set / 4 + (128 << 10), "{taken} bytes for {set}");
        drop(table);
        let kept = pool.bytes().0 + pool.bytes().1;
        assert!(kept <= set, "{kept} bytes kept for {set}");
    }
}
