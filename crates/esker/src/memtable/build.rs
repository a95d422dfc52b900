//! Builds a memtable from entries in any order, before it has readers.
//!
//! Most of the cost of an insert into a large skiplist is the search with its cache misses.
//! Recovery has all entries before the first reader, so it does not search: it copies each entry to
//! a node, sorts the addresses of the nodes, and links the nodes from the first to the last.
//!
//! The addresses are sorted by *digits* of 8 bytes that are kept beside them: first the keyspace,
//! then the key, 8 bytes at a time. A digit is loaded only for entries whose previous digits are
//! all equal. So keys with a long common prefix cost one pass over the entries per 8 bytes of
//! prefix, not one cache miss per comparison. (Radix exchange with cached digits; Sinha and Zobel
//! describe relatives of it for strings.)

use super::arena::ChunkPool;
use super::node::{Entry, Header, NodeRef};
use super::skiplist::is_published;
use super::table::Memtable;
use crate::base::rangedel::RangeTombstone;
use crate::base::{Bytewise, KeyOrder, KeyspaceId, Kind, Seq};
use std::cmp::Ordering;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a key in one digit.
const DIGIT_BYTES: usize = 8;
/// Groups of at most this many entries are sorted by comparing whole keys.
const SMALL: usize = 16;

/// See the head of this module.
pub struct MemtableBuilder {
    table: Memtable<Bytewise>,
    rows: Vec<Row>,
}

/// An entry that waits for its place.
#[derive(Clone, Copy)]
struct Row {
    digit: u64,
    node: NonNull<Header>,
}

impl MemtableBuilder {
    /// Starts empty, for a table as [`Memtable::with_pool`] makes it.
    pub fn new(capacity_hint_bytes: usize, pool: Arc<ChunkPool>) -> Self {
        let table = Memtable::with_pool(Bytewise, capacity_hint_bytes, pool);
        Self { table, rows: Vec::new() }
    }

    /// Adds a version of a key. A key must not get the same sequence number twice.
    pub fn insert(&mut self, keyspace: KeyspaceId, key: &[u8], seq: Seq, kind: Kind, value: &[u8]) {
        debug_assert!(is_published(seq), "sequence numbers fit 56 bits");
        let places = self.table.prefetch_filters(keyspace, key);
        let head = Bytewise.head(key);
        let node = self.table.list.stage(&Entry { keyspace, head, key, seq, kind, value });
        self.rows.push(Row { digit: 0, node });
        self.table.set_filters(places);
    }

    /// Adds a range tombstone: it hides the keys of its range up to its sequence number.
    pub fn delete_range(&mut self, keyspace: KeyspaceId, tombstone: RangeTombstone) {
        self.table.delete_range(keyspace, tombstone);
    }

    /// The memory that the table will use; building takes another 16 bytes per entry.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// The table with all added entries.
    pub fn finish(mut self) -> Memtable<Bytewise> {
        sort(&self.table, &mut self.rows);
        self.table.list.link_staged(self.rows.iter().map(|row| row.node));
        self.table
    }
}

/// Sorts the rows of `table` by keyspace, key, and sequence number descending.
fn sort(table: &Memtable<Bytewise>, rows: &mut [Row]) {
    let node = |row: &Row| table.list.staged(row.node);
    // Groups whose keys are equal up to a digit, and the number of that digit. This is a list, not
    // recursion, since keys of 65,535 bytes have 8,192 digits.
    let mut open = vec![(0..rows.len(), 0_usize)];
    while let Some((range, depth)) = open.pop() {
        let from = range.start;
        let group = &mut rows[range];
        let known = depth.saturating_sub(1) * DIGIT_BYTES;
        if group.len() <= SMALL {
            group.sort_unstable_by(|a, b| compare(node(a), node(b), known));
            continue;
        }
        for row in &mut *group {
            row.digit = digit(node(row), depth);
        }
        let first = group[0].digit;
        if group.iter().any(|row| row.digit != first) {
            group.sort_unstable_by_key(|row| row.digit);
        }
        let mut at = from;
        for equal in group.chunk_by_mut(|a, b| a.digit == b.digit) {
            let range = at..at + equal.len();
            at = range.end;
            // Digits are padded with zeros, so equal digits do not mean equal bytes where a key
            // ends.
            let ends = |row: &Row| node(row).key().len() <= depth * DIGIT_BYTES;
            if equal.len() > 1 && depth > 0 && equal.iter().any(ends) {
                equal.sort_unstable_by(|a, b| compare(node(a), node(b), known));
            } else if equal.len() > 1 {
                open.push((range, depth + 1));
            }
        }
    }
}

/// Digit 0 is the keyspace; the others are stretches of the key.
fn digit(node: NodeRef<'_>, depth: usize) -> u64 {
    let Some(before) = depth.checked_sub(1) else { return u64::from(node.keyspace()) };
    let rest = node.key().get(before * DIGIT_BYTES..).unwrap_or_default();
    crate::base::head_of(rest)
}

/// Compares two entries whose keys are known to be equal up to `known` bytes.
fn compare(a: NodeRef<'_>, b: NodeRef<'_>, known: usize) -> Ordering {
    let (key_a, key_b) = (a.key(), b.key());
    let skip = known.min(key_a.len()).min(key_b.len());
    (a.keyspace().cmp(&b.keyspace()))
        .then_with(|| key_a[skip..].cmp(&key_b[skip..]))
        .then_with(|| b.seq().cmp(&a.seq()))
}

impl std::fmt::Debug for MemtableBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemtableBuilder").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
