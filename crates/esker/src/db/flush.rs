//! Flush: a sealed set of memtables becomes one run file, cut at partition bounds, and each piece
//! a delta of its partition.
//!
//! 1. The oldest sealed set goes first, once everything below its end is published (R3).
//! 2. The log before its end is given back only after the edit is synced (R3).
//! 3. A piece that overlaps nothing in its partition becomes part of the base by reference, so a
//!    sequential load is written once.
//! 4. Bounds may move while a flush is written. Then a piece is added to every partition that it
//!    touches, and each sees its own part.
//! 5. A failed flush leaves nothing behind; the next attempt takes a new file. Only if nobody knows
//!    whether the manifest refers to its file, the file stays, and the next open decides.

use crate::base::rangedel::Fragments;
use crate::base::{Bytewise, Cursor, KeyOrder, KeyspaceId};
use crate::db::Core;
use crate::db::catalog::{KeyspaceState, Order};
use crate::db::memset::{DbOrder, MemSet};
use crate::db::shape;
use crate::db::state::State;
use crate::db::store::{Change, missing_order};
use crate::error::{IoContext, Result};
use crate::manifest::{Edit, Partition, Tree, TreeEdit, Version};
use crate::memtable::MemCursor;
use crate::merge::{Depth, MergeStream};
use crate::run::{Role, Run, RunWriter, Segment};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Entries between two looks at the rest of the world.
const STEP_ENTRIES: usize = 4096;

/// What a flush wrote for one partition.
struct Slice {
    lower: Option<Vec<u8>>,
    run: Arc<Run>,
}

/// The output of a flush: slices by keyspace, in key order.
#[derive(Default)]
struct Slices {
    by_keyspace: BTreeMap<KeyspaceId, Vec<Slice>>,
}

impl Core {
    /// Flushes the oldest sealed set, if there is one. Only one flush runs at a time.
    pub(super) fn flush_oldest(&self) -> Result<bool> {
        let state = self.state.load_arc();
        let Some(set) = state.oldest_sealed().cloned() else { return Ok(false) };
        if let (Some(pipeline), Some(end)) = (&self.pipeline, set.sealed_at()) {
            pipeline.wait_visible(end)?;
        }
        let mut writer = None;
        let slices =
            self.write_slices(&set, &mut writer).inspect_err(|_| give_up(writer.take()))?;
        let bytes = writer.as_ref().map_or(0, |writer: &RunWriter| writer.bytes_written());
        self.conclude(writer, || self.install_flush(&set, slices))?;
        self.counters.background.flushes.fetch_add(1, Ordering::Relaxed);
        self.counters.background.flush_bytes.fetch_add(bytes, Ordering::Relaxed);
        // A flush of next to nothing takes as long as its syncs, which tells nothing of a full one.
        if let Some(since) = set.sealed_since()
            && set.bytes() >= self.settings.memtable_bytes / 8
        {
            self.pacer.flushed(set.bytes(), since);
        }
        Ok(true)
    }

    /// Writes everything in `set` to one file, made when the first entry comes.
    fn write_slices(&self, set: &MemSet, writer: &mut Option<RunWriter>) -> Result<Slices> {
        let mut slices = Slices::default();
        let end = set.sealed_at().unwrap_or(set.start);
        let (_, dropped) = self.catalog.lock().pending_before(end);
        for id in set.keyspaces() {
            // What was written to a keyspace goes with it if this flush also carries the drop. A
            // later drop is only in the log and may still be lost.
            let mut readers = self.catalog.lock().readers_of(id, set.start);
            readers.retain(|reader| !dropped.contains(&reader.id));
            // The tree of one of them says where to cut; another may have other bounds.
            let Some(keyspace) = readers.first() else { continue };
            // Looked at after the reader was found: a branch that was made a moment ago has its
            // tree by then, and what lies in it must not be taken for nothing.
            let tree = self.state_now().version.tree(keyspace.id).cloned().unwrap_or_default();
            let written = match &keyspace.order {
                Order::Bytewise => {
                    self.write_keyspace(&Bytewise, &readers, id, set, &tree, writer)?
                }
                Order::Custom(order) => {
                    let written = self.write_keyspace(order, &readers, id, set, &tree, writer);
                    // Disorder that the writer refused may come from a panic (R15).
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
        set: &MemSet,
        tree: &Tree,
        writer: &mut Option<RunWriter>,
    ) -> Result<Vec<Slice>> {
        let Some(table) = O::table(set, id) else { return Ok(Vec::new()) };
        let tombstones = table.fragments(id);
        let mut rule = self.merge_rule();
        // What a named snapshot sees has not expired for it.
        rule.now = readers.iter().filter_map(|reader| reader.frozen_at).fold(rule.now, u64::min);
        // Seeded: what has expired since a named snapshot was made is flushed away from it.
        bug!("db_flush_ignores_named_snapshots", rule.now = self.now());
        let operator = readers.first().map(|reader| reader.traits().operator.clone());
        let Some(operator) = operator else { return Ok(Vec::new()) };
        let mut slices = Vec::new();
        let mut cursor: MemCursor<O> = table.cursor(id);
        cursor.seek_to_first()?;
        for partition in touched(order, tree, &mut cursor, &tombstones)? {
            let partition = &tree.partitions()[partition];
            let (lower, upper) = (partition.lower.clone(), partition.upper.clone());
            // Sets are flushed from old to new, so under an empty partition there is nothing. Where
            // others share the slice, theirs may hold what is hidden and not merged away yet.
            let empty = readers.len() == 1 && partition.runs().all(|run| run.is_empty());
            // Seeded: a flush drops deletes although older entries lie below.
            let empty = empty || bug!("db_flush_is_always_at_the_bottom");
            let depth = if empty { Depth::Bottom } else { Depth::Upper };
            let gc = rule.clone().at(depth);
            let clipped = tombstones.clip(order, lower.as_deref(), upper.as_deref());
            let survivors = gc.surviving(order, &clipped);
            let cursors = vec![table.cursor(id)];
            let stream =
                MergeStream::new(order.clone(), cursors, vec![Arc::new(clipped)], gc.clone())
                    .with_operator(operator.clone())
                    .within(lower.clone(), upper);
            let writer = self.writer(writer, false)?;
            let run = self.write_slice(order, writer, stream, survivors)?;
            if !run.is_empty() {
                slices.push(Slice { lower, run: Arc::new(run) });
            }
        }
        self.trust(order)?;
        Ok(slices)
    }

    fn write_slice<O: KeyOrder>(
        &self,
        order: &O,
        writer: &mut RunWriter,
        mut stream: MergeStream<MemCursor<O>, O, Arc<Fragments>>,
        tombstones: Fragments,
    ) -> Result<Run> {
        let mut out =
            |key: &[u8], seq, kind, value: &[u8]| writer.add(order, key, seq, kind, value);
        while stream.step(&mut out, STEP_ENTRIES)? {}
        self.counters.note_merge(&stream.counts());
        writer.cut()?;
        let segments = self.take_segments(writer);
        // Seeded: range deletes do not survive their flush.
        bug!(
            "db_flush_loses_range_deletes",
            return Ok(Run::new(Role::Delta, segments, Vec::new()))
        );
        let mut tombstone_segments = Vec::new();
        if !tombstones.is_empty() {
            writer.add_tombstones::<O>(&tombstones)?;
            tombstone_segments = self.take_segments(writer);
        }
        Ok(Run::new(Role::Delta, segments, tombstone_segments))
    }

    /// The writer of this flush or merge, made when it is first needed.
    pub(super) fn writer<'w>(
        &self,
        writer: &'w mut Option<RunWriter>,
        settled: bool,
    ) -> Result<&'w mut RunWriter> {
        if let Some(writer) = writer {
            return Ok(writer);
        }
        let (id, options) = (self.files.next_id(), self.writer_options(settled));
        Ok(writer.insert(RunWriter::create(&self.fs, self.files.directory(), id, options)?))
    }

    /// The segments written since the last call, as objects.
    pub(super) fn take_segments(&self, writer: &mut RunWriter) -> Vec<Arc<Segment>> {
        let metas = writer.take_segments();
        if metas.is_empty() {
            return Vec::new();
        }
        let file = self.output_file(writer.id());
        metas.into_iter().map(|meta| Segment::new(meta, file.clone())).collect()
    }

    /// Makes the flushed data part of the tree and gives the log before it back.
    fn install_flush(&self, set: &Arc<MemSet>, slices: Slices) -> Result<()> {
        let end = set.sealed_at().unwrap_or(set.start);
        // Seeded: the log goes before the manifest refers to the run that takes its place.
        bug!(
            "db_log_released_before_the_edit",
            drop(self.pipeline.as_ref().map(|pipeline| pipeline.release_before(end)))
        );
        self.change(|state, _| {
            let (created, dropped) = self.catalog.lock().pending_before(end);
            let mut change = Change { flushed: Some(set.clone()), ..Change::default() };
            for (id, slices) in &slices.by_keyspace {
                // Also branches that were made while the slices were written share this set (R24).
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
            // Seeded: the manifest says that the log begins behind writes that are not flushed.
            let end = if bug!("db_log_start_too_late") { self.visible() } else { end };
            let edit = change.edit;
            change.edit = Edit { log_start: Some(end), created, homes, traits, dropped, ..edit };
            change.edit.next_keyspace = Some(self.catalog.lock().next_id());
            Ok(Some(change))
        })?;
        self.catalog.lock().forget_before(end);
        if let Some(pipeline) = &self.pipeline
            && let Err(error) = pipeline.release_before(end)
        {
            // The flush is done; a log file that stays costs space and nothing else.
            log::warn!("the log is not given back yet: {error}");
        }
        Ok(())
    }

    /// Puts the slices into the tree of a keyspace.
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

    /// Puts the slices on top of their partitions.
    fn add_slices<O: KeyOrder>(
        &self,
        order: &O,
        id: KeyspaceId,
        tree: &Tree,
        slices: &[Slice],
    ) -> (Tree, Vec<TreeEdit>) {
        let mut partitions: Vec<Arc<Partition>> = tree.partitions().to_vec();
        let mut edits = Vec::new();
        for slice in slices {
            // Where bounds moved meanwhile, the slice belongs to several partitions or to one
            // that begins before it.
            let Some(first) = tree
                .position(slice.lower.as_deref())
                .or_else(|| slice.lower.as_deref().map(|lower| tree.find(order, lower)))
            else {
                continue;
            };
            let run = slice.run.clone();
            for at in first..tree.partitions().len() {
                let old = &tree.partitions()[at];
                if at > first && !shape::reaches(order, &run, old.lower.as_deref()) {
                    break;
                }
                let Some(part) = shape::part_within(order, &run, old) else { continue };
                let old = &partitions[at];
                let busy = self.work.is_busy(id, old.lower.as_deref());
                let (new, edit) = shape::with_delta(order, old, part, busy, &self.settings);
                partitions[at] = new;
                edits.push(edit);
            }
        }
        let (tree, splits) = shape::split_full(Tree::new(partitions), &self.settings, |p| {
            self.work.is_busy(id, p.lower.as_deref())
        });
        edits.extend(splits);
        (tree, edits)
    }

    /// Makes the file of a flush or merge durable and installs what it holds. If that fails, the
    /// file goes, unless the manifest may refer to it: that cannot be excluded once an edit was
    /// begun, and an edit that was begun and failed has set the latch.
    pub(super) fn conclude(
        &self,
        mut writer: Option<RunWriter>,
        install: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let finish = |writer: &mut RunWriter| {
            writer.finish()?;
            // Seeded: a power cut takes the name of a run that the manifest refers to.
            bug!("db_run_name_not_synced", return Ok(()));
            let directory = self.files.directory();
            self.fs.sync_dir(directory).context("sync", directory)
        };
        let finished = writer.as_mut().map_or(Ok(()), finish);
        finished.and_then(|()| install()).inspect_err(|_| {
            if self.latch.get().is_none() {
                give_up(writer.take());
            }
        })
    }

    /// The state of readers, for those that only look.
    pub(super) fn state_now(&self) -> Arc<State> {
        self.state.load_arc()
    }
}

/// Removes the file of a flush or merge that failed: on a full disk its space is needed (C7).
pub(super) fn give_up(writer: Option<RunWriter>) {
    if let Some(Err(error)) = writer.map(RunWriter::abandon) {
        log::warn!("the file of a failed flush or merge stays until the next open: {error}");
    }
}

/// The indexes of the partitions that the entries and tombstones of a memtable touch, ascending.
fn touched<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    cursor: &mut MemCursor<O>,
    tombstones: &Fragments,
) -> Result<Vec<usize>> {
    let partitions = tree.partitions();
    let mut touched = Vec::new();
    for (index, partition) in partitions.iter().enumerate() {
        let (lower, upper) = (partition.lower.as_deref(), partition.upper.as_deref());
        match lower {
            Some(lower) if cursor.valid() && order.compare(cursor.key(), lower).is_lt() => {
                cursor.seek(lower, crate::base::SEQ_MAX)?;
            }
            _ => {}
        }
        let inside = |key: &[u8]| upper.is_none_or(|upper| order.compare(key, upper).is_lt());
        let has_entry = cursor.valid() && inside(cursor.key());
        if has_entry || !tombstones.clip(order, lower, upper).is_empty() {
            touched.push(index);
        }
    }
    Ok(touched)
}
