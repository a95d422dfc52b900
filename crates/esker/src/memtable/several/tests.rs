use super::*;
use crate::memtable::tests::{Random, seeds};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// An entry, owned.
type Version = (KeyspaceId, Vec<u8>, Seq, Vec<u8>);

/// The entries of a batch: in random order, ascending, ascending beside each other, or on few keys.
fn batch(random: &mut Random, first: Seq) -> Vec<Version> {
    let shape = random.below(5);
    let count = 1 + random.below(60);
    let mut keys: Vec<_> = (0..count)
        .map(|number| match shape {
            0 => (1 + random.below(2) as KeyspaceId, random.key()),
            1 => (1, vec![b'k'; random.below(4) as usize]),
            2 => (1, format!("beside{:020}", first + number).into_bytes()),
            _ => (1, format!("{:020}", random.below(100_000)).into_bytes()),
        })
        .collect();
    if shape != 3 {
        keys.sort();
    }
    let numbered = keys.into_iter().zip(first..);
    numbered
        .map(|((keyspace, key), seq)| (keyspace, key, seq, seq.to_le_bytes().to_vec()))
        .collect()
}

fn insert(table: &Memtable<Bytewise>, batch: &[Version]) {
    let mut several = Several::new(table);
    for (keyspace, key, seq, value) in batch {
        several.add(*keyspace, key, *seq, Kind::Put, value);
    }
    several.finish();
}

/// All batches are there, in the order of the list, and by their keys.
fn check(table: &Memtable<Bytewise>, batches: &[Vec<Version>]) {
    let mut model = BTreeMap::new();
    for (keyspace, key, seq, value) in batches.iter().flatten() {
        model.insert((*keyspace, key.clone(), Reverse(*seq)), value.clone());
    }
    assert_eq!(table.entries(), model.len() as u64);
    let (mut node, mut expected) = (table.list.first(), model.iter());
    while let Some(found) = node {
        let ((keyspace, key, Reverse(seq)), value) = expected.next().unwrap();
        assert_eq!((found.keyspace(), found.key()), (*keyspace, key.as_slice()));
        assert_eq!((found.seq(), found.value()), (*seq, value.as_slice()));
        node = found.next();
    }
    assert!(expected.next().is_none());
    for ((keyspace, key, Reverse(seq)), value) in &model {
        let found = table.get(*keyspace, key, seq + 1).unwrap();
        assert_eq!((found.seq, found.value), (*seq, value.as_slice()));
    }
}

#[test]
fn batches_of_any_order_are_inserted_like_single_entries() {
    for seed in seeds(20) {
        let (mut random, table) = (Random(seed), Memtable::new(Bytewise, 1 << 20));
        let (mut batches, mut seq) = (Vec::new(), 1);
        for _ in 0..40 {
            let next = batch(&mut random, seq);
            seq += next.len() as Seq;
            insert(&table, &next);
            batches.push(next);
        }
        check(&table, &batches);
    }
}

/// Each batch finds places that others change meanwhile, in the same part of the list.
#[test]
fn threads_insert_batches_at_the_same_time() {
    let table = Memtable::new(Bytewise, 1 << 20);
    let rounds = if cfg!(miri) { 3 } else { 200 };
    let batches: Vec<_> = std::thread::scope(|scope| {
        let table = &table;
        let insert_all = move |thread: u64| {
            let (mut random, mut mine) = (Random(thread), Vec::new());
            for round in 0..rounds {
                let next = batch(&mut random, 1 + (thread * rounds + round) * 100);
                insert(table, &next);
                mine.push(next);
            }
            mine
        };
        let threads: Vec<_> =
            (0..3).map(|thread| scope.spawn(move || insert_all(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    check(&table, &batches);
}
