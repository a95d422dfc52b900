//! The walk from greater keys to smaller ones, in which the versions of a key come from the oldest to the newest.

use super::{LEAP_AFTER, Place, VisibleIter};
use crate::base::{Cursor, EXPIRY_BYTES, KeyOrder, Kind, LaterValue, Seq, expired, split};
use crate::error::Result;
use crate::iter::Tombstones;

/// The newest visible version of a key: its sequence number, its kind, and how its value is read if it is
/// separated.
type Newest = (Seq, Kind, Option<LaterValue>);

impl<C: Cursor + 'static, O: KeyOrder, T: Tombstones> VisibleIter<C, O, T> {
    /// Goes backward from the tree's entry to the first entry that is shown. No visible version of
    /// the tree's key may be after the tree.
    pub(super) fn settle_backward(&mut self) -> Result<()> {
        let mut unseen = 0;
        while self.tree.valid() && !self.below_low() {
            if self.tree.seq() >= self.at {
                // The oldest version left is too new, so the others are too.
                unseen += 1;
                if unseen % LEAP_AFTER == 0 {
                    self.remember_key();
                    self.tree.seek_before(&self.key)?;
                } else {
                    self.step_back()?;
                }
                continue;
            }
            if self.shows_in_place() {
                self.place = Place::There;
                return Ok(());
            }
            let (seq, kind, later) = self.take_newest()?;
            let hidden = !self.tombstones.is_empty() && self.key_is_covered(seq);
            if !hidden && self.shows(kind, later)? {
                self.place = Place::Backward;
                return Ok(());
            }
            if hidden {
                self.leap_over_span(true)?;
            }
        }
        Ok(())
    }

    /// Whether the tree, which walks backward, is on a put that is shown and known to be the only visible version
    /// of its key.
    #[inline]
    fn shows_in_place(&self) -> bool {
        self.tombstones.is_empty() && self.tree.kind() == Kind::Put && self.tree.shows_newest()
    }

    /// Whether a key is shown whose newest visible version was copied to `value`, which then holds what is
    /// shown. A separated value is read only now: no version that is not shown costs a read, and damage in
    /// one hides nothing.
    fn shows(&mut self, kind: Kind, later: Option<LaterValue>) -> Result<bool> {
        if let Some(later) = later {
            if expired(split(kind, &self.value).0, self.time) {
                return Ok(false);
            }
            self.value = later().map_err(|error| self.tree.fail(error))?;
        }
        Ok(kind == Kind::Put || self.shows_special(kind)?)
    }

    /// Whether a key is shown whose newest visible version, copied to `value`, is no plain put;
    /// `value` then holds what is shown. The tree is before all visible versions, and stays there.
    #[cold]
    fn shows_special(&mut self, kind: Kind) -> Result<bool> {
        match kind {
            Kind::Delete => Ok(false),
            Kind::Put | Kind::SeparatedPut => Ok(true),
            Kind::ExpiringPut | Kind::ExpiringSeparatedPut => {
                let gone = expired(split(kind, &self.value).0, self.time);
                // Seeded: a scan from the end shows expired entries.
                let gone = gone && !bug!("iter_expired_shown_backward");
                self.value.drain(..EXPIRY_BYTES.min(self.value.len()));
                Ok(!gone)
            }
            Kind::Merge | Kind::ExpiringMerge => {
                self.tree.seek(&self.key, self.at)?;
                // The newest version exists, because it was read before and a snapshot does not
                // change.
                let shown = if self.tree.valid() { self.fold() } else { Ok(false) };
                let refused = std::mem::replace(&mut self.place, Place::Outside) == Place::Refused;
                self.tree.seek_before(&self.key)?;
                if refused {
                    self.place = Place::RefusedBackward;
                }
                shown
            }
        }
    }

    /// Copies the newest visible version of the tree's key and goes before all of them.
    fn take_newest(&mut self) -> Result<Newest> {
        let head = self.remember_key();
        let mut newest = self.take_version();
        for _ in 0..LEAP_AFTER {
            self.step_back()?;
            if !self.tree.valid() || self.tree.seq() >= self.at || !self.tree_is_at_key(head) {
                return Ok(newest);
            }
            newest = self.take_version();
        }
        // Many versions: seek to the newest, then step before it.
        self.tree.seek(&self.key, self.at)?;
        if self.tree.valid() && self.tree_is_at_key(head) {
            newest = self.take_version();
        }
        self.tree.seek_before(&self.key)?;
        Ok(newest)
    }

    fn take_version(&mut self) -> Newest {
        if !O::BYTEWISE {
            // Versions of one key may differ in its bytes; the newest version's are shown.
            self.key.clear();
            self.key.extend_from_slice(self.tree.key());
        }
        self.value.clear();
        self.value.extend_from_slice(self.tree.value());
        (self.tree.seq(), self.tree.kind(), self.tree.value_later())
    }
}
