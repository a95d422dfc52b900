//! SQLite through `rusqlite`, built from the source that the crate carries.
//!
//! *Table*: `WITHOUT ROWID`, with the key as primary key, so that an entry is found in one tree.
//! *Journal*: the write-ahead log, as its documentation recommends where readers and a writer meet.
//! *Memory*: `cache_size`. Every session is a connection with a cache of its own, so the bytes given
//! are divided by the sessions that live. *Durability*: `synchronous=FULL` syncs the log in every
//! commit (class `disk`); `OFF` only hands it to the operating system (class `process`). There is
//! nothing weaker that keeps the database whole, so class `buffered` is the same.

use crate::engines::Durability;
use crate::engines::pending::Pending;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session};
use crate::{Error, Result};
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
use rusqlite::{CachedStatement, Connection, Rows};
use self_cell::{MutBorrow, self_cell};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS entries (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID";
const PUT: &str = "INSERT INTO entries (k, v) VALUES (?1, ?2) \
                   ON CONFLICT (k) DO UPDATE SET v = excluded.v";
const DELETE: &str = "DELETE FROM entries WHERE k = ?1";
const DELETE_RANGE: &str = "DELETE FROM entries WHERE k >= ?1 AND k < ?2";
const GET: &str = "SELECT v FROM entries WHERE k = ?1";
const FORWARD: &str = "SELECT k, v FROM entries ORDER BY k";
const FORWARD_FROM: &str = "SELECT k, v FROM entries WHERE k >= ?1 ORDER BY k";
const REVERSE: &str = "SELECT k, v FROM entries ORDER BY k DESC";
const REVERSE_FROM: &str = "SELECT k, v FROM entries WHERE k <= ?1 ORDER BY k DESC";

/// How long a writer waits for another: there is one at a time.
const BUSY: Duration = Duration::from_secs(3_600);
/// The least that a connection's cache has: SQLite's default.
const CACHE_MIN: u64 = 2_000 << 10;

fn failed(what: &str) -> impl FnOnce(rusqlite::Error) -> Error {
    move |cause| Error::engine("sqlite", what, cause)
}

/// An open SQLite database.
pub struct SqliteEngine {
    path: PathBuf,
    /// For everything that is not a session's.
    own: Mutex<Connection>,
    sessions: AtomicU64,
    memory: Option<u64>,
    default: Durability,
    settings: Vec<(String, String)>,
}

/// Opens or makes the database.
pub fn open(_spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    std::fs::create_dir_all(options.dir).map_err(|error| Error::io("make", options.dir, &error))?;
    let path = options.dir.join("data.sqlite");
    let own = connect(&path)?;
    let mode: String = own
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(failed("set of the journal"))?;
    if mode != "wal" {
        return Err(Error::engine("sqlite", "set of the journal", format!("it stays {mode}")));
    }
    own.execute_batch(CREATE).map_err(failed("make of the table"))?;
    set_synchronous(&own, options.durability)?;
    let cache = match options.memory {
        Some(bytes) => format!("{bytes} bytes, divided by the sessions"),
        None => format!("{CACHE_MIN} bytes a session (its default)"),
    };
    let synchronous = match options.durability {
        Durability::Buffered => "OFF (survives the process all the same)",
        Durability::Process => "OFF",
        Durability::Disk => "FULL",
    };
    let settings = vec![
        ("cache_size".into(), cache),
        ("table".into(), "WITHOUT ROWID".into()),
        ("journal_mode".into(), "WAL".into()),
        ("synchronous".into(), synchronous.into()),
        ("writes".into(), "a transaction for each write or batch".into()),
        ("everything else".into(), "defaults".into()),
    ];
    let (own, sessions) = (Mutex::new(own), AtomicU64::new(0));
    let (memory, default) = (options.memory, options.durability);
    Ok(Box::new(SqliteEngine { path, own, sessions, memory, default, settings }))
}

fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path).map_err(failed("open"))?;
    connection.busy_timeout(BUSY).map_err(failed("open"))?;
    Ok(connection)
}

fn set_synchronous(connection: &Connection, class: Durability) -> Result<()> {
    let level = if class == Durability::Disk { "FULL" } else { "OFF" };
    connection.pragma_update(None, "synchronous", level).map_err(failed("set of synchronous"))
}

impl SqliteEngine {
    fn run(&self, what: &'static str, sql: &str) -> Result<()> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.execute_batch(sql).map_err(failed(what))
    }

    fn number(&self, pragma: &str) -> Result<i64> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.pragma_query_value(None, pragma, |row| row.get(0)).map_err(failed("statistics"))
    }
}

impl Engine for SqliteEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let connection = connect(&self.path)?;
        set_synchronous(&connection, self.default)?;
        self.sessions.fetch_add(1, Ordering::Relaxed);
        let (class, pending) = (self.default, Pending::default());
        Ok(Box::new(SqliteSession { engine: self, connection, class, sessions: 0, pending }))
    }

    fn flush(&self) -> Result<()> {
        self.run("flush", "PRAGMA wal_checkpoint(TRUNCATE)")
    }

    fn compact(&self) -> Result<()> {
        self.run("compact", "VACUUM")?;
        self.flush()
    }

    fn wait_idle(&self) -> Result<()> {
        // SQLite does nothing in the background.
        Ok(())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        format!("SQLite {}", rusqlite::version())
    }

    fn stats(&self) -> String {
        let line = |pragma: &str| match self.number(pragma) {
            Ok(number) => format!("{pragma}: {number}\n"),
            Err(error) => format!("{pragma}: {error}\n"),
        };
        ["page_size", "page_count", "freelist_count"].into_iter().map(line).collect()
    }

    fn close(self: Box<Self>) -> Result<()> {
        let own = self.own.into_inner().unwrap_or_else(PoisonError::into_inner);
        own.close().map_err(|(_, error)| failed("close")(error))
    }
}

struct SqliteSession<'a> {
    engine: &'a SqliteEngine,
    connection: Connection,
    /// What `synchronous` is set for.
    class: Durability,
    /// The number of sessions that the cache was divided by.
    sessions: u64,
    pending: Pending,
}

impl Drop for SqliteSession<'_> {
    fn drop(&mut self) {
        self.engine.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SqliteSession<'_> {
    fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql).map_err(failed("prepare of a statement"))
    }

    /// Takes this session's part of the cache, if the number of sessions has changed.
    fn share_cache(&mut self) -> Result<()> {
        let sessions = self.engine.sessions.load(Ordering::Relaxed).max(1);
        if sessions == self.sessions {
            return Ok(());
        }
        self.sessions = sessions;
        let Some(memory) = self.engine.memory else { return Ok(()) };
        let kib = i64::try_from((memory / sessions).max(CACHE_MIN) >> 10).unwrap_or(i64::MAX);
        // Negative numbers are KiB, positive ones pages.
        let set = self.connection.pragma_update(None, "cache_size", -kib);
        set.map_err(failed("set of the cache"))
    }

    /// Makes the commits that follow be of this class.
    fn ask_for(&mut self, class: Durability) -> Result<()> {
        self.share_cache()?;
        if (class == Durability::Disk) != (self.class == Durability::Disk) {
            set_synchronous(&self.connection, class)?;
        }
        self.class = class;
        Ok(())
    }

    fn write_pending(&self) -> Result<()> {
        let mut put = self.prepare(PUT)?;
        let mut delete = self.prepare(DELETE)?;
        for (key, value) in self.pending.iter() {
            match value {
                Some(value) => put.execute([key, value]),
                None => delete.execute([key]),
            }
            .map_err(failed("write of a batch"))?;
        }
        Ok(())
    }
}

impl Session for SqliteSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.ask_for(durability)?;
        self.prepare(PUT)?.execute([key, value]).map(|_| ()).map_err(failed("write"))
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.ask_for(durability)?;
        self.prepare(DELETE)?.execute([key]).map(|_| ()).map_err(failed("delete"))
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        self.ask_for(durability)?;
        let deleted = self.prepare(DELETE_RANGE)?.execute([start, end]);
        deleted.map(|_| ()).map_err(failed("delete of a range"))
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.pending.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.pending.delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        self.ask_for(durability)?;
        // The lock for writing is taken at once: one that is taken late may fail.
        let begin = self.prepare("BEGIN IMMEDIATE")?.execute([]);
        begin.map_err(failed("begin of a batch"))?;
        let end = match self.write_pending() {
            Ok(()) => self.prepare("COMMIT")?.execute([]),
            Err(error) => {
                self.prepare("ROLLBACK")?.execute([]).map_err(failed("rollback"))?;
                return Err(error);
            }
        };
        end.map_err(failed("commit of a batch"))?;
        self.pending.clear();
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.share_cache()?;
        let mut statement = self.prepare(GET)?;
        let mut rows = statement.query([key]).map_err(failed("read"))?;
        let Some(row) = rows.next().map_err(failed("read"))? else { return Ok(false) };
        found(blob(row, 0)?);
        Ok(true)
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        self.share_cache()?;
        let sql = match (from, direction) {
            (None, Direction::Forward) => FORWARD,
            (None, Direction::Reverse) => REVERSE,
            (Some(_), Direction::Forward) => FORWARD_FROM,
            (Some(_), Direction::Reverse) => REVERSE_FROM,
        };
        let statement = MutBorrow::new(self.prepare(sql)?);
        let walk = Walk::try_new(statement, |statement| {
            let statement = statement.borrow_mut();
            match from {
                Some(from) => statement.query([from]),
                None => statement.query([]),
            }
        });
        let walk = walk.map_err(failed("seek"))?;
        Ok(Box::new(SqliteCursor { walk: Some(walk) }))
    }
}

fn blob<'a>(row: &'a rusqlite::Row<'_>, column: usize) -> Result<&'a [u8]> {
    let value = row.get_ref(column).map_err(failed("read"))?;
    value.as_blob().map_err(|error| Error::engine("sqlite", "read", error))
}

type Statement<'a> = MutBorrow<CachedStatement<'a>>;

self_cell!(
    /// A statement and the rows that it is going through.
    struct Walk<'a> {
        owner: Statement<'a>,
        #[not_covariant]
        dependent: Rows,
    }
);

struct SqliteCursor<'a> {
    /// None at the end: a statement that is asked again begins again.
    walk: Option<Walk<'a>>,
}

impl Cursor for SqliteCursor<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some(walk) = &mut self.walk else { return Ok(None) };
        let there =
            walk.with_dependent_mut(|_, rows| rows.advance().map(|()| rows.get().is_some()));
        if !there.map_err(failed("iteration"))? {
            self.walk = None;
            return Ok(None);
        }
        let Some(walk) = &self.walk else { return Ok(None) };
        walk.with_dependent(|_, rows| match rows.get() {
            Some(row) => Ok(Some((blob(row, 0)?, blob(row, 1)?))),
            None => Ok(None),
        })
    }
}
