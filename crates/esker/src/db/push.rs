//! Push: the pending runs of a span become runs of the row below.
//!
//! 1. A push takes all runs that its span has when it begins, and merges them once. Runs that
//!    arrive meanwhile stay in front of them.
//! 2. It is a flush with another source: its output is cut at the bounds of the row below, and each
//!    piece is the newest run there (`compaction::slicing`, `compaction::flush_slices`).
//! 3. One edit takes the runs from the span and adds the pieces below it, after the output is synced
//!    (S4).
//! 4. The result is installed in every tree that has the same span over the same children, in the same
//!    edit (S12, `compaction::tiers::twins`).
//! 5. Nothing waits for a push, and a push waits for nothing: the row below may be compacted or
//!    pushed meanwhile, and its bounds may move.

use crate::base::{Bytewise, KeyOrder, KeyspaceId};
use crate::catalog::{KeyspaceState, LiveTraits, Order, missing_order};
use crate::compaction::flush_slices::Slice;
use crate::compaction::inputs::all_within;
use crate::compaction::queue::PartitionKey;
use crate::compaction::slicing::{Goal, Material, Targets, segments_of, write_slices};
use crate::compaction::tiers::{self, Rows, Rules};
use crate::db::change::Change;
use crate::db::core::Core;
use crate::db::output::SlicesFile;
use crate::error::{Error, Result};
use crate::manifest::{Partition, Store, Traits, Tree, Version};
use crate::monitor::Compacting;
use crate::run::{RunCursor, RunWriter};
use crate::sync::Point;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What a push made of the runs of a span.
struct Pushed {
    keyspace: Arc<KeyspaceState>,
    tier: usize,
    old: Arc<Partition>,
    slices: Vec<Slice>,
    /// The names of the code that took part.
    traits: Traits,
}

/// The trees that pushes change, with their keyspaces.
type Touched = BTreeMap<KeyspaceId, (Arc<KeyspaceState>, Rows)>;

impl Core {
    /// Pushes these spans, into one file.
    pub(super) fn push_spans(&self, keys: &[PartitionKey]) -> Result<()> {
        self.tell_work(keys, |told| self.push_into_file(keys, told))
    }

    fn push_into_file(&self, keys: &[PartitionKey], told: &Compacting<'_>) -> Result<()> {
        let started = Instant::now();
        let mut writer = None;
        let mut pushed: Vec<Pushed> = Vec::new();
        for key in keys {
            let found = self
                .push_span(key, &mut writer)
                .inspect_err(|_| self.give_up_file(writer.take()))?;
            pushed.extend(found);
        }
        let bytes = writer.as_ref().map_or(0, RunWriter::bytes_written);
        let input = pushed.iter().map(|pushed| pushed.old.delta_bytes()).sum();
        let made = segments_of(pushed.iter().flat_map(|pushed| &pushed.slices));
        told.bytes.set(bytes);
        told.segments.set(made.len() as u64);
        self.conclude(writer, made, || self.install_pushes(pushed))?;
        let background = &self.counters.background;
        background.compaction_bytes.fetch_add(bytes, Ordering::Relaxed);
        background.bytes_pushed.fetch_add(bytes, Ordering::Relaxed);
        background.pushes.fetch_add(keys.len() as u64, Ordering::Relaxed);
        // Spans of several tiers are seldom pushed together, and then the highest comes first.
        let tier = keys.first().map_or(1, |key| key.tier);
        self.pacer.compacted(tier, input, started.elapsed());
        self.update_pressure();
        Ok(())
    }

    /// Writes what the runs of a span hold; `None`: the span is gone, or has no runs.
    fn push_span(
        &self,
        key: &PartitionKey,
        writer: &mut Option<RunWriter>,
    ) -> Result<Option<Pushed>> {
        let keyspace = self.catalog.lock().by_id(key.keyspace).cloned();
        let version = self.state_now().version.clone();
        let (Some(keyspace), Some(tree)) = (keyspace, version.tree(key.keyspace)) else {
            return Ok(None);
        };
        let traits = &*keyspace.traits();
        self.gate(Point::PushReads);
        let written = match &keyspace.order {
            Order::Bytewise => self.write_push(&Bytewise, traits, tree, key, writer),
            Order::Custom(order) => {
                let written = self.write_push(order, traits, tree, key, writer);
                self.trust(order).and(written)
            }
            Order::Missing(name) => Err(missing_order(&keyspace.name, name)),
        };
        let lower = key.lower.as_deref().unwrap_or_default();
        let written =
            written.map_err(|error| error.in_keyspace(&keyspace.name, Some((lower, &[]))))?;
        let (tier, traits) = (key.tier, traits.names.clone());
        Ok(written.map(|(old, slices)| Pushed { keyspace, tier, old, slices, traits }))
    }

    fn write_push<O: KeyOrder>(
        &self,
        order: &O,
        traits: &LiveTraits,
        tree: &Tree,
        key: &PartitionKey,
        writer: &mut Option<RunWriter>,
    ) -> Result<Option<(Arc<Partition>, Vec<Slice>)>> {
        let Some(row) = tree.row(key.tier) else { return Ok(None) };
        let Some(below) = key.tier.checked_sub(1).and_then(|tier| tree.row(tier)) else {
            return Ok(None);
        };
        let Some(at) = row.position(order, key.lower.as_deref()) else { return Ok(None) };
        let old = row.partitions()[at].clone();
        if old.deltas.is_empty() {
            return Ok(None);
        }
        self.check_fits(old.delta_bytes() as f64)?;
        // The rule is read after the runs: a snapshot that is taken from here on sees all of them.
        let rule = self.compaction_rule();
        let mut lists = Vec::new();
        for run in &old.deltas {
            lists.extend(run.fragments(order)?);
        }
        // Seeded: a push leaves the range tombstones of its runs behind.
        bug!("db_push_forgets_tombstones", lists.clear());
        let tombstones = all_within(order, &old, &lists);
        let open = || {
            let cursor = |run: &Arc<_>| {
                RunCursor::new(Arc::clone(run), order.clone(), self.cache.clone(), false, true)
            };
            old.deltas.iter().map(cursor).collect()
        };
        let operator = traits.operator.clone();
        let material = Material { open: &open, tombstones, operator, rule: &rule };
        let within = tiers::children(order, below, &old);
        let targets = Targets { row: below, tier: key.tier - 1, within };
        let mut output = SlicesFile { core: self, writer, yields: true };
        // The output lies where it is until the row below is pushed or compacted.
        let goal = |_: &[_], _: Option<&mut _>| Ok(Goal { bottom: false, settled: true });
        let slices = write_slices(order, &material, targets, goal, &mut output)?;
        self.trust(order)?;
        Ok(Some((old, slices)))
    }

    /// Installs the results of pushes, each in every tree that has not diverged there (S12).
    fn install_pushes(&self, pushed: Vec<Pushed>) -> Result<()> {
        if pushed.is_empty() {
            return Ok(());
        }
        self.gate(Point::PushInstalls);
        let mut surplus = Vec::new();
        self.change(|state, store| {
            let mut trees = Touched::new();
            for one in &pushed {
                self.install_push(&state.version, store, (one, &pushed), &mut trees)?;
            }
            let mut change = Change::default();
            for (id, (keyspace, mut rows)) in trees {
                let busy = self.busy_besides(id, &pushed);
                let rules = Rules { busy: &busy, grows: true, settings: &self.settings };
                tiers::reshape(&keyspace.order, &mut rows, rules);
                if let Order::Custom(order) = &keyspace.order {
                    self.trust(order)?;
                }
                surplus.extend(rows.surplus(id));
                change.put_rows(id, rows);
            }
            Ok((!change.trees.is_empty()).then_some(change))
        })?;
        self.work.force(surplus);
        self.gate(Point::PushInstalled);
        Ok(())
    }

    /// What is being pushed or compacted in a tree, without these pushes: they end with the change.
    fn busy_besides(
        &self,
        id: KeyspaceId,
        pushed: &[Pushed],
    ) -> impl Fn(usize, &Partition) -> bool {
        move |tier: usize, p: &Partition| {
            let ends = |one: &Pushed| {
                one.keyspace.id == id && one.tier == tier && one.old.lower == p.lower
            };
            self.work.is_busy(id, tier, p.lower.as_deref()) && !pushed.iter().any(ends)
        }
    }

    fn install_push(
        &self,
        version: &Version,
        store: &Store,
        (one, all): (&Pushed, &[Pushed]),
        trees: &mut Touched,
    ) -> Result<()> {
        match &one.keyspace.order {
            Order::Bytewise => self.install_push_in(&Bytewise, version, store, (one, all), trees),
            Order::Custom(order) => {
                let installed = self.install_push_in(order, version, store, (one, all), trees);
                self.trust(order).and(installed)
            }
            Order::Missing(name) => Err(missing_order(&one.keyspace.name, name)),
        }
    }

    fn install_push_in<O: KeyOrder>(
        &self,
        order: &O,
        version: &Version,
        store: &Store,
        (one, all): (&Pushed, &[Pushed]),
        trees: &mut Touched,
    ) -> Result<()> {
        let keyspace = &one.keyspace;
        // The keyspace may have been dropped meanwhile.
        let Some(tree) = version.tree(keyspace.id) else { return Ok(()) };
        let shared = tree.row(one.tier).is_some_and(|row| {
            let at = row.position(order, one.old.lower.as_deref());
            at.is_some_and(|at| store.may_be_elsewhere(&row.partitions()[at]))
        });
        let busy = self.busy_besides(keyspace.id, all);
        let rules = Rules { busy: &busy, grows: true, settings: &self.settings };
        let rows = |tree| (keyspace.clone(), Rows::of(tree));
        let (_, rows) = trees.entry(keyspace.id).or_insert_with(|| rows(tree));
        let what = "a span changed while being pushed: a defect of the engine";
        let push = rows.push(order, (one.tier, &one.old, &one.slices), rules);
        let push = push.ok_or_else(|| Error::invalid(what))?;
        if !shared {
            return Ok(());
        }
        let twins = self.catalog.lock().twins_of(keyspace, &one.traits);
        for twin in twins {
            let Some(tree) = version.tree(twin.id) else { continue };
            let busy =
                |tier: usize, p: &Partition| self.work.is_busy(twin.id, tier, p.lower.as_deref());
            // A tree is copied only if it takes something over.
            if !trees.contains_key(&twin.id) && push.place_in(order, tree.rows(), &busy).is_none() {
                continue;
            }
            let rows = || (twin.clone(), Rows::of(tree));
            trees.entry(twin.id).or_insert_with(rows).1.take_over(order, &push, &busy);
        }
        Ok(())
    }
}
