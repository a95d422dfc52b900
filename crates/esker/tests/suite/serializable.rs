//! Histories of concurrent random transactions, checked for cycles of dependencies (R20).
//!
//! `ESKER_SEED` replays the choices of one campaign; how threads interleave is up to the system.
//! `ESKER_ROUNDS` multiplies the campaigns.
use esker_testkit::serial::Anomaly;
use esker_testkit::serial::driver::{Locking, Plan, Tally, campaign};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const PLAN: Plan =
    Plan { threads: 4, transactions: 150, crashes: 3, locking: Locking::Mixed, unwatched: false };

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("the variable holds a number"))
}

fn check(name: &str, first: u64, plan: Plan) {
    let seeds = match number("ESKER_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + 12 * number("ESKER_ROUNDS").unwrap_or(1),
    };
    let mut sum = Tally::default();
    for seed in seeds.clone() {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (tally, outcome) = campaign(seed, plan).unwrap();
            assert_eq!(outcome, Ok(()));
            tally
        }));
        match outcome {
            Ok(tally) => {
                sum.committed += tally.committed;
                sum.conflicts += tally.conflicts;
                sum.lost += tally.lost;
            }
            Err(panic) => {
                eprintln!("{name}: failed; replay: ESKER_SEED={seed}");
                resume_unwind(panic);
            }
        }
    }
    eprintln!("{name}: {sum:?}, seeds {seeds:?}, 0 anomalies");
    if seeds.end - seeds.start > 1 {
        assert!(sum.conflicts > 0, "nobody was in anybody's way: the test shows nothing");
        assert!(sum.committed > sum.conflicts / 4, "hardly anything commits");
    }
}

#[test]
fn optimistic_transactions_are_serializable_over_crashes() {
    check("optimistic", 1, Plan { locking: Locking::Never, ..PLAN });
}

#[test]
fn locking_transactions_are_serializable_over_crashes() {
    check("locking", 1001, Plan { locking: Locking::Always, ..PLAN });
}

#[test]
fn both_forms_and_plain_writes_together_are_serializable_over_crashes() {
    check("mixed", 2001, PLAN);
}

/// A checker that cannot find anything proves nothing: transactions whose reads are not validated
/// must be found out.
#[test]
fn transactions_that_are_not_validated_are_noticed() {
    let plan = Plan { crashes: 0, unwatched: true, locking: Locking::Never, ..PLAN };
    let found = (1..11).filter(|seed| {
        let (_, outcome) = campaign(*seed, plan).unwrap();
        matches!(outcome, Err(Anomaly::Cycle(_)))
    });
    let found = found.count();
    eprintln!("{found} of 10 campaigns show a cycle");
    assert!(found > 5, "{found} of 10 campaigns show a cycle");
}
