//! Flush, compact, wait, sync, close and statistics on request.

use crate::admission::relief::IDLE_PATIENCE;
use crate::base::{Filter, KeyspaceId, Seq};
use crate::catalog::KeyspaceState;
use crate::commit::Pipeline;
use crate::compaction::calm::Calmness;
use crate::compaction::choice::{
    Chosen, Wanted, choose_partitions, choose_spans, is_smaller_compacted,
};
use crate::compaction::policy::TIERS_MAX;
use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::events::EventKind;
use crate::manifest::Partition;
use crate::state::State;
use crate::stats::Stats;
use crate::stats::counters::Counter;
use crate::stats::gather::Sources;
use crate::stats::measured::Remeasured;
use crate::sync::{self, Interruption, Point};
use crate::waits::Cause;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// How often what a caller compacts is tried again: after space was freed, or because it was split.
const COMPACT_TRIES: u32 = 8;

impl Core {
    /// Makes everything written so far durable: the log by a sync, `Buffered` writes by a flush.
    pub fn sync(&self) -> Result<()> {
        let pipeline = self.writable()?;
        let visible = pipeline.visible();
        // Seeded: sync does not make writes of class Buffered durable.
        bug!("db_sync_leaves_buffered_writes", return pipeline.sync(visible));
        self.flush_buffered()?;
        let wait = self.waits.begin(Cause::Sync);
        let synced = pipeline.sync(visible);
        drop(wait);
        self.note_waits("sync", "");
        synced?;
        self.record_log()
    }

    /// Flushes if memory holds writes that are not in the log.
    pub fn flush_buffered(&self) -> Result<()> {
        if self.buffered_end.load(Ordering::Acquire) > self.store.lock().log_start {
            self.flush()?;
        }
        Ok(())
    }

    /// Whether a flush has anything to do: there are entries in memory, or something in the log (if
    /// only the void of a refused write), or a change that the manifest does not record yet.
    fn has_unflushed(&self, pipeline: &Pipeline, state: &State) -> bool {
        let active = state.active();
        // Seeded: log space that refused writes took is never freed by a flush.
        bug!(
            "db_flush_keeps_the_log_of_refused_writes",
            return !active.is_empty() || self.catalog.lock().has_pending()
        );
        !active.is_empty()
            || active.start < pipeline.reserved()
            || self.catalog.lock().has_pending()
    }

    /// Flushes what is in memory, and releases the log.
    pub fn flush(&self) -> Result<()> {
        self.flush_until(Interruption::NEVER)
    }

    /// Like [`Self::flush`], as long as the caller wants to wait.
    pub fn flush_until(&self, interruption: Interruption<'_>) -> Result<()> {
        let pipeline = self.writable()?;
        let target = loop {
            let seen = self.work.done().epoch();
            let state = self.state_now();
            if !self.has_unflushed(pipeline, &state) {
                break state.active().start;
            }
            if self.seal(pipeline, &state) {
                break state.active().sealed_at().unwrap_or(state.active().start);
            }
            self.wait_for_work(seen, interruption)?;
        };
        // Seeded: flush returns before anything is durable.
        bug!("db_flush_does_not_wait", return Ok(()));
        self.wait_flushed(target, interruption)
    }

    /// Waits until every set of memtables that was sealed at or before `target` is flushed.
    fn wait_flushed(&self, target: Seq, interruption: Interruption<'_>) -> Result<()> {
        loop {
            let seen = self.work.done().epoch();
            let waits = |set: &std::sync::Arc<crate::state::memtables::MemtableSet>| {
                set.sealed_at().is_some_and(|at| at <= target)
            };
            if !self.state_now().memtable_sets.iter().any(waits) {
                return Ok(());
            }
            self.wait_for_work(seen, interruption)?;
        }
    }

    /// Waits until some background work ends; an error if that will never happen.
    pub(super) fn wait_for_work(&self, seen: u64, interruption: Interruption<'_>) -> Result<()> {
        self.check_open()?;
        self.latch.check()?;
        if let Some(error) = self.work.flush_error() {
            if !self.is_shortage_passing(&error, true)? {
                return Err(error);
            }
            // Space was freed: the flush is tried again.
            return Ok(());
        }
        self.work.notify();
        self.gate(Point::CallerWaits);
        interruption.wait_past(self.work.done(), seen)
    }

    /// Waits until no flush or compaction is due, the trees are tight, and no space is left to free,
    /// except space that iterators keep.
    pub fn wait_until_idle(&self) -> Result<()> {
        self.writable()?;
        self.files.try_again(usize::MAX);
        if self.reserve.is_tight() {
            // What ended writing, if anything did, is reported below when somebody has to wait.
            let _ = self.relieve(self.relief.gained(), true);
        }
        let written = || self.counters.total(Counter::UserBytes);
        let (before, mut tightens) = (written(), true);
        loop {
            let seen = self.work.done().epoch();
            self.state.retired.collect();
            self.rescore_expired();
            let died = self.files.values_died();
            let sealed = self.state_now().oldest_sealed().is_some();
            let drops = self.catalog.lock().has_pending_drops();
            if self.work.is_quiet() && !sealed && !drops && self.files.is_clean() {
                // Writes that come meanwhile end it, and it is not begun again.
                tightens &= before == written();
                if tightens && self.tighten_if_calm(true) == Calmness::Calm {
                    continue;
                }
                if self.state.retired.is_passing(IDLE_PATIENCE) {
                    // Calls that use an old state keep its files, but only for a short time.
                    self.give_all_back(IDLE_PATIENCE);
                    self.check_open()?;
                } else if self.files.is_clean() && died == self.files.values_died() {
                    // Asked again, because a state that ended meanwhile has left files and dead values.
                    return Ok(());
                }
                continue;
            }
            // A failed compaction is tried again, but no caller waits for it (C8).
            if let Some(error) = self.work.compaction_error() {
                return Err(error);
            }
            self.wait_for_work(seen, Interruption::NEVER)?;
        }
    }

    /// Flushes, then compacts every partition of what is wanted that can become smaller.
    pub fn compact(&self, wanted: &Wanted<'_>) -> Result<()> {
        let mut tries = 0;
        loop {
            let cut_up = self.relief.cuts.load(Ordering::Acquire);
            match self.compact_once(wanted) {
                // Relief may free hidden data without a compaction; then there may be room for one.
                Err(error @ Error::DiskFull { .. }) if tries < COMPACT_TRIES => {
                    if !self.relieve(self.relief.gained(), true)? {
                        return Err(error);
                    }
                    tries += 1;
                    continue;
                }
                compacted => compacted?,
            }
            // If partitions were cut up because they did not fit as a whole, their parts are
            // compacted too.
            if self.relief.cuts.load(Ordering::Acquire) == cut_up {
                return self.shrink_flushed_log(self.writable()?);
            }
        }
    }

    fn compact_once(&self, wanted: &Wanted<'_>) -> Result<()> {
        if wanted.keyspace.is_some_and(|keyspace| keyspace.frozen_at.is_some()) {
            return Err(Error::ReadOnly);
        }
        self.flush_until(wanted.interruption)?;
        self.files.try_again(usize::MAX);
        // What is flushed meanwhile does not count.
        let until = self.state_now().active().start;
        let old = |p: &Partition| p.deltas.iter().any(|run| run.max_seq() < until);
        let owner = |id| self.compacted_owner(id, wanted);
        (1..=TIERS_MAX).rev().try_for_each(|tier| self.drain(tier, wanted, &owner, &old))?;
        let (alone, time) = (self.snapshots.list().is_empty(), self.earliest_time());
        let gains =
            |p: &Partition| is_smaller_compacted(p, alone, time, |it| self.is_unsettled(it));
        let version = self.state_now().version.clone();
        let chosen = choose_partitions(&version, wanted, owner, gains)?;
        drop(version);
        self.force_and_wait(&chosen, wanted.interruption)?;
        // Seeded: a partition that was split meanwhile is compacted by half.
        bug!("db_compact_forgets_what_was_split", return Ok(()));
        self.drain(0, wanted, &owner, &old)?;
        chosen.filters.iter().try_for_each(Filter::check)
    }

    /// The owner of a tree if it is wanted.
    fn compacted_owner(&self, id: KeyspaceId, wanted: &Wanted<'_>) -> Option<Arc<KeyspaceState>> {
        self.catalog.lock().thawed(id).filter(|owner| wanted.includes(owner))
    }

    /// Requests work on these partitions or spans and waits for its end. If the caller ends the wait,
    /// what was not begun is not done.
    fn force_and_wait(&self, chosen: &Chosen, interruption: Interruption<'_>) -> Result<()> {
        let (keys, request) = (&chosen.keys, self.work.request(&chosen.keys, &chosen.whole));
        loop {
            let seen = self.work.done().epoch();
            if !self.work.forced_pending(keys)? {
                return Ok(());
            }
            let waited = self.wait_for_work(seen, interruption);
            if matches!(waited, Err(Error::Interrupted)) {
                self.work.take_back(request, keys);
            }
            waited?;
        }
    }

    /// Works on the wanted spans or partitions of a tier until `old` accepts none of them.
    fn drain(
        &self,
        tier: usize,
        wanted: &Wanted<'_>,
        owner: &impl Fn(KeyspaceId) -> Option<Arc<KeyspaceState>>,
        old: &impl Fn(&Partition) -> bool,
    ) -> Result<()> {
        for round in 0.. {
            let chosen = choose_spans(&self.state_now().version, tier, wanted.bounds, owner, old);
            // One may have been split meanwhile. Writers may flush what has lost its positions for ever.
            match chosen.keys.is_empty() || tier == 0 && round > COMPACT_TRIES {
                true => break,
                false => self.force_and_wait(&chosen, wanted.interruption)?,
            }
        }
        Ok(())
    }

    /// Closes the database for all handles: ends the threads, flushes, marks the end of the log.
    /// The first call does the work; the others wait and return the same result.
    pub fn close(&self) -> Result<()> {
        if self.fork.forked() {
            return Err(Error::Forked);
        }
        let mut result = self.close_result.lock();
        if let Some(result) = &*result {
            return result.clone();
        }
        let since = Instant::now();
        self.closing.store(true, Ordering::Release);
        let (log, sync) = (&*self.log_signal, &*self.sync_signal);
        for signal in [self.work.signal(), self.work.done(), &self.room, log, sync] {
            signal.notify();
        }
        self.transactions.locks.close();
        for thread in self.threads.lock().drain(..) {
            // A worker catches its panics; a thread that panicked nevertheless has no result.
            let _ = thread.join();
        }
        let closed = self.close_quietly();
        if self.pipeline.is_some() {
            self.reserve.settle(self.counters.background.manifest_bytes.load(Ordering::Relaxed));
        }
        // Calls that began before may still read; what they read they keep themselves.
        self.cache.clear();
        sync::collect();
        self.state.retired.collect();
        self.files.collect();
        self.files.close_open();
        let error = closed.as_ref().err().map(|error| error.kind().as_str());
        self.monitor.emit(EventKind::DatabaseClosed { duration: since.elapsed(), error });
        self.monitor.stop();
        *self.lock.lock() = None;
        self.closed.store(true, Ordering::Release);
        *result = Some(closed.clone());
        closed
    }

    fn close_quietly(&self) -> Result<()> {
        let Some(pipeline) = &self.pipeline else { return Ok(()) };
        // A running change of the tree ends first; later changes are refused.
        drop(self.store.lock());
        self.latch.check()?;
        // A log that does not become smaller only takes space.
        if !self.reserve.is_tight() {
            let _ = pipeline.rest();
        }
        let flushed = self.flush_everything(pipeline);
        // Even without the flush the log holds everything, so its end is marked.
        let mark = self.record_mark();
        let log = pipeline.close(&mark.encode())?;
        self.record_close(log)?;
        match flushed {
            // A full disk causes no loss: the log is kept and replayed.
            Err(Error::DiskFull { .. }) => Ok(()),
            other => other,
        }
    }

    fn flush_everything(&self, pipeline: &Pipeline) -> Result<()> {
        loop {
            while self.flush_oldest(false)? {}
            let state = self.state_now();
            if !self.has_unflushed(pipeline, &state) {
                return Ok(());
            }
            self.seal(pipeline, &state);
        }
    }

    /// What the database knows about itself; empty in a forked child (R26).
    pub fn stats(&self, branch: KeyspaceId) -> Stats {
        self.stats_of(branch, usize::MAX, &mut Remeasured::default())
    }

    /// Like [`Self::stats`], with the shapes of at most so many trees; `remeasured`: some numbers
    /// may be those of an earlier call.
    pub(super) fn stats_of(
        &self,
        branch: KeyspaceId,
        trees: usize,
        remeasured: &mut Remeasured,
    ) -> Stats {
        if self.is_forked() {
            return Stats::default();
        }
        let (space, described) = (self.space.lock().latest(), self.described_bytes());
        let sources = Sources {
            counters: &self.counters,
            waits: &self.waits,
            pacer: &self.pacer,
            pipeline: self.pipeline.as_ref(),
            state: &self.state_now(),
            retired: &self.state.retired,
            snapshots: &self.snapshots,
            transactions: &self.transactions,
            catalog: &self.catalog,
            cache: &self.cache,
            files: &self.files,
            pool: &self.pool,
            work: &self.work,
            space,
            settings: &self.settings,
            described,
            now: self.now(),
            slowest: &self.slowest,
        };
        let measured = remeasured.look(|| sources.measure(branch, trees));
        sources.gather(measured)
    }
}
