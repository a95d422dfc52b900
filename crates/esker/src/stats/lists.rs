//! The lists of the statistics: what has one sample per keyspace, level or owner.
//!
//! The labels of a sample name the element that it belongs to. While statistics are decoded, a
//! [`Draft`] finds the element again, or makes it, in constant time: a database may have hundreds
//! of thousands of keyspaces.

use super::held::{BranchUse, SnapshotUse};
use super::report::{LevelShape, Stats, TreeShape};
use std::collections::HashMap;

/// Statistics that are being put together from samples.
#[derive(Debug, Default)]
pub struct Draft {
    pub(super) stats: Stats,
    /// The places of the trees, by keyspace.
    trees: HashMap<String, usize>,
    /// The places of the snapshots, by position.
    snapshots: HashMap<u64, usize>,
    /// The places of the branches, by name.
    branches: HashMap<String, usize>,
}

impl Draft {
    fn tree(&mut self, keyspace: &str) -> &mut TreeShape {
        let trees = &mut self.stats.trees;
        let at = match self.trees.get(keyspace) {
            Some(at) => *at,
            None => {
                self.trees.insert(keyspace.to_owned(), trees.len());
                trees.push(TreeShape { keyspace: keyspace.to_owned(), ..TreeShape::default() });
                trees.len() - 1
            }
        };
        &mut trees[at]
    }
}

/// An element of a list.
pub trait Entity: Sized {
    /// Calls `visit` with every element and the values of its labels.
    fn walk(stats: &Stats, visit: &mut dyn FnMut(&[&str], &Self));

    /// The element with these labels, which is made if it is missing. `None`: they name none.
    fn place<'d>(draft: &'d mut Draft, labels: &[&str]) -> Option<&'d mut Self>;
}

impl Entity for TreeShape {
    fn walk(stats: &Stats, visit: &mut dyn FnMut(&[&str], &Self)) {
        stats.trees.iter().for_each(|tree| visit(&[&tree.keyspace], tree));
    }

    fn place<'d>(draft: &'d mut Draft, labels: &[&str]) -> Option<&'d mut Self> {
        let [keyspace] = labels else { return None };
        Some(draft.tree(keyspace))
    }
}

impl Entity for SnapshotUse {
    fn walk(stats: &Stats, visit: &mut dyn FnMut(&[&str], &Self)) {
        for snapshot in &stats.snapshots {
            visit(&[&snapshot.position.to_string(), &snapshot.label], snapshot);
        }
    }

    fn place<'d>(draft: &'d mut Draft, labels: &[&str]) -> Option<&'d mut Self> {
        let [position, label] = labels else { return None };
        let position = position.parse().ok()?;
        let snapshots = &mut draft.stats.snapshots;
        let at = *draft.snapshots.entry(position).or_insert(snapshots.len());
        if at == snapshots.len() {
            let label = (*label).to_owned();
            snapshots.push(Self { position, label, ..Self::default() });
        }
        snapshots.get_mut(at)
    }
}

impl Entity for BranchUse {
    fn walk(stats: &Stats, visit: &mut dyn FnMut(&[&str], &Self)) {
        stats.branches.iter().for_each(|branch| visit(&[&branch.name], branch));
    }

    fn place<'d>(draft: &'d mut Draft, labels: &[&str]) -> Option<&'d mut Self> {
        let [name] = labels else { return None };
        let branches = &mut draft.stats.branches;
        let at = *draft.branches.entry((*name).to_owned()).or_insert(branches.len());
        if at == branches.len() {
            branches.push(Self { name: (*name).to_owned(), ..Self::default() });
        }
        branches.get_mut(at)
    }
}

/// The label of the bases.
const BASE: &str = "base";
/// The label of a delta begins with this; its number follows.
const DELTA: &str = "delta_";
/// The label of a tier begins with this; its number follows.
const TIER: &str = "tier_";

impl Entity for LevelShape {
    fn walk(stats: &Stats, visit: &mut dyn FnMut(&[&str], &Self)) {
        for tree in &stats.trees {
            visit(&[&tree.keyspace, BASE], &tree.base);
            for (age, delta) in tree.deltas.iter().enumerate() {
                visit(&[&tree.keyspace, &format!("{DELTA}{age}")], delta);
            }
            for (below, tier) in tree.tiers.iter().enumerate() {
                visit(&[&tree.keyspace, &format!("{TIER}{}", below + 1)], tier);
            }
        }
    }

    fn place<'d>(draft: &'d mut Draft, labels: &[&str]) -> Option<&'d mut Self> {
        let [keyspace, level] = labels else { return None };
        let tree = draft.tree(keyspace);
        if *level == BASE {
            return Some(&mut tree.base);
        }
        let (levels, at) = match level.strip_prefix(TIER) {
            Some(tier) => (&mut tree.tiers, tier.parse::<usize>().ok()?.checked_sub(1)?),
            None => (&mut tree.deltas, level.strip_prefix(DELTA)?.parse().ok()?),
        };
        // Levels come in order, so a number cannot make more of them than there are samples.
        if at == levels.len() {
            levels.push(LevelShape::default());
        }
        levels.get_mut(at)
    }
}
