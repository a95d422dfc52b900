use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::{EpochCell, EpochSlot, Latch, Signal, pin};
use crate::error::{Error, ErrorKind};

/// Counts its living instances and carries a value that is destroyed with it.
struct Tracked {
    value: u64,
    check: u64,
    alive: Arc<AtomicUsize>,
}

impl Tracked {
    fn new(value: u64, alive: &Arc<AtomicUsize>) -> Arc<Self> {
        alive.fetch_add(1, Ordering::SeqCst);
        Arc::new(Self { value, check: !value, alive: Arc::clone(alive) })
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.check = 0;
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Lets the collector run until `done`; it makes progress with each pin of any thread.
fn collect_until(done: impl Fn() -> bool) {
    while !done() {
        pin().flush();
        thread::yield_now();
    }
}

#[test]
fn a_cell_gives_what_was_stored_last() {
    let alive = Arc::new(AtomicUsize::new(0));
    let cell = EpochCell::new(Tracked::new(1, &alive));
    assert_eq!(cell.load(&pin()).value, 1);
    let kept = cell.load_arc();
    cell.swap(Tracked::new(2, &alive));
    assert_eq!(cell.load(&pin()).value, 2);
    assert_eq!(kept.value, 1, "an owned value does not change");
    assert_eq!(kept.check, !1);
    drop(kept);
    collect_until(|| alive.load(Ordering::SeqCst) == 1);
    drop(cell);
    collect_until(|| alive.load(Ordering::SeqCst) == 0);
}

#[test]
fn a_guard_keeps_what_it_loaded_alive() {
    let alive = Arc::new(AtomicUsize::new(0));
    let cell = EpochCell::new(Tracked::new(7, &alive));
    let guard = pin();
    let seen = cell.load(&guard);
    cell.swap(Tracked::new(8, &alive));
    drop(cell);
    for _ in 0..1_000 {
        pin().flush();
    }
    assert_eq!((seen.value, seen.check), (7, !7), "both the swap and the drop must wait");
    assert!(alive.load(Ordering::SeqCst) >= 1);
    drop(guard);
    collect_until(|| alive.load(Ordering::SeqCst) == 0);
}

#[test]
fn readers_see_whole_values_in_order_while_a_writer_swaps() {
    let alive = Arc::new(AtomicUsize::new(0));
    let cell = Arc::new(EpochCell::new(Tracked::new(0, &alive)));
    let swaps = 5_000;
    thread::scope(|scope| {
        for reader in 0..3 {
            let cell = Arc::clone(&cell);
            scope.spawn(move || {
                let mut last = 0;
                while last < swaps {
                    let (value, check) = if reader == 0 {
                        let owned = cell.load_arc();
                        (owned.value, owned.check)
                    } else {
                        let guard = pin();
                        let seen = cell.load(&guard);
                        (seen.value, seen.check)
                    };
                    assert_eq!(check, !value, "a destroyed value was read");
                    assert!(value >= last, "the cell went back from {last} to {value}");
                    last = value;
                }
            });
        }
        scope.spawn(|| (1..=swaps).for_each(|value| cell.swap(Tracked::new(value, &alive))));
    });
    drop(cell);
    collect_until(|| alive.load(Ordering::SeqCst) == 0);
}

#[test]
fn the_first_failure_stays() {
    let latch = Latch::new();
    assert!(latch.check().is_ok());
    assert!(latch.get().is_none());
    latch.fail(Error::Closed);
    latch.fail(Error::ReadOnly);
    assert_eq!(latch.get().map(|error| error.kind()), Some(ErrorKind::Closed));
    match latch.check() {
        Err(Error::Poisoned { cause }) => assert_eq!(cause.kind(), ErrorKind::Closed),
        other => panic!("expected a poisoned latch, got {other:?}"),
    }
}

#[test]
fn a_failure_that_is_poisoned_already_is_not_wrapped_again() {
    let latch = Latch::new();
    latch.fail(Error::Closed.poisoning());
    match latch.check() {
        Err(Error::Poisoned { cause }) => assert_eq!(cause.kind(), ErrorKind::Closed),
        other => panic!("expected a poisoned latch, got {other:?}"),
    }
}

#[test]
fn an_event_before_the_wait_is_not_lost() {
    let signal = Signal::new();
    let before = signal.epoch();
    signal.notify();
    assert_eq!(signal.wait_past(before), before + 1);
    assert!(signal.wait_past_timeout(before, Duration::ZERO));
    assert!(!signal.wait_past_timeout(signal.epoch(), Duration::from_millis(1)));
    assert!(signal.wait_past_timeout(before, Duration::MAX));
}

#[test]
fn ping_pong_never_hangs() {
    let (ping, pong) = (Signal::new(), Signal::new());
    let turns = AtomicU64::new(0);
    let rounds = 20_000;
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..rounds {
                ping.wait_past(round);
                turns.fetch_add(1, Ordering::SeqCst);
                pong.notify();
            }
        });
        for round in 0..rounds {
            ping.notify();
            if round % 2 == 0 {
                pong.wait_past(round);
            } else {
                while !pong.wait_past_timeout(round, Duration::from_secs(3600)) {}
            }
        }
    });
    assert_eq!(turns.load(Ordering::SeqCst), rounds);
}

#[test]
fn one_event_wakes_all_waiters() {
    let signal = Signal::new();
    let waiting = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                waiting.fetch_add(1, Ordering::SeqCst);
                signal.wait_past(0);
            });
        }
        while waiting.load(Ordering::SeqCst) < 8 {
            thread::yield_now();
        }
        signal.notify();
    });
    assert_eq!(signal.epoch(), 1);
}

#[test]
fn a_slot_gives_what_it_holds_until_it_is_cleared() {
    let alive = Arc::new(AtomicUsize::new(0));
    let mut slot = EpochSlot::empty();
    assert!(!slot.is_full() && slot.load(&pin()).is_none() && slot.load_arc().is_none());
    slot.fill(Tracked::new(1, &alive));
    assert_eq!((slot.is_full(), slot.get_mut().map(|tracked| tracked.value)), (true, Some(1)));
    let guard = pin();
    let (seen, kept) = (slot.load(&guard).unwrap(), slot.load_arc().unwrap());
    slot.fill(Tracked::new(2, &alive));
    slot.clear();
    for _ in 0..1_000 {
        pin().flush();
    }
    assert_eq!((seen.value, seen.check), (1, !1), "a guard keeps what was cleared");
    assert!(!slot.is_full() && slot.load(&guard).is_none());
    drop(guard);
    collect_until(|| alive.load(Ordering::SeqCst) == 1);
    assert_eq!((kept.value, kept.check), (1, !1), "so does an owner");
    drop(kept);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    // Nobody borrows a slot that is dropped, so what it holds goes at once.
    slot.fill(Tracked::new(3, &alive));
    drop(slot);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn readers_see_whole_values_or_none_while_a_slot_is_filled_and_cleared() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (slot, done) = (EpochSlot::empty(), AtomicU64::new(0));
    thread::scope(|scope| {
        for reader in 0..3 {
            let (slot, done) = (&slot, &done);
            scope.spawn(move || {
                while done.load(Ordering::Relaxed) == 0 {
                    let guard = pin();
                    let owned = if reader == 0 { slot.load_arc() } else { None };
                    let seen = owned.as_deref().or_else(|| slot.load(&guard));
                    if let Some(Tracked { value, check, .. }) = seen {
                        assert_eq!(*check, !value, "a destroyed value was read");
                    }
                }
            });
        }
        scope.spawn(|| {
            for value in 0..5_000 {
                slot.fill(Tracked::new(value, &alive));
                slot.clear();
            }
            done.store(1, Ordering::Relaxed);
        });
    });
    drop(slot);
    collect_until(|| alive.load(Ordering::SeqCst) == 0);
}
