//! Counters of blocks that were found or read, and how long reads took.

use crate::sync::{Histogram, Latency, Stripes};
use crate::trace::{Purpose, tally};
use std::time::Duration;

/// A sum of bytes. It is shown, and code that acts on it only decides how much memory to keep, never what a reader finds:
/// no model needs to follow it.
pub(super) type Total = std::sync::atomic::AtomicU64;

const HITS: usize = 0;
const MISSES: usize = 1;
const PAGE_CACHE_READS: usize = 2;
const DEVICE_READS: usize = 3;
/// The bytes of the first purpose; those of the others follow.
const BYTES: usize = 4;
const COUNTERS: usize = BYTES + tally::PURPOSES;

/// Reads from files.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadStats {
    /// Reads that were as fast as the system's page cache.
    pub page_cache: u64,
    /// Slower reads.
    pub device: u64,
    /// Bytes by purpose.
    pub bytes: [u64; tally::PURPOSES],
    /// How long reads from the page cache took; about one in 128 is recorded.
    pub page_cache_latency: Latency,
    /// How long reads from the device took.
    pub device_latency: Latency,
}

impl ReadStats {
    /// The bytes that were read for a purpose.
    pub fn bytes_for(&self, purpose: Purpose) -> u64 {
        self.bytes[purpose as usize]
    }
}

/// Exact counters, one stripe per thread.
#[derive(Debug, Default)]
pub(super) struct Counters {
    stripes: Stripes<COUNTERS>,
    page_cache: Histogram,
    device: Histogram,
}

impl Counters {
    fn add(&self, counter: usize, n: u64) {
        self.stripes.add(counter, n);
    }

    #[inline]
    pub(super) fn hit(&self) {
        if !cfg!(feature = "bench-no-stats") {
            self.add(HITS, 1);
            tally::add_cached();
        }
    }

    pub(super) fn miss(&self) {
        self.add(MISSES, 1);
    }

    /// A read of a file. Reads from the device are slow enough to record each.
    pub(super) fn read(&self, purpose: Purpose, bytes: u64, took: Duration) {
        self.add(BYTES + purpose as usize, bytes);
        if !tally::is_from_page_cache(bytes, took) {
            self.add(DEVICE_READS, 1);
            self.device.record(took);
        } else if self.stripes.tick(PAGE_CACHE_READS).is_none()
            && self.stripes.tick_apart(PAGE_CACHE_READS).is_timed()
        {
            self.page_cache.record(took);
        }
    }

    pub(super) fn sum(&self) -> (u64, u64) {
        (self.stripes.sum(HITS), self.stripes.sum(MISSES))
    }

    pub(super) fn reads(&self) -> ReadStats {
        ReadStats {
            page_cache: self.stripes.calls(PAGE_CACHE_READS),
            device: self.stripes.sum(DEVICE_READS),
            bytes: std::array::from_fn(|purpose| self.stripes.sum(BYTES + purpose)),
            page_cache_latency: self.page_cache.summary(),
            device_latency: self.device.summary(),
        }
    }
}
