//! The public interface, one behaviour per test. Everything here goes through `esker::` names
//! only, on the real file system, with options small enough that every test flushes and compacts.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod asked_ahead;
mod batches;
mod bounds;
mod branches;
mod causes;
mod checkpoints;
mod contents;
mod cursors;
mod damaged_spans;
mod durability;
mod explain;
mod filters;
mod held;
mod held_numbers;
mod ingestion;
mod ingestion_ranges;
mod interrupted;
mod iterators;
mod keyspaces;
mod left_behind;
mod life;
mod limits;
mod maintenance;
mod many_times;
mod memory;
#[cfg(unix)]
mod names;
mod observed;
#[cfg(unix)]
mod offline;
mod operators;
mod orders;
mod pinned;
mod range_deletes;
mod read_costs;
mod reads;
mod rest;
mod scale;
mod separated;
mod settling;
mod shared_work;
mod snapshots;
mod space;
mod statistics;
mod statistics_of_order;
mod streamed;
mod temperature;
mod tier_bounds;
mod tiers;
mod together;
mod transaction_conflicts;
mod transaction_locks;
mod transactions;
mod ttl;
mod updates;
mod warm;

use esker::{Db, Iter, Options};
use esker_testkit::files::{allocated, copy};
use esker_testkit::harness::tiny_options;
use std::path::{Path, PathBuf};

/// A directory for one database, removed at the end.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("db")
    }

    /// Opens with sizes small enough that little data makes many runs and partitions.
    fn open(&self) -> Db {
        Db::open_with(self.path(), small()).unwrap()
    }
}

/// Opens with sizes so large that nothing happens in the background to a little data: for tests
/// that copy the files of an open database.
fn open_roomy(place: &Place) -> Db {
    let mut options = Options::default();
    options.memory = Some(64 << 20);
    options.workers = Some(1);
    Db::open_with(place.path(), options).unwrap()
}

/// The database as another process would find it if this one died now: a copy of its files.
fn as_after_a_crash(place: &Place) -> Place {
    let dead = Place::new();
    copy(&place.path(), &dead.path());
    dead
}

/// Sizes so small that little data makes many runs and partitions.
fn small() -> Options {
    let mut options = tiny_options();
    options.memory = Some(4 << 20);
    options.memtable_bytes = Some(32 << 10);
    options.partition_bytes = Some(64 << 10);
    options.segment_bytes = 8 << 10;
    options.log_file_bytes = 64 << 10;
    options
}

/// A database and the directory that it stands in.
fn fresh() -> (Place, Db) {
    let place = Place::new();
    let db = place.open();
    (place, db)
}

/// Checks a database, and again after a compaction and after it was reopened.
fn lasts(place: &Place, db: &Db, check: impl Fn(&Db)) {
    check(db);
    db.compact().unwrap();
    check(db);
    db.close().unwrap();
    check(&place.open());
}

/// The base of the default keyspace.
fn base(db: &Db) -> esker::LevelShape {
    db.stats().trees[0].base
}

fn key(number: usize) -> String {
    format!("key{number:06}")
}

/// Inserts `numbers` with values that tell their number and the round.
fn fill(db: &Db, numbers: impl IntoIterator<Item = usize>, round: usize) {
    for number in numbers {
        db.insert(key(number), value(number, round)).unwrap();
    }
}

fn value(number: usize, round: usize) -> String {
    format!("value {number} of round {round} {}", "x".repeat(number % 60))
}

/// The keys that an iterator returns, as text.
fn keys(iter: impl Iterator<Item = esker::Result<(Vec<u8>, Vec<u8>)>>) -> Vec<String> {
    iter.map(|entry| String::from_utf8(entry.unwrap().0).unwrap()).collect()
}

fn entries(iter: Iter) -> Vec<(Vec<u8>, Vec<u8>)> {
    iter.map(|entry| entry.unwrap()).collect()
}

fn text(value: Option<Vec<u8>>) -> Option<String> {
    value.map(|value| String::from_utf8(value).unwrap())
}

/// What the next flush appends to the manifest and writes to runs.
fn flush_costs(db: &Db) -> (u64, u64) {
    let before = db.stats().written;
    db.flush().unwrap();
    let after = db.stats().written;
    (after.manifest.saturating_sub(before.manifest), after.flush - before.flush)
}

/// Bytes that the device holds for the run files of a database, and how many there are.
fn run_files(path: &Path) -> (u64, usize) {
    let entries = std::fs::read_dir(path.join("data")).unwrap();
    let sizes: Vec<u64> = entries
        // A worker may remove a file while this looks.
        .filter_map(|entry| std::fs::metadata(entry.unwrap().path()).ok())
        .map(|metadata| allocated(&metadata))
        .collect();
    (sizes.iter().sum(), sizes.len())
}

/// Waits until `enough` holds for the bytes of the run files; fails if it never does. Segments of less
/// than 64 KiB share pages with their neighbours, and such a page is only given back when the database is
/// opened again.
fn shrinks(db: &Db, place: &Place, enough: impl Fn(u64) -> bool) {
    let taken = settled(db, &place.path(), &enough);
    assert!(enough(taken), "{taken} bytes are still taken");
}

/// Waits for the background until `enough` holds for the bytes of the run files, and returns them.
/// Space returns when the last reader has left its epoch, and epochs are shared by all tests of
/// this process, so one wait may be too few; the number of waits is bounded, not their time.
fn settled(db: &Db, path: &Path, enough: impl Fn(u64) -> bool) -> u64 {
    for _ in 0..50_000 {
        db.wait_until_idle().unwrap();
        if enough(run_files(path).0) {
            break;
        }
        std::thread::yield_now();
    }
    run_files(path).0
}
