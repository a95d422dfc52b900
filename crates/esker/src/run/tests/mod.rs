mod dictionaries;
mod hostile;
pub mod memfs;
mod model;
mod neighbours;
mod open_files;
mod separated;
mod stored;

use super::*;
use crate::base::codec::hash_key;
use crate::base::rangedel::{Fragments, RangeTombstone};
use crate::base::{Bytewise, Comparator, Cursor, CustomOrder, KeyOrder, Kind, Seq};
use crate::block::Codec;
use crate::cache::BlockCache;
use crate::error::{Error, ErrorKind, Result};
use crate::fs::Fs;
use crate::trace::{Plain, Purpose};
use memfs::MemFs;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

pub type Entry = (Vec<u8>, Seq, Kind, Vec<u8>);

/// Bytes from last to first, so that order and bytes disagree.
struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &str {
        "backwards"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.iter().rev().cmp(b.iter().rev())
    }
}

pub fn backwards() -> CustomOrder {
    CustomOrder::new(Arc::new(Backwards))
}

/// A small generator (splitmix64), so that a seed replays a test.
pub struct Random(pub u64);

impl Random {
    pub fn seeded(name: &str) -> Self {
        let given = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.unwrap().subsec_nanos().into()
        });
        println!("{name}: ESKER_SEED={seed}");
        Self(seed)
    }
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

#[derive(Debug, Default)]
pub struct Notes {
    files: Mutex<Vec<u64>>,
    slices: Mutex<Vec<(u64, u64, u64)>>,
}

impl Reclaim for Notes {
    fn file(&self, id: u64) {
        self.files.lock().push(id);
    }
    fn slice(&self, id: u64, offset: u64, len: u64) {
        self.slices.lock().push((id, offset, len));
    }
    fn values(&self) {}
}

pub struct World {
    pub mem: Arc<MemFs>,
    pub fs: Arc<dyn Fs>,
    pub dir: PathBuf,
    pub cache: Arc<BlockCache>,
    pub notes: Arc<Notes>,
}

impl World {
    pub fn new(cache_bytes: u64) -> Self {
        let mem = Arc::new(MemFs::default());
        Self {
            fs: Arc::clone(&mem) as Arc<dyn Fs>,
            mem,
            dir: "/data".into(),
            cache: Arc::new(BlockCache::new(cache_bytes)),
            notes: Arc::default(),
        }
    }

    pub fn write<O: KeyOrder>(
        &self,
        order: &O,
        id: u64,
        options: WriterOptions,
        entries: &[Entry],
    ) -> Vec<SegmentMeta> {
        let mut writer = RunWriter::create(&self.fs, &self.dir, id, options).unwrap();
        for (key, seq, kind, value) in entries {
            writer.add(order, key, *seq, *kind, value).unwrap();
        }
        metas(writer.finish().unwrap())
    }

    pub fn segments(&self, id: u64, metas: &[SegmentMeta]) -> Vec<Arc<Segment>> {
        let notes = Arc::clone(&self.notes) as Arc<dyn Reclaim>;
        let file = RunFile::new(&self.fs, &self.dir, id, Some(notes), None);
        metas.iter().map(|meta| Segment::new(meta.clone(), Arc::clone(&file))).collect()
    }

    pub fn run<O: KeyOrder>(
        &self,
        order: &O,
        role: Role,
        options: WriterOptions,
        entries: &[Entry],
    ) -> Arc<Run> {
        let metas = self.write(order, 1, options, entries);
        Arc::new(Run::new(role, self.segments(1, &metas), Vec::new()))
    }

    pub fn path(&self, id: u64) -> PathBuf {
        self.dir.join(file_name(id))
    }
}

fn metas(written: Vec<Written>) -> Vec<SegmentMeta> {
    written.into_iter().map(|written| written.meta).collect()
}

pub const TINY: WriterOptions = WriterOptions {
    segment_bytes: 2000,
    block_bytes: 300,
    codec: Codec::Raw,
    bits_per_key: 10,
    collected_bytes: 4 << 10,
    values_codec: Codec::Raw,
    separate_from: u32::MAX,
    piece_bytes: 100,
};

pub fn numbered(range: std::ops::Range<u32>) -> Vec<Entry> {
    range
        .map(|i| (format!("key{i:08}").into_bytes(), 0, Kind::Put, i.to_string().into_bytes()))
        .collect()
}

pub fn get<O: KeyOrder>(
    world: &World,
    run: &Run,
    order: &O,
    key: &[u8],
    below: Seq,
) -> Result<Option<(Seq, Kind, Vec<u8>)>> {
    let wanted = Wanted { key, hash: hash_key(key), below, doubtful: false };
    let cached = {
        let guard = crate::sync::pin();
        let access = Access::Cached(&guard);
        match run.get(order, wanted, access, &world.cache, &mut Plain)? {
            Probe::NeedsIo => None,
            Probe::Absent => Some(None),
            Probe::Found(f) => Some(Some((f.seq, f.kind, f.value().to_vec()))),
        }
    };
    let read = match run.get(order, wanted, Access::Read, &world.cache, &mut Plain)? {
        Probe::NeedsIo => panic!("reading may do I/O"),
        Probe::Absent => None,
        Probe::Found(f) => Some((f.seq, f.kind, f.value().to_vec())),
    };
    if let Some(cached) = cached {
        assert_eq!(cached, read, "both kinds of access agree");
    }
    Ok(read)
}

#[test]
fn meta_survives_encoding() {
    let world = World::new(1 << 20);
    let metas = world.write(&Bytewise, 7, TINY, &numbered(0..2000));
    assert!(metas.len() > 3, "several segments");
    for meta in &metas {
        let mut bytes = Vec::new();
        meta.encode(&mut bytes);
        let mut reader = crate::base::codec::Reader::new(&bytes);
        assert_eq!(SegmentMeta::decode(&mut reader).unwrap(), *meta);
        assert!(reader.is_empty());
        for cut in 0..bytes.len() {
            assert!(
                SegmentMeta::decode(&mut crate::base::codec::Reader::new(&bytes[..cut])).is_err()
            );
        }
    }
    let total: u64 = metas.iter().map(|meta| meta.entries).sum();
    assert_eq!(total, 2000);
    assert_eq!(metas[0].min_key, b"key00000000");
    assert_eq!(metas.last().unwrap().max_key, b"key00001999");
}

#[test]
fn cached_reads_do_no_io() {
    let world = World::new(1 << 20);
    for role in [Role::Base, Role::Delta] {
        let world = if role == Role::Base { &world } else { &World::new(1 << 20) };
        let run = world.run(&Bytewise, role, TINY, &numbered(0..500));
        let file = world.mem.file(&world.path(1));
        let cached = |key: &[u8]| {
            let guard = crate::sync::pin();
            let access = Access::Cached(&guard);
            let reads = file.reads.load(Relaxed);
            let wanted = Wanted { key, hash: hash_key(key), below: 9, doubtful: false };
            let probe = run.get(&Bytewise, wanted, access, &world.cache, &mut Plain).unwrap();
            assert_eq!(file.reads.load(Relaxed), reads);
            format!("{:?}", std::mem::discriminant(&probe))
        };
        let needs_io = format!("{:?}", std::mem::discriminant(&Probe::NeedsIo));
        assert_eq!(cached(b"key00000100"), needs_io);
        let found = get(world, &run, &Bytewise, b"key00000100", 9).unwrap().unwrap();
        assert_eq!(found.2, b"100");
        // Both ways of reading take it from the cache now: one finds it there without I/O, the
        // other counts what it finds there.
        assert_ne!(cached(b"key00000100"), needs_io);
        let (before, reads) = (world.cache.stats(), file.reads.load(Relaxed));
        assert_eq!(get(world, &run, &Bytewise, b"key00000100", 9).unwrap().unwrap().2, b"100");
        let after = world.cache.stats();
        assert_eq!((after.hits, after.misses), (before.hits + 1, before.misses));
        assert_eq!(file.reads.load(Relaxed), reads);
        // The filter spares the read of an absent key's block.
        let absent = (0..100).filter(|i| cached(format!("key00000400{i}").as_bytes()) != needs_io);
        assert_eq!(absent.count(), 0, "the segment of these is not loaded");
        run.segments().iter().for_each(|segment| segment.load(&world.cache).unwrap());
        let absent = (0..100).filter(|i| cached(format!("key00000400{i}").as_bytes()) != needs_io);
        assert!(absent.count() > 90, "most are excluded by the filter");
        let stats = world.cache.stats();
        // Gets that find their block are counted by the database, from what they are not.
        assert!(stats.misses > 0 && stats.index_bytes > 0);
    }
}

#[test]
fn dropping_a_run_empties_the_cache() {
    let world = World::new(1 << 20);
    let run = world.run(&Bytewise, Role::Base, TINY, &numbered(0..500));
    for i in 0..500 {
        get(&world, &run, &Bytewise, format!("key{i:08}").as_bytes(), 1).unwrap().unwrap();
    }
    let cached = world.cache.stats().bytes;
    assert!(cached > 9_000, "{cached}");
    let key = b"key00000007";
    let wanted = Wanted { key, hash: hash_key(key), below: 1, doubtful: false };
    let kept = match run.get(&Bytewise, wanted, Access::Read, &world.cache, &mut Plain).unwrap() {
        Probe::Found(found) => (found.range, found.block.into_pin()),
        other => panic!("{other:?}"),
    };
    drop(run);
    let stats = world.cache.stats();
    assert_eq!((stats.bytes, stats.index_bytes), (0, 0));
    assert_eq!(&kept.1.bytes()[kept.0.0..kept.0.1], b"7", "a pin outlives its run");
}

#[test]
fn indexes_that_wait_for_a_reader_are_bounded() {
    // An eighth of the cache, and at least 1 MiB, may wait; one index more is in the hands of who reads it.
    const CAPACITY: u64 = 64 << 10;
    const MOST: u64 = CAPACITY + (1 << 20) + (32 << 10);
    let world = World::new(CAPACITY);
    let options = WriterOptions { segment_bytes: 20_000, ..TINY };
    let run = world.run(&Bytewise, Role::Base, options, &numbered(0..20_000));
    let segments = run.segments();
    let reads = |segment: &Segment| segment.load(&world.cache).unwrap();
    let writes = |segment: &Segment| {
        let index = segment.read_index(&world.cache, Purpose::Other).unwrap();
        assert!(index.bytes() < 32 << 10);
        segment.keep(index);
    };
    for takes in [&reads as &dyn Fn(&Segment), &writes] {
        // A reader that is not scheduled inside its epoch.
        let guard = crate::sync::pin();
        let (mut most, mut all) = (0, 0);
        for segment in segments.iter().cycle() {
            takes(segment);
            most = most.max(world.cache.stats().index_bytes);
            all += segment.index_once(&world.cache, Purpose::Other).unwrap().bytes();
            if all > 4 * MOST {
                break;
            }
        }
        assert!(most <= MOST, "{most} bytes of indexes");
        drop(guard);
        // When it is gone, indexes enter the cache again.
        let enters = |segment: &Segment| {
            crate::sync::pin().flush();
            takes(segment);
            segment.is_loaded()
        };
        let mut absent = segments.iter().cycle().filter(|segment| !segment.is_loaded());
        assert!(absent.any(|segment| enters(segment)), "nothing is freed");
    }
}

#[test]
fn obsolete_parts_are_reported_by_the_last_reference() {
    let world = World::new(1 << 20);
    let metas = world.write(&Bytewise, 1, TINY, &numbered(0..500));
    let mut segments = world.segments(1, &metas);
    segments[1].mark_obsolete();
    let second = Arc::clone(&segments[1]);
    let removed = segments.remove(1);
    drop(removed);
    assert!(world.notes.slices.lock().is_empty());
    drop(second);
    assert_eq!(*world.notes.slices.lock(), [(1, metas[1].offset, metas[1].len)]);
    let file = Arc::clone(segments[0].file());
    file.mark_obsolete();
    segments[0].mark_obsolete();
    drop(segments);
    assert!(world.notes.files.lock().is_empty());
    drop(file);
    assert_eq!(*world.notes.files.lock(), [1]);
    assert_eq!(world.notes.slices.lock().len(), 1, "an obsolete file is not punched");
}

#[test]
fn one_file_holds_several_orders_and_tombstones() {
    let world = World::new(1 << 20);
    let order = backwards();
    let mut writer = RunWriter::create(&world.fs, &world.dir, 3, TINY).unwrap();
    writer.add(&Bytewise, b"a", 5, Kind::Put, b"1").unwrap();
    writer.add(&Bytewise, b"ab", 6, Kind::Delete, b"ignored").unwrap();
    let mixed = writer.add(&order, b"zz", 9, Kind::Put, b"2").unwrap_err();
    assert_eq!(mixed.kind(), ErrorKind::InvalidArgument);
    writer.cut().unwrap();
    let bytewise = metas(writer.take_segments());
    writer.add(&order, b"ba", 7, Kind::Put, b"2").unwrap();
    writer.add(&order, b"ab", 8, Kind::Put, b"3").unwrap();
    let list = vec![RangeTombstone { start: Some(b"a".to_vec()), end: None, seq: 4 }];
    writer.add_tombstones::<CustomOrder>(&Fragments::build(&order, list)).unwrap();
    writer.add_tombstones::<CustomOrder>(&Fragments::default()).unwrap();
    let custom = metas(writer.finish().unwrap());
    assert_eq!((bytewise.len(), custom.len()), (1, 2));
    assert_eq!(custom[1].kind, SegmentKind::Tombstones);
    let run = Run::new(Role::Delta, world.segments(3, &bytewise), Vec::new());
    assert_eq!(get(&world, &run, &Bytewise, b"ab", 9).unwrap(), Some((6, Kind::Delete, vec![])));
    assert_eq!(get(&world, &run, &Bytewise, b"ab", 6).unwrap(), None);
    let mut segments = world.segments(3, &custom);
    let tombstones = segments.split_off(1);
    let run = Run::new(Role::Delta, segments, tombstones);
    assert_eq!(get(&world, &run, &order, b"ab", 9).unwrap(), Some((8, Kind::Put, b"3".to_vec())));
    let guard = crate::sync::pin();
    let cached = Access::Cached(&guard);
    assert_eq!(run.tombstone_seq(&order, b"ab", 9, cached).unwrap(), None);
    assert_eq!(run.tombstone_seq(&order, b"ab", 9, Access::Read).unwrap(), Some(4));
    assert_eq!(run.tombstone_seq(&order, b"ab", 9, cached).unwrap(), Some(4));
    assert_eq!(run.tombstone_seq(&order, b"ab", 4, cached).unwrap(), Some(0));
    for segment in run.segments().iter().chain(run.tombstones()) {
        segment.verify(&order).unwrap();
        assert!(segment.verify(&Bytewise).is_err());
    }
}

#[test]
fn every_list_of_range_deletes_of_a_run_counts() {
    let world = World::new(1 << 20);
    let mut writer = RunWriter::create(&world.fs, &world.dir, 4, TINY).unwrap();
    for (start, end, seq) in [("a", "c", 9), ("b", "d", 5)] {
        let tombstone = RangeTombstone { start: Some(start.into()), end: Some(end.into()), seq };
        let list = Fragments::build(&Bytewise, vec![tombstone]);
        writer.add_tombstones::<Bytewise>(&list).unwrap();
        writer.cut().unwrap();
    }
    let lists = world.segments(4, &metas(writer.finish().unwrap()));
    assert_eq!(lists.len(), 2);
    let run = Run::new(Role::Delta, Vec::new(), lists);
    for (key, newest) in [("a", 9), ("b", 9), ("c", 5), ("d", 0)] {
        let found = run.tombstone_seq(&Bytewise, key.as_bytes(), 100, Access::Read);
        assert_eq!(found.unwrap(), Some(newest), "{key}");
    }
}

#[test]
fn the_writer_refuses_disorder() {
    let world = World::new(0);
    let mut writer = RunWriter::create(&world.fs, &world.dir, 1, TINY).unwrap();
    writer.add(&Bytewise, b"b", 5, Kind::Put, b"").unwrap();
    for (key, seq) in [(&b"a"[..], 9), (b"b", 5), (b"b", 6)] {
        let error = writer.add(&Bytewise, key, seq, Kind::Put, b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    let error = writer.add(&Bytewise, &vec![b'c'; 65_536], 1, Kind::Put, b"").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KeyTooLong);
    writer.add(&Bytewise, b"b", 4, Kind::Put, b"").unwrap();
    let path = writer.path().to_owned();
    writer.abandon().unwrap();
    assert!(world.fs.kind(&path).unwrap().is_none());
}

#[test]
fn files_are_opened_late_and_checked() {
    let world = World::new(0);
    let run = world.run(&Bytewise, Role::Base, TINY, &numbered(0..10));
    let file = world.mem.file(&world.path(1));
    assert_eq!(file.reads.load(Relaxed), 0);
    assert_eq!(file.syncs.load(Relaxed), 1);
    file.bytes.lock()[8] = 5;
    let error = get(&world, &run, &Bytewise, b"key00000001", 1).unwrap_err();
    assert!(matches!(error, Error::UnknownFormat { found: 5, supported: 4, .. }), "{error}");
    file.bytes.lock()[8] = 1;
    file.bytes.lock()[40] ^= 1;
    let error = get(&world, &run, &Bytewise, b"key00000001", 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    file.bytes.lock()[40] ^= 1;
    get(&world, &run, &Bytewise, b"key00000001", 1).unwrap().unwrap();
    assert!(Path::new("/data/0000000001.run") == world.path(1));
}

#[test]
fn large_segments_begin_at_pages() {
    let world = World::new(0);
    let options = WriterOptions { segment_bytes: 64 << 10, ..WriterOptions::default() };
    let entries: Vec<Entry> =
        (0..3000u32).map(|i| (i.to_be_bytes().to_vec(), 0, Kind::Put, vec![1; 100])).collect();
    let metas = world.write(&Bytewise, 1, options, &entries);
    assert!(metas.len() > 3 && metas.iter().all(|meta| meta.offset % 4096 == 0));
    let file = world.mem.file(&world.path(1));
    assert!(file.writes.load(Relaxed) <= 1 + metas.last().unwrap().end() / (256 << 10));
}

#[test]
fn indexes_that_take_too_much_leave_memory() {
    // Indexes of all segments take several times the capacity.
    let world = World::new(32 << 10);
    let run = world.run(&Bytewise, Role::Base, TINY, &numbered(0..20_000));
    let file = world.mem.file(&world.path(1));
    let (segments, mut largest) = (run.segments().len() as u64, 0);
    let mut rng = Random::seeded("indexes");
    for round in 0..20_000 {
        // Most gets go to a few segments.
        let number = if round % 4 == 0 { rng.below(20_000) } else { rng.below(300) };
        let key = format!("key{number:08}");
        let found = get(&world, &run, &Bytewise, key.as_bytes(), 1).unwrap().unwrap();
        assert_eq!(found.2, number.to_string().as_bytes());
        let stats = world.cache.stats();
        largest = largest.max(stats.bytes + world.cache.kept_index_bytes());
    }
    let all = segments * (run.segments()[0].index(&world.cache, Purpose::Get).unwrap().bytes());
    assert!(all > 120 << 10, "{all} bytes of indexes in {segments} segments");
    assert!(largest <= (32 << 10) + 2048, "{largest} bytes are kept");
    // A get of a cold key reads at most an index and a block; hot blocks and their indexes stay.
    let reads = file.reads.load(Relaxed);
    assert!(reads <= 2 * 20_000 / 4 + 20_000 / 8, "{reads} reads");
    drop(run);
    // An index that was evicted keeps its blocks until no thread of the process can still use it, and other tests run
    // beside this one.
    while (world.cache.kept_index_bytes(), world.cache.stats().bytes) != (0, 0) {
        crate::sync::pin().flush();
        std::thread::yield_now();
    }
}

#[test]
fn compactions_keep_no_index() {
    let world = World::new(1 << 20);
    let run = world.run(&Bytewise, Role::Base, TINY, &numbered(0..2_000));
    let mut cursor = RunCursor::new(run.clone(), Bytewise, world.cache.clone(), false);
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        cursor.next().unwrap();
    }
    drop(cursor);
    assert_eq!(world.cache.stats().index_bytes, 0);
    assert!(run.segments().iter().all(|segment| !segment.is_loaded()));
}
