#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::{Holder, Locks, Mode, Request};
use crate::base::{Comparator, CustomOrder};
use crate::error::{Error, Result};
use crate::txn::writes::OwnOrder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use Mode::{Exclusive, Shared};

const FOREVER: Duration = Duration::MAX;

fn ask(locks: &Locks, holder: Holder, key: &str, mode: Mode, timeout: Duration) -> Result<bool> {
    let order = &OwnOrder::Bytewise;
    let key = key.as_bytes();
    locks.lock(&Request {
        holder,
        keyspace: 1,
        name: "ks",
        order,
        key,
        mode,
        timeout,
        interrupted: None,
    })
}

/// Asks without waiting.
fn try_ask(locks: &Locks, holder: Holder, key: &str, mode: Mode) -> Result<bool> {
    ask(locks, holder, key, mode, Duration::ZERO)
}

fn is_late(result: Result<bool>) -> bool {
    matches!(result, Err(Error::LockTimeout { .. }))
}

/// Returns once `count` transactions wait.
fn wait_for_waiters(locks: &Locks, count: usize) {
    while locks.sizes().1 < count {
        std::thread::yield_now();
    }
}

#[test]
fn shared_locks_go_together_and_exclusive_ones_do_not() {
    let locks = Locks::default();
    assert!(!try_ask(&locks, 1, "k", Shared).unwrap());
    assert!(!try_ask(&locks, 2, "k", Shared).unwrap());
    assert!(is_late(try_ask(&locks, 3, "k", Exclusive)));
    assert!(is_late(try_ask(&locks, 2, "k", Exclusive)));
    locks.release(1);
    assert!(!try_ask(&locks, 2, "k", Exclusive).unwrap());
    assert!(is_late(try_ask(&locks, 3, "k", Shared)));
    // A lock that is held is taken again at no cost, and a stronger lock includes the weaker one.
    assert!(!try_ask(&locks, 2, "k", Shared).unwrap());
    assert!(locks.has(2, 1, &OwnOrder::Bytewise, b"k"));
    assert!(!locks.has(3, 1, &OwnOrder::Bytewise, b"k"));
    assert!(!try_ask(&locks, 3, "other", Exclusive).unwrap());
    locks.release(2);
    locks.release(3);
    assert_eq!(locks.sizes(), (0, 0));
}

#[test]
fn who_waits_gets_the_lock_when_it_is_given_back() {
    let locks = Locks::default();
    try_ask(&locks, 1, "k", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| ask(&locks, 2, "k", Exclusive, FOREVER));
        wait_for_waiters(&locks, 1);
        locks.release(1);
        assert!(waiter.join().unwrap().unwrap());
    });
    assert!(is_late(try_ask(&locks, 1, "k", Shared)));
}

#[test]
fn nobody_overtakes_a_waiter_but_a_holder_who_wants_more() {
    let locks = Locks::default();
    let turn = AtomicU64::new(0);
    try_ask(&locks, 1, "k", Shared).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            ask(&locks, 2, "k", Exclusive, FOREVER).unwrap();
            let turn = turn.fetch_add(1, Ordering::SeqCst);
            locks.release(2);
            turn
        });
        wait_for_waiters(&locks, 1);
        // A shared lock would fit with the one that is held, but another transaction came before.
        let third = scope.spawn(|| {
            ask(&locks, 3, "k", Shared, FOREVER).unwrap();
            let turn = turn.fetch_add(1, Ordering::SeqCst);
            locks.release(3);
            turn
        });
        wait_for_waiters(&locks, 2);
        assert!(!ask(&locks, 1, "k", Exclusive, FOREVER).unwrap());
        locks.release(1);
        assert_eq!((second.join().unwrap(), third.join().unwrap()), (0, 1));
    });
    assert_eq!(locks.sizes(), (0, 0));
}

#[test]
fn the_end_of_a_waiters_patience_lets_those_behind_it_go_on() {
    let locks = Locks::default();
    try_ask(&locks, 1, "k", Shared).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| ask(&locks, 2, "k", Exclusive, Duration::from_millis(200)));
        wait_for_waiters(&locks, 1);
        let third = scope.spawn(|| ask(&locks, 3, "k", Shared, FOREVER));
        assert!(is_late(second.join().unwrap()));
        third.join().unwrap().unwrap();
    });
    locks.release(2);
    assert!(is_late(try_ask(&locks, 2, "k", Exclusive)));
}

#[test]
fn whoever_would_close_a_cycle_is_told() {
    let deadlock = |result: Result<bool>| matches!(result, Err(Error::Deadlock { .. }));
    let locks = Locks::default();
    for (holder, key) in [(1, "a"), (2, "b"), (3, "c")] {
        try_ask(&locks, holder, key, Exclusive).unwrap();
    }
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&locks, 1, "b", Shared, FOREVER));
        wait_for_waiters(&locks, 1);
        let second = scope.spawn(|| ask(&locks, 2, "c", Exclusive, FOREVER));
        wait_for_waiters(&locks, 2);
        assert!(deadlock(ask(&locks, 3, "a", Exclusive, FOREVER)));
        // It may do something else, and the others go on when it ends.
        assert!(!ask(&locks, 3, "d", Exclusive, FOREVER).unwrap());
        locks.release(3);
        assert!(second.join().unwrap().unwrap());
        locks.release(2);
        assert!(first.join().unwrap().unwrap());
        locks.release(1);
    });
    // Two transactions share a lock, and both want it exclusively.
    try_ask(&locks, 1, "k", Shared).unwrap();
    try_ask(&locks, 2, "k", Shared).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&locks, 1, "k", Exclusive, FOREVER));
        wait_for_waiters(&locks, 1);
        assert!(deadlock(ask(&locks, 2, "k", Exclusive, FOREVER)));
        locks.release(2);
        first.join().unwrap().unwrap();
    });
    locks.release(1);
    assert_eq!(locks.sizes(), (0, 0));
}

#[test]
fn a_waiter_that_stands_behind_another_waits_for_it_too() {
    let locks = Locks::default();
    try_ask(&locks, 1, "k", Shared).unwrap();
    try_ask(&locks, 3, "x", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| ask(&locks, 2, "k", Exclusive, FOREVER));
        wait_for_waiters(&locks, 1);
        // It is behind the second one in the queue, although the first one does not conflict with
        // it.
        let third = scope.spawn(|| ask(&locks, 3, "k", Shared, FOREVER));
        wait_for_waiters(&locks, 2);
        assert!(matches!(
            ask(&locks, 1, "x", Exclusive, FOREVER),
            Err(Error::Deadlock { ref keyspace, ref key }) if keyspace == "ks" && key == b"x"
        ));
        locks.release(1);
        second.join().unwrap().unwrap();
        locks.release(2);
        third.join().unwrap().unwrap();
    });
}

#[test]
fn closing_ends_all_waiting() {
    let locks = Locks::default();
    try_ask(&locks, 1, "k", Exclusive).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| ask(&locks, 2, "k", Shared, FOREVER));
        wait_for_waiters(&locks, 1);
        locks.close();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Closed)));
    });
    assert!(matches!(try_ask(&locks, 3, "other", Shared), Err(Error::Closed)));
}

struct Folded;

impl Comparator for Folded {
    fn name(&self) -> &str {
        "folded"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[test]
fn keys_that_an_order_calls_equal_are_one_key() {
    let locks = Locks::default();
    let order = OwnOrder::Custom(CustomOrder::new(Arc::new(Folded)));
    let ask = |holder, keyspace, key: &str| {
        let (key, mode, timeout) = (key.as_bytes(), Exclusive, Duration::ZERO);
        locks.lock(&Request {
            holder,
            keyspace,
            name: "ks",
            order: &order,
            key,
            mode,
            timeout,
            interrupted: None,
        })
    };
    ask(1, 7, "Key").unwrap();
    assert!(is_late(ask(2, 7, "kEY")));
    assert!(!ask(2, 8, "kEY").unwrap());
}

/// Many threads take locks on few keys in any order. An exclusive holder is alone on its key, and
/// no thread waits for ever.
#[test]
fn exclusion_holds_and_everybody_comes_to_an_end() {
    let locks = Locks::default();
    let inside: [AtomicU64; 4] = Default::default();
    let deadlocks = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (locks, inside, deadlocks) = (&locks, &inside, &deadlocks);
            scope.spawn(move || {
                let mut random = thread + 1;
                for round in 0..2_000 {
                    let holder = thread + 10 * round + 1;
                    let mut mine: Vec<(usize, u64)> = Vec::new();
                    for _ in 0..3 {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let key = (random >> 33) as usize % 4;
                        let mode = if random >> 40 & 1 == 0 { Shared } else { Exclusive };
                        match ask(locks, holder, &key.to_string(), mode, FOREVER) {
                            Ok(_) => {}
                            Err(Error::Deadlock { .. }) => {
                                deadlocks.fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                            Err(error) => panic!("{error}"),
                        }
                        // An exclusive holder counts 1000, a shared one 1.
                        let weight = if mode == Exclusive { 1000 } else { 1 };
                        let had: u64 = mine.iter().filter(|(k, _)| *k == key).map(|m| m.1).sum();
                        if weight > had {
                            inside[key].fetch_add(weight - had, Ordering::SeqCst);
                            mine.push((key, weight - had));
                        }
                        let now = inside[key].load(Ordering::SeqCst);
                        if had.max(weight) == 1000 {
                            assert_eq!(now, 1000, "two have a key exclusively");
                        } else {
                            assert!(now < 1000, "a key is shared with somebody who has it alone");
                        }
                    }
                    for (key, weight) in mine {
                        inside[key].fetch_sub(weight, Ordering::SeqCst);
                    }
                    locks.release(holder);
                }
            });
        }
    });
    eprintln!("{} deadlocks", deadlocks.load(Ordering::Relaxed));
    assert_eq!(locks.sizes(), (0, 0));
}

#[test]
fn a_wait_that_is_interrupted_ends_and_leaves_the_queue() {
    let locks = Locks::default();
    assert!(!try_ask(&locks, 1, "a", Exclusive).unwrap());
    let order = &OwnOrder::Bytewise;
    let request = Request {
        holder: 2,
        keyspace: 1,
        name: "ks",
        order,
        key: b"a",
        mode: Exclusive,
        timeout: Duration::MAX,
        interrupted: Some(|| true),
    };
    assert!(is_late(locks.lock(&request)));
    locks.release(1);
    assert!(!try_ask(&locks, 3, "a", Exclusive).unwrap(), "nobody stands before it");
}
