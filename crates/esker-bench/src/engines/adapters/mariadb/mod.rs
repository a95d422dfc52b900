//! MariaDB with InnoDB or with MyRocks, for LinkBench.
//!
//! Each run starts a server of Debian's packages in the directory of its database and talks to it over
//! its unix socket; what the server uses is added to what the run's own process uses. The adapter
//! offers LinkBench's tables only: SQL is no interface for keys and values.
//!
//! *Memory*: InnoDB's buffer pool, or the block cache of MyRocks's RocksDB. *Durability*: both have a
//! setting for the log at a commit. 1 writes and syncs it (class `disk`); 2 writes it and syncs once a
//! second (class `process`); 0 also writes only once a second (class `buffered`). With 2, MyRocks
//! writes at a commit only if `rocksdb_manual_wal_flush` is off. There is no binary log. All other
//! settings follow the manuals' recommendations for many writes.

mod connection;
mod engine;
mod links;
mod server;
mod storage;
#[cfg(test)]
mod tests;

pub use engine::open;
