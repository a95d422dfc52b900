use super::{Place, fill, fresh, key, small, value};
use esker::{
    Comparator, ConflictCause, Db, Durability, Error, ErrorKind, Keyspace, Result, Transaction,
    TransactionOptions,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Barrier};
use std::time::Duration;

fn cause<R>(result: Result<R>) -> ConflictCause {
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

struct Folded;

impl Comparator for Folded {
    fn name(&self) -> &str {
        "folded"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

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
    let folded = db.keyspace_ordered("folded", Arc::new(Folded)).unwrap();
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
    let folded = db.keyspace_ordered("folded", Arc::new(Folded)).unwrap();
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
    let folded = db.keyspace_ordered("folded", Arc::new(Folded)).unwrap();
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
    let folded = db.keyspace_ordered("folded", Arc::new(Folded)).unwrap();
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

#[test]
fn a_value_is_set_only_where_the_expected_one_stands() {
    let (_place, db) = fresh();
    let folded = db.keyspace_ordered("folded", Arc::new(Folded)).unwrap();
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
    let folded = db.keyspace_ordered("folded", Arc::new(Folded)).unwrap();
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

/// A clock that stands still until it is set.
#[derive(Default)]
struct Stopped(AtomicU64);

impl esker::Clock for Stopped {
    fn now_millis(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
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
    let clock = Arc::new(Stopped::default());
    let mut options = small();
    options.clock = clock.clone();
    let db = Db::open_with(place.path(), options).unwrap();
    let set = |millis| clock.0.store(millis, std::sync::atomic::Ordering::SeqCst);
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
