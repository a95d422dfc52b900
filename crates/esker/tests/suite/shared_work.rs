//! Pushes and compactions whose results are installed in several branches are cut off at every step
//! (S4, S12): every branch holds what it held, and what survives is whole.

use super::options;
use esker::internals::options::SmallTiers;
use esker::{Append, Db, KeyspaceOptions, Options};
use esker_testkit::CrashFs;
use std::sync::{Arc, Mutex};

const PATH: &str = "/db";
const KEYS: usize = 500;

fn tier_options(disk: &CrashFs, runs: usize) -> Options {
    let mut options = options(disk.as_fs());
    options.partition_bytes = Some(4 << 10);
    options.segment_bytes = 1 << 10;
    options.small_tiers =
        Some(SmallTiers { count: 2, fan_out: 3, runs, direct: 1, tightens: false });
    options
}

fn key(number: usize) -> String {
    format!("key{number:04}")
}

type World = Vec<(String, Vec<(Vec<u8>, Vec<u8>)>)>;

/// What the database, its branches and its named snapshots hold.
fn world(db: &Db) -> World {
    let mut all = vec![(String::new(), db.clone())];
    for name in db.branches().unwrap() {
        all.push((name.clone(), db.open_branch(&name).unwrap()));
    }
    for name in db.named_snapshots().unwrap() {
        all.push((name.clone(), db.open_named_snapshot(&name).unwrap()));
    }
    let mut found = World::new();
    for (name, db) in all {
        for keyspace in ["default", "words"] {
            let entries = db.keyspace(keyspace).unwrap().iter().unwrap();
            found.push((format!("{name}/{keyspace}"), entries.map(Result::unwrap).collect()));
        }
    }
    found
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
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let (taken, source) = (cuts.clone(), disk.clone());
    disk.set_hook(Some(Arc::new(move |step, what: &str| {
        let survivors = [0, 50, 100][step as usize % 3];
        let cut = source.crash_clone(step, survivors);
        let mut cuts = taken.lock().unwrap();
        cuts.push((format!("killed before {what} ({step})"), source.kill_clone()));
        cuts.push((format!("power cut before {what} ({step}), {survivors} % survive"), cut));
    })));
    let db = Db::open_with(PATH, tier_options(&disk, 1)).unwrap();
    db.wait_until_idle().unwrap();
    assert!(db.stats().pushes > 3, "{} pushes", db.stats().pushes);
    assert!(world(&db) == expected, "it was not cut off");
    db.close().unwrap();
    drop(db);
    disk.set_hook(None);
    let cuts = std::mem::take(&mut *cuts.lock().unwrap());
    assert!(cuts.len() > 100, "there are only {} cuts", cuts.len());
    println!("{} cuts", cuts.len());
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
