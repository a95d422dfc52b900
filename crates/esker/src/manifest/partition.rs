//! A partition: a contiguous range of keys with a base run and delta runs. A span of a tier is a
//! partition too: its base is empty, and its deltas are its pending runs.
//!
//! 1. A partition's deltas are ordered from new to old, and every entry of a delta is newer than
//!    every entry of the same key in older deltas and in the base.
//! 2. A run segment may reach beyond the bounds of a partition that refers to it, after a split of
//!    the partition. Then the neighbours refer to it too, and each reads only its own part.
//! 3. A partition never changes: an edit makes a new one that shares the runs.

use crate::base::KeyOrder;
use crate::manifest::{PartitionRecord, RunRecord};
use crate::run::{Role, Run, Segment, SegmentMeta};
use crate::trace::StepSource;
use std::sync::Arc;

/// A contiguous range of keys with its runs.
#[derive(Debug)]
pub struct Partition {
    /// First possible key; `None`: no lower bound.
    pub lower: Option<Vec<u8>>,
    /// First key behind it; `None`: no upper bound.
    pub upper: Option<Vec<u8>>,
    /// The base run.
    pub base: Arc<Run>,
    /// The delta runs, the newest first.
    pub deltas: Vec<Arc<Run>>,
}

/// What the places of a partition in rows and maps take.
const PLACES_BYTES: usize = 256;

impl Partition {
    /// Bytes of all deltas.
    pub fn delta_bytes(&self) -> u64 {
        self.deltas.iter().map(|run| run.bytes()).sum()
    }

    /// Whether the key is within the bounds, which must be of this order.
    pub fn contains<O: KeyOrder>(&self, order: &O, key: &[u8]) -> bool {
        self.lower.as_deref().is_none_or(|lower| order.compare(lower, key).is_le())
            && self.upper.as_deref().is_none_or(|upper| order.compare(key, upper).is_lt())
    }

    /// This partition with one more delta on top.
    #[must_use]
    pub fn with_delta(&self, run: Arc<Run>) -> Self {
        let deltas = std::iter::once(run).chain(self.deltas.iter().cloned()).collect();
        let (lower, upper) = (self.lower.clone(), self.upper.clone());
        Self { lower, upper, base: self.base.clone(), deltas }
    }

    /// Every run, from new to old: deltas, then the base.
    pub fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.deltas.iter().chain(std::iter::once(&self.base))
    }

    /// The runs that it has in a row: those of a span are its pending runs.
    #[inline]
    pub fn runs_in(&self, tier: usize) -> impl Iterator<Item = &Arc<Run>> {
        let count = self.deltas.len() + usize::from(tier == 0);
        (0..count).map(|n| self.deltas.get(n).unwrap_or(&self.base))
    }

    /// What explanations call run `n` of the partition with this number in row `tier`, counted
    /// from the newest.
    pub fn source(&self, tier: usize, number: usize, n: usize) -> StepSource {
        let age = self.deltas.len().saturating_sub(n) as u64;
        let (tier, partition) = (tier as u64, number as u64);
        StepSource::Run { tier, partition, age, file: None, segment: None }
    }

    /// Whether it has no run with anything in it.
    pub fn is_empty(&self) -> bool {
        self.runs().all(|run| run.is_empty())
    }

    /// Whether another partition has the same bounds, and runs of the same segments: that of another
    /// tree which has not diverged here.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<Run>, &Arc<Run>)| Arc::ptr_eq(a, b) || a.is_same(b);
        std::ptr::eq(self, other)
            || self.lower == other.lower
                && self.upper == other.upper
                && self.deltas.len() == other.deltas.len()
                && self.runs().zip(other.runs()).all(same)
    }

    /// Every segment that this partition refers to: those of its runs, and the value segments to which
    /// they refer, as often as they do.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        // Seeded: value segments are given back while keys refer to them.
        let all = if bug!("manifest_value_segments_not_counted") { 1 } else { usize::MAX };
        self.run_segments().flat_map(move |segment| segment.with_its_values().take(all))
    }

    /// About the memory that it takes without its segments: itself, its bounds and its runs, its place in a row, in
    /// the store and in the queue of compactions.
    pub fn described_bytes(&self) -> u64 {
        let bounds = [&self.lower, &self.upper].into_iter().flatten().map(Vec::len).sum::<usize>();
        let runs = self.deltas.len() + 1;
        let runs = runs * (size_of::<Run>() + size_of::<Arc<Run>>() + 2 * size_of::<usize>());
        (size_of::<Self>() + 2 * bounds + runs + PLACES_BYTES) as u64
    }

    /// Every segment of its runs.
    pub fn run_segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.runs().flat_map(|run| run.segments().iter().chain(run.tombstones()))
    }

    /// This partition as the manifest writes it.
    pub fn record(&self) -> PartitionRecord {
        PartitionRecord {
            lower: self.lower.clone(),
            base: run_record(&self.base),
            deltas: self.deltas.iter().map(|run| run_record(run)).collect(),
        }
    }
}

/// A run as the manifest writes it.
pub fn run_record(run: &Run) -> RunRecord {
    let metas = |segments: &[Arc<Segment>]| segments.iter().map(|s| s.meta().clone()).collect();
    RunRecord { segments: metas(run.segments()), tombstones: metas(run.tombstones()) }
}

impl Default for Partition {
    /// All keys, without entries.
    fn default() -> Self {
        let base = Arc::new(Run::new(Role::Base, Vec::new(), Vec::new()));
        Self { lower: None, upper: None, base, deltas: Vec::new() }
    }
}

/// The run of a record; `segment` returns the shared segment object for a description.
pub(super) fn build_run(
    role: Role,
    record: &RunRecord,
    segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
) -> Run {
    let segments = record.segments.iter().map(&mut *segment).collect();
    let tombstones = record.tombstones.iter().map(&mut *segment).collect();
    Run::new(role, segments, tombstones)
}

/// The partitions of these records; the last one ends at `upper`.
pub(super) fn build_partitions(
    records: &[PartitionRecord],
    upper: Option<Vec<u8>>,
    segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
) -> Vec<Arc<Partition>> {
    let next_lower = records.iter().skip(1).map(|p| p.lower.clone()).chain([upper]);
    let build = |(record, upper): (&PartitionRecord, Option<Vec<u8>>)| {
        Arc::new(Partition {
            lower: record.lower.clone(),
            upper,
            base: Arc::new(build_run(Role::Base, &record.base, segment)),
            deltas: record
                .deltas
                .iter()
                .map(|run| Arc::new(build_run(Role::Delta, run, segment)))
                .collect(),
        })
    };
    records.iter().zip(next_lower).map(build).collect()
}
