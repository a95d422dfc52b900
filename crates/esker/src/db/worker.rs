//! The threads of a database: one that flushes, workers that compact, and two threads for the log.
//!
//! A database starts no other threads, but those on which workers merge (`Merger`). Flushes have a
//! thread of their own, so that neither the steps of a compaction nor the sync of its output delays them;
//! a single worker flushes and compacts in turns instead. One log thread prepares log files ahead of the writers. The
//! other syncs what has waited for long, and records how far the log is synced. There are two
//! because a sync may take seconds, and writers need the next log file meanwhile. They are not
//! workers, so a slow disk under the log does not delay the tree, and the reverse (R27).

use crate::base::{KeyspaceId, Millis};
use crate::commit::Resting;
use crate::compaction::calm::Calmness;
use crate::compaction::looks::{LOOK_AGAIN, expiry_wait};
use crate::compaction::queue::PartitionKey;
use crate::db::core::Core;
use crate::db::output::Merger;
use crate::db::watch::Watching;
use crate::directory::files::TRIED_AGAIN;
use crate::error::{Error, Result};
use crate::fs::lower_priority;
use crate::manifest::{Moved, Tree};
use crate::sync::{Point, contain, pin, spawn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a worker checks again whether readers have left their epoch.
const RETIRE_TRIES: u32 = 8;
/// How long a worker waits before it retries work that failed for a temporary reason.
const RETRY_AFTER: Duration = Duration::from_millis(250);

impl Core {
    /// Starts the threads; a read-only database has none.
    pub(super) fn start_threads(self: &Arc<Self>) -> Result<()> {
        self.monitor.start(&self.fs, &self.path, Box::new(Watching::new(self.clone())))?;
        if self.pipeline.is_none() {
            return Ok(());
        }
        let apart = self.settings.flushes_apart();
        if let Some(gates) = &self.gates {
            gates.begin(self.settings.workers + usize::from(apart), self.work.shared_signal());
        }
        let mut threads = self.threads.lock();
        if apart {
            let (core, work) = (self.clone(), self.work.shared_signal());
            self.pool.wake_by(move || work.notify());
            threads.push(spawn("esker-flush", &self.path, move || core.run_flusher())?);
        }
        for number in 0..self.settings.workers {
            let mut merger = Merger::none();
            if apart {
                let (core, name) = (self.clone(), format!("esker-merge-{number}"));
                let (apart, thread) = Merger::start(core, &name, &self.path, lower_priority)?;
                threads.push(thread);
                merger = apart;
            }
            let core = self.clone();
            threads.push(spawn(&format!("esker-worker-{number}"), &self.path, move || {
                // Seeded: whoever needs a lock of a worker waits for a thread of low priority.
                bug!("db_workers_have_low_priority", lower_priority());
                core.run_worker(&merger);
            })?);
        }
        let core = self.clone();
        threads.push(spawn("esker-log", &self.path, move || core.run_log())?);
        let core = self.clone();
        threads.push(spawn("esker-sync", &self.path, move || core.run_sync())?);
        Ok(())
    }

    /// Flushes, merges pointers to the entries of memtables, and makes memory ready for the cache.
    fn run_flusher(&self) {
        let mut tries = 0;
        while let Some(seen) = self.next_round() {
            let busy = (!self.flushes_wait() && self.flush_if_due())
                || self.merge_tables()
                || self.pool.make_ready();
            // The memory of what was flushed is what stopped writers wait for.
            let retired = self.state.retired.collect();
            tries = if retired && !busy { tries + 1 } else { 0 };
            if !busy && !self.rests() && !self.wait_to_retry(seen, retired && tries <= RETIRE_TRIES)
            {
                self.work.signal().wait_past_within(seen, self.merge_wait());
            }
        }
    }

    /// How long writes must pause for pointers to entries of memtables to be merged, if some wait for that.
    fn merge_wait(&self) -> Option<Duration> {
        self.state.load(&pin()).active().bytewise().waits_for_pause()
    }

    /// Whether the next flush waits for the end of a compaction, because no further run should lie over some
    /// key: that bounds the runs however fast writers are (S15). Where none is under way or can begin,
    /// because of damage or a full device, none can help, and nobody waits.
    fn flushes_wait(&self) -> bool {
        // Seeded: runs pile up where writers are faster than compactions.
        bug!("db_flushes_go_past_the_bound", return false);
        self.pacer.runs_are_full() && self.work.takes_runs_away()
    }

    /// The epoch of the signal at which a background thread looks for work; `None`: it ends.
    fn next_round(&self) -> Option<u64> {
        loop {
            let seen = self.work.signal().epoch();
            if self.closing.load(Ordering::Acquire) {
                return None;
            }
            if self.latch.get().is_none() {
                return Some(seen);
            }
            // Nothing can be written until the database is reopened (C2).
            self.work.done().notify();
            self.work.signal().wait_past(seen);
        }
    }

    /// Whether a test made the thread rest.
    fn rests(&self) -> bool {
        self.gates.as_ref().is_some_and(|gates| gates.rest())
    }

    /// Waits a while if something has to be tried again, or if readers will be gone soon. Returns
    /// whether it did.
    fn wait_to_retry(&self, seen: u64, readers: bool) -> bool {
        let retry = self.work.take_retry();
        if !retry && !readers {
            return false;
        }
        let woken = self.work.signal().wait_past_timeout(seen, RETRY_AFTER);
        if retry && !woken {
            // What failed may be another thread's work.
            self.work.notify();
        }
        true
    }

    fn run_worker(&self, merger: &Merger) {
        let apart = self.settings.flushes_apart();
        let mut tries = 0;
        while let Some(seen) = self.next_round() {
            let relieved = self.relieve_if_asked();
            let flushed = !apart && (self.flush_if_due() || self.merge_tables()) || relieved;
            // A single worker flushes first, also between the steps of its compactions. If these are late and
            // slow writers, one follows each flush; otherwise it would never compact.
            let may_compact = !flushed || self.pacer.compactions_are_late();
            let busy = (may_compact && self.compact_if_due(merger)) || flushed;
            // Also between two jobs: under load another is always due, and memory would only grow.
            let retired = self.state.retired.collect();
            let collected = self.give_space_back();
            if collected {
                self.note_gain();
            }
            if self.regain() || collected {
                self.work.done().notify();
            }
            if busy || collected {
                tries = 0;
                continue;
            }
            if self.rests() {
                continue;
            }
            // A reader inside an epoch ends soon, without a signal; an iterator gives one.
            tries = if retired { tries + 1 } else { 0 };
            if self.wait_to_retry(seen, retired && tries <= RETIRE_TRIES) {
                continue;
            }
            if self.rescore_expired() {
                tries = 0;
            } else {
                self.wait_for_work_or_calm(seen);
            }
        }
    }

    /// What an idle worker does: it waits until there is work, or until it has to look for some.
    fn wait_for_work_or_calm(&self, seen: u64) {
        let calm = match self.tighten_if_calm(false) {
            Calmness::Calm => return,
            Calmness::After(left) => Some(left),
            Calmness::Tight => None,
        };
        self.govern();
        let rest = match self.rest_if_calm() {
            Resting::Now => return,
            Resting::After(left) => Some(left),
            Resting::Nothing => None,
        };
        let again = self.wait_for_looking_again();
        let merge = (!self.settings.flushes_apart()).then(|| self.merge_wait()).flatten();
        let wait = calm.into_iter().chain(rest).chain(again).chain(merge).min();
        if !self.work.signal().wait_past_within(seen, wait) && again == wait {
            self.files.try_again(TRIED_AGAIN);
        }
    }

    /// Frees space to which nothing refers. Returns whether this thread did.
    fn give_space_back(&self) -> bool {
        if !self.files.has_garbage() {
            return false;
        }
        self.gate(Point::SpaceReturns);
        self.files.collect()
    }

    /// Flushes the oldest sealed memtables if there are any and no other thread does. Returns
    /// whether it did something.
    pub(super) fn flush_if_due(&self) -> bool {
        // Nothing can be installed after a failure, so nothing is written (R8).
        if self.latch.check().is_err() {
            return false;
        }
        let mut due = self.state_now().oldest_sealed().is_some();
        if !due && self.catalog.lock().has_pending_drops() {
            // The next flush records a drop in the manifest and so frees its space.
            let state = self.state_now();
            due = self.pipeline.as_ref().is_some_and(|pipeline| self.seal(pipeline, &state));
        }
        if !due || !self.work.begin_flush() {
            return false;
        }
        self.govern();
        let _running = self.pacer.share().flush();
        self.gate(Point::FlushBegins);
        let result = contain(|| self.flush_oldest(false));
        let done = matches!(result, Ok(true));
        let failure = result.inspect_err(|error| self.monitor.failed("flush", error)).err();
        if done {
            self.note_gain();
        }
        // Who waits until all is quiet finds no version in use here that keeps files.
        self.update_pressure();
        self.work.end_flush(failure.map(|error| self.name_holders(error)));
        self.regain();
        // Stopped writers retry in any case: they may have a memtable to seal, or need the error
        // that makes flushes fail.
        self.room.notify();
        done
    }

    /// Runs the most urgent compaction. Returns whether it did something.
    fn compact_if_due(&self, merger: &Merger) -> bool {
        if self.latch.check().is_err() {
            return false;
        }
        let share = self.pacer.share();
        let Some(running) = share.compaction(&self.work.shared_signal()) else { return false };
        let calm = self.is_calm();
        // Changes of the tree check for busy partitions and are published under this lock. So a
        // compaction that begins sees every change that did not see the compaction.
        let keys = {
            let _one_at_a_time = self.store.lock();
            self.work.take_compactions(calm)
        };
        if keys.is_empty() {
            return running.found_nothing();
        }
        self.gate(Point::CompactionBegins);
        let run = || match keys.iter().any(|key| key.tier > 0) {
            true => self.push_spans(&keys, merger),
            false => self.compact_partitions(&keys, merger),
        };
        let result = contain(run)
            .or_else(|error| self.cut_up_for_room(&keys, error))
            .map_err(|error| self.name_holders(error));
        let yielded = self.work.yield_to_flush().is_err();
        if let Err(error) = &result {
            if !matches!(error, Error::Closed) {
                self.monitor.failed("compaction", error);
            }
            // The compaction of these partitions is still due.
            self.rescore_partitions(&keys);
        }
        if result.is_ok() {
            self.note_gain();
        }
        self.work.end_compactions(&keys, result.as_ref().err());
        if self.settings.flushes_apart() {
            // A flush may have waited for it.
            self.work.notify();
        }
        if let Err(error) = &result {
            self.after_failed_compactions(&keys, error);
        }
        let thinned =
            matches!(&result, Err(Error::DiskFull { .. })) && !yielded && self.thin_for(&keys);
        result.is_ok() || yielded || thinned
    }

    /// Handles events during a failed compaction that `end_compactions` does not see: keyspaces
    /// were removed, so their compactions are not retried, or the missing comparator was
    /// registered.
    fn after_failed_compactions(&self, keys: &[PartitionKey], error: &Error) {
        let gone = |key: &&PartitionKey| self.state_now().version.tree(key.keyspace).is_none();
        keys.iter().filter(gone).for_each(|key| self.rescore(key.keyspace, None));
        if matches!(error, Error::ComparatorMissing { .. }) {
            let ids = keys.iter().map(|key| key.keyspace);
            let usable = self.catalog.lock().with_known_order(ids);
            self.work.comparator_arrived(&usable);
        }
        self.update_pressure();
    }

    /// Recomputes how urgent the compactions of a tree are; `None`: the tree is gone.
    pub(super) fn rescore(&self, id: KeyspaceId, tree: Option<&Tree>) {
        self.work.refresh(id, tree, &self.settings, self.earliest_time());
    }

    /// Like [`Self::rescore`], for the partitions that a change has moved.
    pub(super) fn rescore_moved(&self, id: KeyspaceId, tree: &Tree, moved: &Moved) {
        self.work.moved(id, (tree, moved), &self.settings, self.earliest_time());
    }

    /// The time of the earliest reader: what has expired by then has expired for every reader.
    pub(super) fn earliest_time(&self) -> Millis {
        self.snapshots.earliest_time(self.clock.now())
    }

    /// Recomputes the scores of trees in which entries have expired. Returns whether there were
    /// any.
    pub(super) fn rescore_expired(&self) -> bool {
        let ids = self.work.expired(self.earliest_time());
        self.rescore_trees(&ids);
        !ids.is_empty()
    }

    /// How long an idle worker may wait for entries to expire, or for readers to let space go.
    fn wait_for_looking_again(&self) -> Option<Duration> {
        let expiry = self.work.next_expiry().map(|expiry| expiry_wait(expiry, self.clock.now()));
        let held = || self.files.has_postponed() || self.space.lock().waits_for_readers();
        expiry.or_else(|| held().then_some(LOOK_AGAIN))
    }

    fn rescore_partitions(&self, keys: &[PartitionKey]) {
        let mut ids: Vec<_> = keys.iter().map(|key| key.keyspace).collect();
        ids.dedup();
        self.rescore_trees(&ids);
    }

    fn rescore_trees(&self, ids: &[KeyspaceId]) {
        let state = self.state_now();
        for id in ids.iter().copied() {
            let tree = state.version.tree(id).map(Arc::as_ref);
            self.rescore(id, tree);
        }
    }

    /// Called by a compaction between its steps.
    pub(super) fn between_steps(&self) -> Result<()> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        self.gate(Point::CompactionSteps);
        self.pacer.share().pause();
        if !self.settings.flushes_apart() {
            // A flush that found no space waits for some, perhaps for space that this compaction frees.
            if self.work.flush_error().is_none() {
                self.flush_if_due();
            }
            self.merge_tables();
        }
        self.work.yield_to_flush()
    }

    /// Prepares log files ahead of the writers. It syncs only what it prepares.
    fn run_log(&self) {
        let Some(pipeline) = &self.pipeline else { return };
        let mut prepared = pipeline.counters().files_prepared;
        loop {
            let seen = self.log_signal.epoch();
            if self.closing.load(Ordering::Acquire) {
                return;
            }
            // On a full device writers prepare the log files that they need, and no more.
            if !self.reserve.is_tight()
                && let Err(error) = pipeline.prepare_ahead()
            {
                self.monitor.failed("log file", &error);
            }
            // A log that grows is put to rest later: a worker waits until nobody writes.
            let before = std::mem::replace(&mut prepared, pipeline.counters().files_prepared);
            if before != prepared {
                self.work.notify();
            }
            self.log_signal.wait_past(seen);
        }
    }

    /// Syncs the log once per sync interval, if something was written to it, and records how far it
    /// is synced.
    fn run_sync(&self) {
        let Some(pipeline) = &self.pipeline else { return };
        let mut synced_at = Instant::now();
        let mut recorded_at = synced_at;
        loop {
            let seen = self.sync_signal.epoch();
            if self.closing.load(Ordering::Acquire) {
                return;
            }
            let record = self.record_if_due(&mut recorded_at);
            let interval = self.settings.sync_interval;
            let sync = interval.map(|interval| interval.saturating_sub(synced_at.elapsed()));
            if sync.is_some_and(|left| left.is_zero()) {
                let visible = pipeline.visible();
                self.gate(Point::LogPushes);
                if pipeline.synced() < visible
                    && let Err(error) = pipeline.sync(visible)
                {
                    self.monitor.failed("log sync", &error);
                }
                synced_at = Instant::now();
                continue;
            }
            self.sync_signal.wait_past_within(seen, sync.into_iter().chain(record).min());
        }
    }
}
