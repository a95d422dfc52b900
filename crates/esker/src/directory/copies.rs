//! The files of a checkpoint: links to run files or copies of them, and their removal after an error.
//!
//! Run files never change where something refers to them, so they are linked. If the target is on
//! another device or the file system has no links, the used slices are copied.

use crate::base::FileId;
use crate::directory::{DATA_DIRECTORY, LOCK_NAME, LOG_DIRECTORY};
use crate::error::{Error, IoContext, Result};
use crate::fs::{FileLock, Fs, OpenMode};
use crate::manifest::SUPERBLOCK_NAMES;
use crate::run::{HEADER_BYTES, RunFile, Segment};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are copied in one step.
const COPY_BYTES: u64 = 1 << 20;

/// The stretches of a run file that a version refers to.
type Slices = Vec<(u64, u64)>;

/// The files of segments, in the order of their numbers, each with its header and what the segments
/// take of it. Nothing else in a file is needed.
pub fn parts_of<'s>(
    segments: impl Iterator<Item = &'s Arc<Segment>>,
) -> Vec<(Arc<RunFile>, Slices)> {
    let mut files: BTreeMap<FileId, (Arc<RunFile>, Slices)> = BTreeMap::new();
    for segment in segments {
        let (file, meta) = (segment.file(), segment.meta());
        let new = || (file.clone(), vec![(0, HEADER_BYTES as u64)]);
        files.entry(file.id()).or_insert_with(new).1.push((meta.offset, meta.len));
    }
    files.into_values().collect()
}

/// Links a run file into `directory`, or copies its used slices.
pub fn take_over(fs: &dyn Fs, file: &RunFile, slices: Slices, directory: &Path) -> Result<()> {
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
    bug!("directory_checkpoint_copy_not_synced", return Ok(()));
    file.sync_data().context("sync", to)
}

/// Makes the name of the new directory durable.
pub fn sync_new_name(fs: &dyn Fs, target: &Path) -> Result<()> {
    // Seeded: a power cut removes a checkpoint whose call returned.
    bug!("directory_checkpoint_name_not_synced", return Ok(()));
    let Some(parent) = target.parent() else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    fs.sync_dir(parent).context("sync", parent)
}

/// Removes what a failed checkpoint left; the superblocks are removed first, durably. The lock
/// shows that all of it is ours.
pub fn clear(fs: &dyn Fs, target: &Path, lock: Box<dyn FileLock>) -> Result<()> {
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
    cleared.and_then(|()| clear_name(fs, target))
}

/// Removes the directory of a failed checkpoint, which holds at most the lock file. If it holds
/// anything else, it stays.
pub fn clear_name(fs: &dyn Fs, target: &Path) -> Result<()> {
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
    attempt().context("remove", target)
}
