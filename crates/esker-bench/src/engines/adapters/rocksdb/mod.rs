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

mod open;
mod options;
mod plain;
mod shared;
mod transactions;

pub use open::open;

#[cfg(test)]
mod tests;
