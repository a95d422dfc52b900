//! The kinds of files, and the error about a file of the wrong kind.

use std::fmt;
use std::io;

/// The kind of a file at a path.
///
/// # Example
/// ```
/// use esker::fs::{PathKind, os};
/// # let dir = tempfile::tempdir().unwrap();
/// assert_eq!(os().kind(dir.path())?, Some(PathKind::Directory));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device, or any other kind.
    Device,
}

impl fmt::Display for PathKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}

/// The inner error for a file of the wrong kind.
#[derive(Debug)]
struct WrongKind {
    found: PathKind,
    wanted: PathKind,
}

impl fmt::Display for WrongKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, wanted } = self;
        write!(f, "it is {found}, and only {wanted} is accepted there")?;
        match found {
            PathKind::Link => write!(f, ": links are not followed, put {wanted} in its place"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for WrongKind {}

/// The kind that was found, if the error is about a file of the wrong kind.
///
/// # Example
/// ```
/// use esker::fs::{OpenMode, PathKind, os, wrong_kind};
/// # let dir = tempfile::tempdir().unwrap();
/// let error = os().open(dir.path(), OpenMode::Read).unwrap_err();
/// assert_eq!(wrong_kind(&error), Some(PathKind::Directory));
/// ```
pub fn wrong_kind(error: &io::Error) -> Option<PathKind> {
    error.get_ref()?.downcast_ref::<WrongKind>().map(|wrong| wrong.found)
}

/// Refuses everything but `wanted`.
pub(crate) fn expect_kind(found: PathKind, wanted: PathKind) -> io::Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(io::Error::other(WrongKind { found, wanted }))
}
