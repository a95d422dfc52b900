//! What an iterator holds, and how it lets go of that.
//!
//! An iterator holds a block of each source that has blocks. Where all iterators hold too much ([`Pins`]), it keeps a
//! copy of the entry on which it stands, and its sources let their blocks go. It cannot do so where it shows no entry,
//! or one without its value.

use super::{Place, VisibleIter};
use crate::base::{Cursor, KeyOrder};
use crate::cache::{Looks, Pins};
use crate::iter::Tombstones;

impl<C: Cursor + 'static, O: KeyOrder, T: Tombstones> VisibleIter<C, O, T> {
    /// Looks whether iterators hold too much, and if so lets go what this one holds, after it has called `pause`;
    /// `beside`: bytes that its owner takes beside it.
    #[cold]
    pub fn look(&mut self, looks: &mut Looks, pins: &Pins, beside: usize, pause: impl FnOnce()) {
        // Seeded: an iterator that holds on counts as one that has let go.
        let can = self.can_let_go() || bug!("iter_holds_on_and_counts_as_let_go");
        if looks.lets_go(pins, self.held(), can) {
            pause();
            self.let_go();
        }
        looks.count_itself(pins, beside as u64 + self.own_bytes());
    }

    /// Bytes of blocks and indexes that it holds.
    fn held(&self) -> u64 {
        self.tree.held()
    }

    /// Bytes of the iterator itself: its cursors, and its buffers. What [`Self::held`] counts is not among them.
    fn own_bytes(&self) -> u64 {
        let lists = self.sources.as_ref().map_or(0, |sources| sources.own_bytes())
            + self.tombstones.capacity() * size_of::<T>();
        let buffers = self.key.capacity() + self.value.capacity();
        self.tree.own_bytes() + (lists + buffers) as u64
    }

    fn can_let_go(&self) -> bool {
        self.valid() && self.place != Place::InPieces
    }

    /// Keeps a copy of the shown entry and lets the rest go, if it can.
    fn let_go(&mut self) {
        if !self.can_let_go() || self.place == Place::Apart {
            return;
        }
        if self.place < Place::Backward {
            let mut value = std::mem::take(&mut self.value);
            value.clear();
            // Seeded: an iterator that has let go has no value, or an earlier one.
            if !bug!("iter_let_go_forgets_the_value") {
                value.extend_from_slice(self.value());
            }
            self.remember_key();
            self.value = value;
        }
        self.tree.let_go();
        self.place = Place::Apart;
    }
}
