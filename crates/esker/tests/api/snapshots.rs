use super::{Place, entries, fill, fresh, key, keys, small, text, value};
use esker::{Db, ErrorKind, Stats};
use esker_testkit::harness::SMALL_CACHE;

#[test]
fn a_snapshot_sees_its_moment_in_every_keyspace() {
    let (_place, db) = fresh();
    let (a, b) = (db.keyspace("a").unwrap(), db.keyspace("b").unwrap());
    a.insert("k", "1").unwrap();
    b.insert("k", "1").unwrap();
    let moment = db.snapshot().unwrap();
    a.insert("k", "2").unwrap();
    b.remove("k").unwrap();
    b.insert("new", "2").unwrap();
    assert_eq!(text(moment.get(&a, "k").unwrap()).as_deref(), Some("1"));
    assert_eq!(text(moment.get(&b, "k").unwrap()).as_deref(), Some("1"));
    assert!(!moment.contains_key(&b, "new").unwrap());
    assert!(moment.contains_key(&b, "k").unwrap());
    let found: Vec<_> = moment.multi_get(&b, ["new", "k"]).unwrap().into_iter().map(text).collect();
    assert_eq!(found, [None, Some("1".to_owned())]);
}

#[test]
fn a_snapshot_keeps_its_versions_through_flushes_and_compactions() {
    keep_versions(None);
}

/// The same, where blocks and indexes leave the cache between two reads of a snapshot.
#[test]
fn a_snapshot_keeps_its_versions_in_a_cache_smaller_than_they_are() {
    let missed = keep_versions(Some(SMALL_CACHE)).cache_misses;
    assert!(missed > 155, "{missed} blocks were read from files, no more than gets were made");
}

fn keep_versions(small_cache: Option<u64>) -> Stats {
    let place = Place::new();
    let mut options = small();
    options.small_cache = small_cache;
    let db = Db::open_with(place.path(), options).unwrap();
    let space = db.default_keyspace();
    let mut moments = Vec::new();
    for round in 0..5 {
        fill(&db, 0..400, round);
        moments.push(db.snapshot().unwrap());
        db.flush().unwrap();
    }
    db.remove_range(key(100)..key(200)).unwrap();
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    // Moments take turns, so what one has read the others evict where the cache is small.
    for number in (0..400).step_by(13) {
        for (round, moment) in moments.iter().enumerate() {
            let found = moment.get(&space, key(number)).unwrap();
            assert_eq!(text(found), Some(value(number, round)), "{number} of round {round}");
        }
    }
    for (round, moment) in moments.iter().enumerate() {
        let found: Vec<_> = entries(moment.iter(&space).unwrap());
        let expected = (0..400).map(|n| (key(n).into_bytes(), value(n, round).into_bytes()));
        assert!(found == expected.collect::<Vec<_>>(), "round {round}");
    }
    assert_eq!(db.iter().unwrap().count(), 300);
    db.stats()
}

#[test]
fn ranges_prefixes_and_ends_of_a_snapshot_are_those_of_its_moment() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    fill(&db, 10..20, 1);
    let moment = db.snapshot().unwrap();
    fill(&db, 0..30, 2);
    db.remove(key(15)).unwrap();
    db.flush().unwrap();
    let expected: Vec<_> = (10..20).map(key).collect();
    assert_eq!(keys(moment.iter(&space).unwrap()), expected);
    assert_eq!(keys(moment.range(&space, key(12)..key(17)).unwrap()), expected[2..7]);
    assert_eq!(keys(moment.prefix(&space, "key00001").unwrap()), expected);
    assert_eq!(moment.first_key_value(&space).unwrap().unwrap().0, key(10).into_bytes());
    assert_eq!(moment.last_key_value(&space).unwrap().unwrap().0, key(19).into_bytes());
    let old = entries(moment.iter(&space).unwrap());
    assert!(old.iter().all(|(_, stored)| text(Some(stored.clone())).unwrap().contains("round 1")));
}

#[test]
fn a_snapshot_of_before_a_range_was_removed_still_sees_it() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    fill(&db, 0..50, 1);
    let before = db.snapshot().unwrap();
    db.remove_range(key(10)..key(20)).unwrap();
    let between = db.snapshot().unwrap();
    fill(&db, 12..14, 2);
    for _ in 0..2 {
        assert_eq!(before.iter(&space).unwrap().count(), 50);
        assert_eq!(between.iter(&space).unwrap().count(), 40);
        assert_eq!(db.iter().unwrap().count(), 42);
        assert_eq!(before.iter(&space).unwrap().rev().count(), 50);
        db.compact().unwrap();
    }
}

#[test]
fn what_only_a_snapshot_held_goes_when_it_is_gone() {
    let (place, db) = fresh();
    fill(&db, 0..3000, 1);
    db.compact().unwrap();
    let moment = db.snapshot().unwrap();
    db.remove_range::<&str>(..).unwrap();
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    let (held, _) = super::run_files(&place.path());
    assert!(held > 50_000, "the snapshot holds {held} bytes");
    let second = moment.clone();
    drop(moment);
    db.compact().unwrap();
    assert_eq!(second.iter(&db.default_keyspace()).unwrap().count(), 3000, "a clone holds it too");
    drop(second);
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    let left = super::settled(&db, &place.path(), |left| left < held / 4);
    assert!(left < held / 4, "{held} bytes became {left}");
}

#[test]
fn a_snapshot_of_a_closed_database_answers_with_an_error() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    db.insert("k", "v").unwrap();
    let moment = db.snapshot().unwrap();
    db.close().unwrap();
    assert_eq!(moment.get(&space, "k").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn snapshots_of_a_running_database_are_consistent() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Key n is written in ascending order of n within a round, so at any moment the
            // rounds along the keys never rise, and fall by at most one.
            for round in 0..40 {
                for number in 0..100 {
                    db.insert(format!("{number:03}"), round.to_string()).unwrap();
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Release);
        });
        while !stop.load(std::sync::atomic::Ordering::Acquire) {
            let moment = db.snapshot().unwrap();
            let rounds: Vec<i32> = entries(moment.iter(&space).unwrap())
                .into_iter()
                .map(|(_, stored)| text(Some(stored)).unwrap().parse().unwrap())
                .collect();
            assert!(rounds.windows(2).all(|pair| pair[0] >= pair[1]), "{rounds:?}");
            let spread = rounds.first().unwrap_or(&0) - rounds.last().unwrap_or(&0);
            assert!(spread <= 1, "{rounds:?}");
        }
    });
}

#[test]
fn a_snapshot_refuses_keyspaces_of_another_database() {
    let ((_place, db), (_elsewhere, other)) = (fresh(), fresh());
    let theirs = other.keyspace("k").unwrap();
    theirs.insert("k", "v").unwrap();
    let moment = db.snapshot().unwrap();
    let refused = |kind| assert_eq!(kind, ErrorKind::InvalidArgument);
    refused(moment.get(&theirs, "k").unwrap_err().kind());
    refused(moment.contains_key(&theirs, "k").unwrap_err().kind());
    refused(moment.iter(&theirs).map(|_| ()).unwrap_err().kind());
    refused(moment.prefix(&theirs, "k").map(|_| ()).unwrap_err().kind());
    refused(moment.cursor(&theirs).map(|_| ()).unwrap_err().kind());
}
