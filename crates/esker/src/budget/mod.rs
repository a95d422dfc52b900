//! The memory that several parts of a database share: how many bytes the buffers of flushes and compactions
//! and other owners take ([`Account`]), and where their memory and that of memtables and frames comes from.
//!
//! A budget holds only if what is counted is what the process has. A buffer that one thread takes from the
//! allocator and another frees stays with the process, in the allocator's lists for the first thread. So
//! what flushes and compactions read ahead lies in mappings of its own ([`Pages`]), which go back to the
//! system at once, and the buffer that collects what they write is handed from one writer to the next
//! ([`Collector`]).
//!
//! The memory of memtables and of cached blocks is taken in chunks that wait for their next user
//! ([`ChunkPool`]).
//!
//! 1. Every byte of a buffer is counted from when it is taken until it is freed, also while it waits for
//!    its next user.

mod chunks;
mod pages;
pub mod process;
#[cfg(test)]
mod tests;

pub use chunks::{Chunk, ChunkPool, allow_huge};
pub use pages::{PAGE_BYTES, Pages, RELEASE_BYTES, map, release, unmap};

use parking_lot::Mutex;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most buffers that wait for the next writer: one for a flush and one for a compaction.
const SPARE_MAX: usize = 2;
/// See [`Lease::set_about`].
const STEP_BYTES: u64 = 1 << 10;

/// How many bytes one kind of owner takes.
#[derive(Debug, Default)]
pub struct Account {
    used: AtomicU64,
    most: AtomicU64,
}

impl Account {
    /// Bytes of all owners.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The most that these were.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// The part of one owner, who has nothing yet.
    pub fn lease(self: &Arc<Self>) -> Lease {
        Lease { of: Arc::clone(self), bytes: 0 }
    }

    fn add(&self, bytes: u64) {
        let now = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The account of the buffers of one database.
#[derive(Debug, Default)]
pub struct Buffers {
    account: Arc<Account>,
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// Bytes of all buffers.
    pub fn used(&self) -> u64 {
        self.account.used()
    }

    /// The most that these were.
    pub fn most(&self) -> u64 {
        self.account.most()
    }

    /// The account of one owner of buffers, who has none yet.
    pub fn lease(&self) -> Lease {
        self.account.lease()
    }

    /// An empty buffer with room for `usual` bytes, which the caller counts.
    fn take(&self, usual: usize) -> Vec<u8> {
        let mut spare = self.spare.lock();
        match spare.iter().position(|spare| fits(spare, usual)) {
            Some(found) => {
                let found = spare.swap_remove(found);
                // Seeded: a buffer that is used again counts twice.
                bug!("budget_buffers_used_again_count_twice", return found);
                self.account.subtract(found.capacity() as u64);
                found
            }
            None => Vec::with_capacity(usual),
        }
    }

    /// Keeps a buffer that nobody counts any more for the next one.
    fn give(&self, mut buffer: Vec<u8>) {
        let mut spare = self.spare.lock();
        if spare.len() < SPARE_MAX {
            buffer.clear();
            // Seeded: what waits for its next user is not counted.
            bug!("budget_spare_buffers_not_counted", {
                spare.push(buffer);
                return;
            });
            self.account.add(buffer.capacity() as u64);
            spare.push(buffer);
        }
    }
}

/// Whether a buffer is of about the usual size.
fn fits(buffer: &Vec<u8>, usual: usize) -> bool {
    (usual..=usual * 2).contains(&buffer.capacity())
}

/// What one owner has; it has nothing any more when this is dropped.
#[derive(Debug)]
pub struct Lease {
    of: Arc<Account>,
    bytes: u64,
}

impl Lease {
    /// The owner has so many bytes now.
    pub fn set(&mut self, bytes: u64) {
        match bytes.cmp(&self.bytes) {
            Less => self.of.subtract(self.bytes - bytes),
            Equal => return,
            Greater => self.of.add(bytes - self.bytes),
        }
        self.bytes = bytes;
    }

    /// As [`Self::set`], in steps of a KiB: an owner that grows by a few bytes at a time seldom writes to what
    /// all owners share.
    pub fn set_about(&mut self, bytes: u64) {
        self.set(bytes.next_multiple_of(STEP_BYTES));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Seeded: buffers that are gone still count.
        bug!("budget_leases_never_end", return);
        self.set(0);
    }
}

/// Collects the bytes that a writer writes.
#[derive(Debug)]
pub struct Collector {
    bytes: Vec<u8>,
    usual: usize,
    /// Where its memory comes from, and what it has of it.
    of: Option<(Arc<Buffers>, Lease)>,
}

impl Collector {
    /// A buffer of about `usual` bytes that nobody counts.
    ///
    /// It has little memory until it has more to collect: most are counted at once, and take what waits.
    pub fn uncounted(usual: usize) -> Self {
        Self { bytes: Vec::new(), usual, of: None }
    }

    /// Counts it, and lets the next writer use it.
    pub fn count_in(&mut self, buffers: &Arc<Buffers>) {
        let mut bytes = buffers.take(self.usual);
        bytes.extend_from_slice(&self.bytes);
        self.bytes = bytes;
        self.of = Some((Arc::clone(buffers), buffers.lease()));
        self.count(0);
    }

    /// Counts it, and so many bytes that its owner has beside it.
    pub fn count(&mut self, beside: u64) {
        if let Some((_, lease)) = &mut self.of {
            lease.set(self.bytes.capacity() as u64 + beside);
        }
    }

    /// Whether so many bytes fit without more memory.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.bytes.capacity().max(self.usual) - self.bytes.len() >= bytes
    }

    /// Forgets the bytes. A buffer that a large value has grown gets its usual size again.
    pub fn empty(&mut self) {
        if self.bytes.capacity() > 4 * self.usual {
            self.bytes = Vec::with_capacity(self.usual);
        }
        self.bytes.clear();
    }
}

impl Deref for Collector {
    type Target = Vec<u8>;

    #[inline]
    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Collector {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some((buffers, mut lease)) = self.of.take() {
            lease.set(0);
            if fits(&self.bytes, self.usual) {
                buffers.give(std::mem::take(&mut self.bytes));
            }
        }
    }
}
