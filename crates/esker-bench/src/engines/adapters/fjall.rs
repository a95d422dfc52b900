//! fjall 3, opened as its documentation recommends.
//!
//! *Memory*: the documentation asks for a block cache of 20 to 25 % of the machine's memory; it gets as
//! many bytes as Esker gets for everything (its memtables come on top, in its favour). *Durability*:
//! its default hands every write to the operating system before it returns, which is class `process`;
//! class `disk` commits with `PersistMode::SyncData`; class `buffered` leaves the journal in the
//! process (`manual_journal_persist`). *Waiting*: fjall has no call that waits for compactions, so the
//! adapter polls their counters until they no longer change.

use crate::engines::Durability;
use crate::engines::memory::machine_memory;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session, locked_version};
use crate::{Error, Result};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvPair, PersistMode, Slice};
use std::time::Duration;

/// An open fjall database.
pub struct FjallEngine {
    db: Database,
    keyspace: Keyspace,
    default: Durability,
    settings: Vec<(String, String)>,
}

/// The registry's opener.
pub fn open(_: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    Ok(Box::new(FjallEngine::open(options)?))
}

fn failed(what: &str) -> impl FnOnce(fjall::Error) -> Error {
    move |cause| Error::engine("fjall", what, cause)
}

impl FjallEngine {
    /// Opens or makes the database.
    pub fn open(options: &OpenOptions<'_>) -> Result<Self> {
        let cache = options.memory.unwrap_or_else(|| machine_memory().unwrap_or(1 << 30) / 4);
        let buffered = options.durability == Durability::Buffered;
        let db = Database::builder(options.dir)
            .cache_size(cache)
            .manual_journal_persist(buffered)
            .open()
            .map_err(failed("open"))?;
        let create = || KeyspaceCreateOptions::default().manual_journal_persist(buffered);
        let keyspace = db.keyspace("default", create).map_err(failed("open of a keyspace"))?;
        let persist = match options.durability {
            Durability::Buffered => "manual_journal_persist",
            Durability::Process => "PersistMode::Buffer after every write (its default)",
            Durability::Disk => "PersistMode::SyncData after every write",
        };
        let settings = vec![
            ("cache".into(), format!("{cache} bytes")),
            ("journal".into(), persist.into()),
            ("everything else".into(), "defaults".into()),
        ];
        Ok(Self { db, keyspace, default: options.durability, settings })
    }
}

impl Engine for FjallEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(FjallSession { engine: self, batch: None }))
    }

    fn flush(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait().map_err(failed("flush"))
    }

    fn compact(&self) -> Result<()> {
        self.flush()?;
        self.keyspace.major_compact().map_err(failed("compact"))
    }

    fn wait_idle(&self) -> Result<()> {
        // At rest for a quarter of a second: nothing queued, nothing running, nothing finished.
        let mut rested = 0;
        let mut completed = self.db.compactions_completed();
        while rested < 5 {
            std::thread::sleep(Duration::from_millis(50));
            let now = self.db.compactions_completed();
            let busy = self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0;
            rested = if busy || now != completed { 0 } else { rested + 1 };
            completed = now;
        }
        Ok(())
    }

    fn version(&self) -> String {
        format!("fjall {}", locked_version("fjall"))
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn stats(&self) -> String {
        let db = &self.db;
        format!(
            "write buffers: {} bytes\ncompactions completed: {}\ntime compacting: {:?}\n\
             journals: {}\ntables: {}\ntables in level 0: {}\ncache in use: {} of {} bytes",
            db.write_buffer_size(),
            db.compactions_completed(),
            db.time_compacting(),
            db.journal_count(),
            self.keyspace.table_count(),
            self.keyspace.l0_table_count(),
            db.cache_size(),
            db.cache_capacity(),
        )
    }

    fn close(self: Box<Self>) -> Result<()> {
        if self.default == Durability::Buffered {
            return Ok(());
        }
        self.db.persist(PersistMode::Buffer).map_err(failed("close"))
    }
}

struct FjallSession<'a> {
    engine: &'a FjallEngine,
    batch: Option<fjall::OwnedWriteBatch>,
}

impl FjallSession<'_> {
    fn batch(&mut self) -> &mut fjall::OwnedWriteBatch {
        let db = &self.engine.db;
        self.batch.get_or_insert_with(|| db.batch())
    }
}

impl Session for FjallSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        if durability == Durability::Disk {
            self.batch_put(key, value);
            return self.batch_commit(durability);
        }
        self.engine.keyspace.insert(key, value).map_err(failed("write"))
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        if durability == Durability::Disk {
            self.batch_delete(key);
            return self.batch_commit(durability);
        }
        self.engine.keyspace.remove(key).map_err(failed("delete"))
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        let keyspace = &self.engine.keyspace;
        self.batch().insert(keyspace, key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        let keyspace = &self.engine.keyspace;
        self.batch().remove(keyspace, key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        let Some(mut batch) = self.batch.take() else { return Ok(()) };
        if durability == Durability::Disk {
            batch = batch.durability(Some(PersistMode::SyncData));
        }
        batch.commit().map_err(failed("write of a batch"))
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.engine.keyspace.get(key).map_err(failed("read"))?;
        Ok(value.map(|value| found(&value)).is_some())
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
        let entry = (Slice::new(b""), Slice::new(b""));
        Ok(Box::new(FjallCursor { iter, direction, entry }))
    }
}

struct FjallCursor {
    iter: fjall::Iter,
    direction: Direction,
    entry: KvPair,
}

impl Cursor for FjallCursor {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let guard = match self.direction {
            Direction::Forward => self.iter.next(),
            Direction::Reverse => self.iter.next_back(),
        };
        let Some(guard) = guard else { return Ok(None) };
        self.entry = guard.into_inner().map_err(failed("iteration"))?;
        Ok(Some((&self.entry.0, &self.entry.1)))
    }
}
