//! Tests that all adapters behave alike: everything that workloads rely on, in every durability class.
//!
//! The tests go through the registry, so an engine is tested because it is registered. An engine whose
//! library this machine lacks is skipped with a line that says so; with `ESKER_PEERS_REQUIRED=1` that
//! is a failure.

use super::registry::REGISTRY;
use super::spec::Entry;
use super::*;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

const CLASSES: [Durability; 3] = [Durability::Buffered, Durability::Process, Durability::Disk];
/// More than two batches of an engine that deletes ranges key by key.
const KEYS: u32 = 2_500;
const BATCH: u32 = 250;

fn key(n: u32) -> Vec<u8> {
    format!("k{n:05}").into_bytes()
}

fn keys_of(session: &mut dyn Session, from: Option<&[u8]>, direction: Direction) -> Vec<Vec<u8>> {
    let mut cursor = session.cursor(from, direction).unwrap();
    let mut keys = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        assert!(!value.is_empty());
        keys.push(key.to_vec());
    }
    assert!(cursor.next().unwrap().is_none(), "a cursor stays at its end");
    keys
}

/// The value of a key.
fn value(session: &mut dyn Session, key: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    let there = session.get(key, &mut |value| found = Some(value.to_vec())).unwrap();
    assert_eq!(there, found.is_some());
    found
}

/// Single writes and batches, visible at once and to other sessions.
fn writes(engine: &dyn Engine, class: Durability) {
    let mut session = engine.session().unwrap();
    assert_eq!(keys_of(&mut *session, None, Direction::Forward), Vec::<Vec<u8>>::new());
    for first in (0..KEYS).step_by(BATCH as usize) {
        (first..first + BATCH).for_each(|n| session.batch_put(&key(n), b"value"));
        session.batch_commit(class).unwrap();
    }
    session.put(&key(1), b"longer value", class).unwrap();
    session.delete(&key(0), class).unwrap();
    session.delete(b"never there", class).unwrap();
    session.batch_put(b"k90000", b"batched");
    session.batch_delete(&key(2));
    assert_eq!(value(&mut *session, b"k90000"), None, "a batch is invisible before its commit");
    session.batch_commit(class).unwrap();
    session.batch_commit(class).unwrap();
    let binary: &[u8] = b"\xFF\0\xFE";
    let large = vec![7; 100_000];
    session.put(binary, &large, class).unwrap();
    assert_eq!(value(&mut *session, binary).unwrap(), large);
    session.delete(binary, class).unwrap();

    let mut other = engine.session().unwrap();
    assert_eq!(value(&mut *other, &key(3)).unwrap(), b"value");
    session.put(&key(3), b"other", class).unwrap();
    assert_eq!(value(&mut *other, &key(3)).unwrap(), b"other", "a session sees others' writes");
    other.put(&key(3), b"value", class).unwrap();
    assert_eq!(value(&mut *session, &key(3)).unwrap(), b"value");
}

fn reads(engine: &dyn Engine) {
    let mut session = engine.session().unwrap();
    let session = &mut *session;
    assert_eq!(value(session, &key(0)), None);
    assert_eq!(value(session, &key(1)).unwrap(), b"longer value");
    assert_eq!(value(session, &key(2)), None);
    assert_eq!(value(session, b"k90000").unwrap(), b"batched");
    let mut found = Vec::new();
    let asked = [key(1), b"nothing".to_vec(), key(3), key(3)];
    session.multi_get(&asked, &mut |place, value| found.push((place, value.to_vec()))).unwrap();
    found.sort_unstable();
    let again = (3, b"value".to_vec());
    assert_eq!(found, [(0, b"longer value".to_vec()), (2, b"value".to_vec()), again]);
}

fn cursors(engine: &dyn Engine) {
    let mut session = engine.session().unwrap();
    let session = &mut *session;
    let mut expected: Vec<Vec<u8>> = vec![key(1)];
    expected.extend((3..KEYS).map(key));
    expected.push(b"k90000".to_vec());
    assert_eq!(keys_of(session, None, Direction::Forward), expected);
    let from = keys_of(session, Some(b"k02498x"), Direction::Forward);
    assert_eq!(from, [key(2_499), b"k90000".to_vec()]);
    assert_eq!(keys_of(session, Some(b"k90000"), Direction::Forward), [b"k90000"]);
    assert!(keys_of(session, Some(b"x"), Direction::Forward).is_empty());
    assert_eq!(keys_of(session, Some(b"a"), Direction::Forward), expected);
    assert_eq!(keys_of(session, Some(&key(3)), Direction::Reverse), [key(3), key(1)]);
    assert_eq!(keys_of(session, Some(b"k00003x"), Direction::Reverse), [key(3), key(1)]);
    assert_eq!(keys_of(session, Some(&key(2)), Direction::Reverse), [key(1)]);
    assert!(keys_of(session, Some(b"a"), Direction::Reverse).is_empty());
    expected.reverse();
    assert_eq!(keys_of(session, None, Direction::Reverse), expected);
    assert_eq!(keys_of(session, Some(b"x"), Direction::Reverse), expected);
}

fn ranges(engine: &dyn Engine, class: Durability) {
    let mut session = engine.session().unwrap();
    let session = &mut *session;
    session.delete_range(b"k00500", b"k02000", class).unwrap();
    session.delete_range(b"k00007", b"k00007", class).unwrap();
    session.delete_range(b"x", b"y", class).unwrap();
    session.delete_range(b"k00400x", b"k00401", class).unwrap();
    for (n, there) in [(7, true), (400, true), (401, true), (499, true), (500, false)] {
        assert_eq!(value(session, &key(n)).is_some(), there, "{n}");
    }
    assert_eq!(value(session, &key(1_999)), None);
    assert_eq!(value(session, &key(2_000)).unwrap(), b"value");
    let left = keys_of(session, Some(b"k00499"), Direction::Forward);
    assert_eq!(left[..2], [key(499), key(2_000)]);
}

/// Writers and readers at once, each with a session of its own.
fn threads(engine: &dyn Engine, class: Durability) {
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            scope.spawn(move || {
                let mut session = engine.session().unwrap();
                for n in 0..20_u32 {
                    let own = format!("t{thread}-{n:03}").into_bytes();
                    session.batch_put(&own, b"threaded");
                    session.batch_put(b"t-shared", b"by all");
                    session.batch_commit(class).unwrap();
                    assert_eq!(value(&mut *session, &own).unwrap(), b"threaded");
                    assert_eq!(value(&mut *session, b"t-shared").unwrap(), b"by all");
                }
            });
        }
    });
    let mut session = engine.session().unwrap();
    assert_eq!(keys_of(&mut *session, Some(b"t"), Direction::Forward).len(), 4 * 20 + 1);
    session.delete_range(b"t", b"u", class).unwrap();
}

fn opened(spec: &EngineSpec, dir: &Path, class: Durability) -> Result<Box<dyn Engine>> {
    opened_with(spec, dir, class, None)
}

fn opened_with(
    spec: &EngineSpec,
    dir: &Path,
    durability: Durability,
    write_buffer_bytes: Option<u64>,
) -> Result<Box<dyn Engine>> {
    let (memory, transactions) = (Some(32 << 20), false);
    spec.open(&OpenOptions { dir, memory, write_buffer_bytes, durability, transactions })
}

/// Everything in one class, and what is left after a close. False if the engine's library is absent.
pub fn conforms(spec: &EngineSpec, class: Durability) -> bool {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("db");
    let engine = match opened(spec, &dir, class) {
        Ok(engine) => engine,
        Err(Error::Usage(why)) => {
            assert!(why.contains("apt-get install") || spec.library().is_some(), "{why}");
            let required = std::env::var_os("ESKER_PEERS_REQUIRED").is_some();
            assert!(!required, "ESKER_PEERS_REQUIRED is set, and {why}");
            println!("SKIPPED {spec}: {why}");
            return false;
        }
        Err(error) => panic!("{spec}: {error}"),
    };
    assert!(!engine.version().is_empty() && !engine.version().contains("unknown"));
    assert!(!engine.settings().is_empty());
    assert!(engine.settings().iter().all(|(name, value)| !name.is_empty() && !value.is_empty()));
    writes(&*engine, class);
    engine.flush().unwrap();
    reads(&*engine);
    cursors(&*engine);
    // A write may ask for more than the database was opened with.
    for stronger in CLASSES.into_iter().filter(|class| spec.offers(*class).is_ok()) {
        let mut session = engine.session().unwrap();
        session.put(b"stronger", b"value", stronger).unwrap();
        session.batch_put(b"stronger2", b"value");
        session.batch_commit(stronger).unwrap();
        assert_eq!(value(&mut *session, b"stronger2").unwrap(), b"value");
        session.delete(b"stronger", stronger).unwrap();
        session.delete_range(b"stronger", b"stronger3", stronger).unwrap();
        assert_eq!(value(&mut *session, b"stronger2"), None);
    }
    ranges(&*engine, class);
    threads(&*engine, class);
    engine.compact().unwrap();
    engine.wait_idle().unwrap();
    let left = keys_of(&mut *engine.session().unwrap(), None, Direction::Forward);
    println!("{spec} {class:?}: {}, {} keys left", engine.version(), left.len());
    assert!(!engine.stats().is_empty());
    if let Some(bytes) = engine.bytes_written() {
        assert!(bytes.user > 0, "{bytes:?}");
    }
    engine.close().unwrap();
    if !spec.has_files() {
        return true;
    }
    if spec.note() != Some("no recovery") {
        let engine = opened(spec, &dir, class).unwrap();
        assert_eq!(keys_of(&mut *engine.session().unwrap(), None, Direction::Forward), left);
        assert_eq!(value(&mut *engine.session().unwrap(), &key(1)).unwrap(), b"longer value");
        engine.close().unwrap();
    }
    true
}

/// A library with LevelDB's C interface, for the engines that are given one.
fn any_library() -> Option<PathBuf> {
    let dirs =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let found =
        |dir: &str| Some(Path::new(dir).join("libleveldb.so.1d")).filter(|path| path.exists());
    dirs.into_iter().find_map(found)
}

fn spec_of(entry: &Entry) -> Option<EngineSpec> {
    if !entry.takes_library {
        return Some(EngineSpec::parse(&entry.name()).unwrap());
    }
    let library = any_library().filter(|_| entry.kind == "capi")?;
    Some(EngineSpec::parse(&format!("{}:{}", entry.name(), library.display())).unwrap())
}

#[test]
fn every_engine_of_this_build_conforms() {
    let ordinary = |entry: &&Entry| {
        !entry.hidden && !entry.only_links && entry.kind != "null" && entry.open.is_some()
    };
    let mut tested = 0;
    for entry in REGISTRY.iter().filter(ordinary) {
        let Some(spec) = spec_of(entry) else {
            println!("SKIPPED {}: no library to give it", entry.name());
            continue;
        };
        for class in CLASSES {
            match spec.offers(class) {
                Ok(()) => tested += u32::from(conforms(&spec, class)),
                Err(why) => {
                    println!("{spec} {class:?}: refused: {why}");
                    assert!(why.len() > 10, "{spec} {class:?} is refused without a reason");
                }
            }
        }
    }
    assert!(tested >= 3, "Esker alone offers three classes");
}

/// The least write buffer of every engine that can be given one is what it says it was opened with.
#[test]
fn write_buffers_are_taken_and_reported() {
    let class = Durability::Buffered;
    for entry in REGISTRY.iter().filter(|entry| entry.open.is_some()) {
        let Some(range) = &entry.write_buffers else { continue };
        let (spec, dir) = (EngineSpec::parse(&entry.name()).unwrap(), tempfile::tempdir().unwrap());
        let engine = opened_with(&spec, dir.path(), class, Some(*range.start())).unwrap();
        let said = format!("{} bytes", range.start());
        let named =
            |(name, value): &(String, String)| name.starts_with("write buffer") && *value == said;
        assert!(engine.settings().iter().any(named), "{spec}: {:?}", engine.settings());
        let mut session = engine.session().unwrap();
        (0..KEYS).for_each(|n| session.put(&key(n), &[7; 100], class).unwrap());
        assert_eq!(keys_of(&mut *session, None, Direction::Forward).len(), KEYS as usize);
        drop(session);
        engine.close().unwrap();
    }
}

/// A missing library is answered with how to get it, not with a crash.
#[cfg(feature = "peer-capi")]
#[test]
fn a_library_that_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none.so");
    let spec = EngineSpec::parse(&format!("capi:{}", path.display())).unwrap();
    let error = opened(&spec, dir.path(), Durability::Process).err().unwrap();
    assert!(matches!(error, Error::Usage(_)) && error.to_string().contains("none.so"), "{error}");
    std::fs::write(&path, b"no library").unwrap();
    let error = opened(&spec, dir.path(), Durability::Process).err().unwrap();
    assert!(
        matches!(error, Error::Usage(_)) && error.to_string().contains("cannot load"),
        "{error}"
    );
}
