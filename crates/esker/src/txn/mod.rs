//! Transactions: what a commit needs to know about the writes since the transaction began (R20).
//!
//! | file | what |
//! |---|---|
//! | `reads` | what a transaction read: keys, and ranges as far as its iterators advanced |
//! | `writes` | what it wrote, before it commits |
//! | `validate` | whether anything that it read has changed |
//! | `locks` | locks on keys, for locking transactions |
//! | `ingested` | the ranges of keys that were ingested since |
//!
//! The memtables alone tell whether a key changed since a position, without I/O. A flush removes
//! its memtable set from the state of readers; the set is kept here while a transaction is open
//! that began before the set's end.
//!
//! 1. A transaction is registered before its position is read, under the same lock under which a
//!    flush decides whether its set is still needed. So a set that is not kept ends at or below the
//!    position of every transaction that is registered later.
//! 2. A set is kept here before it leaves the state. A caller that loads the state first and this
//!    history second finds every set in one of them, or learns from `floor` that a set is gone.
//! 3. Kept sets take at most `limit` bytes, and there are at most 256 of them, since even a small
//!    one has its overhead. Beyond that the oldest are dropped, and `floor` rises: transactions
//!    that began below `floor` can no longer be validated. Sets without entries are not kept.
//! 4. What is ingested is in no memtable. Its ranges are kept here before it is published, as long and in
//!    the same way as sets.

pub mod ingested;
pub mod locks;
pub mod reads;
pub mod validate;
pub mod writes;

use self::ingested::Ingested;
use crate::base::Seq;
use crate::budget::{Account, Lease};
use crate::state::memtables::MemtableSet;
use crate::waits::Waits;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The most flushed sets that are kept, however small they are.
const KEPT_MAX: usize = 256;

/// The open transactions, and the flushed memtable sets that they may still need.
#[derive(Debug)]
pub struct Transactions {
    limit: u64,
    begun: AtomicU64,
    /// The locks of locking transactions.
    pub locks: locks::Locks,
    /// Held by a write that must find what it read unchanged, from before its place in the log is
    /// reserved until it is complete. Such a write waits for those before it while later ones wait
    /// for its place: with more of them than processors, each would wait for several to be
    /// scheduled in turn. With the lock it waits for none of its kind, and before it has a place.
    committing: Mutex<()>,
    inner: Mutex<Inner>,
    /// What open transactions wrote and noted as read.
    own: Arc<Account>,
}

#[derive(Debug, Default)]
struct Inner {
    /// How many transactions began at each position.
    /// When the first of those that are open now began there.
    open: BTreeMap<Seq, (usize, Instant)>,
    /// Flushed sets, from old to new, with the bytes that are counted for each.
    kept: VecDeque<(Arc<MemtableSet>, u64)>,
    kept_bytes: u64,
    /// What was ingested, from old to new.
    ingested: VecDeque<Arc<Ingested>>,
    /// Writes before this position may be missing from all sets.
    floor: Seq,
}

impl Inner {
    /// Removes the sets that no open transaction needs, or that exceed the limits.
    fn trim(&mut self, limit: u64) -> Vec<Arc<MemtableSet>> {
        let oldest = self.open.keys().next().copied().unwrap_or(Seq::MAX);
        let mut free = Vec::new();
        while let Some((set, bytes)) = self.kept.front()
            && (end_of(set) <= oldest || self.kept_bytes > limit || self.kept.len() > KEPT_MAX)
        {
            self.kept_bytes -= bytes;
            self.floor = self.floor.max(end_of(set));
            free.extend(self.kept.pop_front().map(|(set, _)| set));
        }
        while let Some(ingested) = self.ingested.front()
            && (ingested.seq < oldest || self.ingested.len() > KEPT_MAX)
        {
            self.floor = self.floor.max(ingested.seq + 1);
            self.ingested.pop_front();
        }
        free
    }
}

fn end_of(set: &MemtableSet) -> Seq {
    set.sealed_at().unwrap_or(set.start)
}

impl Transactions {
    /// No transaction is open; flushed sets may take up to `limit` bytes.
    /// `waits`: where waits for locks are recorded.
    pub fn new(limit: u64, waits: Arc<Waits>) -> Self {
        Self {
            limit,
            begun: AtomicU64::new(0),
            locks: locks::Locks::new(waits),
            committing: Mutex::default(),
            inner: Mutex::default(),
            own: Arc::default(),
        }
    }

    /// The account of one more transaction.
    pub fn lease(&self) -> Lease {
        self.own.lease()
    }

    /// Bytes of what open transactions wrote and noted as read.
    pub fn own_bytes(&self) -> u64 {
        self.own.used()
    }

    /// Held until a write that must find what it read unchanged is complete.
    pub fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.committing.lock()
    }

    /// A number that no other transaction has.
    pub fn next_number(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a transaction that begins at the position that `visible` gives.
    pub fn register(&self, visible: impl FnOnce() -> Seq) -> Seq {
        let mut inner = self.inner.lock();
        let begin = visible();
        inner.open.entry(begin).or_insert_with(|| (0, Instant::now())).0 += 1;
        begin
    }

    /// Ends a transaction that began at `begin`.
    pub fn release(&self, begin: Seq) {
        let mut inner = self.inner.lock();
        if let Some((count, _)) = inner.open.get_mut(&begin) {
            *count -= 1;
            if *count == 0 {
                inner.open.remove(&begin);
            }
        }
        let free = inner.trim(self.limit);
        drop(inner);
        // The lock is not held while memory is freed.
        drop(free);
    }

    /// Keeps a flushed set that is about to leave the state, if a transaction may need it.
    pub fn flushed(&self, set: &Arc<MemtableSet>) {
        if set.is_empty() {
            return;
        }
        let mut inner = self.inner.lock();
        let bytes = set.bytes();
        inner.kept_bytes += bytes;
        inner.kept.push_back((set.clone(), bytes));
        let free = inner.trim(self.limit);
        drop(inner);
        drop(free);
    }

    /// Notes what is ingested, before it is published.
    pub fn ingested(&self, ingested: impl IntoIterator<Item = Ingested>) {
        // Seeded: a transaction commits over what was ingested since it read.
        bug!("txn_ingested_keys_not_seen", return);
        self.inner.lock().ingested.extend(ingested.into_iter().map(Arc::new));
    }

    /// The kept sets, what was ingested, and the position from which on every write is in one of
    /// these or in the state that the caller loaded before.
    pub fn history(&self) -> (Vec<Arc<MemtableSet>>, Vec<Arc<Ingested>>, Seq) {
        let inner = self.inner.lock();
        let sets = inner.kept.iter().map(|(set, _)| set.clone()).collect();
        (sets, inner.ingested.iter().cloned().collect(), inner.floor)
    }

    /// How many transactions are open, and how long the oldest of them has been.
    pub fn open(&self) -> (u64, Duration) {
        let inner = self.inner.lock();
        let count = inner.open.values().map(|(count, _)| *count as u64).sum();
        let oldest = inner.open.values().map(|(_, since)| since.elapsed()).max();
        (count, oldest.unwrap_or_default())
    }

    /// Bytes of the kept sets.
    pub fn kept_bytes(&self) -> u64 {
        self.inner.lock().kept_bytes
    }
}

#[cfg(test)]
mod tests;
