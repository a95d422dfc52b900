//! What the log does on a full device (C7).

use super::{PendingWrite, Pipeline, Stage};
use crate::error::{Error, Result};
use crate::wal::format::record_bytes;
use parking_lot::Mutex;

impl Pipeline {
    /// Frees log space that the next records do not need: released log files, prepared log files,
    /// and the part before the released position in live log files. Returns whether it freed any;
    /// another call may free more.
    pub fn give_up_spare(&self) -> bool {
        let buffer = self.append.as_ref().map(Mutex::lock);
        let synced = self.group.synced();
        let (any, ticket) = self.space.give_up_spare(&self.ring, record_bytes(0));
        if let Some(ticket) = ticket {
            // Dropping the pending write turns the stretch into a void.
            drop(PendingWrite { pipeline: self, ticket, synced, buffer, stage: Stage::Reserved });
        }
        any
    }

    /// Makes the log of earlier lives that is still needed durable, for the case that it cannot be
    /// flushed before the first write: rewrites its log files in place and syncs them (R7).
    pub fn persist_earlier(&self) -> Result<()> {
        self.space.persist_retired()
    }

    /// Whether the caller should write the same bytes to the same place again. A copy-on-write file
    /// system can run out of space even for space that was allocated.
    pub(super) fn finds_room(&self, error: &Error) -> bool {
        matches!(error, Error::DiskFull { .. })
            && self.append.is_some()
            && self.on_full.as_ref().is_some_and(|make_room| make_room())
    }
}
