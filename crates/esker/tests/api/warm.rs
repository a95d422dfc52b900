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
            assert!(
                memory.cache + memory.indexes + memory.filters <= memory.limit * 5 / 8,
                "{memory:?}"
            );
        }
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let memory = db.stats().memory;
    assert!(memory.cache + memory.indexes + memory.filters <= memory.limit * 5 / 8, "{memory:?}");
    assert_eq!(db.iter().unwrap().count(), 8000);
}

/// 3,000 entries that are compacted, and over some of them runs of ten entries each; nothing is cached.
fn with_runs_over_a_part(place: &Place, runs: usize) -> Db {
    let mut options = small();
    options.memory = Some(64 << 20);
    options.log_file_bytes = 4 << 20;
    options.memtable_bytes = Some(4 << 20);
    options.partition_bytes = Some(4 << 20);
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    super::fill(&db, 0..3000, 0);
    db.compact().unwrap();
    for round in 1..=runs {
        super::fill(&db, (0..10).map(|number| 1000 + 200 * round + number), round);
        db.flush().unwrap();
    }
    db.close().unwrap();
    Db::open_with(place.path(), options).unwrap()
}

/// The blocks that are read for an iterator's first ten rows, and the rows.
fn ten_rows(db: &Db, iter: esker::Iter) -> (u64, usize) {
    let before = db.stats().cache_misses;
    let rows = iter.take(10).map(Result::unwrap).count();
    (db.stats().cache_misses - before, rows)
}

#[test]
fn a_scan_reads_only_the_runs_that_it_reaches() {
    let (alone, place) = (Place::new(), Place::new());
    let base = with_runs_over_a_part(&alone, 0);
    let plain = base.default_keyspace();
    let db = with_runs_over_a_part(&place, 5);
    assert_eq!(db.stats().trees[0].deltas.len(), 5, "the runs are still there");
    let default = db.default_keyspace();
    // Ten rows where no other run has entries, before all of them and between two of them, cost what
    // they cost without these runs; where one has, the one block or two of that run besides.
    for (first, more) in [(100, 0), (1300, 0), (1205, 2)] {
        let alone = ten_rows(&base, plain.range(key(first)..).unwrap());
        let read = ten_rows(&db, default.range(key(first)..).unwrap());
        assert!(alone.1 == 10 && read.1 == 10);
        assert!(alone.0 > 0 && read.0 <= alone.0 + more, "{read:?} for {alone:?} from {first} on");
    }
    // Bounds keep the other runs out of a scan in both directions.
    let within = || key(1602)..key(1609);
    let alone = ten_rows(&base, plain.range(within()).unwrap());
    let forward = ten_rows(&db, default.range(within()).unwrap());
    assert!(forward.1 == 7 && forward.0 <= alone.0 + 2, "{forward:?} for {alone:?}");
    let place = Place::new();
    let db = with_runs_over_a_part(&place, 5);
    let default = db.default_keyspace();
    let before = db.stats().cache_misses;
    assert_eq!(super::keys(default.range(within()).unwrap().rev()).len(), 7);
    let backward = db.stats().cache_misses - before;
    assert!(backward <= alone.0 + 2, "{backward} for {alone:?}");
    // Neither does an iterator without a lower bound read them all.
    let untouched = Place::new();
    let base = with_runs_over_a_part(&untouched, 0);
    let alone = ten_rows(&base, base.iter().unwrap());
    let first = ten_rows(&db, db.iter().unwrap());
    assert!(first.0 <= alone.0, "{first:?} for {alone:?}");
    // Whatever waited is found when the scan comes to it.
    for (number, entry) in db.iter().unwrap().enumerate() {
        let (_, found) = entry.unwrap();
        let over = (number >= 1200 && number % 200 < 10).then(|| (number - 1000) / 200);
        let round = over.filter(|round| *round <= 5).unwrap_or(0);
        assert_eq!(found, value(number, round).as_bytes(), "entry {number}");
    }
    let mut cursor = default.cursor().unwrap();
    for (target, back) in [(1190, 1189), (1300, 1299), (2010, 2009), (2100, 2099)] {
        cursor.seek(key(target)).unwrap();
        assert_eq!(cursor.key(), key(target).as_bytes());
        cursor.prev().unwrap();
        assert_eq!(cursor.key(), key(back).as_bytes());
        cursor.next().unwrap();
        assert_eq!(cursor.key(), key(target).as_bytes());
    }
}
