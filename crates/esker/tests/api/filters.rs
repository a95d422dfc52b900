//! Compaction filters.

use crate::{Place, keys, small, text};
use esker::{Append, CompactionFilter, Db, Decision, ErrorKind, KeyspaceOptions, Options};
use esker_testkit::harness::HandClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Removes values that begin with `-`, and puts the rest of those that begin with `+` in their
/// place.
#[derive(Default)]
struct Tidy {
    asked: AtomicU64,
    panics: AtomicBool,
}

impl CompactionFilter for Tidy {
    fn name(&self) -> &str {
        "tidy"
    }

    fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
        assert!(!self.panics.load(Ordering::SeqCst), "on purpose");
        self.asked.fetch_add(1, Ordering::SeqCst);
        match value {
            [b'-', ..] => Decision::Remove,
            [b'+', rest @ ..] => Decision::Change(rest.to_vec()),
            _ => Decision::Keep,
        }
    }
}

fn open() -> (Place, Db, Arc<Tidy>, Options) {
    let filter = Arc::new(Tidy::default());
    let mut options = small();
    options.compaction_filters.push(filter.clone());
    let place = Place::new();
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    (place, db, filter, options)
}

#[test]
fn compact_asks_about_everything_once_for_each_call() {
    let (_place, db, filter, _) = open();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::filtered("tidy")).unwrap();
    for number in 0..2000 {
        let mark = ["", "-", "+"][number % 3];
        keyspace.insert(format!("{number:05}"), format!("{mark}{number}")).unwrap();
    }
    db.insert("other", "-").unwrap();
    db.flush().unwrap();
    // A flush does not ask the filter; compactions in the background may have asked it.
    db.wait_until_idle().unwrap();
    keyspace.compact().unwrap();
    assert_eq!(keyspace.iter().unwrap().count(), 1333);
    assert_eq!(keyspace.get("00001").unwrap(), None);
    assert_eq!(text(keyspace.get("00002").unwrap()).as_deref(), Some("2"));
    assert_eq!(text(db.get("other").unwrap()).as_deref(), Some("-"));
    assert_eq!(db.stats().entries_filtered, 1333);
    let asked = filter.asked.load(Ordering::SeqCst);
    keyspace.compact().unwrap();
    assert_eq!(filter.asked.load(Ordering::SeqCst) - asked, 1333);
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn what_a_snapshot_sees_is_left_alone() {
    let (_place, db, _, _) = open();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::filtered("tidy")).unwrap();
    keyspace.insert("a", "-old").unwrap();
    keyspace.insert("b", "+old").unwrap();
    let snapshot = db.snapshot().unwrap();
    keyspace.insert("b", "-new").unwrap();
    keyspace.insert("c", "+new").unwrap();
    keyspace.insert_with_ttl("d", "+new", Duration::from_secs(3600)).unwrap();
    keyspace.compact().unwrap();
    assert_eq!(keys(snapshot.iter(&keyspace).unwrap()), ["a", "b"]);
    assert_eq!(text(snapshot.get(&keyspace, "b").unwrap()).as_deref(), Some("+old"));
    assert_eq!(keys(keyspace.iter().unwrap()), ["a", "c", "d"]);
    assert_eq!(text(keyspace.get("a").unwrap()).as_deref(), Some("-old"));
    assert_eq!(text(keyspace.get("c").unwrap()).as_deref(), Some("new"));
    assert_eq!(text(keyspace.get("d").unwrap()).as_deref(), Some("new"));
    drop(snapshot);
    keyspace.compact().unwrap();
    assert_eq!(keys(keyspace.iter().unwrap()), ["c", "d"]);
}

/// Takes a snapshot in the middle of a compaction, when it is first asked.
struct Interfering {
    db: parking_lot::Mutex<Option<Db>>,
    taken: parking_lot::Mutex<Option<esker::Snapshot>>,
}

impl CompactionFilter for Interfering {
    fn name(&self) -> &str {
        "interfering"
    }

    fn filter(&self, _: &[u8], _: &[u8]) -> Decision {
        if let Some(db) = self.db.lock().take() {
            *self.taken.lock() = Some(db.snapshot().unwrap());
        }
        Decision::Remove
    }
}

#[test]
fn a_snapshot_that_is_made_during_a_compaction_keeps_what_it_sees() {
    let filter = Arc::new(Interfering { db: Default::default(), taken: Default::default() });
    let mut options = small();
    options.compaction_filters.push(filter.clone());
    let place = Place::new();
    let db = Db::open_with(place.path(), options).unwrap();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::filtered("interfering")).unwrap();
    keyspace.insert("a", "1").unwrap();
    keyspace.insert("b", "2").unwrap();
    *filter.db.lock() = Some(db.clone());
    keyspace.compact().unwrap();
    let snapshot = filter.taken.lock().take().unwrap();
    assert_eq!(keys(snapshot.iter(&keyspace).unwrap()), ["a", "b"]);
    assert_eq!(snapshot.get(&keyspace, "a").unwrap(), Some(b"1".to_vec()));
    drop(snapshot);
    keyspace.compact().unwrap();
    assert_eq!(keyspace.iter().unwrap().count(), 0);
}

#[test]
fn a_filter_that_panics_is_contained_and_reported() {
    let (place, db, filter, options) = open();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::filtered("tidy")).unwrap();
    keyspace.insert("a", "-").unwrap();
    keyspace.insert("b", "stays").unwrap();
    filter.panics.store(true, Ordering::SeqCst);
    assert_eq!(keyspace.compact().unwrap_err().kind(), ErrorKind::UserCodePanicked);
    // Compactions go on without it, and nothing is lost.
    filter.panics.store(false, Ordering::SeqCst);
    keyspace.insert("c", "-").unwrap();
    assert_eq!(keyspace.compact().unwrap_err().kind(), ErrorKind::UserCodePanicked);
    assert_eq!(keys(keyspace.iter().unwrap()), ["a", "b", "c"]);
    db.compact().unwrap_err();
    db.insert("other", "1").unwrap();
    drop((keyspace, db));
    let db = Db::open_with(place.path(), options).unwrap();
    db.compact().unwrap();
    assert_eq!(keys(db.keyspace("k").unwrap().iter().unwrap()), ["b"]);
}

#[test]
fn a_filter_that_is_not_given_is_not_asked() {
    let (place, db, _, options) = open();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::filtered("tidy")).unwrap();
    keyspace.insert("a", "-").unwrap();
    let unknown = db.keyspace_with("k", KeyspaceOptions::filtered("unknown")).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::InvalidArgument);
    drop((keyspace, db));
    let db = place.open();
    db.compact().unwrap();
    assert_eq!(db.keyspace("k").unwrap().iter().unwrap().count(), 1);
    drop(db);
    let db = Db::open_with(place.path(), options).unwrap();
    db.compact().unwrap();
    assert_eq!(db.keyspace("k").unwrap().iter().unwrap().count(), 0);
}

#[test]
fn a_value_is_not_judged_under_operands_that_change_it() {
    let (filter, clock) = (Arc::new(Tidy::default()), Arc::new(HandClock::default()));
    let mut options = small();
    options.compaction_filters.push(filter.clone());
    options.clock = clock.clone();
    clock.set(1_000);
    let place = Place::new();
    let db = Db::open_with(place.path(), options).unwrap();
    let mut wanted = KeyspaceOptions::merging(Append::new("").name());
    wanted.compaction_filter = Some("tidy".to_owned());
    wanted.ttl = Some(Duration::from_millis(100));
    let list = db.keyspace_with("list", wanted).unwrap();
    list.insert("k", "-0").unwrap();
    // It expires with the value, so a compaction applies it.
    list.merge("k", "1").unwrap();
    // It expires later, so it stays above the result.
    clock.set(1_050);
    list.merge("k", "2").unwrap();
    db.compact().unwrap();
    assert_eq!(text(list.get("k").unwrap()).as_deref(), Some("-012"));
    assert_eq!(filter.asked.load(Ordering::SeqCst), 0);
    // Once the value has expired, what is left of the operands is the newest value.
    clock.set(1_120);
    list.insert("l", "-").unwrap();
    db.compact().unwrap();
    assert_eq!(text(list.get("k").unwrap()).as_deref(), Some("2"));
    assert_eq!((list.get("l").unwrap(), filter.asked.load(Ordering::SeqCst) > 0), (None, true));
}
