//! RocksDB without transactions: the database of all workloads but LinkBench's.
//!
//! The data lie in one column family, which is opened by name: without options of its own, a family would
//! have the library's defaults, whatever was set for the database.

use super::options::Settings;
use super::shared::{RocksCursor, Tickers, Writes, failed, version};
use crate::engines::{Cursor, Direction, Durability, Engine, EngineBytes, OpenOptions, Session};
use crate::{Error, Result};
use rocksdb::{ColumnFamily, DB, Options, ReadOptions, WaitForCompactOptions, WriteBatch};

/// The one column family that is used.
const FAMILY: &str = "default";
/// An open RocksDB database.
pub struct RocksEngine {
    db: DB,
    tickers: Tickers,
    default: Durability,
    settings: Settings,
}

impl RocksEngine {
    /// Opens or makes the database with these options.
    pub fn open(
        set: Options,
        counted: bool,
        options: &OpenOptions<'_>,
        settings: Settings,
    ) -> Result<Self> {
        let families = [(FAMILY, set.clone())];
        let db = DB::open_cf_with_opts(&set, options.dir, families).map_err(failed("open"))?;
        let tickers = Tickers { options: set, counted };
        Ok(Self { db, tickers, default: options.durability, settings })
    }

    fn family(&self) -> Result<&ColumnFamily> {
        let missing = || Error::engine("rocksdb", "read", "the column family is missing");
        self.db.cf_handle(FAMILY).ok_or_else(missing)
    }
}

impl Engine for RocksEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RocksSession {
            db: &self.db,
            family: self.family()?,
            writes: Writes::default(),
            read: ReadOptions::default(),
            batch: WriteBatch::default(),
        }))
    }

    fn flush(&self) -> Result<()> {
        self.db.flush_cf(self.family()?).map_err(failed("flush"))
    }

    fn compact(&self) -> Result<()> {
        self.flush()?;
        self.db.compact_range_cf(self.family()?, None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        let wait = self.db.wait_for_compact(&WaitForCompactOptions::default());
        wait.map_err(failed("wait for compactions"))
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

    fn stats(&self) -> String {
        let text = |name| self.db.property_value(name).ok().flatten().unwrap_or_default();
        let (used, cache) =
            (text("rocksdb.block-cache-usage"), text("rocksdb.block-cache-capacity"));
        let shape = text("rocksdb.stats");
        self.tickers.beside(format!("{shape}\nblock cache: {used} of {cache} bytes\n"))
    }

    fn close(self: Box<Self>) -> Result<()> {
        // What has no log is written out by the close itself, which cannot report what fails.
        if self.default == Durability::Buffered {
            self.flush()?;
        }
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}

struct RocksSession<'a> {
    db: &'a DB,
    family: &'a ColumnFamily,
    writes: Writes,
    read: ReadOptions,
    batch: WriteBatch,
}

impl Session for RocksSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.db.put_opt(key, value, self.writes.of(durability)).map_err(failed("write"))
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.db.delete_opt(key, self.writes.of(durability)).map_err(failed("delete"))
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        let options = self.writes.of(durability);
        let deleted = self.db.delete_range_cf_opt(self.family, start, end, options);
        deleted.map_err(failed("delete of a range"))
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.db.write_opt(batch, self.writes.of(durability)).map_err(failed("write of a batch"))
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get_pinned_opt(key, &self.read).map_err(failed("read"))?;
        Ok(value.map(|value| found(&value)).is_some())
    }

    fn multi_get(&mut self, keys: &[Vec<u8>], found: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let values = self.db.batched_multi_get_cf_opt(self.family, keys, false, &self.read);
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
        Ok(Box::new(RocksCursor::new(self.db.raw_iterator(), from, direction)))
    }
}
