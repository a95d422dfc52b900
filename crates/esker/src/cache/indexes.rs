//! Indexes of run segments as members of the cache.
//!
//! An index is loaded when its segment is first read. It stands in the same queues as blocks, so that use
//! decides whether indexes or blocks stay. It enters the main queue at once: with its filter it serves all
//! blocks of its segment.
//!
//! 1. The index of a segment stands in a queue from when it is loaded until it is evicted or the
//!    segment goes.
//! 2. No lock of the cache is held when an index is taken out of its segment, or when a reference to
//!    a segment is dropped: that may drop segments, which come back here.

use std::fmt;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who owns an index in memory.
pub trait Resident: fmt::Debug + Send + Sync {
    /// Whether the index was used since the last call.
    fn take_used(&self) -> bool;

    /// Takes the index out of memory, when its present readers are done.
    fn evict(&self);
}

/// What the cache knows of an index.
#[derive(Debug)]
pub struct IndexEntry {
    pub(super) owner: Weak<dyn Resident>,
    pub(super) bytes: u64,
    /// Its position in the queues of its shard; changes under the shard's lock.
    position: AtomicU64,
}

impl IndexEntry {
    /// An index of so many bytes.
    pub fn new(owner: Weak<dyn Resident>, bytes: u64) -> Self {
        Self { owner, bytes, position: AtomicU64::new(0) }
    }

    pub(super) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    pub(super) fn set_position(&self, position: u64) {
        self.position.store(position, Ordering::Relaxed);
    }
}
