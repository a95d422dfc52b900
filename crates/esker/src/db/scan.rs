//! The path of a scan: one partition after another, each with one merging iterator over the
//! memtables, the pending runs of the spans above the partition, and the partition's runs.
//!
//! An iterator owns the state that it was made with (memtables and version), so it holds no lock,
//! and everything it needs stays. It never stops early without an error (C3). If the merge operator
//! refuses an entry, the error concerns only that entry: the next move continues after it. Every
//! other error stays until the iterator is repositioned.

use crate::base::Moment;
use crate::cache::Looks;
use crate::catalog::KeyspaceState;
use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::iter::{AnyCursor, AnyTombstones, Bounds, Reading, Sources, VisibleIter};
use crate::manifest::{Partition, Tree};
use crate::run::{Role, RunCursor};
use crate::state::State;
use crate::state::memtables::DbOrder;
use crate::stats::counters::{Counter, Timed};
use crate::sync::{Point, pin};
use crate::trace::tally::Tally;
use crate::trace::{Unwatched, Watcher};
use std::ops::Bound;
use std::sync::Arc;

type PartitionIter<O, W> = VisibleIter<<W as Watcher>::Watched<AnyCursor<O>>, O, AnyTombstones>;

/// The direction of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// An iterator over the entries of one keyspace that are visible at a position, in one direction at
/// a time.
pub struct Scan<O: DbOrder, W: Watcher = Unwatched> {
    order: O,
    /// How entries are read.
    pub reading: Reading,
    /// The partition that `inner` covers.
    partition: usize,
    inner: Option<PartitionIter<O, W>>,
    watcher: W,
    memory_tombstones: Vec<AnyTombstones>,
    /// Entries shown since the counters were last updated.
    shown: u64,
    /// Entries that the iterators of earlier partitions skipped.
    steps: u64,
    /// When it looks whether iterators hold too much.
    looks: Looks,
    /// Dropped last: its drop tells the workers that the state is free of it.
    scope: Scope,
}

impl<O: DbOrder, W: Watcher> Drop for Scan<O, W> {
    fn drop(&mut self) {
        self.scope.core.counters.add(Counter::Scanned, self.shown);
        self.scope.core.counters.add(Counter::Skipped, self.skipped());
        self.looks.end(self.scope.core.cache.pins());
    }
}

impl<O: DbOrder, W: Watcher> Scan<O, W> {
    /// An iterator, not yet positioned, over a scope; `watcher` follows its cursors.
    #[inline(always)]
    pub fn new(scope: Scope, order: O, watcher: W) -> Self {
        let operator = scope.keyspace.operator();
        let (at, time) = (scope.at.seq, scope.at.time);
        let reading = Reading { at, time, operator, leaves_pieces: false };
        let mut memory_tombstones = Vec::new();
        for set in &scope.state.memtable_sets {
            let id = scope.keyspace.id_in(set.start);
            memory_tombstones.extend(O::tombstones(set, id).map(AnyTombstones::Mem));
        }
        Self {
            order,
            reading,
            partition: 0,
            inner: None,
            watcher,
            memory_tombstones,
            shown: 0,
            steps: 0,
            looks: Looks::default(),
            scope,
        }
    }

    /// Another scan over the same scope, not yet positioned.
    pub fn again(&self) -> Self {
        Self::new(self.scope.clone(), self.order.clone(), self.watcher.clone())
    }

    /// Goes to the first entry within the bounds, whose lower bound is `key`. It does not count as
    /// a scan: point reads use it when they meet operands.
    pub fn find(&mut self, key: &[u8]) -> Result<()> {
        self.enter(self.scope.tree.find(&self.order, key))?;
        let found = self.inner.as_mut().map_or(Ok(()), |inner| inner.seek_to_first());
        found.map_err(|error| self.locate(error))
    }

    /// Whether the iterator stands on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.valid())
    }

    /// The key of the refused entry on which the iterator stands: the last move returned that
    /// entry's error, and the next move continues after it.
    pub fn refused(&self) -> Option<&[u8]> {
        self.inner.as_ref()?.refused().map(|(key, _)| key)
    }

    /// The error of the refused entry, again.
    pub fn refusal(&self) -> Option<Error> {
        self.inner.as_ref()?.refused().map(|(_, error)| self.locate(error.clone()))
    }

    /// The key; empty while not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.inner.as_ref().filter(|inner| inner.valid()).map_or(&[], |inner| inner.key())
    }

    /// The value; empty while not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.inner.as_ref().filter(|inner| inner.valid()).map_or(&[], |inner| inner.value())
    }

    /// Whether the value of the entry is in pieces and was not read.
    pub fn is_in_pieces(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.is_in_pieces())
    }

    /// The entries that the iterator skipped so far.
    pub fn skipped(&self) -> u64 {
        let steps = self.steps + self.inner.as_ref().map_or(0, |inner| inner.steps());
        steps.saturating_sub(self.shown)
    }

    /// Fails if the comparator of the keys has failed.
    #[inline]
    pub fn trust(&self) -> Result<()> {
        if O::BYTEWISE { Ok(()) } else { self.scope.core.trust(&self.order) }
    }

    /// The order of the keys.
    pub fn order(&self) -> &O {
        &self.order
    }

    /// The bounds.
    pub fn bounds(&self) -> &Bounds {
        &self.scope.bounds
    }

    /// Goes to the first entry.
    pub fn seek_to_first(&mut self) -> Result<()> {
        let at = match &self.scope.bounds.low {
            Bound::Included(key) | Bound::Excluded(key) => self.scope.tree.find(&self.order, key),
            Bound::Unbounded => 0,
        };
        self.place(at, Direction::Forward, |inner| inner.seek_to_first())
    }

    /// Goes to the last entry.
    pub fn seek_to_last(&mut self) -> Result<()> {
        let at = match &self.scope.bounds.high {
            Bound::Included(key) | Bound::Excluded(key) => self.scope.tree.find(&self.order, key),
            Bound::Unbounded => self.scope.tree.partitions().len() - 1,
        };
        self.place(at, Direction::Backward, |inner| inner.seek_to_last())
    }

    /// Goes to the first entry at or after `key`, within the bounds.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        if !self.scope.bounds.reach_before(&self.order, Some(key)) {
            return self.seek_to_first();
        }
        let at = self.scope.tree.find(&self.order, key);
        self.place(at, Direction::Forward, |inner| inner.seek(key))
    }

    /// Positions the iterator in a partition, and moves on if it has nothing to show there.
    fn place(
        &mut self,
        partition: usize,
        direction: Direction,
        go: impl FnOnce(&mut PartitionIter<O, W>) -> Result<()>,
    ) -> Result<()> {
        let started = self.scope.core.counters.begin(Counter::Seeks);
        let before = Tally::now();
        self.enter(partition)?;
        self.inner_move(go)?;
        self.skip_empty(direction)?;
        self.looks.begin();
        self.look_at_pins();
        let took = self.scope.core.counters.end(Timed::Scan, started);
        if took.is_some() || Tally::now().bytes != before.bytes {
            self.scope.core.slowest.offer_reads("scan", &self.scope.keyspace.name, took, before);
        }
        Ok(())
    }

    /// Goes to the next entry. The iterator must be valid or stand on a refused entry.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "named like its opposite; yields nothing")]
    pub fn next(&mut self) -> Result<()> {
        self.inner_move(|inner| inner.next())?;
        self.arrive(Direction::Forward)
    }

    /// Goes to the previous entry. The iterator must be valid or stand on a refused entry.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.inner_move(|inner| inner.prev())?;
        self.arrive(Direction::Backward)
    }

    #[inline]
    fn arrive(&mut self, direction: Direction) -> Result<()> {
        if !self.valid() {
            self.skip_empty(direction)?;
        }
        if self.looks.is_due() {
            self.look_at_pins();
        }
        Ok(())
    }

    /// Lets blocks go if iterators hold much.
    #[cold]
    fn look_at_pins(&mut self) {
        let (core, Some(inner)) = (&self.scope.core, &mut self.inner) else { return };
        let pause = || core.gate(Point::IteratorLetsGo);
        inner.look(&mut self.looks, core.cache.pins(), size_of::<Self>(), pause);
    }

    #[inline]
    fn inner_move(
        &mut self,
        go: impl FnOnce(&mut PartitionIter<O, W>) -> Result<()>,
    ) -> Result<()> {
        let Some(inner) = &mut self.inner else { return Ok(()) };
        let moved = go(inner);
        self.shown += u64::from(inner.valid());
        moved.map_err(|error| self.locate(error))
    }

    #[cold]
    fn locate(&self, error: Error) -> Error {
        let partition = &self.scope.tree.partitions()[self.partition];
        let low = partition.lower.as_deref().unwrap_or_default();
        let high = partition.upper.as_deref().unwrap_or_default();
        let error = error.in_keyspace(&self.scope.keyspace.name, Some((low, high)));
        self.scope.core.monitor.damage(&error);
        error
    }

    /// Moves on to neighbouring partitions while the present one has nothing to show.
    fn skip_empty(&mut self, direction: Direction) -> Result<()> {
        while !self.valid() {
            let partition = &self.scope.tree.partitions()[self.partition];
            let next = match direction {
                Direction::Forward
                    if self.scope.bounds.reach_behind(&self.order, partition.upper.as_deref()) =>
                {
                    self.partition + 1
                }
                Direction::Backward
                    if self.scope.bounds.reach_before(&self.order, partition.lower.as_deref()) =>
                {
                    self.partition - 1
                }
                _ => return Ok(()),
            };
            self.enter(next)?;
            match direction {
                Direction::Forward => self.inner_move(|inner| inner.seek_to_first())?,
                Direction::Backward => self.inner_move(|inner| inner.seek_to_last())?,
            }
        }
        Ok(())
    }

    /// Makes `inner` cover partition `index`, not yet positioned.
    fn enter(&mut self, index: usize) -> Result<()> {
        if self.inner.is_some() && self.partition == index {
            return Ok(());
        }
        self.begin_anew();
        self.partition = index;
        let partition = &self.scope.tree.partitions()[index];
        let runs = partition.deltas.len() + 1 + self.scope.tree.rows().len();
        let mut sources = Sources::with_room(self.scope.state.memtable_sets.len() + runs);
        for (n, set) in self.scope.state.memtable_sets.iter().enumerate() {
            let id = self.scope.keyspace.id_in(set.start);
            O::cursors(set, id, |newer, cursor, seq_bound| {
                let named = || self.scope.state.memtable::<O>(n, newer);
                let cursor = self.watcher.watch(named, cursor.into());
                sources.push(cursor, seq_bound);
            });
        }
        let mut tombstones = self.memory_tombstones.clone();
        let bounds = self.bounds_within(partition);
        for (tier, row) in self.scope.tree.rows().iter().enumerate().rev() {
            // Seeded: a scan does not see what the tiers hold.
            if tier > 0 && bug!("db_tiers_not_scanned") {
                continue;
            }
            let number = match &partition.lower {
                _ if tier == 0 => index,
                Some(lower) => row.find(&self.order, lower),
                None => 0,
            };
            let holder = &row.partitions()[number];
            self.add_runs((tier, number, holder), &bounds, &mut sources, &mut tombstones)?;
        }
        let (order, reading) = (self.order.clone(), self.reading.clone());
        self.inner = Some(VisibleIter::new(order, sources, tombstones, reading, bounds));
        Ok(())
    }

    /// Adds the runs of a partition, or of the span of a tier that holds it; of deltas without
    /// entries within the bounds only the range tombstones.
    fn add_runs(
        &self,
        (tier, number, holder): (usize, usize, &Partition),
        bounds: &Bounds,
        sources: &mut Sources<W::Watched<AnyCursor<O>>>,
        tombstones: &mut Vec<AnyTombstones>,
    ) -> Result<()> {
        for (n, run) in holder.runs_in(tier).enumerate().filter(|(_, run)| !run.is_empty()) {
            let fragments = run.fragments(&self.order);
            let fragments = fragments.map_err(|error| self.locate(error))?;
            tombstones.extend(fragments.into_iter().map(AnyTombstones::Run));
            let inside = || run.ends().is_some_and(|ends| bounds.touch(&self.order, ends));
            if run.role() == Role::Delta && !inside() {
                continue;
            }
            let seq_bound = run.max_seq() + 1;
            let order = self.order.clone();
            let cursor = RunCursor::new(run.clone(), order, self.scope.core.cache.clone(), true);
            let cursor = cursor.with_buffer(sources.buffer());
            let cursor = AnyCursor::Run(cursor);
            let cursor = self.watcher.watch(|| holder.source(tier, number, n), cursor);
            sources.push(cursor, seq_bound);
        }
        Ok(())
    }

    /// Stands nowhere, as before the first seek. What the present partition's iterator skipped is added up.
    pub fn begin_anew(&mut self) {
        self.steps += self.inner.take().map_or(0, |inner| inner.steps());
    }

    /// The bounds, cut to the partition: its segments, and the runs of the spans above it, may
    /// extend beyond it.
    fn bounds_within(&self, partition: &Partition) -> Bounds {
        // Seeded: a scan shows what spans hold beside a partition once for each partition.
        if !self.scope.tree.tiers().is_empty() {
            bug!("db_tiers_scanned_unclipped", return self.scope.bounds.clone());
        }
        let (lower, upper) = (partition.lower.as_deref(), partition.upper.as_deref());
        self.scope.bounds.within(&self.order, lower, upper)
    }
}

/// The parameters of a scan, except the order, which is a type. It stands in the scan: memory of its own would be an
/// allocation for each new iterator.
#[derive(Debug, Clone)]
pub struct Scope {
    core: Arc<Core>,
    keyspace: Arc<KeyspaceState>,
    state: Arc<State>,
    tree: Arc<Tree>,
    at: Moment,
    bounds: Bounds,
    /// Whether it counts as an iterator over its state, or belongs to one that does; `None`: neither.
    counts: Counts,
}

/// See [`Scope::counts`]. An iterator counts once, however many scans it has.
#[derive(Debug)]
struct Counts(Option<bool>);

impl Clone for Counts {
    fn clone(&self) -> Self {
        Self(self.0.map(|_| false))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let Some(counts) = self.counts.0 else { return };
        if counts {
            self.state.count_iterator(false);
        }
        if !std::ptr::eq(self.core.state.load(&pin()), &*self.state) {
            // The last iterator over an old state wakes the workers, who look whether anybody refers to it.
            (self.state, self.tree) = (self.core.state.load_arc(), Tree::none());
            self.core.work.notify();
        }
    }
}

impl Scope {
    /// The keys within `bounds` as of `at`, or of now. A point read that meets operands is not `counted`.
    #[inline(always)]
    pub fn new(
        core: &Arc<Core>,
        keyspace: &Arc<KeyspaceState>,
        (bounds, at): (Bounds, Option<Moment>),
        counted: bool,
    ) -> Self {
        let (state, at) = core.view(at);
        let tree = state.version.tree(keyspace.id).cloned().unwrap_or_else(Tree::none);
        if counted {
            state.count_iterator(true);
        }
        let (core, keyspace) = (core.clone(), keyspace.clone());
        Self { core, keyspace, state, tree, at, bounds, counts: Counts(counted.then_some(true)) }
    }
}

impl Core {
    /// The scope of a new iterator over `bounds`, as of `at` or of now.
    #[inline(always)]
    pub fn scan_scope(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        bounds: Bounds,
        at: Option<Moment>,
    ) -> Result<Scope> {
        keyspace.check_there()?;
        self.counters.add(Counter::Scans, 1);
        Ok(Scope::new(self, keyspace, (bounds, keyspace.moment(at)), true))
    }
}
