//! Files that hold segments, and how many of them are open at once.
//!
//! A database may have more files than a process may have descriptors. So a file is opened by the
//! first read from it. At the limit another file is closed: one without a read since the clock hand
//! last passed it. Dropping the last reference to an obsolete file notifies the database, which
//! unlinks the file after the manifest edit that dropped it is durable (R22).
//!
//! 1. At most `max` files are open without a read in progress. A read always holds its file, so
//!    each reading thread may have one more open.
//! 2. A closed file can be opened again as long as a reader may need it, because it is unlinked
//!    only when no reader refers to it (R22).
//! 3. A thread never holds the lock of the ring while it opens or closes a file.

use super::header::{HEADER_BYTES, check_header, file_name};
use crate::base::FileId;
use crate::budget::{Account, Lease};
use crate::error::{Error, Result};
use crate::fs::{Advice, File, Fs, OpenMode, is_out_of_descriptors, part};
use crate::trace::tally;
use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The maximal number of files in use that the hand passes over, so that the cost of opening a file
/// does not depend on how many are open.
const CHANCES_MAX: usize = 64;
/// The ring is searched for dropped files only if it has at least this many entries.
const PURGE_FILES_MIN: usize = 64;

/// Is notified of files and segments to which nothing refers any more. It is called by the drop of
/// the last reference, on any thread, so it should only record the call.
pub trait Reclaim: Send + Sync + fmt::Debug {
    /// An obsolete file can be unlinked.
    fn file(&self, id: FileId);
    /// An obsolete segment of a file that is not obsolete can be punched out.
    fn slice(&self, id: FileId, offset: u64, len: u64);
    /// A run segment that refers to value segments is gone, so more of them is dead.
    fn values(&self);
}

/// A run file.
pub struct RunFile {
    id: FileId,
    path: PathBuf,
    fs: Arc<dyn Fs>,
    me: Weak<Self>,
    table: Option<Arc<OpenFiles>>,
    /// The open file, if it is open.
    file: RwLock<Option<Arc<dyn File>>>,
    opening: Mutex<()>,
    /// Whether the file was read since the table last checked.
    used: AtomicBool,
    /// Whether the header was checked.
    checked: AtomicBool,
    obsolete: AtomicBool,
    reclaim: Option<Arc<dyn Reclaim>>,
}

impl fmt::Debug for RunFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RunFile {
    /// The file with this id in the data directory `dir`; not opened yet. Once it is open, `table`
    /// may close it again.
    pub fn new(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        id: FileId,
        reclaim: Option<Arc<dyn Reclaim>>,
        table: Option<Arc<OpenFiles>>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            id,
            path: dir.join(file_name(id)),
            fs: Arc::clone(fs),
            me: me.clone(),
            table,
            file: RwLock::new(None),
            opening: Mutex::new(()),
            used: AtomicBool::new(false),
            checked: AtomicBool::new(false),
            obsolete: AtomicBool::new(false),
            reclaim,
        })
    }

    /// Its number.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The account of a list of range tombstones that was read from the file, if files are counted.
    pub(super) fn count_tombstones(&self, bytes: u64) -> Option<Lease> {
        // Seeded: lists of range tombstones are in nobody's account.
        bug!("run_tombstones_not_counted", return None);
        let mut lease = self.table.as_ref()?.tombstones.lease();
        lease.set(bytes);
        Some(lease)
    }

    /// The open file, which stays open while the result is held. Opens it if it is closed, and
    /// checks its header the first time.
    pub fn file(&self) -> Result<Arc<dyn File>> {
        if let Some(file) = self.opened() {
            return Ok(file);
        }
        let _opening = self.opening.lock();
        if let Some(file) = self.opened() {
            return Ok(file);
        }
        let turn = self.table.as_ref().map(|table| table.turn());
        let mut file = self.fs.open(&self.path, OpenMode::Read);
        if let (Err(error), Some(table)) = (&file, &self.table)
            && is_out_of_descriptors(error)
        {
            table.close_all();
            file = self.fs.open(&self.path, OpenMode::Read);
        }
        let file = part(file, &self.path, "run header")?;
        if !self.checked.load(Ordering::Relaxed) {
            let mut header = [0; HEADER_BYTES];
            read(&*file, &self.path, &mut header, 0, "run header")?;
            check_header(&header, self.id, &self.path)?;
            self.checked.store(true, Ordering::Relaxed);
        }
        file.advise(Advice::Random);
        *self.file.write() = Some(Arc::clone(&file));
        if let Some(turn) = turn {
            turn.opened(&self.me);
        }
        Ok(file)
    }

    fn opened(&self) -> Option<Arc<dyn File>> {
        let file = self.file.read().clone()?;
        // Written only if it changes the value, so that readers share the cache line.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Some(file)
    }

    /// Whether the file was read since the last call.
    fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.file.read().is_some()
    }

    /// Takes the open file; readers that use it keep it until they are done.
    fn take(&self) -> Option<Arc<dyn File>> {
        self.file.write().take()
    }

    /// Fills `buffer` from `offset`; a file that ends before is damaged. Returns how long the read
    /// took, and adds it to the thread's tally.
    pub(super) fn read(
        &self,
        buffer: &mut [u8],
        offset: u64,
        section: &'static str,
    ) -> Result<Duration> {
        let file = self.file()?;
        let began = Instant::now();
        read(&*file, &self.path, buffer, offset, section)?;
        let took = began.elapsed();
        tally::add_read(buffer.len() as u64, took);
        Ok(took)
    }

    /// Asks the system to read these bytes, and does not wait for them. May open the file; do not call it inside an epoch.
    pub(super) fn read_ahead(&self, offset: u64, len: u64) {
        // Whoever reads the bytes meets the error.
        if let Ok(file) = self.file() {
            file.read_ahead(offset, len);
        }
    }

    /// Marks the file as one to which no durable state refers; the drop of the last reference
    /// reports it.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// Whether [`Self::mark_obsolete`] was called.
    pub fn is_obsolete(&self) -> bool {
        self.obsolete.load(Ordering::Acquire)
    }

    pub(super) fn reclaim_slice(&self, offset: u64, len: u64) {
        if let Some(reclaim) = &self.reclaim
            && !self.is_obsolete()
        {
            reclaim.slice(self.id, offset, len);
        }
    }

    pub(super) fn report_dead_values(&self) {
        if let Some(reclaim) = &self.reclaim {
            reclaim.values();
        }
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if !self.is_obsolete() {
            return;
        }
        // Closed first: some systems refuse to remove an open file.
        *self.file.get_mut() = None;
        if let Some(reclaim) = &self.reclaim {
            reclaim.file(self.id);
        }
    }
}

fn read(
    file: &dyn File,
    path: &Path,
    buffer: &mut [u8],
    offset: u64,
    section: &'static str,
) -> Result<()> {
    match file.read_at(buffer, offset) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(Error::corruption(path, offset, section, "the file ends before its contents"))
        }
        Err(error) => Err(Error::io("read", path, error)),
    }
}

#[derive(Debug, Default)]
struct Ring {
    /// The open files, in the order in which the hand meets them.
    files: VecDeque<Weak<RunFile>>,
    /// How many files are being opened.
    opening: usize,
    /// The length at which the entries of dropped files are removed.
    purge_at: usize,
}

/// The open run files of a database.
#[derive(Debug)]
pub struct OpenFiles {
    max: usize,
    ring: Mutex<Ring>,
    opened: AtomicU64,
    evicted: AtomicU64,
    /// The lists of range tombstones that were read from run files.
    tombstones: Arc<Account>,
}

impl OpenFiles {
    /// At most `max` files, but at least one.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max: max.max(1),
            ring: Mutex::default(),
            opened: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            tombstones: Arc::default(),
        })
    }

    /// Bytes of the lists of range tombstones that are in memory.
    pub fn tombstone_bytes(&self) -> u64 {
        self.tombstones.used()
    }

    /// How often a file was opened, and how often one was closed to make room.
    pub fn counts(&self) -> (u64, u64) {
        (self.opened.load(Ordering::Relaxed), self.evicted.load(Ordering::Relaxed))
    }

    /// How many files are open, and how many may be.
    pub fn in_use(&self) -> (usize, usize) {
        let ring = self.ring.lock();
        (ring.files.iter().filter(|file| file.strong_count() > 0).count(), self.max)
    }

    /// Makes room for a file that is about to be opened.
    fn turn(&self) -> Turn<'_> {
        self.make_room(self.max, 1);
        Turn(self)
    }

    /// Closes all files: the database was closed, or the rest of the process took more descriptors than expected.
    pub fn close_all(&self) {
        self.make_room(0, 0);
    }

    /// Closes files until fewer than `max` are open, and notes how many will be opened.
    fn make_room(&self, max: usize, opening: usize) {
        let mut closed = Vec::new();
        let mut ring = self.ring.lock();
        let mut chances = ring.files.len().min(CHANCES_MAX);
        while ring.files.len() + ring.opening >= max {
            let Some(weak) = ring.files.pop_front() else { break };
            let Some(file) = weak.upgrade() else { continue };
            if file.was_used() && chances > 0 {
                chances -= 1;
                ring.files.push_back(weak);
                closed.push((file, None));
                continue;
            }
            let taken = file.take();
            closed.push((file, taken));
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        ring.opening += opening;
        drop(ring);
        // This closes files, and may drop the last reference to an obsolete one.
        drop(closed);
    }
}

/// A file is being opened.
#[derive(Debug)]
struct Turn<'t>(&'t OpenFiles);

impl Turn<'_> {
    /// The file is open, and `owner` holds it.
    fn opened(self, owner: &Weak<RunFile>) {
        self.0.opened.fetch_add(1, Ordering::Relaxed);
        self.0.ring.lock().enter(owner);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.ring.lock().opening -= 1;
    }
}

impl Ring {
    fn enter(&mut self, file: &Weak<RunFile>) {
        if self.files.len() >= self.purge_at.max(PURGE_FILES_MIN) {
            self.files.retain(|file| file.strong_count() > 0);
            self.purge_at = self.files.len() * 2;
        }
        self.files.push_back(file.clone());
    }
}
