//! Checkpoints on disks that lose what was not synced, and with calls that fail (R22, R23).
use super::separating as options;
use esker::fs::{Fs, PathKind};
use esker::{Db, ErrorKind, Keyspace};
use esker_testkit::CrashFs;
use esker_testkit::FaultFs;
use esker_testkit::faultfs::{Effect, Op, Rule};
use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;

const ENTRIES: usize = 300;

/// A database whose last entries are only in memory.
fn filled(fs: Arc<dyn Fs>) -> Db {
    let db = Db::open_with("/db", options(fs)).unwrap();
    let other = db.keyspace("other").unwrap();
    for number in 0..ENTRIES {
        db.insert(format!("{number:05}"), [b'x'; 100]).unwrap();
        other.insert(format!("{number:05}"), "o").unwrap();
    }
    db.wait_until_idle().unwrap();
    db.insert("last", "one").unwrap();
    db
}

/// An iterator that met an error goes on telling it, so this stops there.
fn count(keyspace: &Keyspace) -> Result<usize, esker::Error> {
    keyspace.iter()?.try_fold(0, |count, entry| entry.map(|_| count + 1))
}

fn check(fs: Arc<dyn Fs>, path: &str) -> Result<(), esker::Error> {
    let mut options = options(fs);
    options.create_if_missing = false;
    let db = Db::open_with(path, options)?;
    assert_eq!(count(&db.default_keyspace())?, ENTRIES + 1, "of {path}");
    assert_eq!(db.get("last")?.as_deref(), Some(&b"one"[..]));
    assert_eq!(count(&db.keyspace("other")?)?, ENTRIES);
    assert!(db.verify()?.problems.is_empty());
    db.close()
}

#[test]
fn a_checkpoint_that_returned_survives_the_power_cut() {
    let disk = CrashFs::new();
    let db = filled(disk.as_fs());
    db.checkpoint("/copy").unwrap();
    for percent in [0, 50, 100] {
        let after = disk.crash_clone(7, percent);
        check(after.as_fs(), "/copy").unwrap();
        check(after.as_fs(), "/db").unwrap();
    }
    drop(db);
}

/// At every step of a checkpoint the power goes. What is left at the new path is all of it, or
/// nothing that opens; the original is whole.
#[test]
fn a_power_cut_leaves_a_whole_checkpoint_or_none() {
    let disk = CrashFs::new();
    let db = filled(disk.as_fs());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let images = Arc::new(Mutex::new(Vec::new()));
    let (watched, seen) = (disk.clone(), images.clone());
    disk.set_hook(Some(Arc::new(move |number, _| {
        for percent in [0, 50, 100] {
            seen.lock().push(watched.crash_clone(number, percent));
        }
    })));
    db.checkpoint("/copy").unwrap();
    disk.set_hook(None);
    let images = std::mem::take(&mut *images.lock());
    let (mut whole, mut none) = (0, 0);
    for image in &images {
        match check(image.as_fs(), "/copy") {
            Ok(()) => whole += 1,
            Err(error) => {
                let kind = error.kind();
                assert!(matches!(kind, ErrorKind::Missing | ErrorKind::Corruption), "{error}");
                none += 1;
            }
        }
    }
    assert!(whole > 0 && none > 10, "{whole} whole and {none} none");
    for image in images.iter().step_by(7) {
        check(image.as_fs(), "/db").unwrap();
    }
}

#[test]
fn across_devices_files_are_copied() {
    let disk = CrashFs::new();
    disk.create_dir(Path::new("/far")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk.set_other_device(Some("far"));
    let db = filled(disk.as_fs());
    db.checkpoint("/far/copy").unwrap();
    check(disk.crash_clone(1, 0).as_fs(), "/far/copy").unwrap();
    // And where the file system has no links at all.
    let faults = FaultFs::over(&disk);
    db.close().unwrap();
    let db = Db::open_with("/db", options(faults.as_fs())).unwrap();
    for (number, kind) in
        [io::ErrorKind::Unsupported, io::ErrorKind::PermissionDenied].into_iter().enumerate()
    {
        faults.clear();
        faults.add(Rule::new(Op::Link, Effect::Error(kind)).persistent());
        let path = format!("/copy{number}");
        db.checkpoint(&path).unwrap();
        check(disk.crash_clone(1, 0).as_fs(), &path).unwrap();
    }
}

/// Each call under the new path fails once: the checkpoint fails with an error, leaves nothing,
/// and the next one succeeds.
#[test]
fn a_checkpoint_that_fails_leaves_nothing() {
    let disk = CrashFs::new();
    disk.create_dir(Path::new("/far")).unwrap();
    let faults = FaultFs::over(&disk);
    let db = filled(faults.as_fs());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let mut failures = 0;
    for device in [None, Some("far")] {
        disk.set_other_device(device);
        for op in Op::ALL {
            for nth in 0.. {
                faults.clear();
                let seen = faults.fired().len();
                let effect = Effect::Error(io::ErrorKind::Other);
                faults.add(Rule::new(op, effect).path("/far/copy").after(nth));
                let made = db.checkpoint("/far/copy");
                if faults.fired().len() == seen {
                    faults.clear();
                    made.unwrap();
                    check(disk.kill_clone().as_fs(), "/far/copy").unwrap();
                    remove(&disk, Path::new("/far/copy"));
                    break;
                }
                faults.clear();
                if made.is_ok() {
                    // A call whose failure does no harm.
                    check(disk.kill_clone().as_fs(), "/far/copy").unwrap();
                    remove(&disk, Path::new("/far/copy"));
                    continue;
                }
                failures += 1;
                assert_eq!(disk.kind(Path::new("/far/copy")).unwrap(), None, "{op:?} {nth}");
            }
        }
    }
    assert!(failures > 50, "{failures} calls failed");
    check(disk.kill_clone().as_fs(), "/db").unwrap();
}

#[test]
fn a_full_device_fails_the_checkpoint_and_nothing_else() {
    let disk = CrashFs::new();
    let db = filled(disk.as_fs());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    disk.set_capacity(Some(0));
    assert_eq!(db.checkpoint("/copy").unwrap_err().kind(), ErrorKind::DiskFull);
    assert_eq!(disk.kind(Path::new("/copy")).unwrap(), None);
    disk.set_capacity(None);
    db.insert("more", "still works").unwrap();
    db.checkpoint("/copy").unwrap();
}

fn remove(disk: &CrashFs, path: &Path) {
    for entry in disk.list(path).unwrap() {
        let path = path.join(entry.name);
        match disk.kind(&path).unwrap() {
            Some(PathKind::Directory) => remove(disk, &path),
            _ => disk.remove_file(&path).unwrap(),
        }
    }
    disk.remove_dir(path).unwrap();
}
