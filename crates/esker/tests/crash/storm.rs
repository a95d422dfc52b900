//! Everything at once: calls that fail, a disk that fills up, blocks that are torn, a kernel that
//! writes back when it likes, kills and power cuts (C1, C2, C4, C7; R3 to R8, R11, R12, R24).
//!
//! One thread writes to a database and its branches, waits for its turn or does not, ingests, writes values in
//! pieces, makes and drops branches, named snapshots and checkpoints, flushes, compacts, closes and reopens, on
//! a simulated disk under a [`FaultFs`]. Images of the disk are taken at any of its operations: those inside
//! an open, a close, a checkpoint or the making and dropping of a branch are among them. Each is
//! opened, at times with a call that fails, and must hold what the history allows:
//!
//! 1. *Lives.* What one open found is the base of a history; the steps that follow are its writes.
//!    When the database ends (it was closed, or a failure ended writing), the images are judged by
//!    that history, and the next open begins another.
//! 2. *Floor and ceiling.* A kill leaves every step that had returned, a power cut every step that
//!    was durable; neither leaves more than had begun, nor a later step without an earlier one.
//! 3. *Failed steps* happened as a whole or not at all (C2). A write leaves a key of its own, a
//!    branch its name, so that the image itself says which of the two. A write that did not wait and would have
//!    had to has written nothing, and of an ingestion that failed nothing is ever there, unless its failure
//!    ended writing.
//! 4. *A failed sync that drops the cache* takes what was not durable from the process, too. Then
//!    open may refuse the hole that it leaves in the log, and keeps the prefix if told to.

use super::{campaign, number, tail};
use esker::repair::salvage;
use esker::{Db, Durability, ErrorKind, LogKind, Options, Recovery};
use esker_testkit::crashfs::Tear;
use esker_testkit::faultfs::{Effect, Op, Rule};
use esker_testkit::harness::{is_poisoned, tiny_options, with_tiers};
use esker_testkit::{CrashFs, FaultFs, Rng};
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATH: &str = "/db";
const SPACES: [&str; 2] = ["default", "other"];

/// By keyspace and key.
type Map = BTreeMap<(usize, Vec<u8>), Vec<u8>>;
/// The database itself has the empty name; named snapshots begin with `s`.
type World = BTreeMap<String, Map>;

/// What a step does to the world.
#[derive(Debug, Clone)]
enum Change {
    Nothing,
    /// Entries of a root, removed where there is no value; the first one is its mark.
    Write(String, Vec<(usize, Vec<u8>, Option<Vec<u8>>)>),
    /// A range of the first keyspace, and the mark.
    RemoveRange(String, Vec<u8>, Vec<u8>, Vec<u8>),
    Ingest(Ingested),
    Copy(String, String),
    Drop(String),
    /// The removal of the mark of an earlier write, which is in one root only.
    Unmark(String, Vec<u8>),
}

/// What is ingested to a root: in the first keyspace a mark, ranges that are removed, and entries in the order of
/// their keys, removed where there is no value.
#[derive(Debug, Clone)]
struct Ingested {
    root: String,
    mark: Vec<u8>,
    ranges: Vec<(usize, Vec<u8>, Vec<u8>)>,
    entries: BTreeMap<(usize, Vec<u8>), Option<Vec<u8>>>,
}

impl Ingested {
    fn apply(&self, world: &mut World) {
        let Some(map) = world.get_mut(&self.root) else { return };
        for (space, low, high) in &self.ranges {
            map.retain(|(of, key), _| of != space || key < low || key >= high);
        }
        for (place, value) in &self.entries {
            match value {
                Some(value) => map.insert(place.clone(), value.clone()),
                None => map.remove(place),
            };
        }
    }

    /// Ingests it, in one ingestion or, from the entry with this number on, in two that are joined; an ingestion
    /// that is not `whole` is not committed.
    fn run(&self, db: &Db, cut: Option<usize>, whole: bool) -> esker::Result<bool> {
        let db = root(db, &self.root)?;
        let spaces = [db.keyspace(SPACES[0])?, db.keyspace(SPACES[1])?];
        let mut ingestion = db.ingest()?;
        for (space, low, high) in &self.ranges {
            ingestion.remove_range(&spaces[*space], &low[..]..&high[..])?;
        }
        let mut other = cut.map(|_| db.ingest()).transpose()?;
        for (number, ((space, key), value)) in self.entries.iter().enumerate() {
            let behind = cut.is_some_and(|cut| number >= cut);
            let to = other.as_mut().filter(|_| behind).unwrap_or(&mut ingestion);
            match value {
                // Half of the long values come in pieces.
                Some(value) if number % 2 == 0 => {
                    to.insert_reader(&spaces[*space], key, &value[..]).map(drop)
                }
                Some(value) => to.insert(&spaces[*space], key, value),
                None => to.remove(&spaces[*space], key),
            }?;
        }
        if let Some(other) = other {
            ingestion.join(other)?;
        }
        if whole {
            ingestion.commit()?;
        }
        Ok(whole)
    }
}

impl Change {
    fn apply(&self, world: &mut World) {
        match self {
            Self::Nothing => {}
            Self::Write(root, entries) => {
                let Some(map) = world.get_mut(root) else { return };
                for (space, key, value) in entries {
                    match value {
                        Some(value) => map.insert((*space, key.clone()), value.clone()),
                        None => map.remove(&(*space, key.clone())),
                    };
                }
            }
            Self::RemoveRange(root, low, high, mark) => {
                let Some(map) = world.get_mut(root) else { return };
                map.retain(|(space, key), _| *space != 0 || key < low || key >= high);
                map.insert((0, mark.clone()), b"removed".to_vec());
            }
            Self::Ingest(ingested) => ingested.apply(world),
            Self::Copy(from, to) => {
                let Some(map) = world.get(from).cloned() else { return };
                world.insert(to.clone(), map);
            }
            Self::Drop(name) => drop(world.remove(name)),
            Self::Unmark(root, mark) => {
                let Some(map) = world.get_mut(root) else { return };
                map.remove(&(0, mark.clone()));
            }
        }
    }

    /// Whether a world shows that it happened, if that was not certain.
    fn shows_in(&self, found: &World) -> bool {
        let marked =
            |mark: &Vec<u8>| found.values().any(|map| map.contains_key(&(0, mark.clone())));
        match self {
            Self::Nothing => false,
            Self::Write(_, entries) => marked(&entries[0].1),
            Self::RemoveRange(.., mark) => marked(mark),
            Self::Ingest(ingested) => marked(&ingested.mark),
            Self::Copy(_, to) => found.contains_key(to),
            Self::Drop(name) => !found.contains_key(name),
            Self::Unmark(root, mark) => {
                found.get(root).is_some_and(|map| !map.contains_key(&(0, mark.clone())))
            }
        }
    }
}

/// The steps of one life.
#[derive(Default)]
struct History {
    base: World,
    /// What each did, and whether it returned without an error.
    steps: Vec<(Change, bool)>,
}

impl History {
    /// After how many steps the world was as `found`, of those between `low` and `high`.
    fn locate(&self, found: &World, low: usize, high: usize) -> Result<usize, String> {
        let mut world = self.base.clone();
        let mut first = None;
        for number in 0..=high.min(self.steps.len()) {
            if number >= low {
                if world == *found {
                    return Ok(number);
                }
                first.get_or_insert_with(|| difference(found, &world));
            }
            if let Some((change, certain)) = self.steps.get(number)
                && (*certain || change.shows_in(found))
            {
                change.apply(&mut world);
            }
        }
        let first = first.unwrap_or_default();
        Err(format!("not what stood after any of the steps {low} to {high}; after {low}: {first}"))
    }
}

fn difference(found: &World, expected: &World) -> String {
    let mut text = String::new();
    let names: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    for name in names {
        match (found.get(name), expected.get(name)) {
            (Some(found), Some(expected)) if found != expected => {
                let show =
                    |(space, key): &(usize, Vec<u8>)| format!("{space}/{}", key.escape_ascii());
                let more = found.iter().filter(|(key, value)| expected.get(*key) != Some(value));
                let more: Vec<_> = more.map(|(key, _)| show(key)).take(12).collect();
                let lost = expected.keys().filter(|key| !found.contains_key(*key));
                let lost: Vec<_> = lost.map(show).take(12).collect();
                text += &format!("[{name:?}: more or other {more:?}, lost {lost:?}] ");
            }
            (Some(_), Some(_)) => {}
            (found, _) => text += &format!("[{name:?} is there: {}] ", found.is_some()),
        }
    }
    text
}

/// How far a life has come, for the thread that takes images of the disk meanwhile.
#[derive(Default)]
struct Progress {
    begun: AtomicUsize,
    ended: AtomicUsize,
    durable: AtomicUsize,
    /// Whether a sync may fail in such a way that the cache is dropped.
    may_drop: AtomicBool,
    /// How many calls had failed before this life.
    failed_before: usize,
    checkpoints: Mutex<Vec<Checkpoint>>,
}

impl Progress {
    /// A life that begins now.
    fn from_now(faults: &FaultFs) -> Arc<Self> {
        Arc::new(Self { failed_before: faults.fired().len(), ..Self::default() })
    }

    /// Adds a rule, and remembers what may come of it.
    fn add(&self, faults: &FaultFs, (rule, drops): (Rule, bool)) {
        self.may_drop.fetch_or(drops, Ordering::SeqCst);
        faults.add(rule);
    }

    /// Whether a failed sync may have dropped what was in the cache.
    fn dropped(&self, faults: &FaultFs) -> bool {
        let failed = faults.fired();
        let syncs = failed[self.failed_before..].iter().any(|failed| failed.op == Op::SyncData);
        syncs && self.may_drop.load(Ordering::SeqCst)
    }
}

/// A checkpoint, and what it holds if it is one.
#[derive(Debug, Clone)]
struct Checkpoint {
    path: String,
    world: World,
    returned: bool,
}

/// What a crash left.
struct Image {
    disk: CrashFs,
    /// For people.
    what: String,
    killed: bool,
    low: usize,
    /// The floor if the power goes before the recovery is complete.
    durable: usize,
    high: usize,
    dropped: bool,
    checkpoint: Option<Checkpoint>,
}

type Images = Arc<Mutex<Vec<Image>>>;

/// Takes images at about one in `every` operations of `disk`, and at one in six of its syncs.
fn watch(
    disk: &CrashFs,
    faults: &FaultFs,
    progress: &Arc<Progress>,
    seed: u64,
    (every, most): (u64, usize),
) -> Images {
    let images = Images::default();
    let (taken, progress, source) = (images.clone(), progress.clone(), disk.clone());
    let faults = faults.clone();
    let dice = Mutex::new(Rng::new(seed));
    disk.set_hook(Some(Arc::new(move |operation, what| {
        let (chosen, killed, percent, seed) = {
            let mut dice = dice.lock().unwrap();
            let chosen = dice.below(if what.contains("====") { 6 } else { every }) == 0;
            (chosen, dice.percent(25), [0, 30, 70, 100][dice.below(4) as usize], dice.next())
        };
        if !chosen || taken.lock().unwrap().len() >= most {
            return;
        }
        // What is known now is in the image, which is taken after this look; what has not begun
        // when it was taken is not.
        let ended = progress.ended.load(Ordering::SeqCst);
        let durable = progress.durable.load(Ordering::SeqCst);
        let checkpoint = progress.checkpoints.lock().unwrap().last().cloned();
        let disk = if killed { source.kill_clone() } else { source.crash_clone(seed, percent) };
        let high = progress.begun.load(Ordering::SeqCst);
        let dropped = killed && progress.dropped(&faults);
        let low = if killed && !dropped { ended } else { durable };
        let what = format!("operation {operation} ({what}), killed {killed}, {percent} %");
        let image = Image { disk, what, killed, low, durable, high, dropped, checkpoint };
        taken.lock().unwrap().push(image);
    })));
    images
}

fn options(faults: &FaultFs, rng: &mut Rng) -> Options {
    let mut options = tiny_options();
    options.separate_values_from = Some(40);
    if rng.percent(35) {
        with_tiers(&mut options, rng);
    }
    options.fs = faults.as_fs();
    options.log = if rng.percent(50) { LogKind::Plain } else { LogKind::Mapped };
    options.sync_interval = rng.percent(50).then_some(Duration::from_millis(1));
    options
}

fn root(db: &Db, name: &str) -> esker::Result<Db> {
    if name.is_empty() { Ok(db.clone()) } else { db.open_branch(name) }
}

fn read_root(db: &Db) -> esker::Result<Map> {
    let mut map = Map::new();
    let names = db.keyspaces()?;
    for (space, name) in
        SPACES.iter().enumerate().filter(|(_, name)| names.iter().any(|n| n == *name))
    {
        for entry in db.keyspace(name)?.iter()? {
            let (key, value) = entry?;
            map.insert((space, key), value);
        }
    }
    Ok(map)
}

fn read(db: &Db) -> esker::Result<World> {
    let mut world = World::from([(String::new(), read_root(db)?)]);
    for name in db.branches()? {
        world.insert(name.clone(), read_root(&db.open_branch(&name)?)?);
    }
    for name in db.named_snapshots()? {
        world.insert(name.clone(), read_root(&db.open_named_snapshot(&name)?)?);
    }
    Ok(world)
}

/// What a device that fails may make of a call.
fn is_expected(error: &esker::Error) -> bool {
    match error {
        esker::Error::Poisoned { cause } => is_expected(cause),
        error => matches!(error.kind(), ErrorKind::Io | ErrorKind::DiskFull | ErrorKind::Closed),
    }
}

/// A call that will fail, and whether it drops what is in the cache.
fn fault(rng: &mut Rng) -> (Rule, bool) {
    let likely = [Op::Write, Op::SyncData, Op::SyncDir, Op::Create, Op::Allocate];
    let op = match rng.percent(70) {
        true => likely[rng.below(likely.len() as u64) as usize],
        false => Op::ALL[rng.below(Op::ALL.len() as u64) as usize],
    };
    let effect = match (op, rng.below(4)) {
        (Op::SyncData, 0) => Effect::FailSync { revert: true },
        (Op::SyncData, 1 | 2) => Effect::FailSync { revert: false },
        (Op::Write, 0 | 1) => Effect::ShortWrite(rng.below(600) as usize, io::ErrorKind::Other),
        (_, 2) => Effect::Error(io::ErrorKind::StorageFull),
        _ => Effect::Error(io::ErrorKind::Other),
    };
    let drops = matches!(effect, Effect::FailSync { revert: true });
    let rule = Rule::new(op, effect).after(rng.below(12));
    (if rng.percent(20) { rule.persistent() } else { rule }, drops)
}

/// One thread's life with a database.
struct Life {
    faults: FaultFs,
    disk: CrashFs,
    progress: Arc<Progress>,
    history: History,
    world: World,
    rng: Rng,
    /// Numbers marks and names, over all lives.
    serial: usize,
    reached: Reached,
}

/// What lives came to.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    ingestions: u64,
    /// Values that were written in pieces.
    pieces: u64,
    /// Ingestions that failed and left nothing.
    without_trace: u64,
    /// Writes that did not wait and would have had to.
    refused: u64,
}

impl Reached {
    fn add(&mut self, other: Self) {
        self.ingestions += other.ingestions;
        self.pieces += other.pieces;
        self.without_trace += other.without_trace;
        self.refused += other.refused;
    }
}

impl Life {
    /// Notes a step around `call`, which says whether everything so far is durable. An error if
    /// the database takes no more writes.
    fn step(
        &mut self,
        change: Change,
        call: impl FnOnce() -> esker::Result<bool>,
    ) -> Result<(), esker::Error> {
        let number = self.history.steps.len() + 1;
        self.progress.begun.store(number, Ordering::SeqCst);
        let result = call();
        let certain = match &result {
            Ok(_) => {
                change.apply(&mut self.world);
                (change, true)
            }
            Err(esker::Error::WouldBlock { .. }) => (Change::Nothing, true),
            Err(_) => (change, false),
        };
        self.history.steps.push(certain);
        self.progress.ended.store(number, Ordering::SeqCst);
        match result {
            Ok(true) => self.progress.durable.store(number, Ordering::SeqCst),
            Ok(false) => {}
            Err(esker::Error::WouldBlock { .. }) => self.reached.refused += 1,
            Err(error) => {
                assert!(is_expected(&error), "{error:?}");
                if !matches!(error.kind(), ErrorKind::DiskFull) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn key(&mut self) -> Vec<u8> {
        format!("{:03}", self.rng.below(150)).into_bytes()
    }

    fn writable(&mut self) -> String {
        let names: Vec<_> = self.world.keys().filter(|name| !name.starts_with('s')).collect();
        names[self.rng.below(names.len() as u64) as usize].clone()
    }

    fn write(&mut self, db: &Db) -> Result<(), esker::Error> {
        let name = self.writable();
        self.serial += 1;
        let mut entries =
            vec![(0, format!("!{:06}", self.serial).into_bytes(), Some(b"m".to_vec()))];
        for _ in 0..self.rng.below(4) {
            let (space, key) = (self.rng.below(2) as usize, self.key());
            let len = if self.rng.percent(5) { 3_000 } else { self.rng.below(200) };
            let value = vec![self.serial as u8; len as usize];
            entries.push((space, key, self.rng.percent(80).then_some(value)));
        }
        let disk = self.rng.percent(12);
        let waits = self.rng.percent(75);
        let alone = self.rng.percent(30);
        if alone {
            entries.truncate(1);
        }
        self.step(Change::Write(name.clone(), entries.clone()), || {
            let db = root(db, &name)?;
            if alone && !waits && !disk {
                return db.try_insert(&entries[0].1, "m").map(|()| false);
            }
            let mut batch = esker::Batch::new();
            for (space, key, value) in &entries {
                let keyspace = db.keyspace(SPACES[*space])?;
                match value {
                    Some(value) => batch.insert(&keyspace, key, value),
                    None => batch.remove(&keyspace, key),
                }
            }
            let class = if disk { Durability::Disk } else { Durability::Process };
            match waits {
                true => db.write_with(batch, class),
                false => db.try_write_with(batch, class),
            }?;
            Ok(disk)
        })
    }

    /// Writes without a wait until a write is refused, or enough is written.
    fn flood(&mut self, db: &Db) -> Result<(), esker::Error> {
        let name = self.writable();
        let refused = self.reached.refused;
        for _ in 0..60 {
            self.serial += 1;
            let mark = format!("!{:06}", self.serial).into_bytes();
            let value = vec![self.serial as u8; 3_000];
            let change = Change::Write(name.clone(), vec![(0, mark.clone(), Some(value.clone()))]);
            self.step(change, || root(db, &name)?.try_insert(&mark, &value).map(|()| false))?;
            if self.reached.refused > refused {
                break;
            }
        }
        Ok(())
    }

    /// Removes a key without a wait. It has no mark of its own, so it removes that of another write, which is
    /// there in one root only; what becomes of it if it fails is seen by that.
    fn try_remove(&mut self, db: &Db) -> Result<(), esker::Error> {
        let name = self.writable();
        let others = |key: &(usize, Vec<u8>)| {
            self.world.iter().filter(|(_, map)| map.contains_key(key)).count() == 1
        };
        let map = &self.world[&name];
        let marks = map.keys().filter(|key| key.0 == 0 && key.1.starts_with(b"!"));
        let Some((_, mark)) = marks.rev().find(|key| others(key)).cloned() else { return Ok(()) };
        self.step(Change::Unmark(name.clone(), mark.clone()), || {
            root(db, &name)?.try_remove(&mark).map(|()| false)
        })
    }

    /// Ingests to both keyspaces.
    fn ingest(&mut self, db: &Db) -> Result<(), esker::Error> {
        self.serial += 1;
        let root = self.writable();
        let mark = format!("!{:06}", self.serial).into_bytes();
        let mut entries = BTreeMap::from([((0, mark.clone()), Some(b"ingested".to_vec()))]);
        for _ in 0..self.rng.below(30) {
            let place = (self.rng.below(2) as usize, self.key());
            let len = if self.rng.percent(5) { 5_000 } else { self.rng.below(200) };
            let value = vec![self.serial as u8; len as usize];
            entries.insert(place, self.rng.percent(85).then_some(value));
        }
        let mut ranges = Vec::new();
        for _ in 0..self.rng.below(3) {
            let (low, high) = (self.key(), self.key());
            ranges.push((self.rng.below(2) as usize, low.clone().min(high.clone()), low.max(high)));
        }
        let cut = self.rng.percent(40).then(|| self.rng.below(entries.len() as u64) as usize);
        let whole = self.rng.percent(85);
        self.at_times_a_fault();
        let ingested = Ingested { root, mark, ranges, entries };
        let change = if whole { Change::Ingest(ingested.clone()) } else { Change::Nothing };
        let result = self.step(change, || ingested.run(db, cut, whole));
        self.reached.ingestions += u64::from(whole && self.was_done());
        self.check_ingestion(db, (&ingested.root, &ingested.mark));
        result
    }

    /// Writes a value in pieces.
    fn write_in_pieces(&mut self, db: &Db) -> Result<(), esker::Error> {
        let name = self.writable();
        self.serial += 1;
        let mark = format!("!{:06}", self.serial).into_bytes();
        let value = vec![self.serial as u8; 5_000 + self.rng.below(20_000) as usize];
        let change = Change::Write(name.clone(), vec![(0, mark.clone(), Some(value.clone()))]);
        let result =
            self.step(change, || root(db, &name)?.insert_reader(&mark, &value[..]).map(|_| true));
        self.reached.pieces += u64::from(self.was_done());
        self.check_ingestion(db, (&name, &mark));
        result
    }

    /// Few steps are ingestions, so that a call of one fails is rare without this.
    fn at_times_a_fault(&mut self) {
        if self.rng.percent(30) {
            self.progress.add(&self.faults, fault(&mut self.rng));
        }
    }

    /// Whether the latest step returned without an error.
    fn was_done(&self) -> bool {
        self.history.steps.last().is_some_and(|(_, certain)| *certain)
    }

    /// If the latest step was an ingestion that failed, nothing of it is there, now or after a crash, unless the
    /// failure ended writing: then the next open decides.
    fn check_ingestion(&mut self, db: &Db, (name, mark): (&str, &[u8])) {
        if self.was_done() || is_poisoned(db) {
            return;
        }
        self.reached.without_trace += 1;
        if let Ok(found) = root(db, name).and_then(|root| root.get(mark)) {
            assert_eq!(found, None, "an ingestion failed and is visible");
        }
        if let Some(step) = self.history.steps.last_mut() {
            *step = (Change::Nothing, true);
        }
    }

    fn remove_range(&mut self, db: &Db) -> Result<(), esker::Error> {
        let name = self.writable();
        self.serial += 1;
        let (low, high) = (self.key(), self.key());
        let mark = format!("!{:06}", self.serial).into_bytes();
        let change = Change::RemoveRange(name.clone(), low.clone(), high.clone(), mark.clone());
        self.step(change, || {
            let db = root(db, &name)?;
            let keyspace = db.keyspace(SPACES[0])?;
            let mut batch = esker::Batch::new();
            batch.remove_range(&keyspace, &low[..]..&high[..])?;
            batch.insert(&keyspace, &mark, "removed");
            db.write_with(batch, Durability::Process).map(|_| false)
        })
    }

    fn copy(&mut self, db: &Db) -> Result<(), esker::Error> {
        let from = self.writable();
        self.serial += 1;
        let snapshot = self.rng.percent(40);
        let to = format!("{}{}", if snapshot { 's' } else { 'b' }, self.serial);
        self.step(Change::Copy(from.clone(), to.clone()), || {
            let parent = root(db, &from)?;
            if snapshot {
                parent.snapshot_named(&to).map(drop)
            } else {
                parent.branch(&to).map(drop)
            }?;
            Ok(true)
        })
    }

    fn drop_one(&mut self, db: &Db) -> Result<(), esker::Error> {
        let names: Vec<_> = self.world.keys().filter(|name| !name.is_empty()).cloned().collect();
        let Some(name) = names.get(self.rng.below(names.len().max(1) as u64) as usize) else {
            return Ok(());
        };
        self.step(Change::Drop(name.clone()), || {
            if name.starts_with('s') {
                db.drop_named_snapshot(name)
            } else {
                db.drop_branch(name)
            }?;
            Ok(true)
        })
    }

    fn checkpoint(&mut self, db: &Db) -> Result<(), esker::Error> {
        self.serial += 1;
        let path = format!("/copy{}", self.serial);
        let made = Checkpoint { path: path.clone(), world: self.world.clone(), returned: false };
        let progress = self.progress.clone();
        progress.checkpoints.lock().unwrap().push(made);
        let result = self.step(Change::Nothing, || db.checkpoint(&path).map(|()| true));
        let mut list = progress.checkpoints.lock().unwrap();
        match self.history.steps.last() {
            Some((_, true)) => list.last_mut().into_iter().for_each(|made| made.returned = true),
            // What a failed one leaves is not looked at.
            _ => drop(list.pop()),
        }
        result
    }

    /// One random step, and at times a change of the weather.
    fn go(&mut self, db: &Db) -> Result<(), esker::Error> {
        match self.rng.below(400) {
            0..=5 => self.progress.add(&self.faults, fault(&mut self.rng)),
            6..=11 => {
                let left = self.rng.below(96 << 10);
                self.disk.set_capacity(Some(self.disk.used() + left));
            }
            12..=40 => self.fair_weather(),
            _ => {}
        }
        match self.rng.below(200) {
            0..=3 if self.world.len() < 6 => self.copy(db),
            4..=7 => self.drop_one(db),
            8..=14 => self.remove_range(db),
            15 => self.checkpoint(db),
            16..=19 => self.step(Change::Nothing, || db.flush().map(|()| true)),
            20 => self.step(Change::Nothing, || db.compact().map(|()| true)),
            21..=24 => self.step(Change::Nothing, || db.sync().map(|()| true)),
            28..=34 => self.ingest(db),
            35..=37 => self.write_in_pieces(db),
            38..=42 => self.try_remove(db),
            43 => self.flood(db),
            25..=27 => match read(db) {
                Ok(found) => {
                    assert!(found == self.world, "live: {}", difference(&found, &self.world));
                    Ok(())
                }
                Err(error) if is_expected(&error) => Err(error),
                Err(error) => panic!("live: {error}"),
            },
            _ => self.write(db),
        }
    }

    fn fair_weather(&self) {
        self.faults.clear();
        self.disk.set_capacity(None);
    }

    /// Opens the database: with what fails at the moment, and then, if it must be, without.
    fn open(&mut self) -> Db {
        self.faults.forget_failed_syncs();
        if self.rng.percent(50) {
            self.fair_weather();
        }
        match Db::open_with(PATH, options(&self.faults, &mut self.rng)) {
            Ok(db) => return db,
            Err(error) if is_expected(&error) => {}
            Err(error) => assert!(self.progress.dropped(&self.faults), "open: {error}"),
        }
        self.fair_weather();
        self.faults.forget_failed_syncs();
        let options = options(&self.faults, &mut self.rng);
        reopen(options, self.progress.dropped(&self.faults)).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// Opens what is known to be whole, or, if the cache dropped part of the log, its prefix.
fn reopen(mut options: Options, dropped: bool) -> esker::Result<Db> {
    match Db::open_with(PATH, options.clone()) {
        Err(error) if dropped && error.kind() == ErrorKind::Corruption => {
            options.recovery = Recovery::KeepPrefix;
            Db::open_with(PATH, options)
        }
        other => other,
    }
}

/// Opens an image and judges it; then crashes again, inside of the recovery and behind it.
fn judge(image: &Image, history: &History, seed: u64, depth: u32) -> u64 {
    let mut rng = Rng::new(seed);
    let what = || format!("{}\nthe latest operations:\n{}", image.what, tail(&image.disk));
    let faults = FaultFs::over(&image.disk);
    // No crash frees space, but then most of them would say no more than that.
    if rng.percent(70) {
        image.disk.set_capacity(None);
    }
    let nothing_new = Progress::from_now(&faults);
    if rng.percent(15) {
        nothing_new.add(&faults, fault(&mut rng));
    }
    // With nothing unsynced, so that what cuts the repair off does not change its source.
    let before = (depth > 0 && rng.percent(3)).then(|| image.disk.crash_clone(seed, 100));
    let again = watch(&image.disk, &faults, &nothing_new, rng.next(), (8, 2));
    let first = Db::open_with(PATH, options(&faults, &mut rng));
    // What failed in between may have dropped what the cache held.
    let dropped = image.dropped || nothing_new.dropped(&faults);
    let db = match first {
        Ok(db) => db,
        Err(error) => {
            let excused = is_expected(&error) || dropped;
            assert!(excused, "open: {error}\n{}", what());
            faults.clear();
            faults.forget_failed_syncs();
            image.disk.set_capacity(None);
            reopen(options(&faults, &mut rng), dropped)
                .unwrap_or_else(|error| panic!("open again: {error}\n{}", what()))
        }
    };
    image.disk.set_hook(None);
    faults.clear();
    image.disk.set_capacity(None);
    let low = if dropped { image.durable } else { image.low };
    let found = read(&db).unwrap_or_else(|error| panic!("read: {error}\n{}", what()));
    if let Err(wrong) = history.locate(&found, low, image.high) {
        panic!("{wrong}\n{}", what());
    }
    let report = db.verify().unwrap_or_else(|error| panic!("verify: {error}\n{}", what()));
    assert!(report.problems.is_empty(), "{:?}\n{}", report.problems, what());
    if let Some(checkpoint) = image.checkpoint.as_ref().filter(|_| rng.percent(50)) {
        check_checkpoint(image, checkpoint, &mut rng);
    }
    let mut points = 1;
    if let Some(before) = before.filter(|_| !dropped) {
        points += repair(&before, &mut rng);
    }
    if depth == 0 {
        return points;
    }
    for mut second in std::mem::take(&mut *again.lock().unwrap()) {
        // A kill and then a power cut lose what was never synced, as long as open has not returned.
        let dropped = second.dropped || image.dropped;
        second.low = if second.killed && !dropped { image.low } else { image.durable };
        second.durable = image.durable;
        second.high = image.high;
        second.dropped = dropped;
        second.what = format!("{}, in the recovery from: {}", second.what, image.what);
        points += judge(&second, history, rng.next(), depth - 1);
    }
    points + use_after(db, faults, &image.disk, found, rng.next())
}

/// Goes on with what a crash left (R7), and crashes once more.
fn use_after(db: Db, faults: FaultFs, disk: &CrashFs, found: World, seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let progress = Progress::from_now(&faults);
    let images = watch(disk, &faults, &progress, rng.next(), (12, 2));
    let mut life = Life {
        faults,
        disk: disk.clone(),
        progress,
        history: History { base: found.clone(), steps: Vec::new() },
        world: found,
        serial: 900_000,
        reached: Reached::default(),
        rng,
    };
    let steps = 5 + life.rng.below(20);
    let alive = (0..steps).all(|_| life.go(&db).is_ok());
    if alive && life.rng.percent(50) {
        let _ = life.step(Change::Nothing, || db.close().map(|()| true));
    }
    disk.set_hook(None);
    drop(db);
    let images = std::mem::take(&mut *images.lock().unwrap());
    images.iter().map(|image| judge(image, &life.history, life.rng.next(), 0)).sum()
}

/// A checkpoint that returned is whole; of another, whatever opens is.
fn check_checkpoint(image: &Image, checkpoint: &Checkpoint, rng: &mut Rng) {
    let mut options = options(&FaultFs::over(&image.disk), rng);
    options.create_if_missing = false;
    let path = &checkpoint.path;
    match Db::open_with(path, options) {
        Ok(db) => {
            let found = read(&db).unwrap_or_else(|error| panic!("{path}: {error}; {}", image.what));
            let wrong = difference(&found, &checkpoint.world);
            assert!(found == checkpoint.world, "{path}: {wrong}; {}", image.what);
        }
        Err(error) => {
            let kind = error.kind();
            let partly = matches!(kind, ErrorKind::Missing | ErrorKind::Corruption);
            assert!(partly && !checkpoint.returned, "{path}: {error}; {}", image.what);
        }
    }
}

/// Saves what a crash left into another directory, and is cut off at some steps of that: what is
/// there then opens as a whole or not at all, and saving begins anew.
fn repair(disk: &CrashFs, rng: &mut Rng) -> u64 {
    const TO: &str = "/saved";
    disk.set_capacity(None);
    let options = |disk: &CrashFs, rng: &mut Rng| {
        let mut options = options(&FaultFs::over(disk), rng);
        options.create_if_missing = false;
        options
    };
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let (taken, source, dice) = (cuts.clone(), disk.clone(), Mutex::new(Rng::new(rng.next())));
    disk.set_hook(Some(Arc::new(move |operation, what| {
        let mut dice = dice.lock().unwrap();
        if dice.below(8) != 0 || taken.lock().unwrap().len() >= 6 {
            return;
        }
        let killed = dice.percent(50);
        let percent = [0, 50, 100][dice.below(3) as usize];
        let cut = if killed { source.kill_clone() } else { source.crash_clone(operation, percent) };
        taken.lock().unwrap().push((cut, format!("cut off at {what}, killed {killed}")));
    })));
    salvage(PATH, TO, &options(disk, rng)).unwrap_or_else(|error| panic!("repair: {error}"));
    disk.set_hook(None);
    let cuts = std::mem::take(&mut *cuts.lock().unwrap());
    let points = cuts.len() as u64;
    // It may be more than an open shows: what stands behind the end of the log is saved, too.
    let db = Db::open_with(TO, options(disk, rng)).unwrap_or_else(|error| panic!("saved: {error}"));
    let saved = read_root(&db).unwrap_or_else(|error| panic!("saved: {error}"));
    drop(db);
    for (cut, what) in cuts {
        let opened = match Db::open_with(TO, options(&cut, rng)) {
            Ok(db) => read_root(&db).ok(),
            Err(_) => {
                let again = salvage(PATH, TO, &options(&cut, rng));
                again.unwrap_or_else(|error| panic!("repair, {what}, again: {error}"));
                let db =
                    Db::open_with(TO, options(&cut, rng)).unwrap_or_else(|e| panic!("{what}: {e}"));
                read_root(&db).ok()
            }
        };
        assert!(opened.as_ref() == Some(&saved), "repair, {what}: something else was saved");
    }
    points
}

/// One disk, several lives on it, and what crashes would have left of them.
fn workload(seed: u64) -> (u64, Reached) {
    let mut rng = Rng::new(seed);
    let disk = CrashFs::new();
    disk.set_tear([Tear::Never, Tear::Sectors, Tear::Bytes][rng.below(3) as usize]);
    let every = 5 + rng.below(60);
    disk.set_write_back(rng.next(), rng.percent(60).then_some(every));
    if rng.percent(50) {
        disk.set_mapped_chunk(1 + rng.below(64));
    }
    let faults = FaultFs::over(&disk);
    let db = Db::open_with(PATH, options(&faults, &mut rng)).unwrap();
    db.keyspace(SPACES[1]).unwrap();
    db.sync().unwrap();
    let world = read(&db).unwrap();
    let mut life = Life {
        faults,
        disk: disk.clone(),
        progress: Arc::default(),
        history: History { base: world.clone(), steps: Vec::new() },
        world,
        serial: 0,
        reached: Reached::default(),
        rng,
    };
    let (mut points, mut db) = (0, Some(db));
    for _ in 0..3 {
        let every = 20 + life.rng.below(150);
        let seed = life.rng.next();
        let images = watch(&disk, &life.faults, &life.progress, seed, (every, 10));
        let steps = 40 + life.rng.below(160);
        let present = db.take().unwrap_or_else(|| unreachable!("each life opens the next one"));
        let alive = (0..steps).all(|_| life.go(&present).is_ok());
        if alive && life.rng.percent(60) {
            let _ = life.step(Change::Nothing, || present.close().map(|()| true));
        }
        drop(present);
        let broken = life.faults.violations();
        let broken = broken.iter().find(|line| !line.contains("superblock"));
        assert_eq!(broken, None, "a file was synced again after a failed sync");
        // The images that are taken during this open belong to the life before.
        let next = life.open();
        disk.set_hook(None);
        life.fair_weather();
        let found = read(&next).unwrap_or_else(|error| panic!("read: {error}"));
        let end = life.history.steps.len();
        let floor = &life.progress;
        let dropped = floor.dropped(&life.faults);
        let low = if dropped { &floor.durable } else { &floor.ended }.load(Ordering::SeqCst);
        life.history.locate(&found, low, end).unwrap_or_else(|wrong| panic!("reopened: {wrong}"));
        for image in std::mem::take(&mut *images.lock().unwrap()) {
            let seed = life.rng.next();
            let judged = || judge(&image, &life.history, seed, 1);
            points += catch_unwind(AssertUnwindSafe(judged)).unwrap_or_else(|panic| {
                eprintln!("what had failed until then: {:?}", life.faults.fired());
                resume_unwind(panic)
            });
        }
        db = Some(next);
        life.progress = Progress::from_now(&life.faults);
        life.history = History { base: found.clone(), steps: Vec::new() };
        life.world = found;
    }
    (points, life.reached)
}

#[test]
fn faults_and_crashes_together_leave_a_prefix() {
    let _alone = super::alone();
    let wanted = number("ESKER_CRASH_POINTS").unwrap_or(800);
    let reached = Mutex::new(Reached::default());
    campaign("faults and crashes", 1, wanted, |seed| {
        let (points, came_to) = workload(seed);
        reached.lock().unwrap().add(came_to);
        points
    });
    let reached = reached.into_inner().unwrap();
    eprintln!("{reached:?}");
    if number("ESKER_SEED").is_none() {
        let Reached { ingestions, pieces, without_trace, refused } = reached;
        assert!(ingestions > 0 && pieces > 0 && without_trace > 0 && refused > 0, "{reached:?}");
    }
}
