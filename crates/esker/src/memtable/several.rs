//! Inserts the entries of a batch, several at a time.
//!
//! A search in the skiplist waits at nearly every step of the lower levels for a node that is in no
//! cache, and knows only then where it goes on. Searches of several entries do not depend on each other,
//! so they take turns: each asks for its next node, and while that is on its way the others compare
//! theirs. Where the keys ascend, as in a batch that was sorted, they begin at the lowest level on
//! which all of them lie between two neighbours of the entry before, instead of at the top; if that is
//! the lowest of all, each is linked beside the one before.
//!
//! A place may be out of date when its node is linked, since the entries before it in the same turn
//! were linked meanwhile. That is what inserts of other threads do to it, and is handled in the same
//! way: see `Skiplist::link`.

#![allow(unsafe_code, reason = "links of a level may only be touched on nodes of that height")]

use super::bloom::Place;
use super::node::{Entry, NodeRef};
use super::skiplist::{self, HEIGHT_MAX, Skiplist, Splice, Target, thread_draw};
use super::table::Memtable;
use crate::base::{Bytewise, KeyOrder, KeyspaceId, Kind, Seq};

/// So many searches take turns.
const TURNS: usize = 16;

/// Inserts entries into a memtable, some of them at once. None of them may be read before
/// [`Several::finish`].
pub struct Several<'a, 'k> {
    table: &'a Memtable<Bytewise>,
    waiting: [Waiting<'k>; TURNS],
    count: usize,
    /// Which of the list's counters the thread uses.
    slot: usize,
    searches: [Search<'a>; TURNS],
    /// For each level the last entry that was inserted, or a node before it, or the root.
    path: [NodeRef<'a>; HEIGHT_MAX],
    /// The last entry's key.
    last: Option<(KeyspaceId, &'k [u8])>,
}

/// An entry that waits for its turn.
#[derive(Clone, Copy)]
struct Waiting<'k> {
    entry: Entry<'k>,
    height: usize,
    places: [Option<Place>; 2],
}

/// A search that stopped at a node which it has to compare.
#[derive(Clone, Copy)]
struct Search<'a> {
    level: usize,
    /// The last node known to precede the target.
    at: NodeRef<'a>,
    next: Option<NodeRef<'a>>,
    /// The node that ended the level above, which need not be compared again.
    bound: Option<NodeRef<'a>>,
    splice: Splice<'a>,
}

/// How a number of entries finds its places.
enum Begin {
    /// All lie between the entry before and its neighbour.
    Beside,
    /// By searches from this level on, behind the node of the path there.
    At(usize),
}

impl<'a> Search<'a> {
    /// Begins on a level behind a node that is higher, and precedes the target. Returns whether the
    /// place is found already.
    fn begin(&mut self, at: NodeRef<'a>, level: usize) -> bool {
        (self.at, self.level, self.bound) = (at, level, None);
        self.go_on()
    }

    /// Compares the node that it stopped at. Returns whether the place is found.
    #[inline]
    fn step(&mut self, list: &'a Skiplist<Bytewise>, target: &Target<'_>) -> bool {
        match self.next.filter(|next| list.precedes(*next, target)) {
            Some(next) => self.at = next,
            None => {
                if self.descend() {
                    return true;
                }
            }
        }
        self.go_on()
    }

    /// Goes on to the next node that has to be compared, and asks for it.
    #[inline]
    fn go_on(&mut self) -> bool {
        loop {
            // SAFETY: `at` is the root, which has all levels, or was reached on this level or on one
            // above.
            self.next = unsafe { self.at.next_on(self.level) };
            if let Some(next) = self.next.filter(|next| Some(*next) != self.bound) {
                next.prefetch_all(self.level);
                return false;
            }
            if self.descend() {
                return true;
            }
        }
    }

    /// Notes the place on this level. Returns whether it is the lowest.
    #[inline]
    fn descend(&mut self) -> bool {
        (self.splice.before[self.level], self.splice.after[self.level]) = (self.at, self.next);
        if self.level == 0 {
            return true;
        }
        self.bound = self.next;
        self.level -= 1;
        false
    }
}

impl<'a, 'k> Several<'a, 'k> {
    /// Inserts into this table.
    pub fn new(table: &'a Memtable<Bytewise>) -> Self {
        let root = table.list.root();
        let splice = Splice { before: [root; HEIGHT_MAX], after: [None; HEIGHT_MAX] };
        let entry = Entry { keyspace: 0, head: 0, key: &[], seq: 0, kind: Kind::Put, value: &[] };
        Self {
            table,
            waiting: [Waiting { entry, height: 0, places: [None; 2] }; TURNS],
            count: 0,
            slot: 0,
            searches: [Search { level: 0, at: root, next: None, bound: None, splice }; TURNS],
            path: [root; HEIGHT_MAX],
            last: None,
        }
    }

    /// Inserts a version of a key, soon. See [`Memtable::insert`].
    #[inline]
    pub fn add(
        &mut self,
        keyspace: KeyspaceId,
        key: &'k [u8],
        seq: Seq,
        kind: Kind,
        value: &'k [u8],
    ) {
        debug_assert!(skiplist::is_published(seq), "sequence numbers fit 56 bits");
        let head = self.table.order().head(key);
        let entry = Entry { keyspace, head, key, seq, kind, value };
        let places = self.table.prefetch_filters(keyspace, key);
        let (slot, height) = thread_draw();
        self.slot = slot;
        self.waiting[self.count] = Waiting { entry, height, places };
        self.count += 1;
        if self.count == TURNS {
            self.insert();
        }
    }

    /// Inserts what waits.
    pub fn finish(mut self) {
        self.insert();
    }

    fn insert(&mut self) {
        let list = &self.table.list;
        let Some(last) = self.count.checked_sub(1) else { return };
        let targets = self.waiting.each_ref().map(|Waiting { entry, .. }| target(entry));
        match self.begin_at(&targets[..=last]) {
            Begin::Beside => self.insert_beside(&targets),
            Begin::At(top) => self.insert_in_turns(&targets, top),
        }
        list.count(self.slot, self.count as u64);
        let Entry { keyspace, key, .. } = self.waiting[last].entry;
        self.last = Some((keyspace, key));
        self.count = 0;
    }

    /// Inserts what waits: each beside the one before, which is a walk over a node or two.
    fn insert_beside(&mut self, targets: &[Target<'k>; TURNS]) {
        let list = &self.table.list;
        let mut splice = self.searches[0].splice;
        for (Waiting { entry, height, places }, target) in
            self.waiting.iter().zip(targets).take(self.count)
        {
            let precedes = |node| list.precedes(node, target);
            for (level, before) in self.path.iter().enumerate().take(*height) {
                // SAFETY: a node of the path was reached on its level, or is the root; it precedes the target.
                let place = unsafe { Skiplist::<Bytewise>::walk(*before, level, &precedes) };
                (splice.before[level], splice.after[level]) = place;
            }
            let node = list.link(entry, *height, &splice, &precedes);
            self.path[..*height].fill(node);
            self.table.add_to_filters(entry.seq, *places);
        }
    }

    /// Inserts what waits, by searches from this level on that take turns.
    fn insert_in_turns(&mut self, targets: &[Target<'k>; TURNS], top: usize) {
        let list = &self.table.list;
        let mut live = 0_u32;
        for (index, search) in self.searches.iter_mut().enumerate().take(self.count) {
            live |= u32::from(!search.begin(self.path[top], top)) << index;
        }
        while live != 0 {
            let mut turn = live;
            while turn != 0 {
                let index = turn.trailing_zeros() as usize;
                turn &= turn - 1;
                let found = self.searches[index].step(list, &targets[index]);
                live &= !(u32::from(found) << index);
            }
        }
        let mut last = (list.root(), 0);
        let found = self.waiting.iter().zip(targets).zip(&self.searches).take(self.count);
        for ((Waiting { entry, height, places }, target), search) in found {
            let node =
                list.link(entry, *height, &search.splice, &|node| list.precedes(node, target));
            self.table.add_to_filters(entry.seq, *places);
            last = (node, *height);
        }
        let splice = &self.searches[self.count - 1].splice;
        self.path[..=top].copy_from_slice(&splice.before[..=top]);
        self.path[..last.1].fill(last.0);
    }

    /// Where the searches begin.
    fn begin_at(&mut self, targets: &[Target<'k>]) -> Begin {
        let list = &self.table.list;
        let mut level = 0;
        for Waiting { height, .. } in &self.waiting[..self.count] {
            level = level.max(height - 1);
        }
        list.raise(level + 1);
        let top = list.height() - 1;
        let place = |target: &Target<'k>| (target.keyspace, target.key);
        // Strictly: of two versions of a key the newer one, which comes later, lies before the other.
        let ascend = targets.is_sorted_by(|one, next| place(one) < place(next));
        if !ascend || self.last.is_none_or(|last| last >= place(&targets[0])) {
            self.path = [list.root(); HEIGHT_MAX];
            return Begin::At(top);
        }
        let last = &targets[targets.len() - 1];
        // SAFETY: a node of the path was reached on its level, or is the root.
        let next = |level: usize| unsafe { self.path[level].next_on(level) };
        let precedes = |level| next(level).is_some_and(|next| list.precedes(next, last));
        if !precedes(0) {
            return Begin::Beside;
        }
        while level < top && precedes(level) {
            level += 1;
        }
        Begin::At(level)
    }
}

/// Behind all versions of the key with greater sequence numbers.
fn target<'k>(entry: &Entry<'k>) -> Target<'k> {
    let Entry { keyspace, head, key, seq, .. } = *entry;
    Target { keyspace, head, key, below: seq + 1 }
}

#[cfg(test)]
mod tests;
