//! The entries of several memtables in one order, for readers that would otherwise search each.
//!
//! [`Merged`] has the addresses of the entries of tables that take no more writes, sorted as in a
//! skiplist. It copies no entry: a pointer for each, about a twentieth of the entries' memory. A seek
//! in it costs one binary search, instead of a search in each of the tables.
//!
//! Invariants:
//! 1. Every address is that of a node of one of `tables`, which live as long as the list.
//! 2. The nodes stand in the order (keyspace, key, sequence number descending), and none is pending.

#![allow(unsafe_code, reason = "holds nodes of tables that it owns, beyond a borrow")]

use super::cursor::MemCursor;
use super::node::{Header, NodeRef};
use super::prefetch::prefetch;
use super::skiplist::{PENDING, Target};
use super::table::Memtable;
use crate::base::{Bytewise, Cursor, KeyOrder, KeyspaceId, Kind, Seq};
use crate::error::Result;
use std::cmp::Ordering;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// How many nodes ahead are fetched while nodes are visited in order.
const AHEAD: usize = 4;

/// A cursor fetches so many nodes ahead, all together when it comes to a place. Each lies on another page, and
/// processors look up the addresses of several pages at the same time if they are asked for them together.
const FETCHED: usize = 8;

/// Every so many nodes have a copy of their keys' beginnings.
const SAMPLED: usize = 16;

/// See the head of this module.
#[derive(Debug, Default)]
pub struct Merged {
    tables: Vec<Arc<Memtable<Bytewise>>>,
    nodes: Box<[NonNull<Header>]>,
    /// The beginning of the key of every node whose index is a multiple of `SAMPLED`: a search compares
    /// these, side by side in memory, before it follows addresses.
    samples: Box<[Sample]>,
}

/// The keyspace and the first 16 bytes of a key, padded with zeros: ordered as their entries are, where
/// they differ.
type Sample = (KeyspaceId, [u64; 2]);

fn sample(keyspace: KeyspaceId, key: &[u8]) -> Sample {
    (keyspace, [Bytewise.head(key), second_head(key)])
}

// SAFETY: the addresses point to nodes of `tables` (invariant 1), which any thread may read.
unsafe impl Send for Merged {}
// SAFETY: as above.
unsafe impl Sync for Merged {}

impl Merged {
    /// The entries of `older` and of `tables`. Nobody writes to these tables any more, and what was
    /// written to them is ordered before this call.
    pub fn new(older: Option<&Self>, tables: &[Arc<Memtable<Bytewise>>]) -> Self {
        let mut lists: Vec<_> = tables.iter().map(|table| nodes_of(table)).collect();
        // Pair by pair, so a pointer is moved once for each doubling of the tables and not once for
        // each of them.
        while lists.len() > 1 {
            lists = lists
                .chunks(2)
                .map(|pair| merge(&pair[0], pair.get(1).map_or(&[], |list| list)))
                .collect();
        }
        let nodes = lists.pop().unwrap_or_default();
        let mut all: Vec<_> = older.map(|older| older.tables.clone()).unwrap_or_default();
        all.extend_from_slice(tables);
        let nodes = match older {
            Some(older) => merge(&older.nodes, &nodes),
            None => nodes,
        };
        Self::of_nodes(all, nodes.into_boxed_slice())
    }

    /// The entries of one table, of which these are all nodes, in order.
    pub(super) fn of_sorted(table: Arc<Memtable<Bytewise>>, nodes: Box<[NonNull<Header>]>) -> Self {
        Self::of_nodes(vec![table], nodes)
    }

    fn of_nodes(tables: Vec<Arc<Memtable<Bytewise>>>, nodes: Box<[NonNull<Header>]>) -> Self {
        let every = nodes.iter().step_by(SAMPLED);
        // SAFETY: all are nodes of these tables (invariant 1).
        let every = every.map(|node| unsafe { NodeRef::from_raw(*node) });
        let samples = every.map(|node| sample(node.keyspace(), node.key())).collect();
        Self { tables, nodes, samples }
    }

    /// How many tables there are.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// The memory of the addresses.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.samples)
    }

    /// A cursor over the entries of one keyspace.
    pub fn cursor(self: &Arc<Self>, keyspace: KeyspaceId) -> MergedCursor {
        MergedCursor { merged: self.clone(), keyspace, present: None }
    }

    /// The key of the middle entry of a keyspace.
    pub fn middle(&self, keyspace: KeyspaceId) -> Option<Vec<u8>> {
        let from = self.find((keyspace, [0; 2]), |node| node.keyspace() < keyspace);
        let upto = self.find((keyspace, [u64::MAX; 2]), |node| node.keyspace() <= keyspace);
        let middle = self.node(from + upto.checked_sub(from)? / 2);
        middle.filter(|node| node.keyspace() == keyspace).map(|node| node.key().to_vec())
    }

    fn node(&self, at: usize) -> Option<NodeRef<'_>> {
        // SAFETY: invariant 1; the node lives as long as the borrow of the list, and was ordered
        // before the list was made.
        self.nodes.get(at).map(|node| unsafe { NodeRef::from_raw(*node) })
    }

    /// The index of the first node for which `precedes` does not hold; `at`: the sample of the target.
    fn find(&self, at: Sample, precedes: impl Fn(NodeRef<'_>) -> bool) -> usize {
        // What has a smaller sample precedes the target, and what has a greater one does not.
        let smaller = self.samples.partition_point(|sample| *sample < at);
        let equal = match self.samples.get(smaller) {
            Some(next) if *next == at => self.samples[smaller..].partition_point(|s| *s == at),
            _ => 0,
        };
        let from = smaller.saturating_sub(1) * SAMPLED;
        let upto = ((smaller + equal) * SAMPLED).min(self.nodes.len());
        let nodes = &self.nodes[from..upto];
        // The search looks at some of these, and each lies on another page: they are asked for together.
        for node in nodes.iter().step_by(2).take(SAMPLED / 2) {
            prefetch(node.as_ptr());
        }
        // SAFETY: as in `node`.
        from + nodes.partition_point(|node| precedes(unsafe { NodeRef::from_raw(*node) }))
    }
}

/// The nodes of a table, in order.
fn nodes_of(table: &Memtable<Bytewise>) -> Vec<NonNull<Header>> {
    let mut nodes = Vec::with_capacity(table.entries() as usize);
    let mut next = table.list.first();
    while let Some(node) = next {
        next = node.next();
        if let Some(next) = next {
            prefetch(next.as_ptr().as_ptr());
        }
        if node.seq() != PENDING {
            nodes.push(node.as_ptr());
        }
    }
    nodes
}

/// Two sorted lists as one.
fn merge(a: &[NonNull<Header>], b: &[NonNull<Header>]) -> Vec<NonNull<Header>> {
    // Keys that are written in order come in lists that follow each other: nothing is compared then.
    if are_apart(a, b) {
        return join(a, b);
    }
    if are_apart(b, a) {
        return join(b, a);
    }
    let mut merged = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while let (Some(first), Some(second)) = (a.get(i), b.get(j)) {
        for (list, at) in [(a, i), (b, j)] {
            if let Some(later) = list.get(at + AHEAD) {
                prefetch(later.as_ptr());
            }
        }
        if compare(*first, *second).is_le() {
            merged.push(*first);
            i += 1;
        } else {
            merged.push(*second);
            j += 1;
        }
    }
    merged.extend_from_slice(&a[i..]);
    // Seeded: scans miss the last entries of a memtable.
    if !bug!("memtable_merged_forgets_an_end") {
        merged.extend_from_slice(&b[j..]);
    }
    merged
}

/// Whether all of `a` precedes all of `b`.
fn are_apart(a: &[NonNull<Header>], b: &[NonNull<Header>]) -> bool {
    // Seeded: lists that overlap are taken for lists that follow each other.
    let first = if bug!("memtable_merged_takes_heads_for_lists") { a.first() } else { a.last() };
    first.zip(b.first()).is_none_or(|(last, first)| compare(*last, *first).is_le())
}

fn join(a: &[NonNull<Header>], b: &[NonNull<Header>]) -> Vec<NonNull<Header>> {
    let mut joined = Vec::with_capacity(a.len() + b.len());
    joined.extend_from_slice(a);
    joined.extend_from_slice(b);
    joined
}

/// The order of two nodes of tables that the caller holds (invariant 2).
#[inline]
fn compare(a: NonNull<Header>, b: NonNull<Header>) -> Ordering {
    // SAFETY: both are nodes of tables that the caller holds (invariant 1).
    let (a, b) = unsafe { (NodeRef::from_raw(a), NodeRef::from_raw(b)) };
    (a.keyspace().cmp(&b.keyspace()))
        .then_with(|| a.head().cmp(&b.head()))
        .then_with(|| second_head(a.key()).cmp(&second_head(b.key())))
        .then_with(|| a.key().cmp(b.key()))
        .then_with(|| b.seq().cmp(&a.seq()))
}

/// The second eight bytes of a key, padded with zeros: most keys with the same first eight bytes differ
/// there, and numbers are compared faster than slices.
#[inline]
fn second_head(key: &[u8]) -> u64 {
    Bytewise.head(key.get(8..).unwrap_or_default())
}

/// A cursor over one keyspace of a [`Merged`].
pub struct MergedCursor {
    merged: Arc<Merged>,
    keyspace: KeyspaceId,
    /// The index of the present node, if the cursor is valid.
    present: Option<usize>,
}

impl MergedCursor {
    fn present(&self) -> Option<NodeRef<'_>> {
        self.present.and_then(|at| self.merged.node(at))
    }

    /// Fetches the nodes of these indexes, with the first bytes of their values.
    #[inline]
    fn fetch(&self, indexes: Range<usize>) {
        let nodes = &self.merged.nodes;
        let upto = indexes.end.min(nodes.len());
        for node in nodes.get(indexes.start..upto).unwrap_or_default() {
            let address = node.as_ptr().cast::<u8>();
            (0..2).for_each(|line| prefetch(address.wrapping_add(64 * line)));
        }
    }

    /// Stands on the node at this index if it belongs to the keyspace.
    fn stand(&mut self, at: Option<usize>) {
        let mine =
            |at: &usize| self.merged.node(*at).is_some_and(|node| node.keyspace() == self.keyspace);
        self.present = at.filter(mine);
    }

    /// Finds the first node that is not less than this.
    fn find(&self, key: &[u8], below: Seq, precedes: Precedes) -> usize {
        let Some(table) = self.merged.tables.first() else { return 0 };
        let target = Target { keyspace: self.keyspace, head: Bytewise.head(key), key, below };
        self.merged.find(sample(self.keyspace, key), |node| match precedes {
            Precedes::Entry => table.list.precedes(node, &target),
            Precedes::Key => table.list.precedes_key(node, &target),
        })
    }
}

/// A cursor over one memtable, or over several whose entries were merged.
#[allow(clippy::large_enum_variant, reason = "it is moved into its iterator at once")]
pub enum MemorySource<O: KeyOrder> {
    /// Over one.
    Table(MemCursor<O>),
    /// Over several.
    Merged(MergedCursor),
}

/// What is before a target: entries, or only smaller keys.
enum Precedes {
    Entry,
    Key,
}

impl Cursor for MergedCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.present.is_some()
    }

    #[inline]
    fn peek(&self) -> Option<(&[u8], Seq, Kind)> {
        self.present().map(|node| (node.key(), node.seq(), node.kind()))
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.present().map_or(&[], NodeRef::key)
    }

    #[inline]
    fn seq(&self) -> Seq {
        self.present().map_or(0, NodeRef::seq)
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
        let at = self.find(key, below, Precedes::Entry);
        self.fetch(at..at + FETCHED);
        self.stand(Some(at));
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        let at = self.find(key, PENDING, Precedes::Key);
        self.fetch(at.saturating_sub(FETCHED)..at);
        self.stand(at.checked_sub(1));
        Ok(())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        let keyspace = self.keyspace;
        let at = self.merged.find((keyspace, [0; 2]), |node| node.keyspace() < keyspace);
        self.stand(Some(at));
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        let keyspace = self.keyspace;
        let at = self.merged.find((keyspace, [u64::MAX; 2]), |node| node.keyspace() <= keyspace);
        self.stand(at.checked_sub(1));
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if let Some(at) = self.present {
            self.fetch(at + FETCHED..at + FETCHED + 1);
            self.stand(Some(at + 1));
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(at) = self.present {
            let ahead = at.saturating_sub(FETCHED);
            self.fetch(ahead..ahead + 1);
            self.stand(at.checked_sub(1));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
