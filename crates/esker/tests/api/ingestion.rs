//! Ingestion: what becomes visible when, above and below what else is written.

use super::transaction_conflicts::cause;
use super::{
    Place, as_after_a_crash, entries, fill, fresh, key, lasts, open_roomy, run_files, small, text,
};
use esker::{Batch, ConflictCause, Db, Durability, Error, ErrorKind, Keyspace};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

pub(super) fn fresh_value(number: usize) -> String {
    format!("ingested {number} {}", "y".repeat(number % 50))
}

/// Ingests these numbers, ascending, to the keyspace `default`.
pub(super) fn ingest(db: &Db, numbers: impl IntoIterator<Item = usize>) {
    let default = db.default_keyspace();
    let mut ingestion = db.ingest().unwrap();
    for number in numbers {
        ingestion.insert(&default, key(number), fresh_value(number)).unwrap();
    }
    ingestion.commit().unwrap();
}

pub(super) fn has(db: &Db, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        assert_eq!(text(db.get(key(number)).unwrap()), Some(fresh_value(number)), "{number}");
    }
}

pub(super) fn whole(db: &Db) {
    let problems = db.verify().unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn nothing_is_visible_before_the_commit_and_everything_after_it() {
    let (place, db) = fresh();
    let (one, two) = (db.keyspace("one").unwrap(), db.keyspace("two").unwrap());
    let mut ingestion = db.ingest().unwrap();
    for number in 0..3000 {
        ingestion.insert(&one, key(number), fresh_value(number)).unwrap();
        ingestion.insert(&two, key(2 * number), "two").unwrap();
    }
    assert_eq!(one.iter().unwrap().count() + two.iter().unwrap().count(), 0);
    ingestion.commit().unwrap();
    lasts(&place, &db, |db| {
        let (one, two) = (db.keyspace("one").unwrap(), db.keyspace("two").unwrap());
        assert_eq!(entries(one.iter().unwrap()).len(), 3000);
        assert_eq!(entries(two.iter().unwrap()).len(), 3000);
        assert_eq!(text(one.get(key(1234)).unwrap()), Some(fresh_value(1234)));
        assert_eq!(two.get(key(1235)).unwrap(), None);
        whole(db);
    });
}

#[test]
fn readers_see_all_keyspaces_of_an_ingestion_or_none() {
    let (_place, db) = fresh();
    let (one, two) = (db.keyspace("one").unwrap(), db.keyspace("two").unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                let snapshot = db.snapshot().unwrap();
                let seen = |keyspace: &Keyspace| snapshot.get(keyspace, "k").unwrap();
                assert_eq!(seen(&one), seen(&two));
                assert_eq!(seen(&one), seen(&one));
            }
        });
        for round in 0..40 {
            let mut ingestion = db.ingest().unwrap();
            for keyspace in [&two, &one] {
                ingestion.insert(keyspace, "k", format!("{round}")).unwrap();
            }
            ingestion.commit().unwrap();
        }
        done.store(true, Relaxed);
    });
}

#[test]
fn what_is_ingested_is_newer_than_what_was_written_and_older_than_what_follows() {
    let (place, db) = fresh();
    fill(&db, 0..2000, 1);
    db.flush().unwrap();
    fill(&db, (0..2000).step_by(3), 2);
    db.remove(key(1001)).unwrap();
    db.remove_range(key(1200)..key(1300)).unwrap();
    ingest(&db, (500..1500).filter(|number| number % 2 == 1));
    // Newer writes, in memtables and below them.
    db.insert(key(601), "newer").unwrap();
    db.remove(key(603)).unwrap();
    db.remove_range(key(700)..key(750)).unwrap();
    lasts(&place, &db, |db| {
        has(
            db,
            (501..1500).step_by(2).filter(|n| ![601, 603].contains(n) && !(700..750).contains(n)),
        );
        assert_eq!(text(db.get(key(601)).unwrap()).as_deref(), Some("newer"));
        assert_eq!(db.get(key(603)).unwrap(), None);
        assert_eq!(db.get(key(700)).unwrap(), None);
        assert_eq!(db.get(key(1250)).unwrap(), None);
        assert_eq!(text(db.get(key(600)).unwrap()), Some(super::value(600, 2)));
        assert_eq!(text(db.get(key(502)).unwrap()), Some(super::value(502, 1)));
        whole(db);
    });
}

#[test]
fn several_ingestions_lie_over_each_other_in_their_order() {
    let (place, db) = fresh();
    for round in 0..12 {
        let default = db.default_keyspace();
        let mut ingestion = db.ingest().unwrap();
        for number in (0..600).filter(|number| number % (round + 1) == 0) {
            ingestion.insert(&default, key(number), format!("round {round}")).unwrap();
        }
        ingestion.commit().unwrap();
        if round == 6 {
            db.wait_until_idle().unwrap();
        }
    }
    lasts(&place, &db, |db| {
        for number in 0..600 {
            let newest = (0..12).rev().find(|round| number % (round + 1) == 0).unwrap();
            assert_eq!(text(db.get(key(number)).unwrap()), Some(format!("round {newest}")));
        }
    });
}

#[test]
fn snapshots_and_iterators_keep_what_they_saw() {
    let (_place, db) = fresh();
    fill(&db, 0..1000, 1);
    let expected = entries(db.iter().unwrap());
    let early = db.snapshot().unwrap();
    db.snapshot_named("early").unwrap();
    let named = db.open_named_snapshot("early").unwrap();
    let (iterator, default) = (db.iter().unwrap(), db.default_keyspace());
    ingest(&db, 0..1500);
    let late = db.snapshot().unwrap();
    fill(&db, 0..1500, 3);
    for _ in 0..2 {
        assert_eq!(entries(early.iter(&default).unwrap()), expected);
        assert_eq!(entries(named.iter().unwrap()), expected);
        assert_eq!(early.get(&default, key(1200)).unwrap(), None);
        assert_eq!(text(late.get(&default, key(1200)).unwrap()), Some(fresh_value(1200)));
        assert_eq!(late.iter(&default).unwrap().count(), 1500);
        let mut backwards = late.iter(&default).unwrap().rev();
        assert_eq!(text(Some(backwards.next().unwrap().unwrap().1)), Some(fresh_value(1499)));
        db.compact().unwrap();
    }
    assert_eq!(entries(iterator), expected);
}

#[test]
fn branches_get_what_was_ingested_before_them_and_go_their_own_ways() {
    let (place, db) = fresh();
    fill(&db, 0..800, 1);
    let before = db.branch("before").unwrap();
    ingest(&db, 400..1200);
    let after = db.branch("after").unwrap();
    let mut ingestion = after.ingest().unwrap();
    for number in 0..100 {
        ingestion.insert(&after.default_keyspace(), key(number), "of the branch").unwrap();
    }
    ingestion.commit().unwrap();
    drop((before, after));
    lasts(&place, &db, |db| {
        has(db, 400..1200);
        assert_eq!(text(db.get(key(5)).unwrap()), Some(super::value(5, 1)));
        let before = db.open_branch("before").unwrap();
        assert_eq!(before.iter().unwrap().count(), 800);
        assert_eq!(text(before.get(key(500)).unwrap()), Some(super::value(500, 1)));
        let after = db.open_branch("after").unwrap();
        has(&after, 400..1200);
        assert_eq!(text(after.get(key(5)).unwrap()).as_deref(), Some("of the branch"));
        whole(db);
    });
}

#[test]
fn a_transaction_that_read_what_is_ingested_conflicts() {
    let (_place, db) = fresh();
    fill(&db, 0..100, 1);
    let default = db.default_keyspace();
    for (read, expected) in [(50, true), (99, false)] {
        let tx = db.begin().unwrap();
        drop(tx.get(&default, key(read)).unwrap());
        tx.insert(&default, "~outcome", "written").unwrap();
        ingest(&db, 40..60);
        match expected {
            true => assert_eq!(cause(tx.commit()), ConflictCause::KeyChanged),
            false => drop(tx.commit().unwrap()),
        }
    }
    let tx = db.begin().unwrap();
    assert_eq!(tx.range(&default, key(200)..key(300)).unwrap().count(), 0);
    tx.insert(&default, "~outcome", "written").unwrap();
    ingest(&db, 250..251);
    assert_eq!(cause(tx.commit()), ConflictCause::RangeChanged);
    // One that begins afterwards does not mind.
    let tx = db.begin().unwrap();
    assert_eq!(tx.range(&default, key(200)..key(300)).unwrap().count(), 1);
    tx.insert(&default, "~outcome", "again").unwrap();
    tx.commit().unwrap();
    // A branch does not conflict with what its parent gets.
    let branch = db.branch("b").unwrap();
    let tx = branch.begin().unwrap();
    drop(tx.get(&branch.default_keyspace(), key(50)).unwrap());
    tx.insert(&branch.default_keyspace(), "k", "v").unwrap();
    ingest(&db, 40..60);
    tx.commit().unwrap();
}

#[test]
fn keys_out_of_order_and_wrong_keyspaces_are_refused_and_the_rest_stays() {
    let (place, db) = fresh();
    let other = Place::new().open();
    let default = db.default_keyspace();
    let mut ingestion = db.ingest().unwrap();
    ingestion.insert(&default, "b", "1").unwrap();
    for late in ["a", "b", ""] {
        let refused = ingestion.insert(&default, late, "x");
        assert!(
            matches!(&refused, Err(Error::OutOfOrder { keyspace, key })
            if keyspace == "default" && key == late.as_bytes()),
            "{refused:?}"
        );
    }
    let kind = |result: esker::Result<()>| result.unwrap_err().kind();
    let invalid = ErrorKind::InvalidArgument;
    assert_eq!(kind(ingestion.insert(&other.default_keyspace(), "c", "x")), invalid);
    assert_eq!(kind(ingestion.insert(&default, [7; 70_000], "x")), ErrorKind::KeyTooLong);
    ingestion.insert(&default, "c", "2").unwrap();
    ingestion.commit().unwrap();
    lasts(&place, &db, |db| {
        assert_eq!(
            entries(db.iter().unwrap()),
            [(b"b".to_vec(), b"1".to_vec()), (b"c".to_vec(), b"2".to_vec())]
        );
    });
}

#[test]
fn a_dropped_ingestion_leaves_no_file() {
    let place = Place::new();
    let db = open_roomy(&place);
    db.insert("k", "v").unwrap();
    db.flush().unwrap();
    let before = run_files(&place.path());
    for commits in [false, true] {
        let mut ingestion = db.ingest().unwrap();
        for number in 0..20_000 {
            ingestion.insert(&db.default_keyspace(), key(number), [7; 200]).unwrap();
        }
        assert!(run_files(&place.path()).1 > before.1);
        if commits {
            db.drop_keyspace("gone").unwrap();
            let gone = db.keyspace("gone").unwrap();
            ingestion.insert(&gone, "k", "v").unwrap();
            db.drop_keyspace("gone").unwrap();
            assert!(matches!(ingestion.commit(), Err(Error::KeyspaceDropped { .. })));
        } else {
            drop(ingestion);
        }
        assert_eq!(run_files(&place.path()), before);
    }
    assert_eq!(db.iter().unwrap().count(), 1);
    // One that is still there when the database closes leaves its files to the next open.
    let mut ingestion = db.ingest().unwrap();
    ingestion.insert(&db.default_keyspace(), "l", "w").unwrap();
    db.close().unwrap();
    assert_eq!(
        ingestion.insert(&db.default_keyspace(), "m", "x").unwrap_err().kind(),
        ErrorKind::Closed
    );
    let again = open_roomy(&place);
    assert_eq!(run_files(&place.path()).1, before.1);
    drop(ingestion);
    again.insert("l", "x").unwrap();
    again.flush().unwrap();
    whole(&again);
}

#[test]
fn a_kill_after_the_commit_loses_nothing_and_before_it_leaves_nothing() {
    let place = Place::new();
    let db = open_roomy(&place);
    db.insert(key(5), "in the log").unwrap();
    ingest(&db, 10..5000);
    db.insert(key(11), "newer, in the log").unwrap();
    let mut ingestion = db.ingest().unwrap();
    for number in 0..5000 {
        ingestion.insert(&db.default_keyspace(), key(number), "lost").unwrap();
    }
    let dead = as_after_a_crash(&place);
    let files = run_files(&dead.path()).1;
    let again = open_roomy(&dead);
    assert!(run_files(&dead.path()).1 <= files);
    has(&again, (10..5000).filter(|number| *number != 11));
    assert_eq!(text(again.get(key(5)).unwrap()).as_deref(), Some("in the log"));
    assert_eq!(text(again.get(key(11)).unwrap()).as_deref(), Some("newer, in the log"));
    again.insert(key(12), "after the kill").unwrap();
    assert_eq!(text(again.get(key(12)).unwrap()).as_deref(), Some("after the kill"));
    again.compact().unwrap();
    assert_eq!(text(again.get(key(12)).unwrap()).as_deref(), Some("after the kill"));
    whole(&again);
}

#[test]
fn a_checkpoint_has_an_ingestion_whole_and_later_writes_are_newer_there() {
    let (place, db) = fresh();
    fill(&db, 0..100, 1);
    ingest(&db, 50..150);
    let beside = place.path().with_extension("checkpoint");
    db.checkpoint(&beside).unwrap();
    let copy = Db::open_with(&beside, small()).unwrap();
    has(&copy, 50..150);
    for number in 50..150 {
        copy.insert(key(number), "newer").unwrap();
    }
    copy.compact().unwrap();
    assert_eq!(text(copy.get(key(77)).unwrap()).as_deref(), Some("newer"));
    whole(&copy);
}

#[test]
fn entries_expire_and_keyspaces_give_their_time_to_live() {
    let (_place, db) = fresh();
    let default = db.default_keyspace();
    let brief = db.keyspace("brief").unwrap();
    brief.set_ttl(Some(Duration::from_secs(10_000))).unwrap();
    let mut ingestion = db.ingest().unwrap();
    ingestion.insert_with_ttl(&default, "a", "1", Duration::ZERO).unwrap();
    ingestion.insert_with_ttl(&default, "b", "2", Duration::from_secs(10_000)).unwrap();
    ingestion.insert(&default, "c", "3").unwrap();
    ingestion.insert(&brief, "d", "4").unwrap();
    ingestion.commit().unwrap();
    for _ in 0..2 {
        assert_eq!(super::keys(db.iter().unwrap()), ["b", "c"]);
        assert_eq!(text(brief.get("d").unwrap()).as_deref(), Some("4"));
        db.compact().unwrap();
    }
    whole(&db);
}

/// Bytes of the files of the log that were written to, as statistics count them, and of run files.
fn written(db: &Db, path: &Path) -> (u64, u64) {
    (db.stats().written.log, run_files(path).0)
}

#[test]
fn a_byte_that_is_ingested_is_written_once_and_never_logged() {
    let place = Place::new();
    let db = open_roomy(&place);
    let mut random = esker_testkit::Rng::new(7);
    let (default, before) = (db.default_keyspace(), written(&db, &place.path()));
    let mut ingestion = db.ingest().unwrap();
    let mut bytes = 0;
    for number in 0..100_000 {
        let value: Vec<u8> = (0..100).map(|_| random.next() as u8).collect();
        ingestion.insert(&default, key(number), &value).unwrap();
        bytes += 9 + value.len() as u64;
    }
    ingestion.commit().unwrap();
    db.wait_until_idle().unwrap();
    let after = written(&db, &place.path());
    let rest = db.stats().written;
    assert_eq!(rest.flush + rest.compaction, 0, "{rest:?}");
    let runs = (after.1 - before.1) as f64 / bytes as f64;
    println!("{runs:.3} bytes of runs for a byte, {} of log", after.0 - before.0);
    assert!(runs < 1.06, "{runs}");
    assert!(after.0 - before.0 < 256, "{} bytes of log", after.0 - before.0);
    assert!(rest.manifest < bytes / 1000, "{rest:?}");
}

#[test]
fn writers_of_the_same_keys_do_not_keep_an_ingestion_from_its_commit() {
    let (_place, db) = fresh();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                let mut number = thread;
                while !done.load(Relaxed) {
                    let mut batch = Batch::new();
                    batch.insert(&db.default_keyspace(), format!("x{}", number % 1000), "written");
                    db.write_with(batch, Durability::Process).unwrap();
                    number += 2;
                }
            });
        }
        for round in 0..5 {
            let mut ingestion = db.ingest().unwrap();
            for number in 0..300 {
                ingestion.insert(&db.default_keyspace(), format!("x{number:03}y"), "y").unwrap();
            }
            ingestion.insert(&db.default_keyspace(), "y", format!("{round}")).unwrap();
            ingestion.commit().unwrap();
            assert_eq!(text(db.get("y").unwrap()), Some(format!("{round}")));
        }
        done.store(true, Relaxed);
    });
    db.compact().unwrap();
    assert_eq!(text(db.get("x007y").unwrap()).as_deref(), Some("y"));
    whole(&db);
}

#[test]
fn any_number_of_keyspaces_shares_a_few_files() {
    let place = Place::new();
    let db = open_roomy(&place);
    let keyspaces: Vec<_> = (0..40).map(|n| db.keyspace(&format!("ks{n:02}")).unwrap()).collect();
    let mut ingestion = db.ingest().unwrap();
    for number in 0..200 {
        for (n, keyspace) in keyspaces.iter().enumerate().filter(|(n, _)| number % (n + 1) == 0) {
            ingestion.insert(keyspace, key(number), format!("{n} {number}")).unwrap();
        }
    }
    ingestion.commit().unwrap();
    assert!(run_files(&place.path()).1 <= 8);
    lasts(&place, &db, |db| {
        for n in 0..40 {
            let keyspace = db.keyspace(&format!("ks{n:02}")).unwrap();
            assert_eq!(keyspace.iter().unwrap().count(), 200usize.div_ceil(n + 1));
            let last = 199 / (n + 1) * (n + 1);
            assert_eq!(text(keyspace.get(key(last)).unwrap()), Some(format!("{n} {last}")));
        }
        whole(db);
    });
}

#[test]
fn entries_of_an_iterator_are_ingested_whole_or_not_at_all() {
    let place = Place::new();
    let db = open_roomy(&place);
    let users = db.keyspace("users").unwrap();
    users.insert(key(7), "old").unwrap();
    db.flush().unwrap();
    let before = run_files(&place.path());
    for late in [key(18_999), key(7), "x".repeat(70_000)] {
        let mut numbers = 0;
        let sorted = (0..19_000).map(key).chain([late.clone()]).chain((19_000..30_000).map(key));
        let refused = users.ingest(sorted.map(|key| {
            numbers += 1;
            (key, [7; 200])
        }));
        match refused {
            Err(Error::OutOfOrder { keyspace, key }) => {
                assert_eq!((keyspace.as_str(), key), ("users", late.into_bytes()));
            }
            other => assert_eq!(other.unwrap_err().kind(), ErrorKind::KeyTooLong),
        }
        // Nothing is taken from the iterator behind it.
        assert_eq!(numbers, 19_001);
        assert_eq!(entries(users.iter().unwrap()), [(key(7).into_bytes(), b"old".to_vec())]);
        assert_eq!(run_files(&place.path()), before);
    }
    // Nor does one that panics leave anything.
    let panics = (0..20_000).map(|n| (key(n), [7 / u8::from(n < 19_000); 200]));
    let ingest = std::panic::AssertUnwindSafe(|| users.ingest(panics));
    assert!(std::panic::catch_unwind(ingest).is_err());
    assert_eq!(users.iter().unwrap().count(), 1);
    assert_eq!(run_files(&place.path()), before);

    let numbers = 0..20_000;
    assert_eq!(users.ingest(numbers.clone().map(|n| (key(n), fresh_value(n)))).unwrap(), 20_000);
    assert_eq!(users.ingest([("", ""); 0]).unwrap(), 0);
    lasts(&place, &db, |db| {
        let found = entries(db.keyspace("users").unwrap().iter().unwrap());
        assert!(
            found
                .into_iter()
                .eq(numbers.clone().map(|n| (key(n).into_bytes(), fresh_value(n).into_bytes())))
        );
        whole(db);
    });
}

#[test]
fn an_ingestion_goes_on_behind_entries_of_an_iterator_that_fails() {
    #[derive(Debug)]
    enum Failure {
        Source(usize),
        Engine(Error),
    }
    impl From<Error> for Failure {
        fn from(error: Error) -> Self {
            Self::Engine(error)
        }
    }
    let (place, db) = fresh();
    let (one, two) = (db.keyspace("one").unwrap(), db.keyspace("two").unwrap());
    one.ingest((0..500).map(|n| (key(n), fresh_value(n)))).unwrap();
    let mut ingestion = db.ingest().unwrap();
    // An iterator over a keyspace is one of results.
    assert_eq!(ingestion.insert_results(&two, one.iter().unwrap()).unwrap(), 500);
    let broken =
        (500..600).map(|n| if n < 550 { Ok((key(n), "x")) } else { Err(Failure::Source(n)) });
    assert!(matches!(ingestion.insert_results(&two, broken), Err(Failure::Source(550))));
    let late = [560, 559, 561].map(|n| Ok::<_, Failure>((key(n), "y")));
    let refused = ingestion.insert_results(&two, late);
    assert!(
        matches!(&refused, Err(Failure::Engine(Error::OutOfOrder { key: late, .. })) if *late == key(559).into_bytes()),
        "{refused:?}"
    );
    assert_eq!(ingestion.insert_all(&two, [(key(570), "z")]).unwrap(), 1);
    assert_eq!(two.iter().unwrap().count(), 0);
    ingestion.commit().unwrap();
    lasts(&place, &db, |db| {
        let keys = db.keyspace("two").unwrap().iter().unwrap().map(|entry| entry.unwrap().0);
        assert!(keys.eq((0..550).chain([560, 570]).map(|n| key(n).into_bytes())));
        whole(db);
    });
}

#[test]
fn what_takes_no_writes_takes_no_entries_of_an_iterator() {
    let (place, db) = fresh();
    let users = db.keyspace("users").unwrap();
    db.snapshot_named("early").unwrap();
    let named = db.open_named_snapshot("early").unwrap();
    let kind = |result: esker::Result<u64>| result.unwrap_err().kind();
    assert_eq!(kind(named.default_keyspace().ingest([("a", "b")])), ErrorKind::ReadOnly);
    db.drop_keyspace("users").unwrap();
    assert_eq!(kind(users.ingest([("a", "b")])), ErrorKind::KeyspaceDropped);
    let default = db.default_keyspace();
    db.close().unwrap();
    assert_eq!(kind(default.ingest([("a", "b")])), ErrorKind::Closed);
    drop((default, users, named, db));
    let mut options = small();
    options.read_only = true;
    let db = Db::open_with(place.path(), options).unwrap();
    assert_eq!(kind(db.default_keyspace().ingest([("a", "b")])), ErrorKind::ReadOnly);
    assert_eq!(db.iter().unwrap().count(), 0);
}
