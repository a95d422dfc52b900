//! Group commit: one sync for all committers that wait for one (R5, R27).
//!
//! A committer that needs position P durable either sleeps while another committer's sync runs, or
//! leads a sync itself for everything that is visible at that moment. Committers that arrive during
//! a sync share the next one. The end of a sync wakes one of those first, which leads the next sync, so
//! that the device does not wait until all others have been woken; then those whose records are durable. Log files are synced from oldest to newest. After a failed sync no
//! thread syncs again: the latch is set, and all waiters get the error (R8).

use crate::base::Seq;
use crate::error::{Error, Result};
use crate::sync::Latch;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Called with the time that each sync took.
pub(super) type OnSync = Box<dyn Fn(Duration) + Send + Sync>;

/// Shares syncs among committers.
pub(super) struct Group {
    latch: Arc<Latch>,
    synced: AtomicU64,
    lead: Mutex<Lead>,
    /// Where those wait who need a sync with an even number, and with an odd one.
    ended: [Condvar; 2],
    on_sync: Option<OnSync>,
    pub(super) syncs: AtomicU64,
    pub(super) sync_nanos: AtomicU64,
}

/// The sync under way, or the last one.
#[derive(Debug, Default)]
struct Lead {
    busy: bool,
    /// Counts the syncs.
    number: usize,
    /// What it makes durable.
    target: Seq,
}

/// Ends a leader's turn, also on unwinding. After unwinding it is unknown what reached the device.
struct Turn<'a> {
    group: &'a Group,
    finished: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.finished {
            let what = "a sync of the log".to_owned();
            self.group.latch.fail(Error::UserCodePanicked { what });
        }
        let number = {
            let mut lead = self.group.lead.lock();
            lead.busy = false;
            lead.number
        };
        let [this, next] =
            [number, number.wrapping_add(1)].map(|number| &self.group.ended[number % 2]);
        // After a failure nobody leads again, and all wake up.
        if self.group.latch.check().is_ok() {
            next.notify_one();
        } else {
            next.notify_all();
        }
        this.notify_all();
    }
}

impl Group {
    pub(super) fn new(latch: Arc<Latch>, synced: Seq, on_sync: Option<OnSync>) -> Self {
        Self {
            latch,
            synced: AtomicU64::new(synced),
            lead: Mutex::default(),
            ended: [Condvar::new(), Condvar::new()],
            on_sync,
            syncs: AtomicU64::new(0),
            sync_nanos: AtomicU64::new(0),
        }
    }

    /// Everything before this position is durable.
    pub(super) fn synced(&self) -> Seq {
        self.synced.load(Ordering::Acquire)
    }

    /// Returns once everything before `upto` is durable; `upto` must be visible. `files` makes the
    /// log durable between two positions; `visible` returns up to which position the log is
    /// complete.
    pub(super) fn sync(
        &self,
        upto: Seq,
        visible: impl Fn() -> Seq,
        files: impl Fn(Seq, Seq) -> Result<()>,
    ) -> Result<()> {
        loop {
            if self.synced() >= upto {
                return Ok(());
            }
            let mut lead = self.lead.lock();
            // The check is made under the lock: a leader that failed set the latch before it
            // released it.
            if let Err(error) = self.latch.check() {
                // It may have been woken alone, to lead.
                for ended in &self.ended {
                    ended.notify_all();
                }
                return Err(error);
            }
            if self.synced() >= upto {
                return Ok(());
            }
            if lead.busy {
                let number = lead.number.wrapping_add(usize::from(lead.target < upto));
                self.ended[number % 2].wait(&mut lead);
                continue;
            }
            let target = visible();
            (lead.busy, lead.number, lead.target) = (true, lead.number.wrapping_add(1), target);
            drop(lead);
            self.lead(target, &files)?;
        }
    }

    fn lead(&self, target: Seq, files: impl Fn(Seq, Seq) -> Result<()>) -> Result<()> {
        let mut turn = Turn { group: self, finished: false };
        let begun = Instant::now();
        let outcome = files(self.synced(), target);
        match outcome {
            Ok(()) => {
                // Seeded: a sync counts for records that came after it began.
                let target = if bug!("commit_synced_runs_ahead") { target + 4096 } else { target };
                self.synced.fetch_max(target, Ordering::AcqRel);
                let took = begun.elapsed();
                self.syncs.fetch_add(1, Ordering::Relaxed);
                self.sync_nanos.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
                turn.finished = true;
                drop(turn);
                if let Some(tell) = &self.on_sync {
                    tell(took);
                }
                Ok(())
            }
            Err(error) => {
                // Seeded: after a failed sync of the log, writes go on and another sync is trusted.
                bug!("commit_failed_sync_is_forgotten", {
                    turn.finished = true;
                    return Err(error);
                });
                self.latch.fail(error.clone());
                turn.finished = true;
                Err(error.poisoning())
            }
        }
    }
}
