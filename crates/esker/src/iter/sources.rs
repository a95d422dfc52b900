//! The sources of an iterator, in memory that the iterators of a thread hand on.
//!
//! An iterator has one cursor for each memtable and run, some hundred bytes each, and a buffer for the key of each. Many
//! programs make an iterator, read a few entries and drop it. So what one leaves behind serves the next one of the same
//! thread: empty lists and buffers, which refer to no version and hold no block. It is in no account: at most about 45 KiB
//! for each thread.

use super::bounds::Bounds;
use super::loser_tree::{Contender, LoserTree};
use crate::base::{Cursor, KeyOrder, Seq};
use std::any::Any;
use std::cell::Cell;

/// Lists with room for more sources are not kept.
const SOURCES_MAX: usize = 48;
/// Buffers with room for more bytes are not kept.
const BUFFER_BYTES_MAX: usize = 256;

thread_local! {
    /// What the last iterator left behind: the [`Sources`] of one type of cursor.
    static LEFT: Cell<Option<Box<dyn Any>>> = const { Cell::new(None) };
}

/// The cursors that an iterator merges, and what is known of each.
#[derive(Debug)]
pub struct Sources<C> {
    cursors: Vec<C>,
    /// Every sequence number of a source is less than its bound.
    seq_bounds: Vec<Seq>,
    /// Room for the nodes of the tree over the cursors.
    nodes: Vec<Contender>,
    /// Buffers for cursors that are still to be made.
    buffers: Vec<Vec<u8>>,
    /// The bounds of the iterator.
    pub(super) bounds: Bounds,
}

impl<C: Cursor + 'static> Sources<C> {
    /// No sources yet, in the memory of an earlier iterator of this thread, with room for so many.
    pub fn with_room(count: usize) -> Box<Self> {
        let left = LEFT.try_with(Cell::take).ok().flatten();
        let mut sources: Box<Self> = left.and_then(|left| left.downcast().ok()).unwrap_or_default();
        sources.cursors.reserve_exact(count);
        sources.seq_bounds.reserve_exact(count);
        sources
    }

    /// Adds a source. Every sequence number in it is less than `seq_bound`; `SEQ_MAX` where nothing better is known.
    /// The bound decides whether the source can be moved past a range tombstone in one step.
    pub fn push(&mut self, cursor: C, seq_bound: Seq) {
        self.cursors.push(cursor);
        self.seq_bounds.push(seq_bound);
    }

    /// An empty buffer for a cursor.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// The tree over the cursors, which are in it from then on.
    #[inline(always)]
    pub(super) fn tree<O: KeyOrder>(&mut self, order: O) -> LoserTree<C, O> {
        let cursors = std::mem::take(&mut self.cursors);
        LoserTree::with_room(order, cursors, std::mem::take(&mut self.nodes))
    }

    /// The bounds, in the order of the sources.
    pub(super) fn seq_bounds(&self) -> &[Seq] {
        &self.seq_bounds
    }

    /// Bytes of itself, of the lists, without that of the cursors, and of the buffers.
    pub(super) fn own_bytes(&self) -> usize {
        let buffers: usize = self.buffers.iter().map(Vec::capacity).sum();
        let lists = size_of::<Self>() + self.buffers.capacity() * size_of::<Vec<u8>>();
        buffers + lists + self.seq_bounds.capacity() * size_of::<Seq>()
    }

    /// Drops the cursors, which are in this tree, and leaves the memory to the next iterator, with buffers of the
    /// iterator's own.
    pub(super) fn leave<O: KeyOrder>(
        mut self: Box<Self>,
        tree: &mut LoserTree<C, O>,
        own: [Vec<u8>; 2],
    ) {
        let (mut cursors, nodes) = tree.take_memory();
        let of_cursors = cursors.iter_mut().map(C::take_buffer);
        for mut buffer in own.into_iter().chain(of_cursors) {
            if (1..=BUFFER_BYTES_MAX).contains(&buffer.capacity())
                && self.buffers.len() < SOURCES_MAX
            {
                buffer.clear();
                self.buffers.push(buffer);
            }
        }
        // Seeded: what an iterator left behind shows its sources again.
        if !bug!("iter_left_cursors_stay") {
            cursors.clear();
        }
        // Seeded: bounds of sources of before hide what is newer than a range tombstone.
        if !bug!("iter_left_bounds_stay") {
            self.seq_bounds.clear();
        }
        (self.cursors, self.nodes, self.bounds) = (cursors, nodes, Bounds::default());
        if self.cursors.capacity() <= SOURCES_MAX {
            // A thread that ends keeps nothing.
            let _ = LEFT.try_with(|left| left.set(Some(self)));
        }
    }
}

impl<C> Default for Sources<C> {
    fn default() -> Self {
        Self {
            cursors: Vec::new(),
            seq_bounds: Vec::new(),
            nodes: Vec::new(),
            buffers: Vec::new(),
            bounds: Bounds::default(),
        }
    }
}

#[cfg(test)]
mod tests;
