//! Long calls that the program ends.

use super::{Place, fill, fresh, key, small};
use esker::internals::sync::Point;
use esker::{Db, Error, Keyspace};
use esker_testkit::barriers::Barriers;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Two keyspaces with runs that a compaction would merge, and one worker, which begins no compaction
/// before it is let go.
fn two_keyspaces() -> (Place, Db, Barriers, [Keyspace; 2]) {
    let (place, mut options) = (Place::new(), small());
    options.workers = Some(1);
    let (db, barriers) = Barriers::open(place.path(), options).unwrap();
    let keyspaces = ["first", "second"].map(|name| db.keyspace(name).unwrap());
    for round in 0..2 {
        for (keyspace, number) in keyspaces.iter().flat_map(|one| (0..40).map(move |n| (one, n))) {
            keyspace.insert(key(number), round.to_string()).unwrap();
        }
        db.flush().unwrap();
    }
    assert!(["first", "second"].iter().all(|name| has_deltas(&db, name)));
    barriers.close(&[Point::CompactionBegins]);
    (place, db, barriers, keyspaces)
}

/// Wants the call to end when it has been asked so many times.
fn after(times: usize) -> impl Fn() -> bool {
    let asked = Cell::new(0);
    move || asked.replace(asked.get() + 1) >= times
}

fn has_deltas(db: &Db, keyspace: &str) -> bool {
    let trees = db.stats().trees;
    !trees.iter().find(|tree| tree.keyspace == keyspace).unwrap().deltas.is_empty()
}

fn holds_all(keyspace: &Keyspace) {
    let entries: Vec<_> = keyspace.iter().unwrap().map(Result::unwrap).collect();
    assert!(entries.len() == 40 && entries.iter().all(|(_, value)| **value == *b"1"));
}

#[test]
fn what_an_interrupted_compaction_had_not_begun_is_not_compacted() {
    let (_place, db, barriers, [first, second]) = two_keyspaces();
    let compacting = barriers.call(move || first.compact().unwrap());
    compacting.wait_for(Point::CompactionBegins);
    // The only worker is held, so this waits until it is interrupted.
    let compacted = second.compact_range_until::<&[u8]>(.., after(4));
    assert!(matches!(compacted, Err(Error::Interrupted)), "{compacted:?}");
    barriers.let_go(&[Point::CompactionBegins]);
    compacting.join();
    db.wait_until_idle().unwrap();
    assert!(!has_deltas(&db, "first") && has_deltas(&db, "second"));
    holds_all(&second);
    // Nothing of it is left that a later one would trip over.
    second.compact_range_until::<&[u8]>(.., || false).unwrap();
    assert!(!has_deltas(&db, "second"));
    holds_all(&second);
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn what_an_interrupted_compaction_had_begun_ends_in_the_background() {
    let (place, db, barriers, [first, second]) = two_keyspaces();
    let ended = Arc::new(AtomicBool::new(false));
    let compacting = barriers.call({
        let (db, ended) = (db.clone(), ended.clone());
        move || db.compact_until(|| ended.load(Ordering::Relaxed))
    });
    compacting.wait_for(Point::CompactionBegins);
    ended.store(true, Ordering::Relaxed);
    // It returns while the worker is held.
    let compacted = compacting.join();
    assert!(matches!(compacted, Err(Error::Interrupted)), "{compacted:?}");
    holds_all(&first);
    barriers.let_go(&[Point::CompactionBegins]);
    db.wait_until_idle().unwrap();
    assert!(!has_deltas(&db, "first") && !has_deltas(&db, "second"));
    drop((first, second));
    db.close().unwrap();
    let db = Db::open(place.path()).unwrap();
    holds_all(&db.keyspace("first").unwrap());
    holds_all(&db.keyspace("second").unwrap());
}

/// Nobody would notice if deltas were left: a compaction looks for them again.
#[test]
fn one_caller_that_gives_up_takes_nothing_from_another() {
    let (_place, db, barriers, [first, second]) = two_keyspaces();
    barriers.let_go(&[Point::CompactionBegins]);
    let snapshot = db.snapshot().unwrap();
    (0..40).for_each(|number| second.insert(key(number), "1").unwrap());
    second.compact().unwrap();
    drop(snapshot);
    let entries = || {
        let trees = db.stats().trees;
        trees.iter().find(|tree| tree.keyspace == "second").unwrap().base.entries
    };
    assert_eq!(entries(), 80, "the snapshot has seen a half of them");
    barriers.close(&[Point::CompactionBegins]);
    // The only worker is held, and nobody waits for it.
    let begun = || barriers.stands_at(Point::CompactionBegins);
    let compacted = first.compact_range_until::<&[u8]>(.., begun);
    assert!(matches!(compacted, Err(Error::Interrupted)), "{compacted:?}");
    barriers.close(&[Point::CallerWaits]);
    let patient = barriers.call({
        let second = second.clone();
        move || second.compact().unwrap()
    });
    patient.wait_for(Point::CallerWaits);
    barriers.let_go(&[Point::CallerWaits]);
    let compacted = second.compact_range_until::<&[u8]>(.., after(4));
    assert!(matches!(compacted, Err(Error::Interrupted)), "{compacted:?}");
    barriers.let_go(&[Point::CompactionBegins]);
    patient.join();
    assert_eq!(entries(), 40);
    holds_all(&second);
}

#[test]
fn an_interrupted_flush_goes_on() {
    let place = Place::new();
    let (db, barriers) = Barriers::open(place.path(), small()).unwrap();
    fill(&db, 0..50, 1);
    barriers.close(&[Point::FlushBegins]);
    assert!(matches!(db.flush_until(|| true), Err(Error::Interrupted)));
    // A compaction begins with a flush, and nothing is requested before it.
    assert!(matches!(db.compact_until(|| true), Err(Error::Interrupted)));
    assert_eq!(db.stats().flushes, 0);
    barriers.let_go(&[Point::FlushBegins]);
    db.wait_until_idle().unwrap();
    assert_eq!(db.stats().flushes, 1, "it was begun");
    db.flush_until(|| true).unwrap();
    assert_eq!(db.iter().unwrap().count(), 50);
}

#[test]
fn an_interrupted_search_for_damage_reports_what_it_read() {
    let (_place, db) = fresh();
    for round in 0..4 {
        fill(&db, 1000 * round..1000 * (round + 1), 1);
        db.flush().unwrap();
    }
    let whole = db.verify_until(|| false).unwrap();
    assert!(!whole.interrupted && whole.entries >= 4000, "{whole:?}");
    let part = db.verify_until(after(2)).unwrap();
    assert!(part.interrupted && part.problems.is_empty(), "{part:?}");
    assert!(part.files > 0 && part.entries > 0 && part.entries < whole.entries, "{part:?}");
}
