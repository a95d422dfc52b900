//! What happens when nobody writes: trees are tightened, space is given back, what has settled is compressed,
//! what is not read more strongly ([`crate::compaction::calm`], [`space`], [`settle`], [`temperature`]), and
//! the log is put to rest ([`Pipeline::rest`]).

use crate::commit::{Pipeline, RestBytes, Resting};
use crate::compaction::calm::{Calmness, Quiet, loose_parts};
use crate::compaction::policy::CALM_AFTER;
use crate::compaction::queue::SPACE;
use crate::compaction::space::Moment;
use crate::compaction::{settle, space, temperature};
use crate::db::core::Core;
use crate::error::Result;
use crate::stats::counters::Counter;
use crate::sync::{Interruption, Point};
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Core {
    /// Whether nobody has written since somebody looked.
    pub(super) fn is_calm(&self) -> bool {
        self.calm.lock().lasts(self.visible())
    }

    /// Begins to tighten the trees if nobody writes, or to compress what has settled or is not read, and also
    /// beside writes to give space back; `at_once`: without a pause. The answer is [`Calmness::Calm`] if it has
    /// begun, or has to look again.
    pub(super) fn tighten_if_calm(&self, at_once: bool) -> Calmness {
        // A look may read files, and one thread looks at a time.
        let mut looks = self.work.look();
        // Another worker looks when it has finished. A caller waits until it has.
        let idle = self.work.is_quiet();
        if at_once && !idle {
            return Calmness::Calm;
        }
        let (visible, now, settings) = (self.visible(), self.clock.now(), &self.settings);
        let (calmness, quiet) = self.calm.lock().look(visible, Instant::now());
        let wait = |left| Calmness::after(quiet.left().into_iter().chain(left).min());
        // The whole pause is left: somebody has written since the look before.
        let still = calmness != Calmness::After(CALM_AFTER);
        let is_quiet = at_once || quiet == Quiet::Now;
        match calmness {
            Calmness::After(_) if !at_once => {
                return self.reclaim(false, still).unwrap_or(calmness);
            }
            Calmness::Tight if !looks.are_due(settings, now) => {
                let left = || wait(looks.wait(settings, now));
                return self.reclaim(is_quiet, still).unwrap_or_else(left);
            }
            _ => {}
        }
        if self.reserve.is_tight() || !idle {
            return Calmness::Tight;
        }
        let (version, room) = (&self.state_now().version.clone(), self.reserve.free());
        let (catalog, store) = (&self.catalog, &self.store);
        let view = settle::View { version, catalog, store, settings, room };
        let tight = calmness == Calmness::Tight;
        if !tight {
            let user = self.counters.total(Counter::UserBytes);
            // All that waits is taken, or some.
            let all = self.calm.lock().grants_all(user, self.totals.lock().base_bytes);
            let loose = loose_parts(version, (catalog, store), (settings, all), room);
            if self.work.tighten(loose, "calm") {
                return Calmness::Calm;
            }
        }
        if let Some(calm) = self.reclaim(is_quiet, still) {
            return calm;
        }
        if !tight {
            let (raw, more) = view.raw_parts(&mut looks.raw, |segment| self.is_unsettled(segment));
            if self.work.tighten(raw, "uncompressed") || more {
                return Calmness::Calm;
            }
        }
        let (turned, more) = temperature::turned(&mut looks, &view, now, &self.cache);
        if self.work.tighten(turned, temperature::CAUSE) || more {
            return Calmness::Calm;
        }
        let left = looks.wait(settings, now);
        drop(looks);
        self.calm.lock().tightened(visible);
        self.govern();
        self.reserve.rest(|| self.state_now().active().bytes());
        wait(left)
    }

    /// Has compacted what gives back space ([`space`]); `None`: there is nothing, or it is not the time. `quiet`, `still`:
    /// nobody has written for long, or since a look before.
    fn reclaim(&self, quiet: bool, still: bool) -> Option<Calmness> {
        let (flushes, changes) = self.counters.background.changes();
        let ingested = self.ingested_end.load(Ordering::Acquire);
        let (values_died, oldest) = (self.files.values_died(), self.snapshots.first());
        let (version, room) = (&self.state_now().version.clone(), self.reserve.free());
        let trees = version.trees().len();
        let now = Moment { flushes, ingested, changes, trees, oldest, values_died, still, quiet };
        if self.reserve.is_tight() || self.work.is_compacting() || !self.space.lock().is_due(now) {
            return None;
        }
        let (catalog, store, settings) = (&self.catalog, &self.store, &self.settings);
        let trees = settle::View { version, catalog, store, settings, room };
        let view = space::View { trees, now, visible: self.visible(), time: self.earliest_time() };
        let pause = || self.gate(Point::SpaceEstimated);
        let keys = view.look(&self.space, |id| self.work.fresh(id), pause);
        (!keys.is_empty() && self.work.tighten(keys, SPACE)).then_some(Calmness::Calm)
    }

    /// Puts the log to rest if nobody writes.
    pub(super) fn rest_if_calm(&self) -> Resting {
        // On a full device relief frees log.
        let pipeline = self.pipeline.as_ref().filter(|_| !self.reserve.is_tight());
        let Some(pipeline) = pipeline else { return Resting::Nothing };
        let (flush, data) = (self.settings.flush_bytes(), self.totals.lock().base_bytes);
        let bytes = RestBytes { flush, data, pause: self.settings.rest_after };
        // Between two flushes nothing is under way, but no further set could be sealed.
        let ready = self.work.is_quiet() && self.state_now().memtable_sets.len() == 1;
        let resting = pipeline.resting(Instant::now(), bytes, ready);
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
        pipeline.finish_rest(|| self.seal(pipeline, &self.state_now()))
    }

    /// Leaves of the log one small file if nothing was written since the last flush.
    pub(super) fn shrink_flushed_log(&self, pipeline: &Pipeline) -> Result<()> {
        let flushed = self.state_now().active().start == pipeline.reserved();
        // A flush that ends makes the reserve larger, and until it has, the device looks full: this waits for it.
        if !flushed || !self.reserve.restore() {
            return Ok(());
        }
        let flushes = || self.counters.background.changes().0;
        let before = flushes();
        let sealed = self.shrink_log(pipeline);
        self.flush()?;
        // A flush releases the log after its memtables are gone, and then ends.
        loop {
            let seen = self.work.done().epoch();
            if !sealed || flushes() != before {
                break;
            }
            self.wait_for_work(seen, Interruption::NEVER)?;
        }
        self.reserve.rest(|| self.state_now().active().bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
