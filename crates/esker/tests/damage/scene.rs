//! Databases to damage: in every class of durability, closed, killed and cut off from power, with
//! branches, named snapshots, entries that expire, operands and range deletes; and a checkpoint. A third
//! of them have tiers, in which runs wait.
//!
//! Each is written in two lives. What stood on the disk at the end of the first one, closed in
//! order, is kept: its files are the *older selves* of the later ones.

use super::{PATH, files, read};
use esker::internals::options::SmallTiers;
use esker::{Db, Durability, Options};
use esker_testkit::harness::{self, HandClock};
use esker_testkit::model::{Model, Op};
use esker_testkit::ops::Generator;
use esker_testkit::{CrashFs, Rng};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The times of the first life, of the second, and of the judgement; some of what was written to
/// live for a while has expired by then.
const TIMES: [u64; 3] = [9_850, 9_950, NOW];
/// The time of the judgement.
pub const NOW: u64 = 10_000;
/// Batches that are written behind the last sync.
const LATE_BATCHES: usize = 6;
/// Where there are tiers, each flush of the second life has so many batches.
const FLUSHED_BATCHES: usize = 4;

/// How the life of a database ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Closed,
    Killed,
    /// The power went, and spared everything.
    Cut,
}

/// Everything that a database shows: itself, and its branches and named snapshots.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    pub main: Model,
    /// By name; whether it is a named snapshot, and what it holds.
    pub forks: BTreeMap<String, (bool, Model)>,
}

impl Contents {
    /// Time goes on; a named snapshot stays at its own.
    fn tick(&mut self, now: u64) {
        self.main.apply(&Op::Tick(now));
        for (snapshot, model) in self.forks.values_mut() {
            if !*snapshot {
                model.apply(&Op::Tick(now));
            }
        }
    }
}

/// A database to damage.
pub struct Scene {
    pub name: String,
    pub disk: CrashFs,
    pub end: End,
    /// What would be right to find, the latest last: more than one where the end of the log may be
    /// torn off.
    pub states: Vec<Contents>,
    /// What it held before them, of which only the log knows that more followed.
    pub known_to_log: Vec<Contents>,
    /// Its files at the end of its first life.
    pub older: BTreeMap<PathBuf, Vec<u8>>,
    /// Bytes that turned cold in its first life.
    pub bytes_cooled: u64,
    /// Its tiers, if it has any.
    pub tiers: Option<SmallTiers>,
    /// How many runs wait in them.
    pub waiting: u64,
}

impl Scene {
    /// The options under which it is judged.
    pub fn options(&self, disk: &CrashFs) -> Options {
        options_at(disk, TIMES[2], self.tiers)
    }

    /// Counts the runs that wait on its disk, without a change of anything there.
    fn count_waiting(&mut self) {
        let mut options = self.options(&self.disk.kill_clone());
        options.read_only = true;
        let db = Db::open_with(PATH, options).unwrap();
        self.waiting = waiting(&db);
        db.close().unwrap();
    }
}

fn options_at(disk: &CrashFs, now: u64, tiers: Option<SmallTiers>) -> Options {
    let clock = Arc::new(HandClock::default());
    clock.set(now);
    options_with(disk, clock, tiers)
}

fn options_with(disk: &CrashFs, clock: Arc<HandClock>, tiers: Option<SmallTiers>) -> Options {
    let mut options = super::options(disk);
    options.small_tiers = tiers;
    if tiers.is_some() {
        // So little data makes more than one span only of small partitions.
        options.partition_bytes = Some(4 << 10);
        options.segment_bytes = 2 << 10;
    }
    options.cold_after = Some(Duration::from_millis(20));
    options.small_cold = true;
    options.separate_values_from = Some(40);
    options.clock = clock;
    // What is synced when is part of the scene.
    options.sync_interval = None;
    options
}

/// The tiers of a scene. Every flush goes to the top one, and a single run is never due.
fn draw_tiers(rng: &mut Rng) -> SmallTiers {
    SmallTiers {
        count: 1 + rng.below(3) as usize,
        fan_out: 2 + rng.below(2) as usize,
        runs: 2 + rng.below(5) as usize,
        direct: 0,
        tightens: false,
    }
}

/// The runs that wait in the tiers of all keyspaces.
fn waiting(db: &Db) -> u64 {
    db.stats().trees.iter().flat_map(|tree| &tree.tiers).map(|tier| tier.runs).sum()
}

struct Writer {
    make: Generator,
    class: Durability,
    contents: Contents,
    /// Whether there are tiers.
    tiered: bool,
}

impl Writer {
    fn batches(&mut self, db: &Db, count: usize) {
        for _ in 0..count {
            let ops = self.make.batch(&self.contents.main, 5);
            harness::write(db, &ops, self.class).unwrap();
            self.contents.main.apply_all(&ops);
        }
    }

    /// As [`Self::batches`]; where there are tiers, with flushes in between, each of which makes runs
    /// that wait there.
    fn flushed_batches(&mut self, db: &Db, count: usize) {
        for number in 1..=count {
            self.batches(db, 1);
            if self.tiered && number % FLUSHED_BATCHES == 0 {
                db.flush().unwrap();
                self.rest(db);
            }
        }
    }

    /// Waits for what follows from a flush: which runs wait in a tier must not depend on how fast they
    /// are pushed.
    fn rest(&self, db: &Db) {
        if self.tiered {
            db.wait_until_idle().unwrap();
        }
    }

    /// Some values in pieces.
    fn pieces(&mut self, db: &Db) {
        for number in 0..3usize {
            let value = self.make.value().repeat(1 + (3000 + number) / 30);
            let key = format!("k{number}").into_bytes();
            let keyspace = harness::keyspace(db, 0).unwrap();
            keyspace.insert_reader(&key, value.as_slice()).unwrap();
            self.contents.main.apply(&Op::Put(0, key, value));
            self.rest(db);
        }
    }

    fn branch(&mut self, db: &Db, name: &str) {
        let branch = db.branch(name).unwrap();
        let mut model = self.contents.main.clone();
        for _ in 0..4 {
            let ops = self.make.batch(&model, 5);
            harness::write(&branch, &ops, self.class).unwrap();
            model.apply_all(&ops);
        }
        self.contents.forks.insert(name.to_owned(), (false, model));
        self.rest(db);
    }

    fn snapshot(&mut self, db: &Db, name: &str) {
        db.snapshot_named(name).unwrap();
        self.contents.forks.insert(name.to_owned(), (true, self.contents.main.clone()));
        self.rest(db);
    }

    fn first_life(&mut self, db: &Db) {
        for slot in [1, 2] {
            harness::write_one(db, &Op::Create(slot), self.class).unwrap();
            self.contents.main.apply(&Op::Create(slot));
        }
        self.batches(db, 30);
        db.flush().unwrap();
        db.compact().unwrap();
        self.branch(db, "early");
        self.snapshot(db, "then");
        self.batches(db, 8);
    }

    fn second_life(&mut self, db: &Db) {
        self.flushed_batches(db, 20);
        assert!(db.drop_branch("early").unwrap());
        self.contents.forks.remove("early");
        db.flush().unwrap();
        self.rest(db);
        self.pieces(db);
        self.branch(db, "late");
        self.flushed_batches(db, 5);
        self.snapshot(db, "now");
        self.flushed_batches(db, 5);
        if self.tiered {
            self.leave_runs(db);
        }
    }

    /// Leaves nothing in memory, and runs in the tiers: a push may just have taken all of them down to
    /// the partitions.
    fn leave_runs(&mut self, db: &Db) {
        db.flush().unwrap();
        self.rest(db);
        while waiting(db) == 0 {
            self.flushed_batches(db, FLUSHED_BATCHES);
        }
    }
}

/// A database of this class that ended so.
fn build(seed: u64, class: Durability, end: End, tiers: Option<SmallTiers>) -> Scene {
    let disk = CrashFs::new();
    let contents = Contents { main: Model::new(), forks: BTreeMap::new() };
    let make = Generator::new(seed, 60);
    let mut writer = Writer { make, class, contents, tiered: tiers.is_some() };
    writer.contents.tick(TIMES[0]);
    let clock = Arc::new(HandClock::default());
    clock.set(TIMES[0]);
    let db = Db::open_with(PATH, options_with(&disk, clock.clone(), tiers)).unwrap();
    writer.first_life(&db);
    db.wait_until_idle().unwrap();
    // What nobody reads turns cold, with dictionaries.
    for step in 1..=4 {
        clock.set(TIMES[0] + 15 * step);
        writer.contents.tick(TIMES[0] + 15 * step);
        db.wait_until_idle().unwrap();
    }
    // Where all of it is small, it may not pay.
    let bytes_cooled = db.stats().bytes_cooled;
    db.close().unwrap();
    let older = all_files(&disk);
    writer.contents.tick(TIMES[1]);
    let db = Db::open_with(PATH, options_at(&disk, TIMES[1], tiers)).unwrap();
    writer.second_life(&db);
    db.wait_until_idle().unwrap();
    db.sync().unwrap();
    let mut states = vec![writer.contents.clone()];
    for _ in 0..LATE_BATCHES {
        writer.batches(&db, 1);
        states.push(writer.contents.clone());
    }
    let disk = match end {
        End::Closed => {
            db.close().unwrap();
            disk.kill_clone()
        }
        End::Killed => disk.kill_clone(),
        End::Cut => disk.crash_clone(seed, 100),
    };
    let mut known_to_log = Vec::new();
    match (end, class) {
        (End::Closed, _) => drop(states.drain(..LATE_BATCHES)),
        // What is not logged is not there.
        (_, Durability::Buffered) => states.truncate(1),
        // Only the very last record may pass for a torn end: of the others it is known that they
        // were published, or synced.
        (End::Killed, _) | (_, Durability::Disk) => {
            known_to_log.extend(states.drain(..LATE_BATCHES - 1));
        }
        (End::Cut, _) => {}
    }
    states.iter_mut().chain(&mut known_to_log).for_each(|state| state.tick(TIMES[2]));
    let name = match tiers {
        None => format!("{class:?} {end:?}"),
        Some(tiers) => format!("{class:?} {end:?} with {tiers:?}"),
    };
    let waiting = 0;
    let mut scene =
        Scene { name, disk, end, states, known_to_log, older, bytes_cooled, tiers, waiting };
    scene.count_waiting();
    assert!(tiers.is_none() || scene.waiting > 0, "{}: no run waits", scene.name);
    scene
}

/// A checkpoint, moved to where every database stands.
fn checkpoint(seed: u64, tiers: Option<SmallTiers>) -> Scene {
    let mut scene = build(seed, Durability::Process, End::Closed, tiers);
    let db = Db::open_with(PATH, scene.options(&scene.disk)).unwrap();
    if tiers.is_some() {
        // Runs that are due would be in one tier or the other.
        db.wait_until_idle().unwrap();
    }
    db.checkpoint("/copy").unwrap();
    db.close().unwrap();
    let disk = CrashFs::new();
    for (path, bytes) in files_of(&scene.disk, Path::new("/copy")) {
        let to = Path::new(PATH).join(path.strip_prefix("/copy").unwrap());
        make_directories(&disk, &to);
        super::replace(&disk, &to, &bytes);
    }
    scene.disk = disk;
    scene.name = match tiers {
        None => "checkpoint".to_owned(),
        Some(tiers) => format!("checkpoint with {tiers:?}"),
    };
    scene.count_waiting();
    scene
}

fn make_directories(disk: &CrashFs, path: &Path) {
    use esker::fs::Fs;
    let parents: Vec<_> = path.ancestors().skip(1).collect();
    for parent in parents.iter().rev().filter(|parent| parent.parent().is_some()) {
        disk.create_dir(parent).unwrap();
    }
}

pub fn all_files(disk: &CrashFs) -> BTreeMap<PathBuf, Vec<u8>> {
    files_of(disk, Path::new(PATH))
}

fn files_of(disk: &CrashFs, path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files(disk, path).into_iter();
    files.map(|(path, _)| (path.clone(), read(disk, &path))).collect()
}

/// All scenes.
pub fn all(seed: u64) -> Vec<Scene> {
    // Tiers are drawn apart: what a seed means for all else stays.
    let (mut rng, mut shapes) = (Rng::new(seed), Rng::of_thread(seed, 1));
    let mut scenes = Vec::new();
    for class in [Durability::Buffered, Durability::Process, Durability::Disk] {
        let tiered = shapes.below(3);
        for (number, end) in (0..).zip([End::Closed, End::Killed, End::Cut]) {
            let tiers = (number == tiered).then(|| draw_tiers(&mut shapes));
            scenes.push(build(rng.next(), class, end, tiers));
        }
    }
    let tiers = (shapes.below(3) == 0).then(|| draw_tiers(&mut shapes));
    scenes.push(checkpoint(rng.next(), tiers));
    assert!(scenes.iter().any(|scene| scene.bytes_cooled > 0), "nothing turned cold");
    scenes
}
