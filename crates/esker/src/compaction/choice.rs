//! Which partitions and spans a caller's compaction takes up.
//!
//! `compact` is for a range of keys. It takes up the partitions there that a compaction could make
//! smaller, and those spans of tiers that hold something. Pure: nothing here does I/O, except that
//! the caller looks at blocks to say which segments compression would make smaller.

use super::queue::PartitionKey;
use crate::base::{Bytewise, KeyOrder, KeyspaceId, Millis};
use crate::catalog::{KeyspaceState, Order};
use crate::iter::Bounds;
use crate::manifest::{Partition, Row, Version};
use crate::run::Segment;
use std::ops::Bound;
use std::sync::Arc;

/// The lower bounds of the partitions within `bounds` that `gains` accepts.
pub fn choose<O: KeyOrder>(
    order: &O,
    row: &Row,
    bounds: &Bounds,
    gains: impl Fn(&Partition) -> bool,
) -> Vec<Option<Vec<u8>>> {
    let begins_within = |p: &Partition| match (&bounds.high, &p.lower) {
        (Bound::Included(high), Some(lower)) => order.compare(lower, high).is_le(),
        (Bound::Excluded(high), Some(lower)) => order.compare(lower, high).is_lt(),
        _ => true,
    };
    let ends_within = |p: &Partition| match (&bounds.low, &p.upper) {
        (Bound::Included(low) | Bound::Excluded(low), Some(upper)) => {
            order.compare(low, upper).is_lt()
        }
        _ => true,
    };
    row.partitions()
        .iter()
        .filter(|p| begins_within(p) && ends_within(p) && gains(p))
        .map(|p| p.lower.clone())
        .collect()
}

/// The spans of a tier within `bounds` that `holds` accepts, in the trees that have an owner.
pub fn choose_spans(
    version: &Version,
    tier: usize,
    bounds: &Bounds,
    owner: impl Fn(KeyspaceId) -> Option<Arc<KeyspaceState>>,
    holds: impl Fn(&Partition) -> bool,
) -> Vec<PartitionKey> {
    let mut keys = Vec::new();
    for (id, tree) in version.trees() {
        let Some((row, owner)) = tree.row(tier).zip(owner(*id)) else { continue };
        let lowers = match &owner.order {
            Order::Bytewise => choose(&Bytewise, row, bounds, &holds),
            Order::Custom(order) => choose(order, row, bounds, &holds),
            Order::Missing(_) => Vec::new(),
        };
        let key = |lower| PartitionKey { keyspace: *id, tier, lower };
        keys.extend(lowers.into_iter().map(key));
    }
    keys
}

/// Whether a compaction could make a partition smaller. `unsettled` says which segments compression
/// would make smaller; `time` is that of the earliest reader.
pub fn is_smaller_compacted(
    p: &Partition,
    no_snapshots: bool,
    time: Millis,
    unsettled: impl Fn(&Arc<Segment>) -> bool,
) -> bool {
    let base = &p.base;
    let metas = || base.segments().iter().map(|segment| segment.meta());
    let old_versions = metas().any(|m| m.deletes > 0 || m.shadowed || m.specials.operands > 0);
    let expired = metas().any(|m| m.specials.any_expired(time));
    expired
        || !p.deltas.is_empty()
        || (no_snapshots && (old_versions || !base.tombstones().is_empty()))
        || base.segments().iter().any(unsettled)
}
