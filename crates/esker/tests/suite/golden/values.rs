//! A database with separated values, in two branches: compressed and not, some of them replaced, expiring, under
//! operands, and beside values that are not separated. `golden/v3-values` is kept; `ESKER_WRITE_GOLDEN_VALUES`
//! writes a new one.

use super::{bytes_of, fields, keep, listed_sample, listing_of_all, options, target};
use esker::{Append, Db, KeyspaceOptions, Options};
use esker_testkit::Rng;
use esker_testkit::harness::HandClock;
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "v3-values";

fn separating() -> Options {
    let mut options = options();
    options.separate_values_from = Some(64);
    let clock = Arc::new(HandClock::default());
    clock.set(1_000_000);
    options.clock = clock;
    options
}

/// A value, which compresses if its number is even.
fn value(number: usize, round: u64) -> String {
    let mut rng = Rng::new(number as u64 + 1000 * round);
    let len = [10, 63, 64, 200, 700][number % 5];
    let letter =
        |_| char::from(b'a' + if number.is_multiple_of(2) { 0 } else { rng.below(26) as u8 });
    format!("{round} ").chars().chain((2..len).map(letter)).collect()
}

#[test]
fn separated_values_are_read_without_changing_a_byte_and_saved_whole() {
    let (temporary, path, expected) = listed_sample(NAME);
    let before = bytes_of(&path);
    let mut read_only = separating();
    read_only.read_only = true;
    let db = Db::open_with(&path, read_only).unwrap();
    assert_eq!(listing_of_all(&db), expected);
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    assert!(bytes_of(&path) == before, "a read-only open changed a byte");
    let to = temporary.path().join("new");
    let salvaged = esker::repair::salvage(&path, &to, &separating()).unwrap();
    assert!(salvaged.plan.is_whole(), "{salvaged}");
}

#[test]
fn separated_values_are_opened_for_writing_and_go_on() {
    for from in [Some(64), Some(300), None] {
        let (_temporary, path, expected) = listed_sample(NAME);
        let mut options = separating();
        options.separate_values_from = from;
        let db = Db::open_with(&path, options.clone()).unwrap();
        assert_eq!(listing_of_all(&db), expected);
        db.compact().unwrap();
        assert_eq!(listing_of_all(&db), expected);
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
        assert_eq!(listing_of_all(&Db::open_with(&path, options).unwrap()), expected);
    }
}

#[test]
fn it_holds_what_it_should() {
    let (_temporary, path, _) = listed_sample(NAME);
    let fields = fields(&path);
    let any = |field: &str, value: &str| {
        fields.iter().any(|(_, name, content)| name.contains(field) && content.contains(value))
    };
    for (field, value) in [
        (".content", "separated values"),
        (".values[", " of "),
        (".special", "operands"),
        (".block[", "Lz4"),
        ("header.format version", "3"),
        ("branch", "branch "),
    ] {
        assert!(any(field, value), "no {field:?} with {value:?}");
    }
    assert!(!any("damaged", ""));
    let bytes: usize = bytes_of(&path).values().map(Vec::len).sum();
    assert!(bytes < 200 << 10, "{bytes} bytes are too many to keep");
}

/// Writes the database anew, if the environment says where.
#[test]
fn write_golden_values() {
    let Some(target) = target("ESKER_WRITE_GOLDEN_VALUES") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let live = temporary.path().join("db");
    let db = Db::open_with(&live, separating()).unwrap();
    let joins = KeyspaceOptions::merging(Append::new("+").name());
    let joined = db.keyspace_with("joined", joins).unwrap();
    for number in 0..60 {
        db.insert(format!("key{number:03}"), value(number, 1)).unwrap();
        joined.insert(format!("key{number:03}"), value(number, 2)).unwrap();
    }
    db.compact().unwrap();
    drop(db.branch("trial").unwrap());
    let day = Duration::from_secs(24 * 3600);
    for number in (0..60).step_by(4) {
        let default = db.default_keyspace();
        db.insert(format!("key{number:03}"), value(number + 1, 3)).unwrap();
        default.insert_with_ttl(format!("ttl{number:03}"), value(number + 3, 4), day).unwrap();
        joined.merge(format!("key{number:03}"), "end").unwrap();
    }
    db.remove_range("key050".."key055").unwrap();
    db.flush().unwrap();
    db.insert("key003", "only in the log").unwrap();
    db.sync().unwrap();
    keep(&live, &target, &listing_of_all(&db));
    db.close().unwrap();
}
