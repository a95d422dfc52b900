//! The reserve: space that is kept unused until the device is full (C7).
//!
//! Deletes must work on a full device: a delete needs space in the log, its flush a run, its
//! compaction another run, and all of them space in the manifest. So a file without content,
//! `wal/reserve`, keeps space for them. Its space is released when the device has no more.
//!
//! The invariant: **while the reserve is whole, a write that frees space can be logged, flushed and
//! made effective, one step after the other, and each step leaves what the next one needs.**
//!
//! 1. The reserve has four parts, released in this order: [`FREEING_BYTES`], log for writes that
//!    free space; one flush of the largest memtable so far; one *unit*, the longest run segment
//!    there is, because the space of deleted entries is freed segment by segment (`thin`); and
//!    [`OPEN_BYTES`] plus the manifest's size, for opening, records of the manifest, superblocks
//!    and close.
//! 2. Each [`Use`] may have its own part and the parts before it, so a log of deletes never takes
//!    what their flush needs, nor a flush what a unit needs. Compactions have no part: they use
//!    free space.
//! 3. Ordinary writes never use it. While it is not whole the database is *tight*: ordinary writes
//!    are refused unless the reserve can be made whole again, which each of them tries.
//! 4. Work that uses a part holds a [`Claim`] until it ends. While there are claims no part is
//!    restored: otherwise a writer would take the space that a running flush was given. Afterwards
//!    the parts are restored from the last to the first, as far as there is space.
//! 5. It shrinks when the memtables are empty and nobody writes ([`Reserve::rest`]), and otherwise never while the
//!    database is open. Close cuts it to about the size with which an open begins.
//! 6. A reserve file of an earlier life is only ever removed, never written to: another program may
//!    have put another file in its place.
//! 7. If creating the reserve fails for another reason than space, writes are not refused.

use crate::error::{Error, IoContext, Result};
use crate::events::{EventBus, EventKind};
use crate::fs::{Fs, OpenMode};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The name of the reserve, in the directory of the log.
pub const RESERVE_NAME: &str = "reserve";
/// Space for opening, in addition to the manifest's size: a log file, and directory blocks.
pub const OPEN_BYTES: u64 = 64 << 10;
/// Log space for writes that free space.
pub const FREEING_BYTES: u64 = 128 << 10;
/// A memtable may grow by this much before the reserve is checked.
pub const STEP_BYTES: u64 = 64 << 10;
/// What a flush writes in addition to the bytes of its memtables: headers, indexes, the manifest's
/// next records.
const FLUSH_EXTRA_BYTES: u64 = 64 << 10;
/// What rewriting a segment takes in addition to its bytes: a header, and entries that no longer
/// fit into a page.
const UNIT_EXTRA_BYTES: u64 = 64 << 10;
/// The reserve grows in advance only up to one part in this many of the free space.
const SHARE_OF_FREE: u64 = 8;

/// How much of the reserve a use may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The part for the log of writes that free space.
    Freeing,
    /// Also the part for a flush.
    Flush,
    /// Also the part for a unit.
    Unit,
    /// All of it, for a short time.
    All,
}

#[derive(Debug)]
struct Inner {
    /// Bytes of the file.
    held: u64,
    /// Whether this process made the file.
    ours: bool,
    /// Why the last attempt to make the reserve whole failed.
    refusal: Option<Error>,
}

/// The reserve of an open database.
#[derive(Debug)]
pub struct Reserve {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    inner: Mutex<Inner>,
    /// The intended size of the reserve.
    target: AtomicU64,
    /// The part for opening, and the part for a unit.
    opening: AtomicU64,
    unit: AtomicU64,
    tight: AtomicBool,
    claims: AtomicU32,
    events: Arc<EventBus>,
}

/// Work that uses the reserve: while it exists, nothing is restored.
#[derive(Debug)]
pub struct Claim(Arc<Reserve>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.claims.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The most bytes that a flush of memtables with `bytes` takes.
fn flush_share(bytes: u64) -> u64 {
    let bytes = bytes + STEP_BYTES;
    bytes + bytes / 8 + FLUSH_EXTRA_BYTES
}

/// The most bytes that rewriting a segment of `bytes` takes.
fn unit_share(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { bytes + UNIT_EXTRA_BYTES }
}

impl Reserve {
    /// The reserve of the database whose log is in `directory`, as an earlier life left it. `events`
    /// is told when its intended size changes, and when it cannot be kept.
    pub fn find(fs: &Arc<dyn Fs>, directory: &Path, events: &Arc<EventBus>) -> Arc<Self> {
        let path = directory.join(RESERVE_NAME);
        let held = fs.open(&path, OpenMode::Read).and_then(|file| file.allocated()).unwrap_or(0);
        let inner = Mutex::new(Inner { held, ours: false, refusal: None });
        let (tight, claims) = (AtomicBool::new(false), AtomicU32::new(0));
        let (target, opening, unit) = Default::default();
        let (fs, events) = (fs.clone(), events.clone());
        Arc::new(Self { fs, path, inner, target, opening, unit, tight, claims, events })
    }

    /// Whether the reserve is not whole.
    pub fn is_tight(&self) -> bool {
        self.tight.load(Ordering::Acquire)
    }

    /// Creates the reserve; if there is no room for it, the database is tight. `unit`: bytes of the
    /// longest segment.
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
        self.share_of_base()
    }

    /// The same for the manifest of the last call.
    fn share_of_base(&self) -> u64 {
        let (opening, unit) = (&self.opening, &self.unit);
        opening.load(Ordering::Acquire) + unit.load(Ordering::Acquire) + FREEING_BYTES
    }

    /// Ensures room for a flush of memtables with `memtable` bytes, and for another manifest of
    /// `manifest` bytes. False: there is no such room.
    pub fn cover(&self, memtable: u64, memtable_max: u64, manifest: u64) -> bool {
        let base = self.base_share(manifest);
        let wanted = base + flush_share(memtable);
        let target = self.target.load(Ordering::Acquire);
        if wanted <= target || self.is_tight() {
            return true;
        }
        // The size doubles, so that growing is rare, but not if that takes a large part of the free
        // space.
        let ample = (2 * target).min(base + flush_share(memtable_max)).max(wanted);
        let ample = if self.free() / SHARE_OF_FREE >= ample { ample } else { wanted };
        let mut inner = self.inner.lock();
        [ample, wanted].into_iter().any(|bytes| {
            let grown = self.grow(&mut inner, bytes);
            if grown {
                let before = self.target.fetch_max(bytes, Ordering::AcqRel);
                self.events.emit(EventKind::ReserveChanged { before, bytes });
            }
            grown
        })
    }

    /// Gives back the part of a flush that is only for fuller memtables than now, which hold `memtable()` bytes, if it is
    /// much. A writer that looks later finds the small size and grows it; one that looked before has written at most
    /// [`STEP_BYTES`] more than that.
    pub fn rest(&self, memtable: impl Fn() -> u64) {
        let needed = || self.share_of_base() + flush_share(memtable());
        let before = self.target.load(Ordering::Acquire);
        if before < 2 * needed() {
            return;
        }
        let mut inner = self.inner.lock();
        if self.is_tight() || self.is_claimed() {
            return;
        }
        self.target.store(needed(), Ordering::SeqCst);
        // What was written before the small size was there counts.
        let needed = needed();
        // Seeded: what is written while the reserve shrinks has no room for its flush.
        let needed = if bug!("directory_reserve_rests_beside_writes") { 0 } else { needed };
        let bytes = self.target.fetch_max(needed, Ordering::SeqCst).max(needed);
        if inner.ours
            && inner.held > bytes
            && let Err(error) = self.cut(&mut inner, bytes)
        {
            self.tell_failure("the reserve could not be released", &error);
        }
        self.events.emit(EventKind::ReserveChanged { before, bytes });
    }

    /// Ensures that a segment of `bytes` can be rewritten. If there is no room for that, the
    /// database is tight.
    pub fn cover_unit(&self, bytes: u64) {
        let unit = unit_share(bytes);
        let known = self.unit.fetch_max(unit, Ordering::AcqRel);
        if unit > known {
            let before = self.target.fetch_add(unit - known, Ordering::AcqRel);
            let bytes = before + (unit - known);
            self.events.emit(EventKind::ReserveChanged { before, bytes });
            let tight = self.tight.swap(true, Ordering::AcqRel);
            if !self.restore() && !tight {
                self.events.emit(EventKind::DeviceFull { free: self.free() });
            }
        }
    }

    /// Free bytes outside the reserve; the largest number if they are unknown.
    pub fn free(&self) -> u64 {
        let directory = self.path.parent().unwrap_or(&self.path);
        self.fs.free_bytes(directory).unwrap_or(u64::MAX)
    }

    /// Makes the reserve whole, or as large as possible. Returns whether it is whole.
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

    /// What is left of the reserve after this use.
    fn kept(&self, what: Use) -> u64 {
        let opening = self.opening.load(Ordering::Acquire);
        match what {
            Use::Freeing => self.target.load(Ordering::Acquire).saturating_sub(FREEING_BYTES),
            Use::Flush => opening + self.unit.load(Ordering::Acquire),
            Use::Unit => opening,
            Use::All => 0,
        }
    }

    /// Prevents the reserve from being restored.
    pub fn claim(self: &Arc<Self>) -> Claim {
        // The claim is made under the lock, so a thread that is restoring ends first.
        let _inner = self.inner.lock();
        self.claims.fetch_add(1, Ordering::AcqRel);
        Claim(self.clone())
    }

    /// Whether work uses the reserve.
    pub fn is_claimed(&self) -> bool {
        self.claims.load(Ordering::Acquire) > 0
    }

    /// Does work of an open; if space is missing, releases the reserve and tries again.
    pub fn retry<R>(&self, mut work: impl FnMut() -> Result<R>) -> Result<R> {
        match work() {
            Err(Error::DiskFull { .. }) if self.give_up(Use::All) => work(),
            outcome => outcome,
        }
    }

    /// A function that releases the reserve, for writers to allocated space.
    pub fn yielding(self: &Arc<Self>) -> Box<dyn Fn() -> bool + Send + Sync> {
        let reserve = self.clone();
        Box::new(move || reserve.give_up(Use::All))
    }

    /// Why the reserve is not whole.
    pub fn refusal(&self) -> Error {
        let full = || Error::io("allocate", &self.path, std::io::ErrorKind::StorageFull.into());
        self.inner.lock().refusal.clone().unwrap_or_else(full)
    }

    /// Releases as much as `what` may have; returns whether there was anything to release.
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
                self.tell_failure("the reserve could not be released", &error);
                false
            }
        }
    }

    /// Cuts the reserve to the size with which the next open begins.
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
            self.tell_failure("the size of the reserve could not be changed", &error);
        }
    }

    /// Makes the file `bytes` long; false if the device is too full for that.
    fn grow(&self, inner: &mut Inner, bytes: u64) -> bool {
        // Seeded: no space is kept for what must work on a full disk.
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
                // Space that was allocated in the failed attempt is freed.
                if self.cut(inner, inner.held).is_err() {
                    let _ = self.remove(inner);
                }
                false
            }
            Err(error) => {
                self.tell_failure("there is no reserve for a full disk", &error);
                true
            }
        }
    }

    fn tell_failure(&self, what: &'static str, error: &Error) {
        self.events.warn(what, error, |error, message| EventKind::ReserveFailed {
            what,
            error,
            message,
        });
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

    /// Cuts the file to `bytes`; a file that another process made is removed.
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
