//! Puts the log to rest: its files are then no more than one small one (`commit/space/rest.rs`).

use super::super::rest::{REST_AFTER, RestBytes, Resting};
use super::super::space::LogBytes;
use super::{PendingWrite, Pipeline, Stage};
use crate::error::Result;
use crate::wal::format::record_bytes;
use parking_lot::Mutex;
use std::time::Instant;

impl Pipeline {
    /// Removes log files that the next records do not need, and replaces a large one by a small one. A
    /// flush of everything then releases the other log files, which are removed. An error means that
    /// the large one stays; the log itself is not affected, unless writing has ended.
    pub fn rest(&self) -> Result<()> {
        self.latch.check()?;
        let buffer = self.append.as_ref().map(Mutex::lock);
        let synced = self.group.synced();
        let (ticket, outcome) = self.space.rest(&self.ring, record_bytes(0));
        if let Some(ticket) = ticket {
            // Dropping the pending write turns the stretch into a void.
            drop(PendingWrite { pipeline: self, ticket, synced, buffer, stage: Stage::Reserved });
        }
        // Who writes from now on makes the next rest due.
        outcome.map(|end| self.rest.lock().ended(end))
    }

    /// Whether the log is to be put to rest now, or when; `ready`: the caller can do it now. If so, other
    /// callers get a different answer.
    pub fn resting(&self, now: Instant, bytes: RestBytes, ready: bool) -> Resting {
        let (visible, gain) = (self.visible(), self.bytes().to_gain);
        let mut rest = self.rest.lock();
        let resting = rest.look(visible, now, gain, bytes);
        if resting == Resting::Now && !ready {
            // What keeps the caller may end without a signal.
            return Resting::After(REST_AFTER);
        }
        if resting == Resting::Now {
            rest.ended(visible);
        }
        resting
    }

    /// Calls `seal` if a flush of everything would release log files that the last rest left. If it
    /// returns false, because too many sets wait for their flush already, the rest is due again. Returns
    /// whether something was sealed.
    pub fn finish_rest(&self, seal: impl FnOnce() -> bool) -> bool {
        if !self.space.holds_more() {
            return false;
        }
        let sealed = seal();
        if !sealed {
            self.rest.lock().left_unfinished();
        }
        sealed
    }

    /// What log files take.
    pub fn bytes(&self) -> LogBytes {
        self.space.bytes(self.ring.reserved())
    }

    /// Bytes of all log files.
    pub fn file_bytes(&self) -> u64 {
        self.bytes().files
    }
}
