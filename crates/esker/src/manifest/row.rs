//! A row of a tree: neighbouring partitions, or spans of a tier, that cover all keys.
//!
//! 1. The partitions of a row are sorted and adjacent: each ends where the next begins. The first
//!    has no lower bound and the last no upper bound. A row has at least one partition.
//! 2. The heads of the lower bounds stand beside each other. So a search under byte order compares
//!    numbers, and reads partitions only where heads are equal.
//! 3. The bytes of all bases are summed when the row is made, which looks at each partition anyway.

use crate::base::KeyOrder;
use crate::manifest::Partition;
use std::cmp::Ordering;
use std::sync::Arc;

/// Neighbouring partitions that cover all keys.
#[derive(Debug, Clone)]
pub struct Row {
    partitions: Vec<Arc<Partition>>,
    /// Heads of the lower bounds (0 for the first), for a search that loads no partition.
    heads: Vec<u64>,
    base_bytes: u64,
}

impl Row {
    /// The row of these partitions, which obey invariant 1.
    pub fn new(partitions: Vec<Arc<Partition>>) -> Self {
        let head = |p: &Arc<Partition>| p.lower.as_deref().map_or(0, crate::base::head_of);
        let base_bytes = partitions.iter().map(|partition| partition.base.bytes()).sum();
        Self { heads: partitions.iter().map(head).collect(), base_bytes, partitions }
    }

    /// The bytes of all bases; 0 for a tier.
    pub fn base_bytes(&self) -> u64 {
        self.base_bytes
    }

    /// The partitions, ascending.
    #[inline]
    pub fn partitions(&self) -> &[Arc<Partition>] {
        &self.partitions
    }

    /// The index of the partition that holds `key`.
    #[inline]
    pub fn find<O: KeyOrder>(&self, order: &O, key: &[u8]) -> usize {
        if self.partitions.len() == 1 {
            return 0;
        }
        let from = if O::BYTEWISE {
            // Partitions with a greater head begin behind the key; among equal heads the full
            // bounds decide.
            let head = crate::base::head_of(key);
            let after = self.heads.partition_point(|h| *h <= head);
            let before = self.heads[..after].partition_point(|h| *h < head);
            before.max(1)..after.max(1)
        } else {
            1..self.partitions.len()
        };
        let at_or_before = |p: &Arc<Partition>| {
            p.lower.as_deref().is_none_or(|lower| order.compare(lower, key) != Ordering::Greater)
        };
        from.start + self.partitions[from.clone()].partition_point(at_or_before) - 1
    }

    /// The index of the partition that begins exactly at `lower`.
    pub fn position<O: KeyOrder>(&self, order: &O, lower: Option<&[u8]>) -> Option<usize> {
        let at = lower.map_or(0, |lower| self.find(order, lower));
        (self.partitions[at].lower.as_deref() == lower).then_some(at)
    }
}
