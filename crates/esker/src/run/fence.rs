//! Fences: short sorted keys that say which segment or block may hold a key.
//!
//! The common prefix of all fences is cut off; the first eight bytes of the rest are kept as
//! numbers, and the search runs over these ([`Heads`]). Only fences that tie with the key are compared in full. With a
//! custom comparator all fences are compared in full (R15).

use super::heads::Heads;
use crate::base::{KeyOrder, head_of};
use crate::cache::{FrameMemory, Slice};
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Fences {
    prefix: Box<[u8]>,
    heads: Heads,
    /// Where each fence ends if all stand one behind the other, with the prefix.
    ends: Slice<usize>,
    suffixes: Slice<u8>,
}

impl Fences {
    /// The fences of these keys, in memory of the allocator.
    pub(super) fn build<'a>(bytewise: bool, keys: impl ExactSizeIterator<Item = &'a [u8]>) -> Self {
        let (mut all, mut ends) = (Vec::new(), Slice::with_room(None, keys.len()));
        for key in keys {
            all.extend_from_slice(key);
            ends.push(all.len());
        }
        Self::of(None, bytewise, (&all, ends))
    }

    /// The fences of keys that stand one behind the other, with their ends, in memory of a cache or of the allocator.
    pub(super) fn of(
        home: Option<&Arc<FrameMemory>>,
        bytewise: bool,
        (all, ends): (&[u8], Slice<usize>),
    ) -> Self {
        let keys =
            ends.iter().scan(0, |start, end| Some(&all[std::mem::replace(start, *end)..*end]));
        let first = keys.clone().next().unwrap_or_default();
        let shared = |len: usize, key: &[u8]| {
            // Most have the prefix of those before.
            if key.starts_with(&first[..len]) {
                return len;
            }
            first[..len].iter().zip(key).take_while(|(a, b)| a == b).count()
        };
        let prefix = if bytewise { keys.clone().fold(first.len(), shared) } else { 0 };
        let suffixes = keys.map(|key| &key[prefix..]);
        let head = |suffix| if bytewise { head_of(suffix) } else { 0 };
        let heads = Heads::new(home, ends.len(), suffixes.clone().map(head));
        let suffixes = Slice::concat(home, all.len() - prefix * ends.len(), suffixes);
        Self { prefix: first[..prefix].into(), heads, ends, suffixes }
    }

    fn suffix(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        // Each fence before has lost the prefix, too.
        let lost = self.prefix.len() * i;
        &self.suffixes[start - lost..self.ends[i] - lost - self.prefix.len()]
    }

    /// Compares fence `i` with a key.
    pub(super) fn compare<O: KeyOrder>(&self, order: &O, i: usize, key: &[u8]) -> Ordering {
        if self.prefix.is_empty() {
            return order.compare(self.suffix(i), key);
        }
        match key.strip_prefix(&*self.prefix) {
            Some(suffix) => self.suffix(i).cmp(suffix),
            None => (*self.prefix).cmp(key),
        }
    }

    /// The last fence that is not greater than `key`.
    #[inline]
    pub(super) fn find<O: KeyOrder>(&self, order: &O, key: &[u8]) -> Option<usize> {
        if !O::BYTEWISE {
            let equal_or_less = |i| self.compare(order, i, key).is_le();
            return partition(0, self.heads.len(), equal_or_less).checked_sub(1);
        }
        let Some(suffix) = key.strip_prefix(&*self.prefix) else {
            return if key < &*self.prefix { None } else { self.heads.len().checked_sub(1) };
        };
        let head = head_of(suffix);
        let last = self.heads.upto(head).checked_sub(1)?;
        if self.heads[last] < head || self.suffix(last) <= suffix {
            return Some(last);
        }
        let low = self.heads.partition_point(|entry| *entry < head);
        partition(low, last, |i| self.suffix(i) <= suffix).checked_sub(1)
    }

    pub(super) fn bytes(&self) -> usize {
        self.heads.memory() + self.ends.memory() + self.suffixes.memory() + self.prefix.len()
    }
}

fn partition(mut low: usize, mut high: usize, before: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
