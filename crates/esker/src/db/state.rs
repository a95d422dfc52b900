//! What readers see: the memtables and the version, swapped together.
//!
//! A reader loads the state and then `visible`. Entries that a flush or compaction dropped before
//! the state was published were hidden by entries below that `visible`, so a state and any position
//! read after it fit together.

use crate::base::Seq;
use crate::db::memset::MemSet;
use crate::manifest::Version;
use crate::sync::primitives;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The memtables and the version.
#[derive(Debug)]
pub struct State {
    /// The memtable sets, the newest first; the first takes writes.
    pub memsets: Vec<Arc<MemSet>>,
    /// The tree.
    pub version: Arc<Version>,
    iterators: AtomicU32,
}

impl State {
    /// The first state of an open database.
    pub fn shared(memsets: Vec<Arc<MemSet>>, version: Version) -> primitives::Arc<Self> {
        primitives::Arc::new(Self::of(memsets, Arc::new(version)))
    }

    /// A state of these parts, which no iterator looks at.
    pub fn of(memsets: Vec<Arc<MemSet>>, version: Arc<Version>) -> Self {
        Self { memsets, version, iterators: AtomicU32::new(0) }
    }

    /// An iterator begins, or ends, to look at it.
    pub fn count_iterator(&self, begins: bool) {
        match begins {
            true => self.iterators.fetch_add(1, Ordering::Relaxed),
            false => self.iterators.fetch_sub(1, Ordering::Relaxed),
        };
    }

    /// Whether iterators look at it, which stay for as long as their owners like.
    pub fn has_iterators(&self) -> bool {
        self.iterators.load(Ordering::Relaxed) > 0
    }

    /// The same with another set that takes writes.
    pub fn with_active(&self, set: MemSet) -> Self {
        let memsets = std::iter::once(Arc::new(set)).chain(self.memsets.iter().cloned()).collect();
        Self::of(memsets, self.version.clone())
    }

    /// The same with another version, which took the content of `flushed` over.
    pub fn with_version(&self, version: Version, flushed: Option<&Arc<MemSet>>) -> Self {
        let stays = |set: &&Arc<MemSet>| !flushed.is_some_and(|flushed| Arc::ptr_eq(flushed, set));
        let memsets = self.memsets.iter().filter(stays).cloned().collect();
        Self::of(memsets, Arc::new(version))
    }

    /// The set that takes writes.
    #[inline]
    pub fn active(&self) -> &Arc<MemSet> {
        &self.memsets[0]
    }

    /// The set that a write with sequence number `seq` belongs to.
    #[inline]
    pub fn memset_of(&self, seq: Seq) -> &Arc<MemSet> {
        let covers = |set: &&Arc<MemSet>| set.start <= seq;
        // Seeded: a write that was sequenced before a seal goes into the set behind it.
        if bug!("db_write_goes_to_the_newer_set") {
            return self.active();
        }
        // A set leaves the state only when everything below its end is published, so the set of
        // an unpublished write is there; the oldest stands in for a number below all starts.
        self.memsets.iter().find(covers).unwrap_or(&self.memsets[self.memsets.len() - 1])
    }

    /// The oldest set, if it is sealed.
    pub fn oldest_sealed(&self) -> Option<&Arc<MemSet>> {
        self.memsets.last().filter(|set| set.sealed_at().is_some())
    }

    /// The position from which on the log is kept for the memtables.
    pub fn log_start(&self) -> Seq {
        self.memsets.last().map_or(0, |oldest| oldest.start)
    }

    /// Bytes of the sets that wait for their flush.
    pub fn sealed_bytes(&self) -> u64 {
        self.memsets[1..].iter().map(|set| set.bytes()).sum()
    }
}
