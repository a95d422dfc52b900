//! What happens when nobody writes: trees are tightened ([`crate::compaction::calm`]), and the log is
//! put to rest ([`crate::commit::Rest`]).

use crate::base::{Bytewise, Seq};
use crate::catalog::Order;
use crate::commit::{Pipeline, REST_AFTER, RestBytes, Resting};
use crate::compaction::calm::{Calmness, loose};
use crate::compaction::queue::PartitionKey;
use crate::db::core::Core;
use crate::error::Result;
use crate::manifest::Partition;
use crate::stats::counters::Counter;
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
        let Some(pipeline) = &self.pipeline else { return Resting::Nothing };
        let (log, data) = (pipeline.bytes().to_gain, self.totals.lock().base_bytes);
        let (flush, pause) = (self.settings.flush_bytes(), self.settings.rest_after);
        let (visible, bytes) = (pipeline.visible(), RestBytes { log, flush, data, pause });
        let mut rest = self.rest.lock();
        match rest.look(visible, Instant::now(), bytes) {
            // On a full device relief frees log.
            Resting::Now if self.reserve.is_tight() => return Resting::Nothing,
            // A flush may be slow, and its end gives workers no signal.
            Resting::Now if !self.work.is_quiet() => return Resting::After(REST_AFTER),
            Resting::Now => rest.ended(visible),
            later => return later,
        }
        drop(rest);
        if let Some(end) = self.shrink_log(pipeline) {
            self.rest.lock().ended(end);
        }
        Resting::Now
    }

    /// Leaves of the log one small file, and what a flush that becomes due releases. Returns where the
    /// log rests.
    fn shrink_log(&self, pipeline: &Pipeline) -> Option<Seq> {
        let end = pipeline.rest().inspect_err(|error| self.monitor.failed("log file", error)).ok();
        if pipeline.holds_more() {
            self.seal(pipeline, &self.state_now());
        }
        end
    }

    /// Leaves of the log one small file if nothing was written since the last flush.
    pub(super) fn shrink_flushed_log(&self, pipeline: &Pipeline) -> Result<()> {
        let flushed = self.state_now().active().start == pipeline.reserved();
        if !flushed || self.reserve.is_tight() {
            return Ok(());
        }
        self.shrink_log(pipeline);
        self.flush()
    }
}
