//! Flushes beside compactions: who flushes, what a flush waits for, and what ends for it.

use super::WorkQueue;
use crate::error::{Error, Result};

impl WorkQueue {
    /// Takes the right to flush; only one thread at a time has it.
    pub fn begin_flush(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.yielding &= inner.flushing;
        !std::mem::replace(&mut inner.flushing, true)
    }

    /// Ends a flush; `error`: why it failed.
    pub fn end_flush(&self, error: Option<Error>) {
        let mut inner = self.inner.lock();
        inner.flushing = false;
        inner.retry |= error.is_some();
        inner.yielding = inner.compacting > 0 && matches!(error, Some(Error::DiskFull { .. }));
        inner.flush_error = error;
        drop(inner);
        self.done.notify();
    }

    /// Why flushes currently fail, if they do.
    pub fn flush_error(&self) -> Option<Error> {
        self.inner.lock().flush_error.clone()
    }

    /// The error with which a compaction ends so that a flush gets its space.
    pub fn yield_to_flush(&self) -> Result<()> {
        let inner = self.inner.lock();
        if !inner.yielding {
            return Ok(());
        }
        inner.flush_error.clone().map_or(Ok(()), Err)
    }

    /// Whether a push or compaction takes runs away: one is under way, or one is due and a worker can
    /// begin it. After a failure one that is due may fail again, so nobody waits for it until one
    /// has succeeded.
    pub fn takes_runs_away(&self) -> bool {
        let inner = self.inner.lock();
        // Seeded: flushes go past the bound as long as the workers have no processor.
        bug!("compaction_flushes_wait_only_for_what_began", return inner.compacting > 0);
        let can = inner.failed.is_empty() && inner.flush_error.is_none() && !inner.retry;
        let due = |key| !inner.damaged.contains_key(key);
        inner.compacting > 0 || can && inner.candidates.keys().any(due)
    }
}
