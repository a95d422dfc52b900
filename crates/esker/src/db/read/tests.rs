use crate::{Db, KeyspaceOptions, Options};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The sources of a value, each under its own key; `flushed` are in blocks.
fn everywhere(db: &Db) -> crate::Keyspace {
    let options = KeyspaceOptions::merging(crate::Append::new("+").name());
    let keyspace = db.keyspace_with("k", options).unwrap();
    let fill = |prefix: &str| {
        keyspace.insert(format!("{prefix} plain"), "plain").unwrap();
        let hour = Duration::from_secs(3600);
        keyspace.insert_with_ttl(format!("{prefix} expiring"), "expiring", hour).unwrap();
        keyspace.insert(format!("{prefix} folded"), "fol").unwrap();
        keyspace.merge(format!("{prefix} folded"), "ded").unwrap();
    };
    fill("flushed");
    db.flush().unwrap();
    fill("memory");
    keyspace
}

const EXPECTED: [(&str, &str); 3] =
    [("plain", "plain"), ("expiring", "expiring"), ("folded", "fol+ded")];

/// A caller that uses a value holds no epoch open, wherever the value comes from, and whether or
/// not it had to be read first.
#[test]
fn the_caller_has_no_epoch_open() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let keyspace = everywhere(&db);
    let snapshot = db.snapshot().unwrap();
    for _ in 0..2 {
        for place in ["flushed", "memory"] {
            for (kind, value) in EXPECTED {
                let key = format!("{place} {kind}");
                let look = |found: &[u8]| {
                    assert!(!crossbeam_epoch::is_pinned(), "{key}");
                    assert_eq!(found, value.as_bytes(), "{key}");
                };
                keyspace.get_with(&key, look).unwrap().unwrap();
                snapshot.get_with(&keyspace, &key, look).unwrap().unwrap();
            }
        }
    }
}

/// A caller uses a value while 40 MB are written and read, through blocks that enter and leave the
/// cache. If it held what it reads meanwhile, 40 MB would stay in memory. A part of the cache's share waits
/// for epochs of background threads after it has left the cache, and blocks of run segments that go do too.
#[test]
fn a_caller_that_takes_its_time_holds_one_block() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.memory = Some(4 << 20);
    options.memtable_bytes = Some(128 << 10);
    let db = Db::open_with(dir.path().join("db"), options).unwrap();
    // Short values are copied.
    let held = [b'x'; 1000];
    db.insert("held", held).unwrap();
    db.flush().unwrap();
    let looked = AtomicBool::new(false);
    let mut peak = 0;
    let busy = |value: &[u8]| {
        for round in 0..10u32 {
            for number in 0..2000u32 {
                db.insert(number.to_be_bytes(), [round as u8; 2000]).unwrap();
            }
            for number in 0..2000u32 {
                assert!(db.get(number.to_be_bytes()).unwrap().is_some());
            }
            peak = peak.max(db.stats().memory.cache);
        }
        looked.store(true, Ordering::Relaxed);
        assert_eq!(value, held);
    };
    db.default_keyspace().get_with("held", busy).unwrap().unwrap();
    assert!(looked.load(Ordering::Relaxed));
    assert!(peak < 12 << 20, "{peak} bytes of blocks");
}
