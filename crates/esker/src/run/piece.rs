//! What a compaction reads ahead of one run.
//!
//! The bytes lie in a mapping, so that they go back to the system with the cursor, whichever thread it was used
//! on; they are counted in the account of buffers.

use crate::budget::{Lease, Pages};
use crate::cache::BlockCache;

/// A piece of a segment, as compactions read them.
#[derive(Debug)]
pub(super) struct Piece {
    pub segment: usize,
    /// The offset of its bytes in the file.
    pub offset: u64,
    pub len: usize,
    /// Begins with its bytes.
    pub pages: Pages,
    pub scratch: Vec<u8>,
    lease: Lease,
}

impl Piece {
    pub fn of(cache: &BlockCache) -> Self {
        let (pages, lease) = (Pages::default(), cache.buffers().lease());
        Self { segment: 0, offset: 0, len: 0, pages, scratch: Vec::new(), lease }
    }

    /// Room for `len` bytes, of which nothing is known yet. `usual`: bytes of most pieces.
    pub fn make_room(&mut self, len: usize, usual: u64) {
        // Cleared first: a failed read must not leave a piece that looks whole.
        self.len = 0;
        let most = usize::try_from(4 * usual).unwrap_or(usize::MAX).max(len);
        if !(len..=most).contains(&self.pages.len()) {
            self.pages = Pages::default();
            self.pages = Pages::new(len.max(usual as usize));
        }
        self.count();
    }

    pub fn count(&mut self) {
        self.lease.set((self.pages.len() + self.scratch.capacity()) as u64);
    }
}
