//! Range tombstones (R18).
//!
//! A memtable, a delta slice and a partition each have their own list. A list is *fragmented*
//! once: the key space is cut at every start and end, so that a lookup is one binary search for
//! the fragment of a key and one lookup in that fragment.
//!
//! Storing for every fragment all tombstones that cover it (as RocksDB does) takes quadratic space
//! when ranges nest: a queue that trims itself with `..key` ten thousand times would need 50
//! million numbers. Instead, [`Fragments`] is a segment tree over the fragments: each tombstone is
//! stored in the O(log n) nodes that make up its range, and a lookup reads the nodes above its
//! fragment. The stored form holds each bound once and each tombstone once.
//!
//! Invariants:
//! 1. `bounds` ascend strictly in the keyspace's order; fragment `i` is `bounds[i-1]..bounds[i]`,
//!    without a lower bound for `i = 0`, without an upper one for `i = bounds.len()`.
//! 2. Every span is a non-empty range of fragments, with a sequence number in `1..SEQ_MAX`.
//! 3. Spans are sorted by (seq descending, first, last), without repetition.
//! 4. The sequence numbers of one tree node are sorted from new to old (follows from 3).

mod cutter;
mod fragments;
mod sweep;
#[cfg(test)]
mod tests;
mod tombstone;

pub use cutter::Cutter;
pub use fragments::{Fragment, Fragments};
pub use sweep::FragmentIter;
pub use tombstone::{Hull, RangeTombstone, compare_ends, compare_starts};
