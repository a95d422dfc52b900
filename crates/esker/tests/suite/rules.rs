//! Rules that no other test holds as a whole, named by their number. The table in
//! `docs/testing.md` says where the others are.

use esker::fs::{Fs, OpenMode};
use esker::internals::options::SmallTiers;
use esker::internals::sync::Point;
use esker::{Db, Durability, ErrorKind, LogKind, Options, PaceMode, Recovery, Stats};
use esker_testkit::barriers::Barriers;
use esker_testkit::crashfs::Fate;
use esker_testkit::faultfs::{Effect, Op, Rule};
use esker_testkit::files::copy;
use esker_testkit::{CrashFs, FaultFs};
use parking_lot::{Condvar, Mutex};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn small() -> Options {
    let mut options = Options::default();
    options.memory = Some(4 << 20);
    options.memtable_bytes = Some(32 << 10);
    options.log_file_bytes = 64 << 10;
    options.workers = Some(1);
    options
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    (directory, path)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn r01_an_empty_database_takes_well_under_a_mebibyte() {
    let (_keep, path) = place();
    let db = Db::open(&path).unwrap();
    assert!(db.stats().log_file_bytes <= 512 << 10, "{}", db.stats().log_file_bytes);
    db.close().unwrap();
}

/// Every block that is not durable is torn at the same byte: what stands before it, or what stands
/// from it on, has arrived.
struct TornAt(Range<usize>);

impl Fate for TornAt {
    fn entry(&mut self, _number: usize, _what: &str) -> bool {
        true
    }
    fn length(&mut self, _inode: u64, _durable: u64, live: u64) -> u64 {
        live
    }
    fn block(&mut self, _inode: u64, _index: usize) -> bool {
        false
    }
    fn pieces(&mut self, _inode: u64, _index: usize) -> Vec<Range<usize>> {
        vec![self.0.clone()]
    }
}

/// The states of the disk before each sync of a log file that the work makes.
fn before_log_syncs(disk: &CrashFs, work: impl FnOnce(&CrashFs)) -> Vec<CrashFs> {
    let moments = Arc::new(Mutex::new(Vec::new()));
    let (source, seen) = (disk.clone(), moments.clone());
    disk.set_hook(Some(Arc::new(move |_, what| {
        if what.contains("sync_data of /db/wal/") {
            seen.lock().push(source.kill_clone());
        }
    })));
    work(disk);
    disk.set_hook(None);
    std::mem::take(&mut *moments.lock())
}

/// The power goes while a log file is prepared, and the device has written a part of its header:
/// everything up to some byte, or everything from it on. The database opens.
#[test]
fn r04_a_header_torn_at_any_byte_is_an_interrupted_preparation() {
    let open = |disk: &CrashFs| {
        let mut options = small();
        options.sync_interval = None;
        options.fs = disk.as_fs();
        Db::open_with("/db", options)
    };
    let disk = CrashFs::new();
    let created = before_log_syncs(&disk, |disk| {
        let db = open(disk).unwrap();
        db.default_keyspace().insert_with(b"kept", b"for ever", Durability::Disk).unwrap();
    });
    let opened_again = before_log_syncs(&disk, |disk| drop(open(disk).unwrap()));
    let many = before_log_syncs(&disk, |disk| {
        let db = open(disk).unwrap();
        for number in 0..400 {
            db.insert(format!("{number}"), [1; 1000]).unwrap();
        }
    });
    assert!(!created.is_empty() && !opened_again.is_empty() && many.len() > 2);

    let borders = (0..=104).chain(2048..=2152).chain([1, 512, 1000, 2047, 2153, 4000, 4095]);
    let torn = borders.flat_map(|at| [0..at, at..4096]);
    for (number, torn) in torn.enumerate() {
        let later = &many[number % many.len()];
        for (moment, known) in [(&created[0], false), (&opened_again[0], true), (later, true)] {
            let left = moment.crash_clone_with(&mut TornAt(torn.clone()));
            let db = open(&left).unwrap_or_else(|error| panic!("{torn:?}: {error}"));
            let kept = db.get(b"kept").unwrap();
            assert!(kept.is_some_and(|value| *value == *b"for ever") || !known, "{torn:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn r09_space_of_the_log_is_allocated_before_it_is_mapped() {
    use std::os::unix::fs::MetadataExt;
    let (_keep, path) = place();
    let mut options = small();
    options.log = LogKind::Mapped;
    let db = Db::open_with(&path, options).unwrap();
    for number in 0..3000 {
        db.insert(format!("{number}"), vec![1; 100]).unwrap();
    }
    for file in files(&path.join("wal")) {
        let metadata = std::fs::metadata(&file).unwrap();
        assert!(metadata.blocks() * 512 >= metadata.len(), "{} has holes", file.display());
    }
    db.close().unwrap();
}

#[test]
fn r12_either_superblock_leads_to_the_newest_state() {
    let (keep, path) = place();
    for round in 0..5 {
        let db = Db::open_with(&path, small()).unwrap();
        db.insert(format!("{round}"), "v").unwrap();
        db.close().unwrap();
    }
    for name in ["superblock-A", "superblock-B"] {
        let damaged = keep.path().join(name);
        copy(&path, &damaged);
        flip(&damaged.join(name), 30);
        let db = Db::open_with(&damaged, small()).unwrap();
        assert_eq!(db.iter().unwrap().count(), 5, "without {name}");
        assert!(db.verify().unwrap().problems.is_empty(), "open renews both superblocks");
        db.close().unwrap();
    }
}

fn contents(disk: &CrashFs, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// Both superblocks are set back to what they were before the manifest was rewritten, and the old
/// manifest is there again. It names its successor, so the way leads to what was done since; or
/// open refuses. It must not show the old state.
#[test]
fn r12_a_retired_manifest_leads_to_its_successor() {
    let disk = CrashFs::new();
    let mut options = small();
    options.fs = disk.as_fs();
    let db = Db::open_with("/db", options.clone()).unwrap();
    let before = disk.kill_clone();
    let old = before.list(Path::new("/db")).unwrap();
    let old = old.into_iter().find(|entry| entry.name.starts_with("MANIFEST")).unwrap().name;
    let old = Path::new("/db").join(old);
    // What the old manifest holds when it goes.
    let retired = Arc::new(Mutex::new(Vec::new()));
    let (kept, source, removal) =
        (retired.clone(), disk.clone(), format!("remove {}", old.display()));
    let path = old.clone();
    disk.set_hook(Some(Arc::new(move |_, what| {
        if what == removal {
            *kept.lock() = contents(&source, &path);
        }
    })));
    // More to say than a manifest may hold before it is written anew.
    for number in 0..1_400 {
        db.keyspace(&format!("{number:0250}")).unwrap();
    }
    db.flush().unwrap();
    disk.set_hook(None);
    let retired = std::mem::take(&mut *retired.lock());
    assert!(!retired.is_empty(), "the manifest was rewritten");
    // An edit that leaves the log as it is, so that the log does not tell.
    db.branch("later").unwrap();
    let left = disk.kill_clone();
    let put_back = |path: &Path, bytes: &[u8]| {
        if left.kind(path).unwrap().is_some() {
            left.remove_file(path).unwrap();
        }
        left.open(path, OpenMode::CreateNew).unwrap().write_at(bytes, 0).unwrap();
    };
    put_back(&old, &retired);
    for name in ["/db/superblock-A", "/db/superblock-B"] {
        put_back(Path::new(name), &contents(&before, Path::new(name)));
    }
    options.fs = left.as_fs();
    match Db::open_with("/db", options) {
        Ok(db) => assert_eq!(db.branches().unwrap(), ["later"]),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
    }
}

#[test]
fn r14_no_keyspace_pins_the_log() {
    let (_keep, path) = place();
    let db = Db::open_with(&path, small()).unwrap();
    let cold = db.keyspace("cold").unwrap();
    cold.insert("k", "v").unwrap();
    for round in 0..20 {
        for number in 0..500 {
            db.insert(format!("{number}"), vec![round; 100]).unwrap();
        }
    }
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    assert!(
        stats.log_file_bytes < stats.written.log / 2,
        "{} bytes of log were written and {} are kept",
        stats.written.log,
        stats.log_file_bytes
    );
    assert_eq!(cold.get("k").unwrap().unwrap(), b"v");
}

#[test]
fn r22_nothing_that_a_reader_holds_is_given_back() {
    let (_keep, path) = place();
    let db = Db::open_with(&path, small()).unwrap();
    let gone = db.keyspace("gone").unwrap();
    for number in 0..3000 {
        gone.insert(format!("{number:05}"), vec![1; 50]).unwrap();
    }
    db.flush().unwrap();
    let mut iter = gone.iter().unwrap();
    iter.next().unwrap().unwrap();
    db.drop_keyspace("gone").unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(iter.by_ref().inspect(|entry| assert!(entry.is_ok())).count(), 2999);
}

/// Syncs of what matches `part` wait until this is opened.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    waiting: AtomicUsize,
    changed: Condvar,
}

impl Gate {
    fn hold(self: &Arc<Self>, disk: &FaultFs, part: &str) {
        let gate = self.clone();
        let wait = move || {
            let mut open = gate.open.lock();
            gate.waiting.fetch_add(1, Ordering::SeqCst);
            gate.changed.notify_all();
            gate.changed.wait_while(&mut open, |open| !*open);
        };
        let effect = Effect::Call(Arc::new(wait));
        disk.add(Rule::new(Op::SyncData, effect).path(part).persistent());
    }

    fn wait_for_one(&self) {
        let mut open = self.open.lock();
        let held = || self.waiting.load(Ordering::SeqCst);
        self.changed.wait_while(&mut open, |_| held() == 0);
    }

    fn open(&self) {
        *self.open.lock() = true;
        self.changed.notify_all();
    }
}

/// If the thread that prepares segments waited for the sync, this would never end: nobody else
/// prepares while writers do not run out of space.
#[test]
fn r27_segments_are_prepared_while_a_sync_of_the_log_does_not_end() {
    const SEGMENT: u64 = 64 << 10;
    let (_keep, path) = place();
    for kind in [LogKind::Plain, LogKind::Mapped] {
        let path = path.with_extension(format!("{kind:?}"));
        let disk = FaultFs::new(esker::fs::os());
        let mut options = small();
        options.fs = disk.as_fs();
        options.log = kind;
        options.memtable_bytes = Some(8 << 20);
        options.sync_interval = Some(Duration::from_millis(1));
        let db = Db::open_with(&path, options).unwrap();
        let mut segments = files(&path.join("wal"));
        segments.retain(|file| file.extension().is_some_and(|ending| ending == "log"));
        let newest = segments.pop().unwrap();
        let gate = Arc::new(Gate::default());
        gate.hold(&disk, newest.file_name().unwrap().to_str().unwrap());
        db.insert("first", "v").unwrap();
        gate.wait_for_one();
        let synced = db.stats().syncs;
        // A writer of class `Disk` waits for the sync, and holds up no other writer.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                db.default_keyspace().insert_with("disk", "v", Durability::Disk).unwrap();
            });
            for number in 0..1000 {
                db.insert(format!("{number}"), vec![1; 1000]).unwrap();
                // Half a segment is always ready, so that writers never prepare one themselves.
                let ready = |stats: &Stats| {
                    let headers = stats.log_file_bytes / SEGMENT * 4096;
                    stats.log_file_bytes - headers - stats.written.log >= SEGMENT / 3
                };
                while !ready(&db.stats()) {
                    std::thread::yield_now();
                }
            }
            let stats = db.stats();
            assert_eq!(stats.syncs, synced, "the sync is held");
            assert_eq!(stats.stalls.log_space, Duration::ZERO);
            assert!(files(&path.join("wal")).len() > 10);
            gate.open();
        });
        db.sync().unwrap();
        assert!(db.stats().syncs > synced);
        db.close().unwrap();
    }
}

/// A copy of a database whose log was not closed, with a byte changed in the middle of its log.
fn with_damaged_log(keep: &Path, options: &Options) -> PathBuf {
    let path = keep.join("db");
    let db = Db::open_with(&path, options.clone()).unwrap();
    for number in 0..200 {
        db.insert(format!("{number:04}"), "some value").unwrap();
    }
    db.sync().unwrap();
    for number in 200..300 {
        db.insert(format!("{number:04}"), "some value").unwrap();
    }
    let crashed = keep.join("crashed");
    copy(&path, &crashed);
    db.close().unwrap();
    let log = files(&crashed.join("wal"))
        .into_iter()
        .find(|file| {
            let bytes = std::fs::read(file).unwrap();
            bytes.windows(4).any(|window| window == b"0100")
        })
        .unwrap();
    let bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(4).position(|window| window == b"0100").unwrap();
    flip(&log, at);
    crashed
}

#[test]
fn r30_open_refuses_a_damaged_log_and_names_the_ways_out() {
    let (keep, _) = place();
    let crashed = with_damaged_log(keep.path(), &small());
    let error = Db::open_with(&crashed, small()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains("esker repair --plan"), "{error}");
    let again = Db::open_with(&crashed, small()).unwrap_err();
    assert_eq!(again.to_string(), error.to_string(), "a refusal changes nothing");
}

#[test]
fn r30_the_prefix_before_the_damage_can_be_kept() {
    let (keep, _) = place();
    let crashed = with_damaged_log(keep.path(), &small());
    let mut options = small();
    options.recovery = Recovery::KeepPrefix;
    let db = Db::open_with(&crashed, options).unwrap();
    let keys: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0).collect();
    let expected: Vec<_> = (0..100).map(|number| format!("{number:04}").into_bytes()).collect();
    assert_eq!(keys, expected);
    db.insert("later", "v").unwrap();
    db.close().unwrap();
    let db = Db::open_with(&crashed, small()).unwrap();
    assert_eq!(db.iter().unwrap().count(), 101, "what was given up does not come back");
}

/// Only what merges runs on the threads of low priority. Files are synced and results installed, under locks,
/// where the priority is normal.
#[test]
fn s23_merging_threads_merge_and_do_nothing_else() {
    let (_keep, path) = place();
    let mut options = small();
    options.workers = Some(2);
    let runs = SmallTiers { count: 3, fan_out: 3, runs: 2, direct: 2, tightens: false };
    (options.small_tiers, options.memtable_bytes) = (Some(runs), Some(16 << 10));
    (options.partition_bytes, options.segment_bytes) = (Some(4 << 10), 1 << 10);
    let (db, barriers) = Barriers::open(&path, options).unwrap();
    for number in 0..1_000_000u64 {
        if number >= 10_000 && barriers.was_reached(Point::PushInstalled) {
            break;
        }
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 5000;
        db.insert(key.to_be_bytes(), [7; 100]).unwrap();
    }
    db.compact().unwrap();
    db.close().unwrap();
    let seen = barriers.seen();
    for (point, thread) in &seen {
        let expected: &[&str] = match point {
            Point::CompactionReads | Point::CompactionSteps | Point::PushReads => &["esker-merge"],
            Point::CompactionBegins
            | Point::CompactionInstalls
            | Point::PushInstalls
            | Point::PushInstalled
            | Point::SpaceReturns => &["esker-worker"],
            // Close flushes what is left.
            Point::FlushBegins
            | Point::FlushKnowsReaders
            | Point::FlushInstalls
            | Point::FlushInstalled => {
                &["esker-flush", "suite", "rules::s23_merging_threads_merge_and_do_nothing_else"]
            }
            _ => continue,
        };
        assert!(expected.contains(&thread.as_str()), "{point:?} on {thread}");
    }
    for point in [Point::PushReads, Point::PushInstalls, Point::CompactionReads] {
        assert!(barriers.was_reached(point), "{point:?} was not reached: {seen:?}");
    }
}

/// While compactions do not end, flushes add runs only up to the bound; then writers stop for lack of memory.
#[test]
fn s15_flushes_wait_where_no_further_run_may_lie() {
    let (_keep, path) = place();
    let mut options = small();
    options.workers = Some(2);
    let (db, barriers) = Barriers::open(&path, options).unwrap();
    barriers.close(&[Point::PushReads, Point::CompactionReads]);
    let writer = std::thread::spawn({
        let db = db.clone();
        move || {
            for number in 0..30_000u64 {
                let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 5000;
                db.insert(key.to_be_bytes(), [7; 100]).unwrap();
            }
        }
    });
    // A burst of 20 runs may lie in a tree without tiers, and one flush may have begun before the last.
    let (mut most, mut looks) = (0, 0);
    while most <= 22 && looks < 5000 {
        let stats = db.stats();
        let runs = stats.trees.iter().map(|tree| tree.deltas.len()).max().unwrap_or(0);
        looks = if runs == most && stats.pace.mode == PaceMode::Stopped { looks + 1 } else { 0 };
        most = runs;
    }
    drop(barriers);
    writer.join().unwrap();
    assert!((10..=22).contains(&most), "{most} runs");
    db.close().unwrap();
}
