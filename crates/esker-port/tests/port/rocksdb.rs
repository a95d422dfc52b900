//! Imports from RocksDB. RocksDB itself makes the directories.

use crate::support::{
    Content, Damage, Random, all_come_over, copy, damage_is_an_error_or_does_not_matter, refused,
    shown, tree,
};
use esker_port::Engine;
use rocksdb::{ColumnFamilyDescriptor, DB, Options, WriteOptions};
use std::path::Path;

const ROCKSDB: Engine = Engine::RocksDb;

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options
}

fn open(path: &Path, names: impl IntoIterator<Item = String>) -> DB {
    let families = names.into_iter().map(|name| {
        let mut options = Options::default();
        if name.starts_with("blob") {
            options.set_enable_blob_files(true);
            options.set_min_blob_size(40);
        }
        ColumnFamilyDescriptor::new(name, options)
    });
    DB::open_cf_descriptors(&options(), path, families).unwrap()
}

/// Fills column families; part of it goes to tables, the rest stays in the log.
fn fill(db: &DB, content: &Content) {
    for (name, entries) in content {
        let family = db.cf_handle(name).unwrap();
        for (at, (key, value)) in entries.iter().enumerate() {
            db.put_cf(family, key, value).unwrap();
            if at == entries.len() / 2 {
                db.flush_cf(family).unwrap();
            }
        }
    }
}

fn made(path: &Path, content: &Content) {
    fill(&open(path, content.keys().cloned()), content);
}

/// What a directory shows that has the default column family, as all have.
fn with_default(mut content: Content) -> Content {
    content.retain(|name, entries| name != "default" || !entries.is_empty());
    content
}

#[test]
fn all_column_families_come_over() {
    all_come_over(ROCKSDB, &[&["default"], &["default", "blobs", "with ü"], &["only"]], made);
}

#[test]
fn what_was_deleted_and_replaced_is_gone() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let mut content = random.content(&["default", "a"], 3000, 30_000);
    made(&from, &content);
    let db = open(&from, content.keys().cloned());
    for (name, entries) in &mut content {
        let family = db.cf_handle(name).unwrap();
        for key in entries.keys().filter(|_| random.below(3) == 0).cloned().collect::<Vec<_>>() {
            db.delete_cf(family, &key).unwrap();
            entries.remove(&key);
        }
        for (key, value) in entries.iter_mut().filter(|(_, value)| value.len() > 50) {
            value.push(7);
            db.put_cf(family, key, value).unwrap();
        }
        let (from, to) = ([100u8], [140u8]);
        db.delete_range_cf(family, from, to).unwrap();
        entries.retain(|key, _| !(&from[..]..&to[..]).contains(&key.as_slice()));
        db.flush_cf(family).unwrap();
    }
    db.compact_range_cf(db.cf_handle("a").unwrap(), None::<&[u8]>, None::<&[u8]>);
    drop(db);
    assert!(shown(ROCKSDB, &from).unwrap() == content);
}

/// What stands in the directory when a program dies.
#[test]
fn a_directory_that_was_not_closed_is_read_as_rocksdb_would_recover_it() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let (live, from) = (place.path().join("live"), place.path().join("source"));
    let content = random.content(&["default", "a"], 3000, 20_000);
    let db = open(&live, content.keys().cloned());
    fill(&db, &content);
    let mut write = WriteOptions::default();
    write.set_sync(true);
    db.put_opt("zzz", "last", &write).unwrap();
    copy(&live, &from);
    let mut all = content.clone();
    all.get_mut("default").unwrap().insert(b"zzz".to_vec(), b"last".to_vec());
    assert!(shown(ROCKSDB, &from).unwrap() == all);
    // The last record of the log may be cut, and nothing more.
    let logs = tree(&from).into_iter().filter(|(path, bytes, _)| {
        path.extension().is_some_and(|ending| ending == "log") && !bytes.is_empty()
    });
    let (log, bytes, _) = logs.max().unwrap();
    std::fs::write(&log, &bytes[..bytes.len() - 2]).unwrap();
    assert!(shown(ROCKSDB, &from).unwrap() == with_default(content));
}

#[test]
fn a_directory_that_is_open_elsewhere_is_refused() {
    // RocksDB's lock belongs to a process, so another one has to take it.
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    made(&from, &Random::from_environment().content(&["default"], 10, 10));
    let script = "import fcntl, sys\nf = open(sys.argv[1], 'r+')\nfcntl.lockf(f, fcntl.LOCK_EX)\n\
                  print('held', flush=True)\nsys.stdin.read()";
    let child = std::process::Command::new("/usr/bin/python3")
        .args(["-c", script])
        .arg(from.join("LOCK"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return println!("left out: there is no python3 here") };
    let mut held = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut held).unwrap();
    refused(ROCKSDB, &from, "open elsewhere");
    drop(child.stdin.take());
    child.wait().unwrap();
    shown(ROCKSDB, &from).unwrap();
}

#[test]
fn what_only_its_program_understands_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (merged, ordered) = (place.path().join("merged"), place.path().join("ordered"));
    let mut with = options();
    with.set_merge_operator_associative("only mine", |_, existing, operands| {
        Some(existing.into_iter().chain(operands).flatten().copied().collect())
    });
    let db = DB::open(&with, &merged).unwrap();
    db.merge("k", "one").unwrap();
    db.merge("k", "two").unwrap();
    drop(db);
    refused(ROCKSDB, &merged, "merge operator");
    let mut with = options();
    with.set_comparator("backwards", Box::new(|a, b| b.cmp(a)));
    let db = DB::open(&with, &ordered).unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    drop(db);
    refused(ROCKSDB, &ordered, "comparator");
}

/// Whether a byte of a log is the type of a record, behind its checksum and length. RocksDB 10.4 never ends
/// reading a log in which a type is that of a recycled log.
fn is_a_type(log: &[u8], at: usize) -> bool {
    const BLOCK: usize = 32 << 10;
    let mut record = 0;
    while record + 7 <= log.len() && record + 6 < at {
        let len = usize::from(u16::from_le_bytes([log[record + 4], log[record + 5]]));
        record += 7 + len;
        // No header reaches over the end of a block.
        if BLOCK - record % BLOCK < 7 {
            record = record.next_multiple_of(BLOCK);
        }
    }
    record + 6 == at
}

#[test]
fn damage_anywhere_is_an_error_or_does_not_matter() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    let content = random.content(&["default", "blobs"], 1000, 3000);
    made(&whole, &content);
    let used = |name: &str| {
        [".sst", ".blob", ".log"].iter().any(|ending| name.ends_with(ending))
            || ["MANIFEST", "CURRENT"].iter().any(|start| name.starts_with(start))
    };
    let mut files = tree(&whole);
    files.retain(|(path, bytes, _)| {
        used(&path.file_name().unwrap().to_string_lossy()) && !bytes.is_empty()
    });
    // Where the length of a log's last record is damaged, it looks as if it were cut.
    let damage = Damage { rounds: 60, cuts: false, logs: ".log", spared: is_a_type };
    damage_is_an_error_or_does_not_matter(ROCKSDB, &whole, &files, &content, &mut random, damage);
}

/// RocksDB takes a length that leads behind the end of the manifest for the end.
#[test]
fn every_byte_of_a_manifest_matters() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let content = random.content(&["default", "a"], 50, 50);
    made(&from, &content);
    let current = std::fs::read_to_string(from.join("CURRENT")).unwrap();
    let path = from.join(current.trim_end());
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << random.below(8);
        std::fs::write(&path, &damaged).unwrap();
        refused(ROCKSDB, &from, "at offset");
    }
    // No record is as short as its head.
    for cut in 1..=7 {
        std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        refused(ROCKSDB, &from, "the last edit is damaged");
    }
    std::fs::write(&path, &whole).unwrap();
    assert!(shown(ROCKSDB, &from).unwrap() == content);
}

#[test]
fn what_is_no_rocksdb_directory_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    std::fs::create_dir(&from).unwrap();
    refused(ROCKSDB, &from, "CURRENT");
    std::fs::write(from.join("CURRENT"), "MANIFEST-000001\n").unwrap();
    refused(ROCKSDB, &from, "MANIFEST-000001");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    crate::support::intruders_in_a_new_store_are_not_waited_for(ROCKSDB, "default", made);
}
