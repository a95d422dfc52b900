//! What happens when the device is full (C7).
//!
//! 1. The database releases, in this order: files that no reader needs; log that the next records
//!    do not need (`commit/space/spare.rs`); the reserve (`directory::reserve`), of which each kind
//!    of work has a part.
//! 2. While the reserve is not whole, writes of data are refused, and *relief* is under way: a
//!    worker flushes the deletes and then rewrites, one at a time, the segments in which entries
//!    are hidden (`thin`). It continues with the next segment only when the space of the previous
//!    one is freed. It ends when the reserve is whole and there is some space to write into, or
//!    when nothing is left that would free any.
//! 3. Compactions are not part of relief, and use no reserve. A compaction begins only if what it
//!    may write fits into the free space. A partition that is too large for that is cut up, and its
//!    parts are compacted one after the other.
//! 4. A write of data is refused only when relief has ended and freed nothing, and since then
//!    nothing was written and no snapshot was released. A write that frees space is refused when,
//!    in addition, the log has no room in its part of the reserve.
//! 5. Everything here ends: a caller waits only as long as space is freed, and only space that was
//!    written earlier can be freed.

use crate::admission::relief::{
    ATTEMPTS, EASY_PART, LAST_PATIENCE, Moment, PASSING_PATIENCE, Pauses, RELIEF_BYTES, Way,
};
use crate::admission::would_block;
use crate::base::Bytewise;
use crate::catalog::Order;
use crate::commit::Pipeline;
use crate::compaction::queue::PartitionKey;
use crate::compaction::tiers::Rows;
use crate::db::change::Change;
use crate::db::core::Core;
use crate::directory::reserve::{FREEING_BYTES, Use};
use crate::error::{Error, Result};
use crate::events::EventKind;
use crate::state::State;
use crate::waits::Cause;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Core {
    /// Does work that must also succeed on a full device: if space is missing, it releases some and
    /// tries again.
    pub(super) fn with_space<R>(
        &self,
        what: Use,
        mut work: impl FnMut() -> Result<R>,
    ) -> Result<R> {
        let mut way = Way::default();
        let outcome = loop {
            match work() {
                Err(Error::DiskFull { .. }) if self.give_up(what, &mut way) => {}
                outcome => break outcome,
            }
        };
        self.end_way(&mut way);
        outcome
    }

    /// Ends work that may have used the reserve.
    pub(super) fn end_way(&self, way: &mut Way) {
        if way.claim.take().is_some() {
            self.work.done().notify();
        }
    }

    /// Requests relief after a write that frees space: at once if the write may free much,
    /// otherwise when enough was deleted.
    #[cold]
    pub(super) fn ask_relief_after(&self, ranges: u64) {
        if ranges > 0 || self.log_kept() >= FREEING_BYTES / 2 {
            self.work.ask_relief(false);
        }
    }

    /// Bytes of log that are kept for the memtables.
    fn log_kept(&self) -> u64 {
        let reserved = self.pipeline.as_ref().map_or(0, Pipeline::reserved);
        reserved.saturating_sub(self.state.load_arc().log_start())
    }

    /// Releases some space; returns whether there was any to release. What is released of the
    /// reserve is not restored as long as `way` exists.
    pub(super) fn give_up(&self, what: Use, way: &mut Way) -> bool {
        way.attempts += 1;
        if way.attempts < ATTEMPTS && self.give_up_unused() {
            return true;
        }
        if way.attempts > 2 * ATTEMPTS {
            return false;
        }
        way.claim.get_or_insert_with(|| self.reserve.claim());
        let tight = self.reserve.is_tight();
        let given = self.reserve.give_up(what);
        if given {
            log::info!("the device is full: the reserve is used");
            self.monitor.tell_space(self.reserve.free(), (tight, self.reserve.is_tight()));
            self.update_pace();
        }
        given
    }

    /// Releases space that is not needed.
    pub(super) fn give_up_unused(&self) -> bool {
        self.state.retired.collect();
        self.files.collect_if_any()
            || self.pipeline.as_ref().is_some_and(|pipeline| pipeline.give_up_spare())
    }

    /// Makes the reserve whole again if that is possible now; returns whether this call did.
    pub(super) fn regain(&self) -> bool {
        let regained = self.reserve.is_tight() && self.reserve.restore();
        if regained {
            log::info!("there is space again: writes are accepted");
            self.monitor.tell_space(self.reserve.free(), (true, false));
            self.update_pace();
        }
        regained
    }

    /// Records that space was freed. Restoring the reserve does not count: work that keeps failing
    /// uses it again and again, and a caller that waits would never get the error (C8).
    pub(super) fn note_gain(&self) {
        self.relief.gains.fetch_add(1, Ordering::AcqRel);
    }

    /// Admits a write while the reserve is not whole, if the write frees space or the reserve can
    /// be made whole.
    pub(crate) fn admit_while_tight(&self, frees: bool, waits: bool) -> Result<()> {
        // Seeded: a full disk cannot be emptied.
        let frees = frees && !bug!("db_full_disk_refuses_deletes");
        if frees {
            // The log that waits for its flush stays within its part of the reserve.
            if self.log_kept() > FREEING_BYTES {
                self.relieve_so(self.relief.gained(), !waits, waits)?;
            }
            return Ok(());
        }
        loop {
            let since = self.relief.gained();
            self.regain();
            if !self.reserve.is_tight() {
                return Ok(());
            }
            // Readers may have released space since relief ended.
            if !self.give_up_unused() && !self.relieve(since, waits)? {
                // Relief may have made it whole with space that others freed.
                self.regain();
                return if self.reserve.is_tight() { Err(self.no_space()) } else { Ok(()) };
            }
        }
    }

    /// Makes a change that frees space. If it finds none, it tries again as long as some is freed.
    pub(super) fn with_way<R>(&self, mut change: impl FnMut() -> Result<R>) -> Result<R> {
        let mut way = Way::default();
        let outcome = loop {
            match change() {
                Err(Error::DiskFull { .. }) => self.find_way(true, &mut way)?,
                outcome => break outcome,
            }
        };
        self.end_way(&mut way);
        outcome
    }

    /// Makes room for a write that found none; the refusal if that is impossible.
    #[cold]
    pub(super) fn find_way(&self, frees: bool, way: &mut Way) -> Result<()> {
        if self.make_way(frees, way)? {
            return Ok(());
        }
        self.end_way(way);
        if !frees {
            self.note_refused(true);
        }
        Err(self.no_space())
    }

    /// Notes whether a write of data was refused for want of space. The reserve may be whole, if the
    /// write needed more than there was outside it; the device is full all the same.
    pub(super) fn note_refused(&self, refused: bool) {
        let before = self.relief.refused.swap(refused, Ordering::AcqRel);
        if before != refused {
            if !self.reserve.is_tight() {
                self.monitor.tell_space(self.reserve.free(), (before, refused));
            }
            self.update_pace();
        }
    }

    /// Appends to the manifest; the append requests room if it finds none.
    pub(super) fn append_with_space(
        &self,
        append: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<()>,
    ) -> Result<()> {
        let mut way = Way::default();
        let appended = append(&mut || self.give_up(Use::All, &mut way));
        self.end_way(&mut way);
        appended
    }

    /// Makes room for a write that found none; returns whether to try again.
    fn make_way(&self, frees: bool, way: &mut Way) -> Result<bool> {
        if frees && way.attempts <= ATTEMPTS {
            if self.give_up(Use::Freeing, way) {
                return Ok(true);
            }
        } else if self.give_up_unused() {
            return Ok(true);
        }
        // Relief makes the reserve whole; this write may then use its part of it.
        self.end_way(way);
        way.attempts = ATTEMPTS;
        // Space may have been freed after the write found none: then it is tried once more.
        let since = std::mem::replace(&mut way.gains, self.relief.gained());
        let again = since != way.gains || self.relieve(way.gains, !way.impatient)?;
        if again {
            way.attempts = 0;
        }
        Ok(again)
    }

    /// The present moment: what is visible, and the snapshots.
    fn moment(&self) -> Moment {
        Moment { visible: self.visible(), snapshots: self.snapshots.list() }
    }

    /// Requests relief and waits until more space is freed than was `before`: first space that is easily
    /// freed, then all. False: there was nothing to free. An error if the database is closed or takes no
    /// more writes: no space is freed then, so a caller that went on asking would never return (C8). A
    /// caller that does not wait gets [`Error::WouldBlock`] while relief is under way.
    pub(super) fn relieve(&self, before: u64, waits: bool) -> Result<bool> {
        Ok((waits && self.relieve_so(before, false, true)?)
            || self.relieve_so(before, true, waits)?)
    }

    fn relieve_so(&self, before: u64, all: bool, waits: bool) -> Result<bool> {
        let mut wait = None;
        if !self.relief.is_exhausted(|| self.moment()) {
            self.work.ask_relief(all);
        }
        loop {
            let seen = self.work.done().epoch();
            if self.relief.gained() != before {
                return Ok(true);
            }
            let ended = self.check_open().and_then(|()| self.latch.check());
            // Seeded: a write that waits on a full device waits for ever after writing has ended.
            if ended.is_err() && bug!("db_full_disk_hides_the_end_of_writing") {
                return Ok(true);
            }
            ended?;
            if self.work.is_settled() && !self.reserve.is_claimed() {
                return Ok(self.relief.gained() != before);
            }
            self.work.notify();
            if !waits {
                return Err(would_block(Cause::DiskFull, None));
            }
            wait.get_or_insert_with(|| self.waits.begin(Cause::DiskFull));
            self.work.done().wait_past(seen);
        }
    }

    /// Whether a failed flush is worth waiting for: space is missing, and some may be freed.
    pub(super) fn is_shortage_passing(&self, error: &Error, waits: bool) -> Result<bool> {
        Ok(matches!(error, Error::DiskFull { .. }) && self.relieve(self.relief.gained(), waits)?)
    }

    /// Called with the error of a compaction. If space was missing, and a partition is so large
    /// that its parts would need less, the parts are compacted one after the other instead.
    pub(super) fn cut_up_for_room(&self, keys: &[PartitionKey], error: Error) -> Result<()> {
        let ([PartitionKey { keyspace: id, tier, lower }], Error::DiskFull { .. }) = (keys, &error)
        else {
            return Err(error);
        };
        if self.work.yield_to_flush().is_err() {
            return Err(error);
        }
        let mut parts: Vec<PartitionKey> = Vec::new();
        self.change(|state, _| {
            let owner = self.catalog.lock().by_id(*id).cloned();
            let (Some(owner), Some(tree)) = (owner, state.version.tree(*id)) else {
                return Ok(None);
            };
            let mut rows = Rows::of(tree);
            let lower = lower.as_deref();
            let cut = match &owner.order {
                Order::Bytewise => rows.cut_up(&Bytewise, *tier, lower, &self.settings),
                Order::Custom(order) => {
                    let cut = rows.cut_up(order, *tier, lower, &self.settings);
                    self.trust(order)?;
                    cut
                }
                Order::Missing(_) => Vec::new(),
            };
            if cut.is_empty() {
                return Ok(None);
            }
            let key = |lower| PartitionKey { keyspace: *id, tier: *tier, lower };
            parts = cut.into_iter().map(key).collect();
            let mut change = Change::default();
            change.put_rows(*id, rows);
            Ok(Some(change))
        })?;
        if parts.is_empty() {
            return Err(error);
        }
        log::info!("a partition or span is rewritten in {} parts for want of space", parts.len());
        self.monitor.emit(EventKind::PartitionCut { parts: parts.len() as u64 });
        self.relief.cuts.fetch_add(1, Ordering::AcqRel);
        self.work.force(parts);
        Ok(())
    }

    /// Called by a worker: frees what can be freed, if relief was requested. Returns whether it
    /// was.
    pub(super) fn relieve_if_asked(&self) -> bool {
        let Some(all) = self.work.begin_relief() else { return false };
        if !self.relief.is_exhausted(|| self.moment()) {
            self.free_what_can_be(all);
        }
        self.work.end_relief();
        true
    }

    fn free_what_can_be(&self, all: bool) {
        let before = self.relief.gained();
        self.give_up_log();
        let at = self.moment();
        self.flush_all();
        self.give_up_log();
        self.give_all_back(if all { LAST_PATIENCE } else { PASSING_PATIENCE });
        for key in self.thinnable(if all { 0.0 } else { EASY_PART }) {
            if self.has_relief(before) || self.check_open().is_err() || self.latch.get().is_some() {
                return;
            }
            if self.work.is_relief_asked() {
                // A caller that deletes may have requested relief: a flush frees the log of
                // deletes.
                self.flush_all();
            }
            if self.thin_contained(&key) {
                self.give_all_back(PASSING_PATIENCE);
            }
        }
        self.regain();
        let gained = self.relief.gained() != before;
        if all && !gained && self.work.is_relief_alone() {
            *self.relief.exhausted.lock() = Some((Instant::now(), at));
        }
    }

    /// Whether relief may end: space was freed after `since`, the reserve is whole, and some is
    /// free.
    fn has_relief(&self, since: u64) -> bool {
        self.regain();
        !self.reserve.is_tight()
            && self.relief.gained() != since
            && self.reserve.free() >= RELIEF_BYTES
    }

    /// Frees log space that is not needed, if the reserve cannot be made whole without that.
    fn give_up_log(&self) {
        self.regain();
        while self.reserve.is_tight()
            && self.pipeline.as_ref().is_some_and(|pipeline| pipeline.give_up_spare())
        {
            self.note_gain();
            self.regain();
        }
    }

    /// Flushes what is in memory.
    fn flush_all(&self) {
        let Some(pipeline) = &self.pipeline else { return };
        while self.flush_if_due() {}
        let state = self.state_now();
        if !state.active().is_empty() || self.catalog.lock().has_pending() {
            self.seal(pipeline, &state);
        }
        drop(state);
        while self.flush_if_due() {}
    }

    /// Frees everything to which nothing refers, and waits for what only running calls refer to:
    /// they end soon, but without a signal.
    pub(super) fn give_all_back(&self, patience: Duration) {
        let mut pauses = Pauses::of(patience);
        loop {
            let seen = self.work.signal().epoch();
            let left = self.state.retired.collect();
            if self.files.has_garbage() {
                self.files.collect_now();
                self.note_gain();
                self.work.done().notify();
            }
            if !left || !self.state.retired.is_passing(patience) || self.check_open().is_err() {
                return;
            }
            let Some(pause) = pauses.next() else { break };
            self.work.signal().wait_past_timeout(seen, pause);
        }
        self.state.retired.settle(patience);
    }

    /// Ensures that a flush of what is in memory will have room. False: the reserve cannot grow,
    /// and the memtables must be flushed at the size that it covers.
    pub(super) fn cover_flush(&self, state: &State) -> bool {
        let manifest = self.counters.background.manifest_bytes.load(Ordering::Relaxed);
        let (bytes, max) = (state.active().bytes(), state.active().capacity_bytes());
        self.reserve.cover(bytes, max, manifest)
    }

    /// The refusal of a write; it names what holds the space.
    pub(super) fn no_space(&self) -> Error {
        self.name_holders(self.reserve.refusal())
    }

    /// Adds to an error about missing space what holds the space.
    pub(super) fn name_holders(&self, error: Error) -> Error {
        match error {
            Error::DiskFull { path, shortage, held: None } => {
                Error::DiskFull { path, shortage, held: Some(self.space_held()) }
            }
            other => other,
        }
    }

    /// Makes the replayed log durable in place, because there is no space for a flush: the log is
    /// rewritten in place, since an earlier sync of it may have failed (R7).
    pub(super) fn keep_replayed_log(&self) -> Result<()> {
        let Some(pipeline) = &self.pipeline else { return Ok(()) };
        log::warn!("the device is full: what was replayed stays in the log until there is space");
        self.monitor.emit(EventKind::ReplayNotFlushed { free: self.reserve.free() });
        pipeline.persist_earlier()
    }
}
