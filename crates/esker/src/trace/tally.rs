//! What the calling thread read from files and found in the cache, as far as it counts it.
//!
//! A read of a file takes microseconds, so each is timed and added to the tally of its thread. A
//! recorder reads the tally before and after a step, and so learns what the step read without any
//! parameter on the way down to the file. The tally only grows, and only its own thread reads it.

use super::explanation::BlockCounts;
use crate::sync::nanos_of;
use std::cell::Cell;
use std::time::Duration;

/// A read is counted as one of the page cache if it took at most this long, and
/// [`NANOS_PER_KIB`] more for each KiB. `docs/operations.md` has the measurements.
const PAGE_CACHE_NANOS_MAX: u64 = 15_000;
/// A copy from the page cache moves at least 4 bytes in a nanosecond.
const NANOS_PER_KIB: u64 = 256;

/// What a read of a file was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A point read.
    Get,
    /// An iterator.
    Scan,
    /// A flush or a compaction.
    Compaction,
    /// Everything else: checks, sizes, range tombstones.
    Other,
}

/// How many purposes there are.
pub const PURPOSES: usize = Purpose::Other as usize + 1;

/// Sums over the life of the calling thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Where blocks came from.
    pub blocks: BlockCounts,
    /// Bytes read from files.
    pub bytes: u64,
    /// How long these reads took, in nanoseconds.
    pub nanos: u64,
}

thread_local! {
    static TALLY: Cell<Tally> = const {
        let blocks = BlockCounts { cached: 0, page_cache: 0, device: 0 };
        Cell::new(Tally { blocks, bytes: 0, nanos: 0 })
    };
    /// A bit for each of the last reads of the thread, the newest lowest: whether it came from the device. At first all
    /// are taken to have.
    static FROM_DEVICE: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Whether a read that took this long was served by the system's page cache.
pub fn is_from_page_cache(bytes: u64, took: Duration) -> bool {
    let allowed = PAGE_CACHE_NANOS_MAX + (bytes >> 10) * NANOS_PER_KIB;
    took <= Duration::from_nanos(allowed)
}

/// Adds a read of a file.
pub fn add_read(bytes: u64, took: Duration) {
    let device = !is_from_page_cache(bytes, took);
    FROM_DEVICE.with(|last| last.set(last.get() << 1 | u32::from(device)));
    TALLY.with(|cell| {
        let mut tally = cell.get();
        if device {
            tally.blocks.device += 1;
        } else {
            tally.blocks.page_cache += 1;
        }
        tally.bytes += bytes;
        tally.nanos += nanos_of(took);
        cell.set(tally);
    });
}

/// Adds a block that an iterator found in the cache. Point reads that hold an epoch do not come
/// here: their recorder counts.
#[inline]
pub fn add_cached() {
    TALLY.with(|cell| {
        let mut tally = cell.get();
        tally.blocks.cached += 1;
        cell.set(tally);
    });
}

/// Bytes that the calling thread has read from files.
pub fn bytes_read() -> u64 {
    TALLY.with(|tally| tally.get().bytes)
}

/// Whether some of the last 32 reads of the calling thread waited for the device. If not, those that come next will
/// hardly do, either. Fewer than four may have waited for something else, such as a processor.
pub fn waits_for_device() -> bool {
    FROM_DEVICE.with(Cell::get).count_ones() >= 4
}

impl Tally {
    /// The tally of the calling thread.
    pub fn now() -> Self {
        TALLY.with(Cell::get)
    }

    /// What was added since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let (now, then) = (self.blocks, earlier.blocks);
        Self {
            blocks: BlockCounts {
                cached: now.cached - then.cached,
                page_cache: now.page_cache - then.page_cache,
                device: now.device - then.device,
            },
            bytes: self.bytes - earlier.bytes,
            nanos: self.nanos - earlier.nanos,
        }
    }
}

#[cfg(test)]
mod tests;
