//! Compaction: the deltas of a partition and its base become a new base.
//!
//! 1. A compaction always takes *all* deltas that the partition has when it begins, so its output
//!    lies at the bottom: nothing older exists below.
//! 2. Segments that overlap nothing are taken over by reference. A compaction reads and writes only
//!    segments that overlap (`compaction::plan`), and segments that a flush left uncompressed and
//!    that compression makes smaller.
//! 3. Deltas that arrive meanwhile stay on top of the result. No other change touches the base of a
//!    busy partition, so the result can replace it.
//! 4. The result is installed in every tree that has the same partition, in the same edit (S12).
//! 5. Between steps it notices that the database closes; a worker that is alone lets a flush go first.

use crate::base::rangedel::Fragments;
use crate::base::{Bytewise, KeyOrder, Seq};
use crate::catalog::{LiveTraits, Order, missing_order};
use crate::compaction::choice::{partition_at, written_to};
use crate::compaction::inputs::all_within;
use crate::compaction::install::{self, Compacted};
use crate::compaction::queue::PartitionKey;
use crate::compaction::scores::fresh_share;
use crate::compaction::values::{Emptying, Planning};
use crate::compaction::{CompactionStream, Depth, Piece, Recoding, VersionGc, written_bytes};
use crate::compaction::{temperature, tiers};
use crate::db::change::Change;
use crate::db::core::Core;
use crate::db::output::Merger;
use crate::error::{Error, Result};
use crate::manifest::{Partition, Tree};
use crate::monitor::Compacting;
use crate::run::{KnownValues, Role, Run, RunCursor, RunWriter, Segment};
use crate::sync::Point;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A partition to compact.
struct Job<'p> {
    traits: &'p LiveTraits,
    tree: &'p Tree,
    old: &'p Partition,
    /// Whether everything is rewritten.
    whole: bool,
    /// Whether the keyspace's compaction filter is called.
    filtering: bool,
    /// Whether it is done because temperatures have changed.
    idle: bool,
    /// How much has to be dead in a value segment that is emptied.
    emptying: Emptying,
}

/// What a compaction wrote, before it is installed.
struct Merged {
    writer: Option<RunWriter>,
    compacted: Vec<Compacted>,
    /// Bytes of the deltas that were read.
    delta_bytes: u64,
    /// Segments that were taken over by reference.
    adopted: u64,
}

/// Segments that are compacted.
struct Rewrite<'p> {
    old: &'p Partition,
    runs: Vec<Vec<Arc<Segment>>>,
    traits: &'p LiveTraits,
    gc: &'p VersionGc,
    filtering: bool,
    /// Why it is written in another form, if that is all.
    why: Option<Recoding>,
}

/// The output under construction.
struct Output<'w> {
    writer: &'w mut Option<RunWriter>,
    segments: Vec<Arc<Segment>>,
    adopted: u64,
    filtered: u64,
    /// The value segments to which the partition refers, until the writer knows them.
    values: Option<KnownValues>,
}

impl Core {
    /// Compacts these partitions into one file.
    pub(super) fn compact_partitions(&self, keys: &[PartitionKey], merger: &Merger) -> Result<()> {
        self.tell_work(keys, |told| {
            let tries = [true, false].into_iter().map(|filtering| {
                let done = self.compact_into_file(keys, filtering, told, merger);
                done.map(|done| done.then_some(()))
            });
            tries.filter_map(Result::transpose).next().unwrap_or_else(|| {
                let what = "compacting without filters was refused: a defect of the engine";
                Err(Error::invalid(what))
            })
        })
    }

    /// Compacts these partitions into one file. False: a snapshot was taken meanwhile that sees
    /// entries which filters removed or changed, and nothing was done (R21).
    fn compact_into_file(
        &self,
        keys: &[PartitionKey],
        filtering: bool,
        told: &Compacting<'_>,
        merger: &Merger,
    ) -> Result<bool> {
        let partitions = keys.to_vec();
        let merge = move |core: &Self| core.merge_partitions(&partitions, filtering);
        let Merged { writer, compacted, delta_bytes, adopted } = told.merge(merger, self, merge)?;
        let background = &self.counters.background;
        if let Some(writer) = &writer {
            background.compaction_bytes.fetch_add(writer.bytes_written(), Ordering::Relaxed);
            told.bytes.set(writer.bytes_written());
        }
        let count = compacted.len() as u64;
        told.adopted.set(told.adopted.get() + adopted);
        for Compacted { keyspace, old, base, .. } in &compacted {
            self.work.saw_fresh(keyspace.id, fresh_share(old, base));
        }
        let mut installed = true;
        let made =
            written_to(writer.as_ref().map(RunWriter::id), compacted.iter().map(|done| &done.base));
        told.segments.set(made.len() as u64);
        self.conclude(writer, made, || {
            installed = self.install_compactions(compacted)?;
            Ok(())
        })?;
        if !installed {
            return Ok(false);
        }
        background.compactions.fetch_add(count, Ordering::Relaxed);
        self.pacer.compacted(0, delta_bytes, told.took());
        self.update_pressure();
        Ok(true)
    }

    /// Writes the new bases of these partitions, into one file.
    fn merge_partitions(&self, keys: &[PartitionKey], filtering: bool) -> Result<Merged> {
        let (mut writer, mut compacted) = (None, Vec::new());
        let cause = self.work.cause(keys);
        let (idle, emptying) = (cause == temperature::CAUSE, Emptying::of(cause));
        let (mut delta_bytes, mut adopted) = (0, 0);
        for key @ PartitionKey { keyspace: id, lower, .. } in keys {
            let keyspace = self.catalog.lock().by_id(*id).cloned();
            let Some(keyspace) = keyspace else { continue };
            let version = self.state_now().version.clone();
            let Some(tree) = version.tree(*id) else { continue };
            let old = partition_at(&keyspace, tree, lower.as_deref());
            let Some(old) = old.inspect_err(|_| self.give_up_files(writer.take()))? else {
                continue;
            };
            delta_bytes += old.delta_bytes();
            let whole = self.work.is_whole(key);
            let traits = keyspace.traits();
            let job = Job { traits: &traits, tree, old: &old, whole, filtering, idle, emptying };
            let base = match &keyspace.order {
                Order::Bytewise => self.compact_partition(&Bytewise, &job, &mut writer),
                Order::Custom(order) => {
                    let compacted = self.compact_partition(order, &job, &mut writer);
                    // Entries that the writer refused as out of order may result from a panic
                    // (R15).
                    self.trust(order).and(compacted)
                }
                Order::Missing(name) => Err(missing_order(&keyspace.name, name)),
            };
            let bounds = (
                old.lower.as_deref().unwrap_or_default(),
                old.upper.as_deref().unwrap_or_default(),
            );
            let (base, taken_over, filtered_under) = base
                .map_err(|error| error.in_keyspace(&keyspace.name, Some(bounds)))
                .inspect_err(|_| self.give_up_files(writer.take()))?;
            adopted += taken_over;
            let traits = traits.names.clone();
            compacted.push(Compacted { keyspace, old, base, filtered_under, traits });
        }
        Ok(Merged { writer, compacted, delta_bytes, adopted })
    }

    /// Compacts one partition. Returns the new base, how many segments it took over, and the snapshots that
    /// were respected if the filter removed or changed anything.
    fn compact_partition<O: KeyOrder>(
        &self,
        order: &O,
        job: &Job<'_>,
        writer: &mut Option<RunWriter>,
    ) -> Result<(Run, u64, Option<Vec<Seq>>)> {
        let Job { traits, tree, old, whole, filtering, idle, emptying } = *job;
        let background = &self.counters.background;
        // A filter would see values under operands that are still above (S6).
        let filtering = filtering && !tiers::holds_operands(order, tree, old);
        let gc = self.compaction_rule().at(Depth::Bottom);
        self.gate(Point::CompactionReads);
        let mut tombstones: Vec<Arc<Fragments>> = Vec::new();
        for run in old.runs() {
            tombstones.extend(run.fragments(order)?);
        }
        let moment = temperature::Moment::new((self.clock.now(), idle), &self.catalog, &self.cache);
        let planning = Planning {
            order,
            old,
            whole,
            emptying,
            tombstones: &tombstones,
            gc: &gc,
            settings: &self.settings,
            moment,
        };
        let (pause, moving) = (|| self.between_steps(), || self.gate(Point::CompactionMoves));
        let (pieces, moves) = planning.pieces(self.reserve.free(), pause, moving)?;
        let sizes = (&self.settings, self.reserve.free() as f64 - moves.bytes as f64);
        let pieces = moment.recode(&pieces, sizes, |segment| self.is_unsettled(segment));
        self.check_fits(written_bytes(&pieces) + moves.bytes as f64)?;
        let inputs = old.runs().flat_map(|run| run.segments());
        let values = Some(KnownValues::of(&self.cache, inputs, |values| moves.why(values)));
        let mut output = Output { writer, segments: Vec::new(), adopted: 0, filtered: 0, values };
        for piece in pieces {
            match piece {
                Piece::Drop(segment) => {
                    let expired = segment.meta().specials.all_expired(gc.earliest_time());
                    background.entries_expired.fetch_add(expired, Ordering::Relaxed);
                }
                Piece::Recode(why, run) => {
                    let (runs, why) = (vec![run], Some(why));
                    let part = Rewrite { old, runs, traits, gc: &gc, filtering, why };
                    self.rewrite(order, part, &tombstones, &mut output)?;
                }
                Piece::Reuse(segment) => {
                    self.cut(&mut output)?;
                    output.segments.push(segment);
                    output.adopted += 1;
                }
                Piece::Rewrite(runs) => {
                    let part = Rewrite { old, runs, traits, gc: &gc, filtering, why: None };
                    self.rewrite(order, part, &tombstones, &mut output)?;
                }
            }
        }
        self.cut(&mut output)?;
        let survivors = gc.surviving(order, &all_within(order, old, &tombstones));
        let mut tombstone_segments = Vec::new();
        if !survivors.is_empty() {
            let writer = self.writer(output.writer, (true, true))?;
            writer.add_tombstones::<O>(&survivors)?;
            tombstone_segments = self.files.take_segments(writer);
        }
        self.trust(order)?;
        background.segments_adopted.fetch_add(output.adopted, Ordering::Relaxed);
        let respected = (output.filtered > 0).then(|| gc.snapshots().to_vec());
        let base = Run::new(Role::Base, output.segments, tombstone_segments);
        Ok((base, output.adopted, respected))
    }

    /// Fails if what a compaction or push may write does not fit into the free space. It then does
    /// not begin, so the space stays for work that needs less (C7).
    pub(super) fn check_fits(&self, bytes: f64) -> Result<()> {
        loop {
            let free = self.reserve.free();
            if bytes <= free as f64 {
                return Ok(());
            }
            // The log first frees its prepared files, if that makes enough room.
            let log = self.pipeline.as_ref().map_or(0, |pipeline| pipeline.file_bytes());
            if bytes > (free + log) as f64 || !self.give_up_unused() {
                break;
            }
        }
        let full = std::io::ErrorKind::StorageFull;
        Err(Error::io("compact into", self.files.directory(), full.into()))
    }

    /// Whether a segment was written for a short life and is about to stay: it is not compressed,
    /// and compression would make it smaller.
    pub(super) fn is_unsettled(&self, segment: &Segment) -> bool {
        // Seeded: data that arrived in key order is never compressed.
        bug!("db_sorted_data_stays_raw", return false);
        segment.would_shrink(self.settings.codec(true), &self.cache)
    }

    /// Ends the segment that is being written, and takes the segments written so far.
    fn cut(&self, output: &mut Output<'_>) -> Result<()> {
        if let Some(writer) = output.writer {
            writer.cut()?;
            output.segments.extend(self.files.take_segments(writer));
        }
        Ok(())
    }

    fn rewrite<O: KeyOrder>(
        &self,
        order: &O,
        part: Rewrite<'_>,
        tombstones: &[Arc<Fragments>],
        output: &mut Output<'_>,
    ) -> Result<()> {
        let Rewrite { old, runs, traits, gc, filtering, why } = part;
        let cold = temperature::dictionary(why, &runs, &self.cache)?;
        let piece = self.settings.piece_bytes(runs.len());
        let cursor = |segments: Vec<Arc<Segment>>| {
            let run = Arc::new(Run::new(Role::Delta, segments, Vec::new()));
            RunCursor::past_cache(run, order.clone(), self.cache.clone(), piece)
        };
        let cursors = runs.into_iter().filter(|run| !run.is_empty()).map(cursor).collect();
        let mut stream =
            CompactionStream::new(order.clone(), cursors, tombstones.to_vec(), gc.clone())
                .with_operator(traits.operator.clone())
                .with_filter(traits.filter.clone().filter(|_| filtering))
                .within(old.lower.clone(), old.upper.clone());
        let writer = self.writer(output.writer, (true, true))?;
        writer.set_cold(cold)?;
        writer.know(&mut output.values);
        let before = writer.bytes_written();
        let mut out =
            |key: &[u8], seq, kind, value: &[u8]| writer.add(order, key, seq, kind, value);
        while stream.advance(&mut out)? {
            self.between_steps()?;
        }
        let counts = stream.counts();
        output.filtered += counts.filtered + counts.filtered_changed;
        self.counters.background.note_compaction(&counts);
        let written = writer.end_cold(before)?;
        self.counters.background.note_recoded(why, written);
        Ok(())
    }

    /// Replaces the partitions by the results. False: the results do not respect a snapshot that
    /// was taken meanwhile.
    fn install_compactions(&self, compacted: Vec<Compacted>) -> Result<bool> {
        if compacted.is_empty() {
            return Ok(true);
        }
        self.gate(Point::CompactionInstalls);
        let mut surplus = Vec::new();
        let installed = self.try_change(|state, store| {
            // Several compactions began one after the other: together they respect only the
            // snapshots that all of them knew.
            let respected =
                compacted.iter().filter_map(|compacted| compacted.filtered_under.clone());
            let respects =
                respected.reduce(|a, b| a.into_iter().filter(|seq| b.contains(seq)).collect());
            let owners = compacted.iter().map(|done| done.keyspace.clone()).collect();
            let fresh = |id, share| self.work.saw_fresh(id, share);
            let installed = self.install(&state.version, store, |around| {
                (install::compactions(compacted, around, &fresh), owners)
            })?;
            let change = Change::of_rows(installed, &mut surplus);
            Ok(change.map(|change| Change { respects, ..change }))
        })?;
        self.work.force(surplus);
        Ok(installed)
    }
}
