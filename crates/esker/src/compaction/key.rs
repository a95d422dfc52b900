//! Names of partitions, spans and requests, and those that say how full a tree is.

use super::scores::Place;
use crate::base::KeyspaceId;
use crate::error::Error;
use std::collections::HashMap;
use std::sync::Arc;

/// Names a partition, or a span of a tier.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// The row in which it is: 0 for partitions, otherwise the number of the tier (S14).
    pub tier: usize,
    /// Its lower bound.
    pub lower: Option<Vec<u8>>,
}

impl PartitionKey {
    /// Names a partition.
    pub fn of_partition(keyspace: KeyspaceId, lower: Option<Vec<u8>>) -> Self {
        Self { keyspace, tier: 0, lower }
    }

    /// Its place in any tree.
    pub(super) fn place(&self) -> Place {
        (self.tier, self.lower.clone())
    }
}

/// The number of what is requested together, to be taken back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request(pub(super) u64);

/// The requests of the background itself, which are not taken back.
pub const BACKGROUND: Request = Request(0);

/// What says how full a tree is.
#[derive(Debug, Default)]
pub struct Urgent {
    /// Partitions and spans with their scores, and the pending runs at which spans of their trees are due.
    pub parts: Vec<(PartitionKey, f64, usize)>,
    /// Those that are left alone, because their data are damaged or their comparator is missing:
    /// nobody waits for them (S16).
    pub damaged: Arc<HashMap<PartitionKey, Error>>,
}
