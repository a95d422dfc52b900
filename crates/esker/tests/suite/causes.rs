//! Each cause of slowness is brought about on purpose, and must be named three times: by the
//! metrics, by an event, and by the explanation of an operation.
//!
//! The disk is simulated, and its calls are slowed where the cause asks for it.

use super::options;
use esker::{
    Cause, Clock, Db, Durability, ErrorKind, Event, EventKind, Explanation, Options, StepSource,
    TransactionOptions,
};
use esker_testkit::faultfs::{Effect, Op, Rule};
use esker_testkit::{CrashFs, FaultFs, Rng};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is slow here takes this long; every operation that takes as long as half of it is reported.
const SLOW: Duration = Duration::from_millis(20);

/// The events that a database has passed on.
#[derive(Default)]
struct Events {
    all: Mutex<Vec<Event>>,
    more: Condvar,
}

impl Events {
    /// Waits for an event. Closing the database passes all events on, so without one more to wait
    /// for it is an assertion.
    fn wait_for(&self, wanted: impl Fn(&EventKind) -> bool) {
        let mut all = self.all.lock();
        while !all.iter().any(|event| wanted(&event.kind)) {
            let closed = all.iter().any(|it| matches!(it.kind, EventKind::DatabaseClosed { .. }));
            assert!(!closed, "no such event: {all:?}");
            self.more.wait(&mut all);
        }
    }

    /// Whether it is the event of a wait for a cause.
    fn is_long_wait(kind: &EventKind, wanted: Cause) -> bool {
        match kind {
            EventKind::LongWait { cause, duration, .. } => {
                *cause == wanted.as_str() && *duration >= SLOW / 2
            }
            _ => false,
        }
    }

    /// Whether it is the event of a slow operation that waited for a cause.
    fn is_slow(kind: &EventKind, wanted: &str, cause: Cause) -> bool {
        match kind {
            EventKind::SlowOperation { operation, waits, .. } => {
                *operation == wanted && waits.iter().any(|(name, _)| *name == cause.as_str())
            }
            _ => false,
        }
    }
}

/// A disk whose calls can be slowed, and the events of the database on it.
struct Scene {
    disk: CrashFs,
    faults: FaultFs,
    events: Arc<Events>,
}

impl Scene {
    fn new() -> Self {
        let disk = CrashFs::new();
        Self { faults: FaultFs::over(&disk), disk, events: Arc::default() }
    }

    fn options(&self) -> Options {
        let (mut options, events) = (options(self.faults.as_fs()), self.events.clone());
        options.slow_operation = SLOW / 2;
        options.on_event = Some(Arc::new(move |event: &Event| {
            events.all.lock().push(event.clone());
            events.more.notify_all();
        }));
        options
    }

    fn open(&self) -> Db {
        Db::open_with("/db", self.options()).unwrap()
    }

    /// Makes all calls of a kind on such paths slow from now on.
    fn slow_down(&self, op: Op, path: &str) {
        let sleep = Effect::Call(Arc::new(|| std::thread::sleep(SLOW)));
        self.faults.add(Rule::new(op, sleep).path(path).persistent());
    }
}

fn waited(explanation: &Explanation, cause: Cause) -> bool {
    explanation.waits.iter().any(|wait| wait.cause == cause && !wait.time.is_zero())
}

/// The value of a sample in OpenMetrics, by the beginning of its line.
fn metric(db: &Db, begins: &str) -> f64 {
    let text = db.openmetrics();
    let line = text.lines().find(|line| line.starts_with(begins));
    let line = line.unwrap_or_else(|| panic!("no {begins} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_slow_disk_is_named() {
    let scene = Scene::new();
    let mut options = scene.options();
    options.durability = Durability::Disk;
    let db = Db::open_with("/db", options).unwrap();
    scene.slow_down(Op::SyncData, "/wal/");
    let explanation = db.explain_put("key", "value").unwrap();
    assert!(waited(&explanation, Cause::Sync), "{explanation}");
    let slowest = explanation.steps.iter().max_by_key(|step| step.time).unwrap();
    assert_eq!(slowest.source, StepSource::Sync, "{explanation}");
    db.insert("key", "other").unwrap();
    let stats = db.stats();
    assert!(stats.waits.sync.count >= 2 && stats.stalls.sync >= 2 * SLOW);
    assert!(metric(&db, "esker_wait_seconds_sum{cause=\"sync\"}") >= 2.0 * SLOW.as_secs_f64());
    let worst = stats.slowest.iter().find(|slow| slow.explanation.operation == "put").unwrap();
    assert!(waited(&worst.explanation, Cause::Sync), "{}", worst.explanation);
    db.close().unwrap();
    scene.events.wait_for(|kind| Events::is_slow(kind, "put", Cause::Sync));
    scene.events.wait_for(|kind| Events::is_long_wait(kind, Cause::Sync));
}

#[test]
fn too_little_memory_is_named() {
    let scene = Scene::new();
    let db = scene.open();
    // The flushes are slow, so writers fill what memory there is.
    scene.slow_down(Op::Write, "/data/");
    let short_of_memory = |kind: &EventKind| match kind {
        EventKind::WriteStallBegin { cause, .. } => *cause == "flush_debt" || *cause == "memory",
        _ => false,
    };
    let by_memory = |explanation: &Explanation| {
        waited(explanation, Cause::FlushDebt) || waited(explanation, Cause::Memory)
    };
    let mut number = 0_u64;
    let explanation = loop {
        number += 1;
        assert!(number < 100_000, "no put of so many says that it waited");
        let explanation = db.explain_put(number.to_be_bytes(), [7; 1000]).unwrap();
        if by_memory(&explanation) {
            break explanation;
        }
    };
    assert_eq!(explanation.steps[0].source, StepSource::Admission);
    let waits = db.stats().waits;
    assert!(waits.flush_debt.count + waits.memory.count > 0);
    let stopped = metric(&db, "esker_wait_seconds_count{cause=\"memory\"}");
    assert!(stopped + metric(&db, "esker_wait_seconds_count{cause=\"flush_debt\"}") > 0.0);
    scene.faults.clear();
    db.close().unwrap();
    scene.events.wait_for(short_of_memory);
}

/// A clock that the test sets.
#[derive(Default)]
struct Set(AtomicU64);

impl Clock for Set {
    fn now_millis(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn a_snapshot_that_is_held_for_long_is_named() {
    let (scene, clock) = (Scene::new(), Arc::new(Set::default()));
    let mut options = scene.options();
    options.clock = clock.clone();
    let db = Db::open_with("/db", options).unwrap();
    let key = |number: u32| number.to_be_bytes();
    (0..100).for_each(|number| db.insert(key(number), "old").unwrap());
    let snapshot = db.snapshot().unwrap();
    (0..100).for_each(|number| db.remove(key(number)).unwrap());
    db.flush().unwrap();
    db.compact().unwrap();
    clock.0.store(3_600_000, Ordering::SeqCst);
    db.insert("something", "happens").unwrap();
    let hour = Duration::from_secs(3600);
    scene.events.wait_for(
        |kind| matches!(kind, EventKind::SnapshotHeld { age, snapshots: 1, .. } if *age == hour),
    );
    assert_eq!(db.stats().held.oldest_snapshot, hour);
    assert!(metric(&db, "esker_oldest_snapshot_age_seconds") >= 3600.0);
    // The scan returns one entry, and passes what only the snapshot needs.
    let explanation = db.explain_scan::<&[u8]>(.., 1000).unwrap();
    assert_eq!(explanation.entries, 1);
    assert!(explanation.stepped_over >= 100, "{explanation}");
    drop(snapshot);
    db.compact().unwrap();
    assert_eq!(db.explain_scan::<&[u8]>(.., 1000).unwrap().stepped_over, 0);
}

#[test]
fn a_cold_cache_is_named() {
    let scene = Scene::new();
    let db = scene.open();
    (0..500_u32).for_each(|number| db.insert(number.to_be_bytes(), [7; 100]).unwrap());
    db.flush().unwrap();
    db.close().unwrap();
    let db = scene.open();
    scene.slow_down(Op::Read, "/data/");
    let key = 77_u32.to_be_bytes();
    let explanation = db.explain_get(key).unwrap();
    assert!(explanation.found && explanation.blocks.device > 0, "{explanation}");
    assert!(explanation.steps.iter().any(|step| step.blocks.device > 0 && step.time >= SLOW));
    db.get(400_u32.to_be_bytes()).unwrap();
    assert!(metric(&db, "esker_device_reads_total") > 0.0);
    let stats = db.stats();
    let worst = stats.slowest.iter().find(|slow| slow.explanation.operation == "get").unwrap();
    assert!(worst.explanation.blocks.device > 0, "{}", worst.explanation);
    // The block is cached now.
    let warm = db.explain_get(key).unwrap();
    assert_eq!((warm.blocks.cached, warm.blocks.device), (1, 0), "{warm}");
    db.close().unwrap();
    scene.events.wait_for(
        |kind| matches!(kind, EventKind::SlowOperation { operation, .. } if *operation == "get"),
    );
}

#[test]
fn a_wait_for_a_lock_is_named() {
    let scene = Scene::new();
    let db = scene.open();
    let mut locking = TransactionOptions::default();
    locking.pessimistic = true;
    locking.lock_timeout = SLOW;
    let holder = db.begin_with(locking).unwrap();
    holder.insert(&db.default_keyspace(), "key", "held").unwrap();
    let waiter = db.begin_with(locking).unwrap();
    let error = waiter.insert(&db.default_keyspace(), "key", "waits").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LockTimeout, "{error}");
    let stats = db.stats();
    assert_eq!(stats.waits.lock.count, 1);
    assert!(stats.stalls.lock >= SLOW);
    assert_eq!(metric(&db, "esker_wait_seconds_count{cause=\"lock\"}"), 1.0);
    let worst = stats.slowest.iter().find(|slow| slow.explanation.operation == "lock").unwrap();
    assert!(waited(&worst.explanation, Cause::Lock), "{}", worst.explanation);
    holder.commit().unwrap();
    drop(waiter);
    db.close().unwrap();
    scene.events.wait_for(|kind| Events::is_slow(kind, "lock", Cause::Lock));
    scene.events.wait_for(|kind| Events::is_long_wait(kind, Cause::Lock));
}

#[test]
fn a_log_file_that_is_not_there_in_time_is_named() {
    let scene = Scene::new();
    let db = scene.open();
    // Whatever a new log file is made of takes long, so writers reach its end before it is there.
    scene.slow_down(Op::Create, "/wal/");
    scene.slow_down(Op::Rename, "/wal/");
    scene.slow_down(Op::Allocate, "/wal/");
    let mut number = 0_u64;
    let explanation = loop {
        number += 1;
        assert!(number < 100_000, "no put of so many says that it waited");
        let explanation = db.explain_put(number.to_be_bytes(), [7; 1000]).unwrap();
        let wait = explanation.waits.iter().find(|wait| wait.cause == Cause::LogSpace);
        if wait.is_some_and(|wait| wait.time >= SLOW / 2) {
            break explanation;
        }
    };
    assert!(waited(&explanation, Cause::LogSpace), "{explanation}");
    assert!(db.stats().waits.log_space.count > 0);
    assert!(metric(&db, "esker_wait_seconds_count{cause=\"log_space\"}") > 0.0);
    scene.faults.clear();
    db.close().unwrap();
    scene.events.wait_for(|kind| Events::is_long_wait(kind, Cause::LogSpace));
}

#[test]
fn a_full_disk_is_named() {
    let scene = Scene::new();
    let db = scene.open();
    scene.disk.set_capacity(Some(scene.disk.used() + (4 << 20)));
    let (mut number, mut rng) = (0_u64, Rng::new(1));
    let error = loop {
        number += 1;
        // Not compressible, so that space is what it seems.
        let value: Vec<u8> = (0..1000).flat_map(|_| rng.next().to_le_bytes()).collect();
        match db.explain_put(number.to_be_bytes(), value) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    // A put that is refused has no explanation but its error, which says what holds the space.
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
    assert!(db.stats().waits.disk_full.count > 0);
    assert!(metric(&db, "esker_wait_seconds_count{cause=\"disk_full\"}") > 0.0);
    scene.disk.set_capacity(None);
    db.wait_until_idle().unwrap();
    db.insert("key", "value").unwrap();
    db.close().unwrap();
    scene.events.wait_for(|kind| matches!(kind, EventKind::DeviceFull { .. }));
    scene.events.wait_for(|kind| matches!(kind, EventKind::SpaceAgain { .. }));
}
