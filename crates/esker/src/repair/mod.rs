//! Ways out for a damaged database (R30): say what is lost, and save the rest.
//!
//! An open that refuses leaves the database exactly as it is. [`plan`] reads everything that can
//! still be read and reports what is whole, what is lost and what can be saved; [`salvage`] writes
//! that into a new database. Both do the same steps, so the plan says what a salvage would do:
//!
//! 1. The description comes from the manifest; if it is damaged, from what can be read of it or of
//!    an older one. Segments that the description does not know, although it should, are found by
//!    their footers and saved apart, into keyspaces of their own.
//! 2. Each block proves itself by its own checksum. The newest readable version of a key counts;
//!    deletes and range tombstones count where they can be read. So a saved value was once written
//!    for its key, but it may be an older one where something newer is lost. Operands are saved as
//!    operands, with the value under them; if that is lost, they are applied to what is left.
//! 3. The log follows, also behind damage.
//! 4. The work of a plan is bounded by what is stored, whatever the description says: each segment
//!    is read once, however often it is named (`tree.rs`).
//!
//! The damaged directory is never changed; a repair in place (`in_place.rs`) gives it another name.
//! Its lock is held meanwhile, if its lock file exists. The new directory is marked as unfinished
//! until everything in it is durable (`directory/unfinished.rs`): it cannot be opened after an interrupted
//! repair, and the next repair begins anew. What is not needed any more is destroyed (`destroy.rs`).

mod covers;
mod destroy;
mod heap;
mod heirs;
mod in_place;
mod log;
mod merge;
mod report;
mod seen;
mod sink;
mod source;
mod state;
#[cfg(test)]
mod tests;
mod tree;
mod walk;

pub(crate) use destroy::destroy;
pub(crate) use in_place::repair;
pub use report::{Finding, Kept, KeptLog, Plan, Repaired, Salvaged, State};

use crate::directory::foreign::{self, Foreign};
use crate::directory::{DATA_DIRECTORY, LOCK_NAME, LOG_DIRECTORY, unfinished};
use crate::error::{Error, IoContext, Result};
use crate::fs::{DirEntry, FileLock, Fs, PathKind, within};
use crate::manifest::{self, SUPERBLOCK_NAMES, parse_manifest_name};
use crate::options::Options;
use crate::run::parse_run_name;
use std::path::Path;

/// Reports what is whole in the database at `path`, what is lost, and what [`salvage`] would save.
/// Changes nothing. Comparators are taken from the options.
///
/// # Errors
/// [`Error::Missing`] and [`Error::NotADatabase`] if there is none, [`Error::Locked`] if it is
/// open, [`Error::UnknownFormat`] if a newer build wrote it, [`Error::Unfinished`] if a salvage
/// into it was interrupted. Damage is not an error here.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// db.close()?;
/// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
/// assert!(plan.is_whole());
/// assert_eq!(plan.keyspaces[0].entries, 1);
/// # Ok::<(), esker::Error>(())
/// ```
pub fn plan(path: impl AsRef<Path>, options: &Options) -> Result<Plan> {
    let path = path.as_ref();
    let source = check_source(path, options)?;
    walk::run(path, &source.options, &mut sink::Nowhere::default())
}

/// Saves everything readable of the database at `path` into a new one at `to`, which must not
/// exist, be an empty directory, or be what a salvage left that was cut off: that begins anew.
///
/// # Errors
/// As [`plan`]; [`Error::Exists`] if something stands at `to`, [`Error::InvalidArgument`] if `to`
/// lies inside of `path`, and what opening and writing the new database can fail with. What was
/// written until then cannot be opened: that fails with [`Error::Unfinished`].
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let to = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// db.close()?;
/// let salvaged = esker::repair::salvage(&dir, &to, &esker::Options::default())?;
/// println!("{salvaged}");
/// let db = esker::Db::open(&to)?;
/// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
pub fn salvage(
    path: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Salvaged> {
    let (path, to) = (path.as_ref(), to.as_ref());
    let source = check_source(path, options)?;
    check_target(path, to, options.fs.as_ref())?;
    fill(path, &source, sink::Target::create(to, options)?)
}

/// Saves what can be read of an opened source into a new database.
fn fill(path: &Path, source: &Opened, mut target: sink::Target) -> Result<Salvaged> {
    let to = target.path().to_owned();
    let plan = walk::run(path, &source.options, &mut target)?;
    let written = target.finish()?;
    Ok(Salvaged { plan, to, operations: written })
}

/// A damaged database that is being read.
struct Opened {
    /// Whose file system finds everything from a handle of the directory.
    options: Options,
    _lock: Option<Box<dyn FileLock>>,
}

/// Checks that there is a database and that it is not open, without changing anything.
fn check_source(path: &Path, options: &Options) -> Result<Opened> {
    if !is_directory(options.fs.as_ref(), path)? {
        return Err(Error::Missing { path: path.to_owned() });
    }
    let fs = within(&options.fs, path).context("open", path)?;
    let entries = fs.list(path).context("list", path)?;
    if unfinished::is_marked(&entries) {
        return Err(Error::Unfinished { path: path.to_owned() });
    }
    if !holds_files_of_ours(fs.as_ref(), path, &entries)? {
        return Err(not_ours(path, foreign::directory(&entries), "it holds no file of one"));
    }
    // No process has the database open if its lock file is not a regular file.
    let lock = entries.iter().any(|entry| entry.name == LOCK_NAME && entry.is_file());
    let lock = match lock.then(|| fs.lock(&path.join(LOCK_NAME))) {
        Some(Ok(lock)) => Some(lock),
        Some(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
            return Err(Error::Locked { path: path.to_owned() });
        }
        // A medium that cannot be written to can still be read.
        Some(Err(_)) | None => None,
    };
    Ok(Opened { options: Options { fs, ..options.clone() }, _lock: lock })
}

/// Whether there is a directory; `false`: there is nothing. Anything else there is refused.
fn is_directory(fs: &dyn Fs, path: &Path) -> Result<bool> {
    match fs.kind(path).context("look at", path)? {
        None => Ok(false),
        Some(PathKind::Directory) => Ok(true),
        Some(found) => {
            let file = (found == PathKind::File).then_some(path);
            let kind = file.and_then(|path| foreign::file(fs, path));
            Err(not_ours(path, kind, &format!("it is {found}")))
        }
    }
}

/// The error for a path that holds something else than a database.
fn not_ours(path: &Path, kind: Option<Foreign>, found: &str) -> Error {
    Error::NotADatabase {
        path: path.to_owned(),
        found: kind.map_or(found.to_owned(), |kind| format!("it is a database of {}", kind.name)),
        import: kind.map(|kind| kind.import),
    }
}

/// Whether a directory holds files that only this engine makes. Other stores call their files
/// `MANIFEST-000004` too, so a manifest counts by its first bytes.
fn holds_files_of_ours(fs: &dyn Fs, path: &Path, entries: &[DirEntry]) -> Result<bool> {
    let files = || entries.iter().filter(|entry| !entry.is_dir());
    if files().any(|entry| SUPERBLOCK_NAMES.contains(&entry.name.as_str())) {
        return Ok(true);
    }
    type Ours = fn(&str) -> bool;
    let log: Ours = |name| crate::wal::file_number(name).is_some();
    let data: Ours = |name| parse_run_name(name).is_some();
    for (name, ours) in [(DATA_DIRECTORY, data), (LOG_DIRECTORY, log)] {
        let directory = path.join(name);
        if fs.kind(&directory).context("look at", &directory)? == Some(PathKind::Directory) {
            let within = fs.list(&directory).context("list", &directory)?;
            if within.iter().any(|entry| !entry.is_dir() && ours(&entry.name)) {
                return Ok(true);
            }
        }
    }
    let manifest =
        |entry: &&DirEntry| entry.is_file() && parse_manifest_name(&entry.name).is_some();
    for entry in files().filter(manifest) {
        if manifest::begins_like_one(fs, &path.join(&entry.name))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks the source first, so that nothing is created where nothing can be saved.
fn check_target(path: &Path, to: &Path, fs: &dyn Fs) -> Result<()> {
    if fs.contains(path, to).context("look at", to)? {
        let what = format!("{} lies inside of the damaged database: name another", to.display());
        return Err(Error::invalid(what));
    }
    match fs.kind(to).context("look at", to)? {
        None | Some(PathKind::Directory) => Ok(()),
        Some(found) => Err(Error::exists(to, found.to_string())),
    }
}
