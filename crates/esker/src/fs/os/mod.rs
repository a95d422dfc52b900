//! The operating system's file system.
//!
//! The standard library does what it can: positioned reads and writes that deal with short
//! transfers and interruptions, `fdatasync`, advisory locks that belong to the open file (and so
//! are not lost when another descriptor of it is closed, as `fcntl` locks are). What it lacks is
//! in [`unix`], and in [`portable`] for systems where Esker runs with plain writes only: real
//! allocation, holes, mapped log windows, and the facts that make up an [`Incarnation`].
//!
//! 1. No buffer lies between a call and the kernel: what `write_at` returned for survives the
//!    process.
//! 2. A failed sync is reported once and never retried here (R8).
//! 3. All descriptors are close-on-exec; a forked child never releases a lock or unmaps a window
//!    of its parent (R26).

mod file;
mod lock;
#[cfg(unix)]
mod map;
#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use portable as system;
#[cfg(unix)]
use unix as system;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{DirEntry, File, FileLock, Fs, OpenMode, PathKind};

/// The real thing.
#[derive(Debug, Clone, Copy)]
pub(super) struct OsFs;

impl Fs for OsFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::ReadWrite => {
                options.write(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        Ok(Arc::new(file::OsFile(options.open(path)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            other => other,
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // Links are followed, so that a directory may lie on another device. What was
            // removed since the listing began, or points nowhere, is told by its own metadata.
            let metadata = match fs::metadata(entry.path()).or_else(|_| entry.metadata()) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            entries.push(DirEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                len: if metadata.is_dir() { 0 } else { metadata.len() },
                is_dir: metadata.is_dir(),
            });
        }
        Ok(entries)
    }

    fn kind(&self, path: &Path) -> io::Result<Option<PathKind>> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(Some(PathKind::Directory)),
            Ok(_) => Ok(Some(PathKind::File)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        system::sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        Ok(Box::new(lock::OsLock::take(path)?))
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        system::free_bytes(path)
    }
}

#[cfg(test)]
mod tests;
