//! Sorted numbers, and how many of them are not greater than another one.
//!
//! A lookup searches the fences of a segment, which are seldom in the processor's cache. A binary search over 400 numbers
//! waits for four or five cache lines, of which it knows each only when it has the one before. Here every 16th number
//! stands in a second list as a sample: the search counts the samples that are not greater, and then the numbers behind
//! the last of these. What it counts it reads without a branch, so the processor fetches all its lines at once, and the
//! search waits twice. A tree of lines waits for a line of each level, and took longer than the binary search where the
//! lines were in no cache (docs/decisions/0026).
//!
//! 1. Numbers and samples stand in one slice, the numbers first.
//! 2. More than 64 samples, of more than 1,024 numbers, are searched in halves.

use crate::cache::{FrameMemory, Slice};
use std::ops::Deref;
use std::sync::Arc;

/// Numbers for each sample: two cache lines.
const GROUP: usize = 16;
/// At most so many samples are all counted (invariant 2).
const COUNTED: usize = 64;

#[derive(Debug)]
pub(super) struct Heads {
    lists: Slice<u64>,
    count: usize,
}

impl Heads {
    /// So many numbers, which are sorted, in memory of a cache or of the allocator.
    pub(super) fn new(
        home: Option<&Arc<FrameMemory>>,
        count: usize,
        numbers: impl Iterator<Item = u64>,
    ) -> Self {
        let mut lists = Slice::with_room(home, count + count.div_ceil(GROUP));
        numbers.take(count).for_each(|number| lists.push(number));
        (0..count).step_by(GROUP).for_each(|sample| lists.push(lists[sample]));
        Self { lists, count }
    }

    /// How many are not greater than `number`.
    #[inline]
    pub(super) fn upto(&self, number: u64) -> usize {
        let (numbers, samples) = self.lists.split_at(self.count);
        // Seeded: the first key of a segment or block is looked for in the one before.
        bug!("run_fence_off_by_one", return numbers.partition_point(|other| *other < number));
        let before = match samples.len() <= COUNTED {
            true => not_greater(samples, number),
            false => samples.partition_point(|sample| *sample <= number),
        };
        let Some(group) = before.checked_sub(1) else { return 0 };
        let begin = GROUP * group;
        let end = numbers.len().min(begin + GROUP);
        begin + not_greater(&numbers[begin..end], number)
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.lists.memory()
    }
}

impl Deref for Heads {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        &self.lists[..self.count]
    }
}

/// How many of these are not greater, by looking at all.
#[inline]
fn not_greater(numbers: &[u64], number: u64) -> usize {
    numbers.iter().map(|other| usize::from(*other <= number)).sum()
}

#[cfg(all(test, not(loom)))]
mod tests;
