//! A blocked Bloom filter in front of the skiplist.
//!
//! Most reads ask for keys that the memtable does not hold; one cache line answers them. A key
//! has all its bits in one line of 64 bytes (Putze, Sanders, Singler: "Cache-, Hash- and
//! Space-Efficient Bloom Filters"), three in each of two of its words, so that an insert costs at
//! most two atomic operations and none where the bits are already set.
//!
//! Ordering: bits are set with relaxed operations before `Memtable::insert` returns. A reader must
//! find an entry only after the writer has published its position. This publication orders the bits
//! before the read, as it orders the entry itself.

use super::prefetch::prefetch;
use crate::base::KeyspaceId;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::sync::atomic::{AtomicU64, Ordering};

/// One cache line of bits.
#[repr(C, align(64))]
struct Line([AtomicU64; 8]);

/// The size of an entry that the filter is laid out for, and the bits that such an entry gets.
const ENTRY_BYTES: usize = 100;
const BITS_PER_ENTRY: usize = 12;

/// See the head of this module. Without lines it knows nothing and says "maybe" to everything.
pub(super) struct Bloom {
    lines: Box<[Line]>,
}

/// Where the bits of one key are.
#[derive(Clone, Copy)]
pub(super) struct Place {
    line: usize,
    words: [usize; 2],
    masks: [u64; 2],
}

impl Bloom {
    /// A filter for as many entries of 100 bytes as fit into `capacity` bytes; it takes 1.5 % of
    /// them.
    pub(super) fn new(capacity: usize) -> Self {
        let lines = (capacity / ENTRY_BYTES * BITS_PER_ENTRY).div_ceil(512).max(8);
        Self { lines: zeroed_lines(lines) }
    }

    /// A filter that says "maybe" to everything, for custom comparators, under which equal keys may
    /// have different bytes (R15).
    pub(super) fn off() -> Self {
        Self { lines: Box::default() }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    /// Where a key with this hash has its bits; `None` if the filter is off.
    #[inline]
    pub(super) fn place(&self, keyspace: KeyspaceId, hash: u64) -> Option<Place> {
        if self.lines.is_empty() {
            return None;
        }
        let mixed =
            (hash ^ u64::from(keyspace).wrapping_mul(0x9E37_79B9_7F4A_7C15)).rotate_left(29);
        let line = ((u128::from(mixed) * self.lines.len() as u128) >> 64) as usize;
        let bits = mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let bit = |field: u32| 1u64 << ((bits >> (64 - 6 * field)) & 63);
        let first = (bits >> 20) as usize & 7;
        // Odd, so that the second word is never the first.
        let second = first ^ ((bits >> 23) as usize & 6 | 1);
        let masks = [bit(1) | bit(2) | bit(3), bit(4) | bit(5) | bit(6)];
        Some(Place { line, words: [first, second], masks })
    }

    /// Prefetches the cache line of a place.
    #[inline]
    pub(super) fn prefetch(&self, place: Place) {
        prefetch(&raw const self.lines[place.line]);
    }

    /// Adds a key.
    #[inline]
    pub(super) fn set(&self, place: Place) {
        let line = &self.lines[place.line].0;
        for (word, mask) in place.words.into_iter().zip(place.masks) {
            if line[word].load(Ordering::Relaxed) & mask != mask {
                line[word].fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    /// Whether a key may have been added; `false` is certain.
    #[inline]
    pub(super) fn may_contain(&self, place: Place) -> bool {
        let line = &self.lines[place.line].0;
        let mut words = place.words.into_iter().zip(place.masks);
        words.all(|(word, mask)| line[word].load(Ordering::Relaxed) & mask == mask)
    }
}

/// Zeroed lines from the system, which need not be written before their first use.
#[allow(unsafe_code, reason = "zeroed pages from the system, without touching each of them")]
fn zeroed_lines(count: usize) -> Box<[Line]> {
    let Ok(layout) = Layout::array::<Line>(count) else {
        handle_alloc_error(Layout::new::<Line>())
    };
    // SAFETY: `count` is at least 8, so the size is not zero.
    let lines = unsafe { alloc_zeroed(layout) };
    if lines.is_null() {
        handle_alloc_error(layout);
    }
    let lines = std::ptr::slice_from_raw_parts_mut(lines.cast::<Line>(), count);
    // SAFETY: the memory has the layout of `[Line; count]`, came from the global allocator, is
    // owned by nobody else, and all-zero bytes are a valid `Line`.
    unsafe { Box::from_raw(lines) }
}
