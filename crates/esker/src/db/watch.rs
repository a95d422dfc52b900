//! What the monitor's thread looks at about once per second.
//!
//! It tells whether the database does anything, so that the monitor may rest when it does not,
//! reports a snapshot that is held for long, and gathers the statistics for other processes. It
//! only reads.

use crate::base::{Millis, Seq};
use crate::catalog::DEFAULT_KEYSPACE_ID;
use crate::db::core::Core;
use crate::events::EventKind;
use crate::monitor::Watch;
use crate::monitor::statistics::{StatisticsFile, TREES_MAX};
use crate::stats::counters::Counter;
use crate::stats::measured::Remeasured;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A snapshot that is older is reported, once.
const HELD_LONG: Millis = 10 * 60 * 1000;

/// What the monitor saw when it looked last.
pub(super) struct Watching {
    core: Arc<Core>,
    seen: (Seq, u64, u64),
    /// The time of the last snapshot that was reported.
    reported: Option<Millis>,
    statistics: Option<StatisticsFile>,
    remeasured: Remeasured,
}

impl Watching {
    pub(super) fn new(core: Arc<Core>) -> Self {
        let file = || StatisticsFile::new(&core.fs, &core.path, core.id());
        let statistics = core.monitor.writes_files().then(file);
        Self {
            core,
            seen: (0, 0, 0),
            reported: None,
            statistics,
            remeasured: Remeasured::default(),
        }
    }
}

impl Watch for Watching {
    fn look(&mut self, end: bool) -> bool {
        let core = &self.core;
        let (snapshots, oldest) = core.snapshots.oldest();
        let age = oldest.map_or(0, |oldest| core.now().saturating_sub(oldest));
        if age >= HELD_LONG && self.reported != oldest {
            self.reported = oldest;
            let (age, snapshots) = (Duration::from_millis(age), snapshots as u64);
            core.monitor.emit(EventKind::SnapshotHeld { age, snapshots });
        }
        let remeasured = &mut self.remeasured;
        if let Some(file) = &mut self.statistics {
            file.keep(end, !core.reserve.is_tight(), || {
                let keyspaces = core.catalog.lock().live_count(DEFAULT_KEYSPACE_ID);
                (core.stats_of(DEFAULT_KEYSPACE_ID, TREES_MAX, remeasured), keyspaces)
            });
            let failures = &core.counters.background.statistics_failures;
            failures.store(file.failures(), Ordering::Relaxed);
        }
        let total = |counter| core.counters.total(counter);
        let now = (core.visible(), total(Counter::Gets), total(Counter::Scans));
        std::mem::replace(&mut self.seen, now) != now
    }

    fn has_space(&self) -> bool {
        !self.core.reserve.is_tight()
    }
}
