//! The memtables of one set for all bytewise keyspaces: a *group* of small ones, which is flushed as
//! one run.
//!
//! An insert into a skiplist of a few MiB finds its nodes in the processor's caches; in one of 64
//! MiB it misses them at nearly every step, and takes twice as long. A flush, on the other hand,
//! should be large, because the number of flushes decides how often a byte is rewritten later. So
//! writes go to the newest of several small memtables, and all of them are sealed and flushed
//! together. They share one arena.
//!
//! Rules:
//! 1. A memtable takes the writes from its `start` up to the `start` of the next one. Nobody
//!    reserves sequence numbers while the next one is added, so every write knows its memtable by
//!    its number, also one that is late. What a newer memtable holds is newer than all in an older
//!    one.
//! 2. Memtables are only added. A reader counts them after it has read `visible`, so it sees those
//!    of all entries that it may see.
//! 3. A group belongs to one set, and a branch point seals the set. So no group contains a branch
//!    point in its interior, and its memtables leave memory together.
//! 4. Once several memtables of the group have all their entries, or nobody writes, a worker merges pointers
//!    to these, so that a seek searches one list for them ([`Merged`]).

use crate::base::{Bytewise, KeyspaceId, SEQ_MAX, Seq};
use crate::memtable::{MemorySource, Memtable, Merged};
use crate::options::settings::TABLES_MAX;
use crate::sync::primitives::{
    AtomicBool, AtomicU64, AtomicUsize, Mutex, OnceLock, Ordering, RwLock, unset,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pointers are merged when this many more memtables are complete, or an eighth of those merged before
/// where that is more: so a pointer is moved a few times, however many memtables a group has.
const MERGED_AT: usize = 4;
const MERGED_DIVISOR: usize = 8;
/// Pointers that are too few for that are merged when nobody has written for so long.
const MERGE_AFTER: Duration = Duration::from_millis(20);

/// A memtable, and the first sequence number that belongs there.
#[derive(Debug)]
struct Member {
    start: Seq,
    table: Arc<Memtable<Bytewise>>,
}

/// See the head of this module.
#[derive(Debug)]
pub struct Group {
    first: Arc<Memtable<Bytewise>>,
    later: [OnceLock<Member>; TABLES_MAX - 1],
    count: AtomicUsize,
    table_bytes: u64,
    /// Bytes of the group at which the next memtable is due; `u64::MAX`: it is being added.
    next_at: AtomicU64,
    /// Bytes of filters and range tombstones of all memtables but the newest, and of merged pointers.
    older_bytes: AtomicU64,
    /// The entries of the first memtables. The lock is held only to copy or replace the pointer.
    merged: RwLock<Option<Arc<Merged>>>,
    /// How many memtables these are.
    merged_count: AtomicUsize,
    merging: Mutex<()>,
    /// What was published when somebody last looked whether there are writes, and when that was first seen.
    seen: Mutex<(Seq, Instant)>,
    /// Whether a worker looks for a pause of the writes, in which pointers are merged.
    watched: AtomicBool,
}

impl Group {
    /// A group that begins with `first`; the next memtable is due after `table_bytes`.
    pub fn new(first: Memtable<Bytewise>, table_bytes: u64) -> Self {
        let next_at = first.bytes() as u64 + table_bytes;
        Self {
            first: Arc::new(first),
            later: unset(),
            count: AtomicUsize::new(1),
            table_bytes,
            next_at: AtomicU64::new(next_at),
            older_bytes: AtomicU64::new(0),
            merged: RwLock::default(),
            merged_count: AtomicUsize::new(0),
            merging: Mutex::default(),
            seen: Mutex::new((0, Instant::now())),
            watched: AtomicBool::new(false),
        }
    }

    /// A group of one memtable that takes no more writes, with the addresses of its entries in order.
    pub fn of_sorted(first: Arc<Memtable<Bytewise>>, list: Merged, table_bytes: u64) -> Self {
        let list_bytes = list.bytes() as u64;
        Self {
            first,
            later: unset(),
            count: AtomicUsize::new(1),
            table_bytes,
            next_at: AtomicU64::new(u64::MAX),
            older_bytes: AtomicU64::new(list_bytes),
            merged_count: AtomicUsize::new(list.tables()),
            merged: RwLock::new(Some(Arc::new(list))),
            merging: Mutex::default(),
            seen: Mutex::new((0, Instant::now())),
            watched: AtomicBool::new(false),
        }
    }

    /// How many memtables there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Memtable `n`, counted from the oldest.
    #[inline]
    pub fn table(&self, n: usize) -> Option<&Arc<Memtable<Bytewise>>> {
        match n.checked_sub(1) {
            None => Some(&self.first),
            Some(later) => self.later.get(later)?.get().map(|member| &member.table),
        }
    }

    /// The memtables, the newest first.
    #[inline]
    pub fn newest_first(&self) -> impl Iterator<Item = &Arc<Memtable<Bytewise>>> {
        (0..self.count()).rev().filter_map(|n| self.table(n))
    }

    /// Whether one of the memtables may have entries of a key with this hash, or range tombstones;
    /// `false` is certain.
    #[inline]
    pub fn may_hold(&self, keyspace: KeyspaceId, hash: u64) -> bool {
        self.first.any_may_hold(keyspace, hash)
    }

    /// Whether one of the memtables may have range tombstones; `false` is certain.
    #[inline]
    pub fn may_have_tombstones(&self) -> bool {
        self.first.any_may_have_tombstones()
    }

    /// The memtable of a write with this sequence number (rule 1).
    #[inline]
    pub fn table_for(&self, seq: Seq) -> &Memtable<Bytewise> {
        // Seeded: a late write goes to a newer memtable than it belongs to.
        let seq = if bug!("state_late_write_goes_to_the_newer_memtable") { SEQ_MAX } else { seq };
        let later = self.later[..self.count() - 1].iter().rev().filter_map(OnceLock::get);
        let mut later = later.filter(|member| member.start <= seq);
        later.next().map_or(&self.first, |member| &member.table)
    }

    /// The memory of all memtables, and of what was made for them.
    #[inline]
    pub fn bytes(&self) -> u64 {
        let newest = self.table(self.count() - 1).unwrap_or(&self.first);
        newest.bytes() as u64 + self.older_bytes.load(Ordering::Relaxed)
    }

    /// Whether the next memtable is due.
    #[inline]
    pub fn is_next_due(&self, bytes: u64) -> bool {
        bytes >= self.next_at.load(Ordering::Relaxed)
    }

    /// The next memtable, if it is due and nobody else adds it; [`Self::add`] comes then. While nobody
    /// writes (`calm`), a part of a memtable is enough.
    pub fn take_next(&self, calm: bool) -> Option<Memtable<Bytewise>> {
        if !self.is_next_due(self.bytes() + self.ahead(calm)) {
            return None;
        }
        let mine = self.next_at.swap(u64::MAX, Ordering::AcqRel) != u64::MAX;
        (mine && self.count() < TABLES_MAX).then(|| self.first.beside(self.table_bytes as usize))
    }

    /// Adds a memtable for the writes from `start` on. Nobody reserves sequence numbers meanwhile, and
    /// the caller has it from [`Self::take_next`].
    pub fn add(&self, start: Seq, table: Memtable<Bytewise>) {
        let count = self.count();
        let own = self.table(count - 1).map_or(0, |newest| newest.own_bytes());
        let table = Arc::new(table);
        if self.later[count - 1].set(Member { start, table }).is_ok() {
            self.older_bytes.fetch_add(own as u64, Ordering::Relaxed);
            // Release: who sees the count sees the memtable.
            self.count.store(count + 1, Ordering::Release);
        }
        self.next_at.store(self.bytes() + self.table_bytes, Ordering::Release);
    }

    /// The first sequence number behind memtable `n`, if there is a later one.
    fn end_of(&self, n: usize) -> Option<Seq> {
        self.later.get(n)?.get().map(|member| member.start)
    }

    /// Hands `take` a cursor over each memtable, from new to old, or over several whose entries were
    /// merged: how many newer memtables there are, the cursor, and the first sequence number behind its
    /// entries.
    pub fn cursors(
        &self,
        keyspace: KeyspaceId,
        mut take: impl FnMut(usize, MemorySource<Bytewise>, Seq),
    ) {
        let count = self.count();
        let list = self.merged();
        let merged = list.as_ref().map_or(0, |list| list.tables());
        for n in (merged..count).rev() {
            // One that is empty now has nothing that a reader of now may see, also later.
            if let Some(table) = self.table(n).filter(|table| table.has_entries()) {
                let cursor = MemorySource::Table(table.cursor(keyspace));
                take(count - 1 - n, cursor, self.end_of(n).unwrap_or(SEQ_MAX));
            }
        }
        if let Some(list) = list {
            let cursor = MemorySource::Merged(list.cursor(keyspace));
            take(count.saturating_sub(merged), cursor, self.end_of(merged - 1).unwrap_or(SEQ_MAX));
        }
    }

    /// A key of the keyspace in the middle of those whose addresses are merged.
    pub fn middle(&self, keyspace: KeyspaceId) -> Option<Vec<u8>> {
        self.merged()?.middle(keyspace)
    }

    fn merged(&self) -> Option<Arc<Merged>> {
        (self.merged_count.load(Ordering::Acquire) > 0).then(|| self.merged.read().clone())?
    }

    /// Merges pointers to the entries of memtables that have all their entries, if there are at least
    /// `least` that are not among the merged ones; `visible`: what is published, `end`: where the set
    /// ends. Returns whether it did. Even a single memtable is searched with fewer cache misses in the
    /// list of its pointers.
    pub fn merge(&self, visible: Seq, end: Option<Seq>, least: usize) -> bool {
        let Some(_one_at_a_time) = self.merging.try_lock() else { return false };
        let (older, count) = (self.merged(), self.count());
        let merged = older.as_ref().map_or(0, |older| older.tables());
        let end_of = |n: usize| self.end_of(n).or(end);
        // Seeded: pointers are merged before late writes have come.
        let is_complete = |n: &usize| {
            end_of(*n).is_some_and(|end| end <= visible || bug!("state_merged_before_complete"))
        };
        let complete = (merged..count).take_while(is_complete).count();
        if complete < least {
            return false;
        }
        let tables = (merged..merged + complete).filter_map(|n| self.table(n));
        let tables: Vec<_> = tables.cloned().collect();
        let list = Merged::new(older.as_deref(), &tables);
        let grown = (list.bytes() - older.map_or(0, |older| older.bytes())) as u64;
        self.older_bytes.fetch_add(grown, Ordering::Relaxed);
        // Pointers fill no memtable, so the next one is due as many bytes later.
        let later = |at: u64| (at < u64::MAX).then(|| at + grown);
        let _ = self.next_at.fetch_update(Ordering::AcqRel, Ordering::Relaxed, later);
        *self.merged.write() = Some(Arc::new(list));
        self.merged_count.store(merged + complete, Ordering::Release);
        true
    }

    /// Whether nothing was published for [`MERGE_AFTER`], as far as calls saw it.
    pub fn is_calm(&self, visible: Seq, now: Instant) -> bool {
        let mut seen = self.seen.lock();
        if seen.0 != visible {
            *seen = (visible, now);
        }
        now.saturating_duration_since(seen.1) >= MERGE_AFTER
    }

    /// How long writes must pause for pointers to be merged, if some wait for that. The caller looks for a pause from
    /// now on, or no longer.
    pub fn waits_for_pause(&self) -> Option<Duration> {
        let waits = self.is_merged_in_pause();
        self.watched.store(waits, Ordering::Release);
        waits.then_some(MERGE_AFTER)
    }

    /// Whether pointers can be merged in a pause of the writes, and nobody looks for one yet. Returns it once.
    pub fn begins_to_wait(&self) -> bool {
        !self.watched.load(Ordering::Relaxed)
            && self.is_merged_in_pause()
            && !self.watched.swap(true, Ordering::AcqRel)
    }

    /// Whether a pause leaves less in memtables whose pointers are not merged.
    fn is_merged_in_pause(&self) -> bool {
        let (count, merged) = (self.count(), self.merged_count.load(Ordering::Acquire));
        let next = count < TABLES_MAX && self.is_next_due(self.bytes() + self.ahead(true));
        count - 1 + usize::from(next) > merged
    }

    /// Bytes by which the next memtable is due earlier; `calm`: nobody writes. The more there are, the fuller one is
    /// before the next: so pauses do not use up their number, and a get has few to ask.
    fn ahead(&self, calm: bool) -> u64 {
        let full = self.table_bytes / TABLES_MAX as u64 * self.count() as u64;
        if calm { self.table_bytes - full } else { 0 }
    }

    /// Whether pointers wait to be merged, if everything is published.
    pub fn is_merge_due(&self) -> bool {
        self.count() > self.merged_count.load(Ordering::Acquire) + self.merged_at()
    }

    /// How many more memtables must be complete for their pointers to be merged.
    pub fn merged_at(&self) -> usize {
        MERGED_AT.max(self.merged_count.load(Ordering::Acquire) / MERGED_DIVISOR)
    }
}

#[cfg(test)]
mod tests;
