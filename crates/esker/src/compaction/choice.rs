//! Which partitions and spans a caller's compaction takes up.
//!
//! `compact` is for a range of keys. It takes up the partitions there that a compaction could make
//! smaller, and those spans of tiers that hold something. Pure: nothing here does I/O, except that
//! the caller looks at blocks to say which segments compression would make smaller.

use super::queue::PartitionKey;
use super::values;
use crate::base::{Bytewise, FileId, Filter, KeyOrder, KeyspaceId, Millis};
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::error::Result;
use crate::iter::Bounds;
use crate::manifest::{Partition, Row, Tree, Version};
use crate::run::{Run, Segment};
use crate::sync::Interruption;
use std::ops::Bound;
use std::sync::Arc;

/// What a caller wants to be compacted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The branch.
    pub branch: KeyspaceId,
    /// Only this keyspace of it.
    pub keyspace: Option<&'a KeyspaceState>,
    /// The keys.
    pub bounds: &'a Bounds,
    /// What ends the caller's wait.
    pub interruption: Interruption<'a>,
}

impl Wanted<'_> {
    /// Whether a tree with this owner is meant.
    pub fn includes(&self, owner: &KeyspaceState) -> bool {
        owner.home.branch == self.branch && self.keyspace.is_none_or(|only| only.id == owner.id)
    }
}

/// The lower bounds of the partitions within `bounds` that `gains` accepts.
fn choose<O: KeyOrder>(
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
) -> Chosen {
    let mut chosen = Chosen::default();
    for (id, tree) in version.trees() {
        let Some((row, owner)) = tree.row(tier).zip(owner(*id)) else { continue };
        let lowers = match &owner.order {
            Order::Bytewise => choose(&Bytewise, row, bounds, &holds),
            Order::Custom(order) => choose(order, row, bounds, &holds),
            Order::Missing(_) => Vec::new(),
        };
        let key = |lower| PartitionKey { keyspace: *id, tier, lower };
        chosen.keys.extend(lowers.into_iter().map(key));
    }
    chosen
}

/// What is requested for a caller.
#[derive(Debug, Default)]
pub struct Chosen {
    /// The partitions or spans.
    pub keys: Vec<PartitionKey>,
    /// Those of which every segment is rewritten: a filter sees all entries, including those that a
    /// compaction would take over by reference.
    pub whole: Vec<PartitionKey>,
    /// These filters.
    pub filters: Vec<Filter>,
}

/// The wanted partitions that `gains` accepts or that have a filter, in the trees that have an owner. An error if
/// the comparator of a keyspace is missing that the caller has named.
pub fn choose_partitions(
    version: &Version,
    wanted: &Wanted<'_>,
    owner: impl Fn(KeyspaceId) -> Option<Arc<KeyspaceState>>,
    gains: impl Fn(&Partition) -> bool,
) -> Result<Chosen> {
    let (mut all, bounds) = (Chosen::default(), wanted.bounds);
    for (id, tree) in version.trees() {
        let Some(owner) = owner(*id) else { continue };
        let filter = owner.traits().filter.clone();
        // To look at blocks may take long.
        let ended = || wanted.interruption.check().is_err();
        let takes = |p: &Partition| filter.is_some() || !ended() && gains(p);
        let chosen = match &owner.order {
            Order::Bytewise => choose(&Bytewise, &tree.rows()[0], bounds, takes),
            Order::Custom(order) => choose(order, &tree.rows()[0], bounds, takes),
            Order::Missing(name) if wanted.keyspace.is_some() => {
                return Err(missing_order(&owner.name, name));
            }
            Order::Missing(_) => Vec::new(),
        };
        let chosen = chosen.into_iter().map(|lower| PartitionKey::of_partition(*id, lower));
        if let Some(filter) = filter {
            all.whole.extend(chosen.clone());
            all.filters.push(filter);
        }
        all.keys.extend(chosen);
    }
    wanted.interruption.check()?;
    Ok(all)
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
        || values::holds_dead(p)
}

/// The partition that begins at `lower`.
pub fn partition_at(
    keyspace: &KeyspaceState,
    tree: &Tree,
    lower: Option<&[u8]>,
) -> Result<Option<Arc<Partition>>> {
    let at = match &keyspace.order {
        Order::Bytewise => tree.position(&Bytewise, lower),
        Order::Custom(order) => tree.position(order, lower),
        Order::Missing(name) => return Err(missing_order(&keyspace.name, name)),
    };
    Ok(at.map(|at| tree.partitions()[at].clone()))
}

/// The segments of these runs that lie in a new file, without those taken over by reference.
pub fn written_to<'r>(
    file: Option<FileId>,
    runs: impl Iterator<Item = &'r Run>,
) -> Vec<Arc<Segment>> {
    let segments = runs.flat_map(|run| run.segments().iter().chain(run.tombstones()));
    segments.filter(|segment| Some(segment.meta().file) == file).cloned().collect()
}
