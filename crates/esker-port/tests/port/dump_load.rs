//! Dumps and loads of whole databases: what goes out comes back, whatever is cut or damaged on
//! the way.

use crate::support::options;
use esker::{Db, ErrorKind};
use esker_port::{DumpOptions, Error, Form, LoadOptions, Quiet, Summary, dump, dump_to_file, load};
use esker_testkit::orders::Reverse;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const FORMS: [Form; 3] = [Form::Binary, Form::Compressed, Form::Text];

type Content = BTreeMap<String, Vec<(Vec<u8>, Vec<u8>)>>;

fn open(path: &Path) -> Db {
    Db::open_with(path, options()).unwrap()
}

fn content(db: &Db) -> Content {
    let names = db.keyspaces().unwrap();
    let all = names.into_iter().map(|name| {
        let keyspace = db.keyspace(&name).unwrap();
        (name, keyspace.iter().unwrap().collect::<Result<Vec<_>, _>>().unwrap())
    });
    all.collect()
}

fn dump_with(db: &Db, form: Form, change: impl FnOnce(&mut DumpOptions)) -> Vec<u8> {
    let mut options = DumpOptions::default();
    options.form = form;
    change(&mut options);
    let mut stream = Vec::new();
    dump(db, &mut stream, "memory", &options, &mut Quiet).unwrap();
    stream
}

fn load_into(db: &Db, stream: &[u8]) -> Result<Summary, Error> {
    let mut options = LoadOptions::default();
    options.comparators = vec![Arc::new(Reverse)];
    options.read_back = true;
    load(db, stream, "memory", &options, &mut Quiet)
}

/// A database with two keyspaces in byte order and one in an order of its own.
fn example(path: &Path, entries: u32) -> Db {
    let db = open(path);
    let numbers = db.keyspace("numbers").unwrap();
    let reverse = db.keyspace_ordered("backwards", Arc::new(Reverse)).unwrap();
    for number in 0..entries {
        let value = vec![number as u8; 100 + (number % 50) as usize];
        numbers.insert(number.to_be_bytes(), &value).unwrap();
        if number % 3 == 0 {
            reverse.insert(number.to_be_bytes(), number.to_string()).unwrap();
        }
    }
    db.insert("", "the empty key").unwrap();
    db.insert([0xff; 1000], "").unwrap();
    db.keyspace("empty").unwrap();
    db
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => proptest::collection::vec(any::<u8>(), 0..20),
        2 => proptest::collection::vec(Just(0xff), 0..6),
        1 => proptest::collection::vec(any::<u8>(), 65_000..65_536),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => proptest::collection::vec(any::<u8>(), 0..60),
        2 => "[ -~]{0,40}".prop_map(String::into_bytes),
        1 => (any::<u8>(), 200_000..700_000usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_stored_comes_back(
        entries in proptest::collection::vec((0..4usize, key(), value()), 0..80),
        form in prop::sample::select(FORMS.to_vec()),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let db = open(&dir.path().join("from"));
        let spaces = [
            db.default_keyspace(),
            db.keyspace("a keyspace").unwrap(),
            db.keyspace_ordered("ordered", Arc::new(Reverse)).unwrap(),
            db.keyspace("größe").unwrap(),
        ];
        for (space, key, value) in &entries {
            spaces[*space].insert(key, value).unwrap();
        }
        let stream = dump_with(&db, form, |_| ());
        let copy = open(&dir.path().join("to"));
        load_into(&copy, &stream).unwrap();
        prop_assert_eq!(content(&copy), content(&db));
        let order = copy.keyspace("ordered").unwrap();
        prop_assert_eq!(order.comparator_name(), Some("reverse"));
        // A dump of the copy has the same content.
        let mut again = Vec::new();
        let options = DumpOptions::default();
        let of_copy = dump(&copy, &mut again, "memory", &options, &mut Quiet).unwrap();
        let of_db = dump(&db, Vec::new(), "memory", &options, &mut Quiet).unwrap();
        prop_assert_eq!(of_copy.content, of_db.content);
    }
}

#[test]
fn a_dump_shows_one_moment_and_what_was_selected() {
    let dir = tempfile::tempdir().unwrap();
    let db = example(&dir.path().join("db"), 100);
    let stream = dump_with(&db, Form::Binary, |options| {
        options.keyspaces = Some(vec!["numbers".to_owned()]);
        options.from = Some(10u32.to_be_bytes().to_vec());
        options.to = Some(20u32.to_be_bytes().to_vec());
    });
    let copy = open(&dir.path().join("copy"));
    assert_eq!(load_into(&copy, &stream).unwrap().entries, 10);
    let found = content(&copy);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["default", "numbers"]);
    assert_eq!(found["numbers"], content(&db)["numbers"][10..20]);
    let mut options = DumpOptions::default();
    options.keyspaces = Some(vec!["no such".to_owned()]);
    let error = dump(&db, Vec::new(), "memory", &options, &mut Quiet).unwrap_err();
    assert!(matches!(error, Error::NoKeyspace { .. }), "{error}");
}

#[test]
fn the_properties_of_keyspaces_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let mut counting = esker::KeyspaceOptions::merging("esker.counter-u64");
    counting.ttl = Some(std::time::Duration::from_secs(86_400));
    let visits = db.keyspace_with("visits", counting).unwrap();
    for _ in 0..3 {
        visits.merge("home", esker::CounterU64::encode(1)).unwrap();
    }
    for form in FORMS {
        let copy = open(&dir.path().join(format!("{form:?}")));
        load_into(&copy, &dump_with(&db, form, |_| ())).unwrap();
        let copied = copy.keyspace("visits").unwrap();
        assert_eq!(copied.ttl(), visits.ttl());
        assert_eq!(copied.merge_operator(), visits.merge_operator());
        assert_eq!(copied.get("home").unwrap(), visits.get("home").unwrap());
    }
}

#[test]
fn a_load_goes_on_after_its_stream_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let db = example(&dir.path().join("db"), 20_000);
    let expected = content(&db);
    for form in FORMS {
        let stream = dump_with(&db, form, |_| ());
        let path = dir.path().join(format!("{form:?}"));
        let mut seed = 7u64;
        let (mut cut, mut resumed) = (0, 0);
        while cut < stream.len() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            cut += (seed >> 33) as usize % stream.len();
            let copy = open(&path);
            match load_into(&copy, &stream[..cut.min(stream.len())]) {
                Ok(summary) => {
                    assert!(cut >= stream.len());
                    resumed = summary.resumed;
                }
                Err(error) => {
                    assert!(matches!(error, Error::CutOff { .. } | Error::NotADump { .. }));
                    if cut > 1000 {
                        let named =
                            dump(&copy, Vec::new(), "", &DumpOptions::default(), &mut Quiet);
                        assert!(matches!(named, Err(Error::Unfinished { .. })));
                    }
                }
            }
            copy.close().unwrap();
        }
        assert!(resumed > 0, "{form:?}: nothing was left to go on with");
        assert_eq!(content(&open(&path)), expected, "{form:?}");
    }
}

#[test]
fn a_damaged_stream_stores_nothing_that_was_not_dumped() {
    let dir = tempfile::tempdir().unwrap();
    let db = example(&dir.path().join("db"), 3_000);
    let expected = content(&db);
    for form in FORMS {
        let stream = dump_with(&db, form, |_| ());
        for step in 1..24 {
            let mut damaged = stream.clone();
            let at = stream.len() * step / 24;
            damaged[at] ^= 1 << (step % 8);
            let place = tempfile::tempdir().unwrap();
            let copy = open(&place.path().join("db"));
            let error = load_into(&copy, &damaged).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. } | Error::CutOff { .. }), "{error}");
            for (name, entries) in content(&copy) {
                if name == "esker:load" {
                    continue;
                }
                assert_eq!(entries, expected[&name][..entries.len()], "{form:?} {at} {name}");
            }
            // The whole dump then mends it.
            load_into(&copy, &stream).unwrap();
            assert_eq!(content(&copy), expected);
        }
    }
}

#[test]
fn a_dump_to_a_file_goes_on_where_it_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = example(&path, 20_000);
    for form in FORMS {
        let mut options = DumpOptions::default();
        options.form = form;
        let whole = dir.path().join(format!("{form:?}"));
        let first = dump_to_file(&db, &whole, &options, false, &mut Quiet).unwrap();
        let bytes = std::fs::read(&whole).unwrap();
        let again = dir.path().join(format!("{form:?}-again"));
        let part = dir.path().join(format!("{form:?}-again.part"));
        for tenth in 0..=10 {
            std::fs::write(&part, &bytes[..bytes.len() * tenth / 10]).unwrap();
            if tenth > 0 {
                let error = dump_to_file(&db, &again, &options, false, &mut Quiet).unwrap_err();
                assert!(matches!(error, Error::FileExists { .. }), "{error}");
            }
            let second = dump_to_file(&db, &again, &options, true, &mut Quiet).unwrap();
            assert_eq!((second.content, second.entries), (first.content, first.entries));
            assert!(second.resumed > 0 || !(3..10).contains(&tenth), "{form:?} {tenth}");
            let read = std::fs::read(&again).unwrap();
            if second.resumed > 0 {
                assert!(read == bytes, "{form:?}: it is another stream after {tenth} tenths");
            }
            assert_eq!(read.len(), bytes.len());
            assert!(!part.exists());
            std::fs::remove_file(&again).unwrap();
        }
        // Another selection, another moment, another database.
        std::fs::write(&part, &bytes[..bytes.len() / 2]).unwrap();
        let mut other = options.clone();
        other.from = Some(b"a".to_vec());
        let refused = |result: Result<Summary, Error>| {
            assert!(matches!(result, Err(Error::CannotResume { .. })), "{result:?}");
        };
        refused(dump_to_file(&db, &again, &other, true, &mut Quiet));
        let elsewhere = open(&dir.path().join(format!("{form:?}-db")));
        refused(dump_to_file(&elsewhere, &again, &options, true, &mut Quiet));
        db.insert("new", "entry").unwrap();
        refused(dump_to_file(&db, &again, &options, true, &mut Quiet));
        assert_eq!(std::fs::read(&part).unwrap(), bytes[..bytes.len() / 2]);
        db.remove("new").unwrap();
    }
}

#[test]
fn a_database_that_holds_something_is_not_loaded_into_unless_told() {
    let dir = tempfile::tempdir().unwrap();
    let db = example(&dir.path().join("db"), 10);
    let stream = dump_with(&db, Form::Binary, |_| ());
    let copy = open(&dir.path().join("copy"));
    copy.insert("", "mine").unwrap();
    copy.insert("kept", "mine").unwrap();
    let before = content(&copy);
    assert!(matches!(load_into(&copy, &stream), Err(Error::NotEmpty { .. })));
    assert_eq!(content(&copy), before);
    let mut options = LoadOptions::default();
    options.existing = true;
    options.comparators = vec![Arc::new(Reverse)];
    load(&copy, stream.as_slice(), "memory", &options, &mut Quiet).unwrap();
    assert_eq!(copy.get("").unwrap().unwrap(), b"the empty key");
    assert_eq!(copy.get("kept").unwrap().unwrap(), b"mine");
    // One that another dump was being loaded into waits for that dump.
    let third = open(&dir.path().join("third"));
    load_into(&third, &stream[..stream.len() - 1]).unwrap_err();
    let other = dump_with(&db, Form::Binary, |_| ());
    assert!(matches!(load_into(&third, &other), Err(Error::Unfinished { .. })));
    load_into(&third, &stream).unwrap();
    assert_eq!(content(&third), content(&db));
}

#[test]
fn an_order_that_is_not_given_is_a_typed_error() {
    let dir = tempfile::tempdir().unwrap();
    let db = example(&dir.path().join("db"), 10);
    let stream = dump_with(&db, Form::Binary, |_| ());
    let copy = open(&dir.path().join("copy"));
    let error = load(&copy, stream.as_slice(), "memory", &LoadOptions::default(), &mut Quiet);
    match error.unwrap_err() {
        Error::Engine(error) => assert_eq!(error.kind(), ErrorKind::ComparatorMissing),
        other => panic!("{other}"),
    }
    db.close().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    match dump(&db, Vec::new(), "memory", &DumpOptions::default(), &mut Quiet).unwrap_err() {
        Error::Engine(error) => assert_eq!(error.kind(), ErrorKind::ComparatorMissing),
        other => panic!("{other}"),
    }
    // Keyspaces in byte order can be had without it.
    let stream = dump_with(&db, Form::Text, |options| {
        options.keyspaces = Some(vec!["numbers".to_owned()]);
    });
    let copy = open(&dir.path().join("numbers"));
    assert_eq!(load_into(&copy, &stream).unwrap().entries, 10);
}

#[test]
fn a_stream_that_cannot_be_written_is_reported() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let db = example(&dir.path().join("db"), 20_000);
    for room in [0, 100, 100_000, 1_000_000] {
        let error = dump(&db, Full(room), "pipe", &DumpOptions::default(), &mut Quiet).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }
}
