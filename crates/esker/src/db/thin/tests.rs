use super::*;
use crate::Durability;
use crate::catalog::{BranchState, KeyspaceState};
use crate::compaction::choice::Wanted;
use crate::compaction::tiers::Rows;
use crate::db::write::Write;
use crate::iter::Bounds;
use crate::manifest::BranchKind;
use crate::options::Options;
use crate::stats::counters::Written;
use crate::sync::Interruption;
use crate::wal::ops::Op;
use std::ops::Bound;

fn write(core: &Core, keyspace: &KeyspaceState, op: Op<'_>) {
    let mut payload = Vec::new();
    op.encode(&mut payload);
    let (terms, counts) = (Durability::Process.into(), Written::Put(0));
    let (payload, keyspaces) = (&payload[..], &[keyspace][..]);
    core.write(&Write { payload, operations: 1, keyspaces, terms, counts }).unwrap();
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// 1 kB that is not compressible.
fn value(number: u32) -> Vec<u8> {
    let hash = |at| xxhash_rust::xxh3::xxh3_64_with_seed(&key(number), at).to_le_bytes();
    (0..125u64).flat_map(hash).collect()
}

fn put(core: &Core, keyspace: &KeyspaceState, number: u32) {
    let op = Op::Put { keyspace: keyspace.id, key: &key(number), value: &value(number) };
    write(core, keyspace, op);
}

fn compact(core: &Core, bounds: &Bounds) {
    let interruption = Interruption::NEVER;
    core.compact(&Wanted { branch: 0, keyspace: None, bounds, interruption }).unwrap();
}

fn opened() -> (tempfile::TempDir, Arc<Core>, Arc<KeyspaceState>) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.workers = Some(1);
    let core = Core::open(&directory.path().join("db"), &options).unwrap();
    let keyspace = core.default_keyspace(&BranchState::main()).unwrap();
    (directory, core, keyspace)
}

/// A base of 600 values of 1 kB, and a delta that deletes a sixth of them: too few for a
/// compaction.
fn with_deletes() -> (tempfile::TempDir, Arc<Core>) {
    let (directory, core, keyspace) = opened();
    (0..600).for_each(|number| put(&core, &keyspace, number));
    core.flush().unwrap();
    for number in 0..100 {
        write(&core, &keyspace, Op::Delete { keyspace: keyspace.id, key: &key(number * 6) });
    }
    core.flush().unwrap();
    (directory, core)
}

#[test]
fn a_segment_under_deletes_is_written_again_without_what_they_hide() {
    let (_directory, core) = with_deletes();
    let keys = core.thinnable(0.0);
    assert!(!keys.is_empty());
    assert!(core.thin_contained(&keys[0]), "a sixth of it is hidden");
    assert!(!core.thin_contained(&keys[0]), "it is gone");
    core.close().unwrap();
}

/// A segment to which a branch refers is not thinned while the branch exists: a second copy for the
/// parent would only take space.
#[test]
fn a_segment_that_a_branch_shares_is_not_written_again() {
    let (_directory, core) = with_deletes();
    core.make_branch(&BranchState::main(), "branch", BranchKind::Branch).unwrap();
    let written = || core.stats(0).written.compaction;
    let before = written();
    for key in core.thinnable(0.0) {
        assert!(!core.thin_contained(&key), "the branch has it too");
    }
    assert_eq!(written(), before);
    core.drop_branch("branch", BranchKind::Branch).unwrap();
    let keys = core.thinnable(0.0);
    assert!(keys.iter().any(|key| core.thin_contained(key)), "nobody else has it any more");
    core.close().unwrap();
}

/// A partition that is cut up for want of space shares its deltas with its neighbours. Once one of
/// them is compacted, its part of a delta is there twice.
#[test]
fn what_a_compacted_neighbour_left_in_a_segment_is_dropped() {
    let (_directory, core, keyspace) = opened();
    (0..6000).filter(|n| n % 8 != 0).for_each(|number| put(&core, &keyspace, number));
    core.flush().unwrap();
    compact(&core, &Bounds::default());
    (0..6000).filter(|n| n % 8 == 0).for_each(|number| put(&core, &keyspace, number));
    core.flush().unwrap();
    let mut lowers = Vec::new();
    core.change(|state, _| {
        let tree = state.version.tree(keyspace.id).unwrap();
        assert_eq!((tree.partitions().len(), tree.partitions()[0].deltas.len()), (1, 1));
        let mut rows = Rows::of(tree);
        lowers = rows.cut_up(&Bytewise, 0, None, &core.settings);
        let mut change = Change::default();
        change.put_rows(keyspace.id, rows);
        Ok(Some(change))
    })
    .unwrap();
    assert!(lowers.len() >= 3, "{lowers:?}");
    let delta_bytes = || {
        let state = core.state_now();
        let tree = state.version.tree(keyspace.id).unwrap();
        let runs = tree.partitions().iter().flat_map(|part| &part.deltas);
        let segments = runs.flat_map(|run| run.segments()).map(|segment| segment.meta());
        let distinct: HashMap<_, _> = segments.map(|m| ((m.file, m.offset), m.len)).collect();
        distinct.values().sum::<u64>()
    };
    let before = delta_bytes();
    assert!(core.thinnable(0.0).is_empty(), "nothing is there twice");
    // The one in the middle, so that those which refer to the delta are no neighbours.
    let (low, high) = (lowers[1].clone().unwrap(), lowers[2].clone().unwrap());
    let bounds = Bounds { low: Bound::Included(low.into()), high: Bound::Excluded(high.into()) };
    compact(&core, &bounds);
    assert_eq!(delta_bytes(), before);
    let first = PartitionKey::of_partition(keyspace.id, None);
    assert!(core.thin_for(&[first]), "a part of it is abandoned");
    let share = before / lowers.len() as u64;
    assert!(delta_bytes() <= before - share / 2, "{} of {before}", delta_bytes());
    assert!(core.thinnable(0.0).is_empty(), "it is gone");
    for number in 0..6000 {
        let found = core.get(&keyspace, &key(number), None, |seen| seen.bytes().to_vec());
        assert_eq!(found.unwrap(), Some(value(number)), "{number}");
    }
    core.close().unwrap();
}
