//! What only branches and named snapshots hold.
//!
//! A run segment that the main branch also refers to is no space that the removal of a branch would
//! free, and neither is one that two branches refer to.

use crate::base::FileId;
use crate::catalog::{Catalog, DEFAULT_KEYSPACE_ID};
use crate::state::State;
use std::collections::HashMap;

/// Bytes of segments that only one branch refers to, by branch, the largest first; and how many
/// segments were looked at.
pub fn held_by_branches(state: &State, catalog: &Catalog) -> (Vec<(String, u64)>, u64) {
    if !catalog.is_branched() {
        return (Vec::new(), 0);
    }
    // `None`: several branches refer to it.
    let mut segments = 0;
    let mut owners: HashMap<(FileId, u64), (u64, Option<u64>)> = HashMap::new();
    for (id, tree) in state.version.trees() {
        let Some(branch) = catalog.by_id(*id).map(|keyspace| keyspace.home.branch) else {
            continue;
        };
        for segment in tree.all().flat_map(|partition| partition.segments()) {
            segments += 1;
            let meta = segment.meta();
            let owner = owners.entry(meta.place()).or_insert((meta.len, Some(branch.into())));
            if owner.1 != Some(branch.into()) {
                owner.1 = None;
            }
        }
    }
    let mut bytes: HashMap<u64, u64> = HashMap::new();
    for (len, owner) in owners.into_values() {
        if let Some(branch) = owner.filter(|branch| *branch != u64::from(DEFAULT_KEYSPACE_ID)) {
            *bytes.entry(branch).or_default() += len;
        }
    }
    let named = catalog.branches().filter_map(|branch| {
        let held = *bytes.get(&u64::from(branch.id))?;
        Some((branch.name.clone(), held))
    });
    let mut named: Vec<_> = named.collect();
    named.sort_by_key(|(_, held)| std::cmp::Reverse(*held));
    (named, segments)
}
