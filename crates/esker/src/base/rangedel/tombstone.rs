//! One range tombstone, and how its bounds compare.
//!
//! A bound may be absent: a start that is `None` lies below every key, an end that is `None` lies
//! above every key. The two comparisons therefore treat `None` differently.

use crate::base::{KeyOrder, Seq};
use std::cmp::Ordering;

/// The deletion of every entry in `start..end` that is older than `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First key that is deleted; `None`: no lower bound.
    pub start: Option<Vec<u8>>,
    /// First key after the range; `None`: no upper bound.
    pub end: Option<Vec<u8>>,
    /// Its sequence number: it deletes entries with smaller ones.
    pub seq: Seq,
}

impl RangeTombstone {
    /// Whether `key` lies in the range.
    pub fn contains<O: KeyOrder>(&self, order: &O, key: &[u8]) -> bool {
        let after_start = self.start.as_ref().is_none_or(|start| order.compare(start, key).is_le());
        after_start && self.end.as_ref().is_none_or(|end| order.compare(key, end).is_lt())
    }
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

/// The start and the end of an interval of keys; `None`: unbounded.
pub type Hull<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);
