//! A tree under construction, while the changes of an edit are made to it.
//!
//! 1. A change names its place by a row and a lower bound. A change that does not fit is refused,
//!    and then the draft is thrown away.
//! 2. The changes of an edit ascend within a row, so searches without an order go on where the last
//!    one in that row ended.
//! 3. Only the top tier is removed, and a tier is made only directly above the top row.
//! 4. Between two changes of an edit the rows may not nest; [`check_tree`](super::check_tree) judges
//!    what results.

use crate::base::KeyOrder;
use crate::base::rangedel::compare_starts;
use crate::manifest::partition::{build_partitions, build_run};
use crate::manifest::{Partition, PartitionRecord, Row, TIERS_MAX, Tree, TreeEdit};
use crate::run::{Role, Segment, SegmentMeta};
use std::cmp::Ordering;
use std::sync::Arc;

/// A tree under construction, while several changes are made to it.
#[derive(Debug)]
pub struct Draft {
    rows: Vec<DraftRow>,
}

#[derive(Debug, Default)]
struct DraftRow {
    partitions: Vec<Arc<Partition>>,
    /// Where the last search without an order ended.
    hint: usize,
    /// How many partitions such searches passed.
    #[cfg(test)]
    steps: usize,
}

impl DraftRow {
    fn new(partitions: Vec<Arc<Partition>>) -> Self {
        Self { partitions, ..Self::default() }
    }

    /// The index of the partition that begins at `lower`, for an unknown order: continues where
    /// the last search ended, so all searches of an edit together pass each partition once.
    fn next_position(&mut self, lower: Option<&[u8]>) -> Option<usize> {
        let len = self.partitions.len();
        let begins_there = |at: &usize| self.partitions[*at].lower.as_deref() == lower;
        let from = self.hint.min(len);
        let at = (from..len).chain(0..from).find(begins_there);
        #[cfg(test)]
        {
            self.steps += at.map_or(len, |at| if at < from { len - from + at } else { at - from });
        }
        self.hint = at.unwrap_or(from);
        at
    }
}

impl Draft {
    /// A draft that is the same as `tree`.
    pub fn of(tree: &Tree) -> Self {
        let rows = tree.rows().iter().map(|row| DraftRow::new(row.partitions().to_vec()));
        Self { rows: rows.collect() }
    }

    /// The partitions, ascending.
    pub fn partitions(&self) -> &[Arc<Partition>] {
        &self.rows[0].partitions
    }

    /// The partitions of a row.
    pub fn row(&self, tier: usize) -> Option<&[Arc<Partition>]> {
        self.rows.get(tier).map(|row| &row.partitions[..])
    }

    /// The index of the partition that begins exactly at `lower`.
    pub fn position<O: KeyOrder>(&self, order: &O, lower: Option<&[u8]>) -> Option<usize> {
        self.position_in(0, order, lower)
    }

    /// As [`Self::position`], for a row.
    pub fn position_in<O: KeyOrder>(
        &self,
        tier: usize,
        order: &O,
        lower: Option<&[u8]>,
    ) -> Option<usize> {
        let row = self.row(tier)?;
        let at_or_before = |p: &Arc<Partition>| {
            compare_starts(order, p.lower.as_deref(), lower) != Ordering::Greater
        };
        let at = row.partition_point(at_or_before).checked_sub(1)?;
        (row[at].lower.as_deref() == lower).then_some(at)
    }

    /// Puts `with` in the place of `count` partitions of a row from `at`, which are there.
    pub fn replace(&mut self, tier: usize, at: usize, count: usize, with: Vec<Arc<Partition>>) {
        self.rows[tier].partitions.splice(at..at + count, with);
    }

    /// Puts a whole tier in place: one that is there, or one directly above the top row.
    pub(super) fn set_tier(
        &mut self,
        tier: usize,
        spans: Vec<Arc<Partition>>,
    ) -> Result<(), &'static str> {
        if tier == 0 || tier > TIERS_MAX || tier > self.rows.len() {
            return Err("it names a tier that cannot be there");
        }
        // Seeded: a tier is not there after a reopen.
        bug!("manifest_tier_is_not_applied", return Ok(()));
        match self.rows.get_mut(tier) {
            Some(row) => *row = DraftRow::new(spans),
            None => self.rows.push(DraftRow::new(spans)),
        }
        Ok(())
    }

    /// Removes a tier, which must be the top one.
    fn remove_tier(&mut self, tier: usize) -> Result<(), &'static str> {
        if tier == 0 || tier + 1 != self.rows.len() {
            return Err("it removes a tier that is not the top one");
        }
        self.rows.truncate(tier);
        Ok(())
    }

    /// The tree that results.
    pub fn finish(self) -> Tree {
        Tree::of_rows(self.rows.into_iter().map(|row| Row::new(row.partitions)).collect())
    }

    /// How many partitions the searches without an order passed.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.rows.iter().map(|row| row.steps).sum()
    }

    /// Makes a change that was read from a manifest.
    pub(super) fn apply(
        &mut self,
        change: &TreeEdit,
        segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
    ) -> Result<(), &'static str> {
        let (tier, lower) = match change {
            TreeEdit::Share { .. } => return Err("pieces of trees stand by themselves"),
            TreeEdit::Tier { tier, spans } if spans.is_empty() => return self.remove_tier(*tier),
            TreeEdit::Tier { tier, spans } => {
                check_spans(*tier, spans)?;
                if spans[0].lower.is_some() {
                    return Err("a tier does not begin at its start");
                }
                return self.set_tier(*tier, build_partitions(spans, None, segment));
            }
            TreeEdit::AddDelta { tier, lower, .. } | TreeEdit::Replace { tier, lower, .. } => {
                (*tier, lower)
            }
        };
        let row = self.rows.get_mut(tier).ok_or("it names a tier that is not there")?;
        let at = row.next_position(lower.as_deref());
        let at = at.ok_or("it names a partition that is not there")?;
        match change {
            TreeEdit::AddDelta { count, run, .. } => {
                if *count == 0 || *count > row.partitions.len() - at {
                    return Err("it adds a delta to partitions that are not there");
                }
                let delta = Arc::new(build_run(Role::Delta, run, segment));
                for partition in &mut row.partitions[at..at + count] {
                    *partition = Arc::new(partition.with_delta(delta.clone()));
                }
                row.hint = at + count - 1;
                Ok(())
            }
            TreeEdit::Replace { count, partitions, lower, .. } => {
                if *count == 0 || *count > row.partitions.len() - at || partitions.is_empty() {
                    return Err("it replaces partitions that are not there");
                }
                if partitions[0].lower != *lower {
                    return Err("the replacement begins elsewhere");
                }
                check_spans(tier, partitions)?;
                let upper = row.partitions[at + count - 1].upper.clone();
                let with = build_partitions(partitions, upper, segment);
                self.replace(tier, at, *count, with);
                Ok(())
            }
            TreeEdit::Share { .. } | TreeEdit::Tier { .. } => Ok(()),
        }
    }
}

/// Refuses spans that have a base.
pub(super) fn check_spans(tier: usize, spans: &[PartitionRecord]) -> Result<(), &'static str> {
    if tier > 0 && spans.iter().any(|span| !span.base.is_empty()) {
        return Err("a span has a base");
    }
    Ok(())
}
