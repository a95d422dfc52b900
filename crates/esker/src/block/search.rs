//! Finding entries in a block: by tag for equality, by head for order.

use super::layout::{Block, flag};
use crate::base::{KeyOrder, Seq};
use std::cmp::Ordering;

impl Block<'_> {
    /// The newest entry of `key` with a sequence number less than `below`. `tag` belongs to the
    /// key and is used where the block has tags.
    #[inline(always)]
    pub fn get<O: KeyOrder>(&self, order: &O, key: &[u8], tag: u8, below: Seq) -> Option<usize> {
        if self.layout.tagged() {
            return self.get_tagged(key, tag, below);
        }
        let found = self.lower_bound(order, key, below);
        (found < self.count() && order.compare(self.rest(found), key).is_eq()).then_some(found)
    }

    /// How many entries [`Self::get`] compared with the key before it had its answer, as far as
    /// tags tell; for reports.
    pub fn compared(&self, key: &[u8], tag: u8, found: Option<usize>) -> u64 {
        if !self.layout.tagged() {
            return u64::from(self.count().max(1).ilog2()) + 1;
        }
        if !key.starts_with(self.prefix()) {
            return 0;
        }
        let searched = found.map_or(self.count(), |found| found + 1);
        let tags = &self.bytes[self.tags_start()..][..searched];
        tags.iter().filter(|of_entry| **of_entry == tag).count() as u64
    }

    #[inline(never)]
    fn get_tagged(&self, key: &[u8], tag: u8, below: Seq) -> Option<usize> {
        // Seeded: a get at a snapshot finds a newer version in a run.
        let below = if bug!("block_get_ignores_snapshots") { Seq::MAX } else { below };
        let suffix = key.strip_prefix(self.prefix())?;
        let n = self.count();
        let start = self.tags_start();
        let mut base = 0;
        while base < n {
            let mut matches = match self.bytes[start + base..].first_chunk::<16>() {
                Some(tags) => equal_bytes(tags, tag),
                None => self.equal_tail(start + base, n - base, tag),
            };
            // Bytes past the last tag belong to the heads.
            if n - base < 16 {
                matches &= (1 << (n - base)) - 1;
            }
            while matches != 0 {
                let i = base + matches.trailing_zeros() as usize;
                if self.suffix_equals(i, suffix) && self.is_below(i, below) {
                    return Some(i);
                }
                matches &= matches - 1;
            }
            base += 16;
        }
        None
    }

    fn equal_tail(&self, start: usize, count: usize, tag: u8) -> u32 {
        let tags = &self.bytes[start..start + count];
        tags.iter().enumerate().fold(0, |mask, (i, t)| mask | (u32::from(*t == tag) << i))
    }

    #[inline]
    fn is_below(&self, i: usize, below: Seq) -> bool {
        self.version(i).0 < below
    }

    #[inline]
    fn suffix_equals(&self, i: usize, suffix: &[u8]) -> bool {
        if self.layout.has(flag::SPLIT) {
            return suffix
                .split_first_chunk::<4>()
                .is_some_and(|(head, rest)| *head == self.head_bytes(i) && rest == self.rest(i));
        }
        self.rest(i) == suffix
    }

    fn compare_suffix(&self, i: usize, suffix: &[u8]) -> Ordering {
        if self.layout.has(flag::SPLIT) {
            let cut = suffix.len().min(4);
            let by_head = self.head_bytes(i)[..].cmp(&suffix[..cut]);
            return by_head.then_with(|| self.rest(i).cmp(&suffix[cut..]));
        }
        self.rest(i).cmp(suffix)
    }

    /// The first entry that is not before `(key, below)`: its key is greater, or equal with a
    /// sequence number less than `below`. `count()` if there is none.
    pub fn lower_bound<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> usize {
        if !self.layout.tagged() {
            return self.partition(0, self.count(), below, |i| order.compare(self.rest(i), key));
        }
        let prefix = self.prefix();
        let Some(suffix) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.count() };
        };
        let head = short_head(suffix);
        // Seeded: a seek in a block passes over its key.
        let head = if bug!("block_seek_goes_too_far") { head.saturating_add(1) } else { head };
        let low = self.heads_before(|entry| entry < head);
        if low == self.count() || u32::from_be_bytes(self.head_bytes(low)) != head {
            return low;
        }
        let high = self.heads_before(|entry| entry <= head);
        self.partition(low, high, below, |i| self.compare_suffix(i, suffix))
    }

    /// The number of heads for which `before` holds; it must hold for a prefix of them. The loop
    /// has no branch that depends on data.
    #[inline]
    fn heads_before(&self, before: impl Fn(u32) -> bool) -> usize {
        let start = self.layout.heads as usize;
        let heads = &self.bytes[start..start + 4 * self.count()];
        let (mut base, mut size) = (0, self.count());
        let at = |i: usize| {
            let word = &heads[4 * i..4 * i + 4];
            u32::from_be_bytes([word[0], word[1], word[2], word[3]])
        };
        while size > 1 {
            let half = size / 2;
            base = if before(at(base + half - 1)) { base + half } else { base };
            size -= half;
        }
        base + usize::from(before(at(base)))
    }

    fn partition(
        &self,
        mut low: usize,
        mut high: usize,
        below: Seq,
        compare: impl Fn(usize) -> Ordering,
    ) -> usize {
        while low < high {
            let middle = low + (high - low) / 2;
            let before = match compare(middle) {
                Ordering::Less => true,
                Ordering::Equal => !self.is_below(middle, below),
                Ordering::Greater => false,
            };
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The first four bytes as a big-endian number, padded with zeros.
#[inline]
pub(super) fn short_head(suffix: &[u8]) -> u32 {
    if let Some(first) = suffix.first_chunk::<4>() {
        return u32::from_be_bytes(*first);
    }
    let mut padded = [0; 4];
    padded[..suffix.len()].copy_from_slice(suffix);
    u32::from_be_bytes(padded)
}

/// One bit for each byte of `tags` that equals `tag`.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline]
fn equal_bytes(tags: &[u8; 16], tag: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let word = u128::from_le_bytes(*tags);
    #[allow(unsafe_code, reason = "SIMD intrinsics")]
    // SAFETY: every x86_64 target that passes the `cfg` above has SSE2.
    unsafe {
        let tags = _mm_set_epi64x((word >> 64) as i64, word as i64);
        _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(tag as i8))) as u32
    }
}

/// One bit for each byte of `tags` that equals `tag`.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline]
fn equal_bytes(tags: &[u8; 16], tag: u8) -> u32 {
    tags.iter().enumerate().fold(0, |mask, (i, t)| mask | (u32::from(*t == tag) << i))
}
