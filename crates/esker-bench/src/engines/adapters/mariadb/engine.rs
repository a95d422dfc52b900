//! Starts a server for a run, and implements the interface over it.
//!
//! Only LinkBench's tables are answered for; a session for keys and values is refused.

use super::connection::{DATABASE, MariaDb, address};
use super::storage::Storage;
use super::{links, server};
use crate::engines::links::LinkStore;
use crate::engines::{Engine, EngineBytes, EngineSpec, OpenOptions, Session};
use crate::{Error, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

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
            compaction: counter("Rocksdb_compact_write_bytes")?,
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
