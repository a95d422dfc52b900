//! What readers see: the memtables and the version, swapped together.
//!
//! A reader loads the state and then `visible`. Entries that a flush or merge dropped before the
//! state was published were hidden by entries below that `visible`, so a state and any position
//! read after it fit together.

use crate::base::Seq;
use crate::db::memset::MemSet;
use crate::manifest::Version;
use std::sync::Arc;

/// The memtables and the version.
#[derive(Debug)]
pub struct State {
    /// The memtable sets, the newest first; the first takes writes.
    pub memsets: Vec<Arc<MemSet>>,
    /// The tree.
    pub version: Arc<Version>,
}

impl State {
    /// The first state of an open database.
    pub fn shared(memsets: Vec<Arc<MemSet>>, version: Version) -> Arc<Self> {
        Arc::new(Self { memsets, version: Arc::new(version) })
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
