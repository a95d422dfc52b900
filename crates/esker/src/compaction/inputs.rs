//! The input of a compaction: the runs of a partition as the plan sees them, and its tombstones.
//!
//! After a split a run segment may extend beyond its partition. This module clips it to the
//! partition.

use super::plan::{Interval, SourceKind, SourceRuns};
use crate::base::rangedel::Fragments;
use crate::base::{KeyOrder, Millis};
use crate::manifest::Partition;
use crate::run::{Run, Segment};
use std::sync::Arc;

/// The runs of a partition as the plan sees them. A segment that extends beyond the partition is
/// declared to hold deletes: it cannot be taken over, because the neighbour has a part of it.
/// `whole`: nothing is taken over; `forced`: what is not either; `time` is that of the earliest reader.
pub fn sources<'p, O: KeyOrder>(
    order: &O,
    old: &'p Partition,
    whole: bool,
    forced: impl Fn(&Segment) -> bool,
    time: Millis,
) -> Vec<SourceRuns<'p, Arc<Segment>>> {
    let interval = |segment: &'p Arc<Segment>| {
        let meta = segment.meta();
        let inside = old.contains(order, &meta.min_key) && old.contains(order, &meta.max_key);
        // Seeded: a segment that extends into the next partition is taken over, and the neighbour
        // loses its part.
        let inside = inside || bug!("compaction_segment_across_partitions_reused");
        Interval {
            segment: segment.clone(),
            min: &meta.min_key,
            max: &meta.max_key,
            bytes: meta.weight(),
            deletes: (meta.deletes + meta.specials.operands).max(u64::from(!inside)),
            forced: whole || forced(segment),
            expired: meta.specials.all_expired(time) == meta.entries,
            expires: meta.specials.any_expired(time),
            shadowed: meta.shadowed,
            min_seq: meta.min_seq,
            max_seq: meta.max_seq,
        }
    };
    let source = |kind, run: &'p Arc<Run>| SourceRuns {
        kind,
        segments: run.segments().iter().map(interval).collect(),
    };
    let deltas = old.deltas.iter().map(|run| source(SourceKind::Delta, run));
    deltas.chain([source(SourceKind::Base, &old.base)]).collect()
}

/// All range tombstones of a partition, as one list.
pub fn all_within<O: KeyOrder>(order: &O, old: &Partition, lists: &[Arc<Fragments>]) -> Fragments {
    let (lower, upper) = (old.lower.as_deref(), old.upper.as_deref());
    let clipped: Vec<_> = lists.iter().map(|list| list.clip(order, lower, upper)).collect();
    Fragments::build(order, clipped.iter().flat_map(|list| list.tombstones()).collect())
}
