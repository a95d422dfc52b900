//! Reads of several keys at once find what reads of one key find, and count the same.

use super::{Place, fill, key, small, value};
use esker::{CounterU64, Db, Keyspace, KeyspaceOptions, Stats};
use esker_testkit::Rng;
use std::time::Duration;

const KEYS: usize = 3_000;

/// Everything that a read can meet: bases, deltas, runs of tiers and memtables; deletes, range deletes, values that have
/// expired or will, operands, and separated values.
fn fill_everything(db: &Db, numbers: &Keyspace) {
    let space = db.default_keyspace();
    for round in 0..6 {
        fill(db, (round % 3..KEYS).step_by(1 + round), round);
        for n in (round..KEYS).step_by(37) {
            match (n + round) % 5 {
                0 => db.remove(key(n)).unwrap(),
                1 => space.insert_with_ttl(key(n), "gone", Duration::ZERO).unwrap(),
                2 => space.insert_with_ttl(key(n), "stays", Duration::from_secs(100_000)).unwrap(),
                3 => db.insert(key(n), vec![n as u8; 3_000]).unwrap(),
                _ => numbers.merge(key(n), CounterU64::encode(n as u64)).unwrap(),
            }
        }
        let from = 200 + 400 * round;
        db.remove_range(key(from)..key(from + 60)).unwrap();
        if round == 1 {
            db.compact().unwrap();
        } else if round < 5 {
            db.flush().unwrap();
        }
    }
}

/// What gets count.
fn counts(stats: &Stats) -> [u64; 5] {
    [
        stats.gets,
        stats.gets_found,
        stats.filter_absent,
        stats.filter_false_positives,
        stats.filter_found,
    ]
}

fn check(db: &Db, space: &Keyspace, random: &mut Rng) {
    // The same runs answer both.
    db.wait_until_idle().unwrap();
    for round in 0..30 {
        let count = [1, 2, 31, 32, 33, 100][round % 6];
        // Some are asked for twice, some are absent.
        let keys: Vec<_> =
            (0..count).map(|_| key(random.below(KEYS as u64 + 100) as usize)).collect();
        // A read that misses asks filters that others need not ask.
        keys.iter().for_each(|key| drop(space.get(key).unwrap()));
        let before = counts(&db.stats());
        let one: Vec<_> = keys.iter().map(|key| space.get(key).unwrap()).collect();
        let between = counts(&db.stats());
        assert_eq!(space.multi_get(&keys).unwrap(), one);
        let after = counts(&db.stats());
        for n in 0..before.len() {
            assert_eq!(after[n] - between[n], between[n] - before[n], "count {n} of {count} keys");
        }
    }
}

#[test]
fn several_keys_are_found_wherever_they_are() {
    let mut random = Rng::new(5);
    let mut options = small();
    options.separate_values_from = Some(1_000);
    let place = Place::new();
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    let numbers = db.keyspace_with("n", KeyspaceOptions::merging(CounterU64::NAME)).unwrap();
    fill_everything(&db, &numbers);
    let snapshot = db.snapshot().unwrap();
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let space = db.default_keyspace();
    let then: Vec<_> = keys.iter().map(|key| space.get(key).unwrap()).collect();
    assert_eq!(space.multi_get(&keys).unwrap(), then);
    check(&db, &space, &mut random);
    check(&db, &numbers, &mut random);
    fill(&db, (0..KEYS).step_by(7), 9);
    assert_eq!(snapshot.multi_get(&space, &keys).unwrap(), then);
    let now = space.multi_get(&keys).unwrap();
    assert_eq!(now[7].as_deref(), Some(value(7, 9).as_bytes()));
    assert_eq!(now[8], then[8]);
    drop((snapshot, numbers, space));
    db.close().unwrap();
    // Nothing is cached, then some of it, then what fits.
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    let space = db.default_keyspace();
    assert_eq!(space.multi_get(&keys).unwrap(), now);
    check(&db, &space, &mut random);
    db.compact().unwrap();
    check(&db, &space, &mut random);
    assert_eq!(space.multi_get(&keys).unwrap(), now);
}

/// Where a filter lets a key pass that its run does not have, older runs may have it.
#[test]
fn keys_are_found_below_filters_that_are_wrong() {
    const KEYS: usize = 20_000;
    let place = Place::new();
    let mut options = small();
    options.memory = Some(32 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    fill(&db, 0..KEYS, 1);
    db.compact().unwrap();
    fill(&db, (0..KEYS).step_by(40), 2);
    db.flush().unwrap();
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let one: Vec<_> = keys.iter().map(|key| db.get(key).unwrap()).collect();
    let before = db.stats().filter_false_positives;
    assert_eq!(db.multi_get(&keys).unwrap(), one);
    let wrong = db.stats().filter_false_positives - before;
    assert!(wrong > 0 && one.iter().all(Option::is_some), "{wrong} wrong answers");
}

/// Deletes and values that have expired end a search where they are found, and count as found by filters.
#[test]
fn deletes_in_new_runs_are_found_and_counted() {
    let place = Place::new();
    let mut options = small();
    options.memory = Some(32 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    let space = db.default_keyspace();
    fill(&db, 0..KEYS, 1);
    db.compact().unwrap();
    (0..KEYS).step_by(40).for_each(|n| db.remove(key(n)).unwrap());
    for n in (20..KEYS).step_by(40) {
        space.insert_with_ttl(key(n), "gone", Duration::ZERO).unwrap();
    }
    db.flush().unwrap();
    let before = db.stats().filter_found;
    let keys: Vec<_> = (0..KEYS).step_by(20).map(key).collect();
    assert!(keys.iter().all(|key| space.get(key).unwrap().is_none()));
    let between = db.stats().filter_found;
    assert_eq!(between - before, keys.len() as u64, "the new run has them");
    assert!(space.multi_get(&keys).unwrap().iter().all(Option::is_none));
    assert_eq!(db.stats().filter_found - between, keys.len() as u64);
}

/// What the caller's keys do is done before the epoch, and each is asked once; a hint that lies costs nothing.
#[test]
fn keys_are_asked_for_their_bytes_once() {
    struct Asked<'a>(&'a str, &'a std::cell::Cell<usize>);
    impl AsRef<[u8]> for Asked<'_> {
        fn as_ref(&self) -> &[u8] {
            self.1.set(self.1.get() + 1);
            self.0.as_bytes()
        }
    }
    struct Boasting<I>(I);
    impl<I: Iterator> Iterator for Boasting<I> {
        type Item = I::Item;
        fn next(&mut self) -> Option<I::Item> {
            self.0.next()
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, None)
        }
    }
    let place = Place::new();
    let db = place.open();
    fill(&db, 0..100, 1);
    db.compact().unwrap();
    let (names, asked) = ((0..100).map(key).collect::<Vec<_>>(), std::cell::Cell::new(0));
    for _ in 0..2 {
        asked.set(0);
        let keys = Boasting(names.iter().map(|name| Asked(name, &asked)));
        assert!(db.multi_get(keys).unwrap().iter().all(Option::is_some));
        assert_eq!(asked.get(), 100);
    }
}

/// Many large values are not copied inside of one epoch; all are found.
#[test]
fn several_large_values_are_found() {
    let place = Place::new();
    let mut options = small();
    options.memory = Some(64 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    (0..64).for_each(|n| db.insert(key(n), vec![n as u8; 40_000]).unwrap());
    db.compact().unwrap();
    let keys: Vec<_> = (0..64).map(key).collect();
    for _ in 0..3 {
        let values = db.multi_get(&keys).unwrap();
        for (n, value) in values.into_iter().enumerate() {
            assert!(value.unwrap() == vec![n as u8; 40_000]);
        }
    }
}

#[test]
fn several_keys_of_a_dropped_keyspace_are_refused() {
    let place = Place::new();
    let db = place.open();
    let space = db.keyspace("other").unwrap();
    (0..100).for_each(|n| space.insert(key(n), value(n, 0)).unwrap());
    db.compact().unwrap();
    let keys = [key(1), key(2)];
    assert_eq!(space.multi_get(&keys).unwrap()[1].as_deref(), Some(value(2, 0).as_bytes()));
    db.drop_keyspace("other").unwrap();
    assert_eq!(space.multi_get(&keys).unwrap_err().kind(), esker::ErrorKind::KeyspaceDropped);
    let other = place.path().with_file_name("second");
    let second = Db::open(other).unwrap();
    let snapshot = second.snapshot().unwrap();
    let error = snapshot.multi_get(&db.default_keyspace(), &keys).unwrap_err();
    assert_eq!(error.kind(), esker::ErrorKind::InvalidArgument);
}
