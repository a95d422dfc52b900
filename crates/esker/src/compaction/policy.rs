//! When work is due, and how large the shape of a tree is: pure functions of sizes and counts.
//!
//! The engine and the simulator (`cargo xtask simulate`) call the same functions, so a constant is
//! chosen where it costs seconds, and then holds in the engine. `docs/tiers.md` gives what the
//! simulator printed.
//!
//! The terms: F is the bytes of one flush, D the live bytes, r = D/F. A tree has L tiers of spans
//! over its partitions. A span may hold T pending runs; a partition is due when its deltas reach
//! the fraction f of its base, or at d deltas. A byte is written once by its flush, once by each of
//! L pushes, and about 1/f times by compactions of its partition if it overwrites an old one. A
//! delta is made of T^L flushes, so d deltas reach f of the base as long as r <= T^L * d / f.
//!
//! 1. A tree has as many tiers as it takes for `d / f` to be enough, with T at most [`RUNS_MAX`].
//!    The fourth tier is the last and comes somewhat earlier; above it T grows, up to [`RUNS_MOST`].
//! 2. T is as small as r allows, because each pending run is a place where a reader has to look.
//! 3. Thresholds differ between neighbours (`stagger`), so that they do not come due at once.
//! 4. What paces writers is the number of runs over a key ([`fill`]), and not the bytes that wait:
//!    those that lie there although they are due ([`late`]), and the bound for all ([`runs_bound`]).
//! 5. A path without room has a part that is due, so whatever waits for room gets it.

#[cfg(test)]
mod tests;

use crate::base::codec::hash_key;
use crate::options::settings::SpaceBound;
use std::time::Duration;

/// The most tiers that a tree has.
pub use crate::manifest::TIERS_MAX;
/// The deltas at which a partition is due, whatever their size.
pub const DELTAS_MAX: usize = 9;
/// The fraction of a base that its deltas may reach before they are compacted.
pub const LAZINESS: f64 = 1.0 / 3.0;
/// The most pending runs of a span (T), unless all tiers are there and do not suffice.
pub const RUNS_MAX: usize = 8;
/// The most pending runs of a span when all tiers are there.
pub const RUNS_MOST: usize = 16;
/// The fewest pending runs at which a span is due. Fewer would only cost more steps.
pub const RUNS_LEAST: usize = 4;
/// The deltas in which a partition should reach its fraction: T is chosen so. Partitions that get
/// less come due by [`DELTAS_MAX`].
const DELTAS_GOAL: f64 = 5.0;
/// The same in a tree with all tiers: what reaches a partition then differs most by chance.
const DELTAS_GOAL_LAST: f64 = 3.0;
/// Without tiers, `r / DELTAS_MAX` is what compactions cost for a byte. With a tier that is
/// `1 / LAZINESS`, and the push costs one more: both are the same at this r.
const TIERLESS_RATIO: f64 = DELTAS_MAX as f64 * (1.0 / LAZINESS + 1.0);
/// Each tier multiplies by T the flushes in a delta. So many flushes, a third of the base in six
/// deltas, are needed where T is 1.
const REACH: f64 = 6.0 / LAZINESS;
/// The last tier comes at this share of the r that calls for it by that rule: what spans get differs by
/// chance, and with three tiers of eight runs many a partition came due by its ninth delta, before it
/// had a third of its base.
const LAST_REACH: f64 = 2.0 / 3.0;
/// A tier that is there stays until r is below this fraction of the r that called for it.
const KEEP: f64 = 2.0 / 3.0;
/// The children that a span should have, and the spans that a new tier has at least.
pub const FAN_OUT: usize = 12;
/// A span with more children is split.
pub const CHILDREN_MAX: usize = 24;
/// A base below this fraction of a partition's intended size counts as one of that size.
const BASE_FLOOR_DIVISOR: u64 = 16;
/// How much larger than for overwrites the deltas may be over a base of which they replace nothing.
/// They hold no garbage then, and each compaction of few deltas copies a base for little.
const FRESH_LAZINESS: f64 = 3.0;
/// The most runs over a key in a tree without tiers. Its data are few flushes large, so a load that
/// writes them once leaves that many, and writes on without a pause; compactions follow.
pub const RUNS_BURST: usize = 2 * DELTAS_MAX + 2;
/// The runs that may be late on a path before flushes wait.
const LATE_MAX: f64 = 2.0;
/// Writers are paced when a path has room for fewer runs than this.
const LEFT_MIN: f64 = 4.0;
/// The rate of writers when a path begins to fill, as a multiple of the drain.
pub const RATE_AT_KNEE: f64 = 2.0;
/// That when it is full.
const RATE_AT_BOUND: f64 = 0.25;

/// A tree to which nothing was written for this long is tightened.
pub const CALM_AFTER: Duration = Duration::from_secs(2);
/// The divisor of the bytes of a base that what lies above it must reach to be tightened.
const LOOSE_DIVISOR: u64 = 8;
/// A tree to which nothing was written for this long gives back what little it has to give.
pub const QUIET_AFTER: Duration = Duration::from_secs(30);
/// How many times the live bytes a quiet database takes at most.
const QUIET_AMPLIFICATION: f64 = 1.05;
/// What must be given back for a byte that is rewritten, if the bound can be kept that way.
const WORTH_LEAST: f64 = 1.0 / 8.0;
/// The divisor of the dead bytes that there may be, of which the space of a compaction takes its part.
const TEMPORARY_DIVISOR: u64 = 4;
/// The flushes that a tree must amount to, to be tightened.
const TIGHTENED_FLUSHES: u64 = 4;

/// Where a flush goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It is cut at the bounds of partitions, and each of them gets a delta.
    Cut,
    /// It becomes one run of the top tier.
    Top,
}

/// The data over the bytes of a flush (r).
fn ratio(live_bytes: u64, flush_bytes: u64) -> f64 {
    live_bytes as f64 / flush_bytes.max(1) as f64
}

/// The greatest r for which this many tiers are enough.
fn reach(tiers: usize) -> f64 {
    match tiers {
        0 => TIERLESS_RATIO,
        TIERS_MAX.. => f64::INFINITY,
        _ => {
            let share = if tiers + 1 == TIERS_MAX { LAST_REACH } else { 1.0 };
            share * REACH * (RUNS_MAX as f64).powi(tiers as i32)
        }
    }
}

/// How many tiers a tree should have that has `present` tiers, `live_bytes` in its partitions and
/// flushes of `flush_bytes`. At most [`TIERS_MAX`]. A tree at the border of two numbers keeps what
/// it has.
pub fn tiers_wanted(live_bytes: u64, flush_bytes: u64, present: usize) -> usize {
    let ratio = ratio(live_bytes, flush_bytes);
    let needed = (0..=TIERS_MAX).find(|tiers| ratio <= reach(*tiers)).unwrap_or(TIERS_MAX);
    let kept = |tiers: usize| tiers == 0 || ratio > reach(tiers - 1) * KEEP;
    (needed..=present.min(TIERS_MAX)).rev().find(|tiers| kept(*tiers)).unwrap_or(needed)
}

/// The pending runs at which spans are due (T) in a tree with so many tiers, from [`RUNS_LEAST`]
/// to [`RUNS_MOST`].
pub fn runs_max(live_bytes: u64, flush_bytes: u64, tiers: usize) -> usize {
    let (goal, most) = match tiers {
        TIERS_MAX.. => (DELTAS_GOAL_LAST, RUNS_MOST),
        _ => (DELTAS_GOAL, RUNS_MAX),
    };
    let flushes = ratio(live_bytes, flush_bytes) * LAZINESS / goal;
    let runs = flushes.max(1.0).powf(1.0 / tiers.max(1) as f64).ceil();
    (runs as usize).clamp(RUNS_LEAST, most)
}

/// The children of each span of a new tier over children with these bytes: how many the first span
/// has, the second, and so on. The spans have about the same bytes. There are a dozen of them at
/// least, if there are so many children: while a span is pushed its runs stay over its keys, so
/// these should be few of all keys.
pub fn tier_bounds(children: &[u64]) -> Vec<usize> {
    groups(children, children.len().div_ceil(FAN_OUT).max(FAN_OUT.min(children.len())))
}

/// The children of each span that takes the place of one with too many children.
pub fn span_bounds(children: &[u64]) -> Vec<usize> {
    groups(children, children.len().div_ceil(FAN_OUT))
}

/// So many groups of neighbours with about the same bytes, and none with much more than its share
/// of the children. If there are no children, the one group is empty.
fn groups(children: &[u64], count: usize) -> Vec<usize> {
    let count = count.max(1);
    let most = (children.len() * 4).div_ceil(count * 3);
    let mut bytes: u64 = children.iter().sum();
    let mut left = children.len();
    let mut groups = Vec::with_capacity(count);
    for group in (1..=count).rev() {
        let share = bytes / group as u64;
        // The groups after this one need a child each, and hold no more than `most`.
        let spare = left.saturating_sub(group - 1);
        let least = left.saturating_sub((group - 1) * most).max(1);
        let (mut taken, mut filled) = (0, 0);
        while taken < spare && (taken < least || (taken < most && filled < share)) {
            filled += children[children.len() - left + taken];
            taken += 1;
        }
        groups.push(taken);
        left -= taken;
        bytes -= filled;
    }
    groups
}

/// How urgent the push of a span with so many pending runs is; at 1 and above it is due.
/// `runs_max` is from [`runs_max()`]. Some of the spans are due earlier, by up to a quarter.
pub fn runs_due(runs: usize, runs_max: usize, stagger: u64) -> f64 {
    let variants = runs_max as u64 / 4 + 1;
    let most = runs_max - (stagger % variants) as usize;
    runs as f64 / most.max(1) as f64
}

/// How urgent the compaction of a partition is; at 1 and above it is due. `delta_bytes` are those
/// that a compaction is expected to free: [`garbage`] of the deltas, and the entries that deletes in
/// them hide. A base of less than a sixteenth of `partition_bytes` counts as that large.
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
    (delta_bytes as f64 / allowed).max(deltas as f64 / DELTAS_MAX as f64)
}

/// For how many bytes deltas count of which a share of `fresh`, from 0 to 1, replaces nothing: it
/// holds no garbage, so more of it may lie over a base. 0 if nothing is known.
pub fn garbage(delta_bytes: u64, fresh: f64) -> u64 {
    let lazier = 1.0 + (FRESH_LAZINESS - 1.0) * fresh.clamp(0.0, 1.0);
    (delta_bytes as f64 / lazier) as u64
}

/// Where a flush goes that holds `flush_bytes` for `touched` partitions. It is cut if there is no
/// tier, or if the slices are so large that few of them make a partition due.
pub fn route(flush_bytes: u64, touched: usize, partition_bytes: u64, tiers: usize) -> Route {
    let slice = flush_bytes / touched.max(1) as u64;
    if tiers == 0 || slice as f64 * (DELTAS_MAX as f64 - 1.0) >= partition_bytes as f64 * LAZINESS {
        Route::Cut
    } else {
        Route::Top
    }
}

/// The most runs that may lie over a key in a tree with so many tiers: as many as there are when
/// everything on the path is due. So whatever fills a path, some part of it is due. A tree without
/// tiers is small, and a burst of [`RUNS_BURST`] may lie there.
pub fn runs_bound(tiers: usize, runs_max: usize) -> usize {
    let base = 1;
    if tiers == 0 { RUNS_BURST } else { tiers * runs_max + DELTAS_MAX + base }
}

/// How many of a part's runs lie there although it is due: those that came since.
pub fn late(runs: usize, score: f64) -> f64 {
    if score > 1.0 { runs as f64 * (1.0 - 1.0 / score) } else { 0.0 }
}

/// How full a path of keys is: 0 or less if nothing on it waits, 1 if no further run should be
/// added. `runs` are all runs on it, `late` is the sum of [`late()`]. Without tiers only the number
/// of runs counts: the runs of such a tree are large and few.
pub fn fill(runs: usize, late: f64, tiers: usize, runs_max: usize) -> f64 {
    let left = runs_bound(tiers, runs_max).saturating_sub(runs) as f64;
    let late = if tiers == 0 { 0.0 } else { late };
    (late / LATE_MAX).max(1.0 - left / LEFT_MIN)
}

/// Whether a span or partition is tightened while nobody writes: `pending_bytes` wait in it, and in
/// all below it, above `base_bytes`; or whether all trees are: so many bytes were written since they
/// last were. Since it is at least an eighth, tightening for either reason writes a byte at most once
/// per tier and nine times more, even if writes pause whenever an eighth is there.
pub fn is_loose(pending_bytes: u64, base_bytes: u64) -> bool {
    // Seeded: each pause of the writes rewrites the tree.
    let divisor = if bug!("compaction_tightens_for_little") { 1 << 20 } else { LOOSE_DIVISOR };
    pending_bytes > 0 && pending_bytes.saturating_mul(divisor) >= base_bytes
}

/// Whether a tree of this size is tightened. Smaller ones are in memory, where runs cost little.
pub fn is_worth_tightening(base_bytes: u64, flush_bytes: u64) -> bool {
    base_bytes >= flush_bytes.saturating_mul(TIGHTENED_FLUSHES)
}

/// Data of runs: estimates, so parts of entries are possible.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amount {
    /// Bytes on disk.
    pub bytes: f64,
    /// Entries, deletes included.
    pub entries: f64,
    /// Deletes.
    pub deletes: f64,
}

/// About how many bytes what lies above a base makes dead, in itself and below. Of the puts a share of
/// `fresh`, from 0 to 1, replaces nothing; the others replace as much as they take, of the base or of older
/// runs above it. A delete is dead at the bottom, and frees an entry of the base.
pub fn hidden_bytes(above: Amount, base: Amount, fresh: f64) -> f64 {
    let deletes = (above.deletes / above.entries.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    let puts = above.bytes * (1.0 - deletes) * (1.0 - fresh.clamp(0.0, 1.0));
    let replaced = puts.min(base.bytes + above.bytes / 2.0);
    let freed = above.deletes * base.bytes / base.entries.max(1.0);
    above.bytes * deletes + replaced + freed.min(base.bytes)
}

/// The dead bytes that may lie beside so many live ones; `quiet`: nobody has written for long.
pub fn reclaimable_max(live: u64, bound: SpaceBound, quiet: bool) -> u64 {
    let most = bound.amplification;
    let most = if quiet { most.min(QUIET_AMPLIFICATION) } else { most };
    ((live as f64 * (most - 1.0)) as u64).saturating_add(bound.reserve)
}

/// The dead bytes beyond which space is given back by compactions that take up to `temporary` bytes until
/// their input is gone. What a quiet database keeps, any other keeps too: what is left when
/// a caller has waited for the background stays left.
pub fn reclaimable_goal(live: u64, temporary: u64, bound: SpaceBound, quiet: bool) -> u64 {
    let most = reclaimable_max(live, bound, quiet);
    // Seeded: what was left to lie when the background had nothing left to do is taken afterwards.
    let least = if !quiet && bug!("compaction_space_goal_moves") {
        0
    } else {
        reclaimable_max(live, bound, true)
    };
    most.saturating_sub(temporary.min(most / TEMPORARY_DIVISOR)).max(least.min(most))
}

/// What a compaction gives back for a byte that it rewrites.
pub fn worth(reclaimable: u64, rewritten: u64) -> f64 {
    reclaimable as f64 / rewritten.max(1) as f64
}

/// Whether so much is worth a compaction: at least an eighth is given back for what is rewritten, or less
/// where the bound could not be kept otherwise. So giving a byte back never costs more than eight, and
/// a byte that is written once is given back at most once (S25).
pub fn is_worth_reclaiming(worth: f64, bound: SpaceBound) -> bool {
    // Seeded: however little is dead, it is given back.
    let least = if bug!("compaction_space_for_little") { 0.001 } else { WORTH_LEAST };
    worth >= least.min(1.0 - 1.0 / bound.amplification)
}

/// Whether a tombstone is taken to the base although nothing there is due: as many bytes were written
/// since as there are in all bases, and four times the reserve. So a byte that is written costs at most one
/// more for this.
pub fn tombstone_is_old(written_since: u64, data: u64, bound: SpaceBound) -> bool {
    written_since > data.max(bound.reserve.saturating_mul(4))
}

/// The order of what is due: the greatest goes first. A push above goes before everything below it:
/// it takes a run from many keys for few bytes, and flushes wait for it.
pub fn rank(tier: usize, score: f64) -> f64 {
    tier as f64 * 1e6 + score
}

/// The rate for writers at this [`fill`], as a multiple of the rate at which the workers can take
/// in what is written; `None`: as fast as they like. It falls in a straight line, so writers settle
/// where the multiple is 1.
pub fn pace(fill: f64) -> Option<f64> {
    (fill > 0.0).then(|| RATE_AT_KNEE + (RATE_AT_BOUND - RATE_AT_KNEE) * fill.min(1.0))
}

/// A number by which neighbours differ, from the lower bound of a partition or span.
pub fn stagger(lower: Option<&[u8]>) -> u64 {
    hash_key(lower.unwrap_or_default())
}

/// The part of a value segment that is dead from which on compactions empty it, as a divisor. A smaller part
/// costs more writes for each byte that comes back, a larger one more space: where everything is overwritten at
/// random, a compaction finds a quarter dead of what the one before it wrote, and almost half of what is older.
const DEAD_VALUES_DIVISOR: u64 = 4;
/// The same for compactions that give space back: for what moves, [`WORTH_LEAST`] of it comes back.
const DEAD_VALUES_SPACE_DIVISOR: u64 = 9;
/// The same for compactions that a program asks for. Less would cost more than 31 bytes, read and written, for each
/// one that comes back.
const DEAD_VALUES_ASKED_DIVISOR: u64 = 32;
/// The part of a value segment of which a partition must have more, as a divisor: it bounds the value segments
/// that a partition lists.
const SCATTERED_VALUES_DIVISOR: u64 = 64;

/// Why a partition is compacted, as far as it decides which value segments are emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptying {
    /// It is due, or something else than space is the reason.
    Due,
    /// It gives space back.
    ForSpace,
    /// A program asks for it.
    Asked,
}

/// Whether a compaction writes anew what its partition has of a value segment, of which `here` bytes of `all`;
/// `dead`: those to which nothing refers.
pub fn moves_values(dead: u64, here: u64, all: u64, why: Emptying) -> bool {
    let divisor = match why {
        Emptying::Due => DEAD_VALUES_DIVISOR,
        Emptying::ForSpace => DEAD_VALUES_SPACE_DIVISOR,
        Emptying::Asked => DEAD_VALUES_ASKED_DIVISOR,
    };
    dead > all / divisor || here < all / SCATTERED_VALUES_DIVISOR
}
