//! TidesDB through its own crate, which builds the C library that it contains.
//!
//! *Memory*: `block_cache_size`, with the bytes given. *Compression*: none, its default. *Durability*
//! is set for the whole database: class `buffered` is `SyncMode::None`, its default, which acknowledges
//! a commit before its record is written; class `process` is `SyncMode::Interval`, which writes the
//! record first and syncs once a second; class `disk` is `SyncMode::Full`.
//!
//! *Transactions*: every call is in one. A session keeps one for writes, which it begins again after each
//! commit, and one for reads that sees the newest commit at every call.

use crate::engines::Durability;
use crate::engines::pending::Pending;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session};
use crate::{Error, Result};
use std::time::Duration;
use tidesdb::{
    ColumnFamily, ColumnFamilyConfig, Config, ErrorCode, IsolationLevel, LogLevel, SyncMode,
    TidesDB, Transaction,
};

const FAMILY: &str = "default";
const PAUSE: Duration = Duration::from_millis(50);
/// Pauses at rest after which nothing is under way.
const RESTED: u32 = 5;

fn failed(what: &str) -> impl FnOnce(tidesdb::Error) -> Error {
    move |cause| Error::engine("tidesdb", what, cause)
}

/// Whether the call only has to be made again.
fn contended(error: &tidesdb::Error) -> bool {
    matches!(error.code(), Some(ErrorCode::Conflict | ErrorCode::Locked))
}

/// An open TidesDB database.
pub struct TidesEngine {
    db: TidesDB,
    default: Durability,
    settings: Vec<(String, String)>,
}

/// Opens or makes the database.
pub fn open(_spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    std::fs::create_dir_all(options.dir).map_err(|error| Error::io("make", options.dir, &error))?;
    let (mode, shown) = match options.durability {
        Durability::Buffered => (SyncMode::None, "SyncMode::None (its default)"),
        Durability::Process => (SyncMode::Interval, "SyncMode::Interval, every second"),
        Durability::Disk => (SyncMode::Full, "SyncMode::Full"),
    };
    let mut config = Config::new(options.dir)
        .memtable_sync_mode(mode)
        .log_level(LogLevel::Error)
        .log_to_file(true);
    let mut cache = format!("{} bytes (its default)", config.block_cache_size);
    if let Some(bytes) = options.memory {
        config = config.block_cache_size(usize::try_from(bytes).unwrap_or(usize::MAX));
        cache = format!("{bytes} bytes");
    }
    let db = TidesDB::open(config).map_err(failed("open"))?;
    let families = db.list_column_families().map_err(failed("open"))?;
    if !families.iter().any(|name| name == FAMILY) {
        let made = db.create_column_family(FAMILY, ColumnFamilyConfig::new());
        made.map_err(failed("make of a column family"))?;
    }
    let settings = vec![
        ("cache".into(), cache),
        ("log".into(), shown.into()),
        ("compression".into(), "none (its default)".into()),
        ("everything else".into(), "defaults".into()),
    ];
    Ok(Box::new(TidesEngine { db, default: options.durability, settings }))
}

impl TidesEngine {
    fn family(&self) -> Result<ColumnFamily<'_>> {
        self.db.get_column_family(FAMILY).map_err(failed("open of a column family"))
    }

    fn begin(&self) -> Result<Transaction<'_>> {
        let level = IsolationLevel::ReadCommitted;
        self.db.begin_transaction_with_isolation(level).map_err(failed("begin of a transaction"))
    }
}

impl Engine for TidesEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(TidesSession {
            engine: self,
            family: self.family()?,
            read: self.begin()?,
            write: self.begin()?,
            pending: Pending::default(),
        }))
    }

    fn flush(&self) -> Result<()> {
        self.db.flush_memtable().map_err(failed("flush"))
    }

    fn compact(&self) -> Result<()> {
        self.flush()?;
        self.wait_idle()?;
        let compact = self.family()?.compact();
        // Contention means that a compaction is under way: its end is waited for.
        compact
            .or_else(|error| if contended(&error) { Ok(()) } else { Err(error) })
            .map_err(failed("compact"))?;
        self.wait_idle()
    }

    fn wait_idle(&self) -> Result<()> {
        let family = self.family()?;
        let mut rested = 0;
        while rested < RESTED {
            std::thread::sleep(PAUSE);
            let busy = self.db.is_flushing() || family.is_compacting();
            rested = if busy { 0 } else { rested + 1 };
        }
        Ok(())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        format!("TidesDB {}", tidesdb::TIDESDB_LINKED_VERSION)
    }

    fn stats(&self) -> String {
        let of_family =
            self.family().and_then(|family| family.get_stats().map_err(failed("stats")));
        format!(
            "{:#?}\n{:#?}\n{:#?}\n{:#?}",
            self.db.get_db_stats(),
            self.db.get_io_stats(),
            self.db.get_stall_stats(),
            of_family,
        )
    }

    fn close(self: Box<Self>) -> Result<()> {
        // Its close reports nothing; what is in the log's buffer goes out here.
        self.db.sync_wal().map_err(failed("close"))
    }
}

struct TidesSession<'a> {
    engine: &'a TidesEngine,
    family: ColumnFamily<'a>,
    read: Transaction<'a>,
    write: Transaction<'a>,
    pending: Pending,
}

impl TidesSession<'_> {
    /// Runs `change` in a transaction until it is not lost to another.
    fn transact(
        &mut self,
        durability: Durability,
        change: impl Fn(&Transaction<'_>, &ColumnFamily<'_>) -> tidesdb::Result<()>,
    ) -> Result<()> {
        loop {
            let done = change(&self.write, &self.family).and_then(|()| self.write.commit());
            self.write.reset(IsolationLevel::ReadCommitted).map_err(failed("begin of a write"))?;
            match done {
                Ok(()) => break,
                Err(error) if contended(&error) => {}
                Err(error) => return Err(failed("write")(error)),
            }
        }
        // What asks for more than the database was opened with waits for the log.
        if durability > self.engine.default {
            self.engine.db.sync_wal().map_err(failed("sync of the log"))?;
        }
        Ok(())
    }
}

impl Session for TidesSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.transact(durability, |txn, family| txn.put(family, key, value))
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.transact(durability, |txn, family| txn.delete(family, key))
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        if start >= end {
            return Ok(());
        }
        self.transact(durability, |txn, family| txn.delete_range(family, start, Some(end)))
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.pending.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.pending.delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        self.transact(durability, |txn, family| {
            pending.iter().try_for_each(|(key, value)| match value {
                Some(value) => txn.put(family, key, value),
                None => txn.delete(family, key),
            })
        })?;
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        loop {
            match self.read.get_notrack(&self.family, key) {
                Ok(value) => {
                    found(&value);
                    return Ok(true);
                }
                Err(error) if error.code() == Some(ErrorCode::NotFound) => return Ok(false),
                Err(error) if contended(&error) => {}
                Err(error) => return Err(failed("read")(error)),
            }
        }
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let mut iter = self.read.new_iterator(&self.family).map_err(failed("open of a cursor"))?;
        let sought = match (from, direction) {
            (None, Direction::Forward) => iter.seek_to_first(),
            (None, Direction::Reverse) => iter.seek_to_last(),
            (Some(from), Direction::Forward) => iter.seek(from),
            (Some(from), Direction::Reverse) => iter.seek_for_prev(from),
        };
        at_end(sought).map_err(failed("seek"))?;
        Ok(Box::new(TidesCursor { iter, direction, started: false, entry: Default::default() }))
    }
}

/// The end is not an error here.
fn at_end(moved: tidesdb::Result<()>) -> tidesdb::Result<()> {
    match moved {
        Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(()),
        moved => moved,
    }
}

struct TidesCursor<'a> {
    iter: tidesdb::Iterator<'a>,
    direction: Direction,
    /// Whether the entry under the iterator was handed out.
    started: bool,
    entry: (Vec<u8>, Vec<u8>),
}

impl Cursor for TidesCursor<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.started && self.iter.is_valid() {
            let moved = match self.direction {
                Direction::Forward => self.iter.next(),
                Direction::Reverse => self.iter.prev(),
            };
            at_end(moved).map_err(failed("iteration"))?;
        }
        self.started = true;
        if !self.iter.is_valid() {
            return Ok(None);
        }
        self.entry = self.iter.key_value().map_err(failed("iteration"))?;
        Ok(Some((&self.entry.0, &self.entry.1)))
    }
}
