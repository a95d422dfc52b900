//! LMDB through `heed`, opened as its documentation recommends.
//!
//! *Memory*: LMDB has no cache of its own; it reads through the operating system's. The map is as large
//! as the free space of the file system. The documentation asks for a generous map, and with a map
//! beyond the free space a full disk would end the process by a signal instead of an error.
//! *Durability*: class `disk` is its default, an fsync in every commit. Class `process` is
//! `MDB_WRITEMAP` with `MDB_NOSYNC`: a commit changes pages that the operating system owns and syncs
//! nothing. LMDB has nothing weaker, so class `buffered` is opened the same way.
//!
//! *Transactions*: as with redb, every write is one, and a session keeps its read transaction until
//! somebody commits.

use crate::engines::Durability;
use crate::engines::pending::Pending;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session};
use crate::{Error, Result};
use heed::types::Bytes;
use heed::{Env, EnvFlags, EnvOpenOptions, RoRange, RoRevRange, RoTxn, RwTxn, WithoutTls};
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

type Database = heed::Database<Bytes, Bytes>;

/// Readers that may be at work: one for each session.
const READERS_MAX: u32 = 2_048;
/// The smallest map.
const MAP_MIN: u64 = 64 << 20;
/// The largest map: what a process has of addresses is shared with everything else.
const MAP_MAX: u64 = 16 << 40;

fn failed(what: &str) -> impl FnOnce(heed::Error) -> Error {
    move |cause| Error::engine("lmdb", what, cause)
}

/// An open LMDB environment with one database.
pub struct LmdbEngine {
    env: Env<WithoutTls>,
    db: Database,
    /// Counts commits, so that sessions know when their view is old.
    commits: AtomicU64,
    default: Durability,
    settings: Vec<(String, String)>,
}

/// Opens or makes the database.
pub fn open(_spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    Ok(Box::new(LmdbEngine::open(options)?))
}

/// Bytes of a map that the file system can fill, in whole pages.
#[allow(clippy::useless_conversion, reason = "some systems count blocks in 32 bits")]
fn map_bytes(dir: &Path) -> Result<usize> {
    let space = nix::sys::statvfs::statvfs(dir)
        .map_err(|errno| Error::io("ask for the free space of", dir, &errno.into()))?;
    let free = u64::from(space.blocks_available()).saturating_mul(space.fragment_size());
    let held = std::fs::metadata(dir.join("data.mdb")).map_or(0, |file| file.len());
    // A tenth stays free for everything else.
    let wanted = (free - free / 10).saturating_add(held).clamp(MAP_MIN, MAP_MAX);
    Ok(usize::try_from(wanted & !0xFFFF).unwrap_or(usize::MAX & !0xFFFF))
}

impl LmdbEngine {
    #[allow(unsafe_code, reason = "a map relies on what only this process can promise")]
    fn open(options: &OpenOptions<'_>) -> Result<Self> {
        std::fs::create_dir_all(options.dir)
            .map_err(|error| Error::io("make", options.dir, &error))?;
        let map = map_bytes(options.dir)?;
        let mut builder = EnvOpenOptions::new().read_txn_without_tls();
        builder.map_size(map).max_readers(READERS_MAX);
        let flags = match options.durability {
            Durability::Disk => EnvFlags::empty(),
            Durability::Buffered | Durability::Process => EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC,
        };
        // SAFETY: with a writable map, the pages may not be changed through stray pointers: the
        // adapter hands out values only while their reader lives, as shared slices. Without a sync,
        // a crash of the system may break the file: a benchmark opens none that it did not make.
        unsafe { builder.flags(flags) };
        // SAFETY: the file is not changed by others while the map is open: the directory is this
        // run's own, and heed refuses to open an environment twice in one process.
        let env = unsafe { builder.open(options.dir) }.map_err(failed("open"))?;
        let mut txn = env.write_txn().map_err(failed("begin of a write"))?;
        let db = env.create_database(&mut txn, None).map_err(failed("open of the database"))?;
        txn.commit().map_err(failed("commit"))?;
        let sync = match options.durability {
            Durability::Disk => "fsync in every commit (its default)",
            Durability::Process => "MDB_WRITEMAP, MDB_NOSYNC",
            Durability::Buffered => "MDB_WRITEMAP, MDB_NOSYNC (survives the process all the same)",
        };
        let settings = vec![
            ("cache".into(), "none of its own: that of the operating system".into()),
            // Not in bytes: they differ from round to round, and the setting does not.
            ("map".into(), "nine tenths of the free space of its file system".into()),
            ("commit".into(), sync.into()),
            ("writes".into(), "a transaction for each write or batch".into()),
            ("everything else".into(), "defaults".into()),
        ];
        let default = options.durability;
        Ok(Self { env, db, commits: AtomicU64::new(0), default, settings })
    }

    /// Runs `change` in a transaction of the class asked for.
    fn write(
        &self,
        class: Durability,
        change: impl FnOnce(&Database, &mut RwTxn<'_>) -> heed::Result<()>,
    ) -> Result<()> {
        let mut txn = self.env.write_txn().map_err(failed("begin of a write"))?;
        change(&self.db, &mut txn).map_err(failed("write"))?;
        txn.commit().map_err(failed("commit"))?;
        self.commits.fetch_add(1, Ordering::Release);
        if class == Durability::Disk && self.default != Durability::Disk {
            self.env.force_sync().map_err(failed("sync"))?;
        }
        Ok(())
    }
}

impl Engine for LmdbEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LmdbSession { engine: self, view: None, pending: Pending::default() }))
    }

    fn flush(&self) -> Result<()> {
        self.env.force_sync().map_err(failed("flush"))
    }

    fn compact(&self) -> Result<()> {
        // LMDB can only write a compact copy; the file in use keeps its shape.
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        // LMDB does nothing in the background.
        Ok(())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        let version = heed::lmdb_version();
        format!("LMDB {}.{}.{}", version.major, version.minor, version.patch)
    }

    fn stats(&self) -> String {
        let info = self.env.info();
        let shape = self.env.read_txn().and_then(|txn| self.db.stat(&txn));
        match shape {
            Ok(shape) => format!("{info:#?}\n{shape:#?}"),
            Err(error) => format!("{info:#?}\nno statistics: {error}"),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

struct LmdbSession<'a> {
    engine: &'a LmdbEngine,
    /// The commits that the view has seen, and the view.
    view: Option<(u64, RoTxn<'a, WithoutTls>)>,
    pending: Pending,
}

impl<'a> LmdbSession<'a> {
    /// The latest state.
    fn view(&mut self) -> Result<&RoTxn<'a, WithoutTls>> {
        let commits = self.engine.commits.load(Ordering::Acquire);
        if self.view.as_ref().is_none_or(|(seen, _)| *seen != commits) {
            // The old view goes first: it keeps pages from being used again.
            self.view = None;
            let txn = self.engine.env.read_txn().map_err(failed("begin of a read"))?;
            self.view = Some((commits, txn));
        }
        match &self.view {
            Some((_, txn)) => Ok(txn),
            None => Err(Error::engine("lmdb", "read", "the view is gone")),
        }
    }
}

impl Session for LmdbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.view = None;
        self.engine.write(durability, |db, txn| db.put(txn, key, value))
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.view = None;
        self.engine.write(durability, |db, txn| db.delete(txn, key).map(|_| ()))
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        self.view = None;
        let range = (Bound::Included(start), Bound::Excluded(end));
        self.engine.write(durability, |db, txn| db.delete_range(txn, &range).map(|_| ()))
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.pending.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.pending.delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        self.view = None;
        let pending = &self.pending;
        self.engine.write(durability, |db, txn| {
            for (key, value) in pending.iter() {
                match value {
                    Some(value) => db.put(txn, key, value)?,
                    None => {
                        db.delete(txn, key)?;
                    }
                }
            }
            Ok(())
        })?;
        self.pending.clear();
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let db = &self.engine.db;
        let value = db.get(self.view()?, key).map_err(failed("read"))?;
        Ok(value.map(found).is_some())
    }

    fn multi_get(&mut self, keys: &[Vec<u8>], found: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let db = &self.engine.db;
        let view = self.view()?;
        for (place, key) in keys.iter().enumerate() {
            if let Some(value) = db.get(view, key).map_err(failed("multi-read"))? {
                found(place, value);
            }
        }
        Ok(())
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let db = &self.engine.db;
        let view = self.view()?;
        let all = (Bound::Unbounded, Bound::Unbounded);
        let walk = match direction {
            Direction::Forward => {
                let range = from.map_or(all, |from| (Bound::Included(from), Bound::Unbounded));
                db.range(view, &range).map(Walk::Forward)
            }
            Direction::Reverse => {
                let range = from.map_or(all, |from| (Bound::Unbounded, Bound::Included(from)));
                db.rev_range(view, &range).map(Walk::Reverse)
            }
        };
        Ok(Box::new(walk.map_err(failed("seek"))?))
    }
}

enum Walk<'txn> {
    Forward(RoRange<'txn, Bytes, Bytes>),
    Reverse(RoRevRange<'txn, Bytes, Bytes>),
}

impl Cursor for Walk<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let entry = match self {
            Self::Forward(range) => range.next(),
            Self::Reverse(range) => range.next(),
        };
        entry.transpose().map_err(failed("iteration"))
    }
}
