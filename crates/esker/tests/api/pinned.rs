//! Values that are read where they lie, and how much of them may be kept.

use super::{Place, fill, fresh, key, value};
use esker::internals::cached::Cached;
use esker::internals::kept::{
    KeptValue, ValueInPlace, get_in_place, get_in_place_cached, get_kept,
};
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
fn a_value_in_place_outlives_its_database() {
    let place = Place::new();
    let db = Db::open_with(place.path(), super::small()).unwrap();
    let fruit = db.keyspace("fruit").unwrap();
    let red = [b'r'; 300];
    fruit.insert("apple", red).unwrap();
    let copied = get_in_place(&fruit, None, b"apple").unwrap().unwrap();
    db.flush().unwrap();
    let flushed = get_in_place(&fruit, None, b"apple").unwrap().unwrap();
    assert_eq!((copied.copied(), flushed.copied()), (300, 0));
    // The block is in memory, so a caller that must not wait gets it. A call that is to be timed does not, until one was.
    let at_once = |_| {
        fruit.get("kiwi").unwrap();
        get_in_place_cached(&fruit, b"apple").unwrap()
    };
    let Some(Cached::Known(Some(cached))) =
        (0..2).map(at_once).find(|found| matches!(found, Cached::Known(_)))
    else {
        panic!("the value was in memory")
    };
    let snapshot = db.snapshot().unwrap();
    fruit.insert("apple", "green").unwrap();
    let before = get_in_place(&fruit, Some(&snapshot), b"apple").unwrap().unwrap();
    assert!(get_in_place(&fruit, Some(&snapshot), b"kiwi").unwrap().is_none());
    assert!(get_in_place(&fruit, None, b"kiwi").unwrap().is_none());
    db.compact().unwrap();
    assert!(pinned(&db) > 0);
    // Closed by the last handle: a value in place is none.
    drop((snapshot, fruit, db));
    let db = Db::open_with(place.path(), super::small()).unwrap();
    fill(&db, 0..5_000, 3);
    db.compact().unwrap();
    for value in [copied, flushed, cached, before] {
        assert_eq!(value.bytes(), red);
    }
    db.close().unwrap();
    assert!(get_in_place(&db.default_keyspace(), None, b"apple").is_err());
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

/// A value that is kept where it lies.
fn in_place(found: Option<KeptValue>) -> ValueInPlace {
    match found {
        Some(KeptValue::InPlace(value)) => value,
        other => panic!("it is {}", if other.is_some() { "a copy" } else { "not there" }),
    }
}

fn is_copy(found: Option<KeptValue>, expected: &[u8]) -> bool {
    matches!(found, Some(KeptValue::Copied(bytes)) if bytes == expected)
}

#[test]
fn a_kept_value_outlives_its_key_and_its_database() {
    let (place, db) = fresh();
    let all = db.default_keyspace();
    all.insert("long", [1; 4096]).unwrap();
    all.insert("short", [2; 4095]).unwrap();
    let of_snapshot = db.snapshot().unwrap();
    assert!(is_copy(get_kept(&all, None, b"long").unwrap(), &[1; 4096]), "it is in memory");
    db.flush().unwrap();
    assert!(is_copy(get_kept(&all, None, b"short").unwrap(), &[2; 4095]));
    assert!(get_kept(&all, None, b"none").unwrap().is_none());
    let long = in_place(get_kept(&all, None, b"long").unwrap());
    all.remove("long").unwrap();
    let before = in_place(get_kept(&all, Some(&of_snapshot), b"long").unwrap());
    assert!(get_kept(&all, None, b"long").unwrap().is_none());
    assert!(pinned(&db) >= 2 * 4096);
    drop(of_snapshot);
    db.compact().unwrap();
    drop(all);
    db.close().unwrap();
    assert_eq!((long.bytes(), before.bytes()), (&[1; 4096][..], &[1; 4096][..]));
    drop(db);
    // It does not keep the directory locked, and its memory is its own.
    let db = Db::open(place.path()).unwrap();
    assert_eq!(pinned(&db), 0);
    db.insert("long", [3; 4096]).unwrap();
    db.flush().unwrap();
    let again = in_place(get_kept(&db.default_keyspace(), None, b"long").unwrap());
    drop(before);
    assert_eq!((long.bytes(), again.bytes()), (&[1; 4096][..], &[3; 4096][..]));
    drop((long, db));
    assert_eq!(again.bytes(), [3; 4096]);
}

/// So a program that keeps values takes at most twice their bytes for them.
#[test]
fn a_value_in_a_block_of_many_is_copied() {
    let place = Place::new();
    let mut options = Options::default();
    options.memory = Some(16 << 20);
    options.block_bytes = 32 << 10;
    // Values that are separated from their keys have blocks of their own.
    options.separate_values_from = None;
    let db = Db::open_with(place.path(), options).unwrap();
    let all = db.default_keyspace();
    (0..20_u8).for_each(|n| all.insert([n], vec![n; 5000]).unwrap());
    db.flush().unwrap();
    assert!(is_copy(get_kept(&all, None, &[7]).unwrap(), &[7; 5000]));
    assert_eq!(pinned(&db), 0);
}

#[test]
fn kept_values_have_the_bound_of_pinned_ones() {
    let place = Place::new();
    let mut options = Options::default();
    options.memory = Some(MEMORY);
    let db = Db::open_with(place.path(), options).unwrap();
    let all = db.default_keyspace();
    (0..100_u8).for_each(|n| all.insert([n], vec![n; 8000]).unwrap());
    db.flush().unwrap();
    let kept: Vec<_> = (0..100_u8).map(|n| get_kept(&all, None, &[n]).unwrap().unwrap()).collect();
    assert!((MEMORY / 16..=BOUND).contains(&pinned(&db)), "{} bytes are pinned", pinned(&db));
    let copies = kept.iter().filter(|found| matches!(found, KeptValue::Copied(_))).count();
    assert!((50..100).contains(&copies), "{copies} of 100 values are copies");
    for (n, found) in kept.into_iter().enumerate() {
        let bytes = match &found {
            KeptValue::Copied(bytes) => bytes,
            KeptValue::InPlace(value) => value.bytes(),
        };
        assert_eq!(bytes, vec![n as u8; 8000]);
    }
    assert_eq!(pinned(&db), 0);
    drop(in_place(get_kept(&all, None, &[7]).unwrap()));
}
