//! The shape of a tree, as statistics show it: its levels and its run segments.
//!
//! Nothing here reads a file: the metadata of the run segments is in memory.

use super::report::{LevelShape, SegmentShape, TreeShape};
use crate::manifest::{Partition, Row, Tree};
use crate::run::{Run, Segment, SegmentKind};
use std::iter;

/// Runs of partitions that are looked at in one step of work.
const RUNS_PER_STEP: u64 = 10;
/// Run segments that are looked at in one step of work.
const SEGMENTS_PER_STEP: u64 = 100;

/// The shapes of these trees, each with the name of its keyspace and its compaction debt, and how
/// many steps of work that was: one for each tree, for ten runs of its partitions, and for a
/// hundred run segments.
pub fn tree_shapes<'t>(
    trees: impl Iterator<Item = (&'t str, Option<&'t Tree>, u64)>,
) -> (Vec<TreeShape>, u64) {
    let mut steps = 0;
    let shape = |(keyspace, tree, compaction_debt): (&str, Option<&Tree>, u64)| {
        let shape = tree_shape(keyspace, tree);
        let levels = || iter::once(&shape.base).chain(&shape.deltas).chain(&shape.tiers);
        let deltas: u64 = shape.deltas.iter().map(|level| level.runs).sum();
        let segments: u64 = levels().map(|level| level.segments).sum();
        steps += 1 + (shape.partitions + deltas) / RUNS_PER_STEP + segments / SEGMENTS_PER_STEP;
        TreeShape { compaction_debt, ..shape }
    };
    (trees.map(shape).collect(), steps)
}

/// The shape of the tree of a keyspace of this name; `None`: nothing was flushed yet.
fn tree_shape(keyspace: &str, tree: Option<&Tree>) -> TreeShape {
    let mut shape = TreeShape { keyspace: keyspace.to_owned(), ..TreeShape::default() };
    for partition in tree.into_iter().flat_map(|tree| tree.partitions()) {
        shape.partitions += 1;
        add_level(&mut shape.base, &partition.base);
        for (age, delta) in partition.deltas.iter().enumerate() {
            if shape.deltas.len() <= age {
                shape.deltas.push(LevelShape::default());
            }
            add_level(&mut shape.deltas[age], delta);
        }
    }
    for row in tree.into_iter().flat_map(|tree| tree.tiers()) {
        let mut tier = LevelShape::default();
        let spans = row.partitions().iter();
        spans.flat_map(|span| &span.deltas).for_each(|run| add_level(&mut tier, run));
        shape.tiers.push(tier);
    }
    shape
}

fn add_level(level: &mut LevelShape, run: &Run) {
    if !run.is_empty() {
        level.runs += 1;
        level.segments += (run.segments().len() + run.tombstones().len()) as u64;
        level.bytes += run.bytes();
        level.entries += run.entries();
        for segment in run.segments() {
            level.value_bytes += segment.meta().weight() - segment.meta().len;
            let values = segment.meta().values.iter().zip(segment.values());
            let strong = values.filter(|(_, values)| values.is_strongly_compressed());
            level.value_zstd_bytes += strong.map(|(used, _)| used.disk_bytes()).sum::<u64>();
            let Some(stored) = segment.stored() else {
                level.unread_bytes += segment.meta().len;
                continue;
            };
            level.raw_bytes += stored.raw;
            level.lz4_bytes += stored.lz4;
            level.zstd_bytes += stored.zstd;
        }
    }
}

/// The run segments of a tree: those of the tiers from the top one down, then those of the
/// partitions.
pub fn segments_of_tree(tree: &Tree) -> impl Iterator<Item = SegmentShape> + '_ {
    let of_row = |(tier, row): (usize, &'_ Row)| {
        row.partitions().iter().flat_map(|part| segments_of(tier, part)).collect::<Vec<_>>()
    };
    tree.rows().iter().enumerate().rev().flat_map(of_row)
}

/// The run segments of a partition, or of a span of a tier, from the newest run to the oldest.
fn segments_of(tier: usize, partition: &Partition) -> impl Iterator<Item = SegmentShape> + '_ {
    let oldest = partition.deltas.len() as u64;
    let of_run = move |(at, run): (usize, &Run)| {
        let place = (tier as u64, oldest - at as u64);
        let all = run.segments().iter().chain(run.tombstones());
        all.map(|segment| segment_shape(place, segment)).collect::<Vec<_>>()
    };
    partition.runs_in(tier).map(|run| run.as_ref()).enumerate().flat_map(of_run)
}

fn segment_shape((tier, age): (u64, u64), segment: &Segment) -> SegmentShape {
    let meta = segment.meta();
    SegmentShape {
        tier,
        age,
        file: meta.file,
        offset: meta.offset,
        bytes: meta.weight(),
        entries: meta.entries,
        smallest: meta.min_key.clone(),
        largest: meta.max_key.clone(),
        tombstones: meta.kind == SegmentKind::Tombstones,
    }
}
