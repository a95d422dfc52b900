//! What happens when the device is full (C7).
//!
//! 1. What is given up, in this order: files that nobody reads any more; log that the next records
//!    do not need (`commit/space/spare.rs`); the reserve (`headroom`), of which what frees space may
//!    use a part, and background work all.
//! 2. While the reserve is not whole, ordinary writes are refused, and what frees space is flushed
//!    and merged at once, so that the space returns. Each write that is to be refused tries first
//!    to make the reserve whole, so that writing goes on by itself.
//! 3. A write is refused only when there is nothing left to wait for: neither a flush nor a merge
//!    under way, and nothing that one of them could free.
//! 4. Everything here ends: each attempt gives something up, or is the last one.

use crate::base::Bytewise;
use crate::db::Core;
use crate::db::catalog::Order;
use crate::db::headroom::Use;
use crate::db::held::LastHeld;
use crate::db::shape;
use crate::db::state::State;
use crate::db::store::Change;
use crate::db::work::PartitionKey;
use crate::db::write::Write;
use crate::error::{Error, Result};
use crate::manifest::{Draft, Partition};
use crate::run::Run;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often something is given up for one piece of work.
const ATTEMPTS: u32 = 8;

/// What is remembered of the search for space.
#[derive(Debug, Default)]
pub struct Relief {
    /// What was visible when space was last sought by flushes and merges.
    at: AtomicU64,
    /// How often partitions were cut into parts because they could not be merged as a whole.
    pub(super) cuts: AtomicU64,
    pub(super) last_held: LastHeld,
}

impl Write<'_> {
    /// Whether it only takes away.
    pub(super) fn frees(&self) -> bool {
        self.counts[0] == 0
    }
}

impl Core {
    /// Does work that must also succeed on a full device: where space is missing, it gives
    /// something up and tries again.
    pub(super) fn with_space<R>(
        &self,
        what: Use,
        mut work: impl FnMut() -> Result<R>,
    ) -> Result<R> {
        let mut attempts = 0;
        loop {
            match work() {
                Err(Error::DiskFull { .. }) if self.give_up(what, &mut attempts) => {}
                outcome => return outcome,
            }
        }
    }

    /// Gives something up; says whether there was anything.
    pub(super) fn give_up(&self, what: Use, attempts: &mut u32) -> bool {
        *attempts += 1;
        if *attempts < ATTEMPTS && self.give_up_unused() {
            return true;
        }
        let given = *attempts <= ATTEMPTS && self.headroom.give_up(what);
        if given {
            log::info!("the device is full: the reserve is used");
            self.update_pace();
        }
        given
    }

    /// Gives up what nobody needs.
    fn give_up_unused(&self) -> bool {
        (self.files.has_garbage() && self.files.collect())
            || self.pipeline.as_ref().is_some_and(|pipeline| pipeline.give_up_spare())
    }

    /// Makes the reserve whole again if that is possible now; says whether that was so.
    pub(super) fn regain(&self) -> bool {
        let regained = self.headroom.is_tight() && self.headroom.restore();
        if regained {
            log::info!("there is space again: writes are taken");
            self.update_pace();
        }
        regained
    }

    /// Lets a write go on while the reserve is not whole, if it frees space or the reserve can be
    /// made whole.
    pub(super) fn admit_while_tight(&self, frees: bool) -> Result<()> {
        if frees {
            return Ok(());
        }
        self.regain();
        if self.headroom.is_tight() && self.relieve_and_wait(false) {
            self.regain();
        }
        if self.headroom.is_tight() {
            return Err(self.no_space());
        }
        Ok(())
    }

    /// Makes room for a write that found none; says whether to try again.
    pub(super) fn make_way(&self, frees: bool, attempts: &mut u32) -> bool {
        *attempts += 1;
        if *attempts >= ATTEMPTS {
            return false;
        }
        if self.give_up_unused() || (frees && self.give_up(Use::Freeing, attempts)) {
            return true;
        }
        self.relieve_and_wait(false)
    }

    /// Has everything flushed and merged that may free space, and waits for that. False: nothing was
    /// written since that was done last, and there are no other `news`.
    fn relieve_and_wait(&self, news: bool) -> bool {
        let visible = self.visible();
        let news = self.relief.at.swap(visible, Ordering::AcqRel) != visible || news;
        if news {
            self.work.ask_relief();
        } else if self.work.is_settled() {
            return false;
        }
        loop {
            let seen = self.work.done().epoch();
            if self.work.is_settled() {
                // What was merged away is free when its readers have gone.
                self.retired.collect();
                self.files.collect();
                return true;
            }
            if self.check_open().and_then(|()| self.latch.check()).is_err() {
                return true;
            }
            self.work.notify();
            self.work.done().wait_past(seen);
        }
    }

    /// Whether a flush that failed is worth waiting for: because space is missing and something may
    /// return some.
    pub(super) fn is_shortage_passing(&self, error: &Error) -> bool {
        matches!(error, Error::DiskFull { .. }) && {
            let regained = self.regain();
            self.relieve_and_wait(regained)
        }
    }

    /// Called with the error of a merge. If space was missing, and a partition is so large that its
    /// parts would need less, those are merged one after the other instead.
    pub(super) fn cut_up_for_room(&self, keys: &[PartitionKey], error: Error) -> Result<()> {
        let ([(id, lower)], Error::DiskFull { .. }) = (keys, &error) else { return Err(error) };
        if self.work.yield_to_flush().is_err() {
            return Err(error);
        }
        let mut parts: Vec<PartitionKey> = Vec::new();
        self.change(|state, _| {
            let owner = self.catalog.lock().by_id(*id).cloned();
            let (Some(owner), Some(tree)) = (owner, state.version.tree(*id)) else {
                return Ok(None);
            };
            let at = tree.partitions().iter().position(|partition| partition.lower == *lower);
            let Some(at) = at else { return Ok(None) };
            let old = &tree.partitions()[at];
            let cut = match &owner.order {
                Order::Bytewise => shape::cut_up(&Bytewise, old, &self.settings),
                Order::Custom(order) => {
                    let cut = shape::cut_up(order, old, &self.settings);
                    self.trust(order)?;
                    cut
                }
                Order::Missing(_) => Vec::new(),
            };
            if cut.len() < 2 {
                return Ok(None);
            }
            parts = cut.iter().map(|part| (*id, part.lower.clone())).collect();
            let mut change = Change::default();
            let edit = shape::replace_edit(old, 1, &cut.iter().collect::<Vec<_>>());
            change.edit.trees.push((*id, edit));
            let mut draft = Draft::of(tree);
            draft.replace(at, 1, cut.into_iter().map(Arc::new).collect());
            change.trees.push((*id, Some(Arc::new(draft.finish()))));
            Ok(Some(change))
        })?;
        if parts.is_empty() {
            return Err(error);
        }
        log::info!("a partition is merged in {} parts for want of space", parts.len());
        self.relief.cuts.fetch_add(1, Ordering::AcqRel);
        self.work.force(parts);
        Ok(())
    }

    /// Called by a worker: flushes what is in memory, and has those partitions merged that shrink by
    /// it, if somebody asked for that. Says whether somebody did.
    pub(super) fn relieve_if_asked(&self) -> bool {
        if !self.work.begin_relief() {
            return false;
        }
        if let Some(pipeline) = &self.pipeline {
            while self.flush_if_due() {}
            let state = self.state_now();
            if !state.active().is_empty() || self.catalog.lock().has_pending() {
                self.seal(pipeline, &state);
            }
            while self.flush_if_due() {}
        }
        let state = self.state_now();
        self.work.force(self.partitions_to_shrink(&state));
        self.work.end_relief();
        true
    }

    /// The partitions in which deletes have not taken effect.
    fn partitions_to_shrink(&self, state: &State) -> Vec<PartitionKey> {
        let alone = self.snapshots.list().is_empty();
        let takes = |run: &Run| {
            let deletes = |segment: &Arc<crate::run::Segment>| segment.meta().deletes > 0;
            !run.tombstones().is_empty() || run.segments().iter().any(deletes)
        };
        let shrinks = |partition: &Partition| {
            partition.deltas.iter().any(|run| takes(run)) || (alone && takes(&partition.base))
        };
        let mut keys = Vec::new();
        for (id, tree) in state.version.trees() {
            let owner = self.catalog.lock().by_id(*id).cloned();
            let open = |order: &Order| !matches!(order, Order::Missing(_));
            if !owner.is_some_and(|owner| owner.frozen_at.is_none() && open(&owner.order)) {
                continue;
            }
            let chosen = tree.partitions().iter().filter(|partition| shrinks(partition));
            keys.extend(chosen.map(|partition| (*id, partition.lower.clone())));
        }
        keys
    }

    /// Sees to it that a flush of what is in memory will have room. False: the reserve cannot grow,
    /// and the memtables are to be flushed at the size that it covers.
    pub(super) fn cover_flush(&self, state: &State) -> bool {
        let manifest = self.counters.background.manifest_bytes.load(Ordering::Relaxed);
        let (bytes, max) = (state.active().bytes(), self.settings.memtable_bytes);
        self.headroom.cover(bytes, max, manifest)
    }

    /// The refusal of a write, with what holds the space.
    pub(super) fn no_space(&self) -> Error {
        self.name_holders(self.headroom.refusal())
    }

    /// Adds to an error about missing space what holds it.
    pub(super) fn name_holders(&self, error: Error) -> Error {
        match error {
            Error::DiskFull { path, shortage, held: None } => {
                Error::DiskFull { path, shortage, held: Some(self.space_held()) }
            }
            other => other,
        }
    }

    /// Makes what was replayed durable where it stands, because there is no space for a flush: the
    /// log is written over itself, since an earlier sync of it may have failed (R7).
    pub(super) fn keep_replayed_log(&self) -> Result<()> {
        let Some(pipeline) = &self.pipeline else { return Ok(()) };
        log::warn!("the device is full: what was replayed stays in the log until there is space");
        pipeline.persist_earlier()
    }
}
