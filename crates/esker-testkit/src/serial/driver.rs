//! Threads that run random transactions on few keys, and what they saw and did.
//!
//! 1. Every value is unique: a number that is never drawn twice.
//! 2. Every thread counts its commits in its own key, which no other thread touches, in the same
//!    transaction; after a crash this tells which of its transactions survived.
//! 3. What a transaction read from itself is no read of the history.

use super::{Anomaly, Key, Record, check};
use crate::harness::small_options;
use crate::model::Folded;
use crate::{CrashFs, Rng};
use esker::{
    Batch, Comparator, Db, Durability, Error, Keyspace, Result, Transaction, TransactionOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Keys of each keyspace.
const KEYS: usize = 10;
/// Keyspaces: one in byte order, one in another.
const SPACES: usize = 2;

/// Which transactions lock what they touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// None.
    Never,
    /// Every second.
    Mixed,
    /// All.
    Always,
}

/// What a campaign does.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Threads at once.
    pub threads: u64,
    /// Transactions of each thread between two crashes.
    pub transactions: u64,
    /// Crashes.
    pub crashes: u64,
    /// Which transactions lock.
    pub locking: Locking,
    /// Whether reads bypass the transaction, so that nothing is validated: to test the test.
    pub unwatched: bool,
}

/// What a campaign came to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Transactions in the histories.
    pub committed: u64,
    /// Those that conflicted.
    pub conflicts: u64,
    /// Those whose outcome a crash took.
    pub lost: u64,
}

/// What a thread did.
struct Done {
    thread: u64,
    /// Its number among the commits of the thread; 0: it wrote nothing.
    number: u64,
    record: Record,
}

/// What the threads of one life of the database share.
struct Life<'d> {
    db: &'d Db,
    spaces: Vec<Keyspace>,
    progress: Keyspace,
    values: &'d AtomicU64,
    /// The number of the last commit of each thread that was answered.
    answered: Vec<AtomicU64>,
    plan: Plan,
}

fn universe(space: usize) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..KEYS).map(|n| format!("k{n:02}").into_bytes()).collect();
    if space == 1 {
        keys.sort_by(|a, b| Folded.compare(a, b));
    }
    keys
}

/// A transaction of the history in the making.
struct Making<'l> {
    life: &'l Life<'l>,
    keys: &'l [Vec<Vec<u8>>],
    rng: &'l mut Rng,
    /// Reads go here instead of to the transaction, if they are not to be validated.
    beside: Option<esker::Snapshot>,
    reads: BTreeMap<Key, Option<u64>>,
    writes: BTreeMap<Key, Option<u64>>,
}

/// The number that a value begins with.
fn number(value: &[u8]) -> u64 {
    let digits = value.split(|byte| *byte == b' ').next().unwrap_or_default();
    std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl Making<'_> {
    fn below(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    fn any_key(&mut self) -> Key {
        (self.below(SPACES), self.below(KEYS))
    }

    /// The bytes of a key; of those that the order calls equal, any.
    fn bytes(&mut self, key: Key) -> Vec<u8> {
        let bytes = self.keys[key.0][key.1].clone();
        if key.0 == 1 && self.rng.percent(50) { bytes.to_ascii_uppercase() } else { bytes }
    }

    fn value(&mut self) -> (u64, Vec<u8>) {
        let number = self.life.values.fetch_add(1, Ordering::Relaxed);
        let padding = self.below(200);
        (number, format!("{number} {}", "x".repeat(padding)).into_bytes())
    }

    fn saw(&mut self, key: Key, value: Option<u64>) {
        if !self.writes.contains_key(&key) {
            self.reads.insert(key, value);
        }
    }

    fn get(&mut self, tx: &Transaction) -> Result<Key> {
        let key = self.any_key();
        let bytes = self.bytes(key);
        let space = &self.life.spaces[key.0];
        let how = self.rng.below(4);
        let found = match (&self.beside, self.writes.contains_key(&key)) {
            (Some(snapshot), false) => snapshot.get(space, &bytes)?,
            _ if how == 0 => tx.get_for_update(space, &bytes)?,
            _ if how == 1 => tx.get_for_share(space, &bytes)?,
            _ => tx.get(space, &bytes)?,
        };
        self.saw(key, found.as_deref().map(number));
        Ok(key)
    }

    fn put(&mut self, tx: &Transaction, key: Key) -> Result<()> {
        let bytes = self.bytes(key);
        let space = &self.life.spaces[key.0];
        if self.rng.percent(25) {
            tx.remove(space, bytes)?;
            self.writes.insert(key, None);
        } else {
            let (number, value) = self.value();
            tx.insert(space, bytes, value)?;
            self.writes.insert(key, Some(number));
        }
        Ok(())
    }

    fn remove_range(&mut self, tx: &Transaction) -> Result<()> {
        let (space, first, len) = (self.below(SPACES), self.below(KEYS), self.below(4));
        let end = (first + len).min(KEYS - 1);
        let keys = &self.keys[space];
        tx.remove_range(&self.life.spaces[space], &keys[first][..]..&keys[end][..])?;
        self.writes.extend((first..end).map(|rank| ((space, rank), None)));
        Ok(())
    }

    /// Goes some way into a range, from one end or both; notes what was there, and what not.
    fn scan(&mut self, tx: &Transaction) -> Result<()> {
        let space = self.below(SPACES);
        let (a, b) = (self.below(KEYS), self.below(KEYS));
        let (first, last) = (a.min(b), a.max(b));
        let keys = self.keys[space].clone();
        let range = (Bound::Included(&keys[first][..]), Bound::Excluded(&keys[last][..]));
        let keyspace = &self.life.spaces[space];
        let mut beside = match &self.beside {
            Some(snapshot) if self.writes.is_empty() => {
                Some(snapshot.range::<&[u8]>(keyspace, range)?)
            }
            _ => None,
        };
        let mut iter = tx.range::<&[u8]>(keyspace, range)?;
        let (mut low, mut high) = (first, last);
        for _ in 0..self.below(2 * KEYS) {
            let forward = self.rng.percent(60);
            let found = match (&mut beside, forward) {
                (Some(iter), true) => iter.next(),
                (Some(iter), false) => iter.next_back(),
                (None, true) => iter.next(),
                (None, false) => iter.next_back(),
            };
            let Some((key, value)) = found.transpose()? else {
                (low..high).for_each(|rank| self.saw((space, rank), None));
                break;
            };
            let order = |known: &Vec<u8>| match space {
                1 => Folded.compare(known, &key),
                _ => known.as_slice().cmp(&key),
            };
            let rank = keys.iter().position(|known| order(known).is_eq()).unwrap_or(KEYS);
            assert!((low..high).contains(&rank), "an iterator left its range or went back");
            if forward {
                (low..rank).for_each(|rank| self.saw((space, rank), None));
                low = rank + 1;
            } else {
                (rank + 1..high).for_each(|rank| self.saw((space, rank), None));
                high = rank;
            }
            self.saw((space, rank), Some(number(&value)));
        }
        Ok(())
    }

    fn step(&mut self, tx: &Transaction) -> Result<()> {
        if self.rng.percent(40) {
            // Transactions are so short that few would meet otherwise.
            std::thread::yield_now();
        }
        match self.below(10) {
            0..=2 => self.get(tx).map(drop),
            3..=5 => {
                let key = self.get(tx)?;
                self.put(tx, key)
            }
            6 => {
                let key = self.any_key();
                self.put(tx, key)
            }
            7 => self.remove_range(tx),
            _ => self.scan(tx),
        }
    }

    fn record(self, position: u64) -> Record {
        let position = Some(position).filter(|position| *position > 0);
        let (reads, writes) = (self.reads.into_iter().collect(), self.writes.into_iter().collect());
        Record { position, reads, writes }
    }
}

impl Life<'_> {
    /// One random transaction; `None`: it did not commit.
    fn transaction(&self, thread: u64, number: u64, rng: &mut Rng) -> Result<Option<Done>> {
        let keys = [universe(0), universe(1)];
        let mut options = TransactionOptions::default();
        options.durability = match rng.below(20) {
            0 => Some(Durability::Disk),
            _ => None,
        };
        options.pessimistic = match self.plan.locking {
            Locking::Never => false,
            Locking::Mixed => rng.percent(50),
            Locking::Always => true,
        };
        // A thread that waits for a cycle would wait for ever.
        options.lock_timeout = Duration::MAX;
        let tx = self.db.begin_with(options)?;
        let beside = self.plan.unwatched.then(|| self.db.snapshot()).transpose()?;
        let (reads, writes) = (BTreeMap::new(), BTreeMap::new());
        let mut making = Making { life: self, keys: &keys, rng, beside, reads, writes };
        for _ in 0..1 + making.below(5) {
            match making.step(&tx) {
                Ok(()) => {}
                Err(error) if error.wants_retry() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let writes = !making.writes.is_empty();
        if writes {
            tx.insert(&self.progress, thread.to_string(), number.to_string())?;
        }
        match tx.commit() {
            Ok(position) => {
                let number = if writes { number } else { 0 };
                Ok(Some(Done { thread, number, record: making.record(position) }))
            }
            Err(Error::Conflict { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A batch: a transaction that reads nothing.
    fn plain_write(&self, thread: u64, number: u64, rng: &mut Rng) -> Result<Option<Done>> {
        let (space, rank) = (rng.below(SPACES as u64) as usize, rng.below(KEYS as u64) as usize);
        let value = self.values.fetch_add(1, Ordering::Relaxed);
        let mut batch = Batch::new();
        batch.insert(&self.spaces[space], &universe(space)[rank], value.to_string());
        batch.insert(&self.progress, thread.to_string(), number.to_string());
        let position = Some(self.db.write(batch)?);
        let writes = vec![((space, rank), Some(value))];
        Ok(Some(Done { thread, number, record: Record { position, reads: Vec::new(), writes } }))
    }

    fn run(&self, thread: u64, seed: u64, tell: &Sender<()>) -> Result<(Vec<Done>, u64)> {
        let mut rng = Rng::new(seed);
        let (mut done, mut conflicts) = (Vec::new(), 0);
        let mut number = self.answered[thread as usize].load(Ordering::Acquire);
        for _ in 0..self.plan.transactions {
            number += 1;
            let one = match rng.below(8) {
                0 => self.plain_write(thread, number, &mut rng)?,
                1 if rng.percent(20) => {
                    self.db.flush()?;
                    continue;
                }
                _ => self.transaction(thread, number, &mut rng)?,
            };
            match one {
                Some(one) => {
                    self.answered[thread as usize].fetch_max(one.number, Ordering::AcqRel);
                    done.push(one);
                }
                None => conflicts += 1,
            }
            // No thread listens any more once the disk was copied.
            let _ = tell.send(());
        }
        Ok((done, conflicts))
    }

    /// Everything there is, read in one transaction.
    fn read_all(&self) -> Result<Record> {
        let keys = [universe(0), universe(1)];
        let tx = self.db.begin()?;
        let mut record = Record::default();
        for (space, keys) in keys.iter().enumerate() {
            for (rank, key) in keys.iter().enumerate() {
                let found = tx.get(&self.spaces[space], key)?;
                record.reads.push(((space, rank), found.as_deref().map(number)));
            }
        }
        tx.commit().map(|_| record)
    }
}

/// What is left when the threads of one life are done.
struct Outcome {
    done: Vec<Done>,
    conflicts: u64,
    /// The disk as a crash left it.
    next: CrashFs,
    /// What the death of the process must not take.
    floor: Vec<u64>,
}

impl Life<'_> {
    /// Runs the threads; the disk is copied, as a crash leaves it, when they have done so much.
    fn run_all(&self, rng: &mut Rng, disk: &CrashFs, kill: bool) -> Result<Outcome> {
        let copy_after = rng.below(self.plan.threads * self.plan.transactions);
        let seeds: Vec<u64> = (0..self.plan.threads).map(|_| rng.next()).collect();
        let (copy_seed, percent) = (rng.next(), rng.below(101) as u32);
        let (tell, told): (Sender<()>, Receiver<()>) = channel();
        std::thread::scope(|scope| {
            let spawn = |(thread, seed): (u64, &u64)| {
                let seed = *seed;
                let tell = tell.clone();
                scope.spawn(move || self.run(thread, seed, &tell))
            };
            let threads: Vec<_> = (0..).zip(&seeds).map(spawn).collect();
            drop(tell);
            // If a thread ends early there is less to hear.
            (0..copy_after).for_each(|_| told.recv().unwrap_or_default());
            // What was answered before the copy survives the death of the process.
            let floor = self.answered.iter().map(|number| number.load(Ordering::Acquire)).collect();
            let next = if kill { disk.kill_clone() } else { disk.crash_clone(copy_seed, percent) };
            let mut outcome = Outcome { done: Vec::new(), conflicts: 0, next, floor };
            for thread in threads {
                let joined = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                let (done, conflicts) = joined?;
                outcome.done.extend(done);
                outcome.conflicts += conflicts;
            }
            Ok(outcome)
        })
    }
}

/// Runs threads on a database that crashes and goes on, and checks the whole history.
pub fn campaign(seed: u64, plan: Plan) -> Result<(Tally, Result<(), Anomaly>)> {
    let mut rng = Rng::new(seed);
    let mut disk = CrashFs::new();
    let values = AtomicU64::new(1);
    let mut history: Vec<Record> = Vec::new();
    let mut tally = Tally::default();
    let mut counters = vec![0; plan.threads as usize];
    for life in 0..=plan.crashes {
        let mut options = small_options(&mut rng);
        options.fs = disk.as_fs();
        let db = Db::open_with(Path::new("/db"), options)?;
        let spaces = vec![db.keyspace("bytes")?, db.keyspace_ordered("folded", Arc::new(Folded))?];
        let progress = db.keyspace("progress")?;
        let answered = counters.iter().map(|number| AtomicU64::new(*number)).collect();
        let here = Life { db: &db, spaces, progress, values: &values, answered, plan };
        history.push(here.read_all()?);
        let kill = rng.percent(50);
        let mut outcome = here.run_all(&mut rng, &disk, kill)?;
        tally.conflicts += outcome.conflicts;
        if life < plan.crashes {
            drop(here);
            drop(db);
            disk = outcome.next;
            counters = survivors(&disk, &mut rng, plan.threads)?;
            for (survived, answered) in counters.iter().zip(&outcome.floor) {
                assert!(!kill || survived >= answered, "a killed process lost a commit");
            }
            let all = outcome.done.len();
            keep_survivors(&mut outcome.done, &counters);
            tally.lost += (all - outcome.done.len()) as u64;
        } else {
            history.push(here.read_all()?);
        }
        history.extend(outcome.done.into_iter().map(|one| one.record));
    }
    tally.committed = history.len() as u64;
    Ok((tally, check(&history)))
}

/// How far each thread's commits survived.
fn survivors(disk: &CrashFs, rng: &mut Rng, threads: u64) -> Result<Vec<u64>> {
    // The disk is looked at through a copy, so that the next life begins right after the crash.
    let copy = disk.kill_clone();
    let mut options = small_options(rng);
    options.fs = copy.as_fs();
    let db = Db::open_with(Path::new("/db"), options)?;
    let progress = db.keyspace("progress")?;
    let number = |thread: u64| Ok(progress.get(thread.to_string())?.as_deref().map_or(0, number));
    (0..threads).map(number).collect()
}

/// Leaves out what a crash took. A transaction that only read is kept if everything survived that
/// it may have seen, which is so if none of its values came from what was lost.
fn keep_survivors(done: &mut Vec<Done>, counters: &[u64]) {
    let is_lost = |one: &Done| one.number > counters[one.thread as usize];
    let lost: BTreeSet<(Key, u64)> = done
        .iter()
        .filter(|one| is_lost(one))
        .flat_map(|one| &one.record.writes)
        .filter_map(|(key, value)| Some((*key, (*value)?)))
        .collect();
    let removed: BTreeSet<Key> = done
        .iter()
        .filter(|one| is_lost(one))
        .flat_map(|one| &one.record.writes)
        .filter(|(_, value)| value.is_none())
        .map(|(key, _)| *key)
        .collect();
    done.retain(|one| {
        let saw_lost = |(key, value): &(Key, Option<u64>)| match value {
            Some(value) => lost.contains(&(*key, *value)),
            None => removed.contains(key),
        };
        !is_lost(one) && (one.number > 0 || !one.record.reads.iter().any(saw_lost))
    });
}
