//! What the tests of imports share.

#![allow(dead_code, reason = "each test file uses its own part")]

use esker::{Db, Options};
use esker_port::{Engine, Error, Import, ImportOptions, Quiet, Summary};
pub use esker_testkit::files::copy;
use esker_testkit::orders::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keyspaces with what they hold.
pub type Content = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Options for databases with keyspaces in byte order, or the other way round.
pub fn options() -> Options {
    let mut options = Options::default();
    options.memory = Some(32 << 20);
    options.comparators = vec![Arc::new(Reverse)];
    options
}

/// Imports into a new database.
pub fn import(engine: Engine, from: &Path, to: &Path) -> Result<Summary, Error> {
    import_as(engine, from, to, "default")
}

pub fn import_as(engine: Engine, from: &Path, to: &Path, keyspace: &str) -> Result<Summary, Error> {
    let mut with = ImportOptions::default();
    with.keyspace = keyspace.to_owned();
    with.comparators = vec![Arc::new(Reverse)];
    let import = Import::open(engine, from, with)?;
    let db = Db::open_with(to, options()).unwrap();
    let result = import.run(&db, &mut Quiet);
    db.close().unwrap();
    result
}

/// What a database holds; the default keyspace only if it holds anything.
pub fn content(path: &Path) -> Content {
    let db = Db::open_with(path, options()).unwrap();
    let mut content = Content::new();
    for name in db.keyspaces().unwrap() {
        let keyspace = db.keyspace(&name).unwrap();
        let entries: BTreeMap<_, _> = keyspace.iter().unwrap().map(Result::unwrap).collect();
        if name != "default" || !entries.is_empty() {
            content.insert(name, entries);
        }
    }
    db.close().unwrap();
    content
}

/// What a store shows, or why it cannot be read. The store stays as it is, to the last byte, name
/// and time.
#[track_caller]
pub fn shown(engine: Engine, from: &Path) -> Result<Content, Error> {
    let place = tempfile::tempdir().unwrap();
    let before = tree(from);
    let result = import(engine, from, &place.path().join("db"));
    assert!(tree(from) == before, "the source was changed");
    let summary = result?;
    let content = content(&place.path().join("db"));
    let entries: usize = content.values().map(BTreeMap::len).sum();
    assert_eq!(summary.entries, entries as u64);
    Ok(content)
}

/// Asserts that a store is refused, before or while it is read, with a message that says this.
#[track_caller]
pub fn refused(engine: Engine, from: &Path, named: &str) {
    let error = shown(engine, from).unwrap_err();
    assert!(matches!(error, Error::Source { .. } | Error::Io { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(named), "{named:?} is not in {text:?}");
}

/// Every file and directory: name, content, time of change.
pub fn tree(path: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut found = Vec::new();
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let meta = path.symlink_metadata().unwrap();
        let mut bytes = Vec::new();
        if meta.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            pending.extend(entries.map(|entry| entry.unwrap().path()));
        } else {
            bytes = std::fs::read(&path).unwrap();
        }
        found.push((path, bytes, meta.modified().unwrap()));
    }
    found.sort();
    found
}

/// Fills stores with keyspaces of these names, and imports all of them.
#[track_caller]
pub fn all_come_over(engine: Engine, stores: &[&[&str]], made: fn(&Path, &Content)) {
    let mut random = Random::from_environment();
    for names in stores {
        let place = tempfile::tempdir().unwrap();
        let from = place.path().join("source");
        let content = random.content(names, 4000, 100_000);
        made(&from, &content);
        assert!(shown(engine, &from).unwrap() == content);
    }
}

/// How files of a store are damaged.
pub struct Damage<'a> {
    pub rounds: usize,
    /// Whether each third file is cut; else a bit is flipped.
    pub cuts: bool,
    /// The ending of files that may look as if they ended where they are damaged.
    pub logs: &'a str,
    /// Which bytes of these files are left alone.
    pub spared: fn(&[u8], usize) -> bool,
}

/// Damages one of these files of a store in each round. The import must refuse the store, or show
/// what it holds.
#[track_caller]
pub fn damage_is_an_error_or_does_not_matter(
    engine: Engine,
    whole: &Path,
    files: &[(PathBuf, Vec<u8>, std::time::SystemTime)],
    content: &Content,
    random: &mut Random,
    damage: Damage<'_>,
) {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    let (mut refused, mut harmless, mut shorter) = (0, 0, 0);
    for round in 0..damage.rounds {
        let (path, bytes, _) = &files[round % files.len()];
        let name = path.strip_prefix(whole).unwrap();
        copy(whole, &from);
        let mut damaged = bytes.clone();
        let mut at = random.below(bytes.len());
        while name.to_string_lossy().ends_with(damage.logs) && (damage.spared)(bytes, at) {
            at = random.below(bytes.len());
        }
        if damage.cuts && round % 3 == 0 {
            damaged.truncate(at);
        } else {
            damaged[at] ^= 1 << random.below(8);
        }
        std::fs::write(from.join(name), &damaged).unwrap();
        match shown(engine, &from) {
            Ok(found) if found == *content => harmless += 1,
            Ok(_) if name.to_string_lossy().ends_with(damage.logs) => shorter += 1,
            Ok(_) => panic!("{name:?} at {at}: another content, no error"),
            Err(Error::Source { .. } | Error::Io { .. }) => refused += 1,
            Err(other) => panic!("{name:?} at {at}: {other}"),
        }
        std::fs::remove_dir_all(&from).unwrap();
    }
    println!("{refused} refused, {harmless} harmless, {shorter} shorter");
    assert!(refused > 20);
}

/// Random numbers that can be replayed.
pub struct Random(u64);

impl Random {
    pub fn from_environment() -> Self {
        let seed = std::env::var("ESKER_SEED").ok().map(|text| text.parse().unwrap());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
        println!("replay with ESKER_SEED={seed}");
        Self(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }

    /// Keyspaces of all kinds of entries: short, long, empty.
    pub fn content(&mut self, names: &[&str], entries: usize, value_max: usize) -> Content {
        let mut content = Content::new();
        for name in names {
            let keyspace = content.entry((*name).to_owned()).or_default();
            for _ in 0..self.below(entries) + 1 {
                let key_len = 1 + self.below(40);
                let value_len = match self.below(50) {
                    0 => self.below(value_max),
                    1..=3 => 0,
                    _ => self.below(60),
                };
                keyspace.insert(self.bytes(key_len), self.bytes(value_len));
            }
        }
        content
    }
}

/// Makes a store with one keyspace, and puts things that are no files into it.
#[cfg(unix)]
#[track_caller]
pub fn intruders_in_a_new_store_are_not_waited_for(
    engine: Engine,
    keyspace: &str,
    made: fn(&Path, &Content),
) {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    made(&from, &Random::from_environment().content(&[keyspace], 200, 200));
    intruders_are_not_waited_for(engine, &from);
}

/// Puts a pipe, and then a device that never ends, in the place of each file of a store in turn.
/// Nobody waits for them: the import refuses the store by name, or does without the file.
#[cfg(unix)]
#[track_caller]
pub fn intruders_are_not_waited_for(engine: Engine, from: &Path) {
    let place = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = tree(from).into_iter().map(|(path, ..)| path).collect();
    let mut refused = 0;
    for (number, file) in files.iter().filter(|path| path.is_file()).enumerate() {
        for (kind, arguments) in [("mkfifo", &[][..]), ("mknod", &["c", "1", "5"])] {
            let store = place.path().join(format!("{number}-{kind}"));
            copy(from, &store);
            let inside = file.strip_prefix(from).unwrap();
            let path =
                if inside.as_os_str().is_empty() { store.clone() } else { store.join(inside) };
            std::fs::remove_file(&path).unwrap();
            let made = std::process::Command::new(kind).arg(&path).args(arguments).output();
            if !made.is_ok_and(|output| output.status.success()) {
                println!("left out: {kind} makes nothing here");
                continue;
            }
            if let Err(error) = import(engine, &store, &place.path().join("db")) {
                let store = store.to_str().unwrap();
                assert!(error.to_string().contains(store), "{}: {error}", path.display());
                refused += 1;
            }
            let _ = std::fs::remove_dir_all(place.path().join("db"));
        }
    }
    assert!(refused > 0, "nothing was refused");
}
