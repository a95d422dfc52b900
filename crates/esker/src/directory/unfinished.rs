//! The mark of a directory that is being filled. While the mark exists, the directory is
//! incomplete, and opening it fails.
//!
//! 1. The mark is durable before the directory holds anything that an open could take for a
//!    database.
//! 2. The mark is removed, durably, only when the whole content is durable.
//! 3. The thread that fills the directory holds its lock while it creates and removes the mark.
//!    What an earlier filling left may be removed under the lock while the mark exists.

use crate::directory::{DATA_DIRECTORY, LOCK_NAME, LOG_DIRECTORY, what_it_is};
use crate::error::{Error, IoContext, Result};
use crate::fs::{DirEntry, Fs, PathKind, open_to_change, within};
use crate::manifest::{SUPERBLOCK_NAMES, parse_manifest_name};
use crate::run::parse_run_name;
use crate::wal::file_number;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The name of the mark.
pub const MARK_NAME: &str = "INCOMPLETE";

/// The content of the mark, for people who read it.
const TEXT: &[u8] = b"A repair into this directory was not finished. Run it again, and it begins \
anew, or remove the directory.\n";

/// Whether the directory with these entries is marked.
pub fn is_marked(entries: &[DirEntry]) -> bool {
    entries.iter().any(|entry| entry.name == MARK_NAME)
}

/// Makes `path` a marked directory that holds nothing else but the lock file. It must be missing,
/// empty, or marked by an interrupted filling.
///
/// # Errors
/// [`Error::Exists`] if something else is there, [`Error::Locked`] if another process is filling
/// it.
pub fn begin(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    fs.create_dir(path).context("create", path)?;
    // Nothing is removed through a link.
    let fs = within(fs, path).context("open", path)?;
    let fs = fs.as_ref();
    let lock_path = path.join(LOCK_NAME);
    let entries = fs.list(path).context("list", path)?;
    // Nothing is created in a directory of something else, not even the lock file.
    check_free(path, &entries)?;
    let _lock = fs.lock(&lock_path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::Locked { path: path.to_owned() },
        _ => Error::io("lock", &lock_path, error),
    })?;
    let entries = fs.list(path).context("list", path)?;
    check_free(path, &entries)?;
    if is_marked(&entries) {
        clear(fs, path, &entries)?;
    }
    // Seeded: the target of an interrupted repair opens as a whole database.
    bug!("directory_repair_target_not_marked", return Ok(()));
    let mark = path.join(MARK_NAME);
    // An existing mark may never have been synced.
    let (file, _) = open_to_change(fs, &mark).context("create", &mark)?;
    file.write_at(TEXT, 0).context("write", &mark)?;
    // Seeded: a power cut removes the mark of an interrupted repair, and leaves its files.
    bug!("directory_repair_mark_not_synced", return Ok(()));
    file.sync_data().context("sync", &mark)?;
    fs.sync_dir(path).context("sync", path)
}

/// Removes the mark. Everything in the directory must be durable, and its lock held.
pub fn end(fs: &dyn Fs, path: &Path) -> Result<()> {
    let mark = path.join(MARK_NAME);
    fs.remove_file(&mark).context("remove", &mark)?;
    fs.sync_dir(path).context("sync", path)
}

/// Whether the directory is empty or holds only what an earlier filling left.
fn check_free(path: &Path, entries: &[DirEntry]) -> Result<()> {
    let in_the_way = |entry: &DirEntry| entry.name != LOCK_NAME;
    if is_marked(entries) || !entries.iter().any(in_the_way) {
        return Ok(());
    }
    Err(Error::exists(path, what_it_is(entries)))
}

/// Removes what an earlier filling left, and makes that durable: a log file that came back
/// later would look like one of the new log.
fn clear(fs: &dyn Fs, path: &Path, entries: &[DirEntry]) -> Result<()> {
    let top = |name: &str| SUPERBLOCK_NAMES.contains(&name) || parse_manifest_name(name).is_some();
    remove_files(fs, path, entries, &top)?;
    type Ours = fn(&str) -> bool;
    let log: Ours = |name| file_number(name).is_some();
    let data: Ours = |name| parse_run_name(name).is_some();
    for (name, ours) in [(LOG_DIRECTORY, log), (DATA_DIRECTORY, data)] {
        let directory = path.join(name);
        if fs.kind(&directory).context("look at", &directory)? == Some(PathKind::Directory) {
            let entries = fs.list(&directory).context("list", &directory)?;
            remove_files(fs, &directory, &entries, &ours)?;
        }
    }
    Ok(())
}

fn remove_files(
    fs: &dyn Fs,
    directory: &Path,
    entries: &[DirEntry],
    ours: &dyn Fn(&str) -> bool,
) -> Result<()> {
    for entry in entries.iter().filter(|entry| !entry.is_dir() && ours(&entry.name)) {
        let path = directory.join(&entry.name);
        fs.remove_file(&path).context("remove", &path)?;
    }
    fs.sync_dir(directory).context("sync", directory)
}
