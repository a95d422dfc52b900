//! Values that are written and read in pieces.

use super::separated::{flip, open, options, scans};
use super::{Place, entries, key, run_files, settled, shrinks, small};
use esker::{Append, Db, Error, ErrorKind, KeyspaceOptions, ValueReader};
use esker_testkit::Rng;
use esker_testkit::harness::HandClock;
use esker_testkit::orders::Reverse;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a piece with these options: a quarter of a run segment.
const PIECE: usize = 2 << 10;

/// A value that says which it is, and does not compress.
fn value(number: usize, round: u64) -> Vec<u8> {
    let mut rng = Rng::new(number as u64 * 1009 + round);
    (0..len_of(number)).map(|_| rng.below(256) as u8).collect()
}

/// Lengths around those of one, two and more pieces.
fn len_of(number: usize) -> usize {
    let around = |pieces: usize| [pieces * PIECE - 1, pieces * PIECE, pieces * PIECE + 1];
    match number % 11 {
        0 => 0,
        1 => 300,
        n @ 2..5 => around(1)[n - 2],
        n @ 5..8 => around(2)[n - 5],
        8 => 5 * PIECE - 8,
        9 => 9 * PIECE + 77,
        _ => 40 * PIECE,
    }
}

/// A reader that gives its bytes in portions of odd lengths, and says now and then that it was interrupted.
struct Slow<'v>(&'v [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.1 += 1;
        if self.1.is_multiple_of(7) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = out.len().min(self.0.len()).min(1 + self.1 * 37 % 999);
        (&mut self.0).read(&mut out[..len])
    }
}

fn fill(db: &Db, numbers: impl Iterator<Item = usize>, round: u64) {
    for number in numbers {
        let value = value(number, round);
        let len = db.insert_reader(key(number), Slow(&value, number)).unwrap();
        assert_eq!(len, value.len() as u64);
    }
}

/// Reads all of a value in portions of this many bytes.
fn drain(mut reader: impl Read, portion: usize) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; portion]);
    loop {
        let read = reader.read(&mut buffer).unwrap();
        all.extend_from_slice(&buffer[..read]);
        if read == 0 {
            return all;
        }
    }
}

/// Reads parts of a value from places drawn at random.
fn check_parts(reader: &mut ValueReader, whole: &[u8], seed: u64) {
    let mut rng = Rng::new(seed);
    assert_eq!(reader.len(), whole.len() as u64);
    assert_eq!(reader.is_empty(), whole.is_empty());
    for _ in 0..10 {
        let at = rng.below(whole.len() as u64 + 10);
        let len = rng.below(3 * PIECE as u64);
        reader.seek(SeekFrom::Start(at)).unwrap();
        let mut part = Vec::new();
        reader.by_ref().take(len).read_to_end(&mut part).unwrap();
        let from = whole.len().min(at as usize);
        let to = whole.len().min((at + len) as usize);
        assert!(part == whole[from..to], "{len} bytes from {at} of {}, seed {seed}", whole.len());
        assert_eq!(reader.stream_position().unwrap(), at + (to - from) as u64);
    }
}

fn check(db: &Db, numbers: std::ops::Range<usize>, round: impl Fn(usize) -> u64) {
    let expected = |number: usize| value(number, round(number));
    for number in numbers.clone() {
        let value = expected(number);
        assert!(db.get(key(number)).unwrap().unwrap() == value, "{number}");
        let mut reader = db.get_reader(key(number)).unwrap().unwrap();
        assert!(drain(&mut reader, 700) == value, "the reader of {number}");
        check_parts(&mut reader, &value, number as u64);
        let with = db.default_keyspace().get_with(key(number), |seen| seen == value).unwrap();
        assert_eq!(with, Some(true), "{number}");
        assert!(db.contains_key(key(number)).unwrap());
    }
    scans(db, numbers.map(|number| (key(number).into(), expected(number))).collect());
}

#[test]
fn values_of_all_lengths_are_read_after_everything_that_happens_to_them() {
    let place = Place::new();
    let db = open(&place);
    fill(&db, 0..66, 1);
    check(&db, 0..66, |_| 1);
    // What is written through the log lies over them, and under them.
    for number in (0..66).filter(|number| number % 3 == 0) {
        db.insert(key(number), value(number, 2)).unwrap();
    }
    fill(&db, (0..66).filter(|number| number % 6 == 0), 3);
    let round = |number: usize| match number {
        number if number.is_multiple_of(6) => 3,
        number if number.is_multiple_of(3) => 2,
        _ => 1,
    };
    check(&db, 0..66, round);
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    check(&db, 0..66, round);
    drop(db);
    let db = open(&place);
    check(&db, 0..66, round);
    db.compact().unwrap();
    check(&db, 0..66, round);
    drop(db);
    // Another size of segments means other pieces, for new values only.
    let mut other = small();
    other.segment_bytes = 64 << 10;
    let db = Db::open_with(place.path(), other).unwrap();
    check(&db, 0..66, round);
    db.compact().unwrap();
    check(&db, 0..66, round);
}

#[test]
fn an_ingestion_takes_values_in_pieces_between_others() {
    let place = Place::new();
    let db = open(&place);
    let default = db.default_keyspace();
    let mut ingestion = db.ingest().unwrap();
    for number in 0..66 {
        let value = value(number, 1);
        match number % 4 {
            0 => ingestion.insert(&default, key(number), &value).unwrap(),
            _ => {
                let len = ingestion.insert_reader(&default, key(number), &value[..]).unwrap();
                assert_eq!(len, value.len() as u64);
            }
        }
    }
    assert_eq!(db.iter().unwrap().count(), 0);
    ingestion.commit().unwrap();
    check(&db, 0..66, |_| 1);
    db.compact().unwrap();
    check(&db, 0..66, |_| 1);
    drop((default, db));
    check(&open(&place), 0..66, |_| 1);
}

#[test]
fn what_is_larger_than_an_eighth_of_the_budget_is_ingested_in_pieces() {
    let place = Place::new();
    let db = open(&place);
    let large: Vec<u8> = (0..900_000u32).map(|n| (n * 7 / 3) as u8).collect();
    assert_eq!(db.insert("a", &large).unwrap_err().kind(), ErrorKind::ValueTooLarge);
    let default = db.default_keyspace();
    let mut ingestion = db.ingest().unwrap();
    ingestion.insert(&default, "a", &large).unwrap();
    ingestion.insert_with_ttl(&default, "b", &large, Duration::from_secs(3600)).unwrap();
    ingestion.commit().unwrap();
    assert!(db.get("a").unwrap().unwrap() == large);
    assert!(drain(db.get_reader("b").unwrap().unwrap(), 1 << 20) == large);
    let joins = KeyspaceOptions::merging(Append::new("+").name());
    let merging = db.keyspace_with("k", joins).unwrap();
    let mut ingestion = db.ingest().unwrap();
    let refused = ingestion.merge(&merging, "a", &large).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ValueTooLarge);
    ingestion.merge(&merging, "b", "small").unwrap();
    ingestion.commit().unwrap();
    assert_eq!(merging.get("b").unwrap().unwrap(), b"small");
}

#[test]
fn a_reader_goes_on_when_its_value_was_replaced_and_gives_it_back_at_its_end() {
    let place = Place::new();
    let db = open(&place);
    let large = value(10, 1);
    db.insert_reader("a", &large[..]).unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut reader = db.get_reader("a").unwrap().unwrap();
    let mut first = [0; 100];
    reader.read_exact(&mut first).unwrap();
    db.insert("a", "new").unwrap();
    let default = db.default_keyspace();
    let seen = snapshot.get_reader(&default, "a").unwrap().unwrap();
    assert!(drain(seen, 4096) == large);
    drop(snapshot);
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    assert!(drain(&mut reader, 512) == large[100..]);
    assert!(run_files(&place.path()).0 > large.len() as u64);
    drop(reader);
    // Something else is written, so that files go.
    db.insert("b", "new").unwrap();
    db.compact().unwrap();
    shrinks(&db, &place, |taken| taken < large.len() as u64 / 2);
    assert_eq!(db.get("a").unwrap().unwrap(), b"new");
}

#[test]
fn a_reader_ends_with_its_database() {
    let place = Place::new();
    let db = open(&place);
    db.insert_reader("a", &value(10, 1)[..]).unwrap();
    let mut reader = db.get_reader("a").unwrap().unwrap();
    assert!(!reader.fill_buf().unwrap().is_empty());
    db.close().unwrap();
    let error = reader.read(&mut [0; 10]).unwrap_err();
    let source = error.get_ref().unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!(source.kind(), ErrorKind::Closed);
    assert!(reader.seek(SeekFrom::Current(-1)).is_err());
}

/// Gives so many bytes and then fails.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(self.0);
        self.0 -= len;
        out[..len].fill(b'x');
        if len == 0 { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(len) }
    }
}

#[test]
fn a_reader_that_fails_leaves_nothing() {
    let place = Place::new();
    let db = open(&place);
    db.insert("a", "old").unwrap();
    let default = db.default_keyspace();
    for len in [0, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 10 * PIECE + 5] {
        let error = db.insert_reader("a", Failing(len)).unwrap_err();
        let Error::Io { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(db.get("a").unwrap().unwrap(), b"old");
        // An ingestion goes on without the entry, and takes its key again.
        let mut ingestion = db.ingest().unwrap();
        ingestion.insert(&default, "0", value(1, 1)).unwrap();
        ingestion.insert(&default, "1", "small").unwrap();
        let failed = ingestion.insert_reader(&default, "2", Failing(len)).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Io);
        ingestion.insert_reader(&default, "2", &value(9, 1)[..]).unwrap();
        ingestion.insert(&default, "3", value(1, 2)).unwrap();
        assert_eq!(db.get("2").unwrap(), None);
        ingestion.commit().unwrap();
        assert_eq!(db.get("0").unwrap().unwrap(), value(1, 1));
        assert_eq!(db.get("1").unwrap().unwrap(), b"small");
        assert!(db.get("2").unwrap().unwrap() == value(9, 1));
        assert_eq!(db.get("3").unwrap().unwrap(), value(1, 2));
        assert_eq!(db.verify().unwrap().problems.len(), 0);
        db.default_keyspace().remove_range("0".."4").unwrap();
    }
}

#[test]
fn a_value_of_more_than_a_gibibyte_is_refused() {
    let place = Place::new();
    let db = Db::open(place.path()).unwrap();
    let too_much = io::repeat(7).take((1 << 30) + 1);
    assert_eq!(db.insert_reader("a", too_much).unwrap_err().kind(), ErrorKind::ValueTooLarge);
    assert_eq!(db.get("a").unwrap(), None);
    let most = io::repeat(7).take(1 << 30);
    assert_eq!(db.insert_reader("a", most).unwrap(), 1 << 30);
    let mut reader = db.get_reader("a").unwrap().unwrap();
    assert_eq!(reader.len(), 1 << 30);
    reader.seek(SeekFrom::End(-2)).unwrap();
    assert_eq!(drain(reader, 10), [7, 7]);
}

#[test]
fn values_in_pieces_expire() {
    let place = Place::new();
    let clock = Arc::new(HandClock::default());
    clock.set(1_000);
    let mut options = options();
    options.clock = clock.clone();
    let db = Db::open_with(place.path(), options).unwrap();
    let brief = KeyspaceOptions::expiring(Duration::from_secs(10));
    let keyspace = db.keyspace_with("k", brief).unwrap();
    for number in 0..22 {
        keyspace.insert_reader(key(number), &value(number, 1)[..]).unwrap();
    }
    let before = db.snapshot().unwrap();
    for _ in 0..2 {
        for number in 0..22 {
            assert!(keyspace.get(key(number)).unwrap().unwrap() == value(number, 1));
            let mut reader = keyspace.get_reader(key(number)).unwrap().unwrap();
            assert!(drain(&mut reader, 1000) == value(number, 1), "{number}");
            check_parts(&mut reader, &value(number, 1), number as u64);
        }
        db.compact().unwrap();
        assert_eq!(db.verify().unwrap().problems.len(), 0);
    }
    let mut kept = keyspace.get_reader(key(10)).unwrap().unwrap();
    clock.set(50_000);
    assert!(keyspace.get_reader(key(10)).unwrap().is_none());
    assert!(!keyspace.contains_key(key(10)).unwrap());
    assert_eq!(keyspace.iter().unwrap().count(), 0);
    let seen = before.get_reader(&keyspace, key(9)).unwrap().unwrap();
    assert!(drain(seen, 1000) == value(9, 1));
    assert!(drain(&mut kept, 1000) == value(10, 1));
    drop((before, kept));
    db.compact().unwrap();
    shrinks(&db, &place, |taken| taken < 4096);
}

#[test]
fn branches_checkpoints_and_operands_meet_values_in_pieces() {
    let place = Place::new();
    let db = open(&place);
    let joins = KeyspaceOptions::merging(Append::new("+").name());
    let keyspace = db.keyspace_with("k", joins).unwrap();
    for number in 0..22 {
        keyspace.insert_reader(key(number), &value(number, 1)[..]).unwrap();
    }
    fill(&db, 0..22, 1);
    let branch = db.branch("old").unwrap();
    let copy = place.path().with_extension("copy");
    db.checkpoint(&copy).unwrap();
    for number in 0..22 {
        keyspace.merge(key(number), "end").unwrap();
    }
    fill(&db, 0..22, 2);
    for _ in 0..2 {
        for number in 0..22 {
            let mut expected = value(number, 1);
            expected.extend_from_slice(b"+end");
            assert!(keyspace.get(key(number)).unwrap().unwrap() == expected, "{number}");
            let reader = keyspace.get_reader(key(number)).unwrap().unwrap();
            assert!(drain(reader, 999) == expected, "{number}");
        }
        check(&db, 0..22, |_| 2);
        check(&branch, 0..22, |_| 1);
        db.compact().unwrap();
    }
    drop(branch);
    db.drop_branch("old").unwrap();
    db.compact().unwrap();
    let alive: usize = 2 * (0..22).map(len_of).sum::<usize>();
    // Every value lies in pages of its own.
    shrinks(&db, &place, |taken| taken < (alive + 44 * 4096 * 2) as u64);
    check(&db, 0..22, |_| 2);
    drop((keyspace, db));
    check(&Db::open_with(copy, options()).unwrap(), 0..22, |_| 1);
}

#[test]
fn compactions_leave_pieces_where_they_are() {
    let place = Place::new();
    let db = open(&place);
    let keyspace = db.keyspace_ordered("k", Arc::new(Reverse)).unwrap();
    for number in 0..20 {
        keyspace.insert_reader(key(number), &value(10, number as u64)[..]).unwrap();
        db.insert_reader(key(number), &value(10, number as u64)[..]).unwrap();
    }
    db.wait_until_idle().unwrap();
    db.compact().unwrap();
    let written = db.stats().written.compaction;
    assert!(written < len_of(10) as u64, "references, but {written} bytes were written");
    let of = |number: usize| (key(number).into(), value(10, number as u64));
    assert!(entries(keyspace.iter().unwrap()) == (0..20).rev().map(of).collect::<Vec<_>>());
    assert_eq!(db.verify().unwrap().problems.len(), 0);
    // Two of three go, each with all of its pieces.
    for number in (0..20).filter(|number| number % 3 > 0) {
        keyspace.remove(key(number)).unwrap();
        db.remove(key(number)).unwrap();
    }
    db.compact().unwrap();
    let taken = settled(&db, &place.path(), |taken| taken < 15 * len_of(10) as u64);
    assert!(taken < 15 * len_of(10) as u64, "{taken}");
    assert!(db.stats().written.compaction < 2 * len_of(10) as u64);
}

#[test]
fn the_value_is_durable_and_so_is_a_small_one() {
    let place = Place::new();
    let db = open(&place);
    let before = db.stats().syncs;
    db.insert_reader("a", &b"small"[..]).unwrap();
    assert!(db.stats().syncs > before, "nothing was synced");
    assert_eq!(db.get("a").unwrap().unwrap(), b"small");
}

#[test]
fn a_damaged_piece_is_refused_and_named_and_a_repair_saves_the_others() {
    let place = Place::new();
    let db = open(&place);
    // Larger than an eighth of the budget.
    let large: Vec<u8> = (0..900_000u32).map(|n| (n.wrapping_mul(n) / 3) as u8).collect();
    db.insert_reader("large", &large[..]).unwrap();
    fill(&db, 0..22, 1);
    drop(db);
    assert_eq!(flip(&place, &value(10, 1)[17 * PIECE + 1000..][..64]), 1);
    let db = open(&place);
    assert_eq!(db.get(key(10)).unwrap_err().kind(), ErrorKind::Corruption);
    let mut reader = db.get_reader(key(10)).unwrap().unwrap();
    let mut part = Vec::new();
    let error = reader.read_to_end(&mut part).unwrap_err();
    assert!(part == value(10, 1)[..17 * PIECE]);
    let Error::Corruption(corruption) = error.get_ref().unwrap().downcast_ref::<Error>().unwrap()
    else {
        panic!("{error}")
    };
    assert_eq!(corruption.keyspace.as_deref(), Some("default"));
    // What lies behind the damage can be read.
    reader.seek(SeekFrom::Start(18 * PIECE as u64)).unwrap();
    assert!(drain(&mut reader, 1000) == value(10, 1)[18 * PIECE..]);
    assert_eq!(db.verify().unwrap().problems.len(), 1);
    drop((reader, db));
    // A plan, which writes nothing, knows it, too, and what is done is what was planned.
    let planned = esker::repair::plan(place.path(), &options()).unwrap();
    let saved = place.path().with_extension("saved");
    let plan = esker::repair::salvage(place.path(), &saved, &options()).unwrap();
    assert!(planned.has_losses() && plan.plan.has_losses());
    assert_eq!(plan.plan.to_string(), planned.to_string());
    let db = Db::open_with(saved, options()).unwrap();
    assert!(drain(db.get_reader("large").unwrap().unwrap(), 5000) == large);
    for number in 0..22 {
        let found = db.get(key(number)).unwrap();
        assert!(found == (number != 10).then(|| value(number, 1)), "{number}");
    }
    assert_eq!(db.verify().unwrap().problems.len(), 0);
}

#[test]
fn an_iterator_that_leaves_pieces_shows_all_keys_and_all_other_values() {
    let place = Place::new();
    let db = open(&place);
    let words =
        db.keyspace_with("words", KeyspaceOptions::merging(Append::new("+").name())).unwrap();
    let mut short_lived = KeyspaceOptions::default();
    short_lived.ttl = Some(Duration::from_secs(1 << 30));
    let short_lived = db.keyspace_with("short-lived", short_lived).unwrap();
    let backwards = db.keyspace_ordered("backwards", Arc::new(Reverse)).unwrap();
    for keyspace in [&words, &short_lived, &backwards] {
        for number in 0..44 {
            keyspace.insert_reader(key(number), value(number, 1).as_slice()).unwrap();
        }
        keyspace.remove(key(10)).unwrap();
        keyspace.insert(key(21), "short again").unwrap();
    }
    // An operand needs the value below it.
    words.merge(key(32), "more").unwrap();
    let snapshot = db.snapshot().unwrap();
    for keyspace in [&words, &short_lived, &backwards] {
        let whole = snapshot.iter(keyspace).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(whole.len(), 43);
        let mut iter = snapshot.iter(keyspace).unwrap().leaving_pieces();
        let mut left = 0;
        for round in 0..2 {
            let from = whole.len() / 2 * round;
            iter.seek(&whole[from].0).unwrap();
            for (key, expected) in &whole[from..] {
                let (found, value) = iter.next_entry().unwrap().unwrap();
                assert_eq!(found, key);
                let value = value.to_vec();
                if iter.is_in_pieces() {
                    left += 1;
                    assert!(value.is_empty() && expected.len() > PIECE);
                    let reader = snapshot.get_reader(keyspace, key).unwrap().unwrap();
                    assert!(drain(reader, 999) == *expected);
                } else {
                    assert!(value == *expected);
                }
            }
            assert_eq!(iter.next_entry().unwrap(), None);
        }
        assert!(left > 20, "{left}");
        // The back has values whole.
        let mut iter = snapshot.iter(keyspace).unwrap().leaving_pieces();
        let mut reversed = Vec::new();
        while let Some((key, value)) = iter.next_back_entry().unwrap() {
            reversed.push((key.to_vec(), value.to_vec()));
        }
        reversed.reverse();
        assert!(reversed == whole);
    }
}
