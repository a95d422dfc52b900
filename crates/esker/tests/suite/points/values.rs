//! A compaction has chosen the value segments that it empties, and what refers to them changes before it moves
//! their values.

use super::{Step, built, ends_well, expect, holds, keeps, reopens, write};
use crate::cuts::PATH;
use esker::internals::sync::Point;
use esker_testkit::{CrashFs, referred};

/// Every second key again: so much is dead of each value segment that it is emptied.
fn again(round: u64) -> Vec<Step> {
    (0..super::KEYS).step_by(2).map(|number| Step::Put(number, number + 1, round)).collect()
}

#[test]
fn whoever_refers_to_values_that_are_moved_keeps_them() {
    let disk = CrashFs::new();
    let (db, barriers, mut pairs) = built(&disk);
    let (first, old) = (pairs.clone(), db.snapshot().unwrap());
    drop(db.branch("first").unwrap());
    barriers.close(&[Point::CompactionMoves]);
    let steps = again(2);
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    db.flush().unwrap();
    drop(old);
    let compacting = barriers.call({
        let db = db.clone();
        move || db.compact().unwrap()
    });
    compacting.wait_for(Point::CompactionMoves);
    let (second, snapshot) = (pairs.clone(), db.snapshot().unwrap());
    let branch = db.branch("second").unwrap();
    let steps = [Step::Put(50, 90, 3), Step::RemoveRange(100, 140), Step::Remove(301)];
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    db.flush().unwrap();
    db.checkpoint("/copy").unwrap();
    let killed = disk.kill_clone();
    holds(&db.open_branch("first").unwrap().default_keyspace(), &first);
    assert!(db.drop_branch("first").unwrap());
    barriers.let_go(&[Point::CompactionMoves]);
    compacting.join();
    for _ in 0..2 {
        keeps(&db, &snapshot, &second);
        holds(&branch.default_keyspace(), &second);
        holds(&db.default_keyspace(), &pairs);
        branch.compact().unwrap();
        db.compact().unwrap();
    }
    reopens(&disk, "/copy", &pairs);
    reopens(&killed, PATH, &pairs);
    drop((snapshot, branch));
    assert!(db.drop_branch("second").unwrap());
    ends_well(db, barriers, &disk, &pairs);
}

/// What was written for a keyspace that is gone is given back, with the values that were moved.
#[test]
fn a_keyspace_is_dropped_while_its_values_are_moved() {
    let disk = CrashFs::new();
    let (db, barriers, pairs) = built(&disk);
    let words = db.keyspace("words").unwrap();
    write(&words, &[Step::Put(0, super::KEYS, 1)]);
    words.compact().unwrap();
    barriers.close(&[Point::CompactionMoves]);
    write(&words, &again(2));
    db.flush().unwrap();
    let compacting = barriers.call(move || words.compact());
    compacting.wait_for(Point::CompactionMoves);
    assert!(db.drop_keyspace("words").unwrap());
    barriers.let_go(&[Point::CompactionMoves]);
    // It finds the keyspace gone, or nothing left to do.
    let _ = compacting.join();
    db.flush().unwrap();
    referred::check(&db, &disk.as_fs(), PATH.as_ref());
    ends_well(db, barriers, &disk, &pairs);
}
