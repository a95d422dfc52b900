//! Wires the layers into a database; no algorithm lives here.
//!
//! | file | what |
//! |---|---|
//! | `open`, `judge`, `begin`, `foreign`, `replay` | from a path to a running database |
//! | `write`, `ops`, `memset`, `pace` | the path of a write |
//! | `txn` | transactions: reads, writes, validation, locks |
//! | `read`, `scan`, `state`, `current`, `retired`, `snapshots` | the path of a read |
//! | `flush`, `stretch`, `slices` | from memtables into the tree |
//! | `compact`, `shape`, `store`, `files` | the tree and its changes |
//! | `full`, `thin`, `headroom`, `held` | what happens when the device is full |
//! | `record` | how far manifest and log are known to reach |
//! | `work`, `worker` | who does what in the background |
//! | `catalog`, `keyspaces`, `branches` | named keyspaces, and copies of all of them |
//! | `checkpoint` | a second database that shares files with this one |
//! | `admin`, `counters`, `stats`, `sizes`, `settings`, `options` | the rest |
//!
//! Locks, in the order in which they may be taken together: `placing`, `store`, `catalog`, the
//! pipeline's gate, that of `state`, `totals`, and last those inside `record`, `work` and
//! `transactions`. No lock is held while a reader runs, and none across a sync except `store` (one
//! change at a time), `catalog` (making a keyspace or a branch), and that of `record`, which no
//! writer takes.

mod admin;
mod begin;
mod branches;
pub mod catalog;
mod checkpoint;
mod compact;
mod counters;
mod current;
mod files;
mod flush;
pub mod foreign;
mod full;
mod headroom;
mod held;
mod judge;
pub mod keyspaces;
mod memset;
mod open;
pub mod ops;
pub mod options;
mod pace;
mod read;
mod record;
mod replay;
mod retired;
pub mod scan;
mod settings;
mod shape;
mod sizes;
mod slices;
mod snapshots;
mod state;
pub mod stats;
mod store;
mod stretch;
mod thin;
pub mod txn;
pub mod unfinished;
mod verify;
mod work;
mod worker;
mod write;

pub use crate::run::parse_run_name;
pub use headroom::RESERVE_NAME;
pub use judge::{Verdict, judge};
pub use memset::DbOrder;
pub use open::{DATA_DIRECTORY, LOCK_NAME, LOG_DIRECTORY};
pub use read::Seen;
pub use verify::{Problem, VerifyReport};
pub use write::{Write, check_key};

use crate::base::{Moment, Seq, SteadyClock};
use crate::cache::BlockCache;
use crate::commit::Pipeline;
use crate::error::{Error, Result};
use crate::fs::{FileLock, ForkGuard, Fs};
use crate::memtable::ChunkPool;
use crate::sync::{Gates, Latch, Point, Signal};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// An open database.
pub struct Core {
    path: PathBuf,
    fs: Arc<dyn Fs>,
    settings: settings::Settings,
    lock: Mutex<Option<Box<dyn FileLock>>>,
    fork: ForkGuard,
    latch: Arc<Latch>,
    /// `None`: read-only.
    pipeline: Option<Pipeline>,
    read_only_end: Seq,
    state: current::Current,
    /// Held by writers of keyspaces with a custom comparator, and by seals (R15).
    placing: Mutex<()>,
    catalog: Mutex<catalog::Catalog>,
    store: Mutex<store::Store>,
    record: record::Record,
    totals: Mutex<store::Totals>,
    files: Arc<files::Files>,
    snapshots: snapshots::Snapshots,
    transactions: txn::Transactions,
    clock: SteadyClock,
    cache: Arc<BlockCache>,
    /// Memory of memtables that were flushed, for the next ones.
    pool: Arc<ChunkPool>,
    counters: Arc<counters::Counters>,
    pacer: pace::Pacer,
    /// The reserve: space that is kept for what must work on a full device.
    headroom: Arc<headroom::Headroom>,
    relief: full::Relief,
    /// Notified when writers may have room again.
    room: Signal,
    work: work::Work,
    /// Wakes the thread that prepares segments of the log.
    log_signal: Arc<Signal>,
    /// Wakes the thread that syncs the log and records how far: there is something to record.
    sync_signal: Arc<Signal>,
    /// The end of the last `Buffered` write, which only a flush makes durable (R13).
    buffered_end: AtomicU64,
    /// Holds the background at named points, in tests.
    gates: Option<Arc<dyn Gates>>,
    closing: AtomicBool,
    closed: AtomicBool,
    close_result: Mutex<Option<Result<()>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
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
    pub fn durability(&self) -> options::Durability {
        self.settings.durability
    }

    /// Fails if calls are not answered: after close (C8), and in a forked child (R26).
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

    /// Whether this process only inherited the database from the one that opened it.
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

    /// Registers a snapshot of the present moment.
    pub fn take_snapshot(&self) -> Result<Moment> {
        self.check_open()?;
        Ok(self.snapshots.register(|| {
            let seq = self.visible();
            Moment { seq, time: self.clock.now() }
        }))
    }

    /// The time by which entries expire.
    pub fn now(&self) -> crate::base::Millis {
        self.clock.now()
    }

    /// What flushes and compactions that begin now have to preserve.
    fn compaction_rule(&self) -> crate::compaction::CompactionRule {
        let (snapshots, now) = self.snapshots.moments(|| self.clock.now());
        crate::compaction::CompactionRule { snapshots, now }
    }

    /// Ends a snapshot. Compactions drop what it held back from now on.
    pub fn release_snapshot(&self, seq: Seq) {
        self.snapshots.release(seq);
    }

    /// The state of readers and the moment that goes with it (R17). The time is read after the
    /// state: what a compaction took for expired before the state was published is expired then.
    pub(crate) fn view(&self, at: Option<Moment>) -> (Arc<state::State>, Moment) {
        let (state, seq) = self.state.view(|| at.map_or_else(|| self.visible(), |at| at.seq));
        (state, at.unwrap_or_else(|| Moment { seq, time: self.clock.now() }))
    }

    fn writer_options(&self, settled: bool) -> crate::run::WriterOptions {
        use crate::block::Codec;
        use options::Compression;
        let codec = match (self.settings.compression, settled) {
            (Compression::None, _) | (Compression::Auto | Compression::Zstd, false) => Codec::Raw,
            (Compression::Auto, true) | (Compression::Lz4, _) => Codec::Lz4,
            (Compression::Zstd, true) => Codec::Zstd,
        };
        crate::run::WriterOptions {
            segment_bytes: self.settings.segment_bytes,
            block_bytes: self.settings.block_bytes,
            codec,
            bits_per_key: if settled { 8 } else { 14 },
        }
    }

    /// Reports where the calling thread is; a test may hold it there.
    #[inline]
    fn gate(&self, point: Point) {
        if let Some(gates) = &self.gates {
            gates.pass(point);
        }
    }

    /// The object of a file that is being written: one per file, kept until its writer is done.
    fn output_file(&self, id: crate::base::FileId) -> Arc<crate::run::RunFile> {
        self.files.output_file(id)
    }
}
