//! Databases of every version are opened and compacted, so that nothing of the old files is left, and
//! cut off at every step, by kills and by power cuts: whatever is left opens and holds everything.

use super::{EARLY, VERSIONS, golden, kinds_options, listing_of_all};
use crate::cuts::{PATH, cuts_of};
use crate::interrupted_open::known;
use esker::internals::options::SmallTiers;
use esker::{Db, Options};
use esker_testkit::CrashFs;
use std::fs;

fn cut_options(disk: &CrashFs) -> Options {
    let mut options = kinds_options(EARLY);
    options.fs = disk.as_fs();
    options.workers = Some(1);
    options.sync_interval = None;
    // Only where the trees have tiers this changes anything.
    let tiers = SmallTiers { count: 0, fan_out: 3, runs: 2, direct: 0, tightens: false };
    options.small_tiers = Some(tiers);
    options
}

/// Compacts all trees that can be written, of the database and of its branches, and writes to them.
fn convert(db: &Db) {
    let branches = db.branches().unwrap();
    let branches = branches.iter().map(|name| db.open_branch(name).unwrap());
    for db in branches.chain([db.clone()]) {
        db.insert("new", "entry").unwrap();
        db.remove("new").unwrap();
        db.compact().unwrap();
    }
}

fn contents(disk: &CrashFs, story: &str) -> String {
    let db = Db::open_with(PATH, cut_options(disk)).unwrap_or_else(|e| panic!("{story}: {e}"));
    let mut found = listing_of_all(&db);
    // A cut between the two writes leaves the first.
    found = found.lines().filter(|line| *line != "default\tnew\tentry").fold(
        String::new(),
        |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        },
    );
    let problems = db.verify().unwrap().problems;
    assert!(problems.is_empty(), "{story}: {problems:?}");
    db.close().unwrap_or_else(|e| panic!("{story}: {e}"));
    found
}

fn is_cut_off_anywhere(name: &str) {
    let expected = fs::read_to_string(golden(name).join("expected.txt")).unwrap();
    let disk = known::golden(name);
    let cuts = cuts_of(&disk, || {
        let db = Db::open_with(PATH, cut_options(&disk)).unwrap();
        convert(&db);
        db.close().unwrap();
    });
    assert!(cuts.len() > 100, "{name}: there are only {} cuts", cuts.len());
    for (story, cut) in cuts {
        let found = contents(&cut, &format!("{name}: {story}"));
        let expected = expected.strip_prefix("database\n").unwrap_or(&expected);
        assert_eq!(found.strip_prefix("database\n").unwrap(), expected, "{name}: {story}");
    }
}

#[test]
fn a_conversion_with_compactions_can_be_cut_off_anywhere() {
    VERSIONS.into_iter().for_each(is_cut_off_anywhere);
}

#[test]
fn a_conversion_of_operands_and_what_expires_can_be_cut_off_anywhere() {
    VERSIONS.into_iter().for_each(|version| is_cut_off_anywhere(&format!("{version}-kinds")));
}

#[test]
fn a_conversion_of_branches_can_be_cut_off_anywhere() {
    VERSIONS.into_iter().for_each(|version| is_cut_off_anywhere(&format!("{version}-branches")));
}

#[test]
fn the_removal_of_tiers_can_be_cut_off_anywhere() {
    is_cut_off_anywhere("v3-tiers");
}
