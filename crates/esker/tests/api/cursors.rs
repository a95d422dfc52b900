use super::{Place, fill, fresh, key, small, value};
use esker::{Cursor, Db, ErrorKind};
use esker_testkit::orders::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Data in several partitions, deltas and the memtable, with deletes and a range delete; and what
/// it should look like.
fn mixed() -> (Place, Db, Model) {
    let (place, db) = fresh();
    let mut model = Model::new();
    let mut put = |numbers: &mut dyn Iterator<Item = usize>, round| {
        for number in numbers {
            db.insert(key(number), value(number, round)).unwrap();
            model.insert(key(number).into_bytes(), value(number, round).into_bytes());
        }
    };
    put(&mut (0..2000), 1);
    db.wait_until_idle().unwrap();
    put(&mut (0..2000).step_by(3), 2);
    db.flush().unwrap();
    put(&mut (1..2000).step_by(5), 3);
    for number in (0..2000).step_by(7) {
        db.remove(key(number)).unwrap();
        model.remove(key(number).as_bytes());
    }
    db.remove_range(key(700)..key(900)).unwrap();
    model.retain(|found, _| !(key(700).into_bytes()..key(900).into_bytes()).contains(found));
    (place, db, model)
}

fn at(cursor: &Cursor) -> Option<(&[u8], &[u8])> {
    cursor.valid().then(|| (cursor.key(), cursor.value()))
}

/// A small generator of its own, so that a failure is replayed from its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

#[test]
fn a_cursor_moves_both_ways_like_one_on_a_map() {
    let (_place, db, model) = mixed();
    let space = db.default_keyspace();
    for seed in 1..40_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Every other cursor keeps within a range.
        let (low, high) = (key(dice.roll(900)), key(1000 + dice.roll(900)));
        let (mut cursor, shown) = if seed % 2 == 0 {
            (space.cursor().unwrap(), model.range(Vec::new()..))
        } else {
            let range = low.clone().into_bytes()..high.clone().into_bytes();
            (space.cursor_in(low.as_str()..high.as_str()).unwrap(), model.range(range))
        };
        let entries: Vec<(&[u8], &[u8])> =
            shown.map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
        assert!(at(&cursor).is_none());
        // Where the cursor should stand, among the entries of the model.
        let mut place: Option<usize> = None;
        for step in 0..400 {
            match dice.roll(20) {
                0 => {
                    cursor.seek_to_first().unwrap();
                    place = Some(0);
                }
                1 => {
                    cursor.seek_to_last().unwrap();
                    place = Some(entries.len() - 1);
                }
                2..5 => {
                    let mut sought = key(dice.roll(2100)).into_bytes();
                    if dice.roll(2) == 0 {
                        sought.push(b'!');
                    }
                    if dice.roll(2) == 0 {
                        cursor.seek(&sought).unwrap();
                        let found = entries.partition_point(|(key, _)| *key < sought.as_slice());
                        place = (found < entries.len()).then_some(found);
                    } else {
                        cursor.seek_back(&sought).unwrap();
                        let behind = entries.partition_point(|(key, _)| *key <= sought.as_slice());
                        place = behind.checked_sub(1);
                    }
                }
                5..12 => {
                    cursor.next().unwrap();
                    place = place.map(|at| at + 1).filter(|at| *at < entries.len());
                }
                _ => {
                    cursor.prev().unwrap();
                    place = place.and_then(|at| at.checked_sub(1));
                }
            }
            let expected = place.map(|place| entries[place]);
            assert_eq!(at(&cursor), expected, "seed {seed}, step {step}");
        }
    }
}

#[test]
fn a_cursor_shows_the_moment_at_which_it_was_made() {
    let (_place, db, model) = mixed();
    let snapshot = db.snapshot().unwrap();
    let mut cursor = db.default_keyspace().cursor().unwrap();
    fill(&db, 0..2000, 9);
    db.flush().unwrap();
    db.compact().unwrap();
    let mut of_snapshot = snapshot.cursor(&db.default_keyspace()).unwrap();
    for cursor in [&mut cursor, &mut of_snapshot] {
        let mut seen = Model::new();
        cursor.seek_to_last().unwrap();
        while let Some((key, value)) = at(cursor) {
            seen.insert(key.to_vec(), value.to_vec());
            cursor.prev().unwrap();
        }
        assert_eq!(seen, model);
    }
}

#[test]
fn a_cursor_follows_the_order_of_its_keyspace() {
    let (_place, db) = fresh();
    let space = db.keyspace_ordered("news", Arc::new(Reverse)).unwrap();
    for number in 0..500 {
        space.insert(key(number), "v").unwrap();
    }
    let mut cursor = space.cursor().unwrap();
    cursor.seek(key(100)).unwrap();
    assert_eq!(cursor.key(), key(100).as_bytes());
    cursor.next().unwrap();
    assert_eq!(cursor.key(), key(99).as_bytes());
    cursor.prev().unwrap();
    cursor.prev().unwrap();
    assert_eq!(cursor.key(), key(101).as_bytes());
}

#[test]
fn a_cursor_on_a_closed_database_has_an_error_and_no_entry() {
    let (_place, db) = fresh();
    fill(&db, 0..10, 1);
    let mut cursor = db.default_keyspace().cursor().unwrap();
    cursor.seek_to_first().unwrap();
    db.close().unwrap();
    assert_eq!(cursor.next().unwrap_err().kind(), ErrorKind::Closed);
    assert!(!cursor.valid());
    assert_eq!(cursor.error().map(|error| error.kind()), Some(ErrorKind::Closed));
    assert_eq!(cursor.next().unwrap_err().kind(), ErrorKind::Closed, "the error stays");
}

#[test]
fn a_value_is_handed_over_in_place() {
    let (_place, db, model) = mixed();
    let space = db.default_keyspace();
    let snapshot = db.snapshot().unwrap();
    for number in 0..2000 {
        let expected = model.get(key(number).as_bytes());
        let same = |value: &[u8]| Some(value) == expected.map(Vec::as_slice);
        let found = space.get_with(key(number), same).unwrap();
        assert_eq!(found, expected.map(|_| true), "{number}");
        assert_eq!(snapshot.get_with(&space, key(number), same).unwrap(), found, "{number}");
    }
}

#[test]
fn sizes_of_ranges_add_up_and_follow_the_data() {
    let place = Place::new();
    let db = Db::open_with(place.path(), small()).unwrap();
    let space = db.default_keyspace();
    assert_eq!(space.approximate_size::<&str>(..).unwrap(), 0);
    for number in 0..2000 {
        // Bytes that do not compress.
        let mut dice = Dice(number as u64 + 1);
        let value: Vec<u8> = (0..100).map(|_| dice.roll(256) as u8).collect();
        db.insert(key(number), value).unwrap();
        if number == 49 {
            // Nothing is flushed yet.
            assert_eq!(space.approximate_size(key(10)..key(30)).unwrap(), 20 * 109);
        }
    }
    db.compact().unwrap();
    let all = space.approximate_size::<&str>(..).unwrap();
    let stored: u64 = space.segments().unwrap().iter().map(|segment| segment.bytes).sum();
    assert_eq!(all, stored);
    assert!(all > 2000 * 100, "{all}");
    let (mut sum, mut parts) = (0, Vec::new());
    for from in (0..2000).step_by(250) {
        let part = space.approximate_size(key(from)..key(from + 250)).unwrap();
        parts.push(part);
        sum += part;
    }
    assert_eq!(sum, all, "ranges that touch leave nothing out");
    for part in parts {
        assert!((all / 16..all / 4).contains(&part), "{part} of {all}");
    }
    assert_eq!(space.approximate_size(key(900)..key(100)).unwrap(), 0);
    assert_eq!(space.approximate_size(key(3000)..).unwrap(), 0);
}
