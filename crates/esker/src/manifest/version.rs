//! The immutable description of the tree.
//!
//! ```text
//! Version -> Tree (one per keyspace) -> Partition -> base Run + delta Runs -> Segments
//! ```
//! 1. The partitions of a tree are sorted and adjacent: each ends where the next begins. The first
//!    has no lower bound and the last no upper bound. A tree has at least one partition.
//! 2. A partition's deltas are ordered from new to old, and every entry of a delta is newer than
//!    every entry of the same key in older deltas and in the base.
//! 3. A run segment may reach beyond the bounds of a partition that refers to it, after a split of
//!    the partition. Then the neighbours refer to it too, and each reads only its own part.
//! 4. A version never changes: an edit builds new arrays and shares all unchanged parts.

use crate::base::rangedel::compare_starts;
use crate::base::{KeyOrder, KeyspaceId};
use crate::error::{Error, Result};
use crate::manifest::{Edit, PartitionRecord, RunRecord, TreeEdit, TreePiece};
use crate::run::{Role, Run, Segment, SegmentMeta};
use crate::trace::StepSource;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A contiguous range of keys with its runs.
#[derive(Debug)]
pub struct Partition {
    /// First possible key; `None`: no lower bound.
    pub lower: Option<Vec<u8>>,
    /// First key behind it; `None`: no upper bound.
    pub upper: Option<Vec<u8>>,
    /// The base run.
    pub base: Arc<Run>,
    /// The delta runs, the newest first.
    pub deltas: Vec<Arc<Run>>,
}

/// The partitions of one keyspace.
#[derive(Debug)]
pub struct Tree {
    partitions: Vec<Arc<Partition>>,
    /// Heads of the lower bounds (0 for the first), for a search that loads no partition.
    heads: Vec<u64>,
}

/// A tree under construction, while several changes are made to it.
#[derive(Debug)]
pub struct Draft {
    partitions: Vec<Arc<Partition>>,
    /// Where the last search without an order ended.
    hint: usize,
    /// How many partitions such searches passed.
    #[cfg(test)]
    pub(super) steps: usize,
}

/// All trees of a database.
#[derive(Debug, Default)]
pub struct Version {
    /// Sorted by keyspace.
    trees: Vec<(KeyspaceId, Arc<Tree>)>,
}

impl Partition {
    /// Bytes of all deltas.
    pub fn delta_bytes(&self) -> u64 {
        self.deltas.iter().map(|run| run.bytes()).sum()
    }

    /// Whether the key is within the bounds, which must be of this order.
    pub fn contains<O: KeyOrder>(&self, order: &O, key: &[u8]) -> bool {
        self.lower.as_deref().is_none_or(|lower| order.compare(lower, key).is_le())
            && self.upper.as_deref().is_none_or(|upper| order.compare(key, upper).is_lt())
    }

    /// This partition with one more delta on top.
    #[must_use]
    pub fn with_delta(&self, run: Arc<Run>) -> Self {
        let deltas = std::iter::once(run).chain(self.deltas.iter().cloned()).collect();
        let (lower, upper) = (self.lower.clone(), self.upper.clone());
        Self { lower, upper, base: self.base.clone(), deltas }
    }

    /// Every run, from new to old: deltas, then the base.
    pub fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.deltas.iter().chain(std::iter::once(&self.base))
    }

    /// What explanations call run `n` of the partition with this number, counted from the newest.
    pub fn source(&self, number: usize, n: usize) -> StepSource {
        let age = self.deltas.len().saturating_sub(n) as u64;
        StepSource::Run { partition: number as u64, age, file: None, segment: None }
    }

    /// Every segment that this partition refers to.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.runs().flat_map(|run| run.segments().iter().chain(run.tombstones()))
    }

    /// This partition as the manifest writes it.
    pub fn record(&self) -> PartitionRecord {
        PartitionRecord {
            lower: self.lower.clone(),
            base: run_record(&self.base),
            deltas: self.deltas.iter().map(|run| run_record(run)).collect(),
        }
    }
}

/// A run as the manifest writes it.
pub fn run_record(run: &Run) -> RunRecord {
    let metas = |segments: &[Arc<Segment>]| segments.iter().map(|s| s.meta().clone()).collect();
    RunRecord { segments: metas(run.segments()), tombstones: metas(run.tombstones()) }
}

impl Default for Partition {
    /// All keys, without entries.
    fn default() -> Self {
        let base = Arc::new(Run::new(Role::Base, Vec::new(), Vec::new()));
        Self { lower: None, upper: None, base, deltas: Vec::new() }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new(vec![Arc::default()])
    }
}

impl Tree {
    /// The tree of these partitions, which obey invariant 1.
    pub fn new(partitions: Vec<Arc<Partition>>) -> Self {
        let head = |p: &Arc<Partition>| p.lower.as_deref().map_or(0, crate::base::head_of);
        Self { heads: partitions.iter().map(head).collect(), partitions }
    }

    /// The partitions, ascending.
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

impl Draft {
    /// A draft that is the same as `tree`.
    pub fn of(tree: &Tree) -> Self {
        Self {
            partitions: tree.partitions.clone(),
            hint: 0,
            #[cfg(test)]
            steps: 0,
        }
    }

    /// The partitions, ascending.
    pub fn partitions(&self) -> &[Arc<Partition>] {
        &self.partitions
    }

    /// The index of the partition that begins exactly at `lower`.
    pub fn position<O: KeyOrder>(&self, order: &O, lower: Option<&[u8]>) -> Option<usize> {
        let at_or_before = |p: &Arc<Partition>| {
            compare_starts(order, p.lower.as_deref(), lower) != Ordering::Greater
        };
        let at = self.partitions.partition_point(at_or_before).checked_sub(1)?;
        (self.partitions[at].lower.as_deref() == lower).then_some(at)
    }

    /// As [`Self::position`], for an unknown order: continues where the last search ended, since
    /// the changes of an edit ascend. So all searches together pass each partition once.
    fn next_position(&mut self, lower: Option<&[u8]>) -> Option<usize> {
        let len = self.partitions.len();
        let begins_there = |at: &usize| self.partitions[*at].lower.as_deref() == lower;
        let from = self.hint.min(len);
        let at = (from..len).chain(0..from).find(begins_there);
        #[cfg(test)]
        {
            self.steps += at.map_or(len, |at| if at < from { len - from + at } else { at - from });
        }
        self.hint = at.unwrap_or(from);
        at
    }

    /// Puts `with` in the place of `count` partitions from `at`.
    pub fn replace(&mut self, at: usize, count: usize, with: Vec<Arc<Partition>>) {
        self.partitions.splice(at..at + count, with);
    }

    /// The tree that results.
    pub fn finish(self) -> Tree {
        Tree::new(self.partitions)
    }
}

impl Version {
    /// The tree of a keyspace; `None`: nothing was ever flushed there.
    #[inline]
    pub fn tree(&self, keyspace: KeyspaceId) -> Option<&Arc<Tree>> {
        let at = self.trees.binary_search_by_key(&keyspace, |(id, _)| *id).ok()?;
        Some(&self.trees[at].1)
    }

    /// Every tree, by keyspace.
    pub fn trees(&self) -> &[(KeyspaceId, Arc<Tree>)] {
        &self.trees
    }

    /// This version with some trees replaced or, for `None`, removed.
    #[must_use]
    pub fn with_trees(&self, changes: Vec<(KeyspaceId, Option<Arc<Tree>>)>) -> Self {
        let mut trees: std::collections::BTreeMap<_, _> = self.trees.iter().cloned().collect();
        for (id, tree) in changes {
            match tree {
                Some(tree) => trees.insert(id, tree),
                None => trees.remove(&id),
            };
        }
        Self { trees: trees.into_iter().collect() }
    }

    /// The trees as one edit, for the first record of a new manifest.
    pub fn tree_edits(&self) -> Vec<(KeyspaceId, TreeEdit)> {
        self.tree_edits_of(|_| true)
    }

    /// Like [`Self::tree_edits`], for some keyspaces. A partition that several trees share is
    /// written once.
    pub fn tree_edits_of(&self, which: impl Fn(KeyspaceId) -> bool) -> Vec<(KeyspaceId, TreeEdit)> {
        let mut places = HashMap::new();
        let edit = |(id, tree): &(KeyspaceId, Arc<Tree>)| (*id, tree_edit(*id, tree, &mut places));
        self.trees.iter().filter(|(id, _)| which(*id)).map(edit).collect()
    }

    /// Every segment that this version refers to, once per reference.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.trees.iter().flat_map(|(_, tree)| tree.partitions().iter().flat_map(|p| p.segments()))
    }

    /// Applies an edit that was read from a manifest. `segment` returns the shared segment object
    /// for a description. The error states what does not fit.
    pub fn apply(
        &self,
        edit: &Edit,
        segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
    ) -> Result<Self, &'static str> {
        let mut trees = Trees { trees: self.trees.iter().cloned().collect() };
        trees.apply(edit, segment)?;
        Ok(trees.version())
    }
}

/// The trees of a version while edits are read, one after the other: an edit costs what it
/// changes, however many trees there are.
#[derive(Debug, Default)]
pub struct Trees {
    trees: BTreeMap<KeyspaceId, Arc<Tree>>,
}

/// What an edit changes; `None`: the tree is gone.
type Changes = BTreeMap<KeyspaceId, Option<Arc<Tree>>>;

impl Trees {
    /// Applies an edit, as [`Version::apply`] does. After an error nothing has changed.
    pub fn apply(
        &mut self,
        edit: &Edit,
        segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
    ) -> Result<(), &'static str> {
        let mut changes = Changes::new();
        for (copy, original) in edit.branches.iter().flat_map(|branch| &branch.copies) {
            if let Some(tree) = self.tree(&changes, *original) {
                changes.insert(*copy, Some(tree));
            }
        }
        for id in &edit.dropped {
            // Seeded: a dropped tree is there again after a reopen.
            bug!("manifest_drop_is_not_applied", continue);
            changes.insert(*id, None);
        }
        // Consecutive changes of one tree are applied together. The pieces of a shared tree may
        // come from any tree, as the changes before leave it.
        let is_share = |change: &TreeEdit| matches!(change, TreeEdit::Share { .. });
        let together = |a: &(KeyspaceId, TreeEdit), b: &(KeyspaceId, TreeEdit)| {
            a.0 == b.0 && !is_share(&a.1) && !is_share(&b.1)
        };
        for of_tree in edit.trees.chunk_by(together) {
            let id = of_tree[0].0;
            let tree = if let TreeEdit::Share { pieces } = &of_tree[0].1 {
                shared_tree(&|id| self.tree(&changes, id), pieces, segment)?
            } else {
                let mut draft = Draft::of(&self.tree(&changes, id).unwrap_or_default());
                of_tree.iter().try_for_each(|(_, change)| draft.apply(change, segment))?;
                draft.finish()
            };
            changes.insert(id, Some(Arc::new(tree)));
        }
        for (id, tree) in changes {
            match tree {
                Some(tree) => self.trees.insert(id, tree),
                None => self.trees.remove(&id),
            };
        }
        Ok(())
    }

    fn tree(&self, changes: &Changes, id: KeyspaceId) -> Option<Arc<Tree>> {
        changes.get(&id).map_or_else(|| self.trees.get(&id).cloned(), Clone::clone)
    }

    /// The version that these trees make.
    pub fn version(self) -> Version {
        Version { trees: self.trees.into_iter().collect() }
    }
}

impl Draft {
    pub(super) fn apply(
        &mut self,
        change: &TreeEdit,
        segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
    ) -> Result<(), &'static str> {
        let (TreeEdit::AddDelta { lower, .. } | TreeEdit::Replace { lower, .. }) = change else {
            return Err("pieces of trees stand by themselves");
        };
        let at = self.next_position(lower.as_deref());
        let at = at.ok_or("it names a partition that is not there")?;
        match change {
            TreeEdit::AddDelta { count, run, .. } => {
                if *count == 0 || *count > self.partitions.len() - at {
                    return Err("it adds a delta to partitions that are not there");
                }
                let delta = Arc::new(build_run(Role::Delta, run, segment));
                for partition in &mut self.partitions[at..at + count] {
                    *partition = Arc::new(partition.with_delta(delta.clone()));
                }
                self.hint = at + count - 1;
                Ok(())
            }
            TreeEdit::Replace { count, partitions, lower } => {
                if *count == 0 || *count > self.partitions.len() - at || partitions.is_empty() {
                    return Err("it replaces partitions that are not there");
                }
                if partitions[0].lower != *lower {
                    return Err("the replacement begins elsewhere");
                }
                let upper = self.partitions[at + count - 1].upper.clone();
                let with = build_partitions(partitions, upper, segment);
                self.replace(at, *count, with);
                Ok(())
            }
            TreeEdit::Share { .. } => Err("pieces of trees stand by themselves"),
        }
    }
}

/// The keyspace and index of each partition that was already written, by the address of the
/// partition.
type Places = HashMap<*const Partition, (KeyspaceId, usize)>;

/// The edit that makes a tree; it refers to partitions that were already written.
fn tree_edit(id: KeyspaceId, tree: &Tree, places: &mut Places) -> TreeEdit {
    let mut pieces: Vec<TreePiece> = Vec::new();
    for (index, partition) in tree.partitions().iter().enumerate() {
        let place = places.entry(Arc::as_ptr(partition)).or_insert((id, index));
        match (pieces.last_mut(), *place) {
            (Some(TreePiece::Of { keyspace, first, count }), (of, at))
                if *keyspace == of && *first + *count == at =>
            {
                *count += 1;
            }
            (Some(TreePiece::Own(own)), (of, _)) if of == id => own.push(partition.record()),
            (_, (of, _)) if of == id => pieces.push(TreePiece::Own(vec![partition.record()])),
            (_, (keyspace, first)) => {
                pieces.push(TreePiece::Of { keyspace, first, count: 1 });
            }
        }
    }
    match pieces.as_mut_slice() {
        [TreePiece::Own(partitions)] => {
            let partitions = std::mem::take(partitions);
            TreeEdit::Replace { lower: None, count: 1, partitions }
        }
        _ => TreeEdit::Share { pieces },
    }
}

/// The tree that consists of these pieces.
fn shared_tree(
    tree_of: &dyn Fn(KeyspaceId) -> Option<Arc<Tree>>,
    pieces: &[TreePiece],
    segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
) -> Result<Tree, &'static str> {
    let mut partitions: Vec<Arc<Partition>> = Vec::new();
    // Goes from the end, because a partition ends where the next begins.
    for piece in pieces.iter().rev() {
        let next = partitions.last().map(|next| next.lower.clone());
        let upper = next.clone().flatten();
        let mut found = match piece {
            TreePiece::Own(records) => build_partitions(records, upper, segment),
            TreePiece::Of { keyspace, first, count } => {
                let tree = tree_of(*keyspace).ok_or("a tree shares with one that is not there")?;
                let end = first.checked_add(*count).filter(|_| *count > 0);
                let found = end.and_then(|end| tree.partitions().get(*first..end));
                found.ok_or("a tree shares partitions that are not there")?.to_vec()
            }
        };
        let fits = found.last().is_some_and(|last| match &next {
            Some(next) => last.upper == *next && next.is_some(),
            None => last.upper.is_none(),
        });
        if !fits {
            return Err("the pieces of a tree do not fit together");
        }
        found.reverse();
        partitions.append(&mut found);
    }
    partitions.reverse();
    match partitions.first() {
        Some(first) if first.lower.is_none() => Ok(Tree::new(partitions)),
        _ => Err("the pieces of a tree do not begin at its start"),
    }
}

fn build_run(
    role: Role,
    record: &RunRecord,
    segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
) -> Run {
    let segments = record.segments.iter().map(&mut *segment).collect();
    let tombstones = record.tombstones.iter().map(&mut *segment).collect();
    Run::new(role, segments, tombstones)
}

fn build_partitions(
    records: &[PartitionRecord],
    upper: Option<Vec<u8>>,
    segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
) -> Vec<Arc<Partition>> {
    let next_lower = records.iter().skip(1).map(|p| p.lower.clone()).chain([upper]);
    let build = |(record, upper): (&PartitionRecord, Option<Vec<u8>>)| {
        Arc::new(Partition {
            lower: record.lower.clone(),
            upper,
            base: Arc::new(build_run(Role::Base, &record.base, segment)),
            deltas: record
                .deltas
                .iter()
                .map(|run| Arc::new(build_run(Role::Delta, run, segment)))
                .collect(),
        })
    };
    records.iter().zip(next_lower).map(build).collect()
}

/// Checks that the partitions and runs of a tree are in order (a manifest with valid checksums may
/// still be crafted, C5).
pub fn check_tree<O: KeyOrder>(order: &O, tree: &Tree) -> Result<(), &'static str> {
    for pair in tree.partitions().windows(2) {
        let (Some(upper), Some(lower)) = (&pair[0].upper, &pair[1].lower) else {
            return Err("a partition inside a tree has no bound");
        };
        let below = pair[0].lower.as_deref().is_none_or(|low| order.compare(low, upper).is_lt());
        if upper != lower || !below {
            return Err("partitions are not in order");
        }
    }
    for run in tree.partitions().iter().flat_map(|p| p.runs()) {
        let metas = run.segments().iter().map(|segment| segment.meta());
        for meta in metas.clone() {
            if order.compare(&meta.min_key, &meta.max_key).is_gt() {
                return Err("a segment ends before it begins");
            }
        }
        for (one, next) in metas.clone().zip(metas.skip(1)) {
            if order.compare(&one.max_key, &next.min_key).is_ge() {
                return Err("segments of a run overlap");
            }
        }
    }
    Ok(())
}

/// The error for an edit that does not fit the state before it.
pub fn misfit(path: &std::path::Path, what: &'static str) -> Error {
    Error::corruption(path, 0, "manifest edit", what)
}
