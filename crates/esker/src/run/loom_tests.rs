//! Models of the index of a run segment: it is read when it is needed, evicted, and read again, while others use it.
//!
//! The segments stand in a real run file, which is in memory, and their readers go through [`Run::get`] and
//! [`Segment::index`]. Nothing is interleaved inside a read of the file.

use super::index::Index;
use super::tests::memfs::MemFs;
use super::tests::{Entry, TINY, numbered};
use super::*;
use crate::base::codec::hash_key;
use crate::base::rangedel::{Fragments, RangeTombstone};
use crate::base::{Bytewise, Kind};
use crate::cache::BlockCache;
use crate::fs::Fs;
use crate::loom_tests;
use crate::sync::{EpochCell, pin, primitives};
use crate::trace::{Plain, Purpose};
use loom::thread;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Words of a thread's stack: those that loom gives are few for a read of a file.
const STACK: usize = 1 << 15;

/// Entries of each segment: one block.
const ENTRIES: u32 = 2;
/// Room for everything.
const ROOMY: u64 = 1 << 20;

fn spawn(f: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new().stack_size(STACK).spawn(f).unwrap()
}

/// As the common one, with room on the stack of the first thread, too.
fn model(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let f = Arc::new(f);
    loom_tests::model(preemptions, move || {
        let f = Arc::clone(&f);
        spawn(move || f()).join().unwrap();
    });
}

/// A run file that was written before the model begins.
struct Stored {
    mem: Arc<MemFs>,
    metas: Vec<SegmentMeta>,
}

impl Stored {
    /// So many segments.
    fn new(segments: u32) -> Arc<Self> {
        Self::write(|writer| {
            for segment in 0..segments {
                for (key, seq, kind, value) in numbered(segment * ENTRIES..(segment + 1) * ENTRIES)
                {
                    writer.add(&Bytewise, &key, seq, kind, &value).unwrap();
                }
                writer.cut().unwrap();
            }
        })
    }

    /// One segment of range tombstones.
    fn tombstones() -> Arc<Self> {
        let (start, end) = (Some(b"a".to_vec()), Some(b"b".to_vec()));
        let list = Fragments::build(&Bytewise, vec![RangeTombstone { start, end, seq: 3 }]);
        Self::write(|writer| writer.add_tombstones::<Bytewise>(&list).unwrap())
    }

    fn write(fill: impl FnOnce(&mut RunWriter)) -> Arc<Self> {
        let mem = Arc::new(MemFs::default());
        let fs = Arc::clone(&mem) as Arc<dyn Fs>;
        let mut writer = RunWriter::create(&fs, Path::new("/data"), 1, TINY).unwrap();
        fill(&mut writer);
        let metas = writer.finish().unwrap().into_iter().map(|written| written.meta).collect();
        Arc::new(Self { mem, metas })
    }

    fn reads(&self) -> u64 {
        self.mem.file(&Path::new("/data").join(file_name(1))).reads.load(Ordering::Relaxed)
    }
}

/// A cache, and the run of a file whose segments are not read yet.
struct World {
    cache: Arc<BlockCache>,
    run: Run,
    stored: Arc<Stored>,
    /// Reads of the file before this execution.
    reads: u64,
}

impl World {
    fn new(stored: &Arc<Stored>) -> Arc<Self> {
        let stored = Arc::clone(stored);
        let (run, reads) = (run(&stored), stored.reads());
        Arc::new(Self { cache: Arc::new(BlockCache::new(ROOMY)), run, stored, reads })
    }

    fn segment(&self, n: u32) -> &Arc<Segment> {
        &self.run.segments()[n as usize]
    }

    /// Reads since the begin, without the one of the file's header.
    fn reads(&self) -> u64 {
        self.stored.reads() - self.reads - 1
    }

    /// Looks for the first entry of a segment as `lookup` does: in memory, and then in the file.
    fn get(&self, segment: u32) {
        get(&self.run, &self.cache, segment);
    }

    /// Evicts all indexes and blocks that nobody has used since they were looked at last, and others in the end.
    fn evict(&self) {
        self.cache.set_capacity(0);
        self.cache.set_capacity(ROOMY);
    }

    /// No thread uses anything any more: what is in memory is in a queue of the cache, and what is not is in none. All
    /// goes with the segments.
    fn end(self: Arc<Self>) {
        let stats = self.cache.stats();
        assert_eq!(
            self.cache.kept_index_bytes(),
            stats.index_bytes,
            "an index is in no queue, or twice"
        );
        let loaded = self.run.segments().iter().filter(|segment| segment.is_loaded());
        let loaded = loaded.map(|segment| segment.index.load_arc().unwrap().bytes());
        assert_eq!(loaded.sum::<u64>(), stats.index_bytes, "an index is in no segment");
        assert_eq!(stats.bytes, stats.allocated, "a frame is in no queue");
        let Self { cache, run, .. } = Arc::into_inner(self).unwrap();
        drop(run);
        assert_gone(&cache);
    }
}

fn assert_gone(cache: &BlockCache) {
    let stats = cache.stats();
    assert_eq!((stats.index_bytes, cache.kept_index_bytes()), (0, 0), "an index stays for ever");
    assert_eq!((stats.bytes, stats.allocated), (0, 0), "a block stays for ever");
}

/// The run of a file. Its segments are not read yet.
fn run(stored: &Stored) -> Run {
    let fs = Arc::clone(&stored.mem) as Arc<dyn Fs>;
    let file = RunFile::new(&fs, Path::new("/data"), 1, None, None);
    let segment = |meta: &SegmentMeta| Segment::new(meta.clone(), Arc::clone(&file));
    Run::new(Role::Base, stored.metas.iter().map(segment).collect(), Vec::new())
}

fn get(run: &Run, cache: &Arc<BlockCache>, segment: u32) {
    let first = segment * ENTRIES;
    let (key, .., value): Entry = numbered(first..first + 1).remove(0);
    let wanted = Wanted { key: &key, hash: hash_key(&key), below: 9, doubtful: false };
    let is_found = |probe: Probe<'_>| match probe {
        Probe::NeedsIo => false,
        Probe::Absent => panic!("a reader misses its entry"),
        Probe::Found(found) => {
            assert_eq!((found.kind, found.value()), (Kind::Put, &*value));
            true
        }
    };
    {
        let guard = pin();
        let access = Access::Cached(&guard);
        if is_found(run.get(&Bytewise, wanted, access, cache, &mut Plain).unwrap()) {
            return;
        }
    }
    let read = run.get(&Bytewise, wanted, Access::Read, cache, &mut Plain).unwrap();
    assert!(is_found(read), "a read did not read");
}

/// Starts a thread that does something with the world.
fn meanwhile(
    world: &Arc<World>,
    act: impl FnOnce(&World) + Send + 'static,
) -> thread::JoinHandle<()> {
    let world = Arc::clone(world);
    spawn(move || act(&world))
}

#[test]
fn an_index_is_read_once_and_everybody_gets_it() {
    let stored = Stored::new(1);
    model(4, move || {
        let world = World::new(&stored);
        let other = meanwhile(&world, |world| world.get(0));
        world.get(0);
        other.join().unwrap();
        assert_eq!(world.reads(), 2, "more than one tail and one block was read");
        world.end();
    });
}

#[test]
fn a_reader_finds_its_entry_while_the_index_goes_and_comes() {
    let stored = Stored::new(1);
    model(3, move || {
        let world = World::new(&stored);
        world.get(0);
        let reader = meanwhile(&world, |world| world.get(0));
        world.evict();
        world.get(0);
        reader.join().unwrap();
        world.end();
    });
}

/// A reader has an index while another thread evicts it.
fn held_over_an_eviction(read: impl Fn(&World, &dyn Fn(&Index)) + Copy + Send + Sync + 'static) {
    let stored = Stored::new(1);
    model(4, move || {
        let world = World::new(&stored);
        world.segment(0).load(&world.cache).unwrap();
        let reader = meanwhile(&world, move |world| {
            read(world, &|index| {
                // The locks inside let others run before the bytes are read.
                let in_memory = world.cache.stats().index_bytes;
                assert!(in_memory >= index.bytes(), "an index was freed under its reader");
            });
        });
        world.evict();
        reader.join().unwrap();
        world.end();
    });
}

#[test]
fn an_epoch_keeps_the_index_that_was_found_in_it() {
    held_over_an_eviction(|world, look| {
        let guard = pin();
        if let Some(index) = world.segment(0).index_cached(&guard) {
            look(index);
            index.slots.get(0, &guard).into_iter().for_each(|view| _ = view.block().value(0));
            look(index);
        }
    });
}

/// As iterators do it: new blocks come through the index that they hold, whatever the segment has now.
#[test]
fn an_owner_keeps_its_index_and_reads_blocks_through_it() {
    held_over_an_eviction(|world, look| {
        let segment = world.segment(0);
        let index = segment.index(&world.cache, Purpose::Scan).unwrap();
        look(&index);
        let block = segment.block(&index, 0, Purpose::Scan).unwrap();
        look(&index);
        drop(index);
        assert_eq!(block.block().value(0), b"0");
    });
}

/// There is room for one index and its block.
#[test]
fn segments_that_are_read_evict_each_other() {
    let stored = Stored::new(2);
    model(3, move || {
        let world = World::new(&stored);
        world.get(0);
        let stats = world.cache.stats();
        world.cache.set_capacity(stats.index_bytes + stats.bytes);
        let reader = meanwhile(&world, |world| world.get(0));
        world.get(1);
        reader.join().unwrap();
        let kept = world.cache.kept_index_bytes() + world.cache.stats().bytes;
        assert!(kept <= stats.index_bytes + stats.bytes, "more is kept than there is room for");
        world.end();
    });
}

/// There is room for three indexes, of which the first is in use, and the second perhaps.
#[test]
fn an_index_in_use_stays_and_another_goes() {
    let stored = Stored::new(4);
    model(4, move || {
        let world = World::new(&stored);
        (0..3).for_each(|n| world.segment(n).load(&world.cache).unwrap());
        world.cache.set_capacity(world.cache.kept_index_bytes());
        touch(&world, 0);
        let reader = meanwhile(&world, |world| (0..2).for_each(|n| touch(world, n)));
        world.segment(3).load(&world.cache).unwrap();
        assert!(world.segment(0).is_loaded(), "an index in use was evicted");
        let loaded = world.run.segments().iter().filter(|segment| segment.is_loaded());
        assert_eq!(loaded.count(), 3);
        reader.join().unwrap();
        world.end();
    });
}

/// Uses an index, if it is in memory.
fn touch(world: &World, segment: u32) {
    world.segment(segment).index_cached(&pin());
}

/// A reader has the run while others replace it and evict what it had in the cache.
fn removed_while_it_is_read(
    read: impl Fn(&EpochCell<Run>, &Arc<BlockCache>) + Copy + Send + Sync + 'static,
) {
    let stored = Stored::new(1);
    model(3, move || {
        let cache = Arc::new(BlockCache::new(ROOMY));
        let first = run(&stored);
        get(&first, &cache, 0);
        // In use, so that the first look at it gives it another round.
        get(&first, &cache, 0);
        let cell = primitives::Arc::new(EpochCell::new(primitives::Arc::new(first)));
        let reader = {
            let (cell, cache) = (cell.clone(), cache.clone());
            spawn(move || read(&cell, &cache))
        };
        let evictor = {
            let cache = cache.clone();
            spawn(move || cache.set_capacity(0))
        };
        cell.swap(primitives::Arc::new(Run::new(Role::Base, Vec::new(), Vec::new())));
        reader.join().unwrap();
        evictor.join().unwrap();
        drop(cell);
        assert_gone(&cache);
    });
}

#[test]
fn a_segment_goes_while_its_index_is_used_and_evicted() {
    removed_while_it_is_read(|cell, cache| {
        let guard = pin();
        let run = cell.load(&guard);
        if let Some(segment) = run.segments().first()
            && let Some(index) = segment.index_cached(&guard)
        {
            let in_memory = cache.stats().index_bytes;
            assert!(in_memory >= index.bytes(), "an index was freed under its reader");
            index.slots.get(0, &guard).into_iter().for_each(|view| _ = view.block().value(0));
        }
    });
}

#[test]
fn a_segment_goes_while_its_index_is_read_again() {
    removed_while_it_is_read(|cell, cache| {
        let run = cell.load_arc();
        if !run.segments().is_empty() {
            get(&run, cache, 0);
        }
    });
}

#[test]
fn range_tombstones_are_read_once() {
    let stored = Stored::tombstones();
    model(4, move || {
        let world = World::new(&stored);
        let look = |world: &World| {
            let fragments = world.segment(0).fragments(&Bytewise).unwrap();
            assert_eq!(fragments.covering_seq(&Bytewise, b"aa", 9), 3);
        };
        let other = meanwhile(&world, look);
        look(&world);
        other.join().unwrap();
        assert_eq!(world.reads(), 1, "two threads read the same list");
    });
}
