//! Hit and miss counters.

use crate::sync::Stripes;

/// A sum that is only shown, and that no code acts on: no model needs to follow it.
pub(super) type Total = std::sync::atomic::AtomicU64;

const HITS: usize = 0;
const MISSES: usize = 1;

/// Exact counters, one stripe per thread.
#[derive(Debug, Default)]
pub(super) struct Counters(Stripes<2>);

impl Counters {
    #[inline]
    pub(super) fn hit(&self) {
        if !cfg!(feature = "bench-no-stats") {
            self.0.lane().add(HITS, 1);
        }
    }

    pub(super) fn miss(&self) {
        self.0.lane().add(MISSES, 1);
    }

    pub(super) fn sum(&self) -> (u64, u64) {
        (self.0.sum(HITS), self.0.sum(MISSES))
    }
}
