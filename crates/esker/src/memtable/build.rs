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
//!
//! Most tables save even these passes. The builder knows the *prefix* that all keys so far have in
//! common, and takes the digit behind it while it has the key at hand. A key that shortens the prefix
//! leaves the digits before it outdated: those alone are loaded again when the table is finished. Only
//! a table with several keyspaces begins with the keyspace and the first byte.

#![allow(unsafe_code, reason = "addresses of nodes of its own table may be sent with it")]

use super::merged::Merged;
use super::node::{Entry, Header, NodeRef};
use super::skiplist::{Chain, is_published};
use super::table::Memtable;
use crate::base::rangedel::RangeTombstone;
use crate::base::{Bytewise, KeyOrder, KeyspaceId, Kind, Seq, head_of};
use crate::budget::ChunkPool;
use crate::sync::both;
use std::cmp::Ordering;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a key in one digit.
const DIGIT_BYTES: usize = 8;
/// Groups of at most this many entries are sorted by comparing whole keys.
const SMALL: usize = 16;

/// From this many entries on, two threads sort them.
const HALVED_ROWS: usize = 32 << 10;
/// How many digits say where the middle is.
const SAMPLES: usize = 255;

/// See the head of this module.
pub struct MemtableBuilder {
    table: Memtable<Bytewise>,
    rows: Vec<Row>,
    filtered: bool,
    common: Common,
}

/// What the keys so far have in common.
#[derive(Default)]
struct Common {
    /// The keyspace and the prefix of all keys; `None`: there is no key yet.
    keys: Option<(KeyspaceId, Prefix)>,
    /// There are several keyspaces.
    mixed: bool,
    /// The digits of so many rows were taken behind a longer prefix.
    outdated: usize,
}

/// What all keys begin with.
struct Prefix {
    bytes: Vec<u8>,
    /// The first 16 bytes of a key that begins with it, where the second number has ones; `None`: it is
    /// longer.
    short: Option<(u128, u128)>,
}

/// An entry that waits for its place.
#[derive(Clone, Copy)]
struct Row {
    digit: u64,
    node: NonNull<Header>,
}

// SAFETY: it is an address of a node of the table that the builder owns. Nobody else knows it, and
// whoever follows it has the table.
unsafe impl Send for Row {}

impl MemtableBuilder {
    /// Starts empty, for a table as [`Memtable::with_pool`] makes it. A table that is not `filtered`
    /// has no filter: it is about to be flushed, and a read that comes before searches it.
    pub fn new(capacity_hint_bytes: usize, pool: Arc<ChunkPool>, filtered: bool) -> Self {
        let hint = if filtered { capacity_hint_bytes } else { 0 };
        let mut table = Memtable::with_pool(Bytewise, hint, pool);
        if !filtered {
            table.leave_filter_off();
        }
        Self { table, rows: Vec::new(), filtered, common: Common::default() }
    }

    /// Adds a version of a key. A key must not get the same sequence number twice.
    pub fn insert(&mut self, keyspace: KeyspaceId, key: &[u8], seq: Seq, kind: Kind, value: &[u8]) {
        debug_assert!(is_published(seq), "sequence numbers fit 56 bits");
        let places = self.filtered.then(|| self.table.prefetch_filters(keyspace, key));
        let head = Bytewise.head(key);
        let node = self.table.list.stage(&Entry { keyspace, head, key, seq, kind, value });
        let prefix = self.common.prefix_with(keyspace, key, self.rows.len());
        self.rows.push(Row { digit: head_of(&key[prefix..]), node });
        if let Some(places) = places {
            self.table.set_filters(places);
        }
    }

    /// Adds a range tombstone: it hides the keys of its range up to its sequence number.
    pub fn delete_range(&mut self, keyspace: KeyspaceId, tombstone: RangeTombstone) {
        self.table.delete_range(keyspace, tombstone);
    }

    /// The memory of the table, and of what building it takes.
    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.rows.len() * size_of::<Row>()
    }

    /// The table with all added entries, and their addresses in order.
    pub fn finish(mut self) -> (Arc<Memtable<Bytewise>>, Merged) {
        let (first, depth) = match &self.common.keys {
            Some((_, prefix)) if !self.common.mixed => (prefix.bytes.len(), 1),
            _ => (0, 0),
        };
        let sort = Sort { table: &self.table, first };
        for row in self.rows.iter_mut().take(self.common.outdated) {
            row.digit = sort.digit(sort.node(row), depth);
        }
        let at = halves(&mut self.rows);
        let (low, high) = self.rows.split_at_mut(at);
        let (high, low) = match at {
            0 => (Some(sort.chain(high, depth)), None),
            _ => {
                let high = || sort.chain(high, depth);
                let (high, low) = both("esker-replay-2", high, || sort.chain(low, depth));
                (Some(high), Some(low))
            }
        };
        self.table.list.link_staged(low.into_iter().chain(high));
        let nodes = self.rows.iter().map(|row| row.node).collect();
        let table = Arc::new(self.table);
        (table.clone(), Merged::of_sorted(table, nodes))
    }
}

impl Common {
    /// The length of the prefix that this key has in common with all before it; `rows`: how many
    /// these are.
    #[inline]
    fn prefix_with(&mut self, keyspace: KeyspaceId, key: &[u8], rows: usize) -> usize {
        let Some((first, prefix)) = &mut self.keys else {
            self.keys = Some((keyspace, Prefix::new(key)));
            return key.len();
        };
        if keyspace == *first && prefix.is_of(key) {
            return prefix.bytes.len();
        }
        let shared = prefix.bytes.iter().zip(key).take_while(|(a, b)| a == b).count();
        *prefix = Prefix::new(&key[..shared]);
        self.mixed |= keyspace != *first;
        // Where there are several keyspaces, the first digit is the keyspace.
        self.outdated = if self.mixed { usize::MAX } else { rows };
        shared
    }
}

impl Prefix {
    fn new(bytes: &[u8]) -> Self {
        let mut start = [0; 16];
        let short = start.get_mut(..bytes.len()).map(|place| {
            place.copy_from_slice(bytes);
            u128::MAX.checked_shl(128 - 8 * bytes.len() as u32).unwrap_or(0)
        });
        let short = short.map(|mask| (u128::from_be_bytes(start), mask));
        Self { bytes: bytes.to_vec(), short }
    }

    /// Whether a key begins with it. Most prefixes are short, and need no call of `memcmp`.
    #[inline]
    fn is_of(&self, key: &[u8]) -> bool {
        match (self.short, key.first_chunk()) {
            (Some((start, mask)), Some(key)) => (u128::from_be_bytes(*key) ^ start) & mask == 0,
            _ => key.starts_with(&self.bytes),
        }
    }
}

/// Moves rows with smaller digits before the others, if there are so many that two threads sort them
/// faster. Returns how many were moved to the front.
fn halves(rows: &mut [Row]) -> usize {
    if rows.len() < HALVED_ROWS {
        return 0;
    }
    let mut samples: Vec<u64> =
        rows.iter().step_by(rows.len() / SAMPLES).map(|row| row.digit).collect();
    samples.sort_unstable();
    let middle = samples[samples.len() / 2];
    let (mut low, mut high) = (0, rows.len());
    while low < high {
        if rows[low].digit < middle {
            low += 1;
        } else {
            high -= 1;
            rows.swap(low, high);
        }
    }
    low
}

/// Sorts the rows of a table by keyspace, key, and sequence number descending.
struct Sort<'t> {
    table: &'t Memtable<Bytewise>,
    /// Where digit 1 begins in a key: all keys are equal before that.
    first: usize,
}

impl<'t> Sort<'t> {
    fn node(&self, row: &Row) -> NodeRef<'t> {
        self.table.list.staged(row.node)
    }

    /// Digit 0 is the keyspace; the others are stretches of the key.
    fn digit(&self, node: NodeRef<'_>, depth: usize) -> u64 {
        let Some(before) = depth.checked_sub(1) else { return u64::from(node.keyspace()) };
        let at = self.first + before * DIGIT_BYTES;
        head_of(node.key().get(at..).unwrap_or_default())
    }

    /// Sorts rows, as [`Self::run`] does, and links their nodes.
    fn chain(&self, rows: &mut [Row], depth: usize) -> Chain {
        self.run(rows, depth);
        self.table.list.chain(rows.iter().map(|row| row.node))
    }

    /// Sorts rows with digits of this depth, before which nothing differs.
    fn run(&self, rows: &mut [Row], depth: usize) {
        // Groups whose keys are equal up to a digit, and the number of that digit. This is a list, not
        // recursion, since keys of 65,535 bytes have 8,192 digits.
        let mut open = vec![(0..rows.len(), depth)];
        let begin = depth;
        while let Some((range, depth)) = open.pop() {
            let from = range.start;
            let group = &mut rows[range];
            let known = self.first + depth.saturating_sub(1) * DIGIT_BYTES;
            if group.len() <= SMALL {
                group.sort_unstable_by(|a, b| compare(self.node(a), self.node(b), known));
                continue;
            }
            if depth > begin {
                for row in &mut *group {
                    row.digit = self.digit(self.node(row), depth);
                }
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
                let reach = self.first + depth * DIGIT_BYTES;
                let ends = |row: &Row| self.node(row).key().len() <= reach;
                if equal.len() > 1 && depth > 0 && equal.iter().any(ends) {
                    equal.sort_unstable_by(|a, b| compare(self.node(a), self.node(b), known));
                } else if equal.len() > 1 {
                    open.push((range, depth + 1));
                }
            }
        }
    }
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
