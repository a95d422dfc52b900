use super::{entries, fill, fresh, key, keys, text, value};
use std::ops::Bound;

fn numbers(range: impl Iterator<Item = usize>) -> Vec<String> {
    range.map(key).collect()
}

/// Data in several partitions, deltas and the memtable: every third key written twice, some gone.
fn mixed() -> (super::Place, esker::Db, Vec<String>) {
    let (place, db) = fresh();
    fill(&db, 0..2000, 1);
    db.wait_until_idle().unwrap();
    fill(&db, (0..2000).step_by(3), 2);
    db.flush().unwrap();
    for number in (0..2000).step_by(7) {
        db.remove(key(number)).unwrap();
    }
    let left = numbers((0..2000).filter(|number| number % 7 != 0));
    (place, db, left)
}

#[test]
fn an_iterator_returns_every_key_once_in_order_with_its_newest_value() {
    let (_place, db, left) = mixed();
    assert_eq!(keys(db.iter().unwrap()), left);
    for (found, stored) in entries(db.iter().unwrap()) {
        let number: usize = std::str::from_utf8(&found[3..]).unwrap().parse().unwrap();
        let round = if number.is_multiple_of(3) { 2 } else { 1 };
        assert_eq!(text(Some(stored)), Some(value(number, round)));
    }
}

#[test]
fn an_iterator_walks_backward_as_it_walks_forward() {
    let (_place, db, mut left) = mixed();
    left.reverse();
    assert_eq!(keys(db.iter().unwrap().rev()), left);
}

#[test]
fn the_two_ends_meet_wherever_they_do_and_return_nothing_twice() {
    let (_place, db) = fresh();
    fill(&db, 0..60, 1);
    db.flush().unwrap();
    fill(&db, 60..100, 1);
    for meeting in [0, 1, 2, 37, 59, 60, 61, 98, 99, 100] {
        let mut iter = db.iter().unwrap();
        let mut front = keys(iter.by_ref().take(meeting));
        let mut back = keys(iter.by_ref().rev());
        assert!(iter.next().is_none(), "meeting at {meeting}");
        assert!(iter.next_back().is_none(), "meeting at {meeting}");
        back.reverse();
        front.extend(back);
        assert_eq!(front, numbers(0..100), "meeting at {meeting}");
    }
}

#[test]
fn alternating_ends_meet_in_the_middle() {
    let (_place, db) = fresh();
    fill(&db, 0..101, 1);
    let mut iter = db.iter().unwrap();
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while let Some(entry) = iter.next() {
        front.push(entry.unwrap().0);
        let Some(entry) = iter.next_back() else { break };
        back.push(entry.unwrap().0);
    }
    assert_eq!((front.len(), back.len()), (51, 50));
    back.reverse();
    front.extend(back);
    assert!(front.is_sorted() && front.len() == 101);
}

#[test]
fn a_range_has_the_bounds_that_were_asked_for() {
    let (_place, db) = fresh();
    fill(&db, 0..50, 1);
    db.flush().unwrap();
    let got = |range: (Bound<String>, Bound<String>)| {
        let forward = keys(db.range(range.clone()).unwrap());
        let mut backward = keys(db.range(range).unwrap().rev());
        backward.reverse();
        assert_eq!(forward, backward);
        forward
    };
    use Bound::{Excluded, Included, Unbounded};
    assert_eq!(got((Included(key(10)), Excluded(key(13)))), numbers(10..13));
    assert_eq!(got((Included(key(10)), Included(key(13)))), numbers(10..14));
    assert_eq!(got((Excluded(key(10)), Excluded(key(13)))), numbers(11..13));
    assert_eq!(got((Unbounded, Excluded(key(3)))), numbers(0..3));
    assert_eq!(got((Excluded(key(46)), Unbounded)), numbers(47..50));
    assert_eq!(got((Unbounded, Unbounded)), numbers(0..50));
    assert_eq!(got((Included("key00001".into()), Excluded("key000012x".into()))), numbers(10..13));
}

#[test]
fn an_empty_or_reversed_range_is_empty() {
    let (_place, db, _) = mixed();
    assert_eq!(db.range(key(5)..key(5)).unwrap().count(), 0);
    #[allow(clippy::reversed_empty_ranges)]
    {
        assert_eq!(db.range(key(1500)..key(3)).unwrap().count(), 0);
        assert_eq!(db.range(key(1500)..key(3)).unwrap().rev().count(), 0);
    }
    assert_eq!(db.range(key(5000)..).unwrap().count(), 0);
    assert_eq!(db.range(..key(0)).unwrap().rev().count(), 0);
}

#[test]
fn a_prefix_selects_the_keys_that_begin_with_it() {
    let (_place, db) = fresh();
    let all: [&[u8]; 9] = [
        b"a",
        b"ab",
        b"ab\0",
        b"ab\xff",
        b"ab\xff\xff",
        b"ac",
        b"\xff",
        b"\xff\xff",
        b"\xff\xff\x01",
    ];
    for key in all {
        db.insert(key, "v").unwrap();
    }
    db.flush().unwrap();
    let got = |prefix: &[u8]| -> Vec<Vec<u8>> {
        db.prefix(prefix).unwrap().map(|entry| entry.unwrap().0).collect()
    };
    assert_eq!(got(b"ab"), [&b"ab"[..], b"ab\0", b"ab\xff", b"ab\xff\xff"]);
    assert_eq!(got(b"ab\xff"), [&b"ab\xff"[..], b"ab\xff\xff"]);
    assert_eq!(got(b"\xff"), [&b"\xff"[..], b"\xff\xff", b"\xff\xff\x01"]);
    assert_eq!(got(b"\xff\xff"), [&b"\xff\xff"[..], b"\xff\xff\x01"]);
    assert_eq!(got(b"").len(), all.len());
    assert!(got(b"b").is_empty());
    let mut backward: Vec<_> = db.prefix(b"ab").unwrap().rev().map(|e| e.unwrap().0).collect();
    backward.reverse();
    assert_eq!(backward, got(b"ab"));
}

#[test]
fn seek_goes_to_the_first_key_at_or_behind_the_one_asked_for() {
    let (_place, db, _) = mixed();
    let mut iter = db.iter().unwrap();
    for (target, expected) in [
        (key(100), key(100)),
        (key(7), key(8)),
        ("key0000085".to_owned(), key(9)),
        (String::new(), key(1)),
        (key(1999), key(1999)),
    ] {
        iter.seek(&target).unwrap();
        let (found, _) = iter.next_entry().unwrap().unwrap();
        assert_eq!(std::str::from_utf8(found).unwrap(), expected, "{target}");
    }
    iter.seek(key(2000)).unwrap();
    assert!(iter.next_entry().unwrap().is_none());
    iter.seek(key(1)).unwrap();
    assert!(iter.next_entry().unwrap().is_some(), "an exhausted iterator can be placed anew");
}

#[test]
fn seek_stays_within_the_range() {
    let (_place, db) = fresh();
    fill(&db, 0..100, 1);
    let mut iter = db.range(key(10)..key(20)).unwrap();
    iter.seek(key(0)).unwrap();
    assert_eq!(iter.next().unwrap().unwrap().0, key(10).into_bytes());
    iter.seek(key(19)).unwrap();
    assert_eq!(iter.next().unwrap().unwrap().0, key(19).into_bytes());
    assert!(iter.next().is_none());
    iter.seek(key(50)).unwrap();
    assert!(iter.next().is_none());
}

#[test]
fn an_iterator_shows_the_moment_it_was_made() {
    let (_place, db) = fresh();
    fill(&db, 0..300, 1);
    let iter = db.iter().unwrap();
    fill(&db, 0..600, 2);
    for number in 0..300 {
        db.remove(key(number)).unwrap();
    }
    let found = entries(iter);
    assert_eq!(found.len(), 300);
    assert!(
        found.iter().all(|(_, stored)| text(Some(stored.clone())).unwrap().contains("round 1"))
    );
}

#[test]
fn an_iterator_outlives_flushes_compactions_and_the_files_it_reads() {
    let (_place, db) = fresh();
    fill(&db, 0..3000, 1);
    db.flush().unwrap();
    let mut iter = db.iter().unwrap();
    let mut found = keys(iter.by_ref().take(100));
    for round in 2..5 {
        fill(&db, 0..3000, round);
        db.compact().unwrap();
    }
    db.remove_range::<&str>(..).unwrap();
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    found.extend(keys(iter));
    assert_eq!(found, numbers(0..3000));
    assert_eq!(db.iter().unwrap().count(), 0);
}

/// Each end returns the error that ends it once, and then nothing: what counts, flattens or
/// filters entries comes to an end over damage.
#[test]
fn an_error_that_ends_an_iterator_is_returned_once() {
    let (place, db) = fresh();
    fill(&db, 0..3000, 1);
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    db.close().unwrap();
    // In the first block of the file with the first keys.
    let files = std::fs::read_dir(place.path().join("data")).unwrap();
    let path = files.map(|file| file.unwrap().path()).min().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[200] ^= 0x20;
    std::fs::write(&path, bytes).unwrap();
    let db = place.open();
    let walked: Vec<_> = db.iter().unwrap().collect();
    assert_eq!(walked.iter().filter(|entry| entry.is_err()).count(), 1);
    assert!(walked.last().unwrap().is_err());
    let walked: Vec<_> = db.iter().unwrap().rev().collect();
    assert_eq!(walked.iter().filter(|entry| entry.is_err()).count(), 1);
    assert!(walked.len() > 1 && walked.last().unwrap().is_err());
    let mut iter = db.iter().unwrap();
    assert!(iter.by_ref().any(|entry| entry.is_err()));
    assert!(iter.next().is_none() && iter.next_entry().unwrap().is_none());
    assert!(iter.next_back().unwrap().is_ok(), "the other end has not met the damage");
    iter.seek(key(1500)).unwrap();
    assert!(iter.next().unwrap().is_ok(), "placed anew, it goes on");
    let tx = db.begin().unwrap();
    let walked: Vec<_> = tx.iter(&db.default_keyspace()).unwrap().collect();
    assert_eq!(walked.iter().filter(|entry| entry.is_err()).count(), 1);

    let iter = db.iter().unwrap();
    let other = tx.iter(&db.default_keyspace()).unwrap();
    db.close().unwrap();
    assert_eq!((iter.count(), other.count()), (1, 1), "that it is closed is said once, too");
}

#[test]
fn an_iterator_over_nothing_returns_nothing() {
    let (_place, db) = fresh();
    let mut iter = db.iter().unwrap();
    assert!(iter.next().is_none() && iter.next_back().is_none());
    assert!(iter.next_entry().unwrap().is_none() && iter.next_back_entry().unwrap().is_none());
    iter.seek("k").unwrap();
    assert!(iter.next().is_none());
}

#[test]
fn borrowed_entries_are_the_same_as_copied_ones() {
    let (_place, db, left) = mixed();
    let mut iter = db.iter().unwrap();
    let mut found = Vec::new();
    while let Some((key, _)) = iter.next_entry().unwrap() {
        found.push(String::from_utf8(key.to_vec()).unwrap());
    }
    assert_eq!(found, left);
    let mut iter = db.iter().unwrap();
    let mut found = Vec::new();
    while let Some((key, _)) = iter.next_back_entry().unwrap() {
        found.push(String::from_utf8(key.to_vec()).unwrap());
    }
    found.reverse();
    assert_eq!(found, left);
}

#[test]
fn long_stretches_of_deleted_keys_are_passed() {
    let (_place, db) = fresh();
    fill(&db, 0..5000, 1);
    db.flush().unwrap();
    for number in 1..4999 {
        db.remove(key(number)).unwrap();
    }
    assert_eq!(keys(db.iter().unwrap()), [key(0), key(4999)]);
    assert_eq!(keys(db.iter().unwrap().rev()), [key(4999), key(0)]);
}

/// Keys that begin alike, that end in zeros, and the greatest ones, each in several versions: what tells two versions of
/// a key from two keys.
#[test]
fn keys_with_equal_beginnings_are_told_apart() {
    let mut expected = std::collections::BTreeMap::new();
    let (_place, db) = fresh();
    for version in 0..12_u8 {
        for len in 0..20 {
            for byte in [0, b'a', 0xFF] {
                let mut key = vec![byte; len];
                for last in [None, Some(0), Some(0xFF)] {
                    key.extend(last);
                    db.insert(&key, [version]).unwrap();
                    expected.insert(key.clone(), vec![version]);
                }
            }
        }
    }
    let expected: Vec<_> = expected.into_iter().collect();
    // The last entry of all has a key of which no byte can be greater.
    let last = db.keyspace("last").unwrap();
    for version in 0..2 {
        last.insert([0xFF; 16], [version]).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(entries(last.iter().unwrap()), [(vec![0xFF; 16], vec![1])]);
        assert_eq!(entries(db.iter().unwrap()), expected);
        let mut backward: Vec<_> = db.iter().unwrap().rev().map(Result::unwrap).collect();
        backward.reverse();
        assert_eq!(backward, expected);
        db.flush().unwrap();
    }
}
