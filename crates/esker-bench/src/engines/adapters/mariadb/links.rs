//! LinkBench's tables in SQL.
//!
//! The tables and the statements are those of LinkBench's store for MySQL, with these differences.
//! Statements are prepared. One statement hides a visible link, instead of two between which another
//! transaction may commit. Every statement names its index: without that, MyRocks estimates from few
//! entries, and an update by the covering index may miss a row whose neighbours change. Links of equal
//! time are listed in the order of their index. Data are bytes, not text.
//!
//! Connections work without autocommit, at READ COMMITTED, as MyRocks's documentation recommends: every
//! statement has a snapshot of its own, so a read needs neither a beginning nor an end, and a write no
//! beginning. Each call is still one transaction, because a read is one statement.

use super::connection::MariaDb;
use super::storage::Storage;
use crate::Result;
use crate::engines::links::{Count, Link, LinkSession, LinkStore};
use mysql::prelude::Queryable;
use mysql::{Conn, FromRowError, Statement, Value};

/// A transaction lost against another one, or waited too long for it.
const DEADLOCK: u16 = 1_213;
const LOCK_WAIT: u16 = 1_205;

const INSERT_LINKS: &str =
    "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) VALUES ";
const LINK_ROW: &str = "(?,?,?,?,?,?,?)";
const ON_DUPLICATE: &str = " ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)";
const REPLACE_COUNTS: &str =
    "REPLACE INTO counttable (id, link_type, count, time, version) VALUES ";
const COUNT_ROW: &str = "(?,?,?,?,?)";
const UPDATE: &str = "UPDATE linktable FORCE INDEX (PRIMARY) \
                      SET visibility = ?, data = ?, time = ?, version = ? \
                      WHERE link_type = ? AND id1 = ? AND id2 = ?";
const HIDE: &str = "UPDATE linktable FORCE INDEX (PRIMARY) SET visibility = 0 \
                    WHERE link_type = ? AND id1 = ? AND id2 = ? AND visibility = 1";
const GROW: &str = "INSERT INTO counttable (id, link_type, count, time, version) \
                    VALUES (?, ?, 1, ?, ?) \
                    ON DUPLICATE KEY UPDATE count = count + 1, version = version + 1";
const SHRINK: &str = "INSERT INTO counttable (id, link_type, count, time, version) \
                      VALUES (?, ?, 0, ?, ?) \
                      ON DUPLICATE KEY UPDATE count = IF(count = 0, 0, count - 1), \
                      version = version + 1";
const MULTIGET: &str = "SELECT id2, visibility, time, version, data FROM linktable \
                        FORCE INDEX (PRIMARY) WHERE link_type = ? AND id1 = ? AND id2 IN ";
const LIST: &str = "SELECT id2, visibility, time, version, data FROM linktable \
                    FORCE INDEX (id1_type) \
                    WHERE id1 = ? AND link_type = ? AND visibility = 1 \
                    AND time >= ? AND time <= ? ORDER BY time DESC, id2 DESC LIMIT ?";
const COUNT: &str = "SELECT count FROM counttable WHERE id = ? AND link_type = ?";

/// The tables for an engine.
pub fn tables(storage: Storage) -> [String; 2] {
    let engine = storage.name();
    // MyRocks keeps each index in a column family of its own, the covering one in descending order,
    // so that the newest links of an id are read forward.
    let family = |name: &str| match storage {
        Storage::InnoDb => String::new(),
        Storage::MyRocks => format!(" COMMENT '{name}'"),
    };
    let (links, index, counts) =
        (family("cf_link_pk"), family("rev:cf_link_id1_type"), family("cf_count_pk"));
    [
        format!(
            "CREATE TABLE IF NOT EXISTS linktable (\
             id1 BIGINT UNSIGNED NOT NULL, id2 BIGINT UNSIGNED NOT NULL, \
             link_type BIGINT UNSIGNED NOT NULL, visibility TINYINT NOT NULL, \
             data VARBINARY(255) NOT NULL, time BIGINT UNSIGNED NOT NULL, \
             version INT UNSIGNED NOT NULL, \
             PRIMARY KEY (link_type, id1, id2){links}, \
             KEY id1_type (id1, link_type, visibility, time, id2, version, data){index}) \
             ENGINE={engine}"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS counttable (\
             id BIGINT UNSIGNED NOT NULL, link_type BIGINT UNSIGNED NOT NULL, \
             count INT UNSIGNED NOT NULL, time BIGINT UNSIGNED NOT NULL, \
             version BIGINT UNSIGNED NOT NULL, PRIMARY KEY (id, link_type){counts}) ENGINE={engine}"
        ),
    ]
}

impl LinkStore for MariaDb {
    fn links(&self) -> Result<Box<dyn LinkSession + '_>> {
        let mut connection = self.connect()?;
        let mut prepare = |sql: &str| {
            connection.prep(sql).map_err(|error| self.failed("prepare of a statement", &error))
        };
        let statements = Statements {
            add: prepare(&rows(INSERT_LINKS, LINK_ROW, 1, ON_DUPLICATE))?,
            update: prepare(UPDATE)?,
            hide: prepare(HIDE)?,
            grow: prepare(GROW)?,
            shrink: prepare(SHRINK)?,
            list: prepare(LIST)?,
            count: prepare(COUNT)?,
        };
        Ok(Box::new(SqlSession { server: self, connection, statements }))
    }
}

/// A statement with so many rows or values.
fn rows(head: &str, row: &str, number: usize, tail: &str) -> String {
    let mut sql = String::with_capacity(head.len() + number * (row.len() + 1) + tail.len());
    sql.push_str(head);
    for place in 0..number {
        if place > 0 {
            sql.push(',');
        }
        sql.push_str(row);
    }
    sql.push_str(tail);
    sql
}

struct Statements {
    add: Statement,
    update: Statement,
    hide: Statement,
    grow: Statement,
    shrink: Statement,
    list: Statement,
    count: Statement,
}

/// A connection. The server has a thread for each.
struct SqlSession<'a> {
    server: &'a MariaDb,
    connection: Conn,
    statements: Statements,
}

type Outcome<T> = Result<T, mysql::Error>;

fn is_lost(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(error) if [DEADLOCK, LOCK_WAIT].contains(&error.code))
}

impl SqlSession<'_> {
    /// Makes a transaction, until it is not lost against another one.
    fn transact<T>(
        &mut self,
        what: &'static str,
        body: impl Fn(&mut Conn, &Statements) -> Outcome<T>,
    ) -> Result<T> {
        loop {
            let made = body(&mut self.connection, &self.statements)
                .and_then(|value| self.connection.query_drop("COMMIT").map(|()| value));
            let error = match made {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if error.is_connectivity_error() {
                return Err(self.server.failed(what, &error));
            }
            let undone = self.connection.query_drop("ROLLBACK");
            undone.map_err(|error| self.server.failed("rollback", &error))?;
            if !is_lost(&error) {
                return Err(self.server.failed(what, &error));
            }
        }
    }

    /// Reads, with a snapshot of the statement's own.
    fn read(
        &mut self,
        what: &'static str,
        body: impl FnOnce(&mut Conn, &Statements) -> Outcome<()>,
    ) -> Result<()> {
        body(&mut self.connection, &self.statements)
            .map_err(|error| self.server.failed(what, &error))
    }
}

fn link_values(link: &Link) -> [Value; 7] {
    [
        Value::UInt(link.id1),
        Value::UInt(link.id2),
        Value::UInt(link.kind),
        Value::UInt(link.visible.into()),
        Value::Bytes(link.data.clone()),
        Value::UInt(link.time),
        Value::UInt(link.version.into()),
    ]
}

/// The columns of a link that was asked for.
type Columns = Result<(u64, u8, u64, u32, Vec<u8>), FromRowError>;

/// Hands over one link of several, unless one before was not understood.
fn hand_over(
    before: Outcome<()>,
    (kind, id1): (u64, u64),
    columns: Columns,
    found: &mut dyn FnMut(&Link),
) -> Outcome<()> {
    before?;
    let (id2, visibility, time, version, data) = columns?;
    found(&Link { kind, id1, id2, visible: visibility == 1, time, version, data });
    Ok(())
}

impl LinkSession for SqlSession<'_> {
    fn load_links(&mut self, links: &[Link]) -> Result<()> {
        if links.is_empty() {
            return Ok(());
        }
        let sql = rows(INSERT_LINKS, LINK_ROW, links.len(), ON_DUPLICATE);
        let values: Vec<Value> = links.iter().flat_map(link_values).collect();
        self.transact("load of links", |connection, _| connection.exec_drop(&sql, &values))
    }

    fn load_counts(&mut self, counts: &[Count]) -> Result<()> {
        if counts.is_empty() {
            return Ok(());
        }
        let sql = rows(REPLACE_COUNTS, COUNT_ROW, counts.len(), "");
        let row = |count: &Count| {
            [count.id, count.kind, count.count, count.time, count.version.into()].map(Value::UInt)
        };
        let values: Vec<Value> = counts.iter().flat_map(row).collect();
        self.transact("load of counts", |connection, _| connection.exec_drop(&sql, &values))
    }

    fn add_link(&mut self, link: &Link) -> Result<bool> {
        let change = || (link.id1, link.kind, link.time, link.version);
        self.transact("add of a link", |connection, statements| {
            connection.exec_drop(&statements.add, link_values(link).to_vec())?;
            // The server counts 1 for a row that is new, 2 for one whose visibility changed, and 0 for
            // one that was as visible before.
            let rows = connection.affected_rows();
            match (rows, link.visible) {
                (1 | 2, true) => connection.exec_drop(&statements.grow, change())?,
                (2, false) => connection.exec_drop(&statements.shrink, change())?,
                _ => (),
            }
            if rows != 1 {
                let values = (
                    link.visible,
                    &link.data,
                    link.time,
                    link.version,
                    link.kind,
                    link.id1,
                    link.id2,
                );
                connection.exec_drop(&statements.update, values)?;
            }
            Ok(rows == 1)
        })
    }

    fn delete_link(&mut self, kind: u64, id1: u64, id2: u64) -> Result<bool> {
        self.transact("delete of a link", |connection, statements| {
            connection.exec_drop(&statements.hide, (kind, id1, id2))?;
            let hidden = connection.affected_rows() == 1;
            if hidden {
                connection.exec_drop(&statements.shrink, (id1, kind, 0, 0))?;
            }
            Ok(hidden)
        })
    }

    fn multiget(
        &mut self,
        kind: u64,
        id1: u64,
        id2s: &[u64],
        found: &mut dyn FnMut(&Link),
    ) -> Result<()> {
        if id2s.is_empty() {
            return Ok(());
        }
        let sql = rows(&format!("{MULTIGET}("), "?", id2s.len(), ")");
        let ids = [kind, id1];
        let values: Vec<Value> = ids.iter().chain(id2s).map(|id| Value::UInt(*id)).collect();
        self.read("read of links", |connection, _| {
            let each = |before, columns| hand_over(before, (kind, id1), columns, found);
            connection.exec_fold_opt(&sql, values, Ok(()), each)?
        })
    }

    fn link_list(
        &mut self,
        kind: u64,
        id1: u64,
        times: (u64, u64),
        limit: usize,
        found: &mut dyn FnMut(&Link),
    ) -> Result<()> {
        self.read("list of links", |connection, statements| {
            let values = (id1, kind, times.0, times.1, limit as u64);
            let each = |before, columns| hand_over(before, (kind, id1), columns, found);
            connection.exec_fold_opt(&statements.list, values, Ok(()), each)?
        })
    }

    fn count(&mut self, kind: u64, id: u64) -> Result<u64> {
        let mut count = None;
        self.read("count of links", |connection, statements| {
            count = connection.exec_first_opt(&statements.count, (id, kind))?.transpose()?;
            Ok(())
        })?;
        Ok(count.unwrap_or(0))
    }
}

impl Drop for SqlSession<'_> {
    fn drop(&mut self) {
        // Ends the transaction that reads opened; a connection that is gone has none.
        let _ = self.connection.query_drop("ROLLBACK");
    }
}
