//! What happens while a read stands where it has missed the index of a segment, has just loaded one, or has made blocks
//! or an index leave the cache: the tree is replaced, others load and evict the same index, and the read goes on with
//! what it saw.
//!
//! The cache is a small part of the data, so reads come to these points all the time.

use super::iterators::disturb;
use super::{Pairs, Step, ends_well, expect, keeps, sizes, value, write};
use crate::cuts::{PATH, key};
use esker::internals::sync::{Point, pin};
use esker::{Cursor, Db, Options};
use esker_testkit::barriers::{Barriers, Board};
use esker_testkit::{CrashFs, Rng};
use parking_lot::Mutex;
use std::sync::Arc;

const KEYS: usize = super::KEYS;
const POINTS: [Point; 4] =
    [Point::IndexLoads, Point::IndexLoaded, Point::IndexLeaves, Point::BlocksLeave];
/// The least in which a missed block is kept: it is taken for one of 4 KiB, of which there is room for four.
const CACHE: u64 = 16 << 10;
/// A keyspace that is only read, and that never changes: its indexes alone fill the cache.
const OTHERS: &str = "others";
/// Disturbances at each point.
const ACTIONS: u64 = 8;

/// The data are several times as large as the cache, and each index is a part of it.
fn options(disk: &CrashFs, separated: bool) -> Options {
    let mut options = sizes(disk);
    (options.memory, options.memtable_bytes) = (Some(1 << 20), Some(64 << 10));
    (options.block_bytes, options.segment_bytes) = (256, 2 << 10);
    options.partition_bytes = Some(32 << 10);
    options.small_cache = Some(CACHE);
    if !separated {
        options.separate_values_from = None;
    }
    options
}

/// A database with all keys in runs, of which nothing is in memory.
fn built(disk: &CrashFs, separated: bool) -> (Db, Barriers, Pairs) {
    let mut pairs = Pairs::new();
    let steps = [Step::Put(0, KEYS, 1), Step::Remove(7), Step::RemoveRange(30, 40)];
    expect(&mut pairs, &steps);
    let db = Db::open_with(PATH, options(disk, separated)).unwrap();
    write(&db.default_keyspace(), &steps);
    write(&db.keyspace(OTHERS).unwrap(), &[Step::Put(0, 4 * KEYS, 1)]);
    db.compact().unwrap();
    db.close().unwrap();
    drop(db);
    let (db, barriers) = Barriers::open(PATH, options(disk, separated)).unwrap();
    (db, barriers, pairs)
}

/// Replaces everything that there is, without a read.
fn replace(db: &Db, pairs: &mut Pairs, round: u64) {
    let steps = [Step::Put(0, KEYS, round), Step::Remove(90), Step::RemoveRange(100, 120)];
    write(&db.default_keyspace(), &steps);
    expect(pairs, &steps);
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
}

/// Reads all of it, so often that what was there before has left the cache.
fn read_all(db: &Db) {
    for keyspace in [db.default_keyspace(), db.keyspace(OTHERS).unwrap()] {
        for _ in 0..2 {
            keyspace.iter().unwrap().for_each(|entry| drop(entry.unwrap()));
        }
    }
}

/// What indexes take keeps to the limit, whatever happened: one that is in no queue would stay for ever. What was evicted
/// goes when the last reader of the process has left its epoch, and other tests run beside this one, so one look may be
/// too few; the number of looks is bounded, not their time.
#[track_caller]
fn fits(db: &Db) {
    let mut indexes = 0;
    for _ in 0..50_000 {
        pin().flush();
        let memory = db.stats().memory;
        indexes = memory.indexes + memory.filters;
        if indexes <= CACHE + CACHE / 4 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{indexes} bytes of indexes in a cache of {CACHE}");
}

/// One read of a kind, of some keys from `at` on: what it found.
fn read(db: &Db, kind: usize, at: usize) -> Pairs {
    let all = db.default_keyspace();
    let there = |number: usize| (key(number).into_bytes(), all.get(key(number)).unwrap());
    let some = |(key, value): (Vec<u8>, Option<Vec<u8>>)| value.map(|value| (key, value));
    let keys = || (at..at + 5).map(|number| key(number).into_bytes());
    match kind {
        0 => some(there(at)).into_iter().collect(),
        1 => keys().zip(all.multi_get(keys()).unwrap()).filter_map(some).collect(),
        2 => all.range(key(at)..key(at + 5)).unwrap().map(Result::unwrap).collect(),
        3 => all.range(key(at)..key(at + 5)).unwrap().rev().map(Result::unwrap).collect(),
        _ => {
            let (mut cursor, mut found) = (all.cursor().unwrap(), Pairs::new());
            cursor.seek(key(at)).unwrap();
            while cursor.valid() && cursor.key() < key(at + 5).as_bytes() {
                found.insert(cursor.key().to_vec(), cursor.value().to_vec());
                cursor.next().unwrap();
            }
            found
        }
    }
}

/// What such a read finds.
fn of(pairs: &Pairs, kind: usize, at: usize) -> Pairs {
    let end = if kind == 0 { at + 1 } else { at + 5 };
    let range = pairs.range(key(at).into_bytes()..key(end).into_bytes());
    range.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[test]
fn a_read_finds_what_it_saw_though_its_segments_are_replaced_before_it_has_their_index() {
    for separated in [false, true] {
        for point in [Point::IndexLoads, Point::IndexLoaded] {
            for kind in 0..5 {
                let disk = CrashFs::new();
                let (db, barriers, mut pairs) = built(&disk, separated);
                let expected = of(&pairs, kind, 210);
                barriers.close(&[point]);
                let reader = db.clone();
                let call = barriers.call(move || read(&reader, kind, 210));
                call.wait_for(point);
                replace(&db, &mut pairs, 2);
                barriers.let_go(&[point]);
                let found = call.join();
                assert!(found == expected, "{point:?}, kind {kind}: {:?}", found.keys());
                read_all(&db);
                fits(&db);
                ends_well(db, barriers, &disk, &pairs);
            }
        }
    }
}

/// How often a read of a key comes to load an index.
fn loads(db: &Db, board: &Board, number: usize) -> usize {
    let before = board.passed(Point::IndexLoads);
    assert_eq!(db.get(key(number)).unwrap(), Some(value(number, 1)));
    board.passed(Point::IndexLoads) - before
}

#[test]
fn a_read_finds_what_is_there_though_others_load_and_evict_its_index_before_it() {
    for point in [Point::IndexLoads, Point::IndexLoaded] {
        let disk = CrashFs::new();
        let (db, barriers, pairs) = built(&disk, false);
        let others = db.clone();
        barriers.at(point, move |board| {
            // At the first point this is the first load of the index, at the second it was loaded just now.
            let expected = usize::from(point == Point::IndexLoads);
            assert_eq!(loads(&others, board, 210), expected, "{point:?}");
            read_all(&others);
            // Who loads it has not told the cache of it at the second point, so it cannot leave.
            assert_eq!(loads(&others, board, 210), expected, "it has left, or stays");
            read_all(&others);
        });
        assert_eq!(db.get(key(210)).unwrap(), Some(value(210, 1)));
        assert_eq!(barriers.done(point), 1);
        // It is known to the cache now, once: it leaves like any other.
        assert_eq!(loads(&db, &barriers, 210), 0);
        read_all(&db);
        assert_eq!(loads(&db, &barriers, 210), 1);
        fits(&db);
        ends_well(db, barriers, &disk, &pairs);
    }
}

/// Where a cursor stands.
fn stands(cursor: &Cursor) -> Option<(Vec<u8>, Vec<u8>)> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

#[test]
fn a_cursor_keeps_its_block_though_it_and_its_index_are_evicted_and_replaced() {
    for separated in [false, true] {
        for point in [Point::IndexLeaves, Point::BlocksLeave] {
            let disk = CrashFs::new();
            let (db, barriers, mut pairs) = built(&disk, separated);
            let old = pairs.clone();
            let at = |number: usize| Some((key(number).into_bytes(), value(number, 1)));
            let all = db.default_keyspace();
            let (mut forward, mut backward) = (all.cursor().unwrap(), all.cursor().unwrap());
            let mut iter = all.iter().unwrap();
            forward.seek(key(210)).unwrap();
            backward.seek_back(key(210)).unwrap();
            let first = iter.next_entry().unwrap().map(|(key, value)| (key.into(), value.into()));
            assert_eq!(first, at(0));
            // In the middle of this read, what it makes leave is replaced as well.
            let (others, replaced) = (db.clone(), Arc::new(Mutex::new(pairs)));
            barriers.at(point, {
                let replaced = replaced.clone();
                move |_| replace(&others, &mut replaced.lock(), 2)
            });
            read_all(&db);
            assert_eq!(barriers.done(point), 1);
            pairs = replaced.lock().clone();
            read_all(&db);
            assert_eq!((stands(&forward), stands(&backward)), (at(210), at(210)));
            for step in 1..150 {
                forward.next().unwrap();
                backward.prev().unwrap();
                assert_eq!((stands(&forward), stands(&backward)), (at(210 + step), at(210 - step)));
                if step == 75 {
                    replace(&db, &mut pairs, 3);
                    read_all(&db);
                }
            }
            let mut seen = Pairs::from_iter(first);
            seen.extend(iter.by_ref().map(Result::unwrap));
            assert!(seen == old, "an iterator of before shows something else");
            drop((forward, backward, iter));
            assert_eq!(db.stats().held.pinned, 0);
            fits(&db);
            ends_well(db, barriers, &disk, &pairs);
        }
    }
}

/// At each of these points, random reads are disturbed by writes, flushes, compactions and ingestions, and by reads of
/// everything else, which load and evict what the read was about to use.
#[test]
fn reads_see_their_moment_whatever_happens_where_they_miss_or_evict() {
    let mut random = Rng::new(super::seed());
    for point in POINTS {
        let disk = CrashFs::new();
        let (db, barriers, pairs) = built(&disk, random.percent(50));
        let snapshot = db.snapshot().unwrap();
        let (old, pairs) = (pairs.clone(), Arc::new(Mutex::new(Arc::new(pairs))));
        // What there was after each disturbance, for a read that meets several.
        let moments = Arc::new(Mutex::new(vec![pairs.lock().clone()]));
        for round in 0..ACTIONS {
            let (db, pairs, moments) = (db.clone(), pairs.clone(), moments.clone());
            barriers.at(point, move |_| {
                disturb(&db, &pairs, 10 + round);
                moments.lock().push(pairs.lock().clone());
                read_all(&db);
            });
        }
        let mut reads = 0;
        while barriers.done(point) < ACTIONS as usize {
            reads += 1;
            assert!(reads < 20_000, "{point:?} was passed {} times", barriers.passed(point));
            let (kind, at) = (random.below(5) as usize, random.below(KEYS as u64 - 5) as usize);
            let before = moments.lock().len() - 1;
            let found = read(&db, kind, at);
            let fit = moments.lock()[before..].iter().any(|pairs| found == of(pairs, kind, at));
            assert!(fit, "{point:?}, kind {kind}, from key {at}: {:?}", found.keys());
            if reads % 50 == 0 {
                keeps(&db, &snapshot, &old);
            }
        }
        keeps(&db, &snapshot, &old);
        drop(snapshot);
        fits(&db);
        let pairs = pairs.lock().clone();
        ends_well(db, barriers, &disk, &pairs);
    }
}
