//! Finds out what a path holds, and takes the lock of a database.
//!
//! A file, a directory of something else, and a database of an unknown version stay exactly as they
//! are (C9), so this check comes before anything is created. A second look under the lock decides,
//! because another process may have created the database in the meantime.

use crate::directory::files::set_aside_for;
use crate::directory::foreign::{self, Foreign};
use crate::directory::unfinished::{self, MARK_NAME};
use crate::directory::{DATA_DIRECTORY, LOCK_NAME, LOG_DIRECTORY, MONITOR_NAMES, what_it_is};
use crate::error::{Error, IoContext, Result};
use crate::fs::{DirEntry, FileLock, Fs, PathKind, expect_kind, within};
use crate::manifest::{SUPERBLOCK_NAMES, Superblocks, parse_manifest_name};
use crate::wal::FIRST_POSITION;
use std::path::Path;
use std::sync::Arc;

/// What a path holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// An empty directory, or one in which the creation of a database was interrupted.
    Empty,
    /// A database.
    Database,
}

/// Makes the name of the directory durable. An existing empty directory may come from an open that
/// was interrupted before this.
pub fn sync_name(fs: &dyn Fs, path: &Path, found: Found) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match fs.sync_dir(parent) {
        // The process may lack permission to read the parent directory.
        Err(error)
            if found == Found::Empty && error.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            Ok(())
        }
        other => other.context("sync", parent),
    }
}

/// What exists at the path of something new, if anything does.
pub fn occupant(fs: &dyn Fs, path: &Path) -> Result<Option<String>> {
    let Some(kind) = fs.kind(path).context("look at", path)? else { return Ok(None) };
    if kind != PathKind::Directory {
        return Ok(Some(kind.to_string()));
    }
    Ok(Some(what_it_is(&fs.list(path).context("list", path)?)))
}

/// The error for a path that is not ours.
fn not_a_database(path: &Path, kind: Option<Foreign>, found: impl FnOnce() -> String) -> Error {
    let found = kind.map_or_else(found, |kind| format!("it is a database of {}", kind.name));
    let import = kind.map(|kind| kind.import);
    Error::NotADatabase { path: path.to_owned(), found, import }
}

/// Looks at a path without changing anything. `filling`: a directory that is marked as unfinished
/// is judged by its content.
pub fn look(fs: &Arc<dyn Fs>, path: &Path, filling: bool) -> Result<Found> {
    match fs.kind(path).context("look at", path)? {
        None => return Ok(Found::Nothing),
        Some(PathKind::Directory) => {}
        Some(found) => {
            let file = (found == PathKind::File).then_some(path);
            let kind = file.and_then(|path| foreign::file(fs.as_ref(), path));
            return Err(not_a_database(path, kind, || format!("it is {found}")));
        }
    }
    let fs = within(fs, path).context("open", path)?;
    look_inside(fs.as_ref(), path, filling)
}

/// Looks at what a directory holds.
fn look_inside(fs: &dyn Fs, path: &Path, filling: bool) -> Result<Found> {
    let entries = fs.list(path).context("list", path)?;
    if !filling && unfinished::is_marked(&entries) {
        return Err(Error::Unfinished { path: path.to_owned() });
    }
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    if SUPERBLOCK_NAMES.iter().any(|name| has(name)) {
        check_kinds(path, &entries)?;
        match Superblocks::read(fs, path) {
            Ok(Some(_)) => return Ok(Found::Database),
            Ok(None) => {}
            Err(error) if has_data(fs, path)? => return Err(error),
            Err(error @ Error::UnknownFormat { .. }) => return Err(error),
            // No data was ever stored here: the creation was interrupted.
            Err(_) => {}
        }
    }
    let ours = |name: &str| {
        [LOCK_NAME, MARK_NAME, LOG_DIRECTORY, DATA_DIRECTORY].contains(&name)
            || SUPERBLOCK_NAMES.contains(&name)
            || MONITOR_NAMES.contains(&name)
            || parse_manifest_name(name).is_some()
            || set_aside_for(name).is_some()
    };
    if let Some(foreign) = entries.iter().find(|entry| !ours(&entry.name)) {
        let kind = foreign::directory(&entries);
        return Err(not_a_database(path, kind, || format!("it holds {:?}", foreign.name)));
    }
    check_kinds(path, &entries)?;
    if has_data(fs, path)? {
        let first = path.join(SUPERBLOCK_NAMES[0]);
        let detail = "both superblocks are missing, but there is data";
        return Err(Error::corruption(&first, 0, "superblock", detail));
    }
    Ok(Found::Empty)
}

/// Refuses links, pipes and the like in place of our files and directories. Anything else under a
/// name that no file of the database needs is left alone.
fn check_kinds(path: &Path, entries: &[DirEntry]) -> Result<()> {
    for entry in entries {
        let wanted = match entry.name.as_str() {
            LOCK_NAME => PathKind::File,
            LOG_DIRECTORY | DATA_DIRECTORY => PathKind::Directory,
            name if SUPERBLOCK_NAMES.contains(&name) => PathKind::File,
            _ => continue,
        };
        expect_kind(entry.kind, wanted).context("open", &path.join(&entry.name))?;
    }
    Ok(())
}

/// Whether there are runs, or a log that holds records or once held some. If so, this was a
/// database, even if its superblocks are gone. An interrupted creation leaves a first log file
/// without records.
fn has_data(fs: &dyn Fs, path: &Path) -> Result<bool> {
    let data = path.join(DATA_DIRECTORY);
    if fs.kind(&data).context("look at", &data)? == Some(PathKind::Directory) {
        // A link may lead to a run.
        let is_nothing = |entry: &DirEntry| entry.is_dir() || (entry.is_file() && entry.len == 0);
        if !fs.list(&data).context("list", &data)?.iter().all(is_nothing) {
            return Ok(true);
        }
    }
    let log = path.join(LOG_DIRECTORY);
    if fs.kind(&log).context("look at", &log)? != Some(PathKind::Directory) {
        return Ok(false);
    }
    let mut found = false;
    crate::wal::inspect(fs, &log, FIRST_POSITION, |part| {
        found |= match part {
            crate::wal::Inspected::Record(_) | crate::wal::Inspected::BadRecord(_) => true,
            crate::wal::Inspected::LogFile { header, .. } => header.start > FIRST_POSITION,
            _ => false,
        };
        Ok(())
    })?;
    Ok(found)
}

/// Whether another handle or process has the database open; this creates no lock file.
pub fn is_locked(fs: &dyn Fs, path: &Path) -> bool {
    matches!(fs.kind(&path.join(LOCK_NAME)), Ok(Some(_)))
        && matches!(take_lock(fs, path, false), Err(Error::Locked { .. }))
}

/// Takes the lock of the directory. A copy without a lock file is read without a lock: creating the
/// file would change the directory (C9). Every writer creates the file before anything else, so no
/// writer has the copy open.
pub fn take_lock(fs: &dyn Fs, path: &Path, read_only: bool) -> Result<Option<Box<dyn FileLock>>> {
    let lock_path = path.join(LOCK_NAME);
    if read_only && fs.kind(&lock_path).context("look at", &lock_path)?.is_none() {
        return Ok(None);
    }
    fs.lock(&lock_path).map(Some).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: path.to_owned() },
        _ => Error::io("lock", &lock_path, error),
    })
}
