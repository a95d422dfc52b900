//! Compressing settled data is cut off at every step: every branch and named snapshot holds what it held,
//! what survives is whole, and the next process goes on.

use super::cuts::{PATH, World, branch_thrice, cuts_of, key, world};
use super::options;
use esker::{Append, Compression, Db, KeyspaceOptions, Options};
use esker_testkit::CrashFs;

const KEYS: usize = 600;

fn sizes(disk: &CrashFs, compression: Compression) -> Options {
    let mut options = options(disk.as_fs());
    options.memory = Some(32 << 20);
    options.memtable_bytes = Some(1 << 20);
    options.partition_bytes = Some(16 << 10);
    options.segment_bytes = 4 << 10;
    options.compression = compression;
    options
}

fn fill(db: &Db, round: usize) {
    let words = db.keyspace("words").unwrap();
    for number in 0..KEYS {
        db.insert(key(number), format!("{round} {number} {}", ".".repeat(60))).unwrap();
        words.merge(key(number), format!("{round} {}", "-".repeat(60))).unwrap();
    }
    db.remove_range(key(100 * round)..key(100 * round + 60)).unwrap();
    db.compact().unwrap();
}

/// Bases that are not compressed, in three branches, one of which differs; a named snapshot has others.
fn build(disk: &CrashFs) -> World {
    let db = Db::open_with(PATH, sizes(disk, Compression::None)).unwrap();
    let words = KeyspaceOptions::merging(Append::new(",").name());
    drop(db.keyspace_with("words", words).unwrap());
    fill(&db, 0);
    db.snapshot_named("moment").unwrap();
    fill(&db, 1);
    drop(branch_thrice(&db));
    let world = world(&db);
    db.close().unwrap();
    world
}

/// Bytes of settled blocks that are not compressed.
fn raw(db: &Db) -> u64 {
    db.stats().trees.iter().map(|tree| tree.base.raw_bytes).sum()
}

/// Has a pause of the writes begin, which are none as far as anybody sees.
fn pause(db: &Db) -> esker::Result<()> {
    db.remove("no such key")?;
    db.wait_until_idle()
}

#[test]
fn compressing_settled_data_can_be_cut_off_anywhere() {
    let disk = CrashFs::new();
    let expected = build(&disk);
    let db = Db::open_with(PATH, sizes(&disk, Compression::Auto)).unwrap();
    let before: u64 = db.stats().trees.iter().map(|tree| tree.base.bytes).sum();
    let mut left = 0;
    let cuts = cuts_of(&disk, || {
        pause(&db).unwrap();
        // What the branch that differs shares there with the others stays.
        left = raw(&db);
        assert!(left * 4 < before, "{left} of {before} bytes are raw");
        assert!(world(&db) == expected, "it was not cut off");
        db.close().unwrap();
    });
    drop(db);
    assert!(cuts.len() > 20, "there are only {} cuts", cuts.len());
    for (number, (story, cut)) in cuts.into_iter().enumerate() {
        let compression = [Compression::Auto, Compression::None][number / 2 % 2];
        let db = Db::open_with(PATH, sizes(&cut, compression))
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        assert!(world(&db) == expected, "{story}");
        pause(&db).unwrap_or_else(|error| panic!("{story}: {error}"));
        assert!(world(&db) == expected, "{story}, after a pause");
        let problems = db.verify().unwrap().problems;
        assert!(problems.is_empty(), "{story}: {problems:?}");
        if compression == Compression::Auto {
            assert!(raw(&db) <= left, "{story}: {} bytes are raw, not {left}", raw(&db));
        }
        db.close().unwrap_or_else(|error| panic!("{story}: {error}"));
    }
}
