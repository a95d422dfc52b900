//! A running server and the connections to it.
//!
//! One connection belongs to the engine itself, for maintenance and statistics; each session makes one of
//! its own. If the server is gone, errors tell its last words.

use super::server::Guarded;
use super::storage::Storage;
use crate::engines::EngineSpec;
use crate::{Error, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use std::sync::{Mutex, PoisonError};

/// The database in the server.
pub const DATABASE: &str = "linkbench";
/// A batch of LinkBench's is far smaller.
const MAX_PACKET: usize = 64 << 20;
/// A running server.
pub struct MariaDb {
    pub spec: EngineSpec,
    pub storage: Storage,
    pub server: Guarded,
    pub socket: String,
    /// For everything that is not a session's.
    pub own: Mutex<Conn>,
    pub version: String,
    pub settings: Vec<(String, String)>,
}

/// How a server is reached over this socket.
pub fn address(socket: &str) -> OptsBuilder {
    OptsBuilder::new()
        .socket(Some(socket))
        .user(Some("root"))
        .max_allowed_packet(Some(MAX_PACKET))
        .stmt_cache_size(64)
}

impl MariaDb {
    /// A connection for one thread, without autocommit.
    pub fn connect(&self) -> Result<Conn> {
        let address =
            address(&self.socket).db_name(Some(DATABASE)).init(vec!["SET autocommit = 0"]);
        Conn::new(address).map_err(|error| self.failed("connection", &error))
    }

    /// The failure of a request. If the server is gone, its last words are told.
    pub fn failed(&self, what: &str, error: &mysql::Error) -> Error {
        let ended = error.is_connectivity_error().then(|| self.server.ended()).flatten();
        match ended {
            Some(ended) => Error::engine(self.spec.name(), what, format!("{error}: {ended}")),
            None => Error::engine(self.spec.name(), what, error),
        }
    }

    /// Carries out a statement that yields nothing.
    pub fn run(&self, what: &str, sql: &str) -> Result<()> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.query_drop(sql).map_err(|error| self.failed(what, &error))
    }

    /// The rows that a statement yields, as text.
    pub fn rows(&self, what: &str, sql: &str) -> Result<Vec<Vec<String>>> {
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
