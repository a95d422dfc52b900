//! What happens when nobody writes: trees are tightened ([`crate::compaction::calm`]), and the log is
//! put to rest ([`Pipeline::rest`]).

use crate::base::Bytewise;
use crate::catalog::Order;
use crate::commit::{Pipeline, RestBytes, Resting};
use crate::compaction::calm::{Calmness, loose};
use crate::compaction::queue::PartitionKey;
use crate::db::core::Core;
use crate::error::Result;
use crate::manifest::Partition;
use crate::stats::counters::Counter;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Core {
    /// Whether nobody has written since somebody looked.
    pub(super) fn is_calm(&self) -> bool {
        self.calm.lock().lasts(self.visible())
    }

    /// Begins to tighten the trees if nobody writes; `at_once`: without a pause. The answer is
    /// [`Calmness::Calm`] if it has begun.
    pub(super) fn tighten_if_calm(&self, at_once: bool) -> Calmness {
        let mut calm = self.calm.lock();
        match calm.look(self.visible(), Instant::now()) {
            Calmness::Tight => return Calmness::Tight,
            Calmness::After(_) if at_once => {}
            Calmness::After(left) => return Calmness::After(left),
            Calmness::Calm => {}
        }
        // Another worker looks when it has finished.
        if self.reserve.is_tight() || !self.work.is_quiet() {
            return Calmness::Tight;
        }
        let user_bytes = self.counters.total(Counter::UserBytes);
        let all = calm.grants_all(user_bytes, self.totals.lock().base_bytes);
        if self.work.tighten(self.loose_parts(all)) {
            return Calmness::Calm;
        }
        calm.tightened();
        Calmness::Tight
    }

    /// The partitions and spans that are loose, those of the highest tier of each tree; `all`: in which
    /// anything waits.
    fn loose_parts(&self, all: bool) -> Vec<PartitionKey> {
        let version = self.state_now().version.clone();
        let (mut keys, sizes) = (Vec::new(), (&self.settings, all));
        for (id, tree) in version.trees() {
            let owner = self.catalog.lock().by_id(*id).cloned();
            let Some(owner) = owner.filter(|owner| owner.frozen_at.is_none()) else { continue };
            let is_shared = |part: &Partition| self.store.lock().shares(part);
            let (tier, parts) = match &owner.order {
                Order::Bytewise => loose(&Bytewise, tree, sizes, is_shared),
                Order::Custom(order) => loose(order, tree, sizes, is_shared),
                Order::Missing(_) => continue,
            };
            // A part for which there is no room is left as it is.
            let bytes = |part: &Partition| part.base.bytes() + part.delta_bytes();
            let parts = parts.iter().filter(|part| bytes(part) <= self.reserve.free());
            let key = |lower| PartitionKey { keyspace: *id, tier, lower };
            keys.extend(parts.map(|part| key(part.lower.clone())));
        }
        keys
    }

    /// Puts the log to rest if nobody writes.
    pub(super) fn rest_if_calm(&self) -> Resting {
        // On a full device relief frees log.
        let pipeline = self.pipeline.as_ref().filter(|_| !self.reserve.is_tight());
        let Some(pipeline) = pipeline else { return Resting::Nothing };
        let (flush, data) = (self.settings.flush_bytes(), self.totals.lock().base_bytes);
        let bytes = RestBytes { flush, data, pause: self.settings.rest_after };
        let resting = pipeline.resting(Instant::now(), bytes, self.work.is_quiet());
        if resting == Resting::Now {
            self.shrink_log(pipeline);
        }
        resting
    }

    /// Leaves of the log one small file, and what a flush releases, if that is returned to be due.
    fn shrink_log(&self, pipeline: &Pipeline) -> bool {
        if let Err(error) = pipeline.rest() {
            self.monitor.failed("log file", &error);
        }
        pipeline.holds_more() && self.seal(pipeline, &self.state_now())
    }

    /// Leaves of the log one small file if nothing was written since the last flush.
    pub(super) fn shrink_flushed_log(&self, pipeline: &Pipeline) -> Result<()> {
        let flushed = self.state_now().active().start == pipeline.reserved();
        if !flushed || self.reserve.is_tight() {
            return Ok(());
        }
        let flushes = || self.counters.background.flushes.load(Ordering::Relaxed);
        let before = flushes();
        let sealed = self.shrink_log(pipeline);
        self.flush()?;
        // A flush releases the log after its memtables are gone, and then ends.
        loop {
            let seen = self.work.done().epoch();
            if !sealed || flushes() != before {
                return Ok(());
            }
            self.wait_for_work(seen)?;
        }
    }
}
