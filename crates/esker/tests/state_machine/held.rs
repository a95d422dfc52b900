//! What happens between two points of a job in the background: each of these was found, or could
//! have been, by the machine with its background held, and stands here in as few steps as it takes.

use esker::internals::sync::Point;
use esker::{Comparator, Db, Durability, KeyspaceOptions, Options};
use esker_testkit::harness::{self, HandClock, small_options};
use esker_testkit::keeper::Keeper;
use esker_testkit::model::{Folded, Op};
use esker_testkit::{CrashFs, Rng};
use std::sync::Arc;

/// A disk and a clock, and what is opened with them.
struct Place {
    disk: CrashFs,
    clock: Arc<HandClock>,
}

/// Holds nobody any more when it is dropped, before the database is, which waits for its threads.
struct Held(Arc<Keeper>);

impl std::ops::Deref for Held {
    type Target = Keeper;

    fn deref(&self) -> &Keeper {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Place {
    fn new() -> Self {
        Self { disk: CrashFs::new(), clock: Arc::default() }
    }

    /// Opens the database, with one worker that can be held.
    fn open(&self, change: impl FnOnce(&mut Options)) -> (Db, Held) {
        let mut options = small_options(&mut Rng::new(1));
        let keeper = Arc::new(Keeper::default());
        options.fs = self.disk.as_fs();
        options.clock = self.clock.clone();
        options.workers = Some(1);
        options.gates = Some(keeper.clone());
        change(&mut options);
        (Db::open_with("/db", options).unwrap(), Held(keeper))
    }

    /// Waits until as few run files are left as there should be.
    fn expect_files(&self, db: &Db, count: usize) {
        let fs = self.disk.as_fs();
        let files = || fs.list("/db/data".as_ref()).unwrap().len();
        // Old states of the tree go when the epoch of their readers ends: after a few attempts.
        for _ in 0..50 {
            db.wait_until_idle().unwrap();
            esker::internals::sync::pin().flush();
            if files() == count {
                return;
            }
        }
        panic!("{} run files are left, not {count}", files());
    }
}

/// Lets the worker go on until it stands at `point`.
fn go_to(keeper: &Keeper, point: Point) {
    while !keeper.stands_at(point) {
        keeper.step(0);
    }
}

fn put_for(db: &Db, key: &str, millis: u64) {
    let op = Op::PutFor(0, key.into(), b"value".to_vec(), millis);
    harness::write(db, &[op], Durability::Process).unwrap();
}

fn folded() -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.comparator = Some(Arc::new(Folded) as Arc<dyn Comparator>);
    options
}

/// Writes and flushes, with the background held, until a compaction is about to begin.
fn until_a_compaction_is_due(db: &Db, keyspace: &esker::Keyspace, keeper: &Keeper) {
    keeper.hold();
    let mut round = 0;
    while !keeper.stands_at(Point::CompactionBegins) {
        for key in 0..20 {
            keyspace.insert(format!("{key:03}"), format!("{round}").repeat(50)).unwrap();
        }
        db.flush().unwrap();
        keeper.settle();
        round += 1;
        assert!(round < 100, "no compaction is ever due");
    }
}

#[test]
fn a_named_snapshot_keeps_what_expired_after_it_for_a_later_one() {
    let place = Place::new();
    let (db, keeper) = place.open(|_| {});
    keeper.hold();
    put_for(&db, "key", 10);
    db.snapshot_named("then").unwrap();
    place.clock.set(20);
    let later = db.snapshot().unwrap();
    keeper.let_go();
    db.flush().unwrap();
    let then = db.open_named_snapshot("then").unwrap();
    assert_eq!(then.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(db.get("key").unwrap(), None);
    drop(later);
}

#[test]
fn a_named_snapshot_keeps_what_expires_while_a_flush_is_under_way() {
    let place = Place::new();
    let (db, keeper) = place.open(|_| {});
    keeper.hold();
    put_for(&db, "key", 10);
    // This seals the memtables, and the flush finds out who reads them.
    db.branch("other").unwrap();
    go_to(&keeper, Point::FlushKnowsReaders);
    db.snapshot_named("then").unwrap();
    place.clock.set(20);
    keeper.let_go();
    db.flush().unwrap();
    let then = db.open_named_snapshot("then").unwrap();
    assert_eq!(then.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn a_dropped_keyspace_stays_dropped_when_its_comparator_comes() {
    let place = Place::new();
    let (db, _) = place.open(|_| {});
    for name in ["dropped", "kept"] {
        db.keyspace_with(name, folded()).unwrap().insert("old", "value").unwrap();
    }
    db.close().unwrap();
    drop(db);
    let (db, keeper) = place.open(|options| options.comparators.clear());
    keeper.hold();
    db.drop_keyspace("dropped").unwrap();
    // It comes with another keyspace, and with one of the name that is free again.
    let kept = db.keyspace_with("kept", folded()).unwrap();
    assert_eq!(db.keyspaces().unwrap(), ["default", "kept"]);
    let again = db.keyspace_with("dropped", folded()).unwrap();
    assert_eq!(again.get("old").unwrap(), None);
    again.insert("new", "value").unwrap();
    keeper.let_go();
    db.flush().unwrap();
    assert_eq!(again.get("new").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(kept.get("old").unwrap().as_deref(), Some(&b"value"[..]));
    drop((again, kept));
    db.close().unwrap();
    drop(db);
    let (db, _) = place.open(|_| {});
    let again = db.keyspace_with("dropped", folded()).unwrap();
    assert_eq!(again.get("new").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(again.get("old").unwrap(), None);
}

#[test]
fn compactions_go_on_when_the_comparator_comes_that_they_lacked() {
    let place = Place::new();
    let (db, keeper) = place.open(|_| {});
    let keyspace = db.keyspace_with("folded", folded()).unwrap();
    until_a_compaction_is_due(&db, &keyspace, &keeper);
    keeper.end();
    drop(keyspace);
    db.close().unwrap();
    drop(db);
    let (db, _) = place.open(|options| options.comparators.clear());
    // The compaction fails because the comparator is missing.
    db.wait_until_idle().unwrap();
    let keyspace = db.keyspace_with("folded", folded()).unwrap();
    db.compact().unwrap();
    let shape = &db.stats().trees.into_iter().find(|tree| tree.keyspace == "folded").unwrap();
    assert_eq!(shape.deltas.len(), 0, "{shape:?}");
    assert!(keyspace.get("000").unwrap().is_some());
}

#[test]
fn what_a_compaction_wrote_for_a_dropped_keyspace_is_given_back() {
    let place = Place::new();
    let (db, keeper) = place.open(|_| {});
    let keyspace = db.keyspace("ant").unwrap();
    until_a_compaction_is_due(&db, &keyspace, &keeper);
    go_to(&keeper, Point::CompactionInstalls);
    db.drop_keyspace("ant").unwrap();
    keeper.let_go();
    db.flush().unwrap();
    place.expect_files(&db, 0);
}

#[test]
fn what_a_compaction_wrote_for_a_dropped_branch_is_given_back() {
    let place = Place::new();
    let (db, keeper) = place.open(|_| {});
    let branch = db.branch("branch").unwrap();
    let keyspace = branch.keyspace("default").unwrap();
    until_a_compaction_is_due(&branch, &keyspace, &keeper);
    go_to(&keeper, Point::CompactionInstalls);
    assert!(db.drop_branch("branch").unwrap());
    keeper.let_go();
    place.expect_files(&db, 0);
}

#[test]
fn what_a_flush_wrote_for_a_branch_that_went_is_given_back() {
    let place = Place::new();
    let (db, keeper) = place.open(|_| {});
    let branch = db.branch("branch").unwrap();
    keeper.hold();
    for key in 0..40 {
        branch.insert(format!("{key:03}"), "value".repeat(100)).unwrap();
    }
    go_to(&keeper, Point::FlushInstalls);
    assert!(db.drop_branch("branch").unwrap());
    keeper.let_go();
    db.flush().unwrap();
    place.expect_files(&db, 0);
}

#[test]
fn a_flush_or_compaction_that_leaves_nothing_leaves_no_file() {
    let place = Place::new();
    let (db, _keeper) = place.open(|_| {});
    db.insert("key", "value").unwrap();
    db.remove("key").unwrap();
    db.flush().unwrap();
    place.expect_files(&db, 0);
    db.insert("key", "value").unwrap();
    db.flush().unwrap();
    db.remove("key").unwrap();
    db.compact().unwrap();
    place.expect_files(&db, 0);
}
