//! Imports from redb. redb itself makes the files.

use crate::support::{Content, Random, all_come_over, copy, refused, shown};
use esker_port::{Engine, Error};
use redb::{Database, Durability, MultimapTableDefinition, TableDefinition};
use std::collections::BTreeMap;
use std::path::Path;

const REDB: Engine = Engine::Redb;

type Bytes<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;

fn fill(db: &Database, content: &Content) {
    for (name, entries) in content {
        let writing = db.begin_write().unwrap();
        {
            let mut table = writing.open_table(Bytes::new(name)).unwrap();
            for (key, value) in entries {
                table.insert(key.as_slice(), value.as_slice()).unwrap();
            }
        }
        writing.commit().unwrap();
    }
}

fn made(path: &Path, content: &Content) {
    fill(&Database::create(path).unwrap(), content);
}

#[test]
fn all_tables_come_over() {
    all_come_over(REDB, &[&["a"], &["default", "b", "with ü"], &[]], made);
}

#[test]
fn tables_of_all_types_that_are_bytes_come_over() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let db = Database::create(&from).unwrap();
    let writing = db.begin_write().unwrap();
    {
        let texts = TableDefinition::<&str, String>::new("texts");
        let mut texts = writing.open_table(texts).unwrap();
        texts.insert("ä", "one".to_owned()).unwrap();
        texts.insert("b", String::new()).unwrap();
        let widths = TableDefinition::<[u8; 3], &[u8; 5]>::new("widths");
        let mut widths = writing.open_table(widths).unwrap();
        widths.insert([1, 2, 3], &[1, 2, 3, 4, 5]).unwrap();
        widths.insert([0, 255, 9], &[0; 5]).unwrap();
        let sets = TableDefinition::<&[u8], ()>::new("sets");
        writing.open_table(sets).unwrap().insert(&b"member"[..], ()).unwrap();
    }
    writing.commit().unwrap();
    drop(db);
    let entry = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    let expected = Content::from([
        ("texts".to_owned(), [entry("ä".as_bytes(), b"one"), entry(b"b", b"")].into()),
        (
            "widths".to_owned(),
            [entry(&[1, 2, 3], &[1, 2, 3, 4, 5]), entry(&[0, 255, 9], &[0; 5])].into(),
        ),
        ("sets".to_owned(), [entry(b"member", b"")].into()),
    ]);
    assert_eq!(shown(REDB, &from).unwrap(), expected);
}

#[test]
fn tables_of_other_types_are_named_in_the_error() {
    #[derive(Debug)]
    struct Sneaky;
    impl redb::Value for Sneaky {
        type SelfType<'a> = &'a [u8];
        type AsBytes<'a> = &'a [u8];
        fn fixed_width() -> Option<usize> {
            None
        }
        fn from_bytes<'a>(data: &'a [u8]) -> &'a [u8]
        where
            Self: 'a,
        {
            data
        }
        fn as_bytes<'a, 'b: 'a>(value: &'a &'b [u8]) -> &'a [u8]
        where
            Self: 'b,
        {
            value
        }
        fn type_name() -> redb::TypeName {
            redb::TypeName::new("&str")
        }
    }
    let check = |named: &str, make: &dyn Fn(&redb::WriteTransaction)| {
        let place = tempfile::tempdir().unwrap();
        let from = place.path().join("source");
        let db = Database::create(&from).unwrap();
        let writing = db.begin_write().unwrap();
        make(&writing);
        writing.commit().unwrap();
        drop(db);
        refused(REDB, &from, named);
        refused(REDB, &from, "\"special\"");
    };
    check("of type u64", &|writing| {
        writing.open_table(TableDefinition::<u64, &[u8]>::new("special")).unwrap();
    });
    check("of type (&[u8],u8)", &|writing| {
        writing.open_table(TableDefinition::<&[u8], (&[u8], u8)>::new("special")).unwrap();
    });
    check("of type &str", &|writing| {
        writing.open_table(TableDefinition::<&[u8], Sneaky>::new("special")).unwrap();
    });
    check("multimap", &|writing| {
        let table = MultimapTableDefinition::<&[u8], &[u8]>::new("special");
        writing.open_multimap_table(table).unwrap();
    });
}

/// What stands in the file when a program dies: all that was committed durably is read, and the
/// file stays as the crash left it.
#[test]
fn a_file_that_was_not_closed_is_read_as_redb_would_mend_it() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let (live, from) = (place.path().join("live"), place.path().join("source"));
    let content = random.content(&["a", "b"], 3000, 20_000);
    let db = Database::create(&live).unwrap();
    fill(&db, &content);
    let mut writing = db.begin_write().unwrap();
    writing.set_durability(Durability::None).unwrap();
    writing.open_table(Bytes::new("c")).unwrap().insert(&b"k"[..], &b"v"[..]).unwrap();
    copy(&live, &from);
    let plain = redb::ReadOnlyDatabase::open(&from);
    assert!(matches!(plain, Err(redb::DatabaseError::RepairAborted)), "it was closed in order");
    assert!(shown(REDB, &from).unwrap() == content);
}

#[test]
fn a_file_that_is_open_elsewhere_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let db = Database::create(&from).unwrap();
    let error = esker_port::Import::open(REDB, &from, Default::default()).err().unwrap();
    assert!(error.to_string().contains("open elsewhere"), "{error}");
    drop(db);
    let import = esker_port::Import::open(REDB, &from, Default::default()).unwrap();
    // And while it is read, redb does not get at it.
    assert!(Database::open(&from).is_err());
    drop(import);
    Database::open(&from).unwrap();
}

#[test]
fn damage_anywhere_is_an_error_or_does_not_matter() {
    let mut random = Random::from_environment();
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let content = random.content(&["a", "b"], 2000, 3000);
    made(&from, &content);
    let whole = std::fs::read(&from).unwrap();
    let used = whole.iter().rposition(|&byte| byte != 0).unwrap();
    let keys: Vec<&Vec<u8>> =
        content.values().flat_map(BTreeMap::keys).filter(|key| key.len() > 20).collect();
    let (mut refused, mut harmless) = (0, 0);
    for round in 0..120 {
        let mut bytes = whole.clone();
        // Much of the file is no longer used; where a key stands, it is.
        let key = keys[random.below(keys.len())];
        let places: Vec<usize> = match round % 4 {
            0 => vec![random.below(4096)],
            1 => vec![random.below(used)],
            _ => (0..used).filter(|&at| whole[at..].starts_with(key)).collect(),
        };
        for at in &places {
            bytes[*at] ^= 1 << random.below(8);
        }
        std::fs::write(&from, &bytes).unwrap();
        match shown(REDB, &from) {
            Ok(_) if round % 4 > 1 => panic!("a key was damaged at {places:?}, and no error"),
            Ok(found) => {
                harmless += 1;
                assert!(found == content, "another content, no error: {places:?}");
            }
            Err(Error::Source { .. } | Error::Io { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    println!("{refused} refused, {harmless} harmless");
    assert!(refused > 20);
    for len in (0..used).step_by(used / 12) {
        std::fs::write(&from, &whole[..len]).unwrap();
        assert!(shown(REDB, &from).is_err(), "cut to {len} bytes");
    }
}

#[test]
fn what_is_no_redb_file_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    std::fs::write(&from, "").unwrap();
    refused(REDB, &from, "does not begin like one");
    std::fs::write(&from, vec![7; 10_000]).unwrap();
    refused(REDB, &from, "does not begin like one");
    refused(REDB, place.path(), "cannot");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    crate::support::intruders_in_a_new_store_are_not_waited_for(REDB, "a", made);
}
