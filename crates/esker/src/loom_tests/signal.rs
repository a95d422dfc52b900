//! Waiting without polling: [`Signal`] between a thread that closes a database and its waiters.

use super::model;
use crate::sync::Signal;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

/// Each waiter wakes, or loom reports a deadlock: a waiter takes the signal's count before it
/// looks at the flag, as workers do.
#[test]
fn close_wakes_everybody() {
    model(3, || {
        let shared = Arc::new((Signal::new(), AtomicBool::new(false)));
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (signal, closing) = &*shared;
                    loop {
                        let seen = signal.epoch();
                        if closing.load(Ordering::Acquire) {
                            return;
                        }
                        signal.wait_past(seen);
                    }
                })
            })
            .collect();
        let (signal, closing) = &*shared;
        closing.store(true, Ordering::Release);
        signal.notify();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// The same without the sleep, which loom cannot unwind from: a waiter that saw no flag goes
/// to sleep on the count that it took, and the count must have moved when close is done.
fn close_and_count(flag_first: bool) {
    model(8, move || {
        let shared = Arc::new((Signal::new(), AtomicBool::new(false)));
        let waiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let seen = shared.0.epoch();
                (!shared.1.load(Ordering::Acquire)).then_some(seen)
            })
        };
        let (signal, closing) = &*shared;
        if flag_first {
            closing.store(true, Ordering::Release);
        }
        signal.notify();
        closing.store(true, Ordering::Release);
        if let Some(asleep_on) = waiter.join().unwrap() {
            assert!(signal.epoch() > asleep_on, "asleep for ever");
        }
    });
}

#[test]
fn whoever_missed_the_flag_meets_the_signal() {
    close_and_count(true);
}

#[test]
#[should_panic(expected = "asleep for ever")]
fn a_signal_before_the_flag_is_found_out() {
    close_and_count(false);
}
