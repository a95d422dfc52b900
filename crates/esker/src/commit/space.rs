//! Log files: prepared ahead of the writers, recycled behind them.
//!
//! Reservation may only reach where space is prepared and durable (R2, R4). One lock serialises
//! preparation and release, which do I/O. The list of live log files has its own lock, which is
//! held only briefly. Each ring slot has a cell that caches the log file of the slot's last ticket.
//! Only the holder of the slot's ticket touches the cell, so finding the log file shares no cache
//! line.
//!
//! Log files start small. They double in size while they fill quickly (R1), never take more than an
//! eighth of the free space, and shrink to what fits when the device is full (R8). A failed
//! preparation reserves nothing and leaves no file; its serial and file number are never used
//! again. `spare` says what the log frees on a full device, and in which order; `rest` what it keeps
//! when nobody writes.

mod rest;
mod spare;

pub use rest::LogBytes;

use super::ring::Ring;
use crate::base::Seq;
use crate::error::{Error, IoContext, Result};
use crate::events::EventBus;
use crate::fs::{Fs, Incarnation, OpenMode};
use crate::wal::format::{CAPACITY_MAX, CAPACITY_MIN, HEADER_BYTES};
use crate::wal::{AllocatedFile, Chain, LogFile, LogFileHeader, Medium, file_name};
use parking_lot::{Mutex, RwLock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A log file that fills faster than this is followed by one twice its size.
const FILLS_FAST: Duration = Duration::from_secs(1);
/// On a full device, a log file of at most this size is not retried with a smaller size.
const SMALLEST_RETRY: u64 = 32 << 10;
/// A log file takes at most one part in this many of the device's free space, so that the log does
/// not take the space that a flush needs.
const SHARE_OF_FREE: u64 = 8;
/// Released log files that are kept for recycling.
const POOL_MAX: usize = 2;
/// The number of bytes in each step when an old log file is rewritten in place.
const REWRITE_BYTES: u64 = 256 << 10;
/// How far ahead of the writers pages are made resident (R9), and the size of each step.
const POPULATE_AHEAD: u64 = 1 << 20;
const POPULATE_STEP: u64 = 512 << 10;

/// A log file of an earlier life of the log, kept until its content is no longer needed.
struct Retired {
    path: PathBuf,
    start: Seq,
    end: Seq,
    file_bytes: u64,
}

/// What preparation and release change.
struct Maker {
    next_serial: u64,
    next_number: u64,
    /// The nonce that the next log file names as its predecessor.
    predecessor: u64,
    /// Data bytes of the next new log file.
    capacity: u64,
    prepared_at: Instant,
    populated: Seq,
    pool: Vec<Arc<AllocatedFile>>,
    /// A new file that the next log file takes.
    ready: Option<Arc<AllocatedFile>>,
    /// Where the log ended when it was put to rest, if it has not grown since; 0: it has. Released log
    /// files are removed then.
    rests_at: Seq,
    retired: Vec<Retired>,
    /// Everything before this position is released (R3).
    released: Seq,
    /// The position up to which the space of live log files was freed by holes (see `spare`).
    holed: Seq,
}

/// Where log files are, and where it is told that some could not be removed.
pub(super) struct Place {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) dir: PathBuf,
    pub(super) events: Arc<EventBus>,
}

/// Preparing, finding and giving back log files.
pub(super) struct Space {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    events: Arc<EventBus>,
    medium: Medium,
    /// Data bytes of the first log file.
    capacity_min: u64,
    capacity_max: u64,
    maker: Mutex<Maker>,
    live: RwLock<Vec<Arc<LogFile>>>,
    /// One per ring slot: the log file that the slot's last ticket was written to.
    cached: Box<[Mutex<Option<Arc<LogFile>>>]>,
    /// A reservation that ends after this position triggers preparation.
    wake_at: AtomicU64,
    /// Goes into the headers of log files that are prepared.
    pub(super) life: AtomicU64,
    pub(super) prepared: AtomicU64,
    pub(super) recycled: AtomicU64,
}

impl Space {
    /// Opens the log's space at `start`, in a fresh log file that continues `chain` (R7), and
    /// removes log files that are not part of it. Returns with `ring` open for reservation. If
    /// the device is full, it first removes what is not needed and then calls `on_full` to make
    /// room.
    pub(super) fn open(
        place: Place,
        medium: Medium,
        (file_bytes_min, file_bytes_max): (u64, u64),
        chain: Chain,
        ring: &Ring,
        on_full: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let start = ring.reserved();
        let capacity =
            |bytes: u64| bytes.saturating_sub(HEADER_BYTES) / CAPACITY_MIN * CAPACITY_MIN;
        let capacity_max = capacity(file_bytes_max).clamp(CAPACITY_MIN, CAPACITY_MAX);
        let capacity_min = capacity(file_bytes_min).clamp(CAPACITY_MIN, capacity_max);
        let retired = chain.log_files.iter().map(|log_file| Retired {
            path: log_file.path.clone(),
            start: log_file.header.start,
            end: log_file.end.min(start),
            file_bytes: log_file.file_len,
        });
        // The predecessor is the log file that holds the last valid byte. A log file that starts at
        // the end holds none, and may never have been synced: a power cut would break the chain.
        let before = chain.log_files.iter().rev().find(|log_file| log_file.header.start < start);
        // Seeded: a new log file names as predecessor one that was prepared and never used; if a
        // power cut removes that one, the chain is broken.
        let before = if bug!("commit_predecessor_without_records") {
            chain.log_files.last()
        } else {
            before
        };
        let maker = Maker {
            next_serial: chain.next_serial.max(1),
            next_number: chain.next_number.max(1),
            predecessor: before.map_or(0, |log_file| log_file.header.nonce),
            capacity: capacity_min,
            prepared_at: Instant::now(),
            populated: start,
            pool: Vec::new(),
            ready: None,
            rests_at: 0,
            retired: retired.collect(),
            released: 0,
            holed: 0,
        };
        let Place { fs, dir, events } = place;
        let space = Self {
            fs,
            dir,
            events,
            medium,
            capacity_min,
            capacity_max,
            maker: Mutex::new(maker),
            live: RwLock::new(Vec::new()),
            cached: (0..ring.slots()).map(|_| Mutex::new(None)).collect(),
            wake_at: AtomicU64::new(u64::MAX),
            life: AtomicU64::new(chain.life),
            prepared: AtomicU64::new(0),
            recycled: AtomicU64::new(0),
        };
        let mut maker = space.maker.lock();
        space.prepare_first(&mut maker, ring, &chain, on_full)?;
        space.drop_leftovers(&mut maker, &chain, start);
        space.set_alarm(&maker, ring);
        drop(maker);
        Ok(space)
    }

    /// Removes files that are not part of the log. This runs only after the new log file is
    /// durable, so that at every moment some log file covers the log's start (R11). A failure to
    /// remove a file is harmless: the walk from the newest log file never reaches it.
    fn drop_leftovers(&self, maker: &mut Maker, chain: &Chain, start: Seq) {
        for path in &chain.stale {
            let _ = self.fs.remove_file(path);
        }
        // Log files that start at or after the end were prepared or filled by an earlier life.
        // Seeded: open removes the log that it replayed before a flush has made that durable.
        let start = if bug!("commit_old_log_removed_before_flush") { 0 } else { start };
        let superseded = chain.log_files.iter().filter(|log_file| log_file.header.start >= start);
        for log_file in superseded {
            let _ = self.fs.remove_file(&log_file.path);
            maker.retired.retain(|retired| retired.path != log_file.path);
        }
    }

    /// Prepares log files until `end` can be reserved. A writer calls it when it reaches the end of
    /// the space, before it has reserved anything (R2).
    pub(super) fn make_room(&self, ring: &Ring, end: Seq) -> Result<()> {
        let mut maker = self.maker.lock();
        while ring.limit() < end {
            let missing = end - ring.limit();
            maker.rests_at = 0;
            self.prepare_one(&mut maker, ring, missing)?;
        }
        // The writer's alarm rings: the thread that prepares ahead learns that the log has grown.
        self.wake_at.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Like [`Space::make_room`]; returns whether it succeeded.
    pub(super) fn make_room_quietly(&self, ring: &Ring, end: Seq) -> bool {
        self.make_room(ring, end).is_ok()
    }

    /// Whether a reservation up to `end` should wake the thread that prepares ahead. Returns true
    /// once for each alarm that is set.
    #[inline]
    pub(super) fn alarm(&self, end: Seq) -> bool {
        end >= self.wake_at.load(Ordering::Relaxed)
            && self.wake_at.swap(u64::MAX, Ordering::Relaxed) != u64::MAX
    }

    /// Prepares the next log file if enough of the last one is used, and reads pages in ahead of
    /// the writers (R9). Returns whether a log file was prepared.
    pub(super) fn prepare_ahead(&self, ring: &Ring) -> Result<bool> {
        let mut maker = self.maker.lock();
        // The caller may be late, and a log at rest stays as it is until the next write.
        let due = self.due(ring) && ring.reserved() != maker.rests_at;
        let outcome = if due {
            maker.rests_at = 0;
            self.prepare_one(&mut maker, ring, 0)
        } else {
            Ok(())
        };
        self.populate(&mut maker, ring);
        self.set_alarm(&maker, ring);
        outcome.map(|()| due)
    }

    /// Whether enough of the last prepared log file is used for the next to be prepared.
    pub(super) fn due(&self, ring: &Ring) -> bool {
        let live = self.live.read();
        live.last().is_some_and(|last| ring.reserved() >= self.due_at(last))
    }

    /// The position from which on the log file after `last` is due. An idle database keeps one small
    /// log file; a busy one gets the time that preparing a large log file takes.
    fn due_at(&self, last: &LogFile) -> Seq {
        let capacity = last.header().capacity;
        let share = if capacity <= self.capacity_min { 2 } else { 8 };
        last.start() + capacity / share
    }

    fn populate(&self, maker: &mut Maker, ring: &Ring) {
        if self.medium == Medium::Plain {
            return;
        }
        let from = maker.populated.max(ring.reserved());
        let until = (ring.reserved() + POPULATE_AHEAD).min(ring.limit());
        let log_files: Vec<_> = self.live.read().clone();
        for log_file in log_files.iter().filter(|log_file| log_file.limit() > from) {
            let start = from.max(log_file.start());
            log_file.populate(start, until.saturating_sub(start));
        }
        maker.populated = maker.populated.max(until);
    }

    fn set_alarm(&self, maker: &Maker, ring: &Ring) {
        let live = self.live.read();
        let Some(last) = live.last() else { return };
        let due = self.due_at(last);
        let step = maker.populated.saturating_sub(POPULATE_STEP).max(ring.reserved() + 1);
        let populate = self.medium == Medium::Mapped && maker.populated < ring.limit();
        let at = if populate { due.min(step) } else { due };
        self.wake_at.store(at, Ordering::Relaxed);
    }

    /// Prepares a log file at the end of the space, with at least `missing` bytes where possible.
    fn prepare_one(&self, maker: &mut Maker, ring: &Ring, missing: u64) -> Result<()> {
        let start = ring.limit();
        let first = self.live.read().is_empty();
        if !first && maker.rests_at == 0 && maker.prepared_at.elapsed() < FILLS_FAST {
            maker.capacity = (maker.capacity * 2 + HEADER_BYTES).min(self.capacity_max);
        }
        let missing = missing.next_multiple_of(CAPACITY_MIN).min(self.capacity_max);
        let mut capacity = maker.capacity.max(missing);
        if let Ok(free) = self.fs.free_bytes(&self.dir) {
            let share = (free / SHARE_OF_FREE).max(SMALLEST_RETRY);
            capacity = capacity.min(share.next_multiple_of(CAPACITY_MIN));
            maker.capacity = maker.capacity.min(capacity);
        }
        let log_file = loop {
            match self.attempt(maker, start, capacity) {
                Ok(log_file) => break log_file,
                // A smaller one may still fit (C7).
                Err(Error::DiskFull { .. }) if capacity > SMALLEST_RETRY => {
                    capacity = (capacity / 2).next_multiple_of(CAPACITY_MIN);
                    maker.capacity = maker.capacity.min(capacity);
                }
                Err(error) => return Err(error),
            }
        };
        maker.predecessor = log_file.header().nonce;
        maker.prepared_at = Instant::now();
        let limit = log_file.limit();
        self.live.write().push(Arc::new(log_file));
        self.prepared.fetch_add(1, Ordering::Relaxed);
        ring.raise_limit(limit);
        Ok(())
    }

    /// One attempt to prepare a log file at `start`; after an error its file is gone (R8).
    fn attempt(&self, maker: &mut Maker, start: Seq, capacity: u64) -> Result<LogFile> {
        let header = LogFileHeader {
            nonce: draw_nonce()?,
            serial: maker.next_serial,
            start,
            capacity: 0,
            predecessor: maker.predecessor,
            incarnation: Incarnation::default(),
            life: self.life.load(Ordering::Relaxed),
        };
        maker.next_serial += 1;
        // A file that got a second hard link meanwhile keeps its bytes; another file is used.
        while let Some(shared) = maker.pool.pop_if(|file| !file.is_ours_alone()) {
            let _ = self.fs.remove_file(shared.path());
        }
        let (file, fresh) = if let Some(ready) = maker.ready.take() {
            (ready, true)
        } else if let Some(file) = maker.pool.pop() {
            self.recycled.fetch_add(1, Ordering::Relaxed);
            (file, false)
        } else {
            (self.create(maker, capacity)?, true)
        };
        let path = file.path().to_owned();
        let prepared = LogFile::prepare(file, header, fresh).and_then(|log_file| {
            // Seeded: a power cut removes the name of a log file that holds durable records.
            let fresh = fresh && !bug!("commit_segment_name_not_synced");
            if fresh {
                self.fs.sync_dir(&self.dir).context("sync", &self.dir)?;
            }
            Ok(log_file)
        });
        if prepared.is_err() {
            // This file is never synced again and never used: the next attempt takes another file.
            let _ = self.fs.remove_file(&path);
        }
        prepared
    }

    /// Makes a file for a log file with so many bytes of data.
    fn create(&self, maker: &mut Maker, capacity: u64) -> Result<Arc<AllocatedFile>> {
        let path = self.dir.join(file_name(maker.next_number));
        maker.next_number += 1;
        AllocatedFile::create(&*self.fs, path, capacity, self.medium).map(Arc::new)
    }

    /// Runs `f` with the log file that covers the ticket's whole stretch, if there is one.
    #[inline]
    pub(super) fn with_file<R>(
        &self,
        slot: usize,
        start: Seq,
        end: Seq,
        f: impl FnOnce(&LogFile) -> R,
    ) -> Option<R> {
        let mut cached = self.cached[slot].lock();
        if !cached.as_ref().is_some_and(|log_file| log_file.covers(start, end)) {
            *cached =
                self.live.read().iter().rfind(|log_file| log_file.covers(start, end)).cloned();
        }
        cached.as_deref().map(f)
    }

    /// The nonce that salts a record at `position`, and the log files of `position..end`, in order.
    pub(super) fn span(&self, position: Seq, end: Seq) -> Vec<Arc<LogFile>> {
        let live = self.live.read();
        let overlapping =
            |log_file: &&Arc<LogFile>| log_file.start() < end && position < log_file.limit();
        live.iter().filter(overlapping).cloned().collect()
    }

    /// The nonce of the log file that holds the byte before `position`; 0 if that file was
    /// released, or belongs to an earlier life.
    pub(super) fn nonce_before(&self, position: Seq) -> u64 {
        let live = self.live.read();
        let holds = |s: &&Arc<LogFile>| s.start() < position && position <= s.limit();
        live.iter().find(holds).map_or(0, |log_file| log_file.header().nonce)
    }

    /// Releases log files that end at or before `position`. They are kept for recycling unless they
    /// are too small or too many. The last log file always stays.
    pub(super) fn release_before(&self, position: Seq) -> Result<()> {
        let mut maker = self.maker.lock();
        // Seeded: a log file is released while it still holds records that are not flushed.
        let position = if bug!("commit_segment_released_too_early") {
            position + (16 << 10)
        } else {
            position
        };
        maker.released = maker.released.max(position);
        let released: Vec<Arc<LogFile>> = {
            let mut live = self.live.write();
            let keep_from = live.partition_point(|log_file| log_file.limit() <= position);
            let keep_from = keep_from.min(live.len().saturating_sub(1));
            live.drain(..keep_from).collect()
        };
        if !released.is_empty() {
            self.forget(|log_file| log_file.limit() <= position);
        }
        let mut unneeded = Vec::new();
        for log_file in released {
            let file = log_file.file();
            let useful = file.capacity() >= maker.capacity / 2
                && file.capacity() <= self.capacity_max
                && log_file.start() >= maker.holed
                && file.keeps_space();
            if useful && maker.rests_at == 0 && maker.pool.len() < POOL_MAX {
                maker.pool.push(Arc::clone(file));
            } else {
                unneeded.push(file.path().to_owned());
            }
        }
        let gone = maker.retired.extract_if(.., |retired| retired.end <= position);
        unneeded.extend(gone.map(|retired| retired.path));
        // Preparing the next log file does not wait for the removal of large files (R27).
        drop(maker);
        let remove = |path: &PathBuf| self.fs.remove_file(path).context("remove", path);
        unneeded.iter().map(remove).fold(Ok(()), Result::and)
    }

    /// Empties the cells that hold such log files.
    fn forget(&self, which: impl Fn(&LogFile) -> bool) {
        for cell in &self.cached {
            let mut cell = cell.lock();
            if cell.as_deref().is_some_and(&which) {
                *cell = None;
            }
        }
    }

    /// Rewrites the log files of earlier lives in place and syncs them. This makes durable what a
    /// failed sync left only in the page cache, marked clean (R7).
    pub(super) fn persist_retired(&self) -> Result<()> {
        let maker = self.maker.lock();
        let mut chunk = vec![0; REWRITE_BYTES as usize];
        for Retired { path, start, end, .. } in &maker.retired {
            let file = self.fs.open(path, OpenMode::ReadWrite).context("open", path)?;
            let until = (HEADER_BYTES + (end - start)).min(file.len().context("measure", path)?);
            let mut at = HEADER_BYTES;
            while at < until {
                let piece = &mut chunk[..(until - at).min(REWRITE_BYTES) as usize];
                file.read_at(piece, at).context("read", path)?;
                file.write_at(piece, at).context("write", path)?;
                at += piece.len() as u64;
            }
            file.sync_data().context("sync", path)?;
        }
        Ok(())
    }
}

/// A nonce is never 0, which stands for "no predecessor".
fn draw_nonce() -> Result<u64> {
    // Seeded: records of an earlier use of a recycled log file are taken for new ones.
    bug!("commit_nonce_is_constant", return Ok(1));
    loop {
        let nonce = getrandom::u64()
            .map_err(|error| std::io::Error::other(error.to_string()))
            .context("draw random bytes for", Path::new("the log"))?;
        if nonce != 0 {
            return Ok(nonce);
        }
    }
}
