//! Each call of the file system that a push makes fails in turn (S3, S4, C2, C7, C8): nothing is lost, the
//! runs lie in one row, what failed is reported, and the next push succeeds.
//!
//! Gates arm the fault where the push begins to read, and hold the worker where it looks for work again.
//! So no other work meets the fault, and the tree is looked at as the push has left it.

use super::cuts::{PATH, key};
use super::options;
use esker::fs::Fs;
use esker::internals::options::SmallTiers;
use esker::internals::sync::{Gates, Point, Signal};
use esker::{
    Append, Compression, Db, Error, ErrorKind, Event, EventKind, Keyspace, KeyspaceOptions,
    Options, StepSource,
};
use esker_testkit::faultfs::{Effect, Op, Rule};
use esker_testkit::{CrashFs, FaultFs};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

const KEYS: usize = 600;
/// Flushes whose runs wait in tier 2.
const ROUNDS: usize = 3;
const RUN_FILES: &str = "/db/data";
const MANIFEST: &str = "/db/MANIFEST";

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;
/// The tier, file and offset of each run segment.
type Places = BTreeSet<(u64, u64, u64)>;

/// Which call of a push fails, and how.
#[derive(Debug, Clone, Copy)]
struct Fault {
    op: Op,
    path: &'static str,
    nth: u64,
    kind: io::ErrorKind,
    /// Whether all later ones of its kind fail too, until the push has ended.
    persistent: bool,
}

impl Fault {
    fn rule(self) -> Rule {
        let rule = Rule::new(self.op, Effect::Error(self.kind)).path(self.path).after(self.nth);
        if self.persistent { rule.persistent() } else { rule }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No work begins.
    Waits,
    /// The next push is the one.
    Begins,
    /// It is under way, and the fault is armed.
    Runs,
    /// It has ended, and the worker is held.
    Ended,
    /// Nothing is held any more.
    Free,
}

/// Lets one push meet a fault. There is a single worker, which does everything.
struct OnePush {
    faults: FaultFs,
    fault: Fault,
    stage: Mutex<Stage>,
    changed: Condvar,
}

impl OnePush {
    /// Lets the push begin, and returns when it has ended.
    fn run(&self) {
        let mut stage = self.stage.lock();
        *stage = Stage::Begins;
        self.changed.notify_all();
        self.changed.wait_while(&mut stage, |stage| *stage != Stage::Ended);
    }

    fn let_go(&self) {
        let mut stage = self.stage.lock();
        *stage = Stage::Free;
        self.changed.notify_all();
    }

    /// The worker has ended what it did before.
    fn looks_for_work(&self) {
        let mut stage = self.stage.lock();
        if *stage == Stage::Runs {
            self.faults.clear();
            *stage = Stage::Ended;
            self.changed.notify_all();
        }
        self.changed.wait_while(&mut stage, |stage| *stage == Stage::Ended);
    }
}

impl Gates for OnePush {
    fn begin(&self, _workers: usize, _wake: Arc<Signal>) {}

    fn pass(&self, point: Point) {
        match point {
            Point::CompactionBegins => {
                let mut stage = self.stage.lock();
                // What an open still does must not meet the fault either.
                self.changed.wait_while(&mut stage, |stage| *stage == Stage::Waits);
                drop(stage);
                self.looks_for_work();
            }
            Point::PushReads => {
                let mut stage = self.stage.lock();
                if *stage == Stage::Begins {
                    self.faults.add(self.fault.rule());
                    *stage = Stage::Runs;
                }
            }
            Point::SpaceReturns => self.looks_for_work(),
            _ => {}
        }
    }

    fn rest(&self) -> bool {
        self.looks_for_work();
        false
    }
}

/// Lets the worker go whatever happens: a close waits for it.
struct LetGo(Arc<OnePush>);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

fn tier_options(fs: Arc<dyn Fs>, fan_out: usize, runs: usize) -> Options {
    let mut options = options(fs);
    // Nothing is flushed before it is asked for.
    options.memory = Some(8 << 20);
    options.memtable_bytes = Some(512 << 10);
    options.partition_bytes = Some(4 << 10);
    options.segment_bytes = 1 << 10;
    options.compression = Compression::None;
    // No flush goes past the tiers.
    let tiers = SmallTiers { count: 2, fan_out, runs, direct: 0, tightens: false };
    options.small_tiers = Some(tiers);
    options
}

fn put(words: &Keyspace, held: &mut Pairs, number: usize, value: String) {
    words.insert(key(number), &value).unwrap();
    held.insert(key(number).into_bytes(), value.into_bytes());
}

/// An operand that were in two rows would be there twice.
fn merge(words: &Keyspace, held: &mut Pairs, number: usize, operand: &str) {
    words.merge(key(number), operand).unwrap();
    let value = held.entry(key(number).into_bytes()).or_default();
    if !value.is_empty() {
        value.push(b',');
    }
    value.extend_from_slice(operand.as_bytes());
}

fn contents(words: &Keyspace) -> Pairs {
    words.iter().unwrap().map(Result::unwrap).collect()
}

fn places(words: &Keyspace) -> Places {
    let segments = words.segments().unwrap();
    segments.iter().map(|segment| (segment.tier, segment.file, segment.offset)).collect()
}

/// The runs that wait in each tier, tier 1 first.
fn pending(db: &Db) -> Vec<u64> {
    let stats = db.stats();
    let tree = stats.trees.iter().find(|tree| tree.keyspace == "words").unwrap();
    tree.tiers.iter().map(|tier| tier.runs).collect()
}

/// The spans of tier 2, in all of which runs wait.
fn spans(words: &Keyspace) -> u64 {
    let number = |source: StepSource| match source {
        StepSource::Run { tier: 2, partition, .. } => Some(partition + 1),
        _ => None,
    };
    let last = words.explain_get(key(KEYS - 1)).unwrap();
    last.steps.iter().filter_map(|step| number(step.source)).max().unwrap_or(0)
}

/// A closed database with runs in tier 2 that a push would take, and what it holds.
struct Built {
    fan_out: usize,
    disk: CrashFs,
    held: Pairs,
}

fn build(fan_out: usize) -> Built {
    let (disk, mut held) = (CrashFs::new(), Pairs::new());
    let db = Db::open_with(PATH, tier_options(disk.as_fs(), fan_out, 1000)).unwrap();
    let words = KeyspaceOptions::merging(Append::new(",").name());
    let words = db.keyspace_with("words", words).unwrap();
    // Each change of the tree adds a tier until there are two.
    for round in 0..3 {
        for number in 0..KEYS {
            let value = format!("base {round} {number} {}", ".".repeat(80));
            put(&words, &mut held, number, value);
        }
        words.compact().unwrap();
    }
    assert_eq!(pending(&db), [0, 0]);
    for round in 0..ROUNDS {
        for number in (round..KEYS).step_by(5) {
            put(&words, &mut held, number, format!("round {round} {number}"));
        }
        for number in (0..KEYS).step_by(9) {
            merge(&words, &mut held, number, &format!("r{round}"));
        }
        for number in (round + 2..KEYS).step_by(17) {
            words.remove(key(number)).unwrap();
            held.remove(key(number).as_bytes());
        }
        let (low, high) = (key(150 * round), key(150 * round + 30));
        let removed = low.as_bytes()..high.as_bytes();
        held.retain(|name, _| !removed.contains(&name.as_slice()));
        words.remove_range(low..high).unwrap();
        db.flush().unwrap();
    }
    db.wait_until_idle().unwrap();
    let waiting = pending(&db);
    assert!(waiting[0] == 0 && waiting[1] >= ROUNDS as u64, "{waiting:?} runs wait");
    // One span by itself is cut up where there is no room for its push; several go into one file.
    assert_eq!(spans(&words) == 1, fan_out > KEYS, "{} spans", spans(&words));
    assert!(contents(&words) == held);
    db.close().unwrap();
    Built { fan_out, disk, held }
}

fn is_expected(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::DiskFull | ErrorKind::Poisoned)
}

/// The runs that were pushed are below, and not above any more; or all are where they were.
fn check_rows(pushed: bool, before: &Places, after: &Places, story: &str) {
    let of = |tier: u64, places: &Places| -> Places {
        places.iter().filter(|place| place.0 == tier).copied().collect()
    };
    if pushed {
        assert!(of(2, before).is_disjoint(&of(2, after)), "{story}: what was pushed is above");
        assert!(!of(1, after).is_empty(), "{story}: what was pushed is not below");
    } else {
        assert_eq!(before, after, "{story}: nothing was pushed");
    }
}

/// A push that failed says so, and why.
fn check_told(told: &[EventKind], pushed: bool, story: &str) {
    let outcome = told.iter().find_map(|kind| match kind {
        EventKind::CompactionEnd { tier, outcome, .. } if *tier > 0 => Some(*outcome),
        _ => None,
    });
    if pushed {
        assert_eq!(outcome, Some("done"), "{story}");
        return;
    }
    let known = ["io", "disk-full", "poisoned"];
    assert!(outcome.is_some_and(|outcome| known.contains(&outcome)), "{story}: {outcome:?}");
    let is_report = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::BackgroundFailed { work: "compaction", .. } | EventKind::PartitionCut { .. }
        )
    };
    assert!(told.iter().any(is_report), "{story}: {told:?}");
}

/// Whether the database takes no more writes.
fn is_poisoned(words: &Keyspace, story: &str) -> bool {
    match words.insert(key(0), "later") {
        Ok(()) => false,
        Err(Error::Poisoned { .. }) => true,
        Err(error) => panic!("{story}: write: {error}"),
    }
}

/// Writes, and has that pushed; everything is there.
fn push_again(db: &Db, words: &Keyspace, mut held: Pairs, story: &str) {
    let before = db.stats().pushes;
    for number in (0..KEYS).step_by(11) {
        put(words, &mut held, number, "later".to_owned());
    }
    db.flush().unwrap_or_else(|error| panic!("{story}: flush: {error}"));
    words.compact().unwrap_or_else(|error| panic!("{story}: compact: {error}"));
    assert!(db.stats().pushes > before, "{story}: no further push");
    assert_eq!(pending(db), [0, 0], "{story}");
    assert!(contents(words) == held, "{story}: after a further push");
    let problems = db.verify().unwrap().problems;
    assert!(problems.is_empty(), "{story}: {problems:?}");
    db.close().unwrap_or_else(|error| panic!("{story}: close: {error}"));
}

/// One point of a sweep. False: the push made fewer calls of this kind.
fn try_one(built: &Built, fault: Fault) -> bool {
    let story = format!("{fault:?}, fan-out {}", built.fan_out);
    let disk = built.disk.kill_clone();
    let faults = FaultFs::over(&disk);
    let (stage, changed) = (Mutex::new(Stage::Waits), Condvar::new());
    let push = Arc::new(OnePush { faults: faults.clone(), fault, stage, changed });
    let told = Arc::new(Mutex::new(Vec::<EventKind>::new()));
    let sink = told.clone();
    let mut options = tier_options(faults.as_fs(), built.fan_out, 1);
    options.gates = Some(push.clone());
    options.on_event = Some(Arc::new(move |event: &Event| sink.lock().push(event.kind.clone())));
    let mut db = Db::open_with(PATH, options).unwrap();
    let let_go = LetGo(push.clone());
    let mut words = db.keyspace("words").unwrap();
    let before = places(&words);
    push.run();
    let fired = !faults.fired().is_empty();
    let pushed = db.stats().pushes > 0;
    assert!(fired || pushed, "{story}: a push failed by itself");
    check_rows(pushed, &before, &places(&words), &story);
    assert!(contents(&words) == built.held, "{story}: after the push");
    drop(let_go);
    if let Err(error) = db.wait_until_idle() {
        assert!(fired && is_expected(&error), "{story}: {error}");
    }
    if is_poisoned(&words, &story) {
        assert_ne!(fault.kind, io::ErrorKind::StorageFull, "{story}: lack of space is no failure");
        let _ = db.close();
        faults.forget_failed_syncs();
        db = Db::open_with(PATH, tier_options(faults.as_fs(), built.fan_out, 1))
            .unwrap_or_else(|error| panic!("{story}: open: {error}"));
        words = db.keyspace("words").unwrap();
    }
    push_again(&db, &words, built.held.clone(), &story);
    // Closing has passed all events on.
    check_told(&told.lock(), pushed, &story);
    assert_eq!(faults.violations(), Vec::<String>::new(), "{story}");
    fired
}

/// Lets each call fail in turn until the push makes no further one; returns how many there were.
fn sweep(built: &Built, calls: &[(Op, &'static str)], kind: io::ErrorKind) -> u64 {
    let mut hit = 0;
    for (op, path) in calls.iter().copied() {
        // Space that is missing is missing for a while.
        let persistent = kind == io::ErrorKind::StorageFull;
        let mut nth = 0;
        while try_one(built, Fault { op, path, nth, kind, persistent }) {
            hit += 1;
            nth += if nth < 12 { 1 } else { nth / 4 };
        }
    }
    println!("{hit} failing calls, fan-out {}", built.fan_out);
    hit
}

/// A single span, and several that are pushed into one file.
const FAN_OUTS: [usize; 2] = [KEYS + 1, 2];

#[test]
fn a_push_of_which_any_call_fails_loses_nothing_and_is_made_again() {
    let of = |path: &'static str| Op::ALL.map(|op| (op, path));
    let calls = [of(RUN_FILES), of(MANIFEST)].concat();
    for fan_out in FAN_OUTS {
        let hit = sweep(&build(fan_out), &calls, io::ErrorKind::Other);
        assert!(hit >= 5, "only {hit} calls failed");
    }
}

#[test]
fn a_push_that_finds_no_space_is_made_when_there_is_some_again() {
    let files = [Op::Create, Op::Write, Op::SyncData].map(|op| (op, RUN_FILES));
    // A sync of the manifest that fails for any reason ends writing.
    let manifest = [Op::Allocate, Op::Write].map(|op| (op, MANIFEST));
    let calls = [&files[..], &manifest[..]].concat();
    for fan_out in FAN_OUTS {
        let hit = sweep(&build(fan_out), &calls, io::ErrorKind::StorageFull);
        // A file is made, written and synced, and the manifest written.
        assert!(hit >= 4, "only {hit} calls failed");
    }
}
