//! When trees are tightened, and what is taken up ([`crate::compaction::calm`], [`settle`]).

use crate::compaction::calm::{Calmness, loose_parts};
use crate::compaction::settle;
use crate::db::core::Core;
use crate::stats::counters::Counter;
use std::time::Instant;

impl Core {
    /// Whether nobody has written since somebody looked.
    pub(super) fn is_calm(&self) -> bool {
        self.calm.lock().lasts(self.visible())
    }

    /// Begins to tighten the trees if nobody writes, or to compress what has settled; `at_once`:
    /// without a pause. The answer is [`Calmness::Calm`] if it has begun, or has to look again.
    pub(super) fn tighten_if_calm(&self, at_once: bool) -> Calmness {
        // A look may read files; nobody waits for the lock of `calm` meanwhile.
        let _one_looks = self.work.look();
        let visible = self.visible();
        let all = {
            let mut calm = self.calm.lock();
            match calm.look(visible, Instant::now()) {
                Calmness::After(_) if at_once => {}
                Calmness::Calm => {}
                other => return other,
            }
            // Another worker looks when it has finished.
            if self.reserve.is_tight() || !self.work.is_quiet() {
                return Calmness::Tight;
            }
            let user_bytes = self.counters.total(Counter::UserBytes);
            calm.grants_all(user_bytes, self.totals.lock().base_bytes)
        };
        let (version, room) = (&self.state_now().version.clone(), self.reserve.free());
        let (catalog, store, settings) = (&self.catalog, &self.store, &self.settings);
        let loose = loose_parts(version, (catalog, store), (settings, all), room);
        if self.work.tighten(loose, "calm") {
            return Calmness::Calm;
        }
        let view = settle::View { version, catalog, store, settings, room };
        let (raw, more) = view.raw_parts(|segment| self.is_unsettled(segment));
        if self.work.tighten(raw, "uncompressed") || more {
            return Calmness::Calm;
        }
        self.calm.lock().tightened(visible);
        Calmness::Tight
    }
}
