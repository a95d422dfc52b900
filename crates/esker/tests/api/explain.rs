//! What an explanation says, and that it is true: each outcome of each source is provoked.

use super::{Place, fill, fresh, key, open_roomy, small, text};
use esker::Outcome::{
    Absent, Deleted, Expired, FalsePositive, FilterAbsent, Found, NotReached, Operand,
    OutsideSegments, RangeDeleted,
};
use esker::{
    Cause, CounterU64, Db, Durability, Event, EventKind, EventListener, Explanation,
    KeyspaceOptions, Options, Outcome, StepSource,
};
use esker_testkit::Rng;
use esker_testkit::crashfs::CrashFs;
use esker_testkit::faultfs::{Effect, FaultFs, Op, Rule};
use esker_testkit::harness::{HandClock, tiny_options};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a slow disk takes.
const SLOW: Duration = Duration::from_millis(20);

fn roomy() -> (Place, Db) {
    let place = Place::new();
    let db = open_roomy(&place);
    (place, db)
}

fn outcomes(explanation: &Explanation) -> Vec<Outcome> {
    explanation.steps.iter().map(|step| step.outcome).collect()
}

fn slow(faults: &FaultFs, op: Op, path: &str) {
    let sleep = Effect::Call(Arc::new(|| std::thread::sleep(SLOW)));
    faults.add(Rule::new(op, sleep).path(path).persistent());
}

/// Holds each `op` up until the writer, which sends a message after each put, stands still; the later ones for longer.
/// So puts wait for it however fast the machine is, and at last for longer than other puts that were slow because they
/// were not scheduled.
fn hold_up(faults: &FaultFs, op: Op, path: &str) -> Sender<()> {
    let (sender, puts) = channel();
    let puts = Mutex::new((puts, SLOW));
    let hold = Effect::Call(Arc::new(move || {
        let (puts, still) = &mut *puts.lock().unwrap();
        while puts.recv_timeout(*still).is_ok() {}
        *still = (*still + SLOW).min(10 * SLOW);
    }));
    faults.add(Rule::new(op, hold).path(path).persistent());
    sender
}

fn on_disk(faults: &FaultFs, mut options: Options) -> Db {
    options.fs = faults.as_fs();
    Db::open_with("/db", options).unwrap()
}

#[test]
fn outcomes_in_memtables() {
    let (_place, db) = roomy();
    let counts = db.keyspace_with("counts", KeyspaceOptions::merging(CounterU64::NAME)).unwrap();
    assert_eq!(outcomes(&db.explain_get("a").unwrap()), [FilterAbsent]);
    db.insert("a", "1").unwrap();
    assert_eq!(outcomes(&db.explain_get("a").unwrap()), [Found]);
    db.remove("a").unwrap();
    assert_eq!(outcomes(&db.explain_get("a").unwrap()), [Deleted]);
    db.insert("b", "1").unwrap();
    db.remove_range("b".."d").unwrap();
    assert_eq!(outcomes(&db.explain_get("b").unwrap()), [RangeDeleted]);
    // A key that was never written, too.
    assert_eq!(outcomes(&db.explain_get("c").unwrap()), [RangeDeleted]);
    db.default_keyspace().insert_with_ttl("e", "1", Duration::ZERO).unwrap();
    assert_eq!(outcomes(&db.explain_get("e").unwrap()), [Expired]);
    counts.merge("f", CounterU64::encode(1)).unwrap();
    let folded = counts.explain_get("f").unwrap();
    assert_eq!(outcomes(&folded), [Operand, Found]);
    assert_eq!(folded.steps[1].source, StepSource::Operands);
    assert!(folded.found);
    assert_eq!(db.explain_get("a").unwrap().steps[0].source.to_string(), "memtable 1 of 1");
}

#[test]
fn outcomes_in_runs() {
    let clock = Arc::new(HandClock::default());
    let mut options = Options::default();
    (options.memory, options.workers) = (Some(64 << 20), Some(1));
    options.clock = clock.clone();
    let place = Place::new();
    let db = Db::open_with(place.path(), options).unwrap();
    fill(&db, 0..2000, 0);
    db.compact().unwrap();
    // Two deltas above the base.
    db.insert(key(500), "new").unwrap();
    db.remove(key(600)).unwrap();
    db.default_keyspace().insert_with_ttl(key(601), "old", Duration::from_secs(1)).unwrap();
    db.flush().unwrap();
    db.insert(key(500), "newer").unwrap();
    db.insert(key(700), "newer").unwrap();
    db.remove_range(key(620)..key(630)).unwrap();
    db.flush().unwrap();
    clock.set(2000);
    let explain = |number| db.explain_get(key(number)).unwrap();
    assert_eq!(outcomes(&explain(500)), [FilterAbsent, Found, NotReached, NotReached]);
    assert_eq!(outcomes(&explain(600)), [FilterAbsent, FilterAbsent, Deleted, NotReached]);
    assert_eq!(outcomes(&explain(601)), [FilterAbsent, FilterAbsent, Expired, NotReached]);
    assert_eq!(outcomes(&explain(625)), [FilterAbsent, RangeDeleted, NotReached, NotReached]);
    assert_eq!(outcomes(&explain(100)), [FilterAbsent, OutsideSegments, OutsideSegments, Found]);
    let before_all = db.explain_get("a").unwrap();
    assert_eq!(outcomes(&before_all)[1..], [OutsideSegments; 3]);
    // Cached, the base is searched without asking its filter.
    explain(100);
    assert_eq!(outcomes(&db.explain_get(key(100) + "x").unwrap())[3], Absent);
    let ages: Vec<StepSource> = explain(100).steps.iter().map(|step| step.source).collect();
    assert!(matches!(
        ages[1],
        StepSource::Run { tier: 0, partition: 0, age: 2, file: None, segment: None }
    ));
    assert!(matches!(ages[3], StepSource::Run { age: 0, file: Some(_), segment: Some(_), .. }));
    let step = &explain(100).steps[3];
    assert_eq!((step.blocks.cached, step.bytes_read), (1, 0));
    assert!(step.entries >= 1, "{step:?}");
}

#[test]
fn false_positives_are_named_and_counted() {
    let (_place, db) = roomy();
    fill(&db, 0..20_000, 0);
    let mut denied = 0;
    let mut is_wrong = |number: &usize| {
        let outcome = outcomes(&db.explain_get(key(*number) + "x").unwrap())[1];
        denied += u64::from(outcome == FilterAbsent);
        outcome == FalsePositive
    };
    db.flush().unwrap();
    // The filter of a base is asked only for blocks that are not cached.
    assert_eq!(db.iter().unwrap().count(), 20_000);
    let before = db.stats();
    let number = (0..20_000).find(&mut is_wrong).expect("a filter that is never wrong");
    let after = db.stats();
    assert_eq!(after.filter_false_positives, before.filter_false_positives + 1);
    assert_eq!(after.filter_absent, before.filter_absent + denied);
    assert_eq!(after.filter_found, before.filter_found);
    assert!(db.get(key(19_990)).unwrap().is_some());
    assert!(db.get(key(number) + "x").unwrap().is_none());
    let last = db.stats();
    assert_eq!(last.filter_found, after.filter_found + 1);
    assert_eq!(last.filter_false_positives, after.filter_false_positives + 1);
}

/// Sets of a MiB, so that each memtable of a set has some hundred entries.
fn with_large_memtables() -> (Place, Db) {
    let place = Place::new();
    let mut options = small();
    options.memtable_bytes = Some(1 << 20);
    let db = Db::open_with(place.path(), options).unwrap();
    (place, db)
}

#[test]
fn a_memtable_whose_filter_is_wrong_is_named() {
    let (_place, db) = with_large_memtables();
    for number in 0..900 {
        db.insert(key(number), "").unwrap();
    }
    let wrong = |number: &usize| {
        let explanation = db.explain_get(key(*number)).unwrap();
        let mut steps = explanation.steps.iter();
        steps.any(|step| {
            matches!(step.source, StepSource::Memtable { .. }) && step.outcome == FalsePositive
        })
    };
    assert!((900..400_000).any(|number| wrong(&number)), "a filter that is never wrong");
}

/// A set has several memtables, and each of them is named.
#[test]
fn each_memtable_of_a_set_is_named() {
    let (_place, db) = with_large_memtables();
    db.insert("first", "1").unwrap();
    fill(&db, 0..1500, 1);
    let explanation = db.explain_get("first").unwrap();
    let memtables = |outcome: &dyn Fn(Outcome) -> bool| {
        let steps = explanation.steps.iter().filter(|step| outcome(step.outcome));
        let named = steps.filter_map(|step| match step.source {
            StepSource::Memtable { number, of, sealed } => Some((number, of, sealed)),
            _ => None,
        });
        named.collect::<Vec<_>>()
    };
    let (all, found) = (memtables(&|_| true), memtables(&|outcome| outcome == Found));
    let of = all.len() as u64;
    assert!(of > 2, "{explanation}");
    assert_eq!(found, [(of, of, true)], "the oldest one has it: {explanation}");
    for (at, (number, total, sealed)) in all.into_iter().enumerate() {
        assert_eq!((number, total, sealed), (at as u64 + 1, of, at > 0), "{explanation}");
    }
    assert!(db.explain_get(key(1499)).unwrap().steps[1..].iter().all(|s| s.outcome == NotReached));
}

#[test]
fn a_cold_cache_is_seen() {
    let disk = CrashFs::new();
    let faults = FaultFs::over(&disk);
    let db = on_disk(&faults, tiny_options());
    fill(&db, 0..2000, 0);
    db.compact().unwrap();
    db.close().unwrap();
    let db = on_disk(&faults, tiny_options());
    slow(&faults, Op::Read, "data");
    let cold = db.explain_get(key(1000)).unwrap();
    assert!(cold.found);
    // The index and the block.
    assert_eq!((cold.blocks.cached, cold.blocks.page_cache, cold.blocks.device), (0, 0, 2));
    let step = cold.steps.iter().find(|step| step.outcome == Found).unwrap();
    assert!(step.blocks.device == 2 && step.time >= 2 * SLOW && cold.time >= step.time);
    let stats = db.stats();
    assert_eq!((stats.device_reads, stats.page_cache_reads), (2, 0));
    assert_eq!(stats.get_bytes_read, cold.bytes_read);
    assert_eq!(stats.device_latency.samples, 2);
    assert!(stats.device_latency.max >= SLOW);
    faults.clear();
    let warm = db.explain_get(key(1000)).unwrap();
    assert_eq!((warm.blocks.cached, warm.blocks.device, warm.bytes_read), (1, 0, 0));
    let text = cold.to_string();
    assert!(text.contains("2 from the device") && !text.contains("key001000"), "{text}");
}

#[test]
fn reads_are_counted_by_purpose() {
    let disk = CrashFs::new();
    let faults = FaultFs::over(&disk);
    let db = on_disk(&faults, tiny_options());
    for round in 0..3 {
        fill(&db, 0..2000, round);
    }
    db.compact().unwrap();
    assert!(db.stats().compaction_bytes_read > 0);
    db.close().unwrap();
    let db = on_disk(&faults, tiny_options());
    assert_eq!(db.iter().unwrap().count(), 2000);
    let stats = db.stats();
    assert!(stats.scan_bytes_read > 2000 * 10, "{stats:?}");
    assert_eq!((stats.get_bytes_read, stats.compaction_bytes_read), (0, 0));
    assert_eq!(stats.scan_bytes_read, stats.bytes_read);
}

#[test]
fn an_explained_get_agrees_with_a_get() {
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let (_place, db) = fresh();
    let counts = db.keyspace_with("counts", KeyspaceOptions::merging(CounterU64::NAME)).unwrap();
    let plain = db.default_keyspace();
    for _ in 0..3000 {
        let name = key(rng.below(300) as usize);
        match rng.below(40) {
            0..20 => plain.insert(&name, "x".repeat(rng.below(200) as usize)).unwrap(),
            20..28 => counts.merge(&name, CounterU64::encode(1)).unwrap(),
            28..34 => plain.remove(&name).unwrap(),
            34 => plain.insert_with_ttl(&name, "gone", Duration::ZERO).unwrap(),
            35 => plain.remove_range(&name[..]..&key(300)[..]).unwrap(),
            36 => counts.remove(&name).unwrap(),
            37 if rng.below(4) == 0 => db.flush().unwrap(),
            38 if rng.below(20) == 0 => db.compact().unwrap(),
            _ => {}
        }
        let asked = key(rng.below(310) as usize);
        for keyspace in [&plain, &counts] {
            let explanation = keyspace.explain_get(&asked).unwrap();
            let value = keyspace.get(&asked).unwrap();
            assert_eq!(explanation.found, value.is_some(), "seed {seed}: {asked}\n{explanation}");
            let found = outcomes(&explanation).iter().filter(|outcome| **outcome == Found).count();
            assert_eq!(found, usize::from(value.is_some()), "seed {seed}\n{explanation}");
        }
    }
}

#[test]
fn an_explained_scan_counts_what_the_statistics_count() {
    let (place, db) = fresh();
    for round in 0..3 {
        fill(&db, 0..1500, round);
    }
    db.compact().unwrap();
    fill(&db, (0..1500).step_by(7), 3);
    for number in (0..1500).step_by(11) {
        db.remove(key(number)).unwrap();
    }
    db.close().unwrap();
    // Read-only, so that no worker reads too.
    let mut options = super::small();
    options.read_only = true;
    let db = Db::open_with(place.path(), options).unwrap();
    let before = db.stats();
    let scan = db.explain_scan(&key(100)[..]..&key(1400)[..], 1000).unwrap();
    let after = db.stats();
    assert_eq!(scan.entries, 1000);
    assert_eq!(after.scans - before.scans, 1);
    assert_eq!(after.scanned - before.scanned, scan.entries);
    assert_eq!(after.skipped - before.skipped, scan.stepped_over);
    assert!(scan.stepped_over > 100, "{scan}");
    let read = |stats: &esker::Stats| stats.page_cache_reads + stats.device_reads;
    assert_eq!(read(&after) - read(&before), scan.blocks.page_cache + scan.blocks.device);
    assert_eq!(after.cache_hits - before.cache_hits, scan.blocks.cached);
    assert_eq!(after.scan_bytes_read - before.scan_bytes_read, scan.bytes_read);
    let entries: u64 = scan.steps.iter().map(|step| step.entries).sum();
    assert!(entries >= scan.entries + scan.stepped_over, "{scan}");
    assert!(scan.steps.iter().any(|step| matches!(step.source, StepSource::Memtable { .. })));
    assert!(scan.steps.iter().any(|step| matches!(step.source, StepSource::Run { age: 0, .. })));
    // A plain scan of the same range returns the same.
    let plain = db.range(&key(100)[..]..&key(1400)[..]).unwrap().take(1000).count();
    assert_eq!(plain as u64, scan.entries);
    assert_eq!(db.explain_scan::<&str>(.., 0).unwrap().entries, 0);
}

#[test]
fn a_put_names_its_phases_and_writes() {
    let (_place, db) = fresh();
    let put = db.explain_put("a", "1").unwrap();
    let names: Vec<String> = put.steps.iter().map(|step| step.source.to_string()).collect();
    let phases = [
        "admission",
        "reservation",
        "copy to the log",
        "insertion into the memtable",
        "publication",
    ];
    assert_eq!(names, phases);
    assert!(put.steps.iter().map(|step| step.time).sum::<Duration>() <= put.time);
    assert_eq!(text(db.get("a").unwrap()).as_deref(), Some("1"));
    assert_eq!(db.stats().puts, 1);
}

fn waited(explanation: &Explanation, cause: Cause) -> Duration {
    let waits = explanation.waits.iter().filter(|wait| wait.cause == cause);
    waits.map(|wait| wait.time).sum()
}

#[test]
fn a_put_names_a_slow_sync() {
    let disk = CrashFs::new();
    let faults = FaultFs::over(&disk);
    let mut options = tiny_options();
    options.durability = Durability::Disk;
    let db = on_disk(&faults, options);
    slow(&faults, Op::SyncData, "log");
    let put = db.explain_put("a", "1").unwrap();
    let sync = put.steps.iter().find(|step| step.source == StepSource::Sync).unwrap();
    assert!(sync.time >= SLOW && waited(&put, Cause::Sync) >= SLOW, "{put}");
}

#[test]
fn a_put_names_a_full_log_and_small_memory() {
    for (op, path, causes) in [
        (Op::Allocate, "log", &[Cause::LogSpace][..]),
        (Op::Write, "data", &[Cause::Memory, Cause::FlushDebt][..]),
    ] {
        let disk = CrashFs::new();
        let faults = FaultFs::over(&disk);
        let db = on_disk(&faults, tiny_options());
        let put_ended = hold_up(&faults, op, path);
        let value = "x".repeat(2000);
        let waits = |put: &Explanation| causes.iter().any(|c| waited(put, *c) > Duration::ZERO);
        let named = (0..20_000).any(|number| {
            let put = db.explain_put(key(number), &value).unwrap();
            put_ended.send(()).unwrap();
            waits(&put)
        });
        assert!(named, "no put waited for {causes:?}");
        // Puts that nobody explains are kept with what they waited for.
        let kept = (20_000..40_000).any(|number| {
            db.insert(key(number), &value).unwrap();
            put_ended.send(()).unwrap();
            db.stats().slowest.iter().any(|slow| waits(&slow.explanation))
        });
        assert!(kept, "no slow put was kept");
        faults.clear();
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<(String, Duration, Vec<&'static str>)>>);

impl EventListener for Heard {
    fn event(&self, event: &Event) {
        if let EventKind::SlowOperation { operation, duration, waits, .. } = &event.kind {
            let waits = waits.iter().map(|(cause, _)| *cause).collect();
            self.0.lock().unwrap().push(((*operation).to_owned(), *duration, waits));
        }
    }
}

#[test]
fn slow_operations_are_kept_and_are_events() {
    let disk = CrashFs::new();
    let faults = FaultFs::over(&disk);
    let heard = Arc::new(Heard::default());
    let mut options = tiny_options();
    fill(&on_disk(&faults, options.clone()), 0..2000, 0);
    options.slow_operation = SLOW;
    options.on_event = Some(heard.clone());
    let db = on_disk(&faults, options);
    db.compact().unwrap();
    db.close().unwrap();
    heard.0.lock().unwrap().clear();
    let mut options = tiny_options();
    options.slow_operation = SLOW;
    options.on_event = Some(heard.clone());
    let db = on_disk(&faults, options);
    slow(&faults, Op::Read, "data");
    db.get(key(1)).unwrap().unwrap();
    assert!(db.range(&key(1900)[..]..).unwrap().next().is_some());
    faults.clear();
    slow(&faults, Op::SyncData, "log");
    db.default_keyspace().insert_with("secret", "hidden", Durability::Disk).unwrap();
    faults.clear();
    let slowest = db.stats().slowest;
    let of = |kind: &str| {
        slowest.iter().find(|slow| slow.explanation.operation == kind).unwrap().explanation.clone()
    };
    let (get, scan, put) = (of("get"), of("scan"), of("put"));
    assert!(get.time >= SLOW && get.blocks.device > 0 && outcomes(&get).contains(&Found), "{get}");
    assert!(scan.time >= SLOW && scan.blocks.device > 0, "{scan}");
    assert!(put.time >= SLOW && waited(&put, Cause::Sync) >= SLOW, "{put}");
    assert!(
        put.steps.iter().any(|step| step.source == StepSource::Sync && step.time >= SLOW),
        "{put}"
    );
    let shown = format!("{slowest:?}");
    assert!(!shown.contains("secret") && !shown.contains("key00"), "{shown}");
    // Many more than are kept.
    for number in 0..100 {
        db.default_keyspace().insert_with(key(number), "v", Durability::Disk).unwrap();
    }
    let slowest = db.stats().slowest;
    let puts = slowest.iter().filter(|slow| slow.explanation.operation == "put");
    let times: Vec<Duration> = puts.map(|slow| slow.explanation.time).collect();
    assert_eq!(times.len(), 16);
    assert!(times[0] >= SLOW && times.is_sorted_by(|a, b| a >= b), "{times:?}");
    db.close().unwrap();
    let heard = heard.0.lock().unwrap();
    for kind in ["get", "scan", "put"] {
        assert!(heard.iter().any(|(name, took, _)| name == kind && *took >= SLOW), "{heard:?}");
    }
    assert!(heard.iter().any(|(name, _, waits)| name == "put" && waits.contains(&"sync")));
}
