//! Crafted descriptions: manifests with valid checksums that repeat one thing a thousand times, or
//! lie about lengths (C5). The tests count reads, bytes read, and bytes in memory.

use super::memory::peak_of;
use super::{PATH, options, replace};
use esker::fs::Fs;
use esker::internals::manifest::{
    self, Edit, KeyspaceRecord, Known, Manifest, PartitionRecord, RunRecord, Superblock,
    Superblocks, TreeEdit,
};
use esker::internals::run::SegmentMeta;
use esker::{Db, Options};
use esker_testkit::{CrashFs, FaultFs};
use std::path::Path;

/// Entries of the one segment that crafted manifests name.
const ENTRIES: u32 = 2_000;

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// A closed database of one segment with many blocks.
fn one_segment() -> CrashFs {
    let disk = CrashFs::new();
    let mut options = options(&disk);
    options.memory = Some(8 << 20);
    options.memtable_bytes = Some(1 << 20);
    options.segment_bytes = 1 << 20;
    options.partition_bytes = Some(4 << 20);
    let db = Db::open_with(PATH, options).unwrap();
    for number in 0..ENTRIES {
        db.insert(key(number), [b'v'; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    db.close().unwrap();
    disk
}

/// Gives the database another description.
fn describe(disk: &CrashFs, change: impl FnOnce(SegmentMeta, &mut Edit)) {
    let fs = disk.as_fs();
    let path = Path::new(PATH);
    let mut superblocks = Superblocks::read(fs.as_ref(), path).unwrap().unwrap();
    let superblock = *superblocks.current();
    let read = manifest::read(fs.as_ref(), path, superblock.manifest, None).unwrap();
    let (mut state, mut segment) = (Edit::default(), None);
    for edit in &read.edits {
        state.log_start = edit.log_start.or(state.log_start);
        state.next_file = edit.next_file.or(state.next_file);
        for (_, tree) in &edit.trees {
            let runs: Vec<&RunRecord> = match tree {
                TreeEdit::AddDelta { run, .. } => vec![run],
                TreeEdit::Replace { partitions, .. } => {
                    partitions.iter().flat_map(|p| p.deltas.iter().chain([&p.base])).collect()
                }
                TreeEdit::Share { .. } | TreeEdit::Tier { .. } => Vec::new(),
            };
            segment = runs.iter().find_map(|run| run.segments.first().cloned()).or(segment);
        }
    }
    change(segment.unwrap(), &mut state);
    let manifest = Manifest::create(fs.as_ref(), path, read.number + 1, &state).unwrap();
    let known = superblock.known.map(|known| Known { manifest: manifest.reach(), ..known });
    let superblock = Superblock { manifest: manifest.number(), known, ..superblock };
    superblocks.write_both(fs.as_ref(), path, superblock).unwrap();
}

fn run_of(segments: Vec<SegmentMeta>) -> RunRecord {
    RunRecord { segments, ..RunRecord::default() }
}

fn tree_of(partitions: Vec<PartitionRecord>) -> TreeEdit {
    TreeEdit::Replace { tier: 0, lower: None, count: 1, partitions }
}

fn partition(lower: Option<Vec<u8>>, base: RunRecord) -> PartitionRecord {
    PartitionRecord { lower, base, ..PartitionRecord::default() }
}

/// One segment `times` times in one run.
fn in_one_run(segment: SegmentMeta, state: &mut Edit, times: usize) {
    state.trees.push((0, tree_of(vec![partition(None, run_of(vec![segment; times]))])));
}

/// In as many deltas.
fn in_deltas(segment: SegmentMeta, state: &mut Edit, times: usize) {
    let mut only = partition(None, RunRecord::default());
    only.deltas = vec![run_of(vec![segment]); times];
    state.trees.push((0, tree_of(vec![only])));
}

/// In as many partitions, which are in order.
fn in_partitions(segment: SegmentMeta, state: &mut Edit, times: usize) {
    let lower = |i: usize| (i > 0).then(|| key((i as u32 - 1) % ENTRIES));
    let run = || run_of(vec![segment.clone()]);
    state.trees.push((0, tree_of((0..times).map(|i| partition(lower(i), run())).collect())));
}

/// In as many partitions, which are not in order.
fn in_disorder(segment: SegmentMeta, state: &mut Edit, times: usize) {
    let lower = |i: usize| (i > 0).then(|| key(ENTRIES - i as u32));
    let run = || run_of(vec![segment.clone()]);
    state.trees.push((0, tree_of((0..times).map(|i| partition(lower(i), run())).collect())));
}

/// In as many keyspaces, all of the same name.
fn in_keyspaces(segment: SegmentMeta, state: &mut Edit, times: usize) {
    for id in 1..=times as u32 {
        let name = "same".to_owned();
        state.created.push(KeyspaceRecord { id, name, comparator: None });
        let base = run_of(vec![segment.clone()]);
        state.trees.push((id, tree_of(vec![partition(None, base)])));
    }
    state.next_keyspace = Some(times as u32 + 1);
}

/// Segments that are said to begin at as many places, and all to end where the one does.
fn at_many_offsets(segment: SegmentMeta, state: &mut Edit, times: usize) {
    let shifted = |i: usize| {
        let mut meta = segment.clone();
        meta.offset += i as u64;
        meta.len -= i as u64;
        meta
    };
    let run = |i: usize| run_of(vec![shifted(i)]);
    let mut only = partition(None, RunRecord::default());
    only.deltas = (0..times).map(run).collect();
    state.trees.push((0, tree_of(vec![only])));
}

#[test]
fn a_plan_reads_each_segment_once_however_often_it_is_named() {
    type Named = fn(SegmentMeta, &mut Edit, usize);
    let ways: [(&str, Named); 6] = [
        ("in one run", in_one_run),
        ("in deltas", in_deltas),
        ("in partitions", in_partitions),
        ("in disorder", in_disorder),
        ("in keyspaces", in_keyspaces),
        ("at many offsets", at_many_offsets),
    ];
    let disk = one_segment();
    for (way, named) in ways {
        let cost = |times: usize| {
            let copy = disk.kill_clone();
            describe(&copy, |segment, state| named(segment, state, times));
            let counting = FaultFs::over(&copy);
            let mut options: Options = options(&copy);
            options.fs = counting.as_fs();
            let plan = esker::repair::plan(PATH, &options).unwrap();
            let blocks: u64 = plan.keyspaces.iter().map(|kept| kept.blocks).sum();
            let entries = plan.keyspaces.iter().map(|kept| kept.entries).max();
            assert_eq!(entries, Some(u64::from(ENTRIES)), "{way}: {times} times");
            (blocks, counting.count(esker_testkit::faultfs::Op::Read))
        };
        let (once, reads) = cost(1);
        let (often, more_reads) = cost(1_500);
        assert!(once > 100, "{once} blocks");
        assert_eq!(often, once, "{way}: blocks read");
        assert!(more_reads <= reads + 20, "{way}: {reads} reads became {more_reads}");
    }
}

/// A repair writes what each partition shows, and reads a segment once for each tree.
#[test]
fn a_repair_reads_a_segment_once_for_a_tree() {
    let disk = one_segment();
    describe(&disk, |segment, state| in_partitions(segment, state, 1_500));
    let counting = FaultFs::over(&disk);
    let mut options: Options = options(&disk);
    options.fs = counting.as_fs();
    let saved = esker::repair::salvage(PATH, "/new", &options).unwrap();
    assert_eq!(saved.plan.keyspaces[0].entries, u64::from(ENTRIES), "{saved}");
    let db = Db::open_with("/new", options).unwrap();
    let found = db.iter().unwrap().map(|entry| entry.unwrap().0);
    assert!(found.eq((0..ENTRIES).map(key)));
    db.close().unwrap();
}

/// Blocks that are all gone, in a segment whose index is damaged too, are sought within bounds.
#[test]
fn a_search_for_lost_blocks_is_bounded_by_the_file() {
    let disk = one_segment();
    let data = Path::new(PATH).join("data");
    let name = &disk.list(&data).unwrap()[0].name;
    let path = data.join(name);
    let mut bytes = super::read(&disk, &path);
    // What stands there may look like the end of a block at every place.
    let len = bytes.len();
    for (i, byte) in bytes[100..len - 20_000].iter_mut().enumerate() {
        *byte = [2, 0, 1, 0, 0][i % 5];
    }
    bytes[len - 1] ^= 1;
    replace(&disk, &path, &bytes);
    let counting = FaultFs::over(&disk);
    let mut options: Options = options(&disk);
    options.fs = counting.as_fs();
    let plan = esker::repair::plan(PATH, &options).unwrap();
    assert!(plan.has_losses(), "{plan}");
    let read = counting.bytes_read();
    assert!(read < 80 * len as u64 + (2 << 20), "{read} bytes were read of {len}");
}

/// Thousands of marks that look like the ends of segments, each of which claims a long description.
#[test]
fn marks_that_lie_cost_no_more_than_the_file() {
    let disk = one_segment();
    let path = Path::new(PATH).join("data/0000000900.run");
    let footer = |info: u32| {
        let mut footer = Vec::new();
        for len in [0u32, 0, info] {
            footer.extend_from_slice(&len.to_le_bytes());
        }
        footer.extend_from_slice(&[0; 4]);
        footer.extend_from_slice(&0u64.to_le_bytes());
        footer.extend_from_slice(b"eskerseg");
        footer.extend_from_slice(&0u64.to_le_bytes());
        footer
    };
    let bytes: Vec<u8> = (0..20_000).flat_map(|_| footer(100_000)).collect();
    replace(&disk, &path, &bytes);
    let counting = FaultFs::over(&disk);
    let file = esker::internals::run::DamagedFile::open_path(&counting, path, 900).unwrap();
    assert_eq!(file.segments(), []);
    let (read, len) = (counting.bytes_read(), bytes.len() as u64);
    assert!(read < 70 * len + (2 << 20), "{read} bytes were read of {len}");
}

/// What an open and its statistics hold in memory is in proportion to the manifest.
#[test]
fn two_hundred_thousand_keyspaces_take_little_memory() {
    const KEYSPACES: u32 = 200_000;
    let disk = one_segment();
    describe(&disk, |_, state| {
        let space = |id| KeyspaceRecord { id, name: format!("{id:06}"), comparator: None };
        state.created = (1..=KEYSPACES).map(space).collect();
        state.next_keyspace = Some(KEYSPACES + 1);
    });
    let mut options = options(&disk);
    options.read_only = true;
    let (peak, trees) = peak_of(|| {
        let db = Db::open_with(PATH, options).unwrap();
        let trees = db.stats().trees.len();
        db.close().unwrap();
        trees
    });
    assert_eq!(trees, KEYSPACES as usize + 1);
    let each = peak / u64::from(KEYSPACES);
    eprintln!("{each} bytes for each keyspace");
    assert!(each < 1_500, "{each} bytes for each keyspace");
}
