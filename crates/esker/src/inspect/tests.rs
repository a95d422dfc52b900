//! Every kind of file, whole and damaged.

use super::file;
use crate::{Db, ErrorKind, Options};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn sample() -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("db");
    let mut options = Options::default();
    options.memory = Some(4 << 20);
    options.block_bytes = 512;
    options.log_file_bytes = 64 << 10;
    let db = Db::open_with(&path, options).unwrap();
    for i in 0..50 {
        db.insert(format!("key{i:02}"), format!("value{i}")).unwrap();
    }
    db.flush().unwrap();
    db.insert("key05", "newer").unwrap();
    db.remove_range("key10".."key12").unwrap();
    db.flush().unwrap();
    db.insert("late", "value").unwrap();
    db.remove("key00").unwrap();
    let copied = temporary.path().join("copy");
    for directory in ["", "wal", "data"] {
        fs::create_dir_all(copied.join(directory)).unwrap();
        for entry in fs::read_dir(path.join(directory)).unwrap() {
            let entry = entry.unwrap();
            if entry.path().is_file() {
                let to = copied.join(directory).join(entry.file_name());
                fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    db.close().unwrap();
    (temporary, copied)
}

/// The files of a directory whose names start so, in order.
fn named(directory: &Path, start: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let fits = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(start);
    let mut paths: Vec<_> = paths.filter(fits).collect();
    paths.sort();
    paths
}

fn first(directory: &Path, start: &str) -> PathBuf {
    named(directory, start).remove(0)
}

fn last(directory: &Path, start: &str) -> PathBuf {
    named(directory, start).pop().unwrap()
}

/// The values of all fields whose names contain `field`.
fn values(path: &Path, field: &str) -> Vec<String> {
    let fields = file(path).unwrap();
    let names: HashSet<_> = fields.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), fields.len(), "fields repeat");
    fields.into_iter().filter(|(name, _)| name.contains(field)).map(|(_, value)| value).collect()
}

#[test]
fn every_file_is_shown_field_by_field() {
    let (_temporary, path) = sample();
    let superblock = path.join("superblock-A");
    assert_eq!(values(&superblock, "checksum"), ["right"]);
    assert!(values(&superblock, "manifest")[0].starts_with("MANIFEST-"));
    let manifest = first(&path, "MANIFEST");
    assert_eq!(values(&manifest, "header.format version"), ["3"]);
    assert!(values(&manifest, "keys").contains(&"\"key00\" to \"key49\"".to_owned()));
    assert!(values(&manifest, "damaged").is_empty());
    let log = first(&path.join("wal"), "0");
    let operations = values(&log, ".op[");
    let late = "put keyspace 0 key \"late\" value of 5 bytes".to_owned();
    assert!(operations.contains(&late), "{operations:?}");
    assert!(operations.contains(&"delete keyspace 0 key \"key00\"".to_owned()));
    let run = first(&path.join("data"), "0");
    let blocks = values(&run, ".block[");
    assert!(blocks.len() > 1 && blocks[0].contains("keys \"key00\""), "{blocks:?}");
    let delta = last(&path.join("data"), "0");
    assert!(values(&delta, "content").iter().any(|value| value.contains("1 range tombstones")));
    assert_eq!(values(&path.join("LOCK"), "file"), ["lock"]);
}

#[test]
fn damage_is_shown_where_it_is() {
    let (_temporary, path) = sample();
    let damage = |path: &Path, at: usize| {
        let mut bytes = fs::read(path).unwrap();
        bytes[at] ^= 4;
        fs::write(path, bytes).unwrap();
    };
    damage(&path.join("superblock-A"), 30);
    assert_eq!(values(&path.join("superblock-A"), "damaged").len(), 1);
    let manifest = first(&path, "MANIFEST");
    damage(&manifest, 90);
    assert!(values(&manifest, "damaged[64]")[0].contains("no whole record"));
    assert!(!values(&manifest, ".kind").is_empty(), "later records are still shown");
    let run = first(&path.join("data"), "0");
    let whole = values(&run, ".block[").len();
    damage(&run, 4096 + 20);
    assert_eq!(values(&run, ".damaged").len(), 1);
    assert_eq!(values(&run, ".block[").len(), whole);
    let log = first(&path.join("wal"), "0");
    damage(&log, 4096 + 30);
    assert_eq!(values(&log, ".damaged").len(), 1);
    assert!(!values(&log, ".op[").is_empty());
}

#[test]
fn what_is_no_file_of_a_database_is_refused() {
    let (_temporary, path) = sample();
    fs::write(path.join("notes.txt"), "these are only some notes").unwrap();
    for name in ["notes.txt", "data"] {
        assert_eq!(file(path.join(name)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(file(path.join("none")).unwrap_err().kind(), ErrorKind::Io);
    // A file under another name is told by its first bytes.
    let run = first(&path.join("data"), "0");
    fs::copy(&run, path.join("saved")).unwrap();
    assert_eq!(file(path.join("saved")).unwrap(), file(&run).unwrap());
}

/// Every byte of the small files, changed one at a time.
#[test]
fn no_byte_makes_it_panic() {
    let (_temporary, path) = sample();
    let small = [path.join("superblock-A"), first(&path, "MANIFEST")];
    for path in small {
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len().min(1200) {
            let mut damaged = bytes.clone();
            damaged[at] = !damaged[at];
            fs::write(&path, &damaged).unwrap();
            // Any answer will do.
            let _ = file(&path);
            damaged.truncate(at);
            fs::write(&path, &damaged).unwrap();
            let _ = file(&path);
        }
    }
}

#[test]
fn statistics_are_shown_with_both_slots() {
    use crate::monitor::statistics::StatisticsFile;
    use crate::stats::Stats;
    let dir = tempfile::tempdir().unwrap();
    let mut written = StatisticsFile::new(&crate::fs::os(), dir.path(), [3; 16]);
    let path = dir.path().join("STATISTICS");
    for update in 1..=3 {
        assert!(written.update(Stats { puts: update, ..Stats::default() }, 1, 7, false));
    }
    assert_eq!(values(&path, "slot[0].update"), ["2", "7"]);
    assert_eq!(values(&path, "slot[65536].update"), ["3", "7"]);
    assert_eq!(values(&path, "shown update"), ["3"]);
    assert_eq!(values(&path, "esker_puts[]"), ["3"]);
    let names: HashSet<String> = file(&path).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), file(&path).unwrap().len());
    // Under another name the first bytes tell it, and a damaged slot leaves the other.
    let mut bytes = fs::read(&path).unwrap();
    bytes[65_536 + 300] ^= 1;
    let other = dir.path().join("copy");
    fs::write(&other, bytes).unwrap();
    assert_eq!(values(&other, "shown update"), ["2"]);
    assert_eq!(values(&other, "payload")[3], "its checksum does not match");
    fs::write(&path, b"junk").unwrap();
    assert_eq!(values(&path, "damaged").len(), 2);
}
