//! The reserve: space that nobody uses until the device is full (C7).
//!
//! Deletes must work on a full device: a delete takes log, its flush a run, its compaction another
//! one, and all of them the manifest. So a file without content, `wal/reserve`, keeps space for
//! them, and gives it up when the device has no more.
//!
//! The invariant: **while the reserve is whole, what frees space can be written, flushed and made
//! effective, one step after the other, and each step leaves what the next one needs.**
//!
//! 1. The reserve has four parts, given up in this order: [`FREEING_BYTES`], log for what frees
//!    space; one flush of the largest memtable so far; one *unit*, the longest segment of a run
//!    there is, because what is deleted returns segment by segment (`thin`); and [`OPEN_BYTES`]
//!    with the manifest's size, for opening, records of the manifest, superblocks and close.
//! 2. Each [`Use`] may have its own part and those before it, so a log of deletes never takes what
//!    their flush needs, nor a flush what a unit needs. Compactions have no part: they use free
//!    space.
//! 3. Ordinary writes never use it. While it is not whole the database is *tight*: they are refused
//!    unless the reserve can be made whole again, which each of them tries.
//! 4. Work that uses a part holds a [`Claim`] until it ends. While there are claims nothing is put
//!    back: else a writer would take away what a flush under way was given. Then the parts are put
//!    back from the last to the first, as far as there is space.
//! 5. It never shrinks while the database is open, and is cut at close to what an open begins with.
//! 6. A reserve file of an earlier life is only ever removed, never written to: somebody may have
//!    put something else in its place.
//! 7. If the reserve cannot be made for another reason than space, writes are not refused.

use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, OpenMode};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The name of the reserve, in the directory of the log.
pub const RESERVE_NAME: &str = "reserve";
/// For opening, besides the manifest's size: a log file, and blocks of directories.
pub const OPEN_BYTES: u64 = 64 << 10;
/// For the log of what frees space.
pub const FREEING_BYTES: u64 = 128 << 10;
/// A memtable may grow by so much before the reserve is looked at.
pub const STEP_BYTES: u64 = 64 << 10;
/// What a flush writes beyond the bytes of its memtables: headers, indexes, the manifest's next
/// records.
const FLUSH_EXTRA_BYTES: u64 = 64 << 10;
/// What writing a segment again takes beyond its bytes: a header, and what no longer fits into a
/// page.
const UNIT_EXTRA_BYTES: u64 = 64 << 10;
/// The reserve grows ahead of what it covers only to this part of what is free.
const SHARE_OF_FREE: u64 = 8;

/// How much of the reserve somebody may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The part for the log of what frees space.
    Freeing,
    /// Also that for a flush.
    Flush,
    /// Also that for a unit.
    Unit,
    /// All of it, for moments.
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
pub struct Reserve {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    inner: Mutex<Inner>,
    /// How large the reserve is to be.
    target: AtomicU64,
    /// The part for opening, and that for a unit.
    opening: AtomicU64,
    unit: AtomicU64,
    tight: AtomicBool,
    claims: AtomicU32,
}

/// Work that uses the reserve: as long as it goes on, nothing is put back.
#[derive(Debug)]
pub struct Claim(Arc<Reserve>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.claims.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Bytes that flushing memtables may take that have `bytes` now.
fn flush_share(bytes: u64) -> u64 {
    let bytes = bytes + STEP_BYTES;
    bytes + bytes / 8 + FLUSH_EXTRA_BYTES
}

/// Bytes that writing a segment of `bytes` again may take.
fn unit_share(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { bytes + UNIT_EXTRA_BYTES }
}

impl Reserve {
    /// The reserve of the database whose log stands in `directory`: what an earlier life left.
    pub fn find(fs: &Arc<dyn Fs>, directory: &Path) -> Arc<Self> {
        let path = directory.join(RESERVE_NAME);
        let held = fs.open(&path, OpenMode::Read).and_then(|file| file.allocated()).unwrap_or(0);
        let inner = Mutex::new(Inner { held, ours: false, refusal: None });
        let (tight, claims) = (AtomicBool::new(false), AtomicU32::new(0));
        let (target, opening, unit) = Default::default();
        Arc::new(Self { fs: fs.clone(), path, inner, target, opening, unit, tight, claims })
    }

    /// Whether the reserve is not whole.
    pub fn is_tight(&self) -> bool {
        self.tight.load(Ordering::Acquire)
    }

    /// Begins the life of the reserve; where there is no room for it, the database is tight.
    /// `unit`: bytes of the longest segment.
    pub fn begin(&self, manifest: u64, unit: u64) {
        self.unit.fetch_max(unit_share(unit), Ordering::AcqRel);
        let wanted = self.base_share(manifest) + flush_share(0);
        self.target.store(wanted, Ordering::Release);
        self.tight.store(true, Ordering::Release);
        self.restore();
    }

    /// Bytes of the reserve without the part for a flush.
    fn base_share(&self, manifest: u64) -> u64 {
        let opening = OPEN_BYTES + manifest;
        self.opening.store(opening, Ordering::Release);
        opening + self.unit.load(Ordering::Acquire) + FREEING_BYTES
    }

    /// Sees to it that a flush of memtables of so many bytes will have room, and `manifest` another
    /// of its kind. False: there is no room for that.
    pub fn cover(&self, memtable: u64, memtable_max: u64, manifest: u64) -> bool {
        let base = self.base_share(manifest);
        let wanted = base + flush_share(memtable);
        let target = self.target.load(Ordering::Acquire);
        if wanted <= target || self.is_tight() {
            return true;
        }
        // By doubling, so that it is seldom done, but not where that is much of what is free.
        let ample = (2 * target).min(base + flush_share(memtable_max)).max(wanted);
        let ample = if self.free() / SHARE_OF_FREE >= ample { ample } else { wanted };
        let mut inner = self.inner.lock();
        [ample, wanted].into_iter().any(|bytes| {
            let grown = self.grow(&mut inner, bytes);
            if grown {
                self.target.fetch_max(bytes, Ordering::AcqRel);
            }
            grown
        })
    }

    /// Ensures that a segment of so many bytes can be rewritten. Where there is no room for
    /// that, the database is tight.
    pub fn cover_unit(&self, bytes: u64) {
        let unit = unit_share(bytes);
        let known = self.unit.fetch_max(unit, Ordering::AcqRel);
        if unit > known {
            self.target.fetch_add(unit - known, Ordering::AcqRel);
            self.tight.store(true, Ordering::Release);
            self.restore();
        }
    }

    /// Bytes that are free beside the reserve, as far as that is known.
    pub fn free(&self) -> u64 {
        let directory = self.path.parent().unwrap_or(&self.path);
        self.fs.free_bytes(directory).unwrap_or(u64::MAX)
    }

    /// Makes the reserve whole, if that is possible, or as large as it can be; says whether it is
    /// whole.
    pub fn restore(&self) -> bool {
        if !self.is_tight() {
            return true;
        }
        let mut inner = self.inner.lock();
        if self.claims.load(Ordering::Acquire) > 0 {
            return false;
        }
        let target = self.target.load(Ordering::Acquire);
        let parts =
            [Some(target)].into_iter().chain([Use::Freeing, Use::Flush, Use::Unit].map(|what| {
                Some(self.kept(what)).filter(|kept| !inner.ours || *kept > inner.held)
            }));
        let whole = parts.flatten().collect::<Vec<_>>();
        let whole = whole.into_iter().find(|bytes| self.grow(&mut inner, *bytes)) == Some(target);
        self.tight.store(!whole, Ordering::Release);
        whole
    }

    /// What is left of the reserve after a use of this part.
    fn kept(&self, what: Use) -> u64 {
        let opening = self.opening.load(Ordering::Acquire);
        match what {
            Use::Freeing => self.target.load(Ordering::Acquire).saturating_sub(FREEING_BYTES),
            Use::Flush => opening + self.unit.load(Ordering::Acquire),
            Use::Unit => opening,
            Use::All => 0,
        }
    }

    /// Keeps the reserve from being put back.
    pub fn claim(self: &Arc<Self>) -> Claim {
        // Under the lock: a thread that puts it back now ends first.
        let _inner = self.inner.lock();
        self.claims.fetch_add(1, Ordering::AcqRel);
        Claim(self.clone())
    }

    /// Whether somebody uses the reserve.
    pub fn is_claimed(&self) -> bool {
        self.claims.load(Ordering::Acquire) > 0
    }

    /// Does work of an open; where space is missing, with what the reserve gives up.
    pub fn retry<R>(&self, mut work: impl FnMut() -> Result<R>) -> Result<R> {
        match work() {
            Err(Error::DiskFull { .. }) if self.give_up(Use::All) => work(),
            outcome => outcome,
        }
    }

    /// A function that gives up the reserve, for writers to allocated space.
    pub fn yielding(self: &Arc<Self>) -> Box<dyn Fn() -> bool + Send + Sync> {
        let reserve = self.clone();
        Box::new(move || reserve.give_up(Use::All))
    }

    /// Why the reserve is not whole.
    pub fn refusal(&self) -> Error {
        let full = || Error::io("allocate", &self.path, std::io::ErrorKind::StorageFull.into());
        self.inner.lock().refusal.clone().unwrap_or_else(full)
    }

    /// Gives up as much as `what` may have; returns whether there was anything.
    pub fn give_up(&self, what: Use) -> bool {
        let mut inner = self.inner.lock();
        let kept = self.kept(what);
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

    /// Cuts the reserve to what the next open begins with.
    pub fn settle(&self, manifest: u64) {
        let mut inner = self.inner.lock();
        let kept = self.base_share(manifest) + flush_share(0);
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
        // Seeded: nothing is kept for what must work on a full disk.
        bug!("directory_no_reserve_is_kept", return true);
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

    /// Cuts the file to `bytes`; a file that another process made goes as a whole.
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
