//! The entries that a snapshot shows, in both directions.
//!
//! A snapshot at `at` sees the entries with sequence numbers less than `at`. The newest of these
//! versions of a key is visible: it is shown if it is a put and no visible range tombstone of any
//! source hides it. Forward, this version comes first, so the iterator stays on it. Backward, it
//! comes last: the iterator copies it while it walks over the older ones, and then stays one entry
//! before the key (as LevelDB's `DBIter` does). Where the entry is known to be the only one of its key,
//! as most are in settled data, it stays on it backward, too.
//!
//! The iterator seeks past long sequences of entries that are not shown: many versions of one key,
//! or keys under a range tombstone in sources that have nothing newer than the tombstone.
//!
//! A put that has expired counts as a delete. Operands are collected from the newest down to the
//! first version that is not an operand, then applied, and shown from a copy.
//!
//! Invariants:
//! 1. `Place::There`: the tree is on the shown entry; `Place::Expiring`: likewise, and a time
//!    precedes its value; `Place::InPieces`: likewise, and the value was left where it lies.
//! 2. `Place::Backward`: `key` and `value` hold the shown entry; the tree walks backward and is on
//!    an entry before every visible version of `key`, or passed the first entry.
//! 3. `Place::Folded`: `key` and `value` hold the shown entry; the tree walks forward and is on an
//!    older version of `key` or behind all of them.
//! 4. `Place::Apart`: `key` and `value` hold the shown entry; the tree stands nowhere and holds no blocks.
//! 5. `Place::Outside`: nothing is shown: not positioned, past an end, or an error of the tree,
//!    which it keeps and every later move reports (C3).
//! 6. `Place::Refused`, `Place::RefusedBackward`: the merge operator could not combine the operands
//!    of `key`. Nothing is shown, the move reported the error, and the tree is placed as in
//!    `Folded` or `Backward`, so that the next move continues with the neighbouring key.

#[cfg(test)]
mod tests;

mod backward;
mod covered;
mod held;

use super::bounds::Bounds;
use super::loser_tree::{LoserTree, same_key};
use super::sources::Sources;
use super::tombstones::{Cover, Tombstones};
use crate::base::{Cursor, KeyOrder, Kind, Millis, Operands, Operator, Seq, expired, split};
use crate::error::{Error, Result};
use std::ops::Bound;
use std::sync::Arc;

/// How entries are read: which are visible, and how operands are applied.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Entries with smaller sequence numbers are seen.
    pub at: Seq,
    /// Entries that expire at this time or before count as deleted.
    pub time: Millis,
    /// The merge operator.
    pub operator: Arc<Operator>,
    /// Whether values in pieces are not read, forward: the entry is shown without its value.
    pub leaves_pieces: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Outside,
    Refused,
    RefusedBackward,
    There,
    Expiring,
    InPieces,
    Backward,
    Folded,
    Apart,
}

/// After this many consecutive entries that are not shown, a seek is cheaper than further steps.
const LEAP_AFTER: u32 = 8;

/// All keys.
static EVERYTHING: Bounds = Bounds { low: Bound::Unbounded, high: Bound::Unbounded };

/// The bounds of an iterator, which stand with its sources: an iterator is moved when it is made, and they are large.
#[inline]
fn bounds_of<C>(sources: &Option<Box<Sources<C>>>) -> &Bounds {
    sources.as_ref().map_or(&EVERYTHING, |sources| &sources.bounds)
}

/// An iterator over what a snapshot sees of one keyspace.
#[derive(Debug)]
pub struct VisibleIter<C: Cursor + 'static, O: KeyOrder, T> {
    order: O,
    tree: LoserTree<C, O>,
    /// What is known of the sources, whose cursors are in the tree. It is there until the iterator is dropped.
    sources: Option<Box<Sources<C>>>,
    /// Those of the sources that have range tombstones.
    tombstones: Vec<T>,
    cover: Cover,
    /// The number of consecutive entries hidden by the tombstone of the current span.
    covered: u32,
    at: Seq,
    time: Millis,
    operator: Arc<Operator>,
    leaves_pieces: bool,
    operands: Operands,
    steps: u64,
    /// The error of the entry at `key`, while the iterator is on an entry that is refused.
    refused: Option<Error>,
    /// The head of the upper bound, or `u128::MAX`: keys with smaller heads are inside.
    high_head: u128,
    /// The head of the lower bound, or 0: keys with greater heads are inside.
    low_head: u128,
    place: Place,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<C: Cursor + 'static, O: KeyOrder, T: Tombstones> VisibleIter<C, O, T> {
    /// An iterator, not yet positioned, over what `reading` sees in `sources` within `bounds`.
    /// `tombstones` are those of all sources, in any order.
    #[inline(always)]
    pub fn new(
        order: O,
        mut sources: Box<Sources<C>>,
        mut tombstones: Vec<T>,
        reading: Reading,
        bounds: Bounds,
    ) -> Self {
        tombstones.retain(|source| !source.is_empty());
        let low_head = match &bounds.low {
            Bound::Included(low) | Bound::Excluded(low) => order.long_head(low),
            Bound::Unbounded => 0,
        };
        let high_head = match &bounds.high {
            Bound::Included(high) | Bound::Excluded(high) => order.long_head(high),
            Bound::Unbounded => u128::MAX,
        };
        sources.bounds = bounds;
        let (key, value) = (sources.buffer(), sources.buffer());
        Self {
            tree: sources.tree(order.clone()),
            order,
            sources: Some(sources),
            tombstones,
            cover: Cover::default(),
            covered: 0,
            at: reading.at,
            time: reading.time,
            operator: reading.operator,
            leaves_pieces: reading.leaves_pieces,
            operands: Operands::default(),
            steps: 0,
            refused: None,
            high_head,
            low_head,
            place: Place::Outside,
            key,
            value,
        }
    }

    /// Whether the iterator is on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.place >= Place::There
    }

    /// The key and the error of the present entry, if it cannot be shown but its neighbours can.
    pub fn refused(&self) -> Option<(&[u8], &Error)> {
        let refused = matches!(self.place, Place::Refused | Place::RefusedBackward);
        self.refused.as_ref().filter(|_| refused).map(|error| (&self.key[..], error))
    }

    /// The key. The iterator must be valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if self.place >= Place::Backward { &self.key } else { self.tree.key() }
    }

    /// The value. The iterator must be valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        if self.place <= Place::There {
            return self.tree.value();
        }
        if self.place >= Place::Backward {
            return &self.value;
        }
        if self.is_in_pieces() {
            return &[];
        }
        split(Kind::ExpiringPut, self.tree.value()).1
    }

    /// Whether the value of the entry is in pieces and was not read.
    pub fn is_in_pieces(&self) -> bool {
        self.place == Place::InPieces
    }

    /// The order of the keys.
    pub fn order(&self) -> &O {
        &self.order
    }

    /// The bounds.
    pub fn bounds(&self) -> &Bounds {
        bounds_of(&self.sources)
    }

    /// Goes to the first entry inside the bounds.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.place = Place::Outside;
        match &bounds_of(&self.sources).low {
            Bound::Included(low) => self.tree.seek(low, self.at)?,
            Bound::Excluded(low) => self.tree.seek(low, 0)?,
            Bound::Unbounded => self.tree.seek_to_first()?,
        }
        self.settle_forward()
    }

    /// Goes to the last entry inside the bounds.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.place = Place::Outside;
        match &bounds_of(&self.sources).high {
            Bound::Excluded(high) => self.tree.seek_before(high)?,
            Bound::Included(high) => {
                self.tree.seek(high, 0)?;
                if self.tree.valid() { self.tree.prev()? } else { self.tree.seek_to_last()? }
            }
            Bound::Unbounded => self.tree.seek_to_last()?,
        }
        self.settle_backward()
    }

    /// Goes to the first entry inside the bounds whose key is `key` or greater.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        if let Bound::Included(low) | Bound::Excluded(low) = &bounds_of(&self.sources).low
            && self.order.compare(key, low).is_le()
        {
            return self.seek_to_first();
        }
        self.place = Place::Outside;
        self.tree.seek(key, self.at)?;
        self.settle_forward()
    }

    /// Goes to the last entry inside the bounds whose key is less than `key`.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        if let Bound::Included(high) | Bound::Excluded(high) = &bounds_of(&self.sources).high
            && self.order.compare(key, high).is_gt()
        {
            return self.seek_to_last();
        }
        self.place = Place::Outside;
        self.tree.seek_before(key)?;
        self.settle_backward()
    }

    /// Goes to the next entry. Past the last one the iterator becomes invalid; an invalid iterator
    /// stays where it is and repeats its error, if it has one. If the error is that of one entry,
    /// it continues behind this entry.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "a cursor lends its entries and goes back")]
    pub fn next(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.place, Place::Outside) {
            Place::Outside => return self.tree.check(),
            Place::There | Place::Expiring | Place::InPieces => self.skip_key()?,
            Place::Folded | Place::Refused => self.leave_key()?,
            // Seeded: an iterator that has let go shows its entry again.
            Place::Apart if bug!("iter_let_go_repeats_its_entry") => {
                self.tree.seek(&self.key, self.at)?
            }
            Place::Backward | Place::RefusedBackward | Place::Apart => {
                self.tree.seek(&self.key, 0)?;
            }
        }
        self.settle_forward()
    }

    /// Goes to the entry before; otherwise as [`next`](Self::next).
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.place, Place::Outside) {
            Place::Outside => return self.tree.check(),
            // The versions before the shown one are newer than the snapshot.
            Place::There | Place::Expiring | Place::InPieces => self.step_back()?,
            Place::Folded | Place::Refused | Place::Apart => self.tree.seek_before(&self.key)?,
            Place::Backward | Place::RefusedBackward => {}
        }
        self.settle_backward()
    }

    /// How many entries of its sources the iterator has stepped over, shown ones included.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    #[inline]
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        self.tree.next()
    }

    #[inline]
    fn step_back(&mut self) -> Result<()> {
        self.steps += 1;
        self.tree.prev()
    }

    /// Goes forward from the tree's entry to the first entry that is shown. No visible version of
    /// the tree's key may be before the tree.
    #[inline(always)]
    fn settle_forward(&mut self) -> Result<()> {
        // Most entries are shown where the tree stands, which is known without a call.
        if self.tree.valid()
            && self.tree.long_head() < self.high_head
            && self.tombstones.is_empty()
            && self.tree.seq() < self.at
            && self.tree.kind() == Kind::Put
        {
            self.place = self.show_value(Place::There)?;
            return Ok(());
        }
        self.settle_further()
    }

    /// As [`Self::settle_forward`], for all entries.
    #[inline(never)]
    fn settle_further(&mut self) -> Result<()> {
        let mut unseen = 0;
        while self.tree.valid() && !self.above_high() {
            if self.tree.seq() >= self.at {
                unseen += 1;
                if unseen % LEAP_AFTER == 0 {
                    self.remember_key();
                    self.tree.seek(&self.key, self.at)?;
                } else {
                    self.step()?;
                }
                continue;
            }
            if self.tombstones.is_empty() || !self.tree_is_covered() {
                if self.tree.kind() == Kind::Put {
                    self.place = self.show_value(Place::There)?;
                    return Ok(());
                }
                if self.tree.kind() != Kind::Delete {
                    self.place = self.settle_special()?;
                    if self.place != Place::Outside {
                        return Ok(());
                    }
                    // The operands that gave no value are passed.
                    continue;
                }
            } else if self.leap_over_span(false)? {
                continue;
            }
            self.skip_key()?;
        }
        Ok(())
    }

    /// Reads the value of the tree's entry, unless it stays in its pieces; returns the place then.
    #[inline]
    fn show_value(&mut self, place: Place) -> Result<Place> {
        if self.leaves_pieces && self.tree.is_in_pieces() {
            return Ok(Place::InPieces);
        }
        self.tree.fetch_value()?;
        Ok(place)
    }

    /// Places the iterator if the tree is on an operand or an expiring put. If it is not shown,
    /// goes past its key.
    #[cold]
    fn settle_special(&mut self) -> Result<Place> {
        if self.tree.kind() == Kind::ExpiringPut {
            // Before a reference the time stands as it stands before the value.
            if !expired(split(Kind::ExpiringPut, self.tree.value()).0, self.time) {
                return self.show_value(Place::Expiring);
            }
            self.skip_key()?;
            return Ok(Place::Outside);
        }
        if self.fold()? {
            return Ok(Place::Folded);
        }
        self.leave_key()?;
        Ok(Place::Outside)
    }

    /// Applies the operands of the key whose newest visible version the tree is on. Copies key and
    /// value, if there is one, and leaves the tree on or behind the last version that was read.
    fn fold(&mut self) -> Result<bool> {
        let head = self.remember_key();
        let hidden_below = if self.tombstones.is_empty() {
            0
        } else {
            self.cover.seq_at(&self.order, &self.tombstones, &self.key, self.at).0
        };
        self.operands.clear();
        let mut has_base = false;
        while self.tree.valid() && self.tree_is_at_key(head) && self.tree.seq() >= hidden_below {
            if !self.tree.kind().is_operand() {
                self.tree.fetch_value()?;
            }
            let (kind, stored) = (self.tree.kind(), self.tree.value());
            if !kind.is_operand() {
                let (expiry, value) = split(kind, stored);
                has_base = kind != Kind::Delete && !expired(expiry, self.time);
                self.value.clear();
                self.value.extend_from_slice(value);
                break;
            }
            self.operands.push(self.tree.seq(), kind, stored);
            self.step()?;
        }
        let base = has_base.then_some(&self.value[..]);
        match self.operands.read(&self.operator, &self.key, base, self.time) {
            Ok(Some(value)) => self.value = value,
            Ok(None) => return Ok(false),
            Err(error) => {
                self.refused = Some(error.clone());
                self.place = Place::Refused;
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Goes past the versions of `key` that are left under the tree.
    fn leave_key(&mut self) -> Result<()> {
        if self.tree.valid() && self.tree_is_at_key(self.order.long_head(&self.key)) {
            self.skip_key()?;
        }
        Ok(())
    }

    /// Goes to the first entry of another key than the one under the tree.
    #[inline]
    fn skip_key(&mut self) -> Result<()> {
        if self.tree.seq() == 0 {
            // Sequence number 0 is the oldest, so this was the last version of its key.
            return self.step();
        }
        self.skip_versions()
    }

    fn skip_versions(&mut self) -> Result<()> {
        let (head, len) = (self.tree.long_head(), self.tree.key().len());
        // A key that its head holds is known by that and by its length, and need not be copied.
        let is_whole = O::BYTEWISE && len <= size_of_val(&head);
        if !is_whole {
            self.remember_key();
        }
        for _ in 0..LEAP_AFTER {
            self.step()?;
            let is_there = match is_whole {
                _ if !self.tree.valid() => false,
                true => self.tree.long_head() == head && self.tree.key().len() == len,
                false => self.tree_is_at_key(head),
            };
            if !is_there {
                return Ok(());
            }
        }
        self.remember_key();
        self.tree.seek(&self.key, 0)
    }

    #[inline]
    fn remember_key(&mut self) -> u128 {
        self.key.clear();
        self.key.extend_from_slice(self.tree.key());
        self.tree.long_head()
    }

    #[inline]
    fn tree_is_at_key(&self, head: u128) -> bool {
        self.tree.long_head() == head && same_key(&self.order, self.tree.key(), &self.key)
    }

    #[inline]
    fn above_high(&self) -> bool {
        if self.tree.long_head() < self.high_head {
            return false;
        }
        match &bounds_of(&self.sources).high {
            Bound::Unbounded => false,
            Bound::Included(high) => self.order.compare(self.tree.key(), high).is_gt(),
            Bound::Excluded(high) => self.order.compare(self.tree.key(), high).is_ge(),
        }
    }

    #[inline]
    fn below_low(&self) -> bool {
        // Seeded: a scan from the end goes on below its lower bound.
        bug!("iter_lower_bound_not_kept", return false);
        if self.tree.long_head() > self.low_head {
            return false;
        }
        match &bounds_of(&self.sources).low {
            Bound::Unbounded => false,
            Bound::Included(low) => self.order.compare(self.tree.key(), low).is_lt(),
            Bound::Excluded(low) => self.order.compare(self.tree.key(), low).is_le(),
        }
    }
}

impl<C: Cursor + 'static, O: KeyOrder, T> Drop for VisibleIter<C, O, T> {
    fn drop(&mut self) {
        if let Some(sources) = self.sources.take() {
            let own = [&mut self.key, &mut self.value].map(std::mem::take);
            sources.leave(&mut self.tree, own);
        }
    }
}
