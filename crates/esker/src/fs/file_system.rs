//! A file system, as the engine uses it: the trait [`Fs`] and what its calls take and give.
//!
//! Paths are plain paths. The trait covers names and directories; [`File`] covers open files.

use super::file::File;
use super::kind::PathKind;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How [`Fs::open`] opens a file.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let path = dir.path().join("a");
/// use esker::fs::{OpenMode, os};
/// assert!(os().open(&path, OpenMode::Read).is_err());
/// os().open(&path, OpenMode::CreateNew)?;
/// assert!(os().open(&path, OpenMode::CreateNew).is_err());
/// os().open(&path, OpenMode::ReadWrite)?.write_at(b"text", 0)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Existing file, reading only.
    Read,
    /// Existing file, reading and writing.
    ReadWrite,
    /// New file, reading and writing; fails if the name exists.
    CreateNew,
}

/// An entry of a directory.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let path = dir.path().join("a");
/// use esker::fs::{OpenMode, os};
/// os().open(&path, OpenMode::CreateNew)?;
/// let entry = &os().list(dir.path())?[0];
/// assert!(entry.name == "a" && entry.len == 0 && entry.is_file() && !entry.is_dir());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name; entries whose name is not UTF-8 are listed with replacement characters.
    pub name: String,
    /// Its length in bytes; 0 for directories.
    pub len: u64,
    /// What it is; links are not followed.
    pub kind: PathKind,
}

impl DirEntry {
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == PathKind::File
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind == PathKind::Directory
    }
}

/// A file system.
///
/// # Example
/// ```
/// use esker::fs::{OpenMode, os};
/// # let dir = tempfile::tempdir().unwrap();
/// let (fs, path) = (os(), dir.path().join("sub"));
/// fs.create_dir(&path)?;
/// let (a, b) = (path.join("a"), path.join("b"));
/// fs.open(&a, OpenMode::CreateNew)?.write_at(b"text", 0)?;
/// fs.hard_link(&a, &b)?;
/// assert_eq!(fs.list(&path)?.len(), 2);
/// fs.remove_file(&b)?;
/// fs.rename(&a, &b)?;
/// fs.sync_dir(&path)?;
/// assert!(fs.kind(&a)?.is_none() && fs.contains(dir.path(), &b)?);
/// assert!(fs.real_path(&b)?.is_absolute() && fs.is_native());
/// println!("{} bytes are free, {} files may be open", fs.free_bytes(&path)?, fs.open_files_max());
/// // A database finds its files from a handle of its directory.
/// let inside = fs.rooted(&path)?.unwrap_or_else(|| fs.clone());
/// drop(inside.lock(&path.join("LOCK"))?);
/// for entry in inside.list(&path)? {
///     inside.remove_file(&path.join(entry.name))?;
/// }
/// fs.remove_dir(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Fs: Send + Sync + fmt::Debug + 'static {
    /// Opens a regular file. Parent directories must exist. New files are private to the user as
    /// the process's umask says. Refuses anything else without opening it, with an error that
    /// [`wrong_kind`](super::wrong_kind) recognises.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Creates one directory; succeeds if it is there already.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Lists a directory, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// The kind of the file at this path, if there is one. A file system of
    /// [`within`](super::within) follows no links; others do, unless the link is broken.
    fn kind(&self, path: &Path) -> io::Result<Option<PathKind>>;
    /// Renames a file, replacing the target, or a directory, to a name that is free; both in
    /// directories of this file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Gives a file a second name, which must be free. Fails with
    /// [`io::ErrorKind::CrossesDevices`] if the two lie on different devices, and with
    /// [`io::ErrorKind::Unsupported`] where files have one name only.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes a directory, which must be empty.
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Makes the entries (creations, renames, removals) of a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Takes the exclusive lock of a regular file, creating it if it is missing. Fails at once with
    /// [`io::ErrorKind::WouldBlock`] if another handle, of this process or any other, holds it.
    /// The lock ends when the returned guard is dropped, also where forked children still hold
    /// copies of the descriptor (R26), and not when another descriptor of the file is closed.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>>;
    /// Bytes that can still be written to the device that holds `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
    /// This file system, which then finds everything below `directory` from a handle of it, see
    /// [`within`](super::within); `None` where no links could lead out.
    fn rooted(&self, directory: &Path) -> io::Result<Option<Arc<dyn Fs>>> {
        let _ = directory;
        Ok(None)
    }
    /// How many run files may be open at once. The other descriptors of the process are for its
    /// other files.
    fn open_files_max(&self) -> usize {
        usize::MAX
    }
    /// Whether this is the operating system's own file system, neither simulated nor wrapped.
    fn is_native(&self) -> bool {
        false
    }
    /// The path of something that exists, from the root on and without links.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        std::path::absolute(path)
    }
    /// Whether `path`, which need not exist, is `directory` or lies in it.
    fn contains(&self, directory: &Path, path: &Path) -> io::Result<bool> {
        Ok(std::path::absolute(path)?.starts_with(std::path::absolute(directory)?))
    }
}

/// A held file lock.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let path = dir.path().join("a");
/// let lock = esker::fs::os().lock(&path)?;
/// assert!(esker::fs::os().lock(&path).is_err(), "held");
/// drop(lock);
/// esker::fs::os().lock(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait FileLock: Send + Sync + fmt::Debug {}
