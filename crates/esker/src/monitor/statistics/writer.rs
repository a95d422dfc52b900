//! Writing the file `STATISTICS`: space for it at open, then one slot after the other.
//!
//! Nothing here fails. What cannot be done is counted, and the next update tries again: the place
//! may be taken by a directory, the device may be full.

use super::format::{FILE_BYTES, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, Slot, decode};
use super::format::{SLOT_BYTES, payload_offset, slot_offset};
use super::{STATISTICS_NAME, TREES_MAX};
use crate::base::{Clock, SystemClock};
use crate::fs::{File, Fs, OpenMode, Process, open_to_change};
use crate::stats::Stats;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file, in the process that has the database open.
#[derive(Debug)]
pub struct StatisticsFile {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    header: Header,
    /// `None`: it could not be opened yet.
    file: Option<Arc<dyn File>>,
    failures: u64,
}

impl StatisticsFile {
    /// The file in `directory`, of a database that is identified by these bytes and was opened
    /// just now. Nothing is written before the first update.
    pub fn new(fs: &Arc<dyn Fs>, directory: &Path, database: [u8; 16]) -> Self {
        let (process, opened) = (Process::current(), SystemClock.now_millis());
        let header = Header { database, process, opened, ..Header::default() };
        let path = directory.join(STATISTICS_NAME);
        Self { fs: fs.clone(), path, header, file: None, failures: 0 }
    }

    /// Gathers and writes the statistics and the number of keyspaces. `end`: for the last time.
    /// `may_grow`: whether there is space for the file if it is not there yet. What takes work in
    /// proportion to the size of the database is bounded where it is measured
    /// (`stats/measured.rs`).
    pub fn keep(&mut self, end: bool, may_grow: bool, gather: impl FnOnce() -> (Stats, usize)) {
        if may_grow || self.has_space() {
            let (stats, keyspaces) = gather();
            self.update(stats, keyspaces, SystemClock.now_millis(), end);
        } else {
            self.failures += 1;
        }
    }

    /// Whether the file has the space that it needs.
    fn has_space(&self) -> bool {
        let len = self.fs.open(&self.path, OpenMode::Read).and_then(|file| file.len());
        len.is_ok_and(|len| len >= FILE_BYTES as u64)
    }

    /// How many updates could not be written.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Writes the statistics of `now`, in Unix milliseconds. `keyspaces`: how many the database
    /// has. `closed`: this is the last update. Returns whether they were written.
    pub fn update(&mut self, mut stats: Stats, keyspaces: usize, now: u64, closed: bool) -> bool {
        self.header.keyspaces = u32::try_from(keyspaces).unwrap_or(u32::MAX);
        (self.header.updated, self.header.closed) = (now, closed);
        let payload = encode(&mut stats);
        let written = self.file().and_then(|file| {
            if payload.len() > PAYLOAD_BYTES_MAX {
                return Err(io::Error::other("the statistics are too long"));
            }
            let update = self.header.update.checked_add(1).ok_or(io::ErrorKind::Other)?;
            let header = Header { update, ..self.header }.encode(&payload);
            file.write_at(&payload, payload_offset(update))?;
            file.write_at(&header, slot_offset(update))?;
            self.header.update = update;
            Ok(())
        });
        if let Err(error) = &written {
            if self.failures == 0 {
                log::warn!("cannot write {}: {error}", self.path.display());
            }
            self.failures += 1;
            // Another file may have taken its place, or the place may have become free.
            self.file = None;
        }
        written.is_ok()
    }

    /// The file with space for both slots.
    fn file(&mut self) -> io::Result<Arc<dyn File>> {
        // Another process may have removed the file, or given it a second name.
        if let Some(file) = &self.file
            && file.links()? == 1
        {
            return Ok(file.clone());
        }
        let (file, new) = open_to_change(self.fs.as_ref(), &self.path)?;
        if !new {
            self.continue_after(file.as_ref())?;
        }
        // On a full device the slots are written as far as they can be.
        let _ = file.allocate(FILE_BYTES as u64);
        let mut inode = [0; 8];
        inode.copy_from_slice(&file.incarnation().0[24..]);
        self.header.inode = u64::from_le_bytes(inode);
        self.file = Some(file.clone());
        Ok(file)
    }

    /// Numbers the updates on from those in the file, so that readers take the new ones. Something
    /// that is no such file, or cannot be continued, is cut away.
    fn continue_after(&mut self, file: &dyn File) -> io::Result<()> {
        let len = file.len()?;
        let (mut newest, mut foreign) = (None, false);
        for index in 0..2 {
            let offset = index * SLOT_BYTES as u64;
            let mut bytes = [0; HEADER_BYTES];
            if len < offset + HEADER_BYTES as u64 {
                continue;
            }
            file.read_at(&mut bytes, offset)?;
            match decode(index, &bytes) {
                Slot::Whole { header, .. } => newest = newest.max(Some(header.update)),
                Slot::OtherVersion(_) => foreign = true,
                Slot::Unusable => {}
            }
        }
        let newest = newest.filter(|update| *update < u64::MAX / 2);
        if newest.is_none() || foreign || len > FILE_BYTES as u64 {
            file.set_len(0)?;
        }
        self.header.update = self.header.update.max(newest.unwrap_or(0));
        Ok(())
    }
}

/// The payload of these statistics, with as many trees as fit.
fn encode(stats: &mut Stats) -> Vec<u8> {
    stats.trees.truncate(TREES_MAX);
    loop {
        let payload = stats.encode();
        if payload.len() <= PAYLOAD_BYTES_MAX || stats.trees.is_empty() {
            return payload;
        }
        let half = stats.trees.len() / 2;
        stats.trees.truncate(half);
    }
}
