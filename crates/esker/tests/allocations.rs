//! How often reads of what is in memory allocate. A program of its own: it has an allocator that counts.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

#[path = "damage/memory.rs"]
mod memory;

use esker::{Cursor, Db, Iter, Keyspace, Options};
use memory::allocations_of;

const KEYS: u64 = 20_000;
/// Calls of each kind. They lie in several partitions.
const CALLS: u64 = 500;
/// What all calls of a kind may have beside: a compaction may have replaced what a cursor had memory for.
const SPARE: u64 = 10;
const ROWS: u64 = 10;
/// Each so many of the entries is in a memtable in the end.
const IN_MEMORY: usize = 89;

/// The longest keys for which nothing is allocated.
fn key(at: u64) -> [u8; 64] {
    let mut key = [b'k'; 64];
    key[..8].copy_from_slice(&at.to_be_bytes());
    key
}

fn numbers() -> impl Iterator<Item = u64> {
    (0..CALLS).map(|n| (n * 7919) % (KEYS - 2 * ROWS))
}

fn places() -> impl Iterator<Item = [u8; 64]> {
    numbers().map(key)
}

fn next(iter: &mut Iter) {
    (0..ROWS).for_each(|_| assert!(iter.next_entry().unwrap().is_some()));
}

fn of_cursor(cursor: &mut Cursor) {
    for place in places() {
        cursor.seek(place).unwrap();
        (0..ROWS).for_each(|_| assert!(cursor.next().map(|()| cursor.valid()).unwrap()));
        cursor.prev().unwrap();
    }
}

fn of_iter(iter: &mut Iter) {
    for place in places() {
        iter.seek(place).unwrap();
        next(iter);
    }
}

/// Iterators that are made, read and dropped.
fn new_iters(all: &Keyspace) {
    for place in places() {
        let mut iter = all.iter().unwrap();
        iter.seek(place).unwrap();
        next(&mut iter);
    }
}

/// The same with two bounds.
fn new_ranges(all: &Keyspace) {
    places().for_each(|place| next(&mut all.range(place..=key(KEYS)).unwrap()));
}

/// The same from their ends.
fn new_backward(all: &Keyspace) {
    for place in numbers().map(|number| key(number + ROWS)) {
        let mut iter = all.range(key(0)..=place).unwrap();
        (0..ROWS).for_each(|_| assert!(iter.next_back_entry().unwrap().is_some()));
    }
}

/// The fewest allocations of three rounds: in one of them a compaction may end.
fn least(mut calls: impl FnMut()) -> u64 {
    (0..3).map(|_| allocations_of(&mut calls).0).min().unwrap()
}

/// Gets, seeks, and iterators allocate nothing, except that one which is read from its end makes a second scan for it, and
/// copies there the newest of several versions.
fn assert_few(all: &Keyspace, sources: &str) {
    let (mut cursor, mut iter) = (all.cursor().unwrap(), all.iter().unwrap());
    let mut value = Vec::with_capacity(200);
    // All is in memory, and this thread has all that it makes for itself.
    (0..KEYS).for_each(|n| assert!(all.get_into(key(n), &mut value).unwrap()));
    of_cursor(&mut cursor);
    of_iter(&mut iter);
    new_iters(all);
    new_ranges(all);
    new_backward(all);
    let gets = least(|| {
        places().for_each(|place| assert!(all.get_into(place, &mut value).unwrap()));
    });
    // What is still in a memtable is copied.
    let flushed = |at: u64| !at.is_multiple_of(IN_MEMORY as u64);
    let pinned = least(|| {
        let places = numbers().filter(|at| flushed(*at));
        places.for_each(|at| assert_eq!(all.get_pinned(key(at)).unwrap().unwrap().len(), 100));
    });
    let lent = least(|| {
        places().for_each(|place| assert_eq!(all.get_with(place, <[u8]>::len).unwrap(), Some(100)));
    });
    let found = [
        ("get_into", gets, 0),
        ("get_with", lent, 0),
        ("get_pinned", pinned, 0),
        ("Cursor::seek", least(|| of_cursor(&mut cursor)), 0),
        ("Iter::seek", least(|| of_iter(&mut iter)), 0),
        ("iter", least(|| new_iters(all)), 0),
        ("range", least(|| new_ranges(all)), 0),
        ("range, backward", least(|| new_backward(all)), 2),
    ];
    println!("{sources}: {found:?} in {CALLS} calls each");
    for (call, allocations, each) in found {
        assert!(allocations <= CALLS * each + SPARE, "{sources}: {call} has {allocations}");
    }
}

#[test]
fn a_seek_of_a_few_sources_allocates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.partition_bytes = Some(512 << 10);
    options.memtable_bytes = Some(4 << 20);
    let db = Db::open_with(dir.path(), options).unwrap();
    let all = db.default_keyspace();
    let fill = |step: usize| {
        (0..KEYS).step_by(step).for_each(|n| all.insert(key(n), [7; 100]).unwrap());
    };
    fill(1);
    db.compact().unwrap();
    assert_few(&all, "one run");
    for step in [97, 101, 103, 107, 109, 113, 127, 131, 137] {
        fill(step);
        db.flush().unwrap();
    }
    let runs = db.explain_get(key(0)).unwrap().steps.len();
    println!("{runs} sources");
    assert_few(&all, "several runs");
    fill(IN_MEMORY);
    assert_few(&all, "several runs and a memtable");
}
