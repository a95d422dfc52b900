//! Opening is cut off at every one of its steps, and the next opening at every one of its own
//! (C1, C8; R7, R12). Whatever is left must open and hold everything that was acknowledged.
//!
//! One interruption is not enough of a test: what the second opening removes may be what the
//! first one, cut off, still leads through.

pub mod known;

use esker::fs::Fs;
use esker::{Db, Durability, LogKind, Options};
use esker_testkit::CrashFs;
use std::sync::{Arc, Mutex};

const PATH: &str = "/db";
const ENTRIES: u32 = 40;

fn options(disk: &CrashFs, log: LogKind) -> Options {
    let mut options = Options::default();
    options.fs = disk.as_fs();
    options.memory = Some(1 << 20);
    options.log = log;
    options.log_file_bytes = 16 << 10;
    options.workers = Some(1);
    options
}

/// A database with a run, a dropped keyspace, and a log to replay.
fn build(log: LogKind) -> CrashFs {
    let disk = CrashFs::new();
    let db = Db::open_with(PATH, options(&disk, log)).expect("a new database");
    let gone = db.keyspace("gone").expect("a keyspace");
    for number in 0..ENTRIES {
        let key = number.to_be_bytes();
        db.default_keyspace().insert_with(key, b"value", Durability::Disk).expect("an insert");
        gone.insert(key, b"value").expect("an insert");
        if number == ENTRIES / 2 {
            db.flush().expect("a flush");
        }
    }
    assert!(db.drop_keyspace("gone").expect("a drop"));
    db.sync().expect("a sync");
    let left = disk.kill_clone();
    drop(gone);
    db.close().expect("a close");
    left
}

/// What a cut at each mutating step of an opening leaves: by kills, and by power cuts.
fn cut_off(disk: &CrashFs, log: LogKind) -> Vec<(String, CrashFs)> {
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let hooked = disk.kill_clone();
    let (taken, source) = (cuts.clone(), hooked.clone());
    hooked.set_hook(Some(Arc::new(move |step, what| {
        let mut cuts = taken.lock().expect("no panic in the hook");
        cuts.push((format!("killed before {what} ({step})"), source.kill_clone()));
        let survivors = [0, 50, 100][step as usize % 3];
        let cut = source.crash_clone(step, survivors);
        cuts.push((format!("power cut before {what} ({step})"), cut));
    })));
    let db = Db::open_with(PATH, options(&hooked, log)).expect("what was cut off opens");
    hooked.set_hook(None);
    db.close().expect("a close");
    let mut cuts = cuts.lock().expect("no panic in the hook");
    std::mem::take(&mut *cuts)
}

fn check(disk: &CrashFs, log: LogKind, story: &str) {
    let db =
        Db::open_with(PATH, options(disk, log)).unwrap_or_else(|error| panic!("{story}: {error}"));
    let entries = db
        .default_keyspace()
        .iter()
        .expect("an iterator")
        .map(|entry| entry.unwrap_or_else(|error| panic!("{story}: {error}")).0);
    let expected = (0..ENTRIES).map(|number| number.to_be_bytes().to_vec());
    assert!(entries.eq(expected), "{story}: entries are missing");
    assert_eq!(db.keyspaces().expect("names"), ["default"], "{story}");
    db.close().unwrap_or_else(|error| panic!("{story}: {error}"));
}

#[test]
fn an_opening_can_be_cut_off_twice_anywhere() {
    for log in [LogKind::Plain, LogKind::Mapped] {
        let disk = build(log);
        let first = cut_off(&disk, log);
        assert!(first.len() > 20, "an opening has only {} steps", first.len() / 2);
        for (story, left) in first {
            for (second, left) in cut_off(&left, log) {
                check(&left, log, &format!("{log:?}: {story}, then {second}"));
            }
        }
    }
}

/// The number of a run file that is gone does not come back: a checkpoint under way or a report of
/// damage that remembers the old file would mean the new one.
#[test]
fn the_number_of_a_file_that_went_is_not_given_out_again() {
    let disk = CrashFs::new();
    let numbers = |disk: &CrashFs| -> Vec<u64> {
        let entries = disk.list("/db/data".as_ref()).expect("a list");
        let number = |name: &str| name.strip_suffix(".run").and_then(|n| n.parse().ok());
        entries.iter().filter_map(|entry| number(&entry.name)).collect()
    };
    let db = Db::open_with(PATH, options(&disk, LogKind::Plain)).expect("a new database");
    let mut greatest = 0;
    for name in ["one", "two", "three"] {
        let space = db.keyspace(name).expect("a keyspace");
        space.insert("k", "v").expect("an insert");
        db.flush().expect("a flush");
        greatest = numbers(&disk).into_iter().fold(greatest, u64::max);
        assert!(db.drop_keyspace(name).expect("a drop"));
        db.flush().expect("a flush");
        db.wait_until_idle().expect("to come to rest");
    }
    assert!(greatest >= 3 && numbers(&disk).is_empty(), "{greatest}, {:?}", numbers(&disk));
    let killed = disk.kill_clone();
    let db = Db::open_with(PATH, options(&killed, LogKind::Plain)).expect("what was killed opens");
    db.insert("k", "v").expect("an insert");
    db.flush().expect("a flush");
    let found = numbers(&killed);
    assert!(found.iter().all(|number| *number > greatest), "{found:?} after {greatest}");
}
