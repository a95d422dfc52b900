//! What stands on disk of the log when nobody writes: one small file. Tests count bytes.

use super::{Place, as_after_a_crash, fill, key, keys, small, value};
use esker::internals::options::SmallRest;
use esker::{Db, Durability, ErrorKind, LogKind, Options};
use std::time::Duration;

/// The bytes of a log at rest in a database with the usual options.
const AT_REST: u64 = 256 << 10;
const SMALL: u32 = 16 << 10;

/// The log files on disk: how many there are, and their bytes.
fn log_files(place: &Place) -> (usize, u64) {
    let entries = std::fs::read_dir(place.path().join("wal")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let logs = paths.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    // A file may go while this looks.
    let sizes = logs.filter_map(|path| std::fs::metadata(path).ok());
    sizes.fold((0, 0), |(files, bytes), metadata| (files + 1, bytes + metadata.len()))
}

/// Memtables that hold all that a test writes before it flushes, so that the log grows to large files, and
/// the usual rest.
fn roomy(log: LogKind) -> Options {
    let mut options = Options::default();
    options.memory = Some(256 << 20);
    options.memtable_bytes = Some(96 << 20);
    options.log = log;
    options
}

/// A log that rests at the first look after a write, with a file of 16 KiB.
fn restless(workers: usize) -> Options {
    let mut options = small();
    options.workers = Some(workers);
    options.small_rest = Some(SmallRest { after: Duration::ZERO, file_bytes: SMALL });
    options
}

fn wait_for_rest(place: &Place) {
    while log_files(place) != (1, u64::from(SMALL)) {
        std::thread::yield_now();
    }
}

fn fill_large(db: &Db, round: usize) {
    for number in 0..3000 {
        db.insert(key(number), vec![round as u8; 10_000]).unwrap();
    }
}

#[test]
fn compact_leaves_one_small_log_file() {
    for log in [LogKind::Mapped, LogKind::Plain] {
        let place = Place::new();
        let db = Db::open_with(place.path(), roomy(log)).unwrap();
        fill_large(&db, 0);
        db.flush().unwrap();
        (0..2).for_each(|round| fill_large(&db, round));
        let before = db.stats();
        assert!(before.log_file_bytes > 32 << 20, "{}", before.log_file_bytes);
        assert!(before.log_needed_bytes > 0);
        db.compact().unwrap();
        assert_eq!(log_files(&place), (1, AT_REST));
        let stats = db.stats();
        assert_eq!((stats.log_file_bytes, stats.log_spare_bytes), (AT_REST, 0));
        assert_eq!(stats.log_needed_bytes, 0);
        // What is kept for the flush of full memtables is given back, too.
        let reserve = std::fs::metadata(place.path().join("wal/reserve")).unwrap();
        assert!(reserve.len() < 4 << 20, "{} bytes of reserve", reserve.len());
        // Where the log is as small as that, nothing is written for it.
        let written = stats.written;
        db.compact().unwrap();
        assert_eq!(db.stats().written.manifest, written.manifest);
        // A keyspace alone does the same for the log of all.
        let other = db.keyspace("other").unwrap();
        fill_large(&db, 2);
        other.compact().unwrap();
        assert_eq!(log_files(&place), (1, AT_REST));
        // The copy is made while nothing changes the files.
        db.wait_until_idle().unwrap();
        db.insert("after", "all").unwrap();
        let dead = as_after_a_crash(&place);
        let again = Db::open_with(dead.path(), roomy(log)).unwrap();
        assert_eq!(again.get("after").unwrap().unwrap(), b"all");
        assert_eq!(again.iter().unwrap().count(), 3001);
        assert!(db.verify().unwrap().problems.is_empty());
    }
}

#[test]
fn close_leaves_one_small_log_file() {
    let place = Place::new();
    let db = Db::open_with(place.path(), roomy(LogKind::Auto)).unwrap();
    fill_large(&db, 0);
    db.close().unwrap();
    assert_eq!(log_files(&place), (1, AT_REST));
    let db = Db::open_with(place.path(), roomy(LogKind::Auto)).unwrap();
    assert_eq!(db.iter().unwrap().count(), 3000);
    assert!(log_files(&place).1 <= 2 * AT_REST);
}

#[test]
fn a_pause_leaves_one_small_log_file_and_flushes_what_it_held() {
    for workers in [1, 2] {
        let place = Place::new();
        let db = Db::open_with(place.path(), restless(workers)).unwrap();
        for round in 0..3 {
            fill(&db, 0..1000, round);
            wait_for_rest(&place);
            db.wait_until_idle().unwrap();
            // A few writes after that stay in the small file.
            db.insert("few", round.to_string()).unwrap();
            let dead = as_after_a_crash(&place);
            let again = Db::open_with(dead.path(), restless(workers)).unwrap();
            assert_eq!(again.get("few").unwrap().unwrap(), round.to_string().into_bytes());
            assert_eq!(again.get(key(999)).unwrap().unwrap(), value(999, round).into_bytes());
            assert_eq!(again.iter().unwrap().count(), 1001);
        }
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
    }
}

/// Memory that memtables and blocks have left waits for its next user while there are writes, and goes back
/// to the system after a pause.
#[test]
fn a_pause_gives_memory_back() {
    let place = Place::new();
    let db = Db::open_with(place.path(), roomy(LogKind::Mapped)).unwrap();
    (0..3).for_each(|round| fill_large(&db, round));
    db.flush().unwrap();
    // Between a state of the database and the pool, memory is in no account for a moment.
    let mut looks = 0;
    while looks < 1000 {
        let memory = db.stats().memory;
        let is_little = memory.memtables + memory.held < 2 << 20 && memory.cache < 48 << 20;
        looks = if is_little { looks + 1 } else { 0 };
        std::thread::yield_now();
    }
    assert_eq!(db.get(key(7)).unwrap().unwrap(), vec![2; 10_000]);
}

/// What a log at rest holds is not worth a flush, whatever the pauses between the writes.
#[test]
fn a_few_writes_after_a_rest_are_not_flushed() {
    let place = Place::new();
    let db = Db::open_with(place.path(), restless(2)).unwrap();
    fill(&db, 0..1000, 0);
    // It fits no small file, so the log rests with one in which nothing is yet.
    db.insert("large", vec![7; 4 * SMALL as usize]).unwrap();
    wait_for_rest(&place);
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let flushes = db.stats().flushes;
    for number in 0..20 {
        db.insert(key(number), "little").unwrap();
        db.wait_until_idle().unwrap();
    }
    assert_eq!(db.stats().flushes, flushes);
    assert_eq!(log_files(&place), (1, u64::from(SMALL)));
}

#[test]
fn readers_transactions_branches_and_checkpoints_do_not_notice_a_rest() {
    let place = Place::new();
    let mut options = restless(2);
    // What was flushed is kept for the transactions.
    options.memtable_bytes = Some(1 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    let space = db.default_keyspace();
    fill(&db, 0..500, 0);
    let branch = db.branch("other").unwrap();
    branch.insert("of the branch", "v").unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut iter = db.iter().unwrap();
    assert_eq!(iter.next().unwrap().unwrap().0, key(0).into_bytes());
    let [unchanged, changed] = [key(7), key(8)].map(|key| {
        let transaction = db.begin().unwrap();
        transaction.get(&space, &key).unwrap();
        transaction.insert(&space, "copy", &key).unwrap();
        transaction
    });
    db.insert(key(8), "later").unwrap();
    fill(&db, 500..1500, 0);
    wait_for_rest(&place);
    assert_eq!(keys(iter), (1..500).map(key).collect::<Vec<_>>());
    assert_eq!(snapshot.get(&space, key(8)).unwrap().unwrap(), value(8, 0).into_bytes());
    assert_eq!(changed.commit().unwrap_err().kind(), ErrorKind::Conflict);
    unchanged.commit().unwrap();
    let copy = Place::new();
    db.checkpoint(copy.path()).unwrap();
    db.wait_until_idle().unwrap();
    for place in [copy, as_after_a_crash(&place)] {
        let db = Db::open_with(place.path(), restless(1)).unwrap();
        assert_eq!(db.get("copy").unwrap().unwrap(), key(7).into_bytes());
        let branch = db.open_branch("other").unwrap();
        assert_eq!(branch.get("of the branch").unwrap().unwrap(), b"v");
        assert_eq!(branch.iter().unwrap().count(), 501);
    }
}

#[test]
fn what_no_log_holds_is_durable_after_a_rest() {
    let place = Place::new();
    let db = Db::open_with(place.path(), restless(1)).unwrap();
    db.default_keyspace().insert_with("unlogged", "v", Durability::Buffered).unwrap();
    fill(&db, 0..1000, 0);
    wait_for_rest(&place);
    db.wait_until_idle().unwrap();
    let dead = as_after_a_crash(&place);
    let again = Db::open_with(dead.path(), restless(1)).unwrap();
    assert_eq!(again.get("unlogged").unwrap().unwrap(), b"v");
}
