use super::{Place, fresh, lasts, small};
use esker::{Db, ErrorKind};

const LONGEST: usize = 65_535;

#[test]
fn keys_of_no_bytes_and_of_65_535_bytes_are_kept() {
    let (place, db) = fresh();
    let longest = vec![b'k'; LONGEST];
    let sibling = [&longest[..LONGEST - 1], b"j"].concat();
    db.insert("", "empty").unwrap();
    db.insert(&longest, "longest").unwrap();
    db.insert(&sibling, "sibling").unwrap();
    let check = |db: &Db| {
        assert_eq!(db.get("").unwrap().as_deref(), Some(&b"empty"[..]));
        assert_eq!(db.get(&longest).unwrap().as_deref(), Some(&b"longest"[..]));
        assert_eq!(db.get(&sibling).unwrap().as_deref(), Some(&b"sibling"[..]));
        assert_eq!(db.get(&longest[1..]).unwrap(), None);
        assert_eq!(db.iter().unwrap().count(), 3);
        assert_eq!(db.prefix(&longest).unwrap().count(), 1);
    };
    lasts(&place, &db, check);
}

#[test]
fn keys_of_65_536_bytes_are_refused() {
    let (_place, db) = fresh();
    let key = vec![b'k'; LONGEST + 1];
    assert_eq!(db.insert(&key, "v").unwrap_err().kind(), ErrorKind::KeyTooLong);
    assert_eq!(db.remove(&key).unwrap_err().kind(), ErrorKind::KeyTooLong);
    let range = key.as_slice()..;
    assert_eq!(db.remove_range(range).unwrap_err().kind(), ErrorKind::KeyTooLong);
    assert_eq!(db.get(&key).unwrap(), None, "no such key can be there");
}

#[test]
fn a_range_that_ends_with_the_longest_key_is_removed_and_survives() {
    let (place, db) = fresh();
    let longest = vec![0xff; LONGEST];
    db.insert(&longest, "v").unwrap();
    db.insert("a", "v").unwrap();
    db.flush().unwrap();
    let hold = db.snapshot().unwrap();
    db.remove_range(b"b".as_slice()..=&longest).unwrap();
    db.insert(&longest[1..], "later").unwrap();
    db.flush().unwrap();
    let check = |db: &Db| {
        assert_eq!(db.get(&longest).unwrap(), None);
        assert_eq!(db.iter().unwrap().count(), 2);
    };
    check(&db);
    drop(hold);
    db.close().unwrap();
    let db = place.open();
    check(&db);
    db.compact().unwrap();
    check(&db);
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn values_up_to_an_eighth_of_memory_are_kept_and_larger_ones_refused() {
    let (place, db) = fresh();
    let eighth = (4 << 20) / 8;
    let large: Vec<u8> = (0..eighth - 1000).map(|at| (at % 251) as u8).collect();
    db.insert("large", &large).unwrap();
    db.insert("small", "v").unwrap();
    let error = db.insert("larger", vec![0; eighth + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ValueTooLarge);
    let check = |db: &Db| {
        assert!(db.get("large").unwrap().as_deref() == Some(&large[..]));
        assert_eq!(db.get("larger").unwrap(), None);
        assert_eq!(db.iter().unwrap().count(), 2);
        assert_eq!(db.iter().unwrap().rev().count(), 2);
    };
    lasts(&place, &db, check);
}

#[test]
fn entries_larger_than_a_block_or_a_segment_stand_among_small_ones() {
    let (_place, db) = fresh();
    for number in 0..200 {
        let len = [10, 600, 9_000, 40_000, 0][number % 5];
        db.insert(format!("{number:04}"), vec![number as u8; len]).unwrap();
    }
    db.compact().unwrap();
    for number in 0..200 {
        let len = [10, 600, 9_000, 40_000, 0][number % 5];
        let found = db.get(format!("{number:04}")).unwrap();
        assert!(found == Some(vec![number as u8; len]), "{number}");
    }
    let lengths: usize = db.iter().unwrap().map(|entry| entry.unwrap().1.len()).sum();
    assert_eq!(lengths, 40 * (10 + 600 + 9_000 + 40_000));
}

#[test]
fn numbers_outside_their_limits_are_refused_before_anything_is_made() {
    let place = Place::new();
    let changes: [fn(&mut esker::Options); 9] = [
        |options| options.memory = Some((1 << 20) - 1),
        |options| options.partition_bytes = Some((4 << 10) - 1),
        |options| options.partition_bytes = Some(u64::MAX),
        |options| options.segment_bytes = 0,
        |options| options.segment_bytes = u32::MAX,
        |options| options.block_bytes = 255,
        |options| options.block_bytes = (32 << 10) + 1,
        |options| options.log_file_bytes = (16 << 10) - 1,
        |options| options.log_file_bytes = u32::MAX,
    ];
    for change in changes {
        let mut options = small();
        change(&mut options);
        let error = Db::open_with(place.path(), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(!place.path().exists());
    }
}

#[test]
fn the_smallest_memory_works() {
    let place = Place::new();
    let mut options = esker::Options::default();
    options.memory = Some(1 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    super::fill(&db, 0..20_000, 1);
    assert_eq!(db.iter().unwrap().count(), 20_000);
    db.close().unwrap();
}
