//! Checkpoint: a second database, at another path, with the content of this one at one moment
//! (R23).
//!
//! 1. The memtables are flushed first, so the moment is the position at which the log begins: the
//!    manifest's state describes all entries up to it, over all keyspaces, and no log is needed.
//!    Branches that were made after that moment are left out.
//! 2. Run files never change where something refers to them. So they are linked, or copied if the
//!    target is on another device or the file system has no links. Manifest, superblocks and log
//!    are written anew: from then on the two databases change independently.
//! 3. The linked state is held meanwhile, so nothing that it refers to is freed; and space is freed
//!    only before or after the linking (R22).
//! 4. The superblocks are written last, when everything that they refer to is durable. A crash
//!    before that leaves a directory that is not taken for a database; after an error it is
//!    removed.

use crate::base::{FileId, Seq};
use crate::commit::{LogConfig, Pipeline};
use crate::db::core::Core;
use crate::directory::look::occupant;
use crate::directory::{DATA_DIRECTORY, LOCK_NAME, LOG_DIRECTORY};
use crate::error::{Error, IoContext, Result};
use crate::fs::{FileLock, Fs, OpenMode};
use crate::manifest::{Edit, Manifest, SUPERBLOCK_NAMES, Version};
use crate::options::LogKind;
use crate::recovery::create::first_superblocks;
use crate::run::{HEADER_BYTES, RunFile};
use crate::sync::{Latch, Point};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are copied in one step.
const COPY_BYTES: u64 = 1 << 20;

/// The stretches of a run file that a version refers to.
type Slices = Vec<(u64, u64)>;

impl Core {
    /// Makes a database with the present content at `target`, where nothing may exist yet.
    pub fn checkpoint(&self, target: &Path) -> Result<()> {
        self.writable()?;
        if let Some(found) = occupant(self.fs.as_ref(), target)? {
            return Err(Error::exists(target, found));
        }
        if self.fs.contains(&self.path, target).context("look at", target)? {
            let what = "lies inside of the database that it is made of: name another path";
            return Err(Error::invalid(format!("{} {what}", target.display())));
        }
        self.flush()?;
        self.gate(Point::CheckpointFlushed);
        let (version, state) = self.durable_state();
        let exists = || Error::exists(target, "a database");
        let fs = self.fs.as_ref();
        fs.create_dir(target).context("create", target)?;
        // A process that creates a database here at the same time, or opens this one too early,
        // finds it locked.
        let lock_path = target.join(LOCK_NAME);
        let lock = match fs.lock(&lock_path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(exists()),
            Err(error) => {
                clear_name(fs, target);
                return Err(Error::io("lock", &lock_path, error));
            }
            Ok(lock) => lock,
        };
        let others = fs
            .list(target)
            .map(|entries| entries.iter().any(|entry| entry.name != LOCK_NAME))
            .context("list", target);
        if !matches!(others, Ok(false)) {
            drop(lock);
            clear_name(fs, target);
            return Err(others.err().unwrap_or_else(exists));
        }
        self.gate(Point::CheckpointChose);
        let made = self.lay_out(target, &version, &state).and_then(|()| sync_name(fs, target));
        if made.is_err() {
            clear(fs, target, lock);
        }
        made
    }

    /// The version and the description for the position at which the log begins.
    fn durable_state(&self) -> (Arc<Version>, Edit) {
        let store = self.store.lock();
        let version = self.state_now().version.clone();
        let state = self.whole_state(&version, store.log_start, true);
        (version, state)
    }

    fn lay_out(&self, target: &Path, version: &Version, state: &Edit) -> Result<()> {
        let fs = self.fs.as_ref();
        let data = target.join(DATA_DIRECTORY);
        fs.create_dir(&data).context("create", &data)?;
        let mut files: BTreeMap<FileId, (Arc<RunFile>, Slices)> = BTreeMap::new();
        // This includes the segments of branches that are left out: their files cost a link each,
        // and the next open removes them.
        for segment in version.segments() {
            let (file, meta) = (segment.file(), segment.meta());
            let new = || (file.clone(), vec![(0, HEADER_BYTES as u64)]);
            files.entry(file.id()).or_insert_with(new).1.push((meta.offset, meta.len));
        }
        self.files.hold_still(|| {
            files.into_values().try_for_each(|(file, slices)| {
                self.gate(Point::CheckpointLinks);
                self.check_open()?;
                take_over(fs, &file, slices, &data)
            })
        })?;
        // Space that could not be freed during the linking can be freed now.
        self.work.notify();
        self.work.done().notify();
        fs.sync_dir(&data).context("sync", &data)?;
        begin_log(&self.fs, target, state.log_start.unwrap_or_default())?;
        let manifest = Manifest::create(fs, target, 1, state)?;
        first_superblocks(fs, target, &manifest)
    }
}

/// An empty log that begins at the moment of the checkpoint (R11).
fn begin_log(fs: &Arc<dyn Fs>, target: &Path, first: Seq) -> Result<()> {
    let mut config = LogConfig::new(fs.clone(), target.join(LOG_DIRECTORY));
    config.kind = LogKind::Plain;
    Pipeline::create(config, first, Arc::new(Latch::new())).map(drop)
}

/// Links a run file into `directory`, or copies its used slices.
fn take_over(fs: &dyn Fs, file: &RunFile, slices: Slices, directory: &Path) -> Result<()> {
    let to = directory.join(crate::run::file_name(file.id()));
    match fs.hard_link(file.path(), &to) {
        Ok(()) => Ok(()),
        Err(error) if cannot_link(error.kind()) => copy(fs, file.path(), slices, &to),
        Err(error) => Err(Error::io("link", &to, error)),
    }
}

/// Whether the error means that the file system cannot link here. File systems without links may
/// return "not permitted"; a copy then shows whether writing is permitted at all.
fn cannot_link(kind: io::ErrorKind) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        kind,
        Kind::CrossesDevices | Kind::Unsupported | Kind::TooManyLinks | Kind::PermissionDenied
    )
}

fn copy(fs: &dyn Fs, from: &Path, mut slices: Slices, to: &Path) -> Result<()> {
    slices.sort_unstable();
    // A segment that several partitions share is listed once for each of them.
    slices.dedup();
    let source = fs.open(from, OpenMode::Read).context("open", from)?;
    let file = fs.open(to, OpenMode::CreateNew).context("create", to)?;
    let mut buffer = Vec::new();
    for (offset, len) in slices {
        let mut done = 0;
        while done < len {
            let step = COPY_BYTES.min(len - done);
            buffer.resize(step as usize, 0);
            source.read_at(&mut buffer, offset + done).context("read", from)?;
            file.write_at(&buffer, offset + done).context("write", to)?;
            done += step;
        }
    }
    // Seeded: a checkpoint on another device is not durable when it returns.
    bug!("db_checkpoint_copy_not_synced", return Ok(()));
    file.sync_data().context("sync", to)
}

/// Makes the name of the new directory durable.
fn sync_name(fs: &dyn Fs, target: &Path) -> Result<()> {
    // Seeded: a power cut removes a checkpoint whose call returned.
    bug!("db_checkpoint_name_not_synced", return Ok(()));
    let Some(parent) = target.parent() else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    fs.sync_dir(parent).context("sync", parent)
}

/// Removes what a failed checkpoint left; the superblocks are removed first, durably. The lock
/// shows that all of it is ours.
fn clear(fs: &dyn Fs, target: &Path, lock: Box<dyn FileLock>) {
    let attempt = || -> Result<()> {
        for name in SUPERBLOCK_NAMES {
            let path = target.join(name);
            if fs.kind(&path).context("look at", &path)?.is_some() {
                fs.remove_file(&path).context("remove", &path)?;
            }
        }
        fs.sync_dir(target).context("sync", target)?;
        let data = target.join(DATA_DIRECTORY);
        for directory in [data, target.join(LOG_DIRECTORY), target.to_owned()] {
            if fs.kind(&directory).context("look at", &directory)?.is_none() {
                continue;
            }
            for entry in fs.list(&directory).context("list", &directory)? {
                if entry.name != LOCK_NAME {
                    let path = directory.join(&entry.name);
                    fs.remove_file(&path).context("remove", &path)?;
                }
            }
            if directory != target {
                fs.remove_dir(&directory).context("remove", &directory)?;
            }
        }
        Ok(())
    };
    let cleared = attempt();
    // Some systems remove no file that is locked.
    drop(lock);
    if let Err(error) = cleared {
        log::warn!("files of a failed checkpoint could not be removed: {error}");
        return;
    }
    clear_name(fs, target);
}

/// Removes the directory of a failed checkpoint, which holds at most the lock file. If it holds
/// anything else, it stays.
fn clear_name(fs: &dyn Fs, target: &Path) {
    let lock_path = target.join(LOCK_NAME);
    let attempt = || {
        let entries = fs.list(target)?;
        if entries.iter().any(|entry| entry.name != LOCK_NAME) {
            return Ok(());
        }
        if !entries.is_empty() {
            fs.remove_file(&lock_path)?;
        }
        fs.remove_dir(target)
    };
    if let Err(error) = attempt() {
        log::warn!("the directory of a failed checkpoint could not be removed: {error}");
    }
}
