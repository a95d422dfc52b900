//! What the log keeps when nobody writes: one small log file, as large as that of a new database.
//!
//! 1. Under load the log keeps files for the next records: prepared ones and released ones. At rest
//!    they are removed, and those that a later flush releases are removed too.
//! 2. A large log file in use is replaced by a small one. The small file is made first, so a device
//!    without room for it changes nothing. Then the prepared space is taken back up to a void record
//!    ([`Ring::retreat`]), so that from here on nobody can reserve in the large file; and only then the
//!    small one gets its header, which ends the window of the large one. A writer that comes in between
//!    finds no log space and waits for the lock that is held here. If the header cannot be written,
//!    nobody goes back to the large file: a power cut could bring that header back, and records
//!    behind it would be lost. The next writer prepares another log file in its place.
//! 3. The large file goes when the manifest says that the log begins behind it, like every other
//!    (R3): the caller flushes.

use super::{Maker, Space};
use crate::base::Seq;
use crate::commit::ring::{Ring, Ticket};
use crate::error::{IoContext, Result};
use crate::wal::LogFile;
use crate::wal::format::HEADER_BYTES;
use std::sync::Arc;

/// What log files take on the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogBytes {
    /// Bytes of all log files.
    pub files: u64,
    /// Bytes of those in which nothing is needed: kept to be used again, or prepared ahead.
    pub spare: u64,
    /// Bytes of all, without what a log at rest has.
    pub to_gain: u64,
    /// Bytes of those that are mapped.
    pub mapped: u64,
}

impl Space {
    /// Puts the log to rest: see the description of the file. Returns the ticket of `void_bytes` that
    /// was reserved for this, if any; the caller completes it as a void, also after an error. And where
    /// the log ends if nobody has written meanwhile.
    pub(in crate::commit) fn rest(
        &self,
        ring: &Ring,
        void_bytes: u64,
    ) -> (Option<Ticket>, Result<Seq>) {
        let mut maker = self.maker.lock();
        self.drain_pool(&mut maker);
        maker.rests_at = ring.reserved();
        let in_use = self.in_use(maker.rests_at + void_bytes);
        let (ticket, outcome) =
            if in_use.is_some_and(|in_use| in_use.file().capacity() > self.capacity_min) {
                self.replace_large(&mut maker, ring, void_bytes)
            } else {
                (self.drop_unused(&mut maker, ring, void_bytes), Ok(()))
            };
        if let Some(ticket) = ticket {
            maker.rests_at = ticket.end;
        }
        (ticket, outcome.map(|()| maker.rests_at))
    }

    /// The log file that holds the position before `end`.
    fn in_use(&self, end: Seq) -> Option<Arc<LogFile>> {
        self.live.read().iter().find(|log_file| log_file.limit() >= end).cloned()
    }

    fn replace_large(
        &self,
        maker: &mut Maker,
        ring: &Ring,
        void_bytes: u64,
    ) -> (Option<Ticket>, Result<()>) {
        let small = match self.create(maker, self.capacity_min) {
            Ok(small) => small,
            Err(error) => return (None, Err(error)),
        };
        let Some(ticket) = ring.retreat(void_bytes, |end| self.in_use(end).map(|_| end)) else {
            // The gate is closed, or the log file is full: the next one is small if it is due.
            self.tell_left(self.fs.remove_file(small.path()).context("remove", small.path()));
            return (None, Ok(()));
        };
        let unused = self.cut(ticket.end);
        maker.predecessor = self.live.read().last().map_or(0, |last| last.header().nonce);
        maker.populated = maker.populated.min(ticket.end);
        self.remove_unused(&unused);
        (maker.ready, maker.capacity) = (Some(small), self.capacity_min);
        let prepared = self.prepare_one(maker, ring, 0);
        self.set_alarm(maker, ring);
        (Some(ticket), prepared)
    }

    /// Ends the window of the log file in use at `end`, and returns those after it. From the next
    /// reservation on, each slot finds the log file that follows.
    fn cut(&self, end: Seq) -> Vec<Arc<LogFile>> {
        let mut live = self.live.write();
        let kept = live.iter().position(|log_file| log_file.limit() >= end).map_or(0, |at| at + 1);
        let unused = live.split_off(kept);
        if let Some(last) = live.last_mut() {
            *last = Arc::new(last.cut_at(end));
        }
        drop(live);
        // Seeded: records behind the end of the window go into the large log file.
        bug!("commit_cut_log_file_stays_cached", return unused);
        self.forget(|log_file| log_file.limit() > end);
        unused
    }

    /// What log files take; nothing is reserved from `reserved` on.
    pub(in crate::commit) fn bytes(&self, reserved: Seq) -> LogBytes {
        let maker = self.maker.lock();
        let pool: u64 = maker.pool.iter().map(|file| file.file_bytes()).sum();
        let retired: u64 = maker.retired.iter().map(|retired| retired.file_bytes).sum();
        let mut mapped: u64 = maker.pool.iter().map(|file| file.mapped_bytes()).sum();
        let (mut live, mut ahead) = (0, 0);
        for (index, log_file) in self.live.read().iter().enumerate() {
            live += log_file.file().file_bytes();
            mapped += log_file.file().mapped_bytes();
            // Nothing is in it yet; the first one takes the next record in any case.
            if index > 0 && log_file.start() >= reserved {
                ahead += log_file.file().file_bytes();
            }
        }
        let files = live + pool + retired;
        let to_gain = files.saturating_sub(HEADER_BYTES + self.capacity_min);
        LogBytes { files, spare: pool + ahead, to_gain, mapped }
    }

    /// Whether log files are kept beside the last one for what they hold.
    pub(in crate::commit) fn holds_more(&self) -> bool {
        let maker = self.maker.lock();
        self.live.read().len() > 1 || !maker.retired.is_empty()
    }
}
