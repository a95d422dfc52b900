//! Helpers for the tests of several modules.

use super::KeyOrder;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Byte order that counts its comparisons.
#[derive(Debug, Clone, Default)]
pub struct Counting(Arc<AtomicUsize>);

impl Counting {
    /// The number of comparisons so far.
    pub fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl KeyOrder for Counting {
    const BYTEWISE: bool = false;

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.fetch_add(1, Relaxed);
        a.cmp(b)
    }
}
