use super::{Place, as_after_a_crash, fill, fresh, key, keys, open_roomy, small, text};
use esker::{Batch, Db, Durability, ErrorKind, LogKind, TransactionOptions};

fn kinds() -> [LogKind; 2] {
    [LogKind::Plain, LogKind::Mapped]
}

#[test]
fn a_process_write_survives_the_process() {
    for kind in kinds() {
        let place = Place::new();
        let mut options = small();
        options.log = kind;
        let db = Db::open_with(place.path(), options).unwrap();
        db.insert("k", "v").unwrap();
        let copy = as_after_a_crash(&place);
        let after = copy.open();
        assert_eq!(text(after.get("k").unwrap()).as_deref(), Some("v"), "{kind:?}");
    }
}

#[test]
fn a_disk_write_returns_only_after_a_sync() {
    for kind in kinds() {
        let place = Place::new();
        let mut options = small();
        options.log = kind;
        options.sync_interval = None;
        let db = Db::open_with(place.path(), options).unwrap();
        let space = db.default_keyspace();
        space.insert("k", "process").unwrap();
        let before = db.stats().syncs;
        space.insert_with("k", "disk", Durability::Disk).unwrap();
        let after_insert = db.stats().syncs;
        assert!(after_insert > before, "{kind:?}");
        space.remove_with("k", Durability::Disk).unwrap();
        let after_remove = db.stats().syncs;
        assert!(after_remove > after_insert, "{kind:?}");
        let mut batch = Batch::new();
        batch.insert(&space, "k", "batch");
        db.write_with(batch, Durability::Disk).unwrap();
        assert!(db.stats().syncs > after_remove, "{kind:?}");
    }
}

#[test]
fn the_class_of_the_options_holds_for_writes_that_name_none() {
    let place = Place::new();
    let mut options = small();
    options.durability = Durability::Disk;
    options.sync_interval = None;
    let db = Db::open_with(place.path(), options).unwrap();
    let before = db.stats().syncs;
    db.insert("k", "v").unwrap();
    assert!(db.stats().syncs > before);
}

#[test]
fn a_buffered_write_is_read_at_once_and_lost_with_the_process() {
    let (place, db) = fresh();
    let space = db.default_keyspace();
    space.insert_with("buffered", "v", Durability::Buffered).unwrap();
    space.insert("logged", "v").unwrap();
    assert!(db.contains_key("buffered").unwrap());
    let copy = as_after_a_crash(&place);
    let after = copy.open();
    assert!(!after.contains_key("buffered").unwrap());
    assert!(after.contains_key("logged").unwrap());
}

#[test]
fn sync_makes_buffered_writes_survive() {
    let (place, db) = fresh();
    let space = db.default_keyspace();
    space.insert_with("buffered", "v", Durability::Buffered).unwrap();
    db.sync().unwrap();
    let copy = as_after_a_crash(&place);
    assert!(copy.open().contains_key("buffered").unwrap());
}

#[test]
fn close_makes_buffered_writes_survive() {
    let (place, db) = fresh();
    db.default_keyspace().insert_with("buffered", "v", Durability::Buffered).unwrap();
    db.close().unwrap();
    assert!(place.open().contains_key("buffered").unwrap());
}

#[test]
fn buffered_and_logged_writes_keep_their_order() {
    let (place, db) = fresh();
    let space = db.default_keyspace();
    for number in 0..2000 {
        let class = if number % 3 == 0 { Durability::Buffered } else { Durability::Process };
        space.insert_with(key(number % 50), number.to_string(), class).unwrap();
    }
    for slot in 0..50 {
        let last = (0..2000).rfind(|number| number % 50 == slot).unwrap();
        assert_eq!(text(db.get(key(slot)).unwrap()), Some(last.to_string()));
    }
    db.close().unwrap();
    let db = place.open();
    for slot in 0..50 {
        let last = (0..2000).rfind(|number| number % 50 == slot).unwrap();
        assert_eq!(text(db.get(key(slot)).unwrap()), Some(last.to_string()));
    }
}

#[test]
fn a_position_can_be_waited_for() {
    let place = Place::new();
    let mut options = small();
    options.sync_interval = None;
    let db = Db::open_with(place.path(), options).unwrap();
    let mut batch = Batch::new();
    batch.insert(&db.default_keyspace(), "k", "v");
    let position = db.write(batch).unwrap();
    let before = db.stats().syncs;
    db.wait_durable(position).unwrap();
    let after = db.stats().syncs;
    assert!(after > before);
    db.wait_durable(position).unwrap();
    assert_eq!(db.stats().syncs, after, "what is durable needs no further sync");
}

#[test]
fn a_buffered_batch_can_be_waited_for() {
    let (place, db) = fresh();
    let batch = |key: &str| {
        let mut batch = Batch::new();
        batch.insert(&db.default_keyspace(), key, "v");
        batch
    };
    let buffered = db.write_with(batch("buffered"), Durability::Buffered).unwrap();
    let logged = db.write(batch("logged")).unwrap();
    assert!(logged > buffered, "later writes have greater numbers");
    db.wait_durable(logged).unwrap();
    assert_eq!(db.stats().flushes, 0, "what is logged needs no flush");
    db.wait_durable(buffered).unwrap();
    assert_eq!(db.stats().flushes, 1);
    let mut options = TransactionOptions::default();
    options.durability = Some(Durability::Buffered);
    let transaction = db.begin_with(options).unwrap();
    transaction.insert(&db.default_keyspace(), "transaction", "v").unwrap();
    let committed = transaction.commit().unwrap();
    db.wait_durable(committed).unwrap();
    db.wait_durable(buffered).unwrap();
    assert_eq!(db.stats().flushes, 2, "what is durable needs no further flush");
    let crashed = as_after_a_crash(&place);
    drop(db);
    assert_eq!(keys(crashed.open().iter().unwrap()), ["buffered", "logged", "transaction"]);
}

#[test]
fn a_position_that_no_write_returned_is_refused() {
    let (_place, db) = fresh();
    db.insert("k", "v").unwrap();
    for position in [1 << 50, (1 << 50) + 1, u64::MAX] {
        assert_eq!(db.wait_durable(position).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_waiting_write_is_synced_in_the_background() {
    let place = Place::new();
    let mut options = small();
    options.sync_interval = Some(std::time::Duration::from_millis(20));
    let db = Db::open_with(place.path(), options).unwrap();
    let before = db.stats().syncs;
    db.insert("k", "v").unwrap();
    // No time limit: without a sync this never ends.
    while db.stats().syncs == before {
        std::thread::yield_now();
    }
}

#[test]
fn everything_that_was_written_is_there_after_close_and_open() {
    for kind in kinds() {
        let place = Place::new();
        let mut options = small();
        options.log = kind;
        let db = Db::open_with(place.path(), options.clone()).unwrap();
        fill(&db, 0..3000, 1);
        db.remove_range(key(100)..key(200)).unwrap();
        db.close().unwrap();
        let db = Db::open_with(place.path(), options).unwrap();
        assert_eq!(db.iter().unwrap().count(), 2900, "{kind:?}");
    }
}

#[test]
fn a_crashed_database_loses_nothing_and_can_crash_again() {
    let mut place = Place::new();
    let mut expected = 0;
    for round in 0..4 {
        let db = open_roomy(&place);
        assert_eq!(db.iter().unwrap().count(), expected);
        fill(&db, expected..expected + 700, round);
        expected += 700;
        place = as_after_a_crash(&place);
        drop(db);
    }
    assert_eq!(open_roomy(&place).iter().unwrap().count(), expected);
}
