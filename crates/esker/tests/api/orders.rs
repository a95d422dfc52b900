use super::{Place, fresh, keys, small, text};
use esker::{Batch, Comparator, Db, ErrorKind};
use esker_testkit::orders::{Caseless, Reverse};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

/// Byte order until it is told to panic.
#[derive(Default)]
struct Faulty {
    armed: AtomicBool,
}

impl Comparator for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        assert!(!self.armed.load(Memory::Acquire), "the test asked for this panic");
        a.cmp(b)
    }
}

#[test]
fn a_keyspace_with_a_comparator_is_read_in_its_order() {
    let (_place, db) = fresh();
    let space = db.keyspace_ordered("news", Arc::new(Reverse)).unwrap();
    for number in 0..3000 {
        space.insert(format!("{number:04}"), "v").unwrap();
    }
    let expected: Vec<_> = (0..3000).rev().map(|number| format!("{number:04}")).collect();
    let check = || {
        assert_eq!(keys(space.iter().unwrap()), expected);
        let mut backward = keys(space.iter().unwrap().rev());
        backward.reverse();
        assert_eq!(backward, expected);
        assert_eq!(space.first_key_value().unwrap().unwrap().0, b"2999");
        assert_eq!(space.last_key_value().unwrap().unwrap().0, b"0000");
        assert_eq!(keys(space.range("0102".."0100").unwrap()), ["0102", "0101"]);
        assert!(space.contains_key("1234").unwrap());
        assert!(!space.contains_key("12345").unwrap());
    };
    check();
    db.flush().unwrap();
    check();
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    check();
}

#[test]
fn keys_that_compare_equal_are_one_key() {
    let (place, db) = fresh();
    let space = db.keyspace_ordered("names", Arc::new(Caseless)).unwrap();
    space.insert("Anna", "1").unwrap();
    db.flush().unwrap();
    space.insert("ANNA", "2").unwrap();
    space.insert("bob", "3").unwrap();
    assert_eq!(text(space.get("anna").unwrap()).as_deref(), Some("2"));
    db.compact().unwrap();
    assert_eq!(text(space.get("aNNa").unwrap()).as_deref(), Some("2"));
    assert_eq!(space.iter().unwrap().count(), 2);
    space.remove("BOB").unwrap();
    assert_eq!(space.iter().unwrap().count(), 1);
    drop(space);
    db.close().unwrap();
    let db = place.open();
    let space = db.keyspace_ordered("names", Arc::new(Caseless)).unwrap();
    assert_eq!(text(space.get("anna").unwrap()).as_deref(), Some("2"));
    assert!(!space.contains_key("bob").unwrap());
}

#[test]
fn ranges_are_removed_in_the_order_of_the_keyspace() {
    let (_place, db) = fresh();
    let space = db.keyspace_ordered("r", Arc::new(Reverse)).unwrap();
    for name in ["a", "b", "c", "d", "e"] {
        space.insert(name, "v").unwrap();
    }
    space.remove_range("d".."b").unwrap();
    assert_eq!(keys(space.iter().unwrap()), ["e", "b", "a"]);
    db.flush().unwrap();
    assert_eq!(keys(space.iter().unwrap()), ["e", "b", "a"]);
    db.compact().unwrap();
    assert_eq!(keys(space.iter().unwrap()), ["e", "b", "a"]);
}

#[test]
fn a_range_that_needs_a_next_key_is_refused_where_there_is_none() {
    let (_place, db) = fresh();
    let space = db.keyspace_ordered("r", Arc::new(Reverse)).unwrap();
    assert_eq!(space.range("b"..="a").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(space.remove_range("b"..="a").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(space.prefix("b").unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn batches_mix_orders_and_stay_whole() {
    let (place, db) = fresh();
    let plain = db.keyspace("plain").unwrap();
    let reverse = db.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    for round in 0..800 {
        let mut batch = Batch::new();
        batch.insert(&plain, format!("{:03}", round % 100), round.to_string());
        batch.insert(&reverse, format!("{:03}", round % 100), round.to_string());
        if round % 10 == 0 {
            batch.remove_range(&reverse, "050".."048").unwrap();
            batch.remove(&plain, "049");
            batch.remove(&plain, "050");
        }
        db.write(batch).unwrap();
    }
    let same = |plain: &esker::Keyspace, reverse: &esker::Keyspace| {
        let forward: Vec<_> = plain.iter().unwrap().map(|entry| entry.unwrap()).collect();
        let backward: Vec<_> = reverse.iter().unwrap().rev().map(|e| e.unwrap()).collect();
        assert_eq!(forward, backward);
        assert!(forward.len() >= 98);
    };
    same(&plain, &reverse);
    drop((plain, reverse));
    db.close().unwrap();
    let db = place.open();
    let reverse = db.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    same(&db.keyspace("plain").unwrap(), &reverse);
}

#[test]
fn a_missing_comparator_is_a_typed_error_and_the_rest_works() {
    let (place, db) = fresh();
    db.keyspace_ordered("news", Arc::new(Reverse)).unwrap().insert("k", "v").unwrap();
    db.insert("k", "v").unwrap();
    db.close().unwrap();
    let db = place.open();
    assert_eq!(db.keyspace("news").unwrap_err().kind(), ErrorKind::ComparatorMissing);
    assert!(db.contains_key("k").unwrap());
    db.insert("k2", "v").unwrap();
    db.compact().unwrap();
    let news = db.keyspace_ordered("news", Arc::new(Reverse)).unwrap();
    assert!(news.contains_key("k").unwrap());
    news.insert("k2", "v").unwrap();
    db.compact().unwrap();
    assert_eq!(keys(news.iter().unwrap()), ["k2", "k"]);
}

#[test]
fn verify_reads_what_it_cannot_order() {
    let (place, db) = fresh();
    let news = db.keyspace_ordered("news", Arc::new(Reverse)).unwrap();
    for number in 0..500 {
        news.insert(format!("{number:04}"), "v").unwrap();
    }
    news.remove_range("0100".."0050").unwrap();
    db.flush().unwrap();
    drop(news);
    db.close().unwrap();
    let db = place.open();
    assert!(db.verify().unwrap().problems.is_empty());
    assert!(db.verify().unwrap().blocks > 0);
    db.close().unwrap();
    drop(db);
    for entry in std::fs::read_dir(place.path().join("data")).unwrap() {
        let run = entry.unwrap().path();
        let mut bytes = std::fs::read(&run).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&run, bytes).unwrap();
    }
    let db = place.open();
    let problems = db.verify().unwrap().problems;
    assert!(!problems.is_empty());
    assert!(problems.iter().all(|problem| problem.error.to_string().contains("news")));
}

#[test]
fn comparators_are_found_among_the_options() {
    let (place, db) = fresh();
    db.keyspace_ordered("news", Arc::new(Reverse)).unwrap().insert("k", "v").unwrap();
    db.close().unwrap();
    let mut options = small();
    options.comparators = vec![Arc::new(Caseless), Arc::new(Reverse)];
    let db = Db::open_with(place.path(), options).unwrap();
    assert!(db.keyspace("news").unwrap().contains_key("k").unwrap());
}

#[test]
fn another_order_than_the_stored_one_is_refused() {
    let (_place, db) = fresh();
    db.keyspace("plain").unwrap();
    db.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    let refused = |name: &str| db.keyspace_ordered(name, Arc::new(Caseless)).unwrap_err().kind();
    assert_eq!(refused("plain"), ErrorKind::ComparatorMismatch);
    assert_eq!(refused("reverse"), ErrorKind::ComparatorMismatch);
    assert!(db.keyspace("reverse").is_ok(), "it may be used without naming its order");
}

#[test]
fn a_comparator_without_a_name_or_with_a_long_one_is_refused() {
    struct Named(String);
    impl Comparator for Named {
        fn name(&self) -> &str {
            &self.0
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            a.cmp(b)
        }
    }
    let (_place, db) = fresh();
    for name in [String::new(), "n".repeat(256)] {
        let error = db.keyspace_ordered("k", Arc::new(Named(name.clone()))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let mut options = small();
        options.comparators = vec![Arc::new(Named(name))];
        let place = Place::new();
        let error = Db::open_with(place.path(), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(!place.path().exists());
    }
}

/// Fifty entries in memory and fifty in runs, in the order of a comparator that works so far.
fn with_faulty_order(place: &Place) -> (Db, esker::Keyspace, Arc<Faulty>) {
    let db = place.open();
    let faulty = Arc::new(Faulty::default());
    let space = db.keyspace_ordered("f", faulty.clone()).unwrap();
    for number in 0..100 {
        space.insert(format!("{number:03}"), "v").unwrap();
        if number == 50 {
            db.flush().unwrap();
        }
    }
    db.insert("plain", "v").unwrap();
    (db, space, faulty)
}

#[test]
fn a_comparator_that_panics_in_a_write_ends_writing_and_harms_no_data() {
    let place = Place::new();
    let (db, space, faulty) = with_faulty_order(&place);
    faulty.armed.store(true, Memory::Release);
    let error = space.insert("0505", "v").unwrap_err();
    assert!(error.to_string().contains("comparator"), "{error}");
    assert_eq!(db.insert("k", "v").unwrap_err().kind(), ErrorKind::Poisoned);
    assert!(db.contains_key("plain").unwrap(), "reads of other keyspaces go on");
    drop(space);
    let _ = db.close();
    faulty.armed.store(false, Memory::Release);
    let mut options = small();
    options.comparators = vec![faulty];
    let db = Db::open_with(place.path(), options).unwrap();
    let space = db.keyspace("f").unwrap();
    assert_eq!(space.iter().unwrap().count(), 100);
}

#[test]
fn a_comparator_that_panics_in_a_read_gives_an_error_and_no_wrong_answer() {
    let place = Place::new();
    let (db, space, faulty) = with_faulty_order(&place);
    faulty.armed.store(true, Memory::Release);
    assert_eq!(space.get("077").unwrap_err().kind(), ErrorKind::UserCodePanicked);
    assert_eq!(space.get("007").unwrap_err().kind(), ErrorKind::UserCodePanicked);
    let walked: Result<Vec<_>, _> = space.range("010".."090").and_then(|iter| iter.collect());
    assert_eq!(walked.unwrap_err().kind(), ErrorKind::UserCodePanicked);
    assert!(db.contains_key("plain").unwrap(), "reads of other keyspaces go on");
    // What is found all the same is not kept.
    assert_eq!(space.get_pinned("007").unwrap_err().kind(), ErrorKind::UserCodePanicked);
    assert_eq!(space.get_reader("007").unwrap_err().kind(), ErrorKind::UserCodePanicked);
    assert_eq!(db.stats().held.pinned, 0);
}

#[test]
fn a_comparator_that_panics_in_a_flush_spoils_no_run() {
    let place = Place::new();
    let (db, space, faulty) = with_faulty_order(&place);
    faulty.armed.store(true, Memory::Release);
    assert!(db.flush().is_err());
    drop(space);
    let _ = db.close();
    faulty.armed.store(false, Memory::Release);
    let mut options = small();
    options.comparators = vec![faulty];
    let db = Db::open_with(place.path(), options).unwrap();
    assert_eq!(db.keyspace("f").unwrap().iter().unwrap().count(), 100);
    assert!(db.verify().unwrap().problems.is_empty());
}
