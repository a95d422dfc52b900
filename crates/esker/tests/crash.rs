//! Power cuts and kills at chosen points, checked by an oracle (C1, C2, C4; R3 to R7, R11 to R13).
//!
//! A workload runs on a simulated disk whose hook takes clones: what a power cut leaves, with a
//! chance for each unsynced block and name, or what a kill leaves. Each clone is opened, and what
//! it holds must be a prefix of the commit order that includes all that was durable, or, after a
//! kill, all that was acknowledged. The opening itself is cut off too and tried again; then the
//! database is used, cut off once more, and opened again.
//!
//! `ESKER_CRASH_POINTS` sets how many clones are checked (4,000 by default), `ESKER_SEED` replays
//! the workload of one seed.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

#[path = "crash/storm/mod.rs"]
mod storm;

use esker::{Db, Durability};
use esker_testkit::crashfs::Hook;
use esker_testkit::harness::{self, read_all, small_options};
use esker_testkit::model::{COUNTERS, Model, Op};
use esker_testkit::ops::{BUFFERED, Generator, LOGGED, count, counted};
use esker_testkit::oracle::{Entry, Floor, History};
use esker_testkit::{CrashFs, Rng, parallel};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const PATH: &str = "/db";
/// Chances of what is unsynced to survive a power cut.
const CHANCES: [u32; 4] = [0, 30, 70, 100];

/// What was known when a clone was taken.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code)] // Some of it is only for whoever reads a failure.
struct Point {
    operation: u64,
    /// `None`: a kill.
    chance: Option<u32>,
    /// What must be there.
    floor: Floor,
    /// What must still be there if the power is cut before the recovery is complete.
    durable: Floor,
}

/// How far acknowledgements have come.
#[derive(Debug, Default)]
struct Progress {
    /// Writes before this one are acknowledged.
    acknowledged: AtomicU64,
    /// Logged writes before this one are durable.
    durable: AtomicU64,
    /// Writes of every class before this one are flushed.
    flushed: AtomicU64,
}

impl Progress {
    fn new(from: u64) -> Self {
        Self { acknowledged: from.into(), durable: from.into(), flushed: from.into() }
    }

    fn floor(&self, killed: bool) -> Floor {
        let all = self.flushed.load(Ordering::SeqCst);
        let known = if killed { &self.acknowledged } else { &self.durable };
        Floor { logged: known.load(Ordering::SeqCst).max(all), all }
    }

    fn acknowledge(&self, end: u64, durable: bool) {
        self.acknowledged.store(end, Ordering::SeqCst);
        if durable {
            self.durable.store(end, Ordering::SeqCst);
        }
    }

    fn flush(&self, end: u64) {
        self.acknowledge(end, true);
        self.flushed.store(end, Ordering::SeqCst);
    }
}

type Clones = Arc<Mutex<Vec<(CrashFs, Point)>>>;

/// Takes clones of `disk` at about one in `every` of its operations.
fn watch(disk: &CrashFs, progress: &Arc<Progress>, seed: u64, every: u64, most: usize) -> Clones {
    let clones = Clones::default();
    let (taken, progress, source) = (clones.clone(), progress.clone(), disk.clone());
    let rng = Mutex::new(Rng::new(seed));
    let hook: Hook = Arc::new(move |operation, _| {
        let (chosen, kind, seed) = {
            let mut rng = rng.lock().unwrap();
            (rng.below(every) == 0, rng.below(5) as usize, rng.next())
        };
        if !chosen || taken.lock().unwrap().len() >= most {
            return;
        }
        let chance = CHANCES.get(kind).copied();
        // What is acknowledged now must be in the clone, which is taken after this look.
        let (floor, durable) = (progress.floor(chance.is_none()), progress.floor(false));
        let clone = match chance {
            Some(chance) => source.crash_clone(seed, chance),
            None => source.kill_clone(),
        };
        taken.lock().unwrap().push((clone, Point { operation, chance, floor, durable }));
    });
    disk.set_hook(Some(hook));
    clones
}

fn open(disk: &CrashFs, rng: &mut Rng) -> esker::Result<Db> {
    let mut options = small_options(rng);
    if rng.percent(35) {
        harness::with_tiers(&mut options, rng);
    }
    if rng.percent(35) {
        harness::with_rests(&mut options);
    }
    options.fs = disk.as_fs();
    options.sync_interval = None;
    // The files about the database change nothing of what survives (C12).
    options.monitor = Some(rng.percent(50));
    Db::open_with(PATH, options)
}

/// One thread's random writes, noted in a history.
struct Writer {
    make: Generator,
    history: History,
    model: Model,
    progress: Arc<Progress>,
}

impl Writer {
    fn note(&mut self, ops: Vec<Op>, logged: bool, durable: bool) {
        self.model.apply_all(&ops);
        self.history.push(Entry { ops, logged });
        self.progress.acknowledge(self.history.end(), durable);
    }

    fn one(&mut self, db: &Db, op: Op) {
        let durability =
            if self.make.rng.percent(5) { Durability::Disk } else { Durability::Process };
        let makes = matches!(op, Op::Create(_) | Op::Drop(_));
        harness::write_one(db, &op, durability).unwrap();
        self.note(vec![op], true, durability == Durability::Disk && !makes);
    }

    fn batch(&mut self, db: &Db) {
        let mut ops = self.make.batch(&self.model, 10);
        let durability = match self.make.rng.below(20) {
            0 | 1 => Durability::Disk,
            2 | 3 => Durability::Buffered,
            _ => Durability::Process,
        };
        let logged = durability != Durability::Buffered;
        ops.push(count(if logged { LOGGED } else { BUFFERED }, self.history.end() + 1));
        let written = if self.make.rng.percent(50) {
            harness::transact(db, &ops, durability, &mut self.make.rng)
        } else {
            harness::write(db, &ops, durability)
        };
        let Ok(position) = written else { return };
        self.note(ops, logged, durability == Durability::Disk);
        if logged && self.make.rng.percent(4) {
            db.wait_durable(position).unwrap();
            self.progress.acknowledge(self.history.end(), true);
        }
    }

    fn step(&mut self, db: &Db) {
        if self.model.map(COUNTERS).is_none() {
            return self.one(db, Op::Create(COUNTERS));
        }
        match self.make.rng.below(200) {
            0..=59 => {
                let op = self.make.write(&self.model);
                self.one(db, op);
            }
            60..=185 => self.batch(db),
            186..=189 => {
                let op = self.make.change_of_keyspaces(&self.model);
                self.one(db, op);
            }
            190 | 191 => {
                db.sync().unwrap();
                self.progress.flush(self.history.end());
            }
            192..=194 => {
                db.flush().unwrap();
                self.progress.flush(self.history.end());
            }
            195 => {
                db.compact().unwrap();
                self.progress.flush(self.history.end());
            }
            _ => drop(read_all(db).unwrap()),
        }
    }
}

/// Does `steps` random steps on a database that holds `model`.
fn work(
    db: &Db,
    model: Model,
    from: u64,
    seed: u64,
    steps: u64,
    progress: Arc<Progress>,
) -> Writer {
    let make = Generator::new(seed, 120);
    let history = History::new(model.clone(), from);
    let mut writer = Writer { make, history, model, progress };
    (0..steps).for_each(|_| writer.step(db));
    writer
}

/// The latest operations of a disk, for people.
fn tail(disk: &CrashFs) -> String {
    let log = disk.log();
    log[log.len().saturating_sub(40)..].join("\n")
}

fn fail(what: &str, disk: &CrashFs, point: Point) -> ! {
    panic!("{what}\nat {point:?}; the latest operations:\n{}", tail(disk))
}

/// Opens what a crash left and checks it; then cuts the opening off, and the use after it.
fn check(clone: &CrashFs, point: Point, history: &History, seed: u64, depth: u32) -> u64 {
    let mut rng = Rng::new(seed);
    let mut points = 1;
    // A second crash while the first one is being recovered from.
    let nothing_new = Arc::new(Progress::new(0));
    let second = watch(clone, &nothing_new, rng.next(), 6, 3);
    let opened = open(clone, &mut rng);
    clone.set_hook(None);
    let db = match opened {
        Ok(db) => db,
        Err(error) => fail(&format!("open: {error}"), clone, point),
    };
    let found = read_all(&db).unwrap_or_else(|e| fail(&format!("read: {e}"), clone, point));
    let survived = match history.locate(&found, point.floor) {
        Ok(survived) => survived,
        Err(what) => fail(&what, clone, point),
    };
    let report = db.verify().unwrap_or_else(|e| fail(&format!("verify: {e}"), clone, point));
    if !report.problems.is_empty() {
        fail(&format!("verify: {:?}", report.problems), clone, point);
    }
    // A kill or cut during recovery loses no more than the first one did.
    let second = std::mem::take(&mut *second.lock().unwrap());
    for (again, later) in second.into_iter().filter(|_| depth > 0) {
        // A kill and then a cut lose what was never synced, as long as open has not returned.
        let cut = later.chance.is_some();
        let floor = if cut { point.durable } else { point.floor };
        let later = Point { floor, durable: point.durable, ..later };
        let seed = rng.next();
        let checked = || check(&again, later, history, seed, depth - 1);
        points += catch_unwind(AssertUnwindSafe(checked)).unwrap_or_else(|panic| {
            eprintln!("that was a crash in the recovery from {point:?}:\n{}", tail(clone));
            resume_unwind(panic)
        });
    }
    if depth > 0 {
        // R7: what was found once stays, whatever happens from here on.
        let from = history.end();
        let progress = Arc::new(Progress::new(from));
        let later = watch(clone, &progress, rng.next(), 20, 2);
        let steps = 10 + rng.below(40);
        let writer = work(&db, survived.model, from, rng.next(), steps, progress);
        if rng.percent(50) {
            db.close().unwrap();
            writer.progress.flush(writer.history.end());
        }
        clone.set_hook(None);
        drop(db);
        let later = std::mem::take(&mut *later.lock().unwrap());
        for (clone, point) in later {
            points += check(&clone, point, &writer.history, rng.next(), 0);
        }
    }
    points
}

/// One workload and all its clones; returns how many clones were checked.
fn workload(seed: u64, prepare: impl FnOnce(&CrashFs)) -> u64 {
    let mut rng = Rng::new(seed);
    let disk = CrashFs::new();
    prepare(&disk);
    if rng.percent(50) {
        disk.set_mapped_chunk(1 + rng.below(64));
    }
    let progress = Arc::new(Progress::new(0));
    let every = 20 + rng.below(200);
    let clones = watch(&disk, &progress, rng.next(), every, 12);
    let db = open(&disk, &mut rng).unwrap();
    let steps = 100 + rng.below(500);
    let writer = work(&db, Model::new(), 0, rng.next(), steps, progress);
    if rng.percent(30) {
        db.close().unwrap();
        writer.progress.flush(writer.history.end());
    }
    disk.set_hook(None);
    drop(db);
    let clones = std::mem::take(&mut *clones.lock().unwrap());
    clones.iter().map(|(clone, point)| check(clone, *point, &writer.history, rng.next(), 1)).sum()
}

/// Several writers at once: the positions that writes return give the commit order afterwards.
fn crowd(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let disk = CrashFs::new();
    let db = open(&disk, &mut rng).unwrap();
    let mut model = Model::new();
    harness::write_one(&db, &Op::Create(1), Durability::Process).unwrap();
    harness::write_one(&db, &Op::Create(COUNTERS), Durability::Process).unwrap();
    db.sync().unwrap();
    [Op::Create(1), Op::Create(COUNTERS)].iter().for_each(|op| model.apply(op));
    // By writer: how many writes are acknowledged, and up to which position they are durable.
    let progress: Arc<Vec<[AtomicU64; 2]>> = Arc::new((0..3).map(|_| Default::default()).collect());
    let clones = Arc::new(Mutex::new(Vec::new()));
    let (taken, source, seen) = (clones.clone(), disk.clone(), progress.clone());
    let dice = Mutex::new(Rng::new(rng.next()));
    let every = 20 + rng.below(60);
    disk.set_hook(Some(Arc::new(move |_, _| {
        let (chosen, kind, seed) = {
            let mut dice = dice.lock().unwrap();
            (dice.below(every) == 0, dice.below(5) as usize, dice.next())
        };
        if !chosen || taken.lock().unwrap().len() >= 12 {
            return;
        }
        let floors: Vec<[u64; 2]> =
            seen.iter().map(|of| [0, 1].map(|which| of[which].load(Ordering::SeqCst))).collect();
        let chance = CHANCES.get(kind).copied();
        let clone = match chance {
            Some(chance) => source.crash_clone(seed, chance),
            None => source.kill_clone(),
        };
        taken.lock().unwrap().push((clone, chance, floors));
    })));
    let counter = |writer: usize| format!("writer{writer}").into_bytes();
    let mut writes: Vec<(u64, usize, Vec<Op>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|writer| {
                let (db, model, progress, seed) = (&db, &model, &progress[writer], rng.next());
                scope.spawn(move || {
                    let mut make = Generator::new(seed, 120);
                    let mut written = Vec::new();
                    for number in 1..=120_u64 {
                        let mut ops = make.batch(model, 6);
                        ops.push(count(&counter(writer), number));
                        let durable = make.rng.percent(8);
                        let class = if durable { Durability::Disk } else { Durability::Process };
                        let position = harness::write(db, &ops, class).unwrap();
                        written.push((position, writer, ops));
                        progress[0].store(number, Ordering::SeqCst);
                        if durable {
                            progress[1].store(position, Ordering::SeqCst);
                        }
                        if writer == 0 && make.rng.percent(4) {
                            db.flush().unwrap();
                            progress[1].store(position, Ordering::SeqCst);
                        }
                    }
                    written
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    disk.set_hook(None);
    writes.sort_by_key(|(position, ..)| *position);
    db.close().unwrap();
    let clones = std::mem::take(&mut *clones.lock().unwrap());
    for (clone, chance, floors) in &clones {
        let what = format!("seed {seed}, chance {chance:?}, floors {floors:?}");
        let db = open(clone, &mut rng).unwrap_or_else(|error| panic!("{what}: open: {error}"));
        let found = read_all(&db).unwrap_or_else(|error| panic!("{what}: read: {error}"));
        let counts: Vec<u64> = (0..3).map(|writer| counted(&found, &counter(writer))).collect();
        // The latest write that any counter tells of ends the prefix.
        let mut numbers = [0; 3];
        let (mut end, mut expected) = (0, model.clone());
        for (index, (_, writer, _)) in writes.iter().enumerate() {
            numbers[*writer] += 1;
            if numbers[*writer] == counts[*writer] {
                end = end.max(index + 1);
            }
        }
        writes[..end].iter().for_each(|(.., ops)| expected.apply_all(ops));
        if let Some(wrong) = expected.difference(&found) {
            panic!("{what}: counters {counts:?}: {wrong}");
        }
        let last = end.checked_sub(1).map_or(0, |last| writes[last].0);
        for (floor, count) in floors.iter().zip(&counts) {
            assert!(chance.is_some() || *count >= floor[0], "{what}: {counts:?} after a kill");
            assert!(last >= floor[1], "{what}: durable up to {}, found {last}", floor[1]);
        }
        assert!(db.verify().unwrap().problems.is_empty(), "{what}: verify");
    }
    clones.len() as u64
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("the variable holds a number"))
}

/// Runs workloads until enough points are checked.
fn campaign(name: &str, first: u64, wanted: u64, workload: impl Fn(u64) -> u64 + Sync) {
    if let Some(seed) = number("ESKER_SEED") {
        workload(seed);
        return;
    }
    let first = number("ESKER_FIRST_SEED").unwrap_or(first);
    let (points, seeds) = (AtomicU64::new(0), AtomicU64::new(0));
    parallel::for_each(|number| {
        let seed = first + number;
        let more = catch_unwind(AssertUnwindSafe(|| workload(seed))).unwrap_or_else(|panic| {
            let points = points.load(Ordering::Relaxed);
            eprintln!("{name}: failed after {points} points; replay: ESKER_SEED={seed}");
            resume_unwind(panic)
        });
        seeds.fetch_add(1, Ordering::Relaxed);
        points.fetch_add(more, Ordering::Relaxed) + more < wanted
    });
    let end = first + seeds.into_inner();
    let points = points.into_inner();
    eprintln!("{name}: {points} crash points, seeds {first}..{end}, 0 differences");
}

/// The tests run one after the other: one of them silences panics meanwhile.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn wanted() -> u64 {
    number("ESKER_CRASH_POINTS").unwrap_or(4_000)
}

#[test]
fn what_survives_is_a_prefix_with_all_that_was_durable() {
    let _alone = alone();
    campaign("one writer", 1, wanted(), |seed| workload(seed, |_| {}));
}

#[test]
fn what_survives_of_several_writers_is_a_prefix() {
    let _alone = alone();
    campaign("three writers", 10_001, wanted() / 8, crowd);
}

/// A harness that cannot fail proves nothing: a disk that ignores syncs must be noticed.
#[test]
fn a_disk_that_does_not_sync_is_noticed() {
    type Mutation = (&'static str, fn(&CrashFs));
    let _alone = alone();
    let mutations: [Mutation; 2] = [
        ("ignore_sync_dir", |disk| disk.ignore_sync_dir(true)),
        ("ignore_sync_data", |disk| disk.ignore_sync_data(true)),
    ];
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let noticed: Vec<_> = mutations
        .iter()
        .map(|(name, mutate)| {
            let fails = |seed| catch_unwind(AssertUnwindSafe(|| workload(seed, mutate))).is_err();
            (*name, (1_u64..20).filter(|seed| fails(*seed)).count())
        })
        .collect();
    std::panic::set_hook(hook);
    for (name, count) in noticed {
        eprintln!("{name}: {count} of 19 workloads failed");
        assert!(count > 5, "{name} was noticed by {count} of 19 workloads");
    }
}
