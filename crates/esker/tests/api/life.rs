use super::{Place, as_after_a_crash, fill, fresh, small, text};
use esker::{Db, ErrorKind, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

/// Every file and folder below a folder: when it was last changed, and what a file holds.
fn contents(path: &Path) -> BTreeMap<std::path::PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let changed = std::fs::metadata(&path).unwrap().modified().unwrap();
        if path.is_dir() {
            found.extend(contents(&path));
            found.insert(path, (changed, Vec::new()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, (changed, bytes));
        }
    }
    found
}

#[test]
fn open_makes_a_database_where_there_is_none() {
    let place = Place::new();
    let db = Db::open(place.path()).unwrap();
    assert_eq!(db.path(), place.path());
    db.insert("k", "v").unwrap();
    db.close().unwrap();
    let db = Db::open(place.path()).unwrap();
    assert_eq!(text(db.get("k").unwrap()).as_deref(), Some("v"));
}

#[test]
fn open_uses_an_empty_directory() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    place.open().insert("k", "v").unwrap();
}

#[test]
fn open_makes_nothing_unless_it_may() {
    let place = Place::new();
    let mut options = small();
    options.create_if_missing = false;
    let error = Db::open_with(place.path(), options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing);
    assert!(!place.path().exists());
}

#[test]
fn open_refuses_a_database_that_must_not_be_there() {
    let (place, db) = fresh();
    db.close().unwrap();
    let mut options = small();
    options.error_if_exists = true;
    assert_eq!(Db::open_with(place.path(), options.clone()).unwrap_err().kind(), ErrorKind::Exists);
    let other = Place::new();
    assert!(Db::open_with(other.path(), options).is_ok());
}

#[test]
fn a_directory_with_something_else_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    std::fs::write(place.path().join("notes.txt"), "mine").unwrap();
    let before = contents(&place.path());
    assert_eq!(Db::open(place.path()).unwrap_err().kind(), ErrorKind::NotADatabase);
    assert_eq!(contents(&place.path()), before);
}

#[test]
fn the_files_of_other_stores_are_recognised_and_left_alone() {
    let lmdb = [&[0; 16][..], &0xbeef_c0de_u32.to_le_bytes(), &[0; 100]].concat();
    let redb = b"redb\x1a\x0a\xa9\x0d\x0a and what follows it".to_vec();
    for (files, kind) in [
        (&["CURRENT", "LOCK", "LOG", "MANIFEST-000004", "000005.ldb"][..], "leveldb"),
        (&["CURRENT", "MANIFEST-000004"], "leveldb"),
        (&["CURRENT", "MANIFEST-000004", "IDENTITY", "OPTIONS-000007"], "rocksdb"),
        (&["data.mdb", "lock.mdb"], "lmdb"),
        (&["keyspaces", "version", "0.jnl"], "fjall"),
    ] {
        let place = Place::new();
        std::fs::create_dir(place.path()).unwrap();
        for file in files {
            std::fs::write(place.path().join(file), "mine").unwrap();
        }
        assert_recognised(&place, kind);
    }
    for (content, kind) in [(redb, "redb"), (lmdb, "lmdb")] {
        let place = Place::new();
        std::fs::write(place.path(), &content).unwrap();
        assert_recognised(&place, kind);
        assert_eq!(std::fs::read(place.path()).unwrap(), content);
    }
}

#[track_caller]
fn assert_recognised(place: &Place, kind: &str) {
    let before = place.path().is_dir().then(|| contents(&place.path()));
    let mut read_only = esker::Options::default();
    read_only.read_only = true;
    for options in [esker::Options::default(), read_only] {
        let error = Db::open_with(place.path(), options).unwrap_err();
        let command = format!("esker import --from {kind} {} --to", place.path().display());
        assert!(error.to_string().contains(&command), "{error}");
        match error {
            esker::Error::NotADatabase { import, .. } => assert_eq!(import, Some(kind)),
            other => panic!("{other}"),
        }
    }
    assert_eq!(place.path().is_dir().then(|| contents(&place.path())), before);
}

#[test]
fn a_file_is_not_a_database() {
    let place = Place::new();
    std::fs::write(place.path(), "a file").unwrap();
    assert_eq!(Db::open(place.path()).unwrap_err().kind(), ErrorKind::NotADatabase);
    assert_eq!(std::fs::read(place.path()).unwrap(), b"a file");
}

#[test]
fn a_second_open_fails_at_once_and_changes_nothing() {
    let place = Place::new();
    let mut options = small();
    // It writes when it likes.
    options.monitor = Some(false);
    let db = Db::open_with(place.path(), options).unwrap();
    fill(&db, 0..100, 1);
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let before = contents(&place.path());
    for read_only in [false, true] {
        let mut options = small();
        options.read_only = read_only;
        let error = Db::open_with(place.path(), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
    }
    assert_eq!(contents(&place.path()), before);
    db.insert("still", "works").unwrap();
    db.close().unwrap();
    assert!(place.open().contains_key("still").unwrap());
}

#[test]
fn dropping_the_last_handle_closes() {
    let (place, db) = fresh();
    let space = db.keyspace("a").unwrap();
    let other = db.clone();
    space.insert("k", "v").unwrap();
    drop(db);
    drop(other);
    space.insert("k2", "v").unwrap();
    assert_eq!(Db::open(place.path()).unwrap_err().kind(), ErrorKind::Locked);
    drop(space);
    let db = place.open();
    assert_eq!(db.keyspace("a").unwrap().iter().unwrap().count(), 2);
}

#[test]
fn iterators_and_snapshots_keep_the_database_open() {
    let (place, db) = fresh();
    fill(&db, 0..10, 1);
    let iter = db.iter().unwrap();
    let moment = db.snapshot().unwrap();
    drop(db);
    assert_eq!(Db::open(place.path()).unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(iter.count(), 10);
    assert_eq!(Db::open(place.path()).unwrap_err().kind(), ErrorKind::Locked);
    drop(moment);
    assert!(Db::open(place.path()).is_ok());
}

#[test]
fn close_closes_for_everybody_and_may_be_repeated() {
    let (place, db) = fresh();
    let other = db.clone();
    let space = db.default_keyspace();
    db.insert("k", "v").unwrap();
    db.close().unwrap();
    db.close().unwrap();
    other.close().unwrap();
    let kind = |result: esker::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(space.insert("k", "v")), ErrorKind::Closed);
    assert_eq!(kind(other.remove("k")), ErrorKind::Closed);
    assert_eq!(kind(other.flush()), ErrorKind::Closed);
    assert_eq!(kind(other.compact()), ErrorKind::Closed);
    assert_eq!(kind(other.sync()), ErrorKind::Closed);
    assert_eq!(kind(other.wait_until_idle()), ErrorKind::Closed);
    assert_eq!(kind(other.wait_durable(0)), ErrorKind::Closed);
    assert_eq!(kind(other.verify().map(drop)), ErrorKind::Closed);
    assert_eq!(kind(other.keyspace("new").map(drop)), ErrorKind::Closed);
    assert_eq!(kind(other.keyspaces().map(drop)), ErrorKind::Closed);
    assert_eq!(kind(other.drop_keyspace("new").map(drop)), ErrorKind::Closed);
    let _ = other.stats();
    assert!(place.open().contains_key("k").unwrap(), "closed handles do not hold the lock");
}

#[test]
fn close_ends_calls_that_wait() {
    let (_place, db) = fresh();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let db = &db;
            scope.spawn(move || {
                for number in 0.. {
                    match db.insert(number.to_string(), vec![0; 300]) {
                        Ok(()) => {}
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Closed);
                            break;
                        }
                    }
                }
            });
        }
        while db.stats().puts < 2000 {
            std::thread::yield_now();
        }
        db.close().unwrap();
    });
}

#[test]
fn what_was_acknowledged_before_a_close_under_load_is_there() {
    let (place, db) = fresh();
    let acknowledged: Vec<usize> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|thread| {
                let db = &db;
                scope.spawn(move || {
                    (0..).take_while(|n| db.insert(format!("{thread}-{n}"), "v").is_ok()).count()
                })
            })
            .collect();
        while db.stats().puts < 3000 {
            std::thread::yield_now();
        }
        db.close().unwrap();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let db = place.open();
    for (thread, count) in acknowledged.into_iter().enumerate() {
        for number in 0..count {
            assert!(db.contains_key(format!("{thread}-{number}")).unwrap(), "{thread}-{number}");
        }
    }
}

#[test]
fn a_read_only_open_reads_everything_and_changes_no_byte() {
    let (place, db) = fresh();
    fill(&db, 0..1000, 1);
    db.flush().unwrap();
    db.keyspace("other").unwrap().insert("k", "v").unwrap();
    db.close().unwrap();
    let before = contents(&place.path());
    let mut options = small();
    options.read_only = true;
    let db = Db::open_with(place.path(), options).unwrap();
    assert_eq!(db.iter().unwrap().count(), 1000);
    assert!(db.keyspace("other").unwrap().contains_key("k").unwrap());
    assert!(db.verify().unwrap().problems.is_empty());
    assert_eq!(db.snapshot().unwrap().iter(&db.default_keyspace()).unwrap().count(), 1000);
    let kind = |result: esker::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(db.insert("k", "v")), ErrorKind::ReadOnly);
    assert_eq!(kind(db.remove("k")), ErrorKind::ReadOnly);
    assert_eq!(kind(db.remove_range("a".."b")), ErrorKind::ReadOnly);
    assert_eq!(kind(db.keyspace("new").map(drop)), ErrorKind::ReadOnly);
    assert_eq!(kind(db.drop_keyspace("other").map(drop)), ErrorKind::ReadOnly);
    assert_eq!(kind(db.flush()), ErrorKind::ReadOnly);
    assert_eq!(kind(db.compact()), ErrorKind::ReadOnly);
    assert_eq!(kind(db.sync()), ErrorKind::ReadOnly);
    db.close().unwrap();
    drop(db);
    assert_eq!(contents(&place.path()), before);
}

#[test]
fn a_read_only_open_sees_what_only_the_log_holds() {
    let (place, db) = fresh();
    fill(&db, 0..50, 1);
    let left = as_after_a_crash(&place);
    let target = left.path();
    let before = contents(&target);
    let mut options = small();
    options.read_only = true;
    let reader = Db::open_with(&target, options).unwrap();
    assert_eq!(reader.iter().unwrap().count(), 50);
    reader.close().unwrap();
    assert_eq!(contents(&target), before);
}

#[test]
fn a_read_only_open_of_nothing_makes_nothing() {
    let place = Place::new();
    let mut options = Options::default();
    options.read_only = true;
    assert_eq!(Db::open_with(place.path(), options).unwrap_err().kind(), ErrorKind::Missing);
    assert!(!place.path().exists());
}

#[test]
fn an_empty_database_is_small() {
    let (place, db) = fresh();
    db.close().unwrap();
    let bytes: usize = contents(&place.path()).values().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < 1 << 20, "{bytes} bytes");
}

#[test]
fn a_database_can_be_opened_and_closed_many_times() {
    let place = Place::new();
    for round in 0..40 {
        let db = place.open();
        assert_eq!(db.iter().unwrap().count(), round);
        db.insert(format!("{round:03}"), "v").unwrap();
        db.close().unwrap();
    }
    let names = std::fs::read_dir(place.path()).unwrap().count();
    assert!(names < 10, "{names} names are left");
}
