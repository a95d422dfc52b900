//! Transactions that take locks: whom they wait for, and how waiting ends.

use super::fresh;
use super::transaction_conflicts::cause;
use esker::{ConflictCause, Error, ErrorKind, Result, Transaction, TransactionOptions};
use esker_testkit::orders::Caseless;
use std::sync::{Arc, Barrier};
use std::time::Duration;

fn locking() -> TransactionOptions {
    let mut options = TransactionOptions::default();
    options.pessimistic = true;
    options.lock_timeout = Duration::MAX;
    options
}

#[test]
fn locking_transactions_wait_instead_of_conflicting() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    let folded = db.keyspace_ordered("folded", Arc::new(Caseless)).unwrap();
    let mut once = locking();
    once.attempts = 1;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..100 {
                    let (ks, key) =
                        if round % 2 == 0 { (&ks, "count") } else { (&folded, "Count") };
                    db.transact_with(once, |tx| {
                        let old = tx.get_for_update(ks, key)?.map_or(0, |v| v.len());
                        tx.insert(ks, key, vec![1; old + 1])
                    })
                    .unwrap();
                }
            });
        }
    });
    assert_eq!(db.get("count").unwrap().unwrap().len(), 200);
    assert_eq!(folded.get("COUNT").unwrap().unwrap().len(), 200);
}

#[test]
fn locks_end_with_commit_rollback_and_drop_and_time_runs_out() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    let mut impatient = locking();
    impatient.lock_timeout = Duration::ZERO;
    let ends: [fn(Transaction); 3] =
        [|tx| assert!(tx.commit().unwrap() > 0), Transaction::rollback, drop];
    for end in ends {
        let holder = db.begin_with(locking()).unwrap();
        holder.insert(&ks, "k", "v").unwrap();
        let other = db.begin_with(impatient).unwrap();
        let late = other.get_for_update(&ks, "k");
        assert!(matches!(late, Err(Error::LockTimeout { ref key, .. }) if key == b"k"), "{late:?}");
        assert!(matches!(other.remove(&ks, "k"), Err(Error::LockTimeout { .. })));
        // Plain reads and optimistic transactions do not mind.
        db.get("k").unwrap();
        db.begin().unwrap().get_for_update(&ks, "k").unwrap();
        end(holder);
        other.get_for_update(&ks, "k").unwrap();
    }
    let (a, b) = (db.begin_with(impatient).unwrap(), db.begin_with(impatient).unwrap());
    a.get_for_share(&ks, "k").unwrap();
    b.get_for_share(&ks, "k").unwrap();
    assert!(matches!(a.insert(&ks, "k", "x"), Err(Error::LockTimeout { .. })));
}

#[test]
fn a_deadlock_is_an_error_for_one_and_the_other_goes_on() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    let both = Barrier::new(2);
    let outcomes: Vec<Result<u64>> = std::thread::scope(|scope| {
        let threads = [("a", "b"), ("b", "a")].map(|(first, second)| {
            let (db, ks, both) = (&db, &ks, &both);
            scope.spawn(move || {
                let tx = db.begin_with(locking()).unwrap();
                tx.insert(ks, first, "").unwrap();
                both.wait();
                tx.insert(ks, second, "")?;
                tx.commit()
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let failed: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(matches!(failed[..], [Error::Deadlock { .. }]), "{failed:?}");
    // The closure form begins anew.
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        for (first, second) in [("a", "b"), ("b", "a")] {
            let (db, ks, both) = (&db, &ks, &both);
            scope.spawn(move || {
                let mut first_time = true;
                db.transact_with(locking(), |tx| {
                    tx.insert(ks, first, first)?;
                    if std::mem::take(&mut first_time) {
                        both.wait();
                    }
                    tx.insert(ks, second, first)
                })
                .unwrap();
            });
        }
    });
    assert_eq!(db.get("a").unwrap(), db.get("b").unwrap());
}

#[test]
fn what_is_read_under_a_lock_is_read_as_it_stands_then() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    db.insert("a", "1").unwrap();
    db.insert("b", "1").unwrap();
    let tx = db.begin_with(locking()).unwrap();
    assert_eq!(tx.get(&ks, "b").unwrap().unwrap(), b"1");
    db.insert("a", "2").unwrap();
    assert_eq!(tx.get_for_update(&ks, "a").unwrap().unwrap(), b"2");
    assert_eq!(tx.get(&ks, "a").unwrap().unwrap(), b"2");
    tx.insert(&ks, "a", "3").unwrap();
    tx.commit().unwrap();
    // Plain writes do not respect locks: then the transaction conflicts.
    let tx = db.begin_with(locking()).unwrap();
    tx.get_for_update(&ks, "a").unwrap();
    db.insert("a", "plain").unwrap();
    tx.insert(&ks, "a", "4").unwrap();
    assert_eq!(cause(tx.commit()), ConflictCause::KeyChanged);
    // What was read at several moments is validated even if nothing is written.
    let tx = db.begin_with(locking()).unwrap();
    tx.get(&ks, "b").unwrap();
    tx.get_for_share(&ks, "a").unwrap();
    db.insert("b", "2").unwrap();
    assert_eq!(cause(tx.commit()), ConflictCause::KeyChanged);
    let tx = db.begin_with(locking()).unwrap();
    tx.get(&ks, "b").unwrap();
    db.insert("b", "3").unwrap();
    assert_eq!(tx.commit().unwrap(), 0);
}

#[test]
fn closing_ends_transactions_that_wait_for_locks() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    let holder = db.begin_with(locking()).unwrap();
    holder.insert(&ks, "k", "v").unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let tx = db.begin_with(locking())?;
            tx.get_for_update(&ks, "k")
        });
        db.close().unwrap();
        assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    });
}
