//! The statement in the superblocks of how far manifest and log reach, while the database is open.
//!
//! What is recorded is durable before it is recorded, so the statement stays true for good. Threads
//! that sync the log wake the recording thread at most once between two records.

use super::known::Known;
use super::superblock::{Superblock, Superblocks};
use crate::base::Seq;
use crate::error::Result;
use crate::fs::Fs;
use crate::sync::Signal;
use crate::wal;
use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is recorded.
#[derive(Debug)]
pub struct ReachRecord {
    superblocks: Mutex<Superblocks>,
    /// The position of the log up to which it is recorded to be durable.
    log: AtomicU64,
    wanted: Arc<Wanted>,
}

/// Wakes the recording thread when there is something to record.
#[derive(Debug)]
pub struct Wanted {
    told: AtomicBool,
    signal: Arc<Signal>,
}

impl Wanted {
    /// Wakes the threads that wait on `signal`.
    pub fn new(signal: Arc<Signal>) -> Arc<Self> {
        Arc::new(Self { told: AtomicBool::new(false), signal })
    }

    /// The log was synced. Wakes the thread at most once between two records.
    pub fn tell(&self) {
        if !self.told.swap(true, Ordering::AcqRel) {
            self.signal.notify();
        }
    }

    /// Syncs from here on notify again; earlier syncs that notified are seen now, because both
    /// sides exchange the same flag.
    fn listen(&self) {
        self.told.swap(false, Ordering::AcqRel);
    }
}

impl ReachRecord {
    /// What the superblocks say.
    pub fn new(superblocks: Superblocks, wanted: Arc<Wanted>) -> Self {
        let known = superblocks.current().known.unwrap_or_default();
        let log = AtomicU64::new(known.log.position);
        Self { superblocks: Mutex::new(superblocks), log, wanted }
    }

    /// The random bytes that distinguish this database from every other.
    pub fn database(&self) -> [u8; 16] {
        self.superblocks.lock().current().database
    }

    /// The position of the log up to which it is recorded to be durable.
    pub fn recorded(&self) -> Seq {
        self.log.load(Ordering::Acquire)
    }

    /// Syncs of the log from here on wake the recording thread again.
    pub fn listen(&self) {
        self.wanted.listen();
    }

    /// Keeps the superblocks as they are, and shows them.
    pub fn hold(&self) -> MutexGuard<'_, Superblocks> {
        self.superblocks.lock()
    }

    /// Records what `change` makes of the statement, in one superblock or both.
    pub fn write(
        &self,
        fs: &dyn Fs,
        directory: &Path,
        both: bool,
        change: &dyn Fn(&mut Superblock, &mut Known),
    ) -> Result<()> {
        let mut superblocks = self.superblocks.lock();
        let mut next = *superblocks.current();
        let mut known = next.known.unwrap_or_default();
        change(&mut next, &mut known);
        next.known = Some(known);
        if next == *superblocks.current() {
            return Ok(());
        }
        match both {
            true => superblocks.write_both(fs, directory, next)?,
            false => superblocks.write_one(fs, directory, next)?,
        }
        self.log.store(known.log.position, Ordering::Release);
        Ok(())
    }
}

impl Known {
    /// The log is known to be synced up to here, if that is farther than before.
    pub fn raise_log(&mut self, reach: Option<wal::Reach>) {
        // Seeded: superblocks never say how far the log reaches.
        bug!("manifest_log_is_never_recorded", return);
        if let Some(reach) = reach.filter(|reach| reach.position > self.log.position) {
            self.log = reach;
        }
    }
}
