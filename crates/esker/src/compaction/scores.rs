//! How urgent the compaction of a partition and the push of a span are.
//!
//! [`policy`] decides by sizes and counts; this module counts them. Pure: nothing here does I/O.

use super::policy;
use crate::base::{FileId, Millis};
use crate::manifest::{Partition, Tree};
use crate::options::settings::Settings;
use crate::run::{Run, Segment};
use std::sync::Arc;

/// About so many compactions are remembered in the share of entries that replaced nothing.
const FRESH_MEMORY: f64 = 8.0;

/// A row and a lower bound.
pub type Place = (usize, Option<Vec<u8>>);

/// A compaction or a push that is due.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// The deltas as a multiple of what the laziness allows; from 1 on, a compaction is due.
    pub score: f64,
    /// What it reads.
    pub bytes: u64,
    /// Where its newest run begins.
    newest: Option<(FileId, u64)>,
}

impl Candidate {
    /// A partition or span with this score.
    pub fn of(part: &Partition, score: f64) -> Self {
        let newest = part.segments().next().map(|first| first.meta());
        let newest = newest.map(|meta| meta.place());
        Self { score, bytes: part.base.bytes() + part.delta_bytes(), newest }
    }

    /// What it has in common with the candidates of other trees that have not diverged. One of these
    /// is worked on at a time, because the result is installed in all of them (S12).
    pub fn family(self, place: Place) -> Option<(Place, (FileId, u64))> {
        // Seeded: what branches share is pushed and compacted for each of them at the same time.
        bug!("compaction_families_are_taken_together", return None);
        self.newest.map(|newest| (place, newest))
    }
}

/// What scores depend on besides the partition or span itself.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The share of what is written that replaces nothing, as compactions have seen it.
    pub fresh: f64,
    /// The pending runs at which a span is due.
    pub runs_max: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self { fresh: 0.0, runs_max: policy::RUNS_MAX }
    }
}

impl Shape {
    /// Looks at the size of the tree. Returns whether spans are due at another number of runs.
    pub fn follow(&mut self, tree: &Tree, settings: &Settings) -> bool {
        let before = self.runs_max;
        let (live, tiers) = (tree.rows()[0].base_bytes(), tree.tiers().len());
        self.runs_max = settings.small_tiers.map_or_else(
            || policy::runs_max(live, settings.flush_bytes(), tiers),
            |small| small.runs.max(1),
        );
        before != self.runs_max
    }

    /// How urgent the compaction of a partition is, or the push of a span; below 1 it can wait.
    pub fn score(&self, tier: usize, part: &Partition, settings: &Settings) -> f64 {
        if tier == 0 {
            compaction_score(part, self.fresh, settings)
        } else {
            push_score(part, self.runs_max, settings)
        }
    }

    /// Takes into account what a compaction has seen: the share of entries that replaced nothing.
    pub fn saw_fresh(&mut self, share: f64) {
        self.fresh += (share - self.fresh) / FRESH_MEMORY;
    }
}

/// How urgent the compaction of a partition is; below 1 it can wait.
fn compaction_score(partition: &Partition, fresh: f64, settings: &Settings) -> f64 {
    if partition.deltas.is_empty() {
        return 0.0;
    }
    // A delete frees the entry that it hides, so deltas with deletes count for more than their
    // size.
    let freed: u64 = partition
        .deltas
        .iter()
        .flat_map(|run| run.segments())
        .map(|segment| segment.meta().deletes)
        .sum();
    let average = partition.base.bytes() / partition.base.entries().max(1);
    policy::partition_due(
        policy::garbage(partition.delta_bytes(), fresh) + freed * average,
        partition.deltas.len(),
        partition.base.bytes(),
        settings.partition_bytes(),
        policy::stagger(partition.lower.as_deref()),
    )
}

/// How urgent the push of a span is; below 1 it can wait.
fn push_score(span: &Partition, runs_max: usize, settings: &Settings) -> f64 {
    // Tests want to know when a span is due.
    let even = settings.small_tiers.is_some();
    let stagger = if even { 0 } else { policy::stagger(span.lower.as_deref()) };
    policy::runs_due(span.deltas.len(), runs_max, stagger)
}

/// The share of the entries of a partition's deltas that replaced nothing, from 0 to 1: `base` came
/// out of its compaction.
pub fn fresh_share(old: &Partition, base: &Run) -> f64 {
    let entries: u64 = old.deltas.iter().map(|run| run.entries()).sum();
    let more = base.entries().saturating_sub(old.base.entries());
    (more as f64 / entries.max(1) as f64).min(1.0)
}

/// How urgent the compaction of a partition is because of entries that have expired at `time`;
/// below 1 it can wait. A quarter of dead space is too much. A segment counts only if everything in
/// it that can expire has expired: other segments would have to be rewritten again soon.
pub fn expiry_score(partition: &Partition, time: Millis) -> f64 {
    let dead = |segment: &Arc<Segment>| {
        let meta = segment.meta();
        meta.weight() as f64 * meta.specials.all_expired(time) as f64 / meta.entries.max(1) as f64
    };
    let segments = || partition.runs().flat_map(|run| run.segments());
    let bytes: u64 = segments().map(|segment| segment.meta().weight()).sum();
    4.0 * segments().map(dead).sum::<f64>() / bytes.max(1) as f64
}
