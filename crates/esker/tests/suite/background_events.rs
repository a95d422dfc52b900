//! Events about work in the background that an operator should know of: each is brought about by a
//! disk whose calls fail, or by what the program leaves out.

use super::options;
use esker::fs::{Fs, OpenMode};
use esker::internals::manifest::{SUPERBLOCK_NAMES, Superblock, manifest_name};
use esker::{
    CompactionFilter, Db, Decision, Durability, Event, EventKind, KeyspaceOptions, Options,
};
use esker_testkit::faultfs::{Effect, Op, Rule};
use esker_testkit::{CrashFs, FaultFs};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "/db";
/// Far more changes than a manifest or a log file takes before it is replaced.
const TRIES: u64 = 20_000;

/// The events that a database has passed on.
#[derive(Default)]
struct Told {
    all: Mutex<Vec<EventKind>>,
    more: Condvar,
}

impl Told {
    /// Options of a database on this disk that tells its events.
    fn on(self: &Arc<Self>, fs: Arc<dyn Fs>) -> Options {
        let (mut options, told) = (options(fs), self.clone());
        options.on_event = Some(Arc::new(move |event: &Event| {
            told.all.lock().push(event.kind.clone());
            told.more.notify_all();
        }));
        options
    }

    fn has(&self, name: &str) -> bool {
        self.all.lock().iter().any(|kind| kind.name() == name)
    }

    /// Waits for an event of this kind. Closing the database passes all events on.
    fn wait_for(&self, name: &str) -> EventKind {
        let mut all = self.all.lock();
        loop {
            if let Some(found) = all.iter().find(|kind| kind.name() == name) {
                return found.clone();
            }
            let closed = all.iter().any(|kind| matches!(kind, EventKind::DatabaseClosed { .. }));
            assert!(!closed, "no {name}: {all:?}");
            self.more.wait(&mut all);
        }
    }
}

/// A disk whose calls can fail, and a database on it.
fn scene() -> (FaultFs, Arc<Told>, Db) {
    let faults = FaultFs::over(&CrashFs::new());
    let told = Arc::<Told>::default();
    let db = Db::open_with(PATH, told.on(faults.as_fs())).unwrap();
    (faults, told, db)
}

fn fail(faults: &FaultFs, op: Op, path: &str, kind: io::ErrorKind) {
    faults.add(Rule::new(op, Effect::Error(kind)).path(path).persistent());
}

struct Tidy;

impl CompactionFilter for Tidy {
    fn name(&self) -> &str {
        "tidy"
    }

    fn filter(&self, _key: &[u8], _value: &[u8]) -> Decision {
        Decision::Keep
    }
}

#[test]
fn a_filter_that_is_not_given_is_named_with_its_keyspace() {
    let disk = CrashFs::new();
    let mut with_filter = options(disk.as_fs());
    with_filter.compaction_filters = vec![Arc::new(Tidy)];
    let db = Db::open_with(PATH, with_filter).unwrap();
    let mut filtered = KeyspaceOptions::default();
    filtered.compaction_filter = Some("tidy".to_owned());
    db.keyspace_with("pages", filtered).unwrap();
    db.keyspace("plain").unwrap();
    db.close().unwrap();
    let told = Arc::<Told>::default();
    Db::open_with(PATH, told.on(disk.as_fs())).unwrap().close().unwrap();
    let (keyspace, filter) = ("pages".to_owned(), "tidy".to_owned());
    assert_eq!(told.wait_for("filter_missing"), EventKind::FilterMissing { keyspace, filter });
    assert_eq!(told.all.lock().iter().filter(|kind| kind.name() == "filter_missing").count(), 1);
}

#[test]
fn files_of_a_torn_manifest_that_are_set_aside_are_an_event() {
    let disk = CrashFs::new();
    let db = Db::open_with(PATH, options(disk.as_fs())).unwrap();
    db.default_keyspace().insert_with("key", "value", Durability::Disk).unwrap();
    db.flush().unwrap();
    let killed = disk.kill_clone();
    drop(db);
    let read = |name| Superblock::read_file(&killed, &Path::new(PATH).join(name)).unwrap().unwrap();
    let superblock = SUPERBLOCK_NAMES.map(read).into_iter().max_by_key(|one| one.generation);
    let superblock = superblock.unwrap();
    let path = Path::new(PATH).join(manifest_name(superblock.manifest));
    let manifest = killed.open(&path, OpenMode::ReadWrite).unwrap();
    manifest.write_at(b"torn", superblock.known.unwrap().manifest.len + 16).unwrap();
    let orphan = killed.open(Path::new("/db/data/0000000077.run"), OpenMode::CreateNew).unwrap();
    orphan.write_at(b"perhaps needed", 0).unwrap();
    drop((manifest, orphan));
    let told = Arc::<Told>::default();
    Db::open_with(PATH, told.on(killed.as_fs())).unwrap().close().unwrap();
    assert_eq!(
        told.wait_for("files_set_aside"),
        EventKind::FilesSetAside { manifest: superblock.manifest }
    );
}

#[test]
fn a_manifest_that_cannot_be_rewritten_is_an_event() {
    let (faults, told, db) = scene();
    fail(&faults, Op::Create, "MANIFEST", io::ErrorKind::PermissionDenied);
    let mut number = 0_u64;
    while !told.has("manifest_not_rewritten") {
        number += 1;
        assert!(number < TRIES, "no event after so many changes");
        db.keyspace(&format!("{number:0200}")).unwrap();
    }
    faults.clear();
    db.close().unwrap();
    let EventKind::ManifestNotRewritten { error, message } =
        told.wait_for("manifest_not_rewritten")
    else {
        panic!("another kind");
    };
    assert!(error == "io" && message.contains("MANIFEST"), "{error}: {message}");
}

#[test]
fn a_record_that_finds_no_space_is_an_event() {
    let (faults, told, db) = scene();
    fail(&faults, Op::Write, "superblock", io::ErrorKind::StorageFull);
    db.default_keyspace().insert_with("key", "value", Durability::Disk).unwrap();
    let _ = db.close();
    told.wait_for("reach_not_recorded");
}

#[test]
fn log_files_that_cannot_be_removed_are_an_event() {
    let (faults, told, db) = scene();
    fail(&faults, Op::Remove, "/wal/", io::ErrorKind::PermissionDenied);
    fail(&faults, Op::Rename, "/wal/", io::ErrorKind::PermissionDenied);
    let mut number = 0_u64;
    while !told.has("files_left") {
        number += 1;
        assert!(number < TRIES, "no event after so many flushes");
        db.insert(number.to_be_bytes(), [7; 4000]).unwrap();
        if number.is_multiple_of(100) {
            db.flush().unwrap();
        }
    }
    faults.clear();
    db.close().unwrap();
}

impl Told {
    /// Which files could not be removed, by the events so far.
    fn left(&self) -> Vec<&'static str> {
        let all = self.all.lock();
        let what = |kind: &EventKind| match kind {
            EventKind::FilesLeft { what, .. } => Some(*what),
            _ => None,
        };
        all.iter().filter_map(what).collect()
    }

    /// Closes the database, which passes all events on, and looks for this one.
    fn ends_with_left(&self, faults: &FaultFs, db: Db, what: &str) {
        faults.clear();
        db.close().unwrap();
        assert!(self.left().contains(&what), "no {what}: {:?}", self.left());
    }
}

#[test]
fn run_files_whose_space_cannot_be_freed_are_an_event() {
    for (op, what) in [(Op::Remove, "run files"), (Op::Punch, "unused parts of run files")] {
        let (faults, told, db) = scene();
        let fill = |from: u64, value: u8| {
            (from..2_000).for_each(|n| db.insert(n.to_be_bytes(), [value; 1000]).unwrap());
        };
        fill(0, 1);
        db.compact().unwrap();
        fail(&faults, op, ".run", io::ErrorKind::PermissionDenied);
        let mut round = 0;
        while !told.left().contains(&what) {
            round += 1;
            assert!(round < 200, "no event about {what}: {:?}", told.left());
            // Only the last of the keys change, so that files are dead in part.
            fill(if op == Op::Punch { 1_000 } else { 0 }, round);
            db.compact().unwrap();
            db.wait_until_idle().unwrap();
        }
        told.ends_with_left(&faults, db, what);
    }
}

#[test]
fn what_a_failed_flush_leaves_is_an_event() {
    let (faults, told, db) = scene();
    fail(&faults, Op::SyncData, ".run", io::ErrorKind::Other);
    fail(&faults, Op::Remove, ".run", io::ErrorKind::PermissionDenied);
    db.insert("key", "value").unwrap();
    db.flush().unwrap_err();
    faults.clear();
    let _ = db.close();
    assert!(told.left().contains(&"files of failed flushes and compactions"), "{:?}", told.left());
}

#[test]
fn what_a_failed_checkpoint_leaves_is_an_event() {
    let (faults, told, db) = scene();
    db.insert("key", "value").unwrap();
    fail(&faults, Op::Create, "/copy/MANIFEST", io::ErrorKind::Other);
    fail(&faults, Op::Remove, "/copy/", io::ErrorKind::PermissionDenied);
    db.checkpoint("/copy").unwrap_err();
    told.ends_with_left(&faults, db, "files of a failed checkpoint");
}

#[test]
fn spare_log_files_that_stay_on_a_full_disk_are_an_event() {
    let disk = CrashFs::new();
    let faults = FaultFs::over(&disk);
    let told = Arc::<Told>::default();
    let db = Db::open_with(PATH, told.on(faults.as_fs())).unwrap();
    let mut round = 0;
    while !told.left().contains(&"spare log files") {
        round += 1;
        assert!(round < 50, "no event: {:?}", told.left());
        faults.clear();
        disk.set_capacity(None);
        // Log files are released, and wait to be used again, unless the next ones were prepared
        // too soon for that.
        for number in 0..3_000_u64 {
            db.insert(number.to_be_bytes(), [7; 1000]).unwrap();
        }
        db.flush().unwrap();
        fail(&faults, Op::Remove, "/wal/", io::ErrorKind::PermissionDenied);
        disk.set_capacity(Some(disk.used() + (2 << 20)));
        // What the rounds before wrote is written again first, and takes no more space.
        let tries = round * TRIES;
        let full = (0..tries).any(|number| db.insert(number.to_le_bytes(), [8; 1000]).is_err());
        assert!(full, "the disk is not full");
    }
    disk.set_capacity(None);
    told.ends_with_left(&faults, db, "spare log files");
}

#[test]
fn a_replay_that_finds_no_space_for_a_flush_is_an_event() {
    let disk = CrashFs::new();
    let db = Db::open_with(PATH, options(disk.as_fs())).unwrap();
    db.insert("key", "value").unwrap();
    let killed = disk.kill_clone();
    drop(db);
    let (faults, told) = (FaultFs::over(&killed), Arc::<Told>::default());
    fail(&faults, Op::Create, ".run", io::ErrorKind::StorageFull);
    let db = Db::open_with(PATH, told.on(faults.as_fs())).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    faults.clear();
    db.close().unwrap();
    told.wait_for("replay_not_flushed");
}
