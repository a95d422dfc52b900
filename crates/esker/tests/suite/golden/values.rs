//! A database with separated values, in two branches: compressed and not, some of them replaced, expiring, under
//! operands, and beside values that are not separated. `golden/v3-values` is kept; `ESKER_WRITE_GOLDEN_VALUES`
//! writes a new one. `golden/v3-pieces` also has values in pieces; `ESKER_WRITE_GOLDEN_PIECES` writes it.

use super::{bytes_of, fields, keep, listed_sample, listing_of_all, options, target};
use esker::{Append, Db, KeyspaceOptions, Options};
use esker_testkit::Rng;
use esker_testkit::harness::HandClock;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Databases that are kept, and the version of some run file in each.
const KEPT: [(&str, &str); 2] = [("v3-values", "3"), ("v3-pieces", "4")];

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
    for (name, _) in KEPT {
        let (temporary, path, expected) = listed_sample(name);
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
}

#[test]
fn separated_values_are_opened_for_writing_and_go_on() {
    let ways = [Some(64), Some(300), None];
    for ((name, _), from) in KEPT.into_iter().flat_map(|kept| ways.map(|from| (kept, from))) {
        let (_temporary, path, expected) = listed_sample(name);
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
fn they_hold_what_they_should() {
    for (name, version) in KEPT {
        holds_what_it_should(name, version);
    }
}

fn holds_what_it_should(name: &str, version: &str) {
    let (_temporary, path, _) = listed_sample(name);
    let fields = fields(&path);
    let any = |field: &str, value: &str| {
        fields.iter().any(|(_, name, content)| name.contains(field) && content.contains(value))
    };
    for (field, value) in [
        (".content", "separated values"),
        (".values[", " of "),
        (".special", "operands"),
        (".block[", "Lz4"),
        ("header.format version", version),
        ("branch", "branch "),
    ] {
        assert!(any(field, value), "no {field:?} with {value:?}");
    }
    // A record may go on in the next file of the log.
    let whole = |content: &String| content == "the payload is not whole in this file";
    assert!(fields.iter().all(|(_, name, content)| !name.contains("damaged") || whole(content)));
    let bytes: usize = bytes_of(&path).values().map(Vec::len).sum();
    assert!(bytes < 200 << 10, "{bytes} bytes are too many to keep");
}

/// Writes the databases anew, if the environment says where.
#[test]
fn write_golden_values() {
    for (variable, in_pieces) in
        [("ESKER_WRITE_GOLDEN_VALUES", false), ("ESKER_WRITE_GOLDEN_PIECES", true)]
    {
        if let Some(target) = target(variable) {
            write(&target, in_pieces);
        }
    }
}

fn write(target: &Path, in_pieces: bool) {
    let temporary = tempfile::tempdir().unwrap();
    let live = temporary.path().join("db");
    let db = Db::open_with(&live, separating()).unwrap();
    let joins = KeyspaceOptions::merging(Append::new("+").name());
    let joined = db.keyspace_with("joined", joins).unwrap();
    for number in 0..60 {
        db.insert(format!("key{number:03}"), value(number, 1)).unwrap();
        joined.insert(format!("key{number:03}"), value(number, 2)).unwrap();
    }
    // In pieces of 512 bytes.
    for number in (0..60).filter(|number| in_pieces && number % 9 == 0 && number % 5 > 0) {
        let large = value(number, 5).repeat(12);
        db.insert_reader(format!("key{number:03}"), large.as_bytes()).unwrap();
        joined.insert_reader(format!("large{number:03}"), large.as_bytes()).unwrap();
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
    db.wait_until_idle().unwrap();
    db.insert("key003", "only in the log").unwrap();
    db.sync().unwrap();
    keep(&live, target, &listing_of_all(&db));
    db.close().unwrap();
}
