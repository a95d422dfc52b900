//! MariaDB with InnoDB or with MyRocks, for LinkBench.
//!
//! A server of Debian's packages is started for each run, in the directory of its database, and asked
//! over its unix socket; what it uses is added to what the run's own process does. It answers
//! LinkBench's tables and nothing else: SQL is no interface for keys and values.
//!
//! *Memory*: InnoDB's buffer pool, or the block cache of MyRocks's RocksDB. *Durability*: the setting
//! that both have for a commit's log. 1 writes and syncs it (class `disk`); 2 writes it and syncs once
//! a second (class `process`); 0 leaves writing to once a second, too (class `buffered`). MyRocks
//! writes nothing in a commit for 2 either unless `rocksdb_manual_wal_flush` is off. There is no
//! binary log. Everything else that is set is what the manuals recommend for many writes.

mod connection;
mod engine;
mod links;
mod server;
mod storage;
#[cfg(test)]
mod tests;

pub use engine::open;
