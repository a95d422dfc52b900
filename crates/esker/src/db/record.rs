//! Records how far manifest and log reach, so that a later open can tell damage and older files
//! from an intact end (`manifest::Known`).
//!
//! 1. What is recorded was durable before, so a record stays true. What cannot be undone comes
//!    after: old files are removed, and calls return, only when the record is synced.
//! 2. No write waits for a record: writes of class `Disk` sync the log, and a background thread
//!    records the syncs at most once a second.
//! 3. If a record cannot be written for lack of space, the next record replaces it. After any other
//!    failure the superblock's content is unknown, and nothing more is written (C2).

use crate::commit::Pipeline;
use crate::db::core::Core;
use crate::directory::reserve::Use;
use crate::error::{Error, IoContext, Result};
use crate::manifest::{EndMark, Known, Manifest, Reach, Superblock, manifest_name};
use crate::wal;
use std::time::{Duration, Instant};

/// How often the syncs of writes are recorded.
const RECORD_INTERVAL: Duration = Duration::from_secs(1);

impl Core {
    fn log_reach(&self) -> Option<wal::Reach> {
        self.pipeline.as_ref().and_then(Pipeline::reach)
    }

    /// Writes a record; a failure stops all writing, unless space is missing.
    fn record_so(&self, both: bool, change: impl Fn(&mut Superblock, &mut Known)) -> Result<()> {
        self.latch.check()?;
        let write = || self.record.write(self.fs.as_ref(), &self.path, both, &change);
        match self.with_space(Use::All, write) {
            Err(error @ Error::DiskFull { .. }) => {
                self.monitor.reach_not_recorded(&error);
                Ok(())
            }
            other => other.map_err(|error| {
                self.latch.fail(error.clone());
                error.poisoning()
            }),
        }
    }

    /// Records that the manifest was synced up to here.
    pub(super) fn record_edit(&self, manifest: Reach) -> Result<()> {
        let log = self.log_reach();
        self.record_so(false, |_, known| {
            known.manifest = manifest;
            known.raise_log(log);
        })
    }

    /// Records how far the log is synced.
    pub(super) fn record_log(&self) -> Result<()> {
        self.record.listen();
        let Some(log) = self.log_reach() else { return Ok(()) };
        if log.position <= self.record.recorded() {
            return Ok(());
        }
        self.record_so(false, |_, known| known.raise_log(Some(log)))
    }

    /// Records how far the log is synced, if that is due; otherwise returns the time until it is
    /// due.
    pub(super) fn record_if_due(&self, recorded_at: &mut Instant) -> Option<Duration> {
        // Seeded: only the next flush records what a sync for class Disk made durable.
        bug!("db_synced_log_is_not_recorded", return None);
        let pipeline = self.pipeline.as_ref().filter(|_| self.latch.get().is_none())?;
        let is_recorded = || pipeline.synced() <= self.record.recorded();
        if is_recorded() {
            self.record.listen();
            if is_recorded() {
                return None;
            }
        }
        let left = RECORD_INTERVAL.saturating_sub(recorded_at.elapsed());
        if !left.is_zero() {
            return Some(left);
        }
        if let Err(error) = self.record_log() {
            self.monitor.reach_not_recorded(&error);
        }
        *recorded_at = Instant::now();
        // A sync in the meantime has notified this thread again.
        None
    }

    /// Switches from manifest `old` to `new`: both superblocks name `new`, then `old` is removed
    /// (R12).
    pub(super) fn record_switch(&self, old: u64, new: &Manifest) -> Result<()> {
        let log = self.log_reach();
        let fs = self.fs.as_ref();
        self.record.write(fs, &self.path, true, &|next, known| {
            next.manifest = new.number();
            known.manifest = new.reach();
            known.raise_log(log);
        })?;
        if let Some(pipeline) = &self.pipeline {
            pipeline.set_life(new.number());
        }
        let path = self.path.join(manifest_name(old));
        fs.remove_file(&path).context("remove", &path)?;
        fs.sync_dir(&self.path).context("sync", &self.path)
    }

    /// The content of the log's end mark.
    pub(super) fn record_mark(&self) -> EndMark {
        let store = self.store.lock();
        EndMark { number: store.manifest.number(), reach: store.manifest.reach() }
    }

    /// Records that nothing more is written.
    pub(super) fn record_close(&self, log: Option<wal::Reach>) -> Result<()> {
        // Seeded: nothing records that the log of a closed database is whole.
        bug!("db_close_is_not_recorded", return Ok(()));
        self.record_so(true, |_, known| {
            known.raise_log(log);
            known.closed = true;
        })
    }
}
