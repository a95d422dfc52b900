//! The memtable itself: skiplist, filter and range tombstones under one interface.
//!
//! An insert goes to the skiplist and sets its bits in the filter; a lookup asks the filter first.
//! Cursors and the builder that recovery uses are in other files, which import this one.

use super::arena::Arena;
use super::bloom::{Bloom, Place};
use super::node::{Entry, Header};
use super::skiplist::{self, PENDING, Skiplist, Target};
use super::tombstones::{TombstoneLists, TombstoneView};
use crate::base::codec::hash_key;
use crate::base::rangedel::{Fragments, RangeTombstone};
use crate::base::{KeyOrder, KeyspaceId, Kind, Seq};
use crate::budget::ChunkPool;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A table of entries and range tombstones that have not been flushed: see the head of
/// `memtable`.
pub struct Memtable<O: KeyOrder> {
    pub(super) list: Skiplist<O>,
    pub(super) bloom: Bloom,
    pub(super) tombstones: TombstoneLists,
    beside: Option<Arc<Beside>>,
    /// Identifies the table in this process, so that a [`Pending`] of another table is rejected.
    number: u64,
}

/// What tables that lie beside each other know together.
struct Beside {
    /// The keys of all of them.
    bloom: Bloom,
    /// Whether one of them has range tombstones.
    has_tombstones: AtomicBool,
}

/// A version of a key that was found in a memtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// Its sequence number.
    pub seq: Seq,
    /// Its kind.
    pub kind: Kind,
    /// The value; empty for a delete.
    pub value: &'a [u8],
}

/// An entry that was inserted but has no sequence number yet. If it is dropped, the entry stays
/// invisible.
#[derive(Debug)]
#[must_use = "an entry that is not published stays invisible"]
pub struct Pending {
    node: NonNull<Header>,
    table: u64,
}

// SAFETY: it is only an address, used by `publish` after a check that the table is the right one.
#[allow(unsafe_code, reason = "the address of a node may be sent with its table")]
unsafe impl Send for Pending {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "the address of a node may be shared with its table")]
unsafe impl Sync for Pending {}

impl<O: KeyOrder> Memtable<O> {
    /// An empty table. The filter is laid out for `capacity_hint_bytes` of entries.
    pub fn new(order: O, capacity_hint_bytes: usize) -> Self {
        Self::with_pool(order, capacity_hint_bytes, Arc::new(ChunkPool::keeping_none()))
    }

    /// As [`Self::new`], with memory from a pool, which gets it back when the table is dropped.
    pub fn with_pool(order: O, capacity_hint_bytes: usize, pool: Arc<ChunkPool>) -> Self {
        Self::in_arena(order, capacity_hint_bytes, Arc::new(Arena::new(pool)), None)
    }

    /// As [`Self::with_pool`], for tables that will be made beside this one; all of them together have
    /// about `all_hint_bytes` of entries.
    pub fn first_of_several(
        order: O,
        capacity_hint_bytes: usize,
        all_hint_bytes: usize,
        pool: Arc<ChunkPool>,
    ) -> Self {
        let bloom = if O::BYTEWISE { Bloom::new(all_hint_bytes) } else { Bloom::off() };
        let beside = Beside { bloom, has_tombstones: AtomicBool::new(false) };
        let arena = Arc::new(Arena::new(pool));
        Self::in_arena(order, capacity_hint_bytes, arena, Some(Arc::new(beside)))
    }

    /// An empty table of the same order whose entries lie in the memory of this one. That memory is
    /// freed when the last of them is dropped.
    pub fn beside(&self, capacity_hint_bytes: usize) -> Self {
        let (arena, beside) = (self.list.arena().clone(), self.beside.clone());
        Self::in_arena(self.order().clone(), capacity_hint_bytes, arena, beside)
    }

    /// Whether this table or one beside it may have entries of a key with this hash, or has range
    /// tombstones; `false` is certain.
    #[inline]
    pub fn any_may_hold(&self, keyspace: KeyspaceId, hash: u64) -> bool {
        let Some(all) = &self.beside else { return true };
        all.has_tombstones.load(Ordering::Relaxed)
            || all.bloom.place(keyspace, hash).is_none_or(|place| all.bloom.may_contain(place))
    }

    /// Whether this table or one beside it may have range tombstones; `false` is certain.
    #[inline]
    pub fn any_may_have_tombstones(&self) -> bool {
        let Some(all) = &self.beside else { return !self.tombstones.is_empty() };
        all.has_tombstones.load(Ordering::Relaxed)
    }

    fn in_arena(
        order: O,
        capacity_hint_bytes: usize,
        arena: Arc<Arena>,
        beside: Option<Arc<Beside>>,
    ) -> Self {
        static TABLES: AtomicU64 = AtomicU64::new(0);
        let bloom = if O::BYTEWISE { Bloom::new(capacity_hint_bytes) } else { Bloom::off() };
        Self {
            list: Skiplist::new(order, arena),
            bloom,
            tombstones: TombstoneLists::default(),
            beside,
            number: TABLES.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Makes do without a filter, which must still be empty.
    pub(super) fn leave_filter_off(&mut self) {
        self.bloom = Bloom::off();
    }

    /// The order of the keys.
    pub fn order(&self) -> &O {
        &self.list.order
    }

    /// Inserts a version of a key. A key must not get the same sequence number twice.
    pub fn insert(&self, keyspace: KeyspaceId, key: &[u8], seq: Seq, kind: Kind, value: &[u8]) {
        debug_assert!(skiplist::is_published(seq), "sequence numbers fit 56 bits");
        let places = self.prefetch_filters(keyspace, key);
        let head = self.list.order.head(key);
        self.list.insert(&Entry { keyspace, head, key, seq, kind, value });
        self.add_to_filters(seq, places);
    }

    /// Where the filters that know this table's keys have the bits of a key: its own, and that of all
    /// tables beside it. Their cache lines are fetched.
    #[inline]
    pub(super) fn prefetch_filters(&self, keyspace: KeyspaceId, key: &[u8]) -> [Option<Place>; 2] {
        if !O::BYTEWISE {
            return [None; 2];
        }
        let hash = hash_key(key);
        let of =
            |bloom: &Bloom| bloom.place(keyspace, hash).inspect(|place| bloom.prefetch(*place));
        [of(&self.bloom), self.beside.as_ref().and_then(|all| of(&all.bloom))]
    }

    /// Adds the key of an entry that was inserted with this number to the filters.
    #[inline]
    pub(super) fn add_to_filters(&self, seq: Seq, places: [Option<Place>; 2]) {
        // Seeded: now and then the filter denies a key that was just written.
        bug!(
            "memtable_filter_misses_keys",
            if seq.is_multiple_of(512) {
                return;
            }
        );
        self.set_filters(places);
    }

    /// Adds a key to the filters.
    #[inline]
    pub(super) fn set_filters(&self, [own, all]: [Option<Place>; 2]) {
        if let Some(place) = own {
            self.bloom.set(place);
        }
        if let (Some(place), Some(beside)) = (all, &self.beside) {
            beside.bloom.set(place);
        }
    }

    /// Inserts a version of a key whose sequence number is not known yet: it is invisible until
    /// [`Self::publish`]. Keyspaces with a custom comparator use this: comparisons run user code,
    /// so they must happen before space in the log is reserved (R15).
    ///
    /// The caller holds one lock from here until the numbers are reserved, so that versions of a
    /// key get their numbers in the order of these calls, and lets no reader read at or above a
    /// reserved number before it is published or given up. Once a table has pending entries,
    /// every further entry is inserted this way.
    pub fn insert_pending(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        kind: Kind,
        value: &[u8],
    ) -> Pending {
        let head = self.list.order.head(key);
        let entry = Entry { keyspace, head, key, seq: PENDING, kind, value };
        let node = self.list.insert(&entry).as_ptr();
        self.set_filters(self.prefetch_filters(keyspace, key));
        Pending { node, table: self.number }
    }

    /// Gives a pending entry of this table its sequence number. Compares and allocates nothing.
    ///
    /// # Panics
    /// If the entry belongs to another table.
    pub fn publish(&self, pending: Pending, seq: Seq) {
        assert_eq!(pending.table, self.number, "a pending entry is published in its own table");
        debug_assert!(skiplist::is_published(seq), "sequence numbers fit 56 bits");
        self.list.publish(pending.node, seq);
    }

    /// Adds a range tombstone: it hides the keys of its range up to its sequence number. Every read
    /// that begins after the return sees it, if it reads above that number.
    pub fn delete_range(&self, keyspace: KeyspaceId, tombstone: RangeTombstone) {
        self.tombstones.add(keyspace, tombstone);
        if let Some(beside) = &self.beside {
            beside.has_tombstones.store(true, Ordering::Relaxed);
        }
    }

    /// The newest version of `key` with a sequence number less than `below`. Range tombstones are
    /// not applied.
    #[inline]
    pub fn get(&self, keyspace: KeyspaceId, key: &[u8], below: Seq) -> Option<Found<'_>> {
        self.get_hashed(keyspace, key, if O::BYTEWISE { hash_key(key) } else { 0 }, below)
    }

    /// As [`Self::get`], for callers that know `hash_key(key)` already.
    #[inline(always)]
    pub fn get_hashed(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        hash: u64,
        below: Seq,
    ) -> Option<Found<'_>> {
        if self.bloom.place(keyspace, hash).is_some_and(|place| !self.bloom.may_contain(place)) {
            return None;
        }
        let target = Target { keyspace, head: self.list.order.head(key), key, below };
        let node = self.list.seek(&target).filter(|node| self.list.has_key(*node, &target))?;
        Some(Found { seq: node.seq(), kind: node.kind(), value: node.value() })
    }

    /// Whether the filter lets a key with this hash pass; `None`: there is no filter. For reports.
    pub fn filter_passes(&self, keyspace: KeyspaceId, hash: u64) -> Option<bool> {
        self.bloom.place(keyspace, hash).map(|place| self.bloom.may_contain(place))
    }

    /// The newest sequence number less than `below` of a range tombstone that covers `key`; 0 if
    /// there is none. One atomic load where the table has no range tombstones.
    #[inline]
    pub fn tombstone_seq(&self, keyspace: KeyspaceId, key: &[u8], below: Seq) -> Seq {
        if self.tombstones.is_empty() {
            return 0;
        }
        self.tombstones.covering_seq(&self.list.order, keyspace, key, below)
    }

    /// The range tombstones of a keyspace, from new to old.
    pub fn tombstones(&self, keyspace: KeyspaceId) -> Vec<RangeTombstone> {
        self.tombstones.all(keyspace)
    }

    /// The range tombstones of a keyspace as they are now, for scans; copies none of them.
    pub fn tombstone_view(&self, keyspace: KeyspaceId) -> TombstoneView {
        if self.tombstones.is_empty() {
            return TombstoneView::default();
        }
        self.tombstones.view(&self.list.order, keyspace)
    }

    /// The range tombstones of a keyspace as one fragmented list, for a flush.
    pub fn fragments(&self, keyspace: KeyspaceId) -> Fragments {
        Fragments::build(&self.list.order, self.tombstones.all(keyspace))
    }

    /// The keyspaces that have entries or range tombstones, ascending. Costs one search for each.
    pub fn keyspaces(&self) -> Vec<KeyspaceId> {
        let mut keyspaces = self.tombstones.keyspaces();
        let mut node = self.list.first();
        while let Some(found) = node {
            keyspaces.push(found.keyspace());
            let above = found.keyspace().checked_add(1);
            node = above.and_then(|above| self.list.seek_keyspace(above));
        }
        keyspaces.sort_unstable();
        keyspaces.dedup();
        keyspaces
    }

    /// The memory in use: entries with their overhead, filter and range tombstones. Tables that
    /// share their memory each count the entries of all of them.
    pub fn bytes(&self) -> usize {
        let beside = self.beside.as_ref().map_or(0, |beside| beside.bloom.bytes());
        self.list.arena_bytes() + beside + self.own_bytes()
    }

    /// The memory that was taken for entries, also where there are none yet.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.list.arena().taken()
    }

    /// The part of it that lists of range tombstones take.
    pub fn tombstone_bytes(&self) -> u64 {
        self.tombstones.bytes() as u64
    }

    /// The memory of the filter and of the range tombstones.
    pub fn own_bytes(&self) -> usize {
        self.bloom.bytes() + self.tombstones.bytes()
    }

    /// The number of entries, pending ones included; range tombstones are not counted.
    pub fn entries(&self) -> u64 {
        self.list.inserted()
    }

    /// Whether there are entries.
    #[inline]
    pub fn has_entries(&self) -> bool {
        self.list.first().is_some()
    }

    /// Whether there are neither entries nor range tombstones.
    pub fn is_empty(&self) -> bool {
        !self.has_entries() && self.tombstones.is_empty()
    }
}

impl<O: KeyOrder> std::fmt::Debug for Memtable<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable")
            .field("order", self.order())
            .field("entries", &self.entries())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
