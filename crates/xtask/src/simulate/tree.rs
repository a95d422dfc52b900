//! The tree of the simulator: rows of spans over a row of partitions, as sizes and bounds.
//!
//! 1. The bounds of a row are also bounds of the row below it; each row covers all keys.
//! 2. The path of a key goes from its span in the top row to its partition. A flush adds a run in
//!    front; a push and a compaction take the oldest runs, those that they read.
//! 3. A part knows how many runs lie over the fullest key below it, its own runs included.

use super::load::{Run, World};
use esker::internals::compaction::policy;
use std::collections::VecDeque;

/// A partition or a span.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) base: Option<Run>,
    /// Deltas or pending runs, the newest first.
    pub(crate) runs: VecDeque<Run>,
    pub(crate) busy: bool,
    pub(crate) stagger: u64,
    /// Bytes of the base and of the runs; deletes count for what they free.
    pub(crate) base_bytes: f64,
    pub(crate) run_bytes: f64,
    pub(crate) freed: f64,
    /// The runs over the fullest key of this part and of what lies below.
    deepest: usize,
    /// The same for the runs that lie there although they are due.
    late: f64,
}

impl Part {
    fn new(from: f64, to: f64) -> Self {
        let stagger = policy::stagger(Some(&from.to_bits().to_be_bytes()));
        Self { from, to, stagger, ..Self::default() }
    }

    /// Counts again what it holds.
    fn weigh(&mut self, world: &World) {
        self.base_bytes = self.base.map_or(0.0, |base| base.bytes(world));
        self.run_bytes = self.runs.iter().map(|run| run.bytes(world)).sum();
        self.freed = self.runs.iter().map(|run| run.freed(world)).sum();
    }

    pub(crate) fn bytes(&self) -> f64 {
        self.base_bytes + self.run_bytes
    }

    fn own(&self) -> usize {
        self.runs.len() + usize::from(self.base.is_some())
    }
}

/// Rows, that of the partitions first.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) rows: Vec<Vec<Part>>,
    /// Bytes of everything.
    pub(crate) bytes: f64,
    /// Bytes of the bases.
    pub(crate) bases: f64,
    pub(crate) partition_bytes: f64,
    /// The pending runs at which a span is due.
    pub(crate) runs_max: usize,
    /// The share of what is written that replaces nothing.
    pub(crate) fresh: f64,
}

impl Tree {
    /// One row of partitions over this base.
    pub(crate) fn new(base: Option<Run>, partition_bytes: f64, world: &World) -> Self {
        let mut first = Part::new(f64::NEG_INFINITY, f64::INFINITY);
        first.base = base;
        first.weigh(world);
        let bytes = first.bytes();
        let mut tree = Self {
            rows: vec![vec![first]],
            bytes,
            bases: bytes,
            partition_bytes,
            runs_max: policy::RUNS_MAX,
            fresh: 0.0,
        };
        tree.settle(0, 0);
        tree.split_full(0, world);
        tree
    }

    pub(crate) fn tiers(&self) -> usize {
        self.rows.len() - 1
    }

    /// The part of a row in which a key lies.
    pub(crate) fn find(&self, row: usize, key: f64) -> usize {
        self.rows[row].partition_point(|part| part.from <= key).saturating_sub(1)
    }

    /// The parts of the row below that lie in a span.
    pub(crate) fn children(&self, row: usize, at: usize) -> std::ops::Range<usize> {
        let Part { from, to, .. } = self.rows[row][at];
        let below = &self.rows[row - 1];
        self.find(row - 1, from)..below.partition_point(|part| part.from < to)
    }

    /// The runs over a key.
    pub(crate) fn runs_over(&self, key: f64) -> usize {
        let own = |row: usize| self.rows[row][self.find(row, key)].own();
        (0..self.rows.len()).map(own).sum()
    }

    /// How urgent the push or compaction of a part is.
    pub(crate) fn score(&self, row: usize, part: &Part) -> f64 {
        if row > 0 {
            return policy::runs_due(part.runs.len(), self.runs_max, part.stagger);
        }
        let bytes = policy::garbage(part.run_bytes as u64, self.fresh) + part.freed as u64;
        let (base, intended) = (part.base_bytes as u64, self.partition_bytes as u64);
        policy::partition_due(bytes, part.runs.len(), base, intended, part.stagger)
    }

    /// The runs over the fullest key.
    pub(crate) fn deepest(&self) -> usize {
        self.rows.last().into_iter().flatten().map(|part| part.deepest).max().unwrap_or(0)
    }

    /// How full the fullest path is.
    pub(crate) fn fill(&self) -> f64 {
        let top = || self.rows.last().into_iter().flatten();
        let fill = |part: &Part| policy::fill(part.deepest, part.late, self.tiers(), self.runs_max);
        top().map(fill).fold(0.0, f64::max)
    }

    /// Counts the runs over the keys of a part and of the spans above it.
    fn settle(&mut self, row: usize, at: usize) {
        let (mut row, mut at) = (row, at);
        loop {
            let (mut deepest, mut late) = (0, 0.0_f64);
            if row > 0 {
                for part in &self.rows[row - 1][self.children(row, at)] {
                    deepest = deepest.max(part.deepest);
                    late = late.max(part.late);
                }
            }
            let part = &self.rows[row][at];
            late += policy::late(part.runs.len(), self.score(row, part));
            deepest += part.own();
            let part = &mut self.rows[row][at];
            (part.deepest, part.late) = (deepest, late);
            let from = part.from;
            row += 1;
            if row == self.rows.len() {
                return;
            }
            at = self.find(row, from);
        }
    }

    /// Changes a part and keeps all sums.
    pub(crate) fn change(
        &mut self,
        row: usize,
        at: usize,
        world: &World,
        change: impl FnOnce(&mut Part),
    ) {
        let part = &mut self.rows[row][at];
        let (bytes, base) = (part.bytes(), part.base_bytes);
        change(part);
        part.weigh(world);
        self.bytes += part.bytes() - bytes;
        self.bases += part.base_bytes - base;
        self.settle(row, at);
    }

    /// Adds a run to all parts of a row in which it has something, from `first` to `end`. Returns
    /// the parts that got a piece.
    pub(crate) fn add(&mut self, row: usize, run: Run, world: &World) -> Vec<usize> {
        let first = self.find(row, run.from);
        let end = self.rows[row].partition_point(|part| part.from < run.to);
        for at in first..end {
            let part = &self.rows[row][at];
            let piece = run.part(part.from, part.to);
            let adopted = row == 0
                && part.runs.is_empty()
                && !part.busy
                && part.base.is_none_or(|base| base.to <= piece.from);
            self.change(row, at, world, |part| {
                if !adopted {
                    part.runs.push_front(piece);
                    return;
                }
                part.base = Some(super::load::compacted(part.base, &[piece], world));
            });
        }
        (first..end).collect()
    }

    /// Whether a tier holds something of the keys of a run.
    pub(crate) fn is_pending(&self, run: &Run) -> bool {
        self.rows[1..].iter().flatten().any(|span| {
            span.from < run.to
                && run.from < span.to
                && span.runs.iter().any(|other| !other.part(run.from, run.to).is_empty())
        })
    }

    /// Splits a partition whose base is too big. Returns into how many.
    pub(crate) fn split_full(&mut self, at: usize, world: &World) -> usize {
        let old = &self.rows[0][at];
        let Some(base) = old.base.filter(|_| old.base_bytes > self.partition_bytes * 1.5) else {
            return 1;
        };
        let count = (old.base_bytes / self.partition_bytes).ceil() as usize;
        let mut bounds = vec![old.from];
        for index in 1..count {
            bounds.push(base.from + (base.to - base.from) * index as f64 / count as f64);
        }
        bounds.push(old.to);
        let mut parts = Vec::with_capacity(count);
        for bound in bounds.windows(2) {
            let mut part = Part::new(bound[0], bound[1]);
            part.base = Some(base.part(bound[0], bound[1]));
            part.runs = old.runs.iter().map(|run| run.part(bound[0], bound[1])).collect();
            part.runs.retain(|run| !run.is_empty());
            part.weigh(world);
            parts.push(part);
        }
        self.rows[0].splice(at..=at, parts);
        (at..at + count).for_each(|at| self.settle(0, at));
        count
    }

    /// Joins a partition with the next one, if both are small and plain and have one span.
    pub(crate) fn join(&mut self, at: usize, world: &World) -> bool {
        let Some([left, right]) = self.rows[0].get(at..at + 2) else { return false };
        let plain = |part: &Part| part.runs.is_empty() && !part.busy;
        let border = right.from;
        let is_bound = |row: &Vec<Part>| {
            row[row.partition_point(|part| part.from < border).min(row.len() - 1)].from == border
        };
        if left.bytes() + right.bytes() > self.partition_bytes / 2.0
            || !plain(left)
            || !plain(right)
            || self.rows[1..].iter().any(is_bound)
        {
            return false;
        }
        let mut part = Part::new(left.from, right.to);
        part.base = match (left.base, right.base) {
            (Some(a), Some(b)) => {
                let bases = [a, b].map(|base| Run { mix: base.mix.map(as_fresh), ..base });
                Some(super::load::compacted(None, &bases, world))
            }
            (a, b) => a.or(b),
        };
        part.weigh(world);
        self.rows[0].splice(at..at + 2, [part]);
        self.settle(0, at);
        true
    }

    /// Splits a span with too many children.
    pub(crate) fn split_wide(&mut self, row: usize, at: usize, children_max: usize, world: &World) {
        let children = self.children(row, at);
        let old = &self.rows[row][at];
        if children.len() <= children_max || old.busy {
            return;
        }
        let mut parts = self.spans_over(row - 1, children, policy::span_bounds);
        let count = parts.len();
        if let (Some(first), Some(last)) =
            (parts.first().map(|p| p.from), parts.last().map(|p| p.to))
        {
            debug_assert!(first == old.from && last == old.to);
        }
        for part in &mut parts {
            part.runs = old.runs.iter().map(|run| run.part(part.from, part.to)).collect();
            part.runs.retain(|run| !run.is_empty());
            part.weigh(world);
        }
        self.rows[row].splice(at..=at, parts);
        (at..at + count).for_each(|at| self.settle(row, at));
    }

    fn spans_over(
        &self,
        row: usize,
        children: std::ops::Range<usize>,
        bounds: impl Fn(&[u64]) -> Vec<usize>,
    ) -> Vec<Part> {
        let below = &self.rows[row][children];
        let bytes: Vec<u64> = below.iter().map(|part| part.bytes() as u64).collect();
        let mut first = 0;
        let mut spans = Vec::new();
        for count in bounds(&bytes) {
            let group = &below[first..first + count];
            spans.push(Part::new(group[0].from, group[count - 1].to));
            first += count;
        }
        spans
    }

    /// Makes another tier.
    pub(crate) fn add_tier(&mut self) {
        let below = self.tiers();
        let spans = self.spans_over(below, 0..self.rows[below].len(), policy::tier_bounds);
        let count = spans.len();
        self.rows.push(spans);
        (0..count).for_each(|at| self.settle(below + 1, at));
    }

    /// Removes the top tier, if it holds nothing.
    pub(crate) fn remove_tier(&mut self) -> bool {
        let top = self.tiers();
        let empty = self.rows[top].iter().all(|span| span.runs.is_empty() && !span.busy);
        if empty && top > 0 {
            self.rows.pop();
        }
        empty
    }
}

fn as_fresh(mix: super::load::Mix) -> super::load::Mix {
    super::load::Mix { over: 0.0, fresh: mix.over, dead: 0.0 }
}
