//! What readers see: the memtables and the version, swapped together.
//!
//! A reader loads the state and then `visible`. Entries that a flush or compaction dropped before
//! the state was published were hidden by entries below that `visible`, so a state and any position
//! read after it fit together.
//!
//! [`memtables`] has the set of memtables that is sealed together, and [`group`] those of the bytewise
//! keyspaces in it; [`current`] holds the present state and replaces it; [`retired`] keeps old states until their readers are done; [`snapshots`]
//! lists the positions that compactions must preserve.

pub mod counts;
pub mod current;
pub mod group;
pub mod memtables;
pub mod retired;
pub mod sizes;
pub mod snapshots;

use crate::base::Seq;
use crate::manifest::Version;
use crate::state::memtables::{DbOrder, MemtableSet};
use crate::sync::primitives;
use crate::trace::StepSource;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The memtables and the version.
#[derive(Debug)]
pub struct State {
    /// The memtable sets, the newest first; the first takes writes.
    pub memtable_sets: Vec<Arc<MemtableSet>>,
    /// The tree.
    pub version: Arc<Version>,
    iterators: AtomicU32,
}

impl State {
    /// The first state of an open database.
    pub fn shared(memtable_sets: Vec<Arc<MemtableSet>>, version: Version) -> primitives::Arc<Self> {
        primitives::Arc::new(Self::of(memtable_sets, Arc::new(version)))
    }

    /// A state of these parts, without iterators.
    pub fn of(memtable_sets: Vec<Arc<MemtableSet>>, version: Arc<Version>) -> Self {
        Self { memtable_sets, version, iterators: AtomicU32::new(0) }
    }

    /// What explanations call a memtable of a key order: that of set `n`, counted from the newest, with
    /// `newer` memtables of the set before it.
    pub fn memtable<O: DbOrder>(&self, n: usize, newer: usize) -> StepSource {
        let count = |sets: &[Arc<MemtableSet>]| sets.iter().map(|set| O::count(set)).sum::<usize>();
        let before = count(&self.memtable_sets[..n]) + newer;
        let sealed = newer > 0 || self.memtable_sets[n].sealed_at().is_some();
        let of = count(&self.memtable_sets) as u64;
        StepSource::Memtable { number: before as u64 + 1, of, sealed }
    }

    /// Counts an iterator on this state that begins or ends.
    pub fn count_iterator(&self, begins: bool) {
        match begins {
            true => self.iterators.fetch_add(1, Ordering::Relaxed),
            false => self.iterators.fetch_sub(1, Ordering::Relaxed),
        };
    }

    /// How many iterators use this state.
    pub fn iterators(&self) -> u32 {
        self.iterators.load(Ordering::Relaxed)
    }

    /// Whether iterators use this state; an iterator lives as long as its owner keeps it.
    pub fn has_iterators(&self) -> bool {
        self.iterators.load(Ordering::Relaxed) > 0
    }

    /// The same state with another active set.
    pub fn with_active(&self, set: MemtableSet) -> Self {
        let memtable_sets =
            std::iter::once(Arc::new(set)).chain(self.memtable_sets.iter().cloned()).collect();
        Self::of(memtable_sets, self.version.clone())
    }

    /// The same state with another version, which contains the entries of `flushed`.
    pub fn with_version(&self, version: Version, flushed: Option<&Arc<MemtableSet>>) -> Self {
        let stays =
            |set: &&Arc<MemtableSet>| !flushed.is_some_and(|flushed| Arc::ptr_eq(flushed, set));
        let memtable_sets = self.memtable_sets.iter().filter(stays).cloned().collect();
        Self::of(memtable_sets, Arc::new(version))
    }

    /// The set that takes writes.
    #[inline]
    pub fn active(&self) -> &Arc<MemtableSet> {
        &self.memtable_sets[0]
    }

    /// The set that a write with sequence number `seq` belongs to.
    #[inline]
    pub fn set_of(&self, seq: Seq) -> &Arc<MemtableSet> {
        let covers = |set: &&Arc<MemtableSet>| set.start <= seq;
        // Seeded: a write that was sequenced before a seal goes into the set after it.
        if bug!("state_write_goes_to_the_newer_set") {
            return self.active();
        }
        // A set leaves the state only when everything below its end is published, so the set of an
        // unpublished write is still here. The oldest set is used for a number below all starts.
        self.memtable_sets
            .iter()
            .find(covers)
            .unwrap_or(&self.memtable_sets[self.memtable_sets.len() - 1])
    }

    /// The oldest set, if it is sealed.
    pub fn oldest_sealed(&self) -> Option<&Arc<MemtableSet>> {
        self.memtable_sets.last().filter(|set| set.sealed_at().is_some())
    }

    /// The position from which on the memtables need the log.
    pub fn log_start(&self) -> Seq {
        self.memtable_sets.last().map_or(0, |oldest| oldest.start)
    }

    /// Bytes at which the largest of the sets is sealed.
    pub fn set_bytes_max(&self) -> u64 {
        self.memtable_sets.iter().map(|set| set.capacity_bytes()).max().unwrap_or(0)
    }

    /// How long the oldest sealed set has waited for the end of its flush.
    pub fn flush_takes(&self) -> Option<Duration> {
        self.oldest_sealed().and_then(|set| set.sealed_since()).map(|since| since.elapsed())
    }

    /// Bytes of the sealed sets.
    pub fn sealed_bytes(&self) -> u64 {
        self.memtable_sets[1..].iter().map(|set| set.bytes()).sum()
    }
}

#[cfg(test)]
mod tests;
