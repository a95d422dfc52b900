use super::*;
use crate::Durability;
use crate::catalog::BranchState;
use crate::db::write::Write;
use crate::manifest::BranchKind;
use crate::options::Options;
use crate::stats::counters::Written;
use crate::wal::ops::Op;

/// A base of 600 values of 1 kB, and a delta that deletes a sixth of them: too few for a
/// compaction.
fn with_deletes() -> (tempfile::TempDir, Arc<Core>) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.workers = Some(1);
    let core = Core::open(&directory.path().join("db"), &options).unwrap();
    let keyspace = core.default_keyspace(&BranchState::main()).unwrap();
    let write = |op: Op<'_>| {
        let mut payload = Vec::new();
        op.encode(&mut payload);
        let (durability, keyspaces) = (Durability::Process, [&*keyspace]);
        let (payload, keyspaces) = (&payload[..], &keyspaces[..]);
        core.write(&Write {
            payload,
            operations: 1,
            keyspaces,
            durability,
            counts: Written::Put(0),
        })
        .unwrap();
    };
    let key = |number: u32| number.to_be_bytes();
    for number in 0..600 {
        // Not compressible.
        let value: Vec<u8> = (0..125u64)
            .flat_map(|at| xxhash_rust::xxh3::xxh3_64_with_seed(&key(number), at).to_le_bytes())
            .collect();
        write(Op::Put { keyspace: keyspace.id, key: &key(number), value: &value });
    }
    core.flush().unwrap();
    for number in 0..100 {
        write(Op::Delete { keyspace: keyspace.id, key: &key(number * 6) });
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
