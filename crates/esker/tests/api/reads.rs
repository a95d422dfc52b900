use super::{fill, fresh, key, lasts, text, value};
use esker::ErrorKind;

#[test]
fn a_value_is_found_under_its_key_until_it_is_replaced() {
    let (_place, db) = fresh();
    assert_eq!(db.get("k").unwrap(), None);
    db.insert("k", "one").unwrap();
    assert_eq!(text(db.get("k").unwrap()).as_deref(), Some("one"));
    db.insert("k", "two").unwrap();
    assert_eq!(text(db.get("k").unwrap()).as_deref(), Some("two"));
}

#[test]
fn a_removed_key_is_gone_before_and_after_a_flush() {
    let (_place, db) = fresh();
    db.insert("k", "v").unwrap();
    db.flush().unwrap();
    db.remove("k").unwrap();
    assert_eq!(db.get("k").unwrap(), None);
    db.flush().unwrap();
    assert_eq!(db.get("k").unwrap(), None);
    assert!(!db.contains_key("k").unwrap());
    assert_eq!(db.iter().unwrap().count(), 0);
}

#[test]
fn removing_an_absent_key_is_no_error() {
    let (_place, db) = fresh();
    db.remove("never").unwrap();
    assert_eq!(db.get("never").unwrap(), None);
}

#[test]
fn an_empty_value_is_a_value() {
    let (_place, db) = fresh();
    db.insert("k", "").unwrap();
    assert_eq!(db.get("k").unwrap(), Some(Vec::new()));
    assert!(db.contains_key("k").unwrap());
    db.flush().unwrap();
    db.compact().unwrap();
    assert_eq!(db.get("k").unwrap(), Some(Vec::new()));
}

#[test]
fn get_into_replaces_the_buffer_and_leaves_it_alone_when_nothing_is_found() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    db.insert("k", "value").unwrap();
    let mut buffer = b"something longer than that".to_vec();
    assert!(space.get_into("k", &mut buffer).unwrap());
    assert_eq!(buffer, b"value");
    assert!(!space.get_into("absent", &mut buffer).unwrap());
    assert_eq!(buffer, b"value");
}

#[test]
fn multi_get_answers_in_the_order_of_the_question_with_repetitions() {
    let (_place, db) = fresh();
    fill(&db, 0..500, 1);
    db.flush().unwrap();
    fill(&db, (0..500).step_by(2), 2);
    let found = db.multi_get([key(3), key(900), key(2), key(3)]).unwrap();
    let found: Vec<_> = found.into_iter().map(text).collect();
    assert_eq!(found, [Some(value(3, 1)), None, Some(value(2, 2)), Some(value(3, 1))]);
    assert!(db.multi_get::<&str>([]).unwrap().is_empty());
}

#[test]
fn reads_are_right_through_flushes_and_compactions() {
    let (_place, db) = fresh();
    for round in 0..4 {
        fill(&db, (round..2000).step_by(round + 1), round);
    }
    db.wait_until_idle().unwrap();
    for number in 0..2000 {
        let round = (0..4).rfind(|round| number >= *round && (number - round) % (round + 1) == 0);
        let expected = round.map(|round| value(number, round));
        assert_eq!(text(db.get(key(number)).unwrap()), expected, "{number}");
    }
    assert_eq!(db.get(key(2000)).unwrap(), None);
    assert_eq!(db.get("").unwrap(), None);
    assert_eq!(db.get("zzz").unwrap(), None);
}

#[test]
fn a_removed_range_is_gone_and_its_bounds_are_half_open() {
    let (_place, db) = fresh();
    fill(&db, 0..100, 1);
    db.flush().unwrap();
    db.remove_range(key(10)..key(20)).unwrap();
    let left = |db: &esker::Db| -> Vec<usize> {
        (0..100).filter(|n| db.contains_key(key(*n)).unwrap()).collect()
    };
    let expected: Vec<_> = (0..10).chain(20..100).collect();
    assert_eq!(left(&db), expected);
    db.flush().unwrap();
    assert_eq!(left(&db), expected);
    db.compact().unwrap();
    assert_eq!(left(&db), expected);
    db.insert(key(15), "again").unwrap();
    assert!(db.contains_key(key(15)).unwrap(), "a later write is not covered");
}

#[test]
fn removed_ranges_may_be_open_closed_or_everything() {
    let (_place, db) = fresh();
    fill(&db, 0..10, 1);
    db.remove_range(key(2)..=key(3)).unwrap();
    assert_eq!(db.iter().unwrap().count(), 8);
    db.remove_range(..key(1)).unwrap();
    assert_eq!(db.iter().unwrap().count(), 7);
    db.remove_range(key(8)..).unwrap();
    assert_eq!(db.iter().unwrap().count(), 5);
    db.remove_range::<&str>(..).unwrap();
    assert_eq!(db.iter().unwrap().count(), 0);
    db.flush().unwrap();
    assert_eq!(db.iter().unwrap().count(), 0);
}

#[test]
fn an_empty_or_reversed_range_removes_nothing_and_does_no_harm() {
    let (place, db) = fresh();
    fill(&db, 0..10, 1);
    db.remove_range(key(5)..key(5)).unwrap();
    #[allow(clippy::reversed_empty_ranges)]
    db.remove_range(key(7)..key(3)).unwrap();
    assert_eq!(db.iter().unwrap().count(), 10);
    db.flush().unwrap();
    db.compact().unwrap();
    assert_eq!(db.iter().unwrap().count(), 10);
    db.close().unwrap();
    assert_eq!(place.open().iter().unwrap().count(), 10);
}

#[test]
fn first_and_last_are_the_smallest_and_greatest_that_are_left() {
    let (_place, db) = fresh();
    assert_eq!(db.first_key_value().unwrap(), None);
    assert_eq!(db.last_key_value().unwrap(), None);
    fill(&db, 0..1000, 1);
    db.flush().unwrap();
    db.remove(key(0)).unwrap();
    db.remove_range(key(990)..).unwrap();
    assert_eq!(db.first_key_value().unwrap().unwrap().0, key(1).into_bytes());
    assert_eq!(db.last_key_value().unwrap().unwrap().0, key(989).into_bytes());
}

#[test]
fn keys_may_hold_any_bytes() {
    let (place, db) = fresh();
    let odd: [&[u8]; 8] =
        [b"", b"\0", b"\0\0", b"a\0", b"a\0b", b"\xff", b"\xff\xff", b"\x80 not utf8"];
    for (number, key) in odd.iter().enumerate() {
        db.insert(key, [number as u8]).unwrap();
    }
    let check = |db: &esker::Db| {
        for (number, key) in odd.iter().enumerate() {
            assert_eq!(db.get(key).unwrap(), Some(vec![number as u8]), "{key:?}");
        }
        let mut sorted = odd.to_vec();
        sorted.sort_unstable();
        let found: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0).collect();
        assert_eq!(found, sorted);
    };
    lasts(&place, &db, check);
}

#[test]
fn keys_that_share_long_prefixes_are_told_apart() {
    let (_place, db) = fresh();
    let prefix = "p".repeat(300);
    for number in 0..400 {
        db.insert(format!("{prefix}{number:04}"), number.to_string()).unwrap();
    }
    db.insert(&prefix, "bare").unwrap();
    db.compact().unwrap();
    assert_eq!(text(db.get(&prefix).unwrap()).as_deref(), Some("bare"));
    assert_eq!(text(db.get(format!("{prefix}0399")).unwrap()).as_deref(), Some("399"));
    assert_eq!(db.get(format!("{prefix}039")).unwrap(), None);
}

#[test]
fn many_threads_read_their_own_writes() {
    let (_place, db) = fresh();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for number in 0..1500 {
                    let key = format!("{thread}-{:04}", number % 300);
                    db.insert(&key, number.to_string()).unwrap();
                    assert_eq!(text(db.get(&key).unwrap()), Some(number.to_string()), "{key}");
                }
            });
        }
    });
    assert_eq!(db.iter().unwrap().count(), 4 * 300);
}

#[test]
fn a_closed_database_answers_no_read() {
    let (_place, db) = fresh();
    db.insert("k", "v").unwrap();
    db.close().unwrap();
    assert_eq!(db.get("k").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.multi_get(["k"]).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.iter().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.snapshot().unwrap_err().kind(), ErrorKind::Closed);
}
