//! Log and memory that refused writes, conflicts, unlogged writes and changes of keyspaces take:
//! bounded, and nothing at all where the refusal is known before a place in the log is taken.

use super::{Place, key, small};
use esker::{Batch, Compression, Db, Durability, ErrorKind, Keyspace, Options};
use esker_testkit::FaultFs;
use esker_testkit::faultfs::{Effect, Op, Rule};
use esker_testkit::orders::Reverse;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Values and batches of up to 1 MiB, memtables of 256 KiB, 512 KiB of log for each.
fn options() -> Options {
    let mut options = Options::default();
    options.memory = Some(8 << 20);
    options.log_file_bytes = 64 << 10;
    options.workers = Some(1);
    options
}

/// A value that is nearly as large as one may be.
fn large() -> Vec<u8> {
    vec![7; 900 << 10]
}

/// Bytes of log that were reserved, and of memory that memtables take.
fn taken(db: &Db) -> (u64, u64) {
    let stats = db.stats();
    (stats.written.log, stats.memory.memtables)
}

/// A database with a keyspace in byte order and one with a comparator, and an entry in each.
fn two_spaces(options: Options) -> (Place, Db, [Keyspace; 2]) {
    let place = Place::new();
    let db = Db::open_with(place.path(), options).unwrap();
    let plain = db.keyspace("plain").unwrap();
    let ordered = db.keyspace_ordered("ordered", Arc::new(Reverse)).unwrap();
    for space in [&plain, &ordered] {
        space.insert("k", "v").unwrap();
    }
    (place, db, [plain, ordered])
}

#[test]
fn what_is_too_large_takes_neither_log_nor_memory() {
    let (_place, db, spaces) = two_spaces(options());
    let before = taken(&db);
    for space in &spaces {
        let mut batch = Batch::new();
        (0..3).for_each(|number| batch.insert(space, key(number), large()));
        for _ in 0..50 {
            let value = space.insert("k", vec![7; 2 << 20]).unwrap_err();
            assert_eq!(value.kind(), ErrorKind::ValueTooLarge);
            let key = space.insert(vec![7; 70_000], large()).unwrap_err();
            assert_eq!(key.kind(), ErrorKind::KeyTooLong);
            assert_eq!(db.write(&batch).unwrap_err().kind(), ErrorKind::BatchTooLarge);
        }
    }
    assert_eq!(taken(&db), before);
    db.close().unwrap();
}

#[test]
fn writes_to_dropped_keyspaces_take_neither_log_nor_memory() {
    let (_place, db, spaces) = two_spaces(options());
    db.drop_keyspace("plain").unwrap();
    db.drop_keyspace("ordered").unwrap();
    db.wait_until_idle().unwrap();
    let before = taken(&db);
    for space in &spaces {
        let mut batch = Batch::new();
        batch.insert(&db.default_keyspace(), "k", large());
        batch.remove(space, "k");
        for _ in 0..60 {
            for refused in [
                space.insert("k", large()).unwrap_err(),
                db.write(&batch).unwrap_err(),
                space.set_ttl(Some(Duration::from_secs(1))).unwrap_err(),
            ] {
                assert_eq!(refused.kind(), ErrorKind::KeyspaceDropped);
            }
        }
    }
    assert_eq!(taken(&db), before);
    db.close().unwrap();
}

#[test]
fn conflicts_that_are_known_take_neither_log_nor_memory() {
    let (_place, db, spaces) = two_spaces(options());
    for space in &spaces {
        for _ in 0..30 {
            let transaction = db.begin().unwrap();
            transaction.get(space, "k").unwrap();
            transaction.insert(space, "large", large()).unwrap();
            space.insert("k", "changed").unwrap();
            let before = taken(&db);
            assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
            assert_eq!(taken(&db), before);
        }
    }
    db.close().unwrap();
}

/// Conflicts that only show behind the reservation leave voids, and those fill the log.
#[test]
fn transactions_that_race_keep_the_log_short() {
    let (_place, db, spaces) = two_spaces(options());
    for space in &spaces {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..60 {
                        let transaction = db.begin().unwrap();
                        transaction.get(space, "k").unwrap();
                        transaction.insert(space, "k", vec![1; 100 << 10]).unwrap();
                        let committed = transaction.commit();
                        let conflict = |error: &esker::Error| error.kind() == ErrorKind::Conflict;
                        assert!(committed.is_ok() || committed.is_err_and(|e| conflict(&e)));
                        let bytes = db.stats().log_file_bytes;
                        assert!(bytes <= 5 << 20, "{bytes} bytes of log");
                    }
                });
            }
        });
    }
    db.flush().unwrap();
    let bytes = db.stats().log_file_bytes;
    assert!(bytes <= 4 * (64 << 10), "{bytes} bytes of log behind a flush");
    db.close().unwrap();
}

#[test]
fn buffered_writes_keep_the_log_short() {
    let (_place, db, spaces) = two_spaces(small());
    for space in &spaces {
        for number in 0..10_000 {
            space.insert_with([number as u8], "", Durability::Buffered).unwrap();
            let mut batch = Batch::new();
            (0..number % 10).for_each(|slot| batch.remove(space, [slot as u8]));
            db.write_with(&batch, Durability::Buffered).unwrap();
            if number % 100 == 0 {
                let bytes = db.stats().log_file_bytes;
                assert!(bytes <= 512 << 10, "{bytes} bytes of log after {number} rounds");
            }
        }
    }
    db.close().unwrap();
}

#[test]
fn changes_of_keyspaces_keep_the_log_short() {
    let place = Place::new();
    let mut options = small();
    options.memtable_bytes = Some(16 << 10);
    let db = Db::open_with(place.path(), options).unwrap();
    let space = db.keyspace("kept").unwrap();
    let check = |number| {
        let bytes = db.stats().log_file_bytes;
        assert!(bytes <= 448 << 10, "{bytes} bytes of log after {number} changes");
    };
    for number in 0..30_000 {
        space.set_ttl(Some(Duration::from_secs(1 + number))).unwrap();
        if number % 100 == 0 {
            check(number);
        }
    }
    for number in 0..600 {
        db.keyspace(&format!("a name of some length {number}")).unwrap();
        db.drop_keyspace(&format!("a name of some length {number}")).unwrap();
        check(number);
    }
    for number in 0..5_000 {
        db.keyspace(&format!("a name of some length {number}")).unwrap();
        if number % 100 == 0 {
            check(number);
        }
    }
    db.close().unwrap();
    assert_eq!(place.open().keyspaces().unwrap().len(), 5_002);
}

#[test]
fn what_is_refused_on_a_full_disk_takes_no_memory() {
    let disk = FaultFs::new(esker::fs::os());
    let mut options = options();
    options.fs = disk.as_fs();
    options.sync_interval = None;
    let (_place, db, spaces) = two_spaces(options);
    let full = || Effect::Error(io::ErrorKind::StorageFull);
    for (op, path) in [(Op::Allocate, "wal/"), (Op::Allocate, "data/"), (Op::Write, "data/")] {
        disk.add(Rule::new(op, full()).path(path).persistent());
    }
    for space in &spaces {
        let fill = (0..1000).find_map(|number| space.insert(key(number), vec![1; 20_000]).err());
        assert_eq!(fill.unwrap().kind(), ErrorKind::DiskFull);
        let before = db.stats().memory.memtables;
        for _ in 0..300 {
            let refused = space.insert("k", vec![1; 20_000]).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::DiskFull);
        }
        // A pause of the writes may have begun another memtable, and sorted pointers to entries.
        let grown = db.stats().memory.memtables - before;
        assert!(grown < 10 * 20_000, "{grown} bytes");
    }
    disk.clear();
    for space in &spaces {
        space.insert("k", vec![1; 20_000]).unwrap();
    }
    db.close().unwrap();
}

#[test]
fn what_is_refused_after_a_failure_takes_neither_log_nor_memory() {
    let disk = FaultFs::new(esker::fs::os());
    let mut options = options();
    options.fs = disk.as_fs();
    options.sync_interval = None;
    let (_place, db, spaces) = two_spaces(options);
    disk.add(Rule::new(Op::SyncData, Effect::FailSync { revert: false }).path("wal/"));
    let failed = spaces[0].insert_with("k", "v", Durability::Disk).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Poisoned);
    let before = taken(&db);
    for space in &spaces {
        for _ in 0..300 {
            let refused = space.insert("k", vec![1; 20_000]).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Poisoned);
        }
    }
    assert_eq!(taken(&db), before);
    drop(db);
}

/// More data than memory, in so small blocks that their indexes are more than the cache, too.
#[test]
fn indexes_and_blocks_keep_to_their_share() {
    const KEYS: usize = 80_000;
    const GETS: usize = 10_000;
    let place = Place::new();
    let mut options = Options::default();
    options.memory = Some(1 << 20);
    options.memtable_bytes = Some(2 << 20);
    options.block_bytes = 256;
    options.segment_bytes = 64 << 10;
    options.compression = Compression::None;
    let db = Db::open_with(place.path(), options).unwrap();
    let value = |number: usize| number.to_be_bytes().repeat(12);
    for number in 0..KEYS {
        db.insert(key(number), value(number)).unwrap();
    }
    db.compact().unwrap();
    let share = (1 << 20) / 8 * 5;
    let reads = || db.stats().page_cache_reads + db.stats().device_reads;
    let (before, mut indexes, mut both) = (reads(), Vec::new(), Vec::new());
    for number in 0..GETS {
        // Neighbours in time are far from each other.
        let number = number * 7_919 % KEYS;
        assert_eq!(db.get(key(number)).unwrap().unwrap(), value(number));
        if number.is_multiple_of(16) {
            let memory = db.stats().memory;
            indexes.push(memory.indexes + memory.filters);
            both.push(memory.indexes + memory.filters + memory.cache);
        }
    }
    let settled = |bytes: &mut Vec<u64>| {
        let mut later = bytes.split_off(bytes.len() / 2);
        later.sort_unstable();
        later
    };
    let (indexes, both) = (settled(&mut indexes), settled(&mut both));
    // What was evicted is freed when no thread of the process can still use it, so the least counts.
    let both = both[0];
    assert!(both <= share + share / 16, "{both} bytes of blocks and indexes");
    // Indexes are used more often than blocks, and would take more if they could. The cache gives way to batches of
    // other tests of this process for a while, so the median counts.
    let indexes = indexes[indexes.len() / 2];
    assert!(indexes > share / 2, "{indexes} bytes of indexes");
    let all = db.stats().trees[0].base.segments * (64 << 10) / 5;
    assert!(all > share, "{all} bytes of indexes in all");
    // A get reads at most an index and a block, and finds some of them in memory.
    let reads = reads() - before;
    assert!(reads <= 2 * GETS as u64 && reads > GETS as u64, "{reads} reads");
}
