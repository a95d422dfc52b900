//! How many run files are open at once.
//!
//! A database may have more files than a process may have descriptors. So a file is opened when
//! something is read from it, and when the bound is reached another one is closed: one from which
//! nothing was read since the clock hand last passed it.
//!
//! 1. At most `max` files are open without a read in progress. A read holds its file in any case,
//!    so at most one more is open for each thread that reads.
//! 2. Only a file that has a name is closed: it is unlinked when no reader refers to it (R22), so
//!    it can be opened again for as long as a reader may need it.
//! 3. The lock is held for moments, never while a file is opened or closed.

use super::file::RunFile;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// How many files in use the hand passes over at most, so that opening a file costs the same
/// however many are open.
const CHANCES_MAX: usize = 64;
/// The ring is searched for files that are gone only when it has at least this many.
const PURGE_FILES_MIN: usize = 64;

#[derive(Debug, Default)]
struct Ring {
    /// The open files, in the order in which the hand meets them.
    files: VecDeque<Weak<RunFile>>,
    /// How many files are being opened.
    opening: usize,
    /// The length at which entries of files that are gone are removed.
    purge_at: usize,
}

/// The open run files of a database.
#[derive(Debug)]
pub struct OpenFiles {
    max: usize,
    ring: Mutex<Ring>,
    opened: AtomicU64,
    evicted: AtomicU64,
}

impl OpenFiles {
    /// At most `max` files, but at least one.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max: max.max(1),
            ring: Mutex::default(),
            opened: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        })
    }

    /// How often a file was opened, and how often one was closed to make room.
    pub fn counts(&self) -> (u64, u64) {
        (self.opened.load(Ordering::Relaxed), self.evicted.load(Ordering::Relaxed))
    }

    /// Makes room for a file that is about to be opened.
    pub(super) fn turn(&self) -> Turn<'_> {
        self.make_room(self.max, 1);
        Turn(self)
    }

    /// Closes all, because others in this process took more descriptors than expected.
    pub(super) fn close_all(&self) {
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
        // Here files are closed, and perhaps the last reference to an obsolete one is dropped.
        drop(closed);
    }
}

/// A file is being opened.
#[derive(Debug)]
pub(super) struct Turn<'t>(&'t OpenFiles);

impl Turn<'_> {
    /// It is open, and `owner` answers for it.
    pub(super) fn opened(self, owner: &Weak<RunFile>) {
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
