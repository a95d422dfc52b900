//! Names on Unix: found from a directory handle, without following links.
//!
//! 1. Below the root, each directory on the way is opened from its parent, and a link is an error.
//!    Elsewhere the system follows links, except in the last part of a file's path.
//! 2. Only regular files are opened: opening a device may have an effect, and opening a pipe may
//!    wait. If a device or a pipe replaces the file between the check and the open, the open does
//!    not wait, and a second check refuses it.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::fs::{DirEntry, OpenMode, PathKind, expect_kind};

/// A handle of a directory that serves only to find names in it, where the system has that.
#[cfg(target_os = "linux")]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const SEARCH: OFlags = OFlags::RDONLY;

/// Where names are looked up.
#[derive(Debug, Default)]
pub(super) struct Names {
    root: Option<(PathBuf, OwnedFd)>,
}

/// The directory that holds a name.
enum Parent<'n> {
    /// The working directory: the name is a whole path.
    Anywhere,
    /// The root itself.
    Root(BorrowedFd<'n>),
    /// A directory below the root.
    Below(OwnedFd),
}

/// A name in a directory.
struct Place<'n, 'p> {
    parent: Parent<'n>,
    name: &'p OsStr,
}

impl Place<'_, '_> {
    fn at(&self) -> BorrowedFd<'_> {
        match &self.parent {
            Parent::Anywhere => CWD,
            Parent::Root(handle) => *handle,
            Parent::Below(handle) => handle.as_fd(),
        }
    }

    /// The kind of the file itself; a link is not followed.
    fn look(&self) -> io::Result<PathKind> {
        Ok(kind_of(&rustix::fs::statat(self.at(), self.name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let mode = Mode::from_bits_retain(0o666);
        Ok(retry_on_intr(|| rustix::fs::openat(self.at(), self.name, flags, mode))?)
    }

    /// Opens a regular file with these flags.
    fn open_file(&self, flags: OFlags) -> io::Result<fs::File> {
        // Seeded: links are followed, out of the directory too, and pipes are opened.
        bug!("fs_whatever_is_there_is_opened", return Ok(fs::File::from(self.open(flags)?)));
        match self.look() {
            Ok(found) => expect_kind(found, PathKind::File)?,
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && flags.contains(OFlags::CREATE) => {}
            Err(error) => return Err(error),
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = fs::File::from(self.open(flags)?);
        expect_kind(kind_of(&rustix::fs::fstat(&file)?), PathKind::File)?;
        Ok(file)
    }

    /// Opens a directory.
    fn open_dir(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let follow = match self.parent {
            Parent::Anywhere => OFlags::empty(),
            _ => OFlags::NOFOLLOW,
        };
        self.open(flags | OFlags::DIRECTORY | follow).map_err(|error| match self.look() {
            // Below the root, a link to a directory is not a directory.
            Ok(found) if !matches!(self.parent, Parent::Anywhere) => {
                expect_kind(found, PathKind::Directory).err().unwrap_or(error)
            }
            _ => error,
        })
    }
}

impl Names {
    /// Finds everything below `directory` from a handle of it.
    pub(super) fn below(directory: &Path) -> io::Result<Self> {
        let place = Place { parent: Parent::Anywhere, name: directory.as_os_str() };
        Ok(Self { root: Some((directory.to_owned(), place.open_dir(SEARCH)?)) })
    }

    /// Finds the directory that holds a path's last part.
    fn find<'n, 'p>(&'n self, path: &'p Path) -> io::Result<Place<'n, 'p>> {
        let below = self.root.as_ref().and_then(|(root, handle)| {
            let parts = path.strip_prefix(root).ok()?.components();
            // A path that leads out again, by `..`, is treated as a path outside.
            parts.clone().all(is_name).then_some((handle, parts))
        });
        let Some((root, parts)) = below else {
            return Ok(Place { parent: Parent::Anywhere, name: path.as_os_str() });
        };
        let mut place = Place { parent: Parent::Root(root.as_fd()), name: OsStr::new(".") };
        for (number, part) in parts.enumerate() {
            if number > 0 {
                place.parent = Parent::Below(place.open_dir(SEARCH)?);
            }
            place.name = part.as_os_str();
        }
        Ok(place)
    }

    pub(super) fn open(&self, path: &Path, mode: OpenMode) -> io::Result<fs::File> {
        let place = self.find(path)?;
        match mode {
            OpenMode::Read => place.open_file(OFlags::RDONLY),
            OpenMode::ReadWrite => place.open_file(OFlags::RDWR),
            // Fails if the name exists, whatever its kind.
            OpenMode::CreateNew => {
                Ok(place.open(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?.into())
            }
        }
    }

    pub(super) fn open_or_create(&self, path: &Path) -> io::Result<fs::File> {
        self.find(path)?.open_file(OFlags::RDWR | OFlags::CREATE)
    }

    pub(super) fn kind(&self, path: &Path) -> io::Result<PathKind> {
        let place = self.find(path)?;
        if let Parent::Anywhere = place.parent
            && let Ok(there) = rustix::fs::statat(CWD, place.name, AtFlags::empty())
        {
            return Ok(kind_of(&there));
        }
        place.look()
    }

    pub(super) fn create_dir(&self, path: &Path) -> io::Result<()> {
        let place = self.find(path)?;
        Ok(rustix::fs::mkdirat(place.at(), place.name, Mode::from_bits_retain(0o777))?)
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let directory = self.find(path)?.open_dir(OFlags::RDONLY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let there = match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                // It was removed since the listing began.
                Err(Errno::NOENT) => continue,
                other => other?,
            };
            let kind = kind_of(&there);
            entries.push(DirEntry {
                name: OsStr::from_bytes(name.to_bytes()).to_string_lossy().into_owned(),
                len: if kind == PathKind::File { there.st_size as u64 } else { 0 },
                kind,
            });
        }
        Ok(entries)
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.find(from)?, self.find(to)?);
        Ok(rustix::fs::renameat(from.at(), from.name, to.at(), to.name)?)
    }

    pub(super) fn remove_file(&self, path: &Path) -> io::Result<()> {
        let place = self.find(path)?;
        Ok(rustix::fs::unlinkat(place.at(), place.name, AtFlags::empty())?)
    }

    pub(super) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let place = self.find(path)?;
        Ok(rustix::fs::unlinkat(place.at(), place.name, AtFlags::REMOVEDIR)?)
    }

    pub(super) fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.find(from)?, self.find(to)?);
        expect_kind(from.look()?, PathKind::File)?;
        Ok(rustix::fs::linkat(from.at(), from.name, to.at(), to.name, AtFlags::empty())?)
    }

    pub(super) fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::from(self.find(path)?.open_dir(OFlags::RDONLY)?).sync_all()
    }

    pub(super) fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let answer = rustix::fs::fstatvfs(self.find(path)?.open_dir(SEARCH)?)?;
        // The space left for unprivileged users, which is what a write can use.
        Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
    }
}

fn is_name(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_))
}

fn kind_of(there: &Stat) -> PathKind {
    match FileType::from_raw_mode(there.st_mode as _) {
        FileType::RegularFile => PathKind::File,
        FileType::Directory => PathKind::Directory,
        FileType::Symlink => PathKind::Link,
        FileType::Fifo => PathKind::Pipe,
        FileType::Socket => PathKind::Socket,
        _ => PathKind::Device,
    }
}

/// Whether `path`, or its last existing ancestor, lies in `directory`; compares device and inode,
/// since a directory has many paths.
pub(super) fn contains(directory: &Path, path: &Path) -> io::Result<bool> {
    let identity = |path: &Path| fs::metadata(path).map(|there| (there.dev(), there.ino()));
    let wanted = identity(directory)?;
    let absolute = std::path::absolute(path)?;
    for above in absolute.ancestors() {
        match fs::canonicalize(above) {
            Ok(real) => return Ok(real.ancestors().any(|at| identity(at).ok() == Some(wanted))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
