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
    /// Takes the lock or fails at once; changes nothing but, at most, creating the empty file.
    pub(super) fn take(names: &Names, path: &Path) -> io::Result<Self> {
        let file = match names.open_or_create(path) {
            // A database on a read-only medium can still be read: reading rights are enough for
            // the lock, if the file is there.
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
        // Children hold copies of the descriptor, so closing it would not release the lock: it is
        // unlocked explicitly. A child must not do that, because the lock is its parent's (R26).
        if !self.owner.forked() {
            let _ = self.file.unlock();
        }
    }
}
