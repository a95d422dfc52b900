//! The open database: what all calls and threads share.
//!
//! `Core` only holds the parts together. The other files of this module implement its behaviour,
//! one subject in each, as further `impl` blocks.

use crate::admission::Pacer;
use crate::admission::relief::Relief;
use crate::base::{Millis, Moment, Seq, SteadyClock};
use crate::budget::ChunkPool;
use crate::cache::BlockCache;
use crate::catalog::Catalog;
use crate::commit::Pipeline;
use crate::compaction::CompactionRule;
use crate::compaction::calm::Calm;
use crate::compaction::queue::WorkQueue;
use crate::compaction::space::Ledger;
use crate::directory::files::Files;
use crate::directory::reserve::Reserve;
use crate::error::{Error, Result};
use crate::fs::{FileLock, ForkGuard, Fs};
use crate::manifest::{ReachRecord, Store, Totals};
use crate::monitor::Monitor;
use crate::options::Durability;
use crate::options::settings::Settings;
use crate::state::State;
use crate::state::current::Current;
use crate::state::snapshots::Snapshots;
use crate::stats::counters::Counters;
use crate::sync::{Gates, Latch, Point, Signal, pass};
use crate::trace::Slowest;
use crate::txn::Transactions;
use crate::waits::Waits;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// An open database.
pub struct Core {
    pub(super) path: PathBuf,
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) settings: Settings,
    pub(super) lock: Mutex<Option<Box<dyn FileLock>>>,
    pub(super) fork: ForkGuard,
    pub(crate) latch: Arc<Latch>,
    /// `None`: read-only.
    pub(crate) pipeline: Option<Pipeline>,
    pub(super) read_only_end: Seq,
    pub(crate) state: Current,
    /// Held by writers of keyspaces with a custom comparator, and by seals (R15).
    pub(crate) placing: Mutex<()>,
    pub(crate) catalog: Mutex<Catalog>,
    pub(crate) store: Mutex<Store>,
    pub(super) record: ReachRecord,
    pub(super) totals: Mutex<Totals>,
    pub(crate) files: Arc<Files>,
    pub(super) snapshots: Snapshots,
    pub(crate) transactions: Transactions,
    pub(crate) clock: SteadyClock,
    pub(crate) cache: Arc<BlockCache>,
    /// Memory of flushed memtables, to be reused by new ones.
    pub(super) pool: Arc<ChunkPool>,
    pub(crate) counters: Arc<Counters>,
    /// The slowest operations.
    pub(super) slowest: Slowest,
    /// What calls waited for.
    pub(super) waits: Arc<Waits>,
    pub(crate) pacer: Pacer,
    pub(crate) monitor: Arc<Monitor>,
    /// The reserve: space that is kept for what must work on a full device.
    pub(crate) reserve: Arc<Reserve>,
    pub(super) relief: Relief,
    /// Notified when writers may have room again.
    pub(super) room: Signal,
    pub(crate) work: WorkQueue,
    /// Whether writes have paused.
    pub(super) calm: Mutex<Calm>,
    pub(super) space: Mutex<Ledger>,
    /// Wakes the thread that prepares log files.
    pub(super) log_signal: Arc<Signal>,
    /// Wakes the thread that syncs the log and records how far it is synced.
    pub(super) sync_signal: Arc<Signal>,
    /// The end of the last `Buffered` write, which only a flush makes durable (R13).
    pub(super) buffered_end: AtomicU64,
    /// The end of the last ingestion since the database was opened. It may not be published yet.
    pub(crate) ingested_end: AtomicU64,
    /// Holds the background threads at named points, in tests.
    pub(super) gates: Option<Arc<dyn Gates>>,
    pub(super) closing: AtomicBool,
    pub(super) closed: AtomicBool,
    pub(super) close_result: Mutex<Option<Result<()>>>,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Core {
    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The random bytes that distinguish this database from every other.
    pub fn id(&self) -> [u8; 16] {
        self.record.database()
    }

    /// The durability class of writes that do not give one.
    pub fn durability(&self) -> Durability {
        self.settings.durability
    }

    /// Fails if the database accepts no calls: after close (C8), and in a forked child (R26).
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.fork.forked() {
            return Err(Error::Forked);
        }
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        Ok(())
    }

    /// Whether this process is a forked child of the one that opened the database.
    pub(crate) fn is_forked(&self) -> bool {
        self.fork.forked()
    }

    /// The end of the published writes.
    #[inline]
    pub(crate) fn visible(&self) -> Seq {
        match &self.pipeline {
            Some(pipeline) => pipeline.visible(),
            None => self.read_only_end,
        }
    }

    /// Registers a snapshot of the present moment, with a label if it has one.
    pub fn take_snapshot(&self, label: Option<&Arc<str>>) -> Result<Moment> {
        self.check_open()?;
        let now = || Moment { seq: self.visible(), time: self.clock.now() };
        let moment = self.snapshots.register(now);
        if let Some(label) = label {
            self.snapshots.label(moment.seq, label.clone());
        }
        Ok(moment)
    }

    /// The time by which entries expire.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// What flushes and compactions that begin now must preserve.
    pub(super) fn compaction_rule(&self) -> CompactionRule {
        // A snapshot that is taken while an ingestion is in the tree and not yet published does not see
        // it. So what was ingested into the runs that were just read is published first.
        if let Some(pipeline) = &self.pipeline {
            // If it never is, nothing is installed either.
            let _ = pipeline.wait_visible(self.ingested_end.load(Ordering::Acquire));
        }
        let (snapshots, now) = self.snapshots.moments(|| self.clock.now());
        CompactionRule { snapshots, now }
    }

    /// Ends a snapshot. From now on, compactions may drop the entries that only it could see.
    pub fn release_snapshot(&self, seq: Seq, label: Option<&Arc<str>>) {
        if let Some(label) = label {
            self.snapshots.unlabel(seq, label);
        }
        self.snapshots.release(seq);
    }

    /// The state of readers and the moment that matches it (R17). The time is read after the state:
    /// whatever a compaction treated as expired before the state was published is expired at that
    /// time.
    pub(crate) fn view(&self, at: Option<Moment>) -> (Arc<State>, Moment) {
        let (state, seq) = self.state.view(|| at.map_or_else(|| self.visible(), |at| at.seq));
        (state, at.unwrap_or_else(|| Moment { seq, time: self.clock.now() }))
    }

    /// Reports where the calling thread is; a test may hold it there.
    #[inline]
    pub(crate) fn gate(&self, point: Point) {
        pass(self.gates.as_deref(), point);
    }

    /// The state of readers, for callers that only inspect it.
    pub(crate) fn state_now(&self) -> Arc<State> {
        self.state.load_arc()
    }
}
