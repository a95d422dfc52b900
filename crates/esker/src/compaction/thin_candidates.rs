//! Which run segments may become smaller: newer runs hide something in them, or they reach into a
//! partition that was compacted without its neighbour and no longer refers to them.
//!
//! The answer follows from the metadata of run segments; nothing is read. It is a guess, which
//! rewriting the segment (`thin`) confirms or refutes.

use super::queue::PartitionKey;
use super::tiers::{runs_above, with_runs_above};
use crate::base::{FileId, KeyOrder, KeyspaceId, Seq};
use crate::catalog::KeyspaceState;
use crate::manifest::{Partition, Tree, Version};
use crate::run::{Run, Segment};
use std::collections::HashMap;
use std::sync::Arc;

/// The name of a segment that may have hidden entries.
#[derive(Debug, Clone)]
pub struct ThinKey {
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// Its file.
    pub file: FileId,
    /// Its offset in the file.
    pub offset: u64,
    /// Its first key.
    pub min_key: Vec<u8>,
    /// Its last key.
    pub max_key: Vec<u8>,
}

impl ThinKey {
    /// The name of a segment.
    pub fn of(keyspace: KeyspaceId, segment: &Segment) -> Self {
        let meta = segment.meta();
        let (min_key, max_key) = (meta.min_key.clone(), meta.max_key.clone());
        Self { keyspace, file: meta.file, offset: meta.offset, min_key, max_key }
    }
}

/// A segment, the partitions that refer to it, and the segments that replace it.
pub struct ThinJob {
    /// The keyspace.
    pub keyspace: Arc<KeyspaceState>,
    /// The segment.
    pub segment: Arc<Segment>,
    /// The partitions that refer to it.
    pub parts: Vec<Arc<Partition>>,
    /// For each of them, the runs that tiers hold above it.
    pub above: Vec<Vec<Arc<Run>>>,
    /// For each of them, what replaces the segment.
    pub written: Vec<Vec<Arc<Segment>>>,
}

impl ThinJob {
    /// The partitions, to be taken.
    pub fn keys(&self) -> Vec<PartitionKey> {
        let key = |part: &Arc<Partition>| {
            PartitionKey::of_partition(self.keyspace.id, part.lower.clone())
        };
        self.parts.iter().map(key).collect()
    }
}

/// What there was when a segment was examined.
#[derive(Debug, Clone, Copy)]
pub struct Examined {
    /// The newest sequence number that might have hidden something in it.
    pub upto: Seq,
    /// The partitions that referred to it.
    pub parts: usize,
}

/// What was known of segments that were examined, and for which snapshots.
#[derive(Debug, Default)]
pub struct Thinned {
    /// By file and offset.
    pub examined: HashMap<(FileId, u64), Examined>,
    /// The snapshots.
    pub snapshots: Vec<Seq>,
}

impl Thinned {
    /// Forgets segments that no longer exist.
    pub fn keep(&mut self, version: &Version) {
        let there = version.segments().filter_map(|segment| {
            let place = segment.meta().place();
            self.examined.get(&place).map(|known| (place, *known))
        });
        self.examined = there.collect();
    }
}

/// Whether the key names this segment.
pub fn is(segment: &Segment, key: &ThinKey) -> bool {
    segment.meta().place() == (key.file, key.offset)
}

/// Whether two segments may have keys in common, judged by their bounds.
pub fn overlap<O: KeyOrder>(order: &O, a: &Segment, b: &Segment) -> bool {
    let (a, b) = (a.meta(), b.meta());
    order.compare(&a.min_key, &b.max_key).is_le() && order.compare(&b.min_key, &a.max_key).is_le()
}

/// A segment of a partition, and what may be hidden in it.
pub struct Look {
    /// The segment.
    pub segment: Arc<Segment>,
    /// The number of runs below its own, for sorting the oldest first.
    pub below: usize,
    /// The newest sequence number that may hide something in it.
    pub newest: Seq,
    /// The fraction that, by the metadata, is hidden by entries newer than `known`, or lies in
    /// partitions that do not refer to it.
    pub part: f64,
    /// The sequence number up to which it was examined before.
    known: Option<Seq>,
}

/// What lies above the segments of a partition, in it or in the tiers, and hides entries there.
/// `all`: includes newer values, not only deletes.
pub fn look_at<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    own: &Partition,
    all: bool,
    known: impl Fn(&Segment) -> Option<Examined>,
) -> Vec<Look> {
    let partition = with_runs_above(order, tree, own);
    let runs: Vec<_> = partition.runs().collect();
    let hides = |segment: &Segment| {
        let meta = segment.meta();
        if all { meta.entries } else { meta.deletes }
    };
    let mut looks: Vec<Look> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        looks.extend(run.segments().iter().map(|segment| {
            let known = known(segment);
            let part = abandoned(order, tree, own, segment, known);
            let (segment, below) = (segment.clone(), runs.len() - at);
            Look { segment, below, newest: 0, part, known: known.map(|known| known.upto) }
        }));
    }
    for (at, run) in runs.iter().enumerate() {
        let is_below = |look: &&mut Look| look.below <= runs.len() - at;
        let ranges = run.tombstones().iter().map(|segment| segment.meta().max_seq).max();
        for look in looks.iter_mut().filter(is_below).filter(|_| ranges.is_some()) {
            let seq = ranges.unwrap_or(0);
            look.newest = look.newest.max(seq);
            look.part += f64::from(u8::from(look.known.is_none_or(|known| known < seq)));
        }
        for taker in run.segments().iter().filter(|segment| hides(segment) > 0) {
            let seq = taker.meta().max_seq;
            let own = taker.meta().deletes > 0 || taker.meta().shadowed;
            let under = |look: &&mut Look| {
                (if own { is_below(look) } else { look.below < runs.len() - at })
                    && overlap(order, taker, &look.segment)
            };
            let entries = looks.iter_mut().filter(under).map(|look| look.segment.meta().entries);
            let share = hides(taker) as f64 / entries.sum::<u64>().max(1) as f64;
            for look in looks.iter_mut().filter(under) {
                look.newest = look.newest.max(seq);
                look.part += if look.known.is_none_or(|known| known < seq) { share } else { 0.0 };
            }
        }
    }
    // What tiers hold is pushed, not thinned.
    let above = partition.deltas.len() - own.deltas.len();
    let is_promising = |look: &Look| look.part > 0.0 || look.newest > look.known.unwrap_or(0);
    looks.retain(|look| is_promising(look) && look.below <= runs.len() - above);
    looks
}

/// Whether a partition refers to the segment in this place.
fn refers(part: &Partition, place: (FileId, u64)) -> bool {
    let mut segments = part.runs().flat_map(|run| run.segments()).map(|segment| segment.meta());
    segments.any(|meta| meta.place() == place)
}

/// The partitions that hold keys of a segment.
fn reached<'t, O: KeyOrder>(
    order: &O,
    tree: &'t Tree,
    (first, last): (&[u8], &[u8]),
) -> &'t [Arc<Partition>] {
    &tree.partitions()[tree.find(order, first)..=tree.find(order, last)]
}

/// The fraction of a segment of `own` that lies in partitions which do not refer to it, as if all
/// held the same; 0 if it was examined when no more referred to it than now.
fn abandoned<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    own: &Partition,
    segment: &Segment,
    known: Option<Examined>,
) -> f64 {
    let meta = segment.meta();
    let starts_within = own.lower.as_ref().is_none_or(|l| order.compare(l, &meta.min_key).is_le());
    let ends_within = own.upper.as_ref().is_none_or(|u| order.compare(&meta.max_key, u).is_lt());
    if starts_within && ends_within {
        return 0.0;
    }
    let reached = reached(order, tree, (&meta.min_key, &meta.max_key));
    let parts = reached.iter().filter(|part| refers(part, meta.place())).count();
    if parts == 0 || known.is_some_and(|known| known.parts <= parts) {
        return 0.0;
    }
    1.0 - parts as f64 / reached.len() as f64
}

/// The partitions of a tree that refer to a segment, and the runs that tiers hold above each.
pub fn referring<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    key: &ThinKey,
) -> (Vec<Arc<Partition>>, Vec<Vec<Arc<Run>>>) {
    let names = |part: &&Arc<Partition>| refers(part, (key.file, key.offset));
    // A partition between them may have been compacted since, and no longer refer to it.
    let reached = reached(order, tree, (&key.min_key, &key.max_key));
    let parts: Vec<_> = reached.iter().filter(names).cloned().collect();
    let above = parts.iter().map(|part| runs_above(order, tree, part)).collect();
    (parts, above)
}

/// The present indexes of partitions that were taken.
pub fn places<O: KeyOrder>(order: &O, tree: &Tree, parts: &[Arc<Partition>]) -> Option<Vec<usize>> {
    parts.iter().map(|part| tree.position(order, part.lower.as_deref())).collect()
}

/// The partition with `segments` in place of one segment.
pub fn replaced(old: &Partition, gone: &Arc<Segment>, segments: &[Arc<Segment>]) -> Partition {
    let change = |run: &Arc<Run>| {
        let Some(at) = run.segments().iter().position(|segment| Arc::ptr_eq(segment, gone)) else {
            return run.clone();
        };
        let mut all = run.segments().to_vec();
        all.splice(at..=at, segments.iter().cloned());
        Arc::new(Run::new(run.role(), all, run.tombstones().to_vec()))
    };
    let deltas = old.deltas.iter().map(change).filter(|run| !run.is_empty()).collect();
    let (lower, upper) = (old.lower.clone(), old.upper.clone());
    Partition { lower, upper, base: change(&old.base), deltas }
}
