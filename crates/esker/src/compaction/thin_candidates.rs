//! Which run segments may become smaller, because newer runs hide something in them.
//!
//! The answer follows from the metadata of run segments; nothing is read. It is a guess, which
//! rewriting the segment (`thin`) confirms or refutes.

use super::tiers::{runs_above, with_runs_above};
use crate::base::{FileId, KeyOrder, KeyspaceId, Seq};
use crate::manifest::{Partition, Tree};
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
}

impl ThinKey {
    /// The name of a segment.
    pub fn of(keyspace: KeyspaceId, segment: &Segment) -> Self {
        let meta = segment.meta();
        Self { keyspace, file: meta.file, offset: meta.offset, min_key: meta.min_key.clone() }
    }
}

/// Up to which sequence number segments were examined, and for which snapshots.
#[derive(Debug, Default)]
pub struct Thinned {
    /// By file and offset.
    pub upto: HashMap<(FileId, u64), Seq>,
    /// The snapshots.
    pub snapshots: Vec<Seq>,
}

/// Whether the key names this segment.
pub fn is(segment: &Segment, key: &ThinKey) -> bool {
    (segment.meta().file, segment.meta().offset) == (key.file, key.offset)
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
    /// The fraction that, by the metadata, is hidden by entries newer than `known`.
    pub part: f64,
    /// The sequence number up to which it was examined before.
    pub known: Option<Seq>,
}

/// What lies above the segments of a partition, in it or in the tiers, and hides entries there.
/// `all`: includes newer values, not only deletes.
pub fn look_at<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    own: &Partition,
    all: bool,
    known: impl Fn(&Segment) -> Option<Seq>,
) -> Vec<Look> {
    let partition = with_runs_above(order, tree, own);
    let runs: Vec<_> = partition.runs().collect();
    let hides = |segment: &Segment| {
        let meta = segment.meta();
        if all { meta.entries } else { meta.deletes }
    };
    let mut looks: Vec<Look> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        looks.extend(run.segments().iter().map(|segment| Look {
            segment: segment.clone(),
            below: runs.len() - at,
            newest: 0,
            part: 0.0,
            known: known(segment),
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
    looks.retain(|look| look.newest > look.known.unwrap_or(0) && look.below <= runs.len() - above);
    looks
}

/// The partitions of a tree that refer to a segment, and the runs that tiers hold above each.
pub fn referring<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    key: &ThinKey,
) -> (Vec<Arc<Partition>>, Vec<Vec<Arc<Run>>>) {
    let refers = |part: &&Arc<Partition>| {
        part.runs().flat_map(|run| run.segments()).any(|segment| is(segment, key))
    };
    let first = tree.find(order, &key.min_key);
    // These partitions are neighbours, since a segment is one range of keys.
    let parts: Vec<_> = tree.partitions()[first..].iter().take_while(refers).cloned().collect();
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
