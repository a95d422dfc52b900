//! Applies writes of the model to a database, and reads a database back as a model.

use crate::model::{Folded, Joined, Model, NAMES, Op, Trimmed, is_folded, merges};
use esker::internals::options::{SmallRest, SmallTiers};
use esker::{
    Associative, AssociativeOperator, Batch, Clock, CompactionFilter, Compression, Db, Durability,
    Ingestion, Iter, Keyspace, KeyspaceOptions, LogKind, Options, Result, Snapshot, Transaction,
    TransactionOptions, ValueReader,
};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::rng::Rng;

/// A clock that stands still until it is set.
#[derive(Debug, Default)]
pub struct HandClock(AtomicU64);

impl HandClock {
    /// Sets the time, in milliseconds.
    pub fn set(&self, millis: u64) {
        self.0.store(millis, Ordering::SeqCst);
    }

    /// Lets so many milliseconds pass.
    pub fn advance(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now_millis(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A cache that is smaller than the data of short tests. In a smaller one no block would be kept that was missed: it is
/// taken for one of 4 KiB, which may be a quarter of the cache.
pub const SMALL_CACHE: u64 = 16 << 10;

/// Options that make everything small, so that a short test flushes, compacts, splits and rotates.
pub fn small_options(rng: &mut Rng) -> Options {
    let mut options = Options::default();
    options.memory = Some(1 << 20);
    options.memtable_bytes = Some(16 << 10);
    options.partition_bytes = Some(pick(rng, &[16 << 10, 32 << 10, 64 << 10]));
    options.segment_bytes = pick(rng, &[2 << 10, 4 << 10, 8 << 10]);
    options.block_bytes = pick(rng, &[256, 512]);
    options.log_file_bytes = pick(rng, &[16 << 10, 32 << 10, 64 << 10]);
    options.log = pick(rng, &[LogKind::Plain, LogKind::Mapped]);
    let compressions = [Compression::Auto, Compression::None, Compression::Lz4, Compression::Zstd];
    options.compression = pick(rng, &compressions);
    options.workers = Some(1 + rng.below(2) as usize);
    if options.segment_bytes == 4 << 10 {
        options.cold_after = Some(Duration::from_millis(20));
        options.small_cold = true;
    }
    // Half of all values, and nothing else draws a number for it: seeds mean what they meant before.
    if options.block_bytes == 256 {
        options.separate_values_from = Some(24);
    }
    // A third of all, in the same way: a cache of a few segments, which is smaller than the data.
    if options.partition_bytes == Some(32 << 10) {
        options.small_cache = Some(SMALL_CACHE);
    }
    options.max_space_amplification = pick(rng, &[1.1, 1.45]);
    options.small_space = Some(pick(rng, &[0, 8 << 10, 16 << 20]));
    know_the_model(&mut options);
    options
}

/// The most tiers that a tree may have, and that [`with_tiers`] gives it.
pub use esker::internals::compaction::policy::TIERS_MAX;

/// Gives the database tiers of some shape, or none, and partitions so small that there are many.
pub fn with_tiers(options: &mut Options, rng: &mut Rng) {
    options.partition_bytes = Some(pick(rng, &[4 << 10, 8 << 10]));
    options.segment_bytes = pick(rng, &[1 << 10, 2 << 10]);
    options.small_tiers = Some(SmallTiers {
        count: rng.below(TIERS_MAX as u64 + 1) as usize,
        fan_out: 2 + rng.below(3) as usize,
        runs: 1 + rng.below(4) as usize,
        direct: rng.below(3) as usize,
        tightens: rng.percent(30),
    });
}

/// Lets the log rest at each pause of the writes, however short, in a file of 8 KiB.
pub fn with_rests(options: &mut Options) {
    options.small_rest = Some(SmallRest { after: Duration::ZERO, file_bytes: 8 << 10 });
}

/// The same small sizes in every run: little data makes many runs and partitions.
pub fn tiny_options() -> Options {
    let mut options = Options::default();
    options.memory = Some(2 << 20);
    options.memtable_bytes = Some(16 << 10);
    options.partition_bytes = Some(16 << 10);
    options.segment_bytes = 4 << 10;
    options.block_bytes = 512;
    options.log_file_bytes = 32 << 10;
    options.workers = Some(1);
    options
}

/// Registers what the keyspaces of the model need, and a clock that stands still.
pub fn know_the_model(options: &mut Options) {
    options.comparators = vec![Arc::new(Folded)];
    options.merge_operators = vec![Arc::new(Associative(Joined))];
    options.compaction_filters = vec![Arc::new(Trimmed)];
    // Nothing expires unless a test lets time go on.
    options.clock = Arc::new(HandClock::default());
}

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// The keyspace of a slot, made if it is missing. If it has a compaction filter, it keeps it.
pub fn keyspace(db: &Db, slot: usize) -> Result<Keyspace> {
    db.keyspace_with(NAMES[slot], keyspace_options(slot))
}

/// As [`keyspace`]; it gets the compaction filter [`Trimmed`], if that of the model has one.
fn create(db: &Db, slot: usize, model: &Model) -> Result<Keyspace> {
    let mut options = keyspace_options(slot);
    options.compaction_filter = model.filters(slot).then(|| Trimmed.name().to_owned());
    db.keyspace_with(NAMES[slot], options)
}

fn keyspace_options(slot: usize) -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    if is_folded(slot) {
        options.comparator = Some(Arc::new(Folded));
    }
    if merges(slot) {
        options.merge_operator = Some(Joined.name().to_owned());
    }
    options
}

/// Applies writes as one batch, which must not make or drop keyspaces. Returns its position.
pub fn write(db: &Db, ops: &[Op], durability: Durability) -> Result<u64> {
    db.write_with(batch_of(db, ops)?, durability)
}

/// Applies writes as [`write()`] does, without a wait for a turn, memory or space. A single put or delete in
/// the class of the database goes the short way that there is for it.
///
/// # Errors
/// As the write; [`esker::Error::WouldBlock`] if it would have to wait: then nothing is written.
pub fn try_write(db: &Db, ops: &[Op], durability: Durability) -> Result<()> {
    match ops {
        [Op::Put(slot, key, value)] if durability == Durability::Process => {
            keyspace(db, *slot)?.try_insert(key, value)
        }
        [Op::Delete(slot, key)] if durability == Durability::Process => {
            keyspace(db, *slot)?.try_remove(key)
        }
        ops => db.try_write_with(batch_of(db, ops)?, durability).map(drop),
    }
}

/// These writes, which must not make or drop keyspaces.
fn batch_of(db: &Db, ops: &[Op]) -> Result<Batch> {
    let mut batch = Batch::new();
    for op in ops {
        match op {
            Op::Put(slot, key, value) => batch.insert(&keyspace(db, *slot)?, key, value),
            Op::PutFor(slot, key, value, ttl) => {
                let ttl = Duration::from_millis(*ttl);
                batch.insert_with_ttl(&keyspace(db, *slot)?, key, value, ttl);
            }
            Op::Merge(slot, key, operand) => batch.merge(&keyspace(db, *slot)?, key, operand),
            Op::Delete(slot, key) => batch.remove(&keyspace(db, *slot)?, key),
            Op::DeleteRange(slot, start, end) => {
                let keyspace = keyspace(db, *slot)?;
                let low = start.as_deref().map_or(Bound::Unbounded, Bound::Included);
                let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                batch.remove_range::<&[u8]>(&keyspace, (low, high))?;
            }
            Op::Create(_) | Op::Drop(_) | Op::SetTtl(..) | Op::Tick(_) => {
                return Err(esker::Error::InvalidArgument {
                    what: "keyspaces are not made or dropped in batches".to_owned(),
                });
            }
        }
    }
    Ok(batch)
}

/// Applies writes as one transaction, with reads, and with writes that are taken back, in between.
/// No other thread may write meanwhile. Returns its position.
pub fn transact(db: &Db, ops: &[Op], durability: Durability, rng: &mut Rng) -> Result<u64> {
    let mut options = TransactionOptions::default();
    options.pessimistic = rng.percent(30);
    options.durability = Some(durability);
    let tx = db.begin_with(options)?;
    for op in ops {
        let Some(slot) = op.writes_to() else {
            let what = "keyspaces are not made or dropped in transactions".to_owned();
            return Err(esker::Error::InvalidArgument { what });
        };
        let keyspace = keyspace(db, slot)?;
        if rng.percent(10) {
            let point = tx.savepoint();
            tx.remove_range::<&[u8]>(&keyspace, ..)?;
            tx.insert(&keyspace, "never", "seen")?;
            tx.rollback_to(&point)?;
        }
        match op {
            Op::Put(_, key, value) => {
                tx.get(&keyspace, key)?;
                write_in(db, &tx, op)?;
                assert_eq!(tx.get(&keyspace, key)?.as_ref(), Some(value));
            }
            _ => write_in(db, &tx, op)?,
        }
    }
    tx.commit()
}

/// Applies one write to a transaction.
pub fn write_in(db: &Db, tx: &Transaction, op: &Op) -> Result<()> {
    match op {
        Op::Put(slot, key, value) => tx.insert(&keyspace(db, *slot)?, key, value),
        Op::PutFor(slot, key, value, ttl) => {
            let ttl = Duration::from_millis(*ttl);
            tx.insert_with_ttl(&keyspace(db, *slot)?, key, value, ttl)
        }
        Op::Merge(slot, key, operand) => tx.merge(&keyspace(db, *slot)?, key, operand),
        Op::Delete(slot, key) => tx.remove(&keyspace(db, *slot)?, key),
        Op::DeleteRange(slot, start, end) => {
            let low = start.as_deref().map_or(Bound::Unbounded, Bound::Included);
            let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            tx.remove_range::<&[u8]>(&keyspace(db, *slot)?, (low, high))
        }
        _ => Err(esker::Error::InvalidArgument {
            what: "a transaction makes and drops no keyspaces".to_owned(),
        }),
    }
}

/// Applies writes as one ingestion, or as two that are joined. Ranges come before the entries of their
/// keyspace, which are in order; no keyspace is made or dropped. Half of all values come from readers.
///
/// # Errors
/// What a call of the ingestion fails with; then it is dropped.
pub fn ingest(db: &Db, ops: &[Op], rng: &mut Rng) -> Result<()> {
    let mut ingestion = db.ingest()?;
    if rng.percent(40) {
        let mut other = db.ingest()?;
        let (first, second) = ops.split_at(rng.below(ops.len() as u64 + 1) as usize);
        add_all(db, &mut ingestion, first)?;
        add_all(db, &mut other, second)?;
        ingestion.join(other)?;
    } else {
        add_all(db, &mut ingestion, ops)?;
    }
    ingestion.commit()
}

/// Adds writes to an ingestion.
///
/// # Errors
/// What adding one fails with.
pub fn add_all(db: &Db, ingestion: &mut Ingestion, ops: &[Op]) -> Result<()> {
    ops.iter().try_for_each(|op| add(db, ingestion, op))
}

fn add(db: &Db, ingestion: &mut Ingestion, op: &Op) -> Result<()> {
    match op {
        // Half of them come in pieces, if they are long enough.
        Op::Put(slot, key, value) if value.len().is_multiple_of(2) => {
            ingestion.insert_reader(&keyspace(db, *slot)?, key, value.as_slice()).map(drop)
        }
        Op::Put(slot, key, value) => ingestion.insert(&keyspace(db, *slot)?, key, value),
        Op::PutFor(slot, key, value, ttl) => {
            let ttl = Duration::from_millis(*ttl);
            ingestion.insert_with_ttl(&keyspace(db, *slot)?, key, value, ttl)
        }
        Op::Merge(slot, key, operand) => ingestion.merge(&keyspace(db, *slot)?, key, operand),
        Op::Delete(slot, key) => ingestion.remove(&keyspace(db, *slot)?, key),
        Op::DeleteRange(slot, start, end) => {
            let low = start.as_ref().map_or(Bound::Unbounded, Bound::Included);
            let high = end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            ingestion.remove_range::<&Vec<u8>>(&keyspace(db, *slot)?, (low, high))
        }
        Op::Create(_) | Op::Drop(_) | Op::SetTtl(..) | Op::Tick(_) => Ok(()),
    }
}

/// Whether a failure has ended writing, so that only the next open says what became of the call that failed.
pub fn is_poisoned(db: &Db) -> bool {
    let dropped = db.drop_branch("there is no such branch");
    dropped.is_err_and(|error| matches!(error, esker::Error::Poisoned { .. }))
}

/// Applies one write on its own, by the shortest way there is for it.
pub fn write_one(db: &Db, op: &Op, durability: Durability) -> Result<()> {
    match op {
        Op::Put(slot, key, value) => keyspace(db, *slot)?.insert_with(key, value, durability),
        Op::Delete(slot, key) => keyspace(db, *slot)?.remove_with(key, durability),
        Op::Merge(slot, key, operand) => keyspace(db, *slot)?.merge_with(key, operand, durability),
        Op::SetTtl(slot, ttl) => {
            let ttl = Some(Duration::from_millis(*ttl)).filter(|ttl| !ttl.is_zero());
            keyspace(db, *slot)?.set_ttl(ttl)
        }
        Op::Tick(_) => Ok(()),
        Op::PutFor(..) | Op::DeleteRange(..) => {
            write(db, std::slice::from_ref(op), durability).map(drop)
        }
        Op::Create(slot) => keyspace(db, *slot).map(drop),
        Op::Drop(slot) => db.drop_keyspace(NAMES[*slot]).map(drop),
    }
}

/// As [`write_one`]; a keyspace that is made gets the compaction filter that it has in the model.
pub fn write_as(db: &Db, op: &Op, durability: Durability, model: &Model) -> Result<()> {
    match op {
        Op::Create(slot) => create(db, *slot, model).map(drop),
        _ => write_one(db, op, durability),
    }
}

/// Reads everything a database holds.
pub fn read_all(db: &Db) -> Result<Model> {
    read_some(db, |_| true)
}

/// Reads what a database holds in some slots; of the others it only finds out which there are.
pub fn read_some(db: &Db, which: impl Fn(usize) -> bool) -> Result<Model> {
    let mut model = Model::new();
    let names = db.keyspaces()?;
    for slot in (0..NAMES.len()).filter(|slot| names.iter().any(|name| name == NAMES[*slot])) {
        model.apply(&Op::Create(slot));
        if which(slot) {
            fill(&mut model, slot, keyspace(db, slot)?.iter()?)?;
        }
    }
    Ok(model)
}

/// A value, from a reader for half of the keys.
///
/// # Errors
/// What the read fails with.
pub fn get_either_way(keyspace: &Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>> {
    if key.len().is_multiple_of(2) {
        keyspace.get_reader(key).map(drain)
    } else {
        keyspace.get(key)
    }
}

/// All that a reader of a value gives, from somewhere in the middle on first.
///
/// # Panics
/// If it fails.
pub fn drain(reader: Option<ValueReader>) -> Option<Vec<u8>> {
    let mut reader = reader?;
    let (mut value, mut end) = (Vec::new(), Vec::new());
    let half = reader.len() / 2;
    let mut read = || {
        reader.seek(SeekFrom::Start(half))?;
        reader.read_to_end(&mut end)?;
        reader.rewind()?;
        reader.read_to_end(&mut value)
    };
    read().unwrap_or_else(|e| panic!("a reader of a value: {e}"));
    assert!(value[half as usize..] == end, "a value has another second half");
    Some(value)
}

/// Takes over what an iterator shows, which must be in order.
fn fill(model: &mut Model, slot: usize, iter: Iter) -> Result<()> {
    let mut last: Option<Vec<u8>> = None;
    for pair in iter {
        let (key, value) = pair?;
        let sort_key = model.map(slot).map(|map| map.sort_key(&key));
        assert!(last.is_none() || last < sort_key, "{} is out of order", key.escape_ascii());
        last = sort_key;
        model.apply(&Op::Put(slot, key, value));
    }
    Ok(())
}

/// Reads what a snapshot shows of the keyspaces that are there now.
pub fn read_snapshot(db: &Db, snapshot: &Snapshot, slots: &[usize]) -> Result<Model> {
    let mut model = Model::new();
    for slot in slots {
        model.apply(&Op::Create(*slot));
        fill(&mut model, *slot, snapshot.iter(&keyspace(db, *slot)?)?)?;
    }
    Ok(model)
}
