use super::*;
use crate::base::{Cursor, SEQ_MAX};

/// A small generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % bound
    }

    /// Keys that agree over whole digits, end inside of digits and at their bounds, and have zeros
    /// at their ends: what padding could confuse.
    fn key(&mut self) -> Vec<u8> {
        let prefix = [0, 1, 7, 8, 9, 15, 16, 17, 40][self.below(9) as usize];
        let mut key = vec![b'p'; prefix];
        key.extend((0..self.below(12)).map(|_| [0, 0, b'a', 0xff][self.below(4) as usize]));
        key
    }
}

fn seeds() -> Vec<u64> {
    let chosen = std::env::var("ESKER_SEED").ok().and_then(|text| text.parse().ok());
    chosen.map_or_else(|| (1..=12).collect(), |seed| vec![seed])
}

/// Everything that a cursor shows of one keyspace.
fn rows(table: &Arc<Memtable<Bytewise>>, keyspace: KeyspaceId) -> Vec<(Vec<u8>, Seq, Vec<u8>)> {
    let mut cursor = table.cursor(keyspace);
    let mut rows = Vec::new();
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        rows.push((cursor.key().to_vec(), cursor.seq(), cursor.value().to_vec()));
        cursor.next().unwrap();
    }
    rows
}

fn pool() -> Arc<ChunkPool> {
    Arc::new(ChunkPool::new(0))
}

#[test]
fn a_built_table_is_the_table_of_the_same_inserts() {
    for seed in seeds() {
        println!("ESKER_SEED={seed}");
        let mut random = Random(seed);
        let mut builder = MemtableBuilder::new(1 << 20, pool(), true);
        let inserted = Arc::new(Memtable::new(Bytewise, 1 << 20));
        let count = [0_u64, 1, 2, 16, 17, 500, 4000][random.below(7) as usize];
        let keyspaces = 1 + random.below(3);
        let mut keys = Vec::new();
        for seq in 1..=count {
            let (keyspace, key) = (random.below(keyspaces) as KeyspaceId * 300, random.key());
            let kind = if random.below(4) == 0 { Kind::Delete } else { Kind::Put };
            let value = seq.to_le_bytes();
            builder.insert(keyspace, &key, seq, kind, &value);
            inserted.insert(keyspace, &key, seq, kind, &value);
            keys.push((keyspace, key));
        }
        let (built, _) = builder.finish();
        assert_eq!(built.keyspaces(), inserted.keyspaces());
        assert_eq!(built.entries(), inserted.entries());
        for keyspace in [0, 300, 600] {
            assert_eq!(rows(&built, keyspace), rows(&inserted, keyspace));
        }
        for (keyspace, key) in &keys {
            let below = 1 + random.below(count);
            for below in [below, SEQ_MAX] {
                assert_eq!(built.get(*keyspace, key, below), inserted.get(*keyspace, key, below));
            }
        }
    }
}

#[test]
fn a_built_table_takes_inserts_like_any_other() {
    let mut builder = MemtableBuilder::new(1 << 20, pool(), true);
    for n in (0..1000_u32).rev() {
        builder.insert(0, &(n * 2).to_be_bytes(), u64::from(n) + 1, Kind::Put, b"built");
    }
    let (table, _) = builder.finish();
    for n in 0..1000_u32 {
        table.insert(0, &(n * 2 + 1).to_be_bytes(), 2000, Kind::Put, b"inserted");
    }
    let keys: Vec<_> = rows(&table, 0).into_iter().map(|(key, _, _)| key).collect();
    let all: Vec<_> = (0..2000_u32).map(|n| n.to_be_bytes().to_vec()).collect();
    assert_eq!(keys, all);
}

#[test]
fn range_deletes_and_the_filter_come_along() {
    let mut builder = MemtableBuilder::new(1 << 20, pool(), true);
    builder.insert(7, b"k", 5, Kind::Put, b"v");
    let range = RangeTombstone { start: None, end: Some(b"z".to_vec()), seq: 9 };
    builder.delete_range(7, range);
    let (table, _) = builder.finish();
    assert_eq!(table.get(7, b"k", SEQ_MAX).map(|found| found.seq), Some(5));
    assert_eq!(table.tombstone_seq(7, b"k", SEQ_MAX), 9);
    assert_eq!(table.keyspaces(), [7]);
}

#[test]
fn keys_of_full_length_that_differ_at_their_ends_are_sorted() {
    let mut builder = MemtableBuilder::new(1 << 20, pool(), true);
    let key = |last: u8| [vec![b'x'; 65_534], vec![last]].concat();
    for n in 0..40_u8 {
        builder.insert(0, &key(n.wrapping_mul(37)), u64::from(n) + 1, Kind::Put, &[]);
    }
    let rows = rows(&builder.finish().0, 0);
    assert!(rows.len() == 40 && rows.is_sorted_by(|a, b| a.0 < b.0));
}

#[test]
fn two_threads_sort_what_one_would() {
    for seed in seeds().into_iter().take(3) {
        println!("ESKER_SEED={seed}");
        let mut random = Random(seed);
        let filtered = random.below(2) == 0;
        let mut builder = MemtableBuilder::new(1 << 20, pool(), filtered);
        let inserted = Arc::new(Memtable::new(Bytewise, 1 << 20));
        // A long prefix, a short one and none; one keyspace and several.
        let prefix = vec![b'p'; [0, 9, 40][random.below(3) as usize]];
        let keyspaces = 1 + random.below(2) * 3;
        for seq in 1..=HALVED_ROWS as u64 + 500 {
            let keyspace = random.below(keyspaces) as KeyspaceId;
            let key = [&prefix[..], &random.below(9000).to_be_bytes()[5..]].concat();
            let key = if random.below(500) == 0 { random.key() } else { key };
            builder.insert(keyspace, &key, seq, Kind::Put, &seq.to_le_bytes());
            inserted.insert(keyspace, &key, seq, Kind::Put, &seq.to_le_bytes());
        }
        let (built, list) = builder.finish();
        let list = Arc::new(list);
        assert_eq!(built.entries(), inserted.entries());
        for keyspace in 0..5 {
            let expected = rows(&inserted, keyspace);
            assert_eq!(rows(&built, keyspace), expected);
            let mut cursor = list.cursor(keyspace);
            cursor.seek_to_first().unwrap();
            for (key, seq, _) in &expected {
                assert_eq!((cursor.key(), cursor.seq()), (&key[..], *seq));
                cursor.next().unwrap();
            }
            assert!(!cursor.valid());
            for (key, seq, value) in expected.iter().step_by(97) {
                let found = built.get(keyspace, key, *seq + 1).unwrap();
                assert_eq!((found.seq, found.value), (*seq, &value[..]));
            }
            let middle = list
                .middle(keyspace)
                .map(|key| expected.iter().filter(|(other, _, _)| *other < key).count() * 2);
            assert!(middle.is_none_or(|before| before <= expected.len()));
            assert_eq!(middle.is_none(), expected.is_empty());
        }
    }
}

#[test]
fn a_prefix_is_known_whatever_its_length() {
    for len in [0, 1, 8, 15, 16, 17, 40] {
        let prefix = Prefix::new(&vec![b'x'; len]);
        for key_len in [len, len + 1, 16, 60] {
            let mut key = vec![b'x'; key_len];
            assert_eq!(prefix.is_of(&key), key_len >= len, "{len} {key_len}");
            if let Some(last) = len.checked_sub(1).and_then(|last| key.get_mut(last)) {
                *last = b'y';
                assert!(!prefix.is_of(&key), "{len} {key_len}");
            }
        }
    }
}
