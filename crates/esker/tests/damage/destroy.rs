//! A destruction that is cut off anywhere, or fails, leaves the whole database or what nobody opens;
//! the next call goes on, and what was removed does not come back.

use super::in_place::{contents, cuts};
use super::{PATH, build, options, seed};
use esker::fs::{Fs, OpenMode};
use esker::{Db, ErrorKind, Options};
use esker_testkit::faultfs::{Effect, Op as Call, Rule};
use esker_testkit::harness;
use esker_testkit::model::Model;
use esker_testkit::{CrashFs, FaultFs};
use std::io;
use std::path::Path;

/// A file that is not the database's.
const MINE: &str = "/db/data/mine";

fn destroy(disk: &CrashFs) -> esker::Result<()> {
    Db::destroy(PATH, &options(disk))
}

/// Whether the database opens; then all of it is there.
fn opens(disk: &CrashFs, all: &Model, story: &str) -> bool {
    let mut options: Options = options(disk);
    options.create_if_missing = false;
    match Db::open_with(PATH, options) {
        Ok(db) => {
            let found = harness::read_all(&db).unwrap_or_else(|error| panic!("{story}: {error}"));
            assert!(found == *all, "{story}: it opens, and not everything is there");
            assert!(db.verify().unwrap().problems.is_empty(), "{story}");
            true
        }
        Err(error) => {
            let kinds = [
                ErrorKind::Corruption,
                ErrorKind::Missing,
                ErrorKind::NotADatabase,
                ErrorKind::Unfinished,
            ];
            assert!(kinds.contains(&error.kind()), "{story}: {error}");
            false
        }
    }
}

/// With a mark, as a repair leaves it that was cut off; with another's file; and with neither.
fn scenes() -> Vec<(&'static str, CrashFs, Model)> {
    let (_, (disk, states)) = build(seed());
    let scene = |name, file: Option<&str>| {
        let disk = disk.kill_clone();
        if let Some(file) = file {
            disk.open(Path::new(file), OpenMode::CreateNew).unwrap();
            disk.sync_dir(Path::new(file).parent().unwrap()).unwrap();
        }
        (name, disk, states.last().unwrap().clone())
    };
    vec![
        scene("plain", None),
        scene("marked", Some("/db/INCOMPLETE")),
        scene("mine", Some(MINE)),
        scene("aside", Some("/db/data/0000000007.run.set-aside-000001")),
    ]
}

fn assert_gone(disk: &CrashFs, scene: &str, story: &str) {
    // Durably.
    for after in [disk.kill_clone(), disk.crash_clone(1, 0)] {
        if scene == "mine" {
            let left: Vec<String> = contents(&after, PATH).into_keys().collect();
            assert_eq!(left, ["data/mine"], "{story}");
            assert_eq!(after.kind(Path::new("/db/wal")).unwrap(), None, "{story}");
        } else {
            assert_eq!(after.list(Path::new("/")).unwrap(), [], "{story}");
        }
    }
}

#[test]
fn a_destruction_can_be_cut_off_anywhere_and_run_again() {
    for (scene, disk, all) in scenes() {
        let cuts = cuts(&disk, |disk| destroy(disk).unwrap());
        let mut whole = 0;
        for (story, left) in &cuts {
            let story = format!("{scene}: {story}");
            // Opening it may change it.
            if opens(&left.kill_clone(), &all, &story) {
                assert_ne!(scene, "marked", "{story}");
                whole += 1;
            }
            match destroy(left) {
                // Only the name of the lock file may be left, which is not enough to go by.
                Err(error) => {
                    assert_eq!((scene, error.kind()), ("mine", ErrorKind::NotADatabase), "{story}");
                    let left: Vec<String> = contents(left, PATH).into_keys().collect();
                    assert!(left.iter().all(|name| name == "data/mine" || name == "/LOCK"));
                }
                Ok(()) => assert_gone(left, scene, &story),
            }
        }
        eprintln!("{scene}: {} cuts, {whole} whole", cuts.len());
        assert!(scene == "marked" || whole > 0 && whole * 2 < cuts.len(), "{scene}: {whole}");
    }
}

#[test]
fn a_destruction_that_fails_goes_on_when_it_is_run_again() {
    let mut failed = 0;
    for (scene, disk, all) in scenes() {
        for call in Call::ALL {
            for nth in 0.. {
                let disk = disk.kill_clone();
                let fs = FaultFs::over(&disk);
                let mut options: Options = options(&disk);
                options.fs = fs.as_fs();
                let denied = Effect::Error(io::ErrorKind::PermissionDenied);
                fs.add(Rule::new(call, denied).after(nth));
                let story = format!("{scene}: {call:?} {nth}");
                let destroyed = Db::destroy(PATH, &options);
                if fs.fired().is_empty() {
                    break;
                }
                fs.clear();
                if destroyed.is_err() {
                    failed += 1;
                    opens(&disk.kill_clone(), &all, &story);
                }
                match Db::destroy(PATH, &options) {
                    Ok(()) => assert_gone(&disk, scene, &story),
                    // All was removed, and only the last sync failed.
                    Err(error) => {
                        let left: Vec<String> = contents(&disk, PATH).into_keys().collect();
                        assert_eq!((scene, error.kind()), ("mine", ErrorKind::NotADatabase));
                        assert!(left.iter().all(|name| name == "data/mine" || name == "/LOCK"));
                    }
                }
            }
        }
    }
    assert!(failed > 50, "{failed} calls failed");
}
