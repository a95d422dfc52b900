//! Tests of gets that neither read nor wait.

use super::*;
use crate::lookup::doubt;
use crate::{Append, Comparator, Db, KeyspaceOptions};
use std::sync::Arc;

/// What it knows; `None`: it does not. A call that is to be timed says so whatever memory has, until one was; those of
/// an empty keyspace read nothing.
fn known(db: &Db, keyspace: &Keyspace, key: &str) -> Option<Option<Vec<u8>>> {
    let empty = db.keyspace("empty").unwrap();
    while db.core().counters.untimed(Counter::Gets).is_none() {
        assert_eq!(empty.get("any").unwrap(), None);
        // These absent keys are no reason to ask the filters of bases.
        doubt::note(true);
    }
    match get_cached(keyspace, key.as_bytes(), <[u8]>::to_vec).unwrap() {
        Cached::Known(found) => Some(found),
        Cached::Unknown => None,
    }
}

fn lookups(db: &Db) -> (u64, u64) {
    let stats = db.stats();
    let filters = stats.filter_absent + stats.filter_false_positives + stats.filter_found;
    (stats.gets, filters)
}

#[test]
fn what_is_in_memory_is_known_and_counted_and_the_rest_is_neither() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let long = "long".repeat(500);
    let db = Db::open(&path).unwrap();
    let all = db.default_keyspace();
    all.insert("a", "1").unwrap();
    all.insert("b", &long).unwrap();
    all.insert("d", "gone").unwrap();
    all.remove("d").unwrap();
    for _ in 0..2 {
        assert_eq!(known(&db, &all, "a"), Some(Some(b"1".to_vec())));
        assert_eq!(known(&db, &all, "b"), Some(Some(long.clone().into())));
        assert_eq!((known(&db, &all, "c"), known(&db, &all, "d")), (Some(None), Some(None)));
        db.flush().unwrap();
        for key in ["a", "b", "c", "d"] {
            all.get(key).unwrap();
        }
    }
    drop((all, db));

    let db = Db::open(&path).unwrap();
    let all = db.default_keyspace();
    // A newer run, whose filter a search asks first.
    all.insert("a", "2").unwrap();
    db.flush().unwrap();
    known(&db, &db.keyspace("empty").unwrap(), "any");
    let before = lookups(&db);
    assert_eq!(known(&db, &all, "b"), None, "its block was not read yet");
    assert_eq!(lookups(&db), before);
    assert_eq!(all.get("b").unwrap().unwrap(), long.as_bytes());
    known(&db, &db.keyspace("empty").unwrap(), "any");
    let (first, second) = (lookups(&db), all.get("b").unwrap());
    let between = lookups(&db);
    known(&db, &db.keyspace("empty").unwrap(), "any");
    let third = lookups(&db);
    assert_eq!(known(&db, &all, "b"), Some(second));
    let last = lookups(&db);
    assert_eq!((last.0 - third.0, last.1 - third.1), (between.0 - first.0, between.1 - first.1));
    assert_eq!(last.1 - third.1, 1, "the filter of the newer run was asked");
    db.close().unwrap();
    assert!(get_cached(&all, b"b", |_| ()).is_err(), "the database is closed");
}

#[test]
fn what_needs_more_than_memory_is_not_known() {
    struct Bytes;
    impl Comparator for Bytes {
        fn name(&self) -> &str {
            "bytes"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            a.cmp(b)
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let list = KeyspaceOptions::merging(Append::new(",").name());
    let list = db.keyspace_with("list", list).unwrap();
    list.insert("k", "a").unwrap();
    list.merge("k", "b").unwrap();
    let custom = db.keyspace_with("custom", KeyspaceOptions::ordered(Arc::new(Bytes))).unwrap();
    custom.insert("k", "a").unwrap();
    for keyspace in [&list, &custom] {
        assert!(keyspace.get("k").unwrap().is_some());
        assert_eq!(known(&db, keyspace, "k"), None);
    }
    list.insert("plain", "a").unwrap();
    assert_eq!(known(&db, &list, "plain"), Some(Some(b"a".to_vec())));
    db.drop_keyspace("list").unwrap();
    assert!(get_cached(&list, b"plain", |_| ()).is_err());
}
