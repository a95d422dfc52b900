use super::*;

const SET: usize = 8 << 20;

fn taken(pool: &ChunkPool, chunks: usize) -> Vec<Chunk> {
    (0..chunks).map(|_| pool.take().unwrap()).collect()
}

#[test]
fn chunks_are_zeroed_aligned_and_small_for_small_sets() {
    for (set, bytes) in
        [(0, CHUNK_BYTES_MIN), (1 << 20, 256 << 10), (8 << 20, 2 << 20), (1 << 30, 2 << 20)]
    {
        let pool = ChunkPool::new(set);
        let chunk = pool.take().unwrap();
        assert_eq!((pool.chunk_bytes(), chunk.bytes()), (bytes, bytes));
        assert_eq!(chunk.start().addr().get() % bytes, 0);
        // SAFETY: the chunk has so many bytes, and nobody writes to them.
        let all = unsafe { std::slice::from_raw_parts(chunk.start().as_ptr(), chunk.bytes()) };
        assert!(all.iter().all(|byte| *byte == 0));
    }
}

/// What waits is bounded by a set of memtables and by what the cache has not.
#[test]
fn no_more_waits_than_a_set_and_the_room_of_the_cache() {
    let pool = ChunkPool::new(SET);
    let chunk = pool.chunk_bytes();
    taken(&pool, 20).into_iter().for_each(|chunk| pool.give(chunk));
    assert_eq!(pool.bytes(), (4 * chunk, 0));
    pool.set_room_of_cache(|| 3);
    taken(&pool, 20).into_iter().for_each(|chunk| pool.give(chunk));
    assert_eq!(pool.bytes(), (4 * chunk, 3 * chunk));
    // The cache has grown.
    pool.set_room_of_cache(|| 1);
    assert_eq!(pool.bytes(), (4 * chunk, chunk));
    pool.trim_if(false);
    assert_eq!(pool.bytes(), (4 * chunk, chunk));
    pool.trim_if(true);
    assert_eq!(pool.bytes(), (0, 0));
    let none = ChunkPool::keeping_none();
    none.give(none.take().unwrap());
    assert_eq!(none.bytes(), (0, 0));
}

/// Writers do not wait for the system because the cache has taken what waited.
#[test]
fn the_cache_leaves_half_of_a_set_to_memtables() {
    let pool = ChunkPool::new(SET);
    taken(&pool, 4).into_iter().for_each(|chunk| pool.give(chunk));
    let of_cache: Vec<_> = (0..4).map(|_| pool.take_for_cache().unwrap()).collect();
    assert_eq!((pool.bytes().0, of_cache.len()), (2 * pool.chunk_bytes(), 4));
    let of_memtables = taken(&pool, 3);
    assert_eq!((pool.bytes().0, of_memtables.len()), (0, 3));
}

/// The number is asked for under the lock: one that was asked for first is not noted last.
#[test]
fn the_room_of_the_cache_is_what_it_told_last() {
    let pool = ChunkPool::new(SET);
    std::thread::scope(|scope| {
        pool.set_room_of_cache(|| {
            let later = scope.spawn(|| pool.set_room_of_cache(|| 0));
            // If it does not wait, it ends now. It has not to be seen waiting.
            for _ in 0..100_000 {
                if later.is_finished() {
                    break;
                }
                std::thread::yield_now();
            }
            3
        });
    });
    taken(&pool, 20).into_iter().for_each(|chunk| pool.give(chunk));
    assert_eq!(pool.bytes(), (4 * pool.chunk_bytes(), 0));
}
