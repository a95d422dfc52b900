//! RocksDB, opened in four ways.
//!
//! `rocksdb` sets nothing but what every engine of a comparison is given: the cache, if there is a
//! number for it, and the durability. `rocksdb-stats` is the same with statistics counted, which
//! RocksDB leaves out unless it is told. `rocksdb-tuned` follows the page "Setup Options and Basic
//! Tuning" of its wiki and the advice for caches and filters beside it; `rocksdb-universal` is that
//! with universal compaction. For LinkBench the same options open a database with transactions
//! (`transactions`).
//!
//! *Durability*: by write. A write goes through the log to the operating system before it returns
//! (class `process`, its default); `sync` adds the fsync (class `disk`); class `buffered` leaves the
//! log out (`disableWAL`), as RocksDB's own benchmarks do where nothing has to survive.

mod transactions;

use super::{Cursor, Direction, Engine, EngineBytes, EngineSpec, OpenOptions, Session, Tuning};
use crate::measure::machine;
use crate::settings::Durability;
use crate::{Error, Result};
use rocksdb::statistics::Ticker;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, DB, DBAccess, DBCompactionStyle, DBCompressionType,
    DBRawIteratorWithThreadMode, Options, ReadOptions, UniversalCompactOptions,
    WaitForCompactOptions, WriteBatch, WriteOptions,
};
use transactions::LockingEngine;

/// The one column family that is used.
const FAMILY: &str = "default";
/// Background jobs that the wiki's page starts from.
const TUNED_JOBS: i32 = 6;
const TUNED_BLOCK: usize = 16 << 10;
const TUNED_BYTES_PER_SYNC: u64 = 1 << 20;
const BLOOM_BITS: f64 = 10.0;

fn failed(what: &str) -> impl FnOnce(rocksdb::Error) -> Error {
    move |cause| Error::engine("rocksdb", what, cause)
}

/// An open RocksDB database.
pub struct RocksEngine {
    db: DB,
    tickers: Tickers,
    default: Durability,
    settings: Vec<(String, String)>,
}

/// Opens or makes the database in the way that the variant says.
pub fn open(spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    let (set, counted, settings) = configured(spec, options);
    if options.transactions {
        return Ok(Box::new(LockingEngine::open(set, counted, options, settings)?));
    }
    // Cache, filter and compaction are a family's: without options of its own it would have the
    // library's defaults, whatever was set.
    let families = [(FAMILY, set.clone())];
    let db = DB::open_cf_with_opts(&set, options.dir, families).map_err(failed("open"))?;
    let tickers = Tickers { options: set, counted };
    Ok(Box::new(RocksEngine { db, tickers, default: options.durability, settings }))
}

/// What the report says was set.
type Settings = Vec<(String, String)>;

fn note(settings: &mut Settings, name: &str, value: impl Into<String>) {
    settings.push((name.into(), value.into()));
}

/// The cache for those who set nothing else.
fn untuned(set: &mut Options, memory: Option<u64>, settings: &mut Settings) {
    match memory {
        Some(bytes) => {
            let mut table = BlockBasedOptions::default();
            table.set_block_cache(&Cache::new_lru_cache(clamp(bytes)));
            set.set_block_based_table_factory(&table);
            note(settings, "block cache", format!("{bytes} bytes, LRU"));
        }
        None => note(settings, "block cache", "32 MiB (its default)"),
    }
    note(settings, "statistics", "off (its default)");
    note(settings, "everything else", "defaults");
}

/// What the wiki recommends.
fn tuned(set: &mut Options, memory: Option<u64>, settings: &mut Settings) {
    // The wiki gives a third of the memory to the cache where nothing else was decided.
    let bytes = memory.unwrap_or_else(|| machine::memory_bytes().unwrap_or(1 << 30) / 3);
    let mut table = BlockBasedOptions::default();
    // A charge of 0 lets RocksDB size the entries itself.
    table.set_block_cache(&Cache::new_hyper_clock_cache(clamp(bytes), 0));
    table.set_bloom_filter(BLOOM_BITS, false);
    table.set_block_size(TUNED_BLOCK);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    set.set_block_based_table_factory(&table);
    set.set_level_compaction_dynamic_level_bytes(true);
    set.set_compression_type(DBCompressionType::Lz4);
    set.set_bottommost_compression_type(DBCompressionType::Zstd);
    set.set_max_background_jobs(TUNED_JOBS);
    set.set_bytes_per_sync(TUNED_BYTES_PER_SYNC);
    set.set_compaction_pri(rocksdb::CompactionPri::MinOverlappingRatio);
    note(settings, "block cache", format!("{bytes} bytes, HyperClockCache"));
    note(settings, "filter", "Bloom, 10 bits a key");
    note(settings, "block", format!("{TUNED_BLOCK} bytes"));
    note(settings, "index and filters", "in the cache, those of level 0 pinned");
    note(settings, "compression", "LZ4, Zstandard on the last level");
    note(settings, "max_background_jobs", TUNED_JOBS.to_string());
    note(settings, "bytes_per_sync", format!("{TUNED_BYTES_PER_SYNC} bytes"));
    note(settings, "compaction_pri", "kMinOverlappingRatio");
    note(settings, "level_compaction_dynamic_level_bytes", "on");
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The options of the variant, whether statistics are counted, and what the report says of it.
fn configured(spec: &EngineSpec, options: &OpenOptions<'_>) -> (Options, bool, Settings) {
    let mut set = Options::default();
    let mut settings = Vec::new();
    set.create_if_missing(true);
    if spec.tuning() == Tuning::Tuned {
        tuned(&mut set, options.memory, &mut settings);
    } else {
        untuned(&mut set, options.memory, &mut settings);
    }
    let counted = spec.variant() == Some("stats");
    if counted {
        set.enable_statistics();
        settings.retain(|(name, _)| name != "statistics");
        note(&mut settings, "statistics", "on, at their default level");
    }
    let style = if spec.variant() == Some("universal") {
        set.set_compaction_style(DBCompactionStyle::Universal);
        set.set_universal_compaction_options(&UniversalCompactOptions::default());
        "universal"
    } else {
        "leveled"
    };
    note(&mut settings, "compaction", style);
    let log = match options.durability {
        Durability::Buffered => "left out (disableWAL)",
        Durability::Process => "written to the operating system by every write (its default)",
        Durability::Disk => "synced by every write (sync)",
    };
    note(&mut settings, "log", log);
    (set, counted, settings)
}

/// The options of an open database, which own its statistics.
struct Tickers {
    options: Options,
    counted: bool,
}

impl Tickers {
    fn bytes_written(&self) -> Option<EngineBytes> {
        let count = |ticker| self.options.get_ticker_count(ticker);
        self.counted.then(|| EngineBytes {
            user: count(Ticker::BytesWritten),
            log: count(Ticker::WalFileBytes),
            flush: count(Ticker::FlushWriteBytes),
            merge: count(Ticker::CompactWriteBytes),
            other: 0,
        })
    }

    /// The statistics, if there are any, behind the shape of the tree.
    fn beside(&self, shape: String) -> String {
        match self.options.get_statistics() {
            Some(counters) if self.counted => format!("{shape}\n{counters}"),
            _ => shape,
        }
    }
}

fn version() -> String {
    // The crate's C++ crate says both: `0.17.3+10.4.2`.
    let locked = super::locked_version("librocksdb-sys");
    format!("RocksDB {}", locked.split_once('+').map_or(locked, |(_, version)| version))
}

/// How a write of each class is made.
struct Writes {
    buffered: WriteOptions,
    process: WriteOptions,
    disk: WriteOptions,
}

impl Default for Writes {
    fn default() -> Self {
        let by_class = |durability| {
            let mut options = WriteOptions::default();
            options.disable_wal(durability == Durability::Buffered);
            options.set_sync(durability == Durability::Disk);
            options
        };
        Self {
            buffered: by_class(Durability::Buffered),
            process: by_class(Durability::Process),
            disk: by_class(Durability::Disk),
        }
    }
}

impl Writes {
    fn of(&self, durability: Durability) -> &WriteOptions {
        match durability {
            Durability::Buffered => &self.buffered,
            Durability::Process => &self.process,
            Durability::Disk => &self.disk,
        }
    }
}

impl RocksEngine {
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

struct RocksCursor<'a, D: DBAccess> {
    iter: DBRawIteratorWithThreadMode<'a, D>,
    direction: Direction,
    /// Whether the entry under the iterator was handed out.
    started: bool,
}

impl<'a, D: DBAccess> RocksCursor<'a, D> {
    fn new(
        mut iter: DBRawIteratorWithThreadMode<'a, D>,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Self {
        match (from, direction) {
            (None, Direction::Forward) => iter.seek_to_first(),
            (None, Direction::Reverse) => iter.seek_to_last(),
            (Some(from), Direction::Forward) => iter.seek(from),
            (Some(from), Direction::Reverse) => iter.seek_for_prev(from),
        }
        Self { iter, direction, started: false }
    }
}

impl<D: DBAccess> Cursor for RocksCursor<'_, D> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.started && self.iter.valid() {
            match self.direction {
                Direction::Forward => self.iter.next(),
                Direction::Reverse => self.iter.prev(),
            }
        }
        self.started = true;
        if !self.iter.valid() {
            self.iter.status().map_err(failed("iteration"))?;
        }
        Ok(self.iter.item())
    }
}

#[cfg(test)]
mod tests;
