//! The end of a range may be the successor of a longest key, one byte longer than any key.

use esker::internals::base::limits::KEY_BYTES_MAX;
use esker::{Db, Options};

#[test]
fn a_range_that_ends_with_a_longest_key_survives_flush_and_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let open = || {
        let mut options = Options::default();
        options.memory = Some(32 << 20);
        Db::open_with(&path, options).unwrap()
    };
    let longest = vec![b'm'; KEY_BYTES_MAX];
    let db = open();
    db.insert("a", "stays").unwrap();
    db.insert(&longest, "goes").unwrap();
    db.insert("n", "stays").unwrap();
    db.flush().unwrap();
    db.remove_range(&b"b"[..]..=&longest[..]).unwrap();
    db.flush().unwrap();
    assert_eq!(db.get(&longest).unwrap(), None);
    db.close().unwrap();
    let db = open();
    assert_eq!(db.get(&longest).unwrap(), None);
    let keys: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, [b"a", b"n"]);
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
}
