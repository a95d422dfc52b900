//! Databases of versions 1 and 2, which know no tiers, get two tiers while they are written to. That is cut
//! off by kills and power cuts: whatever is left opens, and holds all that was there and all that was
//! acknowledged since.

use super::{EARLY, golden, kinds_options, listing_of_all};
use crate::cuts::PATH;
use crate::interrupted_open::known;
use esker::internals::options::SmallTiers;
use esker::{Batch, Db, Durability, Options};
use esker_testkit::CrashFs;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The versions that have no tiers.
const OLD: [&str; 2] = ["v1", "v2"];
/// The first flush of a tree makes tier 1 and the second makes tier 2, the third and the fourth fill a
/// span there, and what is pushed then makes a span of tier 1 due, which has the run of the second.
const ROUNDS: usize = 7;
/// How many cuts of each database are looked at: each of them is an open, and there are six databases.
const CUTS: usize = 48;

fn tier_options(disk: &CrashFs, count: usize, runs: usize) -> Options {
    let mut options = kinds_options(EARLY);
    options.fs = disk.as_fs();
    options.workers = Some(1);
    options.sync_interval = None;
    options.small_tiers = Some(SmallTiers { count, fan_out: 2, runs, direct: 0, tightens: false });
    options
}

/// The values in a listing, by branch, keyspace and key.
type Contents = BTreeMap<[String; 3], String>;

fn parsed(listing: &str) -> Contents {
    // Listings of databases without branches are kept without a headline.
    let mut section = "database";
    let mut found = Contents::new();
    for line in listing.lines() {
        let mut parts = line.splitn(3, '\t');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(keyspace), Some(key), Some(value)) => {
                found.insert([section, keyspace, key].map(str::to_owned), value.to_owned());
            }
            _ => section = line,
        }
    }
    found
}

/// A few of the entries that differ.
fn difference(found: &Contents, expected: &Contents) -> String {
    let lost = expected.iter().filter(|(place, value)| found.get(*place) != Some(*value));
    let more = found.iter().filter(|(place, value)| expected.get(*place) != Some(*value));
    let (lost, more): (Vec<_>, Vec<_>) = (lost.take(5).collect(), more.take(5).collect());
    format!("lost {lost:?}, more or other {more:?}")
}

/// The database and its branches, each with its headline in a listing.
fn handles(db: &Db) -> Vec<(String, Db)> {
    let mut all = vec![("database".to_owned(), db.clone())];
    for name in db.branches().unwrap() {
        let branch = db.open_branch(&name).unwrap();
        all.push((format!("branch {name}"), branch));
    }
    all
}

fn old_key(number: usize) -> String {
    format!("key{number:04}")
}

/// One batch with new keys between the old ones, new values of old keys, operands over old values, deletes,
/// and range deletes, in every keyspace of a branch. `holds` is changed in the same way.
fn write_batch(db: &Db, section: &str, round: usize, holds: &mut Contents) {
    let mut batch = Batch::new();
    // It has the eight bytes of a counter.
    let value = format!("round {round:02}");
    for name in db.keyspaces().unwrap() {
        let keyspace = db.keyspace(&name).unwrap();
        let place = |key: &str| [section, name.as_str(), key].map(str::to_owned);
        if keyspace.comparator_name().is_none() {
            let (low, high) = (old_key(20 * round + 7), old_key(20 * round + 12));
            batch.remove_range(&keyspace, low.clone()..high.clone()).unwrap();
            holds.retain(|[of, within, key], _| {
                of.as_str() != section || *within != name || *key < low || *key >= high
            });
        }
        let between = (0..300).step_by(60).map(|number| format!("{}+{round}", old_key(number)));
        for key in between.chain([old_key(100), format!("key{round:03}")]) {
            batch.insert(&keyspace, &key, &value);
            holds.insert(place(&key), value.clone());
        }
        let gone = old_key(201 + round);
        batch.remove(&keyspace, &gone);
        holds.remove(&place(&gone));
        // The one keyspace whose operator appends: an operand that is lost, or counts twice, shows.
        if name == "recent" {
            for key in ["r29".to_owned(), format!("r{round}")] {
                batch.merge(&keyspace, &key, &value);
                let held = holds.entry(place(&key)).or_default();
                if !held.is_empty() {
                    held.push_str(", ");
                }
                held.push_str(&value);
            }
        }
    }
    db.write_with(batch, Durability::Disk).unwrap();
}

/// How many batches have begun, and how many were acknowledged.
#[derive(Default)]
struct Progress {
    begun: AtomicUsize,
    acknowledged: AtomicUsize,
}

/// What the disk holds before a step, after a kill and after a power cut, and how many batches it may hold.
struct Cut {
    story: String,
    acknowledged: usize,
    begun: usize,
    killed: CrashFs,
    power_cut: CrashFs,
}

/// The cuts before each step of `work`, which says how far it is.
fn cuts_of(disk: &CrashFs, progress: &Arc<Progress>, work: impl FnOnce()) -> Vec<Cut> {
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let (taken, source, progress) = (cuts.clone(), disk.clone(), progress.clone());
    disk.set_hook(Some(Arc::new(move |step: u64, what: &str| {
        // A worker may make this step while batches begin and end, so one is read first, the other last.
        let acknowledged = progress.acknowledged.load(Ordering::SeqCst);
        let killed = source.kill_clone();
        let power_cut = source.crash_clone(step, [0, 50, 100][step as usize % 3]);
        let begun = progress.begun.load(Ordering::SeqCst);
        let story = format!("{what} ({step}), {acknowledged} to {begun} batches");
        taken.lock().unwrap().push(Cut { story, acknowledged, begun, killed, power_cut });
    })));
    work();
    disk.set_hook(None);
    let mut cuts = cuts.lock().unwrap();
    std::mem::take(&mut *cuts)
}

/// Writes to a database that held `before`, until its trees have two tiers and runs were pushed down through
/// both. Returns what it holds before the first batch and after each.
fn migrate(disk: &CrashFs, progress: &Progress, before: Contents) -> Vec<Contents> {
    let db = Db::open_with(PATH, tier_options(disk, 2, 2)).unwrap();
    let handles = handles(&db);
    let mut holds = before;
    let mut states = vec![holds.clone()];
    for round in 0..ROUNDS {
        for (section, branch) in &handles {
            progress.begun.fetch_add(1, Ordering::SeqCst);
            write_batch(branch, section, round, &mut holds);
            progress.acknowledged.fetch_add(1, Ordering::SeqCst);
            states.push(holds.clone());
        }
        // The last round is only in the log until the close.
        if round + 1 < ROUNDS {
            db.flush().unwrap();
            db.wait_until_idle().unwrap();
        }
    }
    let trees: Vec<_> = handles.iter().flat_map(|(_, branch)| branch.stats().trees).collect();
    for tree in &trees {
        assert_eq!(tree.tiers.len(), 2, "{}", tree.keyspace);
    }
    // Each tree has a run pushed to its tier 1, and one to its partitions.
    let pushes = db.stats().pushes;
    assert!(pushes >= 2 * trees.len() as u64, "{pushes} pushes in {} trees", trees.len());
    let found = parsed(&listing_of_all(&db));
    assert!(found == holds, "it was not cut off: {}", difference(&found, &holds));
    db.close().unwrap();
    states
}

/// Opens what a cut has left, which must hold one of `may_hold`, and goes on with it in one of several ways.
fn check(disk: &CrashFs, may_hold: &[Contents], way: usize, story: &str) {
    // The work goes on, or all is left as it is, or all is pushed, or the tiers are removed again.
    let (count, runs) = [(2, 2), (2, 1000), (2, 1), (0, 2)][way % 4];
    let db = Db::open_with(PATH, tier_options(disk, count, runs))
        .unwrap_or_else(|error| panic!("{story}: {error}"));
    let found = parsed(&listing_of_all(&db));
    assert!(may_hold.contains(&found), "{story}: {}", difference(&found, &may_hold[0]));
    db.flush().unwrap_or_else(|error| panic!("{story}: {error}"));
    db.wait_until_idle().unwrap_or_else(|error| panic!("{story}: {error}"));
    let later = parsed(&listing_of_all(&db));
    assert!(later == found, "{story}, later: {}", difference(&later, &found));
    let problems = db.verify().unwrap().problems;
    assert!(problems.is_empty(), "{story}: {problems:?}");
    db.close().unwrap_or_else(|error| panic!("{story}: {error}"));
}

fn is_cut_off_anywhere(name: &str) {
    let before = parsed(&fs::read_to_string(golden(name).join("expected.txt")).unwrap());
    let disk = known::golden(name);
    let progress = Arc::new(Progress::default());
    let mut states = Vec::new();
    let cuts = cuts_of(&disk, &progress, || states = migrate(&disk, &progress, before));
    println!("{name}: {} steps", cuts.len());
    assert!(cuts.len() > 100, "{name}: there are only {} steps", cuts.len());
    let every = cuts.len().div_ceil(CUTS);
    for (number, cut) in cuts.iter().step_by(every).enumerate() {
        let may_hold = &states[cut.acknowledged..=cut.begun];
        // A power cut leaves less, so there are more of them.
        let (disk, how) = match number % 3 {
            0 => (&cut.killed, "killed"),
            _ => (&cut.power_cut, "power cut"),
        };
        check(disk, may_hold, number / 3, &format!("{name}: {how} before {}", cut.story));
    }
}

#[test]
fn a_migration_into_tiers_can_be_cut_off_anywhere() {
    OLD.into_iter().for_each(is_cut_off_anywhere);
}

#[test]
fn a_migration_of_operands_and_what_expires_into_tiers_can_be_cut_off_anywhere() {
    OLD.into_iter().for_each(|version| is_cut_off_anywhere(&format!("{version}-kinds")));
}

#[test]
fn a_migration_of_branches_into_tiers_can_be_cut_off_anywhere() {
    OLD.into_iter().for_each(|version| is_cut_off_anywhere(&format!("{version}-branches")));
}
