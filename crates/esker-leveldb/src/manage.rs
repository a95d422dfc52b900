//! Destroying and repairing databases.

use crate::comparator::{BYTEWISE, Order};
use crate::open::engine_options;
use crate::options::leveldb_options_t;
use crate::status::{Result, Status};
use esker::fs::{Fs, within, wrong_kind};
use esker::internals::db::{
    DATA_DIRECTORY, LOCK_NAME, LOG_DIRECTORY, RESERVE_NAME, parse_run_name,
};
use esker::internals::directory::unfinished::MARK_NAME;
use esker::internals::manifest::{SUPERBLOCK_NAMES, parse_manifest_name};
use esker::{Comparator, Db, Error, Options};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Removes the files of a database, and every directory that is then empty. All other files stay.
/// Without a database there is nothing to do, as in LevelDB.
pub(crate) fn destroy(path: &Path) -> Result<()> {
    let names = names(path)?;
    let has = |wanted: &dyn Fn(&str) -> bool| names.iter().any(|name| wanted(name));
    // Checked first, because LevelDB's file names may look like ours.
    if has(&|name| name == "CURRENT") {
        // Opening it says what it is, and how its entries are had.
        let mut options = Options::default();
        options.create_if_missing = false;
        return Err(Db::open_with(path, options).err().map_or_else(
            || Status::invalid(format_args!("{}: is not Esker's alone", path.display())),
            Status::from,
        ));
    }
    let head = |name: &str| SUPERBLOCK_NAMES.contains(&name) || parse_manifest_name(name).is_some();
    if !has(&|name| head(name) || name == MARK_NAME) {
        return Ok(());
    }
    // Nothing is removed through a link.
    let fs = within(&esker::fs::os(), path).map_err(|error| Status::os(path, &error))?;
    let lock_path = path.join(LOCK_NAME);
    let _lock = fs.lock(&lock_path).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => Status::from(Error::Locked { path: path.to_owned() }),
        _ => Status::os(&lock_path, &error),
    })?;
    remove_files(&*fs, path, head)?;
    let (data, log) = (path.join(DATA_DIRECTORY), path.join(LOG_DIRECTORY));
    remove_files(&*fs, &data, |name| parse_run_name(name).is_some())?;
    let in_log =
        |name: &str| name == RESERVE_NAME || esker::internals::wal::file_number(name).is_some();
    remove_files(&*fs, &log, in_log)?;
    remove_if_empty(&data)?;
    remove_if_empty(&log)?;
    // The mark is removed last: until then nobody opens an incomplete database.
    remove_files(&*fs, path, |name| [LOCK_NAME, MARK_NAME].contains(&name))?;
    remove_if_empty(path)
}

/// The names in a directory; none if it does not exist.
fn names(directory: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(Status::os(directory, &error)),
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().into_string().ok());
    let names: io::Result<Vec<Option<String>>> = entries.map(name).collect();
    Ok(names.map_err(|error| Status::os(directory, &error))?.into_iter().flatten().collect())
}

/// Removes the regular files of these names from a directory, if it is one.
fn remove_files(fs: &dyn Fs, directory: &Path, ours: impl Fn(&str) -> bool) -> Result<()> {
    let entries = match fs.list(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if wrong_kind(&error).is_some() => return Ok(()),
        entries => entries.map_err(|error| Status::os(directory, &error))?,
    };
    for entry in entries.iter().filter(|entry| entry.is_file() && ours(&entry.name)) {
        let path = directory.join(&entry.name);
        match fs.remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Status::os(&path, &error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn remove_if_empty(directory: &Path) -> Result<()> {
    match fs::remove_dir(directory) {
        // Other files in it are not ours, and a mount point stays.
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::NotFound
                    | ErrorKind::NotADirectory
                    | ErrorKind::DirectoryNotEmpty
                    | ErrorKind::ResourceBusy
            ) =>
        {
            Err(Status::os(directory, &error))
        }
        _ => Ok(()),
    }
}

/// Does not change an intact database. Saves what can be read of a damaged one into a new database,
/// which takes its place; the damaged one is kept beside it.
pub(crate) fn repair(path: &Path, options: &leveldb_options_t, order: Option<Order>) -> Result<()> {
    let order = order.filter(|order| order.name() != BYTEWISE).map(Arc::new);
    let mut engine = engine_options(options, order);
    (engine.create_if_missing, engine.error_if_exists) = (false, false);
    match is_whole(path, &engine) {
        Ok(true) => return Ok(()),
        Ok(false) | Err(Error::Corruption(_)) => {}
        // Missing, foreign or in use: a repair cannot change that.
        Err(error) => return Err(Status::from(error)),
    }
    let (saved, kept) = (free_name(path, "repaired")?, free_name(path, "damaged")?);
    esker::repair::salvage(path, &saved, &engine)?;
    let rename =
        |from: &Path, to: &Path| fs::rename(from, to).map_err(|error| Status::os(from, &error));
    rename(path, &kept)?;
    if let Err(status) = rename(&saved, path) {
        // Nothing is lost: both exist. The old one goes back to its place.
        let _ = fs::rename(&kept, path);
        return Err(status);
    }
    log::warn!("{} was repaired; the damaged database is {}", path.display(), kept.display());
    Ok(())
}

/// Whether the database opens and all of it can be read.
fn is_whole(path: &Path, options: &Options) -> esker::Result<bool> {
    let db = Db::open_with(path, options.clone())?;
    let report = db.verify();
    db.close()?;
    Ok(report?.problems.is_empty())
}

/// A free name beside a database.
fn free_name(path: &Path, what: &str) -> Result<PathBuf> {
    let whole = fs::canonicalize(path).map_err(|error| Status::os(path, &error))?;
    let name = whole.file_name().ok_or_else(|| {
        Status::invalid(format_args!("{}: has no place beside it", path.display()))
    })?;
    for number in 1..=u32::MAX {
        let mut beside = name.to_owned();
        beside.push(format!(".{what}-{number}"));
        let beside = whole.with_file_name(beside);
        if !beside.exists() {
            return Ok(beside);
        }
    }
    Err(Status::io(format_args!("{}: all names beside it are taken", path.display())))
}
