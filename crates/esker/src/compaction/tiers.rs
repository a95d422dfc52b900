//! The shape of tiers: which children a span has, when a tier is made or removed, and whether the
//! path to the partitions is clear. Pure: nothing here does I/O.
//!
//! A tier is a row of spans above the partitions (`docs/compaction.md`). A span is a partition with
//! an empty base, whose deltas are its pending runs.
//!
//! 1. The bounds of a row are also bounds of the row below it. So spans are made of whole children,
//!    and are split between two children.
//! 2. A span keeps its oldest runs until the push that read them is installed. Until then only
//!    newer runs are added.
//! 3. Only the top tier is removed, and only when it holds nothing.

#[cfg(test)]
mod tests;
mod twins;

use super::flush_slices::{Place, Slice, with_slices};
use super::flush_targets::{FlushTarget, flush_targets};
use super::partitioning::{cut_up, part_of, replace_in, split_full, under_deltas};
use super::policy::{self, Route};
use super::queue::PartitionKey;
use super::slicing::{Goal, lies_clear};
use crate::base::rangedel::{Cutter, Fragments, compare_starts};
use crate::base::{Bytewise, Cursor, KeyOrder, KeyspaceId};
use crate::catalog::Order;
use crate::error::Result;
use crate::manifest::{Partition, Row, Tree, TreeEdit};
use crate::options::settings::Settings;
use crate::run::Run;
use std::ops::Range;
use std::sync::Arc;

/// A range of keys with both ends: `None` has no bound, and the last key is in the range.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'k> {
    /// The first key.
    pub low: Option<&'k [u8]>,
    /// The last key.
    pub high: Option<&'k [u8]>,
}

/// The indexes of the children of a span: the partitions of the row below that lie in it.
pub fn children<O: KeyOrder>(order: &O, below: &Row, span: &Partition) -> Range<usize> {
    let first = span.lower.as_deref().map_or(0, |lower| below.find(order, lower));
    let end = match span.upper.as_deref() {
        Some(upper) => below.position(order, Some(upper)).unwrap_or(first + 1),
        None => below.partitions().len(),
    };
    first..end.max(first + 1)
}

/// The runs of the tiers that may hold something of the keys of a range, from the top tier down.
fn pending<'t, O: KeyOrder>(
    order: &'t O,
    tree: &'t Tree,
    Extent { low, high }: Extent<'t>,
) -> impl Iterator<Item = Arc<Run>> + 't {
    tree.tiers().iter().rev().flat_map(move |row| {
        let first = low.map_or(0, |low| row.find(order, low));
        let last = high.map_or(row.partitions().len() - 1, |high| row.find(order, high));
        row.partitions()[first..=last.max(first)].iter().flat_map(move |span| {
            // Only what lies in the span belongs to it.
            let lower = if compare_starts(order, low, span.lower.as_deref()).is_lt() {
                span.lower.as_deref()
            } else {
                low
            };
            span.deltas.iter().filter_map(move |run| {
                let run = part_of(order, run, lower, span.upper.as_deref())?;
                begins_by(order, &run, high).then_some(run)
            })
        })
    })
}

/// Whether something of a run lies at or before a key.
fn begins_by<O: KeyOrder>(order: &O, run: &Run, high: Option<&[u8]>) -> bool {
    let Some(high) = high else { return true };
    let entries = run.segments().iter().any(|s| order.compare(&s.meta().min_key, high).is_le());
    entries
        || run.tombstones().iter().any(|s| {
            let start = &s.meta().min_key;
            start.is_empty() || order.compare(start, high).is_le()
        })
}

/// Whether no tier holds anything of a range of keys, so that a slice may go to its partitions
/// directly (S2).
pub fn is_clear<O: KeyOrder>(order: &O, tree: &Tree, extent: Extent<'_>) -> bool {
    pending(order, tree, extent).next().is_none()
}

/// Whether these neighbouring partitions, and the path to them, hold nothing.
pub fn is_empty_below<O: KeyOrder>(order: &O, tree: &Tree, partitions: &[Arc<Partition>]) -> bool {
    let (Some(first), Some(last)) = (partitions.first(), partitions.last()) else { return false };
    let extent = Extent { low: first.lower.as_deref(), high: last.upper.as_deref() };
    let empty = |partition: &Arc<Partition>| partition.runs().all(|run| run.is_empty());
    partitions.iter().all(empty) && is_clear(order, tree, extent)
}

/// How a flush writes what `cursor` holds for these neighbouring partitions, if it does not go to a tier.
/// `sole`: no other tree gets the slice. `deletes_ranges`: the flush holds range deletes.
pub fn goal_of_flush<O: KeyOrder, C: Cursor>(
    order: &O,
    tree: &Tree,
    partitions: &[Arc<Partition>],
    cursor: Option<&mut C>,
    (sole, deletes_ranges): (bool, bool),
) -> Result<Goal> {
    let settled = match (partitions, cursor) {
        ([partition], Some(cursor)) => lies_clear(order, partition, cursor)?,
        _ => false,
    };
    // Sets are flushed from oldest to newest, so nothing older lies below an empty partition, nor
    // between the first and the last key of what lies clear.
    let nothing_older = is_empty_below(order, tree, partitions)
        || settled && !deletes_ranges && is_unhidden(order, tree, partitions);
    Ok(Goal { bottom: sole && nothing_older, settled })
}

/// Whether nothing hides what is added to these partitions between their entries, however old it is: no
/// range tombstone in them, and nothing on the path to them.
fn is_unhidden<O: KeyOrder>(order: &O, tree: &Tree, partitions: &[Arc<Partition>]) -> bool {
    // Seeded: what a flush adds without sequence numbers is hidden by older range deletes.
    bug!("compaction_clear_slices_under_tombstones", return true);
    let is_unhidden = |part: &Arc<Partition>| {
        let plain = part.runs().all(|run| run.tombstones().is_empty());
        plain && runs_above(order, tree, part).is_empty()
    };
    partitions.iter().all(is_unhidden)
}

/// Whether a tier may hold operands of keys of a partition (S6).
pub fn holds_operands<O: KeyOrder>(order: &O, tree: &Tree, partition: &Partition) -> bool {
    // Seeded: a filter removes the value under operands that a tier holds.
    bug!("compaction_filter_under_pending_operands", return false);
    runs_above(order, tree, partition)
        .iter()
        .any(|run| run.segments().iter().any(|segment| segment.meta().specials.operands > 0))
}

/// The runs above a partition: what the tiers hold of its keys, the newest first.
pub fn runs_above<O: KeyOrder>(order: &O, tree: &Tree, partition: &Partition) -> Vec<Arc<Run>> {
    let (low, high) = (partition.lower.as_deref(), partition.upper.as_deref());
    pending(order, tree, Extent { low, high }).collect()
}

/// A partition together with the runs above it, for work that asks what hides its entries.
pub fn with_runs_above<O: KeyOrder>(order: &O, tree: &Tree, partition: &Partition) -> Partition {
    let mut deltas = runs_above(order, tree, partition);
    deltas.extend(partition.deltas.iter().cloned());
    let (lower, upper) = (partition.lower.clone(), partition.upper.clone());
    Partition { lower, upper, base: partition.base.clone(), deltas }
}

/// A span without the runs that a push has read, which must still be its oldest ones; `None`: they
/// are not.
pub fn without_pushed(now: &Partition, old: &Partition) -> Option<Partition> {
    let newer = now.deltas.len().checked_sub(old.deltas.len())?;
    let same = now.deltas[newer..].iter().zip(&old.deltas).all(|(a, b)| Arc::ptr_eq(a, b));
    // Seeded: a push takes away the runs that arrived meanwhile instead of those that it read.
    let newer = if bug!("compaction_push_drops_the_newest_runs") {
        old.deltas.len()..now.deltas.len()
    } else {
        0..newer
    };
    // Seeded: what was pushed stays in its span too, and operands count twice.
    let newer = if bug!("compaction_pushed_runs_stay") { 0..now.deltas.len() } else { newer };
    same.then(|| Partition {
        lower: now.lower.clone(),
        upper: now.upper.clone(),
        base: now.base.clone(),
        deltas: now.deltas[newer].to_vec(),
    })
}

/// Empty spans over the partitions of a row: `groups` says how many children each has.
fn spans_over(below: &[Arc<Partition>], groups: &[usize]) -> Vec<Partition> {
    let mut spans = Vec::with_capacity(groups.len());
    let mut first = 0;
    for count in groups.iter().copied().filter(|count| *count > 0) {
        let Some(children) = below.get(first..first + count) else { break };
        let (Some(from), Some(to)) = (children.first(), children.last()) else { break };
        spans.push(Partition {
            lower: from.lower.clone(),
            upper: to.upper.clone(),
            ..Partition::default()
        });
        first += count;
    }
    spans
}

/// The bytes of each of these partitions.
fn bytes_of(children: &[Arc<Partition>]) -> Vec<u64> {
    children.iter().map(|child| child.base.bytes() + child.delta_bytes()).collect()
}

/// What limits the shape of tiers.
#[derive(Clone, Copy)]
pub struct Rules<'r> {
    /// Whether a partition is being compacted, or a span of this tier pushed.
    pub busy: &'r dyn Fn(usize, &Partition) -> bool,
    /// Whether tiers may be made, split and removed.
    pub grows: bool,
    /// Sizes.
    pub settings: &'r Settings,
}

/// Rows under construction, and the edits that make them.
#[derive(Debug)]
pub struct Rows {
    /// The rows, that of partitions first.
    pub rows: Vec<Row>,
    /// The edits.
    pub edits: Vec<TreeEdit>,
    /// Spans that hold something in a tier that is not wanted.
    surplus: Vec<Option<Vec<u8>>>,
    /// How many partitions each row had; 0: the spans above it are looked at in any case.
    lens: Vec<usize>,
}

impl Rows {
    /// The rows of a tree.
    pub fn of(tree: &Tree) -> Self {
        Self::since(tree, tree)
    }

    /// The rows of a tree which was `before` when the change began.
    pub fn since(before: &Tree, tree: &Tree) -> Self {
        let lens = before.rows().iter().map(|row| row.partitions().len()).collect();
        Self { rows: tree.rows().to_vec(), edits: Vec::new(), surplus: Vec::new(), lens }
    }

    /// The tree that results, and the edits.
    pub fn finish(self) -> (Tree, Vec<TreeEdit>) {
        (Tree::of_rows(self.rows), self.edits)
    }

    /// The spans that must be pushed before a tier that is not wanted can be removed.
    pub fn surplus(&self, keyspace: KeyspaceId) -> Vec<PartitionKey> {
        let tier = self.rows.len() - 1;
        let key = |lower: &Option<Vec<u8>>| PartitionKey { keyspace, tier, lower: lower.clone() };
        self.surplus.iter().map(key).collect()
    }

    /// Adds slices to a row.
    pub fn add<O: KeyOrder>(&mut self, order: &O, tier: usize, slices: &[Slice], rules: Rules<'_>) {
        let Some(row) = self.rows.get(tier) else { return };
        let Rules { busy, settings, .. } = rules;
        let busy = |p: &Partition| busy(tier, p);
        let above = self.rows.get(tier + 1);
        let place = Place { row, tier, above, busy: &busy, settings };
        let (mut row, edits) = with_slices(order, place, slices);
        self.edits.extend(edits);
        if tier == 0 {
            let (split, edits) = split_full(order, row, settings, busy);
            self.edits.extend(edits);
            row = split;
        }
        self.rows[tier] = Row::new(row);
    }

    /// Replaces a span by what is left of it, or by its parts.
    fn put(&mut self, tier: usize, at: usize, parts: Vec<Partition>) {
        let Some(row) = self.rows.get(tier) else { return };
        let old = &row.partitions()[at];
        self.edits.push(replace_in(tier, old, 1, &parts.iter().collect::<Vec<_>>()));
        let parts: Vec<_> = parts.into_iter().map(Arc::new).collect();
        self.replace(tier, at..at + 1, &parts);
    }

    /// Takes the runs that a push has read from their span. False: they are not its oldest.
    pub fn take_pushed<O: KeyOrder>(&mut self, order: &O, tier: usize, old: &Partition) -> bool {
        let Some(row) = self.rows.get(tier) else { return false };
        let Some(at) = row.position(order, old.lower.as_deref()) else { return false };
        let Some(left) = without_pushed(&row.partitions()[at], old) else { return false };
        self.put(tier, at, vec![left]);
        self.look_again(tier);
        true
    }

    /// Has the spans of a tier looked at: a busy span is not split, so it is looked at when it ceases
    /// to be busy.
    fn look_again(&mut self, tier: usize) {
        if let Some(before) = tier.checked_sub(1).and_then(|below| self.lens.get_mut(below)) {
            *before = 0;
        }
    }

    /// Puts partitions in the place of others of a row.
    fn replace(&mut self, tier: usize, place: Range<usize>, with: &[Arc<Partition>]) {
        let mut row = self.rows[tier].partitions().to_vec();
        row.splice(place, with.iter().cloned());
        self.rows[tier] = Row::new(row);
    }

    /// Splits spans that have too many children, makes a tier that is wanted, and removes one that
    /// is empty and not wanted.
    pub fn reshape<O: KeyOrder>(&mut self, order: &O, rules: Rules<'_>) {
        if !rules.grows {
            return;
        }
        for tier in 1..self.rows.len() {
            self.split_wide(order, tier, rules);
        }
        let present = self.rows.len() - 1;
        let wanted = wanted(self.rows[0].base_bytes(), present, rules.settings);
        if wanted > present {
            let below = self.rows[present].partitions();
            let spans = spans_over(below, &groups(below, policy::tier_bounds, rules.settings));
            let records = spans.iter().map(Partition::record).collect();
            self.edits.push(TreeEdit::Tier { tier: present + 1, spans: records });
            self.rows.push(Row::new(spans.into_iter().map(Arc::new).collect()));
        } else if wanted < present {
            let top = self.rows[present].partitions();
            let full = top.iter().filter(|span| !span.deltas.is_empty());
            let full: Vec<_> = full.map(|span| span.lower.clone()).collect();
            if !full.is_empty() {
                self.surplus = full;
                return;
            }
            self.edits.push(TreeEdit::Tier { tier: present, spans: Vec::new() });
            self.rows.pop();
        }
    }

    fn split_wide<O: KeyOrder>(&mut self, order: &O, tier: usize, rules: Rules<'_>) {
        let most = children_max(rules.settings);
        let below = self.rows[tier - 1].partitions().len();
        // A span gets more children only where the row below gets more partitions. So most changes
        // look at no span here (S17).
        if below <= most || self.lens.get(tier - 1).is_some_and(|before| below <= *before) {
            return;
        }
        let mut at = 0;
        while let Some(span) = self.rows[tier].partitions().get(at).cloned() {
            let below = &self.rows[tier - 1];
            let children = children(order, below, &span);
            at += 1;
            if children.len() <= most || (rules.busy)(tier, &span) {
                continue;
            }
            let children = &below.partitions()[children];
            let groups = groups(children, policy::span_bounds, rules.settings);
            let parts = split(order, &span, children, &groups);
            if parts.len() > 1 {
                at += parts.len() - 1;
                self.put(tier, at - parts.len(), parts);
            }
        }
    }

    /// Splits a partition or span into parts that are compacted or pushed one after the other,
    /// because there is no room for all of it. Returns their lower bounds; there is none if it cannot
    /// be split.
    pub fn cut_up<O: KeyOrder>(
        &mut self,
        order: &O,
        tier: usize,
        lower: Option<&[u8]>,
        settings: &Settings,
    ) -> Vec<Option<Vec<u8>>> {
        let Some(row) = self.rows.get(tier) else { return Vec::new() };
        let Some(at) = row.position(order, lower) else { return Vec::new() };
        let old = row.partitions()[at].clone();
        let parts = match tier.checked_sub(1).map(|below| &self.rows[below]) {
            None => cut_up(order, &old, settings),
            Some(below) => {
                let children = &below.partitions()[children(order, below, &old)];
                let half = children.len() / 2;
                split(order, &old, children, &[half, children.len() - half])
            }
        };
        if parts.len() < 2 {
            return Vec::new();
        }
        let lowers = parts.iter().map(|part| part.lower.clone()).collect();
        self.put(tier, at, parts);
        lowers
    }
}

/// [`Rows::reshape`] in the order of a keyspace.
pub fn reshape(order: &Order, rows: &mut Rows, rules: Rules<'_>) {
    match order {
        Order::Bytewise => rows.reshape(&Bytewise, rules),
        Order::Custom(order) => rows.reshape(order, rules),
        Order::Missing(_) => {}
    }
}

/// What a push made: its tier, its span as it began, and the slices for the row below.
pub type PushedRuns<'p> = (usize, &'p Partition, &'p [Slice]);

/// The parts of a span that have so many of its children, each with the runs that reach into it.
fn split<O: KeyOrder>(
    order: &O,
    span: &Partition,
    children: &[Arc<Partition>],
    groups: &[usize],
) -> Vec<Partition> {
    // Seeded: a span that is split loses what it held.
    bug!("compaction_split_span_loses_runs", return spans_over(children, groups));
    under_deltas(order, spans_over(children, groups), &span.deltas)
}

/// How many tiers a tree should have.
fn wanted(live: u64, present: usize, settings: &Settings) -> usize {
    settings.small_tiers.map_or_else(
        || policy::tiers_wanted(live, settings.flush_bytes(), present),
        |small| small.count,
    )
}

/// How many children the spans over these partitions have; `bounds` decides by their bytes.
fn groups(
    children: &[Arc<Partition>],
    bounds: impl Fn(&[u64]) -> Vec<usize>,
    settings: &Settings,
) -> Vec<usize> {
    let Some(small) = settings.small_tiers else { return bounds(&bytes_of(children)) };
    children.chunks(small.fan_out.max(1)).map(<[_]>::len).collect()
}

/// A span with more children is split.
fn children_max(settings: &Settings) -> usize {
    settings.small_tiers.map_or(policy::CHILDREN_MAX, |small| 2 * small.fan_out.max(1))
}

/// The row for which a flush is cut: that of the partitions, if the flush touches few of them and
/// the path to them is clear, or the top one.
pub fn route<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    cursor: &mut impl Cursor,
    tombstones: &Fragments,
    (bytes, settings): (u64, &Settings),
) -> Result<usize> {
    let top = tree.tiers().len();
    let Some(row) = tree.row(0).filter(|_| top > 0) else { return Ok(0) };
    let within = 0..row.partitions().len();
    let found = flush_targets(order, row, within, cursor, Cutter::new(tombstones))?;
    let touched = found.iter().map(|target| target.partitions.len()).sum();
    let route = match settings.small_tiers {
        Some(small) if touched <= small.direct => Route::Cut,
        Some(_) => Route::Top,
        None => policy::route(bytes, touched, settings.partition_bytes(), top),
    };
    if route == Route::Top {
        return Ok(top);
    }
    for FlushTarget { partitions, .. } in found {
        let (first, last) =
            (&row.partitions()[partitions.start], &row.partitions()[partitions.end - 1]);
        let mut extent = Keys { low: first.lower.clone(), high: last.upper.clone() };
        if tombstones.is_empty() {
            extent = keys_within(cursor, first)?;
        }
        if !is_clear(order, tree, extent.as_extent()) {
            return Ok(top);
        }
    }
    Ok(0)
}

/// A range of keys, with both ends.
#[derive(Debug, Default)]
struct Keys {
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

impl Keys {
    fn as_extent(&self) -> Extent<'_> {
        Extent { low: self.low.as_deref(), high: self.high.as_deref() }
    }
}

/// The first and the last key of a cursor in a partition, which has one.
fn keys_within(cursor: &mut impl Cursor, partition: &Partition) -> Result<Keys> {
    cursor.seek_start(partition.lower.as_deref())?;
    let low = cursor.valid().then(|| cursor.key().to_vec());
    match &partition.upper {
        Some(upper) => cursor.seek_before(upper)?,
        None => cursor.seek_to_last()?,
    }
    Ok(Keys { low, high: cursor.valid().then(|| cursor.key().to_vec()) })
}

/// The keys of which a slice says something.
fn extent_of(slice: &Slice) -> Extent<'_> {
    let segments = slice.run.segments();
    match (segments.first(), segments.last()) {
        (Some(first), Some(last)) if slice.run.tombstones().is_empty() => {
            Extent { low: Some(&first.meta().min_key), high: Some(&last.meta().max_key) }
        }
        _ => Extent { low: slice.lower.as_deref(), high: slice.upper.as_deref() },
    }
}

/// The rows of a tree with the slices of a flush, which were cut for row `tier`; `None`: they were
/// written for the partitions, and the path to these is not clear.
pub fn with_flush<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    (tier, slices): (usize, &[Slice]),
    rules: Rules<'_>,
) -> Option<Rows> {
    let mut rows = Rows::of(tree);
    let top = tree.tiers().len();
    let clear = || {
        // Seeded: a slice goes below older entries that a tier holds.
        bug!("compaction_direct_slice_under_pending_runs", return true);
        slices.iter().all(|slice| is_clear(order, tree, extent_of(slice)))
    };
    let direct = top == 0 || (tier == 0 && clear());
    if !direct && slices.iter().any(|slice| slice.bottom) {
        return None;
    }
    rows.add(order, if direct { 0 } else { top }, slices, rules);
    rows.reshape(order, rules);
    Some(rows)
}
