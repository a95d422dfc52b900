//! Open: find out what a path holds, make a database or recover one.
//!
//! 1. Open looks at the path before it makes anything: a file, a foreign directory or a database of
//!    an unknown version stays exactly as it is (C9).
//! 2. Open takes the lock before it reads anything that it relies on, so two opens never overlap
//!    (C6).
//! 3. A new database gets its superblocks last. In a directory without them, and without data, a
//!    creation was cut off; the database is made anew.
//! 4. Recovery reads the manifest, then the log from where the manifest says (R11), and holds both
//!    against what is known of them (`judge`). Only when both are whole, it removes orphans, begins
//!    a new manifest, and flushes what was replayed before the first write (R7).

use crate::base::{Bytewise, Seq, SteadyClock};
use crate::commit::{LogConfig, Pipeline};
use crate::db::begin::begin;
use crate::db::catalog::{Catalog, Order};
use crate::db::counters::{Counters, Timed};
use crate::db::current::Current;
use crate::db::files::{Files, set_aside_for};
use crate::db::foreign::{self, Foreign};
use crate::db::headroom::Headroom;
use crate::db::judge;
use crate::db::memset::MemSet;
use crate::db::options::{Options, Recovery};
use crate::db::record::{Record, Wanted};
use crate::db::settings::Settings;
use crate::db::state::State;
use crate::db::store::missing_order;
use crate::db::txn::Transactions;
use crate::db::unfinished::{self, MARK_NAME};
use crate::db::work::Work;
use crate::db::{Core, replay};
use crate::error::{Error, IoContext, Result};
use crate::fs::{DirEntry, Fs, PathKind, expect_kind, within};
use crate::manifest::{
    Edit, Known, Manifest, SUPERBLOCK_NAMES, Superblock, Superblocks, Trees, Version, check_tree,
    misfit, parse_manifest_name,
};
use crate::memtable::ChunkPool;
use crate::run::{RunFile, Segment, SegmentMeta};
use crate::sync::{Latch, Signal};
use crate::{base::FileId, cache::BlockCache, manifest};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the lock file.
pub const LOCK_NAME: &str = "LOCK";
/// The directory of the log.
pub const LOG_DIRECTORY: &str = "wal";
/// The directory of the runs.
pub const DATA_DIRECTORY: &str = "data";
/// The position of the first record of a new database. It is not 0, because sequence number 0
/// means "older than everything".
pub const FIRST_POSITION: Seq = 64;

/// What a path holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// An empty directory, or one in which making a database was cut off.
    Empty,
    Database,
}

/// What the manifest of a database says.
pub(super) struct Described {
    pub superblocks: Superblocks,
    pub manifest: manifest::Recovered,
    pub version: Version,
    pub catalog: Catalog,
    pub log_start: Seq,
    pub next_file: FileId,
}

impl Core {
    /// Opens the database at `path`, makes it if the options allow it, and starts its threads.
    pub fn open(path: &Path, options: &Options) -> Result<Arc<Self>> {
        Self::open_as(path, options, false)
    }

    /// Like [`Self::open`], for a directory that was marked as unfinished and is filled now.
    pub fn open_to_fill(path: &Path, options: &Options) -> Result<Arc<Self>> {
        Self::open_as(path, options, true)
    }

    fn open_as(path: &Path, options: &Options, filling: bool) -> Result<Arc<Self>> {
        let settings = Settings::new(options)?;
        let fs = &options.fs;
        let found = match look(fs, path, filling) {
            // Someone may be making a database there just now; under the lock we know.
            Err(_) if is_locked(fs.as_ref(), path) => {
                return Err(Error::Locked { path: path.to_owned() });
            }
            // And if they were done in the meantime, another look says so.
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
        // From here on, whatever becomes of the path, this is the directory.
        let fs = within(fs, path).context("open", path)?;
        let options = &Options { fs: fs.clone(), ..options.clone() };
        let lock = take_lock(fs.as_ref(), path, options.read_only)?;
        // Another process may have made or upgraded the database before the lock was ours.
        match look(&fs, path, filling)? {
            Found::Database if options.error_if_exists => {
                return Err(Error::exists(path, "a database"));
            }
            Found::Database => {}
            Found::Nothing | Found::Empty => create(&fs, path, options)?,
        }
        let signal = Arc::new(Signal::new());
        let files = Files::new(fs.clone(), path.join(DATA_DIRECTORY), signal.clone());
        files.punch_for_segments_of(settings.segment_bytes);
        let described = describe(&fs, path, &files, options)?;
        let core = Self::recover(path, options, settings, described, files, signal, lock)?;
        if let Err(error) = core.start_threads() {
            // Threads that were started hold the database open.
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
        signal: Arc<Signal>,
        lock: Option<Box<dyn crate::fs::FileLock>>,
    ) -> Result<Arc<Self>> {
        let (fs, log_start) = (options.fs.clone(), described.log_start);
        // One memtable's worth of memory is kept for the next one.
        let pool = Arc::new(ChunkPool::new(settings.memtable_bytes as usize));
        let log_directory = path.join(LOG_DIRECTORY);
        let replay = replay::Replay::new(log_start, &settings, &pool, &mut described.catalog);
        let (recovered, memsets) = replay_log(&log_directory, log_start, options, replay)?;
        let known = check_known(path, &described, &recovered, options.recovery)?;
        check_points(&log_directory, &mut described.catalog, recovered.end, options.recovery)?;
        let latch = Arc::new(Latch::new());
        let (headroom, store) = begin(path, options, &mut described, &files, known)?;
        let (counters, end) = (Arc::new(Counters::default()), recovered.end);
        let (log_signal, sync_signal) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
        let wanted = Wanted::new(sync_signal.clone());
        let pipeline = if options.read_only {
            None
        } else {
            let life = store.manifest_number();
            let mut config = log_config(&fs, log_directory, options, &settings, life);
            tell_about_log(&mut config, &counters, &wanted, &log_signal, &headroom);
            Some(Pipeline::resume(config, recovered, latch.clone())?)
        };
        let core = Arc::new(Self {
            path: path.to_owned(),
            fs,
            files,
            state: Current::new(State::shared(memsets, described.version)),
            placing: parking_lot::Mutex::default(),
            pipeline,
            read_only_end: end,
            latch,
            catalog: parking_lot::Mutex::new(described.catalog),
            totals: parking_lot::Mutex::new(store.totals()),
            store: parking_lot::Mutex::new(store),
            record: Record::new(described.superblocks, wanted),
            snapshots: Default::default(),
            transactions: Transactions::new(settings.history_bytes),
            clock: SteadyClock::new(options.clock.clone()),
            cache: Arc::new(BlockCache::new(settings.cache_bytes)),
            counters,
            pacer: Default::default(),
            headroom,
            relief: Default::default(),
            room: Signal::new(),
            work: Work::new(signal),
            log_signal,
            sync_signal,
            buffered_end: Default::default(),
            gates: options.gates.clone(),
            closing: Default::default(),
            closed: Default::default(),
            close_result: parking_lot::Mutex::default(),
            threads: parking_lot::Mutex::default(),
            pool,
            fork: crate::fs::ForkGuard::new(),
            lock: parking_lot::Mutex::new(lock),
            settings,
        });
        core.after_recovery()?;
        Ok(core)
    }

    /// Makes what was replayed durable before the first write (R7), and judges the tree.
    fn after_recovery(&self) -> Result<()> {
        if self.pipeline.is_some() {
            while self.state_now().oldest_sealed().is_some() {
                match self.flush_oldest() {
                    Err(Error::DiskFull { .. }) => {
                        self.keep_replayed_log()?;
                        break;
                    }
                    flushed => flushed?,
                };
            }
            let state = self.state_now();
            let longest = state.version.segments().map(|segment| segment.meta().len).max();
            self.headroom.begin(self.store.lock().manifest_bytes(), longest.unwrap_or(0));
            self.update_pace();
        }
        self.keep_snapshots_still();
        let state = self.state_now();
        for (id, tree) in state.version.trees() {
            self.judge(*id, Some(tree));
        }
        Ok(())
    }
}

/// Reads the log back into memtables, newest first.
fn replay_log(
    directory: &Path,
    start: Seq,
    options: &Options,
    mut replay: replay::Replay<'_>,
) -> Result<(crate::wal::Recovered, Vec<Arc<MemSet>>)> {
    let policy = match options.recovery {
        Recovery::Refuse => crate::wal::Policy::Refuse,
        Recovery::KeepPrefix => crate::wal::Policy::KeepPrefix,
    };
    let batch = |position, operations, payload: &[u8]| {
        replay.batch(directory, position, operations, payload)
    };
    let recovered = crate::wal::recover(options.fs.as_ref(), directory, start, policy, batch)?;
    if let Some(damage) = &recovered.damage {
        log::warn!("the log was kept only up to position {}: {damage}", recovered.end);
    }
    let memsets = replay.finish(recovered.end);
    Ok((recovered, memsets))
}

/// Checks the log against what is known of it, and returns what is known from now on.
fn check_known(
    path: &Path,
    described: &Described,
    recovered: &crate::wal::Recovered,
    recovery: Recovery,
) -> Result<Known> {
    judge::check_age(path, &described.manifest, recovered)?;
    let superblock = described.superblocks.current();
    let known = superblock.known.unwrap_or_default();
    match judge::check_reach(path, superblock, described.log_start, recovered) {
        Ok(()) => Ok(Known { closed: false, ..known }),
        Err(damage) if recovery == Recovery::KeepPrefix => {
            log::warn!("the log is kept only up to position {}: {damage}", recovered.end);
            Ok(Known::default())
        }
        Err(damage) => Err(damage),
    }
}

/// The log was durable up to the point of every branch before the manifest told of it (R24). If
/// it ends before one, something is lost, and what is written there next must not turn up in the
/// branch.
fn check_points(
    directory: &Path,
    catalog: &mut Catalog,
    end: Seq,
    recovery: Recovery,
) -> Result<()> {
    // Seeded: a log that ends before the point of a branch is accepted, and later writes turn up in
    // the branch.
    bug!("db_branch_points_not_checked", return Ok(()));
    let Some(point) = catalog.branch_points().last().copied().filter(|point| *point > end) else {
        return Ok(());
    };
    let detail = format!("the log ends at {end}, before position {point}, where a branch was made");
    let damage = Error::corruption(directory, end, "log", detail);
    if recovery == Recovery::Refuse {
        return Err(damage);
    }
    log::warn!("branches keep what stands before the damage: {damage}");
    catalog.cut_points(end);
    Ok(())
}

fn log_config(
    fs: &Arc<dyn Fs>,
    directory: PathBuf,
    options: &Options,
    settings: &Settings,
    life: u64,
) -> LogConfig {
    let mut config = LogConfig::new(fs.clone(), directory);
    config.life = life;
    config.kind = options.log;
    config.segment_bytes_max = u64::from(options.log_segment_bytes);
    config.payload_bytes_max = settings.batch_bytes_max;
    config
}

fn tell_about_log(
    config: &mut LogConfig,
    counters: &Arc<Counters>,
    wanted: &Arc<Wanted>,
    log_signal: &Arc<Signal>,
    headroom: &Arc<Headroom>,
) {
    config.on_full = Some(headroom.yielding());
    let signal = log_signal.clone();
    config.on_prepare_needed = Some(Box::new(move || signal.notify()));
    let (counters, wanted) = (counters.clone(), wanted.clone());
    config.on_sync = Some(Box::new(move |took| {
        counters.record(Timed::Sync, took);
        wanted.tell();
    }));
}

/// Makes the name of the directory durable. An existing empty directory may come from an open that
/// was cut off before this.
fn sync_name(fs: &dyn Fs, path: &Path, found: Found) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match fs.sync_dir(parent) {
        // We may not be allowed to read the directory above it.
        Err(error)
            if found == Found::Empty && error.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            Ok(())
        }
        other => other.context("sync", parent),
    }
}

/// What stands at a path at which something new is to be made, if anything does.
pub(super) fn occupant(fs: &dyn Fs, path: &Path) -> Result<Option<String>> {
    let Some(kind) = fs.kind(path).context("look at", path)? else { return Ok(None) };
    if kind != PathKind::Directory {
        return Ok(Some(kind.to_string()));
    }
    Ok(Some(what_it_is(&fs.list(path).context("list", path)?)))
}

/// What a directory with these entries is.
pub(super) fn what_it_is(entries: &[DirEntry]) -> String {
    let ours = |entry: &DirEntry| SUPERBLOCK_NAMES.contains(&entry.name.as_str());
    match entries.first() {
        None => "an empty directory".to_owned(),
        Some(_) if entries.iter().any(ours) => "a database".to_owned(),
        Some(first) => format!("a directory that holds {:?}", first.name),
    }
}

/// The error for a path that is not ours.
fn not_a_database(path: &Path, kind: Option<Foreign>, found: impl FnOnce() -> String) -> Error {
    let found = kind.map_or_else(found, |kind| format!("it is a database of {}", kind.name));
    let import = kind.map(|kind| kind.import);
    Error::NotADatabase { path: path.to_owned(), found, import }
}

/// Looks at a path without changing anything. `filling`: a directory that is marked as unfinished
/// is taken for what it holds.
fn look(fs: &Arc<dyn Fs>, path: &Path, filling: bool) -> Result<Found> {
    match fs.kind(path).context("look at", path)? {
        None => return Ok(Found::Nothing),
        Some(PathKind::Directory) => {}
        Some(found) => {
            let file = (found == PathKind::File).then_some(path);
            let kind = file.and_then(|path| foreign::file(fs.as_ref(), path));
            return Err(not_a_database(path, kind, || format!("it is {found}")));
        }
    }
    let fs = within(fs, path).context("open", path)?;
    look_inside(fs.as_ref(), path, filling)
}

/// Looks at what a directory holds.
fn look_inside(fs: &dyn Fs, path: &Path, filling: bool) -> Result<Found> {
    let entries = fs.list(path).context("list", path)?;
    if !filling && unfinished::is_marked(&entries) {
        return Err(Error::Unfinished { path: path.to_owned() });
    }
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    if SUPERBLOCK_NAMES.iter().any(|name| has(name)) {
        check_kinds(path, &entries)?;
        match Superblocks::read(fs, path) {
            Ok(Some(_)) => return Ok(Found::Database),
            Ok(None) => {}
            Err(error) if has_data(fs, path)? => return Err(error),
            Err(error @ Error::UnknownFormat { .. }) => return Err(error),
            // Nothing was ever stored here: making it was cut off.
            Err(_) => {}
        }
    }
    let ours = |name: &str| {
        [LOCK_NAME, MARK_NAME, LOG_DIRECTORY, DATA_DIRECTORY].contains(&name)
            || SUPERBLOCK_NAMES.contains(&name)
            || parse_manifest_name(name).is_some()
            || set_aside_for(name).is_some()
    };
    if let Some(foreign) = entries.iter().find(|entry| !ours(&entry.name)) {
        let kind = foreign::directory(&entries);
        return Err(not_a_database(path, kind, || format!("it holds {:?}", foreign.name)));
    }
    check_kinds(path, &entries)?;
    if has_data(fs, path)? {
        let first = path.join(SUPERBLOCK_NAMES[0]);
        let detail = "both superblocks are missing, but there is data";
        return Err(Error::corruption(&first, 0, "superblock", detail));
    }
    Ok(Found::Empty)
}

/// Refuses links, pipes and the like where our files and directories stand. Whatever else has a
/// name that no file of the database needs is left alone.
fn check_kinds(path: &Path, entries: &[DirEntry]) -> Result<()> {
    for entry in entries {
        let wanted = match entry.name.as_str() {
            LOCK_NAME => PathKind::File,
            LOG_DIRECTORY | DATA_DIRECTORY => PathKind::Directory,
            name if SUPERBLOCK_NAMES.contains(&name) => PathKind::File,
            _ => continue,
        };
        expect_kind(entry.kind, wanted).context("open", &path.join(&entry.name))?;
    }
    Ok(())
}

/// Whether there are runs, or a log that holds records or once held some: then this was a
/// database, whatever became of its superblocks. A creation that was cut off leaves a first log
/// segment without records.
fn has_data(fs: &dyn Fs, path: &Path) -> Result<bool> {
    let data = path.join(DATA_DIRECTORY);
    if fs.kind(&data).context("look at", &data)? == Some(PathKind::Directory) {
        // A link may lead to a run.
        let is_nothing = |entry: &DirEntry| entry.is_dir() || (entry.is_file() && entry.len == 0);
        if !fs.list(&data).context("list", &data)?.iter().all(is_nothing) {
            return Ok(true);
        }
    }
    let log = path.join(LOG_DIRECTORY);
    if fs.kind(&log).context("look at", &log)? != Some(PathKind::Directory) {
        return Ok(false);
    }
    let mut found = false;
    crate::wal::inspect(fs, &log, FIRST_POSITION, |part| {
        found |= match part {
            crate::wal::Inspected::Record(_) | crate::wal::Inspected::BadRecord(_) => true,
            crate::wal::Inspected::Segment { header, .. } => header.start > FIRST_POSITION,
            _ => false,
        };
        Ok(())
    })?;
    Ok(found)
}

/// Whether somebody has the database open; this makes no lock file.
fn is_locked(fs: &dyn Fs, path: &Path) -> bool {
    matches!(fs.kind(&path.join(LOCK_NAME)), Ok(Some(_)))
        && matches!(take_lock(fs, path, false), Err(Error::Locked { .. }))
}

/// Takes the lock of the directory. A copy without a lock file is read without a lock: making the
/// file would change the directory (C9), and every writer makes it before anything else, so none
/// has the copy open.
fn take_lock(
    fs: &dyn Fs,
    path: &Path,
    read_only: bool,
) -> Result<Option<Box<dyn crate::fs::FileLock>>> {
    let lock_path = path.join(LOCK_NAME);
    if read_only && fs.kind(&lock_path).context("look at", &lock_path)?.is_none() {
        return Ok(None);
    }
    fs.lock(&lock_path).map(Some).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: path.to_owned() },
        _ => Error::io("lock", &lock_path, error),
    })
}

/// Makes a new, empty database in a directory that is ours and holds none.
fn create(fs: &Arc<dyn Fs>, path: &Path, options: &Options) -> Result<()> {
    let data = path.join(DATA_DIRECTORY);
    fs.create_dir(&data).context("create", &data)?;
    // The manifest says that the log begins here, so the first segment must be there before the
    // manifest counts (R11).
    let mut config = LogConfig::new(fs.clone(), path.join(LOG_DIRECTORY));
    config.kind = options.log;
    config.segment_bytes_max = u64::from(options.log_segment_bytes);
    drop(Pipeline::create(config, FIRST_POSITION, Arc::new(Latch::new()))?);
    let fs = fs.as_ref();
    let state = Edit { log_start: Some(FIRST_POSITION), next_file: Some(1), ..Edit::default() };
    let manifest = Manifest::create(fs, path, 1, &state)?;
    first_superblocks(fs, path, &manifest)
}

/// Writes the superblocks of a new database, with random bytes that tell it from every other.
pub(super) fn first_superblocks(fs: &dyn Fs, path: &Path, manifest: &Manifest) -> Result<()> {
    let mut database = [0; 16];
    getrandom::fill(&mut database)
        .map_err(|error| Error::io("draw random bytes for", path, std::io::Error::other(error)))?;
    let known = Known { manifest: manifest.reach(), ..Known::default() };
    let (generation, manifest, known) = (0, manifest.number(), Some(known));
    let first = Superblock { generation, manifest, database, known };
    Superblocks::create(fs, path, first).map(drop)
}

/// Reads the content of the manifest, and checks that it makes sense.
pub(super) fn describe(
    fs: &Arc<dyn Fs>,
    path: &Path,
    files: &Arc<Files>,
    options: &Options,
) -> Result<Described> {
    let (superblocks, mut manifest) = judge::read(fs.as_ref(), path)?;
    let manifest_path = path.join(manifest::manifest_name(manifest.number));
    let mut catalog = Catalog::new(options.comparators.clone())
        .with_code(options.merge_operators.clone(), &options.compaction_filters);
    let mut trees = Trees::default();
    let (mut log_start, mut next_file) = (None, 1);
    let mut objects = Objects { files, by_id: HashMap::new(), segments: HashMap::new() };
    // Each edit is freed after it is applied: until then its content is in memory twice.
    for edit in std::mem::take(&mut manifest.edits) {
        log_start = edit.log_start.or(log_start);
        next_file = edit.next_file.unwrap_or(next_file).max(next_file);
        catalog.apply(&edit).map_err(|what| misfit(&manifest_path, what))?;
        trees
            .apply(&edit, &mut |meta| objects.segment(meta))
            .map_err(|what| misfit(&manifest_path, what))?;
    }
    let version = trees.version();
    check_trees(&manifest_path, &version, &catalog)?;
    let log_start =
        log_start.ok_or_else(|| misfit(&manifest_path, "it does not say where the log begins"))?;
    Ok(Described { superblocks, manifest, version, catalog, log_start, next_file })
}

fn check_trees(path: &Path, version: &Version, catalog: &Catalog) -> Result<()> {
    for (id, tree) in version.trees() {
        let keyspace =
            catalog.by_id(*id).ok_or_else(|| misfit(path, "a tree belongs to no keyspace"))?;
        match &keyspace.order {
            Order::Bytewise => check_tree(&Bytewise, tree),
            Order::Custom(order) => check_tree(order, tree),
            // Without the comparator nothing can be said; the keyspace cannot be opened anyway.
            Order::Missing(_) => Ok(()),
        }
        .map_err(|what| misfit(path, what))?;
    }
    Ok(())
}

/// Makes one object per file and segment, however often the manifest names it.
struct Objects<'f> {
    files: &'f Arc<Files>,
    by_id: HashMap<FileId, Arc<RunFile>>,
    segments: HashMap<(FileId, u64), Arc<Segment>>,
}

impl Objects<'_> {
    fn segment(&mut self, meta: &SegmentMeta) -> Arc<Segment> {
        let files = self.files;
        let file = self.by_id.entry(meta.file).or_insert_with(|| files.run_file(meta.file));
        let new = || Segment::new(meta.clone(), file.clone());
        self.segments.entry((meta.file, meta.offset)).or_insert_with(new).clone()
    }
}

/// The error of a log that holds writes of a keyspace whose comparator is missing.
pub(super) fn unknown_order(keyspace: &crate::db::catalog::KeyspaceState) -> Option<Error> {
    match &keyspace.order {
        Order::Missing(name) => Some(missing_order(&keyspace.name, name)),
        _ => None,
    }
}
