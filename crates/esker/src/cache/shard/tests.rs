use crate::cache::tests::{frame, load, number_of};
use crate::cache::{BlockCache, Slots};
use crate::sync::{collect, pin};
use std::sync::Arc;

/// One shard, with room for about 800 blocks of the tests.
const CAPACITY: u64 = 1 << 20;

struct Reader {
    slots: Arc<Slots>,
    random: u64,
    missed: usize,
    kept: usize,
}

impl Reader {
    fn new(blocks: usize) -> Self {
        let cache = Arc::new(BlockCache::new(CAPACITY));
        Self { slots: Arc::new(Slots::new(&cache, blocks)), random: 1, missed: 0, kept: 0 }
    }

    /// One of so many blocks, of which 900 were written lately: they stand in the small queue, as far as they fit.
    fn after_a_load(blocks: usize) -> Self {
        let reader = Self::new(blocks);
        let cache = reader.slots.cache();
        (0..900).for_each(|i| reader.slots.offer_to_room(i, frame(cache, i, 1000)));
        assert!(reader.cached(0..900) > 700);
        reader
    }

    /// Reads 600 blocks that were not written lately, one after the other, and says how many are cached then.
    fn reads_others(&mut self) -> usize {
        (900..1500).for_each(|i| _ = self.read(i));
        self.cached(900..1500)
    }

    /// Other tests of the process may be in an epoch for long, and nothing is kept while much waits for them.
    fn wait_for_others(&self) {
        while self.slots.cache().memory().is_full_of_retired() {
            collect();
            std::thread::yield_now();
        }
    }

    /// Reads block `i` as a get does. Whether it was cached.
    fn read(&mut self, i: usize) -> bool {
        self.wait_for_others();
        let guard = pin();
        let cached = self.slots.get(i, &guard).inspect(|view| view.touch()).is_some();
        drop(guard);
        if !cached {
            assert_eq!(number_of(load(&self.slots, i).view()), i % 256);
            self.missed += 1;
            self.kept += usize::from(!self.slots.is_vacant(i));
        }
        cached
    }

    /// Reads blocks of the range at random.
    fn read_any(&mut self, blocks: std::ops::Range<usize>, reads: usize) {
        for _ in 0..reads {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            self.read(blocks.start + (self.random >> 33) as usize % blocks.len());
        }
    }

    fn cached(&self, blocks: std::ops::Range<usize>) -> usize {
        blocks.filter(|i| !self.slots.is_vacant(*i)).count()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.slots.clear();
        assert_eq!(self.slots.cache().stats().bytes, 0);
    }
}

/// Blocks that are read at random from four times what fits: few of those that are missed evict another one, and no
/// more are missed than there must be.
#[test]
fn a_full_cache_keeps_few_of_the_blocks_that_are_missed() {
    let mut reader = Reader::new(3200);
    reader.read_any(0..3200, 20_000);
    (reader.missed, reader.kept) = (0, 0);
    reader.read_any(0..3200, 20_000);
    let (missed, kept) = (reader.missed, reader.kept);
    assert!(kept < missed / 4, "{kept} of {missed} were kept");
    let fit = reader.cached(0..3200);
    let must = 20_000 * (3200 - fit) / 3200;
    assert!(missed < must * 103 / 100, "{missed} were missed, where {fit} of 3200 fit");
}

/// A block that is missed twice in a row is kept.
#[test]
fn a_block_that_is_missed_again_is_kept() {
    let mut reader = Reader::new(3200);
    reader.read_any(0..3000, 20_000);
    for i in 3000..3200 {
        assert!(!reader.read(i));
        reader.read(i);
        assert!(reader.read(i), "{i} is missed a third time");
    }
}

/// A loop over other blocks than those that were read before: they enter the cache within a few rounds.
#[test]
fn a_cache_of_what_nobody_reads_takes_what_is_read_instead() {
    let mut reader = Reader::new(1400);
    reader.read_any(0..750, 20_000);
    assert!(reader.cached(0..750) > 700);
    let round = |_| {
        (750..1400).for_each(|i| _ = reader.read(i));
        reader.cached(750..1400)
    };
    let cached: Vec<_> = (0..6).map(round).collect();
    assert!(cached[5] > 640, "cached of 650 after each round: {cached:?}");
}

/// What was written stands in the small queue, and nobody reads it: other blocks take its place at once.
#[test]
fn blocks_that_nobody_has_read_keep_no_others_out() {
    let cached = Reader::after_a_load(1800).reads_others();
    assert!(cached > 590, "{cached} of 600 are cached");
}

/// The same where a tenth of it was read before the reads moved.
#[test]
fn blocks_of_which_few_were_read_keep_no_others_out() {
    let mut reader = Reader::after_a_load(1800);
    (0..900).step_by(10).for_each(|i| _ = reader.read(i));
    let cached = reader.reads_others();
    assert!(cached > 400, "{cached} of 600 are cached");
}

/// What came along with others, or was written, is read like all else: few of the blocks that are missed replace it.
#[test]
fn blocks_that_came_first_and_are_read_stay() {
    let mut reader = Reader::after_a_load(3200);
    reader.read_any(0..3200, 800);
    (reader.missed, reader.kept) = (0, 0);
    reader.read_any(0..3200, 400);
    assert!(reader.kept < reader.missed / 3, "{} of {} were kept", reader.kept, reader.missed);
}

/// Once a working set has moved, a long sweep over what is read once does not push it out.
#[test]
fn what_is_stale_is_forgotten() {
    let mut reader = Reader::new(30_000);
    reader.read_any(0..750, 20_000);
    (0..8).for_each(|_| (750..1400).for_each(|i| _ = reader.read(i)));
    assert!(reader.cached(750..1400) > 640);
    (reader.missed, reader.kept) = (0, 0);
    reader.read_any(1400..30_000, 20_000);
    assert!(reader.kept < reader.missed / 4, "{} of {} were kept", reader.kept, reader.missed);
}

/// A range larger than the cache that is read again and again from its begin: some of it stays.
#[test]
fn a_loop_over_more_than_fits_finds_some_of_it() {
    let mut reader = Reader::new(1600);
    (0..10).for_each(|_| (0..1600).for_each(|i| _ = reader.read(i)));
    reader.missed = 0;
    (0..10).for_each(|_| (0..1600).for_each(|i| _ = reader.read(i)));
    assert!(reader.missed < 13_000, "{} of 16000 were missed", reader.missed);
}

/// A scan that reads ahead finds what it has read.
#[test]
fn blocks_that_are_read_ahead_are_kept_until_they_are_reached() {
    let mut reader = Reader::new(3200);
    reader.read_any(0..1600, 20_000);
    for begin in (1600..3200).step_by(32) {
        for i in begin..begin + 32 {
            reader.wait_for_others();
            drop(reader.slots.offer(i, frame(reader.slots.cache(), i, 1000)));
        }
        assert!((begin..begin + 32).all(|i| reader.read(i)), "one of {begin} and the next 31");
    }
}
