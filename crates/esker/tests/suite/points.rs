//! What may happen to a database while one of its threads stands at a point: writes, snapshots, branches, drops,
//! checkpoints and a close, each exactly there. The contents must be those of one order of the same calls, and
//! no file may be left.

mod cache;
mod governor;
mod ingestion;
mod iterators;
mod space;
mod values;

use super::cuts::{PATH, key};
use esker::{Db, Keyspace, Options, Snapshot};
use esker_testkit::barriers::Barriers;
use esker_testkit::{CrashFs, referred};
use std::collections::BTreeMap;

/// Keys that the tests use.
const KEYS: usize = 400;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change of a keyspace.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Keys get values of a round.
    Put(usize, usize, u64),
    Remove(usize),
    RemoveRange(usize, usize),
}

/// A value that does not compress, long enough to be separated from its key.
fn value(number: usize, round: u64) -> Vec<u8> {
    let mut rng = esker_testkit::Rng::new(number as u64 * 1009 + round);
    (0..100).map(|_| rng.below(256) as u8).collect()
}

/// Makes changes.
fn write(keyspace: &Keyspace, steps: &[Step]) {
    for step in steps {
        match *step {
            Step::Put(from, to, round) => (from..to).for_each(|number| {
                keyspace.insert(key(number), value(number, round)).unwrap();
            }),
            Step::Remove(number) => keyspace.remove(key(number)).unwrap(),
            Step::RemoveRange(from, to) => keyspace.remove_range(key(from)..key(to)).unwrap(),
        }
    }
}

/// Makes the same changes to what is expected.
fn expect(pairs: &mut Pairs, steps: &[Step]) {
    for step in steps {
        match *step {
            Step::Put(from, to, round) => pairs
                .extend((from..to).map(|number| (key(number).into_bytes(), value(number, round)))),
            Step::Remove(number) => drop(pairs.remove(key(number).as_bytes())),
            Step::RemoveRange(from, to) => {
                let (from, to) = (key(from).into_bytes(), key(to).into_bytes());
                pairs.retain(|key, _| *key < from || *key >= to);
            }
        }
    }
}

/// Checks what a keyspace holds, in each way of reading.
#[track_caller]
fn holds(keyspace: &Keyspace, expected: &Pairs) {
    let forward: Pairs = keyspace.iter().unwrap().map(Result::unwrap).collect();
    same(&forward, expected);
    let backward: Pairs = keyspace.iter().unwrap().rev().map(Result::unwrap).collect();
    same(&backward, expected);
    for number in 0..KEYS {
        let key = key(number).into_bytes();
        assert!(keyspace.get(&key).unwrap().as_ref() == expected.get(&key), "key {number}");
    }
}

/// Checks what a snapshot of the default keyspace holds.
#[track_caller]
fn keeps(db: &Db, snapshot: &Snapshot, expected: &Pairs) {
    let found = snapshot.iter(&db.default_keyspace()).unwrap();
    same(&found.map(Result::unwrap).collect(), expected);
}

#[track_caller]
fn same(found: &Pairs, expected: &Pairs) {
    let other = |pairs: &Pairs, key: &[u8]| pairs.get(key).cloned();
    let keys = found.keys().chain(expected.keys());
    let differ = |key: &&Vec<u8>| other(found, key) != other(expected, key);
    let differing: Vec<_> = keys.filter(differ).map(|key| String::from_utf8_lossy(key)).collect();
    assert!(differing.is_empty(), "these differ: {differing:?}");
}

fn sizes(disk: &CrashFs) -> Options {
    let mut options = super::separating(disk.as_fs());
    options.memory = Some(32 << 20);
    options.memtable_bytes = Some(256 << 10);
    options.workers = Some(2);
    options
}

/// A database with all keys, most of them in runs.
fn built(disk: &CrashFs) -> (Db, Barriers, Pairs) {
    let (db, barriers) = Barriers::open(PATH, sizes(disk)).unwrap();
    let steps = [Step::Put(0, KEYS, 1), Step::Remove(7), Step::RemoveRange(30, 40)];
    let mut pairs = Pairs::new();
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    db.compact().unwrap();
    (db, barriers, pairs)
}

/// Checks the contents, also after a compaction and in another life, and that no file is left.
#[track_caller]
fn ends_well(db: Db, barriers: Barriers, disk: &CrashFs, expected: &Pairs) {
    drop(barriers);
    holds(&db.default_keyspace(), expected);
    db.compact().unwrap();
    holds(&db.default_keyspace(), expected);
    assert!(db.verify().unwrap().problems.is_empty());
    referred::check(&db, &disk.as_fs(), PATH.as_ref());
    db.close().unwrap();
    drop(db);
    reopens(disk, PATH, expected);
}

/// Checks the contents of a database that is opened.
#[track_caller]
fn reopens(disk: &CrashFs, path: &str, expected: &Pairs) {
    let db = Db::open_with(path, sizes(disk)).unwrap();
    holds(&db.default_keyspace(), expected);
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
}

/// The seed of a random test. `ESKER_SEED` replays a run.
fn seed() -> u64 {
    let given = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("ESKER_SEED={seed}");
    seed
}
