//! A place in the log for a change that the log does not hold.

use super::{Class, Pipeline, Stage};
use crate::base::Seq;
use crate::error::Result;
use crate::wal::format::record_bytes;

impl Pipeline {
    /// Calls `act` with a position of the log that no write has, and returns what it returns. Before the
    /// call, everything written earlier is published; what is written later is published after it. So a
    /// reader sees either nothing of what `act` publishes and nothing later, or all of it.
    ///
    /// The log up to and with the place is durable before the call (R5): however the process ends, no later
    /// write gets the same position. The place is a void, so the log says nothing of what `act` did.
    /// `act` must not write or seal, nor wait for anybody who may wait for a write.
    ///
    /// # Errors
    /// Of `act`, and what a sync of the log fails with; then `act` was not called.
    pub fn claim<R>(&self, act: impl FnOnce(Seq) -> Result<R>) -> Result<R> {
        self.latch.check()?;
        let mut pending = self.begin_write(record_bytes(0))?;
        let (start, end) = (pending.ticket.start, pending.ticket.end);
        pending.log(&[], 0, Class::Buffered)?;
        // Nothing of a void is applied.
        pending.stage = Stage::Applied;
        self.wait_visible(start)?;
        // Seeded: after a power cut a write gets the position of what was ingested.
        if !bug!("commit_claimed_place_not_synced") {
            self.sync_files(end, || end)?;
        }
        let done = act(start);
        drop(pending);
        self.wait_visible(end)?;
        done
    }
}
