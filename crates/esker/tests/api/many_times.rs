//! Data 640 times as large as the memory budget: whatever is read is there, whatever is not there is absent, in every way
//! to read; and memory keeps to the budget and what is documented beside it.

use super::Place;
use esker::{Db, Durability, Options, Stats};
use esker_testkit::Rng;

const MEMORY: u64 = 1 << 20;
const MIB: u64 = 1 << 20;
const VALUE_BYTES: u64 = 1_000;
const RATIO: u64 = 640;
/// A multiple of the numbers below.
const KEYS: u64 = RATIO * MEMORY / (VALUE_BYTES + 16) / READ * READ;
/// One key of so many is overwritten, and one of so many others removed.
const OVERWRITTEN: u64 = 20;
const REMOVED: u64 = 50;
/// Every key of so many is read.
const READ: u64 = 1_000;
const ROWS: u64 = 100;

type Reads = fn(&Db);

fn key(number: u64) -> [u8; 16] {
    u128::from(number).to_be_bytes()
}

/// Behind the key of that number and before the next one.
fn absent(number: u64) -> [u8; 17] {
    let mut absent = [1; 17];
    absent[..16].copy_from_slice(&key(number));
    absent
}

/// Bytes that do not compress.
fn noise(number: u64, round: u64) -> Vec<u8> {
    let mut random = Rng::of_thread(number, round);
    let words = (0..VALUE_BYTES / 8).map(|_| random.next().to_be_bytes());
    words.flatten().collect()
}

fn value(number: u64) -> Option<Vec<u8>> {
    if number % REMOVED == 7 {
        return None;
    }
    Some(noise(number, u64::from(number % OVERWRITTEN == 3)))
}

/// Calls for the numbers of one kind in an order without locality.
fn for_each(of: u64, rest: u64, mut call: impl FnMut(u64)) {
    let count = KEYS / of;
    (0..count).for_each(|n| call((n * 7_919 % count) * of + rest));
}

fn loaded(place: &Place) -> Db {
    let mut options = Options::default();
    options.memory = Some(MEMORY);
    options.durability = Durability::Buffered;
    let db = Db::open_with(place.path(), options).unwrap();
    (0..KEYS).for_each(|number| db.insert(key(number), noise(number, 0)).unwrap());
    for_each(OVERWRITTEN, 3, |number| db.insert(key(number), noise(number, 1)).unwrap());
    for_each(REMOVED, 7, |number| db.remove(key(number)).unwrap());
    db.wait_until_idle().unwrap();
    db
}

/// What is counted, in a line and against its bounds: the budget for everything but what describes the tree, which has no
/// bound of its own, and the buffers, of which a flush and a compaction always have one run segment of a MiB each. What
/// was evicted goes when the last reader of the process has left its epoch.
fn keeps_to_the_budget(stats: &Stats, what: &str) {
    let memory = stats.memory;
    let total = memory.total() - stats.held.evicted.min(memory.total());
    println!("{what}: {} KiB in all, {memory:?}", total >> 10);
    let bounded = total - memory.description - memory.buffers;
    assert!(bounded <= MEMORY + MEMORY / 8, "{bounded} bytes: {memory:?}");
    assert!(memory.buffers_max <= MEMORY / 16 + 2 * MIB, "{memory:?}");
    // A segment of a MiB takes about 600 bytes to describe.
    let segments = stats.data_file_bytes / MIB + 1;
    assert!(memory.description <= segments * 2_000 + MEMORY / 32, "{segments}: {memory:?}");
}

fn gets(db: &Db) {
    // Those with these numbers behind a thousand were overwritten or removed.
    let some = [0, 3, 7].into_iter().flat_map(|from| (from..KEYS).step_by(READ as usize));
    for number in some.chain(KEYS - 100..KEYS) {
        assert!(db.get(key(number)).unwrap() == value(number), "key {number}");
        assert_eq!(db.get(absent(number)).unwrap(), None, "behind key {number}");
    }
}

fn several(db: &Db) {
    let all = db.default_keyspace();
    for from in [0, 3, 7, 123, 207, 250, 500, 750] {
        let numbers: Vec<u64> = (from..KEYS).step_by(READ as usize).collect();
        let found = all.multi_get(numbers.iter().map(|number| key(*number))).unwrap();
        for (number, found) in numbers.into_iter().zip(found) {
            assert!(found == value(number), "key {number} of several");
        }
    }
}

fn scans(db: &Db) {
    for from in (0..KEYS - ROWS).step_by(READ as usize * 10) {
        let keys = from..from + ROWS;
        let there = |number: u64| value(number).map(|value| (key(number).to_vec(), value));
        let expected: Vec<_> = keys.clone().filter_map(there).collect();
        let range = || db.range(key(keys.start)..key(keys.end)).unwrap();
        let forward: Vec<_> = range().map(Result::unwrap).collect();
        let mut backward: Vec<_> = range().rev().map(Result::unwrap).collect();
        backward.reverse();
        assert!(forward == expected && backward == expected, "from key {from}");
    }
    let all = db.default_keyspace();
    let last = all.last_key_value().unwrap().map(|(key, _)| key);
    let greatest = (0..KEYS).rev().find(|number| value(*number).is_some()).map(key);
    assert_eq!(last.as_deref(), greatest.as_ref().map(|key| &key[..]));
}

#[test]
#[ignore = "two to five minutes: data of 640 MB under a budget of one MiB"]
fn with_data_640_times_the_memory_all_reads_are_right_and_memory_keeps_to_the_budget() {
    let place = Place::new();
    let db = loaded(&place);
    let stats = db.stats();
    println!("{} MiB of run files", stats.data_file_bytes >> 20);
    keeps_to_the_budget(&stats, "loaded");
    let reads: [(&str, Reads); 3] = [("gets", gets), ("several", several), ("scans", scans)];
    for (name, read) in reads {
        let before = db.stats();
        read(&db);
        let after = db.stats();
        keeps_to_the_budget(&after, name);
        let all = |stats: &Stats| stats.page_cache_reads + stats.device_reads;
        let (blocks, files) =
            (after.cache_misses - before.cache_misses, all(&after) - all(&before));
        println!("{name}: {blocks} blocks missed, {files} reads of files");
        // A get reads one block at a time, and indexes beside.
        let least = if name == "gets" { blocks } else { 0 };
        assert!(blocks > 0 && files > least, "indexes and blocks do not fit, and are read");
    }
    db.close().unwrap();
}
