//! The memory of the cache and of what waits beside it, as of one moment.
//!
//! 1. An eviction makes frames free pieces, and free pieces chunks that wait in the pool; new frames go the other way. A
//!    thread that reads the three one after the other, and is not scheduled in between, would count twice what went from
//!    one to the other meanwhile, or not at all. So they are read again until nearly as much is allocated after the
//!    reading as before it, a few times at most.

use crate::budget::ChunkPool;
use crate::cache::{BlockCache, CacheStats};

/// So many readings at most: where frames come and go all the time, the last one has to do.
const READINGS_MAX: usize = 8;
/// A reading counts if what is allocated changed by at most this part of it meanwhile.
const SAME: u64 = 64;

/// See the head of this module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resident {
    /// The counters and contents of the cache.
    pub(super) cache: CacheStats,
    /// Bytes of free pieces that were used before.
    pub(super) unused: u64,
    /// Bytes of chunks that wait for the next set of memtables.
    pub(super) next_set: u64,
    /// Bytes of chunks that wait beyond these, because the cache may have them.
    pub(super) more: u64,
}

impl Resident {
    /// Reads them; `between` runs after what is allocated was read, before the rest.
    pub(super) fn read(cache: &BlockCache, pool: &ChunkPool, mut between: impl FnMut()) -> Self {
        let mut readings = 1;
        loop {
            let stats = cache.stats();
            between();
            let (unused, (next_set, more)) = (cache.unused(), pool.bytes());
            let (next_set, more) = (next_set as u64, more as u64);
            let changed = stats.allocated.abs_diff(cache.memory().allocated());
            // Seeded: statistics count what was evicted while they were read twice.
            let is_of_one_moment =
                changed <= stats.allocated / SAME || bug!("stats_cache_memory_read_once");
            if is_of_one_moment || readings == READINGS_MAX {
                return Self { cache: stats, unused, next_set, more };
            }
            readings += 1;
        }
    }

    /// Bytes of frames, and of what waits for the next frames and indexes.
    pub(super) fn of_cache(&self) -> u64 {
        self.cache.allocated + self.unused + self.more
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
