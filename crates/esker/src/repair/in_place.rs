//! Repair in place: what can be read of a damaged database is saved beside it, and takes its place;
//! the damaged one is kept beside it.
//!
//! The saved database is `NAME.repaired-N` first, and the damaged one becomes `NAME.damaged-N`, with
//! the same number, for which neither name is taken.
//!
//! 1. A database is intact if a plan finds no damage in it, and an open for reading and a verify
//!    find none either. Nothing is changed then.
//! 2. The saved database is marked as unfinished until all of it is durable. One that was cut off
//!    there is used again by the next repair. There may be several, since a power cut can bring a
//!    mark back: the others are removed. One without the mark may be anybody's, and is never
//!    removed.
//! 3. Then come two renames. If the second fails, the first is taken back. If it is cut off, there
//!    are both names with one number and nothing at the path, which is so at no other time: the
//!    next repair does the second rename.
//! 4. The lock of the damaged database is held from before it is read until after the renames.

use super::destroy::{destroy, sync_parent};
use super::report::Repaired;
use super::sink::{Nowhere, Target};
use super::{Opened, Salvaged, check_source, fill, is_directory, walk};
use crate::db::Core;
use crate::directory::LOCK_NAME;
use crate::directory::unfinished::is_marked;
use crate::error::{Error, IoContext, Result};
use crate::fs::{DirEntry, Fs, PathKind, within};
use crate::manifest::SUPERBLOCK_NAMES;
use crate::options::{Options, Recovery};
use crate::sync::Interruption;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the saved database is called until it takes the place of the damaged one.
const SAVED: &str = "repaired";
/// How the damaged database is called from then on.
const KEPT: &str = "damaged";

/// Repairs the database at `path`, as [`crate::Db::repair`] says.
///
/// # Errors
/// See there.
pub(crate) fn repair(path: &Path, options: &Options) -> Result<Repaired> {
    if !is_directory(options.fs.as_ref(), path)? {
        return go_on(path, &options.fs);
    }
    let real = options.fs.real_path(path).context("look at", path)?;
    let mut source = check_source(path, options)?;
    let plan = walk::run(path, &source.options, &mut Nowhere::default())?;
    if plan.is_whole_but_for_orders() {
        // The open for reading takes the lock as well.
        drop(source);
        if verify(path, options)? {
            // A repair may have been killed when all was done, and nothing of it durable.
            sync_parent(options.fs.as_ref(), &real)?;
            return Ok(Repaired::default());
        }
        source = check_source(path, options)?;
    }
    // Seeded: a keyspace whose comparator was not given is missing in the repaired database.
    let any = bug!("repair_in_place_skips_keyspaces");
    // What is not saved would be missing in the database that takes the place.
    if let Some((keyspace, comparator)) = plan.skipped.into_iter().find(|_| !any) {
        return Err(Error::ComparatorMissing { keyspace, comparator });
    }
    let names = Names::choose(&real, &options.fs)?;
    // Before the work: if it is cut off, the next repair does this again.
    names.clear_unfinished();
    let salvaged = replace(path, source, &names, options)?;
    log::warn!("{} was repaired; {} is the damaged one", path.display(), names.kept.display());
    Ok(Repaired { kept: Some(names.kept), salvaged: Some(salvaged) })
}

/// Whether the database opens and all of it can be read.
fn verify(path: &Path, options: &Options) -> Result<bool> {
    let mut options = options.clone();
    // Seeded: an intact database is changed by a repair.
    options.read_only = !bug!("repair_verify_writes");
    options.error_if_exists = false;
    options.recovery = Recovery::Refuse;
    let verified = Core::open(path, &options).and_then(|core| {
        let report = core.verify(Interruption::NEVER);
        core.close()?;
        report
    });
    match verified {
        Ok(report) => Ok(report.problems.is_empty()),
        Err(Error::Corruption(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Saves a damaged database and puts what was saved in its place.
fn replace(path: &Path, source: Opened, names: &Names, options: &Options) -> Result<Salvaged> {
    // What stands there if this fails is not surely its own.
    let target = Target::create(&names.saved, options).inspect_err(|_| names.clear(false))?;
    let mut salvaged = fill(path, &source, target).inspect_err(|_| names.clear(true))?;
    // Windows renames no directory in which a file is open.
    let source = (!cfg!(windows)).then_some(source);
    names.switch().inspect_err(|_| names.clear(true))?;
    drop(source);
    salvaged.to = path.to_owned();
    Ok(salvaged)
}

/// The names that a repair uses, found from a handle of the directory that holds them.
struct Names {
    /// The file system of the options.
    whole: Arc<dyn Fs>,
    /// It, rooted in the parent.
    fs: Arc<dyn Fs>,
    parent: PathBuf,
    real: PathBuf,
    saved: PathBuf,
    kept: PathBuf,
}

impl Names {
    /// Two names beside a database that are free.
    fn choose(real: &Path, fs: &Arc<dyn Fs>) -> Result<Self> {
        let parent = real.parent().filter(|_| real.file_name().is_some()).ok_or_else(|| {
            Error::invalid(format!("{}: there is no place beside it", real.display()))
        })?;
        let whole = fs.clone();
        let fs = within(fs, parent).context("open", parent)?;
        for number in 1..=u32::MAX {
            let (saved, kept) = (beside(real, SAVED, number), beside(real, KEPT, number));
            if fs.kind(&kept).context("look at", &kept)?.is_none() && is_free(&*fs, &saved)? {
                let (parent, real) = (parent.to_owned(), real.to_owned());
                return Ok(Self { whole, fs, parent, real, saved, kept });
            }
        }
        Err(Error::exists(&beside(real, KEPT, u32::MAX), "a file or directory".to_owned()))
    }

    /// Gives the damaged database its new name, and the saved one that of the damaged one.
    fn switch(&self) -> Result<()> {
        let rename = |from: &Path, to: &Path| self.fs.rename(from, to).context("rename", from);
        // Before it counts: a parent that cannot be synced is no place for this.
        self.fs.sync_dir(&self.parent).context("sync", &self.parent)?;
        rename(&self.real, &self.kept)?;
        if let Err(error) = rename(&self.saved, &self.real) {
            // Seeded: after a rename that failed, nothing stands at the path.
            bug!("repair_rename_not_taken_back", return Err(error));
            // Nothing is lost: both are there. The old one goes back to its place.
            if let Err(stays) = rename(&self.kept, &self.real) {
                let (kept, saved) = (self.kept.display(), self.saved.display());
                log::error!("{kept} and {saved} stay until the repair is run again: {stays}");
            }
            return Err(error);
        }
        // Seeded: after a power cut nothing stands at the path of a repair that returned.
        bug!("repair_in_place_not_synced", return Ok(()));
        self.fs.sync_dir(&self.parent).context("sync", &self.parent)
    }

    /// Removes what a repair that failed has saved, if the damaged database is in its place. Unless
    /// it is surely its own, only what is marked is removed.
    fn clear(&self, own: bool) {
        let fs = self.fs.as_ref();
        let is_there = |path: &Path| -> Result<bool> {
            Ok(fs.kind(path).context("look at", path)? == Some(PathKind::Directory))
        };
        // Seeded: each repair that fails leaves a whole copy behind.
        bug!("repair_leaves_what_it_saved", return);
        let attempt = || -> Result<()> {
            if !is_there(&self.real)? || is_there(&self.kept)? || !is_there(&self.saved)? {
                return Ok(());
            }
            let entries = fs.list(&self.saved).context("list", &self.saved)?;
            if !own && !is_marked(&entries) {
                return Ok(());
            }
            destroy(&self.saved, &self.whole)
        };
        tell(attempt());
    }

    /// Removes what earlier repairs left under other numbers, when they were cut off.
    fn clear_unfinished(&self) {
        let entries = match self.fs.list(&self.parent).context("list", &self.parent) {
            Ok(entries) => entries,
            Err(error) => return tell(Err(error)),
        };
        let numbers = entries.iter().filter_map(|entry| numbered(&self.real, SAVED, entry));
        let others = numbers.map(|number| beside(&self.real, SAVED, number));
        for saved in others.filter(|saved| *saved != self.saved) {
            // One that another process fills is locked, and keeps none of the others.
            let listed = self.fs.list(&saved).context("list", &saved);
            tell(listed.and_then(|entries| {
                if is_marked(&entries) { destroy(&saved, &self.whole) } else { Ok(()) }
            }));
        }
    }
}

/// A repair does not fail because something of an earlier one stays.
fn tell(removed: Result<()>) {
    if let Err(error) = removed {
        log::warn!("cannot remove what a failed repair has written: {error}");
    }
}

/// The number of a directory that has exactly the name that [`beside`] makes.
fn numbered(real: &Path, what: &str, entry: &DirEntry) -> Option<u32> {
    let number = entry.name.rsplit_once('-')?.1.parse().ok()?;
    let ours = beside(real, what, number).file_name() == Some(OsStr::new(&entry.name));
    (ours && entry.is_dir()).then_some(number)
}

/// `NAME.damaged-1` and the like.
fn beside(real: &Path, what: &str, number: u32) -> PathBuf {
    let mut name = real.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{what}-{number}"));
    real.with_file_name(name)
}

/// Whether a name can take a new database: there is nothing, or what a repair left that was cut off.
fn is_free(fs: &dyn Fs, saved: &Path) -> Result<bool> {
    match fs.kind(saved).context("look at", saved)? {
        None => Ok(true),
        Some(PathKind::Directory) => {
            let entries = fs.list(saved).context("list", saved)?;
            // Seeded: a repair writes into a database that somebody has under the name it wants.
            let any = bug!("repair_in_place_takes_any_name");
            Ok(any || is_marked(&entries) || entries.iter().all(|entry| entry.name == LOCK_NAME))
        }
        Some(_) => Ok(false),
    }
}

/// Does the second rename of a repair that was cut off before it.
fn go_on(path: &Path, fs: &Arc<dyn Fs>) -> Result<Repaired> {
    let missing = || Error::Missing { path: path.to_owned() };
    // Seeded: a repair that was cut off between its renames cannot be run again.
    bug!("repair_in_place_does_not_go_on", return Err(missing()));
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(missing());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    if !is_directory(fs.as_ref(), parent)? {
        return Err(missing());
    }
    let parent = fs.real_path(parent).context("look at", parent)?;
    let real = parent.join(name);
    let fs = within(fs, &parent).context("open", &parent)?;
    let entries = fs.list(&parent).context("list", &parent)?;
    let number = newest_pair(&*fs, &real, &entries)?.ok_or_else(missing)?;
    let (saved, kept) = (beside(&real, SAVED, number), beside(&real, KEPT, number));
    let lock = saved.join(LOCK_NAME);
    drop(fs.lock(&lock).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: saved.clone() },
        _ => Error::io("lock", &lock, error),
    })?);
    fs.rename(&saved, &real).context("rename", &saved)?;
    fs.sync_dir(&parent).context("sync", &parent)?;
    Ok(Repaired { kept: Some(kept), salvaged: None })
}

/// The highest number for which there are a damaged database and a whole saved one.
fn newest_pair(fs: &dyn Fs, real: &Path, entries: &[DirEntry]) -> Result<Option<u32>> {
    let number = |entry| numbered(real, KEPT, entry);
    let mut numbers: Vec<u32> = entries.iter().filter_map(number).collect();
    numbers.sort_unstable();
    for number in numbers.into_iter().rev() {
        let saved = beside(real, SAVED, number);
        if fs.kind(&saved).context("look at", &saved)? != Some(PathKind::Directory) {
            continue;
        }
        let there = fs.list(&saved).context("list", &saved)?;
        let ours = |entry: &DirEntry| SUPERBLOCK_NAMES.contains(&entry.name.as_str());
        if !is_marked(&there) && there.iter().any(ours) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}
