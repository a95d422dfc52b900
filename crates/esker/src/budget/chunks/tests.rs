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

/// The parts of a huge page lie side by side, are aligned to their size, and each goes back alone.
#[test]
fn parts_of_a_huge_page_go_back_one_by_one() {
    let bytes = HUGE_PART_BYTES_MIN;
    let mut parts = Chunk::of_huge_page(bytes);
    if cfg!(all(target_os = "linux", not(miri))) {
        assert_eq!(parts.len() * bytes, CHUNK_BYTES_MAX);
        let first = parts[0].start().addr().get();
        assert_eq!(first % CHUNK_BYTES_MAX, 0, "not one huge page");
        let places = parts.iter().map(|part| part.start().addr().get() - first);
        assert!(places.eq((0..CHUNK_BYTES_MAX).step_by(bytes)));
    }
    while let Some(part) = parts.pop() {
        assert_eq!((part.bytes(), part.start().addr().get() % bytes), (bytes, 0));
        drop(part);
        for left in &parts {
            // SAFETY: the chunk has so many bytes, and nobody else uses them.
            let all = unsafe { std::slice::from_raw_parts_mut(left.start().as_ptr(), bytes) };
            assert!(all.iter().all(|byte| *byte == parts.len() as u8 || *byte == 0));
            all.fill(parts.len() as u8 - 1);
        }
    }
    // What is no part of a huge page is one chunk.
    for bytes in [CHUNK_BYTES_MIN, CHUNK_BYTES_MAX] {
        let chunks = Chunk::of_huge_page(bytes);
        assert_eq!((chunks.len(), chunks[0].bytes()), (1, bytes));
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

/// A cache that grows finds chunks that were made ready: a few, only where it has much room, and none once all is calm.
#[test]
fn a_few_chunks_are_made_ready_for_a_cache_that_grows() {
    let pool = ChunkPool::new(SET);
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let ready = |pool: &ChunkPool| pool.bytes().1 / pool.chunk_bytes();
    let fill = |pool: &ChunkPool| while pool.make_ready() {};
    pool.set_room_of_cache(|| 1000);
    drop(pool.take_for_cache());
    fill(&pool);
    assert_eq!(ready(&pool), 0, "nobody makes any");
    let counted = asked.clone();
    pool.wake_by(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let mut chunks = vec![pool.take_for_cache().unwrap()];
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    fill(&pool);
    assert_eq!(ready(&pool), READY);
    // What is ready is used, and more is asked for before it is used up, once.
    chunks.extend((0..READY).map(|_| pool.take_for_cache().unwrap()));
    assert_eq!((ready(&pool), asked.load(Ordering::Relaxed)), (0, 2));
    for chunk in &chunks {
        // SAFETY: the chunk has so many bytes, and nobody writes to them.
        let all = unsafe { std::slice::from_raw_parts(chunk.start().as_ptr(), chunk.bytes()) };
        assert!(all.iter().all(|byte| *byte == 0));
    }
    fill(&pool);
    // Memtables take none of it.
    drop(pool.take());
    assert_eq!(ready(&pool), READY);
    // The cache has little room left.
    pool.set_room_of_cache(|| ROOM_FOR_READY - 1);
    assert_eq!(ready(&pool), 0);
    drop(pool.take_for_cache());
    fill(&pool);
    assert_eq!(ready(&pool), 0, "the cache needs what is left");
    pool.set_room_of_cache(|| 1000);
    drop(pool.take_for_cache());
    fill(&pool);
    assert_eq!(ready(&pool), READY);
    pool.trim_if(true);
    assert_eq!(pool.bytes(), (0, 0));
    // Small chunks are no huge pages, and are made when they are needed.
    let small = ChunkPool::new(1 << 20);
    small.wake_by(|| ());
    small.set_room_of_cache(|| 1000);
    drop(small.take_for_cache());
    fill(&small);
    assert_eq!(ready(&small), 0);
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
