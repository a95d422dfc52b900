//! Ingestion of more than puts: removed keys and ranges, operands, keyspaces with a custom comparator, and
//! several ingestions that become one.

use super::ingestion::{fresh_value, has, ingest, whole};
use super::transaction_conflicts::cause;
use super::{
    Place, entries, fill, fresh, key, keys, lasts, open_roomy, run_files, small, text, value,
};
use esker::{
    Append, ConflictCause, CounterU64, Db, Durability, Error, ErrorKind, Event, EventKind,
    Ingestion, Keyspace, KeyspaceOptions,
};
use esker_testkit::Rng;
use esker_testkit::orders::{Caseless, Reverse};
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn insert(
    ingestion: &mut Ingestion,
    keyspace: &Keyspace,
    numbers: impl IntoIterator<Item = usize>,
) {
    for number in numbers {
        ingestion.insert(keyspace, key(number), fresh_value(number)).unwrap();
    }
}

fn kind<R>(result: esker::Result<R>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

#[test]
fn a_removed_range_hides_what_was_there_and_not_what_is_ingested() {
    let (place, db) = fresh();
    fill(&db, 0..2000, 1);
    db.flush().unwrap();
    fill(&db, (0..2000).step_by(3), 2);
    let (before, default) = (db.snapshot().unwrap(), db.default_keyspace());
    let seen = entries(before.iter(&default).unwrap());
    let mut ingestion = db.ingest().unwrap();
    ingestion.remove_range(&default, key(400)..key(600)).unwrap();
    insert(&mut ingestion, &default, (500..550).step_by(2));
    // In any order, over each other, empty, and where nothing else is ingested.
    ingestion.remove_range(&default, key(1500)..).unwrap();
    ingestion.remove_range(&default, key(1600)..key(1500)).unwrap();
    ingestion.remove_range(&default, key(590)..=key(699)).unwrap();
    insert(&mut ingestion, &default, [1700]);
    ingestion.commit().unwrap();
    assert_eq!(entries(before.iter(&default).unwrap()), seen);
    db.insert(key(410), "newer").unwrap();
    db.remove(key(502)).unwrap();
    let live = |number: usize| match number {
        410 | 1700 => true,
        502 => false,
        500..550 => number.is_multiple_of(2),
        400..700 | 1500.. => false,
        _ => true,
    };
    lasts(&place, &db, |db| {
        let expected: Vec<_> = (0..2000).filter(|number| live(*number)).map(key).collect();
        assert_eq!(keys(db.iter().unwrap()), expected);
        has(db, (504..550).step_by(2).chain([500, 1700]));
        for number in (0..2000).filter(|number| !live(*number)) {
            assert_eq!(db.get(key(number)).unwrap(), None, "{number}");
        }
        assert_eq!(text(db.get(key(410)).unwrap()).as_deref(), Some("newer"));
        assert_eq!(text(db.get(key(399)).unwrap()), Some(value(399, 2)));
        whole(db);
    });
}

#[test]
fn a_keyspace_is_replaced_at_one_moment() {
    let (place, db) = fresh();
    let done = AtomicBool::new(false);
    let replace = |round: usize, count: usize| {
        let default = db.default_keyspace();
        let mut ingestion = db.ingest().unwrap();
        ingestion.remove_range::<&str>(&default, ..).unwrap();
        for number in 0..count {
            ingestion.insert(&default, key(number * 7), format!("{round}")).unwrap();
        }
        ingestion.commit().unwrap();
    };
    replace(0, 50);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                let found = entries(db.iter().unwrap());
                let round: usize = text(Some(found[0].1.clone())).unwrap().parse().unwrap();
                assert!(found.iter().all(|(_, value)| *value == found[0].1));
                assert_eq!(found.len(), 50 + round, "in round {round}");
            }
        });
        for round in 1..30 {
            replace(round, 50 + round);
        }
        done.store(true, Relaxed);
    });
    lasts(&place, &db, |db| {
        assert_eq!(db.iter().unwrap().count(), 79);
        whole(db);
    });
}

#[test]
fn an_ingestion_may_only_remove() {
    let (place, db) = fresh();
    let (one, two) = (db.keyspace("one").unwrap(), db.keyspace("two").unwrap());
    for number in 0..300 {
        one.insert(key(number), "v").unwrap();
        two.insert(key(number), "v").unwrap();
    }
    let mut ingestion = db.ingest().unwrap();
    ingestion.remove_range(&one, key(10)..key(20)).unwrap();
    (100..150).for_each(|number| ingestion.remove(&two, key(number)).unwrap());
    // Nothing remains of this one.
    ingestion.remove_range(&db.keyspace("three").unwrap(), key(5)..key(5)).unwrap();
    ingestion.commit().unwrap();
    // Of what memtables hold too.
    fill(&db, 0..100, 1);
    let mut removal = db.ingest().unwrap();
    removal.remove_range(&db.default_keyspace(), key(10)..key(20)).unwrap();
    removal.commit().unwrap();
    let mut empty = db.ingest().unwrap();
    empty.remove_range(&one, key(9)..key(3)).unwrap();
    empty.commit().unwrap();
    lasts(&place, &db, |db| {
        let (one, two) = (db.keyspace("one").unwrap(), db.keyspace("two").unwrap());
        assert_eq!((one.iter().unwrap().count(), two.iter().unwrap().count()), (290, 250));
        assert!(!one.contains_key(key(15)).unwrap() && one.contains_key(key(20)).unwrap());
        assert!(!two.contains_key(key(149)).unwrap() && two.contains_key(key(150)).unwrap());
        assert_eq!(db.iter().unwrap().count(), 90);
        assert_eq!(db.get(key(15)).unwrap(), None);
        whole(db);
    });
}

#[test]
fn a_transaction_that_read_what_an_ingestion_removes_conflicts() {
    let (_place, db) = fresh();
    fill(&db, 0..100, 1);
    let default = db.default_keyspace();
    let remove = |from: usize, to: usize| {
        let mut ingestion = db.ingest().unwrap();
        ingestion.remove_range(&default, key(from)..key(to)).unwrap();
        ingestion.commit().unwrap();
    };
    for (read, expected) in [(49, true), (50, false), (39, false)] {
        let tx = db.begin().unwrap();
        drop(tx.get(&default, key(read)).unwrap());
        tx.insert(&default, "~outcome", "written").unwrap();
        remove(40, 50);
        match expected {
            true => assert_eq!(cause(tx.commit()), ConflictCause::KeyChanged),
            false => drop(tx.commit().unwrap()),
        }
    }
    let tx = db.begin().unwrap();
    assert_eq!(tx.range(&default, key(60)..key(70)).unwrap().count(), 10);
    tx.insert(&default, "~outcome", "written").unwrap();
    remove(69, 80);
    assert_eq!(cause(tx.commit()), ConflictCause::RangeChanged);
}

#[test]
fn removed_ranges_have_a_bound() {
    let (_place, db) = fresh();
    let default = db.default_keyspace();
    let mut ingestion = db.ingest().unwrap();
    let mut added = 0;
    let refused = loop {
        let start = format!("{added:08}");
        match ingestion.remove_range(&default, start.clone()..format!("{start}~")) {
            Ok(()) => added += 1,
            Err(error) => break error,
        }
    };
    // An eighth of 4 MiB, and 145 bytes for each.
    assert!(matches!(refused, Error::BatchTooLarge { .. }), "{refused}");
    assert!((3000..4000).contains(&added), "{added}");
    db.insert("00000007", "old").unwrap();
    db.insert(format!("{added:08}"), "old").unwrap();
    ingestion.commit().unwrap();
    assert_eq!(db.iter().unwrap().count(), 1);
}

#[test]
fn operands_and_removals_are_ingested() {
    let (place, db) = fresh();
    let open = |db: &Db| {
        let options = KeyspaceOptions::merging(Append::new("+").name());
        db.keyspace_with("words", options).unwrap()
    };
    let words = open(&db);
    for word in ["a", "b", "c", "d"] {
        words.insert(word, "1").unwrap();
    }
    db.flush().unwrap();
    words.merge("b", "2").unwrap();
    let before = db.snapshot().unwrap();
    let mut ingestion = db.ingest().unwrap();
    ingestion.merge(&words, "a", "3").unwrap();
    ingestion.merge(&words, "b", "3").unwrap();
    ingestion.remove(&words, "c").unwrap();
    ingestion.merge(&words, "e", "3").unwrap();
    assert_eq!(kind(ingestion.merge(&db.default_keyspace(), "a", "3")), ErrorKind::InvalidArgument);
    ingestion.commit().unwrap();
    words.merge("b", "4").unwrap();
    words.merge("c", "4").unwrap();
    assert_eq!(text(before.get(&words, "b").unwrap()).as_deref(), Some("1+2"));
    drop(before);
    lasts(&place, &db, |db| {
        let found = entries(open(db).iter().unwrap());
        let found: Vec<_> =
            found.into_iter().map(|(_, value)| text(Some(value)).unwrap()).collect();
        assert_eq!(found, ["1+3", "1+2+3+4", "4", "1", "3"]);
        whole(db);
    });
    let counts = fresh().1;
    let visits = KeyspaceOptions::merging(CounterU64::NAME);
    let visits = counts.keyspace_with("visits", visits).unwrap();
    let mut ingestion = counts.ingest().unwrap();
    assert_eq!(kind(ingestion.merge(&visits, "home", "short")), ErrorKind::MergeFailed);
}

/// A database with a keyspace whose keys descend, and one in which case does not matter.
fn ordered(db: &Db) -> (Keyspace, Keyspace) {
    let reverse = db.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    (reverse, db.keyspace_ordered("caseless", Arc::new(Caseless)).unwrap())
}

#[test]
fn keyspaces_with_a_custom_comparator_are_ingested_to_in_their_order() {
    let (place, db) = fresh();
    let (reverse, caseless) = ordered(&db);
    for number in 0..900 {
        reverse.insert(key(number), "old").unwrap();
    }
    caseless.insert("apple", "old").unwrap();
    let before = db.snapshot().unwrap();
    let mut ingestion = db.ingest().unwrap();
    for number in (300..1500).rev() {
        ingestion.insert(&reverse, key(number), fresh_value(number)).unwrap();
        ingestion.insert(&db.default_keyspace(), key(2000 - number), "default").unwrap();
    }
    assert_eq!(kind(ingestion.insert(&reverse, key(300), "x")), ErrorKind::OutOfOrder);
    assert_eq!(kind(ingestion.insert(&reverse, key(301), "x")), ErrorKind::OutOfOrder);
    let unclear = ingestion.remove_range(&reverse, key(100)..=key(50));
    assert_eq!(kind(unclear), ErrorKind::InvalidArgument);
    ingestion.remove_range(&reverse, key(200)..key(100)).unwrap();
    ingestion.insert(&caseless, "APPLE", "new").unwrap();
    assert_eq!(kind(ingestion.insert(&caseless, "Apple", "x")), ErrorKind::OutOfOrder);
    ingestion.insert(&caseless, "bee", "new").unwrap();
    ingestion.commit().unwrap();
    reverse.insert(key(500), "newer").unwrap();
    assert_eq!(before.iter(&reverse).unwrap().count(), 900);
    assert_eq!(text(before.get(&caseless, "Apple").unwrap()).as_deref(), Some("old"));
    drop(before);
    lasts(&place, &db, |db| {
        let (reverse, caseless) = ordered(db);
        let live = |number: &usize| !(101..=200).contains(number);
        let expected: Vec<_> = (0..1500).rev().filter(live).map(key).collect();
        assert_eq!(keys(reverse.iter().unwrap()), expected);
        assert_eq!(text(reverse.get(key(500)).unwrap()).as_deref(), Some("newer"));
        assert_eq!(text(reverse.get(key(501)).unwrap()), Some(fresh_value(501)));
        assert_eq!(text(reverse.get(key(99)).unwrap()).as_deref(), Some("old"));
        assert_eq!(reverse.get(key(150)).unwrap(), None);
        assert_eq!(text(caseless.get("aPPle").unwrap()).as_deref(), Some("new"));
        assert_eq!(caseless.iter().unwrap().count(), 2);
        assert_eq!(db.iter().unwrap().count(), 1200);
        whole(db);
    });
}

#[test]
fn transactions_over_a_custom_comparator_learn_of_what_is_ingested() {
    let (_place, db) = fresh();
    let (reverse, _) = ordered(&db);
    reverse.insert(key(70), "old").unwrap();
    for (read, expected) in [(50, true), (60, true), (40, true), (75, true), (39, false)] {
        let tx = db.begin().unwrap();
        drop(tx.get(&reverse, key(read)).unwrap());
        tx.insert(&reverse, "~outcome", "written").unwrap();
        let mut ingestion = db.ingest().unwrap();
        ingestion.insert(&reverse, key(60), "new").unwrap();
        ingestion.insert(&reverse, key(40), "new").unwrap();
        ingestion.remove_range(&reverse, key(80)..key(70)).unwrap();
        ingestion.commit().unwrap();
        match expected {
            true => assert_eq!(cause(tx.commit()), ConflictCause::KeyChanged, "{read}"),
            false => drop(tx.commit().unwrap()),
        }
    }
}

/// Others write to all keyspaces meanwhile, and nothing is lost or overtaken.
#[test]
fn writers_do_not_keep_an_ingestion_over_a_custom_comparator_from_its_commit() {
    let (_place, db) = fresh();
    let (reverse, _) = ordered(&db);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, reverse, done) = (&db, &reverse, &done);
            scope.spawn(move || {
                let mut number = thread;
                while !done.load(Relaxed) {
                    let written = db.default_keyspace();
                    let keyspace = if number % 3 == 0 { reverse } else { &written };
                    keyspace.insert(format!("x{}", number % 1000), "written").unwrap();
                    number += 2;
                }
            });
        }
        for round in 0..5 {
            let mut ingestion = db.ingest().unwrap();
            ingestion.insert(&reverse, "y", format!("{round}")).unwrap();
            for number in (0..300).rev() {
                ingestion.insert(&reverse, format!("x{number:03}y"), "y").unwrap();
            }
            ingestion.commit().unwrap();
            assert_eq!(text(reverse.get("y").unwrap()), Some(format!("{round}")));
        }
        done.store(true, Relaxed);
    });
    db.compact().unwrap();
    assert_eq!(text(reverse.get("x007y").unwrap()).as_deref(), Some("y"));
    whole(&db);
}

/// Does something at one of its comparisons, the next one after that is set.
#[derive(Default)]
struct Meanwhile(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl esker::Comparator for Meanwhile {
    fn name(&self) -> &str {
        "meanwhile"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let work = self.0.lock().take();
        if let Some(work) = work {
            work();
        }
        a.cmp(b)
    }
}

/// Ingests `m`; something happens while the commit compares keys of the tree.
fn ingest_meanwhile(db: &Db, work: impl FnOnce(&Keyspace) + Send + 'static) -> Keyspace {
    let order = Arc::new(Meanwhile::default());
    let keyspace = db.keyspace_ordered("meanwhile", order.clone()).unwrap();
    // Several partitions.
    let mut random = Rng::new(7);
    for number in 0..400 {
        let noise: Vec<u8> = (0..1000).map(|_| random.next() as u8).collect();
        keyspace.insert(key(number), noise).unwrap();
    }
    db.compact().unwrap();
    let mut ingestion = db.ingest().unwrap();
    ingestion.insert(&keyspace, "m", "ingested").unwrap();
    let writer = keyspace.clone();
    *order.0.lock() = Some(Box::new(move || work(&writer)));
    ingestion.commit().unwrap();
    assert!(order.0.lock().is_none(), "nothing was compared");
    keyspace
}

#[test]
fn a_write_while_a_custom_comparator_is_asked_is_newer_than_what_is_ingested() {
    let (_place, db) = fresh();
    let threads = Arc::new(Mutex::new(Vec::new()));
    let running = threads.clone();
    let keyspace = ingest_meanwhile(&db, move |keyspace| {
        let (keyspace, done) = (keyspace.clone(), Arc::new(AtomicBool::new(false)));
        let written = done.clone();
        running.lock().push(std::thread::spawn(move || {
            keyspace.insert("m", "written").unwrap();
            written.store(true, Relaxed);
        }));
        // It waits for the ingestion. If it did not, it would be done by then.
        for _ in 0..10_000 {
            if done.load(Relaxed) {
                break;
            }
            std::thread::yield_now();
        }
    });
    threads.lock().drain(..).for_each(|thread| thread.join().unwrap());
    for _ in 0..2 {
        assert_eq!(text(keyspace.get("m").unwrap()).as_deref(), Some("written"));
        db.compact().unwrap();
    }
}

#[test]
fn a_snapshot_while_a_custom_comparator_is_asked_does_not_see_what_is_ingested() {
    let (_place, db) = fresh();
    let seen = Arc::new(Mutex::new(None));
    let (made, other) = (seen.clone(), db.clone());
    let keyspace = ingest_meanwhile(&db, move |_| {
        other.insert("another", "write").unwrap();
        *made.lock() = Some(other.snapshot().unwrap());
    });
    let snapshot = seen.lock().take().unwrap();
    for _ in 0..2 {
        assert_eq!(snapshot.get(&keyspace, "m").unwrap(), None);
        assert_eq!(text(keyspace.get("m").unwrap()).as_deref(), Some("ingested"));
        db.compact().unwrap();
    }
}

/// Panics as soon as it is told to.
struct Breaks(Arc<AtomicBool>);

impl esker::Comparator for Breaks {
    fn name(&self) -> &str {
        "breaks"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        assert!(!self.0.load(Relaxed), "told to");
        b.cmp(a)
    }
}

#[test]
fn a_comparator_that_panics_during_an_ingestion_ends_the_writing() {
    for at_commit in [false, true] {
        let (_place, db) = fresh();
        let broken = Arc::new(AtomicBool::new(false));
        let order = Arc::new(Breaks(broken.clone()));
        let keyspace = db.keyspace_ordered("breaks", order).unwrap();
        keyspace.insert("m", "old").unwrap();
        let mut ingestion = db.ingest().unwrap();
        ingestion.insert(&keyspace, "z", "new").unwrap();
        ingestion.insert(&keyspace, "b", "new").unwrap();
        ingestion.remove_range(&keyspace, "y".."x").unwrap();
        broken.store(true, Relaxed);
        let failed = match at_commit {
            true => ingestion.commit(),
            false => ingestion.insert(&keyspace, "a", "new"),
        };
        assert_eq!(kind(failed), ErrorKind::UserCodePanicked, "{at_commit}");
        assert!(db.insert("k", "v").is_err());
        assert!(db.get("k").is_ok());
    }
}

#[test]
fn ingestions_of_several_threads_take_effect_together() {
    let place = Place::new();
    let db = open_roomy(&place);
    let (one, two) = (db.keyspace("one").unwrap(), db.keyspace("two").unwrap());
    for number in 0..4000 {
        one.insert(key(number), "old").unwrap();
    }
    let parts = std::thread::scope(|scope| {
        let threads = [3, 0, 2, 1].map(|part| {
            let (db, one, two) = (&db, &one, &two);
            scope.spawn(move || {
                let mut ingestion = db.ingest().unwrap();
                let first = 1000 * part;
                ingestion.remove_range(one, key(first)..key(first + 1000)).unwrap();
                insert(&mut ingestion, one, (first..first + 1000).step_by(2));
                if part == 2 {
                    insert(&mut ingestion, two, 0..100);
                }
                ingestion.sync().unwrap();
                ingestion
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap();
    parts.for_each(|part| all.join(part).unwrap());
    assert_eq!(two.iter().unwrap().count(), 0);
    // What follows lies behind all of them.
    assert_eq!(kind(all.insert(&one, key(3997), "x")), ErrorKind::OutOfOrder);
    insert(&mut all, &one, [5000]);
    all.commit().unwrap();
    lasts(&place, &db, |db| {
        let (one, two) = (db.keyspace("one").unwrap(), db.keyspace("two").unwrap());
        let expected: Vec<_> = (0..4000).step_by(2).chain([5000]).map(key).collect();
        assert_eq!(keys(one.iter().unwrap()), expected);
        assert_eq!(text(one.get(key(2222)).unwrap()), Some(fresh_value(2222)));
        assert_eq!(two.iter().unwrap().count(), 100);
        whole(db);
    });
}

#[test]
fn ingestions_whose_keys_mix_are_not_joined() {
    let (place, db) = fresh();
    let default = db.default_keyspace();
    let part = |numbers: std::ops::Range<usize>| {
        let mut part = db.ingest().unwrap();
        insert(&mut part, &default, numbers);
        part
    };
    let mut all = part(100..200);
    all.join(part(0..50)).unwrap();
    all.join(part(300..400)).unwrap();
    all.join(part(60..70)).unwrap();
    for mixed in [40..55, 49..61, 65..66, 0..1000, 150..350, 399..500, 199..200] {
        let files = run_files(&place.path()).1;
        let refused = all.join(part(mixed.clone()));
        assert!(matches!(refused, Err(Error::OutOfOrder { .. })), "{mixed:?}: {refused:?}");
        assert_eq!(run_files(&place.path()).1, files, "what is refused leaves no file");
    }
    insert(&mut all, &default, 400..410);
    all.join(part(250..260)).unwrap();
    insert(&mut all, &default, 410..420);
    let (_other_place, other) = fresh();
    let mut foreign = other.ingest().unwrap();
    insert(&mut foreign, &other.default_keyspace(), 0..10);
    assert_eq!(kind(all.join(foreign)), ErrorKind::InvalidArgument);
    all.commit().unwrap();
    lasts(&place, &db, |db| {
        let live = [0..50, 60..70, 100..200, 250..260, 300..420];
        has(db, live.clone().into_iter().flatten());
        assert_eq!(db.iter().unwrap().count(), live.into_iter().flatten().count());
        whole(db);
    });
}

#[test]
fn statistics_and_an_event_tell_of_ingestions() {
    let place = Place::new();
    let heard: Arc<Mutex<Vec<EventKind>>> = Arc::default();
    let mut options = small();
    let listener = heard.clone();
    options.on_event = Some(Arc::new(move |event: &Event| {
        if let EventKind::Ingestion { .. } = event.kind {
            listener.lock().push(event.kind.clone());
        }
    }));
    let db = Db::open_with(place.path(), options).unwrap();
    db.insert("before", "value").unwrap();
    let before = db.stats();
    let dropped = {
        let mut ingestion = db.ingest().unwrap();
        ingestion.insert(&db.default_keyspace(), "k", "v").unwrap();
        ingestion.sync()
    };
    dropped.unwrap();
    assert_eq!((db.stats().ingestions, db.stats().written.ingestion), (0, 0));
    let other = db.keyspace("other").unwrap();
    let mut ingestion = db.ingest().unwrap();
    insert(&mut ingestion, &other, 0..1000);
    ingestion.remove(&db.default_keyspace(), "k").unwrap();
    ingestion.remove_range(&db.default_keyspace(), "l".."m").unwrap();
    ingestion.commit().unwrap();
    let stats = db.stats();
    let bytes: usize = (0..1000).map(|number| key(number).len() + fresh_value(number).len()).sum();
    assert_eq!((stats.ingestions, stats.entries_ingested), (1, 1002));
    assert!(stats.bytes_ingested >= bytes as u64, "{}", stats.bytes_ingested);
    assert!(stats.bytes_ingested < bytes as u64 + 50, "{}", stats.bytes_ingested);
    assert!(stats.written.user - before.written.user >= bytes as u64);
    assert!(stats.written.ingestion > 1000, "{:?}", stats.written);
    assert!(stats.write_amplification() > 0.0);
    db.write_with(
        {
            let mut batch = esker::Batch::new();
            batch.insert(&other, "after", "value");
            batch
        },
        Durability::Process,
    )
    .unwrap();
    db.close().unwrap();
    let heard = heard.lock();
    assert!(
        matches!(heard[..], [EventKind::Ingestion { keyspaces: 2, entries: 1002, bytes, .. }]
            if bytes == stats.written.ingestion),
        "{heard:?}"
    );
}

#[test]
fn branches_and_named_snapshots_keep_what_an_ingestion_removes() {
    let (place, db) = fresh();
    fill(&db, 0..500, 1);
    let before = db.branch("before").unwrap();
    db.snapshot_named("early").unwrap();
    let mut ingestion = db.ingest().unwrap();
    ingestion.remove_range::<&str>(&db.default_keyspace(), ..).unwrap();
    insert(&mut ingestion, &db.default_keyspace(), 100..110);
    ingestion.commit().unwrap();
    ingest(&before, 200..210);
    drop(before);
    lasts(&place, &db, |db| {
        assert_eq!(db.iter().unwrap().count(), 10);
        let before = db.open_branch("before").unwrap();
        assert_eq!(before.iter().unwrap().count(), 500);
        assert_eq!(text(before.get(key(205)).unwrap()), Some(fresh_value(205)));
        let early = db.open_named_snapshot("early").unwrap();
        assert_eq!(early.iter().unwrap().count(), 500);
        assert_eq!(text(early.get(key(205)).unwrap()), Some(value(205, 1)));
        whole(db);
    });
}

/// The entries of a keyspace.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// What a repair saves of a database to which was ingested, in the keyspaces that it finds.
fn repaired(place: &Place, name: &str) -> (String, Vec<Entries>) {
    let to = place.path().with_extension("new");
    let salvaged = esker::repair::salvage(place.path(), &to, &small()).unwrap();
    let db = Db::open_with(&to, small()).unwrap();
    whole(&db);
    let names = db.keyspaces().unwrap();
    let found = names.iter().filter(|found| found.contains(name));
    let found = found.map(|name| entries(db.keyspace(name).unwrap().iter().unwrap())).collect();
    (salvaged.to_string(), found)
}

#[test]
fn a_repair_knows_positions_from_the_manifest_and_without_it_says_what_it_does_not_know() {
    for with_manifest in [true, false] {
        let place = Place::new();
        let db = open_roomy(&place);
        fill(&db, 0..100, 1);
        db.flush().unwrap();
        let mut ingestion = db.ingest().unwrap();
        ingestion.remove_range(&db.default_keyspace(), key(20)..key(60)).unwrap();
        insert(&mut ingestion, &db.default_keyspace(), 40..50);
        insert(&mut ingestion, &db.default_keyspace(), 200..210);
        ingestion.commit().unwrap();
        let expected = entries(db.iter().unwrap());
        assert_eq!(expected.len(), 80);
        db.close().unwrap();
        if with_manifest {
            let (_, found) = repaired(&place, "default");
            assert_eq!(found, [expected]);
            continue;
        }
        for entry in std::fs::read_dir(place.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().contains("MANIFEST") {
                std::fs::remove_file(path).unwrap();
            }
        }
        let (said, found) = repaired(&place, "recovered");
        assert!(said.contains("what they removed may be back"), "{said}");
        // All keys; which of two values of a key is newer is not known.
        let numbers = (0..100).chain(200..210);
        let keys: Vec<_> = numbers.map(|number| key(number).into_bytes()).collect();
        let found = found.concat();
        assert_eq!(found.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), keys);
        let of = |number: usize| {
            text(found.iter().find(|(k, _)| *k == key(number).as_bytes()).map(|(_, v)| v.clone()))
        };
        assert_eq!(of(205), Some(fresh_value(205)));
        assert_eq!(of(10), Some(value(10, 1)));
    }
}
