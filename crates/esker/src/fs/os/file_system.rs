//! The operating system's file system: names, directories, locks.
//!
//! Every call goes to [`Names`], which finds the path. The module `system` has the calls that
//! differ between systems.

use super::file::OsFile;
use super::lock::OsLock;
use super::names::{self, Names};
use super::system;
use crate::fs::{DirEntry, File, FileLock, Fs, OpenMode, PathKind, expect_kind};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Run files get one in this many of the descriptors that a process may have.
const SHARE_OF_RUNS: usize = 4;

/// The operating system's files: all paths, or one directory and what is below it.
#[derive(Debug, Clone, Default)]
struct OsFs(Arc<Names>);

impl Fs for OsFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(OsFile(self.0.open(path, mode)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match self.0.create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = self.kind(path)?.ok_or(error)?;
                expect_kind(found, PathKind::Directory)
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

    fn is_native(&self) -> bool {
        true
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
        Ok(Box::new(OsLock::take(&self.0, path)?))
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

/// Whether a file could not be opened because the process, or the system, has too many open.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    system::is_out_of_descriptors(error)
}

/// The operating system's file system.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let mut options = esker::Options::default();
/// options.fs = esker::fs::os(); // The default.
/// esker::Db::open_with(&dir, options)?.close()?;
/// # Ok::<(), esker::Error>(())
/// ```
pub fn os() -> Arc<dyn Fs> {
    Arc::new(OsFs::default())
}
