use super::*;
use std::sync::Arc;

const CACHE_BYTES: u64 = 64 << 20;
const FRAMES: usize = 2000;

fn cache_and_pool() -> (Arc<BlockCache>, Arc<ChunkPool>) {
    let pool = Arc::new(ChunkPool::new(2 << 20));
    (Arc::new(BlockCache::with_pool(CACHE_BYTES, &pool)), pool)
}

#[test]
fn what_is_evicted_during_a_reading_is_counted_once() {
    let (cache, pool) = cache_and_pool();
    let frame = || cache.frame(4000);
    let mut frames: Vec<_> = (0..FRAMES).map(|_| frame()).collect();
    let before = Resident::read(&cache, &pool, || ());
    assert!(before.of_cache() >= (FRAMES * 4000) as u64, "{before:?}");
    let mut readings = 0;
    let after = Resident::read(&cache, &pool, || {
        readings += 1;
        frames.clear();
    });
    assert_eq!(readings, 2);
    assert_eq!(after.cache.allocated, 0);
    let of_both = after.of_cache() + after.next_set;
    assert!(of_both < before.of_cache() + (2 << 20), "{after:?} after {before:?}");
}

#[test]
fn reading_ends_although_frames_come_all_the_time() {
    let (cache, pool) = cache_and_pool();
    let (mut frames, mut readings) = (Vec::new(), 0);
    Resident::read(&cache, &pool, || {
        readings += 1;
        let twice_as_many = frames.len().max(1);
        frames.extend((0..twice_as_many).map(|_| cache.frame(4000)));
    });
    assert_eq!(readings, READINGS_MAX);
}
