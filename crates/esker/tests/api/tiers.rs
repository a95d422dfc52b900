//! Tiers: what flushes, pushes and compactions do above the partitions, and what that may cost.

use super::{Place, flush_costs, key, run_files, small};
use esker::internals::options::SmallTiers;
use esker::{
    Append, CompactionFilter, Compression, Db, Decision, Event, EventKind, EventListener,
    KeyspaceOptions, Options,
};
use esker_testkit::Rng;
use esker_testkit::crashfs::CrashFs;
use esker_testkit::harness::HandClock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ENTRIES: usize = 9000;

pub(super) fn tiered(count: usize, fan_out: usize, runs: usize) -> Options {
    let mut options = small();
    options.memtable_bytes = Some(16 << 10);
    options.partition_bytes = Some(4 << 10);
    options.segment_bytes = 1 << 10;
    options.workers = Some(1);
    options.small_tiers = Some(SmallTiers { count, fan_out, runs, direct: 2, tightens: false });
    options.compression = Compression::None;
    options
}

/// The pending runs of each tier, tier 1 first.
fn pending(db: &Db) -> Vec<u64> {
    db.stats().trees[0].tiers.iter().map(|tier| tier.runs).collect()
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.iter().unwrap().map(Result::unwrap).collect()
}

#[test]
fn runs_sink_through_every_tier_and_nothing_is_lost() {
    let place = Place::new();
    let db = Db::open_with(place.path(), tiered(3, 3, 2)).unwrap();
    let (mut rng, mut model) = (Rng::new(7), BTreeMap::new());
    let mut snapshot = None;
    for round in 0..12_000u32 {
        let name = key(rng.below(1500) as usize).into_bytes();
        if rng.percent(10) {
            db.remove(&name).unwrap();
            model.remove(&name);
        } else {
            let value = [&round.to_le_bytes()[..], &[b'v'; 150]].concat();
            db.insert(&name, &value).unwrap();
            model.insert(name, value);
        }
        if round % 2000 == 1500 {
            let (low, high) = (rng.below(1400) as usize, 20 + rng.below(80) as usize);
            db.remove_range(key(low)..key(low + high)).unwrap();
            model.retain(|name, _| {
                *name < key(low).into_bytes() || *name >= key(low + high).into_bytes()
            });
        }
        if round % 200 == 0 {
            db.wait_until_idle().unwrap();
        }
        if round == 7000 {
            snapshot = Some((db.snapshot().unwrap(), model.clone()));
        }
    }
    assert_eq!(contents(&db), model);
    let stats = db.stats();
    assert_eq!(stats.trees[0].tiers.len(), 3, "{} partitions", stats.trees[0].partitions);
    assert!(stats.pushes > 50 && stats.bytes_pushed > 0, "{} pushes", stats.pushes);
    for name in (0..1500).step_by(7).map(|number| key(number).into_bytes()) {
        assert_eq!(db.get(&name).unwrap().as_ref(), model.get(&name));
    }
    let (snapshot, then) = snapshot.unwrap();
    let seen = |snapshot: &esker::Snapshot| -> BTreeMap<Vec<u8>, Vec<u8>> {
        snapshot.iter(&db.default_keyspace()).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(seen(&snapshot), then);
    // What a caller compacts has no pending runs above it.
    db.compact().unwrap();
    assert_eq!(pending(&db), [0, 0, 0]);
    assert_eq!((contents(&db), seen(&snapshot)), (model.clone(), then));
    drop(snapshot);
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    drop(db);
    // A database that asks for fewer tiers loses them as they become empty.
    let db = Db::open_with(place.path(), tiered(0, 3, 2)).unwrap();
    assert_eq!((contents(&db), pending(&db).len()), (model.clone(), 3));
    for round in 0..3 {
        db.insert(key(round), "last").unwrap();
        model.insert(key(round).into_bytes(), b"last".to_vec());
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
    }
    assert_eq!((contents(&db), pending(&db).len()), (model, 0));
}

#[test]
fn a_load_in_key_order_goes_past_the_tiers() {
    let place = Place::new();
    let db = Db::open_with(place.path(), tiered(2, 4, 3)).unwrap();
    for number in 0..4000 {
        db.insert(key(number), vec![number as u8; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    assert_eq!((stats.trees[0].tiers.len(), stats.pushes), (2, 0));
    assert_eq!(pending(&db), [0, 0]);
    assert!(stats.written.compaction < stats.written.flush / 10, "{:?}", stats.written);
    assert_eq!(db.iter().unwrap().count(), 4000);
}

#[test]
fn a_delete_above_pending_runs_is_kept_until_it_is_below_them() {
    let place = Place::new();
    let db = Db::open_with(place.path(), tiered(2, 4, 100)).unwrap();
    for round in 0..3 {
        for number in (0..600).step_by(2) {
            db.insert(key(number), format!("{round}").repeat(100)).unwrap();
        }
        db.flush().unwrap();
    }
    assert!(pending(&db).iter().sum::<u64>() > 0, "{:?}", pending(&db));
    // It touches one partition, and would go there directly if nothing were pending above.
    db.remove(key(4)).unwrap();
    db.flush().unwrap();
    assert_eq!(db.get(key(4)).unwrap(), None);
    db.wait_until_idle().unwrap();
    assert_eq!(db.get(key(4)).unwrap(), None);
    db.compact().unwrap();
    assert_eq!((db.get(key(4)).unwrap(), db.iter().unwrap().count()), (None, 299));
}

/// Removes values that begin with `-`.
struct Minus;

impl CompactionFilter for Minus {
    fn name(&self) -> &str {
        "minus"
    }

    fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
        if value.first() == Some(&b'-') { Decision::Remove } else { Decision::Keep }
    }
}

#[test]
fn a_filter_is_not_asked_under_operands_that_a_tier_holds() {
    let place = Place::new();
    let clock = Arc::new(HandClock::default());
    clock.set(1_000);
    let mut options = tiered(1, 4, 100);
    options.clock = clock.clone();
    options.compaction_filters.push(Arc::new(Minus));
    let db = Db::open_with(place.path(), options).unwrap();
    let mut of_keyspace = KeyspaceOptions::filtered("minus");
    of_keyspace.merge_operator = Some(Append::new(" ").name().to_owned());
    let keyspace = db.keyspace_with("k", of_keyspace).unwrap();
    for number in 0..2000 {
        let value = format!("-{number}");
        if number % 2 == 0 {
            keyspace.insert(key(number), value).unwrap();
        } else {
            keyspace.insert_with_ttl(key(number), value, Duration::from_millis(10)).unwrap();
        }
    }
    db.flush().unwrap();
    assert_eq!(keyspace.iter().unwrap().count(), 2000, "sorted data is not compacted");
    for number in (0..2000).step_by(10) {
        keyspace.merge(key(number), "+").unwrap();
    }
    db.flush().unwrap();
    let pending: u64 = db.stats().trees.iter().flat_map(|t| &t.tiers).map(|t| t.runs).sum();
    assert!(pending > 0, "the operands are in a tier");
    clock.set(2_000);
    db.wait_until_idle().unwrap();
    assert!(db.stats().entries_expired > 0, "partitions were compacted under the operands");
    for number in (0..2000).step_by(10) {
        let value = keyspace.get(key(number)).unwrap().unwrap();
        assert_eq!(String::from_utf8(value).unwrap(), format!("-{number} +"));
    }
}

/// A database of 2,000 partitions and more under one tier, with nothing to do.
fn wide() -> (Place, Db) {
    let place = Place::new();
    let mut options = tiered(1, 10, 1000);
    options.memory = Some(32 << 20);
    options.memtable_bytes = Some(2 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    for number in 0..ENTRIES {
        db.insert(key(number), vec![number as u8; 1000]).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    assert!(db.stats().trees[0].partitions >= 2000);
    // So that there is something over every partition, and no path is clear.
    for number in (0..ENTRIES).step_by(2) {
        db.insert(key(number), "new").unwrap();
    }
    db.flush().unwrap();
    assert!(pending(&db)[0] >= 100, "{:?}", pending(&db));
    (place, db)
}

#[test]
fn range_deletes_above_two_thousand_partitions_are_an_edit_of_fixed_size() {
    let (place, db) = wide();
    let runs = pending(&db)[0];
    db.remove_range(key(4000)..key(4001)).unwrap();
    let (edit, written) = flush_costs(&db);
    assert!(edit < 600 && written < 1024, "narrow: {edit} bytes, {written} bytes of runs");
    assert_eq!(pending(&db), [runs + 1]);
    db.remove_range(key(100)..key(ENTRIES - 100)).unwrap();
    let (edit, written) = flush_costs(&db);
    assert!(edit < 1500 && written < 4096, "wide: {edit} bytes, {written} bytes of runs");
    assert_eq!(db.iter().unwrap().count(), 200);
    let (bytes, _) = run_files(&place.path());
    db.compact().unwrap();
    assert_eq!((db.iter().unwrap().count(), pending(&db)), (200, vec![0]));
    let left = super::settled(&db, &place.path(), |left| left < bytes * 2 / 3);
    assert!(left < bytes * 2 / 3, "{left} of {bytes} bytes are left");
}

#[test]
fn ten_thousand_range_deletes_are_one_run_for_each_span_that_they_touch() {
    let (_place, db) = wide();
    let (before, flushes) = (pending(&db)[0], db.stats().flushes);
    for number in 0..10_000 {
        let key = key(number % ENTRIES);
        db.remove_range(format!("{key}a{number}")..format!("{key}b")).unwrap();
    }
    let (edit, written) = flush_costs(&db);
    let (runs, flushes) = (pending(&db)[0] - before, db.stats().flushes - flushes);
    let spans = db.stats().trees[0].partitions / 10 + 1;
    assert!(runs <= spans * flushes, "{runs} runs in {spans} spans");
    assert!(edit < 300 * spans, "an edit of {edit} bytes for {spans} spans");
    assert!(written < 10_000 * 100, "{written} bytes of runs");
    assert_eq!(db.iter().unwrap().count(), ENTRIES);
}

/// Counts the background work that was requested, and not just due.
#[derive(Default)]
struct Requested(AtomicU64);

impl EventListener for Requested {
    fn event(&self, event: &Event) {
        if matches!(event.kind, EventKind::CompactionBegin { cause: "requested", .. }) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// What a killed database had not flushed is flushed by the open, which knows how large the tree is.
#[test]
fn an_open_after_a_kill_keeps_the_tiers() {
    const PATH: &str = "/db";
    let disk = CrashFs::new();
    let mut options = tiered(1, 3, 8);
    options.small_tiers = None;
    (options.partition_bytes, options.segment_bytes) = (Some(128 << 10), 4 << 10);
    options.fs = disk.as_fs();
    let db = Db::open_with(PATH, options.clone()).unwrap();
    let mut rng = Rng::new(3);
    let mut write = |db: &Db, count: usize| {
        for _ in 0..count {
            db.insert(key(rng.below(6000) as usize), [7; 200]).unwrap();
        }
    };
    // About 60 times the bytes of a flush.
    write(&db, 15_000);
    db.compact().unwrap();
    write(&db, 40);
    db.flush().unwrap();
    let tiers = pending(&db);
    assert!(!tiers.is_empty() && tiers.iter().sum::<u64>() > 0, "{tiers:?}");
    write(&db, 40);
    let killed = disk.kill_clone();
    let requested = Arc::new(Requested::default());
    options.fs = killed.as_fs();
    options.on_event = Some(requested.clone());
    let db = Db::open_with(PATH, options).unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(pending(&db).len(), tiers.len());
    db.close().unwrap();
    assert_eq!(requested.0.load(Ordering::SeqCst), 0, "pushes were requested");
}

fn tightened(count: usize) -> Options {
    let mut options = tiered(count, 3, 4);
    options.small_tiers = options.small_tiers.map(|tiers| SmallTiers { tightens: true, ..tiers });
    options
}

/// Writes so many values of random keys.
fn overwrite(db: &Db, rng: &mut Rng, entries: usize, keys: usize) {
    for round in 0..entries {
        let value = [&(round as u64).to_le_bytes()[..], &[b'v'; 150]].concat();
        db.insert(key(rng.below(keys as u64) as usize), value).unwrap();
    }
}

/// Less than an eighth of what lies below it waits anywhere.
fn check_tight(db: &Db) {
    let tree = &db.stats().trees[0];
    let waiting: u64 = tree.tiers.iter().chain(&tree.deltas).map(|level| level.bytes).sum();
    assert!(waiting * 8 <= tree.base.bytes, "{waiting} bytes wait above {}", tree.base.bytes);
}

#[test]
fn without_writes_little_is_left_to_wait() {
    let place = Place::new();
    let db = Db::open_with(place.path(), tiered(2, 3, 4)).unwrap();
    overwrite(&db, &mut Rng::new(3), ENTRIES, 2000);
    db.wait_until_idle().unwrap();
    let before = contents(&db);
    db.close().unwrap();
    drop(db);

    let db = Db::open_with(place.path(), tightened(2)).unwrap();
    db.wait_until_idle().unwrap();
    assert!(pending(&db).iter().sum::<u64>() > 0, "nothing was written since it was opened");
    db.insert("a key", "a value").unwrap();
    db.wait_until_idle().unwrap();
    check_tight(&db);
    db.remove("a key").unwrap();
    assert_eq!(contents(&db), before);
}

/// Writes that pause after every flush are no reason to rewrite the tree each time.
#[test]
fn pauses_of_the_writes_have_a_byte_rewritten_a_few_times() {
    const KEYS: usize = 6000;
    let place = Place::new();
    let db = Db::open_with(place.path(), tightened(2)).unwrap();
    let mut rng = Rng::new(5);
    (0..KEYS).for_each(|number| db.insert(key(number), [b'v'; 158]).unwrap());
    db.wait_until_idle().unwrap();
    let before = db.stats().written;
    for _ in 0..200 {
        overwrite(&db, &mut rng, 80, KEYS);
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
    }
    let written = db.stats().written;
    let (user, rewritten) = (written.user - before.user, written.compaction - before.compaction);
    // Once per tier, nine times for tightening, and three times by what is due in any case.
    let times = rewritten as f64 / user as f64;
    println!("{times:.1}");
    assert!(times < 14.0, "a byte was rewritten {times:.1} times");
}

#[test]
fn what_a_branch_shares_is_not_tightened() {
    let place = Place::new();
    let db = Db::open_with(place.path(), tiered(2, 3, 4)).unwrap();
    overwrite(&db, &mut Rng::new(3), ENTRIES, 2000);
    db.wait_until_idle().unwrap();
    db.close().unwrap();
    drop(db);

    let db = Db::open_with(place.path(), tightened(2)).unwrap();
    db.wait_until_idle().unwrap();
    drop(db.branch("branch").unwrap());
    let (before, written) = (pending(&db), db.stats().written.compaction);
    db.insert("a key", "a value").unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(pending(&db), before);
    assert_eq!(db.stats().written.compaction, written, "the branch had to keep a copy");
    assert!(db.drop_branch("branch").unwrap());
    db.insert("a key", "another").unwrap();
    db.wait_until_idle().unwrap();
    check_tight(&db);
}
