//! The bounds of an iterator.

use crate::base::{KeyBuf, KeyOrder};
use std::ops::Bound;

/// Where an iterator ends: lower and upper bound of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The lower bound.
    pub low: Bound<KeyBuf>,
    /// The upper bound.
    pub high: Bound<KeyBuf>,
}

impl Bounds {
    /// Whether entries whose keys go from `first` to `last` may lie within the bounds.
    pub fn touch<O: KeyOrder>(&self, order: &O, (first, last): (&[u8], &[u8])) -> bool {
        let before = match &self.low {
            Bound::Included(low) => order.compare(last, low).is_lt(),
            Bound::Excluded(low) => order.compare(last, low).is_le(),
            Bound::Unbounded => false,
        };
        let behind = match &self.high {
            Bound::Included(high) => order.compare(first, high).is_gt(),
            Bound::Excluded(high) => order.compare(first, high).is_ge(),
            Bound::Unbounded => false,
        };
        !before && !behind
    }

    /// Whether keys of `start..end` (`None`: without such an end) may lie within the bounds.
    pub fn meet<O: KeyOrder>(
        &self,
        order: &O,
        (start, end): (Option<&[u8]>, Option<&[u8]>),
    ) -> bool {
        let begins = |end| match &self.low {
            Bound::Included(low) | Bound::Excluded(low) => order.compare(low, end).is_lt(),
            Bound::Unbounded => true,
        };
        start.is_none_or(|start| self.end_behind(order, start)) && end.is_none_or(begins)
    }

    /// Whether `key` lies below the upper bound.
    pub fn end_behind<O: KeyOrder>(&self, order: &O, key: &[u8]) -> bool {
        match &self.high {
            Bound::Included(high) => order.compare(key, high).is_le(),
            Bound::Excluded(high) => order.compare(key, high).is_lt(),
            Bound::Unbounded => true,
        }
    }

    /// Whether there are keys from `upper` on, where a part of the tree ends, and the bounds reach into them.
    pub fn reach_behind<O: KeyOrder>(&self, order: &O, upper: Option<&[u8]>) -> bool {
        let Some(upper) = upper else { return false };
        match &self.high {
            Bound::Included(high) => order.compare(upper, high).is_le(),
            Bound::Excluded(high) => order.compare(upper, high).is_lt(),
            Bound::Unbounded => true,
        }
    }

    /// Whether there are keys before `lower`, where a part of the tree begins, and the bounds reach into
    /// them.
    pub fn reach_before<O: KeyOrder>(&self, order: &O, lower: Option<&[u8]>) -> bool {
        let Some(lower) = lower else { return false };
        match &self.low {
            Bound::Included(low) | Bound::Excluded(low) => order.compare(low, lower).is_lt(),
            Bound::Unbounded => true,
        }
    }

    /// The bounds, cut to the keys from `lower` (inclusive) to `upper` (exclusive).
    pub fn within<O: KeyOrder>(
        &self,
        order: &O,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Self {
        let lower = lower.filter(|lower| self.reach_before(order, Some(lower)));
        let upper = upper.filter(|upper| self.reach_behind(order, Some(upper)));
        Self {
            low: lower.map_or_else(|| self.low.clone(), |lower| Bound::Included(lower.into())),
            high: upper.map_or_else(|| self.high.clone(), |upper| Bound::Excluded(upper.into())),
        }
    }
}

impl Default for Bounds {
    /// All keys.
    fn default() -> Self {
        Self { low: Bound::Unbounded, high: Bound::Unbounded }
    }
}
