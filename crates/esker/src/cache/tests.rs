use super::*;
use crate::base::{Bytewise, Kind};
use crate::block::{Builder, Layout};
use crate::budget::ChunkPool;
use crate::error::Error;
use crate::sync::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// About the bytes of the blocks below.
const BYTES: u64 = 1200;

/// A block with one entry whose value repeats `number`.
fn raw_block(number: usize, len: usize) -> Vec<u8> {
    let mut builder = Builder::default();
    builder.reset(true);
    builder.add(b"key", 1, 0, Kind::Put, &vec![number as u8; len]);
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    bytes
}

/// The same in a frame.
pub(super) fn frame(cache: &BlockCache, number: usize, len: usize) -> FrameBuf {
    frame_for(cache, Kept::Yes, number, len)
}

fn frame_for(cache: &BlockCache, kept: Kept, number: usize, len: usize) -> FrameBuf {
    let bytes = raw_block(number, len);
    let mut frame = cache.frame_for(kept, bytes.len());
    frame.bytes_mut().copy_from_slice(&bytes);
    frame.set_layout(Layout::parse(&bytes).unwrap());
    frame
}

pub(super) fn number_of(view: FrameView<'_>) -> usize {
    let block = view.block();
    assert_eq!(block.get(&Bytewise, b"key", 1, 1), Some(0));
    let value = block.value(0);
    assert!(value.iter().all(|byte| *byte == value[0]), "bytes of one frame only");
    value[0].into()
}

pub(super) fn load(slots: &Arc<Slots>, i: usize) -> FramePin {
    slots.load(i, BYTES, |_| Ok(frame(slots.cache(), i, 1000))).unwrap()
}

#[test]
fn a_loaded_block_is_found_until_it_is_evicted() {
    let cache = Arc::new(BlockCache::new(10_000));
    let slots = Arc::new(Slots::new(&cache, 100));
    assert!(slots.pin(0).is_none());
    let pinned = load(&slots, 0);
    assert!(slots.pin(0).is_some());
    for i in 1..100 {
        assert_eq!(number_of(load(&slots, i).view()), i);
    }
    assert!(slots.pin(0).is_none(), "evicted");
    assert_eq!(number_of(pinned.view()), 0, "but still readable");
    let stats = cache.stats();
    assert!(stats.bytes <= 10_000 && stats.bytes > 5_000, "{stats:?}");
    assert_eq!((stats.hits, stats.misses), (0, 100));
    slots.clear();
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn blocks_that_are_used_survive_a_scan() {
    let cache = Arc::new(BlockCache::new(40_000));
    let (hot, cold) = (Arc::new(Slots::new(&cache, 10)), Arc::new(Slots::new(&cache, 1000)));
    for i in 0..10 {
        load(&hot, i);
    }
    for i in 0..1000 {
        load(&cold, i % 250);
        let guard = pin();
        if let Some(view) = hot.get(i % 10, &guard) {
            view.touch();
        }
    }
    let kept = (0..10).filter(|i| hot.pin(*i).is_some()).count();
    assert_eq!(kept, 10);
    hot.clear();
    cold.clear();
}

#[test]
fn a_block_that_comes_back_soon_enters_the_main_queue() {
    let cache = Arc::new(BlockCache::new(20_000));
    let slots = Arc::new(Slots::new(&cache, 300));
    // Fills the cache; block 0 leaves the small queue unused.
    (0..30).for_each(|i| drop(load(&slots, i)));
    assert!(slots.pin(0).is_none());
    (0..2).for_each(|_| drop(load(&slots, 0)));
    // A scan passes through the small queue and leaves the main queue alone.
    (30..300).for_each(|i| drop(load(&slots, i)));
    assert!(slots.pin(0).is_some());
    slots.clear();
}

#[test]
fn frames_too_large_to_keep_are_still_readable() {
    let cache = Arc::new(BlockCache::new(10_000));
    let slots = Arc::new(Slots::new(&cache, 2));
    let pin = slots.load(0, BYTES, |_| Ok(frame(&cache, 7, 5000))).unwrap();
    assert_eq!(number_of(pin.view()), 7);
    assert!(slots.pin(0).is_none());
    assert_eq!(cache.stats().bytes, 0);
    let before = cache.stats().allocated;
    drop(pin);
    assert!(cache.stats().allocated + 5000 <= before);
}

#[test]
fn what_is_not_kept_takes_memory_that_its_thread_used_before() {
    let cache = Arc::new(BlockCache::new(0));
    let slots = Arc::new(Slots::new(&cache, 200));
    let once = |i: usize, len: usize| {
        let read = |kept| {
            assert_eq!(kept, Kept::No);
            Ok(frame_for(&cache, kept, i, len))
        };
        slots.load(i, BYTES, read).unwrap()
    };
    let mut places = std::collections::HashSet::new();
    let before = cache.stats().allocated;
    for i in 0..50 {
        let pin = once(i, 10 + 200 * i);
        assert_eq!(number_of(pin.view()), i);
        places.insert(pin.bytes().as_ptr());
    }
    assert_eq!(places.len(), 1, "one after the other, they need memory for one");
    // Several at once, small and large, of which each has its own; freed in any order, here and by another thread.
    let pins: Vec<_> = (0..100).map(|i| once(i, 300 * i + 10)).collect();
    let mut others = Vec::new();
    for (i, pin) in pins.into_iter().enumerate() {
        assert_eq!(number_of(pin.view()), i);
        if i % 3 != 0 {
            others.push((i, pin));
        }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (i, pin) in others.into_iter().rev() {
                assert_eq!(number_of(pin.view()), i);
                drop(pin);
                assert_eq!(number_of(once(i + 1, 500).view()), i + 1);
            }
        });
    });
    assert_eq!(number_of(once(7, 5000).view()), 7);
    assert_eq!(cache.stats().allocated, before);
    assert_eq!(cache.stats().bytes, 0);
}

/// Whoever keeps a block is told so before it is read, and reads it alone; nobody waits for a block that is not kept.
#[test]
fn whether_a_block_is_kept_is_known_before_it_is_read() {
    let cache = Arc::new(BlockCache::new(100_000));
    let slots = Arc::new(Slots::new(&cache, 1000));
    let (mut kept, mut not) = (0, 0);
    for i in 0..1000 {
        let mut told = None;
        let read = |keep| {
            told = Some(keep);
            Ok(frame_for(&cache, keep, i, 1000))
        };
        let pin = slots.load(i, BYTES, read).unwrap();
        assert_eq!(number_of(pin.view()), i % 256);
        // Otherwise the cache would hold what nobody reads, and keep all.
        pin.view().touch();
        assert_eq!(slots.pin(i).is_some(), told == Some(Kept::Yes), "{i}");
        match told.unwrap() {
            Kept::Yes => kept += 1,
            Kept::No => not += 1,
        }
    }
    assert!(kept > 100 && not > 500, "{kept} were kept, {not} were not");
    // A reader of a block that is not kept, in the middle of which another one reads it.
    let i = (0..1000).find(|i| slots.is_vacant(*i)).unwrap();
    cache.set_capacity(0);
    let outer = slots.load(i, BYTES, |keep| {
        let inner = slots.load(i, BYTES, |keep| Ok(frame_for(&cache, keep, i, 1000)))?;
        assert_eq!(number_of(inner.view()), i % 256);
        Ok(frame_for(&cache, keep, i, 1000))
    });
    assert_eq!(number_of(outer.unwrap().view()), i % 256);
    slots.clear();
}

#[test]
fn a_failed_load_leaves_the_slot_empty() {
    let cache = Arc::new(BlockCache::new(10_000));
    let slots = Arc::new(Slots::new(&cache, 1));
    assert!(slots.load(0, BYTES, |_| Err(Error::Closed)).is_err());
    assert!(slots.pin(0).is_none());
    assert_eq!(number_of(load(&slots, 0).view()), 0);
    slots.clear();
}

#[test]
fn capacity_can_shrink() {
    let cache = Arc::new(BlockCache::new(100_000));
    let slots = Arc::new(Slots::new(&cache, 50));
    (0..50).for_each(|i| drop(load(&slots, i)));
    assert!(cache.stats().bytes > 40_000);
    cache.set_capacity(5_000);
    assert!(cache.stats().bytes <= 5_000);
    cache.set_capacity(0);
    assert_eq!(cache.stats().bytes, 0);
    slots.clear();
}

#[test]
fn at_most_one_thread_reads_a_block() {
    let cache = Arc::new(BlockCache::new(1 << 20));
    let slots = Arc::new(Slots::new(&cache, 1));
    let reads = AtomicUsize::new(0);
    let barrier = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                let read = |_| {
                    reads.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                    Ok(frame(&cache, 3, 100))
                };
                assert_eq!(number_of(slots.load(0, BYTES, read).unwrap().view()), 3);
            });
        }
    });
    assert_eq!(reads.into_inner(), 1);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (3, 1));
    slots.clear();
}

#[test]
fn what_nobody_asked_for_takes_free_room_only() {
    let cache = Arc::new(BlockCache::new(20_000));
    let (read, written) = (Arc::new(Slots::new(&cache, 10)), Arc::new(Slots::new(&cache, 30)));
    (0..10).for_each(|i| drop(load(&read, i)));
    assert!(cache.room() > 5_000, "{}", cache.room());
    (0..30).for_each(|i| written.offer_to_room(i, frame(&cache, i, 1000)));
    assert!(
        (0..10).all(|i| read.pin(i).is_some()),
        "a block that was read left for one that was not"
    );
    let kept = (0..30).filter(|i| written.pin(*i).is_some()).count();
    assert!((4..=9).contains(&kept), "{kept}");
    assert!(cache.stats().bytes <= 20_000 && cache.room() < 1_200, "{}", cache.room());
    // A slot that is taken stays as it is.
    written.offer_to_room(0, frame(&cache, 7, 10));
    assert_eq!(number_of(written.pin(0).unwrap().view()), 0);
    // What is offered again when there is room is kept, and counts as read once: blocks that come
    // back push it out.
    read.clear();
    written.offer_to_room(29, frame(&cache, 29, 1000));
    assert_eq!(number_of(written.pin(29).unwrap().view()), 29);
    written.clear();
    assert_eq!(cache.stats().bytes, 0);
}

/// What is written counts as cached before it has slots: reads that fill the cache meanwhile leave it its room, two
/// that write at once share it, and what is given up takes none.
#[test]
fn what_waits_for_its_slots_is_part_of_the_cache() {
    let cache = Arc::new(BlockCache::new(100_000));
    let read = Arc::new(Slots::new(&cache, 200));
    let raw = raw_block(7, 1_000);
    let mut writers = [Waiting::new(&cache), Waiting::new(&cache)];
    writers.iter_mut().for_each(|writer| writer.begin(50_000));
    (0..18).for_each(|_| writers.iter_mut().for_each(|writer| writer.keep(&raw)));
    (0..200).for_each(|i| drop(load(&read, i)));
    let both = || (cache.stats().bytes, cache.waiting().load(Ordering::Relaxed));
    let (cached, waiting) = both();
    assert!(waiting > 36 * 1_000 && cached > 10_000, "{waiting} bytes wait beside {cached}");
    assert!(cached + waiting <= 100_000, "{waiting} bytes wait beside {cached}");
    // The next ones have no room, and those that go on soon have none either: both give up.
    let mut third = Waiting::new(&cache);
    third.begin(50_000);
    third.keep(&raw);
    assert!(!third.end());
    (0..60).for_each(|_| writers.iter_mut().for_each(|writer| writer.keep(&raw)));
    assert!(writers.iter_mut().any(|writer| !writer.end()), "both fit");
    drop((writers, third));
    (0..200).for_each(|i| drop(load(&read, i)));
    let (cached, waiting) = both();
    assert!(cached > 90_000 && cached <= 100_000 && waiting == 0, "{cached} {waiting}");
    // Two that begin beside what is cached do not both take what is left.
    read.clear();
    (0..60).for_each(|i| drop(load(&read, i)));
    let room = cache.room();
    assert!(room > 15_000 && room < 40_000, "{room}");
    let mut writers = [Waiting::new(&cache), Waiting::new(&cache)];
    writers.iter_mut().for_each(|writer| writer.begin(10_000));
    for _ in 0..room / 1_500 {
        writers.iter_mut().for_each(|writer| writer.keep(&raw));
        assert!(both().1 <= room, "{} of {room} wait", both().1);
    }
    drop(writers);
    // A capacity that becomes smaller ends the waiting of more than half of it.
    read.clear();
    let mut writer = Waiting::new(&cache);
    writer.begin(50_000);
    (0..20).for_each(|_| writer.keep(&raw));
    cache.set_capacity(30_000);
    writer.keep(&raw);
    assert!(!writer.end() && both().1 == 0);
    cache.set_capacity(100_000);
    // What ends goes into its slots.
    read.clear();
    let slots = Slots::new(&cache, 30);
    let mut writer = Waiting::new(&cache);
    writer.begin(50_000);
    (0..30).for_each(|_| writer.keep(&raw));
    assert!(writer.end());
    writer.offer(&slots);
    assert!((0..30).all(|i| slots.pin(i).is_some()));
    assert_eq!(both().1, 0);
    slots.clear();
}

/// Frames of all sizes that come and go: each keeps its bytes, and memory that none uses goes back
/// to the system.
#[test]
#[cfg(target_os = "linux")]
fn frames_share_chunks_which_are_small_in_a_small_cache() {
    frames_share_chunks(256 << 20, 2 << 20);
    frames_share_chunks(20 << 20, 256 << 10);
    // A very small one has none.
    let small = BlockCache::new(2 << 20);
    let held: Vec<_> = (0..400).map(|_| small.frame(4200)).collect();
    assert_eq!((small.mapped(), held.len()), (0, 400));
}

#[cfg(target_os = "linux")]
fn frames_share_chunks(capacity: u64, chunk: usize) {
    let cache = BlockCache::new(capacity);
    let many = chunk / 210;
    let filled = |number: usize, len: usize| {
        let mut frame = cache.frame(len);
        frame.bytes_mut().fill(number as u8);
        (frame, number as u8)
    };
    let check = |(frame, number): &mut (FrameBuf, u8)| {
        assert!(frame.bytes_mut().iter().all(|byte| byte == number), "another frame's bytes");
    };
    // A few frames of a size are not worth a chunk.
    let mut frames: Vec<_> = (0..many / 10).map(|i| filled(i, 4200)).collect();
    assert_eq!(cache.mapped(), 0);
    frames.extend((many / 10..many).map(|i| filled(i, 4200)));
    let bytes = cache.stats().allocated as usize;
    let chunks = cache.mapped();
    assert!(chunks > 15 * chunk && chunks < bytes, "{chunks} of {bytes}");
    assert!(bytes < many * (4200 + 128) * 17 / 16, "{bytes}");
    let mut random = 1u64;
    for round in 0..6 * many {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        let at = (random >> 33) as usize % frames.len();
        check(&mut frames[at]);
        let len = if round % 8 == 0 { 1 + (random >> 40) as usize % 70_000 } else { 4200 };
        if round % 3 == 0 {
            frames.swap_remove(at);
        } else if frames.len() < many {
            frames.push(filled(round, len));
        }
    }
    frames.iter_mut().for_each(check);
    // One empty chunk per size may stay.
    frames.clear();
    assert_eq!(cache.stats().allocated, 0);
    assert!(cache.mapped() <= 8 * chunk, "{}", cache.mapped());
}

/// Readers, pins, loads, drops of whole segments and a capacity for few blocks, all at once.
#[test]
fn contents_are_right_under_eviction() {
    let cache = Arc::new(BlockCache::new(12_000));
    let shared = Arc::new(Slots::new(&cache, 64));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (cache, shared) = (&cache, &shared);
            scope.spawn(move || {
                let mut random = thread + 1;
                let mut pins = Vec::new();
                for round in 0..6000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                    let i = (random >> 33) as usize % 64;
                    {
                        let guard = pin();
                        if let Some(view) = shared.get(i, &guard) {
                            view.touch();
                            assert_eq!(number_of(view), i);
                        }
                    }
                    let pin = load(shared, i);
                    assert_eq!(number_of(pin.view()), i);
                    if round % 16 == 0 {
                        pins.push((i, pin));
                    }
                    if pins.len() > 5 {
                        let (i, pin) = pins.swap_remove(random as usize % 5);
                        assert_eq!(number_of(pin.view()), i);
                    }
                    if round % 100 == 0 {
                        let own = Arc::new(Slots::new(cache, 8));
                        (0..8).for_each(|i| assert_eq!(number_of(load(&own, i).view()), i));
                        own.clear();
                        assert!((0..8).all(|i| own.pin(i).is_none()));
                    }
                }
                for (i, pin) in pins {
                    assert_eq!(number_of(pin.view()), i);
                }
            });
        }
    });
    assert!(cache.stats().bytes <= 12_000);
    shared.clear();
    assert_eq!(cache.stats().bytes, 0);
    let (hits, misses) = (cache.stats().hits, cache.stats().misses);
    assert_eq!(hits + misses, 4 * (6000 + 60 * 8), "exact counts");
}

#[test]
fn what_waits_for_a_reader_is_bounded() {
    const CAPACITY: u64 = 4 << 20;
    let cache = Arc::new(BlockCache::new(CAPACITY));
    let slots = Arc::new(Slots::new(&cache, 20_000));
    // A reader that is not scheduled inside its epoch.
    let guard = pin();
    let mut most = 0;
    for i in 0..20_000 {
        assert_eq!(number_of(load(&slots, i).view()), i % 256);
        most = most.max(cache.stats().allocated);
    }
    assert!(most <= CAPACITY + CAPACITY / 4 + (64 << 10), "{most} bytes of blocks");
    assert!(cache.stats().bytes > CAPACITY / 2, "those that were there stay");
    drop(guard);
    // When it is gone, blocks enter the cache again.
    let enters = |i: usize| {
        pin().flush();
        drop(load(&slots, i));
        slots.pin(i).is_some()
    };
    assert!((0..).any(|round| enters(round % 1000)), "nothing is freed");
    slots.clear();
}

/// What frames leave, memtables take, and the other way round; together they keep to the bounds of both.
#[test]
#[cfg(target_os = "linux")]
fn chunks_wait_for_memtables_and_for_frames() {
    let (set, capacity) = (8 << 20, 160 << 20);
    let pool = Arc::new(ChunkPool::new(set));
    let chunk = pool.chunk_bytes();
    let cache = Arc::new(BlockCache::with_pool(capacity, &pool));
    let waiting = || pool.bytes().0 + pool.bytes().1;
    let fill = || (0..20_000).map(|_| cache.frame(4200)).collect::<Vec<_>>();
    let frames = fill();
    let mapped = cache.mapped();
    assert!(mapped > 64 << 20, "{mapped}");
    drop(frames);
    assert!(waiting() >= mapped - 2 * chunk, "{} of {mapped} wait", waiting());
    assert!(waiting() + cache.mapped() <= set + capacity as usize);
    let before = waiting();
    let of_memtable = pool.take();
    assert_eq!(waiting(), before - chunk);
    pool.give(of_memtable.unwrap());
    // For the same frames little is mapped that was not there: the first of them came from the allocator,
    // and half of a set's chunks are left for memtables.
    let frames = fill();
    let now = waiting() + cache.mapped();
    assert!(now <= before + 10 * chunk, "{now} instead of {before}");
    drop(frames);
    // What else the cache has leaves less to wait.
    let others: Vec<_> = (0..100).map(|_| cache.frame(1_000_000)).collect();
    let bytes = others.len() * 1_000_000;
    cache.charge_index(0, 0);
    assert!(waiting() + bytes + cache.mapped() <= set + capacity as usize, "{}", waiting());
    drop(others);
    // A smaller cache may have less.
    cache.set_capacity(16 << 20);
    assert!(waiting() <= set + (16 << 20), "{}", waiting());
}

/// Each page that goes back interrupts all threads, so free pieces wait for frames of their size while the cache has not
/// what it may have, and no longer.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
fn free_pieces_wait_while_the_cache_has_room() {
    let capacity = 160 << 20;
    let pool = Arc::new(ChunkPool::new(8 << 20));
    let cache = Arc::new(BlockCache::with_pool(capacity, &pool));
    let frames = |count: usize, bytes| (0..count).map(|_| cache.frame(bytes)).collect::<Vec<_>>();
    let (mut number, mut kept) = (0, frames(2_500, 33_000));
    kept.retain(|_| {
        number += 1;
        number % 4 == 0
    });
    assert!(cache.unused() > 55 << 20, "{} bytes wait", cache.unused());
    // Frames of another size take more than what is left.
    let others = frames(2_000, 66_000);
    let used = (kept.len() * 33_000 + others.len() * 66_000) as u64;
    let resident = used + cache.unused();
    assert!(resident <= capacity + capacity / 8, "{resident} bytes, of which {used} are used");
}

/// The slices of indexes that come and go at random, as those of a tree do that is larger than the cache: each keeps
/// its elements, their chunks take little more than they do, and nothing is left of them.
#[test]
#[cfg(target_os = "linux")]
fn slices_of_indexes_share_chunks_without_holes() {
    for mib in [10, 40, 400] {
        let cache = BlockCache::new(mib << 20);
        let filled = |number: u64, bytes: usize| {
            (number, Slice::collect(Some(cache.memory()), bytes / 8, std::iter::repeat(number)))
        };
        let check = |(number, slice): &(u64, Slice<u64>)| {
            assert!(slice.iter().all(|word| word == number), "elements of another slice");
        };
        // The sizes of the parts of one index. Data that compress well have larger ones, last segments smaller ones.
        let mut rng = esker_testkit::Rng::new(mib);
        let mut bytes = |n: u64| {
            let usual = [11_000, 2_200, 2_200, 3_300, 6_600, 2_200][n as usize % 6];
            (usual * (16 << rng.below(3)) / 16 + rng.below(usual)) as usize
        };
        let count = (mib << 20) / 18_000;
        let mut slices: Vec<_> = (0..count).map(|n| filled(n, bytes(n))).collect();
        let taken = |slices: &[(u64, Slice<u64>)]| -> usize {
            slices.iter().map(|(_, slice)| slice.memory()).sum()
        };
        let mut random = esker_testkit::Rng::new(mib + 1);
        for n in 0..8 * count {
            let at = random.below(count) as usize;
            check(&slices[at]);
            let of_its_kind = bytes(slices[at].0);
            slices[at] = filled(slices[at].0, of_its_kind);
            if n % count == 0 {
                let (resident, taken) = (cache.mapped_for_slices().1, taken(&slices));
                let most = taken / 4 * 5 + (1 << 20);
                assert!(resident <= most, "{resident} bytes for {taken} with {mib} MiB");
            }
        }
        slices.iter().for_each(check);
        assert!(taken(&slices) as u64 > (mib << 20) / 3, "most have chunks");
        assert!(cache.mapped_for_slices().1 as u64 > (mib << 20) / 3);
        drop(slices);
        // A few chunks wait for the next slices.
        assert!(cache.mapped_for_slices().0 as u64 <= (mib << 20) / 160 * 4);
    }
}

/// The chunks of many slices are parts of huge pages; few slices take none, and of what is free one waits at most, beside
/// a few chunks.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn many_slices_lie_in_huge_pages() {
    const HUGE: usize = 2 << 20;
    let cache = BlockCache::new(400 << 20);
    let slice = |_| Slice::collect(Some(cache.memory()), 400, std::iter::repeat(1_u64));
    let mut slices = vec![slice(0)];
    let chunk = cache.mapped_for_slices().0;
    assert!(chunk <= HUGE / 8, "one slice has {chunk} bytes");
    let (mut before, mut steps) = (chunk, Vec::new());
    while before < 8 * HUGE {
        slices.push(slice(0));
        let now = cache.mapped_for_slices().0;
        if now > before {
            steps.push(now - before);
        }
        before = now;
    }
    let few = steps.iter().take_while(|step| **step == chunk).count();
    assert_eq!(few + 1, 4 * HUGE / chunk, "chunks one by one");
    assert!(steps[few..].iter().all(|step| *step == HUGE), "{steps:?}");
    assert!(slices.iter().all(|slice| slice.iter().all(|word| *word == 1)));
    drop(slices);
    let waits = cache.mapped_for_slices().0;
    assert!(waits <= HUGE + 4 * chunk, "{waits} bytes wait");
    assert!(cache.unused() >= waits as u64, "what waits is counted");
}

/// What a cache that shrinks leaves behind in chunks that stay: their free pieces take no memory, the others keep what is
/// in them, and what is taken again is used again.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn free_pieces_in_chunks_that_stay_are_given_back() {
    for (mib, seed) in [(10, 1), (64, 2)] {
        let cache = BlockCache::new(mib << 20);
        let mut random = esker_testkit::Rng::new(seed);
        let mut filled = |number: u64| {
            let words = 300 + random.below(2_500) as usize;
            let items = std::iter::repeat(number);
            (number, Slice::<u64>::collect(Some(cache.memory()), words, items))
        };
        let check = |(number, slice): &(u64, Slice<u64>)| {
            assert!(slice.iter().all(|word| word == number), "elements of another slice");
        };
        let count = (mib << 20) / 12_400;
        let mut slices: Vec<_> = (0..count).map(&mut filled).collect();
        let mut random = esker_testkit::Rng::new(seed + 2);
        for round in 0..3 {
            // Three of four go, from all chunks.
            slices.retain(|_| random.below(4) == 0);
            slices.iter().for_each(check);
            let taken: usize = slices.iter().map(|(_, slice)| slice.memory()).sum();
            let resident = cache.mapped_for_slices().1;
            let most = taken + ((mib << 20) / 32).max(256 << 10) as usize + (32 << 10);
            assert!(resident <= most, "{resident} bytes for {taken} with {mib} MiB");
            assert!(cache.unused() as usize >= resident - taken);
            slices.extend((0..count * 3 / 4).map(|n| filled(round * count + n)));
            slices.iter().for_each(check);
        }
    }
}

/// Pieces that hold no whole page stay resident when they are free, and are counted.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn free_pieces_that_cannot_be_given_back_are_counted() {
    let cache = BlockCache::new(64 << 20);
    let count = 4_000;
    let filled =
        |number| Slice::collect(Some(cache.memory()), 4_300 / 8, std::iter::repeat(number));
    let slices: Vec<Slice<u64>> = (0..count).map(filled).collect();
    let before = cache.unused();
    let mut number = 0;
    let kept: Vec<_> = slices
        .into_iter()
        .filter(|_| {
            number += 1;
            number % 2 == 0
        })
        .collect();
    let free = kept.iter().map(|slice| slice.memory() as u64).sum::<u64>();
    let counted = cache.unused() - before;
    assert!(
        counted >= free / 10 * 9 && counted <= free / 10 * 11,
        "{counted} of {free} are counted"
    );
    // The same memory is counted once when it is taken again.
    let again: Vec<_> = (0..count / 2).map(filled).collect();
    let counted = cache.unused() - before;
    assert!(counted <= free / 10, "{counted} bytes of pieces in use are counted as free");
    drop((kept, again));
    let waits = (64 << 20) / 160 * 4;
    assert!(cache.unused() <= waits, "{} bytes are left", cache.unused());
}

#[test]
fn a_slice_owns_its_elements() {
    let counted = Arc::new(());
    let cache = BlockCache::new(64 << 20);
    for (home, count) in [
        (Some(cache.memory()), 0),
        (None, 3),
        (Some(cache.memory()), 3),
        (Some(cache.memory()), 5_000),
    ] {
        let items = std::iter::repeat_with(|| Arc::clone(&counted));
        let slice = Slice::collect(home, count, items);
        assert_eq!((slice.len(), Arc::strong_count(&counted)), (count, count + 1));
        assert_eq!(slice.as_ptr() as usize % 64 * usize::from(count > 0), 0, "aligned");
        let few = Slice::collect(home, count, slice.iter().take(2).cloned());
        assert_eq!(few.len(), count.min(2));
        drop((slice, few));
        assert_eq!(Arc::strong_count(&counted), 1);
    }
    let parts = || ["one".as_bytes(), b"", b"two"];
    assert_eq!(&*Slice::concat(Some(cache.memory()), 6, parts()), b"onetwo");
    assert_eq!(&*Slice::concat(None, 4, parts()), b"onet");
    assert!(Slice::concat(None, 0, parts()).is_empty());
}
