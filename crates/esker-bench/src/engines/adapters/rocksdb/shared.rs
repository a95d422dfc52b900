//! What both kinds of RocksDB database share: errors, statistics, write options and the cursor.
//!
//! The plain database (`plain`) and the one with transactions (`transactions`) have different types in
//! the crate, with the same options and the same iterators below them.

use crate::engines::{Cursor, Direction, Durability, EngineBytes, locked_version};
use crate::{Error, Result};
use rocksdb::statistics::Ticker;
use rocksdb::{DBAccess, DBRawIteratorWithThreadMode, Options, WriteOptions};

/// The error of a call of the crate.
pub fn failed(what: &str) -> impl FnOnce(rocksdb::Error) -> Error {
    move |cause| Error::engine("rocksdb", what, cause)
}

/// The options of an open database, which own its statistics.
pub struct Tickers {
    pub options: Options,
    pub counted: bool,
}

impl Tickers {
    pub fn bytes_written(&self) -> Option<EngineBytes> {
        let count = |ticker| self.options.get_ticker_count(ticker);
        self.counted.then(|| EngineBytes {
            user: count(Ticker::BytesWritten),
            log: count(Ticker::WalFileBytes),
            flush: count(Ticker::FlushWriteBytes),
            compaction: count(Ticker::CompactWriteBytes),
            other: 0,
        })
    }

    /// The statistics, if there are any, behind the shape of the tree.
    pub fn beside(&self, shape: String) -> String {
        match self.options.get_statistics() {
            Some(counters) if self.counted => format!("{shape}\n{counters}"),
            _ => shape,
        }
    }
}

pub fn version() -> String {
    // The crate's C++ crate says both: `0.17.3+10.4.2`.
    let locked = locked_version("librocksdb-sys");
    format!("RocksDB {}", locked.split_once('+').map_or(locked, |(_, version)| version))
}

/// How a write of each class is made.
pub struct Writes {
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
    pub fn of(&self, durability: Durability) -> &WriteOptions {
        match durability {
            Durability::Buffered => &self.buffered,
            Durability::Process => &self.process,
            Durability::Disk => &self.disk,
        }
    }
}

/// Walks over entries of either kind of database.
pub struct RocksCursor<'a, D: DBAccess> {
    iter: DBRawIteratorWithThreadMode<'a, D>,
    direction: Direction,
    /// Whether the entry under the iterator was handed out.
    started: bool,
}

impl<'a, D: DBAccess> RocksCursor<'a, D> {
    pub fn new(
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
