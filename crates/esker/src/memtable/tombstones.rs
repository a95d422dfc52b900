//! The range tombstones of a memtable, per keyspace (R18).
//!
//! A range delete only adds its tombstone to the front of a persistent list. It compares no keys,
//! because it must not run the user code of a custom comparator here (R15). The newest part of the
//! list, the *tail*, is not fragmented. The first read that meets a tail longer than `TAIL_MAX`
//! moves it into fragments. Fragments are kept in *levels*, each at least twice as large as the
//! next (the logarithmic method of Bentley and Saxe), so a tombstone is fragmented O(log n) times
//! in its life, however reads and range deletes alternate, and a read searches O(log n) levels. A
//! scan uses levels and tail without copying them.
//!
//! Invariants:
//! 1. Slots of keyspaces are only added, and live as long as the table.
//! 2. `view` of a slot is replaced only under its `change` lock; readers load it inside an epoch.
//!    Writers take that lock between reservation and publication, so a holder compares no keys and
//!    holds it for a few steps (R2, R15).
//! 3. Every tombstone of a slot is in its list and, unless it is among the first `tail_len`, in
//!    exactly one of the levels.
//! 4. Levels are replaced only under the slot's `tidying` lock, which no writer takes. No thread
//!    waits for it: a reader that finds it taken reads with the long tail.

#![allow(unsafe_code, reason = "states are published through crossbeam-epoch pointers")]

use crate::base::rangedel::{Fragments, RangeTombstone};
use crate::base::{KeyOrder, KeyspaceId, Seq};
use crossbeam_epoch::{Atomic, Guard, Owned, pin, unprotected};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The longest tail that reads walk through.
const TAIL_MAX: usize = 32;
const BUCKETS: usize = 256;

/// The lists of all keyspaces, in a hash table of fixed size with chains that only grow.
#[derive(Default)]
pub(super) struct TombstoneLists {
    /// The number of tombstones, and the memory they take.
    count: AtomicUsize,
    bytes: AtomicUsize,
    buckets: OnceLock<Box<[OnceLock<Box<Slot>>; BUCKETS]>>,
}

struct Slot {
    keyspace: KeyspaceId,
    change: Mutex<()>,
    tidying: Mutex<()>,
    view: Atomic<TombstoneView>,
    next: OnceLock<Box<Slot>>,
}

/// The range tombstones of one keyspace of a memtable, at one moment.
#[derive(Clone, Default)]
pub struct TombstoneView {
    levels: Vec<Arc<Fragments>>,
    list: Option<Arc<Node>>,
    tail_len: usize,
}

/// An element of a persistent list, newest first.
struct Node {
    tombstone: RangeTombstone,
    older: Option<Arc<Node>>,
}

impl Drop for Node {
    /// Drops the list in a loop; the derived drop would recurse once per element.
    fn drop(&mut self) {
        let mut older = self.older.take();
        while let Some(mut node) = older.and_then(Arc::into_inner) {
            older = node.older.take();
        }
    }
}

impl TombstoneView {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_none()
    }

    /// The newest sequence number less than `below` of a tombstone that covers `key`; 0 if there
    /// is none.
    pub fn covering_seq<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Seq {
        let levels = self.levels.iter().map(|level| level.covering_seq(order, key, below));
        let newest = levels.max().unwrap_or(0);
        let better =
            |t: &&RangeTombstone| t.seq < below && t.seq > newest && t.contains(order, key);
        // Seeded: of several range deletes an older one decides.
        bug!(
            "memtable_older_tombstone_counts",
            return self.tail().filter(better).map(|t| t.seq).min().unwrap_or(newest)
        );
        self.tail().filter(better).map(|tombstone| tombstone.seq).max().unwrap_or(newest)
    }

    /// The tombstones with this sequence number or a greater one, in no order.
    pub fn since(&self, seq: Seq) -> impl Iterator<Item = RangeTombstone> + '_ {
        let recent = move |tombstone: &RangeTombstone| tombstone.seq >= seq;
        let levels =
            self.levels.iter().flat_map(move |level| level.tombstones().take_while(recent));
        levels.chain(self.tail().filter(move |tombstone| recent(tombstone)).cloned())
    }

    /// The tombstones that are in fragments.
    pub fn levels(&self) -> &[Arc<Fragments>] {
        &self.levels
    }

    /// The tombstones that are not fragmented yet: a few, unless many were just added.
    pub fn tail(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.all().take(self.tail_len)
    }

    fn all(&self) -> impl Iterator<Item = &RangeTombstone> {
        let mut next = self.list.as_deref();
        std::iter::from_fn(move || {
            let node = next?;
            next = node.older.as_deref();
            Some(&node.tombstone)
        })
    }

    /// Levels that include the tail: a level that is not twice as large as all that follow is
    /// combined with them.
    fn tidied<O: KeyOrder>(&self, order: &O) -> Vec<Arc<Fragments>> {
        let mut levels = self.levels.clone();
        let mut last: Vec<RangeTombstone> = self.tail().cloned().collect();
        while let Some(level) = levels.pop_if(|level| level.len() < 2 * last.len()) {
            last.extend(level.tombstones());
        }
        levels.push(Arc::new(Fragments::build(order, last)));
        levels
    }
}

impl std::fmt::Debug for TombstoneView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TombstoneView")
            .field("levels", &self.levels.len())
            .field("tail", &self.tail_len)
            .finish_non_exhaustive()
    }
}

impl Slot {
    fn new(keyspace: KeyspaceId) -> Box<Self> {
        let view = Atomic::new(TombstoneView::default());
        let (change, tidying) = Default::default();
        Box::new(Self { keyspace, change, tidying, view, next: OnceLock::new() })
    }

    fn load<'g>(&'g self, guard: &'g Guard) -> &'g TombstoneView {
        // SAFETY: the pointer is never null, and what it points to is destroyed only after the
        // guard's grace period (`change`), or by the drop of the slot, which cannot happen
        // while the result lives.
        unsafe { self.view.load(Ordering::Acquire, guard).deref() }
    }

    /// Replaces the view. `change` compares nothing and is short (invariant 2).
    fn change(&self, guard: &Guard, change: impl FnOnce(&TombstoneView) -> TombstoneView) {
        let _one_at_a_time = self.change.lock();
        let next = change(self.load(guard));
        let old = self.view.swap(Owned::new(next), Ordering::AcqRel, guard);
        // SAFETY: the old view is no longer reachable for readers that come now, and it was
        // swapped out only once, under the lock.
        unsafe { guard.defer_destroy(old) };
    }

    /// The view, with a short tail unless another thread is about to shorten it.
    fn load_tidy<'g, O: KeyOrder>(&'g self, order: &O, guard: &'g Guard) -> &'g TombstoneView {
        let view = self.load(guard);
        if view.tail_len <= TAIL_MAX {
            return view;
        }
        let Some(_tidying) = self.tidying.try_lock() else { return view };
        let before = self.load(guard);
        if before.tail_len > TAIL_MAX {
            let levels = before.tidied(order);
            // Meanwhile the list may have grown, at its front, and nothing else has changed.
            self.change(guard, |now| TombstoneView {
                levels,
                list: now.list.clone(),
                tail_len: now.tail_len - before.tail_len,
            });
        }
        self.load(guard)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: the slot is owned here, so nobody reads its view any more.
        unsafe {
            let guard = unprotected();
            drop(self.view.load(Ordering::Relaxed, guard).into_owned());
        }
        // As for `Node`: chains may be long.
        let mut next = self.next.take();
        while let Some(mut slot) = next {
            next = slot.next.take();
        }
    }
}

impl TombstoneLists {
    /// Whether there are none at all. Acquire pairs with `add`.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn bucket(&self, keyspace: KeyspaceId) -> Option<&OnceLock<Box<Slot>>> {
        Some(&self.buckets.get()?[keyspace as usize % BUCKETS])
    }

    fn slot(&self, keyspace: KeyspaceId) -> Option<&Slot> {
        let mut slot = self.bucket(keyspace)?.get()?;
        while slot.keyspace != keyspace {
            slot = slot.next.get()?;
        }
        Some(slot)
    }

    fn slot_or_new(&self, keyspace: KeyspaceId) -> &Slot {
        let buckets = self.buckets.get_or_init(|| Box::new([const { OnceLock::new() }; BUCKETS]));
        let mut place = &buckets[keyspace as usize % BUCKETS];
        loop {
            let slot = place.get_or_init(|| Slot::new(keyspace));
            if slot.keyspace == keyspace {
                return slot;
            }
            place = &slot.next;
        }
    }

    pub(super) fn add(&self, keyspace: KeyspaceId, tombstone: RangeTombstone) {
        let keys = [&tombstone.start, &tombstone.end].into_iter().flatten();
        // Each key is in a list and, later, among the bounds of fragments.
        let size = 128 + 2 * keys.map(Vec::len).sum::<usize>();
        self.slot_or_new(keyspace).change(&pin(), |now| {
            let list = Some(Arc::new(Node { tombstone, older: now.list.clone() }));
            TombstoneView { levels: now.levels.clone(), list, tail_len: now.tail_len + 1 }
        });
        self.bytes.fetch_add(size, Ordering::Relaxed);
        // Release, after the state: a thread that sees the count sees the tombstone.
        self.count.fetch_add(1, Ordering::Release);
    }

    pub(super) fn covering_seq<O: KeyOrder>(
        &self,
        order: &O,
        keyspace: KeyspaceId,
        key: &[u8],
        below: Seq,
    ) -> Seq {
        let Some(slot) = self.slot(keyspace) else { return 0 };
        slot.load_tidy(order, &pin()).covering_seq(order, key, below)
    }

    pub(super) fn all(&self, keyspace: KeyspaceId) -> Vec<RangeTombstone> {
        let Some(slot) = self.slot(keyspace) else { return Vec::new() };
        let mut all: Vec<RangeTombstone> = slot.load(&pin()).all().cloned().collect();
        all.sort_by_key(|tombstone| std::cmp::Reverse(tombstone.seq));
        all
    }

    pub(super) fn view<O: KeyOrder>(&self, order: &O, keyspace: KeyspaceId) -> TombstoneView {
        let Some(slot) = self.slot(keyspace) else { return TombstoneView::default() };
        slot.load_tidy(order, &pin()).clone()
    }

    /// Whether a thread holds the lock that writers take.
    #[cfg(test)]
    pub(super) fn stops_writers(&self, keyspace: KeyspaceId) -> bool {
        self.slot(keyspace).is_some_and(|slot| slot.change.is_locked())
    }

    /// The keyspaces with tombstones, in no order.
    pub(super) fn keyspaces(&self) -> Vec<KeyspaceId> {
        let mut keyspaces = Vec::new();
        for bucket in self.buckets.get().into_iter().flat_map(|buckets| buckets.iter()) {
            let mut slot = bucket.get();
            while let Some(found) = slot {
                keyspaces.push(found.keyspace);
                slot = found.next.get();
            }
        }
        keyspaces
    }
}
