//! sled 0.34, opened as its documentation shows.
//!
//! *Memory*: `cache_capacity`, with the bytes given. *Durability*: sled collects writes in buffers of
//! the process; it writes a buffer when it is full, and all of them every half second (class
//! `buffered`, its default). Class `process` calls `flush` after every write, the only call that hands
//! the buffers to the operating system. Class `disk` is not offered on Linux: there, `flush` ends in
//! `sync_file_range`, which syncs neither the device's own cache nor the file's metadata, although the
//! documentation speaks of an fsync.

use crate::engines::Durability;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session, locked_version};
use crate::{Error, Result};
use sled::{Batch, Config, Db, IVec, Iter};
use std::fs::File;
use std::path::{Path, PathBuf};

fn failed(what: &str) -> impl FnOnce(sled::Error) -> Error {
    move |cause| Error::engine("sled", what, cause)
}

/// An open sled database.
pub struct SledEngine {
    db: Db,
    dir: PathBuf,
    settings: Vec<(String, String)>,
}

/// Opens or makes the database.
pub fn open(_spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    let mut config = Config::new().path(options.dir);
    let mut cache = "1 GiB (its default)".to_owned();
    if let Some(bytes) = options.memory {
        config = config.cache_capacity(bytes);
        cache = format!("{bytes} bytes");
    }
    let flush = match options.durability {
        Durability::Buffered => "every 500 ms (its default)",
        Durability::Process | Durability::Disk => "after every write",
    };
    let db = config.open().map_err(failed("open"))?;
    let settings = vec![
        ("cache".into(), cache),
        ("flush".into(), flush.into()),
        ("deletion of a range".into(), "key by key, in batches".into()),
        ("everything else".into(), "defaults".into()),
    ];
    Ok(Box::new(SledEngine { db, dir: options.dir.to_owned(), settings }))
}

impl Engine for SledEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(SledSession { db: &self.db, batch: Batch::default() }))
    }

    fn flush(&self) -> Result<()> {
        self.db.flush().map(|_| ()).map_err(failed("flush"))
    }

    fn compact(&self) -> Result<()> {
        // sled moves what is in use out of its emptiest segments by itself, and has no call for it.
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        // Its background thread only flushes.
        self.flush()
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        format!("sled {}", locked_version("sled"))
    }

    fn stats(&self) -> String {
        match self.db.size_on_disk() {
            Ok(bytes) => format!("bytes on disk: {bytes}"),
            Err(error) => error.to_string(),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.flush()?;
        let Self { db, dir, .. } = *self;
        drop(db);
        wait_for_its_lock(&dir.join("db"))
    }
}

/// Waits until sled has let go of its `file`.
///
/// The last work of sled's pool of threads may hold the file, and with it sled's lock, after the
/// database was dropped. To open the database in that time fails, and its work would be counted in
/// what is measured next.
fn wait_for_its_lock(file: &Path) -> Result<()> {
    File::open(file).and_then(|file| file.lock()).map_err(|cause| Error::io("lock", file, &cause))
}

struct SledSession<'a> {
    db: &'a Db,
    batch: Batch,
}

impl SledSession<'_> {
    fn settle(&self, durability: Durability) -> Result<()> {
        if durability == Durability::Buffered {
            return Ok(());
        }
        self.db.flush().map(|_| ()).map_err(failed("flush"))
    }
}

impl Session for SledSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.db.insert(key, value).map_err(failed("write"))?;
        self.settle(durability)
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.db.remove(key).map_err(failed("delete"))?;
        self.settle(durability)
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.insert(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.remove(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.db.apply_batch(batch).map_err(failed("write of a batch"))?;
        self.settle(durability)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get(key).map_err(failed("read"))?;
        Ok(value.map(|value| found(&value)).is_some())
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let iter = match (from, direction) {
            (None, _) => self.db.iter(),
            (Some(from), Direction::Forward) => self.db.range(from..),
            (Some(from), Direction::Reverse) => self.db.range(..=from),
        };
        let entry = (IVec::default(), IVec::default());
        Ok(Box::new(SledCursor { iter, direction, entry }))
    }
}

struct SledCursor {
    iter: Iter,
    direction: Direction,
    entry: (IVec, IVec),
}

impl Cursor for SledCursor {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let entry = match self.direction {
            Direction::Forward => self.iter.next(),
            Direction::Reverse => self.iter.next_back(),
        };
        let Some(entry) = entry else { return Ok(None) };
        self.entry = entry.map_err(failed("iteration"))?;
        Ok(Some((&self.entry.0, &self.entry.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    /// A clone of the database stands for sled's pool, whose last work holds the files for a while.
    #[test]
    fn a_closed_database_can_be_opened_at_once() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("db");
        let db = Config::new().path(&dir).open().unwrap();
        let held = db.clone();
        let engine = Box::new(SledEngine { db, dir: dir.clone(), settings: Vec::new() });
        let released = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Long enough for a `close` that does not wait to return before it.
                std::thread::sleep(Duration::from_millis(50));
                released.store(true, Ordering::SeqCst);
                drop(held);
            });
            engine.close().unwrap();
            assert!(released.load(Ordering::SeqCst), "`close` returned while the file was locked");
            Config::new().path(&dir).open().unwrap();
        });
    }
}
