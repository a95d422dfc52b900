//! Berkeley DB 5.3, Debian's library, loaded at run time.
//!
//! *Tree*: a B-tree in a transactional environment of one process. *Memory*: `set_cachesize`, with the
//! bytes given. *Durability*: class `disk` is its default, a sync of the log in every commit; class
//! `process` is `DB_TXN_WRITE_NOSYNC`, which hands the log to the operating system; class `buffered`
//! is `DB_TXN_NOSYNC`, which leaves it in the process. Berkeley DB takes no checkpoint by itself; its
//! documentation asks the program to, so a session does after every 64 MiB of log, and logs that are
//! not needed any more are removed.

use crate::engines::Durability;
use crate::engines::native::berkeleydb as native;
use crate::engines::pending::Pending;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session};
use crate::{Error, Result};

const NAMES: &[&str] = &["libdb-5.3.so", "libdb-5.so", "libdb.so"];
/// Writes of a session between two looks at the log.
const WRITES_A_LOOK: u64 = 1_024;

/// An open database.
pub struct BerkeleyEngine {
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
    let (commit, shown) = match options.durability {
        Durability::Buffered => (native::Commit::Keep, "DB_TXN_NOSYNC"),
        Durability::Process => (native::Commit::Write, "DB_TXN_WRITE_NOSYNC"),
        Durability::Disk => (native::Commit::Sync, "synced (its default)"),
    };
    let db = library.open(options.dir, options.memory, commit)?;
    let cache =
        options.memory.map_or("256 KiB (its default)".into(), |bytes| format!("{bytes} bytes"));
    let settings = vec![
        ("cache".into(), cache),
        ("log".into(), shown.into()),
        ("checkpoint".into(), "after every 64 MiB of log".into()),
        ("deletion of a range".into(), "key by key, in batches".into()),
        ("everything else".into(), "defaults".into()),
    ];
    let (major, minor, patch) = library.version();
    let version = format!("Berkeley DB {major}.{minor}.{patch}");
    Ok(Box::new(BerkeleyEngine { db, version, default: options.durability, settings }))
}

impl Engine for BerkeleyEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let (pending, value) = (Pending::default(), vec![0; 1 << 10]);
        Ok(Box::new(BerkeleySession { engine: self, pending, value, writes: 0 }))
    }

    fn flush(&self) -> Result<()> {
        self.db.checkpoint(true)
    }

    fn compact(&self) -> Result<()> {
        self.db.compact()?;
        self.db.checkpoint(true)
    }

    fn wait_idle(&self) -> Result<()> {
        // Berkeley DB does nothing in the background.
        Ok(())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn stats(&self) -> String {
        "none that are asked for".into()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.checkpoint(true)?;
        self.db.close()
    }
}

struct BerkeleySession<'a> {
    engine: &'a BerkeleyEngine,
    pending: Pending,
    /// Room for the value that is read.
    value: Vec<u8>,
    writes: u64,
}

impl BerkeleySession<'_> {
    /// Takes a checkpoint now and then.
    fn count(&mut self) -> Result<()> {
        self.writes += 1;
        if self.writes.is_multiple_of(WRITES_A_LOOK) {
            self.engine.db.checkpoint(false)
        } else {
            Ok(())
        }
    }

    /// Runs `change` in a transaction until it is not lost to another.
    fn transact(
        &mut self,
        durability: Durability,
        change: impl Fn(&mut native::Txn<'_>) -> Result<bool>,
    ) -> Result<()> {
        let sync = durability > self.engine.default;
        loop {
            let mut txn = self.engine.db.begin(sync)?;
            if change(&mut txn)? {
                txn.commit()?;
                return self.count();
            }
        }
    }
}

impl Session for BerkeleySession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        if durability > self.engine.default {
            return self.transact(durability, |txn| txn.put(key, value));
        }
        while !self.engine.db.put(key, value)? {}
        self.count()
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        if durability > self.engine.default {
            return self.transact(durability, |txn| txn.delete(key));
        }
        while !self.engine.db.delete(key)? {}
        self.count()
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.pending.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.pending.delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        self.transact(durability, |txn| {
            for (key, value) in pending.iter() {
                let done = match value {
                    Some(value) => txn.put(key, value)?,
                    None => txn.delete(key)?,
                };
                if !done {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.engine.db.get(key, &mut self.value, found)
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let mut cursor = self.engine.db.cursor()?;
        let back = direction == Direction::Reverse;
        let there = match from {
            None => cursor.end(back)?,
            Some(from) => match (cursor.seek(from)?, back) {
                (there, false) => there,
                (true, true) if cursor.entry().0 == from => true,
                (true, true) => cursor.step(true)?,
                (false, true) => cursor.end(true)?,
            },
        };
        Ok(Box::new(BerkeleyCursor { cursor, back, there, started: false }))
    }
}

struct BerkeleyCursor<'a> {
    cursor: native::Cursor<'a>,
    back: bool,
    /// Whether the cursor is on an entry.
    there: bool,
    /// Whether that entry was handed out.
    started: bool,
}

impl Cursor for BerkeleyCursor<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.started && self.there {
            self.there = self.cursor.step(self.back)?;
        }
        self.started = true;
        Ok(self.there.then(|| self.cursor.entry()))
    }
}
