//! The governor decides on a limit of the cache, and something else happens before the cache has it.

use super::{Pairs, Step, ends_well, expect, write};
use crate::cuts::{PATH, key};
use esker::internals::sync::Point;
use esker::{Compression, Db, Options};
use esker_testkit::CrashFs;
use esker_testkit::barriers::Barriers;
use parking_lot::Mutex;
use std::sync::Arc;

const MEMORY: u64 = 4 << 20;
/// What the cache has in the split of the budget.
const SHARE: u64 = MEMORY / 8 * 5;
const LARGE: usize = 1500;

fn options(disk: &CrashFs) -> Options {
    let mut options = super::sizes(disk);
    options.memory = Some(MEMORY);
    options.memtable_bytes = Some(64 << 10);
    options.partition_bytes = Some(256 << 10);
    (options.block_bytes, options.segment_bytes) = (4 << 10, 32 << 10);
    options.compression = Compression::None;
    options.separate_values_from = None;
    options
}

/// More than the cache may ever have, behind the keys of the other tests.
fn load(db: &Db) {
    let value = |number| super::value(number, 3).repeat(30);
    for number in 0..LARGE {
        db.insert(format!("large{number:06}"), value(number)).unwrap();
    }
    db.flush().unwrap();
}

/// Reads everything, and returns what the cache has then.
fn read_all(db: &Db) -> u64 {
    for _ in 0..2 {
        for number in 0..LARGE {
            assert!(db.get(format!("large{number:06}")).unwrap().is_some());
        }
    }
    let memory = db.stats().memory;
    memory.cache + memory.indexes + memory.filters
}

/// One thread has decided that the cache grows, and another then takes that back before the first goes on.
#[test]
fn the_cache_has_the_limit_that_was_decided_last() {
    let disk = CrashFs::new();
    let (db, barriers) = Barriers::open(PATH, options(&disk)).unwrap();
    load(&db);
    let cached = Arc::new(Mutex::new(Vec::new()));
    let (writing, later) = (db.clone(), cached.clone());
    barriers.at(Point::CacheResizes, move |board| {
        // A flush takes memory from the cache, and while somebody writes the cache does not get it back.
        writing.insert(key(1), "again").unwrap();
        writing.flush().unwrap();
        let reading = writing.clone();
        board.at(Point::CacheResizes, move |_| later.lock().push(read_all(&reading)));
    });
    while barriers.done(Point::CacheResizes) < 2 {
        db.wait_until_idle().unwrap();
    }
    assert!(db.stats().memory.cache_limit > SHARE, "the cache never grows");
    let cached = cached.lock().clone();
    assert!(cached[0] <= SHARE + SHARE / 20, "{cached:?} bytes are cached of {SHARE}");
    drop(barriers);
    db.close().unwrap();
}

/// A close waits for a thread that is about to change the limit.
#[test]
fn a_database_closes_while_the_governor_changes_the_limit() {
    let disk = CrashFs::new();
    let (db, barriers) = Barriers::open(PATH, options(&disk)).unwrap();
    let mut pairs = Pairs::new();
    let steps = [Step::Put(0, 200, 1)];
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    while !barriers.was_reached(Point::CacheResizes) {
        db.wait_until_idle().unwrap();
    }
    barriers.close(&[Point::CacheResizes]);
    let steps = [Step::Put(100, 300, 2)];
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    let flushing = std::thread::spawn({
        let db = db.clone();
        move || db.flush()
    });
    barriers.wait_for(Point::CacheResizes);
    let closing = std::thread::spawn({
        let db = db.clone();
        move || db.close()
    });
    while db.contains_key(key(0)).is_ok() {
        std::thread::yield_now();
    }
    barriers.let_go(&[Point::CacheResizes]);
    closing.join().unwrap().unwrap();
    // It was done, or the close came first and did it.
    let _ = flushing.join().unwrap();
    drop(db);
    let (db, barriers) = Barriers::open(PATH, options(&disk)).unwrap();
    ends_well(db, barriers, &disk, &pairs);
}
