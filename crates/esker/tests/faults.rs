//! Calls of the file system that fail, one after the other (C2, C7, C8; R2, R7, R8).
//!
//! A sweep makes the n-th call of each kind fail, once or for good, while a fixed workload opens a
//! database, writes, flushes, compacts, reads and closes it, and ends when the workload makes no
//! n-th call. Whatever fails: each call ends with success or a typed error, nothing acknowledged
//! is lost, reads are right, and the database opens again when the disk is well.
//!
//! `ESKER_FAULTS=full` tries every n; otherwise n grows by a quarter from 12 on.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod full;
mod ingested;

use esker::{Db, Durability, Error, ErrorKind, Options};
use esker_testkit::faultfs::{Effect, Op as Call, Rule};
use esker_testkit::harness::{self, read_all, small_options};
use esker_testkit::model::{COUNTERS, Model, Op};
use esker_testkit::ops::{Generator, LOGGED, count};
use esker_testkit::oracle::{Entry, Floor, History};
use esker_testkit::{CrashFs, FaultFs, Rng};
use std::io;

const PATH: &str = "/db";

/// A seed whose databases have four tiers, whatever else is drawn.
const FOUR_TIERS: u64 = 4;

fn options(fs: &FaultFs, seed: u64) -> Options {
    let mut rng = Rng::new(seed);
    let mut options = small_options(&mut rng);
    if rng.percent(35) || seed == FOUR_TIERS {
        harness::with_tiers(&mut options, &mut rng);
    }
    if seed == FOUR_TIERS
        && let Some(tiers) = &mut options.small_tiers
    {
        // However few partitions there are, a flush does not go past the tiers.
        (tiers.count, tiers.direct) = (4, 0);
    }
    options.fs = fs.as_fs();
    options.sync_interval = None;
    options.workers = Some(1);
    options
}

/// What a call said of its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Acknowledged,
    /// It is there as a whole or not at all.
    Failed,
    /// It is not there.
    Refused,
}

/// What a workload did: every write that was tried, and what became of it.
#[derive(Default)]
struct Tried {
    writes: Vec<(Vec<Op>, Outcome)>,
    errors: Vec<Error>,
    /// Writes that did not wait and were refused for it, ingestions that were committed, and those that failed
    /// and left nothing.
    refused: u64,
    ingestions: u64,
    without_trace: u64,
    /// Spans that were pushed.
    pushes: u64,
    /// The most tiers that a tree had.
    tiers: usize,
}

impl Tried {
    fn write(&mut self, db: &Db, ops: Vec<Op>, durability: Durability) {
        let result = match ops.as_slice() {
            [op @ (Op::Create(_) | Op::Drop(_))] => harness::write_one(db, op, durability),
            ops => harness::write(db, ops, durability).map(drop),
        };
        let outcome = if result.is_ok() { Outcome::Acknowledged } else { Outcome::Failed };
        self.errors.extend(result.err());
        self.writes.push((ops, outcome));
    }

    /// Writes without a wait.
    fn try_write(&mut self, db: &Db, ops: Vec<Op>, durability: Durability) {
        let outcome = match harness::try_write(db, &ops, durability) {
            Ok(()) => Outcome::Acknowledged,
            Err(Error::WouldBlock { .. }) => {
                self.refused += 1;
                Outcome::Refused
            }
            Err(error) => {
                self.errors.push(error);
                Outcome::Failed
            }
        };
        self.writes.push((ops, outcome));
    }

    /// Ingests. What fails leaves nothing, now or later, unless it ends writing.
    fn ingest(&mut self, db: &Db, ops: Vec<Op>, rng: &mut Rng) {
        let outcome = match harness::ingest(db, &ops, rng) {
            Ok(()) => {
                self.ingestions += 1;
                Outcome::Acknowledged
            }
            Err(error) => {
                self.errors.push(error);
                match harness::is_poisoned(db) {
                    true => Outcome::Failed,
                    false => Outcome::Refused,
                }
            }
        };
        self.without_trace += u64::from(outcome == Outcome::Refused);
        self.writes.push((ops, outcome));
    }

    /// The next write that a workload makes: a batch that waits or does not, or now and then an ingestion.
    fn write_somehow(&mut self, db: &Db, (make, model): (&mut Generator, &Model), most: u64) {
        let number = self.writes.len() as u64;
        let marker = count(format!("w{number:05}").as_bytes(), number);
        if number % 20 == 5 {
            let mut ops = make.sorted(model);
            ops.push(marker);
            return self.ingest(db, ops, &mut make.rng);
        }
        // A single write goes the short way: a marker alone, or the removal of what an earlier batch has put.
        let (puts, alone) = (number % 16 == 2, number % 16 == 3);
        let put_before = number.checked_sub(2).map(|before| self.writes[before as usize].1);
        if number % 16 == 4 && put_before == Some(Outcome::Acknowledged) {
            let removal = Op::Delete(COUNTERS, removed_key(number - 2));
            return self.try_write(db, vec![removal], Durability::Process);
        }
        let mut ops = if alone { Vec::new() } else { make.batch(model, most) };
        ops.extend(puts.then(|| count(&removed_key(number), number)));
        ops.push(marker);
        let disk = make.rng.percent(20);
        let durability = if disk { Durability::Disk } else { Durability::Process };
        match alone || number % 4 == 1 {
            true => self.try_write(db, ops, durability),
            false => self.write(db, ops, durability),
        }
    }

    fn note(&mut self, result: esker::Result<()>) {
        self.errors.extend(result.err());
    }

    /// Whether `found` is what the writes made, where each one that failed counts or not.
    fn check(&self, found: &Model) -> Result<(), String> {
        // Failed writes leave gaps: the counter of each write that is there says so.
        let mut model = Model::new();
        for (number, (ops, outcome)) in self.writes.iter().enumerate() {
            let mut with = model.clone();
            with.apply_all(ops);
            let marker = format!("w{number:05}").into_bytes();
            let has = |key: &[u8]| found.map(COUNTERS).is_some_and(|map| map.get(key).is_some());
            let there = match &ops[..] {
                [Op::Delete(COUNTERS, removed)] => !has(removed),
                _ => has(&marker),
            };
            let makes = matches!(ops[..], [Op::Create(_) | Op::Drop(_)]);
            let acknowledged = *outcome == Outcome::Acknowledged;
            if acknowledged && !there && !makes {
                return Err(format!("acknowledged write {number} is missing"));
            }
            if *outcome == Outcome::Refused && there {
                return Err(format!("write {number} is there, which was refused"));
            }
            let happened = acknowledged || if makes { is_live(found, ops) } else { there };
            if happened {
                model = with;
            }
        }
        model.difference(found).map_or(Ok(()), Err)
    }
}

/// What the write of this number puts and another one removes.
fn removed_key(number: u64) -> Vec<u8> {
    format!("x{number:05}").into_bytes()
}

fn is_live(found: &Model, ops: &[Op]) -> bool {
    matches!(ops, [Op::Create(slot)] if found.map(*slot).is_some())
}

/// Opens, writes, flushes, compacts, reads and closes, and goes on whatever fails.
fn workload(fs: &FaultFs, seed: u64) -> Tried {
    let mut tried = Tried::default();
    let mut make = Generator::new(seed, 60);
    for life in 0..2 {
        let db = match Db::open_with(PATH, options(fs, seed + life)) {
            Ok(db) => db,
            Err(error) => {
                tried.errors.push(error);
                continue;
            }
        };
        let mut model = Model::new();
        for slot in [1, COUNTERS] {
            if db.keyspaces().is_ok_and(|names| names.len() < 3) {
                tried.write(&db, vec![Op::Create(slot)], Durability::Process);
            }
            model.apply(&Op::Create(slot));
        }
        for step in 0..70 {
            tried.write_somehow(&db, (&mut make, &model), 6);
            match step % 24 {
                8 => tried.note(db.flush()),
                16 => tried.note(db.compact()),
                23 => tried.note(db.sync()),
                _ => {}
            }
            if step % 10 == 0 {
                // What can be read is right; what cannot be read says so.
                match read_all(&db) {
                    Ok(found) => tried.check(&found).unwrap_or_else(|what| panic!("{what}")),
                    Err(error) => tried.errors.push(error),
                }
            }
        }
        let stats = db.stats();
        tried.pushes += stats.pushes;
        let tiers = stats.trees.iter().map(|tree| tree.tiers.len()).max();
        tried.tiers = tried.tiers.max(tiers.unwrap_or(0));
        tried.note(db.close());
    }
    tried
}

/// Errors that a failing disk may bring.
fn is_expected(error: &Error) -> bool {
    use ErrorKind as Kind;
    match error {
        Error::Poisoned { cause } => is_expected(cause),
        error => matches!(error.kind(), Kind::Io | Kind::DiskFull | Kind::Closed),
    }
}

/// What a workload of which a call failed came to.
struct Done {
    /// Whether there was such a call.
    fired: bool,
    pushes: u64,
    tiers: usize,
    ingestions: u64,
    without_trace: u64,
}

fn try_one(call: Call, nth: u64, persistent: bool, effect: &Effect, seed: u64) -> Done {
    let disk = CrashFs::new();
    let fs = FaultFs::over(&disk);
    let rule = Rule::new(call, effect.clone()).after(nth);
    fs.add(if persistent { rule.persistent() } else { rule });
    let tried = workload(&fs, seed);
    let fired = !fs.fired().is_empty();
    let what = format!("{call:?} {nth}, persistent {persistent}, {effect:?}, seed {seed}");
    fs.clear();
    for error in &tried.errors {
        assert!(is_expected(error), "{what}: {error:?}");
    }
    // A superblock is written as a whole before each sync, so the next open may sync it again.
    let violations = fs.violations();
    let broken = violations.iter().find(|violation| !violation.contains("superblock"));
    assert_eq!(broken, None, "{what}");
    fs.forget_failed_syncs();
    let db = Db::open_with(PATH, options(&fs, seed))
        .unwrap_or_else(|error| panic!("{what}: reopen: {error}\n{}", disk.log().join("\n")));
    let found = read_all(&db).unwrap_or_else(|error| panic!("{what}: read: {error}"));
    tried.check(&found).unwrap_or_else(|wrong| {
        panic!("{what}: {wrong}; errors {:?}, fired {:?}", tried.errors, fs.fired())
    });
    let report = db.verify().unwrap_or_else(|error| panic!("{what}: verify: {error}"));
    assert!(report.problems.is_empty(), "{what}: {:?}", report.problems);
    db.insert("well", "again").unwrap_or_else(|error| panic!("{what}: write: {error}"));
    db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
    let Tried { pushes, tiers, ingestions, without_trace, .. } = tried;
    Done { fired, pushes, tiers, ingestions, without_trace }
}

#[test]
fn the_nth_call_of_each_kind_fails() {
    let full = std::env::var("ESKER_FAULTS").is_ok_and(|value| value == "full");
    let (mut points, mut pushes, mut tiers) = (0_u64, 0_u64, 0_usize);
    let (mut ingestions, mut without_trace) = (0, 0);
    for call in Call::ALL {
        for persistent in [false, true] {
            let mut nth = 0;
            loop {
                let effect = Effect::Error(io::ErrorKind::Other);
                let done = try_one(call, nth, persistent, &effect, 1 + nth % 7);
                pushes += done.pushes;
                ingestions += done.ingestions;
                without_trace += done.without_trace;
                tiers = tiers.max(done.tiers);
                if !done.fired {
                    break;
                }
                points += 1;
                nth += if full || nth < 12 { 1 } else { nth / 4 };
            }
        }
    }
    eprintln!("{points} failing calls, {pushes} pushes, 0 differences");
    assert!(tiers == 4 && pushes > 50, "{pushes} pushes through at most {tiers} tiers");
    assert!(
        ingestions > 50 && without_trace > 50,
        "{ingestions} ingestions, {without_trace} failed"
    );
}

#[test]
fn writes_are_cut_short() {
    let mut points = 0;
    for nth in 0..40 {
        let effect = Effect::ShortWrite(13, io::ErrorKind::Other);
        points += u64::from(try_one(Call::Write, nth * 5, false, &effect, 100 + nth).fired);
    }
    eprintln!("{points} short writes, 0 differences");
}

/// Rebello and others, ATC 2020: after a failed sync the cache says clean and the disk says
/// nothing. The database takes no more writes, never syncs that file again, and what it had
/// acknowledged as durable is there after a power cut (C2, R8).
#[test]
fn a_failed_sync_ends_writing_until_the_next_open() {
    let (mut fired, mut poisoned) = (0, 0);
    for (file, nth) in [".log", "MANIFEST"].into_iter().flat_map(|f| (0..24).map(move |n| (f, n))) {
        for revert in [false, true] {
            let what = format!("sync {nth} of {file}, revert {revert}");
            let disk = CrashFs::new();
            let fs = FaultFs::over(&disk);
            let rule = Rule::new(Call::SyncData, Effect::FailSync { revert });
            fs.add(rule.path(file).after(nth));
            fired += u64::from(fail_sync(&disk, &fs, nth, &what, &mut poisoned));
        }
    }
    assert!(fired > 20 && poisoned > 5, "only {fired} syncs failed, {poisoned} ended writing");
}

fn fail_sync(disk: &CrashFs, fs: &FaultFs, seed: u64, what: &str, poisoned: &mut u32) -> bool {
    let mut history = History::default();
    let (mut durable, mut refused, mut ended) = (0, false, false);
    let Ok(db) = Db::open_with(PATH, options(fs, seed)) else { return true };
    let mut model = Model::new();
    let mut make = Generator::new(seed, 60);
    for step in 0..80_u64 {
        let mut ops = make.batch(&model, 5);
        let (ops, result) = if step == 0 {
            let op = Op::Create(COUNTERS);
            let result = harness::write_one(&db, &op, Durability::Process);
            (vec![op], result)
        } else {
            ops.push(count(LOGGED, history.end() + 1));
            let disk = make.rng.percent(30);
            let class = if disk { Durability::Disk } else { Durability::Process };
            let result = harness::write(&db, &ops, class).map(drop);
            if disk && result.is_ok() {
                durable = history.end() + 1;
            }
            (ops, result)
        };
        if let Err(error) = &result {
            // A failed write may be there or not; it is the last one.
            assert!(is_expected(error), "{what}: {error}");
            refused = matches!(error, Error::Poisoned { .. });
            ended = true;
            history.push(Entry { ops, logged: true });
            break;
        }
        model.apply_all(&ops);
        history.push(Entry { ops, logged: true });
        if step % 20 == 19 && db.flush().is_ok() {
            durable = history.end();
        }
    }
    let failed = !fs.fired().is_empty();
    if failed {
        // If the sync was part of preparing a log file, nothing was reserved yet (R8): that
        // file is gone, and the next attempt takes another one.
        let later = Op::Put(0, b"later".to_vec(), b"x".to_vec());
        match harness::write_one(&db, &later, Durability::Process) {
            Ok(()) => {
                assert!(!refused, "{what}: a write after a refused one");
                if ended {
                    // The write that met the failure has no place in the log.
                    history.pop();
                }
                model.apply(&later);
                history.push(Entry { ops: vec![later], logged: true });
            }
            Err(error) => {
                assert!(matches!(error, Error::Poisoned { .. }), "{what}: {error}");
                let error = db.keyspace("new").expect_err("keyspaces are not made");
                assert!(matches!(error, Error::Poisoned { .. }), "{what}: {error}");
                *poisoned += 1;
            }
        }
        let found = read_all(&db).unwrap_or_else(|error| panic!("{what}: read: {error}"));
        // The last write may be visible although it failed.
        let mut with = model.clone();
        history.entries().last().iter().for_each(|entry| with.apply_all(&entry.ops));
        assert!(found == model || found == with, "{what}: reads go on");
        let _ = db.close();
    }
    drop(db);
    assert!(fs.violations().is_empty(), "{what}: {:?}", fs.violations());
    let cut = FaultFs::over(&disk.crash_clone(seed, 30));
    let floor = Floor { logged: durable, all: durable };
    let db = Db::open_with(PATH, options(&cut, seed))
        .unwrap_or_else(|error| panic!("{what}: open after a power cut: {error}"));
    let found = read_all(&db).unwrap_or_else(|error| panic!("{what}: read: {error}"));
    history.locate(&found, floor).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    failed
}

#[test]
fn a_full_disk_stays_readable_and_writing_resumes() {
    let (mut full, mut refused) = (0, 0);
    for seed in 0..24_u64 {
        let disk = CrashFs::new();
        let fs = FaultFs::over(&disk);
        let capacity = (150 << 10) + seed * (21 << 10);
        disk.set_capacity(Some(capacity));
        let what = format!("seed {seed}, {capacity} bytes");
        let mut tried = Tried::default();
        let db = Db::open_with(PATH, options(&fs, seed)).unwrap_or_else(|e| panic!("{what}: {e}"));
        let mut model = Model::new();
        tried.write(&db, vec![Op::Create(COUNTERS)], Durability::Process);
        model.apply(&Op::Create(COUNTERS));
        let mut make = Generator::new(seed, 2_000);
        for _ in 0..3_000 {
            let mut ops = make.batch(&model, 6);
            ops.retain(|op| matches!(op, Op::Put(..)));
            let number = tried.writes.len() as u64;
            ops.push(count(format!("w{number:05}").as_bytes(), number));
            match number % 3 {
                0 => tried.try_write(&db, ops, Durability::Process),
                _ => tried.write(&db, ops, Durability::Process),
            }
            if tried.errors.len() >= 3 {
                break;
            }
        }
        full += u64::from(!tried.errors.is_empty());
        refused += tried.refused;
        for error in &tried.errors {
            assert_eq!(error.kind(), ErrorKind::DiskFull, "{what}: {error}");
        }
        let found = read_all(&db).unwrap_or_else(|error| panic!("{what}: read: {error}"));
        tried.check(&found).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
        // A kill on the full disk: what is left can be opened once there is a little room.
        let killed = disk.kill_clone();
        killed.set_capacity(Some(capacity + (512 << 10)));
        let again = FaultFs::over(&killed);
        let other = Db::open_with(PATH, options(&again, seed))
            .unwrap_or_else(|error| panic!("{what}: open after a kill: {error}"));
        let found = read_all(&other).unwrap_or_else(|error| panic!("{what}: read: {error}"));
        tried.check(&found).unwrap_or_else(|wrong| panic!("{what}, after a kill: {wrong}"));
        drop(other);
        // Space returns: the same process goes on by itself (C7).
        disk.set_capacity(None);
        let mut refusals = 0;
        for number in 0..200_u64 {
            // What failed for want of space is tried again after a while; until then writes that
            // need the memory say so.
            while let Err(error) = db.insert(format!("after{number}"), [7; 200]) {
                assert_eq!(error.kind(), ErrorKind::DiskFull, "{what}: {error}");
                refusals += 1;
                assert!(refusals < 1_000, "{what}: does not resume: {error}");
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
        db.flush().unwrap_or_else(|error| panic!("{what}: flush: {error}"));
        db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
    }
    assert!(full > 12, "only {full} disks became full");
    assert!(refused > 0, "no write would have had to wait");
}

/// The names of the run files, in order.
fn run_files(fs: &FaultFs) -> Vec<String> {
    let entries = fs.as_fs().list("/db/data".as_ref()).unwrap();
    let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
}

#[test]
fn a_flush_or_compaction_that_fails_at_its_end_leaves_no_file() {
    for (call, path) in [(Call::SyncData, ".run"), (Call::SyncDir, "data")] {
        for merge in [false, true] {
            let what = format!("{call:?} of {path}, compaction {merge}");
            let disk = CrashFs::new();
            let fs = FaultFs::over(&disk);
            let mut options = options(&fs, 1);
            // Nothing is compacted because writes pause.
            options.small_tiers = None;
            let db = Db::open_with(PATH, options).unwrap();
            // Less than a memtable, so something is left to flush.
            (0..60).for_each(|n| db.insert(format!("{n:03}"), [b'1'; 40]).unwrap());
            if merge {
                // A delta so small that only `compact` rewrites it.
                db.compact().unwrap();
                db.insert("050", "2").unwrap();
                db.flush().unwrap();
            }
            db.wait_until_idle().unwrap();
            let before = run_files(&fs);
            fs.add(Rule::new(call, Effect::Error(io::ErrorKind::Other)).path(path).persistent());
            let result = if merge { db.compact() } else { db.flush() };
            assert!(result.is_err(), "{what}");
            assert!(!fs.fired().is_empty(), "{what}");
            // Afterwards the background does not try again.
            let _ = db.close();
            assert_eq!(run_files(&fs), before, "{what}");
            drop(db);
            let db = Db::open_with(PATH, self::options(&FaultFs::over(&disk), 1)).unwrap();
            let value = if merge { &b"2"[..] } else { &[b'1'; 40] };
            assert_eq!(db.get("050").unwrap().as_deref(), Some(value), "{what}");
        }
    }
}

#[test]
fn a_file_that_the_manifest_may_refer_to_stays() {
    let disk = CrashFs::new();
    let fs = FaultFs::over(&disk);
    let db = Db::open_with(PATH, options(&fs, 1)).unwrap();
    db.insert("k", "v").unwrap();
    fs.add(Rule::new(Call::SyncData, Effect::Error(io::ErrorKind::Other)).path("MANIFEST"));
    // However the manifest's record is made durable, that is what fails.
    fs.add(Rule::new(Call::Write, Effect::Error(io::ErrorKind::Other)).path("MANIFEST"));
    assert!(matches!(db.flush(), Err(Error::Poisoned { .. })));
    let _ = db.close();
    assert_eq!(run_files(&fs).len(), 1);
    drop(db);
    let db = Db::open_with(PATH, options(&FaultFs::over(&disk), 1)).unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"v"[..]));
}
