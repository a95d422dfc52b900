//! Opening, closing and dropping: every call ends, and nothing is left behind (C8).

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod live;

use esker::fs::OpenMode;
use esker::{Comparator, Db, Durability, ErrorKind, Options};
use esker_testkit::{CrashFs, Rng};
use live::{padded, rounds, seed, tiny};
use std::cmp::Ordering as Order;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

/// The tests of this file count threads and descriptors of the process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Fails if threads of the engine or descriptors under `path` are left.
#[cfg(target_os = "linux")]
fn assert_nothing_left(path: &Path) {
    let names = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
            .filter(|name| name.starts_with("esker-"))
            .collect::<Vec<_>>()
    };
    // A thread that was joined may still be listed for a moment.
    while !names().is_empty() {
        thread::yield_now();
    }
    let left = live::descriptors_under(path);
    assert!(left.is_empty(), "{} descriptors are left: {left:?}", left.len());
}

#[cfg(not(target_os = "linux"))]
fn assert_nothing_left(_: &Path) {}

/// `Ok`, or the error of a database that was closed.
fn ends_well<T>(result: esker::Result<T>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            false
        }
    }
}

#[test]
fn close_ends_everything_that_runs() {
    let _alone = alone();
    let seed = seed("close_ends_everything_that_runs");
    let dir = tempfile::tempdir().unwrap();
    for round in 0..rounds(6) {
        let mut options = tiny();
        options.comparators = vec![Arc::new(Fragile::default())];
        let db = Db::open_with(dir.path(), options).unwrap();
        let custom = db.keyspace_ordered("custom", Arc::new(Fragile::default())).unwrap();
        let acknowledged = AtomicU64::new(0);
        let before = db.get("last").unwrap().map_or(0, |value| live::number(&value));
        let start = Barrier::new(10);
        let (db, custom) = (&db, &custom);
        thread::scope(|scope| {
            let (start, acknowledged) = (&start, &acknowledged);
            let run = move |id: u64, mut call: Box<dyn FnMut(&mut Rng) -> bool + Send>| {
                scope.spawn(move || {
                    let mut rng = Rng::of_thread(seed, round * 100 + id);
                    start.wait();
                    while call(&mut rng) {}
                    // And so it stays.
                    assert!(!call(&mut rng));
                });
            };
            let mut n = before;
            run(
                0,
                Box::new(move |_| {
                    let done = ends_well(db.insert("last", padded(n + 1, 100)));
                    n += u64::from(done);
                    acknowledged.fetch_max(n, Ordering::AcqRel);
                    done
                }),
            );
            for id in 1..3 {
                run(
                    id,
                    Box::new(move |rng| {
                        let key = format!("{:05}", rng.below(4000));
                        match rng.below(50) {
                            0 => ends_well(db.insert_sync(&key)),
                            1 => ends_well(custom.insert(&key, padded(1, 100))),
                            2 => ends_well(db.remove_range(key.clone()..format!("{key}5"))),
                            _ => ends_well(db.insert(&key, padded(1, rng.below(200)))),
                        }
                    }),
                );
            }
            run(3, Box::new(move |rng| ends_well(db.get(format!("{:05}", rng.below(4000))))));
            run(
                4,
                Box::new(move |_| {
                    let Ok(mut iter) = db.iter().inspect_err(|error| {
                        assert_eq!(error.kind(), ErrorKind::Closed);
                    }) else {
                        return false;
                    };
                    iter.all(ends_well)
                }),
            );
            run(
                5,
                Box::new(move |_| {
                    let snapshot = match db.snapshot() {
                        Ok(snapshot) => snapshot,
                        Err(error) => return ends_well::<()>(Err(error)),
                    };
                    ends_well(snapshot.get(custom, "00100"))
                        && ends_well(snapshot.last_key_value(custom))
                }),
            );
            run(6, Box::new(move |_| ends_well(db.compact())));
            run(7, Box::new(move |_| ends_well(db.flush()) && ends_well(db.wait_until_idle())));
            run(
                8,
                Box::new(move |rng| {
                    let name = format!("k{}", rng.below(3));
                    ends_well(db.keyspace(&name)) && ends_well(db.drop_keyspace(&name))
                }),
            );
            start.wait();
            let enough = Rng::new(seed + round).below(1500);
            while acknowledged.load(Ordering::Acquire) < before + enough {
                thread::yield_now();
            }
            // Two at once, which must agree.
            let other = scope.spawn(|| db.close());
            db.close().unwrap();
            other.join().unwrap().unwrap();
        });
        assert_eq!(db.close().map_err(|error| error.kind()), Ok(()));
        assert_eq!(db.insert("x", "y").unwrap_err().kind(), ErrorKind::Closed);
        // Statistics are still there to be read.
        assert!(db.stats().puts > 0);
        let again = Db::open_with(dir.path(), tiny()).unwrap();
        let last = again.get("last").unwrap().map_or(0, |value| live::number(&value));
        assert_eq!(last, acknowledged.load(Ordering::Acquire), "round {round}");
        assert!(again.verify().unwrap().problems.is_empty());
        again.close().unwrap();
    }
    assert_nothing_left(dir.path());
}

/// A write that waits for the disk.
trait InsertSync {
    fn insert_sync(&self, key: &str) -> esker::Result<()>;
}

impl InsertSync for Db {
    fn insert_sync(&self, key: &str) -> esker::Result<()> {
        self.default_keyspace().insert_with(key, "synced", Durability::Disk)
    }
}

/// Opens, writes and closes in the ways there are.
fn cycles(path: &Path, options: &Options, count: u64) {
    for round in 0..count {
        let db = Db::open_with(path, options.clone()).unwrap();
        assert_eq!(db.iter().unwrap().count() as u64, round.min(50));
        db.insert((round % 50).to_be_bytes(), padded(round, 300)).unwrap();
        match round % 4 {
            0 => db.close().unwrap(),
            1 => db.flush().unwrap(),
            2 => db.compact().unwrap(),
            _ => {}
        }
    }
    // Files do not pile up.
    let files = |name: &str| options.fs.list(&path.join(name)).unwrap().len();
    assert!(files("data") < 20, "{} run files", files("data"));
    assert!(files("wal") < 8, "{} log files", files("wal"));
    assert!(files("") < 10, "{} files", files(""));
}

#[test]
fn opening_and_closing_leaves_nothing_behind() {
    let _alone = alone();
    // Many times on a disk that syncs at once, and some times on a real one.
    let mut options = tiny();
    options.fs = CrashFs::new().as_fs();
    cycles(Path::new("/db"), &options, rounds(300));
    let dir = tempfile::tempdir().unwrap();
    cycles(dir.path(), &tiny(), rounds(24));
    assert_nothing_left(dir.path());
}

#[test]
fn the_last_handle_of_any_kind_closes() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let locked = || Db::open_with(dir.path(), tiny()).map(drop).map_err(|error| error.kind());
    let open = || {
        let db = Db::open_with(dir.path(), tiny()).unwrap();
        (0..500u64).for_each(|n| db.insert(n.to_be_bytes(), padded(n, 80)).unwrap());
        db
    };
    let db = open();
    let keyspace = db.keyspace("other").unwrap();
    drop(db);
    assert_eq!(locked(), Err(ErrorKind::Locked));
    keyspace.insert("k", "v").unwrap();
    drop(keyspace);
    assert_eq!(locked(), Ok(()));

    let snapshot = open().snapshot().unwrap();
    assert_eq!(locked(), Err(ErrorKind::Locked));
    drop(snapshot);
    assert_eq!(locked(), Ok(()));

    let mut iter = open().iter().unwrap();
    assert_eq!(locked(), Err(ErrorKind::Locked));
    assert_eq!(iter.by_ref().inspect(|entry| assert!(entry.is_ok())).count(), 500);
    drop(iter);
    assert_eq!(locked(), Ok(()));

    // A handle that goes in another thread, while iterators of others go too.
    let db = open();
    let handles: Vec<_> = (0..8).map(|_| (db.clone(), db.iter().unwrap())).collect();
    drop(db);
    let ends: Vec<_> = handles
        .into_iter()
        .map(|(db, mut iter)| {
            thread::spawn(move || {
                iter.next().unwrap().unwrap();
                drop(db);
                drop(iter);
            })
        })
        .collect();
    ends.into_iter().for_each(|end| end.join().unwrap());
    assert_eq!(locked(), Ok(()));
    assert_nothing_left(dir.path());
}

#[test]
fn what_outlives_close_says_that_it_is_closed() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), tiny()).unwrap();
    let keyspace = db.default_keyspace();
    (0..3000u64).for_each(|n| db.insert(n.to_be_bytes(), padded(n, 80)).unwrap());
    let snapshot = db.snapshot().unwrap();
    let mut iter = db.iter().unwrap();
    assert!(iter.next().unwrap().is_ok());
    db.close().unwrap();
    drop(db);
    // The directory belongs to the next one, who may do with it what it likes.
    let next = Db::open_with(dir.path(), tiny()).unwrap();
    next.remove_range(0u64.to_be_bytes()..).unwrap();
    next.compact().unwrap();
    // An iterator says it once at each end, so that what counts its entries comes to an end.
    assert_eq!(iter.next().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(iter.next_back().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    for _ in 0..3 {
        assert!(iter.next().is_none() && iter.next_back().is_none());
        assert_eq!(iter.seek("x").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(snapshot.get(&keyspace, "x").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(snapshot.iter(&keyspace).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(keyspace.get("x").unwrap_err().kind(), ErrorKind::Closed);
    }
    drop((iter, snapshot, keyspace));
    next.insert("k", "v").unwrap();
    next.close().unwrap();
    drop(next);
    assert_nothing_left(dir.path());
}

/// A database that was closed has no run file open and no block in memory, though there are handles.
#[test]
fn a_closed_database_lets_files_and_blocks_go() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), tiny()).unwrap();
    for number in 0..4000 {
        db.insert(live::padded(number, 0), live::padded(number, 100)).unwrap();
    }
    db.compact().unwrap();
    assert_eq!(db.iter().unwrap().count(), 4000);
    let cached = db.stats().memory.cache;
    assert!(cached > 100 << 10, "{cached} bytes of blocks");
    #[cfg(target_os = "linux")]
    let files = || {
        let mut open = live::descriptors_under(dir.path());
        open.retain(|path| path.extension().is_some_and(|ending| ending == "run"));
        open
    };
    #[cfg(target_os = "linux")]
    assert!(files().len() > 3, "{:?}", files());
    db.close().unwrap();
    #[cfg(target_os = "linux")]
    assert!(files().is_empty(), "{:?}", files());
    assert_eq!(db.stats().memory.cache, 0);
    drop(db);
    assert_nothing_left(dir.path());
}

/// Byte order until it is told to panic.
#[derive(Default, Clone)]
struct Fragile(Arc<AtomicBool>);

impl Comparator for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Order {
        assert!(!self.0.load(Ordering::Acquire), "the comparator was told to panic");
        // Not byte order, so that whatever was put in order by bytes would be found out.
        b.cmp(a)
    }
}

#[test]
fn a_comparator_that_panics_poisons_and_spoils_nothing() {
    let _alone = alone();
    // Which call meets the panic first.
    for first in ["insert", "get", "iter", "flush", "compact", "range", "nothing"] {
        let dir = tempfile::tempdir().unwrap();
        let fragile = Fragile::default();
        let mut options = tiny();
        options.comparators = vec![Arc::new(fragile.clone())];
        let db = Db::open_with(dir.path(), options.clone()).unwrap();
        let custom = db.keyspace_ordered("custom", Arc::new(fragile.clone())).unwrap();
        (0..2000u64).for_each(|n| custom.insert(n.to_be_bytes(), padded(n, 60)).unwrap());
        let panics = Arc::clone(&fragile.0);
        panics.store(true, Ordering::Release);
        let refused =
            |kind: ErrorKind| matches!(kind, ErrorKind::Poisoned | ErrorKind::UserCodePanicked);
        let key = 5u64.to_be_bytes();
        match first {
            "insert" => assert!(refused(custom.insert(key, "x").unwrap_err().kind())),
            "get" => assert!(refused(custom.get(key).unwrap_err().kind())),
            "iter" => {
                let error = custom.iter().unwrap().find_map(Result::err);
                assert!(refused(error.expect("an error").kind()));
            }
            "flush" => assert!(refused(db.flush().unwrap_err().kind())),
            "compact" => assert!(refused(custom.compact().unwrap_err().kind())),
            "range" => {
                let error = custom.range(9u64.to_be_bytes()..key).unwrap().find_map(Result::err);
                assert!(refused(error.expect("an error").kind()));
            }
            _ => {}
        }
        if first != "nothing" {
            // No write any more, of whatever keyspace; reads of others go on.
            assert!(refused(custom.insert(key, "x").unwrap_err().kind()), "after {first}");
            assert_eq!(db.insert("k", "v").unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(db.get("k").unwrap(), None);
            assert!(refused(db.close().unwrap_err().kind()));
        } else {
            // The flush of close meets it.
            assert!(refused(db.close().unwrap_err().kind()));
        }
        drop((custom, db));
        panics.store(false, Ordering::Release);
        let db = Db::open_with(dir.path(), options).unwrap();
        let custom = db.keyspace_ordered("custom", Arc::new(fragile)).unwrap();
        let numbers: Vec<_> =
            custom.iter().unwrap().map(|entry| live::number(&entry.unwrap().1)).collect();
        assert!(numbers == (0..2000).rev().collect::<Vec<_>>(), "after {first}");
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
        drop((db, custom));
        assert_nothing_left(dir.path());
    }
}

#[test]
fn writers_on_a_full_disk_get_an_error_and_go_on_when_space_returns() {
    let _alone = alone();
    let disk = CrashFs::new();
    let mut options: Options = tiny();
    options.fs = disk.as_fs();
    let db = Db::open_with("/db", options.clone()).unwrap();
    let written = AtomicU64::new(0);
    for round in 0..3u64 {
        disk.set_capacity(Some(600_000 + round * 300_000));
        thread::scope(|scope| {
            for thread in 0..4u64 {
                let (db, written) = (&db, &written);
                scope.spawn(move || {
                    for n in 0.. {
                        let key = (round << 48) | (thread << 32) | n;
                        match db.insert(key.to_be_bytes(), padded(key, 200)) {
                            Ok(()) => written.fetch_add(1, Ordering::Relaxed),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
                                break;
                            }
                        };
                    }
                });
            }
        });
        // Reads go on, and are complete.
        let found = db.iter().unwrap().inspect(|entry| assert!(entry.is_ok())).count() as u64;
        assert!(found >= written.load(Ordering::Relaxed));
        written.store(found, Ordering::Relaxed);
        disk.set_capacity(None);
        // A call that comes now may still meet the old failure, until the retry has succeeded.
        let key = (round << 48 | 1 << 40).to_be_bytes();
        while let Err(error) = db.insert(key, padded(0, 200)) {
            assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
            thread::yield_now();
        }
        written.fetch_add(1, Ordering::Relaxed);
    }
    // Closed while it is full: what was acknowledged is in the log.
    disk.set_capacity(Some(0));
    let key = (9u64 << 48).to_be_bytes();
    let last = u64::from(db.insert(key, "last").is_ok());
    db.close().unwrap();
    drop(db);
    disk.set_capacity(None);
    let db = Db::open_with("/db", options).unwrap();
    let found = db.iter().unwrap().inspect(|entry| assert!(entry.is_ok())).count() as u64;
    assert!(found >= written.load(Ordering::Relaxed) + last);
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
}

/// Makes a database of at least so many run files, and reads all of them again and again, also by
/// iterators that stand in as many of them as may be open at once.
fn use_many_files(options: &Options, path: &Path, files: usize) {
    let mut options = options.clone();
    options.memory = Some(64 << 20);
    options.workers = Some(1);
    let name = |number: usize| format!("keyspace {number}");
    let db = Db::open_with(path, options.clone()).unwrap();
    for number in 0..files {
        db.keyspace(&name(number)).unwrap().insert("key", number.to_string()).unwrap();
        db.flush().unwrap();
    }
    let held = files.min(200);
    let mut waiting: Vec<_> = (0..held)
        .map(|number| (number, db.keyspace(&name(number)).unwrap().iter().unwrap()))
        .collect();
    for (number, iter) in &mut waiting {
        let (_, value) = iter.next().unwrap().unwrap();
        assert_eq!(value, number.to_string().as_bytes());
    }
    db.close().unwrap();
    drop((waiting, db));
    let db = Db::open_with(path, options).unwrap();
    thread::scope(|scope| {
        for thread in 0..3 {
            let (db, name) = (&db, &name);
            scope.spawn(move || {
                // Each in an order of its own; the step has no divisor in common with any count.
                for step in 0..files {
                    let number = (step * 7919 + thread * files / 3) % files;
                    let keyspace = db.keyspace(&name(number)).unwrap();
                    let value = keyspace.get("key").unwrap().unwrap();
                    assert_eq!(value, number.to_string().as_bytes());
                }
            });
        }
    });
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.files >= files as u64 * 9 / 10, "{} files", report.files);
    db.compact().unwrap();
    db.close().unwrap();
}

#[test]
fn a_database_may_have_more_files_than_may_be_open() {
    let _alone = alone();
    let disk = CrashFs::new();
    disk.set_handles_max(Some(48));
    let mut options = tiny();
    options.fs = disk.as_fs();
    use_many_files(&options, Path::new("/db"), 300);
    // What the bound leaves over is taken by other parts of the process.
    let db = Db::open_with(Path::new("/db"), options).unwrap();
    let open = || disk.as_fs().open(Path::new("/db/LOCK"), OpenMode::Read);
    let others: Vec<_> = (disk.handles()..45).map(|_| open().unwrap()).collect();
    for number in 0..300 {
        let keyspace = db.keyspace(&format!("keyspace {number}")).unwrap();
        assert!(keyspace.get("key").unwrap().is_some());
    }
    drop(others);
    db.close().unwrap();
}

/// The same with the limit that the system sets, in a process of its own.
#[cfg(unix)]
#[test]
fn a_process_with_few_descriptors_can_use_a_database_of_many_files() {
    const NAME: &str = "a_process_with_few_descriptors_can_use_a_database_of_many_files";
    let _alone = alone();
    if let Some(path) = std::env::var_os("ESKER_FEW_DESCRIPTORS") {
        use_many_files(&Options::default(), Path::new(&path), many_files());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let limit = if many_files() > 1024 { "1024" } else { "64" };
    let run = "ulimit -n \"$0\" && exec \"$1\" --exact \"$2\" --nocapture";
    let status = std::process::Command::new("sh")
        .args(["-c", run, limit])
        .arg(std::env::current_exe().unwrap())
        .arg(NAME)
        .env("ESKER_FEW_DESCRIPTORS", dir.path().join("db"))
        .status();
    assert!(status.unwrap().success());
}

/// How many files that database has; above 1,024, the limit of its process is 1,024.
#[cfg(unix)]
fn many_files() -> usize {
    std::env::var("ESKER_FILES").map_or(200, |text| text.parse().unwrap())
}
