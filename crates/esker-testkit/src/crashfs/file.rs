//! Open files, mapped windows and locks of the simulated disk.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use esker::fs::{Advice, File, FileLock, Incarnation, LogMap};

use super::disk::{Disk, incarnation};

/// One use of an inode, counted as long as it lives.
pub(super) struct Handle {
    pub(super) disk: Arc<Disk>,
    pub(super) inode: u64,
    /// The name at the time of opening, for descriptions.
    pub(super) path: PathBuf,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.disk.state.lock().close(self.inode);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (inode {})", self.path.display(), self.inode)
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct CrashFile {
    handle: Arc<Handle>,
    writable: bool,
}

impl CrashFile {
    pub(super) fn new(handle: Handle, writable: bool) -> Self {
        Self { handle: Arc::new(handle), writable }
    }

    /// Announces a change of this file, which must be open for writing.
    fn begin(&self, what: &str) -> io::Result<()> {
        if !self.writable {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the file is open for reading only",
            ));
        }
        self.handle.disk.begin(&format!("{what} of {}", self.handle.path.display()));
        Ok(())
    }
}

impl File for CrashFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.handle.disk.state.lock().file(self.handle.inode)?.live.read(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.begin(&format!("write {} at {offset}", bytes.len()))?;
        let mut state = self.handle.disk.state.lock();
        state.limit(offset + bytes.len() as u64)?;
        let copies = state.settings.copies_on_write;
        let written = state.change_file(self.handle.inode, |image, room, dirty| {
            image.write(bytes, offset, room, copies, dirty)
        })?;
        written.map_err(|error| state.put(error))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.handle.disk.state.lock().file(self.handle.inode)?.live.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        let mut state = self.handle.disk.state.lock();
        Ok(state.file(self.handle.inode)?.live.held() * super::image::BLOCK)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.begin(&format!("set_len {len}"))?;
        let mut state = self.handle.disk.state.lock();
        state.change_file(self.handle.inode, |image, _, dirty| image.set_len(len, dirty))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.begin(&format!("allocate {len}"))?;
        let mut state = self.handle.disk.state.lock();
        state.limit(len)?;
        let allocated = state.change_file(self.handle.inode, |image, room, dirty| {
            image.allocate(len, room, dirty)
        })?;
        allocated.map_err(|error| state.put(error))
    }

    fn sync_data(&self) -> io::Result<()> {
        // Also allowed on files that are open for reading, as on Linux.
        let what = format!("======== sync_data of {}", self.handle.path.display());
        self.handle.disk.begin(&what);
        self.handle.disk.state.lock().sync_data(self.handle.inode)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.begin(&format!("punch {len} at {offset}"))?;
        let mut state = self.handle.disk.state.lock();
        state.change_file(self.handle.inode, |image, _, dirty| image.punch(offset, len, dirty))
    }

    fn keeps_space(&self) -> bool {
        !self.handle.disk.state.lock().settings.copies_on_write
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.handle.disk.state.lock().file(self.handle.inode)?.names)
    }

    fn incarnation(&self) -> Incarnation {
        incarnation(self.handle.disk.state.lock().boot, self.handle.inode)
    }

    fn map(&self, len: u64) -> io::Result<Box<dyn LogMap>> {
        if len == 0 || !self.handle.disk.state.lock().file(self.handle.inode)?.live.has_space(len) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the range to map is empty or not allocated: stores into it could fail (R9)",
            ));
        }
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if !self.keeps_space() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Box::new(CrashMap { handle: Arc::clone(&self.handle), len }))
    }

    fn advise(&self, _advice: Advice) {}
}

/// A mapped window: what is written is live at once, page by page.
#[derive(Debug)]
struct CrashMap {
    handle: Arc<Handle>,
    len: u64,
}

impl LogMap for CrashMap {
    fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        if offset > self.len || bytes.len() as u64 > self.len - offset {
            return false;
        }
        let disk = &self.handle.disk;
        let chunk = disk.state.lock().settings.mapped_chunk;
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = (chunk - at % chunk).min(rest.len() as u64);
            let (part, tail) = rest.split_at(step as usize);
            disk.begin(&format!("mapped write {step} at {at} of {}", self.handle.path.display()));
            let mut state = disk.state.lock();
            let written = state.change_file(self.handle.inode, |image, room, dirty| {
                image.len() >= at + step && image.write(part, at, room, false, dirty).is_ok()
            });
            drop(state);
            // A real machine raises SIGBUS: the file was cut under the window, or a hole was
            // punched into it and the disk is full.
            assert!(
                matches!(written, Ok(true)),
                "a mapped store to {:?} at {at} has no space behind it",
                self.handle
            );
            at += step;
            rest = tail;
        }
        true
    }

    fn populate(&self, _offset: u64, _len: u64) {}

    fn len(&self) -> u64 {
        self.len
    }
}

/// A held lock.
#[derive(Debug)]
pub(super) struct CrashLock(pub(super) Handle);

impl FileLock for CrashLock {}

impl Drop for CrashLock {
    fn drop(&mut self) {
        self.0.disk.state.lock().locks.remove(&self.0.inode);
    }
}
