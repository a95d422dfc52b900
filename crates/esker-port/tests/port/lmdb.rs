//! Imports from LMDB. LMDB itself makes the files.

#![allow(unsafe_code, reason = "heed leaves it to its caller that nobody else writes to the file")]

use crate::support::{Content, Random, content, copy, import_as, refused, shown, tree};
use esker_port::{Engine, Error};
use heed::types::Bytes;
use heed::{Database, DatabaseFlags, Env, EnvFlags, EnvOpenOptions};
use std::path::Path;

const LMDB: Engine = Engine::Lmdb;

fn open(path: &Path, flags: EnvFlags) -> Env {
    // SAFETY: the file is this test's own, and no other process uses it.
    unsafe {
        EnvOpenOptions::new().map_size(256 << 20).max_dbs(64).flags(flags).open(path).unwrap()
    }
}

/// Fills databases; that with the name "default" is the one without a name.
fn fill(env: &Env, content: &Content) {
    for (name, entries) in content {
        let mut writing = env.write_txn().unwrap();
        let name = (name != "default").then_some(name.as_str());
        let db: Database<Bytes, Bytes> = env.create_database(&mut writing, name).unwrap();
        for (key, value) in entries {
            db.put(&mut writing, key, value).unwrap();
        }
        writing.commit().unwrap();
    }
}

/// Makes an environment in a new directory.
fn made(path: &Path, content: &Content) {
    std::fs::create_dir(path).unwrap();
    let env = open(path, EnvFlags::empty());
    fill(&env, content);
    env.prepare_for_closing().wait();
}

#[test]
fn all_databases_come_over() {
    let mut random = Random::from_environment();
    for names in [&["default"][..], &["default", "alpha", "with ü", "omega"], &["only"]] {
        let place = tempfile::tempdir().unwrap();
        let from = place.path().join("source");
        let content = random.content(names, 4000, 100_000);
        made(&from, &content);
        assert!(shown(LMDB, &from).unwrap() == content);
        // The data file alone is enough.
        let file = place.path().join("file");
        copy(&from.join("data.mdb"), &file);
        assert!(shown(LMDB, &file).unwrap() == content);
    }
}

#[test]
fn what_was_deleted_and_replaced_is_gone() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let mut content = random.content(&["default", "alpha", "beta"], 3000, 30_000);
    made(&from, &content);
    let env = open(&from, EnvFlags::empty());
    for _ in 0..20 {
        let mut writing = env.write_txn().unwrap();
        for (name, entries) in &mut content {
            let name = (name != "default").then_some(name.as_str());
            let db: Database<Bytes, Bytes> = env.open_database(&writing, name).unwrap().unwrap();
            let some: Vec<_> = entries.keys().filter(|_| random.below(10) == 0).cloned().collect();
            for key in some {
                if random.below(2) == 0 {
                    assert!(db.delete(&mut writing, &key).unwrap());
                    entries.remove(&key);
                } else {
                    let value = {
                        let len = random.below(9000);
                        random.bytes(len)
                    };
                    db.put(&mut writing, &key, &value).unwrap();
                    entries.insert(key, value);
                }
            }
        }
        writing.commit().unwrap();
    }
    env.prepare_for_closing().wait();
    assert!(shown(LMDB, &from).unwrap() == content);
}

#[test]
fn empty_environments_and_databases_come_over() {
    let place = tempfile::tempdir().unwrap();
    let (empty, hollow) = (place.path().join("empty"), place.path().join("hollow"));
    made(&empty, &Content::new());
    assert!(shown(LMDB, &empty).unwrap().is_empty());
    let content = Content::from([("none".to_owned(), Default::default())]);
    made(&hollow, &content);
    assert_eq!(shown(LMDB, &hollow).unwrap(), content);
}

#[test]
fn the_unnamed_database_gets_the_name_that_is_asked_for() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("source"), place.path().join("db"));
    made(&from, &random.content(&["default", "alpha"], 100, 100));
    let error =
        import_as(LMDB, &from, &place.path().join("clash"), "alpha").unwrap_err().to_string();
    assert!(error.contains("--keyspace"), "{error}");
    import_as(LMDB, &from, &to, "main").unwrap();
    assert_eq!(content(&to).into_keys().collect::<Vec<_>>(), ["alpha", "main"]);
}

#[test]
fn what_a_keyspace_cannot_hold_is_refused() {
    for (flags, named) in [
        (DatabaseFlags::DUP_SORT, "several values"),
        (DatabaseFlags::from_bits_retain(0x08), "MDB_INTEGERKEY"),
        (DatabaseFlags::REVERSE_KEY, "MDB_REVERSEKEY"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let env = open(place.path(), EnvFlags::empty());
        let mut writing = env.write_txn().unwrap();
        let mut options = env.database_options().types::<Bytes, Bytes>();
        let db = options.flags(flags).name("special").create(&mut writing).unwrap();
        db.put(&mut writing, &7u32.to_le_bytes(), b"one").unwrap();
        db.put(&mut writing, &7u32.to_le_bytes(), b"two").unwrap();
        writing.commit().unwrap();
        env.prepare_for_closing().wait();
        refused(LMDB, place.path(), named);
        refused(LMDB, place.path(), "\"special\"");
    }
}

#[test]
fn an_order_of_its_own_is_noticed() {
    enum Backwards {}
    impl heed::Comparator for Backwards {
        fn compare(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            b.cmp(a)
        }
    }
    let place = tempfile::tempdir().unwrap();
    let env = open(place.path(), EnvFlags::empty());
    let mut writing = env.write_txn().unwrap();
    let options = env.database_options().types::<Bytes, Bytes>().key_comparator::<Backwards>();
    let mut options = options;
    let db = options.name("backwards").create(&mut writing).unwrap();
    for key in 0..9 {
        db.put(&mut writing, &[key], b"").unwrap();
    }
    writing.commit().unwrap();
    env.prepare_for_closing().wait();
    refused(LMDB, place.path(), "another order");
}

/// Opens an import, commits something to the source, and only then runs it.
#[test]
fn a_source_that_is_written_to_meanwhile_is_noticed() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("source"), place.path().join("db"));
    let content = random.content(&["alpha"], 100, 100);
    made(&from, &content);
    let import = esker_port::Import::open(LMDB, &from, Default::default()).unwrap();
    // Being open elsewhere does no harm.
    let env = open(&from, EnvFlags::empty());
    assert!(shown(LMDB, &from).unwrap() == content);
    fill(&env, &Content::from([("beta".to_owned(), content["alpha"].clone())]));
    let db = esker::Db::open_with(&to, crate::support::options()).unwrap();
    let error = import.run(&db, &mut esker_port::Quiet).unwrap_err();
    assert!(error.to_string().contains("written to while it was read"), "{error}");
    assert!(db.keyspaces().unwrap().contains(&"esker:load".to_owned()), "it looks finished");
    env.prepare_for_closing().wait();
}

/// LMDB keeps no checksums, so damage inside of keys and values shows in them. Whatever is
/// damaged, there is an answer.
#[test]
fn damage_anywhere_has_an_answer() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let content = random.content(&["default", "alpha", "beta"], 400, 6000);
    made(&from, &content);
    let path = from.join("data.mdb");
    let whole = std::fs::read(&path).unwrap();
    let mut counts = [0; 3];
    for round in 0..150 {
        let mut bytes = whole.clone();
        // Most damage goes where the structure is: the heads of pages and their tables.
        let page = random.below(bytes.len() / 4096) * 4096;
        let at = page + random.below(if round % 2 == 0 { 64 } else { 4096 });
        match round % 3 {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            _ => bytes[at..page + 4096].fill(if round % 2 == 0 { 0 } else { 0xff }),
        }
        std::fs::write(&path, &bytes).unwrap();
        match shown(LMDB, &from) {
            Ok(found) => counts[usize::from(found == content)] += 1,
            Err(Error::Source { .. } | Error::Io { .. }) => counts[2] += 1,
            Err(other) => panic!("{other}"),
        }
    }
    println!("other content, same content, refused: {counts:?}");
    assert!(counts[2] > 20);
    for len in (0..whole.len()).step_by(whole.len() / 12) {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert!(shown(LMDB, &from).is_err(), "cut to {len} bytes");
    }
}

/// Thirty pages that each name the next one two hundred times: to follow every way would take for
/// ever.
#[test]
fn pages_that_are_named_again_and_again_are_refused() {
    const PAGE: usize = 4096;
    const DEPTH: u64 = 30;
    let head = |number: u64, kind: u16, nodes: u16| {
        let mut page = number.to_le_bytes().to_vec();
        for word in [0, kind, 16 + 2 * nodes, PAGE as u16] {
            page.extend_from_slice(&word.to_le_bytes());
        }
        page
    };
    let tree = |depth: u16, root: u64| {
        let mut tree = (PAGE as u32).to_le_bytes().to_vec();
        tree.extend_from_slice(&[0, 0]);
        tree.extend_from_slice(&depth.to_le_bytes());
        for number in [0, 1u64 << 60, 0, 0, root] {
            tree.extend_from_slice(&number.to_le_bytes());
        }
        tree
    };
    let mut file = Vec::new();
    for number in 0..2 {
        let mut page = head(number, 0x08, 0);
        page.extend_from_slice(&0xbeef_c0de_u32.to_le_bytes());
        page.extend_from_slice(&1u32.to_le_bytes());
        page.extend_from_slice(&[0; 16]);
        page.extend(tree(0, u64::MAX));
        page.extend(tree(DEPTH as u16, 2));
        for number in [1 + DEPTH, number] {
            page.extend_from_slice(&number.to_le_bytes());
        }
        file.extend_from_slice(&page);
        file.resize((number as usize + 1) * PAGE, 0);
    }
    for number in 2..1 + DEPTH {
        let mut page = head(number, 0x01, 200);
        (0..200).for_each(|_| page.extend_from_slice(&(PAGE as u16 - 8).to_le_bytes()));
        page.resize(PAGE - 8, 0);
        page.extend_from_slice(&(number + 1).to_le_bytes());
        file.extend_from_slice(&page);
    }
    file.extend_from_slice(&head(1 + DEPTH, 0x02, 0));
    file.resize((2 + DEPTH as usize) * PAGE, 0);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("data.mdb");
    std::fs::write(&path, &file).unwrap();
    refused(LMDB, &path, "more pages than there are");
}

#[test]
fn what_is_no_lmdb_file_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    assert!(matches!(shown_missing(&from), Error::Io { .. }));
    std::fs::write(&from, "").unwrap();
    refused(LMDB, &from, "ends at offset 0");
    std::fs::write(&from, vec![7; 10_000]).unwrap();
    refused(LMDB, &from, "data file of an LMDB database");
    std::fs::remove_file(&from).unwrap();
    std::fs::create_dir(&from).unwrap();
    refused(LMDB, &from, "data.mdb");
    assert_eq!(tree(&from).len(), 1);
}

fn shown_missing(from: &Path) -> Error {
    esker_port::Import::open(LMDB, from, Default::default()).err().unwrap()
}

/// A small file that LMDB made, also for the tests of the program. With `ESKER_WRITE_LMDB_FIXTURE`
/// set, [`a_file_like_the_one_that_is_checked_in_is_read`] writes it anew.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lmdb");

fn of_fixture() -> Content {
    let entries = |count: u32, len: usize| {
        (0..count).map(|at| (format!("key{at:04}").into_bytes(), vec![at as u8; len])).collect()
    };
    Content::from([
        ("default".to_owned(), entries(20, 10)),
        ("names".to_owned(), entries(300, 3)),
        ("large".to_owned(), entries(2, 3000)),
    ])
}

#[test]
fn a_file_like_the_one_that_is_checked_in_is_read() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("env");
    made(&from, &of_fixture());
    assert!(shown(LMDB, &from).unwrap() == of_fixture());
    if std::env::var_os("ESKER_WRITE_LMDB_FIXTURE").is_some() {
        std::fs::create_dir_all(FIXTURE).unwrap();
        copy(&from.join("data.mdb"), &Path::new(FIXTURE).join("data.mdb"));
    }
}

#[test]
fn the_file_that_is_checked_in_is_read() {
    assert!(shown(LMDB, Path::new(FIXTURE)).unwrap() == of_fixture());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    crate::support::intruders_in_a_new_store_are_not_waited_for(LMDB, "default", made);
}
