#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::*;
use crate::base::SEQ_MAX;
use crate::memtable::tests::{Random, seeds};
use std::collections::BTreeMap;

/// What a list should hold, in its order: keyspace, key, and the distance from the greatest number.
type Model = BTreeMap<Place, u64>;
type Place = (KeyspaceId, Vec<u8>, Seq);

fn entry(cursor: &MergedCursor) -> Option<(Vec<u8>, Seq, u64)> {
    let value = || u64::from_be_bytes(cursor.value().try_into().unwrap());
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.seq(), value()))
}

fn expected(entry: Option<(&Place, &u64)>) -> Option<(Vec<u8>, Seq, u64)> {
    entry.map(|((_, key, rest), value)| (key.clone(), SEQ_MAX - rest, *value))
}

/// A table with random entries, which the model gets too.
fn table(random: &mut Random, seq: &mut Seq, model: &mut Model) -> Arc<Memtable<Bytewise>> {
    let table = Arc::new(Memtable::new(Bytewise, 1 << 12));
    for _ in 0..random.below(120) {
        let (keyspace, key, value) =
            (random.below(3) as KeyspaceId * 2, random.key(), random.next());
        *seq += 1;
        table.insert(keyspace, &key, *seq, Kind::Put, &value.to_be_bytes());
        model.insert((keyspace, key, SEQ_MAX - *seq), value);
    }
    table
}

/// Compares every kind of search and both directions with the model.
fn check(list: &Arc<Merged>, model: &Model, random: &mut Random) {
    for keyspace in 0..6 {
        let mine = || model.range((keyspace, Vec::new(), 0)..(keyspace + 1, Vec::new(), 0));
        let mut cursor = list.cursor(keyspace);
        cursor.seek_to_first().unwrap();
        for found in mine() {
            assert_eq!(entry(&cursor), expected(Some(found)));
            cursor.next().unwrap();
        }
        assert!(!cursor.valid());
        cursor.seek_to_last().unwrap();
        for found in mine().rev() {
            assert_eq!(entry(&cursor), expected(Some(found)));
            cursor.prev().unwrap();
        }
        assert!(!cursor.valid());
        for _ in 0..60 {
            let (key, below) = (random.key(), random.below(400).max(1));
            let from = (keyspace, key.clone(), SEQ_MAX - below + 1);
            cursor.seek(&key, below).unwrap();
            let end = (keyspace + 1, Vec::new(), 0);
            assert_eq!(entry(&cursor), expected(model.range(from..end).next()), "{key:?} {below}");
            cursor.seek_before(&key).unwrap();
            let begin = (keyspace, Vec::new(), 0);
            let before = model.range(begin..(keyspace, key.clone(), 0)).next_back();
            assert_eq!(entry(&cursor), expected(before), "before {key:?}");
        }
    }
}

#[test]
fn merged_pointers_show_what_their_tables_hold() {
    for seed in seeds(30) {
        println!("ESKER_SEED={seed}");
        let (mut random, mut seq, mut model) = (Random(seed), 0, Model::new());
        let mut list: Option<Arc<Merged>> = None;
        for _ in 0..3 {
            let count = random.below(4);
            let tables: Vec<_> =
                (0..count).map(|_| table(&mut random, &mut seq, &mut model)).collect();
            let next = Arc::new(Merged::new(list.as_deref(), &tables));
            check(&next, &model, &mut random);
            list = Some(next);
        }
    }
}

#[test]
fn a_list_of_nothing_has_no_entry() {
    let list = Arc::new(Merged::new(None, &[]));
    check(&list, &Model::new(), &mut Random(1));
    assert_eq!(list.bytes(), 0);
}

/// The cursor owns what it shows.
#[test]
fn a_cursor_outlives_the_list_and_its_tables() {
    let (mut random, mut seq, mut model) = (Random(7), 0, Model::new());
    let tables =
        [table(&mut random, &mut seq, &mut model), table(&mut random, &mut seq, &mut model)];
    let list = Arc::new(Merged::new(None, &tables));
    let mut cursor = list.cursor(0);
    drop((tables, list));
    cursor.seek_to_first().unwrap();
    let first = model.range((0, Vec::new(), 0)..).next();
    assert_eq!(entry(&cursor), expected(first));
}

/// Pointers cost about a twentieth of small entries, and a search follows few of them.
#[test]
fn pointers_are_small() {
    let table = Arc::new(Memtable::new(Bytewise, 1 << 20));
    for index in 0..4096_u64 {
        table.insert(0, &index.to_be_bytes(), index + 1, Kind::Put, &[0; 100]);
    }
    let list = Merged::new(None, std::slice::from_ref(&table));
    assert!(list.bytes() <= 4096 * (8 + 2), "{}", list.bytes());
}

/// Tables that were written one key range after another are joined without comparing; a few keys that
/// lie elsewhere, at the ends or with the same beginning, must not be missed by that.
#[test]
fn tables_that_hardly_overlap_are_merged_in_order() {
    for seed in seeds(40) {
        println!("ESKER_SEED={seed}");
        let (mut random, mut seq, mut model) = (Random(seed), 0, Model::new());
        let (mut list, mut at): (Option<Arc<Merged>>, u64) = (None, 500);
        for _ in 0..3 {
            let mut tables = Vec::new();
            for _ in 0..random.below(6) {
                let table = Arc::new(Memtable::new(Bytewise, 1 << 12));
                let back = random.below(3) == 0;
                for _ in 0..random.below(50) {
                    at = if back { at - 1 } else { at + 1 };
                    // Seldom the last key again, or one far away.
                    let far = if random.below(40) == 0 { random.below(1000) } else { at };
                    let key = match random.below(2) {
                        0 => format!("the same beginning {far:04}").into_bytes(),
                        _ => far.to_be_bytes().to_vec(),
                    };
                    seq += 1;
                    table.insert(2, &key, seq, Kind::Put, &seq.to_be_bytes());
                    model.insert((2, key, SEQ_MAX - seq), seq);
                }
                tables.push(table);
            }
            let next = Arc::new(Merged::new(list.as_deref(), &tables));
            check(&next, &model, &mut random);
            list = Some(next);
        }
    }
}
