//! Pushes and compactions whose results are installed in several branches are cut off at every step
//! (S4, S12): every branch holds what it held, and what survives is whole.

use super::cuts::{PATH, World, cuts_of, key, world};
use super::options;
use esker::internals::options::SmallTiers;
use esker::{Append, Db, KeyspaceOptions, Options};
use esker_testkit::CrashFs;

const KEYS: usize = 500;

fn tier_options(disk: &CrashFs, runs: usize) -> Options {
    let mut options = options(disk.as_fs());
    options.partition_bytes = Some(4 << 10);
    options.segment_bytes = 1 << 10;
    options.small_tiers =
        Some(SmallTiers { count: 2, fan_out: 3, runs, direct: 1, tightens: false });
    options
}

/// Runs that wait over partitions, in three branches and a named snapshot; one branch differs.
fn build(disk: &CrashFs) -> World {
    let db = Db::open_with(PATH, tier_options(disk, 1000)).unwrap();
    let words = KeyspaceOptions::merging(Append::new(",").name());
    let words = db.keyspace_with("words", words).unwrap();
    for number in 0..KEYS {
        db.insert(key(number), format!("base {number} {}", ".".repeat(40))).unwrap();
    }
    db.compact().unwrap();
    for round in 0..3 {
        for number in (round..KEYS).step_by(7) {
            db.insert(key(number), format!("round {round}")).unwrap();
            words.merge(key(number % 40), format!("r{round}")).unwrap();
        }
        db.remove_range(key(100 * round)..key(100 * round + 60)).unwrap();
        if round < 2 {
            db.flush().unwrap();
        }
    }
    // The last round is in memory, and its flush adds it to all of them.
    for name in ["one", "two", "three"] {
        drop(db.branch(name).unwrap());
    }
    db.snapshot_named("moment").unwrap();
    db.flush().unwrap();
    let two = db.open_branch("two").unwrap();
    two.insert(key(250), "of its own").unwrap();
    two.keyspace("words").unwrap().merge(key(7), "of its own").unwrap();
    db.flush().unwrap();
    let world = world(&db);
    db.close().unwrap();
    world
}

#[test]
fn work_on_what_branches_share_can_be_cut_off_anywhere() {
    let disk = CrashFs::new();
    let expected = build(&disk);
    let cuts = cuts_of(&disk, || {
        let db = Db::open_with(PATH, tier_options(&disk, 1)).unwrap();
        db.wait_until_idle().unwrap();
        assert!(db.stats().pushes > 3, "{} pushes", db.stats().pushes);
        assert!(world(&db) == expected, "it was not cut off");
        db.close().unwrap();
    });
    assert!(cuts.len() > 100, "there are only {} cuts", cuts.len());
    for (number, (story, cut)) in cuts.into_iter().enumerate() {
        // Half of them go on with the work, the others are left as they are.
        let runs = if number % 4 < 2 { 1 } else { 1000 };
        let db = Db::open_with(PATH, tier_options(&cut, runs))
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        db.wait_until_idle().unwrap_or_else(|error| panic!("{story}: {error}"));
        assert!(world(&db) == expected, "{story}");
        let problems = db.verify().unwrap().problems;
        assert!(problems.is_empty(), "{story}: {problems:?}");
        db.close().unwrap_or_else(|error| panic!("{story}: {error}"));
    }
}
