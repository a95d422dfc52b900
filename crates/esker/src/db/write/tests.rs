#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::*;
use crate::admission::PaceMode;
use crate::base::Comparator;
use crate::catalog::BranchState;
use crate::error::ErrorKind;
use crate::options::Options;
use crate::stats::counters::Written;
use crate::trace::Untimed;

struct Reverse;

impl Comparator for Reverse {
    fn name(&self) -> &str {
        "reverse"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

fn open() -> (tempfile::TempDir, Arc<Core>) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.memory = Some(8 << 20);
    options.memtable_bytes = Some(64 << 10);
    options.log_file_bytes = 64 << 10;
    options.workers = Some(1);
    let core = Core::open(&directory.path().join("db"), &options).unwrap();
    (directory, core)
}

fn put(keyspace: &KeyspaceState, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    Op::Put { keyspace: keyspace.id, key, value }.encode(&mut payload);
    payload
}

fn write<'a>(payload: &'a [u8], operations: u32, keyspaces: &'a [&KeyspaceState]) -> Write<'a> {
    let terms = Durability::Process.into();
    Write { payload, operations, keyspaces, terms, counts: Written::Put(0) }
}

/// Takes places in the line, as a writer does that then writes for ever.
fn take_places(core: &Core, bytes: u64) -> Admission {
    core.pacer.admit_at(bytes, &mut None, core.pacer.uptime())
}

/// Bytes of log that are kept for the memtables.
fn kept(core: &Core) -> u64 {
    core.writable().unwrap().reserved() - core.state_now().log_start()
}

#[test]
fn what_is_refused_behind_its_reservation_makes_the_log_no_longer_than_its_budget() {
    let (_directory, core) = open();
    let gone = core.keyspace("gone", None).unwrap();
    core.drop_keyspace("gone").unwrap();
    let payload = put(&gone, b"k", &[1; 20_000]);
    let spaces: [&KeyspaceState; 1] = [&gone];
    let (write, len) = (write(&payload, 1, &spaces), payload.len() as u64);
    let pipeline = core.writable().unwrap();
    for round in 0..500 {
        if !core.pacer.is_open() {
            core.wait_for_admission(len, false, true).unwrap();
        }
        // As if the keyspace was dropped after the first check of it.
        let refused = core.commit(pipeline, &write, None, |_, _| unreachable!(), &mut Untimed);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::KeyspaceDropped);
        let allowed = crate::options::settings::log_budget(core.settings.memtable_bytes) + len + 32;
        assert!(kept(&core) <= allowed, "round {round}: {} bytes of log", kept(&core));
    }
    core.flush().unwrap();
    // One that is written to, one that is prepared, and two for later.
    assert!(pipeline.file_bytes() <= 4 * (64 << 10), "{} bytes", pipeline.file_bytes());
    core.close().unwrap();
}

#[test]
fn a_flush_lets_the_log_go_though_nothing_is_in_memory() {
    let (_directory, core) = open();
    let gone = core.keyspace("gone", None).unwrap();
    core.drop_keyspace("gone").unwrap();
    core.flush().unwrap();
    let payload = put(&gone, b"k", &[1; 30_000]);
    let spaces: [&KeyspaceState; 1] = [&gone];
    let write = write(&payload, 1, &spaces);
    let pipeline = core.writable().unwrap();
    core.commit(pipeline, &write, None, |_, _| unreachable!(), &mut Untimed).unwrap_err();
    assert!(kept(&core) > 30_000 && core.state_now().active().is_empty());
    core.flush().unwrap();
    assert_eq!(core.store.lock().log_start, pipeline.reserved());
    let written = core.stats(0).written.manifest;
    core.flush().unwrap();
    assert_eq!(core.stats(0).written.manifest, written, "there is nothing more to let go");
    core.commit(pipeline, &write, None, |_, _| unreachable!(), &mut Untimed).unwrap_err();
    let end = pipeline.reserved();
    core.close().unwrap();
    assert_eq!(core.store.lock().log_start, end, "neither does a closed database keep it");
}

#[test]
fn a_logged_operation_that_cannot_be_decoded_poisons() {
    for (damaged, operations) in [(false, 2), (true, 1), (true, 2)] {
        let (_directory, core) = open();
        let default = core.catalog.lock().by_id(0).cloned().unwrap();
        let spaces: [&KeyspaceState; 1] = [&default];
        let good = put(&default, b"k", b"v");
        core.write(&write(&good, 1, &spaces)).unwrap();
        let visible = core.visible();
        let mut bad = good.clone();
        if damaged {
            bad.push(0xff);
        }
        let refused = core.write(&write(&bad, operations, &spaces)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Poisoned);
        assert!(refused.to_string().contains("log operation"), "{refused}");
        assert_eq!(core.visible(), visible, "nobody sees the half of it");
        let later = core.write(&write(&good, 1, &spaces)).unwrap_err();
        assert_eq!(later.kind(), ErrorKind::Poisoned);
        assert_eq!(core.close().unwrap_err().kind(), ErrorKind::Poisoned);
    }
}

#[test]
fn in_an_order_of_its_own_it_is_refused_before_it_is_logged() {
    let (_directory, core) = open();
    let space = core.keyspace("reverse", Some(Arc::new(Reverse))).unwrap();
    let spaces: [&KeyspaceState; 1] = [&space];
    let good = put(&space, b"k", b"v");
    let bytes = || core.state_now().active().bytes();
    core.write(&write(&good, 1, &spaces)).unwrap();
    let before = (core.writable().unwrap().reserved(), bytes());
    let bad = [&good[..], &[0xff]].concat();
    for (payload, operations) in [(&bad, 1), (&bad, 2), (&good, 2)] {
        let refused = core.write(&write(payload, operations, &spaces)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corruption, "{refused}");
    }
    assert_eq!((core.writable().unwrap().reserved(), bytes()), before);
    core.write(&write(&good, 1, &spaces)).unwrap();
    core.close().unwrap();
}

#[test]
fn a_writer_that_is_woken_before_its_time_goes_on_waiting() {
    let (_directory, core) = open();
    core.pacer.update(Debts { memtables: 90, budget: 100, log_budget: 1, ..Debts::default() });
    // The line before it is so long that its turn never comes.
    assert_eq!(take_places(&core, 1 << 50), Admission::Go);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| core.wait_for_admission(1, false, true));
        for _ in 0..5000 {
            core.room.notify();
            std::thread::yield_now();
        }
        assert!(!writer.is_finished());
        core.pacer.update(Debts::default());
        core.room.notify();
        writer.join().unwrap().unwrap();
    });
    core.close().unwrap();
}

#[test]
fn writers_that_were_slowed_are_woken_when_they_may_go_on() {
    use crate::admission::Debts;
    let (_directory, core) = open();
    let budget = 100 << 20;
    core.pacer.update(Debts { memtables: 90 << 20, budget, log_budget: 1, ..Debts::default() });
    assert!(!core.pacer.is_open());
    let seen = core.room.epoch();
    core.update_pace();
    assert!(core.pacer.is_open());
    assert_ne!(core.room.epoch(), seen, "nobody was told");
    core.close().unwrap();
}

#[test]
fn each_wait_for_admission_has_its_cause() {
    let paced = |memtables, deltas| Debts {
        memtables,
        budget: 100,
        log_budget: 1,
        deltas,
        bases: 100,
        ..Debts::default()
    };
    for (debts, cause, mode) in [
        (paced(90, 0), Cause::FlushDebt, PaceMode::FlushDebt),
        (paced(0, 150), Cause::CompactionDebt, PaceMode::CompactionDebt),
        (paced(100, 0), Cause::Memory, PaceMode::Stopped),
    ] {
        let (_directory, core) = open();
        core.pacer.update(debts);
        let pace = core.stats(0).pace;
        assert_eq!(pace.mode, mode);
        assert_eq!(pace.limit > 0, mode != PaceMode::Stopped);
        take_places(&core, 1 << 50);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                core.wait_for_admission(1, false, true).unwrap();
                crate::waits::take_tally()
            });
            while Cause::ALL.iter().all(|any| core.waits.of(*any).count == 0) {
                core.room.notify();
                std::thread::yield_now();
            }
            core.pacer.update(Debts::default());
            core.room.notify();
            let tally = writer.join().unwrap();
            let waits = core.stats(0).waits;
            for other in Cause::ALL {
                let waited = waits.of(other);
                assert_eq!(waited.count > 0, other == cause, "{other:?}: {waited:?}");
                assert_eq!(u128::from(tally[other as usize]), waited.total.as_nanos());
                assert_eq!(waited.buckets.iter().sum::<u64>(), waited.count);
            }
        });
        assert_eq!(core.stats(0).pace, Default::default());
        core.close().unwrap();
    }
}

#[test]
fn what_keeps_the_log_is_named() {
    use crate::stats::report::LogHolder;
    let (_directory, core) = open();
    let default = core.catalog.lock().by_id(0).cloned().unwrap();
    let spaces: [&KeyspaceState; 1] = [&default];
    let payload = put(&default, b"k", b"v");
    let holder = || core.stats(0).log.holder;
    let seal = || {
        core.write(&write(&payload, 1, &spaces)).unwrap();
        assert!(core.seal(core.writable().unwrap(), &core.state_now()));
    };
    // While a test has the right to flush, no worker flushes.
    let take_flush = || {
        while !core.work.begin_flush() {
            std::thread::yield_now();
        }
    };
    assert_eq!(holder(), LogHolder::Nothing);
    core.write(&write(&payload, 1, &spaces)).unwrap();
    assert_eq!(holder(), LogHolder::Memtable);
    take_flush();
    seal();
    assert_eq!(holder(), LogHolder::PendingFlush);
    core.work.end_flush(None);
    core.flush().unwrap();
    assert_eq!(holder(), LogHolder::Nothing);
    take_flush();
    core.work.end_flush(Some(Error::Closed));
    take_flush();
    seal();
    assert_eq!(holder(), LogHolder::FailedFlush);
    core.work.end_flush(None);
    core.close().unwrap();
}

/// A write that must find what it read unchanged waits for others of its kind before it has a place
/// in the log: so nobody waits for it.
#[test]
fn who_waits_for_its_turn_to_commit_has_no_place_yet() {
    let (_directory, core) = open();
    let default = core.catalog.lock().by_id(0).cloned().unwrap();
    let spaces: [&KeyspaceState; 1] = [&default];
    let (read, other) = (put(&default, b"read", b"v"), put(&default, b"other", b"v"));
    for _ in 0..50 {
        // As long as it is open, what was flushed since its begin is kept for its validation.
        let (at, number) = core.begin_transaction().unwrap();
        let mut reads = ReadSet::new(1 << 20);
        reads.key(&default, b"read", at);
        let begun = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let turn = core.transactions.one_at_a_time();
            let conditional = scope.spawn(|| {
                begun.wait();
                core.write_if_unchanged(&write(&read, 1, &spaces), Some(&reads))
            });
            begun.wait();
            for _ in 0..200 {
                let end = core.write(&write(&other, 1, &spaces)).unwrap();
                assert_eq!((core.visible(), core.writable().unwrap().reserved()), (end, end));
            }
            drop(turn);
            conditional.join().unwrap().unwrap();
        });
        core.end_transaction(at, number);
    }
    core.close().unwrap();
}

#[test]
fn a_write_that_does_not_wait_is_told_why_and_leaves_nothing() {
    let paced = |memtables, deltas| Debts {
        memtables,
        budget: 100,
        log_budget: 1,
        deltas,
        bases: 100,
        ..Debts::default()
    };
    for (debts, cause) in [
        (paced(90, 0), Cause::FlushDebt),
        (paced(0, 150), Cause::CompactionDebt),
        (paced(100, 0), Cause::Memory),
    ] {
        let (_directory, core) = open();
        let default = core.catalog.lock().by_id(0).cloned().unwrap();
        let spaces: [&KeyspaceState; 1] = [&default];
        let payload = put(&default, b"k", b"v");
        let terms = Terms::impatient(Durability::Process);
        let write = Write { terms, ..write(&payload, 1, &spaces) };
        core.pacer.update(debts);
        take_places(&core, 1 << 50);
        let pipeline = core.writable().unwrap();
        let before = (pipeline.reserved(), core.visible());
        for _ in 0..100 {
            let Err(Error::WouldBlock { reason, retry_after }) = core.write(&write) else {
                panic!("it waited or went on");
            };
            assert_eq!(reason, cause);
            assert!(retry_after > Duration::ZERO);
        }
        assert_eq!((pipeline.reserved(), core.visible()), before, "nothing was written");
        assert!(Cause::ALL.iter().all(|any| core.waits.of(*any).count == 0), "it waited");
        core.pacer.update(Debts::default());
        core.write(&write).unwrap();
        core.close().unwrap();
    }
}

/// Nothing wakes a worker when writes end, so it looks for that; with one worker and with several.
#[test]
fn pointers_are_merged_in_a_pause_of_the_writes() {
    for workers in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        (options.memtable_bytes, options.workers) = (Some(8 << 20), Some(workers));
        let core = Core::open(&directory.path().join("db"), &options).unwrap();
        let keyspace = core.default_keyspace(&BranchState::main()).unwrap();
        let set = core.state_now().active().clone();
        let group = set.bytewise();
        let mut number = 0_u64;
        // Fewer than those whose pointers are merged beside writes.
        while group.count() < 4 {
            number += 1;
            let payload = put(&keyspace, &number.to_be_bytes(), &[7; 1000]);
            core.write(&write(&payload, 1, &[&keyspace])).unwrap();
        }
        let sources = || {
            let mut sources = 0;
            group.cursors(keyspace.id, |_, _, _| sources += 1);
            sources
        };
        while sources() > 2 {
            std::thread::yield_now();
        }
        core.close().unwrap();
    }
}
