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
use crate::manifest::{Tree, Version};
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
    for key in &urgent.damaged {
        let Some((owner, tree)) = owner(key.keyspace).zip(version.tree(key.keyspace)) else {
            continue;
        };
        fullest.left += match &owner.order {
            Order::Bytewise => left(&Bytewise, tree, key),
            Order::Custom(order) => left(order, tree, key),
            Order::Missing(_) => 0,
        };
    }
    fullest
}

/// Bytes of the deltas that stay in a damaged part; those of a span are not counted as a debt.
fn left<O: KeyOrder>(order: &O, tree: &Tree, part: &PartitionKey) -> u64 {
    if part.tier > 0 {
        return 0;
    }
    let row = &tree.rows()[0];
    let at = row.position(order, part.lower.as_deref());
    at.map_or(0, |at| row.partitions()[at].delta_bytes())
}

/// What is known of the parts of a path.
#[derive(Clone, Copy)]
struct Known<'a> {
    scores: &'a Scores,
    damaged: &'a HashSet<PartitionKey>,
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
        if known.damaged.contains(&key) && !bug!("compaction_damage_paces_writers") {
            continue;
        }
        runs += found.deltas.len() + usize::from(tier == 0 && !found.base.is_empty());
        let score = known.scores.get(&key).copied().unwrap_or_default();
        // The base is not late.
        late += policy::late(found.deltas.len(), score);
    }
    policy::fill(runs, late, tree.tiers().len(), known.runs_max)
}
