//! What was just written is in the cache.

use super::{Place, key, small, value};
use esker::{Compression, Db};

/// Bytes that gets and scans read from files so far, and blocks that were not cached.
fn reads(db: &Db) -> (u64, u64) {
    let stats = db.stats();
    (stats.get_bytes_read + stats.scan_bytes_read, stats.cache_misses)
}

fn check(db: &Db, round: usize) {
    for number in 0..3000 {
        let found = db.get(key(number)).unwrap();
        assert_eq!(found.as_deref(), Some(value(number, round).as_bytes()));
    }
    assert_eq!(db.iter().unwrap().count(), 3000);
}

#[test]
fn what_a_flush_or_compaction_writes_is_read_from_memory() {
    for compression in [Compression::None, Compression::Lz4] {
        let place = Place::new();
        let mut options = small();
        options.memory = Some(64 << 20);
        // No writer waits for a flush.
        options.log_file_bytes = 4 << 20;
        options.memtable_bytes = Some(4 << 20);
        options.compression = compression;
        let db = Db::open_with(place.path(), options.clone()).unwrap();
        for round in 0..3 {
            super::fill(&db, 0..3000, round);
            db.flush().unwrap();
            let before = reads(&db);
            check(&db, round);
            assert_eq!(reads(&db), before, "after flush {round}, {compression:?}");
        }
        db.compact().unwrap();
        db.wait_until_idle().unwrap();
        let before = reads(&db);
        check(&db, 2);
        assert_eq!(reads(&db), before, "after a compaction, {compression:?}");
        db.close().unwrap();
        // The same blocks come from the files, and nothing in memory hid what they are.
        let db = Db::open_with(place.path(), options).unwrap();
        let before = reads(&db);
        check(&db, 2);
        assert_ne!(reads(&db), before);
    }
}

#[test]
fn what_does_not_fit_the_cache_is_not_kept() {
    let place = Place::new();
    let mut options = small();
    options.compression = Compression::None;
    let db = Db::open_with(place.path(), options).unwrap();
    for number in 0..8000 {
        db.insert(key(number), vec![number as u8; 1000]).unwrap();
        if number % 500 == 0 {
            let memory = db.stats().memory;
            assert!(memory.cache + memory.indexes <= memory.limit * 5 / 8, "{memory:?}");
        }
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let memory = db.stats().memory;
    assert!(memory.cache + memory.indexes <= memory.limit * 5 / 8, "{memory:?}");
    assert_eq!(db.iter().unwrap().count(), 8000);
}
