//! The lock that keeps a second handle out (C6).

use std::fs::{self, TryLockError};
use std::io;
use std::path::Path;

use super::names::Names;
use crate::fs::{FileLock, ForkGuard, OpenMode};

/// An exclusive advisory lock that belongs to an open file (`flock` on Unix). Unlike a lock of
/// `fcntl` it does not vanish when some other descriptor of the file is closed, and it also
/// excludes a second handle of this very process.
#[derive(Debug)]
pub(super) struct OsLock {
    file: fs::File,
    owner: ForkGuard,
}

impl OsLock {
    /// Takes the lock or fails at once. The only change on disk is a new, empty file if it was
    /// missing.
    pub(super) fn take(names: &Names, path: &Path) -> io::Result<Self> {
        let file = match names.open_or_create(path) {
            // A database on a read-only medium can still be read: if the file exists, read
            // permission is enough for the lock.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                names.open(path, OpenMode::Read).map_err(|_| error)?
            }
            other => other?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Self { file, owner: ForkGuard::new() }),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl FileLock for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        // Forked children hold copies of the descriptor, so closing it would not release the lock;
        // this unlocks it explicitly. A child must not do that, because the lock is its parent's
        // (R26).
        if !self.owner.forked() {
            let _ = self.file.unlock();
        }
    }
}
