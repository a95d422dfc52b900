//! Trees with tiers, made by hand: the deltas of partitions become runs of spans above them. What
//! such a database holds must be the same as before, whoever reads it.
//!
//! A flush leaves a delta in each partition that it touches. Those of one flush, side by side, are
//! the uncut run that a tier would have got in their place. So lifting the newest deltas of all
//! partitions into tiers changes nothing but the shape.

use super::options;
use esker::internals::base::Bytewise;
use esker::internals::manifest::{
    self, Edit, FORMAT_VERSION, Known, Manifest, PartitionRecord, RunRecord, Superblock,
    Superblocks, TreeEdit, Trees, check_tree,
};
use esker::internals::run::{RunFile, Segment, SegmentMeta};
use esker::{Append, Db, KeyspaceOptions, Options, Outcome, StepSource, TreeShape};
use esker_testkit::CrashFs;
use std::collections::BTreeMap;
use std::path::Path;

const PATH: &str = "/db";
const KEYS: u32 = 600;
/// Flushes above the bases: each leaves a delta.
const ROUNDS: u32 = 4;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u32) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Bytes that no codec makes shorter.
fn noise(number: u32) -> Vec<u8> {
    let mut state = u64::from(number) * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..110).map(|_| next()).collect()
}

fn tier_options(disk: &CrashFs) -> Options {
    let mut options = options(disk.as_fs());
    options.partition_bytes = Some(4 << 10);
    options.segment_bytes = 1 << 10;
    options.memory = Some(8 << 20);
    options
}

/// Bases, and deltas with puts, deletes, operands and range deletes over several partitions.
/// Returns what the database holds, the same before the last round, and the number of it then.
fn build(disk: &CrashFs) -> Pairs {
    let db = Db::open_with(PATH, tier_options(disk)).unwrap();
    let words =
        db.keyspace_with("words", KeyspaceOptions::merging(Append::new(",").name())).unwrap();
    for number in 0..KEYS {
        db.insert(key(number), noise(number)).unwrap();
        words.insert(key(number), noise(number)).unwrap();
    }
    db.flush().unwrap();
    db.compact().unwrap();
    words.compact().unwrap();
    for round in 0..ROUNDS {
        for number in (round * 7..KEYS).step_by(60) {
            db.insert(key(number), format!("round {round}")).unwrap();
            db.remove(key(number + 1)).unwrap();
            words.merge(key(number), format!("r{round}")).unwrap();
            words.merge(key(30), format!("r{round}")).unwrap();
        }
        let from = 40 + 130 * round;
        db.remove_range(key(from)..key(from + 90)).unwrap();
        db.insert(key(from + 45), "over a removed range").unwrap();
        db.flush().unwrap();
    }
    db.wait_until_idle().unwrap();
    let all = everything(&db);
    db.close().unwrap();
    all
}

fn pairs(db: &Db, keyspace: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let keyspace = db.keyspace(keyspace).unwrap();
    keyspace
        .iter()
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|(k, v)| (k.to_vec(), v.to_vec()))
        .collect()
}

/// All entries of both keyspaces, by scans.
fn everything(db: &Db) -> Pairs {
    let mut found = Pairs::new();
    for name in ["default", "words"] {
        for (key, value) in pairs(db, name) {
            found.insert([name.as_bytes(), b"/", &key].concat(), value);
        }
    }
    found
}

/// The same by other ways: gets, a scan backwards, and scans of ranges.
fn check_reads(db: &Db, expected: &Pairs, story: &str) {
    assert!(everything(db) == *expected, "{story}: a scan");
    for name in ["default", "words"] {
        let keyspace = db.keyspace(name).unwrap();
        let of = |key: &[u8]| expected.get(&[name.as_bytes(), b"/", key].concat()).cloned();
        for number in 0..KEYS {
            let key = key(number);
            let found = keyspace.get(&key).unwrap().map(|value| value.to_vec());
            assert_eq!(found, of(&key), "{story}: a get of {name} {number}");
        }
        let mut backwards: Vec<_> =
            keyspace.iter().unwrap().rev().map(|e| e.unwrap().0.to_vec()).collect();
        backwards.reverse();
        let forwards: Vec<_> = pairs(db, name).into_iter().map(|(key, _)| key).collect();
        assert!(backwards == forwards, "{story}: a scan of {name} backwards");
        for low in (0..KEYS).step_by(37) {
            let range = key(low)..key(low + 50);
            let found = keyspace.range(range.clone()).unwrap().map(|e| e.unwrap().0.to_vec());
            let inside: Vec<_> =
                forwards.iter().filter(|key| range.contains(*key)).cloned().collect();
            assert!(found.eq(inside), "{story}: a scan of {name} from {low}");
        }
    }
}

/// Puts deltas that lie side by side into one run, each segment once.
fn joined(deltas: &[&RunRecord]) -> RunRecord {
    let mut run = RunRecord::default();
    for delta in deltas {
        for (all, more) in
            [(&mut run.segments, &delta.segments), (&mut run.tombstones, &delta.tombstones)]
        {
            let is_new = |meta: &&SegmentMeta| {
                !all.iter().any(|known| (known.file, known.offset) == (meta.file, meta.offset))
            };
            let more: Vec<_> = more.iter().filter(is_new).cloned().collect();
            all.extend(more);
        }
    }
    run
}

/// A row above `below`: spans of `fan_out` children, with these runs, the newest first.
fn row_above(
    below: &[PartitionRecord],
    fan_out: usize,
    runs: &[RunRecord],
) -> Vec<PartitionRecord> {
    let span = |child: &PartitionRecord| PartitionRecord {
        lower: child.lower.clone(),
        base: RunRecord::default(),
        deltas: runs.to_vec(),
    };
    below.iter().step_by(fan_out).map(span).collect()
}

/// Gives the trees two tiers: the deltas of the newest flush go to tier 2, and the others, but the
/// oldest, to tier 1. Returns the runs in each tier.
fn lift(disk: &CrashFs) -> (usize, usize) {
    let fs = disk.as_fs();
    let path = Path::new(PATH);
    let mut superblocks = Superblocks::read(fs.as_ref(), path).unwrap().unwrap();
    let superblock = *superblocks.current();
    let read = manifest::read(fs.as_ref(), path, superblock.manifest, None).unwrap();
    let mut trees = Trees::default();
    let file = RunFile::new(&fs, path, 1, None, None);
    let mut segment = |meta: &SegmentMeta| Segment::new(meta.clone(), file.clone());
    let mut state = Edit::default();
    for edit in &read.edits {
        trees.apply(edit, &mut segment).unwrap();
        state.log_start = edit.log_start.or(state.log_start);
        state.next_file = edit.next_file.or(state.next_file);
        state.next_keyspace = edit.next_keyspace.or(state.next_keyspace);
        state.created.extend(edit.created.iter().cloned());
        state.traits.extend(edit.traits.iter().cloned());
    }
    let version = trees.version();
    let mut counts = (0, 0);
    for (id, tree) in version.trees() {
        let mut below: Vec<_> = tree.partitions().iter().map(|p| p.record()).collect();
        // A file has the output of one flush; later files are newer.
        let file_of = |run: &RunRecord| {
            run.segments.iter().chain(&run.tombstones).map(|meta| meta.file).max().unwrap_or(0)
        };
        let mut files: Vec<_> = below.iter().flat_map(|p| p.deltas.iter().map(file_of)).collect();
        files.sort_unstable();
        files.dedup();
        let of_file = |file: u64| {
            let runs =
                below.iter().flat_map(|p| p.deltas.iter().filter(|run| file_of(run) == file));
            joined(&runs.collect::<Vec<_>>())
        };
        let lifted: Vec<u64> = files.iter().skip(1).copied().collect();
        let runs: Vec<RunRecord> = lifted.iter().rev().map(|file| of_file(*file)).collect();
        let (newest, older) = runs.split_at(runs.len().min(1));
        for partition in &mut below {
            partition.deltas.retain(|run| !lifted.contains(&file_of(run)));
        }
        let first = row_above(&below, 3, older);
        let second = row_above(&first, 4, newest);
        counts = (counts.0 + older.len(), counts.1 + newest.len());
        state
            .trees
            .push((*id, TreeEdit::Replace { tier: 0, lower: None, count: 1, partitions: below }));
        state.trees.push((*id, TreeEdit::Tier { tier: 1, spans: first }));
        state.trees.push((*id, TreeEdit::Tier { tier: 2, spans: second }));
    }
    let mut trees = Trees::default();
    trees.apply(&state, &mut segment).unwrap();
    for (_, tree) in trees.version().trees() {
        check_tree(&Bytewise, tree).unwrap();
        let spans: Vec<_> = tree.rows().iter().map(|row| row.partitions().len()).collect();
        assert!(spans.len() == 3 && spans[1] > 3 && spans[2] > 1, "{spans:?}");
    }
    let manifest = Manifest::create(fs.as_ref(), path, read.number + 1, &state).unwrap();
    let known = superblock.known.map(|known| Known { manifest: manifest.reach(), ..known });
    let superblock = Superblock { manifest: manifest.number(), known, ..superblock };
    superblocks.write_both(fs.as_ref(), path, superblock).unwrap();
    counts
}

fn lifted() -> (CrashFs, Pairs) {
    let disk = CrashFs::new();
    let expected = build(&disk);
    let (older, newest) = lift(&disk);
    assert!(older >= 2 && newest >= 1, "{older} and {newest} runs in tiers");
    (disk, expected)
}

fn read_only(disk: &CrashFs) -> Options {
    let mut options = tier_options(disk);
    options.read_only = true;
    options
}

#[test]
fn reads_see_what_tiers_hold() {
    let (disk, expected) = lifted();
    assert_eq!(FORMAT_VERSION, 3, "tiers came with version 3");
    let db = Db::open_with(PATH, read_only(&disk)).unwrap();
    check_reads(&db, &expected, "read only");
    assert!(db.verify().unwrap().problems.is_empty());
    let shape = db.stats().trees.into_iter().find(|tree| tree.keyspace == "default").unwrap();
    assert!(shape.tiers.len() == 2 && shape.tiers.iter().all(|tier| tier.runs > 0), "{shape:?}");
    let segments = db.default_keyspace().segments().unwrap();
    let tiers: Vec<_> = segments.iter().map(|segment| segment.tier).collect();
    assert!(tiers.is_sorted_by(|a, b| a >= b) && tiers[0] == 2 && tiers.contains(&1));
    let size =
        |low: u32, high: u32| db.default_keyspace().approximate_size(key(low)..key(high)).unwrap();
    assert!(size(0, KEYS) > size(0, KEYS / 2));
}

#[test]
fn explanations_name_the_tiers() {
    let (disk, _) = lifted();
    let db = Db::open_with(PATH, read_only(&disk)).unwrap();
    let explanation = db.default_keyspace().explain_get(key(500)).unwrap();
    let place = |source: StepSource| match source {
        StepSource::Run { tier, age, .. } => Some((tier, age)),
        _ => None,
    };
    let places: Vec<_> = explanation.steps.iter().filter_map(|step| place(step.source)).collect();
    assert_eq!(places[0].0, 2, "{explanation}");
    assert_eq!(places.last(), Some(&(0, 0)), "{explanation}");
    assert!(places.is_sorted_by(|a, b| a > b), "{explanation}");
    assert!(explanation.to_string().contains("tier 2, span"), "{explanation}");
    // What the newest run holds is not looked for below it.
    let explained = (0..KEYS).map(|n| db.default_keyspace().explain_get(key(n)).unwrap());
    let in_newest = |explanation: &esker::Explanation| {
        let first = explanation.steps.iter().find(|step| place(step.source).is_some());
        first.is_some_and(|step| step.outcome == Outcome::Found)
    };
    let explanation = explained.into_iter().find(in_newest).expect("the top tier holds something");
    let runs = explanation.steps.iter().filter(|step| place(step.source).is_some());
    let below: Vec<_> = runs.skip(1).map(|step| step.outcome).collect();
    assert!(below.len() > 1, "{explanation}");
    assert!(below.iter().all(|outcome| *outcome == Outcome::NotReached), "{explanation}");
}

#[test]
fn tiers_stay_when_the_database_is_opened_again() {
    let (disk, expected) = lifted();
    for story in ["opened", "opened again"] {
        let db = Db::open_with(PATH, tier_options(&disk)).unwrap();
        check_reads(&db, &expected, story);
        assert_eq!(db.stats().trees[0].tiers.len(), 2, "{story}");
        assert!(db.verify().unwrap().problems.is_empty(), "{story}");
        db.close().unwrap();
    }
}

/// The runs, segments, bytes and entries of the tiers of a tree.
fn shapes(tree: &TreeShape) -> Vec<[u64; 4]> {
    tree.tiers.iter().map(|tier| [tier.runs, tier.segments, tier.bytes, tier.entries]).collect()
}

#[test]
fn copies_and_branches_have_the_tiers_too() {
    let (disk, expected) = lifted();
    let db = Db::open_with(PATH, tier_options(&disk)).unwrap();
    let before = db.stats().trees[0].clone();
    db.checkpoint("/copy").unwrap();
    let branch = db.branch("branch").unwrap();
    db.snapshot_named("moment").unwrap();
    check_reads(&branch, &expected, "a branch");
    check_reads(&db.open_named_snapshot("moment").unwrap(), &expected, "a named snapshot");
    db.close().unwrap();
    drop((db, branch));
    // All of them are in the new manifest, which writes what they share once.
    let db = Db::open_with(PATH, tier_options(&disk)).unwrap();
    check_reads(&db, &expected, "the parent, again");
    check_reads(&db.open_branch("branch").unwrap(), &expected, "a branch, again");
    let moment = db.open_named_snapshot("moment").unwrap();
    check_reads(&moment, &expected, "a named snapshot, again");
    assert_eq!(shapes(&db.stats().trees[0]), shapes(&before));
    drop(moment);
    assert!(db.drop_branch("branch").unwrap());
    check_reads(&db, &expected, "after the branch is dropped");
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    let copy = Db::open_with("/copy", tier_options(&disk)).unwrap();
    check_reads(&copy, &expected, "a checkpoint");
    assert_eq!(shapes(&copy.stats().trees[0]), shapes(&before));
}

#[test]
fn a_salvage_saves_what_tiers_hold() {
    let (disk, expected) = lifted();
    let salvaged = esker::repair::salvage(PATH, "/saved", &tier_options(&disk)).unwrap();
    assert!(salvaged.plan.is_whole(), "{salvaged}");
    assert!(salvaged.to_string().contains("spans above them"), "{salvaged}");
    let db = Db::open_with("/saved", tier_options(&disk)).unwrap();
    check_reads(&db, &expected, "saved");
}
