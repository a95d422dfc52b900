//! What happens at the points of the cache: how often indexes are loaded, and indexes and blocks leave for others.
//!
//! A test of data that are larger than the cache counts it, so that it fails if nothing was evicted and read again.

use esker::internals::sync::{Gates, Point, Signal};
use parking_lot::Mutex;
use std::sync::Arc;

/// What has happened at the points of the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheEvents {
    /// How often a read loaded an index.
    pub index_loads: u64,
    /// How often indexes left.
    pub indexes_left: u64,
    /// How often blocks left.
    pub blocks_left: u64,
}

impl CacheEvents {
    /// A thread has come to a point; whether it is one of the cache.
    pub fn note(&mut self, point: Point) -> bool {
        match point {
            Point::IndexLoads => self.index_loads += 1,
            Point::IndexLeaves => self.indexes_left += 1,
            Point::BlocksLeave => self.blocks_left += 1,
            Point::IndexLoaded => {}
            _ => return false,
        }
        true
    }
}

/// Gates that hold nobody and count what happens at the points of the cache.
#[derive(Debug, Default)]
pub struct CacheCounter(Mutex<CacheEvents>);

impl CacheCounter {
    /// What has happened so far.
    pub fn events(&self) -> CacheEvents {
        *self.0.lock()
    }
}

impl Gates for CacheCounter {
    fn begin(&self, _workers: usize, _wake: Arc<Signal>) {}

    fn pass(&self, point: Point) {
        self.0.lock().note(point);
    }

    fn rest(&self) -> bool {
        false
    }
}
