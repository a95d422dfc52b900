//! Values that are read where they lie, and how much of them may be kept.

use super::{Place, fill, fresh, key, value};
use esker::internals::cached::Cached;
use esker::internals::owned::OwnedValue;
use esker::{Append, Db, KeyspaceOptions, Options, PinnedValue};
use esker_testkit::Rng;

const MEMORY: u64 = 1 << 20;
/// What readers may keep: an eighth of the memory, and the block that was taken last.
const BOUND: u64 = MEMORY / 8 + (16 << 10);

fn pinned(db: &Db) -> u64 {
    db.stats().held.pinned
}

#[test]
fn a_pinned_value_stays_as_it_was() {
    let (_place, db) = fresh();
    let fruit = db.keyspace("fruit").unwrap();
    fruit.insert("apple", "red").unwrap();
    let in_memory = fruit.get_pinned("apple").unwrap().unwrap();
    db.flush().unwrap();
    let flushed = fruit.get_pinned("apple").unwrap().unwrap();
    fruit.insert("apple", "green").unwrap();
    let snapshot = db.snapshot().unwrap();
    fruit.remove("apple").unwrap();
    db.compact().unwrap();
    let before = snapshot.get_pinned(&fruit, "apple").unwrap();
    assert_eq!(before.as_deref(), Some(&b"green"[..]));
    assert!(fruit.get_pinned("apple").unwrap().is_none());
    assert!(snapshot.get_pinned(&fruit, "kiwi").unwrap().is_none());
    db.drop_keyspace("fruit").unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!((&*in_memory, flushed.as_ref()), (&b"red"[..], &b"red"[..]));
    assert!(fruit.get_pinned("apple").is_err(), "the keyspace is dropped");
}

#[test]
fn values_of_all_kinds_can_be_pinned() {
    let place = Place::new();
    let mut options = super::small();
    options.separate_values_from = Some(200);
    let db = Db::open_with(place.path(), options).unwrap();
    let lists =
        db.keyspace_with("lists", KeyspaceOptions::merging(Append::new(",").name())).unwrap();
    let all = db.default_keyspace();
    lists.merge("list", "a").unwrap();
    lists.merge("list", "b").unwrap();
    all.insert("empty", "").unwrap();
    all.insert("separated", [5; 3000]).unwrap();
    all.insert_reader("pieces", &[6; 3_000_000][..]).unwrap();
    for _ in 0..2 {
        assert_eq!(&*lists.get_pinned("list").unwrap().unwrap(), b"a,b");
        assert_eq!(&*all.get_pinned("empty").unwrap().unwrap(), b"");
        assert_eq!(&*all.get_pinned("separated").unwrap().unwrap(), [5; 3000]);
        assert!(all.get_pinned("pieces").unwrap().unwrap().iter().eq([6; 3_000_000].iter()));
        db.compact().unwrap();
        db.wait_until_idle().unwrap();
    }
    assert_eq!(pinned(&db), 0);
}

/// A value of a layer for another language: it keeps neither the database nor its directory.
#[test]
fn an_owned_value_outlives_its_database() {
    let place = Place::new();
    let db = Db::open_with(place.path(), super::small()).unwrap();
    let fruit = db.keyspace("fruit").unwrap();
    let red = [b'r'; 300];
    fruit.insert("apple", red).unwrap();
    let copied = OwnedValue::of_keyspace(&fruit, b"apple").unwrap().unwrap();
    db.flush().unwrap();
    let flushed = OwnedValue::of_keyspace(&fruit, b"apple").unwrap().unwrap();
    assert_eq!((copied.copied(), flushed.copied()), (300, 0));
    // The block is in memory, so a caller that must not wait gets it. A call that is to be timed does not, until one was.
    let at_once = |_| {
        fruit.get("kiwi").unwrap();
        OwnedValue::cached(&fruit, b"apple").unwrap()
    };
    let Some(Cached::Known(Some(cached))) =
        (0..2).map(at_once).find(|found| matches!(found, Cached::Known(_)))
    else {
        panic!("the value was in memory")
    };
    let snapshot = db.snapshot().unwrap();
    fruit.insert("apple", "green").unwrap();
    let before = OwnedValue::of_snapshot(&snapshot, &fruit, b"apple").unwrap().unwrap();
    assert!(OwnedValue::of_snapshot(&snapshot, &fruit, b"kiwi").unwrap().is_none());
    assert!(OwnedValue::of_keyspace(&fruit, b"kiwi").unwrap().is_none());
    db.compact().unwrap();
    assert!(pinned(&db) > 0);
    // Closed by the last handle: an owned value is none.
    drop((snapshot, fruit, db));
    let db = Db::open_with(place.path(), super::small()).unwrap();
    fill(&db, 0..5_000, 3);
    db.compact().unwrap();
    for value in [copied, flushed, cached, before] {
        assert_eq!(*value, red);
    }
    db.close().unwrap();
    assert!(OwnedValue::of_keyspace(&db.default_keyspace(), b"apple").is_err());
}

/// A program that keeps all values of a database gets copies when what it keeps is much.
#[test]
fn what_pinned_values_keep_is_bounded() {
    let place = Place::new();
    let mut options = Options::default();
    options.memory = Some(MEMORY);
    options.memtable_bytes = Some(64 << 10);
    let db = Db::open_with(place.path(), options).unwrap();
    fill(&db, 0..20_000, 3);
    db.compact().unwrap();
    let all = db.default_keyspace();
    let mut rng = Rng::new(5);
    let mut kept: Vec<(usize, PinnedValue<'_>)> = Vec::new();
    let mut most = 0;
    for _ in 0..5_000 {
        let number = rng.below(20_000) as usize;
        kept.push((number, all.get_pinned(key(number)).unwrap().unwrap()));
        most = most.max(pinned(&db));
    }
    assert!((MEMORY / 16..=BOUND).contains(&most), "{most} bytes were pinned");
    // Readers of values count, too.
    let readers: Vec<_> =
        (0..200).map(|n| all.get_reader(key(100 * n)).unwrap().unwrap()).collect();
    assert!(pinned(&db) <= BOUND, "{} bytes are pinned", pinned(&db));
    // A scan goes on beside them.
    assert_eq!(all.iter().unwrap().count(), 20_000);
    assert!(kept.iter().all(|(number, found)| **found == *value(*number, 3).as_bytes()));
    kept.truncate(10);
    drop(readers);
    assert!(pinned(&db) <= 10 * (16 << 10), "{} bytes are pinned by ten values", pinned(&db));
    drop(kept);
    assert_eq!(pinned(&db), 0);
    // Where nothing is kept, the next one pins its block again.
    let again = all.get_pinned(key(7)).unwrap().unwrap();
    assert!(pinned(&db) > 0);
    drop(again);
    let reader = all.get_reader(key(7)).unwrap().unwrap();
    assert!(pinned(&db) > 0);
    drop(reader);
    assert_eq!(pinned(&db), 0);
}

/// Short values are copied for the caller's function, longer ones stay where they are: it sees the same, and may change the key.
#[test]
fn a_function_is_lent_values_of_all_lengths() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    let value = |len: usize| (0..len).map(|at| (at * 7 + len) as u8).collect::<Vec<u8>>();
    let lengths = [0, 1, 100, 255, 256, 257, 300, 4000];
    for flushed in [false, true] {
        lengths.iter().for_each(|len| space.insert(format!("{len}"), value(*len)).unwrap());
        if flushed {
            db.flush().unwrap();
        }
        let snapshot = db.snapshot().unwrap();
        for len in lengths {
            let key = format!("{len}");
            let change = |seen: &[u8]| {
                space.insert(&key, "changed").unwrap();
                seen == value(len)
            };
            assert_eq!(space.get_with(&key, change).unwrap(), Some(true), "{len} {flushed}");
            let changed = space.get_with(&key, |seen| seen == b"changed").unwrap();
            assert_eq!(changed, Some(true), "{len} {flushed}");
            let before = snapshot.get_with(&space, &key, |seen| seen == value(len)).unwrap();
            assert_eq!(before, Some(true), "{len} {flushed}");
        }
    }
    assert_eq!(space.get_with("none", <[u8]>::len).unwrap(), None);
}
