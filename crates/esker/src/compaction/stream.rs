//! One rewrite of a compaction, in steps.
//!
//! The stream reads the sources through a [`LoserTree`], groups the versions of each key, calls
//! [`VersionGc`] for each version and hands the survivors to the caller. It stops after a given
//! number of entries, so that the caller can keep its steps short, and continues from there.
//!
//! Keys with different heads are different. The key is copied only when another version may follow.
//! None follows sequence number 0, which is the oldest there can be, so a compaction copies no keys
//! in a stretch of the base without deltas.

#[cfg(test)]
pub(super) mod tests;

use super::counts::CompactionCounts;
use super::fold::{Base, Folding, Out};
use super::gc::{Verdict, VersionGc};
use crate::base::{Cursor, Filter, KeyOrder, Kind, Operator, Seq};
use crate::error::Result;
use crate::iter::{Cover, LoserTree, Tombstones, same_key};
use crate::run::ValueRef;
use std::cell::Cell;
use std::sync::Arc;

/// Entries, and bytes of values, of one step.
const STEP_ENTRIES: usize = 8192;
const STEP_BYTES: usize = 1 << 20;
/// Entries between two checks of the number of bytes.
const STRIDE: usize = 32;

/// Merges sources and hands over the entries that survive.
#[derive(Debug)]
pub struct CompactionStream<C, O, T> {
    order: O,
    tree: LoserTree<C, O>,
    gc: VersionGc,
    tombstones: Vec<T>,
    cover: Cover,
    started: bool,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    /// Keys with smaller heads lie before `end`.
    end_head: u128,
    /// The key of the last entry and its head, if an older version of it may follow.
    key: Vec<u8>,
    head: u128,
    may_follow: bool,
    counts: CompactionCounts,
    folding: Folding,
}

impl<C: Cursor, O: KeyOrder, T: Tombstones> CompactionStream<C, O, T> {
    /// A stream over all entries of `cursors`; `tombstones` are the range tombstones of all
    /// inputs of the compaction.
    pub fn new(order: O, cursors: Vec<C>, mut tombstones: Vec<T>, gc: VersionGc) -> Self {
        tombstones.retain(|source| !source.is_empty());
        Self {
            tree: LoserTree::new(order.clone(), cursors),
            order,
            gc,
            tombstones,
            cover: Cover::default(),
            started: false,
            start: None,
            end: None,
            end_head: u128::MAX,
            key: Vec::new(),
            head: 0,
            may_follow: false,
            counts: CompactionCounts::default(),
            folding: Folding::default(),
        }
    }

    /// Sets the operator that applies operands; without one they are kept. Call it before the first
    /// step.
    #[must_use]
    pub fn with_operator(mut self, operator: Arc<Operator>) -> Self {
        self.folding.set_operator(operator);
        self
    }

    /// Sets a compaction filter, which is called for the values that are handed over. Call it
    /// before the first step.
    #[must_use]
    pub fn with_filter(mut self, filter: Option<Filter>) -> Self {
        self.folding.set_filter(filter);
        self
    }

    /// Restricts the stream to the keys from `start` (inclusive) to `end` (exclusive). Call it
    /// before the first step.
    #[must_use]
    pub fn within(mut self, start: Option<Vec<u8>>, end: Option<Vec<u8>>) -> Self {
        self.end_head = end.as_deref().map_or(u128::MAX, |end| self.order.long_head(end));
        self.start = start;
        self.end = end;
        self
    }

    /// The counts so far.
    pub fn counts(&self) -> CompactionCounts {
        self.counts
    }

    /// The rule of this compaction; it also says which range tombstones the output needs.
    pub fn gc(&self) -> &VersionGc {
        &self.gc
    }

    /// Returns the cursors.
    pub fn into_cursors(self) -> Vec<C> {
        self.tree.into_cursors()
    }

    /// Reads up to `entries_max` entries and hands those that survive to `out`, in cursor order.
    /// Returns whether more follow.
    ///
    /// After an error of a source, every later step returns that error again. After an error of
    /// `out` the stream must not be used further: its last entry is neither handed over nor passed
    /// over.
    pub fn step(&mut self, out: &mut impl Out, entries_max: usize) -> Result<bool> {
        if !self.started {
            self.tree.seek_start(self.start.as_deref())?;
            self.started = true;
        }
        for _ in 0..entries_max {
            if !self.has_entry() {
                break;
            }
            self.take(out)?;
            self.tree.next()?;
        }
        self.tree.check()?;
        if self.has_entry() {
            return Ok(true);
        }
        self.end_key(out)?;
        Ok(false)
    }

    /// As [`Self::step`], for about 2 ms of work.
    pub fn advance(&mut self, out: &mut impl Out) -> Result<bool> {
        let bytes = Cell::new(0);
        let mut out = |key: &[u8], seq, kind: Kind, value: &[u8]| {
            // A value that moves is read and written in the same step.
            let reference = kind.is_separated().then(|| ValueRef::decode(kind, value).ok());
            let len = reference.flatten().map_or(value.len(), |reference| reference.len as usize);
            bytes.set(bytes.get() + len);
            out(key, seq, kind, value)
        };
        let mut entries = 0;
        while entries < STEP_ENTRIES && bytes.get() < STEP_BYTES {
            if !self.step(&mut out, STRIDE)? {
                return Ok(false);
            }
            entries += STRIDE;
        }
        Ok(true)
    }

    #[inline]
    fn has_entry(&self) -> bool {
        self.tree.valid()
            && (self.tree.long_head() < self.end_head
                || self
                    .end
                    .as_ref()
                    .is_none_or(|end| self.order.compare(self.tree.key(), end).is_lt()))
    }

    /// Decides about the current entry of the tree and hands it over if it survives.
    #[inline]
    fn take(&mut self, out: &mut impl Out) -> Result<()> {
        let (seq, kind) = (self.tree.seq(), self.tree.kind());
        let head = self.tree.long_head();
        let key = self.tree.key();
        let same = self.may_follow && head == self.head && same_key(&self.order, key, &self.key);
        if !same {
            if self.folding.waits() {
                self.end_key(out)?;
            }
            self.gc.start_key();
        }
        let key = self.tree.key();
        let tombstones = (&mut self.cover, &self.tombstones[..]);
        let verdict = self.gc.decide_at(&self.order, key, (seq, kind), tombstones);
        self.counts.entries_in += 1;
        let plain = matches!(kind, Kind::Put | Kind::Delete | Kind::SeparatedPut)
            && !self.folding.filters();
        if !plain || self.folding.waits() {
            match kind.is_separated() {
                true => self.take_separated(verdict, seq, kind, out)?,
                false => self.take_special(verdict, seq, kind, out)?,
            }
        } else {
            match verdict {
                Verdict::Keep(seq) => {
                    out(key, seq, kind, self.tree.value())?;
                    self.counts.entries_out += 1;
                }
                Verdict::Shadowed => self.counts.shadowed += 1,
                Verdict::Covered => self.counts.covered += 1,
                Verdict::Spent => self.counts.spent += 1,
                Verdict::Operand => {}
            }
        }
        let key = self.tree.key();
        self.may_follow = seq != 0;
        // Seeded: every version of a key survives a compaction.
        self.may_follow &= !bug!("compaction_older_versions_kept");
        if self.may_follow && !same {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.head = head;
        }
        Ok(())
    }

    /// Decides about an entry that refers to its value, which is read if an operator or a filter wants it. A
    /// value that stays as it is stays where it is.
    #[cold]
    fn take_separated(
        &mut self,
        verdict: Verdict,
        seq: Seq,
        kind: Kind,
        out: &mut impl Out,
    ) -> Result<()> {
        let wanted = self.folding.filters() || self.folding.waits();
        if !wanted || !matches!(verdict, Verdict::Keep(_)) {
            return self.take_special(verdict, seq, kind, out);
        }
        let reference = self.tree.value().to_vec();
        self.tree.fetch_value()?;
        let value = self.tree.value().as_ptr_range();
        let mut out = |key: &[u8], seq, became: Kind, stored: &[u8]| {
            let same = became == kind.joined() && stored.as_ptr_range() == value;
            // Seeded: a filter that changes a separated value changes nothing.
            let same = same || bug!("compaction_changed_values_not_written");
            let (became, stored) = if same { (kind, &reference[..]) } else { (became, stored) };
            out(key, seq, became, stored)
        };
        self.take_special(verdict, seq, kind.joined(), &mut out)
    }

    /// Decides about an entry that is an operand, lies below operands, expires or is filtered.
    #[cold]
    fn take_special(
        &mut self,
        verdict: Verdict,
        seq: Seq,
        kind: Kind,
        out: &mut impl Out,
    ) -> Result<()> {
        let Self { folding, gc, counts, tree, .. } = self;
        let (key, stored, stripe) = (tree.key(), tree.value(), gc.last_stripe());
        if folding.waits() && folding.stripe() != stripe {
            // The next entry belongs to an older stripe: snapshots lie in between.
            folding.settle(gc, counts, Base::Unknown, out)?;
        }
        if verdict == Verdict::Operand {
            folding.push(stripe, key, seq, kind, stored);
            return Ok(());
        }
        if folding.waits() {
            let base = match verdict {
                Verdict::Keep(_) if kind == Kind::Delete => Base::Delete(seq),
                Verdict::Keep(_) => Base::Value(seq, kind, stored),
                Verdict::Spent => Base::Delete(seq),
                Verdict::Covered => {
                    counts.covered += 1;
                    Base::Absent
                }
                Verdict::Shadowed | Verdict::Operand => {
                    counts.shadowed += 1;
                    return Ok(());
                }
            };
            return folding.settle(gc, counts, base, out);
        }
        match verdict {
            Verdict::Keep(seq) if kind == Kind::Delete => {
                counts.entries_out += 1;
                out(key, seq, kind, stored)?;
            }
            Verdict::Keep(_) => folding.value(gc, counts, stripe, key, (seq, kind, stored), out)?,
            Verdict::Shadowed => counts.shadowed += 1,
            Verdict::Covered => counts.covered += 1,
            Verdict::Spent => counts.spent += 1,
            Verdict::Operand => {}
        }
        Ok(())
    }

    /// Ends a key whose operands are still pending: there are no older versions among the inputs.
    #[cold]
    fn end_key(&mut self, out: &mut impl Out) -> Result<()> {
        if !self.folding.waits() {
            return Ok(());
        }
        let base = if self.gc.is_bottom() { Base::Absent } else { Base::Unknown };
        self.folding.settle(&self.gc, &mut self.counts, base, out)
    }
}
