//! A repair in place changes nothing that is intact; it keeps what is damaged, to the byte, wherever
//! it is cut off and whatever fails; and it can be run again (C4; R30).

use super::{PATH, build, options, seed};
use esker::fs::{Fs, OpenMode, PathKind};
use esker::repair::Repaired;
use esker::{Db, ErrorKind, Options};
use esker_testkit::faultfs::{Effect, Op as Call, Rule};
use esker_testkit::harness;
use esker_testkit::model::Model;
use esker_testkit::{CrashFs, FaultFs, Rng};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

const KEPT: &str = "/db.damaged-1";
const SAVED: &str = "/db.repaired-1";

/// Everything in a directory: the files with what they hold.
pub(super) type Contents = BTreeMap<String, Vec<u8>>;

pub(super) fn contents(disk: &CrashFs, path: &str) -> Contents {
    let mut all = Contents::new();
    for part in ["", "wal", "data"] {
        let directory = Path::new(path).join(part);
        let entries = match disk.list(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.unwrap(),
        };
        for entry in entries.iter().filter(|entry| entry.is_file()) {
            let bytes = super::read(disk, &directory.join(&entry.name));
            all.insert(format!("{part}/{}", entry.name), bytes);
        }
    }
    all
}

/// The disk at each mutating step of some work: after a kill, and after a power cut.
pub(super) fn cuts(disk: &CrashFs, work: impl FnOnce(&CrashFs)) -> Vec<(String, CrashFs)> {
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let hooked = disk.kill_clone();
    let (taken, source) = (cuts.clone(), hooked.clone());
    hooked.set_hook(Some(Arc::new(move |step, what| {
        let mut cuts = taken.lock().unwrap();
        cuts.push((format!("killed before {what} ({step})"), source.kill_clone()));
        for survivors in [0, 50, 100] {
            let cut = source.crash_clone(step, survivors);
            cuts.push((format!("power cut ({survivors}) before {what} ({step})"), cut));
        }
    })));
    work(&hooked);
    hooked.set_hook(None);
    // And after the last step: what the call has promised is durable.
    let mut cuts = std::mem::take(&mut *cuts.lock().unwrap());
    cuts.push(("power cut at the end".to_owned(), hooked.crash_clone(0, 0)));
    cuts
}

/// Damages a file on the platter: nothing that a superblock holds is nowhere else.
fn damage(disk: &CrashFs, path: &str) {
    let path = Path::new(path).join("superblock-A");
    let file = disk.open(&path, OpenMode::ReadWrite).unwrap();
    file.write_at(b"nonsense", 0).unwrap();
    file.sync_data().unwrap();
}

/// A damaged database, all of it on the platter, and what can be saved of it.
fn damaged() -> (CrashFs, Model) {
    let (_, (disk, states)) = build(seed());
    damage(&disk, PATH);
    (disk, states.last().unwrap().clone())
}

fn repair(disk: &CrashFs) -> esker::Result<Repaired> {
    Db::repair(PATH, &options(disk))
}

/// That the database at `path` opens with all of this and is whole.
fn assert_whole(disk: &CrashFs, path: &str, saved: &Model, story: &str) {
    let mut options: Options = options(disk);
    options.create_if_missing = false;
    let db = Db::open_with(path, options).unwrap_or_else(|error| panic!("{story}: {error}"));
    let found = harness::read_all(&db).unwrap_or_else(|error| panic!("{story}: {error}"));
    assert!(found == *saved, "{story}: not everything is there");
    assert!(db.verify().unwrap().problems.is_empty(), "{story}");
    db.close().unwrap();
}

/// The directories at the root that hold exactly this.
fn holders(disk: &CrashFs, wanted: &Contents) -> Vec<String> {
    let names = disk.list(Path::new("/")).unwrap().into_iter().map(|e| format!("/{}", e.name));
    names.filter(|name| contents(disk, name) == *wanted).collect()
}

fn names(disk: &CrashFs) -> Vec<String> {
    let mut names: Vec<_> =
        disk.list(Path::new("/")).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
}

fn disk_has(disk: &CrashFs, directory: &str, file: &str) -> bool {
    disk.kind(&Path::new("/").join(directory).join(file)).unwrap().is_some()
}

/// How many databases stand under the name of a saved one without the mark.
fn unmarked(disk: &CrashFs) -> usize {
    let mut names = names(disk);
    names.retain(|name| {
        let has = |file: &str| disk_has(disk, name, file);
        name.starts_with("db.repaired-")
            && !has("INCOMPLETE")
            && (has("superblock-A") || has("superblock-B"))
    });
    names.len()
}

#[test]
fn an_intact_database_is_not_changed() {
    let ((killed, _), (cut, _)) = build(seed());
    let closed = cut.kill_clone();
    Db::open_with(PATH, options(&closed)).unwrap().close().unwrap();
    for (story, disk) in [("killed", killed), ("cut", cut), ("closed", closed)] {
        let (before, steps) = (contents(&disk, PATH), disk.ops());
        let repaired = repair(&disk).unwrap_or_else(|error| panic!("{story}: {error}"));
        assert!(!repaired.is_changed() && repaired.salvaged.is_none(), "{story}: {repaired}");
        let log = disk.log();
        let made = &log[log.len() - (disk.ops() - steps) as usize..];
        assert!(made.iter().all(|what| what.ends_with("sync_dir /")), "{story}: {made:?}");
        assert!(contents(&disk, PATH) == before && names(&disk) == ["db"], "{story}");
    }
}

#[test]
fn a_damaged_database_is_saved_and_kept_beside() {
    let (disk, saved) = damaged();
    let before = contents(&disk, PATH);
    let repaired = repair(&disk).unwrap();
    assert_eq!(repaired.kept.as_deref(), Some(Path::new(KEPT)));
    let salvaged = repaired.salvaged.as_ref().unwrap();
    assert!(!salvaged.plan.is_whole() && !salvaged.plan.has_losses() && salvaged.operations > 0);
    assert_eq!(salvaged.to, Path::new(PATH));
    assert!(repaired.to_string().ends_with(KEPT), "{repaired}");
    assert!(contents(&disk, KEPT) == before);
    assert_eq!(names(&disk), ["db", "db.damaged-1"]);
    assert_whole(&disk, PATH, &saved, "repaired");
    assert!(!repair(&disk).unwrap().is_changed());
    // The next one finds the names taken, by whatever it is, and takes none of it away.
    damage(&disk, PATH);
    let again = contents(&disk, PATH);
    disk.open(Path::new("/db.damaged-2"), OpenMode::CreateNew).unwrap();
    let theirs = "/db.repaired-3";
    Db::open_with(theirs, options(&disk)).unwrap().close().unwrap();
    let others = contents(&disk, theirs);
    let repaired = repair(&disk).unwrap();
    assert_eq!(repaired.kept.as_deref(), Some(Path::new("/db.damaged-4")));
    assert!(contents(&disk, "/db.damaged-4") == again && contents(&disk, theirs) == others);
    assert!(contents(&disk, KEPT) == before);
    assert_whole(&disk, PATH, &saved, "repaired twice");
}

#[test]
fn a_repair_in_place_can_be_cut_off_anywhere_and_run_again() {
    let seed = seed();
    let (disk, saved) = damaged();
    let before = contents(&disk, PATH);
    let work = |disk: &CrashFs| drop(repair(disk).unwrap());
    let mut rng = Rng::new(seed);
    let first = cuts(&disk, work);
    let (mut anew, mut went_on, mut done, mut left_over) = (0, 0, 0, 0);
    for (at, (story, left)) in first.iter().enumerate() {
        let mut cases = vec![(format!("seed {seed}: {story}"), left.kill_clone())];
        // Not every second cut of every first one: that is the square of some hundreds.
        if at % 32 == 0 || first.len() - at < 16 {
            let second = cuts(left, |disk| drop(repair(disk).unwrap()));
            for _ in 0..3 {
                let (then, left) = &second[rng.below(second.len() as u64) as usize];
                cases.push((format!("seed {seed}: {story}, then {then}"), left.kill_clone()));
            }
        }
        // The last steps count most, those before them are as many as there are files.
        if at % 4 != 0 && first.len() - at > 80 {
            continue;
        }
        for (story, left) in cases {
            let holds = holders(&left, &before);
            assert_eq!(holds.len(), 1, "{story}: the damaged one is {holds:?}");
            let over = unmarked(&left);
            let repaired = repair(&left).unwrap_or_else(|error| panic!("{story}: {error}"));
            match (&repaired.kept, &repaired.salvaged) {
                (Some(_), Some(_)) => anew += 1,
                (Some(_), None) => went_on += 1,
                (None, _) => done += 1,
            }
            let after = left.crash_clone(seed, 0);
            let holds = holders(&after, &before);
            assert_eq!(holds.len(), 1, "{story}: the damaged one is {holds:?} in the end");
            assert!(holds[0].starts_with("/db.damaged-"), "{story}: {holds:?}");
            assert_whole(&after, PATH, &saved, &story);
            // What was whole and not yet in its place may be anybody's: it stays.
            let rest = names(&after);
            assert!(rest.len() <= 2 + over, "{story}: {rest:?}");
            left_over += over;
        }
    }
    eprintln!("{} cuts: {anew} anew, {went_on} gone on with, {done} done", first.len());
    eprintln!("{left_over} saved databases left over");
    assert!(anew > 10 && went_on > 0 && done > 0);
}

#[test]
fn what_two_repairs_left_that_were_cut_off_is_removed() {
    let (disk, saved) = damaged();
    let work = |disk: &CrashFs| drop(repair(disk).unwrap());
    let mark = Path::new(SAVED).join("INCOMPLETE");
    // The first one is killed when its mark is gone, which is not durable: the second takes
    // another number, and the power cut that ends it brings the mark of the first one back.
    let first = cuts(&disk, work);
    let gone = |(_, disk): &&(String, CrashFs)| {
        unmarked(disk) == 1 && disk.crash_clone(0, 0).kind(&mark).unwrap().is_some()
    };
    let (killed, left) = first.iter().find(gone).expect("no such moment");
    let mut both = 0;
    for (then, left) in cuts(left, work) {
        let marked =
            |name: &String| disk_has(&left, name, "INCOMPLETE") && name.starts_with("db.repaired-");
        if names(&left).iter().filter(|name| marked(name)).count() < 2 {
            continue;
        }
        both += 1;
        let story = format!("{killed}, then {then}");
        repair(&left).unwrap_or_else(|error| panic!("{story}: {error}"));
        assert_eq!(names(&left), ["db", "db.damaged-1"], "{story}");
        assert_whole(&left, PATH, &saved, &story);
    }
    assert!(both > 10, "{both} times there were two of them");
}

#[test]
fn only_what_repairs_left_is_removed() {
    let (disk, saved) = damaged();
    // The name of the last is one that no repair makes.
    for name in ["db.repaired-2", "db.repaired-3", "db.repaired-04"] {
        let directory = Path::new("/").join(name);
        disk.create_dir(&directory).unwrap();
        disk.open(&directory.join("INCOMPLETE"), OpenMode::CreateNew).unwrap();
    }
    disk.create_dir(Path::new("/db.repaired-5")).unwrap();
    disk.open(Path::new("/db.repaired-5/mine"), OpenMode::CreateNew).unwrap();
    let filled = disk.lock(Path::new("/db.repaired-2/LOCK")).unwrap();
    repair(&disk).unwrap();
    drop(filled);
    let stay = ["db.repaired-04", "db.repaired-2", "db.repaired-5"];
    assert_eq!(names(&disk)[2..], stay, "but nothing else");
    assert_whole(&disk, PATH, &saved, "repaired beside others");
}

#[test]
fn nothing_is_lost_if_a_rename_fails() {
    let (disk, saved) = damaged();
    let before = contents(&disk, PATH);
    for failing in [0, 1] {
        let disk = disk.kill_clone();
        let fs = FaultFs::over(&disk);
        let mut options: Options = options(&disk);
        options.fs = fs.as_fs();
        let denied = Effect::Error(io::ErrorKind::PermissionDenied);
        fs.add(Rule::new(Call::Rename, denied.clone()).path(PATH).after(failing));
        let error = Db::repair(PATH, &options).unwrap_err();
        assert_eq!((error.kind(), fs.fired().len()), (ErrorKind::Io, 1), "{failing}: {error}");
        assert!(contents(&disk, PATH) == before, "{failing}");
        assert_eq!(names(&disk), ["db"], "{failing}: what a failed repair saved is left over");
        fs.clear();
        if failing == 1 {
            // Not even the first rename can be taken back: nothing stands at the path.
            fs.add(Rule::new(Call::Rename, denied).path(PATH).after(1).persistent());
            assert_eq!(Db::repair(PATH, &options).unwrap_err().kind(), ErrorKind::Io);
            assert_eq!(names(&disk), ["db.damaged-1", "db.repaired-1"]);
            assert!(contents(&disk, KEPT) == before);
            fs.clear();
            let repaired = Db::repair(PATH, &options).unwrap();
            assert!(repaired.is_changed() && repaired.salvaged.is_none(), "{repaired}");
        } else {
            Db::repair(PATH, &options).unwrap();
        }
        assert!(contents(&disk, KEPT) == before);
        assert_eq!(names(&disk), ["db", "db.damaged-1"]);
        assert_whole(&disk, PATH, &saved, "after the rename that failed");
    }
}

#[test]
fn whatever_call_fails_the_damaged_database_stays_whole() {
    let (disk, saved) = damaged();
    let before = contents(&disk, PATH);
    let mut failed = 0;
    for call in Call::ALL {
        for nth in [0, 1, 2, 5, 11, 24, 50, 101, 203, 407] {
            let disk = disk.kill_clone();
            let fs = FaultFs::over(&disk);
            let mut options: Options = options(&disk);
            options.fs = fs.as_fs();
            fs.add(Rule::new(call, Effect::Error(io::ErrorKind::Other)).after(nth));
            let story = format!("{call:?} {nth}");
            // What cannot be read counts as lost, and is only in the one that is kept.
            let mut lost = false;
            match Db::repair(PATH, &options) {
                Ok(repaired) => {
                    assert!(repaired.is_changed(), "{story}: {repaired}");
                    lost = repaired.salvaged.unwrap().plan.has_losses();
                }
                Err(_) => failed += 1,
            }
            if fs.fired().is_empty() {
                break;
            }
            assert_eq!(holders(&disk, &before).len(), 1, "{story}");
            fs.clear();
            fs.forget_failed_syncs();
            Db::repair(PATH, &options).unwrap_or_else(|error| panic!("{story}: {error}"));
            let holds = holders(&disk, &before);
            assert_eq!(holds, [KEPT], "{story}");
            if lost {
                assert!(matches!(call, Call::Open | Call::Read | Call::List), "{story}");
                continue;
            }
            assert_whole(&disk, PATH, &saved, &story);
        }
    }
    assert!(failed > 20, "{failed} repairs failed");
}

#[test]
fn a_keyspace_whose_comparator_is_missing_is_not_repaired_away() {
    let (disk, saved) = damaged();
    let mut without: Options = options(&disk);
    without.comparators.clear();
    let (before, beside) = (contents(&disk, PATH), names(&disk));
    let error = Db::repair(PATH, &without).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ComparatorMissing, "{error}");
    assert!(contents(&disk, PATH) == before && names(&disk) == beside);
    assert!(repair(&disk).unwrap().is_changed());
    assert_whole(&disk, PATH, &saved, "with the comparator");
    // An intact one needs none.
    assert!(!Db::repair(PATH, &without).unwrap().is_changed());
}

#[test]
fn what_is_no_database_is_refused_by_a_repair_in_place() {
    let (disk, _) = damaged();
    let kind = |path: &str| Db::repair(path, &options(&disk)).unwrap_err().kind();
    assert_eq!(kind("/none"), ErrorKind::Missing);
    assert_eq!(kind("/none/none"), ErrorKind::Missing);
    disk.create_dir(Path::new("/mine")).unwrap();
    disk.open(Path::new("/mine/notes"), OpenMode::CreateNew).unwrap();
    assert_eq!(kind("/mine"), ErrorKind::NotADatabase);
    assert_eq!(kind("/mine/notes"), ErrorKind::NotADatabase);
    assert_eq!(kind("/"), ErrorKind::NotADatabase);
    let lock = disk.lock(&Path::new(PATH).join("LOCK")).unwrap();
    let before = contents(&disk, PATH);
    assert_eq!(kind(PATH), ErrorKind::Locked);
    assert!(contents(&disk, PATH) == before);
    drop(lock);
    disk.open(&Path::new(PATH).join("INCOMPLETE"), OpenMode::CreateNew).unwrap();
    assert_eq!(kind(PATH), ErrorKind::Unfinished);
    assert_eq!(names(&disk), ["db", "mine"]);
    // Neither of a pair alone says that a repair was cut off between its renames.
    disk.rename(Path::new(PATH), Path::new(KEPT)).unwrap();
    assert_eq!(kind(PATH), ErrorKind::Missing);
    disk.rename(Path::new(KEPT), Path::new(SAVED)).unwrap();
    assert_eq!(kind(PATH), ErrorKind::Missing);
    disk.create_dir(Path::new(KEPT)).unwrap();
    assert_eq!(kind(PATH), ErrorKind::Missing, "what was saved is not complete");
    assert_eq!(disk.kind(Path::new(PATH)).unwrap(), None::<PathKind>);
}
