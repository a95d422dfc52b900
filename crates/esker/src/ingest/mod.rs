//! Ingestion: entries in key order become run segments without log or memtable, and all of them become
//! visible with one edit.
//!
//! 1. Entries of each keyspace go into segments of their own ([`output`]). No state refers to their files
//!    before the commit; an open removes what a crash leaves.
//! 2. The position of the entries is taken from the log at the commit, by [`Pipeline::claim`]: older
//!    snapshots do not see them, every earlier write is older and every later one newer (S18). The segments
//!    are written before it is known, so the manifest states it for each (`SegmentMeta::ingested`).
//! 3. What memtables hold lies above the tree (invariant P of `docs/tiers.md`). So nothing older may be in
//!    memtables between the first and the last key of what is ingested to a keyspace, nor where it removes
//!    ranges: it is flushed first.
//! 4. The files are synced before the edit, and so is the log up to and with the position: no later write
//!    gets the same or an older one after a crash.
//! 5. Transactions learn of the ranges before anything is published (`txn::ingested`).
//! 6. Range tombstones have the position of the entries beside them, so they hide only what was there
//!    before.
//! 7. No custom comparator is called while the position is reserved and not published (R15). What needs one
//!    is done before, for the position that comes next; if somebody else gets that, it is done again. The
//!    lock of such writers is held meanwhile.
//!
//! [`Pipeline::claim`]: crate::commit::Pipeline::claim

mod load;
mod output;

use self::load::Load;
use self::output::{Loads, Output};
use crate::base::{Bytewise, Kind, SEQ_MAX, Seq};
use crate::catalog::{Catalog, KeyspaceState, Order, missing_order};
use crate::commit::Pipeline;
use crate::compaction::flush_slices::Slice;
use crate::compaction::queue::PartitionKey;
use crate::compaction::tiers;
use crate::db::{Change, Core};
use crate::error::{Error, Result};
use crate::events::EventKind;
use crate::manifest::{Partition, Store};
use crate::run::{RunWriter, Source};
use crate::sync::Point;
use crate::txn::ingested::HalfOpen;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// After this many attempts before which others wrote to the same keys, writers wait.
const TRIES: u32 = 3;
/// What a removed range takes in memory beside its bounds.
const RANGE_BYTES: usize = 128;

/// Runs code with the order of a keyspace; what a comparator that has panicked made of it does not count.
macro_rules! in_order {
    ($core:expr, $keyspace:expr, $order:ident => $do:expr) => {
        match &$keyspace.order {
            Order::Bytewise => {
                let $order = &Bytewise;
                $do
            }
            Order::Custom($order) => {
                let done = $do;
                $core.trust($order).and(done)
            }
            Order::Missing(name) => Err(missing_order(&$keyspace.name, name)),
        }
    };
}

/// Entries on their way into the tree.
#[derive(Debug)]
pub struct Ingestor {
    begun: Instant,
    loads: Loads,
    output: Output,
    /// Bytes in memory of the ranges that are removed.
    removed_bytes: u64,
    failure: Option<Error>,
}

/// How an attempt to commit ended.
enum Attempt {
    Done,
    /// Memtables have to be flushed first, and nothing was done.
    MustFlush,
    /// Another write got the position for which everything was ready, and nothing was done.
    Late,
}

/// What a commit changes, at its position.
struct Plan {
    seq: Seq,
    change: Change,
    surplus: Vec<PartitionKey>,
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

impl Default for Ingestor {
    fn default() -> Self {
        let (loads, output) = (Loads::new(), Output::default());
        Self { begun: Instant::now(), loads, output, removed_bytes: 0, failure: None }
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
        if let Err(error) = core.settings.check_value_len(stored.len() as u64) {
            // What a budget has no room for goes in pieces; an operand cannot.
            if kind.separated().is_none() {
                return Err(error);
            }
            let mut source = stored;
            return self.add_from(core, keyspace, (key, kind), &mut source).map(drop);
        }
        self.check_accepts(core)?;
        in_order!(core, keyspace, order => self.load(keyspace)?.check_order(order, key))?;
        let added = in_order!(core, keyspace, order => {
            let add = |writer: &mut RunWriter| writer.add(order, key, 0, kind, stored);
            self.output.add(core, &mut self.loads, (keyspace.id, key), add)
        });
        added.inspect_err(|error| self.failure = Some(error.clone()))
    }

    /// As [`Self::add`], with a stored value that comes from `source` in pieces; returns its bytes. After a
    /// failure of the source the ingestion goes on without the entry.
    pub fn add_from(
        &mut self,
        core: &Core,
        keyspace: &Arc<KeyspaceState>,
        (key, kind): (&[u8], Kind),
        source: &mut impl Source,
    ) -> Result<u64> {
        self.check_accepts(core)?;
        in_order!(core, keyspace, order => self.load(keyspace)?.check_order(order, key))?;
        let added = in_order!(core, keyspace, order => {
            let add = |writer: &mut RunWriter| writer.add_from(order, key, (0, kind), source);
            self.output.add(core, &mut self.loads, (keyspace.id, key), add)
        });
        let went_on = |error: &Error| matches!(error, Error::ValueTooLarge { .. });
        added.inspect_err(|error| {
            if !source.has_failed() && !went_on(error) {
                self.failure = Some(error.clone());
            }
        })
    }

    /// Removes everything in a range that was written before the commit. Entries of the ingestion stay.
    pub fn remove_range(
        &mut self,
        core: &Core,
        keyspace: &Arc<KeyspaceState>,
        range: HalfOpen,
    ) -> Result<()> {
        self.check_accepts(core)?;
        let bounds = [&range.0, &range.1].into_iter().flatten().map(Vec::len).sum::<usize>();
        let len = self.removed_with(core, (bounds + RANGE_BYTES) as u64)?;
        self.load(keyspace)?.removed.push(range);
        self.removed_bytes = len;
        Ok(())
    }

    /// Bytes of removed ranges with so many more, if they may become so many.
    fn removed_with(&self, core: &Core, more: u64) -> Result<u64> {
        let (len, max) = (self.removed_bytes + more, core.settings.batch_bytes_max);
        if len > max { Err(Error::BatchTooLarge { len, max }) } else { Ok(len) }
    }

    fn check_accepts(&self, core: &Core) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        core.writable()?;
        if core.reserve.is_tight() {
            core.admit_while_tight(false, true)?;
        }
        Ok(())
    }

    /// What is ingested to a keyspace.
    fn load(&mut self, keyspace: &Arc<KeyspaceState>) -> Result<&mut Load> {
        match self.loads.entry(keyspace.id) {
            Entry::Occupied(load) => Ok(load.into_mut()),
            Entry::Vacant(place) => {
                check_takes(keyspace)?;
                Ok(place.insert(Load::new(keyspace.clone())))
            }
        }
    }

    /// Makes what was added durable, but not visible.
    pub fn sync(&mut self, core: &Core) -> Result<()> {
        self.check_accepts(core)?;
        let synced = self.output.finish(core, &mut self.loads);
        synced.inspect_err(|error| self.failure = Some(error.clone()))
    }

    /// Takes over everything of another ingestion, if that lies between the entries of this one.
    pub fn join(&mut self, core: &Core, mut other: Self) -> Result<()> {
        let joined = self.try_join(core, &mut other);
        other.abandon(core);
        joined
    }

    fn try_join(&mut self, core: &Core, other: &mut Self) -> Result<()> {
        self.check_accepts(core)?;
        other.sync(core)?;
        for (id, load) in &other.loads {
            let Some(own) = self.loads.get(id) else { continue };
            in_order!(core, own.keyspace, order => own.check_apart(order, load))?;
        }
        let len = self.removed_with(core, other.removed_bytes)?;
        for id in other.loads.keys() {
            // What follows lies behind the keys that come between.
            let cut = self.output.cut(&mut self.loads, *id);
            cut.inspect_err(|error| self.failure = Some(error.clone()))?;
        }
        for (id, load) in std::mem::take(&mut other.loads) {
            match self.loads.entry(id) {
                Entry::Vacant(place) => drop(place.insert(load)),
                Entry::Occupied(mut own) => {
                    let keyspace = load.keyspace.clone();
                    in_order!(core, keyspace, order => {
                        own.get_mut().join(order, load);
                        Ok(())
                    })?;
                }
            }
        }
        self.removed_bytes = len;
        self.output.join(&mut other.output);
        Ok(())
    }

    /// Makes everything durable and visible. After an error nothing of it is there, unless the database is
    /// poisoned; then the next open decides.
    pub fn commit(&mut self, core: &Core) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        core.writable()?;
        self.finish(core)?;
        if self.loads.is_empty() {
            return Ok(());
        }
        let (mut flushes, mut hold) = (0, None);
        loop {
            core.gate(Point::IngestionSynced);
            match self.try_commit(core)? {
                Attempt::Done => break,
                Attempt::MustFlush => {
                    flushes += 1;
                    if flushes == TRIES {
                        hold.get_or_insert_with(|| Hold::new(core));
                    }
                    core.flush()?;
                }
                Attempt::Late => drop(hold.get_or_insert_with(|| Hold::new(core))),
            }
        }
        drop(hold);
        let segments = self.loads.values().flat_map(Load::metas);
        core.reserve.cover_unit(segments.map(|meta| meta.len).max().unwrap_or(0));
        self.tell(core);
        // The files belong to the tree now.
        self.output = Output::default();
        self.loads.clear();
        core.update_pressure();
        core.work.notify();
        Ok(())
    }

    /// Writes what is left, and makes all of it durable.
    fn finish(&mut self, core: &Core) -> Result<()> {
        let ids: Vec<_> = self.loads.keys().copied().collect();
        for id in ids {
            self.output.cut(&mut self.loads, id)?;
            let Some(load) = self.loads.get_mut(&id) else { continue };
            let keyspace = load.keyspace.clone();
            in_order!(core, keyspace, order => {
                load.sort(order);
                match load.removed.is_empty() {
                    true => Ok(()),
                    false => self.output.add_tombstones(core, &mut self.loads, order, id),
                }
            })?;
        }
        self.output.finish(core, &mut self.loads)?;
        self.loads.retain(|_, load| !load.is_empty());
        Ok(())
    }

    fn try_commit(&self, core: &Core) -> Result<Attempt> {
        let pipeline = core.writable()?;
        let custom = self.loads.values().any(|load| load.keyspace.has_custom_comparator());
        // Writers to such keyspaces hold it until everything is applied.
        // Seeded: what is written to them while an ingestion is prepared gets older than it later.
        let placed = custom && !bug!("ingest_custom_writers_go_on");
        let _placing = placed.then(|| core.placing.lock());
        let mut store = core.store.lock();
        // Close waits for the store, so nothing is changed after it.
        core.writable()?;
        core.latch.check()?;
        let known = {
            let catalog = core.catalog.lock();
            self.loads.values().all(|load| is_known(&catalog, &load.keyspace))
        };
        // Looked at twice, so that most attempts that fail leave no void in the log.
        if !known
            || self.must_flush(core, (custom, SEQ_MAX))?
            || self.must_flush(core, (false, pipeline.visible()))?
        {
            return Ok(Attempt::MustFlush);
        }
        let ready = if custom { Some(self.plan(core, pipeline.reserved())?) } else { None };
        core.gate(Point::IngestionLooked);
        self.claim(core, pipeline, &mut store, ready)
    }

    fn claim(
        &self,
        core: &Core,
        pipeline: &Pipeline,
        store: &mut Store,
        ready: Option<Plan>,
    ) -> Result<Attempt> {
        pipeline.claim(|seq| {
            if let Some(gone) = self.loads.values().find(|load| load.keyspace.dropped_before(seq)) {
                return Err(gone.keyspace.dropped_error());
            }
            let is_late = ready.as_ref().is_some_and(|plan| plan.seq != seq);
            // Seeded: snapshots that are newer than the position see what is ingested later.
            if is_late && !bug!("ingest_position_of_another_write") {
                return Ok(Attempt::Late);
            }
            // Seeded: what is written while an ingestion commits hides what is ingested later.
            let looks = !bug!("ingest_memtables_looked_at_once");
            if looks && self.must_flush(core, (false, seq))? {
                return Ok(Attempt::MustFlush);
            }
            let plan = ready.map_or_else(|| self.plan(core, seq), Ok)?;
            self.install(core, store, plan).map(|()| Attempt::Done)
        })
    }

    /// Whether memtables hold something older than `seq` in a keyspace with a `custom` comparator, or in one
    /// of the others.
    fn must_flush(&self, core: &Core, (custom, seq): (bool, Seq)) -> Result<bool> {
        // Seeded: what was written before an ingestion hides what is ingested.
        bug!("ingest_memtables_not_flushed", return Ok(false));
        let state = core.state_now();
        for load in self.loads.values() {
            if load.keyspace.has_custom_comparator() == custom
                && in_order!(core, load.keyspace, order => {
                    Ok(load.is_over_written(order, &state, seq))
                })?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The trees with what is ingested in them, at a position.
    fn plan(&self, core: &Core, seq: Seq) -> Result<Plan> {
        let version = core.state_now().version.clone();
        let (mut change, mut surplus) = (Change::default(), Vec::new());
        for load in self.loads.values() {
            let id = load.keyspace.id;
            let tree = version.tree(id).cloned().unwrap_or_default();
            let busy = |tier: usize, p: &Partition| core.work.is_busy(id, tier, p.lower.as_deref());
            let rules = tiers::Rules { busy: &busy, grows: true, settings: &core.settings };
            let slice = slice_of(core, load, seq);
            // A slice that is for the partitions, and has no clear path to them, goes to the top.
            let rows = in_order!(core, load.keyspace, order => {
                let rows = tiers::with_flush(order, &tree, (0, &[slice]), rules);
                rows.ok_or_else(|| Error::invalid("a run was not accepted by its tree"))
            })?;
            surplus.extend(rows.surplus(id));
            change.put_rows(id, rows);
        }
        Ok(Plan { seq, change, surplus })
    }

    fn install(&self, core: &Core, store: &mut Store, plan: Plan) -> Result<()> {
        let Plan { seq, change, surplus } = plan;
        // Compactions of the new trees wait for the publication (`Core::compaction_rule`).
        // Seeded: a compaction drops what a snapshot of before the publication sees.
        if !bug!("ingest_compactions_do_not_wait") {
            core.ingested_end.store(seq + 1, Ordering::Release);
        }
        core.make_change(store, change, ())?;
        core.gate(Point::IngestionRecorded);
        core.work.force(surplus);
        core.transactions.ingested(self.loads.values().map(|load| load.ingested_at(seq)));
        Ok(())
    }

    /// Counts and reports what was ingested.
    fn tell(&self, core: &Core) {
        let metas = || self.loads.values().flat_map(Load::metas);
        let entries = metas().map(|meta| meta.entries).sum();
        let user_bytes = metas().map(|meta| meta.raw_bytes).sum();
        let counters = &core.counters.background;
        for (counter, count) in [
            (&counters.ingestions, 1),
            (&counters.entries_ingested, entries),
            (&counters.bytes_ingested, user_bytes),
            (&counters.ingestion_bytes, self.output.bytes),
        ] {
            counter.fetch_add(count, Ordering::Relaxed);
        }
        core.monitor.emit(EventKind::Ingestion {
            keyspaces: self.loads.len() as u64,
            entries,
            bytes: self.output.bytes,
            segments: metas().count() as u64,
            duration: self.begun.elapsed(),
        });
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
        // Seeded: the files of an ingestion that failed stay until the next open.
        bug!("ingest_failed_files_stay", return);
        self.output.abandon(core);
    }
}

/// Refuses keyspaces to which nothing can be ingested.
fn check_takes(keyspace: &KeyspaceState) -> Result<()> {
    if keyspace.frozen_at.is_some() {
        return Err(Error::ReadOnly);
    }
    keyspace.check_there()?;
    keyspace.missing_comparator().map_or(Ok(()), Err)
}

/// Whether the manifest knows a keyspace, so that it can refer to its tree.
fn is_known(catalog: &Catalog, keyspace: &KeyspaceState) -> bool {
    !catalog.is_new(keyspace.id)
}

/// The run of a load, as a slice for all partitions. It keeps what is below: older entries may lie there.
fn slice_of(core: &Core, load: &Load, seq: Seq) -> Slice {
    let run = Arc::new(load.run_at(core, seq));
    Slice { lower: None, upper: None, run, hides_below: 0, bottom: false }
}
