//! Ways out for a damaged database (R30): say what is lost, and save the rest.
//!
//! Where open refuses, the database is left exactly as it is. [`plan`] reads everything that can
//! still be read and says what is whole, what is lost and what could be saved; [`salvage`] writes
//! that into a new database. Both walk the same way, so that the plan is what would happen:
//!
//! 1. The description comes from the manifest; if it is damaged, from what can be read of it or of
//!    an older one. Segments that the description does not know, although it should, are found by
//!    their footers and saved apart, into keyspaces of their own.
//! 2. Each block proves itself by its own checksum. The newest readable version of a key counts;
//!    deletes and range tombstones count where they can be read. So a value that comes out was
//!    once written for its key, but where something newer is lost, it may be an older one.
//!    Operands are saved as operands, with what they stand on; if that is lost, they are applied to
//!    what is left.
//! 3. The log follows, also behind damage.
//!
//! The damaged directory is never changed. Its lock is held meanwhile, if its lock file exists.

mod log;
mod merge;
mod report;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod walk;

pub use report::{Finding, Kept, KeptLog, Plan, Salvaged, State};

use crate::db::options::Options;
use crate::db::{DATA_DIRECTORY, LOCK_NAME, LOG_DIRECTORY};
use crate::error::{Error, IoContext, Result};
use crate::fs::{FileLock, Fs, PathKind};
use crate::manifest::{SUPERBLOCK_NAMES, parse_manifest_name};
use std::path::Path;

/// Says what is whole in the database at `path`, what is lost, and what [`salvage`] would save.
/// Changes nothing. Comparators are taken from the options.
///
/// # Errors
/// [`Error::Missing`] and [`Error::NotADatabase`] if there is none, [`Error::Locked`] if it is
/// open, [`Error::UnknownFormat`] if a newer build wrote it. Damage is no error here.
///
/// # Example
/// ```
/// # let dir = std::env::temp_dir().join(format!("esker-doc-plan-{}", std::process::id()));
/// let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// db.close()?;
/// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
/// assert!(plan.is_whole());
/// assert_eq!(plan.keyspaces[0].entries, 1);
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), esker::Error>(())
/// ```
pub fn plan(path: impl AsRef<Path>, options: &Options) -> Result<Plan> {
    let path = path.as_ref();
    let _lock = check_source(path, options)?;
    walk::run(path, options, &mut target::Nowhere::default())
}

/// Saves everything readable of the database at `path` into a new one at `to`, which must not
/// exist or be an empty directory.
///
/// # Errors
/// As [`plan`]; [`Error::Exists`] if something stands at `to`, [`Error::InvalidArgument`] if `to`
/// lies inside of `path`, and what opening and writing the new database can fail with. What was
/// written until then is not to be used.
///
/// # Example
/// ```
/// # let dir = std::env::temp_dir().join(format!("esker-doc-salvage-{}", std::process::id()));
/// # let to = dir.with_extension("new");
/// let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// db.close()?;
/// let salvaged = esker::repair::salvage(&dir, &to, &esker::Options::default())?;
/// println!("{salvaged}");
/// let db = esker::Db::open(&to)?;
/// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
/// # db.close()?; std::fs::remove_dir_all(&dir).ok(); std::fs::remove_dir_all(&to).ok();
/// # Ok::<(), esker::Error>(())
/// ```
pub fn salvage(
    path: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Salvaged> {
    let (path, to) = (path.as_ref(), to.as_ref());
    let _lock = check_source(path, options)?;
    check_target(path, to, options.fs.as_ref())?;
    let mut target = target::Target::create(to, options)?;
    let plan = walk::run(path, options, &mut target)?;
    let written = target.finish()?;
    Ok(Salvaged { plan, to: to.to_owned(), operations: written })
}

/// Looks whether there is a database that nobody has open, without changing anything.
fn check_source(path: &Path, options: &Options) -> Result<Option<Box<dyn FileLock>>> {
    let fs = options.fs.as_ref();
    let refuse = |found: &str| Error::NotADatabase {
        path: path.to_owned(),
        found: found.to_owned(),
        import: None,
    };
    match fs.kind(path).context("look at", path)? {
        None => return Err(Error::Missing { path: path.to_owned() }),
        Some(PathKind::File) => return Err(refuse("it is a file")),
        Some(PathKind::Directory) => {}
    }
    let entries = fs.list(path).context("list", path)?;
    let ours = |name: &str| {
        [DATA_DIRECTORY, LOG_DIRECTORY].contains(&name)
            || SUPERBLOCK_NAMES.contains(&name)
            || parse_manifest_name(name).is_some()
    };
    if !entries.iter().any(|entry| ours(&entry.name)) {
        return Err(refuse("it holds no file of one"));
    }
    if !entries.iter().any(|entry| entry.name == LOCK_NAME) {
        return Ok(None);
    }
    let lock_path = path.join(LOCK_NAME);
    match fs.lock(&lock_path) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(Error::Locked { path: path.to_owned() })
        }
        // A medium that cannot be written to can still be read.
        Err(_) => Ok(None),
    }
}

fn check_target(path: &Path, to: &Path, fs: &dyn Fs) -> Result<()> {
    let absolute = |path: &Path| std::path::absolute(path).context("find", path);
    if absolute(to)?.starts_with(absolute(path)?) {
        let what = format!("{} lies inside of the damaged database: name another", to.display());
        return Err(Error::invalid(what));
    }
    match fs.kind(to).context("look at", to)? {
        None => Ok(()),
        Some(PathKind::Directory) if fs.list(to).context("list", to)?.is_empty() => Ok(()),
        Some(_) => Err(Error::Exists { path: to.to_owned() }),
    }
}
