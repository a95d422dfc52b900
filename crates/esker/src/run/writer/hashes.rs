//! The hashes of the keys of the segment being written, of which its filter is made.
//!
//! There may be a MiB of them, and each flush and compaction has its own. They lie in a mapping, because what large
//! lists of short life leave behind in an allocator stays resident (docs/decisions/0023).

use crate::budget::Pages;

const HASH_BYTES: usize = size_of::<u64>();
/// Room at first: that of the keys of a small flush.
const FIRST_BYTES: usize = 16 << 10;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    pages: Pages,
    count: usize,
}

impl Hashes {
    /// Adds one.
    #[inline]
    pub(super) fn push(&mut self, hash: u64) {
        let at = self.count * HASH_BYTES;
        if at + HASH_BYTES > self.pages.len() {
            self.grow();
        }
        self.pages[at..at + HASH_BYTES].copy_from_slice(&hash.to_ne_bytes());
        self.count += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Pages::new((self.pages.len() * 2).max(FIRST_BYTES));
        larger[..self.pages.len()].copy_from_slice(&self.pages);
        self.pages = larger;
    }

    /// Forgets all and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// All of them, in the order in which they came.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = u64> {
        let bytes = &self.pages[..self.count * HASH_BYTES];
        bytes.as_chunks().0.iter().map(|hash| u64::from_ne_bytes(*hash))
    }

    /// Bytes that it has room for.
    pub(super) fn memory(&self) -> usize {
        self.pages.len()
    }
}
