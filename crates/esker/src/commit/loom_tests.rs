//! Models of the protocol, run by loom over all interleavings (within a bound of preemptions).
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p esker --lib loom`

use super::ring::{Refused, Ring};
use crate::loom_tests::{reserve, ring};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// Explores all interleavings with at most two preemptions; a higher bound would only take more
/// time.
fn model(f: impl Fn() + Send + Sync + 'static) {
    crate::loom_tests::model(2, f);
}

#[test]
fn all_completions_are_published_and_no_waiter_sleeps_for_ever() {
    model(|| {
        let ring = ring();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    let ticket = reserve(&ring, 16);
                    ring.complete(&ticket);
                    assert!(ring.wait_visible(ticket.end));
                })
            })
            .collect();
        let ticket = reserve(&ring, 16);
        ring.complete(&ticket);
        assert!(ring.wait_visible(ticket.end));
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(ring.visible(), 8 + 48);
    });
}

#[test]
fn nobody_reserves_in_space_that_was_taken_back() {
    model(|| {
        let ring = ring();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    let ticket = ring.try_reserve(16).ok()?;
                    ring.complete(&ticket);
                    Some(ticket.end)
                })
            })
            .collect();
        let ticket = ring.retreat(32, Some);
        ticket.iter().for_each(|ticket| ring.complete(ticket));
        let ends: Vec<u64> = writers.into_iter().filter_map(|w| w.join().unwrap()).collect();
        if let Some(ticket) = ticket {
            assert!(ends.iter().all(|end| *end <= ticket.start), "{ends:?} behind {ticket:?}");
            assert_eq!(ring.visible(), ticket.end);
            assert!(matches!(ring.try_reserve(16), Err(Refused::Space { .. })));
        }
    });
}

#[test]
fn what_is_visible_was_written() {
    // Data that a writer stores before it completes is visible to every thread that sees it
    // published.
    model(|| {
        let ring = ring();
        let cells = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let (ring, cells) = (Arc::clone(&ring), Arc::clone(&cells));
                thread::spawn(move || {
                    let ticket = reserve(&ring, 8);
                    cells[(ticket.start / 8 - 1) as usize].store(1, Ordering::Relaxed);
                    ring.complete(&ticket);
                })
            })
            .collect();
        let visible = ring.visible();
        for cell in cells.iter().take((visible / 8 - 1) as usize) {
            assert_eq!(cell.load(Ordering::Relaxed), 1);
        }
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(ring.visible(), 24);
    });
}

#[test]
fn a_full_ring_waits_and_reuses_its_slots() {
    model(|| {
        let ring = Arc::new(Ring::new(2, 8));
        ring.raise_limit(1000);
        let other = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                for _ in 0..2 {
                    let ticket = reserve(&ring, 8);
                    ring.complete(&ticket);
                }
            })
        };
        for _ in 0..2 {
            let ticket = reserve(&ring, 8);
            ring.complete(&ticket);
            assert!(ring.wait_visible(ticket.end));
        }
        other.join().unwrap();
        assert_eq!(ring.visible(), 8 + 32);
    });
}

#[test]
fn nobody_reserves_while_the_gate_is_closed() {
    model(|| {
        let ring = ring();
        let writer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let ticket = reserve(&ring, 8);
                ring.complete(&ticket);
            })
        };
        let sealed = ring.seal(|position| {
            assert_eq!(ring.reserved(), position);
            assert_eq!(ring.try_reserve(8), Err(Refused::Gate));
            position
        });
        assert!(ring.wait_visible(sealed));
        writer.join().unwrap();
    });
}

#[test]
fn a_stopped_ring_lets_every_waiter_go() {
    model(|| {
        let ring = ring();
        // This ticket is never completed: its writer unwound.
        let lost = reserve(&ring, 8);
        let waiter = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let ticket = reserve(&ring, 8);
                ring.complete(&ticket);
                assert!(!ring.wait_visible(ticket.end));
            })
        };
        ring.stop();
        assert!(!ring.wait_visible(lost.end));
        waiter.join().unwrap();
        assert_eq!(ring.visible(), 8);
    });
}

#[test]
fn space_that_is_raised_is_reserved_once() {
    // The switch of log files: one thread prepares while others reach the end of the space.
    model(|| {
        let ring = Arc::new(Ring::new(4, 8));
        ring.raise_limit(16);
        let prepared = Arc::new(AtomicU64::new(16));
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let (ring, prepared) = (Arc::clone(&ring), Arc::clone(&prepared));
                thread::spawn(move || {
                    loop {
                        match ring.try_reserve(8) {
                            Ok(ticket) => {
                                assert!(ticket.end <= prepared.load(Ordering::Relaxed));
                                ring.complete(&ticket);
                                return ticket.start;
                            }
                            Err(Refused::Space { end }) => {
                                prepared.fetch_max(end, Ordering::Relaxed);
                                ring.raise_limit(end);
                            }
                            Err(refused) => panic!("{refused:?}"),
                        }
                    }
                })
            })
            .collect();
        let mut starts: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        starts.sort_unstable();
        assert_eq!(starts, [8, 16]);
        assert_eq!(ring.visible(), 24);
    });
}

#[test]
fn shutting_leaves_no_reservation_behind_the_end() {
    model(|| {
        let ring = ring();
        let writer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                loop {
                    match ring.try_reserve(8) {
                        Ok(ticket) => {
                            ring.complete(&ticket);
                            return Some(ticket.end);
                        }
                        Err(Refused::Gate) if !ring.wait_gate() => return None,
                        Err(_) => {}
                    }
                }
            })
        };
        let (end, first) = ring.shut();
        assert!(first);
        assert!(ring.wait_visible(end));
        assert!(writer.join().unwrap().is_none_or(|written| written <= end));
    });
}

/// A commit that fails if its reads were overtaken: reserve, wait for predecessors, validate, then
/// apply or leave a void (R20). `mine` and `others` stand for two keys in the memtable: the number
/// of their newest version, 0 if there is none. Returns whether it committed.
fn commit_if_unchanged(ring: &Ring, since: u64, mine: &AtomicU64, others: &AtomicU64) -> bool {
    let seen = ring.visible();
    let is_new = |seq: u64, upto: u64| since <= seq && seq < upto;
    if is_new(others.load(Ordering::Relaxed), seen) {
        return false;
    }
    let ticket = reserve(ring, 8);
    if ticket.start != seen {
        assert!(ring.wait_visible(ticket.start));
        if is_new(others.load(Ordering::Relaxed), ticket.start) {
            ring.complete(&ticket);
            return false;
        }
    }
    mine.store(ticket.start, Ordering::Relaxed);
    ring.complete(&ticket);
    true
}

#[test]
fn of_two_commits_that_read_what_the_other_writes_one_fails() {
    model(|| {
        let ring = ring();
        let keys = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let since = ring.visible();
        let other = {
            let (ring, keys) = (Arc::clone(&ring), Arc::clone(&keys));
            thread::spawn(move || commit_if_unchanged(&ring, since, &keys[0], &keys[1]))
        };
        let one = commit_if_unchanged(&ring, since, &keys[1], &keys[0]);
        let other = other.join().unwrap();
        assert!(one != other, "{one} and {other}");
    });
}

#[test]
fn a_commit_that_waits_and_a_seal_do_not_wait_for_each_other() {
    model(|| {
        let ring = ring();
        let keys = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let since = ring.visible();
        let plain = {
            let (ring, keys) = (Arc::clone(&ring), Arc::clone(&keys));
            thread::spawn(move || {
                let ticket = reserve(&ring, 8);
                keys[0].store(ticket.start, Ordering::Relaxed);
                ring.complete(&ticket);
                // The thread that filled the memtable seals it, and waits for the writes before the
                // seal.
                let border = ring.seal(|position| position);
                assert!(ring.wait_visible(border));
            })
        };
        commit_if_unchanged(&ring, since, &keys[1], &keys[0]);
        plain.join().unwrap();
        // The second thread knows of the first.
        let [plain, mine] = [&keys[0], &keys[1]].map(|key| key.load(Ordering::Relaxed));
        assert!(mine == 0 || mine < plain);
    });
}
