//! Values that pass in pieces: whole, damaged, cut, and in dumps of earlier builds.

use crate::support::options;
use esker::{Db, KeyspaceOptions};
use esker_port::{
    DumpOptions, Entries, Error, Form, Header, KeyspaceInfo, LoadOptions, Quiet, Summary, Writer,
    dump, dump_to_file, load,
};
use std::path::Path;
use std::time::Duration;

const FORMS: [Form; 3] = [Form::Binary, Form::Compressed, Form::Text];
const LARGE: usize = 9 << 18;

fn open(path: &Path) -> Db {
    Db::open_with(path, options()).unwrap()
}

/// Bytes that compress a little, other ones for each seed.
fn value(seed: u64, len: usize) -> Vec<u8> {
    let mix = |at: u64| (at ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
    (0..len as u64).map(|at| mix(at) as u8).collect()
}

/// Large values in pieces and in the log, between small ones.
fn example(path: &Path) -> Db {
    let db = open(path);
    let mut options = KeyspaceOptions::default();
    options.ttl = Some(Duration::from_secs(1 << 30));
    let expiring = db.keyspace_with("expiring", options).unwrap();
    for keyspace in [&db.default_keyspace(), &expiring] {
        for number in 0..9 {
            let key = format!("key {number}");
            match number {
                2 | 3 | 6 => {
                    let source = value(number, LARGE + number as usize);
                    keyspace.insert_reader(&key, source.as_slice()).unwrap();
                }
                4 => keyspace.insert(&key, value(number, LARGE * 2 / 3)).unwrap(),
                8 => keyspace.insert(&key, "").unwrap(),
                _ => keyspace.insert(&key, value(number, 100)).unwrap(),
            }
        }
    }
    // What is newer than a value in pieces counts.
    db.insert("key 3", "short").unwrap();
    db
}

fn content(db: &Db, keyspace: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let keyspace = db.keyspace(keyspace).unwrap();
    keyspace.iter().unwrap().collect::<Result<_, _>>().unwrap()
}

fn dump_as(db: &Db, form: Form) -> (Vec<u8>, Summary) {
    let mut options = DumpOptions::default();
    options.form = form;
    let mut stream = Vec::new();
    let dumped = dump(db, &mut stream, "memory", &options, &mut Quiet).unwrap();
    (stream, dumped)
}

fn load_into(db: &Db, stream: &[u8]) -> Result<Summary, Error> {
    let mut options = LoadOptions::default();
    options.read_back = true;
    load(db, stream, "memory", &options, &mut Quiet)
}

#[test]
fn values_in_pieces_come_back_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let db = example(&dir.path().join("db"));
    for form in FORMS {
        let (stream, dumped) = dump_as(&db, form);
        assert_eq!((dumped.keyspaces, dumped.entries), (2, 18));
        assert!(form != Form::Compressed || stream.len() < 8 * LARGE);
        let copy = open(&dir.path().join(format!("{form:?}")));
        let loaded = load_into(&copy, &stream).unwrap();
        assert_eq!(
            (loaded.content, loaded.bytes, loaded.entries),
            (dumped.content, dumped.bytes, dumped.entries)
        );
        for keyspace in ["default", "expiring"] {
            assert!(content(&copy, keyspace) == content(&db, keyspace), "{form:?} {keyspace}");
        }
        // One keyspace of it, so that the values of the other are read past.
        let part = open(&dir.path().join(format!("{form:?}-part")));
        let mut options = LoadOptions::default();
        options.keyspaces = Some(vec!["expiring".to_owned()]);
        load(&part, stream.as_slice(), "memory", &options, &mut Quiet).unwrap();
        assert!(content(&part, "expiring") == content(&db, "expiring"), "{form:?}");
        assert!(part.first_key_value().unwrap().is_none());
    }
}

#[test]
fn damage_within_a_value_in_pieces_leaves_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    db.insert("a", "before").unwrap();
    db.insert_reader("large", value(7, LARGE).as_slice()).unwrap();
    db.insert("z", "behind").unwrap();
    for form in FORMS {
        let (stream, _) = dump_as(&db, form);
        for (step, cut) in [(2, false), (3, true), (5, false), (7, true)] {
            let at = stream.len() * step / 9;
            let mut damaged = stream.clone();
            if cut {
                damaged.truncate(at)
            } else {
                damaged[at] ^= 1 << step
            }
            let place = tempfile::tempdir().unwrap();
            let copy = open(&place.path().join("db"));
            let error = load_into(&copy, &damaged).unwrap_err();
            let typed = matches!(error, Error::Damaged { .. } | Error::CutOff { .. });
            assert!(typed, "{form:?} {step}: {error}");
            // What was proved before is kept.
            let found = content(&copy, "default");
            assert!(found == [(b"a".to_vec(), b"before".to_vec())], "{form:?} {step}");
            let loaded = load_into(&copy, &stream).unwrap();
            assert_eq!((loaded.resumed, loaded.entries), (1, 3));
            assert!(content(&copy, "default") == content(&db, "default"));
        }
    }
}

#[test]
fn a_load_and_a_dump_go_on_behind_values_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let db = example(&dir.path().join("db"));
    for form in FORMS {
        let (stream, _) = dump_as(&db, form);
        let copy = open(&dir.path().join(format!("{form:?}")));
        load_into(&copy, &stream[..stream.len() * 8 / 9]).unwrap_err();
        let loaded = load_into(&copy, &stream).unwrap();
        assert!(loaded.resumed > 10, "{form:?}: {}", loaded.resumed);
        assert!(content(&copy, "expiring") == content(&db, "expiring"), "{form:?}");

        let mut options = DumpOptions::default();
        options.form = form;
        let file = dir.path().join(format!("{form:?}.dump"));
        let first = dump_to_file(&db, &file, &options, false, &mut Quiet).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let (again, part) = (dir.path().join("again"), dir.path().join("again.part"));
        std::fs::write(&part, &bytes[..bytes.len() * 8 / 9]).unwrap();
        let second = dump_to_file(&db, &again, &options, true, &mut Quiet).unwrap();
        assert_eq!(second.content, first.content);
        assert!(second.resumed > 10 && std::fs::read(&again).unwrap() == bytes, "{form:?}");
        std::fs::remove_file(&again).unwrap();
    }
}

#[test]
fn large_frames_of_earlier_builds_are_loaded() {
    // They ended a frame behind the entry that filled it, however large that was.
    let dir = tempfile::tempdir().unwrap();
    for form in FORMS {
        let mut stream = Vec::new();
        let mut writer = Writer::new(&mut stream, "memory", form, &Header::default()).unwrap();
        writer.keyspace(&KeyspaceInfo::named("default", None)).unwrap();
        let mut entries = Entries::default();
        entries.push(b"a", b"1");
        entries.push(b"large", &value(1, LARGE));
        writer.entries(entries).unwrap();
        let written = writer.end().unwrap();
        let copy = open(&dir.path().join(format!("{form:?}")));
        let loaded = load_into(&copy, &stream).unwrap();
        assert_eq!(loaded.content, written.content);
        assert!(copy.get("large").unwrap().unwrap() == value(1, LARGE), "{form:?}");
        assert_eq!(copy.get("a").unwrap(), Some(b"1".to_vec()));
    }
}

#[test]
fn a_stream_that_is_not_sorted_is_loaded_with_its_large_values() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream = Vec::new();
    let mut writer = Writer::new(&mut stream, "memory", Form::Binary, &Header::default()).unwrap();
    writer.keyspace(&KeyspaceInfo::named("default", None)).unwrap();
    for key in [b"c", b"b", b"a"] {
        let mut entries = Entries::default();
        entries.push(key, &value(key[0].into(), LARGE));
        writer.entries(entries).unwrap();
    }
    writer.end().unwrap();
    let copy = open(dir.path());
    load(&copy, stream.as_slice(), "memory", &LoadOptions::default(), &mut Quiet).unwrap();
    for key in [b"a", b"b", b"c"] {
        assert!(copy.get(key).unwrap().unwrap() == value(key[0].into(), LARGE));
    }
}
