//! What an open after a kill makes of a log that is large enough for two threads.

use esker::{Db, Error, Options};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

type Model = BTreeMap<(&'static str, Vec<u8>), Vec<u8>>;

/// Options under which nothing is flushed.
fn unflushed() -> Options {
    let mut options = Options::default();
    options.memory = Some(1 << 30);
    options.memtable_bytes = Some(64 << 20);
    options
}

/// Some 20 MB of writes in two keyspaces, with new versions and deletes, and range deletes in one.
fn write(db: &Db) -> Model {
    let (plain, ranges) = (db.keyspace("plain").unwrap(), db.keyspace("ranges").unwrap());
    let mut model = Model::new();
    for n in 0..40_000_u64 {
        let key = format!("{:012}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 30_000).into_bytes();
        let value = vec![n as u8; 200 + (n % 300) as usize];
        let (name, keyspace) = if n % 3 == 0 { ("ranges", &ranges) } else { ("plain", &plain) };
        if n % 11 == 0 {
            keyspace.remove(&key).unwrap();
            model.remove(&(name, key));
        } else {
            keyspace.insert(&key, &value).unwrap();
            model.insert((name, key), value);
        }
        if n % 9_000 == 8_999 {
            let (start, end) = (format!("{:012}", n / 2), format!("{:012}", n / 2 + 700));
            ranges.remove_range(start.as_bytes()..end.as_bytes()).unwrap();
            let gone = ("ranges", start.into_bytes())..("ranges", end.into_bytes());
            let gone: Vec<_> = model.range(gone).map(|(key, _)| key.clone()).collect();
            gone.iter().for_each(|key| drop(model.remove(key)));
        }
    }
    model
}

fn check(db: &Db, model: &Model) {
    for name in ["plain", "ranges"] {
        let keyspace = db.keyspace(name).unwrap();
        let found = keyspace.iter().unwrap().map(|entry| entry.unwrap());
        let expected = model.iter().filter(|((of, _), _)| *of == name);
        let mut count = 0;
        for (found, ((_, key), value)) in found.zip(expected.clone()) {
            assert!(found.0 == *key && found.1 == *value, "{name}: {}", key.escape_ascii());
            count += 1;
        }
        assert_eq!(count, expected.count());
        for ((_, key), value) in model.iter().filter(|((of, _), _)| *of == name).step_by(37) {
            assert_eq!(keyspace.get(key).unwrap().as_deref(), Some(&value[..]));
        }
        assert_eq!(keyspace.get(b"no such key").unwrap(), None);
    }
}

/// The files of runs in a directory.
fn runs(path: &Path) -> usize {
    fs::read_dir(path.join("data")).unwrap().count()
}

/// A copy of a database with a large log, as a kill would leave it.
fn killed(path: &Path) -> Model {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), unflushed()).unwrap();
    let model = write(&db);
    esker_testkit::files::copy(dir.path(), path);
    db.close().unwrap();
    model
}

#[test]
fn a_large_log_is_replayed_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let model = killed(&path);
    let mut options = unflushed();
    options.read_only = true;
    let db = Db::open_with(&path, options).unwrap();
    check(&db, &model);
    db.close().unwrap();
    assert_eq!(runs(&path), 0, "who only reads writes nothing");
    for _ in 0..2 {
        let db = Db::open_with(&path, unflushed()).unwrap();
        assert_eq!(runs(&path), 2, "two threads have written a file each");
        check(&db, &model);
        assert_eq!(db.verify().unwrap().problems.len(), 0);
        db.close().unwrap();
    }
}

#[test]
fn a_large_log_that_is_refused_at_its_end_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), unflushed()).unwrap();
    write(&db);
    // In a copy only what was synced is known to have been there.
    db.sync().unwrap();
    db.insert("last", "says so").unwrap();
    esker_testkit::files::copy(dir.path(), &path);
    db.close().unwrap();
    let logs = fs::read_dir(path.join("wal")).unwrap().map(|entry| entry.unwrap().path());
    let logs = logs.map(|path| (fs::read(&path).unwrap(), path));
    let written = |bytes: &[u8]| bytes.iter().filter(|byte| **byte != 0).count();
    let (mut bytes, fullest) = logs.max_by_key(|(bytes, _)| written(bytes)).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[last - 100_000..last - 50_000].fill(0);
    fs::write(&fullest, bytes).unwrap();
    let error = Db::open_with(&path, unflushed()).unwrap_err();
    assert!(matches!(error, Error::Corruption(_)), "{error}");
    assert_eq!(runs(&path), 0);
}
