//! What the log frees when the device is full (C7), in this order:
//!
//! 1. released log files that wait to be used again;
//! 2. log files that were prepared ahead and in which nothing is reserved;
//! 3. the parts of live log files before the released position, by punching holes where the file
//!    system supports it. Such a file is not used again.
//!
//! Open also removes the log files of an earlier life that are not part of the log.

use super::{Maker, Space};
use crate::base::Seq;
use crate::commit::ring::{Ring, Ticket};
use crate::error::{Error, IoContext, Result};
use crate::fs::{File, OpenMode};
use crate::wal::format::HEADER_BYTES;
use crate::wal::{Chain, LogFile};
use std::path::Path;
use std::sync::Arc;

/// Holes are aligned multiples of this size, which every file system can free.
const HOLE_BYTES: u64 = 64 << 10;

impl Space {
    /// Frees log space that the next records do not need. Returns whether it freed any, and the
    /// ticket of `void_bytes` that it reserved for this, if any; the caller completes the ticket as
    /// a void.
    pub(in crate::commit) fn give_up_spare(
        &self,
        ring: &Ring,
        void_bytes: u64,
    ) -> (bool, Option<Ticket>) {
        let mut maker = self.maker.lock();
        if self.drain_pool(&mut maker) {
            return (true, None);
        }
        if let Some(ticket) = self.drop_unused(&mut maker, ring, void_bytes) {
            return (true, Some(ticket));
        }
        (self.make_holes(&mut maker), None)
    }

    pub(super) fn drain_pool(&self, maker: &mut Maker) -> bool {
        let mut any = false;
        for file in maker.pool.drain(..) {
            let path = file.path();
            any |= self.tell_left(self.fs.remove_file(path).context("remove", path));
        }
        any
    }

    /// Reports what could not be freed. Returns whether it was freed.
    pub(super) fn tell_left(&self, freed: Result<()>) -> bool {
        freed.inspect_err(|error| self.events.files_left("spare log files", error)).is_ok()
    }

    /// Removes prepared log files in which nothing is reserved.
    pub(super) fn drop_unused(
        &self,
        maker: &mut Maker,
        ring: &Ring,
        void_bytes: u64,
    ) -> Option<Ticket> {
        let after = |end: Seq| {
            let live = self.live.read();
            let last = live.iter().position(|log_file| log_file.limit() >= end)?;
            (last + 1 < live.len()).then(|| live[last].limit())
        };
        // In most cases this returns without closing the gate.
        after(ring.reserved() + void_bytes)?;
        let ticket = ring.retreat(void_bytes, after)?;
        let unused: Vec<Arc<LogFile>> = {
            let mut live = self.live.write();
            let kept = live.iter().position(|log_file| log_file.limit() >= ticket.end)? + 1;
            let unused = live.split_off(kept);
            if let Some(last) = live.last() {
                maker.predecessor = last.header().nonce;
            }
            unused
        };
        maker.populated = maker.populated.min(ring.limit());
        self.remove_unused(&unused);
        self.set_alarm(maker, ring);
        Some(ticket)
    }

    /// Removes prepared log files. The newest is removed first, and durably: after a power cut no log
    /// file may be left whose predecessor is gone.
    pub(super) fn remove_unused(&self, unused: &[Arc<LogFile>]) {
        for log_file in unused.iter().rev() {
            self.tell_left(remove_durably(self, log_file.file().path()));
        }
    }

    /// Frees the parts of live log files that lie before the released position.
    fn make_holes(&self, maker: &mut Maker) -> bool {
        let mut any = false;
        let (from, until) = (maker.holed, maker.released);
        let gain = |start: Seq, limit: Seq| {
            let begin = from.max(start);
            let end = start + (until.min(limit).saturating_sub(start)) / HOLE_BYTES * HOLE_BYTES;
            (end > begin).then(|| end - start)
        };
        for log_file in self.live.read().iter() {
            let Some(len) = gain(log_file.start(), log_file.limit()) else { continue };
            any |= log_file.file().give_back(len).is_ok();
        }
        for retired in &maker.retired {
            let Some(len) = gain(retired.start, retired.end) else { continue };
            let file = self.fs.open(&retired.path, OpenMode::ReadWrite);
            // The file may have got another hard link.
            let punch = |file: Arc<dyn File>| match file.links()? {
                1 => file.punch(HEADER_BYTES, len),
                _ => Err(std::io::ErrorKind::Unsupported.into()),
            };
            any |= file.and_then(punch).is_ok();
        }
        maker.holed = until;
        any
    }

    /// Prepares the first log file of this life.
    pub(super) fn prepare_first(
        &self,
        maker: &mut Maker,
        ring: &Ring,
        chain: &Chain,
        on_full: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut cleared = false;
        loop {
            match self.prepare_one(maker, ring, 0) {
                Err(Error::DiskFull { .. }) if !cleared => {
                    cleared = true;
                    chain.stale.iter().for_each(|path| drop(self.fs.remove_file(path)));
                    self.drop_windows(maker, chain, ring.reserved());
                }
                Err(Error::DiskFull { .. }) if on_full() => {}
                outcome => return outcome,
            }
        }
    }

    /// Removes the log files that an earlier life had prepared after the end of the log, as long as
    /// another log file covers that end (R11): the newest first, and durably.
    fn drop_windows(&self, maker: &mut Maker, chain: &Chain, start: Seq) {
        for pair in chain.log_files.windows(2).rev() {
            let (before, last) = (&pair[0], &pair[1]);
            if last.header.start < start || before.header.limit() < start {
                break;
            }
            if !self.tell_left(remove_durably(self, &last.path)) {
                break;
            }
            maker.retired.retain(|retired| retired.path != last.path);
        }
    }
}

fn remove_durably(space: &Space, path: &Path) -> Result<()> {
    space.fs.remove_file(path).context("remove", path)?;
    space.fs.sync_dir(&space.dir).context("sync", &space.dir)
}
