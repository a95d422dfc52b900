//! Operations that are saved take effect in their order, whether they are ingested or written.

use super::*;
use crate::Db;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:05}").into_bytes()
}

fn target(path: &Path) -> Target {
    let mut options = Options::default();
    options.memory = Some(4 << 20);
    options.memtable_bytes = Some(16 << 10);
    options.partition_bytes = Some(24 << 10);
    options.segment_bytes = 4 << 10;
    Target::create(path, &options).unwrap()
}

fn ingested(target: &Target) -> u64 {
    target.core.counters.background.entries_ingested.load(Relaxed)
}

fn content(db: &Db, name: &str) -> Content {
    db.keyspace(name).unwrap().iter().unwrap().map(|entry| entry.unwrap()).collect()
}

/// Saves operations that mostly come in key order, and compares what is there with a map.
fn run_model(seed: u64) {
    eprintln!("ESKER_SEED={seed}");
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let place = tempfile::tempdir().unwrap();
    let mut target = target(&place.path().join("db"));
    let names: Vec<_> = (0..4).map(|number| format!("space-{number}")).collect();
    let numbers: Vec<_> = names.iter().map(|name| target.keyspace(name, None).unwrap()).collect();
    let mut expected = vec![Content::new(); names.len()];
    let mut next = [0; 4];
    for round in 0..4_000_u64 {
        let at = random.below(4) as usize;
        let (keyspace, map) = (numbers[at], &mut expected[at]);
        // As with a log behind a tree, disorder comes late; in one of them it never comes.
        let number = if at == 0 || round < 1_000 || random.below(300) > 0 {
            next[at] += 1 + random.below(3);
            next[at]
        } else {
            random.below(next[at])
        };
        let (key, value) = (key(number), format!("{round} {}", "v".repeat(number as usize % 90)));
        match random.below(400) {
            0 if round > 1_000 && at > 0 => {
                target.take(Op::Delete { keyspace, key: &key }).unwrap();
                map.remove(&key);
            }
            1 if round > 1_000 && at > 0 => {
                let end = self::key(number + random.below(200));
                let (start, before) = (Some(key.as_slice()), Some(end.as_slice()));
                target.take(Op::DeleteRange { keyspace, start, end: before }).unwrap();
                map.retain(|other, _| *other < key || *other >= end);
            }
            _ => {
                target.take(Op::Put { keyspace, key: &key, value: value.as_bytes() }).unwrap();
                map.insert(key, value.into_bytes());
            }
        }
    }
    target.write().unwrap();
    target.settle().unwrap();
    // All of the first keyspace, and what the others had in order.
    assert!(ingested(&target) > 1_500, "{}", ingested(&target));
    assert_eq!(target.finish().unwrap(), 4_000);
    let db = Db::open(place.path().join("db")).unwrap();
    for (name, expected) in names.iter().zip(expected) {
        assert_eq!(content(&db, name), expected, "{name}");
    }
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn operations_take_effect_in_their_order() {
    let chosen = std::env::var("ESKER_SEED").ok().and_then(|text| text.parse().ok());
    let seeds = chosen.map_or_else(|| (1..=12).collect(), |seed| vec![seed]);
    seeds.into_iter().for_each(run_model);
}

#[test]
fn entries_in_key_order_are_written_once() {
    let place = tempfile::tempdir().unwrap();
    let mut target = target(&place.path().join("db"));
    let keyspace = target.keyspace("numbers", None).unwrap();
    for number in 0..5_000 {
        target.take(Op::Put { keyspace, key: &key(number), value: &[7; 100] }).unwrap();
    }
    target.settle().unwrap();
    assert_eq!(ingested(&target), 5_000);
    assert_eq!(target.core.counters.background.flush_bytes.load(Relaxed), 0);
    assert_eq!(target.finish().unwrap(), 5_000);
    let db = Db::open(place.path().join("db")).unwrap();
    assert_eq!(content(&db, "numbers").len(), 5_000);
}

#[test]
fn many_keyspaces_out_of_order_cost_no_commit_each() {
    let place = tempfile::tempdir().unwrap();
    let mut target = target(&place.path().join("db"));
    let numbers: Vec<_> =
        (0..200).map(|n| target.keyspace(&format!("k{n}"), None).unwrap()).collect();
    for keyspace in numbers {
        for (round, number) in [2, 1, 3].into_iter().enumerate() {
            let (key, value) = (&key(number), &[round as u8]);
            target.take(Op::Put { keyspace, key, value }).unwrap();
        }
    }
    let commits = target.core.counters.background.ingestions.load(Relaxed);
    assert!(commits <= u64::from(BREAKS_MAX), "{commits}");
    assert_eq!(target.finish().unwrap(), 600);
    let db = Db::open(place.path().join("db")).unwrap();
    let expected = Content::from([(key(1), vec![1]), (key(2), vec![0]), (key(3), vec![2])]);
    for n in 0..200 {
        assert_eq!(content(&db, &format!("k{n}")), expected);
    }
}
