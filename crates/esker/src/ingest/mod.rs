//! Ingestion: entries in key order become run segments without log or memtable, and all of them become
//! visible with one edit.
//!
//! 1. Entries of each keyspace go into segments of their own ([`output`]). No state refers to their files
//!    before the commit; an open removes what a crash leaves.
//! 2. The position of the entries is taken from the log at the commit, by [`Pipeline::claim`]: older
//!    snapshots do not see them, every earlier write is older and every later one newer (S18). The segments
//!    are written before it is known, so the manifest states it for each (`SegmentMeta::ingested`).
//! 3. What memtables hold lies above the tree (invariant P of `docs/tiers.md`). So nothing older may be in
//!    memtables between the first and the last key of what is ingested to a keyspace: it is flushed first.
//! 4. The files are synced before the edit, and so is the log up to and with the position: no later write
//!    gets the same or an older one after a crash.
//! 5. Transactions learn of the ranges before anything is published (`txn::ingested`).
//!
//! [`Pipeline::claim`]: crate::commit::Pipeline::claim

mod load;
mod output;

use self::load::Load;
use self::output::Output;
use crate::base::{Bytewise, KeyspaceId, Kind, Seq};
use crate::catalog::{Catalog, KeyspaceState};
use crate::compaction::flush_slices::Slice;
use crate::compaction::queue::PartitionKey;
use crate::compaction::tiers;
use crate::db::{Change, Core};
use crate::error::{Error, Result};
use crate::manifest::{Partition, Store};
use crate::run::{Role, Run};
use crate::txn::ingested::Ingested;
use crate::txn::validate::is_written;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// After this many attempts before which others wrote to the same keys, writers wait.
const TRIES: u32 = 3;

/// Entries on their way into the tree.
#[derive(Debug, Default)]
pub struct Ingestor {
    loads: BTreeMap<KeyspaceId, Load>,
    output: Output,
    failure: Option<Error>,
}

/// Stops writers for as long as it lives.
struct Hold<'c>(&'c Core);

impl<'c> Hold<'c> {
    fn new(core: &'c Core) -> Self {
        core.pacer.hold(true);
        core.update_pace();
        Self(core)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.pacer.hold(false);
        self.0.update_pace();
    }
}

impl Ingestor {
    /// Adds an entry, whose key must be greater than the last one of its keyspace. After an error other
    /// than of this entry's key or size, nothing more is accepted.
    pub fn add(
        &mut self,
        core: &Core,
        keyspace: &Arc<KeyspaceState>,
        key: &[u8],
        (kind, stored): (Kind, &[u8]),
    ) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        core.writable()?;
        core.check_value_len(stored.len() as u64)?;
        if core.reserve.is_tight() {
            core.admit_while_tight(false, true)?;
        }
        let load = match self.loads.get(&keyspace.id) {
            Some(load) => load,
            None => {
                check_takes(keyspace)?;
                self.loads.entry(keyspace.id).or_insert_with(|| Load::new(keyspace.clone()))
            }
        };
        load.check_order(key)?;
        let place = (keyspace.id, key);
        let added = self.output.add(core, &mut self.loads, place, (kind, stored));
        added.inspect_err(|error| self.failure = Some(error.clone()))
    }

    /// Makes all entries durable and visible. After an error none is there, unless the database is
    /// poisoned; then the next open decides.
    pub fn commit(&mut self, core: &Core) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        core.writable()?;
        if self.loads.is_empty() {
            return Ok(());
        }
        self.output.finish(core, &mut self.loads)?;
        let (mut tries, mut hold) = (0, None);
        while !self.try_commit(core)? {
            tries += 1;
            if tries == TRIES {
                hold = Some(Hold::new(core));
            }
            core.flush()?;
        }
        drop(hold);
        let segments = self.loads.values().flat_map(Load::metas);
        core.reserve.cover_unit(segments.map(|meta| meta.len).max().unwrap_or(0));
        // The files belong to the tree now.
        self.output = Output::default();
        self.loads.clear();
        core.update_pressure();
        core.work.notify();
        Ok(())
    }

    /// False: memtables have to be flushed first, and nothing was done.
    fn try_commit(&self, core: &Core) -> Result<bool> {
        let pipeline = core.writable()?;
        let mut store = core.store.lock();
        // Close waits for the store, so nothing is changed after it.
        core.writable()?;
        core.latch.check()?;
        let known = {
            let catalog = core.catalog.lock();
            self.loads.values().all(|load| is_known(&catalog, &load.keyspace))
        };
        // Looked at twice, so that most attempts that fail leave no void in the log.
        if !known || self.must_flush(core, pipeline.visible()) {
            return Ok(false);
        }
        pipeline.claim(|seq| {
            if let Some(gone) = self.loads.values().find(|load| load.keyspace.dropped_before(seq)) {
                return Err(gone.keyspace.dropped_error());
            }
            if self.must_flush(core, seq) {
                return Ok(false);
            }
            self.install(core, &mut store, seq).map(|()| true)
        })
    }

    /// Whether memtables hold something older than `seq` between the keys that are ingested.
    fn must_flush(&self, core: &Core, seq: Seq) -> bool {
        // Seeded: what was written before an ingestion hides what is ingested.
        bug!("ingest_memtables_not_flushed", return false);
        let state = core.state_now();
        self.loads.values().any(|load| {
            let bounds = load.bounds();
            let written =
                |set: &Arc<_>| is_written(set, load.keyspace.id_in(set.start), &bounds, seq);
            state.memtable_sets.iter().any(|set| set.start < seq && written(set))
        })
    }

    /// Puts the entries into the trees, with this sequence number.
    fn install(&self, core: &Core, store: &mut Store, seq: Seq) -> Result<()> {
        let version = core.state_now().version.clone();
        let mut change = Change::default();
        let mut surplus: Vec<PartitionKey> = Vec::new();
        for load in self.loads.values() {
            let id = load.keyspace.id;
            let tree = version.tree(id).cloned().unwrap_or_default();
            let busy = |tier: usize, p: &Partition| core.work.is_busy(id, tier, p.lower.as_deref());
            let rules = tiers::Rules { busy: &busy, grows: true, settings: &core.settings };
            let slice = slice_of(core, load, seq);
            // A slice that is for the partitions, and has no clear path to them, goes to the top.
            let rows = tiers::with_flush(&Bytewise, &tree, (0, &[slice]), rules);
            let rows = rows.ok_or_else(|| Error::invalid("a run was not accepted by its tree"))?;
            surplus.extend(rows.surplus(id));
            change.put_rows(id, rows);
        }
        // Compactions of the new trees wait for the publication (`Core::compaction_rule`).
        core.ingested_end.store(seq + 1, Ordering::Release);
        core.make_change(store, change, ())?;
        core.work.force(surplus);
        core.transactions.ingested(self.loads.values().map(|load| {
            let ends = load.metas().map(|meta| (meta.min_key.clone(), meta.max_key.clone()));
            Ingested::new(seq, load.keyspace.id, ends)
        }));
        Ok(())
    }

    /// Removes the files of what was not committed.
    pub fn abandon(&mut self, core: &Core) {
        if core.is_forked() {
            return std::mem::forget(std::mem::take(&mut self.output));
        }
        // Close waits for the store. After it the next open removes the files, and it may give their
        // numbers to others.
        let _store = core.store.lock();
        if core.check_open().is_err() || core.latch.get().is_some() {
            return;
        }
        self.output.abandon(core);
    }
}

/// Refuses keyspaces to which nothing can be ingested.
fn check_takes(keyspace: &KeyspaceState) -> Result<()> {
    if keyspace.frozen_at.is_some() {
        return Err(Error::ReadOnly);
    }
    if keyspace.is_dropped() {
        return Err(keyspace.dropped_error());
    }
    if keyspace.has_custom_comparator() {
        let what = "a keyspace with a custom comparator takes no ingestion: write batches";
        return Err(Error::invalid(what));
    }
    Ok(())
}

/// Whether the manifest knows a keyspace, so that it can refer to its tree.
fn is_known(catalog: &Catalog, keyspace: &KeyspaceState) -> bool {
    !catalog.is_new(keyspace.id)
}

/// The run of a load, as a slice for all partitions. It keeps what is below: older entries may lie there.
fn slice_of(core: &Core, load: &Load, seq: Seq) -> Slice {
    let run = Run::new(Role::Delta, load.segments_at(core, seq), Vec::new());
    Slice { lower: None, upper: None, run: Arc::new(run), hides_below: 0, bottom: false }
}
