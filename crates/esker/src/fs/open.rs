//! Ways to open a file of a database that need more than one call of the file system.
//!
//! The engine finds the files of a database from a handle of its directory. A file that is changed
//! in place must not have another name, and a file to which the database refers must exist: if it
//! is missing, that is damage.

use super::file::File;
use super::file_system::{Fs, OpenMode};
use super::kind::wrong_kind;
use crate::error::{Error, IoContext};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file system that finds everything below `directory`, which must exist, from a handle of it,
/// without following links. Other paths mean what they mean on `fs`.
///
/// # Example
/// ```
/// use esker::fs::{OpenMode, os, within};
/// # let dir = tempfile::tempdir().unwrap();
/// let inside = within(&os(), dir.path())?;
/// inside.open(&dir.path().join("a"), OpenMode::CreateNew)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn within(fs: &Arc<dyn Fs>, directory: &Path) -> io::Result<Arc<dyn Fs>> {
    Ok(fs.rooted(directory)?.unwrap_or_else(|| fs.clone()))
}

/// Opens or creates a file that is changed in place; returns whether it is new, so that its name is
/// not durable yet. If the file has another name, it also belongs to a copy made of hard links: a
/// new file takes its place.
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

/// Opens for reading a file to which the database refers: if it is missing or not a regular file,
/// that is damage (C3).
pub fn open_part(fs: &dyn Fs, path: &Path, section: &'static str) -> crate::Result<Arc<dyn File>> {
    part(fs.open(path, OpenMode::Read), path, section)
}

/// Turns the result of such an opening into damage where it is that.
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
