use super::{fresh, text};
use esker::{Batch, ErrorKind};

#[test]
fn a_batch_is_written_over_several_keyspaces() {
    let (_place, db) = fresh();
    let (a, b) = (db.keyspace("a").unwrap(), db.keyspace("b").unwrap());
    let mut batch = Batch::new();
    batch.insert(&a, "k", "in a");
    batch.insert(&b, "k", "in b");
    db.write(batch).unwrap();
    assert_eq!(text(a.get("k").unwrap()).as_deref(), Some("in a"));
    assert_eq!(text(b.get("k").unwrap()).as_deref(), Some("in b"));
    assert_eq!(db.get("k").unwrap(), None);
}

#[test]
fn later_operations_of_a_batch_win() {
    let (place, db) = fresh();
    let space = db.default_keyspace();
    let mut batch = Batch::new();
    batch.insert(&space, "put-last", "old");
    batch.remove(&space, "put-last");
    batch.insert(&space, "put-last", "new");
    batch.insert(&space, "removed-last", "x");
    batch.remove(&space, "removed-last");
    batch.insert(&space, "ranged-last", "x");
    batch.remove_range(&space, "r".."s").unwrap();
    batch.insert(&space, "ranged-first", "y");
    db.write(batch).unwrap();
    let check = |db: &esker::Db| {
        assert_eq!(text(db.get("put-last").unwrap()).as_deref(), Some("new"));
        assert_eq!(db.get("removed-last").unwrap(), None);
        assert_eq!(db.get("ranged-last").unwrap(), None);
        assert_eq!(text(db.get("ranged-first").unwrap()).as_deref(), Some("y"));
        assert_eq!(db.iter().unwrap().count(), 2);
    };
    check(&db);
    db.flush().unwrap();
    check(&db);
    db.close().unwrap();
    check(&place.open());
}

#[test]
fn an_empty_batch_writes_nothing_and_returns_0() {
    let (_place, db) = fresh();
    assert_eq!(db.write(Batch::new()).unwrap(), 0);
    assert_eq!(db.stats().commits, 0);
}

#[test]
fn positions_of_batches_grow() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    let mut last = 0;
    for number in 0..10 {
        let mut batch = Batch::new();
        batch.insert(&space, "k", number.to_string());
        let position = db.write(batch).unwrap();
        assert!(position > last);
        last = position;
    }
}

#[test]
fn a_batch_counts_and_forgets_its_operations() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    let mut batch = Batch::new();
    assert!(batch.is_empty());
    batch.insert(&space, "a", "1");
    batch.remove(&space, "b");
    batch.remove_range(&space, "c"..).unwrap();
    assert_eq!((batch.len(), batch.is_empty()), (3, false));
    batch.clear();
    assert_eq!((batch.len(), batch.is_empty()), (0, true));
    batch.insert(&space, "z", "1");
    db.write(batch).unwrap();
    assert_eq!(db.iter().unwrap().count(), 1, "what was cleared is not written");
}

#[test]
fn a_batch_with_a_key_that_is_too_long_writes_nothing() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    let mut batch = Batch::new();
    batch.insert(&space, "good", "1");
    batch.insert(&space, vec![b'k'; 65_536], "1");
    assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::KeyTooLong);
    assert_eq!(db.get("good").unwrap(), None);
    let mut batch = Batch::new();
    batch.remove(&space, vec![b'k'; 65_536]);
    assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::KeyTooLong);
}

#[test]
fn a_batch_beyond_an_eighth_of_memory_is_refused_whole() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    let mut batch = Batch::new();
    for number in 0..6 {
        batch.insert(&space, number.to_string(), vec![0; 100 << 10]);
    }
    assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::BatchTooLarge);
    assert_eq!(db.iter().unwrap().count(), 0);
}

#[test]
fn a_batch_that_names_a_dropped_keyspace_writes_nothing() {
    let (_place, db) = fresh();
    let (kept, dropped) = (db.keyspace("kept").unwrap(), db.keyspace("dropped").unwrap());
    db.drop_keyspace("dropped").unwrap();
    let mut batch = Batch::new();
    batch.insert(&kept, "k", "v");
    batch.insert(&dropped, "k", "v");
    assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    assert_eq!(kept.get("k").unwrap(), None);
    kept.insert("k", "later").unwrap();
    assert_eq!(text(kept.get("k").unwrap()).as_deref(), Some("later"));
}

#[test]
fn no_reader_sees_half_a_batch() {
    let (_place, db) = fresh();
    let (a, b) = (db.keyspace("a").unwrap(), db.keyspace("b").unwrap());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..3000 {
                let mut batch = Batch::new();
                batch.insert(&a, "k", number.to_string());
                batch.insert(&b, "k", number.to_string());
                db.write(batch).unwrap();
            }
            stop.store(true, std::sync::atomic::Ordering::Release);
        });
        while !stop.load(std::sync::atomic::Ordering::Acquire) {
            let moment = db.snapshot().unwrap();
            assert_eq!(moment.get(&a, "k").unwrap(), moment.get(&b, "k").unwrap());
        }
    });
}

#[test]
fn a_batch_with_keyspaces_of_another_database_is_refused_whole() {
    let ((_place, db), (_elsewhere, other)) = (fresh(), fresh());
    let (ours, theirs) = (db.keyspace("k").unwrap(), other.keyspace("k").unwrap());
    let mut foreign = Batch::new();
    foreign.insert(&theirs, "k", "v");
    let mut mixed = Batch::new();
    mixed.insert(&ours, "k", "v");
    mixed.insert(&theirs, "k", "v");
    for batch in [foreign, mixed] {
        assert_eq!(db.write(&batch).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(ours.get("k").unwrap(), None);
    }
    // A lent batch stays as it is, and an emptied one forgets its database.
    let mut batch = Batch::new();
    batch.insert(&theirs, "k", "v");
    other.write(&batch).unwrap();
    theirs.remove("k").unwrap();
    other.write(&batch).unwrap();
    assert_eq!(text(theirs.get("k").unwrap()).as_deref(), Some("v"));
    batch.clear();
    batch.insert(&ours, "k", "w");
    db.write(&batch).unwrap();
    assert_eq!(text(ours.get("k").unwrap()).as_deref(), Some("w"));
}
