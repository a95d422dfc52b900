//! A look for dead space has made its estimate, and what it looked at changes before it chooses.

use super::{Pairs, Step, ends_well, expect, holds, keeps, sizes, write};
use crate::cuts::PATH;
use esker::internals::options::SmallTiers;
use esker::internals::sync::Point;
use esker::{Compression, Db, LevelShape, Options};
use esker_testkit::CrashFs;
use esker_testkit::barriers::{Barriers, Board, kind};
use parking_lot::Mutex;
use std::sync::Arc;

const KEYS: usize = super::KEYS;
const RESERVE: u64 = 2 << 10;

/// Nothing is compacted but for space.
fn lazy(disk: &CrashFs) -> Options {
    let mut options = sizes(disk);
    options.compression = Compression::None;
    options.separate_values_from = None;
    options.small_space = Some(RESERVE);
    options.small_tiers =
        Some(SmallTiers { count: 2, fan_out: 3, runs: 1000, direct: 0, tightens: false });
    options
}

fn built(disk: &CrashFs) -> (Db, Barriers, Pairs) {
    let (db, barriers) = Barriers::open(PATH, lazy(disk)).unwrap();
    let (steps, mut pairs) = ([Step::Put(0, KEYS, 1)], Pairs::new());
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    (db, barriers, pairs)
}

/// Bytes of all runs.
fn bytes(db: &Db) -> u64 {
    let stats = db.stats();
    let sum = |levels: &[LevelShape]| levels.iter().map(|level| level.bytes).sum::<u64>();
    let trees = stats.trees.iter().filter(|tree| tree.keyspace == "default");
    trees.map(|tree| tree.base.bytes + sum(&tree.deltas) + sum(&tree.tiers)).sum()
}

/// Runs an action during the next look of a caller that waits until nothing is left to do: after it no other look
/// is stricter.
fn in_the_strictest_look(board: &Board, action: impl FnOnce() + Send + 'static) {
    board.at(Point::SpaceEstimated, move |board| match kind().as_str() {
        "esker-worker" => in_the_strictest_look(board, action),
        _ => action(),
    });
}

/// What is flushed during a look is looked at afterwards.
#[test]
fn what_is_flushed_during_a_look_for_space_is_given_back() {
    let disk = CrashFs::new();
    let (db, barriers, mut pairs) = built(&disk);
    let full = bytes(&db);
    // So that there is a look, which finds nothing.
    let steps = [Step::Put(KEYS, KEYS + 1, 1)];
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    let (steps, ran) = ([Step::RemoveRange(50, 350)], Arc::new(Mutex::new(false)));
    expect(&mut pairs, &steps);
    let (writing, runs) = (db.clone(), ran.clone());
    in_the_strictest_look(&barriers, move || {
        write(&writing.default_keyspace(), &steps);
        writing.flush().unwrap();
        *runs.lock() = true;
    });
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    assert!(*ran.lock(), "there was no look");
    db.wait_until_idle().unwrap();
    let left = bytes(&db);
    assert!(left < full / 2, "{left} bytes are left of {full}");
    holds(&db.default_keyspace(), &pairs);
    ends_well(db, barriers, &disk, &pairs);
}

/// What was dead at the estimate is read by a snapshot and a branch when it is chosen, and a keyspace that had
/// more of it is gone.
#[test]
fn what_is_made_and_dropped_during_a_look_for_space_reads_right() {
    let disk = CrashFs::new();
    let (db, barriers, mut pairs) = built(&disk);
    let words = db.keyspace("words").unwrap();
    write(&words, &[Step::Put(0, KEYS, 1)]);
    let old = db.snapshot().unwrap();
    let before = pairs.clone();
    words.compact().unwrap();
    let steps = [Step::RemoveRange(20, 380), Step::Put(200, 210, 2)];
    write(&words, &steps);
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    let (made, making) = (Arc::new(Mutex::new(None)), db.clone());
    barriers.at(Point::SpaceEstimated, {
        let made = made.clone();
        move |_| {
            let snapshot = making.snapshot().unwrap();
            let branch = making.branch("branch").unwrap();
            assert!(making.drop_keyspace("words").unwrap());
            *made.lock() = Some((snapshot, branch));
        }
    });
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let (snapshot, branch) = made.lock().take().unwrap();
    let seen = pairs.clone();
    let steps = [Step::RemoveRange(0, 100), Step::Put(300, 310, 3)];
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    keeps(&db, &old, &before);
    keeps(&db, &snapshot, &seen);
    holds(&branch.default_keyspace(), &seen);
    holds(&db.default_keyspace(), &pairs);
    drop((old, snapshot, branch, words));
    assert!(db.drop_branch("branch").unwrap());
    ends_well(db, barriers, &disk, &pairs);
}
