//! Adding the output of a flush or a push to a row. Pure: nothing here does I/O.
//!
//! 1. A partition gets one delta at most, however many slices overlap it. The edit names a slice
//!    once for all neighbours that get the same part of it.
//! 2. If the slices hide everything older in a partition from every reader, the partition becomes
//!    empty at once, and empty neighbours are joined, unless a span begins between them. Nothing is
//!    read, and no tombstone stays. A span never becomes empty that way: what its tombstones hide
//!    may lie in the rows below.
//! 3. The work is proportional to the slices and the partitions that they overlap, apart from one
//!    copy of the array of partitions.

use crate::base::rangedel::{compare_ends, compare_starts};
use crate::base::{KeyOrder, Seq};
use crate::compaction::partitioning;
use crate::manifest::{Partition, Row, TreeEdit};
use crate::options::settings::Settings;
use crate::run::{Role, Run};
use std::sync::Arc;

/// The output of a flush or a push for neighbouring partitions.
#[derive(Debug)]
pub struct Slice {
    /// The lower bound of these partitions.
    pub lower: Option<Vec<u8>>,
    /// The upper bound of these partitions.
    pub upper: Option<Vec<u8>>,
    /// The run; nothing in it lies outside of the bounds.
    pub run: Arc<Run>,
    /// Between the bounds, everything older than this is hidden from every reader, and the
    /// tombstones say nothing else; 0: unknown.
    pub hides_below: Seq,
    /// Whether deletes were dropped, because nothing older lay below the bounds.
    pub bottom: bool,
}

/// The parts of slices that belong to one partition.
struct Part {
    /// The partition's index.
    at: usize,
    /// The runs of the slices, cut to the partition, in key order.
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

    /// Whether it hides everything in the partition.
    fn hides(&self, partition: &Partition) -> bool {
        // Seeded: a range delete over a part of a partition, or under a snapshot, empties the whole
        // partition.
        bug!("compaction_partition_emptied_too_early", return true);
        let hidden = |run: &Arc<Run>| run.is_empty() || run.max_seq() < self.hides_below;
        self.hides_below > 0 && partition.runs().all(hidden)
    }
}

/// The slices by partition, ascending. If bounds moved since the slices were written, a slice
/// belongs to several partitions, or a partition gets several slices.
fn parts<O: KeyOrder>(order: &O, row: &Row, slices: &[Slice]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for slice in slices {
        let first = slice.lower.as_deref().map_or(0, |lower| row.find(order, lower));
        // Neighbours that get the same part share it.
        let mut last: Option<Arc<Run>> = None;
        for (at, partition) in row.partitions().iter().enumerate().skip(first) {
            let (lower, upper) = (partition.lower.as_deref(), partition.upper.as_deref());
            let end = slice.upper.as_deref();
            if let (Some(lower), Some(end)) = (lower, end)
                && at > first
                && order.compare(end, lower).is_le()
            {
                break;
            }
            // Seeded: of a part that was split while its slice was written only the lower one gets it.
            bug!("compaction_split_parts_get_one_slice", {
                if at > first {
                    break;
                }
            });
            let Some(run) = partitioning::part_of(order, &slice.run, lower, upper) else {
                continue;
            };
            let run = last.filter(|last| last.is_same(&run)).unwrap_or(run);
            last = Some(run.clone());
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

/// Neighbouring partitions that the flush left empty.
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

    /// Ends the sequence of neighbours that share one edit.
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

    /// Rule 2, for a partition that gets no newer entries. `begins`: a span begins with it.
    fn empty(&mut self, old: &Arc<Partition>, begins: bool) {
        // Seeded: partitions of two spans become one, and the tiers no longer nest.
        let begins = begins && !bug!("compaction_emptied_across_spans");
        if let Some(row) = self.emptied.as_mut().filter(|_| !begins) {
            row.count += 1;
            row.upper.clone_from(&old.upper);
            return;
        }
        self.close();
        self.emptied = Some(Emptied { first: old.clone(), count: 1, upper: old.upper.clone() });
    }

    /// Replaces `old` by `new`; `edit` records that.
    fn change(&mut self, new: Arc<Partition>, edit: TreeEdit) {
        self.close();
        self.partitions.push(new);
        self.edits.push(edit);
    }

    /// Adds a delta to a partition that gets the same delta as the partition before; false: it gets
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

/// The row to which slices are added.
#[derive(Clone, Copy)]
pub struct Place<'p> {
    /// The row.
    pub row: &'p Row,
    /// Its number: 0 for partitions.
    pub tier: usize,
    /// The row above it.
    pub above: Option<&'p Row>,
    /// Whether a partition is being compacted: then only deltas may be added to it.
    pub busy: &'p dyn Fn(&Partition) -> bool,
    /// Sizes.
    pub settings: &'p Settings,
}

/// The row with the slices in its partitions, and the edits that record it.
pub fn with_slices<O: KeyOrder>(
    order: &O,
    place: Place<'_>,
    slices: &[Slice],
) -> (Vec<Arc<Partition>>, Vec<TreeEdit>) {
    let Place { row, tier, above, busy, settings } = place;
    let old = row.partitions();
    let partitions = Vec::with_capacity(old.len());
    let mut output = Output { partitions, edits: Vec::new(), delta: None, emptied: None };
    let mut next = 0;
    for part in parts(order, row, slices) {
        output.keep(&old[next..part.at]);
        next = part.at + 1;
        let (partition, run) = (&old[part.at], part.run());
        // A span takes only runs, as a busy partition does.
        let busy = tier > 0 || busy(partition);
        if busy || !part.hides(partition) {
            if output.repeat_delta(partition, &run) {
                continue;
            }
            let (new, mut edit) =
                partitioning::with_delta(order, partition, run.clone(), busy, settings);
            if let TreeEdit::AddDelta { tier: row, .. } = &mut edit {
                *row = tier;
            }
            let added = matches!(edit, TreeEdit::AddDelta { .. });
            output.change(new, edit);
            output.delta = Some(run).filter(|_| added);
        } else if run.segments().is_empty() {
            let begins = |above: &Row| above.position(order, partition.lower.as_deref()).is_some();
            output.empty(partition, above.is_some_and(begins));
        } else {
            let (new, edit) = renewed(order, partition, &run, settings);
            output.change(new, edit);
        }
    }
    output.keep(&old[next..]);
    output.close();
    (output.partitions, output.edits)
}

/// A partition that holds only the entries of `run`, which hides everything older.
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
