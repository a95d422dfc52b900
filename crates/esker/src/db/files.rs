//! The files in `data/`: numbers, names, and giving space back (R22).
//!
//! A run file is unlinked, and a dead slice punched, only after
//! 1. the edit that dropped it is synced (it is marked obsolete after that), and
//! 2. the last reader let go of it (the mark takes effect when the last reference is dropped).
//!
//! Both are only noted here; a worker does the system calls.

use crate::base::FileId;
use crate::error::{IoContext, Result};
use crate::fs::Fs;
use crate::run::{Reclaim, RunFile};
use crate::sync::Signal;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Dead slices below this size are not worth a system call; their file goes in the end.
const PUNCH_BYTES_MIN: u64 = 64 << 10;

/// Something whose space can be given back now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Garbage {
    File(FileId),
    Slice { file: FileId, offset: u64, len: u64 },
}

/// The files in `data/`.
#[derive(Debug)]
pub struct Files {
    fs: Arc<dyn Fs>,
    directory: PathBuf,
    next: AtomicU64,
    garbage: Mutex<Vec<Garbage>>,
    /// Held while space is given back, and while files are linked; what was taken out of `garbage`
    /// is not gone before.
    collecting: Mutex<()>,
    outputs: Mutex<HashMap<FileId, Weak<RunFile>>>,
    work: Arc<Signal>,
}

/// The number in a run file's name.
pub fn parse_run_name(name: &str) -> Option<FileId> {
    let digits = name.strip_suffix(".run")?;
    (digits.len() >= 10 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

impl Reclaim for Files {
    fn file(&self, id: FileId) {
        self.note(Garbage::File(id));
    }

    fn slice(&self, file: FileId, offset: u64, len: u64) {
        if len >= PUNCH_BYTES_MIN {
            self.note(Garbage::Slice { file, offset, len });
        }
    }
}

impl Files {
    /// The files of `directory`; `work` is notified when there is something to give back.
    pub fn new(fs: Arc<dyn Fs>, directory: PathBuf, work: Arc<Signal>) -> Arc<Self> {
        Arc::new(Self {
            fs,
            directory,
            next: AtomicU64::new(1),
            garbage: Mutex::default(),
            collecting: Mutex::default(),
            outputs: Mutex::default(),
            work,
        })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Gives out a file number.
    pub fn next_id(&self) -> FileId {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The number that will be given out next.
    pub fn peek_next_id(&self) -> FileId {
        self.next.load(Ordering::Relaxed)
    }

    /// Makes numbers below `next` unavailable.
    pub fn raise_next_id(&self, next: FileId) {
        self.next.fetch_max(next, Ordering::Relaxed);
    }

    /// The object of a file that this process writes: the same one for every part of it.
    pub fn output_file(self: &Arc<Self>, id: FileId) -> Arc<RunFile> {
        let mut outputs = self.outputs.lock();
        outputs.retain(|_, file| file.strong_count() > 0);
        if let Some(file) = outputs.get(&id).and_then(Weak::upgrade) {
            return file;
        }
        let file = self.run_file(id);
        outputs.insert(id, Arc::downgrade(&file));
        file
    }

    /// The object that stands for run file `id`.
    pub fn run_file(self: &Arc<Self>, id: FileId) -> Arc<RunFile> {
        let reclaim: Arc<dyn Reclaim> = self.clone();
        RunFile::new(&self.fs, &self.directory, id, Some(reclaim))
    }

    fn note(&self, garbage: Garbage) {
        self.garbage.lock().push(garbage);
        self.work.notify();
    }

    /// Whether there is something to give back.
    pub fn has_garbage(&self) -> bool {
        !self.garbage.lock().is_empty()
    }

    /// Whether nothing is left to give back, and nothing is being given back just now.
    pub fn is_clean(&self) -> bool {
        // In this order: what was taken out of the list is gone when `collecting` is free again.
        !self.has_garbage() && !self.collecting.is_locked()
    }

    /// Gives back what can be given back. Failures leave files behind, which the next open
    /// removes, so they are logged and not returned. Says whether this thread did it; if another
    /// one is at it, that one looks again afterwards.
    pub fn collect(&self) -> bool {
        let Some(_one_at_a_time) = self.collecting.try_lock() else { return false };
        let garbage = std::mem::take(&mut *self.garbage.lock());
        let mut removed = false;
        for item in &garbage {
            let result = match *item {
                Garbage::File(id) => {
                    removed = true;
                    self.remove(id)
                }
                // A slice of a file that goes as a whole needs no punch of its own.
                Garbage::Slice { file, .. } if garbage.contains(&Garbage::File(file)) => Ok(()),
                Garbage::Slice { file, offset, len } => self.punch(file, offset, len),
            };
            if let Err(error) = result {
                log::warn!("space is not given back yet: {error}");
            }
        }
        if removed && let Err(error) = self.fs.sync_dir(&self.directory) {
            log::warn!("cannot sync {}: {error}", self.directory.display());
        }
        true
    }

    /// Runs `f` while no space is given back: linking and punching exclude each other (R22).
    pub fn hold_still<R>(&self, f: impl FnOnce() -> R) -> R {
        let _collecting = self.collecting.lock();
        f()
    }

    fn remove(&self, id: FileId) -> Result<()> {
        let path = self.directory.join(crate::run::file_name(id));
        self.fs.remove_file(&path).context("remove", &path)
    }

    fn punch(&self, id: FileId, offset: u64, len: u64) -> Result<()> {
        let path = self.directory.join(crate::run::file_name(id));
        let file = match self.fs.open(&path, crate::fs::OpenMode::ReadWrite) {
            // The file went as a whole in the meantime.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => other.context("open", &path)?,
        };
        // A checkpoint may share the file's bytes under another name (R22).
        // Seeded: space is taken out of a file that a checkpoint shares.
        bug!(
            "db_punches_linked_files",
            return file.punch(offset, len).context("punch a hole into", &path)
        );
        if file.links().context("look at", &path)? > 1 {
            return Ok(());
        }
        match file.punch(offset, len) {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(()),
            other => other.context("punch a hole into", &path),
        }
    }

    /// Removes the run files among `which` that are not `live`: outputs of work that a crash cut
    /// off. Only called after the check that the log covers what the manifest says (R11). Where a
    /// live file is missing, nothing is removed: what is there may be needed for a repair.
    pub fn remove_orphans(
        &self,
        live: &HashSet<FileId>,
        which: &dyn Fn(FileId) -> bool,
    ) -> Result<()> {
        let entries = self.fs.list(&self.directory).context("list", &self.directory)?;
        let there: Vec<FileId> =
            entries.iter().filter_map(|entry| parse_run_name(&entry.name)).collect();
        there.iter().for_each(|id| self.raise_next_id(id + 1));
        let present = there.iter().filter(|id| live.contains(id)).count();
        if present < live.len() {
            log::warn!("run files are missing in {}", self.directory.display());
            return Ok(());
        }
        let mut removed = false;
        for id in there.into_iter().filter(|id| !live.contains(id) && which(*id)) {
            log::info!("removing run file {id}, which nothing refers to");
            self.remove(id)?;
            removed = true;
        }
        if removed {
            self.fs.sync_dir(&self.directory).context("sync", &self.directory)?;
        }
        Ok(())
    }

    /// Bytes that the device holds for all run files.
    pub fn allocated_bytes(&self) -> u64 {
        let Ok(entries) = self.fs.list(&self.directory) else { return 0 };
        let allocated = |name: &str| {
            let path = self.directory.join(name);
            self.fs.open(&path, crate::fs::OpenMode::Read).and_then(|file| file.allocated()).ok()
        };
        entries.iter().filter_map(|entry| allocated(&entry.name)).sum()
    }
}

#[cfg(test)]
mod tests;
