//! One push for several trees: trees of branches that have not diverged in a span and below it (S12).
//!
//! 1. Another tree takes a push over only where it has the same span and the same children: the same
//!    bounds, with runs of the same segments ([`Partition::is_same`]). Then it gets the very span
//!    and the very children that the push has made, so both trees go on sharing them.
//! 2. Nothing is taken over where the other tree's span is being pushed or one of the children
//!    compacted: those changes expect what was there when they began.
//! 3. The edits name places by their lower bounds and are the same for both trees. So what a tree
//!    adds to an edit does not grow with its partitions.

#[cfg(test)]
mod tests;

use super::{PushedRuns, Rows, Rules, children};
use crate::base::KeyOrder;
use crate::base::rangedel::compare_starts;
use crate::manifest::{Partition, Row, TreeEdit};
use std::ops::Range;
use std::sync::Arc;

/// What a push changed in a tree.
#[derive(Debug)]
pub struct Push {
    tier: usize,
    /// The span and its children, before and after.
    old: Family,
    new: Family,
    edits: Vec<TreeEdit>,
}

/// A span with its children.
#[derive(Debug)]
struct Family {
    span: Arc<Partition>,
    children: Vec<Arc<Partition>>,
}

impl Family {
    /// The span of `row` that begins as `part` does, and its children.
    fn of<O: KeyOrder>(order: &O, (row, below): (&Row, &Row), part: &Partition) -> Option<Self> {
        let span = row.partitions()[row.position(order, part.lower.as_deref())?].clone();
        let children = below.partitions()[children(order, below, &span)].to_vec();
        Some(Self { span, children })
    }
}

/// The row of a tier and the one below it.
fn row_and_below(rows: &[Row], tier: usize) -> Option<(&Row, &Row)> {
    rows.get(tier).zip(rows.get(tier.checked_sub(1)?))
}

impl Rows {
    /// Takes what was pushed from a span and adds its slices to the row below; `None`: the span was
    /// changed in another way.
    pub fn push<O: KeyOrder>(
        &mut self,
        order: &O,
        (tier, pushed, slices): PushedRuns<'_>,
        rules: Rules<'_>,
    ) -> Option<Push> {
        let old = Family::of(order, row_and_below(&self.rows, tier)?, pushed)?;
        let before = self.edits.len();
        if !self.take_pushed(order, tier, pushed) {
            return None;
        }
        self.add(order, tier - 1, slices, rules);
        let new = Family::of(order, row_and_below(&self.rows, tier)?, pushed)?;
        // Elsewhere in the row below, partitions may have been split.
        let (low, high) = (new.span.lower.as_deref(), new.span.upper.as_deref());
        let lies_within = |edit: &&TreeEdit| {
            let (TreeEdit::AddDelta { lower, .. } | TreeEdit::Replace { lower, .. }) = edit else {
                return false;
            };
            compare_starts(order, low, lower.as_deref()).is_le()
                && high.is_none_or(|_| compare_starts(order, lower.as_deref(), high).is_lt())
        };
        let edits = self.edits[before..].iter().filter(lies_within).cloned().collect();
        Some(Push { tier, old, new, edits })
    }

    /// Takes over what a push did to another tree. False: this tree differs there, or is being
    /// changed there.
    pub fn take_over<O: KeyOrder>(&mut self, order: &O, push: &Push, busy: Busy<'_>) -> bool {
        let Some(place) = push.place_in(order, &self.rows, busy) else { return false };
        self.replace(push.tier, place.span..place.span + 1, std::slice::from_ref(&push.new.span));
        self.replace(push.tier - 1, place.children, &push.new.children);
        self.edits.extend(push.edits.iter().cloned());
        self.look_again(push.tier);
        true
    }
}

/// Whether a partition is being compacted, or a span of a tier pushed.
type Busy<'b> = &'b dyn Fn(usize, &Partition) -> bool;

/// Where a tree takes a push over: the indexes of the span and of its children.
#[derive(Debug)]
pub struct Place {
    span: usize,
    children: Range<usize>,
}

impl Push {
    /// Where a tree of these rows takes it over; `None`: nowhere, by rules 1 and 2.
    pub fn place_in<O: KeyOrder>(&self, order: &O, rows: &[Row], busy: Busy<'_>) -> Option<Place> {
        let (row, below) = row_and_below(rows, self.tier)?;
        let at = row.position(order, self.old.span.lower.as_deref())?;
        let span = &row.partitions()[at];
        if !span.is_same(&self.old.span) || busy(self.tier, span) {
            return None;
        }
        let within = children(order, below, span);
        let present = &below.partitions()[within.clone()];
        let same = present.len() == self.old.children.len()
            && present.iter().zip(&self.old.children).all(|(a, b)| a.is_same(b));
        // Seeded: a branch gets its parent's partitions in the place of its own.
        let same = same || bug!("compaction_shared_push_ignores_other_children");
        // Seeded: what is being compacted in a branch is replaced by what another has pushed.
        let is_busy = |child: &Arc<Partition>| {
            busy(self.tier - 1, child) && !bug!("compaction_shared_push_ignores_busy_children")
        };
        let free = same && !present.iter().any(is_busy);
        free.then_some(Place { span: at, children: within })
    }
}
