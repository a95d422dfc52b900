//! What a compaction leaves alone.
//!
//! A compaction need not read all of its inputs. A segment whose key range overlaps no other goes
//! into the new run by reference. A segment that a range tombstone hides completely is dropped
//! unread. Each group of overlapping segments is rewritten separately, so appends and hot ranges
//! rewrite little. The output lies at the bottom (base plus deltas become a new base).
//!
//! Rules (R18: tombstones, range tombstones and snapshots are checked first):
//! 1. A segment is dropped under two conditions: everywhere in its key range a range tombstone
//!    newer than all its entries covers it, and no snapshot lies between the oldest entry and the
//!    tombstone. A reader that sees any of its entries sees the tombstone, which also hides the
//!    older entries that the segment's own deletes hide. A segment of the base is also dropped when
//!    all of its entries have expired for every reader: nothing that they could hide lies below it.
//! 2. A segment is reused under three conditions. It overlaps no other segment that is not dropped.
//!    No range tombstone that is newer than its oldest entry touches it (the compaction may drop
//!    the tombstone, see `compaction::gc`, or would have to apply it). It holds nothing that the
//!    compaction could free now: no deletes or operands in a delta, no deletes, operands or
//!    shadowed versions that every reader has passed, and nothing that has expired for every
//!    reader.
//! 3. Everything else is rewritten. Two segments whose ranges share a single key overlap.
//! 4. Reusable segments smaller than a limit (*small segments*) are rewritten together with
//!    neighbouring small segments or with a rewritten neighbour, so that a base does not degrade
//!    into small segments. Each rewrite takes in at most one segment's worth of bytes that way.

#[cfg(test)]
mod tests;

use super::gc::VersionGc;
use crate::base::{KeyOrder, Seq};
use crate::iter::Tombstones;
use crate::run::Segment;
use std::cmp::Ordering;
use std::sync::Arc;

/// A segment as the plan sees it: a closed key interval and a few facts.
#[derive(Debug, Clone)]
pub struct Interval<'a, S> {
    /// The caller's name for the segment.
    pub segment: S,
    /// Its smallest key.
    pub min: &'a [u8],
    /// Its greatest key.
    pub max: &'a [u8],
    /// Its size.
    pub bytes: u64,
    /// How many deletes and operands it holds.
    pub deletes: u64,
    /// Whether it must be rewritten, whatever it holds.
    pub forced: bool,
    /// Whether all of its entries have expired for every reader.
    pub expired: bool,
    /// Whether some of its entries have expired for every reader.
    pub expires: bool,
    /// Whether it may hold versions that a newer version of the same segment shadows.
    pub shadowed: bool,
    /// The smallest sequence number in it.
    pub min_seq: Seq,
    /// The greatest sequence number in it.
    pub max_seq: Seq,
}

/// What a source run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A delta run.
    Delta,
    /// The base run.
    Base,
}

/// A source run of the compaction: its segments in ascending order.
#[derive(Debug, Clone)]
pub struct SourceRuns<'a, S> {
    /// What it is.
    pub kind: SourceKind,
    /// Its segments.
    pub segments: Vec<Interval<'a, S>>,
}

/// A piece of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<S> {
    /// The segment goes into the output by reference.
    Reuse(S),
    /// These segments are rewritten together: one list per source run, in the order of the
    /// sources, each ascending and possibly empty. A rewrite may follow a rewrite; the writer need
    /// not begin a new segment between them.
    Rewrite(Vec<Vec<S>>),
    /// These segments, which follow each other and could be taken over, are written in another form.
    Recode(Recoding, Vec<S>),
    /// The segment is dropped unread.
    Drop(S),
}

/// Why a segment that could be taken over is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recoding {
    /// It is raw, and stays.
    Settles,
    /// It is not read.
    Cools,
    /// It is compressed strongly, and read often.
    Warms,
}

/// The sizes that decide which segments are small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanLimits {
    /// Reusable segments smaller than this are joined.
    pub small_bytes: u64,
    /// The size that a segment should have, and the limit of one group of joined segments.
    pub segment_bytes: u64,
}

/// A group of segments that overlap, while the plan is made.
struct Group<'a, S> {
    /// The source's number and the segment.
    members: Vec<(usize, &'a Interval<'a, S>)>,
    fate: Fate,
    /// Bytes of reusable segments that are rewritten only to join them.
    joined: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Drop,
    Reuse,
    Rewrite,
}

/// Plans the compaction of `sources` to a new base. `tombstones` are the range tombstones of all
/// sources; `gc` is the rule of the compaction.
///
/// The pieces that are reused or rewritten are in ascending key order and do not overlap. Each
/// segment is in exactly one piece. Dropped segments are ordered among them by their smallest keys.
pub fn plan<O: KeyOrder, T: Tombstones, S: Clone>(
    order: &O,
    sources: &[SourceRuns<'_, S>],
    tombstones: &[T],
    gc: &VersionGc,
    limits: PlanLimits,
) -> Vec<Piece<S>> {
    let mut members = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        members.extend(source.segments.iter().map(|segment| (number, segment)));
    }
    members.sort_by(|a, b| order.compare(a.1.min, b.1.min).then(a.0.cmp(&b.0)));

    let mut groups: Vec<Group<'_, S>> = Vec::new();
    // The last group that is not dropped, and its greatest key.
    let mut open: Option<(usize, &[u8])> = None;
    for (number, segment) in members {
        let gone = segment.expired && hides_nothing(order, &sources[number], segment);
        if gone || is_dropped(order, segment, tombstones, gc) {
            groups.push(Group { members: vec![(number, segment)], fate: Fate::Drop, joined: 0 });
            continue;
        }
        // Seeded: two segments that share one key are both taken over.
        bug!("compaction_shared_key_is_no_overlap", {
            open.take_if(|(_, max)| order.compare(segment.min, max).is_eq());
        });
        if let Some((group, max)) = &mut open
            && order.compare(segment.min, max).is_le()
        {
            groups[*group].members.push((number, segment));
            groups[*group].fate = Fate::Rewrite;
            if order.compare(segment.max, max) == Ordering::Greater {
                *max = segment.max;
            }
            continue;
        }
        let reused = is_reused(order, sources[number].kind, segment, tombstones, gc);
        let fate = if reused { Fate::Reuse } else { Fate::Rewrite };
        open = Some((groups.len(), segment.max));
        groups.push(Group { members: vec![(number, segment)], fate, joined: 0 });
    }
    join_small_groups(groups, limits)
        .into_iter()
        .map(|group| group.into_piece(sources.len()))
        .collect()
}

/// About how many bytes a compaction of these pieces writes.
pub fn written_bytes(pieces: &[Piece<Arc<Segment>>]) -> f64 {
    let written = |piece: &Piece<Arc<Segment>>| match piece {
        Piece::Drop(_) | Piece::Reuse(_) => 0.0,
        // What was cold may take twice as much when it is warm.
        Piece::Recode(recoding, segments) => {
            let bytes: u64 = segments.iter().map(|segment| segment.meta().len).sum();
            bytes as f64 * if *recoding == Recoding::Warms { 2.0 } else { 1.0 }
        }
        Piece::Rewrite(runs) => {
            let metas = || runs.iter().flatten().map(|segment| segment.meta());
            let (bytes, entries) =
                metas().fold((0, 0), |(b, e), meta| (b + meta.len, e + meta.entries));
            // A delete and the entry that it hides are both dropped.
            let gone = 2 * metas().map(|meta| meta.deletes).sum::<u64>();
            bytes as f64 * entries.saturating_sub(gone) as f64 / entries.max(1) as f64
        }
    };
    pieces.iter().map(written).sum()
}

/// Rule 4, from left to right: each group is joined with the previous group where that is allowed.
/// Dropped groups in between do not matter.
fn join_small_groups<S>(groups: Vec<Group<'_, S>>, limits: PlanLimits) -> Vec<Group<'_, S>> {
    let mut joined: Vec<Group<'_, S>> = Vec::with_capacity(groups.len());
    let mut last: Option<usize> = None;
    for mut group in groups {
        if group.fate == Fate::Drop {
            joined.push(group);
            continue;
        }
        if let Some(before) = last
            && let Some(bytes) = joined_bytes(&joined[before], &group, limits)
        {
            let before = &mut joined[before];
            before.members.append(&mut group.members);
            before.fate = Fate::Rewrite;
            before.joined = bytes;
            continue;
        }
        last = Some(joined.len());
        joined.push(group);
    }
    joined
}

/// The bytes that would be rewritten only to join the two groups; `None` if they stay apart.
fn joined_bytes<S>(a: &Group<'_, S>, b: &Group<'_, S>, limits: PlanLimits) -> Option<u64> {
    let small_bytes = |group: &Group<'_, S>| match group.fate {
        Fate::Reuse => {
            let bytes = group.members.iter().map(|(_, segment)| segment.bytes).sum();
            (bytes < limits.small_bytes).then_some(bytes)
        }
        Fate::Rewrite => Some(group.joined),
        Fate::Drop => None,
    };
    if a.fate == Fate::Rewrite && b.fate == Fate::Rewrite {
        return None;
    }
    small_bytes(a)?.checked_add(small_bytes(b)?).filter(|bytes| *bytes <= limits.segment_bytes)
}

impl<S: Clone> Group<'_, S> {
    fn into_piece(self, sources: usize) -> Piece<S> {
        match (self.fate, self.members.as_slice()) {
            (Fate::Drop, [(_, segment)]) => Piece::Drop(segment.segment.clone()),
            (Fate::Reuse, [(_, segment)]) => Piece::Reuse(segment.segment.clone()),
            _ => {
                let mut lists = vec![Vec::new(); sources];
                for (number, segment) in &self.members {
                    lists[*number].push(segment.segment.clone());
                }
                Piece::Rewrite(lists)
            }
        }
    }
}

/// Rule 1.
fn is_dropped<O: KeyOrder, T: Tombstones, S>(
    order: &O,
    segment: &Interval<'_, S>,
    tombstones: &[T],
    gc: &VersionGc,
) -> bool {
    let below = gc.stripe_end(segment.min_seq);
    // Seeded: a segment is dropped although a snapshot older than its range tombstone sees it.
    let below = if bug!("compaction_covered_segment_drop_ignores_snapshots") {
        crate::base::SEQ_MAX
    } else {
        below
    };
    all_spans(order, segment, tombstones, |key| {
        crate::iter::covering_seq(order, tombstones, key, below) > segment.max_seq
    })
}

/// Whether the entries of a segment hide nothing: it belongs to the base, and no other segment
/// of the base holds versions of its keys.
fn hides_nothing<O: KeyOrder, S>(
    order: &O,
    source: &SourceRuns<'_, S>,
    segment: &Interval<'_, S>,
) -> bool {
    let shares_a_key = |other: &Interval<'_, S>| {
        !std::ptr::eq(other, segment)
            && (order.compare(other.min, segment.max).is_eq()
                || order.compare(other.max, segment.min).is_eq())
    };
    // Seeded: an expired segment of a delta is dropped, and what it hid becomes visible again.
    bug!("compaction_expired_delta_dropped", return true);
    source.kind == SourceKind::Base && !source.segments.iter().any(shares_a_key)
}

/// Rule 2, apart from overlaps.
fn is_reused<O: KeyOrder, T: Tombstones, S>(
    order: &O,
    kind: SourceKind,
    segment: &Interval<'_, S>,
    tombstones: &[T],
    gc: &VersionGc,
) -> bool {
    // Seeded: a segment of a delta that holds operands or deletes joins the base as it is.
    let kind = if bug!("compaction_deletes_reused") { SourceKind::Base } else { kind };
    if segment.forced || segment.expires || (kind == SourceKind::Delta && segment.deletes > 0) {
        return false;
    }
    if (segment.deletes > 0 || segment.shadowed) && gc.is_seen_by_all(segment.max_seq) {
        return false;
    }
    // Seeded: a segment under a newer range tombstone is taken over, and the tombstone is dropped.
    bug!("compaction_covered_segment_reused", return true);
    all_spans(order, segment, tombstones, |key| {
        crate::iter::covering_seq(order, tombstones, key, crate::base::SEQ_MAX) <= segment.min_seq
    })
}

/// Whether `holds` is true of a key in each span of the tombstones that overlaps the segment.
fn all_spans<O: KeyOrder, T: Tombstones, S>(
    order: &O,
    segment: &Interval<'_, S>,
    tombstones: &[T],
    holds: impl Fn(&[u8]) -> bool,
) -> bool {
    let mut key = segment.min;
    loop {
        if !holds(key) {
            return false;
        }
        let ends = tombstones.iter().filter_map(|source| source.span(order, key).1);
        match ends.min_by(|a, b| order.compare(a, b)) {
            Some(end) if order.compare(end, segment.max).is_le() => key = end,
            _ => return true,
        }
    }
}
