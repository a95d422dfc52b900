//! The reserve: space that nobody uses until the device is full (C7).
//!
//! A full device must still let go of what it holds: a delete takes log, its flush a run, its merge
//! another one, and all of that a manifest. So a file without content, `wal/reserve`, keeps space
//! for it, and gives it up when the device has no more.
//!
//! 1. The reserve has three parts: [`OPEN_BYTES`] and the manifest's size, for opening;
//!    [`FREEING_BYTES`], log for what frees space; and a share for the next flush or merge, which
//!    grows with the largest memtable so far. It never shrinks while the database is open, and is cut to the
//!    first two at close.
//! 2. Ordinary writes never use it. While it is not whole the database is *tight*: they are refused
//!    unless the reserve can be made whole again, which each of them tries.
//! 3. What frees space may use the second part, so that an open and a flush always have the rest.
//!    Background work may use all of it: what it takes it gives back when it ends, well or badly.
//! 4. A reserve file of an earlier life is only ever removed, never written to: somebody may have
//!    put something else in its place.
//! 5. A reserve that cannot be made for another reason than space is no reason to refuse writes.

use crate::db::settings::Settings;
use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, OpenMode};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The name of the reserve, in the directory of the log.
pub const RESERVE_NAME: &str = "reserve";
/// For opening, besides the manifest's size: a log segment, and blocks of directories.
pub const OPEN_BYTES: u64 = 64 << 10;
/// For the log of what frees space.
pub const FREEING_BYTES: u64 = 128 << 10;
/// A memtable may grow by so much before the reserve is looked at.
pub const STEP_BYTES: u64 = 64 << 10;
/// What a flush writes beyond the bytes of its memtables: headers, indexes, the manifest's next
/// records.
const FLUSH_EXTRA_BYTES: u64 = 64 << 10;
/// So many segments a merge should have room for.
const MERGE_SEGMENTS: u64 = 3;
/// The reserve grows ahead of what it covers only to this part of what is free.
const SHARE_OF_FREE: u64 = 8;

/// How much of the reserve somebody may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The part for the log of what frees space.
    Freeing,
    /// All of it, for a while.
    All,
}

#[derive(Debug)]
struct Inner {
    /// Bytes of the file.
    held: u64,
    /// Whether this process made the file.
    ours: bool,
    /// Why the reserve could not be made whole last.
    refusal: Option<Error>,
}

/// The reserve of an open database.
#[derive(Debug)]
pub struct Headroom {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    inner: Mutex<Inner>,
    /// How large the reserve is to be.
    target: AtomicU64,
    tight: AtomicBool,
    /// Bytes of a segment of a run.
    segment: u64,
}

/// Bytes that flushing memtables may take that have `bytes` now.
fn flush_share(bytes: u64) -> u64 {
    let bytes = bytes + STEP_BYTES;
    bytes + bytes / 8 + FLUSH_EXTRA_BYTES
}

/// Bytes of the reserve when nothing waits for a flush.
fn base_share(manifest: u64) -> u64 {
    OPEN_BYTES + FREEING_BYTES + manifest
}

impl Headroom {
    /// The reserve of the database whose log stands in `directory`: what an earlier life left.
    pub fn find(fs: &Arc<dyn Fs>, directory: &Path, settings: &Settings) -> Arc<Self> {
        let path = directory.join(RESERVE_NAME);
        let held = fs.open(&path, OpenMode::Read).and_then(|file| file.allocated()).unwrap_or(0);
        let inner = Mutex::new(Inner { held, ours: false, refusal: None });
        let (target, tight) = (AtomicU64::new(0), AtomicBool::new(false));
        let (fs, segment) = (fs.clone(), u64::from(settings.segment_bytes));
        Arc::new(Self { fs, path, inner, target, tight, segment })
    }

    /// Whether the reserve is not whole.
    pub fn is_tight(&self) -> bool {
        self.tight.load(Ordering::Acquire)
    }

    /// Begins the life of the reserve; where there is no room for it, the database is tight.
    pub fn begin(&self, manifest: u64) {
        let wanted = base_share(manifest) + flush_share(0);
        self.target.store(wanted, Ordering::Release);
        self.tight.store(true, Ordering::Release);
        self.restore();
    }

    /// Sees to it that a flush of memtables of so many bytes will have room, and `manifest` another
    /// of its kind. False: there is no room for that.
    pub fn cover(&self, memtable: u64, memtable_max: u64, manifest: u64) -> bool {
        let wanted = base_share(manifest) + flush_share(memtable);
        let target = self.target.load(Ordering::Acquire);
        if wanted <= target || self.is_tight() {
            return true;
        }
        // By doubling, so that it is seldom done, and so that a merge of a few segments finds room;
        // but not where that is much of what is free.
        let most = flush_share(memtable_max).max(MERGE_SEGMENTS * self.segment.min(memtable_max));
        let ample = (2 * target).min(base_share(manifest) + most).max(wanted);
        let directory = self.path.parent().unwrap_or(&self.path);
        let free = self.fs.free_bytes(directory).unwrap_or(0);
        let ample = if free / SHARE_OF_FREE >= ample { ample } else { wanted };
        let mut inner = self.inner.lock();
        [ample, wanted].into_iter().any(|bytes| {
            let grown = self.grow(&mut inner, bytes);
            if grown {
                self.target.fetch_max(bytes, Ordering::AcqRel);
            }
            grown
        })
    }

    /// Makes the reserve whole, if that is possible; says whether it is.
    pub fn restore(&self) -> bool {
        if !self.is_tight() {
            return true;
        }
        let mut inner = self.inner.lock();
        let whole = self.grow(&mut inner, self.target.load(Ordering::Acquire));
        self.tight.store(!whole, Ordering::Release);
        whole
    }

    /// Does work of an open; where space is missing, with what the reserve gives up.
    pub fn retry<R>(&self, mut work: impl FnMut() -> Result<R>) -> Result<R> {
        match work() {
            Err(Error::DiskFull { .. }) if self.give_up(Use::All) => work(),
            outcome => outcome,
        }
    }

    /// The giving up of the reserve, for those who write to allocated space.
    pub fn yielding(self: &Arc<Self>) -> Box<dyn Fn() -> bool + Send + Sync> {
        let reserve = self.clone();
        Box::new(move || reserve.give_up(Use::All))
    }

    /// Why the reserve is not whole.
    pub fn refusal(&self) -> Error {
        let full = || Error::io("allocate", &self.path, std::io::ErrorKind::StorageFull.into());
        self.inner.lock().refusal.clone().unwrap_or_else(full)
    }

    /// Gives up as much as `what` may have; says whether there was anything.
    pub fn give_up(&self, what: Use) -> bool {
        let mut inner = self.inner.lock();
        let kept = match what {
            Use::All => 0,
            Use::Freeing => self.target.load(Ordering::Acquire).saturating_sub(FREEING_BYTES),
        };
        if inner.held <= kept {
            return false;
        }
        self.tight.store(true, Ordering::Release);
        match self.cut(&mut inner, kept) {
            Ok(()) => true,
            Err(error) => {
                log::warn!("the reserve is not given up: {error}");
                false
            }
        }
    }

    /// Cuts the reserve to what the next open needs.
    pub fn settle(&self, manifest: u64) {
        let mut inner = self.inner.lock();
        let kept = base_share(manifest);
        let done = if inner.held > kept {
            self.cut(&mut inner, kept)
        } else {
            self.grow(&mut inner, kept);
            Ok(())
        };
        if let Err(error) = done {
            log::warn!("the reserve stays as large as it is: {error}");
        }
    }

    /// Makes the file `bytes` long; false if the device is too full for that.
    fn grow(&self, inner: &mut Inner, bytes: u64) -> bool {
        if inner.ours && inner.held >= bytes {
            return true;
        }
        match self.allocate(inner, bytes) {
            Ok(()) => {
                inner.held = bytes;
                true
            }
            Err(error @ Error::DiskFull { .. }) => {
                inner.refusal = Some(error);
                // What was allocated of it is given back.
                if self.cut(inner, inner.held).is_err() {
                    let _ = self.remove(inner);
                }
                false
            }
            Err(error) => {
                log::warn!("there is no reserve for a full disk: {error}");
                true
            }
        }
    }

    fn allocate(&self, inner: &mut Inner, bytes: u64) -> Result<()> {
        if !inner.ours {
            self.remove(inner)?;
        }
        let mode = if inner.ours { OpenMode::ReadWrite } else { OpenMode::CreateNew };
        let file = self.fs.open(&self.path, mode).context("open", &self.path)?;
        inner.ours = true;
        file.allocate(bytes).context("allocate", &self.path)
    }

    /// Cuts the file to `bytes`; what somebody else made goes as a whole.
    fn cut(&self, inner: &mut Inner, bytes: u64) -> Result<()> {
        if bytes == 0 || !inner.ours {
            return self.remove(inner);
        }
        let file = self.fs.open(&self.path, OpenMode::ReadWrite).context("open", &self.path)?;
        file.set_len(bytes).context("cut", &self.path)?;
        inner.held = bytes;
        Ok(())
    }

    fn remove(&self, inner: &mut Inner) -> Result<()> {
        match self.fs.remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &self.path, error));
            }
            _ => {}
        }
        (inner.held, inner.ours) = (0, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
