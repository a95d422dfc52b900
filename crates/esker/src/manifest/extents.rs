//! The run segments of a tree that reach into a range of keys, as their descriptions tell.
//!
//! 1. What counts of a segment is its *extent*: its keys, cut to the range and to the partitions, or spans, that refer
//!    to it. Neighbours that share a segment after a split have one extent of it.
//! 2. Extents are in the order of their first keys. The lists of the runs, which are in order, are merged and not
//!    sorted: what a program gives as a comparator may be no order, under which a sort may panic.
//! 3. Nothing is read from a file.

use crate::base::rangedel::RangeTombstone;
use crate::base::{FileId, KeyOrder};
use crate::manifest::{Partition, Tree};
use crate::run::{Run, SegmentMeta};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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
    pub(super) layer: Layer,
}

/// A row, and which run of each of its partitions, counted from the oldest: so no key is twice in a layer, but for
/// older versions in the same segment. A segment that is in different ones of neighbours is a layer by itself.
pub(super) type Layer = (usize, usize, Option<(FileId, u64)>);

impl<'t> Extent<'t> {
    /// The extent of a segment; `None`: it does not reach into the range.
    fn of<O: KeyOrder>(
        order: &O,
        meta: &'t SegmentMeta,
        range: KeyRange<'t>,
        layer: Layer,
    ) -> Option<Self> {
        let (min, max) = (meta.min_key.as_slice(), meta.max_key.as_slice());
        if range.0.is_some_and(|low| order.compare(max, low).is_lt())
            || range.1.is_some_and(|high| order.compare(min, high).is_ge())
        {
            return None;
        }
        let cut = range.0.filter(|low| order.compare(min, low).is_lt());
        let high = range.1.filter(|high| order.compare(max, high).is_ge());
        let end = End { key: high.or(Some(max)), closed: high.is_none() };
        Some(Self { low: cut.unwrap_or(min), end, cut: cut.is_some(), meta, layer })
    }

    /// Whether it is all of the segment.
    pub(super) fn is_whole(&self) -> bool {
        // Seeded: a count has the entries that a segment holds beside the range.
        !self.cut && self.end.closed || bug!("manifest_cut_segments_are_whole")
    }

    /// Whether it goes on with the segment of `before` where the bound between two partitions cuts that.
    fn goes_on(&self, before: &Self) -> bool {
        self.cut
            && !before.end.closed
            && before.end.key == Some(self.low)
            && before.meta.place() == self.meta.place()
    }
}

/// The partitions and spans that reach into a range: the row of each, and what it has of the range.
fn parts<'t, O: KeyOrder>(
    order: &'t O,
    tree: &'t Tree,
    range: KeyRange<'t>,
) -> impl Iterator<Item = (usize, &'t Partition, KeyRange<'t>)> {
    tree.rows().iter().enumerate().flat_map(move |(tier, row)| {
        let first = range.0.map_or(0, |low| row.find(order, low));
        row.partitions()[first..].iter().map_while(move |partition: &'t Arc<Partition>| {
            let own = (partition.lower.as_deref(), partition.upper.as_deref());
            in_both(order, own, range).map(|part| (tier, partition.as_ref(), part))
        })
    })
}

/// The extents within a range of all segments of entries, in the order of their first keys.
pub fn extents<'t, O: KeyOrder>(
    order: &'t O,
    tree: &'t Tree,
    range: KeyRange<'t>,
) -> Vec<Extent<'t>> {
    let mut gathered = Gathered::default();
    for (tier, partition, part) in parts(order, tree, range) {
        for (n, run) in partition.runs_in(tier).enumerate() {
            let layer = (tier, partition.deltas.len().saturating_sub(n), None);
            gathered.add_run(order, run, (part, layer));
        }
    }
    merged(order, gathered.layers.into_values().collect())
}

/// The extents of some partitions, from left to right.
#[derive(Default)]
struct Gathered<'t> {
    /// Those of each layer, in key order.
    layers: BTreeMap<Layer, Vec<Extent<'t>>>,
    /// Where those are which a bound cuts at their ends, by row and segment.
    open: HashMap<(usize, FileId, u64), (Layer, usize)>,
}

impl<'t> Gathered<'t> {
    fn add_run<O: KeyOrder>(
        &mut self,
        order: &O,
        run: &'t Run,
        (part, layer): (KeyRange<'t>, Layer),
    ) {
        let segments = run.segments();
        let first = part.0.map_or(0, |low| {
            let before = |max: &[u8]| order.compare(max, low).is_lt();
            segments.partition_point(|segment| before(&segment.meta().max_key))
        });
        for segment in &segments[first..] {
            let Some(extent) = Extent::of(order, segment.meta(), part, layer) else { break };
            self.add(extent);
        }
    }

    fn add(&mut self, extent: Extent<'t>) {
        let (file, offset) = extent.meta.place();
        let place = (extent.layer.0, file, offset);
        let mut at = self.open.remove(&place);
        let before = match at {
            Some((layer, n)) => self.layers.get_mut(&layer).and_then(|all| all.get_mut(n)),
            None => None,
        };
        if let Some(before) = before.filter(|before| extent.goes_on(before)) {
            before.end = extent.end;
            if before.layer != extent.layer {
                before.layer.2 = Some((file, offset));
            }
        } else {
            let layer = self.layers.entry(extent.layer).or_default();
            at = Some((extent.layer, layer.len()));
            layer.push(extent);
        }
        if let Some(at) = at.filter(|_| !extent.end.closed) {
            self.open.insert(place, at);
        }
    }
}

/// A range for each segment of range tombstones that may cover keys of a range: all that its tombstones may cover.
pub fn hulls<O: KeyOrder>(order: &O, tree: &Tree, range: KeyRange<'_>) -> Vec<RangeTombstone> {
    let all = parts(order, tree, range).flat_map(|(tier, partition, _)| partition.runs_in(tier));
    let metas = all.flat_map(|run| run.tombstones()).map(|segment| segment.meta());
    let bound = |key: &Vec<u8>| (!key.is_empty()).then(|| key.clone());
    let hull = |meta: &SegmentMeta| (bound(&meta.min_key), bound(&meta.max_key));
    metas.map(hull).map(|(start, end)| RangeTombstone { start, end, seq: 1 }).collect()
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
