//! The cursor over one keyspace of a memtable.
//!
//! It owns a reference to its table, so its nodes stay in place. Other threads may insert entries
//! around it at any time; whether it finds them does not matter, because they are newer than
//! anything its reader may see. The same holds for an entry that is published while the cursor
//! stands on it, so the cursor reads the sequence number once, on arrival.
//!
//! There are no links backward. One search finds a node about 16 entries before and remembers the
//! nodes from there on; each further step back takes the last of them.

#![allow(unsafe_code, reason = "holds nodes of a table that it owns, beyond a borrow")]

use super::node::{Header, NodeRef};
use super::prefetch::prefetch;
use super::skiplist::{PENDING, Target};
use super::table::Memtable;
use crate::base::{Cursor, KeyOrder, KeyspaceId, Kind, Seq};
use crate::error::Result;
use std::ptr::NonNull;
use std::sync::Arc;

/// See the head of this module.
pub struct MemCursor<O: KeyOrder> {
    table: Arc<Memtable<O>>,
    keyspace: KeyspaceId,
    /// The node and its sequence number at the time of arrival, if the cursor is valid.
    present: Option<(NonNull<Header>, Seq)>,
    /// Nodes right before the present one, in order; empty when not known.
    before: Vec<NonNull<Header>>,
}

// SAFETY: the node pointers point into the arena of `table`, which the cursor owns a share of;
// through `&MemCursor` they are only read, and nodes may be read by any thread.
unsafe impl<O: KeyOrder> Send for MemCursor<O> {}
// SAFETY: as above.
unsafe impl<O: KeyOrder> Sync for MemCursor<O> {}

impl<O: KeyOrder> MemCursor<O> {
    pub(super) fn new(table: Arc<Memtable<O>>, keyspace: KeyspaceId) -> Self {
        Self { table, keyspace, present: None, before: Vec::new() }
    }

    fn node(&self, header: NonNull<Header>) -> NodeRef<'_> {
        // SAFETY: every pointer in the cursor came from a node of `self.table`, which lives as
        // long as the borrow of the cursor.
        unsafe { NodeRef::from_raw(header) }
    }

    fn present(&self) -> Option<NodeRef<'_>> {
        self.present.map(|(header, _)| self.node(header))
    }

    fn target<'k>(&self, key: &'k [u8], below: Seq) -> Target<'k> {
        Target { keyspace: self.keyspace, head: self.table.list.order.head(key), key, below }
    }

    /// The node as a position of the cursor, if it belongs to the keyspace and is not pending.
    fn stand(&self, node: NodeRef<'_>) -> Option<(NonNull<Header>, Seq)> {
        let seq = node.seq();
        (seq != PENDING && node.keyspace() == self.keyspace).then_some((node.as_ptr(), seq))
    }

    /// The first entry of the keyspace at or after `node`.
    fn forward_from(&self, mut node: Option<NodeRef<'_>>) -> Option<(NonNull<Header>, Seq)> {
        while let Some(found) = node.filter(|node| node.keyspace() == self.keyspace) {
            if let Some(place) = self.stand(found) {
                if let Some(next) = found.next() {
                    prefetch(next.as_ptr().as_ptr());
                }
                return Some(place);
            }
            node = found.next();
        }
        None
    }

    /// Goes to the last entry of the keyspace at or before `node`.
    fn move_back_from(&mut self, node: Option<NonNull<Header>>) {
        let mut candidate = node;
        while let Some(header) = candidate {
            let node = self.node(header);
            if node.keyspace() != self.keyspace {
                break;
            }
            if let Some(place) = self.stand(node) {
                self.present = Some(place);
                return;
            }
            candidate = self.take_before(header);
        }
        self.present = None;
    }

    /// The node before `header`, from the remembered ones or by a search.
    fn take_before(&mut self, header: NonNull<Header>) -> Option<NonNull<Header>> {
        if self.before.is_empty() {
            let mut before = std::mem::take(&mut self.before);
            self.table.list.collect_before(self.node(header), &mut before);
            self.before = before;
        }
        self.before.pop()
    }
}

impl<O: KeyOrder> Memtable<O> {
    /// A cursor over the entries of one keyspace. Pending entries are absent to it.
    pub fn cursor(self: &Arc<Self>, keyspace: KeyspaceId) -> MemCursor<O> {
        MemCursor::new(Arc::clone(self), keyspace)
    }
}

impl<O: KeyOrder> Cursor for MemCursor<O> {
    #[inline]
    fn valid(&self) -> bool {
        self.present.is_some()
    }

    #[inline]
    fn peek(&self) -> Option<(&[u8], Seq, Kind)> {
        let (node, seq) = (self.present()?, self.present?.1);
        Some((node.key(), seq, node.kind()))
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.present().map_or(&[], NodeRef::key)
    }

    #[inline]
    fn seq(&self) -> Seq {
        self.present.map_or(0, |(_, seq)| seq)
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.present().map_or(Kind::Delete, NodeRef::kind)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.present().map_or(&[], NodeRef::value)
    }

    fn seek(&mut self, key: &[u8], below: Seq) -> Result<()> {
        self.before.clear();
        self.present = self.forward_from(self.table.list.seek(&self.target(key, below)));
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.before.clear();
        let node = self.table.list.seek_before(&self.target(key, PENDING));
        let node = node.map(NodeRef::as_ptr);
        self.move_back_from(node);
        Ok(())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.before.clear();
        self.present = self.forward_from(self.table.list.seek_keyspace(self.keyspace));
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.before.clear();
        let node = self.table.list.seek_keyspace_end(self.keyspace).map(NodeRef::as_ptr);
        self.move_back_from(node);
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.before.clear();
        self.present = self.forward_from(self.present().and_then(NodeRef::next));
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some((header, _)) = self.present {
            let before = self.take_before(header);
            self.move_back_from(before);
        }
        Ok(())
    }
}
