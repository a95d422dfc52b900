//! What a database is known to consist of: whatever of it is damaged, missing or put back is told
//! by name, and what cannot be told loses nothing that was acknowledged (C1, C4; R4, R11, R12).

use super::PATH;
use esker::fs::{Fs, OpenMode};
use esker::internals::manifest::{SUPERBLOCK_NAMES, Superblock};
use esker::{Db, Durability, ErrorKind, Options, Recovery};
use esker_testkit::faultfs::{Effect, Op as Call, Rule};
use esker_testkit::{CrashFs, FaultFs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

fn options(disk: &CrashFs) -> Options {
    super::options(disk, esker::LogKind::Plain)
}

fn open(disk: &CrashFs) -> esker::Result<Db> {
    Db::open_with(PATH, options(disk))
}

/// The files of a database whose paths begin so.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(disk: &CrashFs, starts: &[&str]) -> Files {
    let mut found = Files::new();
    for directory in ["", "wal", "data"] {
        let directory = Path::new(PATH).join(directory);
        for entry in disk.list(&directory).unwrap() {
            let path = directory.join(&entry.name);
            let name = path.strip_prefix(PATH).unwrap().to_str().unwrap();
            if entry.is_dir() || !starts.iter().any(|start| name.starts_with(start)) {
                continue;
            }
            let mut bytes = vec![0; entry.len as usize];
            disk.open(&path, OpenMode::Read).unwrap().read_at(&mut bytes, 0).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// A copy of the disk on which the files whose paths begin so are these.
fn put_back(disk: &CrashFs, starts: &[&str], older: &Files) -> CrashFs {
    let copy = disk.kill_clone();
    for path in files(&copy, starts).into_keys() {
        copy.remove_file(&path).unwrap();
    }
    for (path, bytes) in older {
        copy.open(path, OpenMode::CreateNew).unwrap().write_at(bytes, 0).unwrap();
    }
    copy
}

/// The superblock that counts.
fn superblock(disk: &CrashFs) -> Superblock {
    let read = |name| Superblock::read_file(disk, &Path::new(PATH).join(name)).unwrap().unwrap();
    SUPERBLOCK_NAMES.map(read).into_iter().max_by_key(|found| found.generation).unwrap()
}

fn manifest_path(disk: &CrashFs) -> PathBuf {
    Path::new(PATH).join(esker::internals::manifest::manifest_name(superblock(disk).manifest))
}

const CLASSES: [Durability; 3] = [Durability::Buffered, Durability::Process, Durability::Disk];

fn insert(db: &Db, number: u32, class: Durability) {
    db.default_keyspace().insert_with(number.to_be_bytes(), b"value", class).unwrap();
}

/// The numbers that a database holds.
fn held(db: &Db) -> Vec<u32> {
    let number = |key: Vec<u8>| u32::from_be_bytes(key.try_into().unwrap());
    db.iter().unwrap().map(|entry| number(entry.unwrap().0)).collect()
}

/// Opens a copy in every way: each refuses by name, or each shows exactly the numbers below `all`.
/// Says whether it was refused.
fn refused(disk: &CrashFs, all: u32, what: &str) -> bool {
    let verdict = esker::internals::recovery::consistency::check(disk, Path::new(PATH));
    let mut reading = options(&disk.kill_clone());
    reading.read_only = true;
    let outcomes = [Db::open_with(PATH, reading), open(&disk.kill_clone())].map(|opened| {
        let db = opened.map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
            error.to_string()
        })?;
        assert!(held(&db).into_iter().eq(0..all), "{what}: {:?}", held(&db));
        assert!(db.verify().unwrap().is_sound(), "{what}");
        db.close().unwrap();
        Ok::<_, String>(())
    });
    let first = outcomes[0].is_err();
    assert!(outcomes.iter().all(|outcome| outcome.is_err() == first), "{what}: {outcomes:?}");
    let verdict = verdict.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(!verdict.damage.is_empty(), first, "{what}: {verdict:?}");
    first
}

/// `verify` of a database that opened finds nothing, or only a superblock that is not whole.
trait Sound {
    fn is_sound(&self) -> bool;
}

impl Sound for esker::VerifyReport {
    fn is_sound(&self) -> bool {
        let single = |p: &esker::Problem| p.path.to_string_lossy().contains("superblock");
        self.problems.iter().all(single)
    }
}

/// A database with an edit of the manifest as the last thing that was done, in each class.
fn with_last_edit(class: Durability, close: bool) -> CrashFs {
    let disk = CrashFs::new();
    let db = open(&disk).unwrap();
    insert(&db, 0, class);
    db.flush().unwrap();
    insert(&db, 1, class);
    db.flush().unwrap();
    if close {
        db.close().unwrap();
    }
    disk.kill_clone()
}

/// A flipped bit in the last edit of the manifest once passed for a torn end: the flushed data was
/// gone without a word, and the next opening removed its run file.
#[test]
fn no_bit_of_the_last_edit_is_lost_in_silence() {
    let mut flips = 0;
    for class in CLASSES {
        for close in [true, false] {
            let disk = with_last_edit(class, close);
            let path = manifest_path(&disk);
            let manifest = esker::internals::manifest::read(
                &disk,
                Path::new(PATH),
                superblock(&disk).manifest,
                None,
            );
            let steps = manifest.unwrap().steps;
            let [.., before, last] = &steps[..] else { panic!("{steps:?}") };
            assert_eq!(superblock(&disk).known.unwrap().manifest, *last);
            for bit in before.len * 8..last.len * 8 {
                let copy = disk.kill_clone();
                copy.flip_bit(&path, bit).unwrap();
                // What pads the record to a multiple of 8 bytes says nothing.
                let padding = bit / 8 >= last.len - 7;
                let what = format!("{class:?}, closed {close}, bit {bit}");
                let verdict =
                    esker::internals::recovery::consistency::check(&copy, Path::new(PATH)).unwrap();
                let found = !verdict.damage.is_empty();
                assert!(found || padding, "{what}: passed");
                // All judge alike; opening in each way costs more.
                if bit % 23 == 0 {
                    assert_eq!(refused(&copy, 2, &what), found, "{what}");
                }
                flips += u32::from(found);
            }
        }
    }
    eprintln!("{flips} flipped bits were refused by name");
}

#[test]
fn no_bit_of_a_superblock_matters() {
    for class in CLASSES {
        let disk = with_last_edit(class, true);
        for name in SUPERBLOCK_NAMES {
            let path = Path::new(PATH).join(name);
            let len = disk.open(&path, OpenMode::Read).unwrap().len().unwrap();
            assert_eq!(len, 512);
            // Opening costs more than the flip; each bit by itself is in `manifest/tests`.
            for bit in (0..len * 8).step_by(37) {
                let copy = disk.kill_clone();
                copy.flip_bit(&path, bit).unwrap();
                assert!(!refused(&copy, 2, &format!("{class:?}, {name}, bit {bit}")));
            }
            let copy = disk.kill_clone();
            copy.remove_file(&path).unwrap();
            assert!(!refused(&copy, 2, &format!("{class:?}, {name} is missing")));
        }
    }
}

/// A log of an earlier moment once opened in silence.
#[test]
fn an_older_log_is_refused_by_name() {
    for class in [Durability::Process, Durability::Disk] {
        for end in ["close", "sync"] {
            let disk = CrashFs::new();
            let db = open(&disk).unwrap();
            let mut older = Vec::new();
            for number in 0..12 {
                older.push(files(&disk, &["wal/"]));
                insert(&db, number, class);
                if number == 6 {
                    // The same keys again: the log goes on behind a flush.
                    db.flush().unwrap();
                }
            }
            match end {
                "close" => db.close().unwrap(),
                _ => db.sync().unwrap(),
            }
            let disk = disk.kill_clone();
            assert!(!refused(&disk, 12, "as it was"));
            for (number, log) in older.iter().enumerate() {
                let copy = put_back(&disk, &["wal/"], log);
                let what = format!("{class:?}, {end}, the log before write {number}");
                // After a close everything is in runs: a log that lacks nothing of it is right.
                let refused = refused(&copy, 12, &what);
                assert!(refused || end == "close", "{what}: passed");
                if refused && end == "sync" {
                    let mut keep = options(&copy);
                    keep.recovery = Recovery::KeepPrefix;
                    let db = Db::open_with(PATH, keep).unwrap();
                    let kept = held(&db);
                    assert!(kept.iter().copied().eq(0..kept.len() as u32) && kept.len() >= 7);
                    insert(&db, 12, class);
                    db.close().unwrap();
                    assert_eq!(held(&open(&copy).unwrap()).len(), kept.len() + 1, "{what}");
                }
            }
        }
    }
}

/// After a close the log has records when the disk was too full for the last flush.
#[test]
fn an_older_manifest_or_older_superblocks_are_refused_by_name() {
    let disk = CrashFs::new();
    let mut older = Vec::new();
    for life in 0..3 {
        let db = open(&disk).unwrap();
        for number in 0..4 {
            older.push(files(&disk, &["superblock", "MANIFEST"]));
            insert(&db, life * 4 + number, Durability::Buffered);
            db.flush().unwrap();
        }
        db.close().unwrap();
    }
    let disk = disk.kill_clone();
    for (step, all) in older.iter().enumerate() {
        let what = format!("before step {step}");
        let part = |starts: &[&str]| -> Files {
            let chosen = |path: &Path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                starts.iter().any(|start| name.starts_with(start))
            };
            all.iter()
                .filter(|(path, _)| chosen(path))
                .map(|(p, b)| (p.clone(), b.clone()))
                .collect()
        };
        let manifest = put_back(&disk, &["MANIFEST"], &part(&["MANIFEST"]));
        assert!(refused(&manifest, 12, &format!("{what}: the manifest")));
        for name in SUPERBLOCK_NAMES {
            let one = put_back(&disk, &[name], &part(&[name]));
            assert!(!refused(&one, 12, &format!("{what}: {name}")));
        }
        let both = put_back(&disk, &["superblock"], &part(&["superblock"]));
        // Those of this opening lead to the same manifest, which tells the rest.
        let same_life = step >= 8;
        assert_eq!(!refused(&both, 12, &format!("{what}: both superblocks")), same_life, "{what}");
        // What they say is consistent; the log knows better.
        let set = put_back(&disk, &["superblock", "MANIFEST"], all);
        assert!(refused(&set, 12, &format!("{what}: superblocks and manifest")));
    }
}

/// What stands behind the known end of a manifest may be a torn edit or one that rotted; the files
/// that it may have referred to are not removed.
#[test]
fn files_without_a_reference_are_set_aside_while_the_manifest_has_a_torn_end() {
    let names = |disk: &CrashFs| -> Vec<String> {
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        files(disk, &["data/", "MANIFEST"]).into_keys().map(name).collect()
    };
    for close in [false, true] {
        let disk = with_last_edit(Durability::Process, close);
        let orphan = Path::new(PATH).join("data/0000000077.run");
        disk.open(&orphan, OpenMode::CreateNew).unwrap().write_at(b"output", 0).unwrap();
        let (path, known) = (manifest_path(&disk), superblock(&disk).known.unwrap().manifest.len);
        disk.open(&path, OpenMode::ReadWrite).unwrap().write_at(b"torn", known + 16).unwrap();
        let number = superblock(&disk).manifest;
        // The opening may be cut off at any step: what is set aside stays so.
        let cuts = Arc::new(Mutex::new(vec![disk.kill_clone()]));
        let (taken, source) = (cuts.clone(), disk.clone());
        disk.set_hook(Some(Arc::new(move |_, _| {
            taken.lock().unwrap().push(source.kill_clone());
        })));
        drop(open(&disk).unwrap());
        disk.set_hook(None);
        let cuts = std::mem::take(&mut *cuts.lock().unwrap());
        for (step, cut) in cuts.into_iter().enumerate() {
            drop(open(&cut).unwrap());
            let names = names(&cut);
            let run = format!("0000000077.run.set-aside-{number:06}");
            assert_eq!(names.contains(&run), !close, "closed {close}, step {step}: {names:?}");
            assert!(!names.contains(&"0000000077.run".to_owned()), "{names:?}");
            let manifest = format!("MANIFEST-{number:06}.set-aside-{number:06}");
            assert_eq!(names.contains(&manifest), !close, "closed {close}, step {step}: {names:?}");
            assert!(!refused(&cut, 2, "set aside"));
        }
    }
}

/// No write of class `Disk` waits for it, and still the log is known to reach so far.
#[test]
fn what_writes_of_class_disk_synced_is_recorded_in_the_background() {
    let disk = CrashFs::new();
    let db = open(&disk).unwrap();
    let older = files(&disk, &["wal/"]);
    let written = Arc::new((Mutex::new(0), Condvar::new()));
    let tell = written.clone();
    disk.set_hook(Some(Arc::new(move |_, what: &str| {
        if what.contains("superblock") {
            *tell.0.lock().unwrap() += 1;
            tell.1.notify_all();
        }
    })));
    insert(&db, 0, Durability::Disk);
    // A write and a sync of the superblock, told before they are done.
    let mut steps = written.0.lock().unwrap();
    while *steps < 2 {
        steps = written.1.wait(steps).unwrap();
    }
    drop(steps);
    disk.set_hook(None);
    // The record is complete when its lock is free again.
    db.verify().unwrap();
    let killed = disk.kill_clone();
    assert!(superblock(&killed).known.unwrap().log.position > 0);
    assert!(refused(&put_back(&killed, &["wal/"], &older), 1, "an older log"));
    db.close().unwrap();
}

/// A database of version 1 or 2 becomes one of version 3 when it is opened for writing. Wherever that
/// is cut off, by a kill or a power cut, nothing is lost.
#[test]
fn the_conversion_from_version_1_can_be_cut_off_anywhere() {
    a_conversion_can_be_cut_off_anywhere("v1");
}

#[test]
fn the_conversion_from_version_2_can_be_cut_off_anywhere() {
    a_conversion_can_be_cut_off_anywhere("v2");
}

fn a_conversion_can_be_cut_off_anywhere(version: &str) {
    let disk = golden(version);
    let expected = everything(&disk.kill_clone());
    assert!(expected.len() > 300, "{}", expected.len());
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let (taken, source) = (cuts.clone(), disk.clone());
    disk.set_hook(Some(Arc::new(move |step, what: &str| {
        let mut cuts = taken.lock().unwrap();
        cuts.push((format!("killed before {what}"), source.kill_clone()));
        for survivors in [0, 50, 100] {
            let cut = source.crash_clone(step, survivors);
            cuts.push((format!("power cut before {what}, {survivors} % survive"), cut));
        }
    })));
    let db = Db::open_with(PATH, golden_options(&disk)).unwrap();
    disk.set_hook(None);
    assert!(superblock(&disk).known.is_some());
    assert_eq!(superblock(&disk).version, 3);
    db.close().unwrap();
    let cuts = std::mem::take(&mut *cuts.lock().unwrap());
    assert!(cuts.len() > 80, "an opening has only {} steps", cuts.len() / 4);
    for (story, cut) in cuts {
        assert!(everything(&cut) == expected, "{story}");
        assert!(superblock(&cut).known.is_some(), "{story}");
        assert_eq!(superblock(&cut).version, 3, "{story}");
    }
}

/// Orders keys by their lengths, then by their bytes, as in the golden database.
struct ShortFirst;

impl esker::Comparator for ShortFirst {
    fn name(&self) -> &str {
        "short-first"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

fn golden_options(disk: &CrashFs) -> Options {
    let mut options = options(disk);
    options.comparators = vec![Arc::new(ShortFirst)];
    options
}

/// A golden database, on a simulated disk.
pub fn golden(version: &str) -> CrashFs {
    let disk = CrashFs::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version).join("db");
    for directory in ["", "wal", "data"] {
        let to = Path::new(PATH).join(directory);
        disk.create_dir(&to).unwrap();
        for entry in std::fs::read_dir(from.join(directory)).unwrap() {
            let entry = entry.unwrap();
            if entry.path().is_dir() {
                continue;
            }
            let file = disk.open(&to.join(entry.file_name()), OpenMode::CreateNew).unwrap();
            file.write_at(&std::fs::read(entry.path()).unwrap(), 0).unwrap();
            file.sync_data().unwrap();
        }
    }
    for directory in ["/db/wal", "/db/data", "/db", "/"] {
        disk.sync_dir(Path::new(directory)).unwrap();
    }
    disk
}

/// All entries of all keyspaces.
fn everything(disk: &CrashFs) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let db = Db::open_with(PATH, golden_options(disk)).unwrap();
    let mut found = Vec::new();
    for name in db.keyspaces().unwrap() {
        for entry in db.keyspace(&name).unwrap().iter().unwrap() {
            let (key, value) = entry.unwrap();
            found.push((name.clone(), key.to_vec(), value.to_vec()));
        }
    }
    db.close().unwrap();
    found
}

/// A superblock that could be written only in part, for want of space, is whole again with the next
/// one; until then the other counts, and nothing is damaged.
#[test]
fn a_superblock_that_found_no_space_is_no_damage() {
    let disk = CrashFs::new();
    let faults = FaultFs::over(&disk);
    let mut options = options(&disk);
    options.fs = faults.as_fs();
    let db = Db::open_with(PATH, options.clone()).unwrap();
    db.insert("k", "v").unwrap();
    let short = Effect::ShortWrite(300, std::io::ErrorKind::StorageFull);
    faults.add(Rule::new(Call::Write, short).path("superblock").persistent());
    db.flush().unwrap();
    assert!(!faults.fired().is_empty());
    let problems = db.verify().unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
    faults.clear();
    let killed = disk.kill_clone();
    db.insert("k2", "v").unwrap();
    db.flush().unwrap();
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    for disk in [disk, killed] {
        options.fs = disk.as_fs();
        let db = Db::open_with(PATH, options.clone()).unwrap();
        assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"v"[..]));
        assert!(db.verify().unwrap().problems.is_empty());
    }
}
