//! The rules by which partitions take in runs, split and join. Pure: nothing here does I/O.
//!
//! 1. A run that overlaps nothing in its partition joins the base by reference, if nothing in it
//!    would have to be dropped there (no deletes, operands or tombstones) and its segments are not
//!    small.
//! 2. A base that exceeds its size by half is split at segment bounds. Every part refers to the
//!    deltas that overlap it.
//! 3. Two small neighbours are joined, if no segment extends from one into the other, and no span
//!    of a tier begins between them.
//! 4. A partition sees those segments of a run that overlap it, including segments of range
//!    tombstones.

use crate::base::KeyOrder;
use crate::base::rangedel::compare_starts;
use crate::manifest::{Draft, Partition, TreeEdit, run_record};
use crate::options::settings::Settings;
use crate::run::{Role, Run, Segment, SegmentMeta};
use std::sync::Arc;

/// Segments below this fraction of their intended size count as small.
const SMALL_DIVISOR: u64 = 4;

/// The segments of entries that hold keys of the range.
fn overlapping<'r, O: KeyOrder>(
    order: &O,
    run: &'r Run,
    lower: Option<&[u8]>,
    upper: Option<&[u8]>,
) -> &'r [Arc<Segment>] {
    let all = run.segments();
    let before = |lower| all.partition_point(|s| order.compare(&s.meta().max_key, lower).is_lt());
    let upto = |upper| all.partition_point(|s| order.compare(&s.meta().min_key, upper).is_lt());
    // The end is before the start only with a comparator that contradicts itself.
    all.get(lower.map_or(0, before)..upper.map_or(all.len(), upto)).unwrap_or_default()
}

/// Whether range tombstones may cover keys of the range. The bounds of their segment are those of
/// the first and the last tombstone; an empty bound means none.
fn may_cover<O: KeyOrder>(
    order: &O,
    segment: &Segment,
    lower: Option<&[u8]>,
    upper: Option<&[u8]>,
) -> bool {
    // Seeded: one range delete becomes a delta of every partition after it.
    bug!("compaction_range_delete_reaches_everywhere", return true);
    let SegmentMeta { min_key: start, max_key: end, .. } = segment.meta();
    let ends_inside = end.is_empty() || lower.is_none_or(|low| order.compare(low, end).is_lt());
    let begins_inside = start.is_empty() || upper.is_none_or(|up| order.compare(start, up).is_lt());
    ends_inside && begins_inside
}

/// The part of a run that overlaps a key range; `None` if there is none.
pub fn part_of<O: KeyOrder>(
    order: &O,
    run: &Arc<Run>,
    lower: Option<&[u8]>,
    upper: Option<&[u8]>,
) -> Option<Arc<Run>> {
    let covers = |segment: &&Arc<Segment>| may_cover(order, segment, lower, upper);
    let segments = overlapping(order, run, lower, upper);
    let tombstones: Vec<_> = run.tombstones().iter().filter(covers).cloned().collect();
    if segments.is_empty() && tombstones.is_empty() {
        return None;
    }
    if segments.len() == run.segments().len() && tombstones.len() == run.tombstones().len() {
        return Some(run.clone());
    }
    Some(Arc::new(Run::new(run.role(), segments.to_vec(), tombstones)))
}

/// Whether all segments of a run lie inside a partition, so that it can own them.
fn lies_within<O: KeyOrder>(order: &O, run: &Run, partition: &Partition) -> bool {
    let inside = |key: &[u8]| partition.contains(order, key);
    run.segments().iter().all(|s| inside(&s.meta().min_key) && inside(&s.meta().max_key))
}

/// The base with a run's segments inserted, if rule 1 allows it.
fn adopted<O: KeyOrder>(
    order: &O,
    partition: &Partition,
    run: &Run,
    settings: &Settings,
) -> Option<Run> {
    let settled = |meta: &SegmentMeta| meta.deletes == 0 && meta.specials.operands == 0;
    let clean = run.segments().iter().all(|segment| settled(segment.meta()));
    let bytes = run.bytes();
    let are_small = bytes / (run.segments().len().max(1) as u64)
        < u64::from(settings.segment_bytes) / SMALL_DIVISOR;
    if !partition.deltas.is_empty()
        || !run.tombstones().is_empty()
        || !partition.base.tombstones().is_empty()
        || !clean
        || (are_small && !partition.base.is_empty())
        || !lies_within(order, run, partition)
    {
        return None;
    }
    // Seeded: an adopted run replaces the base.
    bug!(
        "compaction_adopted_run_replaces_the_base",
        return Some(Run::new(Role::Base, run.segments().to_vec(), Vec::new()))
    );
    let mut segments: Vec<_> = partition.base.segments().to_vec();
    segments.extend_from_slice(run.segments());
    segments.sort_by(|a, b| order.compare(&a.meta().min_key, &b.meta().min_key));
    let disjoint = segments
        .windows(2)
        .all(|pair| order.compare(&pair[0].meta().max_key, &pair[1].meta().min_key).is_lt());
    disjoint.then(|| Run::new(Role::Base, segments, Vec::new()))
}

/// The partition with `run` on top, and the edit that records it. While the partition is being
/// compacted (`busy`), its base must stay as it is.
pub fn with_delta<O: KeyOrder>(
    order: &O,
    old: &Arc<Partition>,
    run: Arc<Run>,
    busy: bool,
    settings: &Settings,
) -> (Arc<Partition>, TreeEdit) {
    let (lower, upper) = (old.lower.clone(), old.upper.clone());
    // Seeded: a flush changes the base of a partition that is being compacted.
    let busy = busy && !bug!("compaction_busy_partition_adopts");
    if !busy && let Some(base) = adopted(order, old, &run, settings) {
        let new = Partition { lower, upper, base: Arc::new(base), deltas: Vec::new() };
        let edit = replace_edit(old, 1, &[&new]);
        return (Arc::new(new), edit);
    }
    let edit = TreeEdit::AddDelta { tier: 0, lower, count: 1, run: run_record(&run) };
    (Arc::new(old.with_delta(run)), edit)
}

/// The edit that replaces `count` partitions from `first` by `new`.
pub fn replace_edit(first: &Partition, count: usize, new: &[&Partition]) -> TreeEdit {
    replace_in(0, first, count, new)
}

/// As [`replace_edit`], for a row.
pub fn replace_in(tier: usize, first: &Partition, count: usize, new: &[&Partition]) -> TreeEdit {
    TreeEdit::Replace {
        tier,
        lower: first.lower.clone(),
        count,
        partitions: new.iter().map(|partition| partition.record()).collect(),
    }
}

/// Splits every partition without deltas whose base is too big, unless it is busy; the edits record
/// it. (Partitions with deltas are split by their next compaction.)
pub fn split_full<O: KeyOrder>(
    order: &O,
    row: Vec<Arc<Partition>>,
    settings: &Settings,
    busy: impl Fn(&Partition) -> bool,
) -> (Vec<Arc<Partition>>, Vec<TreeEdit>) {
    let too_big =
        |p: &Arc<Partition>| p.deltas.is_empty() && is_full(&p.base, settings) && !busy(p);
    if !row.iter().any(too_big) {
        return (row, Vec::new());
    }
    let mut partitions = Vec::new();
    let mut edits = Vec::new();
    for old in &row {
        if !too_big(old) {
            partitions.push(old.clone());
            continue;
        }
        let parts = split_base(order, &old.base, old, settings);
        edits.push(replace_edit(old, 1, &parts.iter().collect::<Vec<_>>()));
        partitions.extend(parts.into_iter().map(Arc::new));
    }
    (partitions, edits)
}

fn is_full(base: &Run, settings: &Settings) -> bool {
    base.segments().len() > 1 && base.bytes() > settings.partition_bytes() * 3 / 2
}

/// Partitions of about the intended size over `base`, within the bounds of `old`, without deltas.
pub fn split_base<O: KeyOrder>(
    order: &O,
    base: &Arc<Run>,
    old: &Partition,
    settings: &Settings,
) -> Vec<Partition> {
    let mut groups: Vec<Vec<Arc<Segment>>> = vec![Vec::new()];
    if is_full(base, settings) {
        let parts = base.bytes().div_ceil(settings.partition_bytes()).max(2);
        let share = base.bytes() / parts;
        let mut filled = 0;
        for segment in base.segments() {
            if filled >= share && (groups.len() as u64) < parts {
                groups.push(Vec::new());
                filled = 0;
            }
            filled += segment.meta().weight();
            if let Some(group) = groups.last_mut() {
                group.push(segment.clone());
            }
        }
    } else {
        groups[0] = base.segments().to_vec();
    }
    let lowers: Vec<Option<Vec<u8>>> = groups
        .iter()
        .enumerate()
        .map(|(index, group)| match (index, group.first()) {
            (1.., Some(first)) => Some(first.meta().min_key.clone()),
            _ => old.lower.clone(),
        })
        .collect();
    let uppers = lowers.iter().skip(1).cloned().chain([old.upper.clone()]).collect::<Vec<_>>();
    groups
        .into_iter()
        .zip(lowers.into_iter().zip(uppers))
        .map(|(segments, (lower, upper))| {
            let covers =
                |s: &&Arc<Segment>| may_cover(order, s, lower.as_deref(), upper.as_deref());
            let tombstones = base.tombstones().iter().filter(covers).cloned().collect();
            let base = Arc::new(Run::new(Role::Base, segments, tombstones));
            Partition { lower, upper, base, deltas: Vec::new() }
        })
        .collect()
}

/// The partitions that result from a compaction of `old`: `base` is its output, `newer` are deltas
/// that arrived while it ran.
pub fn after_compaction<O: KeyOrder>(
    order: &O,
    old: &Partition,
    base: Run,
    newer: &[Arc<Run>],
    settings: &Settings,
) -> Vec<Partition> {
    under_deltas(order, split_base(order, &Arc::new(base), old, settings), newer)
}

/// The parts of `old` to compact one after the other, because there is no space to compact it as a
/// whole: each is about a quarter of it. There is only one part if it cannot be cut.
pub fn cut_up<O: KeyOrder>(order: &O, old: &Partition, settings: &Settings) -> Vec<Partition> {
    let partition_bytes = Some((old.base.bytes() / 4).max(1));
    let settings = Settings { partition_bytes, ..settings.clone() };
    under_deltas(order, split_base(order, &old.base, old, &settings), &old.deltas)
}

/// The partitions, each with the parts of `deltas` that overlap it.
pub(super) fn under_deltas<O: KeyOrder>(
    order: &O,
    mut partitions: Vec<Partition>,
    deltas: &[Arc<Run>],
) -> Vec<Partition> {
    for partition in &mut partitions {
        let (lower, upper) = (partition.lower.as_deref(), partition.upper.as_deref());
        // Seeded: a partition that is split loses the deltas that arrived meanwhile.
        bug!("compaction_split_loses_deltas", continue);
        partition.deltas =
            deltas.iter().filter_map(|run| part_of(order, run, lower, upper)).collect();
    }
    partitions
}

/// One partition in place of two small neighbours, if rule 3 allows it.
pub fn joined<O: KeyOrder>(
    order: &O,
    left: &Partition,
    right: &Partition,
    settings: &Settings,
) -> Option<Partition> {
    let bytes = [left, right].iter().map(|p| p.base.bytes() + p.delta_bytes()).sum::<u64>();
    let plain = |p: &Partition| {
        p.runs().all(|run| run.tombstones().is_empty() && lies_within(order, run, p))
    };
    if bytes > settings.partition_bytes() / 2 || !plain(left) || !plain(right) {
        return None;
    }
    let chain = |role, a: Option<&Arc<Run>>, b: Option<&Arc<Run>>| {
        let runs = [a, b].into_iter().flatten();
        let segments = runs.flat_map(|run| run.segments()).cloned().collect();
        Arc::new(Run::new(role, segments, Vec::new()))
    };
    // Deltas of different key ranges have no age relation, so they are paired in their order.
    let deltas = (0..left.deltas.len().max(right.deltas.len()))
        .map(|index| chain(Role::Delta, left.deltas.get(index), right.deltas.get(index)))
        .collect();
    Some(Partition {
        lower: left.lower.clone(),
        upper: right.upper.clone(),
        base: chain(Role::Base, Some(&left.base), Some(&right.base)),
        deltas,
    })
}

/// Whether a span of tier 1 begins with a partition, which then stays apart from the one before.
pub fn begins_span<O: KeyOrder>(
    order: &O,
    spans: Option<&[Arc<Partition>]>,
    partition: &Partition,
) -> bool {
    // Seeded: partitions of two spans are joined, and the tiers no longer nest.
    bug!("compaction_join_across_spans", return false);
    spans.is_some_and(|spans| position(order, spans, partition.lower.as_deref()).is_some())
}

/// The index of the partition that begins exactly at `lower`.
pub fn position<O: KeyOrder>(
    order: &O,
    partitions: &[Arc<Partition>],
    lower: Option<&[u8]>,
) -> Option<usize> {
    let begins = |p: &Arc<Partition>| compare_starts(order, p.lower.as_deref(), lower);
    partitions.binary_search_by(begins).ok()
}

/// What a compaction replaced in a tree, and by what.
#[derive(Debug)]
pub struct Replaced {
    old: Arc<Partition>,
    new: Vec<Arc<Partition>>,
}

impl Replaced {
    /// Where it begins.
    pub fn lower(&self) -> Option<&[u8]> {
        self.old.lower.as_deref()
    }

    /// Whether partitions have one that is the same as what was replaced.
    pub fn is_in<O: KeyOrder>(&self, order: &O, partitions: &[Arc<Partition>]) -> bool {
        self.place_in(order, partitions).is_some()
    }

    fn place_in<O: KeyOrder>(&self, order: &O, partitions: &[Arc<Partition>]) -> Option<usize> {
        let at = position(order, partitions, self.lower())?;
        // Seeded: a branch gets its parent's partition in the place of its own.
        let same = partitions[at].is_same(&self.old)
            || bug!("compaction_shared_compaction_replaces_others");
        same.then_some(at)
    }
}

/// Puts a new base in place of that of `old`, under the deltas that arrived since, and returns the
/// edits; `None`: the partition was changed in another way. `apart`: a partition that must not be
/// joined with others.
pub fn put_in_place<O: KeyOrder>(
    order: &O,
    tree: &mut Draft,
    (old, base): (&Partition, Run),
    settings: &Settings,
    apart: impl Fn(Option<&[u8]>) -> bool,
) -> Option<(Replaced, Vec<TreeEdit>)> {
    let at = tree.position(order, old.lower.as_deref())?;
    let now = tree.partitions()[at].clone();
    let newer = now.deltas.len().checked_sub(old.deltas.len())?;
    if !Arc::ptr_eq(&now.base, &old.base) {
        return None;
    }
    let newer = &now.deltas[..newer];
    // Seeded: deltas that were flushed during a compaction are lost.
    let newer = if bug!("compaction_loses_newer_deltas") { &newer[..0] } else { newer };
    let parts = after_compaction(order, &now, base, newer, settings);
    let new = parts.into_iter().map(Arc::new).collect();
    let replaced = Replaced { old: now, new };
    let edits = put_and_join(order, tree, (at, &replaced), settings, apart);
    Some((replaced, edits))
}

/// Does the same to the tree of a branch that has not diverged there (S12), and returns the edits;
/// `None`: it has another partition there. The caller knows that this is not being compacted.
pub fn take_over<O: KeyOrder>(
    order: &O,
    tree: &mut Draft,
    replaced: &Replaced,
    settings: &Settings,
    apart: impl Fn(Option<&[u8]>) -> bool,
) -> Option<Vec<TreeEdit>> {
    let at = replaced.place_in(order, tree.partitions())?;
    Some(put_and_join(order, tree, (at, replaced), settings, apart))
}

fn put_and_join<O: KeyOrder>(
    order: &O,
    tree: &mut Draft,
    (at, replaced): (usize, &Replaced),
    settings: &Settings,
    apart: impl Fn(Option<&[u8]>) -> bool,
) -> Vec<TreeEdit> {
    let Replaced { old, new } = replaced;
    let mut edits = vec![replace_edit(old, 1, &new.iter().map(AsRef::as_ref).collect::<Vec<_>>())];
    tree.replace(0, at, 1, new.clone());
    if new.len() > 1 {
        return edits;
    }
    // A partition that became small is joined with a small neighbour that is not busy.
    for left in [at.checked_sub(1), Some(at)].into_iter().flatten() {
        let Some(pair) = tree.partitions().get(left..left + 2) else { continue };
        let neighbour = pair[usize::from(left == at)].lower.as_deref();
        if apart(neighbour) || begins_span(order, tree.row(1), &pair[1]) {
            continue;
        }
        if let Some(joined) = joined(order, &pair[0], &pair[1], settings) {
            edits.push(replace_edit(&pair[0], 2, &[&joined]));
            tree.replace(0, left, 2, vec![Arc::new(joined)]);
            break;
        }
    }
    edits
}

#[cfg(test)]
pub(super) mod tests;
