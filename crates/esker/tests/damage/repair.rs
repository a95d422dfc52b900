//! A repair that is cut off anywhere leaves a directory that nobody can open, or the whole of what
//! was to be saved; and the next repair into the same directory succeeds (C1, C9; R30).

use super::{PATH, build, options, seed};
use esker::{Db, ErrorKind, Options};
use esker_testkit::harness;
use esker_testkit::model::Model;
use esker_testkit::{CrashFs, Rng};
use std::path::Path;
use std::sync::{Arc, Mutex};

const NEW: &str = "/new";

/// What stands in the new directory after a cut.
enum Left {
    Nothing,
    Refused,
    Whole,
}

fn salvage(disk: &CrashFs, story: &str) {
    let saved = esker::repair::salvage(PATH, NEW, &options(disk));
    saved.unwrap_or_else(|error| panic!("{story}: {error}"));
}

/// The disk at each mutating step of a repair: after a kill, and after a power cut.
fn cut_off(disk: &CrashFs, story: &str) -> Vec<(String, CrashFs)> {
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let hooked = disk.kill_clone();
    let (taken, source) = (cuts.clone(), hooked.clone());
    hooked.set_hook(Some(Arc::new(move |step, what| {
        let mut cuts = taken.lock().unwrap();
        cuts.push((format!("killed before {what} ({step})"), source.kill_clone()));
        let survivors = [0, 50, 100][step as usize % 3];
        let cut = source.crash_clone(step, survivors);
        cuts.push((format!("power cut before {what} ({step})"), cut));
    })));
    salvage(&hooked, story);
    hooked.set_hook(None);
    let mut cuts = cuts.lock().unwrap();
    std::mem::take(&mut *cuts)
}

fn judge(disk: &CrashFs, saved: &Model, story: &str) -> Left {
    let mut both = Vec::new();
    for read_only in [true, false] {
        let mut options: Options = options(disk);
        options.create_if_missing = false;
        options.read_only = read_only;
        both.push(match Db::open_with(NEW, options) {
            Err(error) if error.kind() == ErrorKind::Missing => Left::Nothing,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unfinished, "{story}: {error}");
                assert!(error.to_string().contains("was not finished"), "{story}: {error}");
                let planned = esker::repair::plan(NEW, &super::options(disk)).unwrap_err();
                assert_eq!(planned.kind(), ErrorKind::Unfinished, "{story}: {planned}");
                Left::Refused
            }
            Ok(db) => {
                let found = harness::read_all(&db).unwrap_or_else(|e| panic!("{story}: {e}"));
                assert!(found == *saved, "{story}: it opens, and not everything is there");
                assert!(db.verify().unwrap().problems.is_empty(), "{story}");
                db.close().unwrap();
                Left::Whole
            }
        });
    }
    let last = both.pop().unwrap();
    assert_eq!(std::mem::discriminant(&last), std::mem::discriminant(&both[0]), "{story}");
    last
}

#[test]
fn a_repair_can_be_cut_off_anywhere_and_run_again() {
    let seed = seed();
    // All of the source is on the platter, so a power cut takes nothing of it.
    let (_, (disk, states)) = build(seed);
    let saved = states.last().unwrap();
    let mut rng = Rng::new(seed);
    let first = cut_off(&disk, "the first repair");
    let (mut refused, mut whole) = (0, 0);
    for (at, (story, left)) in first.iter().enumerate() {
        let story = format!("seed {seed}: {story}");
        match judge(&left.kill_clone(), saved, &story) {
            Left::Whole => {
                whole += 1;
                let again = esker::repair::salvage(PATH, NEW, &options(left)).unwrap_err();
                assert_eq!(again.kind(), ErrorKind::Exists, "{story}: {again}");
                continue;
            }
            Left::Refused => refused += 1,
            Left::Nothing => {}
        }
        // Not every second cut of every first one: that is the square of some hundreds.
        if at % 16 == 0 {
            let second = cut_off(left, &story);
            for _ in 0..4 {
                let (then, left) = &second[rng.below(second.len() as u64) as usize];
                let story = format!("{story}, then {then}");
                judge(&left.kill_clone(), saved, &story);
            }
        }
        salvage(left, &story);
        assert!(matches!(judge(left, saved, &story), Left::Whole), "{story}: run again");
    }
    eprintln!("{} cuts: {refused} refused, {whole} whole", first.len());
    assert!(refused * 2 > first.len() && whole > 0, "{refused} refused, {whole} whole");
}

#[test]
fn nothing_else_is_taken_for_what_a_repair_left() {
    let ((disk, _), _) = build(seed());
    let fs = disk.as_fs();
    fs.create_dir(Path::new(NEW)).unwrap();
    super::replace(&disk, &Path::new(NEW).join("notes"), b"mine");
    let error = esker::repair::salvage(PATH, NEW, &options(&disk)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    let names: Vec<String> = fs.list(Path::new(NEW)).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["notes"]);
}
