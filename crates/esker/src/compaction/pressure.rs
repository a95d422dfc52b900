//! How full a tree is: what the runs over a key say about the rate of writers.
//!
//! Every place where runs wait is in the queue once it is due. So the fullest path leads through one
//! of the most urgent parts, and looking at these is enough: the work does not grow with the tree.
//! Pure: nothing here does I/O.

#[cfg(test)]
mod tests;

use super::policy;
use super::queue::{PartitionKey, Urgent};
use crate::base::{Bytewise, KeyOrder, KeyspaceId};
use crate::catalog::{KeyspaceState, Order};
use crate::error::Error;
use crate::manifest::{Partition, Tree, Version};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Parts that are due, with their scores.
type Scores = HashMap<PartitionKey, f64>;

/// How full trees are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Fullness {
    /// Of the fullest path of the fullest tree, as [`policy::fill`] says it.
    pub fill: f64,
    /// The tiers of that tree.
    pub tiers: usize,
    /// Bytes in the deltas of damaged partitions, which stay.
    pub left: u64,
}

/// How full the fullest tree is.
pub fn fullest(
    version: &Version,
    urgent: &Urgent,
    owner: impl Fn(KeyspaceId) -> Option<Arc<KeyspaceState>>,
) -> Fullness {
    let scores = urgent.parts.iter().map(|(key, score, _)| (key.clone(), *score)).collect();
    let mut fullest = Fullness::default();
    for (key, _, runs_max) in &urgent.parts {
        let Some((owner, tree)) = owner(key.keyspace).zip(version.tree(key.keyspace)) else {
            continue;
        };
        let known = Known { scores: &scores, damaged: &urgent.damaged, runs_max: *runs_max };
        let fill = match &owner.order {
            Order::Bytewise => fill(&Bytewise, tree, key, known),
            Order::Custom(order) => fill(order, tree, key, known),
            Order::Missing(_) => continue,
        };
        if fill > fullest.fill {
            fullest = Fullness { fill, tiers: tree.tiers().len(), ..fullest };
        }
    }
    fullest.left = left(urgent.damaged.keys().filter_map(|key| {
        let (owner, tree) = owner(key.keyspace).zip(version.tree(key.keyspace))?;
        match &owner.order {
            Order::Bytewise => damaged(&Bytewise, tree, key),
            Order::Custom(order) => damaged(order, tree, key),
            // Where it lies is not known, so what it holds slows others as it did before.
            Order::Missing(_) => None,
        }
    }));
    fullest
}

/// The partition of this name, if it is one: the pending runs of spans are no debt.
fn damaged<'t, O: KeyOrder>(
    order: &O,
    tree: &'t Tree,
    part: &PartitionKey,
) -> Option<&'t Arc<Partition>> {
    let row = tree.rows().first().filter(|_| part.tier == 0)?;
    row.position(order, part.lower.as_deref()).map(|at| &row.partitions()[at])
}

/// Bytes of the deltas in these partitions. What branches share counts once, as in the sums over trees.
fn left<'t>(parts: impl Iterator<Item = &'t Arc<Partition>>) -> u64 {
    let mut seen = HashSet::new();
    parts.filter(|part| seen.insert(Arc::as_ptr(part))).map(|part| part.delta_bytes()).sum()
}

/// What is known of the parts of a path.
#[derive(Clone, Copy)]
struct Known<'a> {
    scores: &'a Scores,
    damaged: &'a HashMap<PartitionKey, Error>,
    /// The pending runs at which a span is due.
    runs_max: usize,
}

/// How full the path of keys through a part that is due is, as [`policy::fill`] says it. Its key is
/// the lower bound of the part. The runs of a damaged part do not count: no work will take them
/// away, so writers that waited for it would wait for ever (S16).
fn fill<O: KeyOrder>(order: &O, tree: &Tree, part: &PartitionKey, known: Known<'_>) -> f64 {
    let (mut runs, mut late) = (0, 0.0);
    for (tier, row) in tree.rows().iter().enumerate() {
        let at = part.lower.as_deref().map_or(0, |lower| row.find(order, lower));
        let found = &row.partitions()[at];
        let lower = found.lower.clone();
        let key = PartitionKey { keyspace: part.keyspace, tier, lower };
        // Seeded: runs that wait for ever over damage slow writers down for ever.
        if known.damaged.contains_key(&key) && !bug!("compaction_damage_paces_writers") {
            continue;
        }
        runs += found.deltas.len() + usize::from(tier == 0 && !found.base.is_empty());
        let score = known.scores.get(&key).copied().unwrap_or_default();
        // The base is not late.
        late += policy::late(found.deltas.len(), score);
    }
    policy::fill(runs, late, tree.tiers().len(), known.runs_max)
}
