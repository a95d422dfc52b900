//! What is written, made and dropped between the steps of an ingestion's commit.

use super::{Pairs, Step, built, ends_well, expect, holds, keeps, reopens, value, write};
use crate::cuts::{PATH, key};
use esker::internals::sync::Point;
use esker::{Db, Keyspace};
use esker_testkit::{CrashFs, referred};
use parking_lot::Mutex;
use std::sync::Arc;

/// Attempts of an ingestion after which writers wait for it.
const TRIES: u64 = 3;
const INGESTED: u64 = 100;
/// After so many of the same keys, the background has compacted them all.
const INGESTIONS: usize = 12;

fn ingested_keys() -> impl Iterator<Item = usize> {
    (100..300).step_by(2)
}

/// Ingests every second key, and removes what was in a range.
fn ingest(db: &Db, keyspace: &Keyspace) -> esker::Result<()> {
    let mut ingestion = db.ingest()?;
    ingestion.remove_range(keyspace, key(250)..key(320))?;
    for number in ingested_keys() {
        ingestion.insert(keyspace, key(number), value(number, INGESTED))?;
    }
    ingestion.commit()
}

fn expect_ingested(pairs: &mut Pairs) {
    expect(pairs, &[Step::RemoveRange(250, 320)]);
    for number in ingested_keys() {
        expect(pairs, &[Step::Put(number, number + 1, INGESTED)]);
    }
}

/// What is written comes before the ingestion, which flushes it first, or waits for the ingestion.
#[test]
fn what_is_written_while_an_ingestion_commits_is_older() {
    for point in [Point::IngestionSynced, Point::IngestionLooked] {
        let disk = CrashFs::new();
        let (db, barriers, mut pairs) = built(&disk);
        for round in 2..2 + TRIES {
            let from = 100 + 10 * round as usize;
            let steps = [
                Step::Put(from, from + 4, round),
                Step::Remove(from + 20),
                Step::RemoveRange(from + 60, from + 80),
                Step::Put(from + 140, from + 145, round),
            ];
            expect(&mut pairs, &steps);
            let keyspace = db.default_keyspace();
            barriers.at(point, move |_| write(&keyspace, &steps));
        }
        ingest(&db, &db.default_keyspace()).unwrap();
        expect_ingested(&mut pairs);
        assert_eq!(barriers.done(point), TRIES as usize);
        ends_well(db, barriers, &disk, &pairs);
    }
}

/// Until it is published nobody sees it, a snapshot that is made then never does, and a crash keeps it.
#[test]
fn what_an_ingestion_has_recorded_is_seen_when_it_is_published() {
    let disk = CrashFs::new();
    let (db, barriers, mut pairs) = built(&disk);
    let (before, made) = (pairs.clone(), Arc::new(Mutex::new(None)));
    barriers.at(Point::IngestionRecorded, {
        let (db, disk, before, made) = (db.clone(), disk.clone(), before.clone(), made.clone());
        move |_| {
            holds(&db.default_keyspace(), &before);
            let (snapshot, killed) = (db.snapshot().unwrap(), disk.kill_clone());
            // It gets a position behind that of the ingestion, and waits for it.
            let later = [Step::Put(102, 103, 200)];
            let writer = std::thread::spawn(move || write(&db.default_keyspace(), &later));
            *made.lock() = Some((snapshot, killed, writer));
        }
    });
    ingest(&db, &db.default_keyspace()).unwrap();
    expect_ingested(&mut pairs);
    let (snapshot, killed, writer) = made.lock().take().unwrap();
    reopens(&killed, PATH, &pairs);
    writer.join().unwrap();
    expect(&mut pairs, &[Step::Put(102, 103, 200)]);
    keeps(&db, &snapshot, &before);
    db.compact().unwrap();
    keeps(&db, &snapshot, &before);
    drop(snapshot);
    ends_well(db, barriers, &disk, &pairs);
}

/// A compaction that was chosen before finds it in the tree before it is published. Snapshots that are made then
/// read what it hides, so the compaction waits.
#[test]
fn a_compaction_waits_for_the_ingestion_that_it_finds() {
    let disk = CrashFs::new();
    let (db, barriers, mut pairs) = built(&disk);
    barriers.close(&[Point::CompactionBegins]);
    let steps = [Step::Put(100, 300, 2)];
    write(&db.default_keyspace(), &steps);
    expect(&mut pairs, &steps);
    db.flush().unwrap();
    let compacting = barriers.call({
        let db = db.clone();
        move || db.compact().unwrap()
    });
    compacting.wait_for(Point::CompactionBegins);
    barriers.close(&[Point::IngestionRecorded]);
    let ingesting = barriers.call({
        let db = db.clone();
        move || ingest(&db, &db.default_keyspace()).unwrap()
    });
    ingesting.wait_for(Point::IngestionRecorded);
    let seen = Arc::new(Mutex::new(None));
    barriers.at(Point::CompactionReads, {
        let (db, seen) = (db.clone(), seen.clone());
        move |_| {
            let snapshot = db.snapshot().unwrap();
            let found: Pairs =
                snapshot.iter(&db.default_keyspace()).unwrap().map(Result::unwrap).collect();
            *seen.lock() = Some((snapshot, found));
        }
    });
    barriers.let_go(&[Point::CompactionBegins]);
    // If it does not wait, it reads now. It has not to be seen waiting.
    for _ in 0..100_000 {
        if barriers.done(Point::CompactionReads) > 0 {
            break;
        }
        std::thread::yield_now();
    }
    barriers.let_go(&[Point::IngestionRecorded]);
    ingesting.join();
    compacting.join();
    expect_ingested(&mut pairs);
    let (snapshot, found) = seen.lock().take().unwrap();
    keeps(&db, &snapshot, &found);
    drop(snapshot);
    ends_well(db, barriers, &disk, &pairs);
}

#[test]
fn what_is_made_before_an_ingestion_commits_does_not_have_it() {
    let disk = CrashFs::new();
    let (db, barriers, mut pairs) = built(&disk);
    let before = pairs.clone();
    let making = db.clone();
    barriers.at(Point::IngestionSynced, move |_| {
        drop(making.branch("before").unwrap());
        making.snapshot_named("kept").unwrap();
        making.checkpoint("/copy").unwrap();
    });
    ingest(&db, &db.default_keyspace()).unwrap();
    expect_ingested(&mut pairs);
    assert_eq!(barriers.done(Point::IngestionSynced), 1);
    for compacts in [false, true] {
        if compacts {
            db.compact().unwrap();
        }
        holds(&db.open_branch("before").unwrap().default_keyspace(), &before);
        holds(&db.open_named_snapshot("kept").unwrap().default_keyspace(), &before);
    }
    reopens(&disk, "/copy", &before);
    db.drop_branch("before").unwrap();
    db.drop_named_snapshot("kept").unwrap();
    ends_well(db, barriers, &disk, &pairs);
}

/// Compactions take the positions of what was ingested away where no snapshot needs them. A checkpoint has it
/// nevertheless only with everything that was written before.
#[test]
fn a_checkpoint_with_compacted_ingestions_has_what_was_written_before_them() {
    let disk = CrashFs::new();
    let (db, barriers, mut pairs) = built(&disk);
    let steps = [Step::Put(0, 10, 2)];
    let making = db.clone();
    barriers.at(Point::CheckpointFlushed, move |_| {
        write(&making.default_keyspace(), &steps);
        for _ in 0..INGESTIONS {
            ingest(&making, &making.default_keyspace()).unwrap();
        }
        making.wait_until_idle().unwrap();
    });
    db.checkpoint("/copy").unwrap();
    assert_eq!(barriers.done(Point::CheckpointFlushed), 1);
    expect(&mut pairs, &steps);
    expect_ingested(&mut pairs);
    reopens(&disk, "/copy", &pairs);
    ends_well(db, barriers, &disk, &pairs);
}

#[test]
fn an_ingestion_to_a_keyspace_that_is_dropped_leaves_nothing() {
    let disk = CrashFs::new();
    let (db, barriers, pairs) = built(&disk);
    let words = db.keyspace("words").unwrap();
    write(&words, &[Step::Put(0, 50, 1)]);
    db.flush().unwrap();
    let dropping = db.clone();
    barriers.at(Point::IngestionSynced, move |_| {
        assert!(dropping.drop_keyspace("words").unwrap());
    });
    ingest(&db, &words).unwrap_err();
    assert_eq!(barriers.done(Point::IngestionSynced), 1);
    db.flush().unwrap();
    referred::check(&db, &disk.as_fs(), PATH.as_ref());
    ends_well(db, barriers, &disk, &pairs);
}
