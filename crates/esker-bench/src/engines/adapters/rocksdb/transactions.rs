//! RocksDB with transactions: a `TransactionDB` with the options of the plain one.
//!
//! MyRocks uses the same. A transaction locks what it writes and what it reads in order to write. A
//! transaction that waits for a lock longer than a second, or is part of a deadlock, begins again. The
//! crate offers no maintenance calls on such a database, so flushing and compacting it is refused here.

use super::options::{Settings, note};
use super::shared::{RocksCursor, Tickers, Writes, failed, version};
use crate::engines::Durability;
use crate::engines::links::keyed::{Attempt, Body, KeyedLinks, Lost, Transaction, Transactions};
use crate::engines::links::{LinkSession, LinkStore};
use crate::engines::{Cursor, Direction, Engine, EngineBytes, OpenOptions, Session};
use crate::{Error, Result};
use rocksdb::{
    ErrorKind, MultiThreaded, Options, ReadOptions, TransactionDB, TransactionDBOptions,
    TransactionOptions, WriteBatchWithTransaction,
};

/// The kind of which the crate shows the tree's shape; families are not made while it is open.
type Database = TransactionDB<MultiThreaded>;

/// An open database with transactions.
pub struct LockingEngine {
    db: Database,
    tickers: Tickers,
    default: Durability,
    settings: Settings,
}

impl LockingEngine {
    /// Opens or makes the database with the options of the plain engine.
    pub fn open(
        set: Options,
        counted: bool,
        options: &OpenOptions<'_>,
        mut settings: Settings,
    ) -> Result<Self> {
        note(
            &mut settings,
            "transactions",
            "TransactionDB: locks, its defaults, with detection of deadlocks",
        );
        let db = Database::open(&set, &TransactionDBOptions::default(), options.dir);
        let db = db.map_err(failed("open"))?;
        let tickers = Tickers { options: set, counted };
        Ok(Self { db, tickers, default: options.durability, settings })
    }

    fn locking_session(&self) -> LockingSession<'_> {
        let mut how = TransactionOptions::default();
        how.set_deadlock_detect(true);
        LockingSession {
            engine: self,
            writes: Writes::default(),
            how,
            read: ReadOptions::default(),
            batch: WriteBatchWithTransaction::default(),
        }
    }
}

fn not_offered(what: &str) -> Error {
    Error::engine("rocksdb", what, "the crate has no such call on a TransactionDB")
}

impl LinkStore for LockingEngine {
    fn links(&self) -> Result<Box<dyn LinkSession + '_>> {
        Ok(Box::new(KeyedLinks::new(self.locking_session(), self.default)))
    }
}

impl Engine for LockingEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(self.locking_session()))
    }

    fn flush(&self) -> Result<()> {
        Err(not_offered("flush"))
    }

    fn compact(&self) -> Result<()> {
        Err(not_offered("compact"))
    }

    fn wait_idle(&self) -> Result<()> {
        Err(not_offered("wait for compactions"))
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        version()
    }

    fn bytes_written(&self) -> Option<EngineBytes> {
        self.tickers.bytes_written()
    }

    fn link_store(&self) -> Option<&dyn LinkStore> {
        Some(self)
    }

    fn stats(&self) -> String {
        let shape = self.db.property_value("rocksdb.stats").ok().flatten().unwrap_or_default();
        self.tickers.beside(shape)
    }

    fn close(self: Box<Self>) -> Result<()> {
        // What has no log is written out by the close itself, which cannot report what fails.
        Ok(())
    }
}

struct LockingSession<'a> {
    engine: &'a LockingEngine,
    writes: Writes,
    how: TransactionOptions,
    read: ReadOptions,
    batch: WriteBatchWithTransaction<true>,
}

fn lost(what: &str) -> impl FnOnce(rocksdb::Error) -> Lost {
    move |cause| match cause.kind() {
        ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::TryAgain => Lost::Conflict,
        _ => Lost::Failed(failed(what)(cause)),
    }
}

struct LockingTransaction<'a> {
    txn: &'a rocksdb::Transaction<'a, Database>,
}

impl Transaction for LockingTransaction<'_> {
    fn get_for_update(&mut self, key: &[u8]) -> Attempt<Option<Vec<u8>>> {
        self.txn.get_for_update(key, true).map_err(lost("read in a transaction"))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Attempt<()> {
        self.txn.put(key, value).map_err(lost("write in a transaction"))
    }

    fn delete(&mut self, key: &[u8]) -> Attempt<()> {
        self.txn.delete(key).map_err(lost("delete in a transaction"))
    }
}

impl Transactions for LockingSession<'_> {
    fn attempt(&mut self, body: Body<'_>) -> Attempt<()> {
        let options = self.writes.of(self.engine.default);
        // Dropping it takes it back.
        let txn = self.engine.db.transaction_opt(options, &self.how);
        body(&mut LockingTransaction { txn: &txn })?;
        txn.commit().map_err(lost("commit of a transaction"))
    }
}

// Ranges are deleted key by key: such a database refuses its own call, which could not be locked.
impl Session for LockingSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        let options = self.writes.of(durability);
        self.engine.db.put_opt(key, value, options).map_err(failed("write"))
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.engine.db.delete_opt(key, self.writes.of(durability)).map_err(failed("delete"))
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let options = self.writes.of(durability);
        self.engine.db.write_opt(batch, options).map_err(failed("write of a batch"))
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.engine.db.get_pinned_opt(key, &self.read).map_err(failed("read"))?;
        Ok(value.map(|value| found(&value)).is_some())
    }

    fn multi_get(&mut self, keys: &[Vec<u8>], found: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let values = self.engine.db.multi_get_opt(keys, &self.read);
        for (place, value) in values.into_iter().enumerate() {
            if let Some(value) = value.map_err(failed("multi-read"))? {
                found(place, &value);
            }
        }
        Ok(())
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(RocksCursor::new(self.engine.db.raw_iterator(), from, direction)))
    }
}
