//! A database of version 3 whose trees have tiers: pending runs in two of them, with range deletes,
//! operands and entries that expire, and a named snapshot and a branch that share spans with their
//! parent. `golden/v3-tiers` is kept; `ESKER_WRITE_GOLDEN_TIERS` writes a new one.

use super::{EARLY, LATE, bytes_of, fields, golden, keep, kinds_options, listing_of_all, target};
use esker::internals::options::SmallTiers;
use esker::{Append, Db, KeyspaceOptions, Options};
use esker_testkit::files::copy;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "v3-tiers";
const KEYS: usize = 150;

/// Tiers whose spans are due at so many runs.
fn tier_options(now: u64, count: usize, runs: usize) -> Options {
    let mut options = kinds_options(now);
    options.segment_bytes = 1 << 10;
    options.workers = Some(1);
    options.small_tiers = Some(SmallTiers { count, fan_out: 3, runs, direct: 0, tightens: false });
    options
}

fn key(number: usize) -> String {
    format!("key{number:04}")
}

fn expected(now: u64) -> String {
    let name = if now == EARLY { "expected.txt" } else { "later.txt" };
    fs::read_to_string(golden(NAME).join(name)).unwrap()
}

fn sample() -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("db");
    copy(&golden(NAME).join("db"), &path);
    (temporary, path)
}

/// The runs that wait in each tier of each tree, tier 1 first.
fn pending(db: &Db) -> Vec<Vec<u64>> {
    let runs = |tree: &esker::TreeShape| tree.tiers.iter().map(|tier| tier.runs).collect();
    db.stats().trees.iter().map(runs).collect()
}

fn compact_all(db: &Db) {
    db.compact().unwrap();
    for name in db.branches().unwrap() {
        db.open_branch(&name).unwrap().compact().unwrap();
    }
}

#[test]
fn tiers_are_read_without_changing_a_byte() {
    for now in [EARLY, LATE] {
        let (_temporary, path) = sample();
        let before = bytes_of(&path);
        let mut options = tier_options(now, 2, 100);
        options.read_only = true;
        let db = Db::open_with(&path, options).unwrap();
        assert!(listing_of_all(&db) == expected(now), "at {now}");
        let pending = pending(&db);
        assert!(pending.iter().any(|tiers| tiers.len() == 2 && !tiers.contains(&0)), "{pending:?}");
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
        assert!(bytes_of(&path) == before, "a read-only open changed a byte");
    }
}

/// Whatever shape the tiers take afterwards: what is due is pushed, `compact` drains them, and
/// options without tiers remove them.
#[test]
fn tiers_are_pushed_and_compacted_and_removed() {
    for (now, count, runs) in [(EARLY, 2, 1), (LATE, 2, 100), (EARLY, 3, 2), (LATE, 0, 1)] {
        let what = format!("at {now}, {count} tiers, due at {runs} runs");
        let (_temporary, path) = sample();
        let db = Db::open_with(&path, tier_options(now, count, runs)).unwrap();
        db.wait_until_idle().unwrap();
        assert!(listing_of_all(&db) == expected(now), "{what}");
        for branch in [db.clone(), db.open_branch("trial").unwrap()] {
            branch.insert("new", "entry").unwrap();
            branch.flush().unwrap();
            branch.remove("new").unwrap();
            branch.flush().unwrap();
        }
        db.wait_until_idle().unwrap();
        assert!(listing_of_all(&db) == expected(now), "{what}");
        compact_all(&db);
        assert!(listing_of_all(&db) == expected(now), "{what}");
        assert!(pending(&db).iter().flatten().all(|runs| *runs == 0), "{what}: {:?}", pending(&db));
        db.close().unwrap();
        drop(db);
        let db = Db::open_with(&path, tier_options(now, count, runs)).unwrap();
        assert!(listing_of_all(&db) == expected(now), "{what}");
        assert!(db.drop_branch("trial").unwrap());
        assert!(db.drop_named_snapshot("monday").unwrap());
        assert!(db.verify().unwrap().problems.is_empty(), "{what}");
    }
}

#[test]
fn tiers_are_saved_whole_by_a_repair() {
    let (temporary, path) = sample();
    let to = temporary.path().join("new");
    let salvaged = esker::repair::salvage(&path, &to, &tier_options(EARLY, 2, 100)).unwrap();
    assert!(salvaged.plan.is_whole(), "{salvaged}");
    let saved = Db::open_with(&to, tier_options(EARLY, 2, 100)).unwrap();
    // What the named snapshot and the branch hold becomes keyspaces of their own.
    let mut owner = String::new();
    let mut expected_lines = Vec::new();
    for line in expected(EARLY).lines() {
        if !line.contains('\t') {
            let name = line.rsplit(' ').next().unwrap();
            owner = if line == "database" { String::new() } else { format!("@{name}") };
            continue;
        }
        let (keyspace, entry) = line.split_once('\t').unwrap();
        expected_lines.push(format!("{keyspace}{owner}\t{entry}"));
    }
    let mut found: Vec<_> = super::listing(&saved).lines().map(str::to_owned).collect();
    found.sort();
    expected_lines.sort();
    assert!(found == expected_lines, "{} lines, {} expected", found.len(), expected_lines.len());
}

#[test]
fn it_holds_the_tiers_that_it_is_kept_for() {
    let directory = golden(NAME);
    let fields = fields(&directory.join("db"));
    let has = |file: &str, field: &str, value: &str| {
        let found = fields.iter().any(|(path, name, content)| {
            let path = path.strip_prefix(&directory).unwrap().to_str().unwrap();
            path.contains(file) && name.contains(field) && content.contains(value)
        });
        assert!(found, "no {field:?} with {value:?} in {file:?}");
    };
    has("MANIFEST", "header.format version", "3");
    has("MANIFEST", ".branch[", "branch ");
    has("MANIFEST", ".branch[", "named snapshot ");
    has("data", ".content", "range tombstones");
    has("data", ".special", " operands, ");
    has("data", ".special", " that expire");
    for operation in ["merge keyspace", "delete range", "expires at"] {
        has("wal", ".op[", operation);
    }
    let damaged = fields.iter().find(|(_, field, _)| field.contains("damaged"));
    assert!(damaged.is_none(), "{damaged:?}");
    let bytes: usize = bytes_of(&directory.join("db")).values().map(Vec::len).sum();
    assert!(bytes < 200 << 10, "{bytes} bytes are too many to keep");
}

/// Puts, deletes, operands, range deletes and entries that expire, in a keyspace each of its own
/// traits; `round` makes the values differ.
fn write_round(db: &Db, round: usize) {
    let words = db.keyspace("words").unwrap();
    let sessions = db.keyspace("sessions").unwrap();
    let ttl = Duration::from_millis(if round.is_multiple_of(2) { 50 } else { 500 });
    for number in (round..KEYS).step_by(9) {
        db.insert(key(number), format!("round {round} {}", ".".repeat(20))).unwrap();
        db.remove(key(number + 1)).unwrap();
        words.merge(key(number), format!("r{round}")).unwrap();
        words.merge(key(7), format!("r{round}")).unwrap();
        sessions.insert_with_ttl(key(number), format!("session {round}"), ttl).unwrap();
    }
    let from = 20 + 20 * round;
    db.remove_range(key(from)..key(from + 30)).unwrap();
    words.remove_range(key(from)..key(from + 9)).unwrap();
    db.insert(key(from + 20), "over a removed range").unwrap();
}

fn fill(live: &Path) {
    let db = Db::open_with(live, tier_options(EARLY, 2, 3)).unwrap();
    let words = KeyspaceOptions::merging(Append::new(",").name());
    let words = db.keyspace_with("words", words).unwrap();
    let sessions = db.keyspace("sessions").unwrap();
    for number in 0..KEYS {
        db.insert(key(number), format!("base {number} {}", ".".repeat(40))).unwrap();
        words.insert(key(number), format!("base {}", ".".repeat(20))).unwrap();
        sessions.insert(key(number), "stays").unwrap();
    }
    db.flush().unwrap();
    db.compact().unwrap();
    for round in 0..4 {
        write_round(&db, round);
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
    }
    db.close().unwrap();
}

/// Writes it anew, if the environment says where.
#[test]
fn write_golden_tiers() {
    let Some(target) = target("ESKER_WRITE_GOLDEN_TIERS") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let live = temporary.path().join("db");
    fill(&live);
    let db = Db::open_with(&live, tier_options(EARLY, 2, 100)).unwrap();
    db.snapshot_named("monday").unwrap();
    let trial = db.branch("trial").unwrap();
    trial.keyspace("words").unwrap().merge(key(8), "of the trial").unwrap();
    db.flush().unwrap();
    write_round(&db, 4);
    db.flush().unwrap();
    // What only the log has.
    write_round(&db, 5);
    trial.insert(key(9), "of the trial").unwrap();
    db.sync().unwrap();
    keep(&live, &target, &listing_of_all(&db));
    db.close().unwrap();
    drop((trial, db));
    let db = Db::open_with(&live, tier_options(LATE, 2, 100)).unwrap();
    fs::write(target.join("later.txt"), listing_of_all(&db)).unwrap();
    db.close().unwrap();
}
