//! Ingestions of which a call fails or finds no space, at each of their steps (C1.8, C2, C7).
//!
//! The ingestion writes to all keyspaces, removes ranges, has a value in pieces, and at times consists of two
//! that are joined. If it fails, nothing of it is visible, its files are removed, and it works when it is done
//! again. Only if its failure ended writing the next open decides, between all of it and nothing.

use super::{is_expected, options, run_files};
use esker::{Db, Durability, Error, Options};
use esker_testkit::faultfs::{Effect, Op as Call, Rule};
use esker_testkit::harness::{self, read_all};
use esker_testkit::model::{COUNTERS, Model, Op};
use esker_testkit::ops::{Generator, count};
use esker_testkit::{CrashFs, FaultFs, Rng};
use std::io;

const PATH: &str = "/db";
/// Bytes of the value in pieces; even, so that it comes from a reader.
const LONG_BYTES: usize = 48_000;

/// A database that is about to get an ingestion, and what it holds before and after it.
pub(super) struct Scene {
    pub disk: CrashFs,
    pub fs: FaultFs,
    seed: u64,
    before: Model,
    after: Model,
    ops: Vec<Op>,
    files: Vec<String>,
}

impl Scene {
    /// A database whose memtables are empty, so that nothing is written unless somebody ingests.
    pub fn new(seed: u64) -> (Self, Db) {
        let disk = CrashFs::new();
        let fs = FaultFs::over(&disk);
        let db = Db::open_with(PATH, Self::options(&fs, seed)).unwrap();
        let (mut before, mut make) = (Model::new(), Generator::new(seed, 60));
        for op in [Op::Create(1), Op::Create(COUNTERS)] {
            harness::write_one(&db, &op, Durability::Process).unwrap();
            before.apply(&op);
        }
        for _ in 0..40 {
            let ops = make.batch(&before, 8);
            harness::write(&db, &ops, Durability::Process).unwrap();
            before.apply_all(&ops);
        }
        db.compact().unwrap();
        db.wait_until_idle().unwrap();
        let ops = ops(&mut make, &before);
        let mut after = before.clone();
        after.apply_all(&ops);
        let files = run_files(&fs);
        (Self { disk, fs, seed, before, after, ops, files }, db)
    }

    fn options(fs: &FaultFs, seed: u64) -> Options {
        let mut options = options(fs, seed);
        // Nothing is compacted because writes pause.
        (options.small_tiers, options.cold_after, options.monitor) = (None, None, Some(false));
        options
    }

    pub fn ingest(&self, db: &Db) -> esker::Result<()> {
        harness::ingest(db, &self.ops, &mut Rng::new(self.seed))
    }

    /// Looks at what an ingestion has come to whose failures are over; whether it failed without a trace.
    pub fn check(&self, db: Db, result: esker::Result<()>, what: &str) -> bool {
        let poisoned = harness::is_poisoned(&db);
        let fail = |error: Error| -> ! { panic!("{what}: {error}") };
        let found = read_all(&db).unwrap_or_else(|error| fail(error));
        let without_trace = result.is_err() && !poisoned;
        if result.is_ok() {
            assert_eq!(self.after.difference(&found), None, "{what}");
        }
        if without_trace {
            assert_eq!(self.before.difference(&found), None, "{what}: it failed");
            db.wait_until_idle().unwrap_or_else(|error| fail(error));
            assert_eq!(run_files(&self.fs), self.files, "{what}: files are left");
            self.ingest(&db).unwrap_or_else(|error| panic!("{what}: again: {error}"));
            let found = read_all(&db).unwrap_or_else(|error| fail(error));
            assert_eq!(self.after.difference(&found), None, "{what}: again");
        }
        let closed = db.close();
        assert!(closed.is_ok() || poisoned, "{what}: {closed:?}");
        drop(db);
        self.fs.forget_failed_syncs();
        let db = Db::open_with(PATH, Self::options(&self.fs, self.seed))
            .unwrap_or_else(|error| panic!("{what}: open: {error}"));
        let found = read_all(&db).unwrap_or_else(|error| fail(error));
        let is_there = self.after.difference(&found).is_none();
        if !is_there {
            assert!(poisoned, "{what}: it is gone: {:?}", self.after.difference(&found));
            assert_eq!(self.before.difference(&found), None, "{what}: opened");
            assert_eq!(run_files(&self.fs), self.files, "{what}: files are left");
        }
        let problems = db.verify().unwrap_or_else(|error| fail(error)).problems;
        assert!(problems.is_empty(), "{what}: {problems:?}");
        self.ingest(&db).unwrap_or_else(|error| panic!("{what}: at last: {error}"));
        db.close().unwrap_or_else(|error| fail(error));
        without_trace
    }
}

/// An ingestion to all keyspaces, which removes ranges and has a value in pieces.
fn ops(make: &mut Generator, model: &Model) -> Vec<Op> {
    loop {
        let mut ops = make.sorted(model);
        let of = |slot| ops.iter().filter(|op| op.writes_to() == Some(slot)).count();
        let removes = ops.iter().any(|op| matches!(op, Op::DeleteRange(..)));
        if of(0) == 0 || of(1) == 0 || !removes {
            continue;
        }
        let behind = ops.partition_point(|op| op.writes_to() == Some(0));
        // No key is greater, and nothing compresses it.
        let value = (0..LONG_BYTES).map(|_| make.rng.next() as u8).collect();
        ops.insert(behind, Op::Put(0, vec![0xff; 6], value));
        ops.push(count(b"ingested", 1));
        return ops;
    }
}

#[test]
fn the_nth_call_of_an_ingestion_fails() {
    let full = std::env::var("ESKER_FAULTS").is_ok_and(|value| value == "full");
    let (mut points, mut without_trace, mut poisoned) = (0, 0, 0);
    for call in Call::ALL {
        for (persistent, kind) in [
            (false, io::ErrorKind::Other),
            (true, io::ErrorKind::Other),
            (true, io::ErrorKind::StorageFull),
        ] {
            let mut nth = 0;
            loop {
                let what = format!("{call:?} {nth}, persistent {persistent}, {kind:?}");
                let (scene, db) = Scene::new(1 + nth % 5);
                let rule = Rule::new(call, Effect::Error(kind)).after(nth);
                scene.fs.add(if persistent { rule.persistent() } else { rule });
                let result = scene.ingest(&db);
                if let Err(error) = &result {
                    assert!(is_expected(error), "{what}: {error:?}");
                }
                let fired = !scene.fs.fired().is_empty();
                scene.fs.clear();
                poisoned += u64::from(harness::is_poisoned(&db));
                without_trace += u64::from(scene.check(db, result, &what));
                if !fired {
                    break;
                }
                points += 1;
                nth += if full || nth < 6 { 1 } else { nth / 3 };
            }
        }
    }
    eprintln!("{points} failing calls, {without_trace} without a trace, {poisoned} ended writing");
    assert!(
        without_trace > 20 && poisoned > 5,
        "{without_trace} without a trace, {poisoned} poisoned"
    );
}
