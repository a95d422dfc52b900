//! What branches share is pushed and compacted once, and installed in all of them (S12).

use super::{Place, key, small};
use esker::internals::options::SmallTiers;
use esker::{Append, CompactionFilter, Compression, Db, Decision, KeyspaceOptions, Options};
use esker_testkit::Rng;
use esker_testkit::harness::HandClock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const KEYS: u64 = 2000;
const BRANCHES: usize = 8;

/// Spans are due at so many runs.
fn options(count: usize, runs: usize, workers: usize) -> Options {
    let mut options = small();
    // Without tiers all that waits has to be in memory, or it would be compacted at once.
    options.memory = Some(32 << 20);
    options.memtable_bytes = Some(if count == 0 { 2 << 20 } else { 16 << 10 });
    options.partition_bytes = Some(8 << 10);
    options.segment_bytes = 1 << 10;
    options.workers = Some(workers);
    options.small_tiers = Some(SmallTiers { count, fan_out: 3, runs, direct: 2, tightens: false });
    options.compression = Compression::None;
    options
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(db: &Db) -> Contents {
    db.iter().unwrap().map(Result::unwrap).collect()
}

/// Writes puts, deletes and range deletes.
fn overwrite(db: &Db, rng: &mut Rng, operations: usize) {
    for round in 0..operations {
        let name = key(rng.below(KEYS) as usize);
        match rng.below(100) {
            0..90 => db.insert(name, [&round.to_le_bytes()[..], &[b'v'; 150]].concat()).unwrap(),
            90..99 => db.remove(name).unwrap(),
            _ => {
                let low = rng.below(KEYS) as usize;
                db.remove_range(key(low)..key(low + 30)).unwrap();
            }
        }
    }
}

fn branches(db: &Db) -> Vec<Db> {
    db.branches().unwrap().iter().map(|name| db.open_branch(name).unwrap()).collect()
}

/// A database in which much waits, with branches that share all of it: some of it was in memory when
/// they were made. Returns what it holds, and the bytes that were compacted already since then.
fn with_backlog(place: &Place, tiers: usize, branches: usize) -> (Contents, u64) {
    let db = Db::open_with(place.path(), options(tiers, 1000, 1)).unwrap();
    let mut rng = Rng::new(11);
    overwrite(&db, &mut rng, 6000);
    db.compact().unwrap();
    overwrite(&db, &mut rng, 2000);
    let before = db.stats().written.compaction;
    for number in 0..branches {
        drop(db.branch(&format!("branch {number}")).unwrap());
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let (contents, after) = (contents(&db), db.stats().written.compaction);
    db.close().unwrap();
    (contents, after - before)
}

/// The bytes that pushes and compactions write until nothing is due, with so many branches, and the
/// bytes of the manifest.
fn work(tiers: usize, branches_made: usize, workers: usize) -> (u64, u64) {
    let place = Place::new();
    let (expected, done) = with_backlog(&place, tiers, branches_made);
    let db = Db::open_with(place.path(), options(tiers, 2, workers)).unwrap();
    db.wait_until_idle().unwrap();
    assert!(contents(&db) == expected, "{branches_made} branches");
    for branch in branches(&db) {
        assert!(contents(&branch) == expected, "a branch of {branches_made}");
    }
    let written = db.stats().written;
    (done + written.compaction, written.manifest)
}

#[test]
fn what_untouched_branches_share_is_pushed_and_compacted_once() {
    for (tiers, workers) in [(0, 1), (1, 1), (2, 2)] {
        let (alone, edits) = work(tiers, 0, workers);
        let (shared, shared_edits) = work(tiers, BRANCHES, workers);
        let what = format!(
            "{tiers} tiers, {workers} workers: {alone} bytes without branches, {shared} with \
             {BRANCHES}; the manifest has {edits} and {shared_edits} bytes"
        );
        println!("{what}");
        assert!(alone > 100_000, "{what}");
        assert!(shared < alone * 11 / 10, "{what}");
        assert!(shared_edits < edits * (BRANCHES as u64 + 2), "{what}");
    }
}

/// The pending runs and deltas of the trees of a database or branch.
fn waiting(db: &Db) -> u64 {
    let trees = db.stats().trees;
    trees
        .iter()
        .flat_map(|tree| tree.tiers.iter().chain(&tree.deltas))
        .map(|level| level.runs)
        .sum()
}

#[test]
fn named_snapshots_keep_what_they_have() {
    let place = Place::new();
    with_backlog(&place, 2, 2);
    let db = Db::open_with(place.path(), options(2, 1000, 1)).unwrap();
    db.snapshot_named("moment").unwrap();
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    let db = Db::open_with(place.path(), options(2, 1, 1)).unwrap();
    let moment = db.open_named_snapshot("moment").unwrap();
    let kept = waiting(&moment);
    assert!(kept > 50);
    db.wait_until_idle().unwrap();
    db.remove_range(key(0)..key(1000)).unwrap();
    db.compact().unwrap();
    assert!(waiting(&db) < kept / 4 && branches(&db).iter().all(|b| waiting(b) < kept / 4));
    assert!(waiting(&moment) == kept && contents(&moment) == before);
    assert!(branches(&db).iter().all(|branch| contents(branch) == before));
}

/// A key behind all others goes past the tiers: the last span stays the same as in the other branches,
/// and a partition below it does not.
#[test]
fn branches_that_differ_below_a_span_keep_what_they_have() {
    for branch in [0, 1] {
        let place = Place::new();
        let (mut expected, _) = with_backlog(&place, 1, 2);
        let db = Db::open_with(place.path(), options(1, 1000, 1)).unwrap();
        let all = branches(&db);
        let before = waiting(&all[branch]);
        all[branch].insert("z", "in a partition").unwrap();
        all[branch].flush().unwrap();
        let of_tiers = |db: &Db| db.stats().trees[0].tiers[0].runs;
        assert_eq!(of_tiers(&all[branch]), of_tiers(&db), "it went past the tier");
        assert_eq!(waiting(&all[branch]), before + 1);
        db.close().unwrap();
        drop((all, db));
        let db = Db::open_with(place.path(), options(1, 1, 1)).unwrap();
        db.wait_until_idle().unwrap();
        let all = branches(&db);
        assert!(contents(&db) == expected && contents(&all[1 - branch]) == expected);
        expected.insert(b"z".to_vec(), b"in a partition".to_vec());
        assert!(contents(&all[branch]) == expected, "branch {branch}");
    }
}

/// A branch that was written to is worked on by itself, where it was written to.
#[test]
fn branches_that_differ_keep_what_they_have() {
    for (seed, runs) in [(1, 1), (2, 2), (3, 2)] {
        let place = Place::new();
        with_backlog(&place, 2, 3);
        let db = Db::open_with(place.path(), options(2, 1000, 1)).unwrap();
        let mut rng = Rng::new(seed);
        let written = branches(&db);
        for (number, db) in written.iter().take(2).chain([&db]).enumerate() {
            // Few writes reach few spans, and the rest goes on being shared.
            for _ in 0..5 + 40 * number {
                db.insert(key(rng.below(KEYS) as usize), format!("of {number}")).unwrap();
            }
            let low = rng.below(KEYS) as usize;
            db.remove_range(key(low)..key(low + 100)).unwrap();
            db.flush().unwrap();
        }
        let all = |db: &Db| branches(db).iter().map(contents).collect::<Vec<_>>();
        let expected = (contents(&db), all(&db));
        db.close().unwrap();
        drop((written, db));
        let db = Db::open_with(place.path(), options(2, runs, 2)).unwrap();
        db.wait_until_idle().unwrap();
        assert!((contents(&db), all(&db)) == expected, "seed {seed}, due at {runs} runs");
        for branch in branches(&db) {
            branch.compact().unwrap();
        }
        assert!((contents(&db), all(&db)) == expected, "seed {seed}, compacted");
        db.close().unwrap();
        drop(db);
        let db = Db::open_with(place.path(), options(2, runs, 2)).unwrap();
        assert!((contents(&db), all(&db)) == expected, "seed {seed}, opened again");
        assert!(db.verify().unwrap().problems.is_empty());
    }
}

/// With other code the result might be another.
#[test]
fn branches_with_other_traits_are_worked_on_by_themselves() {
    let bytes = |change: bool| {
        let place = Place::new();
        let (expected, _) = with_backlog(&place, 2, 1);
        let db = Db::open_with(place.path(), options(2, 1000, 1)).unwrap();
        if change {
            let ttl = Some(Duration::from_secs(1 << 30));
            branches(&db)[0].default_keyspace().set_ttl(ttl).unwrap();
        }
        db.close().unwrap();
        drop(db);
        let db = Db::open_with(place.path(), options(2, 2, 1)).unwrap();
        db.wait_until_idle().unwrap();
        assert!(contents(&branches(&db)[0]) == expected && contents(&db) == expected);
        db.stats().written.compaction
    };
    let (same, other) = (bytes(false), bytes(true));
    assert!(other > same * 19 / 10, "{same} bytes, {other} with other traits");
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

/// In the tree of a branch operands may lie above the same partition: there the filter must not have
/// been asked, and in the parent it must have been.
#[test]
fn compactions_with_a_filter_are_not_shared() {
    let place = Place::new();
    let clock = Arc::new(HandClock::default());
    clock.set(1_000);
    let mut options = options(1, 1000, 1);
    options.memtable_bytes = Some(2 << 20);
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
    let branch = db.branch("branch").unwrap();
    let in_branch = branch.keyspace("k").unwrap();
    for number in (0..2000).step_by(10) {
        in_branch.merge(key(number), "+").unwrap();
    }
    db.flush().unwrap();
    assert!(branch.stats().trees.iter().any(|tree| tree.tiers.iter().any(|tier| tier.runs > 0)));
    assert_eq!(keyspace.iter().unwrap().count(), 2000, "sorted data is not compacted");
    // What has expired makes partitions of both due.
    clock.set(2_000);
    db.wait_until_idle().unwrap();
    assert_eq!(keyspace.iter().unwrap().count(), 0, "the filter was asked");
    for number in (0..2000).step_by(10) {
        let value = in_branch.get(key(number)).unwrap().unwrap();
        assert_eq!(String::from_utf8(value).unwrap(), format!("-{number} +"));
    }
}
