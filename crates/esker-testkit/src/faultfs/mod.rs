//! A file system whose calls fail where a test wants them to.
//!
//! [`FaultFs`] passes everything through to another file system, counts each kind of call, and
//! asks its [`Rule`]s before each: the k-th sync of a file whose path contains `wal/` fails, every
//! write from the third on finds the device full, one read has a flipped bit. A sweep over "the
//! k-th call of this kind fails" ends when [`FaultFs::fired`] stays empty, as in Pebble's
//! `errorfs` and SQLite's I/O error loops.
//!
//! It also watches one rule of the engine by itself: after a failed sync no second sync may be
//! tried on that file (R7, R8), since the kernel has marked its pages clean. What breaks it is
//! in [`FaultFs::violations`].
//!
//! Mapped windows pass through: a store to memory does not fail.

mod file;
mod rule;
mod shared;
mod verdict;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::fs::{DirEntry, File, FileLock, Fs, OpenMode, PathKind};

use crate::CrashFs;
use shared::Shared;

pub use rule::{Effect, Fired, Op, Rule};

/// A file system with faults. Clones of this value are handles of the same one.
#[derive(Clone)]
pub struct FaultFs(Arc<Shared>);

impl fmt::Debug for FaultFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultFs").field("inner", &self.0.inner).finish_non_exhaustive()
    }
}

impl FaultFs {
    /// Wraps any file system. [`Effect::FailSync`] then fails the sync without losing anything.
    pub fn new(inner: Arc<dyn Fs>) -> Self {
        Self(Arc::new(Shared { inner, disk: None, state: Arc::default() }))
    }

    /// Wraps a simulated disk, whose cache then suffers from [`Effect::FailSync`].
    pub fn over(disk: &CrashFs) -> Self {
        let state = Arc::default();
        Self(Arc::new(Shared { inner: disk.as_fs(), disk: Some(disk.clone()), state }))
    }

    /// This file system as the engine takes it.
    pub fn as_fs(&self) -> Arc<dyn Fs> {
        Arc::new(self.clone())
    }

    /// Adds a rule. The first rule in order that fires decides a call; the rules behind it do not
    /// see, nor count, that call. Occurrences count from now on.
    pub fn add(&self, rule: Rule) {
        self.0.state.lock().rules.push(rule);
    }

    /// Removes all rules: from here on everything works again.
    pub fn clear(&self) {
        self.0.state.lock().rules.clear();
    }

    /// How many calls of a kind there were, whether they failed or not.
    pub fn count(&self, op: Op) -> u64 {
        self.0.state.lock().counts.get(&op).copied().unwrap_or(0)
    }

    /// Bytes that were asked for by reads so far.
    pub fn bytes_read(&self) -> u64 {
        self.0.state.lock().bytes_read
    }

    /// From now on watches what is asked for ahead; what was asked for before is forgotten.
    pub fn watch_asked_ahead(&self) {
        let mut state = self.0.state.lock();
        (state.asked_ahead, state.reads_asked_ahead) = (Some(Vec::new()), 0);
    }

    /// How many reads began in a range that had been asked for ahead since [`Self::watch_asked_ahead`].
    pub fn reads_asked_ahead(&self) -> u64 {
        self.0.state.lock().reads_asked_ahead
    }

    /// The bytes that were asked for ahead since [`Self::watch_asked_ahead`], each as often as it was asked for.
    pub fn bytes_asked_ahead(&self) -> u64 {
        let state = self.0.state.lock();
        state.asked_ahead.iter().flatten().map(|(_, range)| range.end - range.start).sum()
    }

    /// How many calls of each kind there were.
    pub fn counts(&self) -> BTreeMap<Op, u64> {
        self.0.state.lock().counts.clone()
    }

    /// What the rules did, in order.
    pub fn fired(&self) -> Vec<Fired> {
        self.0.state.lock().fired.clone()
    }

    /// Syncs of files whose sync had failed before.
    pub fn violations(&self) -> Vec<String> {
        self.0.state.lock().violations.clone()
    }

    /// Forgets which syncs failed, as after a reboot.
    pub fn forget_failed_syncs(&self) {
        self.0.state.lock().failed_syncs.clear();
    }

    /// Makes all incarnations unknown, as on systems that cannot tell (R6).
    pub fn hide_incarnations(&self, hide: bool) {
        self.0.state.lock().hide_incarnations = hide;
    }
}

impl Fs for FaultFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let op = if mode == OpenMode::CreateNew { Op::Create } else { Op::Open };
        self.0.allow(op, &[path])?;
        let inner = self.0.inner.open(path, mode)?;
        let file = file::FaultFile::new(Arc::clone(&self.0), inner, path);
        if mode == OpenMode::CreateNew {
            // A new file may bear the name or the inode of one whose sync failed.
            self.0.state.lock().failed_syncs.remove(&file.identity());
        }
        Ok(Arc::new(file))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.admit(Op::CreateDir, &[path], (), || self.0.inner.create_dir(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.allow(Op::List, &[path])?;
        self.0.inner.list(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Option<PathKind>> {
        self.0.allow(Op::Kind, &[path])?;
        self.0.inner.kind(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.admit(Op::Rename, &[from, to], (), || self.0.inner.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.admit(Op::Remove, &[path], (), || self.0.inner.remove_file(path))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.allow(Op::Link, &[from, to])?;
        self.0.inner.hard_link(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.admit(Op::RemoveDir, &[path], (), || self.0.inner.remove_dir(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.admit(Op::SyncDir, &[path], (), || self.0.inner.sync_dir(path))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        self.0.allow(Op::Lock, &[path])?;
        self.0.inner.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.0.allow(Op::FreeBytes, &[path])?;
        self.0.inner.free_bytes(path)
    }

    fn rooted(&self, directory: &Path) -> io::Result<Option<Arc<dyn Fs>>> {
        let Some(inner) = self.0.inner.rooted(directory)? else { return Ok(None) };
        let (disk, state) = (self.0.disk.clone(), self.0.state.clone());
        Ok(Some(Arc::new(Self(Arc::new(Shared { inner, disk, state })))))
    }

    fn open_files_max(&self) -> usize {
        self.0.inner.open_files_max()
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.inner.real_path(path)
    }

    fn contains(&self, directory: &Path, path: &Path) -> io::Result<bool> {
        self.0.inner.contains(directory, path)
    }
}
