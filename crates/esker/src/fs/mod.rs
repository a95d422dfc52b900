//! The engine's only access to the operating system.
//!
//! Every file access of the engine goes through [`Fs`] and [`File`], so that the tests can put a
//! simulated disk (power cuts, torn writes, failing syncs) under the very same code. Paths are
//! plain paths; nothing here knows the database's layout.
//!
//! A database's directory may hold what does not belong there: links to files elsewhere, pipes
//! without a writer, devices. Names are therefore judged in one place, below this trait:
//!
//! 1. [`Fs::open`] and [`Fs::lock`] take only regular files. Links are not followed, and
//!    what is not a regular file is not even opened, so no call blocks on a pipe or wakes a device.
//! 2. Below the directory of a file system that [`within`] made, names are found from a handle of
//!    that directory, and no link is followed on the way: nothing outside is read or written.
//! 3. Code that changes a file in place looks at [`File::links`] first.

use crate::error::{Error, IoContext};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod fork;
mod kind;
mod os;

pub use fork::ForkGuard;
pub(crate) use kind::expect_kind;
pub use kind::{PathKind, wrong_kind};

/// How [`Fs::open`] opens a file.
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

/// Identifies one life of one file: boot id, mount id and inode (R6). Two equal incarnations mean
/// that the page cache in between was never lost; all zeros means unknown and equals nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incarnation(pub [u8; 32]);

impl Incarnation {
    /// Whether both are known and the same.
    pub fn same_life(&self, other: &Self) -> bool {
        self.0 != [0; 32] && self == other
    }
}

/// A file system.
pub trait Fs: Send + Sync + fmt::Debug + 'static {
    /// Opens a regular file. Parent directories must exist. New files are private to the user as
    /// the process's umask says. Anything but a regular file is refused, unopened, with an error
    /// that [`wrong_kind`] recognises.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Creates one directory; succeeds if it is there already.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Lists a directory, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// The kind of what stands at this path, if anything does. In a file system of [`within`],
    /// links are not followed; elsewhere they are, as far as they lead somewhere.
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
    /// This file system with everything below `directory` found from a handle of it, see
    /// [`within`]; `None` where there are no links that could lead out.
    fn rooted(&self, directory: &Path) -> io::Result<Option<Arc<dyn Fs>>> {
        let _ = directory;
        Ok(None)
    }
    /// How many files may be open at once for reading runs. The other descriptors are for
    /// everything else that the process opens.
    fn open_files_max(&self) -> usize {
        usize::MAX
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

/// A file system on which everything below `directory`, which must exist, is found from a handle
/// of it without following links. Other paths mean what they mean on `fs`.
pub fn within(fs: &Arc<dyn Fs>, directory: &Path) -> io::Result<Arc<dyn Fs>> {
    Ok(fs.rooted(directory)?.unwrap_or_else(|| fs.clone()))
}

/// Opens a file that is changed in place, or makes it; returns whether it is new, with a name that
/// is not durable yet. A file that has other names is not changed: a new file takes its place,
/// since in a copy made of hard links it belongs to the original, too.
pub(crate) fn open_to_change(fs: &dyn Fs, path: &Path) -> io::Result<(Arc<dyn File>, bool)> {
    // Seeded: a file that has another name is changed under both.
    let any = bug!("fs_linked_file_is_changed");
    match fs.open(path, OpenMode::ReadWrite) {
        Ok(file) if any || file.links()? <= 1 => return Ok((file, false)),
        Ok(_) => fs.remove_file(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok((fs.open(path, OpenMode::CreateNew)?, true))
}

/// Opens for reading a file that the database refers to: if it is missing or not a regular file,
/// that is damage (C3).
pub fn open_part(fs: &dyn Fs, path: &Path, section: &'static str) -> crate::Result<Arc<dyn File>> {
    part(fs.open(path, OpenMode::Read), path, section)
}

/// The answer of such an opening.
pub(crate) fn part(
    opened: io::Result<Arc<dyn File>>,
    path: &Path,
    section: &'static str,
) -> crate::Result<Arc<dyn File>> {
    opened.or_else(|error| {
        let detail = match wrong_kind(&error) {
            Some(_) => error.to_string(),
            None if error.kind() == io::ErrorKind::NotFound => "the file is missing".to_owned(),
            None => return Err(error).context("open", path),
        };
        Err(Error::corruption(path, 0, section, detail))
    })
}

/// A held file lock.
pub trait FileLock: Send + Sync + fmt::Debug {}

/// An open file.
///
/// Reads and writes carry their offset and may be called from any thread. They deal with short
/// transfers and interruptions themselves.
pub trait File: Send + Sync + fmt::Debug {
    /// Fills `buffer` from `offset`; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`, growing the file where needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Bytes that the file occupies on the device.
    fn allocated(&self) -> io::Result<u64>;
    /// Truncates or extends (sparsely) to `len`.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Allocates real space for the first `len` bytes, extending the file to at least that (R9).
    /// The new bytes read as zeros.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Makes contents and length durable. After an error the state of the file is unknown and
    /// the call must not be repeated on it (R7, R8).
    fn sync_data(&self) -> io::Result<()>;
    /// Writes all of `bytes` at `offset` inside the file's allocated length and makes them durable,
    /// if possible without writing back what else is dirty in the file. After an error the call
    /// must not be repeated.
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync_data()
    }
    /// Gives the device space of `len` bytes from `offset` back; they read as zeros. Fails with
    /// [`io::ErrorKind::Unsupported`] where that is not possible.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Whether writing over allocated bytes never needs more space. It does need some where the
    /// file system copies on write; there nothing is mapped, and nothing allocated is used twice.
    fn keeps_space(&self) -> bool {
        true
    }
    /// How many names the file has (R22).
    fn links(&self) -> io::Result<u64>;
    /// The file's present incarnation (R6).
    fn incarnation(&self) -> Incarnation;
    /// Maps the first `len` bytes, which must be allocated, for writing in place. Fails with
    /// [`io::ErrorKind::Unsupported`] where shared mappings do not work, and where a store into
    /// allocated space may find none ([`File::keeps_space`]); the caller then writes with
    /// [`File::write_at`].
    fn map(&self, len: u64) -> io::Result<Box<dyn LogMap>>;
    /// Asks the system to read ahead (`Sequential`) or not (`Random`); a hint only.
    fn advise(&self, advice: Advice);
}

/// How a file will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// From start to end.
    Sequential,
    /// Here and there.
    Random,
    /// Not soon: its pages may leave the page cache.
    DontNeed,
}

/// A write-only window of a log file: bytes copied into it survive the process at once, and the
/// machine after the next [`File::sync_data`] of its file.
pub trait LogMap: Send + Sync + fmt::Debug {
    /// Copies `bytes` to `offset`. Writes outside the window are ignored and return false: the
    /// caller has checked before (R9). Concurrent writers use disjoint ranges.
    fn write(&self, offset: u64, bytes: &[u8]) -> bool;
    /// Makes the next `len` bytes from `offset` resident by *reading* them (R9).
    fn populate(&self, offset: u64, len: u64);
    /// The window's length in bytes.
    fn len(&self) -> u64;
    /// Whether the window is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a file could not be opened because the process, or the system, has too many open.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    os::is_out_of_descriptors(error)
}

/// The operating system's file system.
pub fn os() -> Arc<dyn Fs> {
    Arc::new(os::OsFs::default())
}
