//! An ingestion is cut off at every step: its entries are all there or none, in all keyspaces, and what is
//! written afterwards is newer.

use super::cuts::{PATH, World, cuts_of, key, world};
use super::separating as options;
use esker::fs::OpenMode;
use esker::internals::sync::Point;
use esker::{Db, Error, Options, Recovery};
use esker_testkit::CrashFs;
use esker_testkit::barriers::Barriers;
use std::path::Path;

const KEYS: usize = 400;

fn sizes(disk: &CrashFs, seed: usize) -> Options {
    let mut options = options(disk.as_fs());
    options.memory = Some(32 << 20);
    options.memtable_bytes = Some([1 << 20, 32 << 10][seed % 2]);
    options.partition_bytes = Some(16 << 10);
    options.segment_bytes = 4 << 10;
    options
}

/// Some of it in runs, some in memtables; `over`: also where entries are ingested.
fn build(db: &Db, over: bool) {
    let words = db.keyspace("words").unwrap();
    for round in 0..3 {
        for number in (0..KEYS).filter(|number| over || number % 4 == 0 && *number < 100) {
            db.insert(key(number), format!("{round} {number}")).unwrap();
            words.insert(key(number), format!("{round} {number} {}", ".".repeat(40))).unwrap();
        }
        match round {
            0 => db.flush().unwrap(),
            1 => drop(db.branch("one").unwrap()),
            _ => {}
        }
    }
    db.sync().unwrap();
}

fn ingest(db: &Db) -> esker::Result<()> {
    let (default, words) = (db.default_keyspace(), db.keyspace("words")?);
    let mut ingestion = db.ingest()?;
    ingestion.remove_range(&words, key(20)..key(60))?;
    for number in 100..KEYS {
        ingestion.insert(&words, key(number), format!("ingested {number} {}", "-".repeat(40)))?;
        ingestion.insert(&default, key(number), "ingested")?;
    }
    ingestion.remove_range(&default, key(90)..key(200))?;
    ingestion.remove(&default, key(KEYS))?;
    let in_pieces = b"in pieces ".repeat(500);
    ingestion.insert_reader(&default, key(KEYS + 1), &in_pieces[..])?;
    ingestion.insert_reader(&default, key(KEYS + 2), &in_pieces[..4000])?;
    let mut other = db.ingest()?;
    other.remove_range(&default, ..key(10))?;
    other.insert(&default, key(0), "ingested")?;
    ingestion.join(other)?;
    ingestion.commit()
}

/// Opens what a cut left, and goes on: later writes are newer, also after a compaction.
fn go_on(story: &str, cut: &CrashFs, seed: usize, allowed: &[&World]) {
    let fail = |error: Error| -> ! { panic!("{story}: {error}") };
    let db = Db::open_with(PATH, sizes(cut, seed)).unwrap_or_else(|error| fail(error));
    let found = world(&db);
    assert!(allowed.contains(&&found), "{story}");
    for (number, compacts) in [(150, false), (160, true), (170, true)] {
        db.insert(key(number), "later").unwrap_or_else(|error| fail(error));
        assert_eq!(db.get(key(number)).unwrap().unwrap(), b"later", "{story}");
        if compacts {
            db.compact().unwrap_or_else(|error| fail(error));
            assert_eq!(db.get(key(number)).unwrap().unwrap(), b"later", "{story}");
        }
    }
    ingest(&db).unwrap_or_else(|error| fail(error));
    assert_eq!(db.get(key(150)).unwrap().unwrap(), b"ingested", "{story}");
    let problems = db.verify().unwrap().problems;
    assert!(problems.is_empty(), "{story}: {problems:?}");
    db.close().unwrap_or_else(|error| fail(error));
}

#[test]
fn an_ingestion_can_be_cut_off_anywhere() {
    for (seed, over) in [(0, false), (1, true), (2, true)] {
        let disk = CrashFs::new();
        let db = Db::open_with(PATH, sizes(&disk, seed)).unwrap();
        build(&db, over);
        let before = world(&db);
        let cuts = cuts_of(&disk, || ingest(&db).unwrap());
        let after = world(&db);
        assert!(before != after);
        for (number, (story, cut)) in cuts.into_iter().enumerate() {
            go_on(&story, &cut, number, &[&before, &after]);
        }
        // What was committed survives whatever follows.
        let cuts = cuts_of(&disk, || db.flush().unwrap());
        for (number, (story, cut)) in cuts.into_iter().enumerate() {
            go_on(&story, &cut, number, &[&after]);
        }
        for (story, cut) in
            [("killed", disk.kill_clone()), ("power cut", disk.crash_clone(seed as u64, 0))]
        {
            go_on(story, &cut, seed, &[&after]);
        }
        db.close().unwrap();
    }
}

/// On a full device nothing of an ingestion stays, and everything else goes on.
#[test]
fn an_ingestion_that_finds_no_space_leaves_nothing() {
    let disk = CrashFs::new();
    let db = Db::open_with(PATH, sizes(&disk, 0)).unwrap();
    build(&db, true);
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let (before, used) = (world(&db), disk.used());
    let mut fits = 0;
    for room in (0..400).step_by(8) {
        disk.set_capacity(Some(disk.used() + (room << 10)));
        match ingest(&db) {
            Ok(()) => fits += 1,
            Err(Error::DiskFull { .. }) => {
                assert_eq!(fits, 0);
                assert!(world(&db) == before, "{room} KiB are free");
            }
            Err(error) => panic!("{room} KiB are free: {error}"),
        }
        disk.set_capacity(None);
        if fits > 0 {
            break;
        }
    }
    assert_eq!(fits, 1);
    assert_eq!(db.get(key(150)).unwrap().unwrap(), b"ingested");
    db.compact().unwrap();
    assert!(disk.used() < 4 * used + (1 << 20));
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
}

/// If the log before an ingestion is lost, later writes would count as older than it.
#[test]
fn a_log_that_ends_before_an_ingestion_is_refused() {
    let disk = CrashFs::new();
    let db = Db::open_with(PATH, sizes(&disk, 0)).unwrap();
    db.keyspace("words").unwrap();
    db.flush().unwrap();
    db.insert("z", "in the log").unwrap();
    ingest(&db).unwrap();
    let dead = disk.kill_clone();
    let fs = dead.as_fs();
    let directory = Path::new(PATH).join("wal");
    for entry in fs.list(&directory).unwrap() {
        let log = directory.join(&entry.name);
        let file = fs.open(&log, OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        if let Some(at) = bytes.windows(10).position(|bytes| bytes == b"in the log") {
            dead.flip_bit(&log, 8 * at as u64).unwrap();
        }
    }
    for recovery in [Recovery::Refuse, Recovery::KeepPrefix] {
        let mut options = sizes(&dead, 0);
        options.recovery = recovery;
        let refused = Db::open_with(PATH, options).unwrap_err();
        assert!(matches!(refused, Error::Corruption(_)), "{refused}");
    }
    db.close().unwrap();
}

/// Otherwise the log of the checkpoint would begin before what was ingested, and what is written there
/// would be older.
#[test]
fn a_checkpoint_is_made_behind_what_is_ingested_meanwhile() {
    let disk = CrashFs::new();
    let (db, barriers) = Barriers::open(PATH, sizes(&disk, 0)).unwrap();
    build(&db, true);
    let ingesting = db.clone();
    barriers.at(Point::CheckpointFlushed, move |_| ingest(&ingesting).unwrap());
    db.checkpoint("/copy").unwrap();
    assert_eq!(barriers.done(Point::CheckpointFlushed), 1);
    let copy = Db::open_with("/copy", sizes(&disk, 0)).unwrap();
    assert!(world(&copy) == world(&db));
    copy.insert(key(150), "later").unwrap();
    copy.compact().unwrap();
    assert_eq!(copy.get(key(150)).unwrap().unwrap(), b"later");
    assert!(copy.verify().unwrap().problems.is_empty());
    copy.close().unwrap();
    db.close().unwrap();
}
