//! What is read next is asked for ahead, so that a device serves several requests at once: counted, as a hint has no
//! other effect that a test could see.

use super::{Place, key};
use esker::{Compression, Db, Options};
use esker_testkit::Rng;
use esker_testkit::faultfs::{Effect, FaultFs, Op, Rule};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

const KEYS: usize = 8_000;
const VALUE: usize = 400;

/// Several times as much data as memory, settled and reopened.
fn opened(place: &Place, disk: &FaultFs, change: impl Fn(&mut Options)) -> Db {
    let mut options = Options::default();
    options.memory = Some(1 << 20);
    options.compression = Compression::None;
    options.segment_bytes = 64 << 10;
    options.partition_bytes = Some(512 << 10);
    change(&mut options);
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    (0..KEYS).for_each(|n| db.insert(key(n), vec![n as u8; VALUE]).unwrap());
    db.compact().unwrap();
    db.close().unwrap();
    options.fs = disk.as_fs();
    let db = Db::open_with(place.path(), options).unwrap();
    db.wait_until_idle().unwrap();
    db
}

/// Reads of files that the calls make, and those of them that were asked for ahead.
fn reads(disk: &FaultFs, calls: impl FnOnce()) -> (u64, u64) {
    disk.watch_asked_ahead();
    let before = disk.count(Op::Read);
    calls();
    (disk.count(Op::Read) - before, disk.reads_asked_ahead())
}

/// From now on reads take as long as those of a device.
fn slow(disk: &FaultFs) {
    let wait = Effect::Call(Arc::new(|| sleep(Duration::from_micros(100))));
    disk.add(Rule::new(Op::Read, wait).persistent());
}

fn several(db: &Db, random: &mut Rng) {
    let numbers: Vec<_> = (0..32).map(|_| random.below(KEYS as u64) as usize).collect();
    let values = db.multi_get(numbers.iter().map(|n| key(*n))).unwrap();
    for (n, value) in numbers.iter().zip(values) {
        assert!(value.unwrap() == vec![*n as u8; VALUE], "key {n}");
    }
}

#[test]
fn what_several_keys_read_is_asked_for_at_once() {
    let (place, disk) = (Place::new(), FaultFs::new(esker::fs::os()));
    let db = opened(&place, &disk, |_| {});
    slow(&disk);
    let mut random = Rng::new(3);
    // An index says only once it was read which block comes next.
    let (first, asked) = reads(&disk, || several(&db, &mut random));
    let opened = disk.count(Op::Open);
    assert!(first > 40 && asked + opened >= first, "{asked} of {first}, and {opened} files");
    (0..50).for_each(|_| several(&db, &mut random));
    let (all, asked) = reads(&disk, || (0..50).for_each(|_| several(&db, &mut random)));
    // A block that is not kept is read for each of its keys, and asked for once.
    assert!(all > 500 && asked * 100 >= all * 95, "{asked} of {all}");
    // One key alone asks for nothing.
    let one = |n| assert!(db.multi_get([key(n)]).unwrap()[0].is_some());
    let (all, asked) = reads(&disk, || (0..500).for_each(|n| one(n * 16)));
    assert!(all > 100 && asked == 0, "{asked} of {all}");
}

/// To ask takes as long as to read.
#[test]
fn what_the_page_cache_has_is_not_asked_for() {
    let (place, disk) = (Place::new(), FaultFs::new(esker::fs::os()));
    let db = opened(&place, &disk, |_| {});
    let mut random = Rng::new(6);
    // A thread that is taken off the processor in a read takes it for one from the device.
    let share = |random: &mut Rng| {
        let (all, asked) = reads(&disk, || (0..20).for_each(|_| several(&db, random)));
        asked as f64 / all as f64
    };
    let quick = |random: &mut Rng| (0..200).any(|_| share(random) < 0.2);
    assert!(quick(&mut random), "most reads were asked for");
    slow(&disk);
    several(&db, &mut random);
    let waiting = share(&mut random);
    assert!(waiting > 0.95, "{waiting} of the reads were asked for");
    disk.clear();
    assert!(quick(&mut random), "most reads were asked for");
}

#[test]
fn values_apart_are_asked_for_at_once() {
    let (place, disk) = (Place::new(), FaultFs::new(esker::fs::os()));
    // The keys and where their values are fit into memory, the values do not.
    let db = opened(&place, &disk, |options| {
        options.memory = Some(3 << 20);
        options.separate_values_from = Some(VALUE as u32);
    });
    slow(&disk);
    let mut random = Rng::new(4);
    (0..100).for_each(|_| several(&db, &mut random));
    let (all, asked) = reads(&disk, || (0..50).for_each(|_| several(&db, &mut random)));
    assert!(all > 500 && asked * 100 >= all * 90, "{asked} of {all}");
}

/// They wait in the page cache until they are read, which has a bound of its own.
#[test]
fn what_a_group_asks_for_has_a_bound() {
    const LARGE: usize = 200 << 10;
    const BOUND: u64 = 4 << 20;
    let (place, disk) = (Place::new(), FaultFs::new(esker::fs::os()));
    let mut options = Options::default();
    options.memory = Some(4 << 20);
    options.compression = Compression::None;
    options.fs = disk.as_fs();
    let db = Db::open_with(place.path(), options).unwrap();
    (0..64).for_each(|n| db.insert(key(n), vec![n as u8; LARGE]).unwrap());
    db.compact().unwrap();
    slow(&disk);
    let all_of = |first: usize| {
        let keys = (first..first + 32).map(key);
        let found = db.multi_get(keys).unwrap();
        let lens = found.iter().map(|value| value.as_ref().map_or(0, Vec::len));
        assert_eq!(lens.sum::<usize>(), 32 * LARGE);
    };
    // The blocks that say where the values are stay in memory.
    (0..10).for_each(|n| all_of(n % 2 * 32));
    for n in 0..10 {
        disk.watch_asked_ahead();
        all_of(n % 2 * 32);
        let asked = disk.bytes_asked_ahead();
        // 32 values are more than that, so all of it is used up.
        assert!((BOUND - 2 * LARGE as u64..=BOUND).contains(&asked), "{asked} bytes");
    }
}

/// Where a range was deleted, and where the newest runs do not have the keys.
#[test]
fn what_lies_below_newer_runs_is_asked_for_at_once() {
    let (place, disk) = (Place::new(), FaultFs::new(esker::fs::os()));
    let db = opened(&place, &disk, |options| options.memtable_bytes = Some(1 << 20));
    (0..KEYS).step_by(500).for_each(|n| db.insert(key(n), vec![n as u8; VALUE]).unwrap());
    db.remove_range(key(KEYS)..key(KEYS + 9)).unwrap();
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    slow(&disk);
    let mut random = Rng::new(5);
    (0..50).for_each(|_| several(&db, &mut random));
    let (all, asked) = reads(&disk, || (0..50).for_each(|_| several(&db, &mut random)));
    assert!(all > 500 && asked * 100 >= all * 95, "{asked} of {all}");
}

/// Within a segment, and from one to the next, where one request takes a whole segment.
#[test]
fn a_long_scan_asks_for_what_comes_next() {
    for segment_bytes in [1 << 20, 64 << 10] {
        let (place, disk) = (Place::new(), FaultFs::new(esker::fs::os()));
        let db = opened(&place, &disk, |options| {
            options.segment_bytes = segment_bytes;
            options.partition_bytes = Some(4 << 20);
        });
        let scan = |backward: bool| {
            let all = db.range::<&[u8]>(..).unwrap();
            let found = if backward { all.rev().count() } else { all.count() };
            assert_eq!(found, KEYS);
        };
        scan(false);
        for backward in [false, true] {
            let (all, asked) = reads(&disk, || scan(backward));
            // The first blocks are not, before the scan has come far.
            assert!(all > 20 && asked * 10 >= all * 7, "{asked} of {all}, backward: {backward}");
        }
        // Ten rows ask for nothing that they may not come to.
        let ten = |n| assert_eq!(db.range(key(n)..).unwrap().take(10).count(), 10);
        let (_, asked) = reads(&disk, || (0..KEYS - 10).step_by(97).for_each(ten));
        assert_eq!(asked, 0);
    }
}
