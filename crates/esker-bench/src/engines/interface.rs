//! What the harness asks of an engine: the traits [`Engine`], [`Session`] and [`Cursor`].
//!
//! The traits offer what all embedded ordered stores have: point operations, batches, cursors in both
//! directions, and the maintenance calls that make a benchmark repeatable. Each thread works through a
//! [`Session`] of its own, which owns the buffers that its engine can reuse between calls. The harness
//! never makes an engine allocate where the engine's own interface would not.

use crate::Result;
use crate::engines::Durability;
use crate::engines::links::LinkStore;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How a database is opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions<'a> {
    /// The directory of the database.
    pub dir: &'a Path,
    /// Bytes of memory, if the user gave a number.
    pub memory: Option<u64>,
    /// Bytes that are gathered in memory before they are flushed, if the user gave a number. Given only
    /// to engines whose registry entry says that they take it.
    pub write_buffer_bytes: Option<u64>,
    /// What a write survives unless it says otherwise.
    pub durability: Durability,
    /// Whether LinkBench's transactions are run ([`Engine::link_store`]). An engine may have to be
    /// opened in another way for them, and may have no store if it was not.
    pub transactions: bool,
}

/// Bytes that an engine counted as written since it was opened, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineBytes {
    /// Keys and values of users.
    pub user: u64,
    /// Its log.
    pub log: u64,
    /// Flushes of memory to files.
    pub flush: u64,
    /// Compactions. Format 1 of reports calls it `merge`.
    #[serde(alias = "merge")]
    pub compaction: u64,
    /// Everything else.
    pub other: u64,
}

impl EngineBytes {
    /// What was written between `earlier` and now.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            log: self.log.saturating_sub(earlier.log),
            flush: self.flush.saturating_sub(earlier.flush),
            compaction: self.compaction.saturating_sub(earlier.compaction),
            other: self.other.saturating_sub(earlier.other),
        }
    }
}

/// The direction of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Reverse,
}

/// An open database.
pub trait Engine: Send + Sync {
    /// A session for one thread.
    fn session(&self) -> Result<Box<dyn Session + '_>>;

    /// Writes memory out to files.
    fn flush(&self) -> Result<()>;

    /// Brings the whole tree into its final shape.
    fn compact(&self) -> Result<()>;

    /// Returns when background work is done.
    fn wait_idle(&self) -> Result<()>;

    /// The engine's name and version: "RocksDB 10.4.2".
    fn version(&self) -> String;

    /// What was set at open, for the report.
    fn settings(&self) -> Vec<(String, String)>;

    /// Bytes written by cause, if the engine counts them.
    fn bytes_written(&self) -> Option<EngineBytes> {
        None
    }

    /// LinkBench's tables, if the engine answers for them and was opened for it.
    fn link_store(&self) -> Option<&dyn LinkStore> {
        None
    }

    /// The process of the engine, if the engine is a server: what it uses is added to what the run's own
    /// process uses.
    fn server(&self) -> Option<u32> {
        None
    }

    /// The engine's own statistics as text.
    fn stats(&self) -> String;

    /// Closes the database and reports what failed.
    fn close(self: Box<Self>) -> Result<()>;
}

/// One thread's access to a database.
pub trait Session {
    /// Writes one entry.
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()>;

    /// Deletes one entry.
    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()>;

    /// Deletes every key from `start` up to and without `end`. This default deletes key by key, in
    /// batches, for engines that have no call for it.
    fn delete_range(&mut self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        loop {
            let mut keys: Vec<Vec<u8>> = Vec::new();
            let mut cursor = self.cursor(Some(start), Direction::Forward)?;
            while keys.len() < RANGE_BATCH {
                match cursor.next()? {
                    Some((key, _)) if key < end => keys.push(key.to_vec()),
                    _ => break,
                }
            }
            drop(cursor);
            if keys.is_empty() {
                return Ok(());
            }
            keys.iter().for_each(|key| self.batch_delete(key));
            self.batch_commit(durability)?;
        }
    }

    /// Adds a write to the batch under way.
    fn batch_put(&mut self, key: &[u8], value: &[u8]);

    /// Adds a deletion to the batch under way.
    fn batch_delete(&mut self, key: &[u8]);

    /// Commits the batch under way.
    fn batch_commit(&mut self, durability: Durability) -> Result<()>;

    /// Reads one entry: hands its value to `found`, once, if there is one, and says whether there is.
    /// The value is not copied for the call where the engine can lend it.
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Reads several entries in one call: hands the index in `keys` of each key that was found, and its
    /// value, to `found`, in any order. This default reads one by one, for engines that have no call
    /// for several.
    fn multi_get(&mut self, keys: &[Vec<u8>], found: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        for (place, key) in keys.iter().enumerate() {
            self.get(key, &mut |value| found(place, value))?;
        }
        Ok(())
    }

    /// A cursor that starts at the first key at or behind `from` in its direction, or at the end.
    fn cursor(&mut self, from: Option<&[u8]>, direction: Direction)
    -> Result<Box<dyn Cursor + '_>>;
}

/// Walks over entries.
pub trait Cursor {
    /// The next entry, valid until the next call.
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>>;
}

/// Keys that [`Session::delete_range`] deletes in one batch where an engine has no call for it.
const RANGE_BATCH: usize = 1_000;
