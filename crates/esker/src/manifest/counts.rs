//! How many keys a range has, as far as the descriptions of run segments tell.
//!
//! Extents that overlap are a *group*; nothing else in files has keys between its ends.
//! 1. A group of one whole segment that has neither deletes, operands, entries that expire nor several versions of a
//!    key, and below no range tombstone, has as many keys as entries.
//! 2. Any other group has at most as many as its segments have entries that are no deletes. It has at least those of
//!    one layer that are certainly there, less one for each entry elsewhere that may hide a key.

use super::extents::{End, Extent, Layer};
use crate::base::rangedel::{Cutter, Fragments};
use crate::base::{KeyOrder, Seq};
use crate::run::Specials;
use std::collections::BTreeMap;

/// Between which numbers a count lies, both inclusive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountBounds {
    /// There are not fewer.
    pub least: u64,
    /// There are not more.
    pub most: u64,
}

/// A whole segment with as many keys as entries.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'t> {
    /// Its keys.
    pub entries: u64,
    /// The first of them.
    pub first: &'t [u8],
    /// The last of them.
    pub last: &'t [u8],
}

/// Extents that overlap, and no others.
#[derive(Debug)]
pub struct Group<'e, 't> {
    extents: &'e [Extent<'t>],
    /// Whether a range tombstone may cover some of it.
    covered: bool,
}

impl<'t> Group<'_, 't> {
    /// The number of its keys that a reader at `at` sees, if its description tells.
    pub fn counted(&self, at: Seq) -> Option<Counted<'t>> {
        let [extent] = self.extents else { return None };
        let meta = extent.meta;
        // Seeded: a count has keys that were removed.
        let deletes = if bug!("manifest_deletes_are_counted") { 0 } else { meta.deletes };
        let plain = deletes == 0 && !meta.shadowed && meta.specials == Specials::default();
        let seen = plain && !self.covered && extent.is_whole() && meta.max_seq < at;
        seen.then_some(Counted { entries: meta.entries, first: &meta.min_key, last: &meta.max_key })
    }

    /// Between which numbers the number of its keys lies that a reader at `at` sees, if nothing else hides them.
    pub fn bounds(&self, at: Seq) -> CountBounds {
        if let Some(counted) = self.counted(at) {
            return CountBounds { least: counted.entries, most: counted.entries };
        }
        let (mut most, mut hiders) = (0, 0);
        // Of each layer, the keys that are certainly in it, and what may hide keys of others.
        let mut layers = BTreeMap::<Layer, (u64, u64)>::new();
        for extent in self.extents {
            let meta = extent.meta;
            let specials = meta.specials.operands.saturating_add(meta.specials.expiring);
            let hide = meta.deletes.saturating_add(specials);
            let sure = extent.is_whole() && !meta.shadowed && meta.max_seq < at;
            let sure = if sure { meta.entries.saturating_sub(hide) } else { 0 };
            let layer = layers.entry(extent.layer).or_default();
            *layer = (layer.0.saturating_add(sure), layer.1.saturating_add(hide));
            most = u64::saturating_add(most, meta.entries.saturating_sub(meta.deletes));
            hiders = u64::saturating_add(hiders, hide);
        }
        let least = |(sure, own): (u64, u64)| sure.saturating_add(own).saturating_sub(hiders);
        let least = layers.into_values().map(least).max().unwrap_or(0);
        // Seeded: the estimate of a count has keys that a range delete covers for certain.
        let covered = self.covered && !bug!("manifest_covered_keys_are_sure");
        CountBounds { least: if covered { 0 } else { least.min(most) }, most }
    }
}

/// The groups of these extents, in key order, below these range tombstones.
pub fn groups<'e, 't, O: KeyOrder>(
    order: &'e O,
    extents: &'e [Extent<'t>],
    tombstones: &'e Fragments,
) -> impl Iterator<Item = Group<'e, 't>> {
    let mut rest = extents;
    let mut cutter = Cutter::new(tombstones);
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let mut end = first.end;
        let overlaps = |next: &&Extent<'t>| {
            let overlaps = end.is_behind(order, Some(next.low));
            if overlaps {
                end = later(order, end, next.end);
            }
            overlaps
        };
        let more = rest[1..].iter().take_while(overlaps).count();
        let covered = cutter.next_start(order, Some(first.low));
        let covered = covered.is_some_and(|start| end.is_behind(order, start));
        let (extents, behind) = rest.split_at(1 + more);
        rest = behind;
        Some(Group { extents, covered })
    })
}

/// The later of two ends.
fn later<'t, O: KeyOrder>(order: &O, a: End<'t>, b: End<'t>) -> End<'t> {
    let (Some(one), Some(other)) = (a.key, b.key) else {
        return End { key: None, closed: false };
    };
    match order.compare(one, other) {
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal => End { closed: a.closed || b.closed, ..a },
        std::cmp::Ordering::Greater => a,
    }
}
