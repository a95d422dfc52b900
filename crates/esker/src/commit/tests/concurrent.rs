//! Many threads at once: order, seals, group commit, and the ring's bounds.

use super::*;
use crate::commit::ring::{Refused, Ring};
use crate::wal::memfs::{Rng, seed};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn writers_see_their_own_writes_and_all_are_replayed() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 64 << 10);
        let applied = Mutex::new(BTreeMap::new());
        let written = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for thread in 0u64..8 {
                let (log, applied, written) = (&log, &applied, &written);
                scope.spawn(move || {
                    let mut rng = Rng::new(thread + 1);
                    for _ in 0..400 {
                        let len = 8 + rng.below(200) as usize;
                        let payload = rng.bytes(len);
                        let mut start = 0;
                        let apply = |(): &(), seq| {
                            start = seq;
                            applied.lock().unwrap().insert(seq, payload.clone());
                            Ok(())
                        };
                        let end =
                            log.write(&payload, 1, Class::Process, |_| Ok(()), apply).unwrap();
                        assert!(log.visible() >= end);
                        written.lock().unwrap().insert(start, payload);
                    }
                });
            }
        });
        let written = written.into_inner().unwrap();
        assert_eq!(applied.into_inner().unwrap(), written);
        let (batches, _) = replay(&fs).unwrap();
        let replayed: BTreeMap<_, _> =
            batches.into_iter().map(|batch| (batch.start, batch.payload)).collect();
        assert_eq!(replayed, written);
    }
}

#[test]
fn a_seal_separates_earlier_from_later_writes() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 64 << 10);
        let generation = AtomicU64::new(0);
        let borders = Mutex::new(vec![FIRST]);
        let seen = Mutex::new(Vec::new());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|_| {
                    let (log, generation, seen, done) = (&log, &generation, &seen, &done);
                    scope.spawn(move || {
                        while !done.load(Ordering::Relaxed) {
                            // What a writer reads after its reservation is at least as new as the
                            // border below it.
                            let check = |seq| Ok((seq, generation.load(Ordering::Relaxed)));
                            let apply = |pair: &(u64, u64), _| {
                                seen.lock().unwrap().push(*pair);
                                Ok(())
                            };
                            log.write(b"payload", 1, Class::Process, check, apply).unwrap();
                        }
                    })
                })
                .collect();
            let (log, generation, borders, done) = (&log, &generation, &borders, &done);
            scope.spawn(move || {
                for _ in 0..200 {
                    let border = log.seal(|position| {
                        borders.lock().unwrap().push(position);
                        generation.fetch_add(1, Ordering::Relaxed);
                        position
                    });
                    log.wait_visible(border).unwrap();
                    std::thread::yield_now();
                }
                done.store(true, Ordering::Relaxed);
            });
            for writer in writers {
                writer.join().unwrap();
            }
        });
        let borders = borders.into_inner().unwrap();
        assert!(borders.is_sorted() && borders.len() == 201);
        for (seq, generation) in seen.into_inner().unwrap() {
            assert!(seq >= borders[0]);
            let below = borders.partition_point(|border| *border <= seq) as u64 - 1;
            assert!(generation >= below, "generation {generation} at {seq}, border {below}");
        }
    }
}

#[test]
fn a_group_shares_its_syncs() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 1 << 20);
        std::thread::scope(|scope| {
            for thread in 0u8..16 {
                let log = &log;
                scope.spawn(move || {
                    for round in 0..50 {
                        let class = if round % 5 == 0 { Class::Process } else { Class::Disk };
                        let end = put(log, &[thread; 64], class).unwrap();
                        assert!(class == Class::Process || log.synced() >= end);
                    }
                });
            }
        });
        let counters = log.counters();
        assert!(counters.syncs > 0 && counters.syncs <= 16 * 40, "{counters:?}");
        let mut rng = Rng::new(1);
        let synced = log.synced();
        let (batches, recovered) = replay(&fs.power_cut(&mut rng, 0)).unwrap();
        assert!(recovered.end >= synced);
        assert!(batches.len() >= 16 * 40);
    }
}

#[test]
fn no_member_of_a_group_is_told_that_a_failed_sync_succeeded() {
    for kind in KINDS {
        let mut rng = Rng::new(seed(31));
        for _ in 0..30 {
            let fs = MemFs::new();
            let log = create(&fs, kind, 64 << 10);
            let acknowledged = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for thread in 0u8..8 {
                    let (log, acknowledged) = (&log, &acknowledged);
                    scope.spawn(move || {
                        for round in 0u8..50 {
                            let payload = vec![thread, round];
                            match put(log, &payload, Class::Disk) {
                                Ok(_) => acknowledged.lock().unwrap().push(payload),
                                Err(Error::Poisoned { .. }) => return,
                                Err(error) => panic!("{error}"),
                            }
                        }
                    });
                }
                for _ in 0..rng.below(200) {
                    std::thread::yield_now();
                }
                fs.knobs.fail_sync.store(true, Ordering::Relaxed);
            });
            assert_eq!(fs.knobs.syncs_after_failure.load(Ordering::Relaxed), 0);
            let survived = payloads(&replay(&fs.power_cut(&mut rng, 40)).unwrap().0);
            for payload in acknowledged.into_inner().unwrap() {
                assert!(survived.contains(&payload), "{payload:?} was acknowledged and lost");
            }
        }
    }
}

#[test]
fn a_failure_elsewhere_ends_all_that_wait_for_a_sync() {
    for kind in KINDS {
        let mut rng = Rng::new(seed(32));
        for _ in 0..30 {
            let fs = MemFs::new();
            let latch = Arc::new(Latch::new());
            let config = config(&fs, kind, 64 << 10);
            let log = Pipeline::create(config, FIRST, Arc::clone(&latch)).unwrap();
            // The scope ends only when all threads have.
            std::thread::scope(|scope| {
                for thread in 0u8..8 {
                    let log = &log;
                    scope.spawn(move || while put(log, &[thread; 32], Class::Disk).is_ok() {});
                }
                for _ in 0..rng.below(200) {
                    std::thread::yield_now();
                }
                latch.fail(Error::invalid("the manifest cannot be written"));
            });
        }
    }
}

#[test]
fn images_of_a_killed_process_hold_all_that_was_acknowledged() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 64 << 10);
        let acknowledged = Mutex::new(Vec::new());
        let running = AtomicU64::new(4);
        std::thread::scope(|scope| {
            for thread in 0u64..4 {
                let (log, acknowledged, running) = (&log, &acknowledged, &running);
                scope.spawn(move || {
                    for round in 0..300u64 {
                        let payload = (thread << 32 | round).to_le_bytes().to_vec();
                        put(log, &payload, Class::Process).unwrap();
                        acknowledged.lock().unwrap().push(payload);
                    }
                    running.fetch_sub(1, Ordering::Relaxed);
                });
            }
            while running.load(Ordering::Relaxed) > 0 {
                let before = acknowledged.lock().unwrap().clone();
                let image = fs.killed();
                let (batches, recovered) = replay(&image).unwrap();
                let found: std::collections::HashSet<_> = payloads(&batches).into_iter().collect();
                assert!(before.iter().all(|payload| found.contains(payload)));
                let again = resume(&image, kind, 64 << 10, recovered);
                put(&again, b"more", Class::Process).unwrap();
                assert_eq!(replay(&image).unwrap().0.len(), batches.len() + 1);
            }
        });
    }
}

#[test]
fn the_ring_bounds_the_tickets_in_flight_and_wraps() {
    let mut rng = Rng::new(seed(41));
    let ring = Ring::new(1024, 8);
    ring.raise_limit(1 << 40);
    let mut flying = Vec::new();
    let mut published = 8;
    for _ in 0..20_000 {
        let want = rng.below(3) > 0;
        match ring.try_reserve(8 + rng.below(9) * 8) {
            Ok(ticket) if want => flying.push(ticket),
            Ok(ticket) => {
                flying.push(ticket);
                for _ in 0..rng.below(4).min(flying.len() as u64) {
                    let index = rng.below(flying.len() as u64) as usize;
                    ring.complete(&flying.swap_remove(index));
                }
            }
            Err(Refused::Slots { visible }) => {
                assert_eq!(visible, ring.visible());
                let oldest = flying.iter().map(|ticket| ticket.start).min().unwrap();
                assert_eq!(visible, oldest, "the head stands at the oldest ticket");
                // The oldest one is taken out, and others at random.
                let index = flying.iter().position(|ticket| ticket.start == oldest).unwrap();
                ring.complete(&flying.swap_remove(index));
                assert!(ring.visible() > visible);
            }
            Err(refused) => panic!("{refused:?}"),
        }
        assert!(ring.visible() >= published);
        published = ring.visible();
        let oldest = flying.iter().map(|ticket| ticket.start).min();
        assert_eq!(ring.visible(), oldest.unwrap_or(ring.reserved()));
    }
    let fresh = Ring::new(1024, 8);
    fresh.raise_limit(1 << 40);
    let tickets: Vec<_> = std::iter::from_fn(|| fresh.try_reserve(8).ok()).collect();
    assert_eq!(tickets.len(), 1023);
    for ticket in tickets.iter().rev() {
        assert_eq!(fresh.visible(), 8);
        fresh.complete(ticket);
    }
    assert_eq!(fresh.visible(), fresh.reserved());
    assert!(fresh.try_reserve(8).is_ok());
}

#[test]
fn reservation_stops_at_the_prepared_space() {
    let ring = Ring::new(8, 8);
    ring.raise_limit(40);
    assert!(ring.try_reserve(24).is_ok());
    assert_eq!(ring.try_reserve(16), Err(Refused::Space { end: 48 }));
    assert!(ring.try_reserve(8).is_ok());
    ring.raise_limit(16);
    assert_eq!(ring.limit(), 40, "the space never shrinks");
}
