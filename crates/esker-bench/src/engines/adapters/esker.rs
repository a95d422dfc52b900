//! Esker through its public interface; only options that the user gave are set.
//!
//! *The write buffer*, if one is given, scales partitions and segments along, so that a small database is
//! shaped as a large one is.
//!
//! *Transactions* are those of [`Db::begin`]: they take no locks and are checked when they commit. That
//! is the default, and suits workloads with few conflicts. Two of LinkBench's transactions conflict if
//! they change links of the same id and type.

use crate::engines::Durability;
use crate::engines::links::keyed::{Attempt, Body, KeyedLinks, Lost, Transaction, Transactions};
use crate::engines::links::{LinkSession, LinkStore};
use crate::engines::{Cursor, Direction, Engine, EngineBytes, EngineSpec, OpenOptions, Session};
use crate::{Error, Result};
use esker::{Batch, Db, Iter, Keyspace, Options};

/// An open Esker database.
pub struct EskerEngine {
    db: Db,
    keyspace: Keyspace,
    default: Durability,
    settings: Vec<(String, String)>,
}

/// The registry's opener.
pub fn open(_: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    Ok(Box::new(EskerEngine::open(options)?))
}

fn failed(what: &str) -> impl FnOnce(esker::Error) -> Error {
    move |cause| Error::engine("esker", what, cause)
}

fn class(durability: Durability) -> esker::Durability {
    match durability {
        Durability::Buffered => esker::Durability::Buffered,
        Durability::Process => esker::Durability::Process,
        Durability::Disk => esker::Durability::Disk,
    }
}

/// With a write buffer of fewer bytes, the engine's partitions are not in proportion to it.
const PROPORTIONAL_BYTES: u64 = 512 << 10;

/// Sets the write buffer that was asked for, and what has to be in proportion to it. Returns what the
/// report says of it.
fn scaled(set: &mut Options, write_buffer_bytes: Option<u64>) -> Vec<(String, String)> {
    let Some(bytes) = write_buffer_bytes else { return Vec::new() };
    set.memtable_bytes = Some(bytes);
    // From a certain size on the engine's own choice is in proportion.
    let partition_bytes = (bytes < PROPORTIONAL_BYTES).then(|| (8 * bytes).max(32 << 10));
    set.partition_bytes = partition_bytes;
    set.segment_bytes = (bytes / 8).clamp(4 << 10, 1 << 20) as u32;
    let note = |name: &str, bytes: u64| (name.to_owned(), format!("{bytes} bytes"));
    let mut notes = vec![note("write buffer (memtable_bytes)", bytes)];
    notes.extend(partition_bytes.map(|bytes| note("partition_bytes", bytes)));
    notes.push(note("segment_bytes", set.segment_bytes.into()));
    notes
}

impl EskerEngine {
    /// Opens or makes the database.
    pub fn open(options: &OpenOptions<'_>) -> Result<Self> {
        let mut set = Options::default();
        set.memory = options.memory;
        set.durability = class(options.durability);
        let mut settings = scaled(&mut set, options.write_buffer_bytes);
        settings.extend([
            ("durability".into(), format!("{:?}", set.durability).to_lowercase()),
            ("compression".into(), format!("{:?}", set.compression).to_lowercase()),
            ("block".into(), format!("{} bytes", set.block_bytes)),
        ]);
        if options.transactions {
            let how = "checked when they commit, without locks (its default: they seldom meet)";
            settings.push(("transactions".into(), how.into()));
        }
        let db = Db::open_with(options.dir, set).map_err(failed("open"))?;
        let keyspace = db.default_keyspace();
        Ok(Self { db, keyspace, default: options.durability, settings })
    }
}

impl LinkStore for EskerEngine {
    fn links(&self) -> Result<Box<dyn LinkSession + '_>> {
        Ok(Box::new(KeyedLinks::new(EskerSession::new(self), self.default)))
    }
}

impl Engine for EskerEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(EskerSession::new(self)))
    }

    fn link_store(&self) -> Option<&dyn LinkStore> {
        Some(self)
    }

    fn flush(&self) -> Result<()> {
        self.db.flush().map_err(failed("flush"))
    }

    fn compact(&self) -> Result<()> {
        self.db.compact().map_err(failed("compact"))
    }

    fn wait_idle(&self) -> Result<()> {
        self.db.wait_until_idle().map_err(failed("wait until idle"))
    }

    fn version(&self) -> String {
        format!("Esker {}", crate::engines::locked_version("esker"))
    }

    fn settings(&self) -> Vec<(String, String)> {
        let mut settings = self.settings.clone();
        settings.push(("memory".into(), format!("{} bytes", self.db.stats().memory.limit)));
        settings
    }

    fn bytes_written(&self) -> Option<EngineBytes> {
        let written = self.db.stats().written;
        Some(EngineBytes {
            user: written.user,
            log: written.log,
            flush: written.flush,
            compaction: written.compaction,
            other: written.manifest,
        })
    }

    fn stats(&self) -> String {
        format!("{:#?}", self.db.stats())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(failed("close"))
    }
}

struct EskerSession<'a> {
    engine: &'a EskerEngine,
    batch: Batch,
}

impl<'a> EskerSession<'a> {
    fn new(engine: &'a EskerEngine) -> Self {
        Self { engine, batch: Batch::new() }
    }
}

fn lost(what: &str) -> impl FnOnce(esker::Error) -> Lost {
    move |cause| {
        if cause.wants_retry() { Lost::Conflict } else { Lost::Failed(failed(what)(cause)) }
    }
}

struct EskerTransaction<'a> {
    txn: &'a esker::Transaction,
    keyspace: &'a Keyspace,
}

impl Transaction for EskerTransaction<'_> {
    fn get_for_update(&mut self, key: &[u8]) -> Attempt<Option<Vec<u8>>> {
        self.txn.get_for_update(self.keyspace, key).map_err(lost("read in a transaction"))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Attempt<()> {
        self.txn.insert(self.keyspace, key, value).map_err(lost("write in a transaction"))
    }

    fn delete(&mut self, key: &[u8]) -> Attempt<()> {
        self.txn.remove(self.keyspace, key).map_err(lost("delete in a transaction"))
    }
}

impl Transactions for EskerSession<'_> {
    fn attempt(&mut self, body: Body<'_>) -> Attempt<()> {
        let txn = self.engine.db.begin().map_err(failed("begin of a transaction"))?;
        body(&mut EskerTransaction { txn: &txn, keyspace: &self.engine.keyspace })?;
        txn.commit().map(|_| ()).map_err(lost("commit of a transaction"))
    }
}

impl Session for EskerSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.engine.keyspace.insert_with(key, value, class(durability)).map_err(failed("write"))
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.engine.keyspace.remove_with(key, class(durability)).map_err(failed("delete"))
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        let mut batch = Batch::new();
        let added = batch.remove_range(&self.engine.keyspace, start..end);
        added.map_err(failed("delete of a range"))?;
        let written = self.engine.db.write_with(batch, class(durability));
        written.map(|_| ()).map_err(failed("delete of a range"))
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.insert(&self.engine.keyspace, key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.remove(&self.engine.keyspace, key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        let batch = std::mem::replace(&mut self.batch, Batch::new());
        let written = self.engine.db.write_with(batch, class(durability));
        written.map(|_| ()).map_err(failed("write of a batch"))
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let present = self.engine.keyspace.get_with(key, found).map_err(failed("read"))?;
        Ok(present.is_some())
    }

    fn multi_get(&mut self, keys: &[Vec<u8>], found: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let values = self.engine.keyspace.multi_get(keys).map_err(failed("multi-read"))?;
        for (place, value) in values.iter().enumerate() {
            if let Some(value) = value {
                found(place, value);
            }
        }
        Ok(())
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let keyspace = &self.engine.keyspace;
        let iter = match (from, direction) {
            (None, _) => keyspace.iter(),
            (Some(from), Direction::Forward) => keyspace.range(from..),
            (Some(from), Direction::Reverse) => keyspace.range(..=from),
        };
        Ok(Box::new(EskerCursor { iter: iter.map_err(failed("seek"))?, direction }))
    }
}

struct EskerCursor {
    iter: Iter,
    direction: Direction,
}

impl Cursor for EskerCursor {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match self.direction {
            Direction::Forward => self.iter.next_entry(),
            Direction::Reverse => self.iter.next_back_entry(),
        }
        .map_err(failed("iteration"))
    }
}
