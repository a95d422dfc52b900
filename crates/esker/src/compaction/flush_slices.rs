//! Putting what a flush wrote into a tree. Pure: nothing here does I/O.
//!
//! 1. A partition gets one delta at most, however many slices reach into it. The edit names a slice
//!    once for all neighbours that get it.
//! 2. If the flush hides everything older in a partition from every reader, the partition becomes
//!    empty at once, and empty neighbours become one. Nothing is read, and no tombstone stays.
//! 3. The work grows with the slices and with the partitions that they reach, apart from one copy
//!    of the array of partitions.

use crate::base::rangedel::{compare_ends, compare_starts};
use crate::base::{KeyOrder, Seq};
use crate::compaction::partitioning;
use crate::manifest::{Partition, Tree, TreeEdit};
use crate::options::settings::Settings;
use crate::run::{Role, Run};
use std::sync::Arc;

/// What a flush wrote for neighbouring partitions.
#[derive(Debug)]
pub struct Slice {
    /// Where they begin.
    pub lower: Option<Vec<u8>>,
    /// Where they end.
    pub upper: Option<Vec<u8>>,
    /// What it wrote; nothing in it lies outside of the bounds.
    pub run: Arc<Run>,
    /// Between the bounds, everything older than this is hidden from every reader, and that is all
    /// that the tombstones say; 0: unknown.
    pub hides_below: Seq,
}

/// What slices are for one partition.
struct Part {
    /// The partition's index.
    at: usize,
    /// What they hold of it, in key order.
    runs: Vec<Arc<Run>>,
    hides_below: Seq,
}

impl Part {
    /// The run that the partition gets.
    fn run(&self) -> Arc<Run> {
        match self.runs.as_slice() {
            [only] => only.clone(),
            runs => {
                let segments = runs.iter().flat_map(|run| run.segments()).cloned().collect();
                let tombstones = runs.iter().flat_map(|run| run.tombstones()).cloned().collect();
                Arc::new(Run::new(Role::Delta, segments, tombstones))
            }
        }
    }

    /// Whether it hides all that the partition holds.
    fn hides(&self, partition: &Partition) -> bool {
        // Seeded: a range delete over a part of a partition, or under a snapshot, empties all of
        // it.
        bug!("compaction_partition_emptied_too_early", return true);
        let hidden = |run: &Arc<Run>| run.is_empty() || run.max_seq() < self.hides_below;
        self.hides_below > 0 && partition.runs().all(hidden)
    }
}

/// The slices by partition, ascending. Where bounds moved since they were written, a slice belongs
/// to several partitions, or a partition gets several slices.
fn parts<O: KeyOrder>(order: &O, tree: &Tree, slices: &[Slice]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for slice in slices {
        let first = slice.lower.as_deref().map_or(0, |lower| tree.find(order, lower));
        for (at, partition) in tree.partitions().iter().enumerate().skip(first) {
            let (lower, upper) = (partition.lower.as_deref(), partition.upper.as_deref());
            let end = slice.upper.as_deref();
            if let (Some(lower), Some(end)) = (lower, end)
                && at > first
                && order.compare(end, lower).is_le()
            {
                break;
            }
            let Some(run) = partitioning::part_of(order, &slice.run, lower, upper) else {
                continue;
            };
            if let Some(part) = parts.last_mut().filter(|part| part.at == at) {
                part.runs.push(run);
                part.hides_below = 0;
                continue;
            }
            let whole = compare_starts(order, slice.lower.as_deref(), lower).is_le()
                && compare_ends(order, upper, end).is_le();
            let hides_below = if whole { slice.hides_below } else { 0 };
            parts.push(Part { at, runs: vec![run], hides_below });
        }
    }
    parts
}

/// Neighbours that the flush left empty.
struct Emptied {
    first: Arc<Partition>,
    count: usize,
    upper: Option<Vec<u8>>,
}

/// A tree under construction, and the edits that make it.
struct Output {
    partitions: Vec<Arc<Partition>>,
    edits: Vec<TreeEdit>,
    /// The delta that the last partition got.
    delta: Option<Arc<Run>>,
    emptied: Option<Emptied>,
}

impl Output {
    /// Takes over unchanged partitions.
    fn keep(&mut self, partitions: &[Arc<Partition>]) {
        if !partitions.is_empty() {
            self.close();
            self.partitions.extend_from_slice(partitions);
        }
    }

    /// Ends the row of neighbours that are in one edit.
    fn close(&mut self) {
        self.delta = None;
        let Some(Emptied { first, count, upper }) = self.emptied.take() else { return };
        if count == 1 && first.runs().all(|run| run.is_empty()) {
            self.partitions.push(first);
            return;
        }
        let new = Partition { lower: first.lower.clone(), upper, ..Partition::default() };
        self.edits.push(partitioning::replace_edit(&first, count, &[&new]));
        self.partitions.push(Arc::new(new));
    }

    /// Rule 2, where nothing newer comes.
    fn empty(&mut self, old: &Arc<Partition>) {
        if let Some(row) = &mut self.emptied {
            row.count += 1;
            row.upper.clone_from(&old.upper);
            return;
        }
        self.close();
        self.emptied = Some(Emptied { first: old.clone(), count: 1, upper: old.upper.clone() });
    }

    /// Puts `new` in the place of `old`; `edit` says so.
    fn change(&mut self, new: Arc<Partition>, edit: TreeEdit) {
        self.close();
        self.partitions.push(new);
        self.edits.push(edit);
    }

    /// Puts a delta on a partition that gets the same one as the partition before; false: it gets
    /// another.
    fn repeat_delta(&mut self, old: &Partition, run: &Arc<Run>) -> bool {
        let same = self.delta.as_ref().is_some_and(|last| Arc::ptr_eq(last, run));
        let Some(TreeEdit::AddDelta { count, .. }) = self.edits.last_mut().filter(|_| same) else {
            return false;
        };
        *count += 1;
        self.partitions.push(Arc::new(old.with_delta(run.clone())));
        true
    }
}

/// The tree with the slices of a flush in their partitions, and the edits that say so. While a
/// partition is being compacted (`busy`), only deltas may be added to it.
pub fn with_slices<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    slices: &[Slice],
    busy: impl Fn(&Partition) -> bool,
    settings: &Settings,
) -> (Tree, Vec<TreeEdit>) {
    let old = tree.partitions();
    let partitions = Vec::with_capacity(old.len());
    let mut output = Output { partitions, edits: Vec::new(), delta: None, emptied: None };
    let mut next = 0;
    for part in parts(order, tree, slices) {
        output.keep(&old[next..part.at]);
        next = part.at + 1;
        let (partition, run) = (&old[part.at], part.run());
        let busy = busy(partition);
        if busy || !part.hides(partition) {
            if output.repeat_delta(partition, &run) {
                continue;
            }
            let (new, edit) =
                partitioning::with_delta(order, partition, run.clone(), busy, settings);
            let added = matches!(edit, TreeEdit::AddDelta { .. });
            output.change(new, edit);
            output.delta = Some(run).filter(|_| added);
        } else if run.segments().is_empty() {
            output.empty(partition);
        } else {
            let (new, edit) = renewed(order, partition, &run, settings);
            output.change(new, edit);
        }
    }
    output.keep(&old[next..]);
    output.close();
    (Tree::new(output.partitions), output.edits)
}

/// A partition that holds nothing but the entries of `run`, which hides everything older.
fn renewed<O: KeyOrder>(
    order: &O,
    old: &Partition,
    run: &Run,
    settings: &Settings,
) -> (Arc<Partition>, TreeEdit) {
    let run = Run::new(Role::Delta, run.segments().to_vec(), Vec::new());
    let (lower, upper) = (old.lower.clone(), old.upper.clone());
    let empty = Arc::new(Partition { lower, upper, ..Partition::default() });
    let (new, _) = partitioning::with_delta(order, &empty, Arc::new(run), false, settings);
    let edit = partitioning::replace_edit(old, 1, &[&new]);
    (new, edit)
}

#[cfg(test)]
mod tests;
