//! Imports from fjall. fjall itself makes the directories.

use crate::support::{
    Content, Damage, Random, all_come_over, copy, damage_is_an_error_or_does_not_matter, refused,
    shown, tree,
};
use esker_port::{Engine, Error};
use fjall::{Database, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use std::path::Path;

const FJALL: Engine = Engine::Fjall;

/// Fills keyspaces; those whose names begin with "blob" keep large values apart.
fn fill(db: &Database, content: &Content, flush: bool) {
    for (name, entries) in content {
        let options = || {
            let separate = name.starts_with("blob").then(KvSeparationOptions::default);
            KeyspaceCreateOptions::default().with_kv_separation(separate)
        };
        let keyspace = db.keyspace(name, options).unwrap();
        for (at, (key, value)) in entries.iter().enumerate() {
            keyspace.insert(key.as_slice(), value.as_slice()).unwrap();
            if flush && at == entries.len() / 2 {
                keyspace.rotate_memtable_and_wait().unwrap();
            }
        }
    }
    db.persist(PersistMode::SyncAll).unwrap();
}

fn made(path: &Path, content: &Content) {
    fill(&Database::builder(path).open().unwrap(), content, true);
}

#[test]
fn all_keyspaces_come_over() {
    all_come_over(FJALL, &[&["a"], &["default", "blobs", "with ü"], &[]], made);
}

#[test]
fn what_was_deleted_and_replaced_is_gone() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let mut content = random.content(&["a", "blobs"], 3000, 30_000);
    made(&from, &content);
    let db = Database::builder(&from).open().unwrap();
    for (name, entries) in &mut content {
        let keyspace = db.keyspace(name, KeyspaceCreateOptions::default).unwrap();
        for key in entries.keys().filter(|_| random.below(3) == 0).cloned().collect::<Vec<_>>() {
            keyspace.remove(key.as_slice()).unwrap();
            entries.remove(&key);
        }
        for value in entries.values_mut().filter(|value| value.len() > 50) {
            value.push(7);
        }
        for (key, value) in entries {
            keyspace.insert(key.as_slice(), value.as_slice()).unwrap();
        }
        keyspace.rotate_memtable_and_wait().unwrap();
        keyspace.major_compact().unwrap();
    }
    drop(db);
    assert!(shown(FJALL, &from).unwrap() == content);
}

/// What stands in the directory when a program dies.
#[test]
fn a_directory_that_was_not_closed_is_read_as_fjall_would_mend_it() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let (live, from) = (place.path().join("live"), place.path().join("source"));
    let content = random.content(&["a", "b"], 3000, 20_000);
    let db = Database::builder(&live).open().unwrap();
    fill(&db, &content, false);
    copy(&live, &from);
    assert!(shown(FJALL, &from).unwrap() == content);
}

#[test]
fn a_directory_that_is_open_elsewhere_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let db = Database::builder(&from).open().unwrap();
    refused(FJALL, &from, "open elsewhere");
    drop(db);
    let import = esker_port::Import::open(FJALL, &from, Default::default()).unwrap();
    // And while it is read, fjall does not get at it.
    assert!(Database::builder(&from).open().is_err());
    drop(import);
    Database::builder(&from).open().unwrap();
}

#[test]
fn damage_anywhere_is_an_error_or_does_not_matter() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    let content = random.content(&["a", "blobs"], 1000, 3000);
    made(&whole, &content);
    // Journals are made longer ahead, by 64 MiB; what counts is in front.
    for (path, bytes, _) in tree(&whole) {
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
        if path.extension().is_some_and(|extension| extension == "jnl") {
            std::fs::File::options().write(true).open(path).unwrap().set_len(used as u64).unwrap();
        }
    }
    assert!(shown(FJALL, &whole).unwrap() == content);
    let files: Vec<_> =
        tree(&whole).into_iter().filter(|(_, bytes, _)| !bytes.is_empty()).collect();
    // fjall takes a damaged journal for one that ends there.
    let damage = Damage { rounds: 90, cuts: true, logs: ".jnl", spared: |_, _| false };
    damage_is_an_error_or_does_not_matter(FJALL, &whole, &files, &content, &mut random, damage);
}

/// fjall itself does not check this file: a bit of the number may name an older version that is
/// still there, with fewer entries.
#[test]
fn every_bit_of_the_name_of_the_version_matters() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let content = random.content(&["a"], 50, 100);
    made(&from, &content);
    let named: Vec<_> = tree(&from)
        .into_iter()
        .filter(|(path, ..)| path.file_name().is_some_and(|name| name == "current"))
        .collect();
    assert!(named.len() > 1, "fjall keeps its own keyspace and ours");
    for (path, bytes, _) in named {
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &damaged).unwrap();
            match esker_port::Import::open(FJALL, &from, Default::default()).map(drop) {
                Err(Error::Source { .. } | Error::Io { .. }) => {}
                other => panic!("{path:?}, bit {bit}: {other:?}"),
            }
        }
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(shown(FJALL, &from).unwrap() == content);
}

#[test]
fn what_is_no_fjall_directory_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let missing = esker_port::Import::open(FJALL, &from, Default::default()).err().unwrap();
    assert!(matches!(missing, Error::Io { .. }), "{missing}");
    std::fs::create_dir(&from).unwrap();
    refused(FJALL, &from, "does not look like one");
    std::fs::create_dir(from.join("keyspaces")).unwrap();
    std::fs::write(from.join("version"), b"FJL\x02").unwrap();
    refused(FJALL, &from, "fjall 3");
    std::fs::create_dir(from.join("partitions")).unwrap();
    refused(FJALL, &from, "fjall 2");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    crate::support::intruders_in_a_new_store_are_not_waited_for(FJALL, "a", made);
}
