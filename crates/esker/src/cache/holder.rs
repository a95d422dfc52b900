//! What one cursor of an iterator holds of the cache.
//!
//! A cursor says how many bytes it holds when it takes another block. When it is dropped, it holds
//! nothing: so what all of them hold is the sum in `pins.rs`.

use super::block_cache::BlockCache;
use std::sync::Arc;

/// A cache, and what one cursor holds of it.
#[derive(Debug)]
pub struct Holder {
    cache: Arc<BlockCache>,
    bytes: u64,
}

impl Holder {
    /// Of a cursor that holds nothing yet.
    pub fn new(cache: Arc<BlockCache>) -> Self {
        Self { cache, bytes: 0 }
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// What the cursor holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The cursor holds so many bytes now.
    #[inline]
    pub fn hold(&mut self, bytes: u64) {
        if bytes != self.bytes {
            self.cache.pins().add(bytes.wrapping_sub(self.bytes));
            self.bytes = bytes;
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // Seeded: what dropped iterators held still counts.
        bug!("cache_pins_of_dropped_iterators_stay", return);
        self.hold(0);
    }
}
