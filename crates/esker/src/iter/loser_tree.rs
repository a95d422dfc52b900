//! The merging iterator: a tournament over cursors.
//!
//! The tree of losers (Knuth, volume 3, 5.4.1) has one leaf per cursor; every inner node holds the
//! loser of its match, and the overall winner is above the root. When the cursor of the winner
//! moves, only the matches on its path to the root are repeated: about log2 k comparisons. A node
//! keeps the first 16 bytes of its contender's key beside the number of the cursor, so most matches
//! need no access to the memory of the cursor. (8 bytes do not tell keys apart that begin with a counter of fixed width,
//! or with the name of a table.)
//!
//! Invariants:
//! 1. A contender's head is the head of the entry under its cursor (inverted when walking
//!    backward), or `u128::MAX` with `live` unset if the cursor passed its end. The smaller
//!    contender wins in both directions.
//! 2. Walking forward, every cursor is on its first entry at or after that of the winner, in cursor
//!    order; walking backward, on its last entry at or before it. A cursor without such an entry is
//!    not valid.
//! 3. A cursor may wait: it shows the key of its entry, which it has not read (S19). The winner does not
//!    wait, and no cursor waits while the tree walks backward. Of two cursors at one key, one that waits
//!    wins, because only then its sequence number becomes known.
//! 4. After a cursor fails, the tree is not valid, and each move repeats the error until the tree
//!    is positioned anew (C3).

#[cfg(test)]
mod tests;

use crate::base::{Cursor, KeyOrder, Kind, LaterValue, SEQ_MAX, SeekStage, Seq, same_bytes};
use crate::error::{Error, Result};
use std::cmp::Ordering;

/// A cursor in the tournament, as a node of the tree sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contender {
    head: u128,
    /// The sequence number and the kind of the entry; they mean nothing while the cursor waits.
    seq: Seq,
    source: u32,
    kind: Kind,
    live: bool,
}

/// From this many cursors on, seeks are prepared in all of them first.
const PREPARED_FROM: usize = 3;

/// A cursor whose source got more entries than this since it moved seeks when the direction changes.
const STEPS_MAX: u32 = 8;

/// Marks a node without a contender, while the tree is built.
const NOBODY: Contender =
    Contender { head: u128::MAX, seq: 0, source: u32::MAX, kind: Kind::Delete, live: false };

/// Merges cursors into one, in cursor order (keys ascending, sequence numbers descending).
///
/// It is a [`Cursor`] itself and keeps its contract. No entry may be in two cursors; if one is,
/// both are shown, that of the earlier cursor first.
#[derive(Debug)]
pub struct LoserTree<C, O> {
    order: O,
    cursors: Vec<C>,
    /// `losers[n]` for the inner nodes 1..k; leaf `i` is node `k + i`; `losers[0]` is not used.
    losers: Vec<Contender>,
    winner: Contender,
    /// How many cursors wait.
    waiting: usize,
    backward: bool,
    error: Option<Error>,
    /// The key at which the direction changes; kept to reuse the allocation.
    pivot: Vec<u8>,
}

/// Whether two keys are the same under `order`; plain equality is cheaper than an ordering.
#[inline]
pub(crate) fn same_key<O: KeyOrder>(order: &O, a: &[u8], b: &[u8]) -> bool {
    if O::BYTEWISE { same_bytes(a, b) } else { order.compare(a, b) == Ordering::Equal }
}

impl<C: Cursor, O: KeyOrder> LoserTree<C, O> {
    /// A tree over `cursors`, not yet positioned.
    pub fn new(order: O, cursors: Vec<C>) -> Self {
        Self::with_room(order, cursors, Vec::new())
    }

    /// A tree over cursors, with room for its nodes.
    #[inline(always)]
    pub(super) fn with_room(order: O, cursors: Vec<C>, mut losers: Vec<Contender>) -> Self {
        losers.clear();
        losers.resize(cursors.len(), NOBODY);
        Self {
            order,
            cursors,
            losers,
            winner: NOBODY,
            waiting: 0,
            backward: false,
            error: None,
            pivot: Vec::new(),
        }
    }

    /// The number of the cursor on whose entry the tree stands. The tree must be valid.
    #[inline]
    pub fn source(&self) -> usize {
        self.winner.source as usize
    }

    /// The head of the key, of 16 bytes. The tree must be valid.
    #[inline]
    pub fn long_head(&self) -> u128 {
        if self.backward { !self.winner.head } else { self.winner.head }
    }

    /// The cursors, in the order in which they were given.
    pub fn cursors(&self) -> &[C] {
        &self.cursors
    }

    /// Gives its memory away. Nothing is in the tree from then on.
    pub(super) fn take_memory(&mut self) -> (Vec<C>, Vec<Contender>) {
        (self.winner, self.waiting) = (NOBODY, 0);
        (std::mem::take(&mut self.cursors), std::mem::take(&mut self.losers))
    }

    /// Returns the cursors.
    pub fn into_cursors(self) -> Vec<C> {
        self.cursors
    }

    /// Bytes that the cursors hold.
    pub fn held(&self) -> u64 {
        self.cursors.iter().map(Cursor::held).sum()
    }

    /// Bytes of the cursors themselves, with their buffers, and of the tree.
    pub fn own_bytes(&self) -> u64 {
        let buffers: u64 = self.cursors.iter().map(Cursor::buffered).sum();
        let cursors = self.cursors.capacity() * size_of::<C>();
        let tree = self.losers.capacity() * size_of::<Contender>() + self.pivot.capacity();
        buffers + (cursors + tree) as u64
    }

    /// Has all cursors let go what they hold. The tree is not valid until it is positioned again.
    pub fn let_go(&mut self) {
        self.cursors.iter_mut().for_each(Cursor::let_go);
        (self.winner, self.waiting) = (NOBODY, 0);
    }

    /// The error that made the tree invalid, if there is one.
    pub fn check(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Moves the `eligible` cursors in the direction of the walk to `limit`: forward to the first
    /// key at or after it, backward to the last key before it (`None`: past the last or first key).
    /// Cursors that are already there stay.
    pub fn leap(&mut self, limit: Option<&[u8]>, eligible: impl Fn(usize) -> bool) -> Result<()> {
        self.check()?;
        let (order, backward) = (self.order.clone(), self.backward);
        self.position(backward, |index, cursor| {
            if !eligible(index) || !cursor.valid() {
                return Ok(());
            }
            match (limit, backward) {
                (Some(limit), false) if order.compare(cursor.key(), limit).is_lt() => {
                    cursor.seek_waiting(limit, SEQ_MAX)
                }
                (Some(limit), true) if order.compare(cursor.key(), limit).is_ge() => {
                    cursor.seek_before(limit)
                }
                (Some(_), _) => Ok(()),
                (None, false) => {
                    cursor.seek_to_last()?;
                    if cursor.valid() { cursor.next() } else { Ok(()) }
                }
                (None, true) => {
                    cursor.seek_to_first()?;
                    if cursor.valid() { cursor.prev() } else { Ok(()) }
                }
            }
        })
    }

    #[inline]
    fn contender(&self, source: usize) -> Contender {
        let source_number = source as u32;
        let Some((key, seq, kind)) = self.cursors[source].peek() else {
            return Contender { source: source_number, ..NOBODY };
        };
        let head = self.order.long_head(key);
        let head = if self.backward { !head } else { head };
        Contender { head, seq, source: source_number, kind, live: true }
    }

    #[inline]
    fn beats(&self, a: Contender, b: Contender) -> bool {
        if a.head != b.head {
            return a.head < b.head;
        }
        self.beats_by_key(a, b)
    }

    /// Decides a match in which the heads are equal.
    fn beats_by_key(&self, a: Contender, b: Contender) -> bool {
        if !(a.live && b.live) {
            return a.live;
        }
        let (x, y) = (&self.cursors[a.source as usize], &self.cursors[b.source as usize]);
        if self.waiting > 0 && (x.is_waiting() || y.is_waiting()) {
            let ordering = self.order.compare(x.key(), y.key());
            // Seeded: a cursor that waits is opened after the others at its key, so old versions come first.
            let first = if bug!("iter_waiting_loses_a_tie") { y } else { x };
            return ordering.is_lt() || ordering.is_eq() && first.is_waiting();
        }
        let ordering = self.order.compare(x.key(), y.key()).then(b.seq.cmp(&a.seq));
        ordering.then(a.source.cmp(&b.source)).is_lt() != self.backward
    }

    /// Opens the winner's cursor if it waits, until a cursor wins that does not (invariant 3).
    #[cold]
    fn open_winner(&mut self) -> Result<()> {
        while self.winner.live && self.cursors[self.source()].is_waiting() {
            let source = self.source();
            if let Err(error) = self.cursors[source].open() {
                return Err(self.fail(error));
            }
            self.waiting -= 1;
            self.replay(source);
        }
        Ok(())
    }

    /// Plays the matches on the path of `source` again, after its cursor moved.
    #[inline]
    fn replay(&mut self, source: usize) {
        let mut candidate = self.contender(source);
        let mut node = (self.cursors.len() + source) / 2;
        while node > 0 {
            let loser = self.losers[node];
            if self.beats(loser, candidate) {
                self.losers[node] = candidate;
                candidate = loser;
            }
            node /= 2;
        }
        self.winner = candidate;
    }

    /// Plays all matches. The first contender to reach a node waits there for the other one.
    fn rebuild(&mut self) {
        self.losers.fill(NOBODY);
        self.winner = NOBODY;
        for source in 0..self.cursors.len() {
            let mut candidate = self.contender(source);
            let mut node = (self.cursors.len() + source) / 2;
            loop {
                if node == 0 {
                    self.winner = candidate;
                    break;
                }
                let loser = self.losers[node];
                if loser.source == NOBODY.source {
                    self.losers[node] = candidate;
                    break;
                }
                if self.beats(loser, candidate) {
                    self.losers[node] = candidate;
                    candidate = loser;
                }
                node /= 2;
            }
        }
    }

    /// See [`Cursor::prepare_seek`]. With few sources it costs more than it saves.
    fn prepare(&mut self, key: &[u8]) {
        if self.cursors.len() < PREPARED_FROM {
            return;
        }
        for stage in [SeekStage::Locate, SeekStage::Fetch] {
            for cursor in &mut self.cursors {
                cursor.prepare_seek(key, stage);
            }
        }
    }

    /// Moves every cursor with `go` and then plays all matches.
    fn position(
        &mut self,
        backward: bool,
        mut go: impl FnMut(usize, &mut C) -> Result<()>,
    ) -> Result<()> {
        self.backward = backward;
        self.error = None;
        for (index, cursor) in self.cursors.iter_mut().enumerate() {
            if let Err(error) = go(index, cursor) {
                return Err(self.fail(error));
            }
        }
        self.waiting = self.cursors.iter().filter(|cursor| cursor.is_waiting()).count();
        self.rebuild();
        if self.waiting > 0 { self.open_winner() } else { Ok(()) }
    }

    /// Notes an error: the tree is invalid, and repeats it until it is positioned anew.
    #[cold]
    pub fn fail(&mut self, error: Error) -> Error {
        self.winner = NOBODY;
        self.error = Some(error.clone());
        error
    }

    /// Changes the direction and goes one entry that way.
    ///
    /// By invariant 2, one step per cursor would be enough if the sources did not change. A
    /// memtable may have new entries since, so every cursor walks until it is past the pivot, or seeks if these are many.
    #[cold]
    fn turn(&mut self, backward: bool) -> Result<()> {
        let mut pivot = std::mem::take(&mut self.pivot);
        pivot.clear();
        pivot.extend_from_slice(self.key());
        let seq = self.seq();
        // Seeded: a cursor that turns back shows the same entry again.
        let seq = if bug!("iter_turn_repeats_an_entry") { seq.saturating_sub(1) } else { seq };
        let order = self.order.clone();
        let turned = self.position(backward, |_, cursor| {
            cursor.open()?;
            if backward {
                if !cursor.valid() {
                    cursor.seek_to_last()?;
                }
                let mut steps = 0;
                while cursor.valid() && compare_to(&order, cursor, &pivot, seq).is_ge() {
                    steps += 1;
                    // Seeded: as `iter_turn_walks_on`, the other way.
                    if steps == STEPS_MAX && !bug!("iter_turn_back_walks_on") {
                        cursor.seek(&pivot, seq + 1)?;
                        if !cursor.valid() {
                            cursor.seek_to_last()?;
                        }
                    } else {
                        cursor.prev()?;
                    }
                }
            } else {
                if !cursor.valid() {
                    cursor.seek_to_first()?;
                }
                let mut steps = 0;
                while cursor.valid() && compare_to(&order, cursor, &pivot, seq).is_le() {
                    steps += 1;
                    // Seeded: a turn walks over all that others wrote since, entry by entry.
                    let seeks = steps == STEPS_MAX && !bug!("iter_turn_walks_on");
                    if seeks { cursor.seek(&pivot, seq)? } else { cursor.next()? }
                }
            }
            Ok(())
        });
        self.pivot = pivot;
        turned
    }
}

/// Compares the entry under `cursor` with (`key`, `seq`) in cursor order.
fn compare_to<C: Cursor, O: KeyOrder>(order: &O, cursor: &C, key: &[u8], seq: Seq) -> Ordering {
    order.compare(cursor.key(), key).then_with(|| seq.cmp(&cursor.seq()))
}

impl<C: Cursor, O: KeyOrder> Cursor for LoserTree<C, O> {
    #[inline]
    fn valid(&self) -> bool {
        self.winner.live
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.cursors[self.winner.source as usize].key()
    }

    #[inline]
    fn seq(&self) -> Seq {
        self.winner.seq
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.winner.kind
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.cursors[self.winner.source as usize].value()
    }

    fn value_later(&self) -> Option<LaterValue> {
        self.cursors[self.source()].value_later()
    }

    fn is_in_pieces(&self) -> bool {
        self.cursors[self.source()].is_in_pieces()
    }

    #[inline]
    fn shows_newest(&self) -> bool {
        let winner = &self.cursors[self.source()];
        if !self.backward || !winner.shows_newest() {
            return false;
        }
        // A newer entry of the key in another cursor would be the next to win, so it lost against the winner.
        let mut node = (self.cursors.len() + self.source()) / 2;
        while node > 0 {
            let loser = self.losers[node];
            if loser.live && loser.head == self.winner.head {
                let other = &self.cursors[loser.source as usize];
                let same = same_key(&self.order, other.key(), winner.key());
                // Seeded: a scan from the end shows an old entry of a key before the newer one of another source.
                if same && !bug!("iter_newest_in_one_source_only") {
                    return false;
                }
            }
            node /= 2;
        }
        true
    }

    #[inline]
    fn fetch_value(&mut self) -> Result<()> {
        let source = self.source();
        match self.cursors[source].fetch_value() {
            Ok(()) => {
                // A reference became the value.
                self.winner.kind = self.cursors[source].kind();
                Ok(())
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn seek(&mut self, key: &[u8], below: Seq) -> Result<()> {
        self.prepare(key);
        self.position(false, |_, cursor| cursor.seek_waiting(key, below))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.prepare(key);
        self.position(true, |_, cursor| cursor.seek_before(key))
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.position(false, |_, cursor| cursor.seek_to_first_waiting())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.position(true, |_, cursor| cursor.seek_to_last())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if !self.valid() {
            return self.check();
        }
        if self.backward {
            return self.turn(false);
        }
        let source = self.source();
        if let Err(error) = self.cursors[source].next() {
            return Err(self.fail(error));
        }
        self.replay(source);
        if self.waiting > 0 { self.open_winner() } else { Ok(()) }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if !self.valid() {
            return self.check();
        }
        if !self.backward {
            return self.turn(true);
        }
        let source = self.source();
        if let Err(error) = self.cursors[source].prev() {
            return Err(self.fail(error));
        }
        self.replay(source);
        Ok(())
    }
}
