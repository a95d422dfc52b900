//! What one operation may cost in a large tree, counted in bytes, runs and comparisons.

use super::{Place, flush_costs, key, run_files, settled, small};
use esker::{Comparator, Compression, Db, Options};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

const ENTRIES: usize = 9000;

fn tiny_partitions() -> Options {
    let mut options = small();
    options.memory = Some(32 << 20);
    options.memtable_bytes = Some(2 << 20);
    options.partition_bytes = Some(4 << 10);
    options.segment_bytes = 1 << 10;
    options.compression = Compression::None;
    options
}

/// A database of 2,000 partitions and more, with nothing to do.
fn wide() -> (Place, Db) {
    let place = Place::new();
    let db = Db::open_with(place.path(), tiny_partitions()).unwrap();
    for number in 0..ENTRIES {
        db.insert(key(number), vec![number as u8; 1000]).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let partitions = partitions(&db);
    assert!(partitions >= 2000, "{partitions} partitions");
    (place, db)
}

fn partitions(db: &Db) -> u64 {
    db.stats().trees[0].partitions
}

/// The most deltas of a partition, and how many there are in all. A scan opens the first, one base
/// and the memtables; statistics go through the second and one base for each partition.
fn deltas(db: &Db) -> (usize, u64) {
    let tree = &db.stats().trees[0];
    (tree.deltas.len(), tree.deltas.iter().map(|level| level.runs).sum())
}

#[test]
fn one_wide_range_delete_empties_partitions_by_an_edit_of_fixed_size() {
    let (place, db) = wide();
    let (bytes_before, _) = run_files(&place.path());
    db.remove_range(key(100)..key(ENTRIES - 100)).unwrap();
    let (edit, written) = flush_costs(&db);
    assert!(edit < 1500 && written < 4096, "an edit of {edit} bytes, {written} bytes of runs");
    assert!(partitions(&db) < 100, "{} partitions", partitions(&db));
    let (most, all) = deltas(&db);
    assert!(most <= 1 && all <= 2, "{all} deltas, {most} over one key");
    assert_eq!(db.iter().unwrap().count(), 200);
    let bytes = settled(&db, &place.path(), |bytes| bytes < bytes_before * 2 / 3);
    assert!(bytes < bytes_before * 2 / 3, "{bytes} of {bytes_before} bytes are left");
    db.remove_range::<&str>(..).unwrap();
    let (edit, _) = flush_costs(&db);
    assert!(edit < 1000 && partitions(&db) == 1, "{edit} bytes, {} partitions", partitions(&db));
    assert_eq!((db.iter().unwrap().count(), deltas(&db).1), (0, 0));
    db.insert("after", "all").unwrap();
    db.close().unwrap();
    let db = Db::open_with(place.path(), tiny_partitions()).unwrap();
    assert_eq!(db.iter().unwrap().count(), 1);
}

#[test]
fn a_wide_range_delete_under_a_snapshot_is_one_delta_for_each_partition() {
    let (place, db) = wide();
    let count = partitions(&db);
    let snapshot = db.snapshot().unwrap();
    db.remove_range(key(1)..).unwrap();
    let (edit, written) = flush_costs(&db);
    assert!(edit < 1500 && written < 4096, "an edit of {edit} bytes, {written} bytes of runs");
    let (most, all) = deltas(&db);
    assert!(most == 1 && all <= count, "{all} deltas for {count} partitions");
    assert_eq!(snapshot.iter(&db.default_keyspace()).unwrap().count(), ENTRIES);
    assert_eq!(db.iter().unwrap().count(), 1);
    drop(snapshot);
    db.close().unwrap();
    let db = Db::open_with(place.path(), tiny_partitions()).unwrap();
    assert_eq!((db.iter().unwrap().count(), deltas(&db)), (1, (most, all)));
    db.compact().unwrap();
    assert_eq!((db.iter().unwrap().count(), deltas(&db).1), (1, 0));
}

#[test]
fn a_narrow_range_delete_touches_the_partition_that_it_lies_in() {
    let (_place, db) = wide();
    let count = partitions(&db);
    db.remove_range(key(4000)..key(4001)).unwrap();
    let (edit, written) = flush_costs(&db);
    assert!(edit < 600 && written < 1024, "an edit of {edit} bytes, {written} bytes of runs");
    assert!(deltas(&db).1 <= 2 && partitions(&db) == count, "{:?}", deltas(&db));
    assert_eq!(db.iter().unwrap().count(), ENTRIES - 1);
}

#[test]
fn ten_thousand_narrow_range_deletes_are_a_delta_for_each_partition_that_they_touch() {
    let (_place, db) = wide();
    let count = partitions(&db);
    let flushes = db.stats().flushes;
    for number in 0..10_000 {
        let key = key(number % ENTRIES);
        db.remove_range(format!("{key}a{number}")..format!("{key}b")).unwrap();
    }
    let (edit, written) = flush_costs(&db);
    let flushes = db.stats().flushes - flushes;
    let (most, all) = deltas(&db);
    assert!(most as u64 <= flushes && all <= flushes * count, "{all} deltas, {most} over a key");
    assert!(edit < 250 * count, "an edit of {edit} bytes for {count} partitions");
    assert!(written < 10_000 * 100, "{written} bytes of runs");
    assert_eq!(db.iter().unwrap().count(), ENTRIES);
    db.compact().unwrap();
    assert_eq!((deltas(&db).1, db.iter().unwrap().count()), (0, ENTRIES));
}

#[test]
fn a_branch_with_other_bounds_gets_one_delta_from_a_flush() {
    let place = Place::new();
    let mut options = tiny_partitions();
    options.partition_bytes = Some(1 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    for number in 0..500 {
        db.insert(key(number), vec![number as u8; 1000]).unwrap();
    }
    db.flush().unwrap();
    let branch = db.branch("b").unwrap();
    for number in 0..500 {
        branch.insert(key(number), vec![1; 10]).unwrap();
    }
    branch.remove_range(key(10)..key(20)).unwrap();
    db.flush().unwrap();
    let tree = &branch.stats().trees[0];
    assert!(tree.deltas.len() <= 1, "{tree:?}");
    assert_eq!(branch.iter().unwrap().count(), 490);
}

/// Byte order that counts its calls by callers of the database, not those of background work.
#[derive(Default)]
pub struct Counting(pub AtomicU64);

impl Comparator for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let thread = std::thread::current();
        if !thread.name().is_some_and(|name| name.starts_with("esker-")) {
            self.0.fetch_add(1, Memory::Relaxed);
        }
        a.cmp(b)
    }
}

/// A queue that trims itself: what was removed long ago costs the next round nothing.
#[test]
fn scans_between_range_deletes_look_at_few_of_them() {
    let place = Place::new();
    let mut options = tiny_partitions();
    options.memtable_bytes = Some(8 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    let order = Arc::new(Counting::default());
    let space = db.keyspace_ordered("queue", order.clone()).unwrap();
    for number in 0..100 {
        space.insert(format!("z{number:06}"), "v").unwrap();
    }
    let asked = || order.0.load(Memory::Relaxed);
    let (mut last, mut total) = (0, 0);
    for number in 0..4000 {
        space
            .remove_range(format!("a{:06}", 2 * number)..format!("a{:06}", 2 * number + 1))
            .unwrap();
        let before = asked();
        assert_eq!(space.range("z".to_owned()..).unwrap().take(10).count(), 10);
        last = asked() - before;
        total += last;
    }
    assert_eq!(db.stats().flushes, 0, "all of them are in memory");
    // A sort of some thousand ranges alone takes 50,000.
    let each = total / 4000;
    assert!(each < 1500, "{each} comparisons for each scan, {last} for the last");
    db.flush().unwrap();
    let before = asked();
    for _ in 0..20 {
        assert_eq!(space.range("z".to_owned()..).unwrap().take(10).count(), 10);
    }
    let flushed = (asked() - before) / 20;
    assert!(flushed < 1500, "{flushed} comparisons for a scan once the ranges are in a run");
}

/// A snapshot that is never dropped keeps one version of each key, and the tree keeps its
/// shape under it.
#[test]
fn a_forgotten_snapshot_holds_one_version_of_each_key() {
    let place = Place::new();
    let db = place.open();
    let fill = |round: usize| super::fill(&db, 0..400, round);
    fill(0);
    let snapshot = db.snapshot().unwrap();
    let mut most = 0;
    for round in 1..60 {
        fill(round);
        db.remove_range(key(100)..key(200)).unwrap();
        most = most.max(db.stats().trees[0].deltas.len());
    }
    db.compact().unwrap();
    let tree = &db.stats().trees[0];
    assert!(tree.base.entries <= 700 && tree.deltas.is_empty(), "{tree:?}");
    assert!(most < 40, "{most} deltas over one key");
    assert_eq!(snapshot.iter(&db.default_keyspace()).unwrap().count(), 400);
    assert_eq!(db.iter().unwrap().count(), 300);
}

/// Flushes and compactions of keyspaces dropped under them leave neither runs nor descriptions.
#[test]
fn keyspaces_dropped_under_flushes_and_compactions_leave_nothing() {
    let place = Place::new();
    let mut options = small();
    options.workers = Some(2);
    let db = Db::open_with(place.path(), options).unwrap();
    for round in 0..20 {
        let name = format!("keyspace {round}");
        let space = db.keyspace(&name).unwrap();
        for number in 0..2000 {
            space.insert(key(number % 500), super::value(number, round)).unwrap();
        }
        space.remove_range(key(0)..key(100 + round)).unwrap();
        db.drop_keyspace(&name).unwrap();
    }
    db.flush().unwrap();
    let bytes = settled(&db, &place.path(), |bytes| bytes == 0);
    assert_eq!(bytes, 0, "bytes of runs in an empty database");
    assert_eq!(db.stats().trees.len(), 1);
    assert!(db.stats().written.manifest < 256 << 10, "{:?}", db.stats().written);
    db.close().unwrap();
    let db = place.open();
    assert!(db.stats().written.manifest < 4096, "{:?}", db.stats().written);
}

/// Data that arrives in order is never compacted, and is compressed all the same.
#[test]
fn a_load_in_key_order_is_compressed() {
    let place = Place::new();
    let db = place.open();
    super::fill(&db, 0..6000, 1);
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let raw: usize =
        (0..6000).map(|number| key(number).len() + super::value(number, 1).len()).sum();
    let loaded = db.stats().trees[0].base.bytes;
    assert!(loaded < raw as u64 * 7 / 10, "{raw} bytes became {loaded}");
    let stats = db.stats();
    assert!(stats.written.compaction < stats.written.flush / 3, "{:?}", stats.written);
}

/// What an earlier version, or other options, left uncompressed is compressed by `compact`, once.
#[test]
fn compact_compresses_what_settled_uncompressed() {
    let place = Place::new();
    let mut plain = small();
    plain.compression = Compression::None;
    let db = Db::open_with(place.path(), plain).unwrap();
    super::fill(&db, 0..6000, 1);
    db.compact().unwrap();
    let before = db.stats().trees[0].base.bytes;
    db.close().unwrap();
    let db = place.open();
    db.compact().unwrap();
    let after = db.stats().trees[0].base.bytes;
    assert!(after < before * 7 / 10, "{before} bytes became {after}");
    let written = db.stats().written.compaction;
    db.compact().unwrap();
    assert_eq!(db.stats().written.compaction, written, "nothing is left to do");
    db.close().unwrap();
    let db = place.open();
    db.compact().unwrap();
    assert_eq!(db.stats().written.compaction, 0, "also after it was opened again");
    assert_eq!(db.iter().unwrap().count(), 6000);
}

/// Incompressible data is not written again and again in the hope that it shrinks.
#[test]
fn compact_leaves_what_cannot_shrink() {
    let place = Place::new();
    let db = place.open();
    let mut state = 1u64;
    for number in 0..3000 {
        let value: Vec<u8> = (0..100)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        db.insert(key(number), value).unwrap();
    }
    db.compact().unwrap();
    db.close().unwrap();
    let db = place.open();
    db.compact().unwrap();
    assert_eq!(db.stats().written.compaction, 0);
}
