//! Flush: a sealed set of memtables becomes one run file (two, if open has replayed it and it is
//! large), cut at the bounds of the row that gets it: deltas of partitions, or runs of the top tier.
//!
//! 1. The oldest sealed set goes first, once everything below its end is published (R3).
//! 2. The log before its end is released only after the edit is synced (R3).
//! 3. A piece that overlaps nothing in its partition becomes part of the base by reference, so a
//!    sequential load is written once. The flush foresees that, compresses such a piece at once and
//!    leaves sequence numbers out; other pieces are raw, because they are compacted soon.
//! 4. Bounds may move while a flush is written. Then a piece is added to every partition that it
//!    overlaps, and each sees its own part (`slices`).
//! 5. A failed flush leaves nothing behind; the next attempt takes a new file. The file stays only
//!    if it is unknown whether the manifest refers to it; the next open then decides.

use crate::base::{Bytewise, KeyspaceId, Moment};
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::compaction::flush_slices::Slice;
use crate::compaction::queue::PartitionKey;
use crate::compaction::slicing::{Goal, Material, Targets, segments_of, write_in_two};
use crate::compaction::{CompactionRule, tiers};
use crate::db::change::Change;
use crate::db::core::Core;
use crate::db::output::SlicesFile;
use crate::directory::reserve::Use;
use crate::error::Result;
use crate::events::EventKind;
use crate::iter::{AnyCursor, LoserTree};
use crate::manifest::{Edit, Partition, Tree, Version};
use crate::monitor::Watched;
use crate::run::RunWriter;
use crate::state::memtables::{DbOrder, MemtableSet};
use crate::sync::Point;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The output of a flush: slices by keyspace, in key order, and the row for which they were cut.
#[derive(Default)]
struct Slices {
    by_keyspace: BTreeMap<KeyspaceId, (usize, Vec<Slice>)>,
}

/// The files of a flush, the second one for a second thread, and whether the set was replayed.
type Writers = ([Option<RunWriter>; 2], bool);

impl Core {
    /// Flushes the oldest sealed set, if there is one. Only one flush runs at a time. For a set that was
    /// `replayed` open waits, and nothing else is done meanwhile. So two threads share its flush, and
    /// nothing is copied into the cache.
    pub(super) fn flush_oldest(&self, replayed: bool) -> Result<bool> {
        self.with_space(Use::Unit, || self.flush_oldest_once(replayed))
    }

    fn flush_oldest_once(&self, replayed: bool) -> Result<bool> {
        let wait = |end| self.pipeline.as_ref().map_or(Ok(()), |log| log.wait_visible(end));
        let Some(set) = self.state.flushable(wait)? else { return Ok(false) };
        let watched = Watched::begin();
        let mut bytes = 0;
        let (mut keyspaces, mut segments) = (0, 0);
        // What was written for the partitions may be refused at the install; what is written for the
        // top tier is not.
        for to_top in [false, true] {
            let mut writers: Writers = (Default::default(), replayed);
            let slices = self.write_slices(&set, to_top, &mut writers).inspect_err(|_| {
                self.give_up_files(writers.0.iter_mut().filter_map(Option::take));
            })?;
            bytes += writers.0.iter().flatten().map(RunWriter::bytes_written).sum::<u64>();
            let made = segments_of(slices.by_keyspace.values().flat_map(|(_, slices)| slices));
            (keyspaces, segments) = (slices.by_keyspace.len() as u64, made.len() as u64);
            let mut installed = true;
            self.conclude(writers.0.into_iter().flatten(), made, || {
                installed = self.install_flush(&set, slices)?;
                Ok(())
            })?;
            if installed {
                break;
            }
        }
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
            && set.bytes() >= set.capacity_bytes() / 8
        {
            self.pacer.flushed(set.bytes(), since);
        }
        Ok(true)
    }

    /// Writes everything in `set` to files, which are created for the first entry; `to_top`: for the
    /// top rows.
    fn write_slices(
        &self,
        set: &MemtableSet,
        to_top: bool,
        writers: &mut Writers,
    ) -> Result<Slices> {
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
            let into = (&*tree, to_top);
            let written = match &keyspace.order {
                Order::Bytewise => {
                    self.write_keyspace(&Bytewise, &readers, (id, set), into, &rule, writers)?
                }
                Order::Custom(order) => {
                    let written =
                        self.write_keyspace(order, &readers, (id, set), into, &rule, writers);
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
        (id, set): (KeyspaceId, &MemtableSet),
        (tree, to_top): (&Tree, bool),
        rule: &CompactionRule,
        writers: &mut Writers,
    ) -> Result<(usize, Vec<Slice>)> {
        let nothing = Ok((0, Vec::new()));
        if O::tables(set, id).next().is_none() {
            return nothing;
        }
        let operator = readers.first().map(|reader| reader.operator());
        let Some(operator) = operator else { return nothing };
        let open = || {
            let mut cursors: Vec<AnyCursor<O>> = Vec::new();
            O::cursors(set, id, |_, cursor, _| cursors.push(cursor.into()));
            cursors
        };
        let tombstones = O::fragments(order, set, id);
        let sizes = (set.bytes(), &self.settings);
        let mut look = LoserTree::new(order.clone(), open());
        let tier = match tree.tiers().len() {
            top if to_top => top,
            _ => tiers::route(order, tree, &mut look, &tombstones, sizes)?,
        };
        let Some(row) = tree.row(tier) else { return nothing };
        let deletes_ranges = !tombstones.is_empty();
        let material = Material { open: &open, tombstones, operator, rule };
        let targets = Targets { row, tier, within: 0..row.partitions().len() };
        // If several readers share the slice, other trees may hold hidden entries that are not
        // compacted away yet.
        let sole = readers.len() == 1;
        let goal = |parts: &[Arc<Partition>], cursor: Option<&mut LoserTree<AnyCursor<O>, O>>| {
            if tier > 0 {
                return Ok(Goal::default());
            }
            tiers::goal_of_flush(order, tree, parts, cursor, (sole, deletes_ranges))
        };
        let (files, replayed) = writers;
        let warms = !*replayed;
        let file = |writer| SlicesFile { core: self, writer, yields: false, warms, values: None };
        let [mut first, mut second] = files.each_mut().map(file);
        let outputs = (O::middle(set, id).filter(|_| *replayed), [&mut first, &mut second]);
        let slices = write_in_two(order, &material, targets, goal, outputs)?;
        self.trust(order)?;
        Ok((tier, slices))
    }

    /// Installs the flushed data in the tree and releases the log before it. False: something was
    /// written for partitions to which the path is not clear any more, and nothing was done.
    fn install_flush(&self, set: &Arc<MemtableSet>, slices: Slices) -> Result<bool> {
        let end = set.sealed_at().unwrap_or(set.start);
        self.gate(Point::FlushInstalls);
        // Seeded: the log is released before the manifest refers to the run that replaces it.
        bug!(
            "db_log_released_before_the_edit",
            drop(self.pipeline.as_ref().map(|pipeline| pipeline.release_before(end)))
        );
        let (mut installed, mut surplus) = (true, Vec::new());
        self.change(|state, _| {
            let (created, dropped) = self.catalog.lock().pending_before(end);
            let mut change = Change { flushed: Some(set.clone()), ..Change::default() };
            for (id, slices) in &slices.by_keyspace {
                // Branches that were made while the slices were written share this set too (R24).
                let readers = self.catalog.lock().readers_of(*id, set.start);
                for reader in readers {
                    if dropped.contains(&reader.id) || slices.1.is_empty() {
                        continue;
                    }
                    let Some(left) =
                        self.add_to_tree(&reader, &state.version, slices, &mut change)?
                    else {
                        installed = false;
                        return Ok(None);
                    };
                    surplus.extend(left);
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
        if !installed {
            return Ok(false);
        }
        self.work.force(surplus);
        self.gate(Point::FlushInstalled);
        self.catalog.lock().forget_before(end);
        if let Some(pipeline) = &self.pipeline
            && let Err(error) = pipeline.release_before(end)
        {
            // The flush is done; a log file that stays only takes space.
            self.monitor.files_left("released log files", &error);
        }
        Ok(true)
    }

    /// Adds the slices to the tree of a keyspace; `None`: they cannot be added there. Returns the spans
    /// of a tier that is not wanted any more.
    fn add_to_tree(
        &self,
        keyspace: &KeyspaceState,
        version: &Version,
        (tier, slices): &(usize, Vec<Slice>),
        change: &mut Change,
    ) -> Result<Option<Vec<PartitionKey>>> {
        let id = keyspace.id;
        let tree = version.tree(id).cloned().unwrap_or_default();
        let busy = |tier: usize, p: &Partition| self.work.is_busy(id, tier, p.lower.as_deref());
        let grows = keyspace.frozen_at.is_none();
        let rules = tiers::Rules { busy: &busy, grows, settings: &self.settings };
        let slices = (*tier, &slices[..]);
        let added = match &keyspace.order {
            Order::Bytewise => tiers::with_flush(&Bytewise, &tree, slices, rules),
            Order::Custom(order) => {
                let added = tiers::with_flush(order, &tree, slices, rules);
                self.trust(order)?;
                added
            }
            Order::Missing(name) => return Err(missing_order(&keyspace.name, name)),
        };
        let Some(rows) = added else { return Ok(None) };
        let surplus = rows.surplus(id);
        change.put_rows(id, rows);
        Ok(Some(surplus))
    }
}
