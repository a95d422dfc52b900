//! Damaged files (C3, C4, C5; R6, R11, R12, R30).
//!
//! A small database is built once on a simulated disk. Each case changes a copy of it: a bit is
//! flipped, a file is cut, emptied, removed, doubled or swapped with another. Then open may refuse
//! with a typed error; if it does not, each key has its right value or a corruption error, no
//! iterator ends early without an error, and verify names the damage where a key is lost.
//!
//! `ESKER_DAMAGE=full` tries every bit of every file; otherwise a sample, one bit in so many.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod campaign;
mod crafted;
mod cut_log;
mod destroy;
mod in_place;
mod memory;
mod repair;
mod scene;

use esker::fs::{Fs, OpenMode};
use esker::{Db, ErrorKind, Keyspace, Options};
use esker_testkit::faultfs::{Effect, Op as Call, Rule};
use esker_testkit::harness::{self, keyspace, know_the_model, tiny_options};
use esker_testkit::model::{Map, Model, Op};
use esker_testkit::ops::Generator;
use esker_testkit::{CrashFs, FaultFs, Rng};
use std::path::{Path, PathBuf};

const PATH: &str = "/db";

fn options(disk: &CrashFs) -> Options {
    let mut options = tiny_options();
    options.memory = Some(1 << 20);
    options.memtable_bytes = Some(64 << 10);
    options.log_file_bytes = 16 << 10;
    // Files live as long as a value in them, and what is dead beside it is a hole, or too small for one: flips
    // there have no effect.
    options.separate_values_from = None;
    know_the_model(&mut options);
    options.fs = disk.as_fs();
    options
}

/// A database and the contents that would be right to find in it.
type Built = (CrashFs, Vec<Model>);

/// A database with bases, deltas, range tombstones and a log that was not closed, as a kill leaves
/// it and as a power cut does that spares everything. After a kill only damage inside the very
/// last record may pass for a torn end; after a power cut all that was not synced may.
fn build(seed: u64) -> (Built, Built) {
    let disk = CrashFs::new();
    let db = Db::open_with(PATH, options(&disk)).unwrap();
    let mut model = Model::new();
    let mut make = Generator::new(seed, 150);
    for slot in [1, 2] {
        harness::write_one(&db, &Op::Create(slot), esker::Durability::Process).unwrap();
        model.apply(&Op::Create(slot));
    }
    let mut models = Vec::new();
    let mut reader = None;
    for step in 0..260 {
        let ops = make.batch(&model, 5);
        harness::write(&db, &ops, esker::Durability::Process).unwrap();
        model.apply_all(&ops);
        if step == 100 || step == 160 {
            db.compact().unwrap();
        }
        if step % 40 == 20 {
            db.flush().unwrap();
        }
        if step == 130 {
            // Keeps run files in the directory that the manifest no longer names.
            reader = Some(db.iter().unwrap());
        }
        if step == 240 {
            db.sync().unwrap();
        }
        // After a torn end, an earlier state is right too; before the sync none is.
        if step >= 240 {
            models.push(model.clone());
        }
    }
    db.wait_until_idle().unwrap();
    let (killed, cut) = (disk.kill_clone(), disk.crash_clone(seed, 100));
    drop(reader);
    db.close().unwrap();
    ((killed, models[models.len() - 2..].to_vec()), (cut, models))
}

fn files(disk: &CrashFs, path: &Path) -> Vec<(PathBuf, u64)> {
    let mut all = Vec::new();
    for directory in ["", "wal", "data"] {
        let directory = path.join(directory);
        for entry in disk.list(&directory).unwrap() {
            // What these two hold means nothing.
            if !entry.is_dir() && entry.name != "LOCK" && entry.name != "reserve" {
                all.push((directory.join(&entry.name), entry.len));
            }
        }
    }
    all.sort();
    all
}

fn read(disk: &CrashFs, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn replace(disk: &CrashFs, path: &Path, bytes: &[u8]) {
    if disk.kind(path).unwrap().is_some() {
        disk.remove_file(path).unwrap();
    }
    disk.open(path, OpenMode::CreateNew).unwrap().write_at(bytes, 0).unwrap();
}

/// What became of a damaged copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Refused,
    /// Everything is right, or an earlier state that the log's torn end explains.
    Right,
    /// Some of it says that it is damaged; the rest is right.
    Reported,
}

/// Reads a keyspace key by key and from both ends, and compares it with what it should hold. Errors
/// end the iteration that meets them; the answer is what is wrong.
fn compare(handle: &Keyspace, map: &Map, reports: &mut Vec<esker::Error>) -> Option<String> {
    for (key, value) in map.pairs() {
        match handle.get(key) {
            Ok(found) if found.as_ref() == Some(value) => {}
            Ok(found) => return Some(format!("{key:?}: {found:?}")),
            Err(error) => reports.push(error),
        }
    }
    for backward in [false, true] {
        let mut iter = handle.iter().unwrap();
        let mut pairs: Vec<_> = map.pairs().cloned().collect();
        if backward {
            pairs.reverse();
        }
        let mut want = pairs.iter();
        loop {
            let next = if backward { iter.next_back() } else { iter.next() };
            match (next, want.next()) {
                (Some(Err(error)), _) => {
                    reports.push(error);
                    break;
                }
                (Some(Ok(found)), Some(want)) if found == *want => {}
                (None, None) => break,
                (found, want) => return Some(format!("scan: {found:?}, not {want:?}")),
            }
        }
    }
    None
}

/// Opens a damaged copy and judges every answer. `states` are the contents that would be right.
fn judge(disk: &CrashFs, states: &[Model], what: &str) -> Outcome {
    let db = match Db::open_with(PATH, options(disk)) {
        Ok(db) => db,
        Err(error) => {
            let kind = error.kind();
            let typed = [ErrorKind::Corruption, ErrorKind::UnknownFormat, ErrorKind::NotADatabase];
            assert!(typed.contains(&kind), "{what}: open: {error:?}");
            return Outcome::Refused;
        }
    };
    let (mut reports, mut wrong) = (Vec::new(), vec![None; states.len()]);
    let names = db.keyspaces().unwrap();
    for (state, wrong) in states.iter().zip(&mut wrong) {
        if state.names() != names {
            *wrong = Some(format!("keyspaces {names:?}"));
            continue;
        }
        for slot in state.live() {
            let handle = keyspace(&db, slot).unwrap();
            let found = compare(&handle, state.map(slot).unwrap(), &mut reports);
            *wrong = wrong.take().or(found.map(|found| format!("{slot} {found}")));
        }
        if wrong.is_none() {
            break;
        }
    }
    if wrong.iter().all(Option::is_some) {
        let last = wrong.last().cloned().flatten();
        panic!("{what}: wrong answers, compared with the latest state: {last:?}");
    }
    for error in &reports {
        let damaged = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::UnknownFormat);
        assert!(damaged, "{what}: {error:?}");
    }
    let report = db.verify().unwrap_or_else(|error| panic!("{what}: verify: {error}"));
    if let Some(first) = reports.first() {
        if report.problems.is_empty() {
            // A compaction may have dropped what was damaged without reading it, because a range
            // delete covers it. Then nothing is damaged any more, and nothing is missing.
            let found = harness::read_all(&db).unwrap_or_else(|error| panic!("{what}: {error}"));
            let merged = db.stats().compactions > 0 && states.contains(&found);
            assert!(merged, "{what}: verify misses {first}");
        }
        return Outcome::Reported;
    }
    // Writes go on, unless the damage is where they must read first.
    db.insert("more", "of it").unwrap_or_else(|error| panic!("{what}: write: {error}"));
    if report.problems.is_empty() { Outcome::Right } else { Outcome::Reported }
}

fn is_full() -> bool {
    std::env::var("ESKER_DAMAGE").is_ok_and(|value| value == "full")
}

fn seed() -> u64 {
    std::env::var("ESKER_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn tally(outcomes: &[Outcome]) -> String {
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    format!(
        "{} cases: {} refused, {} reported, {} without effect",
        outcomes.len(),
        count(Outcome::Refused),
        count(Outcome::Reported),
        count(Outcome::Right)
    )
}

#[test]
fn flipped_bits_are_noticed() {
    let seed = seed();
    let (killed, cut) = build(seed);
    flip_bits(seed, &killed, "after a kill");
    flip_bits(seed, &cut, "after a power cut");
}

fn flip_bits(seed: u64, (disk, states): &Built, when: &str) {
    let mut rng = Rng::new(seed);
    let mut files = files(disk, Path::new(PATH));
    for (path, len) in &mut files {
        // Space that was never written is left alone, but for a little of it.
        let used = read(disk, path).iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        *len = (*len).min(used as u64 + 64);
    }
    // Old run files may still have waited for a reader when the process was killed. Open removes
    // them, and damage to them has no effect, so they are not counted.
    // This open is cut off when it flushes what it replayed, or its compactions would remove more.
    let opened = disk.kill_clone();
    let stopped = FaultFs::over(&opened);
    stopped.add(
        Rule::new(Call::Create, Effect::Error(std::io::ErrorKind::Other)).path(".run").persistent(),
    );
    let mut settings = options(&opened);
    settings.fs = stopped.as_fs();
    drop(Db::open_with(PATH, settings));
    files.retain(|(path, _)| {
        path.extension().is_none_or(|extension| extension != "run")
            || opened.kind(path).unwrap().is_some()
    });
    for part in ["superblock", "MANIFEST", "wal/", "data/"] {
        let files: Vec<_> =
            files.iter().filter(|(path, _)| path.to_string_lossy().contains(part)).collect();
        let bits: u64 = files.iter().map(|(_, len)| len * 8).sum();
        let step = if is_full() { 1 } else { (bits / 400).max(1) };
        let mut outcomes = Vec::new();
        for (path, len) in files {
            let mut bit = rng.below(step);
            while bit < len * 8 {
                let copy = disk.kill_clone();
                copy.flip_bit(path, bit).unwrap();
                let what = format!("seed {seed}, {when}: bit {bit} of {}", path.display());
                outcomes.push(judge(&copy, states, &what));
                bit += if step == 1 { 1 } else { 1 + rng.below(2 * step - 1) };
            }
        }
        eprintln!("bits of {part} {when}: {}", tally(&outcomes));
        if part == "data/" {
            let effect = outcomes.iter().filter(|outcome| **outcome != Outcome::Right).count();
            assert!(effect * 10 > outcomes.len() * 8, "flipped bits of {part} pass {when}");
        }
    }
}

#[test]
fn cut_and_missing_files_are_noticed() {
    let seed = seed();
    let (_, (disk, states)) = build(seed);
    let mut rng = Rng::new(seed);
    let mut outcomes = Vec::new();
    for (path, len) in files(&disk, Path::new(PATH)) {
        let bytes = read(&disk, &path);
        let name = path.display();
        let mut lengths: Vec<u64> = (0..6).map(|_| rng.below(len.max(1))).collect();
        lengths.extend([0, 1, len.saturating_sub(1)]);
        for length in lengths {
            let copy = disk.kill_clone();
            replace(&copy, &path, &bytes[..length as usize]);
            outcomes.push(judge(&copy, &states, &format!("seed {seed}: {name} cut to {length}")));
        }
        let copy = disk.kill_clone();
        copy.remove_file(&path).unwrap();
        outcomes.push(judge(&copy, &states, &format!("seed {seed}: {name} removed")));
        let copy = disk.kill_clone();
        replace(&copy, &path, &vec![0; len as usize]);
        outcomes.push(judge(&copy, &states, &format!("seed {seed}: {name} zeroed")));
        let copy = disk.kill_clone();
        let from = rng.below(len.max(1)) as usize;
        let mut holed = bytes.clone();
        let until = (from + 4096).min(holed.len());
        holed[from..until].fill(0);
        replace(&copy, &path, &holed);
        outcomes.push(judge(&copy, &states, &format!("seed {seed}: {name} zeroed from {from}")));
    }
    eprintln!("{}", tally(&outcomes));
}

#[test]
fn swapped_and_doubled_files_are_noticed() {
    let seed = seed();
    let (_, (disk, states)) = build(seed);
    let mut outcomes = Vec::new();
    let files = files(&disk, Path::new(PATH));
    for (index, (path, _)) in files.iter().enumerate() {
        let (other, _) = &files[(index + 1) % files.len()];
        let (bytes, others) = (read(&disk, path), read(&disk, other));
        let (name, next) = (path.display(), other.display());
        let copy = disk.kill_clone();
        replace(&copy, path, &others);
        replace(&copy, other, &bytes);
        outcomes.push(judge(&copy, &states, &format!("seed {seed}: {name} and {next} swapped")));
        let copy = disk.kill_clone();
        replace(&copy, other, &bytes);
        outcomes.push(judge(&copy, &states, &format!("seed {seed}: {name} in place of {next}")));
        // A second copy under a number of its own, as a careless backup leaves it.
        let double = if path.extension().is_some_and(|extension| extension == "log") {
            "0000000900.log"
        } else if path.extension().is_some_and(|extension| extension == "run") {
            "0000000900.run"
        } else {
            continue;
        };
        let copy = disk.kill_clone();
        replace(&copy, &path.with_file_name(double), &bytes);
        outcomes.push(judge(&copy, &states, &format!("seed {seed}: {name} doubled")));
    }
    eprintln!("{}", tally(&outcomes));
}
