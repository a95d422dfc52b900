//! Changes that depend on what was there: closures that are tried again, compare-and-set and
//! updates, by many threads at once.

use super::fresh;
use super::transaction_conflicts::cause;
use esker::{ConflictCause, Error, Keyspace, Result, Transaction, TransactionOptions};
use esker_testkit::orders::Caseless;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

#[test]
fn the_closure_form_retries_conflicts_and_passes_other_ends_on() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    db.insert("count", "0").unwrap();
    let mut attempts = 0;
    let result = db.transact(|tx| {
        attempts += 1;
        let count: u32 = String::from_utf8_lossy(&tx.get(&ks, "count")?.unwrap()).parse().unwrap();
        if attempts < 3 {
            db.insert("count", (count + 10).to_string())?;
        }
        tx.insert(&ks, "count", (count + 1).to_string())?;
        Ok(count)
    });
    assert_eq!((result.unwrap(), attempts), (20, 3));
    assert_eq!(db.get("count").unwrap().unwrap(), b"21");
    let mut once = TransactionOptions::default();
    once.attempts = 1;
    let result = db.transact_with(once, |tx| {
        tx.get(&ks, "count")?;
        db.insert("count", "30")?;
        tx.insert(&ks, "count", "31")
    });
    assert_eq!(cause(result), ConflictCause::KeyChanged);
    let mut attempts = 0;
    let stopped: Result<()> = db.transact(|tx| {
        attempts += 1;
        tx.insert(&ks, "count", "no")?;
        Err(Error::aborted("changed my mind"))
    });
    assert!(matches!(stopped, Err(Error::Aborted { reason }) if reason == "changed my mind"));
    assert_eq!(attempts, 1);
    assert_eq!(db.get("count").unwrap().unwrap(), b"30");
}

#[test]
fn no_increment_is_lost_among_threads() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    let folded = db.keyspace_ordered("folded", Arc::new(Caseless)).unwrap();
    let (threads, rounds) = (4, 200);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, ks, folded) = (&db, &ks, &folded);
            scope.spawn(move || {
                for round in 0..rounds {
                    let one = |tx: &Transaction, ks: &Keyspace| {
                        let old = tx.get(ks, "count")?.map_or(0, |v| v.len());
                        tx.insert(ks, "count", vec![1; old + 1])
                    };
                    db.transact(|tx| {
                        one(tx, ks)?;
                        if round % 4 == 0 { one(tx, folded) } else { Ok(()) }
                    })
                    .unwrap();
                    // Plain writers do not mind.
                    db.insert(format!("{thread}"), vec![1; 200]).unwrap();
                }
            });
        }
    });
    assert_eq!(db.get("count").unwrap().unwrap().len(), threads * rounds);
    assert_eq!(folded.get("count").unwrap().unwrap().len(), threads * rounds / 4);
}

#[test]
fn a_value_is_set_only_where_the_expected_one_stands() {
    let (_place, db) = fresh();
    let folded = db.keyspace_ordered("folded", Arc::new(Caseless)).unwrap();
    for ks in [db.default_keyspace(), folded] {
        assert!(!ks.compare_and_set("k", Some(b"1"), Some(b"2")).unwrap());
        assert!(ks.compare_and_set("k", None, None).unwrap());
        assert!(ks.compare_and_set("k", None, Some(b"1")).unwrap());
        assert!(!ks.insert_if_absent("k", "3").unwrap());
        assert!(ks.compare_and_set("k", Some(b"1"), Some(b"2")).unwrap());
        assert_eq!(ks.get("k").unwrap().unwrap(), b"2");
        assert!(ks.compare_and_set("k", Some(b"2"), None).unwrap());
        assert!(ks.insert_if_absent("k", "3").unwrap());
        let twice = |old: Option<&[u8]>| old.map(|old| old.repeat(2));
        assert_eq!(ks.update("k", twice).unwrap().unwrap(), b"33");
        assert_eq!(ks.update("absent", twice).unwrap(), None);
        assert_eq!(ks.update("k", |_| None).unwrap(), None);
        assert!(!ks.contains_key("k").unwrap());
    }
    let long = vec![0; 70_000];
    assert!(matches!(
        db.default_keyspace().insert_if_absent(long, ""),
        Err(Error::KeyTooLong { .. })
    ));
}

#[test]
fn no_update_is_lost_among_threads_that_do_not_wait_for_each_other() {
    let (_place, db) = fresh();
    let folded = db.keyspace_ordered("folded", Arc::new(Caseless)).unwrap();
    let ks = db.default_keyspace();
    let winners = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (ks, folded, db, winners) = (&ks, &folded, &db, &winners);
            scope.spawn(move || {
                for round in 0..300 {
                    let longer = |old: Option<&[u8]>| Some(vec![1; old.map_or(0, <[u8]>::len) + 1]);
                    ks.update("count", longer).unwrap();
                    if round % 5 == 0 {
                        folded.update("count", longer).unwrap();
                        db.insert(format!("{thread}"), vec![0; 400]).unwrap();
                    }
                    if ks.insert_if_absent(format!("once {round}"), "").unwrap() {
                        winners.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(ks.get("count").unwrap().unwrap().len(), 1200);
    assert_eq!(folded.get("count").unwrap().unwrap().len(), 240);
    assert_eq!(winners.into_inner(), 300);
}
