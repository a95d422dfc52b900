//! Range tombstones (R18).
//!
//! A memtable, a delta slice and a partition each have their own list. A list is *fragmented*
//! once: cut at every start and end, so that the fragments do not overlap and each carries the
//! sequence numbers of all tombstones that cover it, from new to old. A lookup is then one binary
//! search.

use crate::base::{KeyOrder, Seq};
use std::cmp::Ordering;

/// The removal of every key in `start..end` that is older than `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First key that is removed; `None`: no lower bound.
    pub start: Option<Vec<u8>>,
    /// First key after the range; `None`: no upper bound.
    pub end: Option<Vec<u8>>,
    /// Its sequence number: it removes entries with smaller ones.
    pub seq: Seq,
}

/// Compares two lower bounds; `None` is below every key.
pub fn compare_starts<O: KeyOrder>(order: &O, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Less,
        (_, None) => Ordering::Greater,
        (Some(a), Some(b)) => order.compare(a, b),
    }
}

/// Compares two upper bounds; `None` is above every key.
pub fn compare_ends<O: KeyOrder>(order: &O, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Greater,
        (_, None) => Ordering::Less,
        (Some(a), Some(b)) => order.compare(a, b),
    }
}
