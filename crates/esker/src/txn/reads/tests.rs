#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::{RangeRead, ReadSet};
use crate::base::Bytewise;
use crate::catalog::{Catalog, DEFAULT_KEYSPACE, KeyspaceState};
use crate::iter::Bounds;
use std::ops::Bound;
use std::sync::Arc;

fn keyspace() -> Arc<KeyspaceState> {
    Catalog::new(Vec::new()).by_name(0, DEFAULT_KEYSPACE).unwrap().clone()
}

fn bounds(low: &str, high: &str) -> Bounds {
    Bounds {
        low: Bound::Included(low.as_bytes().into()),
        high: Bound::Excluded(high.as_bytes().into()),
    }
}

/// Which of the letters a range has read.
fn letters(read: &RangeRead) -> String {
    let stretches = read.stretches();
    let inside = |letter: &char| {
        let key = letter.to_string().into_bytes();
        stretches.iter().any(|stretch| stretch.touch(&Bytewise, (&key, &key)))
    };
    ('a'..='z').filter(inside).collect()
}

#[test]
fn a_range_is_read_as_far_as_its_ends_came() {
    let read = RangeRead::new(7, bounds("c", "s"));
    assert_eq!(letters(&read), "");
    read.front(b"e");
    assert_eq!(letters(&read), "cde");
    read.back(b"q");
    assert_eq!(letters(&read), "cdeqr");
    read.front(b"f");
    assert_eq!(letters(&read), "cdefqr");
    read.seek(Bound::Included(b"l".to_vec().into()));
    assert_eq!(letters(&read), "cdefqr");
    read.front(b"m");
    assert_eq!(letters(&read), "cdeflmqr");
    read.front_done();
    assert_eq!(letters(&read), "cdeflmnopqr");
    read.seek(Bound::Included(b"h".to_vec().into()));
    read.front(b"h");
    assert_eq!(letters(&read), "cdefhlmnopqr");
    let read = RangeRead::new(7, bounds("c", "f"));
    read.front(b"c");
    read.back_done();
    assert_eq!(letters(&read), "cde");
}

#[test]
fn an_iterator_that_is_placed_very_often_has_read_its_whole_range() {
    let read = RangeRead::new(7, bounds("c", "h"));
    for _ in 0..10_000 {
        read.seek(Bound::Included(b"d".to_vec().into()));
        read.front(b"e");
    }
    assert!(read.stretches().len() <= super::STRETCHES_MAX + 1);
    assert_eq!(letters(&read), "cdefg");
}

#[test]
fn the_oldest_read_of_a_key_counts() {
    let mut reads = ReadSet::new(u64::MAX);
    let keyspace = keyspace();
    for since in [30, 10, 20] {
        reads.key(&keyspace, b"k", since);
    }
    let noted: Vec<_> = reads.spaces()[0].keys.iter().collect();
    assert_eq!(noted, [(&b"k".to_vec(), &10)]);
}

#[test]
fn where_too_much_is_read_the_keyspace_counts_as_read_since_the_oldest_read() {
    let mut reads = ReadSet::new(4096);
    let keyspace = keyspace();
    let held = reads.range(&keyspace, bounds("a", "b"), 5);
    for number in 0..1000_u64 {
        reads.key(&keyspace, &number.to_be_bytes(), 10 + number);
    }
    let space = &reads.spaces()[0];
    assert!(space.keys.len() < 64 && space.ranges.len() == 1);
    assert_eq!(space.ranges[0].since, 5);
    assert_eq!(space.ranges[0].stretches(), [Bounds::default()]);
    // The iterator continues and writes to a range that is no longer used.
    held.front(b"a");
}
