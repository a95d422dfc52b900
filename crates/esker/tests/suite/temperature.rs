//! Compressing what is not read, and what is read again, is cut off at every step: every branch and named
//! snapshot holds what it held, what survives is whole, and the next process goes on.

use super::cuts::{PATH, World, branch_thrice, cuts_of, key, world};
use super::options;
use esker::{Append, Db, KeyspaceOptions, Options};
use esker_testkit::CrashFs;
use esker_testkit::harness::HandClock;
use std::sync::Arc;
use std::time::Duration;

const KEYS: usize = 600;
/// The time after which data is cold, in milliseconds.
pub const COLD: u64 = 1000;

fn sizes(disk: &CrashFs, clock: &Arc<HandClock>) -> Options {
    let mut options = options(disk.as_fs());
    options.memory = Some(1 << 20);
    options.memtable_bytes = Some(256 << 10);
    options.partition_bytes = Some(16 << 10);
    cools(&mut options, clock);
    options
}

/// Small segments and blocks, which turn cold after [`COLD`] whatever that saves.
pub fn cools(options: &mut Options, clock: &Arc<HandClock>) {
    options.segment_bytes = 8 << 10;
    options.block_bytes = 1 << 10;
    options.clock = clock.clone();
    options.cold_after = Some(Duration::from_millis(COLD));
    options.small_cold = true;
}

/// A value that has much in common with others.
pub fn record(number: usize) -> String {
    let (a, b) = (number * 7919 % 1009, number * 104_729 % 10_007);
    format!("{{\"id\":{number},\"of\":{a},\"name\":\"name {}\",\"more\":{b}}}", a % 13)
}

/// Bases with LZ4 blocks in three branches, one of which differs; a named snapshot has others.
fn build(disk: &CrashFs, clock: &Arc<HandClock>) -> World {
    let db = Db::open_with(PATH, sizes(disk, clock)).unwrap();
    let words = KeyspaceOptions::merging(Append::new(",").name());
    let words = db.keyspace_with("words", words).unwrap();
    for round in 0..2 {
        for number in 0..KEYS {
            db.insert(key(number), record(number + round)).unwrap();
            words.merge(key(number), record(number)).unwrap();
        }
        db.remove_range(key(100 * round)..key(100 * round + 60)).unwrap();
        db.compact().unwrap();
        if round == 0 {
            db.snapshot_named("moment").unwrap();
        }
    }
    let two = branch_thrice(&db);
    let world = world(&db);
    drop((two, words));
    db.close().unwrap();
    world
}

/// Bytes of settled blocks with LZ4 and with Zstandard.
pub fn stored(db: &Db) -> (u64, u64) {
    let bases = db.stats().trees;
    let bases = bases.iter().map(|tree| tree.base);
    bases.fold((0, 0), |sums, base| (sums.0 + base.lz4_bytes, sums.1 + base.zstd_bytes))
}

/// Lets time pass without reads; or has everything read from the files.
fn turn(db: &Db, clock: &Arc<HandClock>, colder: bool) -> esker::Result<()> {
    for _ in 0..8 {
        if !colder {
            for _ in 0..2 {
                let _ = world(db);
            }
        }
        clock.advance(COLD / 2);
        db.wait_until_idle()?;
    }
    Ok(())
}

#[test]
fn turning_cold_and_warm_can_be_cut_off_anywhere() {
    let disk = CrashFs::new();
    let clock = Arc::new(HandClock::default());
    clock.set(1_000_000);
    let expected = build(&disk, &clock);
    let db = Db::open_with(PATH, sizes(&disk, &clock)).unwrap();
    let mut seen = Vec::new();
    let cuts = cuts_of(&disk, || {
        turn(&db, &clock, true).unwrap();
        seen.push(stored(&db));
        assert!(db.stats().bytes_cooled > 0);
        assert!(world(&db) == expected, "it was not cut off");
        turn(&db, &clock, false).unwrap();
        seen.push(stored(&db));
        assert!(db.stats().bytes_warmed > 0);
        assert!(world(&db) == expected, "it was not cut off");
        db.close().unwrap();
    });
    drop(db);
    println!("LZ4 and Zstandard: {seen:?}");
    assert!(seen[0].1 > seen[0].0 && seen[1].1 < seen[0].1, "{seen:?}");
    assert!(cuts.len() > 40, "there are only {} cuts", cuts.len());
    for (number, (story, cut)) in cuts.into_iter().enumerate() {
        let db = Db::open_with(PATH, sizes(&cut, &clock))
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        assert!(world(&db) == expected, "{story}");
        if number % 4 == 0 {
            turn(&db, &clock, true).unwrap_or_else(|error| panic!("{story}: {error}"));
            assert!(stored(&db).1 >= seen[0].1 * 9 / 10, "{story}: {:?}", stored(&db));
            assert!(world(&db) == expected, "{story}, later");
        }
        let problems = db.verify().unwrap().problems;
        assert!(problems.is_empty(), "{story}: {problems:?}");
        db.close().unwrap_or_else(|error| panic!("{story}: {error}"));
    }
}
