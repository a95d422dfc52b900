//! Destroying a database: its files go, and its directory if nothing else is in it.
//!
//! 1. Only regular files go, and only those whose names this engine gives. Nothing is removed
//!    through a link, and all other files stay. A directory that does not hold such files is
//!    refused, and so is one that looks like another store's.
//! 2. The manifests go first, durably: nobody opens what is left without them. The superblocks go
//!    after all data. So a directory whose destruction was cut off is recognised, and the next call
//!    goes on.
//! 3. The mark of an unfinished repair goes after everything that it covers. The name of the lock
//!    file goes last, and the lock is held until the directory is gone.

use super::{holds_files_of_ours, is_directory, not_ours};
use crate::directory::files::SET_ASIDE;
use crate::directory::reserve::RESERVE_NAME;
use crate::directory::unfinished::{MARK_NAME, is_marked};
use crate::directory::{DATA_DIRECTORY, LOCK_NAME, LOG_DIRECTORY, MONITOR_NAMES, foreign};
use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, within};
use crate::manifest::{SUPERBLOCK_NAMES, parse_manifest_name};
use crate::run::parse_run_name;
use crate::wal;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// The file by which LevelDB, RocksDB and what descends from them begin.
const CURRENT: &str = "CURRENT";

/// Removes the database at `path`, as [`crate::Db::destroy`] says.
///
/// # Errors
/// See there.
pub(crate) fn destroy(path: &Path, fs: &Arc<dyn Fs>) -> Result<()> {
    if !is_directory(fs.as_ref(), path)? {
        // A call that was cut off may have removed it, and not durably.
        return sync_parent(fs.as_ref(), path);
    }
    // Nothing is removed through a link.
    // Seeded: runs elsewhere, to which a link leads, are destroyed.
    let plain = bug!("repair_destroy_follows_links");
    let inside = if plain { fs.clone() } else { within(fs, path).context("open", path)? };
    let inside = inside.as_ref();
    check_ours(inside, path)?;
    let lock_path = path.join(LOCK_NAME);
    let lock = inside.lock(&lock_path).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => Error::Locked { path: path.to_owned() },
        _ => Error::io("lock", &lock_path, error),
    })?;
    // It may have become something else before the lock was ours.
    check_ours(inside, path)?;
    // Seeded: what a power cut leaves opens as a database whose runs are missing.
    let late = bug!("repair_destroy_manifests_go_late");
    if !late {
        remove_files(inside, path, is_manifest)?;
        inside.sync_dir(path).context("sync", path)?;
    }
    remove_part(inside, &path.join(LOG_DIRECTORY), |name| {
        name == RESERVE_NAME || wal::file_number(name).is_some()
    })?;
    remove_part(inside, &path.join(DATA_DIRECTORY), |name| parse_run_name(name).is_some())?;
    // These go before the superblocks: a directory with nothing but them is not recognised.
    remove_files(inside, path, |name| MONITOR_NAMES.contains(&name))?;
    remove_files(inside, path, |name| late && is_manifest(name) || is_superblock(name))?;
    inside.sync_dir(path).context("sync", path)?;
    remove_files(inside, path, |name| name == MARK_NAME)?;
    remove_files(inside, path, |name| name == LOCK_NAME)?;
    let gone = remove_dir(fs.as_ref(), path)?;
    drop(lock);
    if gone {
        return sync_parent(fs.as_ref(), path);
    }
    inside.sync_dir(path).context("sync", path)
}

/// Refuses a directory that is not a database's, nor what a destruction or a creation left of one.
fn check_ours(fs: &dyn Fs, path: &Path) -> Result<()> {
    let entries = fs.list(path).context("list", path)?;
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let kind = foreign::directory(&entries);
    // Seeded: the files of other stores whose names look like ours are destroyed.
    bug!("repair_destroy_takes_foreign", return Ok(()));
    // Checked first, because the names of other stores may look like ours.
    if kind.is_some() || has(CURRENT) {
        return Err(not_ours(path, kind, "it holds \"CURRENT\", as another store does"));
    }
    if is_marked(&entries) || holds_files_of_ours(fs, path, &entries)? {
        return Ok(());
    }
    let known = [LOCK_NAME, LOG_DIRECTORY, DATA_DIRECTORY];
    let rest = |name: &str| known.contains(&name) || is_manifest(name);
    if entries.is_empty() || has(LOCK_NAME) && entries.iter().all(|entry| rest(&entry.name)) {
        return Ok(());
    }
    Err(not_ours(path, None, "it holds no file of one"))
}

fn is_superblock(name: &str) -> bool {
    SUPERBLOCK_NAMES.contains(&name)
}

fn is_manifest(name: &str) -> bool {
    parse_manifest_name(name).is_some()
}

/// Removes the files of one of the directories, and then itself if it is empty.
fn remove_part(fs: &dyn Fs, directory: &Path, ours: impl Fn(&str) -> bool) -> Result<()> {
    // What is set aside, links and whatever else has the name of a directory stays.
    if !matches!(is_directory(fs, directory), Ok(true)) {
        return Ok(());
    }
    remove_files(fs, directory, ours)?;
    if !remove_dir(fs, directory)? {
        fs.sync_dir(directory).context("sync", directory)?;
    }
    Ok(())
}

/// Removes the regular files of these names from a directory, and those that were set aside.
fn remove_files(fs: &dyn Fs, directory: &Path, ours: impl Fn(&str) -> bool) -> Result<()> {
    // Seeded: all that lies in the directory goes, whoever made it.
    let all = bug!("repair_destroy_takes_all_files");
    let is_ours = |name: &str| match name.split_once(SET_ASIDE) {
        Some((file, number)) => ours(file) && number.bytes().all(|byte| byte.is_ascii_digit()),
        None => all || ours(name),
    };
    let entries = fs.list(directory).context("list", directory)?;
    for entry in entries.iter().filter(|entry| entry.is_file() && is_ours(&entry.name)) {
        let path = directory.join(&entry.name);
        match fs.remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed.context("remove", &path)?,
        }
    }
    Ok(())
}

/// Removes a directory if it is empty; whether it is gone. What else is in it is not ours; and a
/// mount point, a link to the directory, or the working directory by its name `.`, cannot go.
fn remove_dir(fs: &dyn Fs, path: &Path) -> Result<bool> {
    match fs.remove_dir(path) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(true),
            ErrorKind::DirectoryNotEmpty
            | ErrorKind::AlreadyExists
            | ErrorKind::NotADirectory
            | ErrorKind::ResourceBusy
            | ErrorKind::InvalidInput
            | ErrorKind::Unsupported => Ok(false),
            _ => Err(error).context("remove", path),
        },
    }
}

/// Makes the name of a directory durable, or that it is gone. The parent may be gone as well, or
/// closed to us.
pub(super) fn sync_parent(fs: &dyn Fs, path: &Path) -> Result<()> {
    // Seeded: a database that was destroyed is back after a power cut.
    bug!("repair_destroy_not_synced", return Ok(()));
    let Some(parent) = path.parent() else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match fs.sync_dir(parent) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        synced => synced.context("sync", parent),
    }
}
