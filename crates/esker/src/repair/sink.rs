//! The sink of saved entries: for a plan it discards them, for a salvage it writes them into a new
//! database.
//!
//! 1. The entries of a tree come in key order, so they are ingested. From the first entry of a keyspace
//!    that is not behind the one before it, and from its first delete, everything of the keyspace goes
//!    through memtables: versions of a key that have to be combined, what a damaged description brings out
//!    of order, and the log. What was ingested is committed before, so that what comes later is newer.

use crate::base::{Comparator, KeyspaceId, Kind};
use crate::catalog::KeyspaceState;
use crate::db::{Core, Write};
use crate::directory::unfinished;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::ingest::Ingestor;
use crate::manifest::Traits;
use crate::options::{Durability, Options};
use crate::run::Source;
use crate::stats::counters::{WriteCounts, Written};
use crate::wal::ops::Op;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of operations that are written together.
const BATCH_BYTES: usize = 48 << 10;
/// Bytes of entries, about, that are ingested with one commit. Each takes three syncs, and what describes
/// an ingestion stays in memory until then.
const PIECE_BYTES: u64 = 256 << 20;
/// After so many keyspaces came out of order, nothing is ingested any more: each of them costs a commit.
const BREAKS_MAX: u32 = 64;

/// Takes saved operations; a later one overrides an earlier one.
pub(super) trait Sink {
    /// Whether the sink keeps entries; then each keyspace gets the entries that several share.
    const KEEPS: bool;
    /// Creates a keyspace, or finds the existing one, and returns its number in this sink.
    fn keyspace(&mut self, name: &str, order: Option<Arc<dyn Comparator>>) -> Result<u32>;
    /// Gives a keyspace traits.
    fn set_traits(&mut self, keyspace: u32, traits: &Traits) -> Result<()>;
    /// Drops a keyspace.
    fn drop_keyspace(&mut self, name: &str) -> Result<()>;
    /// Takes an operation in a keyspace with a number of this sink.
    fn take(&mut self, op: Op<'_>) -> Result<()>;
    /// Takes an entry in a keyspace with a number of this sink. Its stored value comes in pieces; if reading them
    /// fails, the sink goes on without the entry.
    fn take_from(
        &mut self,
        keyspace: u32,
        entry: (&[u8], Kind),
        value: &mut impl Source,
    ) -> Result<()>;
}

/// Keeps nothing.
#[derive(Debug, Default)]
pub(super) struct Nowhere {
    next: u32,
}

impl Sink for Nowhere {
    const KEEPS: bool = false;

    fn keyspace(&mut self, _: &str, _: Option<Arc<dyn Comparator>>) -> Result<u32> {
        self.next += 1;
        Ok(self.next)
    }

    fn set_traits(&mut self, _: u32, _: &Traits) -> Result<()> {
        Ok(())
    }

    fn drop_keyspace(&mut self, _: &str) -> Result<()> {
        Ok(())
    }

    fn take(&mut self, _: Op<'_>) -> Result<()> {
        Ok(())
    }

    fn take_from(&mut self, _: u32, _: (&[u8], Kind), _: &mut impl Source) -> Result<()> {
        Ok(())
    }
}

/// A keyspace of the new database.
struct Space {
    state: Arc<KeyspaceState>,
    /// Whether everything of it came in key order so far.
    sorted: bool,
}

/// A new database, marked as unfinished until [`Self::finish`].
pub(super) struct Target {
    core: Arc<Core>,
    path: PathBuf,
    fs: Arc<dyn Fs>,
    spaces: Vec<Space>,
    ingestor: Ingestor,
    /// Bytes of entries in it.
    piece_bytes: u64,
    /// Keyspaces that came out of order.
    breaks: u32,
    /// The keyspaces of the batch.
    touched: Vec<Arc<KeyspaceState>>,
    /// Their numbers.
    touched_ids: HashSet<KeyspaceId>,
    payload: Vec<u8>,
    operations: u32,
    counts: WriteCounts,
    written: u64,
}

impl Target {
    pub(super) fn create(path: &Path, options: &Options) -> Result<Self> {
        let mut options = options.clone();
        options.read_only = false;
        options.create_if_missing = true;
        options.error_if_exists = true;
        unfinished::begin(&options.fs, path)?;
        Ok(Self {
            core: Core::open_to_fill(path, &options)?,
            path: path.to_owned(),
            fs: options.fs.clone(),
            spaces: Vec::new(),
            ingestor: Ingestor::default(),
            piece_bytes: 0,
            breaks: 0,
            touched: Vec::new(),
            touched_ids: HashSet::new(),
            payload: Vec::new(),
            operations: 0,
            counts: WriteCounts::default(),
            written: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self) -> Result<()> {
        if self.operations == 0 {
            return Ok(());
        }
        let keyspaces: Vec<&KeyspaceState> = self.touched.iter().map(Arc::as_ref).collect();
        // Nothing is acknowledged before the flush at the end, so no log is needed.
        self.core.write(&Write {
            payload: &self.payload,
            operations: self.operations,
            keyspaces: &keyspaces,
            terms: Durability::Buffered.into(),
            counts: Written::Batch(&self.counts),
        })?;
        self.written += u64::from(self.operations);
        self.payload.clear();
        self.touched.clear();
        self.touched_ids.clear();
        self.operations = 0;
        self.counts = WriteCounts::default();
        Ok(())
    }

    /// Adds an entry to what is ingested; `false`: its key is not behind the one before it.
    fn ingest(
        &mut self,
        keyspace: &Arc<KeyspaceState>,
        (key, kind, stored): Entry<'_>,
    ) -> Result<bool> {
        match self.ingestor.add(&self.core, keyspace, key, (kind, stored)) {
            Err(Error::OutOfOrder { .. }) => return Ok(false),
            added => added?,
        }
        self.count((key.len() + stored.len()) as u64)?;
        Ok(true)
    }

    /// Counts an entry of so many bytes that was added.
    fn count(&mut self, bytes: u64) -> Result<()> {
        self.written += 1;
        self.piece_bytes += bytes;
        if self.piece_bytes >= PIECE_BYTES { self.settle() } else { Ok(()) }
    }

    /// Whether the entries of a keyspace are ingested.
    fn ingests(&self, at: usize) -> bool {
        self.spaces[at].sorted && self.breaks < BREAKS_MAX
    }

    /// From now on everything of a keyspace goes through memtables.
    fn break_off(&mut self, at: usize) -> Result<()> {
        self.spaces[at].sorted = false;
        self.breaks += 1;
        // Seeded: what a repair finds in the log is older afterwards than what it finds in the tree.
        bug!("repair_ingested_entries_come_last", return Ok(()));
        self.settle()
    }

    /// Commits what is ingested.
    fn settle(&mut self) -> Result<()> {
        let mut piece = std::mem::take(&mut self.ingestor);
        self.piece_bytes = 0;
        let committed = piece.commit(&self.core);
        piece.abandon(&self.core);
        committed
    }

    /// Makes everything durable, takes the mark away and closes the database; returns how many
    /// operations it took.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.write()?;
        self.settle()?;
        // Seeded: a repair takes its mark away before what it saved is durable.
        if bug!("repair_mark_goes_first") {
            unfinished::end(self.fs.as_ref(), &self.path)?;
            return self.core.close().map(|()| self.written);
        }
        self.core.flush()?;
        self.core.sync()?;
        // The lock is still held, so that no other repair mistakes this one for an interrupted one.
        unfinished::end(self.fs.as_ref(), &self.path)?;
        self.core.close()?;
        Ok(self.written)
    }
}

/// A key, and the kind and the stored form of its value.
type Entry<'o> = (&'o [u8], Kind, &'o [u8]);

/// The entry that an operation writes.
fn entry<'o>(op: &Op<'o>) -> Option<Entry<'o>> {
    match *op {
        Op::Put { key, value, .. } => Some((key, Kind::Put, value)),
        Op::Special { kind, key, stored, .. } => Some((key, kind, stored)),
        _ => None,
    }
}

/// The entry of an operation, if its value is larger than a batch of this database may be.
fn large<'o>(core: &Core, op: &Op<'o>) -> Option<Entry<'o>> {
    let entry = entry(op)?;
    let too_large = core.settings.check_value_len(entry.2.len() as u64).is_err();
    (too_large && entry.1.separated().is_some()).then_some(entry)
}

impl Drop for Target {
    fn drop(&mut self) {
        // After an error the new database is incomplete, as its mark says. Its threads and its lock
        // must still end, and an error of the close does not matter.
        self.ingestor.abandon(&self.core);
        let _ = self.core.close();
    }
}

impl Sink for Target {
    const KEEPS: bool = true;

    fn keyspace(&mut self, name: &str, order: Option<Arc<dyn Comparator>>) -> Result<u32> {
        self.write()?;
        let state = self.core.keyspace(name, order)?;
        self.spaces.push(Space { state, sorted: true });
        Ok(self.spaces.len() as u32 - 1)
    }

    fn set_traits(&mut self, keyspace: u32, traits: &Traits) -> Result<()> {
        self.write()?;
        let state = self.spaces[keyspace as usize].state.clone();
        self.core.set_traits(&state, traits.clone())
    }

    fn drop_keyspace(&mut self, name: &str) -> Result<()> {
        self.write()?;
        self.settle()?;
        self.core.drop_keyspace(name).map(|_| ())
    }

    fn take_from(
        &mut self,
        keyspace: u32,
        entry: (&[u8], Kind),
        value: &mut impl Source,
    ) -> Result<()> {
        let at = keyspace as usize;
        let state = self.spaces[at].state.clone();
        let head = entry.0.len() as u64;
        if self.ingests(at) {
            match self.ingestor.add_from(&self.core, &state, entry, value) {
                Err(Error::OutOfOrder { .. }) => self.break_off(at)?,
                added => return self.count(head + added?),
            }
        }
        self.write()?;
        let stored = self.ingestor.add_from(&self.core, &state, entry, value)?;
        self.count(head + stored)?;
        self.settle()
    }

    fn take(&mut self, op: Op<'_>) -> Result<()> {
        let at = op.keyspace() as usize;
        let state = self.spaces[at].state.clone();
        if self.ingests(at) {
            if let Some(entry) = entry(&op)
                && self.ingest(&state, entry)?
            {
                return Ok(());
            }
            self.break_off(at)?;
        }
        self.batch(&state, op)
    }
}

impl Target {
    /// Writes an operation with others through memtables.
    fn batch(&mut self, state: &Arc<KeyspaceState>, op: Op<'_>) -> Result<()> {
        let keyspace = state.id;
        if let Some(entry) = large(&self.core, &op) {
            self.write()?;
            self.ingest(state, entry)?;
            return self.settle();
        }
        let mut one = WriteCounts::default();
        let (bytes, op) = match op {
            Op::Put { key, value, .. } => {
                one.puts = 1;
                (key.len() + value.len(), Op::Put { keyspace, key, value })
            }
            Op::Delete { key, .. } => {
                one.deletes = 1;
                (key.len(), Op::Delete { keyspace, key })
            }
            Op::DeleteRange { start, end, .. } => {
                let bytes = [start, end].iter().flatten().map(|bound| bound.len()).sum();
                one.range_deletes = 1;
                (bytes, Op::DeleteRange { keyspace, start, end })
            }
            Op::Special { kind, key, stored, .. } => {
                self.core.settings.check_value_len(stored.len() as u64)?;
                one.puts = 1;
                (key.len() + stored.len(), Op::Special { keyspace, kind, key, stored })
            }
            Op::CreateKeyspace { .. }
            | Op::InBranch { .. }
            | Op::DropKeyspace { .. }
            | Op::SetTraits { .. } => {
                return Ok(());
            }
        };
        if !self.payload.is_empty() && self.payload.len() + bytes > BATCH_BYTES {
            self.write()?;
        }
        if self.touched_ids.insert(keyspace) {
            self.touched.push(state.clone());
        }
        op.encode(&mut self.payload);
        self.operations += 1;
        one.user_bytes = bytes as u64;
        self.counts += one;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
