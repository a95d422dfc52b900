//! Dumps that go on where they were cut off. What was written since decides, and not where the log ends: that moves
//! in a pause of the writes and with each opening.

use crate::support::options;
use esker::internals::options::SmallRest;
use esker::{Db, Options};
use esker_port::{DumpOptions, Error, Form, Quiet, Summary, dump, dump_to_file};
use std::path::{Path, PathBuf};
use std::time::Duration;

const FORMS: [Form; 3] = [Form::Binary, Form::Compressed, Form::Text];
const LARGE: usize = 9 << 18;

/// Bytes that compress a little, other ones for each seed.
fn value(seed: u64, len: usize) -> Vec<u8> {
    let mix = |at: u64| (at ^ (seed << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
    (0..len as u64).map(|at| mix(at) as u8).collect()
}

fn key(number: u64) -> String {
    format!("{number:04}")
}

/// A log that rests when it is told to, in a small file.
fn resting() -> Options {
    let mut options = options();
    options.small_rest = Some(SmallRest { after: Duration::from_secs(3600), file_bytes: 8 << 10 });
    options
}

/// Three keyspaces: one of many entries, one with a value in pieces, and one in which a dump is cut off.
fn example(path: &Path) -> Db {
    let db = Db::open_with(path, resting()).unwrap();
    for (name, entries) in [("a", 700), ("b", 100), ("c", 1400)] {
        let keyspace = db.keyspace(name).unwrap();
        for number in 0..entries {
            keyspace.insert(key(number), value(number, 1000)).unwrap();
        }
    }
    db.keyspace("b").unwrap().insert_reader("large", value(1, LARGE).as_slice()).unwrap();
    db
}

/// A dump that was cut off in the last keyspace.
struct Cut {
    /// The stream that was cut off.
    whole: Vec<u8>,
    options: DumpOptions,
    file: PathBuf,
}

impl Cut {
    fn new(db: &Db, dir: &Path, form: Form) -> Self {
        let mut options = DumpOptions::default();
        options.form = form;
        let file = dir.join(format!("{form:?}.dump"));
        dump_to_file(db, &file, &options, false, &mut Quiet).unwrap();
        let whole = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let cut = Self { whole, options, file };
        cut.leave(cut.whole.len() * 17 / 20);
        cut
    }

    fn part(&self) -> PathBuf {
        self.file.with_extension("dump.part")
    }

    /// Leaves so much of the stream.
    fn leave(&self, bytes: usize) {
        std::fs::write(self.part(), &self.whole[..bytes]).unwrap();
    }

    fn resume(&self, db: &Db) -> Result<Summary, Error> {
        dump_to_file(db, &self.file, &self.options, true, &mut Quiet)
    }

    /// The dump goes on, and its stream is the one that it would have been.
    #[track_caller]
    fn goes_on(&self, db: &Db) {
        let form = self.options.form;
        let resumed = self.resume(db).unwrap().resumed;
        assert!(resumed > 1000, "{form:?}: {resumed}");
        assert!(std::fs::read(&self.file).unwrap() == self.whole, "{form:?}");
    }

    /// The dump does not go on, and the file stays as it is.
    #[track_caller]
    fn is_refused(&self, db: &Db, why: &str) {
        let before = std::fs::read(self.part()).unwrap();
        let resumed = self.resume(db);
        let form = self.options.form;
        assert!(matches!(resumed, Err(Error::CannotResume { .. })), "{form:?} {why}: {resumed:?}");
        assert!(std::fs::read(self.part()).unwrap() == before, "{form:?} {why}");
    }
}

fn position(db: &Db) -> u64 {
    db.snapshot().unwrap().position()
}

#[test]
fn a_dump_goes_on_after_a_pause_of_the_writes() {
    for form in FORMS {
        let dir = tempfile::tempdir().unwrap();
        let db = example(&dir.path().join("db"));
        db.flush().unwrap();
        let before = position(&db);
        let cut = Cut::new(&db, dir.path(), form);
        // It puts the log to rest, as a pause does.
        db.compact().unwrap();
        assert!(position(&db) > before, "the log did not come to rest");
        cut.goes_on(&db);
    }
}

#[test]
fn a_dump_goes_on_after_the_database_was_opened_again() {
    for form in FORMS {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let db = example(&path);
        let before = position(&db);
        let cut = Cut::new(&db, dir.path(), form);
        db.close().unwrap();
        let mut reading = options();
        reading.read_only = true;
        let db = Db::open_with(&path, reading).unwrap();
        assert!(position(&db) > before, "the log ends where it did");
        cut.goes_on(&db);
    }
}

/// The position stays while an entry expires, so it does not prove that the database shows what the file holds.
#[test]
fn a_dump_does_not_go_on_when_an_entry_of_the_file_has_expired() {
    for form in FORMS {
        let dir = tempfile::tempdir().unwrap();
        let db = example(&dir.path().join("db"));
        let keyspace = db.keyspace("a").unwrap();
        // It is dumped before it expires, unless the machine takes a second for that; then nothing is tried.
        keyspace.insert_with_ttl("0000 expires", "value", Duration::from_secs(1)).unwrap();
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
        let cut = Cut::new(&db, dir.path(), form);
        if keyspace.get("0000 expires").unwrap().is_none() {
            continue;
        }
        while keyspace.get("0000 expires").unwrap().is_some() {
            std::thread::yield_now();
        }
        cut.is_refused(&db, "an entry expired");
    }
}

/// A change of what the file holds, and what takes it back.
type Change = (&'static str, fn(&Db), fn(&Db));

const CHANGES: [Change; 7] = [
    (
        "an entry before the others",
        |db| db.keyspace("a").unwrap().insert("", "").unwrap(),
        |db| db.keyspace("a").unwrap().remove("").unwrap(),
    ),
    ("a value", |db| put(db, "a", 350, 7), |db| put(db, "a", 350, 350)),
    ("the last value", |db| put(db, "c", 0, 7), |db| put(db, "c", 0, 0)),
    (
        "a removal",
        |db| db.keyspace("a").unwrap().remove(key(699)).unwrap(),
        |db| put(db, "a", 699, 699),
    ),
    (
        "an entry behind the others",
        |db| put(db, "b", 9999, 7),
        |db| db.keyspace("b").unwrap().remove(key(9999)).unwrap(),
    ),
    (
        "the last byte of a value in pieces",
        |db| put_large(db, &[&value(1, LARGE)[1..], b"!"].concat()),
        |db| put_large(db, &value(1, LARGE)),
    ),
    (
        "a keyspace",
        |db| drop(db.keyspace("aa").unwrap()),
        |db| assert!(db.drop_keyspace("aa").unwrap()),
    ),
];

fn put(db: &Db, keyspace: &str, number: u64, seed: u64) {
    db.keyspace(keyspace).unwrap().insert(key(number), value(seed, 1000)).unwrap();
}

fn put_large(db: &Db, value: &[u8]) {
    db.keyspace("b").unwrap().insert_reader("large", value).unwrap();
}

#[test]
fn a_dump_goes_on_only_if_the_database_shows_what_the_file_holds() {
    for form in FORMS {
        let dir = tempfile::tempdir().unwrap();
        let db = example(&dir.path().join("db"));
        let cut = Cut::new(&db, dir.path(), form);
        for (what, change, take_back) in CHANGES {
            change(&db);
            cut.is_refused(&db, what);
            take_back(&db);
        }
        cut.goes_on(&db);
        std::fs::remove_file(&cut.file).unwrap();
        // One that was finished and not renamed is whole; it is not replaced by one of another moment.
        cut.leave(cut.whole.len());
        put(&db, "a", 350, 7);
        cut.is_refused(&db, "a finished one");
        put(&db, "a", 350, 350);
        assert_eq!(cut.resume(&db).unwrap().entries, 2201);
    }
}

#[test]
fn what_is_written_behind_the_end_of_the_file_comes_with_the_rest() {
    for form in FORMS {
        let dir = tempfile::tempdir().unwrap();
        let db = example(&dir.path().join("db"));
        let cut = Cut::new(&db, dir.path(), form);
        put(&db, "c", 1399, 7);
        put(&db, "d", 1, 1);
        let resumed = cut.resume(&db).unwrap();
        assert!(resumed.resumed > 1000, "{form:?}: {}", resumed.resumed);
        let anew = dump(&db, Vec::new(), "nowhere", &DumpOptions::default(), &mut Quiet).unwrap();
        assert_eq!((resumed.content, resumed.entries), (anew.content, 2202), "{form:?}");
    }
}
