//! The space that compactions could give back, and which of them comes next for it.
//!
//! Compactions that are due keep the dead space of most loads far below
//! [`Options::max_space_amplification`](crate::Options::max_space_amplification). They count runs and
//! bytes, so they come late where little that was written hides much: deletes that wait in tiers, range
//! deletes within a partition, versions whose snapshot is gone. A worker that has nothing due looks for
//! these here.
//!
//! 1. Only what a compaction can free now is *reclaimable*. What a snapshot of before the newer entry may
//!    read, and what other trees keep, is *held*: compactions could not free it, however often they
//!    tried (S24).
//! 2. Beyond the bound the part comes first that gives back most for a byte that is rewritten. If what
//!    hides its data waits in a tier, the highest span over it is pushed first (invariant P). In a quiet
//!    database the bound is a twentieth.
//! 3. At least an eighth is given back for what is rewritten ([`policy::is_worth_reclaiming`]), so that
//!    pauses do not rewrite the data for little (S25).
//! 4. A tombstone is taken to the base when as many bytes were written since as there are, even if all
//!    data are within the bound.
//! 5. What is taken leaves nothing behind that would be taken again, and what a quiet database keeps is
//!    never taken ([`policy::reclaimable_goal`]). Still the looks between two flushes that find something are limited,
//!    so that a wrong estimate does not compact for ever.
//! 6. Of values that are separated only what lies in value segments that a compaction would empty is reclaimable
//!    ([`values::reclaimable`]): in a quiet database as soon as an eighth of what moves would come back, and what a
//!    quiet database counts and keeps, another one counts less of and keeps too.
//!
//! Nothing is stored for it: a look walks over the partitions and what waits above them. It reads no
//! block, and range tombstones only once. So what a range deletes within a run segment is not known. It is
//! right on average: a segment counts as half dead where one of its ends is deleted.

use super::policy::{self, Amount};
use super::queue::PartitionKey;
use super::scores::{Candidate, Place};
use super::settle;
use super::tiers::children;
use super::values;
use crate::base::rangedel::Fragments;
use crate::base::{Bytewise, FileId, KeyOrder, KeyspaceId, Millis, SEQ_MAX, Seq};
use crate::catalog::{KeyspaceState, Order};
use crate::manifest::{Partition, Tree};
use crate::run::{Run, Segment};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The parts that are taken after one look.
const TAKEN: usize = 4;
/// Looks between two flushes that find something, besides two for each partition.
const LOOKS: u64 = 64;
/// There are looks once for so many partitions and change of the tree, unless the database is quiet.
const PARTS_PER_CHANGE: u64 = 128;

/// Bytes of run files, by what compactions could do about them; estimates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpaceUse {
    /// What would stay if everything was compacted and nobody read.
    pub live: u64,
    /// What compactions could free now.
    pub reclaimable: u64,
    /// What is dead, but snapshots or branches keep it.
    pub held: u64,
}

/// What a look depends on: nothing has to be done again as long as it is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Flushes since the database was opened.
    pub flushes: u64,
    /// The end of the last ingestion.
    pub ingested: Seq,
    /// Pushes and compactions since the open.
    pub changes: u64,
    /// The trees: one that goes may be a branch that held something.
    pub trees: usize,
    /// The oldest snapshot.
    pub oldest: Option<Seq>,
    /// What `Files::values_died` says.
    pub values_died: u64,
    /// Whether nobody has written since a look before.
    pub still: bool,
    /// Whether nobody has written for long.
    pub quiet: bool,
}

/// What looks have found.
#[derive(Debug, Default)]
pub struct Ledger {
    latest: SpaceUse,
    seen: Option<Moment>,
    /// The partitions of the look before, and whether it found something.
    parts: u64,
    more: bool,
    /// How many looks have found something since something was written to the tree.
    found: u64,
}

impl Ledger {
    /// What the latest look found.
    pub fn latest(&self) -> SpaceUse {
        self.latest
    }

    /// Whether the end of a snapshot may free something. It gives no signal, so somebody looks now and then.
    pub fn waits_for_readers(&self) -> bool {
        self.latest.held > 0 && self.seen.is_some_and(|seen| seen.oldest.is_some())
    }

    /// Whether another look may find something.
    pub fn is_due(&self, now: Moment) -> bool {
        let Some(seen) = self.seen else { return true };
        let released = seen.trees != now.trees || seen.oldest != now.oldest && self.latest.held > 0;
        // What a look in a quiet database leaves, any other leaves too.
        let stricter = now.quiet && !seen.quiet;
        let more = self.more && now.changes != seen.changes;
        // What a run segment refers to is known to be dead when its last reader has gone: after a compaction, or after a
        // tree is gone. Beside writes the looks after flushes find it, or the one when the writes pause.
        // Seeded: what readers of a tree that is gone have kept of value segments stays until the next flush.
        let died = (now.quiet || now.still)
            && seen.values_died != now.values_died
            && !bug!("compaction_space_forgets_values_of_readers");
        let again = (released || stricter || more || died) && self.found < LOOKS + 2 * self.parts;
        let flushes = now.flushes.saturating_sub(seen.flushes);
        let changes = flushes + now.changes.saturating_sub(seen.changes);
        let enough = now.quiet || changes >= self.parts / PARTS_PER_CHANGE;
        again || is_added(seen, now) && enough
    }

    /// Notes what a look has found that began at `now`: the space, the number of partitions, and whether there is
    /// something to push or compact.
    fn note(&mut self, (space, parts, more): (SpaceUse, u64, bool), now: Moment) {
        if self.seen.is_none_or(|seen| is_added(seen, now)) {
            self.found = 0;
        }
        self.more = more;
        self.found += u64::from(more);
        (self.latest, self.parts, self.seen) = (space, parts, Some(now));
    }
}

/// Whether something was written to the tree from above.
fn is_added(before: Moment, now: Moment) -> bool {
    (before.flushes, before.ingested) != (now.flushes, now.ingested)
}

/// How a look sees the database.
pub struct View<'v> {
    /// The trees, and what refers to what.
    pub trees: settle::View<'v>,
    /// When it looks. What the oldest snapshot sees stays.
    pub now: Moment,
    /// The end of the published writes.
    pub visible: Seq,
    /// The time of the earliest reader.
    pub time: Millis,
}

/// What the partitions of several trees have in common that have not diverged.
type Family = Option<(Place, (FileId, u64))>;

/// A lower bound and the first run segment of a base.
type Base = (Option<Vec<u8>>, (FileId, u64));

/// A partition, with what waits above it.
struct Part<'v> {
    owner: Arc<KeyspaceState>,
    tree: &'v Tree,
    at: usize,
    space: SpaceUse,
    /// Bytes that its compaction reads.
    rewritten: u64,
    /// Whether the tiers hold much of what hides its entries.
    above: bool,
    /// Whether a tombstone is too old.
    spent: bool,
}

/// What a look knows of all trees while it walks over one.
struct Known {
    /// Whether there are branches.
    branched: bool,
    /// The bases that were counted.
    counted: HashSet<Base>,
}

impl Known {
    /// Whether a partition's base was counted in another tree; it is from now on.
    fn is_counted(&mut self, part: &Partition) -> bool {
        let first = part.base.segments().first().map(|first| first.meta());
        let base = first.map(|first| (part.lower.clone(), first.place()));
        self.branched && base.is_some_and(|base| !self.counted.insert(base))
    }
}

/// What waits above the base of a partition.
#[derive(Debug, Clone, Default)]
struct Waiting {
    seen: Amount,
    held: Amount,
    /// Bytes that range tombstones cover.
    covered: f64,
    covered_held: f64,
    /// Bytes of run segments that need not be read to be dropped.
    unread: f64,
    /// What [`values::reclaimable`] says of the partition.
    dead_values: u64,
    moved_values: u64,
    /// The oldest tombstone that every reader sees.
    oldest: Option<Seq>,
    /// Whether there is a range tombstone that every reader sees.
    ranges: bool,
}

impl Waiting {
    fn add(&mut self, segment: &Segment, share: f64, seen: bool) {
        let meta = segment.meta();
        let sum = if seen { &mut self.seen } else { &mut self.held };
        sum.bytes += meta.weight() as f64 * share;
        sum.entries += meta.entries as f64 * share;
        // Seeded: deletes count for no more than their own size.
        bug!("compaction_space_forgets_deletes", return);
        sum.deletes += meta.deletes as f64 * share;
        if seen && meta.deletes > 0 {
            self.note_age(meta.min_seq);
        }
    }

    fn note_age(&mut self, seq: Seq) {
        self.oldest = Some(self.oldest.map_or(seq, |oldest| oldest.min(seq)));
    }
}

impl<'v> View<'v> {
    /// Looks, notes what there is, and returns what should be pushed or compacted. One thread looks at a time. It
    /// calls `pause` after the estimate, without the lock of the ledger.
    pub fn look(
        &self,
        ledger: &Mutex<Ledger>,
        fresh: impl Fn(KeyspaceId) -> f64,
        pause: impl FnOnce(),
    ) -> Vec<PartitionKey> {
        let (parts, space) = self.estimate(fresh);
        let count = parts.len() as u64;
        pause();
        let keys = self.choose(parts, space);
        // Seeded: what is flushed during a look counts as seen by it.
        let flushes = self.now.flushes + u64::from(bug!("compaction_space_missed_flush_is_seen"));
        let now = Moment { flushes, ..self.now };
        ledger.lock().note((space, count, !keys.is_empty()), now);
        keys
    }

    /// The partitions, and what there is in them.
    fn estimate(&self, fresh: impl Fn(KeyspaceId) -> f64) -> (Vec<Part<'v>>, SpaceUse) {
        let (mut parts, mut frozen) = (Vec::new(), Vec::new());
        let branched = self.trees.catalog.lock().is_branched();
        let mut known = Known { branched, counted: HashSet::new() };
        for (id, tree) in self.trees.version.trees() {
            // The tree of a named snapshot stays as it is.
            let Some(owner) = self.trees.catalog.lock().thawed(*id) else {
                frozen.push(tree);
                continue;
            };
            let (tree, fresh) = ((&owner, &**tree), fresh(*id));
            match &owner.order {
                Order::Bytewise => self.parts(&Bytewise, tree, (fresh, &mut known), &mut parts),
                Order::Custom(order) => self.parts(order, tree, (fresh, &mut known), &mut parts),
                Order::Missing(_) => {}
            }
        }
        let mut space = parts.iter().fold(SpaceUse::default(), |sum, part| SpaceUse {
            live: sum.live + part.space.live,
            reclaimable: sum.reclaimable + part.space.reclaimable,
            held: sum.held + part.space.held,
        });
        for part in frozen.iter().flat_map(|tree| tree.partitions()) {
            if !known.is_counted(part) {
                space.held += part.base.bytes();
            }
        }
        (parts, space)
    }

    /// Whether every reader sees what was written there, and all that is newer.
    fn is_seen(&self, seq: Seq) -> bool {
        // Seeded: what a snapshot reads counts as if it could be freed.
        self.now.oldest.is_none_or(|oldest| seq < oldest)
            || bug!("compaction_space_ignores_readers")
    }

    /// Adds the partitions of a tree.
    fn parts<O: KeyOrder>(
        &self,
        order: &O,
        (owner, tree): (&Arc<KeyspaceState>, &'v Tree),
        (fresh, known): (f64, &mut Known),
        parts: &mut Vec<Part<'v>>,
    ) {
        let partitions = tree.partitions();
        let waiting = self.waiting(order, tree);
        for (at, (part, mut waiting)) in partitions.iter().zip(waiting).enumerate() {
            let base = amount_of(&part.base);
            let pending = policy::hidden_bytes(waiting.seen, base, fresh) + waiting.covered;
            let above = waiting.seen.bytes > 0.0 || waiting.ranges;
            let is_old = |waiting: &Waiting| waiting.oldest.is_some_and(|seq| self.is_old(seq));
            let old_above = is_old(&waiting);
            for segment in part.deltas.iter().flat_map(|run| run.segments()) {
                waiting.add(segment, 1.0, self.is_seen(segment.meta().max_seq));
            }
            (waiting.dead_values, waiting.moved_values) =
                values::reclaimable(part, self.now.quiet, !known.branched);
            for run in part.runs().filter(|run| !run.tombstones().is_empty()) {
                self.cover(order, run, part, &mut waiting);
            }
            let mut space = self.space_of(owner, part, &waiting, (fresh, known.branched));
            let rewritten = rewritten(part, &waiting, space.reclaimable);
            let much = pending > 0.0 && pending * 4.0 >= space.reclaimable as f64;
            let spent = is_old(&waiting) && (space.held == 0 || space.reclaimable > 0);
            // What trees share is counted once, and given back once.
            if known.is_counted(part) {
                space = SpaceUse::default();
            }
            parts.push(Part {
                owner: owner.clone(),
                tree,
                at,
                space,
                rewritten,
                above: above && (much || old_above),
                spent,
            });
        }
    }

    /// What waits in the tiers over each partition of a tree.
    fn waiting<O: KeyOrder>(&self, order: &O, tree: &Tree) -> Vec<Waiting> {
        let row = &tree.rows()[0];
        let mut waiting = vec![Waiting::default(); row.partitions().len()];
        for (below, tier) in tree.tiers().iter().enumerate() {
            for span in tier.partitions().iter().filter(|span| !span.deltas.is_empty()) {
                let first = span.lower.as_deref().map_or(0, |lower| row.find(order, lower));
                // The bounds of a tier are bounds of all rows below it.
                let end = match span.upper.as_deref() {
                    Some(upper) => row.find(order, upper),
                    None => row.partitions().len(),
                };
                debug_assert!(below > 0 || children(order, row, span) == (first..end));
                for run in &span.deltas {
                    let within = &mut waiting[first..end];
                    self.add_pending(order, run, (&row.partitions()[first..end], within));
                }
            }
        }
        waiting
    }

    /// Whether so much was written since a tombstone that it has to go.
    fn is_old(&self, tombstone: Seq) -> bool {
        let settings = self.trees.settings;
        let data = settings.data.load(Ordering::Relaxed);
        policy::tombstone_is_old(self.visible.saturating_sub(tombstone), data, settings.space)
    }

    /// Spreads a pending run over the partitions below it.
    fn add_pending<O: KeyOrder>(
        &self,
        order: &O,
        run: &Run,
        (parts, waiting): (&[Arc<Partition>], &mut [Waiting]),
    ) {
        let find = |key: &[u8]| {
            let after = parts.partition_point(|part| {
                part.lower.as_deref().is_none_or(|lower| order.compare(lower, key).is_le())
            });
            after.saturating_sub(1)
        };
        for segment in run.segments() {
            let meta = segment.meta();
            let (first, last) = (find(&meta.min_key), find(&meta.max_key));
            let share = 1.0 / (last - first + 1) as f64;
            let seen = self.is_seen(meta.max_seq);
            waiting[first..=last].iter_mut().for_each(|part| part.add(segment, share, seen));
        }
        if !run.tombstones().is_empty() {
            for (part, waiting) in parts.iter().zip(waiting) {
                self.cover(order, run, part, waiting);
            }
        }
    }

    /// Counts what the range tombstones of a run cover in a partition.
    fn cover<O: KeyOrder>(&self, order: &O, run: &Run, part: &Partition, to: &mut Waiting) {
        // What cannot be read is found by the compaction that needs it.
        let Ok(lists) = run.fragments(order) else { return };
        for list in lists.iter().filter(|list| touches(order, list, part)) {
            let seen = self.is_seen(list.max_seq());
            let segments = part.runs().flat_map(|run| run.segments());
            let (mut bytes, mut whole) = (0.0, 0.0);
            for segment in segments {
                let len = segment.meta().weight() as f64;
                let share = covered(order, list, segment);
                bytes += len * share;
                whole += if share < 1.0 { 0.0 } else { len };
            }
            if seen {
                to.covered += bytes;
                to.unread += whole;
                to.ranges = true;
                to.note_age(list.min_seq());
            } else {
                to.covered_held += bytes;
            }
        }
    }

    fn space_of(
        &self,
        owner: &KeyspaceState,
        part: &Arc<Partition>,
        waiting: &Waiting,
        (fresh, branched): (f64, bool),
    ) -> SpaceUse {
        let base = amount_of(&part.base);
        let dead_values = waiting.dead_values as f64;
        let all = base.bytes + waiting.seen.bytes + waiting.held.bytes + dead_values;
        let (mut hidden, mut held) = (waiting.covered, waiting.covered_held);
        for segment in part.base.segments() {
            let (dead, kept) = self.dead_in_base(segment);
            (hidden, held) = (hidden + dead, held + kept);
        }
        hidden += policy::hidden_bytes(waiting.seen, base, fresh);
        held += policy::hidden_bytes(waiting.held, base, fresh);
        let mut reclaimable = (hidden + dead_values).min(all);
        // Seeded: what a named snapshot keeps is written a second time.
        let alone = !branched || bug!("compaction_space_copies_what_branches_hold");
        // A tombstone that covers nothing frees nothing, but costs nothing either.
        if reclaimable > 0.0 && !alone && self.trees.is_elsewhere(owner, part) {
            (held, reclaimable) = (held + reclaimable, 0.0);
        }
        held = held.min(all - reclaimable);
        SpaceUse {
            live: (all - reclaimable - held) as u64,
            reclaimable: reclaimable as u64,
            held: held as u64,
        }
    }

    /// The bytes of a segment of a base that the next compaction frees, what has expired and what was
    /// kept for snapshots that are gone; and those that are kept for snapshots.
    fn dead_in_base(&self, segment: &Segment) -> (f64, f64) {
        let meta = segment.meta();
        let bytes = |entries: u64| {
            meta.weight() as f64 * (entries as f64 / meta.entries.max(1) as f64).min(1.0)
        };
        let expired = meta.specials.all_expired(self.time);
        // A delete, and what it hides. How many versions are hidden is not known.
        let shadowed = if meta.shadowed { meta.entries / 4 } else { 0 };
        let hidden = (2 * meta.deletes).max(shadowed);
        match self.is_seen(meta.max_seq) {
            true => (bytes(expired.max(hidden)), 0.0),
            false => (bytes(expired), bytes(hidden)),
        }
    }

    /// What comes next.
    fn choose(&self, mut parts: Vec<Part<'v>>, space: SpaceUse) -> Vec<PartitionKey> {
        let bound = self.trees.settings.space;
        parts.retain(|part| part.rewritten <= self.trees.room);
        let worth = |part: &Part<'_>| policy::worth(part.space.reclaimable, part.rewritten);
        parts.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
        // The compaction itself takes space, until its input is given back.
        let temporary = parts.first().map_or(0, |part| part.rewritten);
        let goal = policy::reclaimable_goal(space.live, temporary, bound, self.now.quiet);
        let mut excess = space.reclaimable.saturating_sub(goal);
        let (mut keys, mut taken) = (Vec::new(), HashSet::new());
        let mut take = |part: &Part<'_>| {
            if let Some((key, family)) = self.key_of(part)
                && keys.len() < TAKEN
                // Another tree gets the result of the first one.
                && (family.is_none() || taken.insert(family))
                && !keys.contains(&key)
            {
                keys.push(key);
            }
        };
        for part in &parts {
            if excess == 0 || !policy::is_worth_reclaiming(worth(part), bound) {
                break;
            }
            excess = excess.saturating_sub(part.space.reclaimable);
            take(part);
        }
        // Seeded: a tombstone stays as long as nothing else is due.
        bug!("compaction_old_tombstones_stay", return keys);
        parts.iter().filter(|part| part.spent).for_each(take);
        keys
    }

    /// What is pushed or compacted for a partition, and what it has in common with other trees.
    fn key_of(&self, part: &Part<'_>) -> Option<(PartitionKey, Family)> {
        let (tier, found) = match &part.owner.order {
            Order::Bytewise => highest(&Bytewise, part),
            Order::Custom(order) => highest(order, part),
            Order::Missing(_) => return None,
        };
        // A push would leave a copy where other trees have the span.
        if tier > 0 && self.trees.store.lock().shares(found) {
            return None;
        }
        let key = PartitionKey { keyspace: part.owner.id, tier, lower: found.lower.clone() };
        let family = Candidate::of(found, 0.0).family(key.place());
        Some((key, family))
    }
}

/// The partition, or the highest span over it in which something waits if that matters.
fn highest<'p, O: KeyOrder>(order: &O, part: &'p Part<'_>) -> (usize, &'p Arc<Partition>) {
    let own = &part.tree.partitions()[part.at];
    let over = part.tree.tiers().iter().enumerate().rev().map(|(below, row)| {
        let at = own.lower.as_deref().map_or(0, |lower| row.find(order, lower));
        (below + 1, &row.partitions()[at])
    });
    let mut waiting = over.filter(|(_, span)| part.above && !span.deltas.is_empty());
    waiting.next().unwrap_or((0, own))
}

fn amount_of(base: &Run) -> Amount {
    Amount { bytes: base.bytes() as f64, entries: base.entries() as f64, deletes: 0.0 }
}

/// The bytes that a compaction of a partition reads or writes so that so much is given back. Separated values stay
/// where they are, but for those whose segment is emptied: what is dead already says which, and of what becomes dead
/// at most three bytes move for one.
fn rewritten(part: &Partition, waiting: &Waiting, reclaimable: u64) -> u64 {
    let all = part.base.bytes() as f64 + part.delta_bytes() as f64;
    let segments = part.run_segments().map(|segment| segment.meta());
    let keys: u64 = segments.map(|meta| meta.len).sum();
    let new = reclaimable.saturating_sub(waiting.dead_values);
    let moved = waiting.moved_values.saturating_add(new.saturating_mul(3));
    let least = all.min(keys.saturating_add(moved) as f64);
    (least + waiting.seen.bytes - waiting.unread).max(0.0) as u64
}

/// Whether range tombstones reach into a partition.
fn touches<O: KeyOrder>(order: &O, list: &Fragments, part: &Partition) -> bool {
    let Some((start, end)) = list.hull() else { return false };
    let before = part.upper.as_deref().zip(start).is_some_and(|(u, s)| order.compare(u, s).is_le());
    let after = part.lower.as_deref().zip(end).is_some_and(|(l, e)| order.compare(e, l).is_le());
    !before && !after
}

/// The share of a segment that range tombstones cover: all, or about half where an end is covered.
fn covered<O: KeyOrder>(order: &O, list: &Fragments, segment: &Segment) -> f64 {
    let meta = segment.meta();
    let (min, max) = (&meta.min_key[..], &meta.max_key[..]);
    if list.covers_range(order, min, max, SEQ_MAX) > meta.max_seq {
        return 1.0;
    }
    let ends = [min, max].map(|key| list.covering_seq(order, key, SEQ_MAX) > meta.max_seq);
    if ends.contains(&true) { 0.5 } else { 0.0 }
}

#[cfg(test)]
mod tests;
