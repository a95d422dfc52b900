//! RocksDB, opened in five ways.
//!
//! `rocksdb` gets what every engine of a comparison is given, the cache (if there is a number for it)
//! and the durability, and nothing else. `rocksdb-stats` is the same with statistics, which RocksDB
//! does not count by default. `rocksdb-tuned` follows the page "Setup Options and Basic Tuning" of
//! RocksDB's wiki and its advice on caches and filters; `rocksdb-universal` is the same with universal
//! compaction, and `rocksdb-universal-stats` is that with statistics. For LinkBench, a database with
//! transactions is opened with the same options (`transactions`).
//!
//! *Durability* is set for each write. A write goes through the log to the operating system before it
//! returns (class `process`, its default); `sync` adds the fsync (class `disk`); class `buffered`
//! leaves the log out (`disableWAL`), as RocksDB's own benchmarks do where nothing has to survive.

mod open;
mod options;
mod plain;
mod shared;
mod transactions;

pub use open::open;

#[cfg(test)]
mod tests;
