//! The path of a write: admit, log, apply, publish (`docs/write-path.md`).
//!
//! 1. Everything that can fail or wait happens before reservation (R2): checks of sizes, pacing,
//!    and, for keyspaces with a custom comparator, the search for the place in the memtable (R15).
//!    A write may still be refused later, because another write came in between. It then takes up
//!    log and maybe memory; it counts like any write, and a flush frees its space.
//! 2. The sequence number alone determines which memtable set takes the write, so a set sealed at a
//!    position holds exactly the writes before it (R3).
//! 3. A writer that fills a set, or the log after the set's start, seals the set; a worker flushes
//!    it.

use crate::admission::governor::{Taken, described, govern};
use crate::admission::relief::Way;
use crate::admission::{Admission, Debts, Pressure, Terms, would_block};
use crate::base::{CustomOrder, Kind, SEQ_MAX, Seq};
use crate::catalog::{KeyspaceState, orders_of};
use crate::commit::{Class, Pipeline};
use crate::compaction::pressure;
use crate::db::core::Core;
use crate::directory::LOG_DIRECTORY;
use crate::error::{Error, Result};
use crate::options::Durability;
use crate::options::settings::SEALED_MAX;
use crate::state::State;
use crate::state::memtables::{MemtableSet, PendingEntry, apply_batch, apply_bytewise, tombstone};
use crate::stats::{counters::Written, gather};
use crate::sync::{Point, pin};
use crate::trace::{Explanation, Phases, StepSource, Untimed, WriteRecording};
use crate::txn::locks::Locks;
use crate::txn::reads::ReadSet;
use crate::txn::validate::Which;
use crate::waits::{Cause, forget_notes, has_notes};
use crate::wal::ops::{Op, Ops};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The fill of the active memtable is checked again after this many more bytes.
const LOOK_EVERY_BYTES: u64 = 64 << 10;

/// Set in the result of a write of class `Buffered`; log positions are multiples of 8.
const NOT_LOGGED: u64 = 1;

/// A batch that is ready to be written.
#[derive(Debug)]
pub struct Write<'a> {
    /// The encoded operations.
    pub payload: &'a [u8],
    /// How many operations there are.
    pub operations: u32,
    /// The keyspaces that they touch, each at least once.
    pub keyspaces: &'a [&'a KeyspaceState],
    /// Its durability class, and whether it waits.
    pub terms: Terms,
    /// What it writes, for the counters.
    pub counts: Written<'a>,
}

impl Write<'_> {
    /// Whether the write only deletes.
    pub(super) fn frees(&self) -> bool {
        self.counts.only_deletes()
    }
}

/// What must be unchanged when a write gets its position, and the position up to which that was
/// checked.
#[derive(Debug, Clone, Copy)]
struct Watch<'a> {
    reads: &'a ReadSet,
    seen: Seq,
}

/// Takes the thread's notes of a put when the put ends: when it began, and what it waited for. It is
/// a guard, because code after the call would have the result of the put copied.
struct PutNotes<'a> {
    core: &'a Core,
    write: &'a Write<'a>,
}

impl Drop for PutNotes<'_> {
    #[inline]
    fn drop(&mut self) {
        if has_notes() {
            self.core.end_put(self.write);
        }
    }
}

impl Core {
    /// Registers a transaction that begins now (see [`crate::txn`]); returns its begin position and
    /// its number.
    pub fn begin_transaction(&self) -> Result<(Seq, u64)> {
        self.check_open()?;
        let number = self.transactions.next_number();
        Ok((self.transactions.register(|| self.visible()), number))
    }

    /// Ends a transaction that began at `begin`, and releases its locks.
    pub fn end_transaction(&self, begin: Seq, number: u64) {
        self.transactions.locks.release(number);
        self.transactions.release(begin);
    }

    /// The locks of transactions.
    pub fn locks(&self) -> &Locks {
        &self.transactions.locks
    }

    /// Fails if anything in `reads` was written before now.
    pub fn check_unchanged(&self, reads: &ReadSet) -> Result<()> {
        self.check_open()?;
        self.validate(reads, 0, self.visible(), Which::All)
    }

    /// An error if anything in `reads` was written between `from` and `upto` (R20).
    fn validate(&self, reads: &ReadSet, from: Seq, upto: Seq, which: Which) -> Result<()> {
        let trust = |order: &CustomOrder| self.trust(order);
        self.transactions.validate(&self.state, reads, (from, upto), which, trust)
    }

    /// The pipeline, if the database accepts writes.
    pub(crate) fn writable(&self) -> Result<&Pipeline> {
        self.check_open()?;
        self.pipeline.as_ref().ok_or(Error::ReadOnly)
    }

    /// Writes a batch. Returns a number to wait on with [`Core::wait_durable`]: the log position
    /// after the batch, with a mark if the log does not hold it.
    pub fn write(&self, write: &Write<'_>) -> Result<Seq> {
        self.write_if_unchanged(write, None)
    }

    /// Writes a batch if nothing in `reads` was written since it was read. Otherwise it returns
    /// [`Error::Conflict`], and nothing is written (R20).
    #[inline]
    pub fn write_if_unchanged(&self, write: &Write<'_>, reads: Option<&ReadSet>) -> Result<Seq> {
        if cfg!(feature = "bench-no-stats") {
            return self.write_followed(write, reads, &mut Untimed);
        }
        if write.terms.durability == Durability::Disk {
            return self.write_recorded(write, reads);
        }
        forget_notes();
        let _notes = PutNotes { core: self, write };
        self.write_followed(write, reads, &mut Untimed)
    }

    /// Ends a put that is timed or has waited.
    #[cold]
    #[inline(never)]
    fn end_put(&self, write: &Write<'_>) {
        self.counters.end_commit();
        self.slowest.offer_waits("put", write.keyspaces.first().map_or("", |first| &first.name));
    }

    /// Offers what the calling thread has just waited for as an operation of its own, so that it is
    /// not taken for a part of the thread's next write.
    pub(crate) fn note_waits(&self, operation: &'static str, keyspace: &str) {
        if has_notes() {
            self.slowest.offer_waits(operation, keyspace);
        }
    }

    /// A write of class `Disk`: its sync takes so long that its phases are timed always.
    #[inline(never)]
    fn write_recorded(&self, write: &Write<'_>, reads: Option<&ReadSet>) -> Result<Seq> {
        let mut recording = WriteRecording::default();
        let end = self.write_followed(write, reads, &mut recording);
        let name = write.keyspaces.first().map_or("", |keyspace| &keyspace.name);
        let found = end.is_ok();
        self.slowest.offer_explained(Explanation { found, ..recording.explain(name) });
        end
    }

    /// As [`Self::write_if_unchanged`]; `phases` follows the write.
    pub fn write_followed<P: Phases>(
        &self,
        write: &Write<'_>,
        reads: Option<&ReadSet>,
        phases: &mut P,
    ) -> Result<Seq> {
        let pipeline = self.writable()?;
        let mut custom = false;
        for keyspace in write.keyspaces {
            if keyspace.frozen_at.is_some() {
                return Err(Error::ReadOnly);
            }
            if keyspace.is_dropped() {
                return Err(keyspace.dropped_error());
            }
            custom |= keyspace.has_custom_comparator();
        }
        let len = write.payload.len() as u64;
        if len > self.settings.batch_bytes_max {
            return Err(Error::BatchTooLarge { len, max: self.settings.batch_bytes_max });
        }
        let open = self.pacer.is_open();
        if !open {
            self.wait_for_admission(len, write.frees(), write.terms.waits)?;
        }
        // What is checked now need not be checked while other writers wait, and a conflict that is
        // found here takes no space in the log.
        let watch = reads.map(|reads| Watch { reads, seen: pipeline.visible() });
        if let Some(Watch { reads, seen }) = watch {
            self.validate(reads, 0, seen, Which::All)?;
        }
        self.counters.begin_commit(&write.counts);
        phases.ended(StepSource::Admission);
        let custom = custom || reads.is_some_and(|reads| reads.has_custom_comparator());
        // This is the only caller, so the compiler keeps the whole write in one function.
        let mut way = Way { impatient: !write.terms.waits, ..Way::default() };
        let end = loop {
            match self.write_once(pipeline, write, watch, custom, phases) {
                Ok(end) => break end,
                // Nothing was reserved.
                Err(Error::DiskFull { .. }) => self.find_way(write.frees(), &mut way)?,
                Err(error) => return Err(error),
            }
        };
        self.end_way(&mut way);
        if P::FOLLOWS {
            self.counters.end_commit();
        }
        if !open && write.frees() && self.reserve.is_tight() {
            self.ask_relief_after(write.counts.range_deletes());
        } else if !open && !write.frees() {
            self.note_refused(false);
        }
        if write.terms.durability == Durability::Buffered {
            self.buffered_end.fetch_max(end, Ordering::AcqRel);
            return Ok(end | NOT_LOGGED);
        }
        Ok(end)
    }

    /// Waits until a write, and everything that was logged before it, survives power loss; `token`
    /// is the result of the write.
    pub fn wait_durable(&self, token: u64) -> Result<()> {
        let pipeline = self.writable()?;
        let position = token & !NOT_LOGGED;
        if token == position {
            let wait = self.waits.begin(Cause::Sync);
            let synced = pipeline.sync(position);
            drop(wait);
            self.note_waits("sync", "");
            return synced;
        }
        // Seeded: a wait for a write of class Buffered returns at once, and a crash loses the
        // write.
        bug!("db_wait_durable_ignores_buffered", return Ok(()));
        pipeline.wait_visible(position)?;
        if position > self.store.lock().log_start {
            self.flush()?;
        }
        Ok(())
    }

    fn write_once(
        &self,
        pipeline: &Pipeline,
        write: &Write<'_>,
        watch: Option<Watch<'_>>,
        custom: bool,
        phases: &mut impl Phases,
    ) -> Result<Seq> {
        if custom {
            return self.write_custom(pipeline, write, watch, phases);
        }
        let apply = |state: &State, first| {
            let set = state.set_of(first);
            self.apply_all(set, write, first)?;
            Ok(set.fill())
        };
        self.commit(pipeline, write, watch, apply, phases)
    }

    /// Reserves, logs, applies, publishes; then checks the fill of the memtable.
    fn commit(
        &self,
        pipeline: &Pipeline,
        write: &Write<'_>,
        watch: Option<Watch<'_>>,
        apply: impl FnOnce(&State, Seq) -> Result<(u64, bool)>,
        phases: &mut impl Phases,
    ) -> Result<Seq> {
        let class = Class::of(write.terms.durability);
        let turn = watch.map(|_| self.transactions.one_at_a_time());
        let check = |seq: Seq| {
            // A drop marks its keyspace while reservation is closed, so a writer that reserved
            // after it sees the mark here.
            // Seeded: a write that is sequenced after the drop of its keyspace succeeds and is
            // lost.
            bug!("db_write_to_a_dropped_keyspace", return Ok(turn));
            if let Some(gone) = write.keyspaces.iter().find(|k| k.dropped_before(seq)) {
                return Err(gone.dropped_error());
            }
            let Some(Watch { reads, seen }) = watch else { return Ok(turn) };
            // Seeded: a transaction commits over a write that came between its check and its place
            // in the log.
            bug!("db_late_conflicts_not_seen", return Ok(turn));
            if seen == seq {
                // No other write came in between.
                return Ok(turn);
            }
            // The log is the order of all writes: once the earlier writes are applied, the
            // memtables hold everything that this write has to take into account. The earlier
            // writes wait for nothing that is held here.
            pipeline.wait_visible(seq)?;
            self.validate(reads, seen, seq, Which::Bytewise).map(|()| turn)
        };
        let (mut bytes, mut needs_look) = (0, false);
        let apply = |_: &_, first| {
            let guard = pin();
            (bytes, needs_look) = apply(self.state.load(&guard), first)?;
            Ok(())
        };
        let (payload, operations) = (write.payload, write.operations);
        let written = pipeline.write_followed(payload, operations, class, check, apply, phases);
        let Ok(end) = written else {
            self.make_room_after_refusal(pipeline);
            return written;
        };
        let len = write.payload.len() as u64 + 1;
        if needs_look || bytes / LOOK_EVERY_BYTES != bytes.saturating_sub(len) / LOOK_EVERY_BYTES {
            self.look_at_memtable(pipeline);
        }
        Ok(end)
    }

    /// Handles a write that was refused and took up log, and memory if it had placed entries. If no
    /// other write follows for long, no other call would check the fill.
    #[cold]
    fn make_room_after_refusal(&self, pipeline: &Pipeline) {
        // Seeded: refused writes let the log grow until something else is written.
        bug!("db_refused_writes_make_no_room", return);
        if self.latch.get().is_none() {
            self.look_at_memtable(pipeline);
        }
    }

    /// Applies the operations of a batch on bytewise keyspaces.
    #[inline]
    fn apply_all(&self, set: &MemtableSet, write: &Write<'_>, first: Seq) -> Result<()> {
        let table = set.bytewise().table_for(first);
        match apply_batch(table, write.payload, write.operations, first) {
            Some(applied) if applied == u64::from(write.operations) => Ok(()),
            // Seeded: an operation that cannot be decoded is left out, and the log holds what no
            // open replays.
            None if bug!("db_undecodable_operation_skipped") => Ok(()),
            _ => Err(self.undecodable(first)),
        }
    }

    /// The error of a batch whose bytes are not what its writer encoded. The batch is already
    /// logged, and a reader of the log would refuse it.
    #[cold]
    fn undecodable(&self, position: Seq) -> Error {
        let detail = "a batch was damaged in memory, before or while it was written";
        Error::corruption(&self.path.join(LOG_DIRECTORY), position, "log operation", detail)
    }

    /// Writes a batch that touches keyspaces with a custom comparator. Their entries are put in
    /// place before reservation, invisible, and get their sequence numbers after it. So no user
    /// code runs in between (R15).
    fn write_custom(
        &self,
        pipeline: &Pipeline,
        write: &Write<'_>,
        watch: Option<Watch<'_>>,
        phases: &mut impl Phases,
    ) -> Result<Seq> {
        // A placed entry cannot be removed, so all refusals come first.
        let ops = Ops::new(write.payload).collect::<std::result::Result<Vec<_>, _>>();
        let ops = ops.ok().filter(|ops| ops.len() == write.operations as usize);
        let ops = ops.ok_or_else(|| self.undecodable(pipeline.reserved()))?;
        let orders = orders_of(write.keyspaces)?;
        let order_of = |id| orders.iter().find(|(k, _)| *k == id).map(|(_, order)| *order);
        pipeline.check_room(write.payload, write.operations, Class::of(write.terms.durability))?;
        // Seals take this lock too: between placing and publishing, the active set stays the same.
        let placing = self.placing.lock();
        if let Some(Watch { reads, seen }) = watch {
            // Writers to such keyspaces hold the lock until everything is applied. So the memtables
            // of these keyspaces now hold everything that precedes this write.
            self.validate(reads, seen, SEQ_MAX, Which::Custom)?;
        }
        let set = self.state.load_arc().active().clone();
        let mut pending = Vec::new();
        for (index, op) in ops.iter().enumerate() {
            let (keyspace, key, kind, value) = match *op {
                Op::Put { keyspace, key, value } => (keyspace, key, Kind::Put, value),
                Op::Delete { keyspace, key } => (keyspace, key, Kind::Delete, &[][..]),
                Op::Special { keyspace, kind, key, stored } => (keyspace, key, kind, stored),
                _ => continue,
            };
            let Some(order) = order_of(keyspace) else { continue };
            let table = set.custom_or_new(keyspace, order);
            let entry = table.insert_pending(keyspace, key, kind, value);
            pending.push(PendingEntry { table, pending: entry, index: index as u64 });
        }
        orders.iter().try_for_each(|(_, order)| self.trust(*order))?;
        let apply = |_: &State, first| {
            for entry in pending {
                entry.table.publish(entry.pending, first + entry.index);
            }
            for (index, op) in ops.into_iter().enumerate() {
                let (seq, id) = (first + index as u64, op.keyspace());
                match (order_of(id), op) {
                    (None, op) => apply_bytewise(set.bytewise().table_for(seq), op, seq),
                    (Some(order), Op::DeleteRange { start, end, .. }) => {
                        let table = set.custom_or_new(id, order);
                        table.delete_range(id, tombstone(start, end, seq));
                    }
                    _ => {}
                }
            }
            drop(placing);
            Ok(set.fill())
        };
        self.commit(pipeline, write, watch, apply, phases)
    }

    /// Waits as the pacer decides, or does not wait; the error says why memory will not become free.
    #[cold]
    pub(super) fn wait_for_admission(&self, bytes: u64, frees: bool, waits: bool) -> Result<()> {
        let mut turn = self.pacer.turn(bytes, waits);
        loop {
            // While the writer waited, the device may have become full.
            if self.reserve.is_tight() {
                self.admit_while_tight(frees, waits)?;
            }
            let seen = self.room.epoch();
            let (wait, cause) = match turn.ask() {
                Admission::Go => return Ok(()),
                Admission::Wait(wait, cause) => (wait, cause),
                Admission::Stop(after) => {
                    if let Some(error) = self.work.flush_error() {
                        // Work that has ended since then may have held the space.
                        if !self.is_shortage_passing(&error, waits)? {
                            return Err(error);
                        }
                        continue;
                    }
                    self.seal_before_waiting()?;
                    // Freed memory gives a signal; the limit is for a flush that hangs.
                    (if waits { Duration::from_secs(1) } else { after }, Cause::Memory)
                }
            };
            self.check_open()?;
            self.latch.check()?;
            if !waits {
                return Err(would_block(cause, Some(wait)));
            }
            if cause == Cause::Memory {
                self.gate(Point::CallerWaits);
            }
            let _wait = self.waits.begin(cause);
            self.room.wait_past_timeout(seen, wait);
        }
    }

    /// Seals full memtables that the writer which filled them could not seal, because too many sets
    /// waited for their flush. If every writer waits, no other code would seal them.
    fn seal_before_waiting(&self) -> Result<()> {
        let pipeline = self.writable()?;
        let state = self.state.load_arc();
        let full = state.active().take_seal_request(pipeline.reserved());
        if full && !self.seal(pipeline, &state) {
            // A flush is still under way; when it ends, it wakes the waiting writers to retry.
            state.active().renew_seal_request();
        }
        Ok(())
    }

    /// Seals the active memtables if they are full, and updates the pace.
    pub(super) fn look_at_memtable(&self, pipeline: &Pipeline) {
        let state = self.state.load_arc();
        let covered = self.cover_flush(&state);
        let full = state.active().take_seal_request(pipeline.reserved());
        if (full || !covered) && !self.seal(pipeline, &state) {
            state.active().renew_seal_request();
        }
        if !full && state.active().begin_next_table(false, |begin| pipeline.seal(begin)) {
            self.work.notify();
        }
        self.update_pace();
    }

    /// Merges pointers to the entries of memtables, if enough of them wait; of all, in a pause of
    /// the writes. Returns whether it did.
    pub(super) fn merge_tables(&self) -> bool {
        let Some(pipeline) = &self.pipeline else { return false };
        // Only the sets are kept meanwhile: a state would keep files that a change leaves behind.
        let sets = self.state.load(&pin()).memtable_sets.clone();
        MemtableSet::merge_in(&sets, pipeline.visible(), |begin| pipeline.seal(begin))
    }

    /// Seals the active set of `state`, unless another thread did or too many sets wait already.
    pub(super) fn seal(&self, pipeline: &Pipeline, state: &State) -> bool {
        let _placing = self.placing.lock();
        let now = self.state.load_arc();
        if !Arc::ptr_eq(now.active(), state.active()) {
            return true;
        }
        if now.memtable_sets.len() as u64 > SEALED_MAX {
            return false;
        }
        pipeline.seal(|position| {
            self.state.seal(MemtableSet::new(position, self.settings.memtable_sizes(), &self.pool));
        });
        self.work.notify();
        true
    }

    /// Gives the pacer what background work changed: how full the trees are, and the debts.
    pub(crate) fn update_pressure(&self) {
        let owner = |id| self.catalog.lock().by_id(id).cloned();
        self.pacer.press_with(|| {
            let urgent = self.work.most_urgent();
            let trees = pressure::fullest(&self.state_now().version, &urgent, owner);
            Pressure::of(trees, self.settings.workers)
        });
        self.update_pace();
        self.govern();
    }

    /// About the memory that describes keyspaces and trees. It takes one lock at a time.
    pub(super) fn described_bytes(&self) -> u64 {
        let totals = *self.totals.lock();
        described(&totals, self.catalog.lock().count())
    }

    /// Gives the cache what the other parts leave of the memory budget.
    pub(super) fn govern(&self) {
        let state = self.state_now();
        let kept = self.transactions.kept_bytes() + self.state.retired.held_memory(&state);
        let log = self.pipeline.as_ref().map_or(0, |pipeline| pipeline.bytes().mapped);
        let unshared = gather::unshared(&self.transactions, &self.files, &self.settings);
        let taken = Taken::of(&state, &self.cache, (kept, log, self.described_bytes(), unshared));
        let calm = self.calm.lock().is_tight(self.visible());
        self.pool.trim_if(calm);
        govern((&self.settings, &self.cache), taken, calm, || self.gate(Point::CacheResizes));
    }

    /// Gives the pacer the present debts. Wakes waiting writers if they may go on.
    pub(crate) fn update_pace(&self) {
        // The state is read under the lock, so what is decided last is of the latest state. Otherwise
        // a writer that read it before a flush could stop all writers after the flush.
        let totals = self.totals.lock();
        let state = self.state.load_arc();
        let reserved = self.pipeline.as_ref().map_or(0, Pipeline::reserved);
        let tight = self.reserve.is_tight() || self.relief.refused.load(Ordering::Acquire);
        let changed = self.pacer.update(Debts::of(&state, &totals, reserved, tight));
        drop(totals);
        // Seeded: slowed writers keep sleeping when there is room.
        bug!("db_paced_writers_not_woken", return);
        if changed {
            self.room.notify();
        }
    }
}

#[cfg(test)]
mod tests;
