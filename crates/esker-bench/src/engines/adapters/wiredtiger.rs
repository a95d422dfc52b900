//! WiredTiger, Debian's library, loaded at run time.
//!
//! *Memory*: `cache_size`, with the bytes given. *Tables*: a B-tree of byte keys and values, its pages
//! compressed with Snappy if the extension is installed, as MongoDB's documentation recommends. A
//! checkpoint is taken every minute, as MongoDB does.
//!
//! *Durability*: class `disk` syncs the log in every commit (`method=fsync`). Class `process` hands the
//! log's buffers to the operating system after every commit (`WT_SESSION::log_flush` with `sync=off`).
//! The setting for the same, `transaction_sync=(enabled,method=none)`, lets a commit wait until a
//! thread of the library has noticed it: with 16 threads it makes 2,100 to 2,900 commits a second, and
//! the call 120,000 to 130,000. Class `buffered` has no log and relies on checkpoints, WiredTiger's
//! default.
//!
//! *Conflicts*: a transaction that loses against another begins again. LinkBench's transactions have
//! snapshot isolation, as MongoDB's have: with WiredTiger's default, read-committed, a change of what
//! was read would not be noticed.

use crate::engines::Durability;
use crate::engines::links::keyed::{Attempt, Body, KeyedLinks, Lost, Transaction, Transactions};
use crate::engines::links::{LinkSession, LinkStore};
use crate::engines::memory::machine_memory;
use crate::engines::native::wiredtiger as native;
use crate::engines::pending::Pending;
use crate::engines::{Cursor, Direction, Engine, EngineBytes, EngineSpec, OpenOptions, Session};
use crate::{Error, Result};
use std::path::Path;
use std::rc::Rc;

const NAMES: &[&str] = &["libwiredtiger.so.0", "libwiredtiger.so"];
/// The extension that compresses pages, where Debian and others put it.
const SNAPPY: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/libwiredtiger_snappy.so",
    "/usr/lib/aarch64-linux-gnu/libwiredtiger_snappy.so",
    "/usr/lib/libwiredtiger_snappy.so",
    "/usr/local/lib/libwiredtiger_snappy.so",
];
const TABLE: &str = "table:default";
/// The least that WiredTiger takes.
const CACHE_MIN: u64 = 1 << 20;
const SESSIONS_MAX: u32 = 1_200;
const CHECKPOINT_SECONDS: u32 = 60;

/// An open database.
pub struct TigerEngine {
    db: native::Database,
    version: String,
    default: Durability,
    settings: Vec<(String, String)>,
}

/// Opens or makes the database.
pub fn open(spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    let library = native::Library::load(NAMES)
        .map_err(|cause| spec.missing_library(NAMES[0].as_ref(), cause))?;
    std::fs::create_dir_all(options.dir).map_err(|error| Error::io("make", options.dir, &error))?;
    let quarter = || machine_memory().unwrap_or(1 << 30) / 4;
    let cache = options.memory.unwrap_or_else(quarter).max(CACHE_MIN);
    let snappy = SNAPPY.iter().copied().find(|path| Path::new(path).exists());
    let log = match options.durability {
        Durability::Buffered => "log=(enabled=false)",
        Durability::Process => "log=(enabled)",
        Durability::Disk => "log=(enabled),transaction_sync=(enabled,method=fsync)",
    };
    let hand_over = match options.durability {
        Durability::Process => "log_flush(sync=off): its records go to the operating system",
        Durability::Buffered | Durability::Disk => "nothing more",
    };
    let checkpoint = format!("checkpoint=(wait={CHECKPOINT_SECONDS})");
    let mut set = format!(
        "create,cache_size={cache},session_max={SESSIONS_MAX},statistics=(fast),{checkpoint},{log}"
    );
    let mut table = "key_format=u,value_format=u".to_owned();
    if let Some(path) = snappy {
        set += &format!(",extensions=[{path}]");
        table += ",block_compressor=snappy";
    }
    let db = library.open(options.dir, &set)?;
    db.session()?.create(TABLE, &table)?;
    let (major, minor, patch) = library.version();
    let compression = if snappy.is_some() { "Snappy" } else { "none: its extension is missing" };
    let mut settings: Vec<(String, String)> = vec![
        ("cache".into(), format!("{cache} bytes")),
        ("log".into(), log.into()),
        ("after a commit".into(), hand_over.into()),
        ("checkpoint".into(), format!("every {CHECKPOINT_SECONDS} s")),
        ("compression".into(), compression.into()),
        ("statistics".into(), "fast".into()),
        ("everything else".into(), "defaults".into()),
    ];
    if options.transactions {
        let how = "of snapshot isolation; one that loses begins again";
        settings.push(("transactions".into(), how.into()));
    }
    let version = format!("WiredTiger {major}.{minor}.{patch}");
    Ok(Box::new(TigerEngine { db, version, default: options.durability, settings }))
}

impl TigerEngine {
    fn tiger_session(&self) -> Result<TigerSession<'_>> {
        let session = self.db.session()?;
        let cursor = session.cursor(TABLE)?;
        let (default, pending) = (self.default, Pending::default());
        Ok(TigerSession { session, cursor, default, pending })
    }
}

impl LinkStore for TigerEngine {
    fn links(&self) -> Result<Box<dyn LinkSession + '_>> {
        Ok(Box::new(KeyedLinks::new(self.tiger_session()?, self.default)))
    }
}

impl Engine for TigerEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(self.tiger_session()?))
    }

    fn link_store(&self) -> Option<&dyn LinkStore> {
        Some(self)
    }

    fn flush(&self) -> Result<()> {
        self.db.session()?.checkpoint()
    }

    fn compact(&self) -> Result<()> {
        let session = self.db.session()?;
        session.checkpoint()?;
        // Without a limit to the time that it may take.
        session.compact(TABLE, "timeout=0")
    }

    fn wait_idle(&self) -> Result<()> {
        // There is no debt to wait for: pages are evicted as they are needed, and what is dirty is
        // written by the next checkpoint.
        Ok(())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn bytes_written(&self) -> Option<EngineBytes> {
        let counters = self.db.session().and_then(|session| session.counters()).ok()?;
        let count = |name: &str| {
            let found = counters.iter().find(|(known, _)| known == name);
            found.and_then(|(_, count)| u64::try_from(*count).ok())
        };
        Some(EngineBytes {
            user: count("cursor: cursor insert key and value bytes")?,
            log: count("log: log bytes written").unwrap_or(0),
            // Pages are written once, by eviction or a checkpoint, and not merged.
            flush: count("block-manager: bytes written")?,
            compaction: 0,
            other: 0,
        })
    }

    fn stats(&self) -> String {
        match self.db.session().and_then(|session| session.counters()) {
            Ok(counters) => {
                let shown = counters.iter().filter(|(_, count)| *count != 0);
                shown.map(|(name, count)| format!("{name}: {count}\n")).collect()
            }
            Err(error) => error.to_string(),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.close()
    }
}

struct TigerSession<'a> {
    session: Rc<native::Session<'a>>,
    cursor: native::Cursor<'a>,
    default: Durability,
    pending: Pending,
}

impl TigerSession<'_> {
    /// Runs `change` in a transaction until it is not lost to another.
    fn transact(
        &mut self,
        durability: Durability,
        mut change: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        loop {
            self.session.begin()?;
            match change(self) {
                Ok(true) => {
                    let sync =
                        durability == Durability::Disk && self.default == Durability::Process;
                    self.session.commit(sync)?;
                    return self.hand_over();
                }
                Ok(false) => self.session.rollback()?,
                Err(error) => {
                    self.session.rollback()?;
                    return Err(error);
                }
            }
        }
    }

    /// Hands the log to the operating system after a commit, where that is the class.
    fn hand_over(&self) -> Result<()> {
        if self.default == Durability::Process { self.session.write_log() } else { Ok(()) }
    }

    /// Whether a write of this class can commit itself, by the connection's settings.
    fn commits_itself(&self, durability: Durability) -> bool {
        durability <= self.default
    }
}

struct TigerTransaction<'a, 'db> {
    cursor: &'a mut native::Cursor<'db>,
}

/// Nothing, if the call was not lost against another transaction.
fn kept(done: bool) -> Attempt<()> {
    if done { Ok(()) } else { Err(Lost::Conflict) }
}

impl Transaction for TigerTransaction<'_, '_> {
    fn get_for_update(&mut self, key: &[u8]) -> Attempt<Option<Vec<u8>>> {
        self.cursor.read(key)?.ok_or(Lost::Conflict)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Attempt<()> {
        kept(self.cursor.insert(key, value)?)
    }

    fn delete(&mut self, key: &[u8]) -> Attempt<()> {
        kept(self.cursor.remove(key)?)
    }
}

impl Transactions for TigerSession<'_> {
    fn attempt(&mut self, body: Body<'_>) -> Attempt<()> {
        self.session.begin_snapshot()?;
        match body(&mut TigerTransaction { cursor: &mut self.cursor }) {
            Ok(()) => {
                self.session.commit(false)?;
                Ok(self.hand_over()?)
            }
            Err(lost) => {
                self.session.rollback()?;
                Err(lost)
            }
        }
    }
}

impl Session for TigerSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        if !self.commits_itself(durability) {
            return self.transact(durability, |session| session.cursor.insert(key, value));
        }
        while !self.cursor.insert(key, value)? {}
        self.hand_over()
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        if !self.commits_itself(durability) {
            return self.transact(durability, |session| session.cursor.remove(key));
        }
        while !self.cursor.remove(key)? {}
        self.hand_over()
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        self.transact(durability, |session| {
            let mut first = session.session.cursor(TABLE)?;
            let mut last = session.session.cursor(TABLE)?;
            let begins = at_or_behind(&mut first, start)?;
            let ends = before(&mut last, end)?;
            if !begins || !ends || first.key()? > last.key()? {
                return Ok(true);
            }
            session.session.truncate(&first, &last)
        })
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.pending.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.pending.delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.transact(durability, |session| {
            for (key, value) in pending.iter() {
                let done = match value {
                    Some(value) => session.cursor.insert(key, value)?,
                    None => session.cursor.remove(key)?,
                };
                if !done {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        self.pending = pending;
        self.pending.clear();
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.cursor.get(key, found)
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let mut cursor = self.session.cursor(TABLE)?;
        let back = direction == Direction::Reverse;
        let next = match from {
            None => Next::Step,
            Some(from) if back => Next::found(at_or_before(&mut cursor, from)?),
            Some(from) => Next::found(at_or_behind(&mut cursor, from)?),
        };
        Ok(Box::new(TigerCursor { cursor, back, next }))
    }
}

/// Goes to the first entry at or behind `key`. False if there is none.
fn at_or_behind(cursor: &mut native::Cursor<'_>, key: &[u8]) -> Result<bool> {
    match cursor.seek(key)? {
        None => Ok(false),
        Some(side) if side < 0 => cursor.step(false),
        Some(_) => Ok(true),
    }
}

/// Goes to the last entry at or before `key`. False if there is none.
fn at_or_before(cursor: &mut native::Cursor<'_>, key: &[u8]) -> Result<bool> {
    match cursor.seek(key)? {
        None => Ok(false),
        Some(side) if side > 0 => cursor.step(true),
        Some(_) => Ok(true),
    }
}

/// Goes to the last entry before `key`. False if there is none.
fn before(cursor: &mut native::Cursor<'_>, key: &[u8]) -> Result<bool> {
    match cursor.seek(key)? {
        None => Ok(false),
        Some(side) if side < 0 => Ok(true),
        Some(_) => cursor.step(true),
    }
}

/// What the next call of a cursor hands out.
enum Next {
    /// The entry under it.
    Here,
    /// The entry one step on.
    Step,
    /// Nothing any more.
    End,
}

impl Next {
    fn found(found: bool) -> Self {
        if found { Self::Here } else { Self::End }
    }
}

struct TigerCursor<'a> {
    cursor: native::Cursor<'a>,
    back: bool,
    next: Next,
}

impl Cursor for TigerCursor<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let here = match self.next {
            Next::Here => true,
            Next::Step => self.cursor.step(self.back)?,
            Next::End => false,
        };
        self.next = if here { Next::Step } else { Next::End };
        if !here {
            return Ok(None);
        }
        Ok(Some((self.cursor.key()?, self.cursor.value()?)))
    }
}
