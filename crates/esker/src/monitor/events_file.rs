//! The file `EVENTS`: events as lines of JSON, the newest last (docs/file-formats.md).
//!
//! 1. The engine never reads events back and never needs the file. Whatever is at its name, opening,
//!    writing and closing go on; an event that cannot be written is counted and dropped.
//! 2. A file that would exceed [`EVENTS_BYTES_MAX`] becomes `EVENTS.1`, which replaces the one
//!    before. So both together have at most twice that many bytes, and the newlines that end torn
//!    lines.
//! 3. Nothing here is synced. A crash may leave a torn last line; the next life ends it with a
//!    newline, so it spoils no other line.
//! 4. While the device is full nothing is written: what little becomes free is for the data. Some
//!    lines wait in memory meanwhile.

use crate::directory::{EVENTS_BEFORE_NAME, EVENTS_NAME};
use crate::events::Event;
use crate::fs::{File, Fs, open_to_change};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of one of the two files.
pub const EVENTS_BYTES_MAX: u64 = 1 << 20;
/// A longer line is dropped.
pub const LINE_BYTES_MAX: usize = 16 << 10;
/// The most bytes of lines that wait while they cannot be written.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// The file, opened when there is something to write.
#[derive(Debug)]
pub struct EventsFile {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    before: PathBuf,
    open: Option<Open>,
    /// Whole lines that are not written yet.
    waiting: Vec<u8>,
    /// Lines that were dropped since [`Self::take_lost`].
    lost: u64,
}

#[derive(Debug)]
struct Open {
    file: Arc<dyn File>,
    len: u64,
}

impl EventsFile {
    /// The file in this directory; nothing is opened yet.
    pub fn new(fs: Arc<dyn Fs>, directory: &Path) -> Self {
        let (path, before) = (directory.join(EVENTS_NAME), directory.join(EVENTS_BEFORE_NAME));
        Self { fs, path, before, open: None, waiting: Vec::new(), lost: 0 }
    }

    /// Appends events; `has_space`: whether the device has space for what nothing needs. Lines that
    /// cannot be written wait for the next call.
    pub fn append(&mut self, events: &[Event], has_space: bool) {
        for event in events {
            let line = event.to_json();
            if line.len() >= LINE_BYTES_MAX {
                self.lost += 1;
                continue;
            }
            if self.waiting.len() + line.len() >= WAITING_BYTES_MAX {
                self.write(has_space);
            }
            if self.waiting.len() + line.len() >= WAITING_BYTES_MAX {
                self.lost += 1;
                continue;
            }
            self.waiting.extend_from_slice(line.as_bytes());
            self.waiting.push(b'\n');
        }
        self.write(has_space);
    }

    /// How many lines were dropped since the last call, if lines can be written again.
    pub fn take_lost(&mut self) -> Option<u64> {
        if self.lost == 0 || !self.waiting.is_empty() {
            return None;
        }
        Some(std::mem::take(&mut self.lost))
    }

    fn write(&mut self, has_space: bool) {
        // Seeded: events take the last space of a full device.
        let has_space = has_space || bug!("monitor_writes_on_a_full_device");
        if has_space && let Err(error) = self.write_waiting() {
            log::debug!("events cannot be written to {}: {error}", self.path.display());
            // It is opened anew, whatever is there then.
            if let Some(Open { file, len }) = self.open.take() {
                // If this fails too, the next opening ends the torn line.
                let _ = file.set_len(len);
            }
        }
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.open()?,
            };
            let room = usize::try_from(EVENTS_BYTES_MAX.saturating_sub(open.len)).unwrap_or(0);
            // Seeded: the file grows for ever.
            let room = if bug!("monitor_events_not_bounded") { usize::MAX } else { room };
            let fits = self.waiting.get(..room).unwrap_or(&self.waiting);
            let Some(end) = fits.iter().rposition(|byte| *byte == b'\n') else {
                self.open = Some(self.rotate(open)?);
                continue;
            };
            let lines = self.waiting.get(..=end).unwrap_or_default();
            let (at, len) = (open.len, lines.len());
            let written = open.file.write_at(lines, at);
            if written.is_ok() {
                open.len += len as u64;
                self.waiting.drain(..len);
            }
            self.open = Some(open);
            written?;
        }
        Ok(())
    }

    /// Opens or creates the file, and ends a torn last line.
    fn open(&self) -> io::Result<Open> {
        let (mut file, _) = open_to_change(self.fs.as_ref(), &self.path)?;
        let mut len = file.len()?;
        if len > EVENTS_BYTES_MAX + LINE_BYTES_MAX as u64 {
            // This engine did not write it, and the bound holds for both files together.
            drop(file);
            self.fs.remove_file(&self.path)?;
            (file, _) = open_to_change(self.fs.as_ref(), &self.path)?;
            len = file.len()?;
        }
        let mut last = [b'\n'];
        if len > 0 {
            file.read_at(&mut last, len - 1)?;
        }
        // Seeded: a torn line spoils the next one.
        if last != *b"\n" && !bug!("monitor_torn_line_not_ended") {
            file.write_at(b"\n", len)?;
            len += 1;
        }
        Ok(Open { file, len })
    }

    /// Makes room: the file becomes the one before. If its name is taken by what cannot be
    /// replaced, the file begins anew instead.
    fn rotate(&self, open: Open) -> io::Result<Open> {
        match self.fs.rename(&self.path, &self.before) {
            Ok(()) => self.open(),
            Err(_) => {
                open.file.set_len(0)?;
                Ok(Open { len: 0, ..open })
            }
        }
    }
}
