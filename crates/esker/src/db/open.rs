//! Open: finds out what a path holds, and creates or recovers a database.
//!
//! 1. Open looks at the path before it creates anything: a file, a foreign directory or a database
//!    of an unknown version stays exactly as it is (C9).
//! 2. Open takes the lock before it reads anything that it relies on, so two opens never overlap
//!    (C6).
//! 3. A new database gets its superblocks last. A directory without them, and without data, holds
//!    an interrupted creation; the database is created anew.
//! 4. Recovery reads the manifest, then the log from where the manifest says (R11), and checks both
//!    against what is known of them (`recovery::consistency`). Only if both are whole, it removes
//!    orphans, begins a new manifest, and flushes the replayed writes before the first new write
//!    (R7).

use crate::admission::{Pacer, Share};
use crate::base::SteadyClock;
use crate::budget::ChunkPool;
use crate::cache::BlockCache;
use crate::commit::{LogConfig, Pipeline};
use crate::compaction::calm::Calm;
use crate::compaction::queue::WorkQueue;
use crate::db::core::Core;
use crate::directory::files::Files;
use crate::directory::look::{Found, is_locked, look, sync_name, take_lock};
use crate::directory::{DATA_DIRECTORY, LOG_DIRECTORY};
use crate::error::{Error, IoContext, Result};
use crate::fs::within;
use crate::manifest::{ReachRecord, Wanted};
use crate::monitor::Monitor;
use crate::options::Options;
use crate::options::settings::Settings;
use crate::recovery::create::create;
use crate::recovery::description::{Described, describe};
use crate::recovery::log::{check_described, check_known, replay_log, tell_about_log};
use crate::recovery::manifest::begin;
use crate::state::State;
use crate::state::current::Current;
use crate::sync::Signal;
use crate::trace::Slowest;
use crate::txn::Transactions;
use crate::waits::Waits;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

impl Core {
    /// Opens the database at `path`, makes it if the options allow it, and starts its threads.
    pub fn open(path: &Path, options: &Options) -> Result<Arc<Self>> {
        Self::open_as(path, options, false)
    }

    /// Like [`Self::open`], for a directory that is marked as unfinished and is being filled.
    pub fn open_to_fill(path: &Path, options: &Options) -> Result<Arc<Self>> {
        Self::open_as(path, options, true)
    }

    fn open_as(path: &Path, options: &Options, filling: bool) -> Result<Arc<Self>> {
        let (monitor, since) = (Arc::new(Monitor::new(options, filling)), Instant::now());
        let opened = Self::open_told(path, options, filling, &monitor);
        monitor.opened(options.read_only, since, &opened);
        opened
    }

    fn open_told(
        path: &Path,
        options: &Options,
        filling: bool,
        monitor: &Arc<Monitor>,
    ) -> Result<Arc<Self>> {
        let settings = Settings::new(options)?;
        let fs = &options.fs;
        let found = match look(fs, path, filling) {
            // Another process may be creating a database there just now; it holds the lock then.
            Err(_) if is_locked(fs.as_ref(), path) => {
                return Err(Error::Locked { path: path.to_owned() });
            }
            // If it has finished in the meantime, another look shows the database.
            Err(_) => look(fs, path, filling)?,
            Ok(found) => found,
        };
        match found {
            Found::Database if options.error_if_exists => {
                return Err(Error::exists(path, "a database"));
            }
            Found::Nothing | Found::Empty if !options.create_if_missing || options.read_only => {
                return Err(Error::Missing { path: path.to_owned() });
            }
            _ => {}
        }
        if found == Found::Nothing {
            fs.create_dir(path).context("create", path)?;
        }
        if found != Found::Database {
            sync_name(fs.as_ref(), path, found)?;
        }
        // From here on this directory is used, even if the path changes.
        let fs = within(fs, path).context("open", path)?;
        let options = &Options { fs: fs.clone(), ..options.clone() };
        let lock = take_lock(fs.as_ref(), path, options.read_only)?;
        // Another process may have created or upgraded the database before this one got the lock.
        match look(&fs, path, filling)? {
            Found::Database if options.error_if_exists => {
                return Err(Error::exists(path, "a database"));
            }
            Found::Database => {}
            Found::Nothing | Found::Empty => create(&fs, path, options)?,
        }
        let signal = Arc::new(Signal::new());
        let files =
            Files::new(fs.clone(), path.join(DATA_DIRECTORY), signal, monitor.bus().clone());
        files.punch_for_segments_of(settings.segment_bytes);
        let described = describe(&fs, path, &files, options, monitor.bus())?;
        settings.follow(described.version.base_bytes());
        let core = Self::recover(path, options, settings, described, files, monitor, lock)?;
        if let Err(error) = core.start_threads() {
            // Threads that were started hold references to the database, so it is closed
            // explicitly.
            let _ = core.close();
            return Err(error);
        }
        Ok(core)
    }

    /// Replays the log and makes the database ready for reads and, if asked, for writes.
    fn recover(
        path: &Path,
        options: &Options,
        settings: Settings,
        mut described: Described,
        files: Arc<Files>,
        monitor: &Arc<Monitor>,
        lock: Option<Box<dyn crate::fs::FileLock>>,
    ) -> Result<Arc<Self>> {
        let (bus, pool) = (monitor.bus(), ChunkPool::new(settings.memtable_bytes as usize).into());
        let logs = path.join(LOG_DIRECTORY);
        let waits = Arc::new(Waits::new(bus.clone(), options.slow_operation));
        let (log, sizes) = ((&*logs, described.log_start), (settings.memtable_sizes(), &pool));
        let (recovered, sets) = replay_log(log, options, sizes, &mut described.catalog, bus)?;
        let known = check_known(path, &described, &recovered, options.recovery, bus)?;
        check_described(&logs, &mut described, recovered.end, options.recovery)?;
        let (reserve, store) = begin(path, options, &mut described, &files, known, bus)?;
        let (latch, counters, end) = (Arc::new(monitor.latch()), Arc::default(), recovered.end);
        let (log_signal, sync_signal) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
        let wanted = Wanted::new(sync_signal.clone());
        let resume = || {
            let mut config = LogConfig::of(logs, options, &settings, store.manifest.number());
            tell_about_log(&mut config, (&counters, &waits, bus), &wanted, &log_signal, &reserve);
            Pipeline::resume(config, recovered, latch.clone())
        };
        let pipeline = (!options.read_only).then(resume).transpose()?;
        let core = Arc::new(Self {
            path: path.to_owned(),
            fs: options.fs.clone(),
            state: Current::new(State::shared(sets, described.version)),
            placing: parking_lot::Mutex::default(),
            pipeline,
            read_only_end: end,
            latch,
            catalog: parking_lot::Mutex::new(described.catalog),
            totals: parking_lot::Mutex::new(store.totals()),
            store: parking_lot::Mutex::new(store),
            record: ReachRecord::new(described.superblocks, wanted),
            snapshots: Default::default(),
            transactions: Transactions::new(settings.history_bytes, waits.clone()),
            clock: SteadyClock::new(options.clock.clone()),
            cache: Arc::new(BlockCache::with_pool(settings.cache_bytes, &pool).at(&options.gates)),
            counters,
            pacer: Pacer::new(bus.clone(), Share::new(settings.processors)),
            monitor: monitor.clone(),
            slowest: Slowest::new(bus.clone(), options.slow_operation),
            waits,
            reserve,
            relief: Default::default(),
            room: Signal::new(),
            work: WorkQueue::new(files.work().clone()),
            calm: parking_lot::Mutex::new(Calm::new(end, Instant::now())),
            space: parking_lot::Mutex::default(),
            log_signal,
            sync_signal,
            buffered_end: Default::default(),
            ingested_end: Default::default(),
            gates: options.gates.clone(),
            closing: Default::default(),
            closed: Default::default(),
            close_result: parking_lot::Mutex::default(),
            threads: parking_lot::Mutex::default(),
            pool,
            fork: crate::fs::ForkGuard::new(),
            lock: parking_lot::Mutex::new(lock),
            settings,
            files,
        });
        core.after_recovery().map(|()| core)
    }

    /// Makes the replayed writes durable before the first new write (R7), and scores the
    /// compactions of the trees.
    fn after_recovery(&self) -> Result<()> {
        if self.pipeline.is_some() {
            while self.state_now().oldest_sealed().is_some() {
                match self.flush_oldest(true) {
                    Err(Error::DiskFull { .. }) => {
                        self.keep_replayed_log()?;
                        break;
                    }
                    flushed => flushed?,
                };
            }
            let state = self.state_now();
            let longest = state.version.segments().map(|segment| segment.meta().len).max();
            self.reserve.begin(self.store.lock().manifest.bytes(), longest.unwrap_or(0));
            self.update_pace();
        }
        self.keep_snapshots_still();
        let state = self.state_now();
        for (id, tree) in state.version.trees() {
            self.rescore(*id, Some(tree));
        }
        Ok(())
    }
}
