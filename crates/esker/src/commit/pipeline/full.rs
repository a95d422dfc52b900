//! What the log does on a full device (C7).

use super::{PendingWrite, Pipeline, Stage};
use crate::error::{Error, Result};
use crate::wal::format::record_bytes;
use parking_lot::Mutex;

impl Pipeline {
    /// Gives back space of the log that the next records do not need: released log files, prepared
    /// ones, and what lies before the released position in others. Returns whether there was
    /// anything; another call may find more.
    pub fn give_up_spare(&self) -> bool {
        let buffer = self.append.as_ref().map(Mutex::lock);
        let synced = self.group.synced();
        let (any, ticket) = self.space.give_up_spare(&self.ring, record_bytes(0));
        if let Some(ticket) = ticket {
            // Its end makes the stretch void.
            drop(PendingWrite { pipeline: self, ticket, synced, buffer, stage: Stage::Reserved });
        }
        any
    }

    /// Makes the log of earlier lives that is still needed durable, for the case that it cannot be
    /// flushed before the first write: it is written over itself and synced (R7).
    pub fn persist_earlier(&self) -> Result<()> {
        self.space.persist_retired()
    }

    /// Whether to write the same bytes to the same place once more: on a file system that copies on
    /// write, space that was allocated may be missing all the same.
    pub(super) fn finds_room(&self, error: &Error) -> bool {
        matches!(error, Error::DiskFull { .. })
            && self.append.is_some()
            && self.on_full.as_ref().is_some_and(|make_room| make_room())
    }
}
