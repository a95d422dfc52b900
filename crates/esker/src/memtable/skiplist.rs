//! A concurrent skiplist (Pugh; the lock-free form follows LevelDB, RocksDB's InlineSkipList and
//! Pebble's arenaskl): inserts link a node with one compare-and-swap per level, from the bottom
//! up; nothing is ever removed, so readers need no protection but the arena's life.
//!
//! Branching is 2, so a node has two links on average. Branching 4 saves 5 bytes per entry, but a
//! search then walks over half as many nodes again, each a cache miss on the lower levels; with
//! 600,000 entries of 116 bytes inserts took a fifth longer (`examples/memtable_micro.rs`). A
//! search fetches the node that follows one level below while the node on the present level is
//! still on its way, so that a step down finds its node already there. Inserts remember, per group
//! of threads, where they last inserted (a *finger*): runs of ascending keys, at the right edge or
//! anywhere else, find their place there with two comparisons.
//!
//! Invariants:
//! 1. On every level nodes are in the order (keyspace, key, sequence number descending).
//! 2. A node linked on level `i` is linked on all levels below.
//! 3. A finger's place for level `i` holds nothing or a node higher than `i`, linked on level `i`.
//!    Whether it is useful is checked with comparisons at each use.
//! 4. Pending entries (sequence number `PENDING`) stand before all other versions of their key
//!    that were there when they were inserted. While they exist the order among versions of one
//!    key is promised only for those a reader may see; therefore tables with pending entries are
//!    searched by key, and the versions of the key are then walked through.

#![allow(unsafe_code, reason = "links of a level may only be touched on nodes of that height")]

use super::arena::Arena;
use super::node::{Entry, Header, NodeRef};
use super::prefetch::prefetch;
use crate::base::{KeyOrder, KeyspaceId, Kind, SEQ_MAX, Seq};
use std::cell::Cell;
use std::cmp::Ordering as Order;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Enough for 2^20 nodes, and good for many more: levels above would only shorten the walk on top.
pub(super) const HEIGHT_MAX: usize = 20;
/// Fingers per table; threads share them.
const FINGERS: usize = 4;
/// How far a search from a finger may walk before it starts from the top instead.
const FINGER_STEPS: usize = 8;
/// How many staged nodes are fetched together, ahead of the one that is being linked. Nodes lie on
/// different pages: fetched one by one, each would wait for its own translation of addresses.
const STAGED_AHEAD: usize = 8;

/// The sequence number of an entry that is not published yet; it is greater than that of every
/// reader.
pub(super) const PENDING: Seq = Seq::MAX;

/// The place of the last insert of some threads, and the number of their inserts. It has its own
/// cache lines, so that threads do not contend for them.
#[repr(align(128))]
#[derive(Default)]
struct Finger {
    before: [AtomicPtr<Header>; HEIGHT_MAX],
    inserted: AtomicU64,
}

/// The target of a search, which finds the first node that is not less than this.
#[derive(Clone, Copy)]
pub(super) struct Target<'k> {
    pub keyspace: KeyspaceId,
    pub head: u64,
    pub key: &'k [u8],
    /// Versions of the key with this sequence number or a greater one come before the target.
    pub below: Seq,
}

/// See the head of this module.
pub(super) struct Skiplist<O> {
    pub(super) order: O,
    /// A node of full height before all others.
    root: NonNull<Header>,
    /// The number of levels in use; may lag behind.
    height: AtomicUsize,
    /// Whether pending entries were ever inserted (invariant 4).
    has_pending: AtomicBool,
    fingers: [Finger; FINGERS],
    /// Owns all nodes. Last, so that it is dropped last.
    arena: Arc<Arena>,
}

// SAFETY: `root` points into `arena`, which the list owns; nodes hold plain data and atomics and
// are shared by the rules of the module `node`.
unsafe impl<O: Send> Send for Skiplist<O> {}
// SAFETY: as above.
unsafe impl<O: Sync> Sync for Skiplist<O> {}

/// The first and the last node of a chain on a level.
type Ends = (NonNull<Header>, NonNull<Header>);

/// Staged nodes that are linked with each other, but not yet part of the list.
pub(super) struct Chain {
    ends: [Option<Ends>; HEIGHT_MAX],
    count: u64,
}

// SAFETY: it is only addresses, and whoever follows them has the list.
unsafe impl Send for Chain {}

/// The nodes on both sides of a place, per level.
#[derive(Clone, Copy)]
pub(super) struct Splice<'a> {
    pub(super) before: [NodeRef<'a>; HEIGHT_MAX],
    pub(super) after: [Option<NodeRef<'a>>; HEIGHT_MAX],
}

impl<O: KeyOrder> Skiplist<O> {
    /// An empty list whose nodes lie in `arena`, which other lists may use too.
    pub(super) fn new(order: O, arena: Arc<Arena>) -> Self {
        let nothing =
            Entry { keyspace: 0, head: 0, key: &[], seq: 0, kind: Kind::Delete, value: &[] };
        let root = NodeRef::allocate(&arena, &[None; HEIGHT_MAX], &nothing).as_ptr();
        Self {
            order,
            root,
            height: AtomicUsize::new(1),
            has_pending: AtomicBool::new(false),
            fingers: Default::default(),
            arena,
        }
    }

    /// The bytes of the arena, with what other lists have there.
    pub(super) fn arena_bytes(&self) -> usize {
        self.arena.bytes()
    }

    pub(super) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    pub(super) fn inserted(&self) -> u64 {
        self.fingers.iter().map(|finger| finger.inserted.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn root(&self) -> NodeRef<'_> {
        // SAFETY: the root was allocated in `self.arena` before anybody could share the list.
        unsafe { NodeRef::from_raw(self.root) }
    }

    /// The first node of all.
    pub(super) fn first(&self) -> Option<NodeRef<'_>> {
        self.root().next()
    }

    /// Whether `node` is before the target.
    #[inline]
    pub(super) fn precedes(&self, node: NodeRef<'_>, target: &Target<'_>) -> bool {
        if node.keyspace() != target.keyspace {
            return node.keyspace() < target.keyspace;
        }
        if O::BYTEWISE && node.head() != target.head {
            return node.head() < target.head;
        }
        match self.compare_same_head(node.key(), target.key) {
            Order::Less => true,
            Order::Greater => false,
            // Seeded: a reader sees the first write after its snapshot.
            Order::Equal if bug!("memtable_snapshot_off_by_one") => node.seq() > target.below,
            Order::Equal => node.seq() >= target.below,
        }
    }

    /// Compares two keys whose heads are equal. Heads are padded with zeros, so equal heads of
    /// keys shorter than 8 bytes say nothing about their lengths.
    #[inline]
    fn compare_same_head(&self, a: &[u8], b: &[u8]) -> Order {
        if !O::BYTEWISE {
            return self.order.compare(a, b);
        }
        // Keys of 16 bytes are common, so they are compared without a call of `memcmp`.
        if let (Some(c), Some(d)) = (a.first_chunk::<16>(), b.first_chunk::<16>()) {
            let (c, d) = (u128::from_be_bytes(*c), u128::from_be_bytes(*d));
            return c.cmp(&d).then_with(|| a[16..].cmp(&b[16..]));
        }
        a.cmp(b)
    }

    /// Descends to `floor`, and returns the last node there for which `precedes` holds. It must
    /// hold for a prefix of the list. `visit` sees each level's nodes on both sides of the place.
    #[inline]
    fn descend<'a>(
        &'a self,
        floor: usize,
        precedes: impl Fn(NodeRef<'a>) -> bool,
        mut visit: impl FnMut(usize, NodeRef<'a>, Option<NodeRef<'a>>),
    ) -> NodeRef<'a> {
        let mut level = (self.height.load(Ordering::Relaxed) - 1).max(floor);
        let mut node = self.root();
        let mut bound = None;
        loop {
            // SAFETY: `node` is the root, which has all levels, or was reached on this level or
            // on one above, so it is higher than `level`, and than the level below.
            let next = unsafe { node.next_on(level) };
            if level > floor {
                // SAFETY: as above.
                unsafe { node.prefetch_on(level - 1) };
            }
            // The node that ended the level above need not be compared again.
            if let Some(next) = next.filter(|next| Some(*next) != bound && precedes(*next)) {
                node = next;
                continue;
            }
            visit(level, node, next);
            if level == floor {
                return node;
            }
            bound = next;
            level -= 1;
        }
    }

    /// The first node that is not less than the target.
    #[inline]
    pub(super) fn seek(&self, target: &Target<'_>) -> Option<NodeRef<'_>> {
        // Takes the node that the search itself saw behind the last node before the target. Loading
        // that link again could return a newer version, inserted in between, which the reader must
        // not see.
        let mut found = None;
        if !self.has_pending.load(Ordering::Relaxed) {
            self.descend(0, |node| self.precedes(node, target), |_, _, after| found = after);
            return found;
        }
        // Invariant 4: by key first, then through its versions.
        let by_key = Target { below: PENDING, ..*target };
        self.descend(0, |node| self.precedes_key(node, &by_key), |_, _, after| found = after);
        let mut next = found;
        while let Some(node) = next.filter(|node| self.precedes(*node, target)) {
            next = node.next();
        }
        next
    }

    /// Whether the key of `node` is less than the target's, whatever the sequence number.
    pub(super) fn precedes_key(&self, node: NodeRef<'_>, target: &Target<'_>) -> bool {
        if node.keyspace() != target.keyspace {
            return node.keyspace() < target.keyspace;
        }
        if O::BYTEWISE && node.head() != target.head {
            return node.head() < target.head;
        }
        self.compare_same_head(node.key(), target.key).is_lt()
    }

    /// Whether a node has exactly this key.
    #[inline]
    pub(super) fn has_key(&self, node: NodeRef<'_>, target: &Target<'_>) -> bool {
        node.keyspace() == target.keyspace
            && node.head() == target.head
            && self.compare_same_head(node.key(), target.key).is_eq()
    }

    /// The first node of the first keyspace that is not less than `keyspace`.
    pub(super) fn seek_keyspace(&self, keyspace: KeyspaceId) -> Option<NodeRef<'_>> {
        let mut found = None;
        self.descend(0, |node| node.keyspace() < keyspace, |_, _, after| found = after);
        found
    }

    /// The last node of the last keyspace that is not greater than `keyspace`.
    pub(super) fn seek_keyspace_end(&self, keyspace: KeyspaceId) -> Option<NodeRef<'_>> {
        let last = self.descend(0, |node| node.keyspace() <= keyspace, |_, _, _| {});
        (last != self.root()).then_some(last)
    }

    /// The last node whose key is less than the target's.
    pub(super) fn seek_before(&self, target: &Target<'_>) -> Option<NodeRef<'_>> {
        let last = self.descend(0, |node| self.precedes_key(node, target), |_, _, _| {});
        (last != self.root()).then_some(last)
    }

    /// Collects the nodes just before `node`, in ascending order: those between it and a node four
    /// levels up, 16 on average, so that a walk backwards pays for one search in 16 steps. Empty
    /// only if there is none before.
    pub(super) fn collect_before<'a>(&'a self, node: NodeRef<'a>, into: &mut Vec<NonNull<Header>>) {
        let target =
            Target { keyspace: node.keyspace(), head: node.head(), key: node.key(), below: 0 };
        let mut at = self.descend(4, |other| self.precedes_key(other, &target), |_, _, _| {});
        if at != self.root() {
            into.push(at.as_ptr());
        }
        // `at` is before `node`, and nodes are never removed, so the walk reaches `node`.
        while let Some(next) = at.next().filter(|next| *next != node) {
            into.push(next.as_ptr());
            at = next;
        }
    }

    /// Inserts an entry, before those that are equal to it. A copy of this in its caller would have
    /// too few registers: it takes 9 instructions more.
    #[inline(never)]
    pub(super) fn insert(&self, entry: &Entry<'_>) -> NodeRef<'_> {
        if entry.seq == PENDING {
            self.has_pending.store(true, Ordering::Relaxed);
        }
        let (keyspace, head, key) = (entry.keyspace, entry.head, entry.key);
        // Greater sequence numbers come first. For a pending entry none is greater: it precedes
        // every version of its key (invariant 4).
        let below = entry.seq.saturating_add(1);
        let target = Target { keyspace, head, key, below };
        match entry.seq == PENDING {
            true => self.insert_behind(entry, |node| self.precedes_key(node, &target)),
            false => self.insert_behind(entry, |node| self.precedes(node, &target)),
        }
    }

    /// Inserts an entry behind all nodes that precede it. Each of the two kinds of entries has a
    /// copy of this, with its own comparison inlined.
    fn insert_behind<'a>(
        &'a self,
        entry: &Entry<'_>,
        precedes: impl Fn(NodeRef<'a>) -> bool + Copy,
    ) -> NodeRef<'a> {
        let (slot, height) = thread_draw();
        let finger = &self.fingers[slot];
        let mut splice = Splice { before: [self.root(); HEIGHT_MAX], after: [None; HEIGHT_MAX] };
        self.raise(height);
        let from_finger = self.search_finger(finger, height, precedes, &mut splice);
        if !from_finger {
            self.descend(0, precedes, |level, before, after| {
                splice.before[level] = before;
                splice.after[level] = after;
            });
        }
        let node = self.link(entry, height, &splice, &precedes);
        // Release: a thread that takes a node from the finger sees its contents.
        for level in 0..height {
            finger.before[level].store(node.as_ptr().as_ptr(), Ordering::Release);
        }
        if !from_finger {
            let top = self.height.load(Ordering::Relaxed);
            for level in height..top {
                finger.before[level]
                    .store(splice.before[level].as_ptr().as_ptr(), Ordering::Release);
            }
        }
        finger.inserted.fetch_add(1, Ordering::Relaxed);
        node
    }

    /// Makes a node and links it at a place that was found for it. Nodes may have come in between since.
    #[inline(always)]
    pub(super) fn link<'a>(
        &'a self,
        entry: &Entry<'_>,
        height: usize,
        splice: &Splice<'a>,
        precedes: &impl Fn(NodeRef<'a>) -> bool,
    ) -> NodeRef<'a> {
        let node = NodeRef::allocate(&self.arena, &splice.after[..height], entry);
        for level in 0..height {
            let (mut before, mut after) = (splice.before[level], splice.after[level]);
            // SAFETY: `node` has `height > level` links; `before` and `after` were found on this
            // level (or `before` is the root).
            unsafe {
                while !before.replace_next(level, after, node) {
                    // Another thread linked a node here: continue from `before`, which still
                    // precedes.
                    (before, after) = Self::walk(before, level, precedes);
                    node.set_next(level, after);
                }
            }
        }
        node
    }

    /// Counts nodes that were linked by [`Self::link`].
    pub(super) fn count(&self, slot: usize, nodes: u64) {
        self.fingers[slot].inserted.fetch_add(nodes, Ordering::Relaxed);
    }

    /// The number of levels that searches use.
    pub(super) fn height(&self) -> usize {
        self.height.load(Ordering::Relaxed)
    }

    /// Copies an entry into the arena without linking it; [`Self::link_staged`] links all of them.
    /// No other thread has the list, so none misses the entry.
    pub(super) fn stage(&mut self, entry: &Entry<'_>) -> NonNull<Header> {
        let (_, height) = thread_draw();
        self.raise(height);
        NodeRef::allocate(&self.arena, &[None; HEIGHT_MAX][..height], entry).as_ptr()
    }

    /// A node that [`Self::stage`] of this list returned.
    pub(super) fn staged(&self, node: NonNull<Header>) -> NodeRef<'_> {
        // SAFETY: only the module `build` calls this, with nodes of the list that it owns; they
        // live as long as the arena, and the list was never shared meanwhile.
        unsafe { NodeRef::from_raw(node) }
    }

    /// Links staged nodes, given in order, with each other. They are still in no list.
    pub(super) fn chain(&self, nodes: impl Iterator<Item = NonNull<Header>> + Clone) -> Chain {
        let mut chain = Chain { ends: [None; HEIGHT_MAX], count: 0 };
        let mut ahead = nodes.clone().skip(STAGED_AHEAD);
        for node in nodes {
            if chain.count.is_multiple_of(STAGED_AHEAD as u64) {
                ahead.by_ref().take(STAGED_AHEAD).for_each(|later| prefetch(later.as_ptr()));
            }
            let height = self.staged(node).height();
            for (level, ends) in chain.ends.iter_mut().enumerate().take(height) {
                self.append(level, ends, (node, node));
            }
            chain.count += 1;
        }
        chain
    }

    /// Puts a chain behind another one on a level; both are given by their ends.
    fn append(&self, level: usize, ends: &mut Option<Ends>, (first, last): Ends) {
        *ends = match *ends {
            None => Some((first, last)),
            Some((begin, end)) => {
                // SAFETY: `end` was put there because it is higher than `level`, and so is `first`.
                unsafe { self.staged(end).set_next(level, Some(self.staged(first))) };
                Some((begin, last))
            }
        };
    }

    /// Makes chains of all staged nodes the list, given in order.
    pub(super) fn link_staged(&mut self, chains: impl IntoIterator<Item = Chain>) {
        debug_assert!(self.first().is_none(), "staged nodes are the first of a list");
        let mut all = [Some((self.root, self.root)); HEIGHT_MAX];
        for chain in chains {
            for (level, (ends, more)) in all.iter_mut().zip(chain.ends).enumerate() {
                if let Some(more) = more {
                    self.append(level, ends, more);
                }
            }
            self.fingers[0].inserted.fetch_add(chain.count, Ordering::Relaxed);
        }
    }

    /// Gives a pending entry of this list its number.
    pub(super) fn publish(&self, node: NonNull<Header>, seq: Seq) {
        // SAFETY: the caller checked that the node is one of this list, which owns the arena; the
        // pointer is that of an insert that came before.
        unsafe { NodeRef::from_raw(node) }.publish(seq);
    }

    /// Makes `height` levels known to searches. A search that does not see a new level yet only
    /// takes more steps on the level below.
    pub(super) fn raise(&self, height: usize) {
        if height > self.height.load(Ordering::Relaxed) {
            self.height.fetch_max(height, Ordering::Relaxed);
        }
    }

    /// Goes right on one level from a node that precedes the target.
    ///
    /// # Safety
    /// `node` must be higher than `level`.
    #[inline]
    pub(super) unsafe fn walk<'a>(
        mut node: NodeRef<'a>,
        level: usize,
        precedes: &impl Fn(NodeRef<'a>) -> bool,
    ) -> (NodeRef<'a>, Option<NodeRef<'a>>) {
        loop {
            // SAFETY: the caller's promise for the first node; the others were reached on the
            // level.
            let next = unsafe { node.next_on(level) };
            match next.filter(|next| precedes(*next)) {
                Some(next) => node = next,
                None => return (node, next),
            }
        }
    }

    /// Tries to find the place of a new node near the last one, on the levels below `height`.
    fn search_finger<'a>(
        &'a self,
        finger: &Finger,
        height: usize,
        precedes: impl Fn(NodeRef<'a>) -> bool,
        splice: &mut Splice<'a>,
    ) -> bool {
        for level in 0..height {
            let Some(header) = NonNull::new(finger.before[level].load(Ordering::Acquire)) else {
                return false;
            };
            // SAFETY: the finger holds nodes of this list; loaded with `Acquire`.
            let mut before = unsafe { NodeRef::from_raw(header) };
            if before != self.root() && !precedes(before) {
                return false;
            }
            // On the bottom level the place must be directly behind the finger; above, nodes of
            // other threads may be in between.
            let mut steps = if level == 0 { 0 } else { FINGER_STEPS };
            loop {
                // SAFETY: invariant 3 for the first node; the others were reached on the level.
                let after = unsafe { before.next_on(level) };
                match after.filter(|after| precedes(*after)) {
                    None => {
                        splice.before[level] = before;
                        splice.after[level] = after;
                        break;
                    }
                    Some(_) if steps == 0 => return false,
                    Some(after) => {
                        before = after;
                        steps -= 1;
                    }
                }
            }
        }
        true
    }
}

/// Whether the entry is published: a reader sees only sequence numbers below [`SEQ_MAX`].
pub(super) fn is_published(seq: Seq) -> bool {
    seq < SEQ_MAX
}

/// The finger of this thread and a random height for its next node: at least 1, and one more with
/// a chance of 1 in 2 each. The generator (xorshift, Marsaglia) belongs to the thread.
#[inline]
pub(super) fn thread_draw() -> (usize, usize) {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static STATE: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
    }
    STATE.with(|cell| {
        let (mut state, mut slot) = cell.get();
        if state == 0 {
            let number = THREADS.fetch_add(1, Ordering::Relaxed);
            state = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            slot = number as usize % FINGERS;
        }
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        cell.set((state, slot));
        // The upper bits of the product are better than those of the state.
        let bits = state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        let height = 1 + bits.trailing_zeros() as usize;
        (slot, height.min(HEIGHT_MAX))
    })
}
