//! The memtables that are sealed together (R14): a group for all bytewise keyspaces, and one memtable
//! for each keyspace with a custom comparator, created by the first write to that keyspace.
//!
//! A set covers the sequence numbers from its `start` to the position where it was sealed. It is
//! flushed once everything below that position is published (R3).

use crate::base::rangedel::Fragments;
use crate::base::rangedel::RangeTombstone;
use crate::base::{Bytewise, CustomOrder, KeyOrder, KeyspaceId, Kind, SEQ_MAX, Seq};
use crate::budget::ChunkPool;
use crate::memtable::{MemorySource, Memtable, Pending, Several, TombstoneView};
use crate::options::settings::{LOG_PER_MEMTABLE, MemtableSizes};
use crate::state::group::Group;
use crate::sync::primitives::{AtomicU64, Ordering};
use crate::wal::ops::{Op, Ops};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// From this size on, two threads flush a set faster.
const HALVED_BYTES: u64 = 8 << 20;

/// The memtables of all orders, sealed at one log position.
#[derive(Debug)]
pub struct MemtableSet {
    /// The first sequence number that belongs here.
    pub start: Seq,
    sealed_at: AtomicU64,
    sealed_since: OnceLock<Instant>,
    seal_requested: AtomicBool,
    bytewise: Group,
    custom: RwLock<BTreeMap<KeyspaceId, Arc<Memtable<CustomOrder>>>>,
    has_custom: AtomicBool,
    capacity_bytes: u64,
    pool: Arc<ChunkPool>,
}

impl MemtableSet {
    /// An empty set that begins at `start` and takes its memory from `pool`.
    pub fn new(start: Seq, sizes: MemtableSizes, pool: &Arc<ChunkPool>) -> Self {
        let (one, all) = (sizes.table_bytes as usize, sizes.set_bytes as usize);
        let bytewise = match one < all {
            true => Memtable::first_of_several(Bytewise, one, all, pool.clone()),
            false => Memtable::with_pool(Bytewise, all, pool.clone()),
        };
        let bytewise = Group::new(bytewise, sizes.table_bytes);
        Self::from_tables(start, sizes, pool, bytewise, BTreeMap::new())
    }

    /// Like [`Self::new`], with the given tables.
    pub fn from_tables(
        start: Seq,
        sizes: MemtableSizes,
        pool: &Arc<ChunkPool>,
        bytewise: Group,
        custom: BTreeMap<KeyspaceId, Arc<Memtable<CustomOrder>>>,
    ) -> Self {
        Self {
            start,
            sealed_at: AtomicU64::new(0),
            sealed_since: OnceLock::new(),
            seal_requested: AtomicBool::new(false),
            bytewise,
            has_custom: AtomicBool::new(!custom.is_empty()),
            custom: RwLock::new(custom),
            capacity_bytes: sizes.set_bytes,
            pool: pool.clone(),
        }
    }

    /// Bytes at which it is sealed.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// The position at which it was sealed; `None`: it still takes writes.
    pub fn sealed_at(&self) -> Option<Seq> {
        Some(self.sealed_at.load(Ordering::Acquire)).filter(|seq| *seq != 0)
    }

    /// Sets the position at which it was sealed.
    pub fn seal(&self, at: Seq) {
        let _ = self.sealed_since.set(Instant::now());
        self.sealed_at.store(at, Ordering::Release);
    }

    /// When it began to wait for its flush.
    pub fn sealed_since(&self) -> Option<Instant> {
        self.sealed_since.get().copied()
    }

    /// Whether the set has reached its size in memory, or the log from the set's start to `log_end`
    /// has reached its limit.
    pub fn is_full(&self, log_end: Seq) -> bool {
        self.bytes() >= self.capacity_bytes
            || log_end.saturating_sub(self.start) >= self.capacity_bytes * LOG_PER_MEMTABLE
    }

    /// Whether the set is full and its seal was not requested yet; requests the seal.
    pub fn take_seal_request(&self, log_end: Seq) -> bool {
        self.is_full(log_end) && !self.seal_requested.swap(true, Ordering::AcqRel)
    }

    /// Allows another seal request after a failed attempt.
    pub fn renew_seal_request(&self) {
        self.seal_requested.store(false, Ordering::Release);
    }

    /// Bytes that its memtables take.
    #[inline]
    pub fn bytes(&self) -> u64 {
        let bytes = self.bytewise.bytes();
        if self.has_custom.load(Ordering::Acquire) { bytes + self.custom_bytes() } else { bytes }
    }

    #[cold]
    #[inline(never)]
    fn custom_bytes(&self) -> u64 {
        self.custom.read().values().map(|table| table.bytes() as u64).sum()
    }

    /// The part of them that lists of range tombstones take.
    pub fn tombstone_bytes(&self) -> u64 {
        let bytewise = self.bytewise.newest_first().map(|table| table.tombstone_bytes());
        let custom = self.custom.read();
        bytewise.chain(custom.values().map(|table| table.tombstone_bytes())).sum()
    }

    /// Whether nothing was written to it.
    pub fn is_empty(&self) -> bool {
        self.bytewise.newest_first().all(|table| table.is_empty())
            && self.custom.read().values().all(|table| table.is_empty())
    }

    /// The memtables of the bytewise keyspaces.
    #[inline]
    pub fn bytewise(&self) -> &Group {
        &self.bytewise
    }

    /// The bytes of the set, and whether it is to be sealed, or writes are to go to its next memtable.
    #[inline]
    pub fn fill(&self) -> (u64, bool) {
        let bytes = self.bytes();
        (bytes, bytes >= self.capacity_bytes || self.bytewise.is_next_due(bytes))
    }

    /// Adds the next memtable of the group, if it is due (`calm`: nobody writes): writes go there from the position on that
    /// `between` hands to its argument, while nobody reserves. Returns whether a worker must be told, because pointers
    /// can be merged then, or a pause of the writes will be long enough for that.
    pub fn begin_next_table(&self, calm: bool, between: impl FnOnce(&mut dyn FnMut(Seq))) -> bool {
        let Some(table) = self.bytewise.take_next(calm) else {
            return self.bytewise.begins_to_wait();
        };
        let mut table = Some(table);
        between(&mut |start| {
            if let Some(table) = table.take() {
                self.bytewise.add(start, table);
            }
        });
        self.bytewise.is_merge_due()
    }

    /// Merges pointers in one of these sets, of which the first takes writes; in a pause of the writes, a memtable for
    /// later ones is added before that, as by [`Self::begin_next_table`]. Returns whether it did.
    pub fn merge_in(
        sets: &[Arc<Self>],
        visible: Seq,
        between: impl FnOnce(&mut dyn FnMut(Seq)),
    ) -> bool {
        let calm = sets[0].bytewise.is_calm(visible, Instant::now());
        if calm {
            sets[0].begin_next_table(true, between);
        }
        sets.iter().any(|set| set.merge_tables(visible, calm))
    }

    /// Merges pointers to the entries of complete memtables, if enough of them wait; `visible`: what is
    /// published, `calm`: nobody writes. Returns whether it did.
    pub fn merge_tables(&self, visible: Seq, calm: bool) -> bool {
        self.bytewise.merge(
            visible,
            self.sealed_at(),
            if calm { 1 } else { self.bytewise.merged_at() },
        )
    }

    /// The memtable of a keyspace with a custom comparator, made if it is missing.
    pub fn custom_or_new(
        &self,
        keyspace: KeyspaceId,
        order: &CustomOrder,
    ) -> Arc<Memtable<CustomOrder>> {
        if let Some(table) = self.custom.read().get(&keyspace) {
            return table.clone();
        }
        let mut tables = self.custom.write();
        self.has_custom.store(true, Ordering::Release);
        let (capacity, pool) = (self.capacity_bytes as usize, self.pool.clone());
        let make = || Arc::new(Memtable::with_pool(order.clone(), capacity, pool));
        tables.entry(keyspace).or_insert_with(make).clone()
    }

    /// The memtable of a keyspace with a custom comparator, if it was written.
    pub fn custom(&self, keyspace: KeyspaceId) -> Option<Arc<Memtable<CustomOrder>>> {
        if !self.has_custom.load(Ordering::Acquire) {
            return None;
        }
        self.custom.read().get(&keyspace).cloned()
    }

    /// Every keyspace that has entries or tombstones here, ascending.
    pub fn keyspaces(&self) -> Vec<KeyspaceId> {
        let mut ids: Vec<_> =
            self.bytewise.newest_first().flat_map(|table| table.keyspaces()).collect();
        ids.extend(self.custom.read().keys());
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Applies one operation of a bytewise keyspace.
#[inline]
pub fn apply_bytewise(table: &Memtable<Bytewise>, op: Op<'_>, seq: Seq) {
    match op {
        Op::Put { keyspace, key, value } => table.insert(keyspace, key, seq, Kind::Put, value),
        Op::Delete { keyspace, key } => table.insert(keyspace, key, seq, Kind::Delete, &[]),
        Op::Special { keyspace, kind, key, stored } => {
            table.insert(keyspace, key, seq, kind, stored);
        }
        Op::DeleteRange { keyspace, start, end } => {
            table.delete_range(keyspace, tombstone(start, end, seq));
        }
        Op::CreateKeyspace { .. }
        | Op::InBranch { .. }
        | Op::DropKeyspace { .. }
        | Op::SetTraits { .. } => {}
    }
}

/// From so many operations on, several entries of a batch are inserted at once.
const SEVERAL_MIN: u32 = 8;

/// Applies the operations of a batch, the first of which has the number `first`. Returns how many there
/// are; `None` if one of them cannot be decoded.
#[inline]
pub fn apply_batch(
    table: &Memtable<Bytewise>,
    payload: &[u8],
    operations: u32,
    first: Seq,
) -> Option<u64> {
    if operations >= SEVERAL_MIN {
        return apply_several(table, payload, first);
    }
    let mut next = first;
    for op in Ops::new(payload) {
        apply_bytewise(table, op.ok()?, next);
        next += 1;
    }
    Some(next - first)
}

#[inline(never)]
fn apply_several(table: &Memtable<Bytewise>, payload: &[u8], first: Seq) -> Option<u64> {
    let (mut next, mut several) = (first, Several::new(table));
    for op in Ops::new(payload) {
        match op.ok()? {
            Op::Put { keyspace, key, value } => several.add(keyspace, key, next, Kind::Put, value),
            Op::Delete { keyspace, key } => several.add(keyspace, key, next, Kind::Delete, &[]),
            Op::Special { keyspace, kind, key, stored } => {
                several.add(keyspace, key, next, kind, stored);
            }
            op => apply_bytewise(table, op, next),
        }
        next += 1;
    }
    several.finish();
    Some(next - first)
}

/// The tombstone of a range delete.
pub fn tombstone(start: Option<&[u8]>, end: Option<&[u8]>, seq: Seq) -> RangeTombstone {
    RangeTombstone { start: start.map(<[u8]>::to_vec), end: end.map(<[u8]>::to_vec), seq }
}

/// An entry of a keyspace with a custom comparator that has no sequence number yet (R15).
pub struct PendingEntry {
    /// Its memtable.
    pub table: Arc<Memtable<CustomOrder>>,
    /// The entry.
    pub pending: Pending,
    /// Its index among the operations of its batch.
    pub index: u64,
}

/// A memtable, borrowed from its set or shared.
pub enum TableRef<'a, O: KeyOrder> {
    /// Borrowed.
    Borrowed(&'a Arc<Memtable<O>>),
    /// Shared.
    Shared(Arc<Memtable<O>>),
}

impl<O: KeyOrder> Deref for TableRef<'_, O> {
    type Target = Arc<Memtable<O>>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Borrowed(table) => table,
            Self::Shared(table) => table,
        }
    }
}

/// A key order whose memtables can be found in a set.
pub trait DbOrder: KeyOrder {
    /// How many memtables of this order a keyspace can have in `set`.
    fn count(set: &MemtableSet) -> usize;

    /// Memtable `n` of `keyspace` in `set`, counted from the oldest, if there is one.
    fn table(set: &MemtableSet, keyspace: KeyspaceId, n: usize) -> Option<TableRef<'_, Self>>;

    /// Hands `take` a cursor for each memtable of the keyspace, as [`Group::cursors`] does.
    fn cursors(
        set: &MemtableSet,
        keyspace: KeyspaceId,
        take: impl FnMut(usize, MemorySource<Self>, Seq),
    );

    /// Whether a memtable of `keyspace` in `set` may have entries of a key with this hash, or range
    /// tombstones; `false` is certain.
    fn may_hold(set: &MemtableSet, keyspace: KeyspaceId, hash: u64) -> bool;

    /// Whether the memtables of this order in `set` may have range tombstones; `false` is certain.
    fn may_have_tombstones(_set: &MemtableSet) -> bool {
        true
    }

    /// A key in the middle of the keyspace's entries in `set`, where it is known and the set is so large
    /// that two threads flush it faster.
    fn middle(_set: &MemtableSet, _keyspace: KeyspaceId) -> Option<Vec<u8>> {
        None
    }

    /// The memtables of `keyspace` in `set`, the newest first. Each of them holds newer entries and
    /// range tombstones than the next.
    #[inline]
    fn tables(set: &MemtableSet, keyspace: KeyspaceId) -> impl Iterator<Item = TableRef<'_, Self>> {
        (0..Self::count(set)).rev().filter_map(move |n| Self::table(set, keyspace, n))
    }

    /// The range tombstones of the keyspace in each memtable of `set` that has some, the newest first.
    #[inline]
    fn tombstones(set: &MemtableSet, keyspace: KeyspaceId) -> impl Iterator<Item = TombstoneView> {
        let tables = Self::may_have_tombstones(set).then(|| Self::tables(set, keyspace));
        let views = tables.into_iter().flatten().map(move |table| table.tombstone_view(keyspace));
        views.filter(|tombstones| !tombstones.is_empty())
    }

    /// The range tombstones of the keyspace in `set`, as one fragmented list.
    fn fragments(order: &Self, set: &MemtableSet, keyspace: KeyspaceId) -> Fragments {
        let tombstones = Self::tables(set, keyspace).flat_map(|table| table.tombstones(keyspace));
        Fragments::build(order, tombstones.collect())
    }
}

impl DbOrder for Bytewise {
    #[inline]
    fn may_hold(set: &MemtableSet, keyspace: KeyspaceId, hash: u64) -> bool {
        set.bytewise.may_hold(keyspace, hash)
    }

    #[inline]
    fn may_have_tombstones(set: &MemtableSet) -> bool {
        set.bytewise.may_have_tombstones()
    }

    #[inline]
    fn count(set: &MemtableSet) -> usize {
        set.bytewise.count()
    }

    #[inline]
    fn table(set: &MemtableSet, _: KeyspaceId, n: usize) -> Option<TableRef<'_, Self>> {
        set.bytewise.table(n).map(TableRef::Borrowed)
    }

    fn middle(set: &MemtableSet, keyspace: KeyspaceId) -> Option<Vec<u8>> {
        (set.bytes() >= HALVED_BYTES).then(|| set.bytewise.middle(keyspace))?
    }

    fn cursors(
        set: &MemtableSet,
        keyspace: KeyspaceId,
        mut take: impl FnMut(usize, MemorySource<Self>, Seq),
    ) {
        let end = set.sealed_at().unwrap_or(SEQ_MAX);
        set.bytewise.cursors(keyspace, |newer, cursor, bound| take(newer, cursor, bound.min(end)));
    }
}

impl DbOrder for CustomOrder {
    fn may_hold(_: &MemtableSet, _: KeyspaceId, _: u64) -> bool {
        true
    }

    fn count(_: &MemtableSet) -> usize {
        1
    }

    fn table(set: &MemtableSet, keyspace: KeyspaceId, _: usize) -> Option<TableRef<'_, Self>> {
        set.custom(keyspace).map(TableRef::Shared)
    }

    fn cursors(
        set: &MemtableSet,
        keyspace: KeyspaceId,
        mut take: impl FnMut(usize, MemorySource<Self>, Seq),
    ) {
        if let Some(table) = set.custom(keyspace) {
            let end = set.sealed_at().unwrap_or(SEQ_MAX);
            take(0, MemorySource::Table(table.cursor(keyspace)), end);
        }
    }
}
