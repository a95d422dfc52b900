//! Thinning: rewriting a segment without its hidden entries. It frees space when none is left for
//! compactions (C7).
//!
//! 1. A compaction writes all its output before its input is freed. Thinning rewrites one segment
//!    in its place, without the entries that newer runs hide (`compaction::ThinStream`), and then
//!    frees the old segment. So a step takes no more than the longest segment, which is the *unit*
//!    of the reserve, and each installed step leaves more free space than before.
//! 2. A segment is rewritten only below or beside deletes that came since it was last examined, or
//!    if a partition into which it reaches was compacted since and no longer refers to it; and only
//!    if its bytes are freed: no other partition, branch or checkpoint may have it. The base
//!    comes first, then deltas from oldest to newest, because a delete is dropped when nothing
//!    older of its key is left.
//! 3. The partitions that refer to a segment are busy meanwhile, as in a compaction. Each gets its
//!    part of the result.
//! 4. A gain of less than 1/[`GAIN_DIVISOR`] of a segment is not worth the edit: the segment stays
//!    until a compaction.

use crate::admission::relief::PASSING_PATIENCE;
use crate::base::{Bytewise, KeyOrder, KeyspaceId};
use crate::catalog::{Order, missing_order};
use crate::compaction::queue::PartitionKey;
use crate::compaction::thin_candidates::{
    Examined, Look, ThinJob, ThinKey, Thinned, is, look_at, overlap, places, referring, replaced,
};
use crate::compaction::{Depth, Stretch, ThinStream, partitioning};
use crate::db::change::Change;
use crate::db::core::Core;
use crate::directory::reserve::Use;
use crate::error::{Error, Result};
use crate::manifest::{Draft, Partition, Tree};
use crate::run::{KnownValues, Role, Run, RunCursor, RunWriter, Segment};
use crate::sync::contain;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The least part of a segment that must be hidden, as a divisor.
const GAIN_DIVISOR: u64 = 64;
/// The unit in which file systems free space.
const PAGE_BYTES: u64 = 4 << 10;
/// Entries between two calls of `between_steps`.
const STEP_ENTRIES: usize = 1024;

impl Core {
    /// The segments that deletes may have made reducible, in the order in which they should be
    /// rewritten. `least`: the least part of a segment that must be hidden.
    pub(super) fn thinnable(&self, least: f64) -> Vec<ThinKey> {
        let state = self.state_now();
        let mut looks = Vec::new();
        for (id, tree) in state.version.trees() {
            for partition in tree.partitions() {
                let found = self.look_at_partition(*id, tree, partition, false);
                looks.extend(found.into_iter().map(|look| (*id, look)));
            }
        }
        self.relief.thinned.lock().keep(&state.version);
        // The oldest runs come first: a delete can be dropped when what it hides is gone.
        looks.retain(|(_, look)| look.part >= least);
        looks.sort_by(|(_, a), (_, b)| a.below.cmp(&b.below).then(b.part.total_cmp(&a.part)));
        looks.iter().map(|(id, look)| ThinKey::of(*id, &look.segment)).collect()
    }

    fn look_at_partition(
        &self,
        id: KeyspaceId,
        tree: &Tree,
        partition: &Partition,
        all: bool,
    ) -> Vec<Look> {
        let owner = self.catalog.lock().by_id(id).cloned();
        let Some(owner) = owner.filter(|owner| owner.frozen_at.is_none()) else {
            return Vec::new();
        };
        let snapshots = self.snapshots.list();
        let mut thinned = self.relief.thinned.lock();
        if thinned.snapshots != snapshots {
            *thinned = Thinned { examined: HashMap::new(), snapshots };
        }
        let known = |segment: &Segment| thinned.examined.get(&segment.meta().place()).copied();
        match &owner.order {
            Order::Bytewise => look_at(&Bytewise, tree, partition, all, known),
            Order::Custom(order) => look_at(order, tree, partition, all, known),
            Order::Missing(_) => Vec::new(),
        }
    }

    /// Thins the segments of partitions whose compaction finds no room. Returns whether a segment
    /// became smaller.
    pub(super) fn thin_for(&self, keys: &[PartitionKey]) -> bool {
        let [PartitionKey { keyspace: id, tier: 0, lower }] = keys else { return false };
        let state = self.state_now();
        let Some(tree) = state.version.tree(*id).cloned() else { return false };
        drop(state);
        let partition = tree.partitions().iter().find(|partition| partition.lower == *lower);
        let Some(partition) = partition else { return false };
        let mut looks = self.look_at_partition(*id, &tree, partition, true);
        drop(tree);
        looks.sort_by_key(|look| look.below);
        let keys: Vec<_> = looks.iter().map(|look| ThinKey::of(*id, &look.segment)).collect();
        drop(looks);
        let mut any = false;
        for key in keys {
            if self.thin_contained(&key) {
                any = true;
                self.give_all_back(PASSING_PATIENCE);
            }
        }
        any
    }

    /// Rewrites a segment if that makes it smaller. Returns whether it did.
    pub(super) fn thin_contained(&self, key: &ThinKey) -> bool {
        match self.thin(key) {
            Ok(thinned) => thinned,
            Err(error) => {
                if !matches!(error, Error::Closed) {
                    self.monitor.failed("thinning", &error);
                }
                false
            }
        }
    }

    fn thin(&self, key: &ThinKey) -> Result<bool> {
        let Some(job) = self.thin_job(key)? else { return Ok(false) };
        let keys = job.keys();
        let taken = {
            // As for compactions: changes of the tree see that these partitions are busy.
            let _one_at_a_time = self.store.lock();
            self.work.take(&keys)
        };
        if !taken {
            return Ok(false);
        }
        drop(job);
        let once = || match self.thin_job(key)? {
            Some(job) if job.keys() == keys => self.thin_once(job),
            _ => Ok(false),
        };
        let thinned = contain(|| self.with_space(Use::Unit, once));
        self.work.give_back(&keys);
        thinned
    }

    /// The partitions that refer to a segment; `None`: rewriting it would not free its bytes.
    fn thin_job(&self, key: &ThinKey) -> Result<Option<ThinJob>> {
        let keyspace = self.catalog.lock().by_id(key.keyspace).cloned();
        let Some(keyspace) = keyspace.filter(|keyspace| !keyspace.is_dropped()) else {
            return Ok(None);
        };
        let store = self.store.lock();
        let state = self.state_now();
        let Some(tree) = state.version.tree(key.keyspace) else { return Ok(None) };
        let (parts, above) = match &keyspace.order {
            Order::Bytewise => referring(&Bytewise, tree, key),
            Order::Custom(order) => referring(order, tree, key),
            Order::Missing(name) => return Err(missing_order(&keyspace.name, name)),
        };
        let segment = parts.first().and_then(|part| {
            part.runs().flat_map(|run| run.segments()).find(|segment| is(segment, key)).cloned()
        });
        let Some(segment) = segment else { return Ok(None) };
        let alone = store.is_referred_by(&segment, &parts);
        drop(store);
        if !alone || self.files.has_other_names(key.file) {
            return Ok(None);
        }
        Ok(Some(ThinJob { keyspace, segment, parts, above, written: Vec::new() }))
    }

    fn thin_once(&self, mut job: ThinJob) -> Result<bool> {
        let mut writer = None;
        let keyspace = job.keyspace.clone();
        let written = match &keyspace.order {
            Order::Bytewise => self.write_thinned(&Bytewise, &mut job, &mut writer),
            Order::Custom(order) => {
                let written = self.write_thinned(order, &mut job, &mut writer);
                self.trust(order).and(written)
            }
            Order::Missing(name) => Err(missing_order(&keyspace.name, name)),
        };
        let (len, parts) = (job.segment.meta().len, job.parts.len());
        let runs = job.parts.iter().flat_map(|part| part.runs());
        let seen = runs.chain(job.above.iter().flatten()).map(|run| run.max_seq()).max();
        let note = |segment: &Segment| {
            let place = segment.meta().place();
            let examined = Examined { upto: seen.unwrap_or(0), parts };
            self.relief.thinned.lock().examined.insert(place, examined);
        };
        let worth = written.inspect_err(|_| self.give_up_files(writer.take()))?;
        if !worth {
            self.give_up_files(writer);
            note(&job.segment);
            return Ok(false);
        }
        let made: Vec<_> = job.written.iter().flatten().cloned().collect();
        let bytes = writer.as_ref().map_or(0, RunWriter::bytes_written);
        made.iter().for_each(|segment| note(segment));
        let mut installed = false;
        self.conclude(writer, made, || {
            installed = self.install_thinned(job)?;
            Ok(())
        })?;
        self.counters.background.compaction_bytes.fetch_add(bytes, Ordering::Relaxed);
        if installed {
            log::debug!("a segment of {len} bytes was rewritten as {bytes} bytes");
            self.note_gain();
        }
        Ok(installed)
    }

    /// Writes the remaining entries of a segment. False: the gain is too small.
    fn write_thinned<O: KeyOrder>(
        &self,
        order: &O,
        job: &mut ThinJob,
        writer: &mut Option<RunWriter>,
    ) -> Result<bool> {
        let segment = job.segment.clone();
        let meta = segment.meta();
        let most = meta.len - (meta.len / GAIN_DIVISOR).max(PAGE_BYTES).min(meta.len);
        for (part, above) in job.parts.iter().zip(&job.above) {
            let (mut cursors, mut tombstones, mut own) = (Vec::new(), Vec::new(), 0);
            for run in above.iter().chain(part.runs()) {
                tombstones.extend(run.fragments(order)?);
                let near = |other: &&Arc<Segment>| overlap(order, other, &segment);
                let mut near: Vec<_> = run.segments().iter().filter(near).cloned().collect();
                if near.iter().any(|other| Arc::ptr_eq(other, &segment)) {
                    own = cursors.len();
                    near = vec![segment.clone()];
                }
                let run = Arc::new(Run::new(Role::Delta, near, Vec::new()));
                let (cache, piece) = (self.cache.clone(), self.settings.piece_bytes(usize::MAX));
                cursors.push(RunCursor::past_cache(run, order.clone(), cache, piece));
            }
            let inside =
                part.lower.as_ref().filter(|lower| order.compare(lower, &meta.min_key).is_gt());
            let stretch = Stretch {
                start: Some(inside.unwrap_or(&meta.min_key).clone()),
                end: part.upper.clone(),
                last: Some(meta.max_key.clone()),
            };
            // The rule is read after the partitions: no snapshot taken from here on sees what they
            // hide.
            let gc = self.compaction_rule().at(Depth::Upper);
            let mut stream = ThinStream::new(order.clone(), cursors, own, tombstones, gc, stretch);
            let mut values = Some(KnownValues::of(&self.cache, [&segment].into_iter(), |_| None));
            let mut out = |key: &[u8], seq, kind, value: &[u8]| {
                let writer = self.writer(writer, (true, true))?;
                writer.know(&mut values);
                writer.add(order, key, seq, kind, value)
            };
            while stream.step(&mut out, STEP_ENTRIES)? {
                if self.closing.load(Ordering::Acquire) {
                    return Err(Error::Closed);
                }
            }
            let mut segments = Vec::new();
            if let Some(writer) = writer.as_mut() {
                writer.cut()?;
                if writer.bytes_written() > most {
                    return Ok(false);
                }
                segments = self.files.take_segments(writer);
            }
            job.written.push(segments);
        }
        Ok(true)
    }

    /// Replaces the segment by what was written. False: the segment changed meanwhile.
    fn install_thinned(&self, job: ThinJob) -> Result<bool> {
        let mut installed = false;
        self.change(|state, store| {
            let ThinJob { keyspace, segment, parts, written, .. } = &job;
            let Some(tree) = state.version.tree(keyspace.id) else { return Ok(None) };
            let now = match &keyspace.order {
                Order::Bytewise => places(&Bytewise, tree, parts),
                Order::Custom(order) => places(order, tree, parts),
                Order::Missing(_) => None,
            };
            let Some(now) = now else { return Ok(None) };
            let present: Vec<_> = now.iter().map(|at| tree.partitions()[*at].clone()).collect();
            if !store.is_referred_by(segment, &present) {
                return Ok(None);
            }
            let mut change = Change::default();
            let mut draft = Draft::of(tree);
            for ((at, old), segments) in now.into_iter().zip(&present).zip(written) {
                let new = replaced(old, segment, segments);
                let edit = partitioning::replace_edit(old, 1, &[&new]);
                change.edit.trees.push((keyspace.id, edit));
                draft.replace(0, at, 1, vec![Arc::new(new)]);
            }
            change.trees.push((keyspace.id, Some(Arc::new(draft.finish()))));
            installed = true;
            Ok(Some(change))
        })?;
        Ok(installed)
    }
}

#[cfg(test)]
mod tests;
