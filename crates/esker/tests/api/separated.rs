//! Values that are separated from their keys: what is read, what is given back, and what is not rewritten.

use super::{Place, entries, key, run_files, settled, shrinks, small};
use esker::{Append, CompactionFilter, Db, Decision, ErrorKind, KeyspaceOptions, Options};
use esker_testkit::Rng;
use esker_testkit::harness::HandClock;
use esker_testkit::orders::Reverse;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// From here on values are separated.
const FROM: usize = 256;

pub(super) fn options() -> Options {
    let mut options = small();
    options.separate_values_from = Some(FROM as u32);
    options
}

pub(super) fn open(place: &Place) -> Db {
    Db::open_with(place.path(), options()).unwrap()
}

/// A value that says which it is, and does not compress.
fn value(number: usize, round: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(number as u64 * 1009 + round);
    (0..len).map(|_| rng.below(256) as u8).collect()
}

/// Lengths around the bound, and far above it.
fn len_of(number: usize) -> usize {
    [0, 10, FROM - 1, FROM, FROM + 1, 1000, 5000][number % 7]
}

fn fill(db: &Db, numbers: impl Iterator<Item = usize>, round: u64) {
    for number in numbers {
        db.insert(key(number), value(number, round, len_of(number))).unwrap();
    }
}

fn check(db: &Db, numbers: std::ops::Range<usize>, round: impl Fn(usize) -> u64) {
    let expected = |number: usize| value(number, round(number), len_of(number));
    for number in numbers.clone() {
        assert_eq!(db.get(key(number)).unwrap().unwrap(), expected(number), "{number}");
    }
    scans(db, numbers.map(|number| (key(number).into(), expected(number))).collect());
}

/// Checks scans in both directions, and that nothing is damaged.
pub(super) fn scans(db: &Db, all: Vec<(Vec<u8>, Vec<u8>)>) {
    assert!(entries(db.iter().unwrap()) == all, "a scan forward");
    let mut back: Vec<_> = db.iter().unwrap().rev().map(Result::unwrap).collect();
    back.reverse();
    assert!(back == all, "a scan backward");
    assert_eq!(db.verify().unwrap().problems.len(), 0);
}

#[test]
fn values_of_all_lengths_are_read_after_everything_that_happens_to_them() {
    let place = Place::new();
    let db = open(&place);
    fill(&db, 0..700, 1);
    check(&db, 0..700, |_| 1);
    db.flush().unwrap();
    check(&db, 0..700, |_| 1);
    fill(&db, (0..700).filter(|number| number % 3 == 0), 2);
    db.wait_until_idle().unwrap();
    let round = |number: usize| if number.is_multiple_of(3) { 2 } else { 1 };
    check(&db, 0..700, round);
    drop(db);
    let db = open(&place);
    check(&db, 0..700, round);
    db.compact().unwrap();
    check(&db, 0..700, round);
    drop(db);
    // The option says what is written, not what can be read.
    let db = Db::open_with(place.path(), small()).unwrap();
    check(&db, 0..700, round);
    db.compact().unwrap();
    check(&db, 0..700, round);
}

#[test]
fn snapshots_and_branches_keep_the_values_that_they_see() {
    let place = Place::new();
    let db = open(&place);
    fill(&db, 0..350, 1);
    db.flush().unwrap();
    let snapshot = db.snapshot().unwrap();
    let branch = db.branch("old").unwrap();
    db.snapshot_named("kept").unwrap();
    for round in 2..6 {
        fill(&db, 0..350, round);
        db.compact().unwrap();
    }
    check(&db, 0..350, |_| 5);
    check(&branch, 0..350, |_| 1);
    check(&db.open_named_snapshot("kept").unwrap(), 0..350, |_| 1);
    let default = db.default_keyspace();
    for number in 0..350 {
        let seen = snapshot.get(&default, key(number)).unwrap();
        assert_eq!(seen.unwrap(), value(number, 1, len_of(number)));
    }
    drop(snapshot);
    drop((branch, default, db));
    let db = open(&place);
    check(&db.open_branch("old").unwrap(), 0..350, |_| 1);
    db.drop_branch("old").unwrap();
    db.drop_named_snapshot("kept").unwrap();
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    check(&db, 0..350, |_| 5);
    let alive: usize = (0..350).map(len_of).sum();
    shrinks(&db, &place, |taken| taken < alive as u64 * 4 / 3);
}

#[test]
fn a_checkpoint_has_the_values() {
    let place = Place::new();
    let db = open(&place);
    fill(&db, 0..350, 1);
    db.flush().unwrap();
    let copy = place.path().with_extension("copy");
    db.checkpoint(&copy).unwrap();
    for round in 2..5 {
        fill(&db, 0..350, round);
        db.compact().unwrap();
    }
    drop(db);
    let copy = Db::open_with(copy, options()).unwrap();
    check(&copy, 0..350, |_| 1);
    copy.compact().unwrap();
    check(&copy, 0..350, |_| 1);
}

#[test]
fn what_expires_is_separated_too() {
    let place = Place::new();
    let clock = Arc::new(HandClock::default());
    clock.set(1_000);
    let mut options = options();
    options.clock = clock.clone();
    let db = Db::open_with(place.path(), options).unwrap();
    for number in 0..300 {
        let life = Duration::from_secs(if number % 2 == 0 { 10 } else { 100 });
        db.default_keyspace().insert_with_ttl(key(number), value(number, 1, 700), life).unwrap();
    }
    db.flush().unwrap();
    let seen = || {
        let all = entries(db.iter().unwrap());
        for (found, bytes) in &all {
            assert_eq!(db.get(found).unwrap().as_ref(), Some(bytes));
        }
        assert_eq!(db.iter().unwrap().rev().count(), all.len());
        all.len()
    };
    assert_eq!(seen(), 300);
    clock.set(50_000);
    assert_eq!(seen(), 150);
    assert_eq!(db.get(key(1)).unwrap().unwrap(), value(1, 1, 700));
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(seen(), 150);
    shrinks(&db, &place, |taken| taken < 150 * 700 * 3 / 2);
    clock.set(500_000);
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(seen(), 0);
    shrinks(&db, &place, |taken| taken < 4096);
}

#[test]
fn operands_meet_separated_values() {
    let place = Place::new();
    let db = open(&place);
    let joins = KeyspaceOptions::merging(Append::new("+").name());
    let keyspace = db.keyspace_with("k", joins).unwrap();
    for number in 0..200 {
        keyspace.insert(key(number), value(number, 1, len_of(number))).unwrap();
    }
    db.flush().unwrap();
    for number in (0..200).step_by(2) {
        keyspace.merge(key(number), "end").unwrap();
    }
    let expected = |number: usize| {
        let mut value = value(number, 1, len_of(number));
        if number.is_multiple_of(2) {
            value.extend_from_slice(b"+end");
        }
        value
    };
    let check = || {
        for number in 0..200 {
            assert_eq!(keyspace.get(key(number)).unwrap().unwrap(), expected(number), "{number}");
        }
        let all: Vec<_> = (0..200).map(|number| (key(number).into(), expected(number))).collect();
        assert!(entries(keyspace.iter().unwrap()) == all);
        assert_eq!(db.verify().unwrap().problems.len(), 0);
    };
    check();
    db.flush().unwrap();
    check();
    db.compact().unwrap();
    check();
}

/// Removes values that begin with an even byte while it is on.
#[derive(Default)]
struct Even(AtomicBool);

impl CompactionFilter for Even {
    fn name(&self) -> &str {
        "even"
    }

    fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
        let goes = value.first().is_some_and(|byte| byte % 2 == 0);
        if goes && self.0.load(Ordering::SeqCst) { Decision::Remove } else { Decision::Keep }
    }
}

#[test]
fn filters_see_separated_values_which_stay_where_they_are() {
    let place = Place::new();
    let filter = Arc::new(Even::default());
    let mut options = options();
    options.compaction_filters.push(filter.clone());
    let db = Db::open_with(place.path(), options).unwrap();
    let keyspace = db.keyspace_with("k", KeyspaceOptions::filtered("even")).unwrap();
    for number in 0..300 {
        keyspace.insert(key(number), value(number, 1, 1000)).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let before = db.stats().written.compaction;
    keyspace.compact().unwrap();
    let written = db.stats().written.compaction - before;
    assert!(written < 60_000, "keys and references, but {written} bytes were written");
    filter.0.store(true, Ordering::SeqCst);
    keyspace.compact().unwrap();
    let stays = |number: &usize| value(*number, 1, 1)[0] % 2 == 1;
    let expected: Vec<_> =
        (0..300).filter(stays).map(|n| (key(n).into(), value(n, 1, 1000))).collect();
    assert!(entries(keyspace.iter().unwrap()) == expected);
    assert_eq!(db.verify().unwrap().problems.len(), 0);
}

#[test]
fn a_custom_order_changes_nothing() {
    let place = Place::new();
    let db = open(&place);
    let keyspace = db.keyspace_ordered("k", Arc::new(Reverse)).unwrap();
    for round in 1..4 {
        for number in 0..300 {
            keyspace.insert(key(number), value(number, round, len_of(number))).unwrap();
        }
        db.flush().unwrap();
    }
    let check = || {
        let of = |number: usize| (key(number).into(), value(number, 3, len_of(number)));
        let all: Vec<_> = (0..300).rev().map(of).collect();
        assert!(entries(keyspace.iter().unwrap()) == all);
        assert_eq!(keyspace.get(key(6)).unwrap().unwrap(), value(6, 3, 5000));
        assert_eq!(db.verify().unwrap().problems.len(), 0);
    };
    check();
    db.compact().unwrap();
    check();
}

/// What compactions have written since, for each byte of new data.
fn write_amplification(db: &Db, before: u64, bytes: u64) -> f64 {
    db.wait_until_idle().unwrap();
    (db.stats().written.compaction - before) as f64 / bytes as f64
}

/// Partitions of a few times a flush, and flushes of a few value segments, as by default.
fn open_in_proportion(place: &Place) -> Db {
    let mut options = options();
    options.segment_bytes = 64 << 10;
    options.memtable_bytes = Some(256 << 10);
    options.partition_bytes = Some(1 << 20);
    Db::open_with(place.path(), options).unwrap()
}

#[test]
fn compactions_of_inserts_leave_values_where_they_are() {
    let place = Place::new();
    let db = open_in_proportion(&place);
    let (mut rng, mut bytes) = (Rng::new(7), 0);
    for number in 0..8000u64 {
        let key = format!("{:016x}", rng.next());
        db.insert(&key, value(number as usize, 1, 2000)).unwrap();
        bytes += 2000;
    }
    let written = write_amplification(&db, 0, bytes);
    assert!(written < 0.5, "{written}");
    assert_eq!(db.iter().unwrap().count(), 8000);
}

#[test]
fn what_is_dead_comes_back_while_values_are_overwritten() {
    const KEYS: u64 = 4000;
    let place = Place::new();
    let db = open_in_proportion(&place);
    let alive = KEYS * 2000;
    let (mut rng, mut most) = (Rng::new(11), 0);
    for number in 0..KEYS as usize {
        db.insert(key(number), value(number, 0, 2000)).unwrap();
    }
    db.wait_until_idle().unwrap();
    let before = db.stats().written.compaction;
    for round in 1..=5 * KEYS {
        let number = rng.below(KEYS) as usize;
        db.insert(key(number), value(number, round, 2000)).unwrap();
        if round % (KEYS / 20) == 0 {
            db.wait_until_idle().unwrap();
            let now = run_files(&place.path()).0;
            most = most.max(now);
        }
    }
    let written = write_amplification(&db, before, 5 * alive);
    assert!(most < alive * 2, "{most} bytes for {alive} that are alive");
    assert!(written < 3.5, "{written}");
    db.compact().unwrap();
    // Pages that are not full count too.
    shrinks(&db, &place, |taken| taken < alive * 6 / 5);
    assert_eq!(db.iter().unwrap().count(), KEYS as usize);
}

/// Flips a bit where run files hold these bytes, once in each file; returns in how many.
pub(super) fn flip(place: &Place, wanted: &[u8]) -> usize {
    let flip_in = |path: PathBuf| {
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(wanted.len()).position(|window| window == wanted)?;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        Some(())
    };
    let files = std::fs::read_dir(place.path().join("data")).unwrap();
    files.filter_map(|file| flip_in(file.unwrap().path())).count()
}

#[test]
fn a_damaged_value_is_refused_and_named_and_a_repair_saves_the_others() {
    let place = Place::new();
    let db = open(&place);
    for number in 0..40 {
        db.insert(key(number), value(number, 1, 2000)).unwrap();
    }
    db.compact().unwrap();
    drop(db);
    assert_eq!(flip(&place, &value(17, 1, 2000)[1000..1064]), 1);
    let db = open(&place);
    let error = db.get(key(17)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(db.get(key(16)).unwrap().unwrap(), value(16, 1, 2000));
    let walked = db.iter().unwrap().find_map(Result::err).unwrap();
    assert_eq!(walked.kind(), ErrorKind::Corruption);
    let problems = db.verify().unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    drop(db);
    let saved = place.path().with_extension("saved");
    let plan = esker::repair::salvage(place.path(), &saved, &options()).unwrap();
    assert!(plan.plan.has_losses());
    let db = Db::open_with(saved, options()).unwrap();
    let there: Vec<_> = (0..40).filter(|number| db.get(key(*number)).unwrap().is_some()).collect();
    assert_eq!(there, (0..40).filter(|number| *number != 17).collect::<Vec<_>>());
    assert_eq!(db.get(key(39)).unwrap().unwrap(), value(39, 1, 2000));
}

#[test]
fn ingested_values_are_separated_and_counted_once() {
    let place = Place::new();
    let db = open(&place);
    let mut ingestion = db.ingest().unwrap();
    let default = db.default_keyspace();
    for number in 0..500 {
        ingestion.insert(&default, key(number), value(number, 1, len_of(number))).unwrap();
    }
    ingestion.commit().unwrap();
    check(&db, 0..500, |_| 1);
    fill(&db, (0..500).filter(|number| number % 2 == 0), 2);
    db.compact().unwrap();
    check(&db, 0..500, |number| if number % 2 == 0 { 2 } else { 1 });
    drop((default, db));
    check(&open(&place), 0..500, |number| if number % 2 == 0 { 2 } else { 1 });
}

#[test]
fn a_value_segment_is_emptied_by_all_run_segments_that_refer_to_it() {
    let place = Place::new();
    let mut options = options();
    options.segment_bytes = 16 << 10;
    options.memtable_bytes = Some(1 << 20);
    options.partition_bytes = Some(16 << 20);
    let open = || Db::open_with(place.path(), options.clone()).unwrap();
    let db = open();
    // Values of one value segment whose keys stand far apart.
    let far = |number: usize| format!("{number:02}");
    for number in 0..20 {
        db.insert(far(number), value(number, 1, 3000)).unwrap();
    }
    db.flush().unwrap();
    // What comes between them makes the references stand in many run segments.
    for number in 0..20 {
        for between in 0..300 {
            let key = format!("{number:02}-{between:03}");
            db.insert(key, value(between, 2, 200)).unwrap();
        }
    }
    db.compact().unwrap();
    drop(db);
    let db = open();
    let before = settled(&db, &place.path(), |taken| taken < 1_500_000);
    for number in 0..19 {
        db.insert(far(number), "small").unwrap();
    }
    db.compact().unwrap();
    drop(db);
    let db = open();
    // The value that is left moves, though nothing comes near its key, so the value segment goes.
    shrinks(&db, &place, |taken| taken + 40_000 < before);
    assert_eq!(db.get(far(19)).unwrap().unwrap(), value(19, 1, 3000));
    assert_eq!(db.verify().unwrap().problems.len(), 0);
}
