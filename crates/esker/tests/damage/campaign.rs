//! The campaign of damage: one thing is done to the files of a database that was written in one of
//! three classes, and closed, killed or cut off from power. Then
//!
//! 1. open, read-only and for writing, refuses with a typed error, or every answer is right or a
//!    typed error;
//! 2. if anything is not there, `verify` and `repair --plan` say so: what the CLI turns into exit
//!    code 1;
//! 3. where the plan promises that nothing is lost, a repair brings everything.
//!
//! `ESKER_DAMAGE_CASES` says how many cases there are; `ESKER_SEED` replays them. A case depends on
//! the seed and its number alone, and `ESKER_DAMAGE_CASE` runs one. What is damaged follows from
//! them, but for the nonces that files draw.

use super::scene::{self, Contents, End, Scene};
use super::{PATH, compare, replace};
use esker::fs::Fs;
use esker::{Db, Error, ErrorKind};
use esker_testkit::harness::keyspace;
use esker_testkit::model::{Model, Op};
use esker_testkit::{CrashFs, Rng, parallel};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cases of the short form.
const CASES: u64 = 240;
/// Bytes at the end of each file in which a bit is flipped.
const TAIL_BYTES: u64 = 4096;

/// Whether a database knows how far its manifest and its log once reached. One of version 1 does
/// not: a damaged last edit, and an older log, look like ones to which nothing more was written.
const ENDS_ARE_KNOWN: bool = esker::internals::manifest::FORMAT_VERSION >= 2;

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Open refuses.
    Refused,
    /// Open succeeds, and what is damaged says so.
    Reported,
    /// An earlier state, which a torn end explains.
    Earlier,
    /// An earlier state, of which nothing on the disk tells that there was a later one.
    Unknown,
    /// All is there, and yet `verify` or the plan finds damage.
    Warned,
    /// All is there.
    Right,
}

/// What a database answered.
enum Answer {
    /// Shows what it once held.
    Unknown,
    Refused(Error),
    /// Errors that were met; and which state it shows, if one: the latest is 0.
    Opened {
        errors: Vec<Error>,
        state: usize,
        problems: usize,
    },
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

fn random_seed() -> u64 {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    time.as_nanos() as u64
}

#[test]
fn damage_of_every_kind_is_harmless_or_told() {
    let seed = number("ESKER_SEED").unwrap_or_else(random_seed);
    let cases = match number("ESKER_DAMAGE_CASE") {
        Some(case) => case..case + 1,
        None => 0..number("ESKER_DAMAGE_CASES").unwrap_or(CASES),
    };
    eprintln!("ESKER_SEED={seed} ESKER_DAMAGE_CASES={}", cases.end);
    let scenes = scene::all(seed);
    for scene in &scenes {
        let whole = judge(scene, &scene.disk, &format!("seed {seed}, {} whole", scene.name));
        assert_eq!(whole, Outcome::Right, "{} is found damaged", scene.name);
    }
    let tally: Mutex<BTreeMap<(&'static str, Outcome), u64>> = Mutex::default();
    let (failures, over_runs) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    parallel::for_each(|number| {
        let case = cases.start + number;
        if case >= cases.end {
            return false;
        }
        let mut rng = Rng::new(seed ^ (case + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let scene = &scenes[rng.below(scenes.len() as u64) as usize];
        let sibling = &scenes[rng.below(scenes.len() as u64) as usize];
        let disk = scene.disk.kill_clone();
        over_runs.fetch_add(u64::from(scene.waiting > 0), Ordering::Relaxed);
        let (kind, done) = damage(&disk, scene, sibling, case, &mut rng);
        let what = format!("seed {seed}, case {case}, {}: {done}", scene.name);
        // The others are tried as well: one run shows all that there is to mend.
        let judged = catch_unwind(AssertUnwindSafe(|| judge(scene, &disk, &what)));
        match judged {
            Ok(outcome) => *tally.lock().unwrap().entry((kind, outcome)).or_default() += 1,
            Err(panic) => {
                let said = panic.downcast_ref::<String>().cloned();
                failures.lock().unwrap().push(said.unwrap_or(what));
            }
        }
        true
    });
    for ((kind, outcome), count) in tally.into_inner().unwrap() {
        eprintln!("{kind}: {count} {outcome:?}");
    }
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n"));
    let over_runs = over_runs.into_inner();
    eprintln!("{over_runs} cases with runs that wait in tiers");
    // Of few cases none may have got such a scene.
    let few = cases.end - cases.start < CASES;
    let waiting = |scene: &Scene| scene.waiting > 0;
    assert!(scenes.iter().any(waiting) && (few || over_runs > 0), "no run waits in a tier");
}

/// The files of a database by what they are for.
fn role(path: &Path) -> &'static str {
    let text = path.to_string_lossy();
    ["superblock", "MANIFEST", "wal/", "data/"]
        .into_iter()
        .find(|part| text.contains(part))
        .unwrap()
}

fn used(bytes: &[u8]) -> u64 {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1)
}

fn pick<'a, T>(rng: &mut Rng, of: &'a [T]) -> &'a T {
    &of[rng.below(of.len() as u64) as usize]
}

/// Does one thing to a database; tells which kind of thing, and what.
fn damage(
    disk: &CrashFs,
    scene: &Scene,
    sibling: &Scene,
    case: u64,
    rng: &mut Rng,
) -> (&'static str, String) {
    let files: Vec<(PathBuf, Vec<u8>)> = scene::all_files(disk).into_iter().collect();
    let of = |wanted: &str| -> Vec<&(PathBuf, Vec<u8>)> {
        files.iter().filter(|(path, _)| role(path) == wanted).collect()
    };
    let flip_in = |kind: &'static str, path: &Path, from: u64, until: u64, rng: &mut Rng| {
        let bit = from * 8 + rng.below((until - from).max(1) * 8);
        disk.flip_bit(path, bit).unwrap();
        (kind, format!("bit {bit} of {} is flipped", path.display()))
    };
    match case % 8 {
        0 => {
            let (path, bytes) = pick(rng, &of("superblock"));
            flip_in("bits of superblocks", path, 0, bytes.len() as u64, rng)
        }
        1 | 2 => {
            let (path, bytes) = pick(rng, &of("MANIFEST"));
            let (from, until) = last_edit(bytes);
            flip_in("bits of the last edit", path, from, until, rng)
        }
        3..=5 => {
            let full: Vec<_> = files.iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
            let (path, bytes) = pick(rng, &full);
            // Where there are bytes; and at times at the very end, where a log has room.
            let until = if rng.percent(90) { used(bytes) } else { bytes.len() as u64 };
            let from = until.saturating_sub(TAIL_BYTES);
            flip_in("bits of the last 4 KiB", path, from, until.max(1), rng)
        }
        6 => ("files put back", put_back(disk, scene, &files, rng)),
        _ => ("files taken or swapped", take_or_swap(disk, sibling, &files, rng)),
    }
}

/// Where the last record of a manifest stands.
fn last_edit(bytes: &[u8]) -> (u64, u64) {
    let end = used(bytes).max(64);
    let mut at = 64;
    loop {
        let len =
            bytes.get(at..at + 4).map_or(0, |len| u32::from_le_bytes(len.try_into().unwrap()));
        let next = (at + 16 + len as usize).next_multiple_of(8);
        if len == 0 || next as u64 >= end {
            return (at as u64, end);
        }
        at = next;
    }
}

/// Files become their older selves: one, or all of a kind.
fn put_back(disk: &CrashFs, scene: &Scene, files: &[(PathBuf, Vec<u8>)], rng: &mut Rng) -> String {
    if rng.percent(50) {
        let older: Vec<_> =
            files.iter().filter(|(path, _)| scene.older.contains_key(path)).collect();
        let (path, _) = pick(rng, &older);
        replace(disk, path, &scene.older[path]);
        return format!("{} is its older self", path.display());
    }
    let sets: [&[&str]; 5] =
        [&["wal/"], &["superblock"], &["MANIFEST"], &["superblock", "MANIFEST"], &["data/"]];
    let set = *pick(rng, &sets);
    for (path, _) in files.iter().filter(|(path, _)| set.contains(&role(path))) {
        disk.remove_file(path).unwrap();
    }
    for (path, bytes) in scene.older.iter().filter(|(path, _)| set.contains(&role(path))) {
        replace(disk, path, bytes);
    }
    format!("all of {set:?} are their older selves")
}

/// A file is gone, empty, cut, zeros, or another of its kind.
fn take_or_swap(
    disk: &CrashFs,
    sibling: &Scene,
    files: &[(PathBuf, Vec<u8>)],
    rng: &mut Rng,
) -> String {
    let (path, bytes) = pick(rng, files);
    let name = path.display();
    match rng.below(6) {
        0 => {
            disk.remove_file(path).unwrap();
            format!("{name} is removed")
        }
        1 => {
            replace(disk, path, &[]);
            format!("{name} is empty")
        }
        2 => {
            replace(disk, path, &vec![0; bytes.len()]);
            format!("{name} is zeros")
        }
        3 => {
            let len = rng.below(bytes.len().max(1) as u64);
            replace(disk, path, &bytes[..len as usize]);
            format!("{name} is cut to {len}")
        }
        4 => {
            let siblings: Vec<_> = files.iter().filter(|(p, _)| role(p) == role(path)).collect();
            let (other, bytes) = pick(rng, &siblings);
            replace(disk, path, bytes);
            format!("{name} is a copy of {}", other.display())
        }
        _ => {
            let others = scene::all_files(&sibling.disk);
            let others: Vec<_> = others.iter().filter(|(p, _)| role(p) == role(path)).collect();
            if others.is_empty() {
                return format!("{name} stays, as there is no other");
            }
            let (other, bytes) = pick(rng, &others);
            replace(disk, path, bytes);
            format!("{name} is {} of {}", other.display(), sibling.name)
        }
    }
}

/// Opens a damaged database in every way and judges the answers.
fn judge(scene: &Scene, disk: &CrashFs, what: &str) -> Outcome {
    let planned = plan(scene, disk, what);
    let read_only = ask(scene, &disk.kill_clone(), true, &format!("{what}, read-only"));
    let writing = ask(scene, &disk.kill_clone(), false, what);
    let says_lost = planned.as_ref().is_none_or(|plan| plan.has_losses());
    let says_damaged = planned.as_ref().is_none_or(|plan| !plan.is_whole());
    match (&read_only, &writing) {
        (Answer::Unknown, _) | (_, Answer::Unknown) => Outcome::Unknown,
        (Answer::Refused(error), Answer::Refused(_)) => {
            if !says_lost {
                assert!(says_damaged, "{what}: open refuses ({error}), the plan is content");
                repaired(scene, disk, what);
            }
            Outcome::Refused
        }
        (
            Answer::Opened { errors, state, problems },
            Answer::Opened { errors: others, state: other, problems: also },
        ) => {
            if !errors.is_empty() || !others.is_empty() {
                let problem = errors.first().or(others.first());
                assert!(*problems > 0, "{what}: verify misses {problem:?}");
                assert!(says_damaged, "{what}: the plan misses {problem:?}");
                // What no read finds a repair may find.
                if !says_lost {
                    repaired(scene, disk, what);
                }
                return Outcome::Reported;
            }
            assert_eq!(state, other, "{what}: open for writing shows another state");
            if !says_lost && (*problems > 0 || *state > 0 || says_damaged) {
                repaired(scene, disk, what);
            }
            match (*state, *problems + *also > 0 || says_damaged) {
                (0, true) => Outcome::Warned,
                (0, false) => Outcome::Right,
                _ => Outcome::Earlier,
            }
        }
        (Answer::Refused(error), Answer::Opened { .. }) => {
            panic!("{what}: only the open for writing succeeds: {error}")
        }
        (Answer::Opened { .. }, Answer::Refused(error)) => {
            panic!("{what}: only the read-only open succeeds: {error}")
        }
    }
}

fn plan(scene: &Scene, disk: &CrashFs, what: &str) -> Option<esker::repair::Plan> {
    match esker::repair::plan(PATH, &scene.options(disk)) {
        Ok(plan) => Some(plan),
        Err(error) => {
            let kinds = [ErrorKind::UnknownFormat, ErrorKind::NotADatabase];
            assert!(kinds.contains(&error.kind()), "{what}: plan: {error:?}");
            None
        }
    }
}

/// A plan that names no loss is held to it: what is repaired is one of the right states.
fn repaired(scene: &Scene, disk: &CrashFs, what: &str) {
    let saved = esker::repair::salvage(PATH, "/repaired", &scene.options(disk));
    let saved = saved.unwrap_or_else(|error| panic!("{what}: repair: {error}"));
    let db = Db::open_with("/repaired", scene.options(disk)).unwrap();
    let fits = |state: &Contents| {
        let mut names = state.main.names();
        let mut errors = Vec::new();
        let differs = differs_in(&db, &state.main, "", &mut errors).is_some();
        for (name, (_, model)) in &state.forks {
            names.extend(model.names().iter().map(|keyspace| format!("{keyspace}@{name}")));
            // A named snapshot stays at its time; what is saved of it does not.
            let mut model = model.clone();
            model.apply(&Op::Tick(scene::NOW));
            if differs_in(&db, &model, &format!("@{name}"), &mut errors).is_some() {
                return false;
            }
        }
        names.sort();
        // Segments that no description names may have been replaced since; they stand apart.
        let mut found = db.keyspaces().unwrap();
        found.retain(|name| !name.starts_with("recovered"));
        !differs && errors.is_empty() && found == names
    };
    let fits = scene.states.iter().any(fits);
    assert!(fits, "{what}: the plan promised everything, and something is missing: {}", saved.plan);
    db.close().unwrap();
}

/// What is wrong with the keyspaces of `model`, which have `suffix` behind their names.
fn differs_in(db: &Db, model: &Model, suffix: &str, errors: &mut Vec<Error>) -> Option<String> {
    let names = db.keyspaces().unwrap();
    for slot in model.live() {
        let name = format!("{}{suffix}", esker_testkit::model::NAMES[slot]);
        if !names.contains(&name) {
            return Some(format!("there is no {name}"));
        }
        let handle = if suffix.is_empty() { keyspace(db, slot) } else { db.keyspace(&name) };
        if let Some(wrong) = compare(&handle.unwrap(), model.map(slot).unwrap(), errors) {
            return Some(format!("{name} {wrong}"));
        }
    }
    None
}

/// Opens a database and reads everything. What it answers is one of the states, as far as there is
/// no error.
fn ask(scene: &Scene, disk: &CrashFs, read_only: bool, what: &str) -> Answer {
    let mut options = scene.options(disk);
    options.read_only = read_only;
    options.create_if_missing = false;
    let db = match Db::open_with(PATH, options) {
        Ok(db) => db,
        Err(error) => {
            let kinds = [
                ErrorKind::Corruption,
                ErrorKind::UnknownFormat,
                ErrorKind::NotADatabase,
                ErrorKind::Missing,
            ];
            assert!(kinds.contains(&error.kind()), "{what}: open: {error:?}");
            return Answer::Refused(error);
        }
    };
    let mut wrong = String::new();
    let found = scene.states.iter().rev().enumerate().find_map(|(age, state)| {
        let mut errors = Vec::new();
        match shows(&db, state, &mut errors) {
            None => Some((age, errors)),
            Some(differs) if age == 0 => {
                wrong = differs;
                None
            }
            Some(_) => None,
        }
    });
    let Some((state, errors)) = found else {
        if !ENDS_ARE_KNOWN && (what.contains("MANIFEST") || what.contains("wal/")) {
            return Answer::Unknown;
        }
        let earlier = |state: &Contents| shows(&db, state, &mut Vec::new()).is_none();
        if is_last_log_gone(scene, what) && scene.known_to_log.iter().any(earlier) {
            return Answer::Unknown;
        }
        panic!("{what}: a wrong answer: {wrong}")
    };
    for error in &errors {
        let damaged = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::UnknownFormat);
        assert!(damaged, "{what}: {error:?}");
    }
    let report = db.verify().unwrap_or_else(|error| panic!("{what}: verify: {error}"));
    let problems = report.problems.len();
    db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
    let earlier = state > 0 && scene.end == End::Closed;
    assert!(!earlier, "{what}: an earlier state of a database that was closed");
    Answer::Opened { errors, state, problems }
}

/// Whether nothing is left of the last log file, nor of what its records tell of each other.
fn is_last_log_gone(scene: &Scene, what: &str) -> bool {
    let files = scene::all_files(&scene.disk);
    let last = files.keys().rfind(|path| path.extension().is_some_and(|end| end == "log"));
    let ways = ["is removed", "is empty", "is zeros"];
    last.is_some_and(|last| {
        ways.iter().any(|way| what.contains(&format!("{} {way}", last.display())))
    })
}

/// What is wrong with everything that a database shows, compared with one state.
fn shows(db: &Db, state: &Contents, errors: &mut Vec<Error>) -> Option<String> {
    let names = db.keyspaces().unwrap();
    if names != state.main.names() {
        return Some(format!("keyspaces {names:?}"));
    }
    let named = |wanted: bool| -> Vec<String> {
        let forks = state.forks.iter().filter(|(_, (snapshot, _))| *snapshot == wanted);
        forks.map(|(name, _)| name.clone()).collect()
    };
    let (branches, snapshots) = (db.branches().unwrap(), db.named_snapshots().unwrap());
    if branches != named(false) || snapshots != named(true) {
        return Some(format!("branches {branches:?}, named snapshots {snapshots:?}"));
    }
    if let Some(wrong) = differs_in(db, &state.main, "", errors) {
        return Some(wrong);
    }
    state.forks.iter().find_map(|(name, (snapshot, model))| {
        let fork = if *snapshot { db.open_named_snapshot(name) } else { db.open_branch(name) };
        let wrong = differs_in(&fork.unwrap(), model, "", errors);
        wrong.map(|wrong| format!("{name}: {wrong}"))
    })
}
