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
//! 5. In some runs some keyspaces have a compaction filter. The model then knows several things that
//!    a key may show, and fewer after each read ([`Model::see`]). What was read in the present since
//!    the database was opened is forgotten at a kill, as the writes since then are applied anew.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Db, Durability, Error, Snapshot};

mod branches;
mod checkpoint;
mod fork;
mod gates;
mod habits;
mod impatient;
mod ingestion;
mod reached;
mod reads;
mod space;
mod temperature;
mod transactions;
mod walk;
mod walks;
mod watched;
mod withheld;

use crate::CrashFs;
use crate::harness::{
    self, HandClock, keyspace, read_all, read_snapshot, read_some, small_options, with_tiers,
};
use crate::keeper::Keeper;
use crate::model::{COUNTERS, Model, Op, SLOTS};
use crate::ops::{BUFFERED, Generator, LOGGED, count};
use crate::oracle::{Entry, Floor, History};
use crate::rng::Rng;
use habits::Habits;
pub use reached::Reached;
use walk::Walk;
use watched::Watched;
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
    /// Whether the cache is smaller than the data.
    small_cache: bool,
    /// Whether its trees have tiers.
    tiers: bool,
    /// What the background did in earlier lives of the database.
    trace: (u64, u64),
    /// The checkpoint that was made last.
    copy: Option<PathBuf>,
    make: Generator,
    steps: u64,
    habits: Habits,
    /// What earlier lives of the database came to.
    reached: Reached,
    watched: Watched,
}

impl Machine {
    /// A new, empty database on a simulated disk.
    pub fn new(seed: u64) -> Self {
        let mut options = Rng::new(seed);
        let keys = 20 + options.below(600);
        let model = Model::filtering(filtered_slots(seed));
        let mut machine = Self {
            disk: CrashFs::new(),
            path: PathBuf::from("/db"),
            options,
            clock: Arc::default(),
            db: None,
            history: History::new(model.clone(), 0),
            model,
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
            small_cache: false,
            tiers: [0, 2].contains(&(seed % 5)),
            trace: (0, 0),
            copy: None,
            make: Generator::new(seed, keys),
            steps: 0,
            habits: Habits::of(seed),
            reached: Reached::default(),
            watched: Watched::default(),
        };
        // Numbers of writes begin at 1: a counter of 0 is none.
        machine.history.push(Entry { ops: Vec::new(), logged: true });
        machine.open();
        if machine.model.filters(0) {
            // It is there, and gets its filter.
            machine.one(&Op::Create(0), Durability::Process);
        }
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
        self.small_cache = options.small_cache.is_some();
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
        self.watched.listen(&mut options);
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
        // The same steps have to take the same way where there is one worker, and what a read misses depends on when
        // what was evicted is freed.
        let reads = matches!(step.kind, 550..=839 | 875..=899 | 973..=999) && !self.one_worker;
        self.keeper.moves_in_reads(reads.then_some(step.seed));
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
        self.keeper.moves_in_reads(None);
        self.keeper.settle();
        self.note_for_checkpoint();
        self.watch_limit();
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
        let done = harness::write_as(self.db(), op, durability, &self.model);
        done.unwrap_or_else(|e| panic!("{op:?}: {e}"));
        self.wrote_one(op);
    }

    /// Notes a write that was done.
    fn wrote_one(&mut self, op: &Op) {
        if let Op::Create(slot) = op {
            self.births += 1;
            self.born[*slot] = self.births;
        }
        self.model.apply(op);
        self.history.push(Entry { ops: vec![op.clone()], logged: true });
    }

    fn write_one(&mut self) {
        let op = self.make.write(&self.model);
        let durability = if self.percent(3) { Durability::Disk } else { Durability::Process };
        match self.is_impatient() {
            true => self.write_impatiently(op, durability),
            false => self.one(&op, durability),
        }
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
        if self.is_impatient() {
            if !self.try_to_write(&ops, durability) {
                return;
            }
        } else {
            match harness::write(self.db(), &ops, durability) {
                Ok(_) => {}
                Err(Error::BatchTooLarge { .. }) => return,
                Err(error) => panic!("batch: {error}"),
            }
        }
        self.model.apply_all(&ops);
        self.history.push(Entry { ops, logged });
    }

    fn take_snapshot(&mut self) {
        if self.held.len() >= 6 {
            self.release_snapshot();
        }
        let snapshot = self.db().snapshot().unwrap_or_else(|e| panic!("snapshot: {e}"));
        self.held.push(Held { snapshot, model: self.model.frozen(), born: self.born });
        // From now on it is known of half of them what they must show.
        if self.model.has_filters() && self.percent(50) {
            self.check_snapshot(self.held.len() - 1);
        }
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
        let filtered = self.filtered_by_compact();
        self.model.filter_all(filtered);
    }

    /// The slots in which `compact` has just filtered everything (X.6): all, unless a snapshot sees
    /// some of it. Where a merge operator is withheld, operands stand in the way.
    fn filtered_by_compact(&self) -> impl Fn(usize) -> bool + use<> {
        let (alone, withheld) = (self.held.is_empty(), self.withheld);
        move |slot| alone && withheld.allows(slot)
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
        self.note_reached();
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
        self.note_reached();
        self.set_withheld(Withheld::default());
        self.walks.clear();
        self.held.clear();
        self.db = None;
        self.disk = disk;
        self.open();
        let floor = Floor { logged: self.history.end(), all: self.flushed };
        let found = read_all(self.db()).unwrap_or_else(|e| panic!("read after a kill: {e}"));
        let survived = self.history.locate(&found, floor);
        let mut survived = survived.unwrap_or_else(|what| panic!("after a kill: {what}"));
        let difference = survived.model.see_all(&found, |_| true);
        assert!(difference.is_none(), "after a kill: {difference:?}");
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
        let withheld = self.withheld;
        let which = move |slot| withheld.allows(slot);
        let found = read_some(self.db(), which).unwrap_or_else(|e| panic!("read: {e}"));
        assert_eq!(found.names(), self.model.names(), "keyspaces");
        if let Some(what) = self.model.see_all(&found, which) {
            panic!("content: {what}");
        }
        self.read_again(&found, which);
        self.check_forks();
    }

    /// Compares all that the snapshots show.
    pub fn check_snapshots(&mut self) {
        (0..self.held.len()).for_each(|index| self.check_snapshot(index));
    }

    fn check_snapshot(&mut self, index: usize) {
        let held = &self.held[index];
        let known = |slot: &usize| {
            held.born[*slot] == self.born[*slot]
                && self.model.map(*slot).is_some()
                && self.withheld.allows(*slot)
        };
        let slots: Vec<_> = held.model.live().filter(known).collect();
        let found = read_snapshot(self.db(), &held.snapshot, &slots)
            .unwrap_or_else(|e| panic!("snapshot: {e}"));
        let difference = self.held[index].model.see_all(&found, |slot| slots.contains(&slot));
        assert!(difference.is_none(), "snapshot {index}: {difference:?}");
    }

    /// Compares everything and closes. Returns what the run came to.
    pub fn finish(mut self) -> Reached {
        self.check_all();
        self.check_snapshots();
        self.verify();
        self.reopen();
        self.check_space();
        self.note_reached();
        self.db().close().unwrap_or_else(|e| panic!("close: {e}"));
        self.all_reached()
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

/// The slots whose keyspaces have a compaction filter: a third of all, in more than half of the
/// machines. None of the runs that are kept because they found something once has one.
fn filtered_slots(seed: u64) -> [bool; SLOTS] {
    // Other draws are what they would be without it.
    let mut rng = Rng::new(!seed);
    let some = [2, 3, 5, 6].contains(&(seed % 7));
    std::array::from_fn(|slot| some && slot != COUNTERS && rng.percent(58))
}
