//! Entries that expire.

use crate::{Place, small, text};
use esker::{Append, Batch, CounterU64, Db, Durability, ErrorKind, KeyspaceOptions, Options};
use esker_testkit::harness::HandClock;
use std::sync::Arc;
use std::time::Duration;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn options() -> (Options, Arc<HandClock>) {
    let clock = Arc::new(HandClock::default());
    clock.set(1_000);
    let mut options = small();
    options.clock = clock.clone();
    (options, clock)
}

fn open() -> (Place, Db, Arc<HandClock>, Options) {
    let (options, clock) = options();
    let place = Place::new();
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    (place, db, clock, options)
}

fn keys(db: &Db, keyspace: &str) -> String {
    let keyspace = db.keyspace(keyspace).unwrap();
    let forward = crate::keys(keyspace.iter().unwrap());
    let mut backward = crate::keys(keyspace.iter().unwrap().rev());
    backward.reverse();
    assert_eq!(forward, backward);
    forward.concat()
}

#[test]
fn an_entry_is_gone_when_its_time_has_come_for_every_kind_of_read() {
    let (_place, db, clock, _) = open();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("a", "old").unwrap();
    keyspace.insert_with_ttl("a", "1", millis(10)).unwrap();
    keyspace.insert("b", "2").unwrap();
    let mut batch = Batch::new();
    batch.insert_with_ttl(&keyspace, "c", "3", millis(20));
    db.write_with(batch, Durability::Disk).unwrap();
    for place in 0..3 {
        assert_eq!(keys(&db, "k"), "abc", "in place {place}");
        assert_eq!(text(keyspace.get("a").unwrap()).as_deref(), Some("1"));
        assert_eq!(keyspace.first_key_value().unwrap().unwrap(), (b"a".to_vec(), b"1".to_vec()));
        assert_eq!(keyspace.last_key_value().unwrap().unwrap(), (b"c".to_vec(), b"3".to_vec()));
        match place {
            0 => db.flush().unwrap(),
            _ => db.compact().unwrap(),
        }
    }
    clock.set(1_009);
    assert_eq!(keys(&db, "k"), "abc");
    clock.set(1_010);
    for place in 0..2 {
        assert_eq!(keys(&db, "k"), "bc", "in place {place}");
        assert_eq!(keyspace.get("a").unwrap(), None, "what it replaced does not come back");
        assert!(!keyspace.contains_key("a").unwrap());
        assert_eq!(keyspace.first_key_value().unwrap().unwrap().0, b"b");
        let several = keyspace.multi_get(["a", "b", "c"]).unwrap();
        assert_eq!(several, [None, Some(b"2".to_vec()), Some(b"3".to_vec())]);
        db.compact().unwrap();
    }
    clock.set(1_020);
    assert_eq!(keyspace.last_key_value().unwrap().unwrap().0, b"b");
    assert_eq!(keys(&db, "k"), "b");
}

#[test]
fn a_snapshot_and_an_iterator_keep_their_time() {
    let (_place, db, clock, _) = open();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("a", "old").unwrap();
    keyspace.insert_with_ttl("a", "1", millis(10)).unwrap();
    keyspace.insert_with_ttl("b", "2", millis(10)).unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut iter = keyspace.iter().unwrap();
    clock.set(2_000);
    for _ in 0..2 {
        assert_eq!(text(snapshot.get(&keyspace, "a").unwrap()).as_deref(), Some("1"));
        assert_eq!(snapshot.iter(&keyspace).unwrap().count(), 2);
        assert_eq!(snapshot.iter(&keyspace).unwrap().rev().count(), 2);
        assert_eq!(snapshot.last_key_value(&keyspace).unwrap().unwrap().1, b"2");
        assert_eq!(keys(&db, "k"), "");
        // A compaction keeps what the snapshot sees.
        db.compact().unwrap();
    }
    assert_eq!(iter.next().unwrap().unwrap().1, b"1");
    assert_eq!(iter.next_back().unwrap().unwrap().1, b"2");
    let later = db.snapshot().unwrap();
    assert_eq!(later.get(&keyspace, "a").unwrap(), None);
    drop((snapshot, iter, later));
    db.compact().unwrap();
    assert_eq!(keys(&db, "k"), "");
    assert_eq!(db.stats().trees[1].base.entries, 0, "its space returns");
    assert!(db.stats().entries_expired >= 2);
}

#[test]
fn what_has_expired_comes_due_without_being_asked_for() {
    let (_place, db, clock, _) = open();
    let keyspace = db.keyspace("k").unwrap();
    for number in 0..1000 {
        keyspace.insert_with_ttl(format!("{number:05}"), "x".repeat(100), millis(10)).unwrap();
    }
    keyspace.insert("99999", "stays").unwrap();
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let entries = || {
        let tree = &db.stats().trees[1];
        tree.base.entries + tree.deltas.iter().map(|delta| delta.entries).sum::<u64>()
    };
    assert_eq!(entries(), 1001);
    let written = db.stats().written.compaction;
    clock.set(1_010);
    db.wait_until_idle().unwrap();
    assert_eq!(entries(), 1);
    assert_eq!(db.stats().entries_expired, 1000);
    // Segments of which everything has expired go without being read.
    assert!(db.stats().written.compaction - written < 30_000, "{}", db.stats().written.compaction);
    assert_eq!(keys(&db, "k"), "99999");
}

#[test]
fn time_does_not_go_back() {
    let (_place, db, clock, _) = open();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert_with_ttl("a", "1", millis(10)).unwrap();
    clock.set(1_010);
    assert_eq!(keyspace.get("a").unwrap(), None);
    clock.set(1_000);
    assert_eq!(keyspace.get("a").unwrap(), None);
}

#[test]
fn a_keyspace_gives_its_ttl_to_later_writes() {
    let (place, db, clock, options) = open();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("for ever", "").unwrap();
    db.keyspace_with("k", KeyspaceOptions::expiring(millis(100))).unwrap();
    assert_eq!(keyspace.ttl(), Some(millis(100)));
    keyspace.insert("long", "").unwrap();
    keyspace.set_ttl(Some(millis(10))).unwrap();
    keyspace.insert("short", "").unwrap();
    let mut batch = Batch::new();
    batch.insert(&keyspace, "short too", "");
    db.write(batch).unwrap();
    keyspace.insert_with_ttl("own", "", millis(50)).unwrap();
    drop((keyspace, db));

    let db = Db::open_with(place.path(), options.clone()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(keyspace.ttl(), Some(millis(10)));
    assert_eq!(keys(&db, "k"), "for everlongownshortshort too");
    clock.set(1_010);
    assert_eq!(keys(&db, "k"), "for everlongown");
    clock.set(1_050);
    assert_eq!(keys(&db, "k"), "for everlong");
    // Opening it without a word changes nothing.
    drop(db.keyspace_with("k", KeyspaceOptions::default()).unwrap());
    assert_eq!(keyspace.ttl(), Some(millis(10)));
    keyspace.set_ttl(None).unwrap();
    keyspace.insert("last", "").unwrap();
    clock.set(u64::MAX);
    assert_eq!(keys(&db, "k"), "for everlast");
    drop((keyspace, db));
    let db = Db::open_with(place.path(), options).unwrap();
    assert_eq!(db.keyspace("k").unwrap().ttl(), None);
    let zero = db.keyspace_with("k", KeyspaceOptions::expiring(Duration::ZERO)).unwrap_err();
    assert_eq!(zero.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn the_default_keyspace_can_have_a_ttl() {
    let (place, db, clock, options) = open();
    db.default_keyspace().set_ttl(Some(millis(5))).unwrap();
    db.insert("a", "1").unwrap();
    db.flush().unwrap();
    drop(db);
    // Twice: the second manifest is written from what the first one told.
    for _ in 0..2 {
        let db = Db::open_with(place.path(), options.clone()).unwrap();
        assert_eq!(db.default_keyspace().ttl(), Some(millis(5)));
        assert!(db.contains_key("a").unwrap());
    }
    clock.set(1_005);
    let db = Db::open_with(place.path(), options).unwrap();
    assert!(!db.contains_key("a").unwrap());
}

#[test]
fn operands_expire_each_for_itself() {
    let (_place, db, clock, _) = open();
    let mut wanted = KeyspaceOptions::merging(Append::new("").name());
    wanted.ttl = Some(millis(100));
    let list = db.keyspace_with("list", wanted).unwrap();
    let get = || text(list.get("k").unwrap());
    list.insert("k", "0").unwrap();
    clock.set(1_050);
    list.merge("k", "1").unwrap();
    list.merge("k", "2").unwrap();
    clock.set(1_060);
    list.merge("k", "3").unwrap();
    for _ in 0..2 {
        assert_eq!(get().as_deref(), Some("0123"));
        db.compact().unwrap();
    }
    clock.set(1_100);
    for _ in 0..2 {
        assert_eq!(get().as_deref(), Some("123"), "the value has expired, its operands have not");
        db.compact().unwrap();
    }
    clock.set(1_150);
    for _ in 0..2 {
        assert_eq!(get().as_deref(), Some("3"));
        assert_eq!(list.last_key_value().unwrap().unwrap().1, b"3");
        db.compact().unwrap();
    }
    clock.set(1_160);
    assert_eq!(get(), None);
    assert_eq!(list.iter().unwrap().count(), 0);
}

#[test]
fn a_counter_counts_what_happened_within_its_time() {
    let (_place, db, clock, _) = open();
    let mut wanted = KeyspaceOptions::merging(CounterU64::NAME);
    wanted.ttl = Some(millis(10));
    let counter = db.keyspace_with("n", wanted).unwrap();
    for now in 1_000..1_100 {
        clock.set(now);
        counter.merge("k", CounterU64::encode(1)).unwrap();
        let counted = CounterU64::decode(&counter.get("k").unwrap().unwrap());
        assert_eq!(counted, Some((now - 999).min(10)));
        match now % 16 {
            0 => db.flush().unwrap(),
            9 => db.compact().unwrap(),
            _ => {}
        }
    }
}
