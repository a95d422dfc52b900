//! How full a tree is: what the runs over a key say about the rate of writers.
//!
//! Every place where runs wait is in the queue once it is due. So the fullest path leads through one
//! of the most urgent parts, and looking at these is enough: the work does not grow with the tree.
//! Pure: nothing here does I/O.

#[cfg(test)]
mod tests;

use super::policy;
use super::queue::PartitionKey;
use crate::base::{Bytewise, KeyOrder, KeyspaceId};
use crate::catalog::{KeyspaceState, Order};
use crate::manifest::{Tree, Version};
use std::collections::HashMap;
use std::sync::Arc;

/// Parts that are due, with their scores.
type Scores = HashMap<PartitionKey, f64>;

/// How full the fullest tree is, and how many tiers it has. `urgent` are the most urgent parts with
/// their scores, and the pending runs at which spans of their trees are due.
pub fn fullest(
    version: &Version,
    urgent: &[(PartitionKey, f64, usize)],
    owner: impl Fn(KeyspaceId) -> Option<Arc<KeyspaceState>>,
) -> (f64, usize) {
    let scores: Scores = urgent.iter().map(|(key, score, _)| (key.clone(), *score)).collect();
    let mut fullest = (0.0, 0);
    for (key, _, runs_max) in urgent {
        let Some((owner, tree)) = owner(key.keyspace).zip(version.tree(key.keyspace)) else {
            continue;
        };
        let scores = (&scores, *runs_max);
        let fill = match &owner.order {
            Order::Bytewise => fill(&Bytewise, tree, key, scores),
            Order::Custom(order) => fill(order, tree, key, scores),
            Order::Missing(_) => continue,
        };
        if fill > fullest.0 {
            fullest = (fill, tree.tiers().len());
        }
    }
    fullest
}

/// How full the path of keys through a part that is due is, as [`policy::fill`] says it. Its key is
/// the lower bound of the part. `runs_max` are the pending runs at which a span is due.
fn fill<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    part: &PartitionKey,
    (scores, runs_max): (&Scores, usize),
) -> f64 {
    let (mut runs, mut late) = (0, 0.0);
    for (tier, row) in tree.rows().iter().enumerate() {
        let at = part.lower.as_deref().map_or(0, |lower| row.find(order, lower));
        let found = &row.partitions()[at];
        runs += found.deltas.len() + usize::from(tier == 0 && !found.base.is_empty());
        let lower = found.lower.clone();
        let key = PartitionKey { keyspace: part.keyspace, tier, lower };
        let score = scores.get(&key).copied().unwrap_or_default();
        // The base is not late.
        late += policy::late(found.deltas.len(), score);
    }
    policy::fill(runs, late, tree.tiers().len(), runs_max)
}
