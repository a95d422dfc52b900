//! The files in `data/`: their numbers and names, and freeing their space (R22).
//!
//! A run file is unlinked, and a dead slice is punched, only after
//! 1. the edit that dropped it is synced (it is marked obsolete after that), and
//! 2. its last reader has released it (the mark takes effect when the last reference is dropped).
//!
//! This module only records what can be freed; a worker does the system calls.
//!
//! 3. Space that cannot be freed yet (a checkpoint also has the file, or the system refuses) is
//!    recorded and tried again: a few pieces with each collection, a few whenever the background
//!    has been idle for a while, and all when a caller waits for the background. Pieces that a
//!    process does not free before it ends appear at the next open as gaps between live slices.

use crate::base::{FileId, first_free, within_reach};
use crate::error::{IoContext, Result};
use crate::events::EventBus;
use crate::fs::{DirEntry, Fs};
use crate::manifest::parse_manifest_name;
use crate::run::{HEADER_BYTES, OpenFiles, Reclaim, RunFile, RunWriter, Segment, parse_run_name};
use crate::sync::Signal;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Dead slices below this size are not worth a system call; they are freed with their file.
const PUNCH_BYTES_MIN: u64 = 64 << 10;
/// The unit in which file systems free space.
const PAGE_BYTES: u64 = 4 << 10;

/// How many pieces that could not be freed are tried again at a time.
pub const TRIED_AGAIN: usize = 8;

/// A file or slice whose space can be freed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Garbage {
    File(FileId),
    Slice { file: FileId, offset: u64, len: u64 },
}

impl Garbage {
    /// Whether it is a slice of one of these files.
    fn is_slice_of(&self, files: &HashSet<FileId>) -> bool {
        matches!(self, Self::Slice { file, .. } if files.contains(file))
    }
}

/// The files in `data/`.
#[derive(Debug)]
pub struct Files {
    fs: Arc<dyn Fs>,
    directory: PathBuf,
    next: AtomicU64,
    garbage: Mutex<Vec<Garbage>>,
    /// What could not be freed when it was tried; the next to be tried again comes first.
    postponed: Mutex<VecDeque<Garbage>>,
    /// How many run segments are gone that referred to value segments.
    values_died: AtomicU64,
    /// Dead slices below this size are not punched.
    punch_bytes_min: AtomicU64,
    /// Held while space is freed and while files are linked. What was taken out of `garbage` is
    /// freed before this is released.
    collecting: Mutex<()>,
    outputs: Mutex<HashMap<FileId, Weak<RunFile>>>,
    open: Arc<OpenFiles>,
    work: Arc<Signal>,
    events: Arc<EventBus>,
}

/// The separator between the name of a file that was set aside and the number of the manifest with
/// the torn end that is the reason.
pub const SET_ASIDE: &str = ".set-aside-";

/// The number of the manifest for whose torn end a file of this name was set aside.
pub fn set_aside_for(name: &str) -> Option<u64> {
    let (file, number) = name.split_once(SET_ASIDE)?;
    let ours = parse_run_name(file).is_some() || parse_manifest_name(file).is_some();
    let number: u64 = number.parse().ok().filter(|_| ours)?;
    (name == format!("{file}{SET_ASIDE}{number:06}")).then_some(number)
}

/// Sets a file aside for the torn end of manifest `number`. Files in the same directory that were
/// set aside for an earlier manifest are removed, so that they never become many.
pub fn set_aside(fs: &dyn Fs, path: &Path, number: u64) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("{SET_ASIDE}{number:06}"));
    let to = path.with_file_name(name);
    log::warn!(
        "manifest {number} has a torn end: {} is set aside as {}, where nothing reads it",
        path.display(),
        to.display()
    );
    fs.rename(path, &to).context("rename", path)?;
    let Some(directory) = path.parent() else { return Ok(()) };
    for entry in fs.list(directory).context("list", directory)? {
        if set_aside_for(&entry.name).is_some_and(|earlier| earlier < number) {
            let stale = directory.join(&entry.name);
            fs.remove_file(&stale).context("remove", &stale)?;
        }
    }
    Ok(())
}

impl Reclaim for Files {
    fn file(&self, id: FileId) {
        self.note(Garbage::File(id));
    }

    fn slice(&self, file: FileId, offset: u64, len: u64) {
        if len >= self.punch_bytes_min.load(Ordering::Relaxed) {
            self.note(Garbage::Slice { file, offset, len });
        }
    }

    fn values(&self) {
        // Whoever sees the count sees what is dead.
        self.values_died.fetch_add(1, Ordering::Release);
        self.work.notify();
    }
}

impl Files {
    /// The files of `directory`; `work` is notified when there is something to free, and `events`
    /// are told what could not be freed.
    pub fn new(
        fs: Arc<dyn Fs>,
        directory: PathBuf,
        work: Arc<Signal>,
        events: Arc<EventBus>,
    ) -> Arc<Self> {
        Arc::new(Self {
            open: OpenFiles::new(fs.open_files_max()),
            fs,
            directory,
            next: AtomicU64::new(1),
            garbage: Mutex::default(),
            postponed: Mutex::default(),
            values_died: AtomicU64::new(0),
            punch_bytes_min: AtomicU64::new(PUNCH_BYTES_MIN),
            collecting: Mutex::default(),
            outputs: Mutex::default(),
            work,
            events,
        })
    }

    /// Allows punching of smaller dead slices than usual, if run segments are smaller than usual.
    pub fn punch_for_segments_of(&self, segment_bytes: u32) {
        let bytes = (u64::from(segment_bytes) / 16).clamp(PAGE_BYTES, PUNCH_BYTES_MIN);
        self.punch_bytes_min.store(bytes, Ordering::Relaxed);
    }

    /// Records the gaps between the slices of files that are referred to; each slice is given by
    /// file, offset and length. A gap is a slice that became dead in an earlier life of the
    /// database and was not freed. Gaps are examined later, so that an open does not wait for them.
    pub fn note_gaps(&self, live: impl Iterator<Item = (FileId, u64, u64)>) {
        let mut live: Vec<_> = live.collect();
        live.sort_unstable();
        let least = self.punch_bytes_min.load(Ordering::Relaxed);
        let mut postponed = self.postponed.lock();
        let mut note = |file, from: u64, to: u64| {
            if to.saturating_sub(from) >= least {
                postponed.push_back(Garbage::Slice { file, offset: from, len: to - from });
            }
        };
        let mut last: Option<(FileId, u64)> = None;
        for (file, offset, len) in live {
            let end = match last {
                Some((same, end)) if same == file => end,
                _ => HEADER_BYTES as u64,
            };
            note(file, end, offset);
            last = Some((file, end.max(offset + len)));
        }
    }

    /// The signal that there is something to free.
    pub fn work(&self) -> &Arc<Signal> {
        &self.work
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

    /// The segments that a writer has ended since the last call, as objects.
    pub fn take_segments(self: &Arc<Self>, writer: &mut RunWriter) -> Vec<Arc<Segment>> {
        let written = writer.take_segments();
        if written.is_empty() {
            return Vec::new();
        }
        let file = self.output_file(writer.id());
        written.into_iter().map(|written| written.into_segment(file.clone())).collect()
    }

    /// The object for a file that this process writes: every part of the file shares it.
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

    /// The object for run file `id`.
    pub fn run_file(self: &Arc<Self>, id: FileId) -> Arc<RunFile> {
        let reclaim: Arc<dyn Reclaim> = self.clone();
        RunFile::new(&self.fs, &self.directory, id, Some(reclaim), Some(self.open.clone()))
    }

    /// Makes the next collection retry up to `most` pieces that could not be freed.
    pub fn try_again(&self, most: usize) {
        let mut postponed = self.postponed.lock();
        let most = most.min(postponed.len());
        if most > 0 {
            self.garbage.lock().extend(postponed.drain(..most));
            self.work.notify();
        }
    }

    /// Whether something could not be freed when it was tried.
    pub fn has_postponed(&self) -> bool {
        !self.postponed.lock().is_empty()
    }

    fn note(&self, garbage: Garbage) {
        self.garbage.lock().push(garbage);
        self.work.notify();
    }

    /// A number that has changed when more of the value segments is dead.
    pub fn values_died(&self) -> u64 {
        self.values_died.load(Ordering::Acquire)
    }

    /// Whether there is something to free.
    pub fn has_garbage(&self) -> bool {
        !self.garbage.lock().is_empty()
    }

    /// Whether nothing is left to free, and nothing is being freed just now.
    pub fn is_clean(&self) -> bool {
        // The order matters: what was taken out of the list is freed when `collecting` is free
        // again.
        !self.has_garbage() && !self.collecting.is_locked()
    }

    /// Frees what can be freed. Failures are logged and retried later, at the latest by the next
    /// open. Returns whether this thread did the work; if another thread is collecting, that thread
    /// looks again afterwards.
    pub fn collect(&self) -> bool {
        let Some(_one_at_a_time) = self.collecting.try_lock() else { return false };
        self.collect_alone();
        true
    }

    /// Closes the files that are open. A read that is under way, or begins later, opens its file again.
    pub fn close_open(&self) {
        // Seeded: a database that is closed keeps its files open.
        bug!("directory_files_stay_open", return);
        self.open.close_all();
    }

    /// Like [`Self::collect`], but first waits for another thread that is collecting.
    pub fn collect_now(&self) {
        let _one_at_a_time = self.collecting.lock();
        self.collect_alone();
    }

    /// Frees what can be freed, and waits for another thread that is freeing some. Returns whether there was any.
    pub fn collect_if_any(&self) -> bool {
        let any = !self.is_clean();
        if any {
            self.collect_now();
        }
        any
    }

    fn collect_alone(&self) {
        self.try_again(TRIED_AGAIN);
        let garbage = std::mem::take(&mut *self.garbage.lock());
        let whole = |item: &Garbage| if let Garbage::File(id) = item { Some(*id) } else { None };
        let gone: HashSet<FileId> = garbage.iter().filter_map(whole).collect();
        if !gone.is_empty() {
            // A slice of a file that is removed as a whole needs no punch of its own.
            self.postponed.lock().retain(|item| !item.is_slice_of(&gone));
        }
        let (mut removed, mut postponed) = (false, Vec::new());
        for item in garbage.iter().filter(|item| !item.is_slice_of(&gone)) {
            let (what, result) = match *item {
                Garbage::File(id) => {
                    removed = true;
                    ("run files", self.remove(id).map(|()| true))
                }
                Garbage::Slice { file, offset, len } => {
                    ("unused parts of run files", self.punch(file, offset, len))
                }
            };
            if let Err(error) = &result {
                self.events.files_left(what, error);
            }
            if !matches!(result, Ok(true)) {
                postponed.push(*item);
            }
        }
        // Seeded: a slice that a checkpoint shared when it was tried is never punched.
        bug!("directory_punches_are_not_tried_again", postponed.clear());
        self.postponed.lock().extend(postponed);
        let sync = || self.fs.sync_dir(&self.directory).context("sync", &self.directory);
        if removed && let Err(error) = sync() {
            self.events.files_left("names of run files", &error);
        }
    }

    /// Runs `f` while no space is freed: linking and punching exclude each other (R22).
    pub fn hold_still<R>(&self, f: impl FnOnce() -> R) -> R {
        let _collecting = self.collecting.lock();
        f()
    }

    /// Whether a checkpoint shares the file.
    pub fn has_other_names(&self, id: FileId) -> bool {
        let path = self.directory.join(crate::run::file_name(id));
        let file = self.fs.open(&path, crate::fs::OpenMode::Read);
        file.and_then(|file| file.links()).is_ok_and(|links| links > 1)
    }

    fn remove(&self, id: FileId) -> Result<()> {
        let path = self.directory.join(crate::run::file_name(id));
        match self.fs.remove_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.context("remove", &path),
        }
    }

    /// Punches a slice out; false: this is not possible now.
    fn punch(&self, id: FileId, offset: u64, len: u64) -> Result<bool> {
        let path = self.directory.join(crate::run::file_name(id));
        let file = match self.fs.open(&path, crate::fs::OpenMode::ReadWrite) {
            // The whole file was removed meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
            other => other.context("open", &path)?,
        };
        // Until it is removed, a checkpoint may share the file's bytes under another name (R22).
        // Seeded: space is taken out of a file that a checkpoint shares.
        bug!(
            "directory_punches_linked_files",
            return file.punch(offset, len).context("punch a hole into", &path).map(|()| true)
        );
        if file.links().context("look at", &path)? > 1 {
            return Ok(false);
        }
        match file.punch(offset, len) {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(true),
            other => other.context("punch a hole into", &path).map(|()| true),
        }
    }

    /// Removes the run files among `which` that are not `live`: outputs of work that a crash
    /// interrupted. It is only called after the check that the log covers what the manifest says
    /// (R11). If a live file is missing, nothing is removed: a repair may need the files. `torn`:
    /// the manifest of this number has a torn end, and a lost edit might have referred to the
    /// orphans, so they are set aside under other names. Returns whether any orphans are set aside.
    pub fn remove_orphans(
        &self,
        live: &HashSet<FileId>,
        which: &dyn Fn(FileId) -> bool,
        torn: Option<u64>,
    ) -> Result<bool> {
        let entries = self.fs.list(&self.directory).context("list", &self.directory)?;
        let numbered = |entry: &DirEntry| parse_run_name(&entry.name);
        // A directory may also occupy a name.
        let taken = entries.iter().filter_map(numbered).collect();
        let next = self.peek_next_id();
        // A file that we cannot have written is foreign, whatever its name.
        let ours = |entry: &&DirEntry| entry.is_file();
        let there: Vec<FileId> = entries.iter().filter(ours).filter_map(numbered).collect();
        let there: Vec<FileId> = there.into_iter().filter(|id| within_reach(*id, next)).collect();
        self.raise_next_id(first_free(next, taken));
        let present = there.iter().filter(|id| live.contains(id)).count();
        if present < live.len() {
            log::warn!("run files are missing in {}", self.directory.display());
            return Ok(false);
        }
        let mut removed = false;
        // An interrupted open may have set files aside too.
        let for_this = |entry: &crate::fs::DirEntry| set_aside_for(&entry.name) == torn;
        let mut aside = torn.is_some() && entries.iter().any(for_this);
        for id in there.into_iter().filter(|id| !live.contains(id) && which(*id)) {
            aside |= torn.is_some();
            match torn {
                Some(manifest) => {
                    let path = self.directory.join(crate::run::file_name(id));
                    set_aside(self.fs.as_ref(), &path, manifest)?;
                }
                None => {
                    log::info!("removing run file {id}, which nothing refers to");
                    self.remove(id)?;
                }
            }
            removed = true;
        }
        if removed {
            self.fs.sync_dir(&self.directory).context("sync", &self.directory)?;
        }
        Ok(aside)
    }

    /// How many run files are open, and how many may be.
    pub fn open_run_files(&self) -> (usize, usize) {
        self.open.in_use()
    }

    /// Bytes of the lists of range tombstones that were read from run files.
    pub fn tombstone_bytes(&self) -> u64 {
        self.open.tombstone_bytes()
    }

    /// Bytes that the device holds for all run files, and how many files were measured.
    pub fn allocated(&self) -> (u64, u64) {
        let Ok(entries) = self.fs.list(&self.directory) else { return (0, 0) };
        let allocated = |name: &str| {
            let path = self.directory.join(name);
            self.fs.open(&path, crate::fs::OpenMode::Read).and_then(|file| file.allocated()).ok()
        };
        let bytes = entries.iter().filter_map(|entry| allocated(&entry.name)).sum();
        (bytes, entries.len() as u64)
    }
}

#[cfg(test)]
mod tests;
