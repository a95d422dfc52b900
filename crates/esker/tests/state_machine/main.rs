//! Random operations on a database and on a map, compared at every step (C1, C3; R15 to R18, R21).
//!
//! `ESKER_MODEL_OPS` sets how many operations are done (60,000 by default), `ESKER_SEED` replays
//! one run of them. The background is held at its points and let go at random, so that everything
//! else happens between them. Small runs go through proptest, which makes a failing one smaller.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use esker_testkit::harness::TIERS_MAX;
use esker_testkit::machine::{KINDS, Machine, Reached, Step};
use esker_testkit::{Rng, parallel};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

mod held;

/// Operations of one run, after which a new database is begun.
const RUN: u64 = 5_000;
/// How many operations are done by default.
const OPERATIONS: u64 = 60_000;

fn run(seed: u64, operations: u64) -> Reached {
    let mut rng = Rng::new(seed);
    let mut machine = Machine::new(rng.next());
    for index in 0..operations {
        let step = Step { kind: rng.below(u64::from(KINDS)) as u16, seed: rng.next() };
        let done = catch_unwind(AssertUnwindSafe(|| machine.step(step)));
        if let Err(panic) = done {
            eprintln!("failed at operation {index}, {step:?}; replay: ESKER_SEED={seed}");
            resume_unwind(panic);
        }
    }
    let done = catch_unwind(AssertUnwindSafe(|| machine.finish()));
    done.unwrap_or_else(|panic| {
        eprintln!("failed at the end; replay: ESKER_SEED={seed}");
        resume_unwind(panic)
    })
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("the variable holds a number"))
}

#[test]
fn a_database_is_the_map_that_it_should_be() {
    if let Some(seed) = number("ESKER_SEED") {
        eprintln!("no difference; {:?}", run(seed, RUN));
        return;
    }
    let operations = number("ESKER_MODEL_OPS").unwrap_or(OPERATIONS);
    let first = if operations == OPERATIONS { 1 } else { 1_000 };
    let first = number("ESKER_FIRST_SEED").unwrap_or(first);
    let (done, reached) = (AtomicU64::new(0), Mutex::new(Reached::default()));
    parallel::for_each(|number| {
        let one = run(first + number, RUN);
        let mut all = reached.lock().unwrap();
        *all = all.and(one);
        done.fetch_add(RUN, Ordering::Relaxed) + RUN < operations
    });
    let (done, reached) = (done.into_inner(), reached.into_inner().unwrap());
    eprintln!("{done} operations, seeds from {first}, 0 differences; {reached:?}");
    if done >= OPERATIONS {
        // Else it does not try what it is there for, and finds nothing in it.
        assert_eq!(reached.tiers, TIERS_MAX, "{reached:?}");
        assert_eq!(reached.missing(), Vec::<&str>::new(), "{reached:?}");
        // A few large values leave a cache, too, in which everything else has room.
        for (count, per) in [
            (reached.blocks_left, 10),
            (reached.indexes_left, 10),
            (reached.blocks_again, 20),
            (reached.indexes_again, 200),
        ] {
            assert!(count * per >= done, "{count}, not one in {per} of {done}: {reached:?}");
        }
    }
}

/// Seeds, and how many operations it takes.
const SEEDS: [(u64, u64); 4] = [(1009, 1_800), (1064, 1_950), (1063, 50), (1013, 300)];

/// Runs that found something once: a dropped keyspace that came back with its comparator, a named
/// snapshot that lost what expired for a later one, files of compactions and flushes for trees that
/// went, compactions that were given up for a comparator that came later.
#[test]
fn what_was_found_once_stays_mended() {
    for (seed, operations) in SEEDS {
        run(seed, operations);
    }
}

/// The seed of a machine and its steps: a checkpoint that had a compacted ingestion and lacked a
/// write that was older.
const SHORT: (u64, [(u16, u64); 5]) = (
    224,
    [
        (1060, 0),
        (400, 7_765_678_834_797_092_211),
        (1055, 15_542_417_608_779_699_036),
        (93, 15_673_792_281_815_393_669),
        (1012, 1_455_153_544_978_847_482),
    ],
);

#[test]
fn a_short_history_that_was_found_once_stays_mended() {
    let (seed, steps) = SHORT;
    let mut machine = Machine::new(seed);
    for (kind, seed) in steps {
        machine.step(Step { kind, seed });
    }
    machine.finish();
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..KINDS, any::<u64>()).prop_map(|(kind, seed)| Step { kind, seed });
    proptest::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]
    #[test]
    fn short_histories_shrink(seed in 0_u64..1_000, steps in steps()) {
        let mut machine = Machine::new(seed);
        for step in steps {
            machine.step(step);
        }
        machine.finish();
    }
}

#[test]
fn a_keyspace_made_again_between_two_flushes_is_there_after_a_reopen() {
    let disk = esker_testkit::CrashFs::new();
    let open = || {
        let mut options = esker::Options::default();
        options.memory = Some(1 << 20);
        options.fs = disk.as_fs();
        esker::Db::open_with("/db", options).unwrap()
    };
    let db = open();
    db.keyspace("a").unwrap().insert("k", "old").unwrap();
    db.flush().unwrap();
    db.drop_keyspace("a").unwrap();
    db.keyspace("a").unwrap().insert("k", "new").unwrap();
    db.close().unwrap();
    drop(db);
    let db = open();
    assert_eq!(db.keyspaces().unwrap(), ["a", "default"]);
    assert_eq!(db.keyspace("a").unwrap().get("k").unwrap().as_deref(), Some(&b"new"[..]));
}
