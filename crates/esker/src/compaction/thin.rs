//! The entries of one source of a compaction that are still needed.
//!
//! A compaction writes everything that its sources hold. If there is no room for that, one source
//! can be written without the others. The stream reads all sources, as a compaction does, and hands
//! over, unchanged, the entries of that one source which must stay:
//!
//! 1. a version is dropped if a newer one of its stripe, in any source, shadows it or a range
//!    tombstone covers it: those stay where they are, and hide it from the same readers;
//! 2. a delete is dropped if every reader sees it and no source holds an older entry of its key
//!    that stays;
//! 3. operands stay, and nothing is folded, filtered or dropped because it has expired.
//!
//! The sources must be all sources of the key range, from the newest that is on disk down to the
//! oldest.

#[cfg(test)]
mod tests;

use super::fold::Out;
use super::gc::{Verdict, VersionGc};
use crate::base::{Cursor, KeyOrder, Kind, Seq};
use crate::error::Result;
use crate::iter::{Cover, LoserTree, Tombstones, same_key};

/// The keys that a stream reads: from `start` up to `end` or `last`, whichever comes first.
#[derive(Debug, Clone, Default)]
pub struct Stretch {
    /// First key.
    pub start: Option<Vec<u8>>,
    /// First key after the stretch.
    pub end: Option<Vec<u8>>,
    /// Last key.
    pub last: Option<Vec<u8>>,
}

/// Reads all sources and hands over the entries of one of them that must stay.
#[derive(Debug)]
pub struct ThinStream<C, O, T> {
    order: O,
    tree: LoserTree<C, O>,
    own: usize,
    gc: VersionGc,
    tombstones: Vec<T>,
    cover: Cover,
    stretch: Stretch,
    started: bool,
    /// The key of the last entry, once there was one.
    key: Option<Vec<u8>>,
    /// A pending delete of that key; it is dropped unless something older stays.
    waits: Option<Seq>,
}

impl<C: Cursor, O: KeyOrder, T: Tombstones> ThinStream<C, O, T> {
    /// A stream over `cursors`, of which `own` is the one that is written. `gc` must be for an
    /// output with older entries below. `tombstones` are those of all sources.
    pub fn new(
        order: O,
        cursors: Vec<C>,
        own: usize,
        mut tombstones: Vec<T>,
        gc: VersionGc,
        stretch: Stretch,
    ) -> Self {
        tombstones.retain(|source| !source.is_empty());
        let tree = LoserTree::new(order.clone(), cursors);
        let cover = Cover::default();
        Self {
            order,
            tree,
            own,
            gc,
            tombstones,
            cover,
            stretch,
            started: false,
            key: None,
            waits: None,
        }
    }

    /// Reads up to `entries_max` entries and hands those that stay to `out`, in cursor order.
    /// Returns whether more follow. After an error the stream must not be used further.
    pub fn step(&mut self, out: &mut impl Out, entries_max: usize) -> Result<bool> {
        if !self.started {
            self.tree.seek_start(self.stretch.start.as_deref())?;
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

    fn has_entry(&self) -> bool {
        if !self.tree.valid() {
            return false;
        }
        let (key, Stretch { end, last, .. }) = (self.tree.key(), &self.stretch);
        end.as_ref().is_none_or(|end| self.order.compare(key, end).is_lt())
            && last.as_ref().is_none_or(|last| self.order.compare(key, last).is_le())
    }

    /// Decides about the current entry of the tree.
    fn take(&mut self, out: &mut impl Out) -> Result<()> {
        let (seq, kind, own) = (self.tree.seq(), self.tree.kind(), self.tree.source() == self.own);
        let key = self.tree.key();
        if !self.key.as_ref().is_some_and(|last| same_key(&self.order, key, last)) {
            self.key.get_or_insert_default().clear();
            self.key.get_or_insert_default().extend_from_slice(key);
            // The pending delete had nothing to hide.
            self.waits = None;
            self.gc.start_key();
        }
        let tombstones = (&mut self.cover, &self.tombstones[..]);
        let verdict = self.gc.decide_at(&self.order, key, (seq, kind), tombstones);
        let stays = matches!(verdict, Verdict::Keep(_) | Verdict::Operand);
        // Seeded: a delete is dropped although something older of its key stays.
        bug!("compaction_thin_drops_deletes", self.waits = None);
        if !own || stays {
            // This entry is older than the delete, and it stays: in its own source or here.
            if let Some(delete) = self.waits.take() {
                out(key, delete, Kind::Delete, &[])?;
            }
        }
        if !own || !stays {
            return Ok(());
        }
        let needless = kind == Kind::Delete && self.gc.is_seen_by_all(seq);
        if needless {
            self.waits = Some(seq);
            return Ok(());
        }
        out(key, seq, kind, self.tree.value())
    }
}
