//! Long-lived readers: what they keep is reported, and reads of others cost no more for it.

use super::{fill, fresh, key, keys, value};
use esker::Db;

/// Entries that one walk over everything steps over without returning them.
fn skipped_by_a_walk(db: &Db) -> u64 {
    let before = db.stats().skipped;
    db.iter().unwrap().for_each(|entry| drop(entry.unwrap()));
    db.stats().skipped - before
}

/// A snapshot keeps one version of each key besides the newest, however often the keys are written.
#[test]
fn reads_of_others_do_not_slow_with_the_age_of_a_snapshot() {
    let (_place, db) = fresh();
    fill(&db, 0..500, 1);
    db.compact().unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut walks = Vec::new();
    for round in 2..60 {
        fill(&db, 0..500, round);
        if round % 10 == 9 {
            db.compact().unwrap();
            db.wait_until_idle().unwrap();
            walks.push(skipped_by_a_walk(&db));
        }
    }
    assert!(walks.iter().all(|skipped| *skipped <= 500 + 10), "{walks:?}");
    assert_eq!(snapshot.get(&db.default_keyspace(), key(7)).unwrap(), Some(value(7, 1).into()));
    let held = db.stats().held;
    assert_eq!(held.snapshots, 1);
    assert!(held.oldest_snapshot.as_nanos() > 0 || walks.is_empty());
    drop(snapshot);
    assert_eq!(db.stats().held.snapshots, 0);
}

/// An iterator that nobody moves keeps the files and memtables of its moment, which is said, and
/// given back when it goes.
#[test]
fn what_forgotten_iterators_hold_is_reported() {
    let (_place, db) = fresh();
    fill(&db, 0..2000, 1);
    // A flush of what was filled in takes its memtable away; it is over before the iterator comes.
    db.wait_until_idle().unwrap();
    let mut iter = db.iter().unwrap();
    iter.next().unwrap().unwrap();
    assert_eq!((db.stats().held.data, db.stats().memory.held), (0, 0), "nothing is gone yet");
    for round in 2..6 {
        fill(&db, 0..2000, round);
        db.compact().unwrap();
    }
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    assert!(stats.held.states >= 1, "{:?}", stats.held);
    let held = stats.held.data + stats.memory.held;
    let entries: usize = (0..2000).map(|number| key(number).len() + value(number, 1).len()).sum();
    assert!(held >= entries as u64 / 4, "{held} bytes of {entries}: {:?}", stats.held);
    assert_eq!(keys(&mut iter).len(), 1999);
    drop(iter);
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    assert_eq!((stats.held.data, stats.memory.held), (0, 0), "{:?}", stats.held);
}

/// A queue: entries come at one end and go at the other. A pop passes the dead ones of at most what
/// is in memory and in the deltas of one partition, at the end as at the start.
#[test]
fn a_queue_pops_at_the_end_as_at_the_start() {
    let (_place, db) = fresh();
    const POPS: u64 = 3000;
    let queue = db.keyspace("queue").unwrap();
    let (mut pushed, mut windows) = (0u64, Vec::new());
    for _ in 0..8 {
        let before = db.stats().skipped;
        for popped in 0..POPS {
            queue.insert(pushed.to_be_bytes(), [7; 100]).unwrap();
            pushed += 1;
            if popped % 3 != 0 {
                continue;
            }
            // Three at a time, so that the queue stays short and pops see what pushes left.
            for _ in 0..3 {
                let mut iter = queue.iter().unwrap();
                let Some((first, _)) = iter.next_entry().unwrap() else { break };
                let first = first.to_vec();
                queue.remove(first).unwrap();
            }
        }
        windows.push(db.stats().skipped - before);
    }
    // How many are passed depends on how soon the background comes to its work, so the least of the
    // last windows counts. If dead entries stayed, each pop there would pass more than 15,000.
    let last = windows[5..].iter().copied().min().unwrap_or(0);
    assert!(last <= POPS * 2_000, "dead entries passed in each window: {windows:?}");
}
