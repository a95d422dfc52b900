//! Writing slices: the output of a flush or a push, cut at the bounds of a row.
//!
//! A flush and a push differ in their source and in the row that they write for. Both merge what
//! the source holds once, cut it at the bounds of the row, and write a slice for each partition (or
//! span) that gets something.
//!
//! 1. What a slice hides may lie below it, so it keeps deletes, range tombstones and sequence
//!    numbers. Only where the caller knows that nothing older lies below are they dropped
//!    ([`Goal::bottom`]).
//! 2. Range tombstones are in the slice of the keys that they cover, with the entries of the same
//!    source: they sink together (S1).
//! 3. A slice whose tombstones hide everything in its partitions from every reader says so
//!    ([`Slice::hides_below`]). It does not in a tier: what they hide may lie further down.

use super::flush_slices::Slice;
use super::flush_targets::{FlushTarget, flush_targets};
use super::{CompactionCounts, CompactionRule, CompactionStream, Depth};
use crate::base::rangedel::{Cutter, Fragments};
use crate::base::{Cursor, KeyOrder, Operator, SEQ_MAX};
use crate::error::Result;
use crate::iter::LoserTree;
use crate::manifest::{Partition, Row};
use crate::run::{Role, Run, RunWriter, Segment};
use crate::sync::both;
use std::ops::Range;
use std::sync::Arc;

/// What slices are made of.
pub struct Material<'m, C> {
    /// Opens cursors over the entries, those of the newest source first.
    pub open: &'m (dyn Fn() -> Vec<C> + Sync),
    /// The range tombstones.
    pub tombstones: Fragments,
    /// Applies operands.
    pub operator: Arc<Operator>,
    /// What must be preserved.
    pub rule: &'m CompactionRule,
}

/// The partitions of a row that slices are made for.
pub struct Targets<'t> {
    /// The row.
    pub row: &'t Row,
    /// Its number: 0 for partitions.
    pub tier: usize,
    /// Those of its partitions that may get slices.
    pub within: Range<usize>,
}

/// How a slice is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Goal {
    /// Whether nothing older lies below its partitions.
    pub bottom: bool,
    /// Whether it stays as it is for long, so that it is compressed.
    pub settled: bool,
}

/// Where slices are written.
pub trait Output {
    /// Begins the entries of a slice: they are compressed if they are `settled`.
    fn begin(&mut self, settled: bool) -> Result<()>;
    /// The writer, created when it is first needed.
    fn writer(&mut self) -> Result<&mut RunWriter>;
    /// The segments that were ended since the last call.
    fn segments(&mut self) -> Vec<Arc<Segment>>;
    /// Called between steps.
    fn pause(&mut self) -> Result<()>;
    /// Called with the counts of each slice.
    fn note(&mut self, counts: &CompactionCounts);
}

/// What becomes one slice.
struct Piece<'t> {
    partitions: &'t [Arc<Partition>],
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    has_entries: bool,
}

/// Writes what the material holds for these partitions. `goal` decides how the slice of some of
/// them is written; its second argument is a cursor if there are entries.
pub fn write_slices<O: KeyOrder, C: Cursor>(
    order: &O,
    material: &Material<'_, C>,
    targets: Targets<'_>,
    goal: impl Fn(&[Arc<Partition>], Option<&mut LoserTree<C, O>>) -> Result<Goal>,
    output: &mut impl Output,
) -> Result<Vec<Slice>> {
    let (pieces, tombstones) = pieces(order, material, &targets)?;
    write_pieces(order, material, (targets.tier, &tombstones), &pieces, goal, output)
}

/// As [`write_slices`]; by two threads, if there is a `middle`, a key of an entry: what precedes it goes
/// to the first output, and the rest to the second one.
pub fn write_in_two<O: KeyOrder, C: Cursor>(
    order: &O,
    material: &Material<'_, C>,
    targets: Targets<'_>,
    goal: impl Fn(&[Arc<Partition>], Option<&mut LoserTree<C, O>>) -> Result<Goal> + Sync,
    (middle, [first, second]): (Option<Vec<u8>>, [&mut (impl Output + Send); 2]),
) -> Result<Vec<Slice>> {
    let (pieces, tombstones) = pieces(order, material, &targets)?;
    let (tier, goal) = ((targets.tier, &tombstones), &goal);
    // A range delete must not be cut: a slice knows whether it hides all of its partition.
    let Some(middle) = middle.filter(|_| tombstones.is_empty()) else {
        return write_pieces(order, material, tier, &pieces, goal, first);
    };
    let (low, high) = halves(order, material, pieces, &middle)?;
    let (upper, lower) = both(
        "esker-flush",
        || write_pieces(order, material, tier, &high, goal, second),
        || write_pieces(order, material, tier, &low, goal, first),
    );
    let mut slices = lower?;
    slices.extend(upper?);
    Ok(slices)
}

/// What there is to write, and the range tombstones that survive.
fn pieces<'t, O: KeyOrder, C: Cursor>(
    order: &O,
    material: &Material<'_, C>,
    targets: &Targets<'t>,
) -> Result<(Vec<Piece<'t>>, Arc<Fragments>)> {
    let Targets { row, within, .. } = targets;
    let row: &'t Row = row;
    let upper = material.rule.clone().at(Depth::Upper);
    let tombstones = Arc::new(upper.surviving(order, &material.tombstones));
    let mut look = LoserTree::new(order.clone(), (material.open)());
    let found = flush_targets(order, row, within.clone(), &mut look, Cutter::new(&tombstones))?;
    look.check()?;
    let piece = |FlushTarget { partitions, has_entries }| {
        let partitions = &row.partitions()[partitions];
        let lower = partitions.first().and_then(|first| first.lower.clone());
        let upper = partitions.last().and_then(|last| last.upper.clone());
        Piece { partitions, lower, upper, has_entries }
    };
    Ok((found.into_iter().map(piece).collect(), tombstones))
}

/// The pieces before and behind a key of an entry; the piece around the key is cut.
fn halves<'t, O: KeyOrder, C: Cursor>(
    order: &O,
    material: &Material<'_, C>,
    mut pieces: Vec<Piece<'t>>,
    middle: &[u8],
) -> Result<(Vec<Piece<'t>>, Vec<Piece<'t>>)> {
    let before = |bound: &Option<Vec<u8>>| {
        bound.as_ref().is_some_and(|bound| order.compare(bound, middle).is_le())
    };
    let at = pieces.partition_point(|piece| before(&piece.upper));
    let mut high = pieces.split_off(at);
    let Some(around) = high.first_mut() else { return Ok((pieces, high)) };
    let mut look = LoserTree::new(order.clone(), (material.open)());
    look.seek_start(around.lower.as_deref())?;
    if around.has_entries && look.valid() && order.compare(look.key(), middle).is_lt() {
        pieces.push(Piece {
            partitions: around.partitions,
            lower: around.lower.replace(middle.to_vec()),
            upper: Some(middle.to_vec()),
            has_entries: true,
        });
    }
    Ok((pieces, high))
}

fn write_pieces<O: KeyOrder, C: Cursor>(
    order: &O,
    material: &Material<'_, C>,
    (tier, tombstones): (usize, &Arc<Fragments>),
    pieces: &[Piece<'_>],
    goal: impl Fn(&[Arc<Partition>], Option<&mut LoserTree<C, O>>) -> Result<Goal>,
    output: &mut impl Output,
) -> Result<Vec<Slice>> {
    let mut look = LoserTree::new(order.clone(), (material.open)());
    let mut cutter = Cutter::new(tombstones);
    let mut slices = Vec::new();
    for Piece { partitions, lower, upper, has_entries } in pieces {
        let (lower, upper) = (lower.clone(), upper.clone());
        let Goal { bottom, settled } = goal(partitions, has_entries.then_some(&mut look))?;
        // Seeded: a flush drops deletes although older entries lie below.
        let bottom = bottom || bug!("compaction_slices_always_at_the_bottom");
        let gc = material.rule.clone().at(if bottom { Depth::Bottom } else { Depth::Upper });
        let removed = cutter.cut(order, lower.as_deref(), upper.as_deref());
        let hides_below = if tier == 0 && gc.is_seen_by_all(removed.max_seq()) {
            removed.covers_all(order, lower.as_deref(), upper.as_deref(), SEQ_MAX)
        } else {
            0
        };
        let survivors = if bottom { gc.surviving(order, &removed) } else { removed };
        let mut segments = Vec::new();
        if *has_entries {
            let cursors = (material.open)();
            let mut stream =
                CompactionStream::new(order.clone(), cursors, vec![tombstones.clone()], gc)
                    .with_operator(material.operator.clone())
                    .within(lower.clone(), upper.clone());
            segments = write_entries(order, &mut stream, settled || hides_below > 0, output)?;
        }
        // Seeded: a flush or a push loses range deletes.
        let survivors = if bug!("compaction_slices_lose_range_deletes") {
            Fragments::default()
        } else {
            survivors
        };
        let mut lists = Vec::new();
        if !survivors.is_empty() {
            output.writer()?.add_tombstones::<O>(&survivors)?;
            lists = output.segments();
        }
        let run = Run::new(Role::Delta, segments, lists);
        if !run.is_empty() {
            slices.push(Slice { lower, upper, run: Arc::new(run), hides_below, bottom });
        }
    }
    Ok(slices)
}

/// Every segment of these slices.
pub fn segments_of<'s>(slices: impl Iterator<Item = &'s Slice>) -> Vec<Arc<Segment>> {
    let runs = slices.map(|slice| &slice.run);
    runs.flat_map(|run| run.segments().iter().chain(run.tombstones())).cloned().collect()
}

fn write_entries<O: KeyOrder, C: Cursor>(
    order: &O,
    stream: &mut CompactionStream<C, O, Arc<Fragments>>,
    settled: bool,
    output: &mut impl Output,
) -> Result<Vec<Arc<Segment>>> {
    output.begin(settled)?;
    loop {
        let writer = output.writer()?;
        let mut out =
            |key: &[u8], seq, kind, value: &[u8]| writer.add(order, key, seq, kind, value);
        if !stream.advance(&mut out)? {
            break;
        }
        output.pause()?;
    }
    output.note(&stream.counts());
    output.writer()?.cut()?;
    Ok(output.segments())
}

/// Whether no run of a partition has keys between the cursor's first and last key there. If so, the
/// base adopts the cursor's entries, so the flush compresses them.
pub fn lies_clear<O: KeyOrder>(
    order: &O,
    partition: &Partition,
    cursor: &mut impl Cursor,
) -> Result<bool> {
    if !partition.deltas.is_empty() {
        return Ok(false);
    }
    cursor.seek_start(partition.lower.as_deref())?;
    let first = cursor.key().to_vec();
    match &partition.upper {
        Some(upper) => cursor.seek_before(upper)?,
        None => cursor.seek_to_last()?,
    }
    let segments = partition.base.segments();
    let next = segments.partition_point(|s| order.compare(&s.meta().max_key, &first).is_lt());
    let clear = |next: &Arc<Segment>| order.compare(cursor.key(), &next.meta().min_key).is_lt();
    Ok(cursor.valid() && segments.get(next).is_none_or(clear))
}
