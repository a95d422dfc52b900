use super::*;
use crate::sync::Signal;
use std::sync::Arc;

fn key(number: u8) -> PartitionKey {
    PartitionKey::of_partition(0, Some(vec![number]))
}

fn work() -> WorkQueue {
    WorkQueue::new(Arc::new(Signal::new()))
}

#[test]
fn what_was_not_begun_is_taken_back() {
    let work = work();
    let begun = [key(1)];
    work.force(begun.clone());
    assert_eq!(work.take_compactions(false), begun);
    let keys = [key(1), key(2), key(3)];
    let request = work.request(&keys, &keys[1..]);
    let seen = work.done().epoch();
    work.take_back(request, &keys);
    assert!(work.take_compactions(false).is_empty() && !work.is_whole(&key(3)));
    assert!(work.done().epoch() > seen, "who waits until all is quiet is told");
    assert!(!work.forced_pending(&keys[1..]).unwrap());
    assert!(work.forced_pending(&begun).unwrap(), "this one is under way");
    work.end_compactions(&begun, None);
    assert!(work.take_compactions(false).is_empty() && work.is_quiet());
    // Nothing is left of it: the same can be requested again.
    work.request(&keys, &[]);
    assert_eq!(work.take_compactions(false), keys);
}

#[test]
fn what_others_requested_too_is_not_taken_back() {
    let work = work();
    let keys = [key(1), key(2), key(3)];
    let first = work.request(&keys, &[]);
    let second = work.request(&keys[1..2], &keys[1..2]);
    work.force([key(3)]);
    work.take_back(first, &keys);
    assert!(!work.forced_pending(&keys[..1]).unwrap());
    assert!(work.is_whole(&key(2)), "as the other caller asked for");
    assert_eq!(work.take_compactions(false), keys[1..]);
    // It is under way now, so it stays what it was begun as.
    work.take_back(second, &keys);
    assert!(work.is_whole(&key(2)) && work.forced_pending(&keys[1..2]).unwrap());
    work.end_compactions(&keys[1..], None);
    assert!(!work.is_whole(&key(2)) && work.is_quiet());
}

#[test]
fn a_request_while_the_first_compaction_runs_is_not_taken_back_with_the_first() {
    let work = work();
    let keys = [key(1)];
    let first = work.request(&keys, &[]);
    assert_eq!(work.take_compactions(false), keys);
    work.request(&keys, &[]);
    work.take_back(first, &keys);
    work.end_compactions(&keys, None);
    assert_eq!(work.take_compactions(false), keys, "the second caller waits for the next one");
}

#[test]
fn those_that_failed_together_are_tried_alone_whoever_gave_up() {
    let work = work();
    let keys = [key(1), key(2)];
    let request = work.request(&keys, &[]);
    assert_eq!(work.take_compactions(false), keys);
    let damage = crate::error::Error::corruption("f".as_ref(), 0, "block", "damaged");
    work.end_compactions(&keys, Some(&damage));
    work.take_back(request, &keys);
    assert_eq!(work.take_compactions(false).len(), 1);
}
