//! One rewrite, in steps.
//!
//! The stream walks a [`LoserTree`] over the sources, groups the versions of each key, asks
//! [`VersionGc`] about each version and hands the survivors to the caller. It stops after a given
//! number of entries, so that the caller can keep its steps short, and goes on from there.
//!
//! The versions of one key are recognised by the heads, as far as these differ. The key is copied
//! only when another version may follow: never after sequence number 0, which is the oldest there
//! can be, so a merge without deltas in a stretch of the base copies nothing there.

#[cfg(test)]
mod tests;

use super::gc::{Verdict, VersionGc};
use crate::base::{Cursor, KeyOrder, Kind, SEQ_MAX, Seq};
use crate::error::Result;
use crate::iter::{Cover, LoserTree, Tombstones, same_key};

/// What a merge read, wrote and dropped so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// Entries read.
    pub entries_in: u64,
    /// Entries handed over.
    pub entries_out: u64,
    /// Entries dropped because a newer version shadows them.
    pub shadowed: u64,
    /// Entries dropped because a range tombstone hides them.
    pub covered: u64,
    /// Deletes dropped because nothing is left for them to hide.
    pub spent: u64,
}

impl MergeCounts {
    /// Entries dropped for whichever reason.
    pub fn dropped(&self) -> u64 {
        self.shadowed + self.covered + self.spent
    }
}

/// Merges sources into the entries that survive.
#[derive(Debug)]
pub struct MergeStream<C, O, T> {
    order: O,
    tree: LoserTree<C, O>,
    gc: VersionGc,
    tombstones: Vec<T>,
    cover: Cover,
    started: bool,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    /// Keys with smaller heads lie before `end`.
    end_head: u64,
    /// The key of the last entry and its head, if an older version of it may follow.
    key: Vec<u8>,
    head: u64,
    may_follow: bool,
    counts: MergeCounts,
}

impl<C: Cursor, O: KeyOrder, T: Tombstones> MergeStream<C, O, T> {
    /// A stream over all entries of `cursors`; `tombstones` are the range tombstones of all
    /// inputs of the merge.
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
            end_head: u64::MAX,
            key: Vec::new(),
            head: 0,
            may_follow: false,
            counts: MergeCounts::default(),
        }
    }

    /// Restricts the stream to the keys from `start` (inclusive) to `end` (exclusive). To be
    /// called before the first step.
    #[must_use]
    pub fn within(mut self, start: Option<Vec<u8>>, end: Option<Vec<u8>>) -> Self {
        self.end_head = end.as_deref().map_or(u64::MAX, |end| self.order.head(end));
        self.start = start;
        self.end = end;
        self
    }

    /// What happened so far.
    pub fn counts(&self) -> MergeCounts {
        self.counts
    }

    /// The rule of this merge; it also tells which range tombstones the output needs.
    pub fn gc(&self) -> &VersionGc {
        &self.gc
    }

    /// Gives the cursors back.
    pub fn into_cursors(self) -> Vec<C> {
        self.tree.into_cursors()
    }

    /// Reads up to `entries_max` entries and hands those that survive to `out`, in cursor order.
    /// Tells whether more follow.
    ///
    /// An error of a source comes back again from every later step. After an error of `out` the
    /// stream must not be used further: its last entry is neither handed over nor passed.
    pub fn step(
        &mut self,
        out: &mut impl FnMut(&[u8], Seq, Kind, &[u8]) -> Result<()>,
        entries_max: usize,
    ) -> Result<bool> {
        if !self.started {
            match &self.start {
                Some(start) => self.tree.seek(start, SEQ_MAX)?,
                None => self.tree.seek_to_first()?,
            }
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
        Ok(self.has_entry())
    }

    #[inline]
    fn has_entry(&self) -> bool {
        self.tree.valid()
            && (self.tree.head() < self.end_head
                || self
                    .end
                    .as_ref()
                    .is_none_or(|end| self.order.compare(self.tree.key(), end).is_lt()))
    }

    /// Decides about the entry under the tree and hands it over if it survives.
    #[inline]
    fn take(&mut self, out: &mut impl FnMut(&[u8], Seq, Kind, &[u8]) -> Result<()>) -> Result<()> {
        let (seq, kind) = (self.tree.seq(), self.tree.kind());
        let head = self.tree.head();
        let key = self.tree.key();
        let same = self.may_follow && head == self.head && same_key(&self.order, key, &self.key);
        if !same {
            self.gc.start_key();
        }
        let verdict = if self.tombstones.is_empty() {
            self.gc.decide(seq, kind, |_| 0)
        } else {
            let (newest, _) = self.cover.seq_at(&self.order, &self.tombstones, key, SEQ_MAX);
            let (order, tombstones) = (&self.order, &self.tombstones);
            self.gc.decide(seq, kind, |below| {
                // The newest of all decides unless a snapshot stands between.
                if newest <= seq || newest < below {
                    return newest;
                }
                crate::iter::covering_seq(order, tombstones, key, below)
            })
        };
        match verdict {
            Verdict::Keep(seq) => {
                out(key, seq, kind, self.tree.value())?;
                self.counts.entries_out += 1;
            }
            Verdict::Shadowed => self.counts.shadowed += 1,
            Verdict::Covered => self.counts.covered += 1,
            Verdict::Spent => self.counts.spent += 1,
        }
        self.counts.entries_in += 1;
        self.may_follow = seq != 0;
        if self.may_follow && !same {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.head = head;
        }
        Ok(())
    }
}
