//! Events, and the file `EVENTS` (C12): what they tell, and that they disturb nothing.

use esker::fs::os;
use esker::{Db, Event, EventKind, Options};
use esker_testkit::CrashFs;
use parking_lot::{Condvar, Mutex};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The bound of one of the two files, and what one line may add.
const BYTES_MAX: u64 = 1 << 20;

/// Keeps all events.
#[derive(Default)]
struct Kept {
    events: Mutex<Vec<Event>>,
    came: Condvar,
}

impl Kept {
    fn names(&self) -> Vec<&'static str> {
        self.events.lock().iter().map(|event| event.kind.name()).collect()
    }

    fn find<R>(&self, which: impl Fn(&EventKind) -> Option<R>) -> Option<R> {
        self.events.lock().iter().find_map(|event| which(&event.kind))
    }

    /// Waits for an event, however long it takes.
    fn wait<R>(&self, which: impl Fn(&EventKind) -> Option<R>) -> R {
        let mut events = self.events.lock();
        loop {
            if let Some(found) = events.iter().find_map(|event| which(&event.kind)) {
                return found;
            }
            self.came.wait(&mut events);
        }
    }
}

fn listening(mut options: Options) -> (Options, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    let to = kept.clone();
    options.on_event = Some(Arc::new(move |event: &Event| {
        to.events.lock().push(event.clone());
        to.came.notify_all();
    }));
    (options, kept)
}

fn small() -> Options {
    let mut options = super::options(os());
    options.monitor = Some(true);
    options
}

/// The lines of a file that are events.
fn events_in(path: &Path) -> Vec<Value> {
    let bytes = fs::read(path).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    let event =
        |line| serde_json::from_slice::<Value>(line).ok().filter(|v| v["event"].is_string());
    lines.filter_map(event).collect()
}

fn kinds_in(path: &Path) -> BTreeSet<String> {
    events_in(path).iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

/// Writes, overwrites, flushes and compacts.
fn live(db: &Db) {
    let users = db.keyspace("users").unwrap();
    for round in 0..3 {
        for number in 0..500 {
            users.insert(format!("secret-key-{number}"), format!("secret-value-{round}")).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact().unwrap();
    db.keyspace("gone").unwrap();
    db.drop_keyspace("gone").unwrap();
    assert_eq!(users.iter().unwrap().count(), 500);
}

#[test]
fn the_listener_and_the_file_tell_the_same_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let copy = dir.path().join("copy");
    let (options, kept) = listening(small());
    let db = Db::open_with(&path, options).unwrap();
    live(&db);
    db.checkpoint(&copy).unwrap();
    db.close().unwrap();
    let told: Vec<Value> = {
        let events = kept.events.lock();
        events.iter().map(|event| serde_json::from_str(&event.to_json()).unwrap()).collect()
    };
    assert_eq!(events_in(&path.join("EVENTS")), told);
    let numbers: Vec<u64> = told.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=told.len() as u64).collect::<Vec<_>>(), "none is missing");
    let names = kept.names();
    assert_eq!(names[..2], ["manifest_read", "log_replayed"]);
    assert_eq!(names.last(), Some(&"database_closed"));
    for expected in [
        "database_opened",
        "flush",
        "compaction_begin",
        "compaction_end",
        "keyspace_created",
        "keyspace_dropped",
        "checkpoint_made",
    ] {
        assert!(names.contains(&expected), "{expected} is not among {names:?}");
    }
    let (bytes, segments, memory) = kept
        .find(|kind| match kind {
            EventKind::Flush { bytes, segments, memtable_bytes, keyspaces: 1, .. } => {
                Some((*bytes, *segments, *memtable_bytes))
            }
            _ => None,
        })
        .unwrap();
    assert!(bytes > 0 && segments > 0 && memory > 0);
    let ended = |kind: &EventKind| match kind {
        EventKind::CompactionEnd { cause: "requested", keyspace, outcome, input_bytes, .. } => {
            Some((keyspace.clone(), *outcome, *input_bytes > 0))
        }
        _ => None,
    };
    assert_eq!(kept.find(ended), Some(("users".to_owned(), "done", true)));
    let text = fs::read_to_string(path.join("EVENTS")).unwrap();
    assert!(!text.contains("secret"), "an event holds neither keys nor values");
    assert!(!copy.join("EVENTS").exists(), "a checkpoint does not copy it");
}

#[test]
fn recovery_tells_what_it_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), small()).unwrap();
    db.insert("k", "v").unwrap();
    let copy = tempfile::tempdir().unwrap();
    esker_testkit::files::copy(dir.path(), &copy.path().join("db"));
    db.close().unwrap();
    let (options, kept) = listening(small());
    Db::open_with(copy.path().join("db"), options).unwrap().close().unwrap();
    let replayed = |kind: &EventKind| match kind {
        EventKind::LogReplayed { batches, bytes, files, clean, .. } => {
            Some((*batches, *bytes > 0, *files > 0, *clean))
        }
        _ => None,
    };
    assert_eq!(kept.find(replayed), Some((1, true, true, false)));
}

#[test]
fn whatever_stands_at_the_names_the_database_works() {
    type Put = fn(&Path);
    let puts: [(&str, Put); 7] = [
        ("nothing", |_| {}),
        ("junk", |path| fs::write(path, [0xff; 5000]).unwrap()),
        ("a torn line", |path| fs::write(path, "{\"time\":12,\"se").unwrap()),
        ("zeros", |path| fs::write(path, [0; 3000]).unwrap()),
        ("a huge file", |path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap()),
        ("a directory", |path| fs::create_dir(path).unwrap()),
        ("an empty file", |path| fs::write(path, "").unwrap()),
    ];
    for (what, put) in puts {
        for name in ["EVENTS", "EVENTS.1", "STATISTICS"] {
            let dir = tempfile::tempdir().unwrap();
            Db::open_with(dir.path(), small()).unwrap().close().unwrap();
            let path = dir.path().join(name);
            let _ = fs::remove_file(&path);
            put(&path);
            works(dir.path(), what);
            let at_events = name == "EVENTS";
            if !at_events || what != "a directory" {
                let found = kinds_in(&dir.path().join("EVENTS"));
                assert!(found.contains("database_closed"), "{what} at {name}: {found:?}");
            }
            if what == "a directory" {
                continue;
            }
            Db::destroy(dir.path(), &small()).unwrap();
            assert!(!path.exists(), "{what} at {name} is not removed");
        }
    }
}

fn works(path: &Path, what: &str) {
    let db = Db::open_with(path, small()).unwrap_or_else(|error| panic!("{what}: {error}"));
    live(&db);
    db.close().unwrap();
    let mut options = small();
    options.read_only = true;
    // Reading a pipe would wait for ever.
    let events = || path.join("EVENTS").is_file().then(|| fs::read(path.join("EVENTS")).unwrap());
    let before = events();
    let db = Db::open_with(path, options).unwrap();
    assert_eq!(db.keyspace("users").unwrap().iter().unwrap().count(), 500, "{what}");
    db.close().unwrap();
    assert_eq!(events(), before, "{what}: a reader writes nothing");
}

#[cfg(unix)]
#[test]
fn links_and_pipes_at_the_name_are_not_followed() {
    use std::process::Command;
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    for name in ["EVENTS", "EVENTS.1"] {
        for pipe in [false, true] {
            let db = dir.path().join(format!("db-{name}-{pipe}"));
            fs::create_dir(&db).unwrap();
            let path = db.join(name);
            if pipe {
                // Without a reader, an open for writing would wait for ever.
                assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            } else {
                std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
            }
            works(&db, name);
            assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
        }
    }
}

#[test]
fn a_listener_that_panics_hears_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let (mut options, kept) = listening(small());
    let (inner, count) = (options.on_event.take().unwrap(), Mutex::new(0));
    options.on_event = Some(Arc::new(move |event: &Event| {
        inner.event(event);
        let mut count = count.lock();
        *count += 1;
        assert!(*count % 2 == 0, "a listener of this test panics");
    }));
    let db = Db::open_with(dir.path(), options).unwrap();
    live(&db);
    db.close().unwrap();
    assert_eq!(kept.names().last(), Some(&"database_closed"));
    assert_eq!(kept.names().len(), events_in(&dir.path().join("EVENTS")).len());
}

#[test]
fn a_listener_that_does_not_return_stops_no_call() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = small();
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let at = gate.clone();
    options.on_event = Some(Arc::new(move |_: &Event| {
        let mut open = at.0.lock();
        while !*open {
            at.1.wait(&mut open);
        }
    }));
    let db = Db::open_with(dir.path(), options).unwrap();
    for _ in 0..3 {
        live(&db);
    }
    *gate.0.lock() = true;
    gate.1.notify_all();
    db.close().unwrap();
}

#[test]
fn an_open_that_fails_tells_the_listener_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    Db::open_with(dir.path(), small()).unwrap().close().unwrap();
    let before = fs::read(dir.path().join("EVENTS")).unwrap();
    let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|path| path.to_string_lossy().contains("MANIFEST"));
    fs::write(&names[0], [7; 100]).unwrap();
    let (options, kept) = listening(small());
    Db::open_with(dir.path(), options).unwrap_err();
    assert_eq!(kept.names(), ["corruption_found"]);
    assert_eq!(fs::read(dir.path().join("EVENTS")).unwrap(), before);
}

#[test]
fn damage_that_a_read_finds_is_an_event() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), small()).unwrap();
    live(&db);
    db.close().unwrap();
    for run in fs::read_dir(dir.path().join("data")).unwrap() {
        let path = run.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        bytes[64..].fill(0);
        fs::write(&path, bytes).unwrap();
    }
    let (options, kept) = listening(small());
    let db = Db::open_with(dir.path(), options).unwrap();
    db.keyspace("users").unwrap().get("secret-key-7").unwrap_err();
    let damage = kept.wait(|kind| match kind {
        EventKind::CorruptionFound { keyspace, file, .. } => Some((keyspace.clone(), file.clone())),
        _ => None,
    });
    assert_eq!(damage.0.as_deref(), Some("users"));
    assert!(damage.1.contains("data"), "{damage:?}");
    let _ = db.close();
}

#[test]
fn a_full_device_loses_events_and_no_write() {
    let disk = CrashFs::new();
    let mut options = Options::default();
    options.fs = disk.as_fs();
    options.memory = Some(32 << 20);
    options.workers = Some(1);
    options.monitor = Some(true);
    let (options, kept) = listening(options);
    let db = Db::open_with("/db", options.clone()).unwrap();
    db.insert("before", "v").unwrap();
    disk.set_capacity(Some(disk.used() + (8 << 20)));
    let value = vec![7; 100_000];
    let mut stored = 0_u32;
    while db.insert(stored.to_be_bytes(), &value).is_ok() {
        stored += 1;
    }
    kept.wait(|kind| matches!(kind, EventKind::DeviceFull { .. }).then_some(()));
    // What frees space works as ever, although the monitor has more to tell.
    for number in 0..stored {
        db.remove(number.to_be_bytes()).unwrap();
        if number % 10 == 0 {
            db.flush().unwrap();
        }
    }
    db.compact().unwrap();
    disk.set_capacity(None);
    db.wait_until_idle().unwrap();
    db.insert("after", "v").unwrap();
    kept.wait(|kind| matches!(kind, EventKind::SpaceAgain { .. }).then_some(()));
    db.close().unwrap();
    let db = Db::open_with("/db", options).unwrap();
    assert!(db.contains_key("before").unwrap() && db.contains_key("after").unwrap());
    db.close().unwrap();
}

#[test]
fn the_files_stay_small() {
    let dir = tempfile::tempdir().unwrap();
    // Names are the longest part of an event.
    let name = "k".repeat(200);
    let mut lives = 0;
    while !dir.path().join("EVENTS.1").exists() {
        let db = Db::open_with(dir.path(), small()).unwrap();
        for _ in 0..200 {
            let keyspace = db.keyspace(&name).unwrap();
            keyspace.insert("k", "v").unwrap();
            db.flush().unwrap();
            db.compact().unwrap();
        }
        db.close().unwrap();
        for name in ["EVENTS", "EVENTS.1"] {
            let bytes = fs::metadata(dir.path().join(name)).map_or(0, |found| found.len());
            assert!(bytes <= BYTES_MAX, "{name} has {bytes} bytes");
        }
        lives += 1;
        if lives == 1 {
            // The rest comes from elsewhere: what matters is that the bound counts all bytes.
            let path = dir.path().join("EVENTS");
            let lines = fs::read(&path).unwrap();
            let repeated = lines.repeat((BYTES_MAX as usize - 20_000) / lines.len());
            fs::write(&path, repeated).unwrap();
        }
    }
}

#[test]
fn a_snapshot_that_is_held_for_long_is_told_once() {
    use esker_testkit::harness::HandClock;
    let dir = tempfile::tempdir().unwrap();
    let (mut options, kept) = listening(small());
    let clock = Arc::new(HandClock::default());
    options.clock = clock.clone();
    let db = Db::open_with(dir.path(), options).unwrap();
    let snapshot = db.snapshot().unwrap();
    clock.set(3_600_000);
    let age = kept.wait(|kind| match kind {
        EventKind::SnapshotHeld { age, snapshots: 1, .. } => Some(*age),
        _ => None,
    });
    assert_eq!(age.as_secs(), 3600);
    drop(snapshot);
    db.close().unwrap();
    assert_eq!(kept.names().iter().filter(|name| **name == "snapshot_held").count(), 1);
}

#[test]
fn the_documentation_lists_all_events_and_their_fields() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/operations.md")).unwrap();
    let section = text.split("\n## Events\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let ticked = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let listed: Vec<(String, Vec<String>)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            (ticked(cells[1]).remove(0), ticked(cells[2]))
        })
        .collect();
    let table: Vec<(String, Vec<String>)> =
        EventKind::table().into_iter().map(|(name, fields)| (name.to_owned(), fields)).collect();
    assert_eq!(listed, table, "docs/operations.md and events/kind.rs differ");
}
