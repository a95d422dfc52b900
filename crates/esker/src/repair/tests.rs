//! Damage of all kinds: nothing panics, nothing wrong comes out, and nothing more is lost than was
//! damaged.

use super::{State, plan, salvage};
use crate::{Batch, Comparator, Compression, Db, ErrorKind, Options};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct Reverse;

impl Comparator for Reverse {
    fn name(&self) -> &str {
        "reverse"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.memory = Some(4 << 20);
    options.memtable_bytes = Some(16 << 10);
    options.partition_bytes = Some(24 << 10);
    options.segment_bytes = 4 << 10;
    options.block_bytes = 512;
    options.log_file_bytes = 64 << 10;
    options.comparators = vec![Arc::new(Reverse)];
    options
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

type Content = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// A database on disk as it stood while it was open, what it holds, and all that it ever held.
struct Sample {
    _temporary: tempfile::TempDir,
    directory: PathBuf,
    content: Content,
    written: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Copies a database that is open. Its background may still give space back, so a copy during
/// which files came or went is made again.
fn copy_of_one_moment(db: &Db, from: &Path, to: &Path) {
    loop {
        db.wait_until_idle().unwrap();
        let before = files(from);
        let copied = std::panic::catch_unwind(|| copy(from, to));
        if copied.is_ok() && files(from) == before {
            return;
        }
        let _ = fs::remove_dir_all(to);
    }
}

impl Sample {
    fn new(seed: u64, compression: Compression) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let live = temporary.path().join("live");
        let mut options = options();
        options.compression = compression;
        let db = Db::open_with(&live, options).unwrap();
        let spaces = [
            db.default_keyspace(),
            db.keyspace("second").unwrap(),
            db.keyspace_ordered("ordered", Arc::new(Reverse)).unwrap(),
        ];
        let mut content = Content::new();
        let mut written: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let mut state = seed;
        for space in &spaces {
            content.insert(space.name().to_owned(), BTreeMap::new());
        }
        for i in 0..2_600u64 {
            // Two quiet moments let bases form; the end stays in the log.
            if i == 1_000 || i == 2_000 {
                db.wait_until_idle().unwrap();
                db.compact().unwrap();
            }
            let space = &spaces[(random(&mut state) % 3) as usize];
            let map = content.get_mut(space.name()).unwrap();
            let key = format!("{}/{:04}", space.name(), random(&mut state) % 400).into_bytes();
            match random(&mut state) % 20 {
                0..=15 => {
                    let mut value = format!("{i}-").into_bytes();
                    value.resize(value.len() + (random(&mut state) % 60) as usize, b'.');
                    space.insert(&key, &value).unwrap();
                    written.entry(key.clone()).or_default().insert(value.clone());
                    map.insert(key, value);
                }
                16..=17 => {
                    space.remove(&key).unwrap();
                    map.remove(&key);
                }
                18 => {
                    let mut batch = Batch::new();
                    let value = format!("batch {i}").into_bytes();
                    for key in [&key[..], b"shared"] {
                        batch.insert(space, key, &value);
                        written.entry(key.to_vec()).or_default().insert(value.clone());
                        map.insert(key.to_vec(), value.clone());
                    }
                    db.write(batch).unwrap();
                }
                _ if space.name() != "ordered" => {
                    let end = [&key[..], b"5"].concat();
                    space.remove_range(&key[..]..&end[..]).unwrap();
                    map.retain(|k, _| *k < key || *k >= end);
                }
                _ => {}
            }
        }
        let directory = temporary.path().join("sample");
        copy_of_one_moment(&db, &live, &directory);
        db.close().unwrap();
        Self { _temporary: temporary, directory, content, written }
    }

    /// A copy to damage.
    fn copy(&self) -> (tempfile::TempDir, PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("damaged");
        copy(&self.directory, &directory);
        (temporary, directory)
    }

    /// Checks that nothing in `found` was never written.
    fn check_nothing_wrong(&self, found: &Content, context: &str) {
        for (key, value) in found.values().flatten() {
            let ever = self.written.get(key).is_some_and(|values| values.contains(value));
            assert!(ever, "{context}: {:?} never was {value:?}", key.escape_ascii().to_string());
        }
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn bytes_of(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(directory).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn content_of(directory: &Path) -> Content {
    let db = Db::open_with(directory, options()).unwrap();
    let mut content = Content::new();
    for name in db.keyspaces().unwrap() {
        let entries = db.keyspace(&name).unwrap().iter().unwrap().map(Result::unwrap);
        content.insert(name, entries.collect());
    }
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    content
}

/// Salvages, and returns what the new database holds.
fn saved(directory: &Path) -> (super::Salvaged, Content) {
    let to = directory.with_extension("new");
    let salvaged = salvage(directory, &to, &options()).unwrap();
    let content = content_of(&to);
    (salvaged, content)
}

fn seed() -> u64 {
    let seed = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| getrandom::u64().unwrap() | 1);
    eprintln!("ESKER_SEED={seed}");
    seed
}

fn flip(path: &Path, offset: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

/// The run files, the largest first.
fn runs(directory: &Path) -> Vec<PathBuf> {
    let mut runs = files(&directory.join("data"));
    runs.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).unwrap().len()));
    runs
}

#[test]
fn what_is_whole_is_saved_entirely_and_left_untouched() {
    let seed = seed();
    for (i, compression) in [Compression::Auto, Compression::Zstd].into_iter().enumerate() {
        let sample = Sample::new(seed + i as u64, compression);
        let before = bytes_of(&sample.directory);
        let report = plan(&sample.directory, &options()).unwrap();
        assert!(report.is_whole(), "{report}");
        let (salvaged, content) = saved(&sample.directory);
        assert!(salvaged.plan.is_whole(), "{salvaged}");
        assert_eq!(salvaged.plan.to_string(), report.to_string());
        assert!(content == sample.content);
        assert!(bytes_of(&sample.directory) == before, "the source changed");
    }
}

#[test]
fn damage_anywhere_gives_no_panic_and_no_wrong_value() {
    let seed = seed();
    let cases = std::env::var("ESKER_SALVAGE_CASES").ok().and_then(|cases| cases.parse().ok());
    let sample = Sample::new(seed, Compression::Auto);
    let mut state = seed;
    for case in 0..cases.unwrap_or(40u64) {
        let (_temporary, directory) = sample.copy();
        let files = files(&directory);
        let mut done = Vec::new();
        for _ in 0..=random(&mut state) % 4 {
            let path = &files[(random(&mut state) % files.len() as u64) as usize];
            if !path.exists() || path.ends_with("LOCK") {
                continue;
            }
            let mut bytes = fs::read(path).unwrap();
            let at = (random(&mut state) % bytes.len().max(1) as u64) as usize;
            match random(&mut state) % 8 {
                0 => bytes.truncate(at),
                1 => bytes.iter_mut().skip(at).take(600).for_each(|byte| *byte = 0),
                2 => {
                    fs::remove_file(path).unwrap();
                    done.push(format!("removed {}", path.display()));
                    continue;
                }
                _ if bytes.is_empty() => {}
                _ => bytes[at] ^= 1 << (random(&mut state) % 8),
            }
            done.push(format!("{} at {at}", path.display()));
            fs::write(path, bytes).unwrap();
        }
        let context = format!("seed {seed}, case {case}: {done:?}");
        for path in files.iter().filter(|path| path.exists()) {
            // Any typed error will do.
            let _ = crate::inspect::file(path);
        }
        match plan(&directory, &options()) {
            Ok(_) => {
                let (_, content) = saved(&directory);
                sample.check_nothing_wrong(&content, &context);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{context}: {error}"),
        }
    }
}

#[test]
fn a_damaged_block_loses_its_own_keys_only() {
    let sample = Sample::new(seed(), Compression::Auto);
    let (_temporary, directory) = sample.copy();
    flip(&runs(&directory)[0], 300);
    let (salvaged, content) = saved(&directory);
    let lost: u64 = salvaged.plan.keyspaces.iter().map(|kept| kept.blocks_lost).sum();
    assert!(lost <= 1, "{salvaged}");
    assert!(lost == 0 || salvaged.plan.has_losses());
    sample.check_nothing_wrong(&content, "one block");
    let differing = sample.content.iter().flat_map(|(name, map)| {
        map.iter().filter(|(key, value)| content[name].get(*key) != Some(value))
    });
    assert!(differing.count() <= 64);
}

#[test]
fn headers_tails_and_superblocks_can_be_done_without() {
    let sample = Sample::new(seed(), Compression::Auto);
    let (_temporary, directory) = sample.copy();
    flip(&directory.join("superblock-A"), 20);
    fs::remove_file(directory.join("superblock-B")).unwrap();
    for run in runs(&directory) {
        flip(&run, 3);
        // The last segment's tail: its footer keeps its form, its checksum is wrong.
        let len = fs::metadata(&run).unwrap().len() as usize;
        flip(&run, len - 1);
    }
    let (salvaged, content) = saved(&directory);
    for (name, map) in &sample.content {
        // Segments of range tombstones are all tail.
        let ranges = |text: &str| text.starts_with("range deletes");
        if !salvaged.plan.findings.iter().any(|finding| ranges(&finding.text)) {
            assert!(content[name] == *map, "{name}: {salvaged}");
        }
    }
    assert!(!salvaged.plan.is_whole());
}

#[test]
fn without_a_manifest_segments_are_found_by_their_footers() {
    let sample = Sample::new(seed(), Compression::Auto);
    let (_temporary, directory) = sample.copy();
    for path in files(&directory) {
        if path.file_name().unwrap().to_str().unwrap().starts_with("MANIFEST") {
            fs::remove_file(path).unwrap();
        }
    }
    let (salvaged, content) = saved(&directory);
    sample.check_nothing_wrong(&content, "no manifest");
    assert!(salvaged.plan.has_losses());
    assert!(content["recovered"].len() > 100, "{salvaged}");
    assert!(content["recovered-ordered"].len() > 50, "{salvaged}");
    // Every key that is there is there somewhere.
    for key in sample.content.values().flat_map(|map| map.keys()) {
        assert!(content.values().any(|map| map.contains_key(key)), "{key:?}");
    }
}

#[test]
fn log_records_behind_damage_are_saved() {
    let temporary = tempfile::tempdir().unwrap();
    let live = temporary.path().join("live");
    let db = Db::open_with(&live, options()).unwrap();
    for i in 0..100 {
        db.insert(format!("key{i:03}"), format!("value{i:03}")).unwrap();
    }
    let directory = temporary.path().join("sample");
    copy(&live, &directory);
    db.close().unwrap();
    let logs = files(&directory.join("wal"));
    let value_in = |log: &PathBuf| {
        let at = fs::read(log).unwrap().windows(8).position(|bytes| bytes == b"value050");
        at.map(|at| (log.clone(), at))
    };
    let (log, at) = logs.iter().find_map(value_in).unwrap();
    flip(&log, at);
    // In a copied directory the damage looks like a torn end: open would take what is before it.
    let (salvaged, content) = saved(&directory);
    assert_eq!(content["default"].len(), 99, "{salvaged}");
    assert!(!content["default"].contains_key(&b"key050"[..]));
    assert_eq!((salvaged.plan.log.operations, salvaged.plan.log.lost), (99, 1));
}

#[test]
fn a_keyspace_without_its_comparator_is_named_and_skipped() {
    let sample = Sample::new(seed(), Compression::Auto);
    let mut options = options();
    options.comparators.clear();
    let report = plan(&sample.directory, &options).unwrap();
    let named = |text: &str| text.contains("\"ordered\"") && text.contains("\"reverse\"");
    let finding = report.findings.iter().find(|finding| named(&finding.text)).unwrap();
    assert_eq!(finding.state, State::Lost);
    let to = sample.directory.with_extension("new");
    salvage(&sample.directory, &to, &options).unwrap();
    let content = content_of(&to);
    assert!(content["second"] == sample.content["second"]);
    assert!(!content.contains_key("ordered"));
}

#[test]
fn what_is_in_the_way_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let path = |name: &str| temporary.path().join(name);
    let kind = |from: &str, to: &str| salvage(path(from), path(to), &options()).unwrap_err().kind();
    let db = Db::open_with(path("db"), options()).unwrap();
    assert_eq!(kind("db", "new"), ErrorKind::Locked);
    db.close().unwrap();
    fs::create_dir(path("full")).unwrap();
    fs::write(path("full/file"), "x").unwrap();
    assert_eq!(kind("db", "full"), ErrorKind::Exists);
    assert_eq!(kind("db", "db"), ErrorKind::InvalidArgument);
    assert_eq!(kind("db", "db/new"), ErrorKind::InvalidArgument);
    assert_eq!(kind("none", "new"), ErrorKind::Missing);
    assert_eq!(kind("full", "new"), ErrorKind::NotADatabase);
    assert!(!path("new").exists());
    assert!(!path("full/LOCK").exists());
}
