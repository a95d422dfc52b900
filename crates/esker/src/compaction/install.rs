//! Where the results of pushes and compactions go: into their tree, and into those of branches that
//! have not diverged there (S12).
//!
//! 1. All trees are changed together, by one edit: each of them shows the result or what was there
//!    before, and the run segments of the result are never without a reference in between.
//! 2. Another tree gets a result only where it has the same partition or the same span over the same
//!    children ([`Partition::is_same`]), so what it holds there is what the work has read. Sequence
//!    numbers and snapshots are those of the whole database, so what the work respected is what
//!    the readers of every tree need.
//! 3. It gets it only if its keyspace has the same code and nobody works on it there. Then it is left
//!    to work of its own. Named snapshots never get one.
//! 4. Compactions of keyspaces with a filter are not shared: above the partition of another tree there
//!    may be operands, under which the filter must not be asked (S6), or there may be none, so that it
//!    must be asked.
//!
//! Pure: nothing here does I/O.

#[cfg(test)]
mod tests;

use super::partitioning::{Replaced, position, put_in_place, take_over};
use super::queue::PartitionKey;
use super::scores::fresh_share;
use super::slicing::segments_of;
use super::tiers::{Rows, Rules, reshape};
use crate::base::{Bytewise, KeyOrder, KeyspaceId, Seq};
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::compaction::flush_slices::Slice;
use crate::error::{Error, Result};
use crate::manifest::{Draft, Partition, Traits, Tree, TreeEdit, Version};
use crate::options::settings::Settings;
use crate::run::{Run, Segment};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// What a push made of the runs of a span.
#[derive(Debug)]
pub struct Pushed {
    /// The keyspace.
    pub keyspace: Arc<KeyspaceState>,
    /// The names of the code that took part.
    pub traits: Traits,
    /// The tier of the span.
    pub tier: usize,
    /// The span as it was when the push began.
    pub old: Arc<Partition>,
    /// What becomes of its runs in the row below.
    pub slices: Vec<Slice>,
}

/// The result of the compaction of a partition.
#[derive(Debug)]
pub struct Compacted {
    /// The keyspace.
    pub keyspace: Arc<KeyspaceState>,
    /// The names of the code that took part.
    pub traits: Traits,
    /// The partition as it was when the compaction began.
    pub old: Arc<Partition>,
    /// Its new base.
    pub base: Run,
    /// The snapshots that were respected, if a filter removed or changed anything.
    pub filtered_under: Option<Vec<Seq>>,
}

/// Every segment that pushes wrote.
pub fn segments_pushed(pushed: &[Pushed]) -> Vec<Arc<Segment>> {
    segments_of(pushed.iter().flat_map(|pushed| &pushed.slices))
}

/// Whether work is under way in a keyspace and row on the part that begins at a bound.
pub type IsBusy<'a> = dyn Fn(KeyspaceId, usize, Option<&[u8]>) -> bool + 'a;

/// The keyspaces in which the same code takes part as in this one, with these traits.
pub type Twins<'a> = dyn Fn(&KeyspaceState, &Traits) -> Vec<Arc<KeyspaceState>> + 'a;

/// What results are installed in.
pub struct Around<'a> {
    /// The trees.
    pub version: &'a Version,
    /// Sizes.
    pub settings: &'a Settings,
    /// Whether another tree may have a partition or span.
    pub elsewhere: &'a dyn Fn(&Arc<Partition>) -> bool,
    /// Whether work on a partition or span of a keyspace is under way, also that which ends with the
    /// change.
    pub busy: &'a IsBusy<'a>,
    /// The keyspaces of branches in which the same code takes part.
    pub twins: &'a Twins<'a>,
}

impl Around<'_> {
    /// Whether work goes on that does not end with the change.
    fn is_busy(&self, own: &HashSet<PartitionKey>, key: PartitionKey) -> bool {
        (self.busy)(key.keyspace, key.tier, key.lower.as_deref()) && !own.contains(&key)
    }

    /// Whether another tree may have the partition that begins where `old` does in a row.
    fn may_be_elsewhere<O: KeyOrder>(
        &self,
        order: &O,
        row: &[Arc<Partition>],
        old: &Partition,
    ) -> bool {
        let at = position(order, row, old.lower.as_deref());
        at.is_some_and(|at| (self.elsewhere)(&row[at]))
    }

    /// The rows with the tiers that the tree should have.
    fn reshape(&self, own: &HashSet<PartitionKey>, keyspace: &KeyspaceState, rows: &mut Rows) {
        let busy = |tier: usize, p: &Partition| {
            self.is_busy(own, PartitionKey { keyspace: keyspace.id, tier, lower: p.lower.clone() })
        };
        reshape(&keyspace.order, rows, Rules { busy: &busy, grows: true, settings: self.settings });
    }
}

/// The rows that result, by keyspace.
pub type Installed = BTreeMap<KeyspaceId, (Arc<KeyspaceState>, Rows)>;

/// Installs pushes, in their order.
pub fn pushes(pushed: &[Pushed], around: &Around<'_>) -> Result<Installed> {
    let key = |one: &Pushed| PartitionKey {
        keyspace: one.keyspace.id,
        tier: one.tier,
        lower: one.old.lower.clone(),
    };
    let own: HashSet<PartitionKey> = pushed.iter().map(key).collect();
    let mut trees = Installed::new();
    for one in pushed {
        match &one.keyspace.order {
            Order::Bytewise => push(&Bytewise, one, around, &own, &mut trees)?,
            Order::Custom(order) => push(order, one, around, &own, &mut trees)?,
            Order::Missing(name) => return Err(missing_order(&one.keyspace.name, name)),
        }
    }
    for (keyspace, rows) in trees.values_mut() {
        around.reshape(&own, keyspace, rows);
    }
    Ok(trees)
}

fn push<O: KeyOrder>(
    order: &O,
    one: &Pushed,
    around: &Around<'_>,
    own: &HashSet<PartitionKey>,
    trees: &mut Installed,
) -> Result<()> {
    let Pushed { keyspace, traits, tier, old, slices } = one;
    // The keyspace may have been dropped meanwhile.
    let Some(tree) = around.version.tree(keyspace.id) else { return Ok(()) };
    let row = tree.row(*tier).map_or(&[][..], |row| row.partitions());
    let shared = around.may_be_elsewhere(order, row, old);
    let busy = |tier: usize, p: &Partition| {
        let key = PartitionKey { keyspace: keyspace.id, tier, lower: p.lower.clone() };
        around.is_busy(own, key)
    };
    let rules = Rules { busy: &busy, grows: true, settings: around.settings };
    let new = || (keyspace.clone(), Rows::of(tree));
    let (_, rows) = trees.entry(keyspace.id).or_insert_with(new);
    let push = rows.push(order, (*tier, old, slices), rules);
    let what = "a span changed while being pushed: a defect of the engine";
    let push = push.ok_or_else(|| Error::invalid(what))?;
    if !shared {
        return Ok(());
    }
    for twin in (around.twins)(keyspace, traits) {
        let Some(tree) = around.version.tree(twin.id) else { continue };
        let busy = |tier: usize, p: &Partition| (around.busy)(twin.id, tier, p.lower.as_deref());
        // A tree is copied only if it takes something over.
        if !trees.contains_key(&twin.id) && push.place_in(order, tree.rows(), &busy).is_none() {
            continue;
        }
        let new = || (twin.clone(), Rows::of(tree));
        trees.entry(twin.id).or_insert_with(new).1.take_over(order, &push, &busy);
    }
    Ok(())
}

/// A tree in which compactions are installed, and the edits so far.
struct InTree {
    keyspace: Arc<KeyspaceState>,
    draft: Draft,
    edits: Vec<TreeEdit>,
}

impl InTree {
    fn of(keyspace: &Arc<KeyspaceState>, tree: &Tree) -> Self {
        Self { keyspace: keyspace.clone(), draft: Draft::of(tree), edits: Vec::new() }
    }
}

/// The partitions whose compactions are installed together. Only partitions whose results are
/// installed may be joined with others.
struct Batch {
    own: HashSet<PartitionKey>,
    to_come: HashSet<PartitionKey>,
}

impl Batch {
    /// Whether a partition must not be joined with others.
    fn keeps_apart(&self, around: &Around<'_>, id: KeyspaceId, lower: Option<&[u8]>) -> bool {
        let key = PartitionKey::of_partition(id, lower.map(<[u8]>::to_vec));
        self.to_come.contains(&key) || around.is_busy(&self.own, key)
    }
}

/// Installs compactions. `fresh` is told which share of the entries replaced nothing in other trees
/// than those that were compacted.
pub fn compactions(
    compacted: Vec<Compacted>,
    around: &Around<'_>,
    fresh: &dyn Fn(KeyspaceId, f64),
) -> Result<Installed> {
    let key = |one: &Compacted| PartitionKey::of_partition(one.keyspace.id, one.old.lower.clone());
    let own: HashSet<PartitionKey> = compacted.iter().map(key).collect();
    let mut batch = Batch { to_come: own.clone(), own };
    // Each tree is copied once, however many of its partitions were compacted.
    let mut trees: BTreeMap<KeyspaceId, InTree> = BTreeMap::new();
    for one in compacted {
        batch.to_come.remove(&key(&one));
        let (order, within) = (one.keyspace.order.clone(), (around, &batch));
        match &order {
            Order::Bytewise => compaction(&Bytewise, one, within, &mut trees, fresh)?,
            Order::Custom(order) => compaction(order, one, within, &mut trees, fresh)?,
            Order::Missing(name) => return Err(missing_order(&one.keyspace.name, name)),
        }
    }
    let mut installed = Installed::new();
    for (id, InTree { keyspace, draft, edits }) in trees {
        let Some(before) = around.version.tree(id) else { continue };
        let mut rows = Rows::since(before, &draft.finish());
        rows.edits = edits;
        around.reshape(&batch.own, &keyspace, &mut rows);
        installed.insert(id, (keyspace, rows));
    }
    Ok(installed)
}

fn compaction<O: KeyOrder>(
    order: &O,
    one: Compacted,
    (around, batch): (&Around<'_>, &Batch),
    trees: &mut BTreeMap<KeyspaceId, InTree>,
    fresh: &dyn Fn(KeyspaceId, f64),
) -> Result<()> {
    let Compacted { keyspace, traits, old, base, .. } = one;
    let id = keyspace.id;
    // The keyspace may have been dropped meanwhile.
    let Some(tree) = around.version.tree(id) else { return Ok(()) };
    // Seeded: what a filter has removed is gone under operands of a branch.
    let unfiltered = traits.filter.is_empty() || bug!("compaction_filtered_results_are_shared");
    let shared = unfiltered && around.may_be_elsewhere(order, tree.partitions(), &old);
    let share = fresh_share(&old, &base);
    let of_tree = trees.entry(id).or_insert_with(|| InTree::of(&keyspace, tree));
    let apart = |lower: Option<&[u8]>| batch.keeps_apart(around, id, lower);
    let put = put_in_place(order, &mut of_tree.draft, (&old, base), around.settings, apart);
    let what = "a partition changed while being compacted: a defect of the engine";
    let (replaced, edits) = put.ok_or_else(|| Error::invalid(what))?;
    of_tree.edits.extend(edits);
    if !shared {
        return Ok(());
    }
    for twin in (around.twins)(&keyspace, &traits) {
        if share_with(order, &twin, &replaced, (around, batch), trees) {
            fresh(twin.id, share);
        }
    }
    Ok(())
}

/// Installs the result of a compaction in another tree, if it has the same partition and nobody
/// works on that.
fn share_with<O: KeyOrder>(
    order: &O,
    twin: &Arc<KeyspaceState>,
    replaced: &Replaced,
    (around, batch): (&Around<'_>, &Batch),
    trees: &mut BTreeMap<KeyspaceId, InTree>,
) -> bool {
    let id = twin.id;
    let Some(tree) = around.version.tree(id) else { return false };
    // Seeded: a partition is replaced while it is being compacted in a branch.
    let busy = (around.busy)(id, 0, replaced.lower())
        && !bug!("compaction_shared_compaction_ignores_busy");
    // A tree is copied only if it takes something over.
    let known = trees.contains_key(&id);
    if busy || !known && !replaced.is_in(order, tree.partitions()) {
        return false;
    }
    let of_tree = trees.entry(id).or_insert_with(|| InTree::of(twin, tree));
    let apart = |lower: Option<&[u8]>| batch.keeps_apart(around, id, lower);
    let edits = take_over(order, &mut of_tree.draft, replaced, around.settings, apart);
    let taken = edits.is_some();
    of_tree.edits.extend(edits.into_iter().flatten());
    taken
}
