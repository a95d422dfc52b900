//! Compressing settled data is cut off at every step: every branch and named snapshot holds what it held,
//! what survives is whole, and the next process goes on.

use super::options;
use esker::{Append, Compression, Db, KeyspaceOptions, Options};
use esker_testkit::CrashFs;
use std::sync::{Arc, Mutex};

const PATH: &str = "/db";
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

fn key(number: usize) -> String {
    format!("key{number:04}")
}

type World = Vec<(String, Vec<(Vec<u8>, Vec<u8>)>)>;

/// What the database, its branches and its named snapshots hold.
fn world(db: &Db) -> World {
    let mut all = vec![(String::new(), db.clone())];
    for name in db.branches().unwrap() {
        all.push((name.clone(), db.open_branch(&name).unwrap()));
    }
    for name in db.named_snapshots().unwrap() {
        all.push((name.clone(), db.open_named_snapshot(&name).unwrap()));
    }
    let mut found = World::new();
    for (name, db) in all {
        for keyspace in ["default", "words"] {
            let entries = db.keyspace(keyspace).unwrap().iter().unwrap();
            found.push((format!("{name}/{keyspace}"), entries.map(Result::unwrap).collect()));
        }
    }
    found
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
    for name in ["one", "two", "three"] {
        drop(db.branch(name).unwrap());
    }
    let two = db.open_branch("two").unwrap();
    two.insert(key(250), "of its own").unwrap();
    two.compact().unwrap();
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
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let (taken, source) = (cuts.clone(), disk.clone());
    let db = Db::open_with(PATH, sizes(&disk, Compression::Auto)).unwrap();
    let before: u64 = db.stats().trees.iter().map(|tree| tree.base.bytes).sum();
    disk.set_hook(Some(Arc::new(move |step, what: &str| {
        let survivors = [0, 50, 100][step as usize % 3];
        let cut = source.crash_clone(step, survivors);
        let mut cuts = taken.lock().unwrap();
        cuts.push((format!("killed before {what} ({step})"), source.kill_clone()));
        cuts.push((format!("power cut before {what} ({step}), {survivors} % survive"), cut));
    })));
    pause(&db).unwrap();
    // What the branch that differs shares there with the others stays.
    let left = raw(&db);
    assert!(left * 4 < before, "{left} of {before} bytes are raw");
    assert!(world(&db) == expected, "it was not cut off");
    db.close().unwrap();
    drop(db);
    disk.set_hook(None);
    let cuts = std::mem::take(&mut *cuts.lock().unwrap());
    assert!(cuts.len() > 20, "there are only {} cuts", cuts.len());
    println!("{} cuts", cuts.len());
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
