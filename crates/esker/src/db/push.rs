//! Push: the pending runs of a span become runs of the row below.
//!
//! 1. A push takes all runs that its span has when it begins, and merges them once. Runs that
//!    arrive meanwhile stay in front of them.
//! 2. It is a flush with another source: its output is cut at the bounds of the row below, and each
//!    piece is the newest run there (`compaction::slicing`, `compaction::flush_slices`).
//! 3. One edit takes the runs from the span and adds the pieces below it, after the output is synced
//!    (S4).
//! 4. Nothing waits for a push, and a push waits for nothing: the row below may be compacted or
//!    pushed meanwhile, and its bounds may move.

use crate::base::{Bytewise, KeyOrder};
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::compaction::flush_slices::Slice;
use crate::compaction::inputs::all_within;
use crate::compaction::queue::PartitionKey;
use crate::compaction::slicing::{Goal, Material, Targets, segments_of, write_slices};
use crate::compaction::tiers::{self, Rules, with_pushes};
use crate::db::change::Change;
use crate::db::core::Core;
use crate::db::output::SlicesFile;
use crate::error::{Error, Result};
use crate::manifest::{Partition, Tree};
use crate::monitor::Compacting;
use crate::run::{RunCursor, RunWriter};
use crate::sync::Point;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What a push made of the runs of a span.
struct Pushed {
    keyspace: Arc<KeyspaceState>,
    tier: usize,
    old: Arc<Partition>,
    slices: Vec<Slice>,
}

impl Core {
    /// Pushes these spans, into one file.
    pub(super) fn push_spans(&self, keys: &[PartitionKey]) -> Result<()> {
        self.tell_work(keys, |told| self.push_into_file(keys, told))
    }

    fn push_into_file(&self, keys: &[PartitionKey], told: &Compacting<'_>) -> Result<()> {
        let started = Instant::now();
        let mut writer = None;
        let mut pushed = Vec::new();
        for key in keys {
            let found = self
                .push_span(key, &mut writer)
                .inspect_err(|_| self.give_up_files(writer.take()))?;
            pushed.extend(found);
        }
        pushed.sort_by_key(|pushed: &Pushed| pushed.keyspace.id);
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
        self.gate(Point::PushReads);
        let written = match &keyspace.order {
            Order::Bytewise => self.write_push(&Bytewise, &keyspace, tree, key, writer),
            Order::Custom(order) => {
                let written = self.write_push(order, &keyspace, tree, key, writer);
                self.trust(order).and(written)
            }
            Order::Missing(name) => Err(missing_order(&keyspace.name, name)),
        };
        let lower = key.lower.as_deref().unwrap_or_default();
        let written =
            written.map_err(|error| error.in_keyspace(&keyspace.name, Some((lower, &[]))))?;
        let tier = key.tier;
        Ok(written.map(|(old, slices)| Pushed { keyspace, tier, old, slices }))
    }

    fn write_push<O: KeyOrder>(
        &self,
        order: &O,
        keyspace: &KeyspaceState,
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
        let operator = keyspace.traits().operator.clone();
        let material = Material { open: &open, tombstones, operator, rule: &rule };
        let within = tiers::children(order, below, &old);
        let targets = Targets { row: below, tier: key.tier - 1, within };
        let mut output = SlicesFile { core: self, writer, yields: true, warms: true };
        // The output lies where it is until the row below is pushed or compacted.
        let goal = |_: &[_], _: Option<&mut _>| Ok(Goal { bottom: false, settled: true });
        let slices = write_slices(order, &material, targets, goal, &mut output)?;
        self.trust(order)?;
        Ok(Some((old, slices)))
    }

    /// Installs the results of pushes.
    fn install_pushes(&self, pushed: Vec<Pushed>) -> Result<()> {
        if pushed.is_empty() {
            return Ok(());
        }
        self.gate(Point::PushInstalls);
        let mut surplus = Vec::new();
        self.change(|state, _| {
            let mut change = Change::default();
            for of_tree in pushed.chunk_by(|a, b| a.keyspace.id == b.keyspace.id) {
                let keyspace = &of_tree[0].keyspace;
                // The keyspace may have been dropped meanwhile.
                let Some(tree) = state.version.tree(keyspace.id) else { continue };
                let busy = |tier: usize, p: &Partition| {
                    // These pushes end with this change.
                    let ends = |pushed: &Pushed| pushed.tier == tier && pushed.old.lower == p.lower;
                    self.work.is_busy(keyspace.id, tier, p.lower.as_deref())
                        && !of_tree.iter().any(ends)
                };
                let rules = Rules { busy: &busy, grows: true, settings: &self.settings };
                let runs = of_tree.iter().map(|one| (one.tier, &*one.old, &one.slices[..]));
                let rows = match &keyspace.order {
                    Order::Bytewise => with_pushes(&Bytewise, tree, runs, rules),
                    Order::Custom(order) => {
                        let rows = with_pushes(order, tree, runs, rules);
                        self.trust(order)?;
                        rows
                    }
                    Order::Missing(name) => return Err(missing_order(&keyspace.name, name)),
                };
                let what = "a span changed while being pushed: a defect of the engine";
                let rows = rows.ok_or_else(|| Error::invalid(what))?;
                surplus.extend(rows.surplus(keyspace.id));
                change.put_rows(keyspace.id, rows);
            }
            Ok((!change.trees.is_empty()).then_some(change))
        })?;
        self.work.force(surplus);
        self.gate(Point::PushInstalled);
        Ok(())
    }
}
