//! Blocks that come along with one that is wanted: each is read once, none when the cache is full, and damage in one
//! is the business of who wants it.

use super::*;

const KEYS: usize = 9_000;

fn key(number: usize) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

/// Values that the key tells and that become smaller by a third.
fn value(number: usize) -> Vec<u8> {
    let bytes = Random(number as u64).bytes(60);
    [&bytes[..], &bytes].concat()
}

fn run(world: &World, codec: Codec) -> Arc<Run> {
    run_of(world, codec, 4_200)
}

fn run_of(world: &World, codec: Codec, block_bytes: u32) -> Arc<Run> {
    let entries: Vec<Entry> = (0..KEYS).map(|n| (key(n), 1, Kind::Put, value(n))).collect();
    let options = WriterOptions { codec, block_bytes, segment_bytes: 100_000, ..TINY };
    world.run(&Bytewise, Role::Base, options, &entries)
}

/// The stored lengths of all blocks.
fn lens(world: &World, run: &Run) -> Vec<u64> {
    let of = |segment: &Arc<Segment>| {
        let index = segment.index_once(&world.cache, Purpose::Other).unwrap();
        index.places.iter().map(|place| u64::from(place.len)).collect::<Vec<_>>()
    };
    run.segments().iter().flat_map(of).collect()
}

/// Gets each key, in no order.
fn get_all(world: &World, run: &Run) {
    for n in 0..KEYS {
        let n = n * 1_237 % KEYS;
        let found = get(world, run, &Bytewise, &key(n), 9).unwrap().unwrap();
        assert_eq!(found.2, value(n), "key {n}");
    }
}

#[test]
fn while_there_is_room_each_block_is_read_once_and_with_its_neighbours() {
    for codec in [Codec::Raw, Codec::Lz4] {
        let world = World::new(4 << 20);
        let run = run(&world, codec);
        let lens = lens(&world, &run);
        assert!(lens.len() > 300, "{} blocks", lens.len());
        run.segments().iter().for_each(|segment| segment.load(&world.cache).unwrap());
        let (before, file) = (world.cache.stats(), world.mem.file(&world.path(1)));
        let reads = file.reads.load(Relaxed);
        get_all(&world, &run);
        let (after, reads) = (world.cache.stats(), file.reads.load(Relaxed) - reads);
        assert_eq!(after.bytes_read - before.bytes_read, lens.iter().sum::<u64>(), "{codec:?}");
        assert_eq!(after.misses - before.misses, reads);
        assert!(reads as usize <= lens.len() / 8, "{reads} reads of {} blocks", lens.len());
    }
}

#[test]
fn a_scan_begins_with_the_neighbours_of_its_first_block() {
    let world = World::new(4 << 20);
    let run = run(&world, Codec::Lz4);
    let cursor = |n: usize| {
        let cache = Arc::clone(&world.cache);
        let mut cursor = RunCursor::new(Arc::clone(&run), Bytewise, cache, true);
        cursor.seek(&key(n), 9).unwrap();
        assert_eq!((cursor.key(), cursor.value()), (&key(n)[..], &value(n)[..]));
    };
    cursor(2_000);
    let file = world.mem.file(&world.path(1));
    let reads = file.reads.load(Relaxed);
    // Eight blocks, which may lie in two groups.
    (2_000..2_250).step_by(10).for_each(&cursor);
    let reads = file.reads.load(Relaxed) - reads;
    assert!(reads <= 1, "{reads} reads beside that of the first block");
}

#[test]
fn a_full_cache_reads_what_is_wanted_alone() {
    let world = World::new(100_000);
    let run = run(&world, Codec::Lz4);
    let longest = lens(&world, &run).into_iter().max().unwrap();
    get_all(&world, &run);
    let before = world.cache.stats();
    get_all(&world, &run);
    let after = world.cache.stats();
    let (bytes, misses) = (after.bytes_read - before.bytes_read, after.misses - before.misses);
    assert!(misses > 1_000, "{misses} misses");
    assert!(bytes <= misses * longest, "{bytes} bytes for {misses} misses");
}

/// As many as a block has pairs of entries, because so many gets are what a neighbour is worth.
#[test]
fn blocks_of_few_entries_come_with_few_neighbours() {
    let entries: Vec<Entry> =
        (0..KEYS).map(|n| (key(n), 1, Kind::Put, Random(n as u64).bytes(100))).collect();
    let blocks_with = |block_bytes: u32| {
        let world = World::new(4 << 20);
        let options = WriterOptions { block_bytes, segment_bytes: 400_000, ..TINY };
        let run = world.run(&Bytewise, Role::Base, options, &entries);
        let segment = &run.segments()[0];
        segment.load(&world.cache).unwrap();
        let index = segment.index_once(&world.cache, Purpose::Other).unwrap();
        let (blocks, len) = (index.places.len() as u64, lens(&world, &run)[1]);
        let before = world.cache.stats().bytes_read;
        get(&world, &run, &Bytewise, &key(1_600), 9).unwrap().unwrap();
        let read = world.cache.stats().bytes_read - before;
        (segment.meta().entries / blocks, (read + len / 2) / len)
    };
    for block_bytes in [100, 300, 500, 900] {
        let (entries, blocks) = blocks_with(block_bytes);
        assert_eq!(blocks, (entries / 2).max(1), "blocks of {entries} entries");
    }
    let (entries, blocks) = blocks_with(4_000);
    assert!(entries >= 24 && (8..=16).contains(&blocks), "{blocks} blocks of {entries} entries");
}

#[test]
fn a_short_scan_reads_little_that_it_does_not_show() {
    let entries: Vec<Entry> =
        (0..KEYS).map(|n| (key(n), 1, Kind::Put, Random(n as u64).bytes(100))).collect();
    for blocks in [1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 24, 25, 48, 49, 79] {
        let world = World::new(4 << 20);
        let options = WriterOptions { block_bytes: 100, segment_bytes: 200_000, ..TINY };
        let run = world.run(&Bytewise, Role::Base, options, &entries);
        run.segments().iter().for_each(|segment| segment.load(&world.cache).unwrap());
        let (len, before) = (lens(&world, &run)[1], world.cache.stats());
        let cache = Arc::clone(&world.cache);
        let mut cursor = RunCursor::new(Arc::clone(&run), Bytewise, cache, true);
        cursor.seek(&key(100), 9).unwrap();
        (1..blocks).for_each(|_| cursor.next().unwrap());
        assert_eq!(cursor.key(), key(99 + blocks as usize));
        let after = world.cache.stats();
        let read = (after.bytes_read - before.bytes_read) / len;
        assert!((blocks..=2 * blocks).contains(&read), "{read} blocks for {blocks}");
        assert!(after.misses - before.misses <= 5 + blocks / 8, "{blocks} blocks: {after:?}");
    }
}

#[test]
fn large_blocks_come_with_few_neighbours() {
    let world = World::new(64 << 20);
    let entries: Vec<Entry> =
        (0..4_000).map(|n| (key(n), 1, Kind::Put, Random(n as u64).bytes(1_000))).collect();
    let options = WriterOptions { block_bytes: 52_000, segment_bytes: 4 << 20, ..TINY };
    let run = world.run(&Bytewise, Role::Base, options, &entries);
    run.segments()[0].load(&world.cache).unwrap();
    let before = world.cache.stats().bytes_read;
    get(&world, &run, &Bytewise, &key(7), 9).unwrap().unwrap();
    let read = world.cache.stats().bytes_read - before;
    assert!((50_000..200_000).contains(&read), "{read} bytes for one block");
}

/// What is small in a file and large in memory comes alone, too.
#[test]
fn blocks_that_are_large_in_memory_come_alone() {
    let world = World::new(64 << 20);
    let entries: Vec<Entry> =
        (0..4_000).map(|n| (key(n), 1, Kind::Put, vec![n as u8; 1_000])).collect();
    let options =
        WriterOptions { codec: Codec::Lz4, block_bytes: 60_000, segment_bytes: 4 << 20, ..TINY };
    let run = world.run(&Bytewise, Role::Base, options, &entries);
    run.segments()[0].load(&world.cache).unwrap();
    get(&world, &run, &Bytewise, &key(7), 9).unwrap().unwrap();
    let stats = world.cache.stats();
    assert!((60_000..120_000).contains(&stats.bytes), "{stats:?}");
}

#[test]
fn damage_in_a_neighbour_is_left_to_who_wants_it() {
    let world = World::new(4 << 20);
    let run = run_of(&world, Codec::Lz4, 1_000);
    let segment = &run.segments()[0];
    let index = segment.index_once(&world.cache, Purpose::Other).unwrap();
    let place = &index.places[37];
    world.mem.file(&world.path(1)).bytes.lock()[place.offset as usize + 20] ^= 1;
    let (mut found, mut damaged) = (0, 0);
    for n in 0..KEYS {
        match get(&world, &run, &Bytewise, &key(n), 9) {
            Ok(entry) => {
                assert_eq!(entry.unwrap().2, value(n));
                found += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                damaged += 1;
            }
        }
    }
    assert!((1..20).contains(&damaged), "{damaged} keys are damaged");
    assert_eq!(found + damaged, KEYS);
}
