//! One thread's life with a database: its steps, and how far it has come.

use super::failures::{PATH, fault, is_expected, options, reopen};
use super::world::{Change, History, SPACES, World, difference, read, root};
use esker::{Db, Durability, ErrorKind};
use esker_testkit::cache_events::CacheCounter;
use esker_testkit::faultfs::{Op, Rule};
use esker_testkit::{CrashFs, FaultFs, Rng};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// How far a life has come, for the thread that takes images of the disk meanwhile.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) begun: AtomicUsize,
    pub(super) ended: AtomicUsize,
    pub(super) durable: AtomicUsize,
    /// Whether a sync may fail in such a way that the cache is dropped.
    pub(super) may_drop: AtomicBool,
    /// How many calls had failed before this life.
    pub(super) failed_before: usize,
    pub(super) checkpoints: Mutex<Vec<Checkpoint>>,
}

impl Progress {
    /// A life that begins now.
    pub(super) fn from_now(faults: &FaultFs) -> Arc<Self> {
        Arc::new(Self { failed_before: faults.fired().len(), ..Self::default() })
    }

    /// Adds a rule, and remembers what may come of it.
    pub(super) fn add(&self, faults: &FaultFs, (rule, drops): (Rule, bool)) {
        self.may_drop.fetch_or(drops, Ordering::SeqCst);
        faults.add(rule);
    }

    /// Whether a failed sync may have dropped what was in the cache.
    pub(super) fn dropped(&self, faults: &FaultFs) -> bool {
        let failed = faults.fired();
        let syncs = failed[self.failed_before..].iter().any(|failed| failed.op == Op::SyncData);
        syncs && self.may_drop.load(Ordering::SeqCst)
    }
}

/// A checkpoint, and what it holds if it is one.
#[derive(Debug, Clone)]
pub(super) struct Checkpoint {
    pub(super) path: String,
    pub(super) world: World,
    pub(super) returned: bool,
}

/// One thread's life with a database.
pub(super) struct Life {
    pub(super) faults: FaultFs,
    pub(super) disk: CrashFs,
    pub(super) progress: Arc<Progress>,
    pub(super) history: History,
    pub(super) world: World,
    pub(super) rng: Rng,
    /// Numbers marks and names, over all lives.
    pub(super) serial: usize,
    pub(super) reached: Reached,
    /// What happens in the caches of the databases that it opens.
    pub(super) cache: Arc<CacheCounter>,
}

/// What lives came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reached {
    pub(super) ingestions: u64,
    /// Values that were written in pieces.
    pub(super) pieces: u64,
    /// Ingestions that failed and left nothing.
    pub(super) without_trace: u64,
    /// Writes that did not wait and would have had to.
    pub(super) refused: u64,
    /// Blocks and indexes that were read from files right after everything had been read.
    pub(super) blocks_again: u64,
    pub(super) indexes_again: u64,
}

impl Reached {
    pub(super) fn add(&mut self, other: Self) {
        self.ingestions += other.ingestions;
        self.pieces += other.pieces;
        self.without_trace += other.without_trace;
        self.refused += other.refused;
        self.blocks_again += other.blocks_again;
        self.indexes_again += other.indexes_again;
    }
}

impl Life {
    /// Notes a step around `call`, which says whether everything so far is durable. An error if
    /// the database takes no more writes.
    pub(super) fn step(
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

    pub(super) fn key(&mut self) -> Vec<u8> {
        format!("{:03}", self.rng.below(150)).into_bytes()
    }

    pub(super) fn writable(&mut self) -> String {
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
    pub(super) fn go(&mut self, db: &Db) -> Result<(), esker::Error> {
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

    /// Reads once more what was found: where the cache is smaller than the data, much of it has left the cache.
    pub(super) fn read_again(&mut self, db: &Db, found: &World) {
        let now = || (db.stats().cache_misses, self.cache.events().index_loads);
        let before = now();
        let again = read(db).unwrap_or_else(|error| panic!("second read: {error}"));
        assert!(again == *found, "the second of two reads: {}", difference(&again, found));
        let after = now();
        self.reached.blocks_again += after.0 - before.0;
        self.reached.indexes_again += after.1 - before.1;
    }

    pub(super) fn fair_weather(&self) {
        self.faults.clear();
        self.disk.set_capacity(None);
    }

    /// Opens the database: with what fails at the moment, and then, if it must be, without.
    pub(super) fn open(&mut self) -> Db {
        self.faults.forget_failed_syncs();
        if self.rng.percent(50) {
            self.fair_weather();
        }
        let mut first = options(&self.faults, &mut self.rng);
        first.gates = Some(self.cache.clone());
        match Db::open_with(PATH, first) {
            Ok(db) => return db,
            Err(error) if is_expected(&error) => {}
            Err(error) => assert!(self.progress.dropped(&self.faults), "open: {error}"),
        }
        self.fair_weather();
        self.faults.forget_failed_syncs();
        let mut options = options(&self.faults, &mut self.rng);
        options.gates = Some(self.cache.clone());
        reopen(options, self.progress.dropped(&self.faults)).unwrap_or_else(|e| panic!("{e}"))
    }
}
