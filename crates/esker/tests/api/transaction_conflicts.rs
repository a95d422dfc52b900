//! Conflicts: which reads a later write of another makes invalid, and which not.

use super::{Place, fill, fresh, key, small, value};
use esker::{ConflictCause, Db, Error, Keyspace, Result, Transaction};
use esker_testkit::orders::Caseless;
use std::sync::Arc;

/// Why a transaction conflicts.
pub(super) fn cause<R>(result: Result<R>) -> ConflictCause {
    match result {
        Err(Error::Conflict { cause, .. }) => cause,
        Err(error) => panic!("not a conflict: {error}"),
        Ok(_) => panic!("no conflict"),
    }
}

/// A transaction that has read something and writes something else.
fn reader(db: &Db, read: impl FnOnce(&Transaction, &Keyspace)) -> Transaction {
    let tx = db.begin().unwrap();
    let default = db.default_keyspace();
    read(&tx, &default);
    tx.insert(&default, "~outcome", "written").unwrap();
    tx
}

#[test]
fn a_key_that_was_read_and_then_written_conflicts() {
    let (_place, db) = fresh();
    fill(&db, 0..10, 0);
    let tx = reader(&db, |tx, ks| drop(tx.get(ks, key(3)).unwrap()));
    db.insert(key(4), "other").unwrap();
    tx.commit().unwrap();
    type Change = fn(&Db) -> Result<()>;
    let changes: [Change; 4] = [
        |db| db.insert(key(3), "changed"),
        |db| db.remove(key(3)),
        |db| db.remove_range(key(2)..key(5)),
        |db| {
            db.insert(key(3), "changed")?;
            db.flush()
        },
    ];
    for change in changes {
        let tx = reader(&db, |tx, ks| drop(tx.get(ks, key(3)).unwrap()));
        change(&db).unwrap();
        let position = db.write({
            let mut batch = esker::Batch::new();
            batch.insert(&db.default_keyspace(), "~outcome", "old");
            batch
        });
        assert_eq!(cause(tx.commit()), ConflictCause::KeyChanged);
        assert_eq!(db.get("~outcome").unwrap().unwrap(), b"old");
        db.wait_durable(position.unwrap()).unwrap();
    }
}

#[test]
fn a_key_that_was_not_there_and_then_came_conflicts() {
    let (_place, db) = fresh();
    let tx = reader(&db, |tx, ks| assert!(!tx.contains_key(ks, "absent").unwrap()));
    db.insert("absent", "came").unwrap();
    assert_eq!(cause(tx.commit()), ConflictCause::KeyChanged);
}

#[test]
fn a_range_conflicts_as_far_as_an_iterator_came() {
    let (_place, db) = fresh();
    fill(&db, 10..20, 0);
    let writes = [
        // What is written, and whether the readers below see it as a conflict: the first three
        // entries, the last three, two from either end, and all.
        (5, [true, false, true, true]),
        (11, [true, false, true, true]),
        (12, [true, false, false, true]),
        (15, [false, false, false, true]),
        (17, [false, true, false, true]),
        (18, [false, true, true, true]),
        (25, [false, true, true, true]),
    ];
    for (number, conflicts) in writes {
        for (way, conflict) in conflicts.into_iter().enumerate() {
            let tx = reader(&db, |tx, ks| {
                let mut iter = tx.range(ks, ..key(99)).unwrap();
                match way {
                    0 => assert_eq!(iter.by_ref().take(3).count(), 3),
                    1 => assert_eq!(iter.by_ref().rev().take(3).count(), 3),
                    2 => {
                        assert_eq!(iter.by_ref().take(2).count(), 2);
                        assert_eq!(iter.by_ref().rev().take(2).count(), 2);
                    }
                    _ => assert_eq!(iter.count(), db.range(..key(99)).unwrap().count()),
                }
            });
            let text = if conflict { "changed" } else { "seen by nobody" };
            db.insert(key(number), text).unwrap();
            let result = tx.commit();
            assert_eq!(result.is_err(), conflict, "{number} in way {way}");
            if conflict {
                assert_eq!(cause(result), ConflictCause::RangeChanged);
            }
            if !(10..20).contains(&number) {
                db.remove(key(number)).unwrap();
            }
        }
    }
}

#[test]
fn the_ends_of_a_keyspace_are_reads_too() {
    let (_place, db) = fresh();
    let tx = reader(&db, |tx, ks| assert_eq!(tx.first_key_value(ks).unwrap(), None));
    db.insert("anything", "").unwrap();
    assert_eq!(cause(tx.commit()), ConflictCause::RangeChanged);
    fill(&db, 10..20, 0);
    let first = |tx: &Transaction, ks: &Keyspace| drop(tx.first_key_value(ks).unwrap());
    let last = |tx: &Transaction, ks: &Keyspace| drop(tx.last_key_value(ks).unwrap());
    let tx = reader(&db, first);
    db.insert("aaa", "before the first").unwrap();
    assert_eq!(cause(tx.commit()), ConflictCause::RangeChanged);
    let tx = reader(&db, first);
    db.insert("zzz", "far behind").unwrap();
    tx.commit().unwrap();
    let tx = reader(&db, last);
    db.insert("aab", "far before").unwrap();
    db.remove_range("b".."c").unwrap();
    assert!(tx.commit().is_ok());
    let tx = reader(&db, last);
    db.remove_range("~".."~~~").unwrap();
    assert_eq!(cause(tx.commit()), ConflictCause::RangeChanged);
}

#[test]
fn write_skew_is_prevented() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    db.insert("on call: ann", "1").unwrap();
    db.insert("on call: bob", "1").unwrap();
    let leave = |name: &str| {
        let tx = db.begin().unwrap();
        assert!(tx.prefix(&ks, "on call: ").unwrap().count() == 2);
        tx.remove(&ks, format!("on call: {name}")).unwrap();
        tx
    };
    let (ann, bob) = (leave("ann"), leave("bob"));
    ann.commit().unwrap();
    assert_eq!(cause(bob.commit()), ConflictCause::RangeChanged);
    assert_eq!(db.prefix("on call: ").unwrap().count(), 1);
}

#[test]
fn reading_alone_and_writing_alone_never_conflict() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    fill(&db, 0..10, 0);
    let reads = db.begin().unwrap();
    let writes = db.begin().unwrap();
    assert_eq!(reads.iter(&ks).unwrap().count(), 10);
    writes.insert(&ks, key(3), "mine").unwrap();
    // To read what it wrote itself is no read of the database.
    assert_eq!(writes.get(&ks, key(3)).unwrap().unwrap(), b"mine");
    db.remove_range::<&str>(..).unwrap();
    assert_eq!(reads.get(&ks, key(3)).unwrap().unwrap(), value(3, 0).as_bytes());
    assert_eq!(reads.commit().unwrap(), 0);
    writes.commit().unwrap();
    assert_eq!(db.get(key(3)).unwrap().unwrap(), b"mine");
}

#[test]
fn changes_are_found_in_memtables_that_were_flushed_meanwhile() {
    let (_place, db) = fresh();
    fill(&db, 0..50, 0);
    let tx = reader(&db, |tx, ks| drop(tx.get(ks, key(3)).unwrap()));
    let scanner = reader(&db, |tx, ks| assert!(tx.range(ks, key(7)..key(9)).unwrap().count() == 2));
    let untouched = reader(&db, |tx, ks| drop(tx.get(ks, key(40)).unwrap()));
    db.insert(key(3), "changed").unwrap();
    db.remove(key(8)).unwrap();
    db.flush().unwrap();
    db.insert("more", "").unwrap();
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(cause(tx.commit()), ConflictCause::KeyChanged);
    assert_eq!(cause(scanner.commit()), ConflictCause::RangeChanged);
    untouched.commit().unwrap();
}

#[test]
fn a_transaction_that_outlives_the_history_conflicts_and_says_so() {
    let (_place, db) = fresh();
    let before = db.stats().memory.memtables;
    let old = reader(&db, |tx, ks| drop(tx.get(ks, "nothing").unwrap()));
    let reads = db.begin().unwrap();
    for round in 0..20 {
        fill(&db, 0..400, round);
        db.flush().unwrap();
    }
    // What is kept for it is bounded.
    assert!(db.stats().memory.memtables < before + (1 << 20));
    assert_eq!(cause(old.commit()), ConflictCause::HistoryTooOld);
    assert!(!reads.contains_key(&db.default_keyspace(), key(1)).unwrap());
    reads.commit().unwrap();
    // A new one has all it needs.
    reader(&db, |tx, ks| drop(tx.get(ks, "nothing").unwrap())).commit().unwrap();
}

#[test]
fn orders_of_the_users_own_are_validated_by_their_order() {
    let (_place, db) = fresh();
    let folded = db.keyspace_ordered("folded", Arc::new(Caseless)).unwrap();
    let plain = db.keyspace("plain").unwrap();
    folded.insert("Key", "1").unwrap();
    folded.insert("zoo", "1").unwrap();
    let begin = |read: fn(&Transaction, &Keyspace)| {
        let tx = db.begin().unwrap();
        read(&tx, &folded);
        tx.insert(&plain, "k", "v").unwrap();
        tx
    };
    let key = begin(|tx, ks| assert_eq!(tx.get(ks, "KEY").unwrap().unwrap(), b"1"));
    let range = begin(|tx, ks| assert_eq!(tx.range(ks, "A".."m").unwrap().count(), 1));
    let far = begin(|tx, ks| assert_eq!(tx.range(ks, "N".."zz").unwrap().count(), 1));
    folded.insert("kEY", "2").unwrap();
    assert_eq!(cause(key.commit()), ConflictCause::KeyChanged);
    assert_eq!(cause(range.commit()), ConflictCause::RangeChanged);
    far.commit().unwrap();
    db.transact(|tx| {
        assert_eq!(tx.get(&folded, "key")?.as_deref(), Some(&b"2"[..]));
        tx.insert(&folded, "a", "first")?;
        tx.insert(&folded, "A", "second")?;
        assert_eq!(tx.iter(&folded)?.count(), 3);
        tx.insert(&plain, "a", "both orders")
    })
    .unwrap();
    assert_eq!(folded.get("a").unwrap().unwrap(), b"second");
    assert_eq!(plain.get("a").unwrap().unwrap(), b"both orders");
}

#[test]
fn so_many_reads_that_the_keyspace_counts_as_read_hide_no_conflict() {
    let place = Place::new();
    let mut options = small();
    options.memory = Some(1 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    let ks = db.default_keyspace();
    let other = db.keyspace("other").unwrap();
    let begin = || {
        let tx = db.begin().unwrap();
        for number in 0..3000 {
            tx.get(&ks, key(number)).unwrap();
        }
        tx.insert(&other, "k", "v").unwrap();
        tx
    };
    begin().commit().unwrap();
    let tx = begin();
    db.insert(key(1), "changed").unwrap();
    cause(tx.commit());
    let tx = begin();
    other.insert("elsewhere", "").unwrap();
    tx.commit().unwrap();
}
