//! redb, opened as its documentation shows.
//!
//! *Memory*: `set_cache_size`, with the bytes given. *Durability*: class `disk` is redb's own default,
//! `Durability::Immediate`, with an fsync in every commit. In class `process` the commits are the same,
//! and the file below them leaves the fsync out: redb writes every page of a commit before it asks for
//! the sync, so the operating system has all of it. Class `buffered` is `Durability::None`, which keeps
//! commits in the process until a later commit is durable.
//!
//! *Transactions*: every write of redb is in a transaction, and only one can be open at a time. A read
//! needs a transaction too. A session keeps its read transaction until somebody commits; a reader sees
//! the same data as with one transaction for every read.

use crate::engines::Durability;
use crate::engines::links::keyed::{Attempt, Body, KeyedLinks, Lost, Transaction, Transactions};
use crate::engines::links::{LinkSession, LinkStore};
use crate::engines::pending::Pending;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session, locked_version};
use crate::{Error, Result};
use redb::backends::FileBackend;
use redb::{
    AccessGuard, BackendError, Database, ReadOnlyTable, ReadTransaction, ReadableDatabase,
    ReadableTable, StorageBackend, TableDefinition, WriteTransaction,
};
use std::fmt::Display;
use std::fs::OpenOptions as FileOptions;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("default");

fn failed<E: Display>(what: &str) -> impl FnOnce(E) -> Error {
    move |cause| Error::engine("redb", what, cause)
}

/// The database file, whose syncs can be left out.
#[derive(Debug)]
struct File {
    inner: FileBackend,
    /// Whether the commit under way has to reach the device.
    sync: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
}

impl StorageBackend for File {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.sync.load(Ordering::Acquire) { self.inner.sync_data() } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(from, to)
    }

    fn try_lock_shared_range(
        &self,
        from: Bound<u64>,
        to: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(from, to)
    }

    fn lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(from, to)
    }

    fn lock_shared_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(from, to)
    }

    fn unlock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(from, to)
    }

    fn query_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(from, to)
    }
}

/// An open redb database.
pub struct RedbEngine {
    /// Only a compaction takes it for itself.
    db: RwLock<Database>,
    sync: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    /// Counts commits, so that sessions know when their view is old.
    commits: AtomicU64,
    default: Durability,
    settings: Vec<(String, String)>,
}

/// Opens or makes the database.
pub fn open(_spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    Ok(Box::new(RedbEngine::open(options)?))
}

impl RedbEngine {
    fn open(options: &OpenOptions<'_>) -> Result<Self> {
        std::fs::create_dir_all(options.dir)
            .map_err(|error| Error::io("make", options.dir, &error))?;
        let path = options.dir.join("data.redb");
        let file = FileOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| Error::io("open", &path, &error))?;
        let sync = Arc::new(AtomicBool::new(true));
        let written = Arc::new(AtomicU64::new(0));
        let inner = FileBackend::new(file).map_err(failed("open"))?;
        let backend = File { inner, sync: Arc::clone(&sync), written: Arc::clone(&written) };
        let mut builder = Database::builder();
        let mut settings = Vec::new();
        if let Some(bytes) = options.memory {
            builder.set_cache_size(usize::try_from(bytes).unwrap_or(usize::MAX));
            settings.push(("cache".into(), format!("{bytes} bytes")));
        } else {
            settings.push(("cache".into(), "1 GiB (its default)".into()));
        }
        let db = builder.create_with_backend(backend).map_err(failed("open"))?;
        let commit = match options.durability {
            Durability::Buffered => "Durability::None",
            Durability::Process => "Durability::Immediate on a file whose syncs are left out",
            Durability::Disk => "Durability::Immediate (its default)",
        };
        settings.push(("commit".into(), commit.into()));
        settings.push(("writes".into(), "a transaction for each write or batch".into()));
        if options.transactions {
            let how = "its write transactions, one at a time";
            settings.push(("transactions".into(), how.into()));
        }
        settings.push(("everything else".into(), "defaults".into()));
        let (db, commits, default) = (RwLock::new(db), AtomicU64::new(0), options.durability);
        let engine = Self { db, sync, written, commits, default, settings };
        // Readers need the table to be there.
        engine.write(engine.default, |_| Ok(()))?;
        Ok(engine)
    }

    fn db(&self) -> RwLockReadGuard<'_, Database> {
        self.db.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `change` in a transaction of the class asked for.
    fn write(
        &self,
        class: Durability,
        change: impl FnOnce(&mut Table<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut txn: WriteTransaction =
            self.db().begin_write().map_err(failed("begin of a write"))?;
        // There is one writer at a time, so the flag is this transaction's until its commit is over.
        self.sync.store(class == Durability::Disk, Ordering::Release);
        let level = match class {
            Durability::Buffered => redb::Durability::None,
            Durability::Process | Durability::Disk => redb::Durability::Immediate,
        };
        txn.set_durability(level).map_err(failed("set of the durability"))?;
        {
            let mut table = txn.open_table(TABLE).map_err(failed("open of the table"))?;
            change(&mut table)?;
        }
        txn.commit().map_err(failed("commit"))?;
        self.commits.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

type Table<'txn> = redb::Table<'txn, &'static [u8], &'static [u8]>;

impl LinkStore for RedbEngine {
    fn links(&self) -> Result<Box<dyn LinkSession + '_>> {
        Ok(Box::new(KeyedLinks::new(RedbSession::new(self), self.default)))
    }
}

impl Engine for RedbEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RedbSession::new(self)))
    }

    fn link_store(&self) -> Option<&dyn LinkStore> {
        Some(self)
    }

    fn flush(&self) -> Result<()> {
        // An empty commit of a stronger class brings out what weaker ones kept.
        self.write(self.default.max(Durability::Process), |_| Ok(()))
    }

    fn compact(&self) -> Result<()> {
        self.sync.store(self.default == Durability::Disk, Ordering::Release);
        let mut db = self.db.write().unwrap_or_else(PoisonError::into_inner);
        // Each call moves what it can; the documentation says to call until nothing moves.
        while db.compact().map_err(failed("compact"))? {}
        self.commits.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        // redb does nothing in the background.
        Ok(())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        format!("redb {}", locked_version("redb"))
    }

    fn stats(&self) -> String {
        let txn = self.db().begin_write();
        let stats = txn.and_then(|txn| {
            let stats = txn.stats();
            txn.abort()?;
            Ok(stats?)
        });
        let written = self.written.load(Ordering::Relaxed);
        match stats {
            Ok(stats) => format!("{stats:#?}\nbytes written to the file: {written}"),
            Err(error) => format!("no statistics: {error}"),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.sync.store(self.default == Durability::Disk, Ordering::Release);
        self.db
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .close()
            .map_err(failed("close"))
    }
}

type ReadTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

struct RedbSession<'a> {
    engine: &'a RedbEngine,
    /// The commits that the view has seen, and the view.
    view: Option<(u64, ReadTable)>,
    pending: Pending,
}

impl<'a> RedbSession<'a> {
    fn new(engine: &'a RedbEngine) -> Self {
        Self { engine, view: None, pending: Pending::default() }
    }

    /// The latest state.
    fn view(&mut self) -> Result<&ReadTable> {
        let commits = self.engine.commits.load(Ordering::Acquire);
        if self.view.as_ref().is_none_or(|(seen, _)| *seen != commits) {
            // The old view goes first: it keeps pages from being used again.
            self.view = None;
            let txn: ReadTransaction =
                self.engine.db().begin_read().map_err(failed("begin of a read"))?;
            let table = txn.open_table(TABLE).map_err(failed("open of the table"))?;
            self.view = Some((commits, table));
        }
        match &self.view {
            Some((_, table)) => Ok(table),
            None => Err(Error::engine("redb", "read", "the view is gone")),
        }
    }
}

/// A write transaction; there is one at a time, so that none is ever lost.
struct RedbTransaction<'a, 'txn> {
    table: &'a mut Table<'txn>,
}

impl Transaction for RedbTransaction<'_, '_> {
    fn get_for_update(&mut self, key: &[u8]) -> Attempt<Option<Vec<u8>>> {
        let value = self.table.get(key).map_err(failed("read in a transaction"))?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Attempt<()> {
        self.table.insert(key, value).map_err(failed("write in a transaction"))?;
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Attempt<()> {
        self.table.remove(key).map_err(failed("delete in a transaction"))?;
        Ok(())
    }
}

impl Transactions for RedbSession<'_> {
    fn attempt(&mut self, body: Body<'_>) -> Attempt<()> {
        self.view = None;
        let written = self.engine.write(self.engine.default, |table| {
            body(&mut RedbTransaction { table }).map_err(|lost| match lost {
                Lost::Failed(error) => error,
                Lost::Conflict => Error::engine("redb", "write", "a lone writer met another"),
            })
        });
        written.map_err(Lost::Failed)
    }
}

impl Session for RedbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.view = None;
        self.engine.write(durability, |table| {
            table.insert(key, value).map(|_| ()).map_err(failed("write"))
        })
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.view = None;
        self.engine
            .write(durability, |table| table.remove(key).map(|_| ()).map_err(failed("delete")))
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        self.view = None;
        self.engine.write(durability, |table| {
            table.retain_in(start..end, |_, _| false).map_err(failed("delete of a range"))
        })
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.pending.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.pending.delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        self.view = None;
        let pending = &self.pending;
        self.engine.write(durability, |table| {
            for (key, value) in pending.iter() {
                match value {
                    Some(value) => table.insert(key, value).map(|_| ()),
                    None => table.remove(key).map(|_| ()),
                }
                .map_err(failed("write of a batch"))?;
            }
            Ok(())
        })?;
        self.pending.clear();
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.view()?.get(key).map_err(failed("read"))?;
        Ok(value.map(|value| found(value.value())).is_some())
    }

    fn multi_get(&mut self, keys: &[Vec<u8>], found: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let view = self.view()?;
        for (i, key) in keys.iter().enumerate() {
            if let Some(value) = view.get(key.as_slice()).map_err(failed("multi-read"))? {
                found(i, value.value());
            }
        }
        Ok(())
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let view = self.view()?;
        let range = match (from, direction) {
            (None, _) => view.range::<&[u8]>(..),
            (Some(from), Direction::Forward) => view.range(from..),
            (Some(from), Direction::Reverse) => view.range(..=from),
        };
        let range = range.map_err(failed("seek"))?;
        Ok(Box::new(RedbCursor { range, direction, entry: None }))
    }
}

type Guard = AccessGuard<'static, &'static [u8]>;

struct RedbCursor {
    range: redb::Range<'static, &'static [u8], &'static [u8]>,
    direction: Direction,
    entry: Option<(Guard, Guard)>,
}

impl Cursor for RedbCursor {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let entry = match self.direction {
            Direction::Forward => self.range.next(),
            Direction::Reverse => self.range.next_back(),
        };
        self.entry = entry.transpose().map_err(failed("iteration"))?;
        Ok(self.entry.as_ref().map(|(key, value)| (key.value(), value.value())))
    }
}
