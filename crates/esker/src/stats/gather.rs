//! From the parts of an open database to its statistics.
//!
//! Each part is asked for its own numbers, one after the other, while calls continue. So sums of
//! numbers of different parts may be slightly off. Nothing here reads a file; the directory of run
//! files is asked for their sizes.

use super::clients;
use super::counters::{Counter, Counters, Timed};
use super::held::{BranchUse, HeldUse, SnapshotUse};
use super::measured::Measured;
use super::report::{
    BytesWritten, LogHolder, LogUse, MemoryUse, Pace, Stalls, Stats, TreeShape, WaitTimes,
};
use super::resident::Resident;
use super::shapes::tree_shapes;
use crate::admission::Pacer;
use crate::base::{KeyspaceId, Millis};
use crate::budget::ChunkPool;
use crate::cache::BlockCache;
use crate::catalog::Catalog;
use crate::commit::Pipeline;
use crate::compaction::policy::reclaimable_max;
use crate::compaction::queue::WorkQueue;
use crate::compaction::space::SpaceUse;
use crate::directory::files::Files;
use crate::options::settings::Settings;
use crate::state::State;
use crate::state::retired::Retired;
use crate::state::snapshots::Snapshots;
use crate::trace::{Purpose, Slowest};
use crate::txn::Transactions;
use crate::waits::{Cause, Waits};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most snapshots, and the most branches, that are listed.
const LISTED_MAX: usize = 64;

/// The parts of a database that know numbers.
#[allow(missing_docs)] // Each is named like its part.
pub struct Sources<'a> {
    pub counters: &'a Counters,
    pub waits: &'a Waits,
    pub slowest: &'a Slowest,
    pub pacer: &'a Pacer,
    pub pipeline: Option<&'a Pipeline>,
    pub state: &'a State,
    pub retired: &'a Retired,
    pub snapshots: &'a Snapshots,
    pub transactions: &'a Transactions,
    pub catalog: &'a Mutex<Catalog>,
    pub cache: &'a BlockCache,
    pub files: &'a Files,
    pub pool: &'a ChunkPool,
    pub work: &'a WorkQueue,
    /// What was last found about dead space.
    pub space: SpaceUse,
    pub settings: &'a Settings,
    /// Bytes of memory that describe the trees.
    pub described: u64,
    /// The time by which entries expire.
    pub now: Millis,
}

/// Bytes that have no share in the split of the budget, in the account of no cache: what transactions wrote and
/// read, lists of range tombstones from run files, and its part of what the program was handed.
pub fn unshared(transactions: &Transactions, files: &Files, settings: &Settings) -> u64 {
    let handed = settings.member.part_of(clients::bytes());
    transactions.own_bytes() + files.tombstone_bytes() + handed
}

fn load(value: &AtomicU64) -> u64 {
    value.load(Ordering::Relaxed)
}

impl Sources<'_> {
    /// Measures what takes work in proportion to the size of the database.
    /// `trees`: the shapes of at most so many trees of one branch.
    pub fn measure(&self, branch: KeyspaceId, trees: usize) -> Measured {
        let measured = Measured::now(self.files, self.state, self.catalog);
        let (trees, steps) = self.trees(branch, trees);
        Measured { trees, steps: measured.steps + steps, ..measured }
    }

    /// The statistics; `measured`: what [`Self::measure`] returned now or earlier.
    pub fn gather(&self, measured: Measured) -> Stats {
        let total = |counter| self.counters.total(counter);
        let log = self.pipeline.map(Pipeline::counters).unwrap_or_default();
        let log_bytes = self.pipeline.map(Pipeline::bytes).unwrap_or_default();
        let reserved = self.pipeline.map_or(0, Pipeline::reserved);
        let resident = Resident::read(self.cache, self.pool, || ());
        let cache = resident.cache;
        let gets_cached = total(Counter::GetsCached);
        let (files_open, files_open_max) = self.files.open_run_files();
        let Measured { data_file_bytes, branches, trees, .. } = measured;
        let branches = branches.into_iter().take(LISTED_MAX);
        let (held, held_memory) = self.held();
        let waits = self.wait_times();
        let mut stats = Stats {
            gets_found: gets_cached + total(Counter::GetsElsewhere),
            syncs: log.syncs,
            bytes_read: cache.bytes_read,
            pins_let_go: self.cache.pins().let_go(),
            cache_hits: cache.hits + gets_cached,
            cache_misses: cache.misses,
            page_cache_reads: cache.reads.page_cache,
            device_reads: cache.reads.device,
            get_bytes_read: cache.reads.bytes_for(Purpose::Get),
            scan_bytes_read: cache.reads.bytes_for(Purpose::Scan),
            compaction_bytes_read: cache.reads.bytes_for(Purpose::Compaction),
            page_cache_latency: cache.reads.page_cache_latency,
            device_latency: cache.reads.device_latency,
            slowest: self.slowest.list(),
            compaction_debt: self.work.debts().values().sum(),
            data_file_bytes,
            log_file_bytes: log_bytes.files,
            log_needed_bytes: reserved.saturating_sub(self.state.log_start()),
            log_spare_bytes: log_bytes.spare,
            log_files_prepared: log.files_prepared,
            log_files_recycled: log.files_recycled,
            run_files_open: files_open as u64,
            run_files_open_max: files_open_max as u64,
            put_latency: self.counters.latency(Timed::Put),
            get_latency: self.counters.latency(Timed::Get),
            scan_latency: self.counters.latency(Timed::Scan),
            sync_latency: self.counters.latency(Timed::Sync),
            written: self.written(log.bytes),
            stalls: Stalls::of(&waits),
            waits,
            pace: self.pace(),
            log: self.log(),
            uptime: self.pacer.uptime(),
            memory: self.memory(&resident, log_bytes.mapped, held_memory),
            held: HeldUse { evicted: cache.allocated.saturating_sub(cache.bytes), ..held },
            snapshots: self.listed_snapshots(),
            branches: branches.map(|(name, data)| BranchUse { name, data }).collect(),
            trees,
            ..Stats::default()
        };
        self.counters.read_into(&mut stats);
        self.count_dead_space(&mut stats);
        stats
    }

    fn memory(&self, resident: &Resident, log: u64, held: u64) -> MemoryUse {
        let cache = &resident.cache;
        let sets = self.state.memtable_sets.iter().map(|set| set.bytes()).sum::<u64>();
        let lists = self.state.memtable_sets.iter().map(|set| set.tombstone_bytes()).sum::<u64>();
        MemoryUse {
            limit: self.settings.memory,
            memtables: sets.saturating_sub(lists)
                + self.transactions.kept_bytes()
                + resident.next_set,
            cache: resident.of_cache(),
            indexes: cache.index_bytes.saturating_sub(cache.filter_bytes),
            filters: cache.filter_bytes,
            buffers: self.cache.buffers().used(),
            buffers_max: self.cache.buffers().most(),
            log,
            held,
            description: self.described,
            transactions: self.transactions.own_bytes(),
            tombstones: lists + self.files.tombstone_bytes(),
            iterators: self.cache.pins().iterator_bytes(),
            clients: clients::bytes(),
            cache_limit: self.settings.cache_capacity(),
        }
    }

    fn count_dead_space(&self, stats: &mut Stats) {
        let (space, bound) = (self.space, self.settings.space);
        stats.reclaimable_bytes = space.reclaimable;
        stats.reclaimable_bytes_max = reclaimable_max(space.live, bound, false);
        stats.unreclaimable_bytes = space.held;
    }

    fn written(&self, log: u64) -> BytesWritten {
        let background = &self.counters.background;
        BytesWritten {
            user: self.counters.total(Counter::UserBytes) + load(&background.bytes_ingested),
            log,
            flush: load(&background.flush_bytes),
            compaction: load(&background.compaction_bytes),
            ingestion: load(&background.ingestion_bytes),
            manifest: load(&background.manifest_bytes),
        }
    }

    fn wait_times(&self) -> WaitTimes {
        WaitTimes {
            flush_debt: self.waits.of(Cause::FlushDebt),
            compaction_debt: self.waits.of(Cause::CompactionDebt),
            memory: self.waits.of(Cause::Memory),
            log_space: self.waits.of(Cause::LogSpace),
            sync: self.waits.of(Cause::Sync),
            disk_full: self.waits.of(Cause::DiskFull),
            lock: self.waits.of(Cause::Lock),
        }
    }

    fn pace(&self) -> Pace {
        let (mode, limit) = self.pacer.pace();
        Pace { mode, limit }
    }

    /// The positions of the log, and what keeps it.
    fn log(&self) -> LogUse {
        let Some(pipeline) = self.pipeline else { return LogUse::default() };
        let start = self.state.log_start();
        let holder = match self.state.oldest_sealed() {
            Some(_) if self.work.flush_error().is_some() => LogHolder::FailedFlush,
            Some(_) => LogHolder::PendingFlush,
            None if self.state.active().is_empty() => LogHolder::Nothing,
            None => LogHolder::Memtable,
        };
        let (visible, reserved) = (pipeline.visible(), pipeline.reserved());
        LogUse { start, synced: pipeline.synced(), visible, reserved, holder }
    }

    /// What readers hold in addition to the present state, and how many bytes of memory are part of
    /// that.
    fn held(&self) -> (HeldUse, u64) {
        let held = self.retired.held(self.state);
        let (snapshots, oldest) = self.snapshots.oldest();
        let (transactions, oldest_transaction) = self.transactions.open();
        let reported = HeldUse {
            snapshots: snapshots as u64,
            oldest_snapshot: oldest.map_or(Duration::ZERO, |oldest| self.age(oldest)),
            states: held.states as u64,
            oldest_state: held.oldest,
            data: held.data,
            iterators: held.iterators + u64::from(self.state.iterators()),
            evicted: 0,
            pinned: self.cache.pins().bytes(),
            transactions,
            oldest_transaction,
            transactions_memory: self.transactions.kept_bytes(),
        };
        (reported, held.memory)
    }

    fn age(&self, time: Millis) -> Duration {
        Duration::from_millis(self.now.saturating_sub(time))
    }

    fn listed_snapshots(&self) -> Vec<SnapshotUse> {
        let listed = self.snapshots.oldest_of(LISTED_MAX).into_iter();
        let snapshot = |registered: crate::state::snapshots::Registered| SnapshotUse {
            position: registered.seq,
            age: self.age(registered.time),
            count: registered.count as u64,
            label: registered.label,
        };
        listed.map(snapshot).collect()
    }

    /// The shapes of the trees of a branch, and how many steps of work they took.
    fn trees(&self, branch: KeyspaceId, most: usize) -> (Vec<TreeShape>, u64) {
        let debts = self.work.debts();
        let catalog = self.catalog.lock();
        tree_shapes(catalog.live(branch).take(most).map(|keyspace| {
            let tree = self.state.version.tree(keyspace.id).map(AsRef::as_ref);
            (&*keyspace.name, tree, debts.get(&keyspace.id).copied().unwrap_or(0))
        }))
    }
}
