//! What a keyspace holds as a whole, batches that are looked at, and databases in memory.

use super::{fill, fresh, key, keys, small, value};
use esker::{
    Batch, BatchOperation, CounterU64, Db, Error, KeyspaceOptions, Options, TransactionOptions,
};
use esker_testkit::orders::Reverse;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

#[test]
fn length_emptiness_and_loops_agree_with_what_is_there() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    assert!(ks.is_empty().unwrap() && ks.len().unwrap() == 0 && ks.approximate_len().unwrap() == 0);
    fill(&db, 0..3000, 0);
    fill(&db, 1000..2000, 1);
    for number in (0..3000).step_by(3) {
        ks.remove(key(number)).unwrap();
    }
    assert!(!ks.is_empty().unwrap());
    assert_eq!(ks.len().unwrap(), 2000);
    let (mut seen, mut first) = (0, None);
    for entry in &ks {
        let (key, _) = entry.unwrap();
        first.get_or_insert(key);
        seen += 1;
    }
    assert_eq!((seen, first.unwrap()), (2000, key(1).into_bytes()));
    let last = (&ks).into_iter().next_back().unwrap().unwrap().0;
    assert_eq!(last, key(2999).into_bytes());
    db.compact().unwrap();
    assert_eq!(ks.approximate_len().unwrap(), 2000);
    db.close().unwrap();
    let told: Vec<_> = (&ks).into_iter().collect();
    assert!(matches!(told[..], [Err(Error::Closed)]), "{told:?}");
}

#[test]
fn a_prefix_is_removed_and_nothing_beside_it() {
    let (_place, db) = fresh();
    let ks = db.keyspace("k").unwrap();
    let all: [&[u8]; 8] =
        [b"a", b"a\xff", b"a\xff\xff", b"a\xff\xff\x01", b"b", b"", b"\xff", b"\xff\xff"];
    let left = |prefix: &[u8]| {
        for key in all {
            ks.insert(key, "v").unwrap();
        }
        ks.remove_prefix(prefix).unwrap();
        ks.iter().unwrap().map(|entry| entry.unwrap().0).collect::<Vec<_>>()
    };
    for prefix in [&b"a"[..], b"a\xff", b"a\xff\xff", b"", b"\xff", b"\xff\xff", b"none"] {
        let mut expected: Vec<_> =
            all.iter().filter(|key| !key.starts_with(prefix)).map(|key| key.to_vec()).collect();
        expected.sort();
        assert_eq!(left(prefix), expected, "{prefix:?}");
    }
    left(b"none");
    let mut batch = Batch::new();
    batch.remove_prefix(&ks, "a").unwrap();
    batch.insert(&ks, "ab", "later");
    db.write(batch).unwrap();
    assert_eq!(keys(ks.prefix("a").unwrap()), ["ab"]);
    ks.clear().unwrap();
    assert!(ks.is_empty().unwrap());
    let ordered = db.keyspace_ordered("news", Arc::new(Reverse)).unwrap();
    ordered.insert("a1", "v").unwrap();
    assert!(matches!(ordered.remove_prefix("a"), Err(Error::InvalidArgument { .. })));
    assert!(matches!(
        Batch::new().remove_prefix(&ordered, "a"),
        Err(Error::InvalidArgument { .. })
    ));
    ordered.clear().unwrap();
    assert!(ordered.is_empty().unwrap());
    assert!(matches!(ks.remove_prefix([0; 70_000]), Err(Error::KeyTooLong { .. })));
}

#[test]
fn retain_removes_what_is_not_wanted_and_leaves_what_changed_meanwhile() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    fill(&db, 0..2000, 0);
    let mut seen = 0;
    let removed = ks.retain(|found, _| {
        seen += 1;
        if found == key(700).as_bytes() {
            // It has another value by the time that it would be removed.
            ks.insert(key(700), "new").unwrap();
            ks.insert("later", "not seen").unwrap();
        }
        found < key(500).as_bytes()
    });
    assert_eq!((removed.unwrap(), seen), (1499, 2000));
    assert_eq!(ks.len().unwrap(), 502);
    assert_eq!(ks.get(key(700)).unwrap().unwrap(), b"new");
    assert!(ks.contains_key("later").unwrap());
}

#[test]
fn what_was_there_before_is_returned_once() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    assert_eq!(ks.replace("k", "1").unwrap(), None);
    assert_eq!(ks.replace("k", "2").unwrap().unwrap(), b"1");
    assert_eq!(ks.take("k").unwrap().unwrap(), b"2");
    assert_eq!(ks.take("k").unwrap(), None);
    // Of several threads, each job goes to one.
    for number in 0..1000 {
        ks.insert(key(number), value(number, 0)).unwrap();
    }
    let taken = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for number in 0..1000 {
                    let found = ks.take(key(number)).unwrap();
                    taken.fetch_add(u32::from(found.is_some()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(taken.into_inner(), 1000);
}

#[test]
fn a_batch_shows_its_operations_and_a_clone_is_its_own() {
    let (_place, db) = fresh();
    let (fruit, visits) = (
        db.keyspace("fruit").unwrap(),
        db.keyspace_with("visits", KeyspaceOptions::merging(CounterU64::NAME)).unwrap(),
    );
    let mut batch = Batch::new();
    batch.insert(&fruit, "apple", "red");
    batch.insert_with_ttl(&fruit, "plum", "blue", Duration::from_secs(3600));
    batch.merge(&visits, "home", CounterU64::encode(2));
    batch.remove(&fruit, "pear");
    batch.remove_range(&fruit, "x"..).unwrap();
    let copy = batch.clone();
    batch.clear();
    assert!(batch.iter().next().is_none());
    let operations: Vec<_> = (&copy).into_iter().collect();
    let BatchOperation::Insert { keyspace: "fruit", key: b"plum", value: b"blue", expires } =
        operations[1]
    else {
        panic!("{operations:?}")
    };
    let left = expires.unwrap().duration_since(SystemTime::now()).unwrap().as_secs();
    assert!((3500..=3600).contains(&left), "{left}");
    let two = CounterU64::encode(2);
    let apple =
        BatchOperation::Insert { keyspace: "fruit", key: b"apple", value: b"red", expires: None };
    let others = [
        BatchOperation::Merge { keyspace: "visits", key: b"home", operand: &two, expires: None },
        BatchOperation::Remove { keyspace: "fruit", key: b"pear" },
        BatchOperation::RemoveRange { keyspace: "fruit", start: Some(b"x"), end: None },
    ];
    assert_eq!((operations[0], &operations[2..]), (apple, &others[..]));
    db.write(&copy).unwrap();
    db.write(copy.clone()).unwrap();
    assert_eq!(visits.get_with("home", CounterU64::decode).unwrap(), Some(Some(4)));
    assert_eq!(keys(fruit.iter().unwrap()), ["apple", "plum"]);
}

#[derive(Debug)]
enum Own {
    Store,
    No,
}

impl From<Error> for Own {
    fn from(_: Error) -> Self {
        Self::Store
    }
}

#[test]
fn a_transaction_with_errors_of_the_program_runs_again_after_a_conflict_and_a_deadlock() {
    let (_place, db) = fresh();
    let ks = db.default_keyspace();
    let mut runs = 0;
    let done: Result<i32, Own> = db.transact_as(TransactionOptions::default(), |tx| {
        runs += 1;
        tx.get(&ks, "k")?;
        if runs == 1 {
            ks.insert("k", "somebody else's")?;
        }
        tx.insert(&ks, "k", "mine")?;
        Ok(runs)
    });
    assert_eq!((done.unwrap(), runs), (2, 2));
    // An error of the program's own ends it, and nothing is written.
    let mut runs = 0;
    let done: Result<(), Own> = db.transact_as(TransactionOptions::default(), |tx| {
        runs += 1;
        tx.insert(&ks, "k", "never")?;
        Err(Own::No)
    });
    assert!(matches!(done, Err(Own::No)) && runs == 1);
    assert_eq!(ks.get("k").unwrap().unwrap(), b"mine");
    // A deadlock that the program has turned into its own error is one that runs again.
    let mut options = TransactionOptions::default();
    options.pessimistic = true;
    let barrier = std::sync::Barrier::new(2);
    let attempts = AtomicU32::new(0);
    let swap = |first: &'static str, second: &'static str| {
        let mut waits = true;
        let done: Result<(), Own> = db.transact_as(options, |tx| {
            attempts.fetch_add(1, Ordering::Relaxed);
            tx.insert(&ks, first, "1")?;
            if std::mem::take(&mut waits) {
                barrier.wait();
            }
            tx.insert(&ks, second, "2")?;
            Ok(())
        });
        done.unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| swap("a", "b"));
        scope.spawn(|| swap("b", "a"));
    });
    assert!(attempts.into_inner() >= 3);
}

#[test]
fn a_database_in_memory_does_what_one_on_disk_does_and_leaves_nothing() {
    let (fs, path) = (esker::fs::memory(), Path::new("/is not on any disk"));
    for round in 0..3 {
        let options = small().fs(fs.clone());
        let db = Db::open_with(path, options).unwrap();
        let ks = db.default_keyspace();
        assert_eq!(ks.len().unwrap(), round * 3000);
        fill(&db, round as usize * 3000..(round as usize + 1) * 3000, 0);
        db.flush().unwrap();
        db.compact().unwrap();
        assert!(db.verify().unwrap().problems.is_empty());
        let copy = path.with_file_name(format!("copy{round}"));
        db.checkpoint(&copy).unwrap();
        let twice = Db::open_with(path, small().fs(fs.clone()));
        assert!(matches!(twice, Err(Error::Locked { .. })));
        db.close().unwrap();
        let copy = Db::open_with(copy, small().fs(fs.clone())).unwrap();
        assert_eq!(copy.default_keyspace().len().unwrap(), (round + 1) * 3000);
    }
    Db::destroy(path, &Options::new().fs(fs.clone())).unwrap();
    assert_eq!(fs.kind(path).unwrap(), None);
    assert!(!path.exists());
    let (one, other) = (Db::in_memory().unwrap(), Db::in_memory().unwrap());
    one.insert("k", "v").unwrap();
    assert_eq!(other.get("k").unwrap(), None);
}
