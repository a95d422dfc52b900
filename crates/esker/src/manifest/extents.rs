//! The run segments of a tree that reach into a range of keys, as their descriptions tell.
//!
//! 1. What counts of a segment is its *extent*: its keys, cut to the range and to the partitions, or spans, that refer
//!    to it. Neighbours that share a segment after a split have one extent of it.
//! 2. Extents are in the order of their first keys. The lists of the runs, which are in order, are merged and not
//!    sorted: what a program gives as a comparator may be no order, under which a sort may panic.
//! 3. Nothing is read from a file.

use crate::base::KeyOrder;
use crate::manifest::Tree;
use crate::run::{Run, SegmentMeta};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Keys from the first (inclusive) to the second (exclusive); `None`: no bound.
pub type KeyRange<'k> = (Option<&'k [u8]>, Option<&'k [u8]>);

/// The keys that two ranges have in common; `None`: there are none.
pub fn in_both<'k, O: KeyOrder>(
    order: &O,
    a: KeyRange<'k>,
    b: KeyRange<'k>,
) -> Option<KeyRange<'k>> {
    let low = match (a.0, b.0) {
        (Some(a), Some(b)) => Some(if order.compare(a, b).is_ge() { a } else { b }),
        (a, b) => a.or(b),
    };
    let high = match (a.1, b.1) {
        (Some(a), Some(b)) => Some(if order.compare(a, b).is_le() { a } else { b }),
        (a, b) => a.or(b),
    };
    match (low, high) {
        (Some(low), Some(high)) if order.compare(low, high).is_ge() => None,
        common => Some(common),
    }
}

/// Where an extent ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End<'t> {
    /// Its last key, or the first key behind it; `None`: there is no bound.
    pub key: Option<&'t [u8]>,
    /// Whether the key belongs to it.
    pub closed: bool,
}

impl End<'_> {
    /// Whether what begins at `low` (`None`: without a bound) begins before this end.
    pub fn is_behind<O: KeyOrder>(&self, order: &O, low: Option<&[u8]>) -> bool {
        let (Some(low), Some(end)) = (low, self.key) else { return true };
        match order.compare(low, end) {
            Ordering::Less => true,
            Ordering::Equal => self.closed,
            Ordering::Greater => false,
        }
    }
}

/// The part of a segment that lies within a range and within those who refer to it.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'t> {
    /// Its first key, or where a bound cuts the segment.
    pub(super) low: &'t [u8],
    pub(super) end: End<'t>,
    /// Whether a bound cuts the segment at `low`.
    pub(super) cut: bool,
    pub(super) meta: &'t SegmentMeta,
}

impl<'t> Extent<'t> {
    /// The extent of a segment; `None`: it does not reach into the range.
    fn of<O: KeyOrder>(order: &O, meta: &'t SegmentMeta, range: KeyRange<'t>) -> Option<Self> {
        let (min, max) = (meta.min_key.as_slice(), meta.max_key.as_slice());
        if range.0.is_some_and(|low| order.compare(max, low).is_lt())
            || range.1.is_some_and(|high| order.compare(min, high).is_ge())
        {
            return None;
        }
        let cut = range.0.filter(|low| order.compare(min, low).is_lt());
        let high = range.1.filter(|high| order.compare(max, high).is_ge());
        let end = End { key: high.or(Some(max)), closed: high.is_none() };
        Some(Self { low: cut.unwrap_or(min), end, cut: cut.is_some(), meta })
    }

    /// Whether it is all of the segment.
    pub(super) fn is_whole(&self) -> bool {
        !self.cut && self.end.closed
    }

    /// Whether it goes on with the segment of `before` where the bound between two partitions cuts that.
    fn goes_on(&self, before: &Self) -> bool {
        self.cut
            && !before.end.closed
            && before.end.key == Some(self.low)
            && before.meta.place() == self.meta.place()
    }
}

/// The extents within a range of all segments of entries, in the order of their first keys.
pub fn extents<'t, O: KeyOrder>(order: &O, tree: &'t Tree, range: KeyRange<'t>) -> Vec<Extent<'t>> {
    let mut layers = BTreeMap::<(usize, usize), Vec<Extent<'t>>>::new();
    for (tier, row) in tree.rows().iter().enumerate() {
        let first = range.0.map_or(0, |low| row.find(order, low));
        for partition in &row.partitions()[first..] {
            let own = (partition.lower.as_deref(), partition.upper.as_deref());
            let Some(part) = in_both(order, own, range) else { break };
            for (n, run) in partition.runs_in(tier).enumerate() {
                // Counted from the oldest, so that neighbours that share a run agree, whatever came later.
                let layer = (tier, partition.deltas.len().saturating_sub(n));
                add_run(order, run, part, layers.entry(layer).or_default());
            }
        }
    }
    merged(order, layers.into_values().collect())
}

/// Adds the extents of the segments of a run to those of the partitions before it.
fn add_run<'t, O: KeyOrder>(
    order: &O,
    run: &'t Run,
    part: KeyRange<'t>,
    extents: &mut Vec<Extent<'t>>,
) {
    let ends_before = |low, meta: &SegmentMeta| order.compare(&meta.max_key, low).is_lt();
    let first = part.0.map_or(0, |low| {
        run.segments().partition_point(|segment| ends_before(low, segment.meta()))
    });
    for segment in &run.segments()[first..] {
        let Some(extent) = Extent::of(order, segment.meta(), part) else { break };
        match extents.last_mut() {
            Some(last) if extent.goes_on(last) => last.end = extent.end,
            _ => extents.push(extent),
        }
    }
}

/// One list of these, which are in order.
fn merged<'t, O: KeyOrder>(order: &O, mut lists: Vec<Vec<Extent<'t>>>) -> Vec<Extent<'t>> {
    while lists.len() > 1 {
        let mut halved = Vec::with_capacity(lists.len().div_ceil(2));
        let mut rest = lists.into_iter();
        while let Some(one) = rest.next() {
            halved.push(match rest.next() {
                Some(other) => merged_two(order, one, other),
                None => one,
            });
        }
        lists = halved;
    }
    lists.pop().unwrap_or_default()
}

fn merged_two<'t, O: KeyOrder>(
    order: &O,
    a: Vec<Extent<'t>>,
    b: Vec<Extent<'t>>,
) -> Vec<Extent<'t>> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    while let (Some(one), Some(other)) = (a.peek(), b.peek()) {
        let next = if order.compare(other.low, one.low).is_lt() { b.next() } else { a.next() };
        all.extend(next);
    }
    all.extend(a.chain(b));
    all
}
