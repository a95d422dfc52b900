//! Flush: a sealed set of memtables becomes one run file, cut at partition bounds. Each piece
//! becomes a delta of its partition.
//!
//! 1. The oldest sealed set goes first, once everything below its end is published (R3).
//! 2. The log before its end is released only after the edit is synced (R3).
//! 3. A piece that overlaps nothing in its partition becomes part of the base by reference, so a
//!    sequential load is written once. The flush foresees that and compresses such a piece at once;
//!    other pieces are raw, because they are compacted soon.
//! 4. Bounds may move while a flush is written. Then a piece is added to every partition that it
//!    overlaps, and each sees its own part (`slices`).
//! 5. A failed flush leaves nothing behind; the next attempt takes a new file. The file stays only
//!    if it is unknown whether the manifest refers to it; the next open then decides.

use crate::base::rangedel::{Cutter, Fragments};
use crate::base::{Bytewise, Cursor, KeyOrder, KeyspaceId, Moment, SEQ_MAX};
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::compaction::flush_slices::{Slice, with_slices};
use crate::compaction::flush_targets::{FlushTarget, flush_targets};
use crate::compaction::{CompactionRule, CompactionStream, Depth, partitioning};
use crate::db::change::Change;
use crate::db::core::Core;
use crate::db::output::give_up;
use crate::directory::reserve::Use;
use crate::error::Result;
use crate::events::EventKind;
use crate::manifest::{Edit, Partition, Tree, TreeEdit, Version};
use crate::memtable::MemCursor;
use crate::monitor::Watched;
use crate::run::{Role, Run, RunWriter, Segment};
use crate::state::memtables::{DbOrder, MemtableSet};
use crate::sync::Point;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Entries in one step of a flush's stream.
const STEP_ENTRIES: usize = 4096;

/// The output of a flush: slices by keyspace, in key order.
#[derive(Default)]
struct Slices {
    by_keyspace: BTreeMap<KeyspaceId, Vec<Slice>>,
}

impl Slices {
    /// Every segment that was written.
    fn segments(&self) -> Vec<Arc<Segment>> {
        let runs = self.by_keyspace.values().flatten().map(|slice| &slice.run);
        runs.flat_map(|run| run.segments().iter().chain(run.tombstones())).cloned().collect()
    }
}

impl Core {
    /// Flushes the oldest sealed set, if there is one. Only one flush runs at a time.
    pub(super) fn flush_oldest(&self) -> Result<bool> {
        self.with_space(Use::Unit, || self.flush_oldest_once())
    }

    fn flush_oldest_once(&self) -> Result<bool> {
        let wait = |end| self.pipeline.as_ref().map_or(Ok(()), |log| log.wait_visible(end));
        let Some(set) = self.state.flushable(wait)? else { return Ok(false) };
        let watched = Watched::begin();
        let mut writer = None;
        let slices =
            self.write_slices(&set, &mut writer).inspect_err(|_| give_up(writer.take()))?;
        let bytes = writer.as_ref().map_or(0, |writer: &RunWriter| writer.bytes_written());
        let made = slices.segments();
        let (keyspaces, segments) = (slices.by_keyspace.len() as u64, made.len() as u64);
        self.conclude(writer, made, || self.install_flush(&set, slices))?;
        self.monitor.emit(EventKind::Flush {
            keyspaces,
            memtable_bytes: set.bytes(),
            bytes,
            segments,
            duration: watched.took(),
            processor: watched.processor(),
        });
        self.counters.background.flushes.fetch_add(1, Ordering::Relaxed);
        self.counters.background.flush_bytes.fetch_add(bytes, Ordering::Relaxed);
        // A flush of almost nothing takes as long as its syncs, so it says nothing about a full
        // one.
        if let Some(since) = set.sealed_since()
            && set.bytes() >= self.settings.memtable_bytes / 8
        {
            self.pacer.flushed(set.bytes(), since);
        }
        Ok(true)
    }

    /// Writes everything in `set` to one file, which is created for the first entry.
    fn write_slices(&self, set: &MemtableSet, writer: &mut Option<RunWriter>) -> Result<Slices> {
        let mut slices = Slices::default();
        let end = set.sealed_at().unwrap_or(set.start);
        let (_, dropped) = self.catalog.lock().pending_before(end);
        for id in set.keyspaces() {
            // Entries of a dropped keyspace are discarded if this flush also records the drop. A
            // later drop is only in the log and may still be lost.
            // The time is read before the readers: a named snapshot that is not among them was made
            // later.
            let mut rule = self.compaction_rule();
            let mut readers = self.catalog.lock().readers_of(id, set.start);
            readers.retain(|reader| !dropped.contains(&reader.id));
            // The tree of the first reader says where to cut; the others may have other bounds.
            let Some(keyspace) = readers.first() else { continue };
            self.gate(Point::FlushKnowsReaders);
            // A named snapshot reads at its position and its time as long as it exists.
            let named =
                readers.iter().filter_map(|reader| reader.frozen_at.zip(Some(&reader.home)));
            let named = named.map(|(time, home)| Moment { seq: home.born, time });
            rule.snapshots.extend(named);
            // Seeded: a flush drops entries that have expired only after a named snapshot was made.
            bug!("db_flush_ignores_named_snapshots", rule = self.compaction_rule());
            // The tree is read after the reader was found: a branch that was made a moment ago has
            // its tree by then. Otherwise a tree with entries would be taken for an empty one.
            let tree = self.state_now().version.tree(keyspace.id).cloned().unwrap_or_default();
            let written = match &keyspace.order {
                Order::Bytewise => {
                    self.write_keyspace(&Bytewise, &readers, id, set, (&tree, &rule), writer)?
                }
                Order::Custom(order) => {
                    let written =
                        self.write_keyspace(order, &readers, id, set, (&tree, &rule), writer);
                    // Entries that the writer refused as out of order may result from a panic
                    // (R15).
                    self.trust(order).and(written)?
                }
                Order::Missing(name) => return Err(missing_order(&keyspace.name, name)),
            };
            slices.by_keyspace.insert(id, written);
        }
        Ok(slices)
    }

    fn write_keyspace<O: DbOrder>(
        &self,
        order: &O,
        readers: &[Arc<KeyspaceState>],
        id: KeyspaceId,
        set: &MemtableSet,
        (tree, rule): (&Tree, &CompactionRule),
        writer: &mut Option<RunWriter>,
    ) -> Result<Vec<Slice>> {
        let Some(table) = O::table(set, id) else { return Ok(Vec::new()) };
        let operator = readers.first().map(|reader| reader.traits().operator.clone());
        let Some(operator) = operator else { return Ok(Vec::new()) };
        let upper = rule.clone().at(Depth::Upper);
        let tombstones = Arc::new(upper.surviving(order, &table.fragments(id)));
        let found = flush_targets(order, tree, &mut table.cursor(id), Cutter::new(&tombstones))?;
        let mut cutter = Cutter::new(&tombstones);
        let mut slices = Vec::new();
        for FlushTarget { partitions, has_entries } in found {
            let partitions = &tree.partitions()[partitions];
            let [first, ..] = partitions else { continue };
            let last = partitions.last().unwrap_or(first);
            let (lower, upper) = (first.lower.clone(), last.upper.clone());
            // Sets are flushed from oldest to newest, so nothing lies below an empty partition. If
            // several readers share the slice, other trees may hold hidden entries that are not
            // compacted away yet.
            let empty = readers.len() == 1
                && partitions.iter().all(|partition| partition.runs().all(|run| run.is_empty()));
            // Seeded: a flush drops deletes although older entries lie below.
            let empty = empty || bug!("db_flush_is_always_at_the_bottom");
            let depth = if empty { Depth::Bottom } else { Depth::Upper };
            let gc = rule.clone().at(depth);
            let removed = cutter.cut(order, lower.as_deref(), upper.as_deref());
            let hides_below = if gc.is_seen_by_all(removed.max_seq()) {
                removed.covers_all(order, lower.as_deref(), upper.as_deref(), SEQ_MAX)
            } else {
                0
            };
            let survivors = if empty { gc.surviving(order, &removed) } else { removed };
            let writer = self.writer(writer, false)?;
            let mut segments = Vec::new();
            if has_entries {
                let settled = hides_below > 0 || lies_clear(order, first, &mut table.cursor(id))?;
                writer.set_options(self.writer_options(settled))?;
                let cursors = vec![table.cursor(id)];
                let stream =
                    CompactionStream::new(order.clone(), cursors, vec![tombstones.clone()], gc)
                        .with_operator(operator.clone())
                        .within(lower.clone(), upper.clone());
                segments = self.write_entries(order, writer, stream)?;
            }
            // Seeded: a flush loses range deletes.
            let survivors =
                if bug!("db_flush_loses_range_deletes") { Fragments::default() } else { survivors };
            writer.add_tombstones::<O>(&survivors)?;
            let run = Run::new(Role::Delta, segments, self.take_segments(writer));
            if !run.is_empty() {
                slices.push(Slice { lower, upper, run: Arc::new(run), hides_below });
            }
        }
        self.trust(order)?;
        Ok(slices)
    }

    fn write_entries<O: KeyOrder>(
        &self,
        order: &O,
        writer: &mut RunWriter,
        mut stream: CompactionStream<MemCursor<O>, O, Arc<Fragments>>,
    ) -> Result<Vec<Arc<Segment>>> {
        let mut out =
            |key: &[u8], seq, kind, value: &[u8]| writer.add(order, key, seq, kind, value);
        while stream.step(&mut out, STEP_ENTRIES)? {}
        self.note_compaction(&stream.counts());
        writer.cut()?;
        Ok(self.take_segments(writer))
    }

    /// Installs the flushed data in the tree and releases the log before it.
    fn install_flush(&self, set: &Arc<MemtableSet>, slices: Slices) -> Result<()> {
        let end = set.sealed_at().unwrap_or(set.start);
        self.gate(Point::FlushInstalls);
        // Seeded: the log is released before the manifest refers to the run that replaces it.
        bug!(
            "db_log_released_before_the_edit",
            drop(self.pipeline.as_ref().map(|pipeline| pipeline.release_before(end)))
        );
        self.change(|state, _| {
            let (created, dropped) = self.catalog.lock().pending_before(end);
            let mut change = Change { flushed: Some(set.clone()), ..Change::default() };
            for (id, slices) in &slices.by_keyspace {
                // Branches that were made while the slices were written share this set too (R24).
                let readers = self.catalog.lock().readers_of(*id, set.start);
                for reader in readers {
                    if dropped.contains(&reader.id) || slices.is_empty() {
                        continue;
                    }
                    self.add_to_tree(&reader, &state.version, slices, &mut change)?;
                }
            }
            change.trees.extend(dropped.iter().map(|id| (*id, None)));
            let traits = self.catalog.lock().pending_traits_before(end);
            let homes = self.catalog.lock().homes_of(&created, end);
            // Seeded: the manifest says that the log begins after writes that are not flushed.
            let end = if bug!("db_log_start_too_late") { self.visible() } else { end };
            let edit = change.edit;
            change.edit = Edit { log_start: Some(end), created, homes, traits, dropped, ..edit };
            change.edit.next_keyspace = Some(self.catalog.lock().next_id());
            Ok(Some(change))
        })?;
        self.gate(Point::FlushInstalled);
        self.catalog.lock().forget_before(end);
        if let Some(pipeline) = &self.pipeline
            && let Err(error) = pipeline.release_before(end)
        {
            // The flush is done; a log file that stays only takes space.
            self.monitor.files_left("released log files", &error);
        }
        Ok(())
    }

    /// Adds the slices to the tree of a keyspace.
    fn add_to_tree(
        &self,
        keyspace: &KeyspaceState,
        version: &Version,
        slices: &[Slice],
        change: &mut Change,
    ) -> Result<()> {
        let id = keyspace.id;
        let tree = version.tree(id).cloned().unwrap_or_default();
        let (tree, edits) = match &keyspace.order {
            Order::Bytewise => self.add_slices(&Bytewise, id, &tree, slices),
            Order::Custom(order) => self.add_slices(order, id, &tree, slices),
            Order::Missing(name) => return Err(missing_order(&keyspace.name, name)),
        };
        if let Order::Custom(order) = &keyspace.order {
            self.trust(order)?;
        }
        change.edit.trees.extend(edits.into_iter().map(|edit| (id, edit)));
        change.trees.push((id, Some(Arc::new(tree))));
        Ok(())
    }

    /// Adds the slices to their partitions, and splits partitions that became too big.
    fn add_slices<O: KeyOrder>(
        &self,
        order: &O,
        id: KeyspaceId,
        tree: &Tree,
        slices: &[Slice],
    ) -> (Tree, Vec<TreeEdit>) {
        let busy = |p: &Partition| self.work.is_busy(id, p.lower.as_deref());
        let (tree, mut edits) = with_slices(order, tree, slices, busy, &self.settings);
        let (tree, splits) = partitioning::split_full(order, tree, &self.settings, busy);
        edits.extend(splits);
        (tree, edits)
    }
}

/// Whether no run of a partition has keys between the cursor's first and last key there. If so, the
/// base adopts the cursor's entries, so the flush compresses them.
fn lies_clear<O: KeyOrder>(
    order: &O,
    partition: &Partition,
    cursor: &mut MemCursor<O>,
) -> Result<bool> {
    if !partition.deltas.is_empty() {
        return Ok(false);
    }
    cursor.seek_start(partition.lower.as_deref())?;
    let first = cursor.key().to_vec();
    match &partition.upper {
        Some(upper) => cursor.seek_before(upper)?,
        None => cursor.seek_to_last()?,
    }
    let segments = partition.base.segments();
    let next = segments.partition_point(|s| order.compare(&s.meta().max_key, &first).is_lt());
    let clear = |next: &Arc<Segment>| order.compare(cursor.key(), &next.meta().min_key).is_lt();
    Ok(cursor.valid() && segments.get(next).is_none_or(clear))
}
