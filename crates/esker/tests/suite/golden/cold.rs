//! A database with cold data: segments with Zstandard and a dictionary, beside some with LZ4 and some
//! without a dictionary, in two branches. `golden/v3-cold` is kept; `ESKER_WRITE_GOLDEN_COLD` writes a
//! new one.

use super::super::temperature::{COLD, cools, record, stored};
use super::{bytes_of, fields, keep, listed_sample, listing_of_all, options, target};
use esker::{Compression, Db, ErrorKind, Options};
use esker_testkit::harness::HandClock;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

const NAME: &str = "v3-cold";
const KEYS: usize = 400;

fn cold_options(clock: &Arc<HandClock>) -> Options {
    let mut options = options();
    options.partition_bytes = Some(32 << 10);
    cools(&mut options, clock);
    options
}

fn key(number: usize) -> String {
    format!("key{number:04}")
}

/// The entries of a listing. A repair makes keyspaces of the same entries of what branches hold.
fn entries_of(listing: &str) -> BTreeSet<String> {
    let lines = listing.lines().filter(|line| line.contains('\t'));
    lines.map(|line| line.replacen("@trial", "", 1)).collect()
}

#[test]
fn cold_data_is_read_without_changing_a_byte_and_saved_whole() {
    let (temporary, path, expected) = listed_sample(NAME);
    let before = bytes_of(&path);
    let mut read_only = options();
    read_only.read_only = true;
    let db = Db::open_with(&path, read_only).unwrap();
    assert_eq!(listing_of_all(&db), expected);
    assert!(db.verify().unwrap().problems.is_empty());
    let (lz4, zstd) = stored(&db);
    assert!(lz4 > 0 && zstd > 0, "{lz4} and {zstd}");
    db.close().unwrap();
    assert!(bytes_of(&path) == before, "a read-only open changed a byte");
    let to = temporary.path().join("new");
    let salvaged = esker::repair::salvage(&path, &to, &options()).unwrap();
    assert!(salvaged.plan.is_whole(), "{salvaged}");
    let saved = listing_of_all(&Db::open_with(&to, options()).unwrap());
    assert_eq!(entries_of(&saved), entries_of(&expected));
}

#[test]
fn cold_data_is_opened_for_writing_and_goes_on() {
    let (_temporary, path, expected) = listed_sample(NAME);
    let clock = Arc::new(HandClock::default());
    clock.set(5_000_000);
    let db = Db::open_with(&path, cold_options(&clock)).unwrap();
    assert_eq!(listing_of_all(&db), expected);
    let before = stored(&db).1;
    // What was read once is warm in tests.
    clock.advance(COLD / 4);
    db.wait_until_idle().unwrap();
    assert!(db.stats().bytes_warmed > 0 && stored(&db).1 < before, "{:?} of {before}", stored(&db));
    assert_eq!(listing_of_all(&db), expected);
    for _ in 0..6 {
        clock.advance(COLD / 4);
        db.wait_until_idle().unwrap();
    }
    assert!(stored(&db).1 > 0);
    assert_eq!(listing_of_all(&db), expected);
    db.insert("new", "entry").unwrap();
    assert!(db.remove("new").is_ok());
    db.compact().unwrap();
    assert_eq!(listing_of_all(&db), expected);
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    let db = Db::open_with(&path, options()).unwrap();
    assert_eq!(listing_of_all(&db), expected);
}

#[test]
fn it_holds_dictionaries_and_other_segments() {
    let (_temporary, path, _) = listed_sample(NAME);
    let fields = fields(&path);
    let count = |field: &str, value: &str| {
        let fits = |(_, name, content): &&(PathBuf, String, String)| {
            name.contains(field) && content.contains(value)
        };
        fields.iter().filter(fits).count()
    };
    for (field, value) in
        [(".dictionary", "bytes"), (".block[", "Zstd"), (".block[", "Lz4"), ("branch", "branch ")]
    {
        assert!(count(field, value) > 0, "no {field:?} with {value:?}");
    }
    let versions = |value: &str| {
        let of_run = |(path, name, content): &&(PathBuf, String, String)| {
            path.extension().is_some_and(|ending| ending == "run")
                && name == "header.format version"
                && content == value
        };
        fields.iter().filter(of_run).count()
    };
    assert!(versions("1") > 0 && versions("2") > 0);
    assert_eq!(count("damaged", ""), 0);
    let bytes: usize = bytes_of(&path).values().map(Vec::len).sum();
    assert!(bytes < 200 << 10, "{bytes} bytes are too many to keep");
}

/// A bit is flipped in a dictionary: what needs it is a typed error with the file and the place, the plan
/// of a repair names it, and a repair saves the rest.
#[test]
fn a_damaged_dictionary_is_told_and_the_rest_is_saved() {
    let (temporary, path, expected) = listed_sample(NAME);
    let fields = fields(&path);
    let (run, _, shown) = fields.iter().find(|(_, name, _)| name.ends_with(".dictionary")).unwrap();
    let tail: usize = shown.rsplit(' ').next().unwrap().parse().unwrap();
    let mut bytes = fs::read(run).unwrap();
    bytes[tail + 20] ^= 4;
    fs::write(run, bytes).unwrap();
    let mut read_only = options();
    read_only.read_only = true;
    let db = Db::open_with(&path, read_only).unwrap();
    let problems = db.verify().unwrap().problems;
    assert!(!problems.is_empty());
    for problem in &problems {
        let esker::Error::Corruption(corruption) = &problem.error else { panic!("{problem:?}") };
        assert_eq!((corruption.section, corruption.offset), ("dictionary", tail as u64));
        assert_eq!(&problem.path, run);
    }
    let errors = db.iter().unwrap().filter_map(Result::err).count();
    assert_eq!(errors, 1, "an iterator ends at damage");
    db.close().unwrap();
    let to = temporary.path().join("new");
    let salvaged = esker::repair::salvage(&path, &to, &options()).unwrap();
    assert!(!salvaged.plan.is_whole());
    let db = Db::open_with(&to, options()).unwrap();
    let (saved, all) = (entries_of(&listing_of_all(&db)), entries_of(&expected));
    assert!(saved.is_subset(&all), "{:?}", saved.difference(&all).next());
    assert!(saved.len() > all.len() / 4 && saved != all, "{} of {}", saved.len(), all.len());
}

/// A whole header of a later version is refused, and the file is left as it is.
#[test]
fn a_later_version_is_refused() {
    let (_temporary, path, _) = listed_sample(NAME);
    for run in super::files(&path.join("data"), "0") {
        let id = run.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        super::raise_sealed_version(&run, id);
    }
    let mut read_only = options();
    read_only.read_only = true;
    let db = Db::open_with(&path, read_only).unwrap();
    let error = db.iter().and_then(|mut iter| iter.next().transpose()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{error}");
}

/// Writes the database anew, if the environment says where.
#[test]
fn write_golden_cold() {
    let Some(target) = target("ESKER_WRITE_GOLDEN_COLD") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let live = temporary.path().join("db");
    let clock = Arc::new(HandClock::default());
    clock.set(1_000_000);
    // Zstandard without dictionaries.
    let mut plain = cold_options(&clock);
    plain.compression = Compression::Zstd;
    let db = Db::open_with(&live, plain).unwrap();
    let second = db.keyspace("second").unwrap();
    for number in 0..KEYS / 4 {
        second.insert(key(number), record(number)).unwrap();
    }
    db.compact().unwrap();
    db.close().unwrap();
    drop((second, db));
    let db = Db::open_with(&live, cold_options(&clock)).unwrap();
    for number in 0..KEYS {
        db.insert(key(number), record(number)).unwrap();
    }
    db.compact().unwrap();
    for _ in 0..6 {
        clock.advance(COLD / 4);
        db.wait_until_idle().unwrap();
    }
    drop(db.branch("trial").unwrap());
    // What is written now is warm.
    let third = db.keyspace("third").unwrap();
    for number in 0..KEYS / 4 {
        third.insert(key(number), record(number)).unwrap();
    }
    db.compact().unwrap();
    db.insert(key(7), "newer in a delta").unwrap();
    db.flush().unwrap();
    db.insert(key(8), "only in the log").unwrap();
    db.sync().unwrap();
    keep(&live, &target, &listing_of_all(&db));
    db.close().unwrap();
}
