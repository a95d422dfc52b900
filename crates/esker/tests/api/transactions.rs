//! What a transaction sees, what its commit and its rollback do, and how it ends otherwise.

use super::transaction_conflicts::cause;
use super::{Place, fill, fresh, key, small, value};
use esker::{ConflictCause, Db, Durability, Error, ErrorKind, Result, TransactionOptions};
use esker_testkit::harness::HandClock;
use esker_testkit::orders::Caseless;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_commit_shows_all_writes_at_once_and_a_rollback_none() {
    let (_place, db) = fresh();
    let (a, b) = (db.keyspace("a").unwrap(), db.keyspace("b").unwrap());
    let tx = db.begin().unwrap();
    tx.insert(&a, "k", "1").unwrap();
    tx.insert(&b, "k", "2").unwrap();
    assert_eq!(a.get("k").unwrap(), None);
    assert!(tx.commit().unwrap() > 0);
    assert_eq!(a.get("k").unwrap().unwrap(), b"1");
    assert_eq!(b.get("k").unwrap().unwrap(), b"2");
    let tx = db.begin().unwrap();
    tx.remove(&a, "k").unwrap();
    tx.rollback();
    drop(db.begin().unwrap());
    assert!(a.contains_key("k").unwrap());
}

#[test]
fn a_transaction_reads_its_own_writes_over_the_moment_of_its_begin() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    fill(&db, 0..10, 0);
    let tx = db.begin().unwrap();
    db.insert("key000003", "later").unwrap();
    db.insert("new", "later").unwrap();
    assert_eq!(tx.get(&ks, key(3)).unwrap().unwrap(), value(3, 0).as_bytes());
    assert!(!tx.contains_key(&ks, "new").unwrap());
    tx.insert(&ks, key(3), "mine").unwrap();
    tx.remove(&ks, key(4)).unwrap();
    let found = tx.multi_get(&ks, [key(3), key(4), key(5)]).unwrap();
    assert_eq!(found, [Some(b"mine".to_vec()), None, Some(value(5, 0).into_bytes())]);
    tx.remove_range(&ks, key(5)..key(8)).unwrap();
    tx.insert(&ks, key(6), "after").unwrap();
    assert_eq!(tx.get(&ks, key(5)).unwrap(), None);
    assert_eq!(tx.get(&ks, key(6)).unwrap().unwrap(), b"after");
    assert_eq!(tx.last_key_value(&ks).unwrap().unwrap().0, key(9).as_bytes());
    assert_eq!(tx.iter(&ks).unwrap().count(), 7);
}

#[test]
fn later_operations_of_a_transaction_win_at_the_commit() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    fill(&db, 0..6, 0);
    db.transact(|tx| {
        tx.insert(&ks, key(1), "gone")?;
        tx.remove_range(&ks, key(0)..key(4))?;
        tx.insert(&ks, key(2), "first")?;
        tx.insert(&ks, key(2), "second")?;
        tx.insert(&ks, key(4), "x")?;
        tx.remove(&ks, key(4))
    })
    .unwrap();
    let left: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap()).collect();
    let want = [(key(2), "second".to_owned()), (key(5), value(5, 0))];
    assert_eq!(left, want.map(|(key, value)| (key.into_bytes(), value.into_bytes())));
}

/// Random transactions against a map: reads, and iterators that move from both ends in turn.
#[test]
fn what_a_transaction_sees_is_a_map_with_its_writes() {
    let (_place, db) = fresh();
    let folded = db.keyspace_ordered("folded", Arc::new(Caseless)).unwrap();
    let mut seed = 0x5eed_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    for round in 0..60 {
        let ks = if round % 3 == 0 { folded.clone() } else { db.default_keyspace() };
        for _ in 0..random(60) {
            ks.insert(key(random(80)), round.to_string()).unwrap();
        }
        if round % 5 == 0 {
            db.flush().unwrap();
        }
        let all = ks.iter().unwrap().map(|entry| entry.unwrap());
        let mut map: BTreeMap<Vec<u8>, Vec<u8>> = all.collect();
        let tx = db.begin().unwrap();
        for step in 0..40 {
            let (a, b) = (random(80), random(80));
            match random(10) {
                0..=3 => {
                    let text = format!("{round}.{step}");
                    tx.insert(&ks, key(a), &text).unwrap();
                    map.insert(key(a).into_bytes(), text.into_bytes());
                }
                4 | 5 => {
                    tx.remove(&ks, key(a)).unwrap();
                    map.remove(key(a).as_bytes());
                }
                6 => {
                    tx.remove_range(&ks, key(a)..key(a + b / 8)).unwrap();
                    map.retain(|k, _| {
                        *k < key(a).into_bytes() || *k >= key(a + b / 8).into_bytes()
                    });
                }
                7 => {
                    let want = map.get(key(a).as_bytes()).cloned();
                    assert_eq!(tx.get(&ks, key(a)).unwrap(), want);
                }
                _ => {
                    let (low, high) = (key(a.min(b)), key(a.max(b)));
                    let mut want: Vec<_> = map
                        .range(low.clone().into_bytes()..high.clone().into_bytes())
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect();
                    let mut iter = tx.range(&ks, low..high).unwrap();
                    loop {
                        let forward = random(2) == 0;
                        let found = if forward { iter.next() } else { iter.next_back() };
                        let wanted = match forward {
                            _ if want.is_empty() => None,
                            true => Some(want.remove(0)),
                            false => want.pop(),
                        };
                        assert_eq!(found.transpose().unwrap(), wanted);
                        if wanted.is_none() {
                            break;
                        }
                    }
                    assert!(iter.next().is_none() && iter.next_back().is_none());
                }
            }
        }
        tx.commit().unwrap();
        let all: BTreeMap<_, _> = ks.iter().unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(all, map, "round {round}");
    }
}

#[test]
fn an_iterator_shows_the_writes_of_its_making_and_can_be_placed_anew() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    fill(&db, 0..10, 0);
    let tx = db.begin().unwrap();
    tx.remove(&ks, key(4)).unwrap();
    let mut iter = tx.range(&ks, key(1)..key(8)).unwrap();
    tx.remove(&ks, key(2)).unwrap();
    tx.insert(&ks, "key0000015", "x").unwrap();
    assert_eq!(iter.next().unwrap().unwrap().0, key(1).as_bytes());
    assert_eq!(iter.next().unwrap().unwrap().0, key(2).as_bytes());
    assert_eq!(iter.next_back().unwrap().unwrap().0, key(7).as_bytes());
    iter.seek(key(4)).unwrap();
    assert_eq!(iter.next().unwrap().unwrap().0, key(5).as_bytes());
    assert_eq!(iter.next().unwrap().unwrap().0, key(6).as_bytes());
    assert!(iter.next().is_none());
    iter.seek("").unwrap();
    assert_eq!(iter.next().unwrap().unwrap().0, key(1).as_bytes());
    assert_eq!(iter.next_back().unwrap().unwrap().0, key(6).as_bytes());
    // Its own writes can be changed while it goes on.
    for entry in tx.iter(&ks).unwrap() {
        tx.remove(&ks, entry.unwrap().0).unwrap();
    }
    assert_eq!(tx.first_key_value(&ks).unwrap(), None);
}

#[test]
fn a_keyspace_that_is_dropped_meanwhile_ends_its_transactions() {
    let (_place, db) = fresh();
    let gone = db.keyspace("gone").unwrap();
    gone.insert("k", "v").unwrap();
    let reads = db.begin().unwrap();
    reads.get(&gone, "k").unwrap();
    reads.insert(&db.default_keyspace(), "k", "v").unwrap();
    let writes = db.begin().unwrap();
    writes.insert(&gone, "k", "v").unwrap();
    db.drop_keyspace("gone").unwrap();
    assert!(matches!(reads.commit(), Err(Error::KeyspaceDropped { .. })));
    assert!(matches!(writes.commit(), Err(Error::KeyspaceDropped { .. })));
    assert_eq!(db.get("k").unwrap(), None);
}

#[test]
fn savepoints_take_writes_back_and_keep_what_was_read() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    fill(&db, 0..5, 0);
    let tx = db.begin().unwrap();
    tx.insert(&ks, "a", "1").unwrap();
    let first = tx.savepoint();
    tx.insert(&ks, "a", "2").unwrap();
    tx.insert(&ks, "b", "2").unwrap();
    let second = tx.savepoint();
    tx.remove_range::<&str>(&ks, ..).unwrap();
    tx.insert(&ks, "c", "3").unwrap();
    assert_eq!(tx.iter(&ks).unwrap().count(), 1);
    tx.rollback_to(&second).unwrap();
    assert_eq!(tx.iter(&ks).unwrap().count(), 7);
    tx.remove(&ks, "a").unwrap();
    tx.rollback_to(&second).unwrap();
    assert_eq!(tx.get(&ks, "a").unwrap().unwrap(), b"2");
    tx.rollback_to(&first).unwrap();
    assert_eq!(tx.get(&ks, "a").unwrap().unwrap(), b"1");
    assert_eq!(tx.get(&ks, "b").unwrap(), None);
    let kind = |result: Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(tx.rollback_to(&second)), ErrorKind::InvalidArgument);
    let other = db.begin().unwrap();
    other.savepoint();
    assert_eq!(kind(other.rollback_to(&first)), ErrorKind::InvalidArgument);
    tx.commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"1");
    assert_eq!(db.iter().unwrap().count(), 6);
    // A read behind a savepoint stays a read.
    let tx = db.begin().unwrap();
    let point = tx.savepoint();
    tx.get(&ks, key(1)).unwrap();
    tx.rollback_to(&point).unwrap();
    tx.insert(&ks, "x", "").unwrap();
    db.insert(key(1), "changed").unwrap();
    assert_eq!(cause(tx.commit()), ConflictCause::KeyChanged);
}

#[test]
fn a_transaction_beyond_the_size_of_a_batch_is_refused_and_stays_usable() {
    let place = Place::new();
    let mut options = small();
    options.memory = Some(1 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    let ks = db.default_keyspace();
    let tx = db.begin().unwrap();
    let refused = (0..1000).find_map(|n| tx.insert(&ks, key(n), [0; 1000]).err().map(|e| (n, e)));
    let (n, error) = refused.unwrap();
    assert!(matches!(error, Error::BatchTooLarge { max: 131_072, .. }), "{error}");
    assert_eq!(tx.get(&ks, key(n)).unwrap(), None);
    tx.remove(&ks, key(0)).unwrap();
    tx.commit().unwrap();
    assert_eq!(db.iter().unwrap().count(), n - 1);
    let tx = db.begin().unwrap();
    assert!(matches!(tx.insert(&ks, [0; 70_000], ""), Err(Error::KeyTooLong { .. })));
    assert!(matches!(tx.insert(&ks, "k", [0; 200_000]), Err(Error::ValueTooLarge { .. })));
    assert_eq!(tx.commit().unwrap(), 0);
}

#[test]
fn the_class_of_durability_is_chosen_per_transaction() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    let with = |durability| {
        let mut options = TransactionOptions::default();
        options.durability = Some(durability);
        let tx = db.begin_with(options).unwrap();
        tx.get(&ks, "k").unwrap();
        tx.insert(&ks, "k", "v").unwrap();
        let syncs = db.stats().syncs;
        tx.commit().unwrap();
        db.stats().syncs - syncs
    };
    assert_eq!(with(Durability::Disk), 1);
    assert_eq!(with(Durability::Process), 0);
    assert_eq!(with(Durability::Buffered), 0);
}

#[test]
fn keyspaces_of_another_database_and_closed_databases_are_refused() {
    let (_place, db) = fresh();
    let (_other_place, other) = fresh();
    let tx = db.begin().unwrap();
    let foreign = other.default_keyspace();
    let kind = |error: Error| error.kind();
    assert_eq!(tx.get(&foreign, "k").map_err(kind), Err(ErrorKind::InvalidArgument));
    assert_eq!(tx.insert(&foreign, "k", "v").map_err(kind), Err(ErrorKind::InvalidArgument));
    assert!(tx.iter(&foreign).is_err());
    tx.insert(&db.default_keyspace(), "k", "v").unwrap();
    db.close().unwrap();
    assert_eq!(tx.get(&db.default_keyspace(), "k").map_err(kind), Err(ErrorKind::Closed));
    assert_eq!(tx.commit().map_err(kind), Err(ErrorKind::Closed));
    assert_eq!(db.begin().map(drop).map_err(kind), Err(ErrorKind::Closed));
}

#[test]
fn operands_in_a_transaction_are_seen_and_conflict_only_with_reads() {
    let (_place, db) = fresh();
    let options = esker::KeyspaceOptions::merging(esker::CounterU64::NAME);
    let ks = db.keyspace_with("counts", options).unwrap();
    let [one, ten] = [1, 10].map(esker::CounterU64::encode);
    let number = |value: Option<Vec<u8>>| value.map(|v| esker::CounterU64::decode(&v).unwrap());
    for key in ["base", "gone", "read"] {
        ks.merge(key, ten).unwrap();
    }
    db.flush().unwrap();
    let tx = db.begin().unwrap();
    for key in ["base", "new", "put", "gone"] {
        match key {
            "put" => tx.insert(&ks, key, ten).unwrap(),
            "gone" => tx.remove(&ks, key).unwrap(),
            _ => {}
        }
        tx.merge(&ks, key, one).unwrap();
        tx.merge(&ks, key, one).unwrap();
    }
    let all = |iter: esker::TransactionIter| -> Vec<(String, u64)> {
        let text = |key| String::from_utf8(key).unwrap();
        iter.map(|e| e.unwrap()).map(|(k, v)| (text(k), number(Some(v)).unwrap())).collect()
    };
    let want = [("base", 12), ("gone", 2), ("new", 2), ("put", 12), ("read", 10)];
    let want = want.map(|(key, n)| (key.to_owned(), n));
    assert_eq!(all(tx.iter(&ks).unwrap()), want);
    let mut backward: Vec<_> = tx.iter(&ks).unwrap().rev().map(|e| e.unwrap().0).collect();
    backward.reverse();
    assert_eq!(backward, want.clone().map(|(key, _)| key.into_bytes()));
    assert_eq!(number(tx.get(&ks, "base").unwrap()), Some(12));
    assert_eq!(number(tx.get(&ks, "gone").unwrap()), Some(2));
    let point = tx.savepoint();
    tx.merge(&ks, "base", ten).unwrap();
    tx.remove_range::<&str>(&ks, ..).unwrap();
    tx.merge(&ks, "base", one).unwrap();
    assert_eq!(all(tx.iter(&ks).unwrap()), [("base".to_owned(), 1)]);
    tx.rollback_to(&point).unwrap();
    assert_eq!(number(tx.get(&ks, "base").unwrap()), Some(12));
    tx.commit().unwrap();
    for (key, want) in want {
        assert_eq!(number(ks.get(&key).unwrap()), Some(want), "{key}");
    }
    // To merge is to write blindly; to look is to read.
    let (blind, looks) = (db.begin().unwrap(), db.begin().unwrap());
    blind.merge(&ks, "base", one).unwrap();
    looks.merge(&ks, "base", one).unwrap();
    assert_eq!(number(looks.get(&ks, "base").unwrap()), Some(13));
    ks.merge("base", one).unwrap();
    blind.commit().unwrap();
    assert_eq!(cause(looks.commit()), ConflictCause::KeyChanged);
    assert_eq!(number(ks.get("base").unwrap()), Some(14));
    let plain = db.begin().unwrap().merge(&db.default_keyspace(), "k", one);
    assert_eq!(plain.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn entries_expire_for_a_transaction_by_the_time_of_its_begin() {
    let place = Place::new();
    let clock = Arc::new(HandClock::default());
    let mut options = small();
    options.clock = clock.clone();
    let db = Db::open_with(place.path(), options).unwrap();
    let set = |millis| clock.set(millis);
    let ks = db.default_keyspace();
    let cache = db
        .keyspace_with("cache", esker::KeyspaceOptions::expiring(Duration::from_millis(100)))
        .unwrap();
    ks.insert_with_ttl("old", "1", Duration::from_millis(50)).unwrap();
    let early = db.begin().unwrap();
    set(60);
    let late = db.begin().unwrap();
    assert!(early.contains_key(&ks, "old").unwrap());
    assert!(!late.contains_key(&ks, "old").unwrap());
    assert_eq!((early.iter(&ks).unwrap().count(), late.iter(&ks).unwrap().count()), (1, 0));
    // What a transaction writes lives from its commit on.
    late.insert_with_ttl(&ks, "new", "2", Duration::from_millis(10)).unwrap();
    late.insert(&cache, "new", "3").unwrap();
    set(200);
    assert!(late.contains_key(&ks, "new").unwrap());
    late.commit().unwrap();
    set(205);
    assert_eq!(ks.get("new").unwrap().unwrap(), b"2");
    assert!(cache.contains_key("new").unwrap());
    set(250);
    assert_eq!(ks.get("new").unwrap(), None);
    assert!(ks.insert_if_absent("new", "4").unwrap());
    set(300);
    assert!(!cache.contains_key("new").unwrap());
}
