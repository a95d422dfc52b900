//! The block cache, without a hash table and without reference counts on the read path.
//!
//! Each loaded index of a run segment has one *slot* per block: an atomic pointer to the block's
//! *frame*, or nothing. The slots are the page table (pointer swizzling, as in LeanStore): a reader
//! that finds a block in the index gets its frame with one more load. Inside an epoch it may use
//! the frame without counting. For a longer use (an iterator, a value handed out) it takes a pin
//! inside the epoch, which is a counted reference to the frame (R25).
//!
//! Admission follows S3-FIFO (Yang et al., SOSP 2023): new frames enter a small queue and move to
//! the main queue only if they were used again. The bit that records the use is written only if it
//! is not set yet, so that the cache line of a hot block stays shared between cores. If a frame
//! leaves the small queue unused, its slot remembers when (the ghost queue, at no cost in memory),
//! and a block that returns soon enters the main queue directly. Where there is no room, not every block that was read
//! is kept ([`shard`]). That is decided before the block is read: one that is not kept is read without a lock, into
//! memory that the thread has just used for another one ([`memory`]).
//!
//! Loads of blocks that are kept are single-flight per block. No I/O happens inside an epoch. Indexes are evicted, too
//! ([`indexes`]); their blocks go with them.
//!
//! 1. A frame is in its slot if and only if it is in a queue of its slot's shard; both change
//!    under the shard's lock.
//! 2. The queue's reference to an evicted frame is dropped only after a grace period, so a reader
//!    that found the frame in its slot inside an epoch may use it until it leaves the epoch, and
//!    may turn the view into a pin.
//! 3. While an eighth of the capacity waits for that, blocks and indexes that are read do not enter the cache: nobody
//!    else finds them, so they are freed when their reader is done. A thread that is not scheduled inside its
//!    epoch keeps what is evicted meanwhile, and two busy cores evict a cache of 10 MiB in that time. Without
//!    this bound a cache of 37 MB had indexes of 58 MB at such a moment.
//! 4. The memory of a frame is freed when no reference is left: it is in no queue, the grace period
//!    is over, and no pin exists.

mod block_cache;
#[cfg(all(target_os = "linux", not(loom)))]
mod chunk;
#[cfg(all(target_os = "linux", not(loom)))]
mod chunks;
mod counters;
mod frame;
mod holder;
mod indexes;
mod memory;
mod piece;
mod pins;
mod shard;
mod slice;
mod slots;
#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "helpers of tests, too, may panic")]
mod tests;
mod waiting;

pub use block_cache::{BlockCache, CacheStats, Kept};
pub use counters::ReadStats;
pub use frame::{FrameBuf, FramePin, FrameView};
pub use holder::Holder;
pub use indexes::{IndexEntry, Resident};
pub use memory::FrameMemory;
pub use pins::{Looks, Pins};
pub use slice::Slice;
pub use slots::Slots;
pub use waiting::Waiting;
