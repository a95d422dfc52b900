//! The governor: what nobody else takes of the memory budget is the block cache's.
//!
//! The split of the budget (`options/settings.rs`) gives each part what it takes at most. Most parts take less most
//! of the time: no transaction keeps flushed memtables, nobody writes, the tree is small. And one has no bound of its
//! own: what describes the tree grows with the data. So the capacity of the cache is what the others leave.
//!
//! 1. Memory is taken from the cache before another part uses it: two sets of memtables are always left out, so the
//!    next set has its memory when it begins, and from the first one that waits for its flush on the cache has no more
//!    than its share. Flushes and compactions always have their buffers.
//! 2. The cache gets memory back only while nobody writes. Otherwise each flush would evict blocks that are read again
//!    after it. So what the log took once stays taken until a pause.
//! 3. The cache keeps its share of the split whatever others take, but for what has no share of its own and lasts:
//!    descriptions, log files that are mapped, what transactions wrote and read, lists of range tombstones, iterators,
//!    and what the program was handed. Together they have a sixteenth. Everything else that takes more than its share
//!    ends soon.
//! 4. Small changes are not made: each costs a walk over the shards.

use crate::cache::BlockCache;
use crate::manifest::Totals;
use crate::options::settings::Settings;
use crate::state::State;

/// The part of the budget that one set of memtables takes, as a divisor.
const SET: u64 = 32;
/// The buffers of all flushes and compactions: what compactions read ahead, and as much again for the rest.
const BUFFERS: u64 = 8;
/// But no more than this for each thread that flushes or compacts. What a compaction reads ahead is a quarter of it at
/// most, whatever the budget, unless it has hundreds of runs.
const THREAD_BUFFERS: u64 = 32 << 20;
/// What always is for descriptions, and for what is counted nowhere.
const DESCRIBED: u64 = 32;
/// But no more than this: data that have more to describe count as what they have.
const DESCRIBED_MAX: u64 = 64 << 20;
/// What all that lasts has in the split, without what has a share of its own.
const LASTING_SHARE: u64 = 16;
/// Log files take this part from the cache at most: they have a least size, which is much for a small budget.
const LOG_MOST: u64 = 8;
/// The least for the cache: without indexes and blocks every read is several.
const CACHE_LEAST: u64 = 16;
/// Changes of less than this part of the budget are not made.
const STEP: u64 = 128;
/// About what a keyspace takes beside its tree: its state, its names, and its places in maps.
const KEYSPACE_BYTES: u64 = 640;

/// What other parts than the cache take of the budget, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Whether memtables wait for their flush.
    pub sealed: bool,
    /// Flushed memtables that transactions or readers keep.
    pub kept: u64,
    /// Log files that are mapped.
    pub log: u64,
    /// Buffers of flushes, compactions and ingestions.
    pub buffers: u64,
    /// What describes keyspaces and trees.
    pub described: u64,
    /// What else has no share in the split: what transactions wrote and read, lists of range tombstones from run
    /// files, iterators, and what the program was handed.
    pub unshared: u64,
}

impl Taken {
    /// What is taken now: `kept` bytes of flushed memtables, a log of which so much is mapped, what describes the
    /// trees, and what else than iterators has no share.
    pub fn of(
        state: &State,
        cache: &BlockCache,
        (kept, log, described, unshared): (u64, u64, u64, u64),
    ) -> Self {
        let (sealed, buffers) = (state.memtable_sets.len() > 1, cache.buffers().used());
        let unshared = unshared + cache.pins().iterator_bytes();
        Self { sealed, kept, log, buffers, described, unshared }
    }
}

/// About how many bytes describe so many keyspaces and their trees.
pub fn described(totals: &Totals, keyspaces: u64) -> u64 {
    totals.described_bytes + keyspaces * KEYSPACE_BYTES
}

/// What always is for flushes and compactions.
fn buffers_left_out(settings: &Settings) -> u64 {
    (settings.memory / BUFFERS).min((settings.workers as u64 + 1) * THREAD_BUFFERS)
}

/// What is left for the cache of the budget.
pub fn left_for_cache(settings: &Settings, taken: Taken) -> u64 {
    let (memory, share) = (settings.memory, settings.cache_bytes);
    // Seeded: what describes the tree is in nobody's account.
    let described = if bug!("admission_descriptions_not_counted") { 0 } else { taken.described };
    // Seeded: the cache does not give way to what transactions, iterators and programs have.
    let unshared = if bug!("admission_unshared_not_counted") { 0 } else { taken.unshared };
    let described = described + unshared;
    let others = memory / SET * 2
        + taken.kept
        + taken.log
        + taken.buffers.max(buffers_left_out(settings))
        + described.max((memory / DESCRIBED).min(DESCRIBED_MAX));
    // Seeded: the cache keeps its share while the log has as much as a set of memtables again and again.
    let log = if bug!("admission_log_not_counted") { 0 } else { taken.log.min(memory / LOG_MOST) };
    let share = share.saturating_sub((described + log).saturating_sub(memory / LASTING_SHARE));
    let left = if taken.sealed { 0 } else { memory.saturating_sub(others) };
    left.max(share).max(memory / CACHE_LEAST)
}

/// Gives the cache what is left for it; `calm`: whether nobody writes. It calls `pause` between decision and change.
pub fn govern(
    (settings, cache): (&Settings, &BlockCache),
    taken: Taken,
    calm: bool,
    pause: impl FnOnce(),
) {
    if let Some(bytes) = decide(settings, taken, calm) {
        pause();
        give(bytes, settings, cache);
    }
}

/// The new capacity of the cache, if it changes; `calm`: whether nobody writes. The settings keep it.
fn decide(settings: &Settings, taken: Taken, calm: bool) -> Option<u64> {
    let memory = settings.memory;
    let (wanted, now) = (left_for_cache(settings, taken), settings.cache_capacity());
    // Seeded: the cache keeps what others need.
    let shrinks = wanted < now && !bug!("admission_cache_never_shrinks");
    // Seeded: the cache grows while memtables are filled.
    let grows = wanted > now && (calm || bug!("admission_cache_grows_under_writes"));
    if settings.small_cache || wanted.abs_diff(now) < memory / STEP || !(shrinks || grows) {
        return None;
    }
    settings.set_cache_capacity(wanted);
    Some(wanted)
}

/// Gives the cache the capacity on which the caller has decided. Several threads may decide one after the other and
/// come here in another order: each goes on until the cache has what was decided last.
fn give(bytes: u64, settings: &Settings, cache: &BlockCache) {
    let mut given = bytes;
    loop {
        cache.set_capacity(given);
        // Seeded: the cache keeps the limit of an earlier decision.
        bug!("admission_earlier_limit_given_last", return);
        let decided = settings.cache_capacity();
        if decided == given {
            return;
        }
        given = decided;
    }
}

#[cfg(test)]
mod tests;
