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

mod links;
mod server;
#[cfg(test)]
mod tests;

use super::{Engine, EngineBytes, EngineSpec, OpenOptions, Session};
use crate::links::LinkStore;
use crate::settings::Durability;
use crate::{Error, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use server::Guarded;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

const DATABASE: &str = "linkbench";
/// A batch of LinkBench's is far smaller.
const MAX_PACKET: usize = 64 << 20;
/// What InnoDB has if nobody says.
const BUFFER_POOL: u64 = 128 << 20;
/// The least that it takes.
const BUFFER_POOL_MIN: u64 = 8 << 20;
/// Its log is as large as the buffer pool, between these.
const LOG_MIN: u64 = 96 << 20;
const LOG_MAX: u64 = 4 << 30;
/// What the block cache has if nobody says, and the least that is useful.
const BLOCK_CACHE: u64 = 512 << 20;
const BLOCK_CACHE_MIN: u64 = 8 << 20;
/// How MyRocks's documentation sets the column families, with the compression that Debian builds.
const COLUMN_FAMILIES: &str = "write_buffer_size=128m;target_file_size_base=32m;\
    max_bytes_for_level_base=512m;level0_file_num_compaction_trigger=4;\
    level0_slowdown_writes_trigger=10;level0_stop_writes_trigger=15;max_write_buffer_number=4;\
    compression=kLZ4Compression;block_based_table_factory={cache_index_and_filter_blocks=1;\
    filter_policy=bloomfilter:10:false;whole_key_filtering=1};\
    level_compaction_dynamic_level_bytes=true;optimize_filters_for_hits=true;\
    compaction_pri=kMinOverlappingRatio";

/// Where the server keeps tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// A B-tree.
    InnoDb,
    /// RocksDB.
    MyRocks,
}

impl Storage {
    fn name(self) -> &'static str {
        match self {
            Self::InnoDb => "InnoDB",
            Self::MyRocks => "ROCKSDB",
        }
    }

    /// What the server is told, beside what makes it a private one.
    fn options(self, memory: Option<u64>, class: Durability) -> Vec<(String, String)> {
        let commit = match class {
            Durability::Buffered => "0",
            Durability::Process => "2",
            Durability::Disk => "1",
        };
        let manual = if class == Durability::Process { "OFF" } else { "ON" };
        let mut options = vec![
            ("transaction-isolation", "READ-COMMITTED".to_owned()),
            ("skip-log-bin", String::new()),
            ("max-connections", "1000".to_owned()),
            ("thread-cache-size", "256".to_owned()),
        ];
        match self {
            Self::InnoDb => {
                let pool = memory.unwrap_or(BUFFER_POOL).max(BUFFER_POOL_MIN);
                options.extend([
                    ("innodb-buffer-pool-size", pool.to_string()),
                    ("innodb-log-file-size", pool.clamp(LOG_MIN, LOG_MAX).to_string()),
                    ("innodb-io-capacity", "1000".to_owned()),
                    ("innodb-flush-log-at-trx-commit", commit.to_owned()),
                ]);
            }
            Self::MyRocks => {
                let cache = memory.unwrap_or(BLOCK_CACHE).max(BLOCK_CACHE_MIN);
                options.extend([
                    ("plugin-load-add", "ha_rocksdb".to_owned()),
                    ("rocksdb-block-cache-size", cache.to_string()),
                    ("rocksdb-flush-log-at-trx-commit", commit.to_owned()),
                    ("rocksdb-manual-wal-flush", manual.to_owned()),
                    ("rocksdb-max-background-jobs", "8".to_owned()),
                    ("rocksdb-max-total-wal-size", (4_u64 << 30).to_string()),
                    ("rocksdb-block-size", "16384".to_owned()),
                    ("rocksdb-default-cf-options", COLUMN_FAMILIES.to_owned()),
                    // InnoDB still keeps a few tables of the server's own.
                    ("innodb-buffer-pool-size", BUFFER_POOL_MIN.to_string()),
                ]);
            }
        }
        options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// A running server.
pub struct MariaDb {
    spec: EngineSpec,
    storage: Storage,
    server: Guarded,
    socket: String,
    /// For everything that is not a session's.
    own: Mutex<Conn>,
    version: String,
    settings: Vec<(String, String)>,
}

/// Starts a server in the directory, with tables that are made if they are not there.
pub fn open(spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    let storage =
        if spec.variant() == Some("myrocks") { Storage::MyRocks } else { Storage::InnoDb };
    let dir = options.dir;
    std::fs::create_dir_all(dir).map_err(|error| Error::io("make", dir, &error))?;
    // The server works in its directory, where a relative path would lead elsewhere.
    let dir = dir.canonicalize().map_err(|error| Error::io("find", dir, &error))?;
    server::program(spec, "mariadbd")?;
    if !server::is_initialised(&dir) {
        server::initialise(spec, &dir)?;
    }
    let told = storage.options(options.memory, options.durability);
    let server = server::start(spec, &dir, &told)?;
    let socket = server::socket(spec, &server, &dir)?;
    let failed = |error: mysql::Error| {
        let name = spec.name();
        match server.ended() {
            Some(ended) => Error::engine(name, "open", format!("{error}: {ended}")),
            None => Error::engine(name, "open", error),
        }
    };
    let mut own = Conn::new(address(&socket)).map_err(failed)?;
    let sql = format!("CREATE DATABASE IF NOT EXISTS {DATABASE}; USE {DATABASE}");
    own.query_drop(sql).map_err(failed)?;
    for table in links::tables(storage) {
        own.query_drop(table).map_err(failed)?;
    }
    let version = own.query_first_opt::<String, _>("SELECT VERSION()").map_err(failed)?;
    let version = match version {
        Some(Ok(version)) => version.split('-').next().unwrap_or_default().to_owned(),
        _ => return Err(Error::engine(spec.name(), "open", "the server tells no version")),
    };
    let label = if storage == Storage::InnoDb { "InnoDB" } else { "MyRocks" };
    Ok(Box::new(MariaDb {
        spec: spec.clone(),
        storage,
        server,
        socket,
        own: Mutex::new(own),
        version: format!("MariaDB {version} {label}"),
        settings: described(told),
    }))
}

/// What a report tells of the options.
fn described(options: Vec<(String, String)>) -> Vec<(String, String)> {
    let told = |(name, value): (String, String)| match value.is_empty() {
        true => (name, "yes".to_owned()),
        false => (name, value),
    };
    let mut settings: Vec<(String, String)> = options.into_iter().map(told).collect();
    settings.extend([
        ("access".into(), "its own server, a unix socket, prepared statements".into()),
        ("transactions".into(), "one for each call, tried again after a deadlock".into()),
        ("tables".into(), "LinkBench's, without partitions".into()),
        ("everything else".into(), "defaults".into()),
    ]);
    settings
}

fn address(socket: &str) -> OptsBuilder {
    OptsBuilder::new()
        .socket(Some(socket))
        .user(Some("root"))
        .max_allowed_packet(Some(MAX_PACKET))
        .stmt_cache_size(64)
}

impl MariaDb {
    /// A connection for one thread, without autocommit.
    fn connect(&self) -> Result<Conn> {
        let address =
            address(&self.socket).db_name(Some(DATABASE)).init(vec!["SET autocommit = 0"]);
        Conn::new(address).map_err(|error| self.failed("connection", &error))
    }

    /// The failure of a request. If the server is gone, its last words are told.
    fn failed(&self, what: &str, error: &mysql::Error) -> Error {
        let ended = error.is_connectivity_error().then(|| self.server.ended()).flatten();
        match ended {
            Some(ended) => Error::engine(self.spec.name(), what, format!("{error}: {ended}")),
            None => Error::engine(self.spec.name(), what, error),
        }
    }

    fn run(&self, what: &str, sql: &str) -> Result<()> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.query_drop(sql).map_err(|error| self.failed(what, &error))
    }

    /// The rows that a statement yields, as text.
    fn rows(&self, what: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let rows: Vec<mysql::Row> = own.query(sql).map_err(|error| self.failed(what, &error))?;
        let text = |value: mysql::Value| match value {
            mysql::Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            mysql::Value::NULL => String::new(),
            other => other.as_sql(true),
        };
        Ok(rows
            .into_iter()
            .map(|row| row.unwrap_raw().into_iter().flatten().map(text).collect())
            .collect())
    }
}

impl Engine for MariaDb {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        self.spec.answers_keys()?;
        Err(Error::engine(self.spec.name(), "session", "there are none but LinkBench's"))
    }

    /// InnoDB writes the tables' pages, RocksDB its memtables.
    fn flush(&self) -> Result<()> {
        match self.storage {
            Storage::InnoDb => {
                self.run("flush", "FLUSH TABLES linktable, counttable FOR EXPORT; UNLOCK TABLES")
            }
            Storage::MyRocks => {
                self.run("flush", "SET GLOBAL rocksdb_force_flush_memtable_now = 1")
            }
        }
    }

    /// InnoDB builds the tables anew, RocksDB merges their files.
    fn compact(&self) -> Result<()> {
        let told = self.rows("compact", "OPTIMIZE TABLE linktable, counttable")?;
        // The server tells failures in rows: table, operation, kind, text.
        let error =
            |row: &&Vec<String>| row.get(2).is_some_and(|kind| kind.eq_ignore_ascii_case("error"));
        match told.iter().find(error) {
            Some(row) => Err(Error::engine(self.spec.name(), "compact", row.join(" "))),
            None => Ok(()),
        }
    }

    fn wait_idle(&self) -> Result<()> {
        // The server has no statement that waits for its background work.
        Ok(())
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    /// InnoDB does not count the bytes of users.
    fn bytes_written(&self) -> Option<EngineBytes> {
        if self.storage == Storage::InnoDb {
            return None;
        }
        let rows = self.rows("statistics", "SHOW GLOBAL STATUS LIKE 'rocksdb%'").ok()?;
        let counter = |name: &str| {
            let row = rows.iter().find(|row| row.first().is_some_and(|first| first == name))?;
            row.get(1)?.parse().ok()
        };
        Some(EngineBytes {
            user: counter("Rocksdb_bytes_written")?,
            log: counter("Rocksdb_wal_bytes")?,
            flush: counter("Rocksdb_flush_write_bytes")?,
            merge: counter("Rocksdb_compact_write_bytes")?,
            other: 0,
        })
    }

    fn link_store(&self) -> Option<&dyn LinkStore> {
        Some(self)
    }

    fn server(&self) -> Option<u32> {
        Some(self.server.pid())
    }

    fn stats(&self) -> String {
        let sql = format!("SHOW ENGINE {} STATUS", self.storage.name());
        match self.rows("statistics", &sql) {
            Ok(rows) => rows.iter().fold(String::new(), |mut text, row| {
                // Kind, name, text.
                let _ = writeln!(text, "{}", row.join("\n"));
                text
            }),
            Err(error) => error.to_string(),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { spec, server, own, .. } = *self;
        let name = spec.name();
        let mut own = own.into_inner().unwrap_or_else(PoisonError::into_inner);
        let asked = own.query_drop("SHUTDOWN");
        if let Err(error) = asked {
            // Dropped, it is ended at once.
            return Err(match server.ended() {
                Some(ended) => Error::engine(name, "close", ended),
                None => Error::engine(name, "close", error),
            });
        }
        drop(own);
        server.wait().map_err(|ended| Error::engine(name, "close", ended))
    }
}
