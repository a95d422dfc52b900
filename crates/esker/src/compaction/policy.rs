//! When background work is due, and how large it is: pure functions of sizes and counts.
//!
//! A tree is a row of partitions with up to four tiers of spans above it (`docs/compaction.md`). This
//! module decides how many tiers there are, which children a span has, when a span is pushed and a
//! partition compacted, where a flush goes, and when writers are slowed. The engine and the simulator
//! (`cargo xtask simulate`) call the same functions, so what the simulator predicts is about this
//! code. Nothing here knows trees, runs or files.
//!
//! 1. A path over a key holds at most [`bound`] runs: [`RUNS_MAX`] for each tier, the deltas of the
//!    partition and its base. Writers are slowed so that the bound holds ([`fill`]).
//! 2. A score below 1 means that nothing has to be done. Scores of several candidates compare: the
//!    larger one is more urgent.
//! 3. No result depends on anything but the arguments.

use crate::base::codec::hash_key;

/// A tree has no more tiers.
pub const TIERS_MAX: usize = 4;
/// The pending runs at which a span is due.
pub const RUNS_MAX: usize = 6;
/// The deltas at which a partition is due, whatever their size.
pub const DELTAS_MAX: usize = 9;
/// The fraction of a base that its deltas may reach before they are compacted.
pub const LAZINESS: f64 = 1.0 / 3.0;
/// The children of a span, as intended.
pub const FAN_OUT: usize = 12;
/// A span with more children is split.
pub const CHILDREN_MAX: usize = 16;
/// When deltas are scored, a base smaller than this fraction of a partition counts as that large.
const BASE_FLOOR_DIVISOR: u64 = 16;
/// A flush goes to the partitions directly if its slices are at least this fraction of a partition:
/// about as many deltas as a partition may have make a compaction due by their size.
const SLICE_DIVISOR: u64 = 16;
/// The fraction of a base that the deltas of a partition reach before their number makes a
/// compaction due, at the least. Tiers are added where they would reach less.
const LAZINESS_MIN: f64 = 0.3;
/// A tier is added when the data exceed what the present ones carry by this factor, and removed when
/// they fall below what one tier less carries by it.
const HYSTERESIS: f64 = 1.25;

/// How many flushes large the data of a tree with so many tiers may be: a run of the partitions'
/// row is as large as `RUNS_MAX` flushes to the power of the tiers.
fn carried(tiers: usize) -> f64 {
    let runs = (RUNS_MAX as f64).powi(tiers as i32);
    runs * DELTAS_MAX as f64 / LAZINESS_MIN
}

/// How many tiers a tree should have, at most [`TIERS_MAX`].
///
/// `live_bytes` are the bytes of all bases, `flush_bytes` those of the run that a flush writes (not
/// of the memtable), and `present` the tiers that the tree has. There is a range of sizes for which
/// both a number and the next one are right; there the present number is kept.
pub fn tiers_wanted(live_bytes: u64, flush_bytes: u64, present: usize) -> usize {
    let ratio = live_bytes as f64 / flush_bytes.max(1) as f64;
    let wanted = |ratio: f64| (0..TIERS_MAX).find(|tiers| ratio <= carried(*tiers));
    let least = wanted(ratio / HYSTERESIS).unwrap_or(TIERS_MAX);
    let most = wanted(ratio * HYSTERESIS).unwrap_or(TIERS_MAX);
    present.clamp(least, most)
}

/// How many children each span gets, from the first to the last: `children` are the bytes of each.
///
/// For a new tier these are all partitions of the row below; when a span has more than
/// [`CHILDREN_MAX`], they are its children. A span gets about [`FAN_OUT`] children, never more than
/// [`CHILDREN_MAX`], and spans are about equally large. The sum is `children.len()`; without children
/// the list is empty.
pub fn span_bounds(children: &[u64]) -> Vec<usize> {
    let spans = children.len().div_ceil(FAN_OUT);
    let mut bounds = Vec::with_capacity(spans);
    let (mut rest, mut bytes) = (children, children.iter().sum::<u64>());
    for left in (1..=spans).rev() {
        let share = bytes / left as u64;
        let others = left - 1;
        // What remains must suffice for the other spans, and not be too much for them.
        let least = rest.len().saturating_sub(others * CHILDREN_MAX).max(1);
        let most = (rest.len() - others).min(CHILDREN_MAX);
        let (mut count, mut taken) = (0, 0);
        while count < most && (count < least || taken + rest[count] / 2 < share || others == 0) {
            taken += rest[count];
            count += 1;
        }
        bounds.push(count);
        rest = &rest[count..];
        bytes -= taken;
    }
    bounds
}

/// How urgent the push of a span is; from 1 on it is due.
///
/// A span is due at [`RUNS_MAX`] pending runs, and half of the spans one run earlier: `stagger` says
/// which, so that neighbours, which get their runs at the same time, do not all come due at once. The
/// runs alone decide; `pending_bytes` (of the runs) and `children` order spans that are equally full:
/// the one whose push gives larger slices comes first.
pub fn span_due(runs: usize, pending_bytes: u64, children: usize, stagger: u64) -> f64 {
    if runs == 0 {
        return 0.0;
    }
    let allowed = RUNS_MAX - (stagger & 1) as usize;
    let slice = pending_bytes / children.max(1) as u64;
    // Far less than one run makes, so that it decides only between equals.
    let size = 1e-6 * (slice.max(1) as f64).log2();
    runs as f64 / allowed as f64 + size
}

/// How urgent the compaction of a partition is because of its deltas; from 1 on it is due.
///
/// It is due when the deltas reach a third of the base ([`LAZINESS`]), more or less by up to a fifth
/// as `stagger` says, or when there are [`DELTAS_MAX`]. `delta_bytes` are the bytes that a
/// compaction is expected to free: those of the deltas, and those of the entries that deletes in them
/// hide. A base of less than a sixteenth of `partition_bytes` counts as that large.
pub fn partition_due(
    delta_bytes: u64,
    deltas: usize,
    base_bytes: u64,
    partition_bytes: u64,
    stagger: u64,
) -> f64 {
    if deltas == 0 {
        return 0.0;
    }
    let base = base_bytes.max(partition_bytes / BASE_FLOOR_DIVISOR).max(1) as f64;
    let spread = (stagger >> 32) as f64 / f64::from(u32::MAX);
    let allowed = base * LAZINESS * (0.8 + 0.4 * spread);
    let by_bytes = delta_bytes as f64 / allowed;
    let by_count = deltas as f64 / DELTAS_MAX as f64;
    by_bytes.max(by_count)
}

/// Where a flush goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It is cut at the bounds of the partitions, and each slice becomes a delta.
    Cut,
    /// It becomes a run of the top tier.
    Top,
}

/// Where a flush goes: to the partitions if there is no tier, or if it touches so few of them that
/// the slices are large.
///
/// `flush_bytes` are the bytes of its run, `touched` the partitions that it has entries for. The
/// caller checks in addition that no tier holds anything over these partitions.
pub fn route(flush_bytes: u64, touched: usize, partition_bytes: u64, tiers: usize) -> Route {
    if tiers == 0 || flush_bytes / touched.max(1) as u64 >= partition_bytes / SLICE_DIVISOR {
        Route::Cut
    } else {
        Route::Top
    }
}

/// The most runs over a key in a tree with so many tiers.
pub fn bound(tiers: usize) -> usize {
    RUNS_MAX * tiers + DELTAS_MAX + 1
}

/// How far the fullest path over a key is from the bound: 0 without runs, 1 at the bound.
///
/// `runs` counts the pending runs of all spans over the key, the deltas and the base. Writers are
/// slowed when it comes near 1.
pub fn fill(runs: usize, tiers: usize) -> f64 {
    runs as f64 / bound(tiers) as f64
}

/// A number that differs between neighbours, from the lower bound of a partition or span.
pub fn stagger(lower: Option<&[u8]>) -> u64 {
    hash_key(lower.unwrap_or_default())
}

#[cfg(test)]
mod tests;
