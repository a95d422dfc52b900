//! A database of each format version that was written once and is kept: every later build reads it.
//!
//! `golden/v1/db` was copied while it was open, so its log holds records that no run has, and
//! `golden/v1/expected.txt` lists what it holds; `golden/v2` and `golden/v3` were made in the same way.
//! It has several keyspaces, one with a comparator, raw, LZ4 and zstd blocks, bases and deltas, range
//! deletes, and a keyspace that was dropped. To write a new one, for a new format version only:
//!
//!     ESKER_WRITE_GOLDEN=crates/esker/tests/golden/v4 cargo test -p esker --test suite golden
//!
//! `golden/v1-kinds` is a second one, written when version 1 got operands, entries that expire, and
//! traits of keyspaces; those of later versions also have writes of each class of durability.
//! `expected.txt` is what it holds at [`EARLY`], `later.txt` at [`LATE`]. `ESKER_WRITE_GOLDEN_KINDS=crates/esker/tests/golden/v4-kinds` writes a new one.
//!
//! `golden/v1-branches` is a third one, written when version 1 got branches and named snapshots, and
//! those of later versions are the same. `ESKER_WRITE_GOLDEN_BRANCHES` writes a new one.
//! `golden/v3-tiers` has tiers, which came with version 3, `golden/v3-cold` dictionaries,
//! `golden/v3-values` separated values, and `golden/v3-pieces` values in pieces.

mod cold;
mod cuts;
mod migration;
mod older_programs;
mod tiers;
mod values;

use esker::internals::base::codec::checksum;
use esker::{
    Append, Batch, CompactionFilter, Comparator, Compression, CounterU64, Db, Decision, Durability,
    ErrorKind, Keyspace, KeyspaceOptions, Options,
};
use esker_testkit::files::copy;
use esker_testkit::harness::HandClock;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Orders keys by their lengths, then by their bytes.
struct ShortFirst;

impl Comparator for ShortFirst {
    fn name(&self) -> &str {
        "short-first"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.memory = Some(4 << 20);
    options.partition_bytes = Some(4 << 10);
    options.segment_bytes = 2 << 10;
    options.block_bytes = 512;
    options.log_file_bytes = 16 << 10;
    options.comparators = vec![Arc::new(ShortFirst)];
    options
}

/// The versions of which a database is kept.
const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version)
}

/// A copy of the database that is kept.
fn sample(version: &str) -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("db");
    copy(&golden(version).join("db"), &path);
    (temporary, path)
}

fn bytes_of(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(bytes_of(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

/// Everything that a database holds, one entry a line.
fn listing(db: &Db) -> String {
    let mut lines = String::new();
    for name in db.keyspaces().unwrap() {
        for entry in db.keyspace(&name).unwrap().iter().unwrap() {
            let (key, value) = entry.unwrap();
            let (key, value) = (key.escape_ascii(), value.escape_ascii());
            writeln!(lines, "{name}\t{key}\t{value}").unwrap();
        }
    }
    lines
}

fn expected(version: &str) -> String {
    fs::read_to_string(golden(version).join("expected.txt")).unwrap()
}

fn read_only() -> Options {
    let mut options = options();
    options.read_only = true;
    options
}

#[test]
fn it_is_read_without_changing_a_byte() {
    for version in VERSIONS {
        let (_temporary, path) = sample(version);
        let before = bytes_of(&path);
        let db = Db::open_with(&path, read_only()).unwrap();
        assert_eq!(listing(&db), expected(version), "{version}");
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{version}: {:?}", report.problems);
        db.close().unwrap();
        assert!(bytes_of(&path) == before, "{version}: a read-only open changed a byte");
    }
}

#[test]
fn it_is_opened_for_writing_and_goes_on() {
    for version in VERSIONS {
        let (_temporary, path) = sample(version);
        let db = Db::open_with(&path, options()).unwrap();
        assert_eq!(listing(&db), expected(version), "{version}");
        db.insert("new", "entry").unwrap();
        db.compact().unwrap();
        let mut with_new = expected(version);
        with_new.push_str("default\tnew\tentry\n");
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&listing(&db)), sorted(&with_new), "{version}");
        db.close().unwrap();
        let db = Db::open_with(&path, options()).unwrap();
        assert_eq!(sorted(&listing(&db)), sorted(&with_new), "{version}");
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{version}: {:?}", report.problems);
    }
}

#[test]
fn it_is_saved_whole_by_a_repair() {
    for version in VERSIONS {
        let (temporary, path) = sample(version);
        let to = temporary.path().join("new");
        let salvaged = esker::repair::salvage(&path, &to, &options()).unwrap();
        assert!(salvaged.plan.is_whole(), "{version}: {salvaged}");
        let db = Db::open_with(&to, options()).unwrap();
        assert_eq!(listing(&db), expected(version), "{version}");
    }
}

/// The versions that the superblocks, the manifest and the log files of a database declare.
fn declared(path: &Path) -> Vec<String> {
    let of_file = |(_, field, value): (PathBuf, String, String)| {
        field.ends_with("format version").then_some(value)
    };
    let mut kept = fields(path);
    kept.retain(|(path, ..)| !path.to_string_lossy().contains("data"));
    kept.into_iter().filter_map(of_file).collect()
}

/// A flipped bit in one place that holds a version: each superblock and each copy of a log file's
/// header has another that is whole, and a manifest is refused as damaged.
#[test]
fn no_bit_of_a_version_makes_a_database_unreadable_or_older() {
    for version in VERSIONS {
        let (_temporary, sample) = sample(version);
        let (_present, present) = self::sample(version);
        Db::open_with(&present, options()).unwrap().close().unwrap();
        for (path, what) in [(sample, "as it was"), (present, "converted")] {
            let manifest = files(&path, "MANIFEST").remove(0);
            let log = files(&path.join("wal"), "0").pop().unwrap();
            let [a, b] = ["superblock-A", "superblock-B"].map(|name| path.join(name));
            for (file, at) in [(&a, 8), (&b, 8), (&log, 8), (&log, 2048 + 8), (&manifest, 8)] {
                let whole = fs::read(file).unwrap();
                for bit in 0..32 {
                    let what = format!("{version}, {what}, {file:?}, {at}, bit {bit}");
                    let mut bytes = whole.clone();
                    bytes[at + bit / 8] ^= 1 << (bit % 8);
                    fs::write(file, bytes).unwrap();
                    match Db::open_with(&path, read_only()) {
                        Ok(db) => {
                            assert_ne!(file, &manifest, "{what}");
                            assert_eq!(listing(&db), expected(version), "{what}");
                        }
                        Err(error) => {
                            assert_eq!(file, &manifest, "{what}: {error}");
                            assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
                        }
                    }
                }
                fs::write(file, whole).unwrap();
            }
        }
    }
}

/// A database of an older version is one of the newest as soon as it is opened for writing.
#[test]
fn an_open_for_writing_turns_older_versions_into_the_newest() {
    for version in VERSIONS {
        let (_temporary, path) = sample(version);
        let old = &version[1..];
        assert!(declared(&path).iter().all(|found| found == old), "{version}");
        Db::open_with(&path, options()).unwrap().close().unwrap();
        let now = declared(&path);
        assert!(now.len() >= 4 && now.iter().all(|found| found == "3"), "{version}: {now:?}");
        let closed = |(_, field, value): &(PathBuf, String, String)| {
            field == "known.closed" && value == "true"
        };
        assert_eq!(fields(&path).iter().filter(|field| closed(field)).count(), 2, "{version}");
    }
}

/// The fields of every file of the database, as `esker inspect` shows them.
fn fields(path: &Path) -> Vec<(PathBuf, String, String)> {
    let shown = |path: PathBuf| {
        let fields = esker::internals::inspect::file(&path).unwrap();
        fields.into_iter().map(move |(field, value)| (path.clone(), field, value))
    };
    // The reserve has no content, and the events are text.
    let shows = |path: &PathBuf| !path.ends_with("reserve") && !path.ends_with("EVENTS");
    let files = bytes_of(path).into_keys().filter(shows);
    files.flat_map(shown).collect()
}

#[test]
fn it_holds_what_a_format_has_to_keep() {
    for version in VERSIONS {
        let (temporary, path) = sample(version);
        let fields = fields(&path);
        let has = |file: &str, field: &str, value: &str| {
            let found = fields.iter().any(|(path, name, content)| {
                let path = path.strip_prefix(&temporary).unwrap().to_str().unwrap();
                path.contains(file) && name.contains(field) && content.contains(value)
            });
            assert!(found, "{version}: no {field:?} with {value:?} in {file:?}");
        };
        for codec in ["Raw", "Lz4", "Zstd"] {
            has("data", ".block[", codec);
        }
        has("data", ".content", "range tombstones");
        has("data", ".content", "custom order");
        has("MANIFEST", "header.format version", &version[1..]);
        has("MANIFEST", ".base.segment[", "file");
        has("MANIFEST", ".delta", "file");
        has("MANIFEST", ".kind", "add delta");
        has("MANIFEST", ".partition[1].lower", "\"");
        for operation in ["put", "delete keyspace", "delete range", "create", "drop"] {
            has("wal", ".op[", operation);
        }
        if version != "v1" {
            has("superblock", "known.closed", "false");
        }
        let damaged = fields.iter().find(|(_, field, _)| field.contains("damaged"));
        assert!(damaged.is_none(), "{version}: {damaged:?}");
        let bytes: usize = bytes_of(&path).values().map(Vec::len).sum();
        assert!(bytes < 200 << 10, "{version}: {bytes} bytes are too many to keep");
    }
}

fn raise_version(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] = 9;
    fs::write(path, bytes).unwrap();
}

/// Raises the version in a header of 64 bytes whose checksum is salted with `salt`.
fn raise_sealed_version(path: &Path, salt: u64) {
    raise_version(path, 8);
    let mut bytes = fs::read(path).unwrap();
    let sum = checksum(salt, 0, &bytes[..56]);
    bytes[56..64].copy_from_slice(&sum.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

/// Files of a directory whose names start so.
fn files(directory: &Path, start: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let fits = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(start);
    paths.filter(fits).collect()
}

#[test]
fn a_newer_version_of_any_file_is_refused_and_left_alone() {
    let refused = |what: &str, raise: &dyn Fn(&Path)| {
        for version in VERSIONS {
            let (_temporary, path) = sample(version);
            raise(&path);
            let before = bytes_of(&path);
            for options in [options(), read_only()] {
                let error = Db::open_with(&path, options).map(|_| ()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{version}, {what}: {error}");
            }
            assert!(bytes_of(&path) == before, "{version}, {what}: the refusal changed a byte");
        }
    };
    refused("superblock-A", &|path| raise_sealed_version(&path.join("superblock-A"), 0));
    refused("superblock-B", &|path| raise_sealed_version(&path.join("superblock-B"), 0));
    refused("manifest", &|path| raise_sealed_version(&files(path, "MANIFEST")[0], 0));
    refused("log", &|path| {
        for log in files(&path.join("wal"), "0") {
            // Both copies of the header.
            raise_version(&log, 8);
            raise_version(&log, 2048 + 8);
        }
    });
}

/// Run files are opened when something is first read from them.
#[test]
fn a_newer_version_of_a_run_file_is_refused_when_it_is_read() {
    let (_temporary, path) = sample("v1");
    for (id, run) in files(&path.join("data"), "0").into_iter().map(|run| {
        let name = run.file_stem().unwrap().to_str().unwrap();
        (name.parse().unwrap(), run.clone())
    }) {
        raise_sealed_version(&run, id);
    }
    let before = bytes_of(&path);
    let db = Db::open_with(&path, read_only()).unwrap();
    let error = db.iter().and_then(|mut iter| iter.next().transpose()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{error}");
    db.close().unwrap();
    assert!(bytes_of(&path) == before);
}

/// The time at which the second database was written, in milliseconds.
const EARLY: u64 = 1_000_000;
/// A time at which some of its entries have expired.
const LATE: u64 = 1_000_100;

/// A filter that leaves everything.
struct Lenient;

impl CompactionFilter for Lenient {
    fn name(&self) -> &str {
        "lenient"
    }

    fn filter(&self, _: &[u8], _: &[u8]) -> Decision {
        Decision::Keep
    }
}

fn kinds_options(now: u64) -> Options {
    let mut options = options();
    let clock = HandClock::default();
    clock.set(now);
    options.clock = Arc::new(clock);
    options.compaction_filters = vec![Arc::new(Lenient)];
    options
}

fn kinds(version: &str) -> PathBuf {
    golden(&format!("{version}-kinds"))
}

fn kinds_expected(version: &str, now: u64) -> String {
    let name = if now == EARLY { "expected.txt" } else { "later.txt" };
    fs::read_to_string(kinds(version).join(name)).unwrap()
}

#[test]
fn operands_and_what_expires_are_read_merged_and_repaired() {
    for (version, now) in
        VERSIONS.into_iter().flat_map(|version| [(version, EARLY), (version, LATE)])
    {
        let expected = kinds_expected(version, now);
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("db");
        copy(&kinds(version).join("db"), &path);
        let before = bytes_of(&path);
        let mut read_only = kinds_options(now);
        read_only.read_only = true;
        let db = Db::open_with(&path, read_only).unwrap();
        assert_eq!(listing(&db), expected, "{version}");
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
        assert!(bytes_of(&path) == before, "{version}: a read-only open changed a byte");

        let to = temporary.path().join("new");
        let salvaged = esker::repair::salvage(&path, &to, &kinds_options(now)).unwrap();
        assert!(salvaged.plan.is_whole(), "{version}: {salvaged}");
        let saved = Db::open_with(&to, kinds_options(now)).unwrap();
        assert_eq!(listing(&saved), expected, "{version}");
        let ttl = |db: &Db| db.keyspace("recent").unwrap().ttl();
        assert_eq!(ttl(&saved), Some(Duration::from_millis(100)));

        let db = Db::open_with(&path, kinds_options(now)).unwrap();
        assert_eq!(listing(&db), expected, "{version}");
        db.compact().unwrap();
        assert_eq!(listing(&db), expected, "{version}");
        assert_eq!(ttl(&db), Some(Duration::from_millis(100)));
        assert!(db.verify().unwrap().problems.is_empty());
    }
}

#[test]
fn the_second_one_holds_the_kinds_that_it_is_kept_for() {
    for version in VERSIONS {
        let directory = kinds(version);
        let fields = fields(&directory.join("db"));
        let has = |file: &str, field: &str, value: &str| {
            let found = fields.iter().any(|(path, name, content)| {
                let path = path.strip_prefix(&directory).unwrap().to_str().unwrap();
                path.contains(file) && name.contains(field) && content.contains(value)
            });
            assert!(found, "{version}: no {field:?} with {value:?} in {file:?}");
        };
        has("data", ".special", " operands, ");
        has("data", ".special", " that expire, from 10000");
        has("MANIFEST", "header.format version", &version[1..]);
        has("MANIFEST", ".traits[", "esker.counter-u64");
        has("MANIFEST", ".traits[", "ttl 100 ms");
        has("MANIFEST", ".traits[", "compaction filter \"lenient\"");
        for operation in ["merge keyspace", "expires at 10000", "set traits of keyspace"] {
            has("wal", ".op[", operation);
        }
        if version != "v1" {
            // The sync brought what was buffered into runs.
            for class in [Durability::Process, Durability::Disk] {
                has("wal", ".op[", &format!("key \"{class:?}\""));
            }
            has("data", "", "\"Buffered\"");
        }
        let damaged = fields.iter().find(|(_, field, _)| field.contains("damaged"));
        assert!(damaged.is_none(), "{version}: {damaged:?}");
    }
}

/// Where to write a golden database, if the environment says so.
fn target(variable: &str) -> Option<PathBuf> {
    // Tests run in the directory of their crate; the path is meant from the workspace.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os(variable).map(|target| workspace.join(target))
}

/// A copy of a database that is kept, and what it holds.
fn listed_sample(name: &str) -> (tempfile::TempDir, PathBuf, String) {
    let (temporary, path) = sample(name);
    let expected = fs::read_to_string(golden(name).join("expected.txt")).unwrap();
    (temporary, path, expected)
}

/// Keeps the present state of a database that is open, and what it holds.
fn keep(live: &Path, target: &Path, holds: &str) {
    fs::remove_dir_all(target.join("db")).ok();
    fs::create_dir_all(target).unwrap();
    copy(live, &target.join("db"));
    // They say nothing of what the database holds, and are made anew.
    for name in ["EVENTS", "STATISTICS", "wal/reserve"] {
        fs::remove_file(target.join("db").join(name)).ok();
    }
    fs::write(target.join("expected.txt"), holds).unwrap();
}

/// Writes the second golden database anew, if the environment says where.
#[test]
fn write_golden_kinds() {
    let Some(target) = target("ESKER_WRITE_GOLDEN_KINDS") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let live = temporary.path().join("db");
    let db = Db::open_with(&live, kinds_options(EARLY)).unwrap();
    let counters = KeyspaceOptions::merging(CounterU64::NAME);
    let counters = db.keyspace_with("counters", counters).unwrap();
    let mut recent = KeyspaceOptions::merging(Append::new(", ").name());
    recent.ttl = Some(Duration::from_millis(100));
    recent.comparator = Some(Arc::new(ShortFirst));
    let recent = db.keyspace_with("recent", recent).unwrap();
    let session = db.keyspace_with("sessions", KeyspaceOptions::filtered("lenient")).unwrap();
    let ttl = |number: u64| Duration::from_millis(50 + 10 * (number % 10));
    for round in 0..3 {
        for number in 0..30u64 {
            let key = format!("key{number:03}");
            counters.merge(&key, CounterU64::encode(number)).unwrap();
            if number % 3 == round {
                recent.merge(format!("r{number}"), format!("round {round}")).unwrap();
                session.insert_with_ttl(&key, format!("in round {round}"), ttl(number)).unwrap();
            } else if round == 0 {
                session.insert(&key, "stays").unwrap();
            }
        }
        match round {
            0 => db.compact().unwrap(),
            1 => db.flush().unwrap(),
            _ => {}
        }
    }
    let late = KeyspaceOptions::expiring(Duration::from_millis(60));
    db.keyspace_with("late", late).unwrap().insert("key", "made in the log").unwrap();
    db.default_keyspace().set_ttl(Some(Duration::from_secs(1))).unwrap();
    db.insert("key", "lives for a second").unwrap();
    let classes = fill_classes(&db);
    for class in CLASSES {
        classes.insert_with(format!("{class:?}"), "only in the log", class).unwrap();
    }
    db.sync().unwrap();
    keep(&live, &target, &listing(&db));
    db.close().unwrap();
    let db = Db::open_with(&live, kinds_options(LATE)).unwrap();
    fs::write(target.join("later.txt"), listing(&db)).unwrap();
    db.close().unwrap();
}

const CLASSES: [Durability; 3] = [Durability::Buffered, Durability::Process, Durability::Disk];

/// A keyspace with several partitions, written in each class, and a range delete over most of them.
fn fill_classes(db: &Db) -> Keyspace {
    let classes = db.keyspace("classes").unwrap();
    for number in 0..300 {
        let value = format!("value {number}{}", ".".repeat(40));
        classes.insert_with(format!("key{number:04}"), value, CLASSES[number % 3]).unwrap();
    }
    classes.compact().unwrap();
    classes.remove_range("key0020".."key0280").unwrap();
    classes.insert("key0100", "newer in a delta").unwrap();
    db.flush().unwrap();
    classes
}

fn branches(version: &str) -> PathBuf {
    golden(&format!("{version}-branches"))
}

/// What the database and all its branches and named snapshots hold.
fn listing_of_all(db: &Db) -> String {
    let mut lines = format!("database\n{}", listing(db));
    for name in db.branches().unwrap() {
        let branch = db.open_branch(&name).unwrap();
        write!(lines, "branch {name}\n{}", listing(&branch)).unwrap();
    }
    for name in db.named_snapshots().unwrap() {
        let snapshot = db.open_named_snapshot(&name).unwrap();
        write!(lines, "named snapshot {name}\n{}", listing(&snapshot)).unwrap();
    }
    lines
}

#[test]
fn branches_and_named_snapshots_are_read_and_go_on() {
    for version in VERSIONS {
        let expected = fs::read_to_string(branches(version).join("expected.txt")).unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("db");
        copy(&branches(version).join("db"), &path);
        let before = bytes_of(&path);
        let db = Db::open_with(&path, read_only()).unwrap();
        assert_eq!(listing_of_all(&db), expected, "{version}");
        assert!(db.verify().unwrap().problems.is_empty(), "{version}");
        db.close().unwrap();
        assert!(bytes_of(&path) == before, "{version}: a read-only open changed a byte");
        let db = Db::open_with(&path, options()).unwrap();
        assert_eq!(listing_of_all(&db), expected, "{version}");
        db.compact().unwrap();
        for name in db.branches().unwrap() {
            db.open_branch(&name).unwrap().compact().unwrap();
        }
        assert_eq!(listing_of_all(&db), expected, "{version}");
        db.branch("new").unwrap().insert("key", "of a later build").unwrap();
        db.close().unwrap();
        drop(db);
        let db = Db::open_with(&path, options()).unwrap();
        assert!(db.drop_branch("new").unwrap());
        assert_eq!(listing_of_all(&db), expected, "{version}");
        assert!(db.verify().unwrap().problems.is_empty(), "{version}");
    }
}

#[test]
fn the_third_one_holds_what_describes_branches() {
    for version in VERSIONS {
        let fields = fields(&branches(version).join("db"));
        for (file, field, value) in [
            ("MANIFEST", ".branch[", "branch "),
            ("MANIFEST", ".branch[", "named snapshot "),
            ("MANIFEST", ".home[", "in branch"),
            ("MANIFEST", ".branch dropped[", ""),
            ("MANIFEST", ".piece", ""),
            ("wal", ".op[", "in branch"),
        ] {
            let found = fields.iter().any(|(path, name, content)| {
                let path = path.strip_prefix(branches(version)).unwrap().to_str().unwrap();
                path.contains(file) && name.contains(field) && content.contains(value)
            });
            assert!(found, "{version}: no {field:?} with {value:?} in {file:?}");
        }
        let damaged = fields.iter().find(|(_, field, _)| field.contains("damaged"));
        assert!(damaged.is_none(), "{version}: {damaged:?}");
    }
}

/// Writes the third golden database anew, if the environment says where.
#[test]
fn write_golden_branches() {
    let Some(target) = target("ESKER_WRITE_GOLDEN_BRANCHES") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let live = temporary.path().join("db");
    let db = Db::open_with(&live, options()).unwrap();
    let ordered = db.keyspace_ordered("ordered", Arc::new(ShortFirst)).unwrap();
    for number in 0..120 {
        db.insert(format!("key{number:04}"), format!("of the base {number}")).unwrap();
        ordered.insert(format!("{number}"), "base").unwrap();
    }
    db.compact().unwrap();
    db.insert("key0001", "in a delta").unwrap();
    db.flush().unwrap();
    db.insert("key0002", "in memory").unwrap();
    let trial = db.branch("trial").unwrap();
    trial.insert("key0003", "of the trial").unwrap();
    trial.remove_range("key0010".."key0100").unwrap();
    db.snapshot_named("monday").unwrap();
    db.remove("key0004").unwrap();
    drop(db.branch("gone").unwrap());
    db.close().unwrap();
    drop((ordered, trial, db));
    let db = Db::open_with(&live, options()).unwrap();
    assert!(db.drop_branch("gone").unwrap());
    let trial = db.open_branch("trial").unwrap();
    let inner = trial.branch("inner").unwrap();
    inner.keyspace("own").unwrap().insert("key", "made in a branch").unwrap();
    inner.insert("key0005", "of the inner one").unwrap();
    trial.insert("key0005", "behind it").unwrap();
    db.insert("key0005", "of the database").unwrap();
    db.sync().unwrap();
    keep(&live, &target, &listing_of_all(&db));
    db.close().unwrap();
}

/// Writes a new golden database, if the environment says where.
#[test]
fn write_golden() {
    let Some(target) = target("ESKER_WRITE_GOLDEN") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let live = temporary.path().join("db");
    fill_bases(&live);
    let db = Db::open_with(&live, options()).unwrap();
    let second = db.keyspace("second").unwrap();
    let ordered = db.keyspace_ordered("ordered", Arc::new(ShortFirst)).unwrap();
    // Deltas: too little for a compaction.
    db.insert("key0010", "newer in a delta").unwrap();
    db.remove("key0011").unwrap();
    db.remove_range("key0020".."key0023").unwrap();
    second.insert("key0010", "newer in a delta").unwrap();
    ordered.insert("aa10", "newer in a delta").unwrap();
    db.flush().unwrap();
    // What only the log has.
    db.insert("key0030", "only in the log").unwrap();
    db.remove("key0031").unwrap();
    db.remove_range("key0040".."key0043").unwrap();
    let late = db.keyspace("late").unwrap();
    let mut batch = Batch::new();
    batch.insert(&late, "key", "made in the log");
    batch.insert(&second, "\x00\u{ff}binary", [0, 255, 10]);
    batch.remove(&ordered, "aa12");
    db.write(batch).unwrap();
    db.keyspace("gone").unwrap().insert("key", "dropped").unwrap();
    db.drop_keyspace("gone").unwrap();
    db.sync().unwrap();
    keep(&live, &target, &listing(&db));
    db.close().unwrap();
}

/// Bases with LZ4 blocks, and with zstd blocks in one keyspace.
fn fill_bases(live: &Path) {
    let value = |i: u32, more: &str| format!("value {i:04} {more}{}", ".".repeat(40));
    for (name, compression) in [("default", Compression::Lz4), ("second", Compression::Zstd)] {
        let mut options = options();
        options.compression = compression;
        let db = Db::open_with(live, options).unwrap();
        let keyspace = db.keyspace(name).unwrap();
        for i in 0..300 {
            keyspace.insert(format!("key{i:04}"), value(i, name)).unwrap();
        }
        db.flush().unwrap();
        // Without an overlap, a compaction would reuse the flushed segments as they are.
        for i in (0..300).step_by(2) {
            keyspace.insert(format!("key{i:04}"), value(i, "written twice")).unwrap();
        }
        db.flush().unwrap();
        keyspace.compact().unwrap();
        db.close().unwrap();
    }
    let db = Db::open_with(live, options()).unwrap();
    let ordered = db.keyspace_ordered("ordered", Arc::new(ShortFirst)).unwrap();
    for i in 0..40 {
        ordered.insert(format!("{}{i}", "a".repeat(i % 4)), value(i as u32, "ordered")).unwrap();
    }
    db.flush().unwrap();
    ordered.compact().unwrap();
    db.wait_until_idle().unwrap();
    db.close().unwrap();
}
