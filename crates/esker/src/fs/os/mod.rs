//! The operating system's file system.
//!
//! [`names`] finds names and follows no links. The standard library does what it can: positioned
//! reads and writes that deal with short transfers and interruptions, `fdatasync`, advisory locks
//! that belong to the open file (and so are not lost when another descriptor of it is closed, as
//! `fcntl` locks are). What it lacks is in [`unix`], and in [`portable`] for systems where Esker
//! runs with plain writes only: real allocation, holes, mapped log windows, and the facts that make
//! up an [`Incarnation`].
//!
//! 1. No buffer lies between a call and the kernel: bytes for which `write_at` returned survive
//!    the process.
//! 2. A failed sync is reported once and never retried here (R8).
//! 3. All descriptors are close-on-exec; a forked child never releases a lock or unmaps a window
//!    of its parent (R26).

mod file;
mod lock;
#[cfg(unix)]
mod map;
#[cfg(unix)]
mod names;
#[cfg(not(unix))]
#[path = "portable_names.rs"]
mod names;
#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use portable as system;
#[cfg(unix)]
use unix as system;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::names::Names;
use super::{DirEntry, File, FileLock, Fs, OpenMode, PathKind};

/// The runs of a database take one in so many of the descriptors that a process may have.
const SHARE_OF_RUNS: usize = 4;

pub(super) use system::is_out_of_descriptors;

/// The operating system's files: all paths, or one directory and what is below it.
#[derive(Debug, Clone, Default)]
pub(super) struct OsFs(Arc<Names>);

impl Fs for OsFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(file::OsFile(self.0.open(path, mode)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match self.0.create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = self.kind(path)?.ok_or(error)?;
                super::expect_kind(found, PathKind::Directory)
            }
            other => other,
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.list(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Option<PathKind>> {
        match self.0.kind(path) {
            Ok(kind) => Ok(Some(kind)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.hard_link(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        Ok(Box::new(lock::OsLock::take(&self.0, path)?))
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.0.free_bytes(path)
    }

    fn rooted(&self, directory: &Path) -> io::Result<Option<Arc<dyn Fs>>> {
        Ok(Some(Arc::new(Self(Arc::new(Names::below(directory)?)))))
    }

    fn open_files_max(&self) -> usize {
        system::descriptors() / SHARE_OF_RUNS
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(path)
    }

    fn contains(&self, directory: &Path, path: &Path) -> io::Result<bool> {
        names::contains(directory, path)
    }
}

#[cfg(test)]
mod tests;
