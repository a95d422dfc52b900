//! Push: the pending runs of a span become runs of the row below.
//!
//! 1. A push takes all runs that its span has when it begins, and merges them once. Runs that
//!    arrive meanwhile stay in front of them.
//! 2. It is a flush with another source: its output is cut at the bounds of the row below, and each
//!    piece is the newest run there (`compaction::slicing`, `compaction::flush_slices`).
//! 3. One edit takes the runs from the span and adds the pieces below it, after the output is synced
//!    (S4).
//! 4. The result is installed in every tree that has the same span over the same children, in the same
//!    edit (S12, `compaction::install`).
//! 5. Nothing waits for a push, and a push waits for nothing: the row below may be compacted or
//!    pushed meanwhile, and its bounds may move.

use crate::base::{Bytewise, KeyOrder};
use crate::catalog::{KeyspaceState, LiveTraits, Order, missing_order};
use crate::compaction::flush_slices::Slice;
use crate::compaction::inputs::all_within;
use crate::compaction::install::{self, Around, Installed, Pushed};
use crate::compaction::queue::PartitionKey;
use crate::compaction::slicing::{Goal, Material, Targets, write_slices};
use crate::compaction::tiers;
use crate::db::change::Change;
use crate::db::core::Core;
use crate::db::output::{Merger, SlicesFile};
use crate::error::Result;
use crate::manifest::{Partition, Store, Traits, Tree, Version};
use crate::monitor::Compacting;
use crate::run::{KnownValues, RunCursor, RunWriter};
use crate::sync::Point;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Core {
    /// Pushes these spans, into one file.
    pub(super) fn push_spans(&self, keys: &[PartitionKey], merger: &Merger) -> Result<()> {
        self.tell_work(keys, |told| self.push_into_file(keys, told, merger))
    }

    fn push_into_file(
        &self,
        keys: &[PartitionKey],
        told: &Compacting<'_>,
        merger: &Merger,
    ) -> Result<()> {
        let spans = keys.to_vec();
        let merge = move |core: &Self| core.merge_spans(&spans);
        // Seeded: spans are merged with the priority of callers.
        let merger = if bug!("db_spans_merge_on_the_worker") { &Merger::none() } else { merger };
        let (writer, pushed) = told.merge(merger, self, merge)?;
        let bytes = writer.as_ref().map_or(0, RunWriter::bytes_written);
        let input = pushed.iter().map(|pushed| pushed.old.delta_bytes()).sum();
        let made = install::segments_pushed(&pushed);
        told.bytes.set(bytes);
        told.segments.set(made.len() as u64);
        self.conclude(writer, made, || self.install_pushes(&pushed))?;
        let background = &self.counters.background;
        background.compaction_bytes.fetch_add(bytes, Ordering::Relaxed);
        background.bytes_pushed.fetch_add(bytes, Ordering::Relaxed);
        background.pushes.fetch_add(keys.len() as u64, Ordering::Relaxed);
        // Spans of several tiers are seldom pushed together, and then the highest comes first.
        let tier = keys.first().map_or(1, |key| key.tier);
        self.pacer.compacted(tier, input, told.took());
        self.update_pressure();
        Ok(())
    }

    /// Writes what the runs of these spans hold, into one file.
    fn merge_spans(&self, keys: &[PartitionKey]) -> Result<(Option<RunWriter>, Vec<Pushed>)> {
        let mut writer = None;
        let mut pushed: Vec<Pushed> = Vec::new();
        for key in keys {
            let found = self
                .push_span(key, &mut writer)
                .inspect_err(|_| self.give_up_files(writer.take()))?;
            pushed.extend(found);
        }
        Ok((writer, pushed))
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
        // Separated values stay where they are.
        self.check_fits(old.run_segments().map(|segment| segment.meta().len as f64).sum())?;
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
            let piece = self.settings.piece_bytes(old.deltas.len());
            let cursor = |run: &Arc<_>| {
                RunCursor::past_cache(Arc::clone(run), order.clone(), self.cache.clone(), piece)
            };
            old.deltas.iter().map(cursor).collect()
        };
        let operator = traits.operator.clone();
        let material = Material { open: &open, tombstones, operator, rule: &rule };
        let within = tiers::children(order, below, &old);
        let targets = Targets { row: below, tier: key.tier - 1, within };
        let inputs = old.deltas.iter().flat_map(|run| run.segments());
        let values = Some(KnownValues::of(&self.cache, inputs, |_| None));
        let mut output = SlicesFile { core: self, writer, yields: true, warms: true, values };
        // The output lies where it is until the row below is pushed or compacted.
        let goal = |_: &[_], _: Option<&mut _>| Ok(Goal { bottom: false, settled: true });
        let slices = write_slices(order, &material, targets, goal, &mut output)?;
        self.trust(order)?;
        Ok(Some((old, slices)))
    }

    /// Installs the results of pushes.
    fn install_pushes(&self, pushed: &[Pushed]) -> Result<()> {
        if pushed.is_empty() {
            return Ok(());
        }
        self.gate(Point::PushInstalls);
        let mut surplus = Vec::new();
        self.change(|state, store| {
            let owners = pushed.iter().map(|one| &one.keyspace);
            let installed = self.install(&state.version, store, |around| {
                (install::pushes(pushed, around), owners.cloned().collect())
            })?;
            Ok(Change::of_rows(installed, &mut surplus))
        })?;
        self.work.force(surplus);
        self.gate(Point::PushInstalled);
        Ok(())
    }

    /// Installs results with what is known of the trees and of the work under way. `put` also returns
    /// the keyspaces whose orders took part.
    pub(super) fn install(
        &self,
        version: &Version,
        store: &Store,
        put: impl FnOnce(&Around<'_>) -> (Result<Installed>, Vec<Arc<KeyspaceState>>),
    ) -> Result<Installed> {
        let settings = &self.settings;
        let busy = |id, tier, lower: Option<&[u8]>| self.work.is_busy(id, tier, lower);
        let twins = |of: &KeyspaceState, traits: &Traits| self.catalog.lock().twins_of(of, traits);
        let elsewhere = |part: &_| store.may_be_elsewhere(part);
        let around =
            Around { version, settings, elsewhere: &elsewhere, busy: &busy, twins: &twins };
        let (installed, owners) = put(&around);
        owners.iter().try_for_each(|owner| match &owner.order {
            Order::Custom(order) => self.trust(order),
            _ => Ok(()),
        })?;
        installed
    }
}
