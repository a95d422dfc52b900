//! A database and its model, side by side: each step does the same to both and compares.
//!
//! A step is a number that says what kind of thing happens and a seed for the rest, so that any
//! list of steps is a test, and any part of a failing list may be taken away to make it smaller.
//!
//! 1. What a step touches is compared at once; everything, with every live snapshot, now and then.
//! 2. After a kill, everything logged must be there, and of the writes that were not logged those
//!    before the last flush, whole and in order.
//! 3. The database is opened with other options each time; the files must not care.
//! 4. The background runs freely, or is held at its points and moves when a step says so
//!    (`keeper`): between two of its points anything else may happen.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Db, Durability, Error, Snapshot};

mod branches;
mod checkpoint;
mod fork;
mod gates;
mod ingestion;
mod space;
mod temperature;
mod transactions;
mod walk;
mod withheld;

use crate::CrashFs;
use crate::harness::{
    self, HandClock, keyspace, read_all, read_snapshot, read_some, small_options, with_tiers,
};
use crate::keeper::Keeper;
use crate::model::{COUNTERS, Model, Op, SLOTS, is_folded};
use crate::ops::{BUFFERED, Generator, LOGGED, count};
use crate::oracle::{Entry, Floor, History};
use crate::rng::Rng;
use walk::Walk;
use withheld::Withheld;
use {checkpoint::Checkpoint, fork::Fork};

/// A step: its kind, below [`KINDS`], and a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub kind: u16,
    /// The rest.
    pub seed: u64,
}

/// Kinds of steps are below this.
pub const KINDS: u16 = 1080;

/// A snapshot and what it must show.
struct Held {
    snapshot: Snapshot,
    model: Model,
    born: [u64; SLOTS],
}

/// A database and its model.
pub struct Machine {
    disk: CrashFs,
    path: PathBuf,
    options: Rng,
    clock: Arc<HandClock>,
    db: Option<Db>,
    model: Model,
    history: History,
    /// Everything before this write is flushed.
    flushed: u64,
    /// Tells keyspaces apart that had the same slot.
    born: [u64; SLOTS],
    births: u64,
    held: Vec<Held>,
    walks: Vec<Walk>,
    forks: Vec<Fork>,
    keeper: Arc<Keeper>,
    withheld: Withheld,
    checkpoint: Option<Checkpoint>,
    one_worker: bool,
    cools: bool,
    /// Whether its trees have tiers.
    tiers: bool,
    /// What the background did in earlier lives of the database.
    trace: (u64, u64),
    /// The checkpoint that was made last.
    copy: Option<PathBuf>,
    make: Generator,
    steps: u64,
}

impl Machine {
    /// A new, empty database on a simulated disk.
    pub fn new(seed: u64) -> Self {
        let mut options = Rng::new(seed);
        let keys = 20 + options.below(600);
        let mut machine = Self {
            disk: CrashFs::new(),
            path: PathBuf::from("/db"),
            options,
            clock: Arc::default(),
            db: None,
            model: Model::new(),
            history: History::default(),
            flushed: 0,
            born: [0; SLOTS],
            births: 0,
            held: Vec::new(),
            walks: Vec::new(),
            forks: Vec::new(),
            keeper: Arc::default(),
            withheld: Withheld::default(),
            checkpoint: None,
            one_worker: false,
            cools: false,
            tiers: [0, 2].contains(&(seed % 5)),
            trace: (0, 0),
            copy: None,
            make: Generator::new(seed, keys),
            steps: 0,
        };
        // Numbers of writes begin at 1: a counter of 0 is none.
        machine.history.push(Entry { ops: Vec::new(), logged: true });
        machine.open();
        for slot in [1, COUNTERS] {
            machine.one(&Op::Create(slot), Durability::Process);
        }
        machine
    }

    /// Opens the database with one worker from now on, so that the same steps always take the same
    /// way through the background while that is held.
    pub fn with_one_worker(&mut self) {
        self.one_worker = true;
        self.reopen();
    }

    /// The disk, to look at what a failure left.
    pub fn disk(&self) -> (&CrashFs, &Path) {
        (&self.disk, &self.path)
    }

    fn open(&mut self) {
        self.trace = self.trace();
        let mut options = small_options(&mut self.options);
        if self.tiers {
            with_tiers(&mut options, &mut self.options);
        }
        self.cools = options.small_cold;
        options.fs = self.disk.as_fs();
        options.clock = self.clock.clone();
        if self.withheld.comparator {
            options.comparators.clear();
        }
        if self.withheld.operator {
            options.merge_operators.clear();
        }
        if self.one_worker {
            options.workers = Some(1);
        }
        self.keeper = keeper(&mut options, &mut self.options);
        let db = Db::open_with(&self.path, options);
        self.db = Some(db.unwrap_or_else(|error| panic!("open: {error}")));
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap_or_else(|| unreachable!("it is open between steps"))
    }

    /// Does one step.
    pub fn step(&mut self, step: Step) {
        self.make.rng = Rng::new(step.seed);
        self.steps += 1;
        match step.kind {
            0..=369 => self.write_one(),
            370..=389 => self.branches(),
            390..=396 => self.tick(),
            397..=399 => self.change_ttl(),
            400..=519 => self.write_several(),
            520..=549 => self.transaction(),
            550..=669 => self.point_reads(),
            670..=709 => self.multi_get(),
            710..=839 => self.scan(),
            840..=859 => self.take_snapshot(),
            860..=874 => self.release_snapshot(),
            875..=899 => self.walk_on(),
            900..=919 => self.start_walk(),
            920..=929 => self.flush(),
            930..=933 => self.compact(),
            934..=941 => self.compact_range(),
            942..=949 => self.change_keyspaces(),
            950..=954 => self.reopen(),
            955..=959 => self.kill(),
            960..=962 => self.verify(),
            963..=969 => self.sync(),
            970..=972 => self.rest(),
            973..=977 => self.check_all(),
            978..=985 => self.check_snapshots(),
            986..=999 => self.ends(),
            1000..=1059 => self.gates(),
            1060..=1072 => self.checkpoints(),
            1073..=1075 => self.check_space(),
            _ => self.withhold(),
        }
        self.keeper.settle();
        self.note_for_checkpoint();
    }

    /// A digest of what the background did while it was held, and how much that was.
    pub fn trace(&self) -> (u64, u64) {
        let (digest, count) = self.keeper.trace();
        (self.trace.0.rotate_left(1) ^ digest, self.trace.1 + count)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.make.rng.below(bound as u64) as usize
    }

    fn percent(&mut self, percent: u32) -> bool {
        self.make.rng.percent(percent)
    }

    fn one(&mut self, op: &Op, durability: Durability) {
        harness::write_one(self.db(), op, durability).unwrap_or_else(|e| panic!("{op:?}: {e}"));
        if let Op::Create(slot) = op {
            self.births += 1;
            self.born[*slot] = self.births;
        }
        self.model.apply(op);
        self.history.push(Entry { ops: vec![op.clone()], logged: true });
    }

    fn write_one(&mut self) {
        let op = self.make.write(&self.model);
        let disk = self.percent(3);
        self.one(&op, if disk { Durability::Disk } else { Durability::Process });
    }

    /// Time goes on.
    fn tick(&mut self) {
        let millis = 1 + self.make.rng.below(40);
        self.pass(millis);
    }

    fn change_ttl(&mut self) {
        let op = self.make.change_of_ttl(&self.model);
        self.one(&op, Durability::Process);
    }

    fn write_batch(&mut self) {
        let mut ops = self.make.batch(&self.model, 12);
        let durability = match self.below(10) {
            0 => Durability::Disk,
            1 | 2 => Durability::Buffered,
            _ => Durability::Process,
        };
        let logged = durability != Durability::Buffered;
        let counter = if logged { LOGGED } else { BUFFERED };
        ops.push(count(counter, self.history.end() + 1));
        match harness::write(self.db(), &ops, durability) {
            Ok(_) => {}
            Err(Error::BatchTooLarge { .. }) => return,
            Err(error) => panic!("batch: {error}"),
        }
        self.model.apply_all(&ops);
        self.history.push(Entry { ops, logged });
    }

    /// A held snapshot that knows the present keyspace of a slot, or none for the present.
    fn moment(&mut self, slot: usize) -> Option<usize> {
        let known: Vec<_> = (0..self.held.len())
            .filter(|index| self.held[*index].born[slot] == self.born[slot])
            .filter(|index| self.held[*index].model.map(slot).is_some())
            .collect();
        (!known.is_empty() && self.percent(40)).then(|| known[self.below(known.len())])
    }

    fn point_reads(&mut self) {
        let slot = self.make.slot(&self.model);
        let moment = self.moment(slot);
        let model = moment.map_or(&self.model, |index| &self.held[index].model).clone();
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        for _ in 0..1 + self.below(4) {
            let key = self.make.key(slot);
            let want = model.map(slot).and_then(|map| map.get(&key));
            let how = self.below(3);
            let found = match (moment.map(|index| &self.held[index].snapshot), how) {
                (Some(snapshot), 0) => {
                    let there = snapshot.contains_key(&handle, &key);
                    assert_eq!(there.unwrap_or_else(|e| panic!("{e}")), want.is_some());
                    continue;
                }
                (Some(snapshot), 1) => snapshot.get_reader(&handle, &key).map(harness::drain),
                (Some(snapshot), _) => snapshot.get(&handle, &key),
                (None, 0) => harness::get_either_way(&handle, &key),
                (None, 1) => {
                    let mut value = b"old".to_vec();
                    handle.get_into(&key, &mut value).map(|found| found.then_some(value))
                }
                (None, _) => {
                    let there = handle.contains_key(&key).unwrap_or_else(|e| panic!("{e}"));
                    assert_eq!(there, want.is_some(), "{slot} {}", key.escape_ascii());
                    continue;
                }
            };
            let found = found.unwrap_or_else(|e| panic!("get: {e}"));
            assert!(
                found.as_ref() == want,
                "slot {slot}, key {}, snapshot {moment:?}: {:?}, not {:?}",
                key.escape_ascii(),
                found.map(|value| value.escape_ascii().to_string()),
                want.map(|value| value.escape_ascii().to_string()),
            );
        }
    }

    fn multi_get(&mut self) {
        let slot = self.make.slot(&self.model);
        let count = self.below(20);
        let keys: Vec<_> = (0..count).map(|_| self.make.key(slot)).collect();
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let found = handle.multi_get(&keys).unwrap_or_else(|e| panic!("multi_get: {e}"));
        let known = |key: &Vec<u8>| self.model.map(slot).and_then(|map| map.get(key).cloned());
        assert!(found == keys.iter().map(known).collect::<Vec<_>>(), "multi_get of slot {slot}");
    }

    /// An iterator over a random part of a slot, and what it must show.
    fn iterator(&mut self) -> Walk {
        let slot = self.make.slot(&self.model);
        let moment = self.moment(slot);
        let model = moment.map_or(&self.model, |index| &self.held[index].model).clone();
        let map = model.map(slot).unwrap_or_else(|| unreachable!("the slot is live"));
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let how = self.below(10);
        let (start, end) = self.make.bounds(slot);
        let prefix = self.make.key(slot);
        let prefix = &prefix[..self.below(prefix.len() + 1)];
        let held = moment.map(|index| &self.held[index].snapshot);
        let mut low = start.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let mut high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        if !is_folded(slot) && how.is_multiple_of(2) {
            // Byte order has a next key, so all kinds of bounds work there.
            low = start.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            high = end.as_deref().map_or(Bound::Unbounded, Bound::Included);
        }
        let (iter, pairs) = match (held, how) {
            (None, 0..=2) => (handle.iter(), map.range(Bound::Unbounded, Bound::Unbounded)),
            (Some(held), 0..=2) => {
                (held.iter(&handle), map.range(Bound::Unbounded, Bound::Unbounded))
            }
            (held, 3 | 4) if !is_folded(slot) => {
                let all = map.range(Bound::Unbounded, Bound::Unbounded).into_iter();
                let pairs = all.filter(|(key, _)| key.starts_with(prefix)).collect();
                let iter = match held {
                    None => handle.prefix(prefix),
                    Some(held) => held.prefix(&handle, prefix),
                };
                (iter, pairs)
            }
            (None, _) => (handle.range::<&[u8]>((low, high)), map.range(low, high)),
            (Some(held), _) => (held.range::<&[u8]>(&handle, (low, high)), map.range(low, high)),
        };
        let iter = iter.unwrap_or_else(|e| panic!("iterator: {e}"));
        let back = pairs.len();
        Walk { iter, slot, pairs, front: 0, back }
    }

    fn scan(&mut self) {
        let mut walk = self.iterator();
        match self.below(5) {
            0 => walk.run(true, usize::MAX),
            1 => walk.run(false, usize::MAX),
            _ => {
                for _ in 0..1 + self.below(12) {
                    self.move_walk(&mut walk);
                }
            }
        }
    }

    fn move_walk(&mut self, walk: &mut Walk) {
        let count = 1 + self.below(20);
        match self.below(8) {
            0 | 1 => {
                let key = self.make.key(walk.slot);
                walk.seek(&key);
            }
            2..=4 => walk.run(true, count),
            _ => walk.run(false, count),
        }
    }

    fn start_walk(&mut self) {
        if self.walks.len() >= 4 {
            let index = self.below(self.walks.len());
            self.walks.swap_remove(index);
        }
        let walk = self.iterator();
        self.walks.push(walk);
    }

    /// Goes on with an iterator that was made long ago.
    fn walk_on(&mut self) {
        if self.walks.is_empty() {
            return;
        }
        let index = self.below(self.walks.len());
        let mut walk = self.walks.swap_remove(index);
        self.move_walk(&mut walk);
        self.walks.push(walk);
    }

    fn ends(&mut self) {
        let slot = self.make.slot(&self.model);
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let map = self.model.map(slot).unwrap_or_else(|| unreachable!("the slot is live"));
        let first = handle.first_key_value().unwrap_or_else(|e| panic!("first: {e}"));
        let last = handle.last_key_value().unwrap_or_else(|e| panic!("last: {e}"));
        assert_eq!(first.as_ref(), map.pairs().next(), "first of slot {slot}");
        assert_eq!(last.as_ref(), map.pairs().next_back(), "last of slot {slot}");
    }

    fn take_snapshot(&mut self) {
        if self.held.len() >= 6 {
            self.release_snapshot();
        }
        let snapshot = self.db().snapshot().unwrap_or_else(|e| panic!("snapshot: {e}"));
        self.held.push(Held { snapshot, model: self.model.clone(), born: self.born });
    }

    fn release_snapshot(&mut self) {
        if !self.held.is_empty() {
            let index = self.below(self.held.len());
            self.held.swap_remove(index);
        }
    }

    fn flush(&mut self) {
        self.db().flush().unwrap_or_else(|e| panic!("flush: {e}"));
        self.flushed = self.history.end();
    }

    fn sync(&mut self) {
        self.db().sync().unwrap_or_else(|e| panic!("sync: {e}"));
        self.flushed = self.history.end();
    }

    fn compact(&mut self) {
        self.db().compact().unwrap_or_else(|e| panic!("compact: {e}"));
        self.flushed = self.history.end();
    }

    fn wait_until_idle(&mut self) {
        // While files are linked no space is given back.
        self.finish_checkpoint();
        self.db().wait_until_idle().unwrap_or_else(|e| panic!("idle: {e}"));
    }

    fn compact_range(&mut self) {
        let slot = self.make.slot(&self.model);
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let (start, end) = self.make.bounds(slot);
        let low = start.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        handle.compact_range::<&[u8]>((low, high)).unwrap_or_else(|e| panic!("compact: {e}"));
    }

    fn change_keyspaces(&mut self) {
        let op = self.make.change_of_keyspaces(&self.model);
        let (Op::Create(slot) | Op::Drop(slot)) = op else { return };
        let there = self.model.map(slot).is_some();
        let usable = self.withheld.allows(slot);
        if !there && !usable {
            return;
        }
        let old = (there && usable).then(|| keyspace(self.db(), slot));
        self.one(&op, Durability::Process);
        if let Some(Ok(old)) = old {
            // A handle on what was dropped reads and writes nothing any more.
            let dropped = |error| matches!(error, Error::KeyspaceDropped { .. });
            assert!(old.get("k").is_err_and(dropped), "get after drop");
            assert!(old.insert("k", "v").is_err_and(dropped), "insert after drop");
            assert!(old.iter().is_err_and(dropped), "iter after drop");
        }
        let names = self.db().keyspaces().unwrap_or_else(|e| panic!("keyspaces: {e}"));
        assert_eq!(names, self.model.names());
    }

    fn reopen(&mut self) {
        self.reopen_with(Withheld::default());
    }

    fn reopen_with(&mut self, withheld: Withheld) {
        if self.percent(40) {
            self.check_space();
        }
        self.finish_checkpoint();
        self.keeper.end();
        self.walks.clear();
        if self.percent(50) {
            self.held.clear();
        }
        self.db().close().unwrap_or_else(|e| panic!("close: {e}"));
        self.held.clear();
        self.db = None;
        self.set_withheld(withheld);
        self.open();
        self.flushed = self.history.end();
        self.history = History::new(self.model.clone(), self.history.end());
        self.check_all();
    }

    /// The process dies; the database is opened again on what is there then.
    fn kill(&mut self) {
        let disk = self.disk.kill_clone();
        let copy = self.copy.take();
        self.finish_checkpoint();
        self.copy = copy;
        self.keeper.end();
        self.set_withheld(Withheld::default());
        self.walks.clear();
        self.held.clear();
        self.db = None;
        self.disk = disk;
        self.open();
        let floor = Floor { logged: self.history.end(), all: self.flushed };
        let found = read_all(self.db()).unwrap_or_else(|e| panic!("read after a kill: {e}"));
        let survived = self.history.locate(&found, floor);
        let survived = survived.unwrap_or_else(|what| panic!("after a kill: {what}"));
        self.history.rebase(&survived);
        self.flushed = self.history.end();
        self.model = survived.model;
        self.check_forks();
    }

    /// Reads everything that is stored.
    pub fn verify(&mut self) {
        if self.withheld != Withheld::default() {
            return;
        }
        let report = self.db().verify().unwrap_or_else(|e| panic!("verify: {e}"));
        assert!(report.problems.is_empty(), "verify: {:?}", report.problems);
    }

    /// Compares all there is now.
    pub fn check_all(&mut self) {
        let which = |slot| self.withheld.allows(slot);
        let found = read_some(self.db(), which).unwrap_or_else(|e| panic!("read: {e}"));
        if let Some(what) = self.model.difference_in(&found, which) {
            panic!("content: {what}");
        }
        self.check_forks();
    }

    /// Compares all that the snapshots show.
    pub fn check_snapshots(&mut self) {
        for (index, held) in self.held.iter().enumerate() {
            let known = |slot: &usize| {
                held.born[*slot] == self.born[*slot]
                    && self.model.map(*slot).is_some()
                    && self.withheld.allows(*slot)
            };
            let slots: Vec<_> = held.model.live().filter(known).collect();
            let found = read_snapshot(self.db(), &held.snapshot, &slots)
                .unwrap_or_else(|e| panic!("snapshot: {e}"));
            for slot in slots {
                assert!(found.map(slot) == held.model.map(slot), "snapshot {index}, slot {slot}");
            }
        }
    }

    /// Compares everything and closes.
    pub fn finish(mut self) {
        self.check_all();
        self.check_snapshots();
        self.verify();
        self.reopen();
        self.check_space();
        self.db().close().unwrap_or_else(|e| panic!("close: {e}"));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A database that is dropped waits for its threads.
        self.keeper.end();
    }
}

/// Another keeper for another life of the database.
fn keeper(options: &mut esker::Options, rng: &mut Rng) -> Arc<Keeper> {
    let keeper = Arc::new(Keeper::default());
    options.gates = Some(keeper.clone());
    if rng.percent(30) {
        options.sync_interval = Some(std::time::Duration::from_millis(1));
    }
    keeper
}
