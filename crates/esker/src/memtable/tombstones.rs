//! The range tombstones of a memtable, per keyspace (R18).
//!
//! A range delete only puts its tombstone in front of a persistent list, the *tail*: it compares
//! nothing, since for custom orders that would run user code in the wrong place (R15). The first
//! read that meets a tail longer than `TAIL_MAX` moves it into fragments. Fragments stand in
//! *levels*, each at least twice as large as the next (the logarithmic method of Bentley and Saxe),
//! so that a tombstone is fragmented O(log n) times in its life however reads and range deletes
//! alternate, and a read asks O(log n) levels.
//!
//! Invariants:
//! 1. Slots of keyspaces are only added, and live as long as the table.
//! 2. `state` of a slot is replaced only under its `change` lock; readers load it inside an epoch.
//! 3. Every tombstone of a slot stands in exactly one of its levels or in its tail.

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
    state: Atomic<State>,
    next: OnceLock<Box<Slot>>,
}

/// The tombstones of one keyspace at one moment.
#[derive(Clone, Default)]
struct State {
    levels: Vec<Arc<Fragments>>,
    tail: Option<Arc<Tail>>,
    tail_len: usize,
}

/// A persistent list, newest first.
struct Tail {
    tombstone: RangeTombstone,
    older: Option<Arc<Tail>>,
}

impl Drop for Tail {
    /// Takes the list apart in a loop; the derived way would recurse once for each element.
    fn drop(&mut self) {
        let mut older = self.older.take();
        while let Some(mut tail) = older.and_then(Arc::into_inner) {
            older = tail.older.take();
        }
    }
}

impl State {
    fn tail(&self) -> impl Iterator<Item = &RangeTombstone> {
        let mut next = self.tail.as_deref();
        std::iter::from_fn(move || {
            let tail = next?;
            next = tail.older.as_deref();
            Some(&tail.tombstone)
        })
    }

    fn covering_seq<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Seq {
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

    /// The same tombstones without a tail. Levels that are not twice as large as what comes after
    /// them are taken in; all of them if `into_one`.
    fn tidied<O: KeyOrder>(&self, order: &O, into_one: bool) -> Self {
        let mut levels = self.levels.clone();
        let mut last: Vec<RangeTombstone> = self.tail().cloned().collect();
        while let Some(level) = levels.pop_if(|level| into_one || level.len() < 2 * last.len()) {
            last.extend(level.tombstones());
        }
        levels.push(Arc::new(Fragments::build(order, last)));
        Self { levels, tail: None, tail_len: 0 }
    }
}

impl Slot {
    fn new(keyspace: KeyspaceId) -> Box<Self> {
        let state = Atomic::new(State::default());
        Box::new(Self { keyspace, change: Mutex::new(()), state, next: OnceLock::new() })
    }

    fn load<'g>(&'g self, guard: &'g Guard) -> &'g State {
        // SAFETY: the pointer is never null, and what it points to is destroyed only after the
        // guard's grace period (`change`), or by the drop of the slot, which cannot happen
        // while the result lives.
        unsafe { self.state.load(Ordering::Acquire, guard).deref() }
    }

    /// Replaces the state, unless `change` returns nothing.
    fn change(&self, guard: &Guard, change: impl FnOnce(&State) -> Option<State>) {
        let _one_at_a_time = self.change.lock();
        let Some(next) = change(self.load(guard)) else { return };
        let old = self.state.swap(Owned::new(next), Ordering::AcqRel, guard);
        // SAFETY: the old state is no longer reachable for readers that come now, and it was
        // swapped out only once, under the lock.
        unsafe { guard.defer_destroy(old) };
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: the slot is owned here, so nobody reads its state any more.
        unsafe {
            let guard = unprotected();
            drop(self.state.load(Ordering::Relaxed, guard).into_owned());
        }
        // As for `Tail`: chains may be long.
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
        // Each key stands in a list and, later, among the bounds of fragments.
        let size = 128 + 2 * keys.map(Vec::len).sum::<usize>();
        self.slot_or_new(keyspace).change(&pin(), |state| {
            let older = state.tail.clone();
            let tail = Some(Arc::new(Tail { tombstone, older }));
            Some(State { levels: state.levels.clone(), tail, tail_len: state.tail_len + 1 })
        });
        self.bytes.fetch_add(size, Ordering::Relaxed);
        // Release, after the state: who sees the count sees the tombstone.
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
        let guard = pin();
        let state = slot.load(&guard);
        if state.tail_len <= TAIL_MAX {
            return state.covering_seq(order, key, below);
        }
        // Others that come meanwhile wait here and then find the work done.
        slot.change(&guard, |state| {
            (state.tail_len > TAIL_MAX).then(|| state.tidied(order, false))
        });
        slot.load(&guard).covering_seq(order, key, below)
    }

    pub(super) fn all(&self, keyspace: KeyspaceId) -> Vec<RangeTombstone> {
        let Some(slot) = self.slot(keyspace) else { return Vec::new() };
        let guard = pin();
        let state = slot.load(&guard);
        let mut all: Vec<RangeTombstone> = state.tail().cloned().collect();
        all.extend(state.levels.iter().flat_map(|level| level.tombstones()));
        all.sort_by_key(|tombstone| std::cmp::Reverse(tombstone.seq));
        all
    }

    pub(super) fn fragments<O: KeyOrder>(&self, order: &O, keyspace: KeyspaceId) -> Arc<Fragments> {
        let Some(slot) = self.slot(keyspace) else { return Arc::default() };
        let guard = pin();
        let mut fragments = Arc::default();
        slot.change(&guard, |state| match &state.levels[..] {
            [only] if state.tail.is_none() => {
                fragments = Arc::clone(only);
                None
            }
            _ => {
                let tidied = state.tidied(order, true);
                fragments = Arc::clone(&tidied.levels[0]);
                Some(tidied)
            }
        });
        fragments
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
