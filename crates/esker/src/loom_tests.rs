//! Models of what the threads of a database do together, run by loom over all interleavings
//! (within a bound of preemptions).
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p esker --lib loom`
//!
//! The models call the types that run in a database; only their atomics, locks and epochs are
//! loom's (`sync::primitives`). A twin that leaves one step out must fail where the step is the
//! caller's; `docs/testing.md` says how the steps inside of a type were broken, one by one.

mod cache;
mod merging;
mod sealing;
mod signal;
mod snapshots;
mod version;

use crate::base::{Kind, Seq};
use crate::budget::ChunkPool;
use crate::commit::{Refused, Ring, Ticket};
use crate::manifest::{Partition, Tree, Version};
use crate::options::settings::MemtableSizes;
use crate::run::{Role, Run, RunFile, Segment, SegmentKind, SegmentMeta};
use crate::state::State;
use crate::state::memtables::{MemtableSet, apply_bytewise};
use crate::wal::ops::Op;
use std::sync::Arc;

/// Explores all interleavings with at most so many preemptions.
pub(crate) fn model(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(f);
}

/// Reserves so many bytes, waiting as a writer does.
pub(crate) fn reserve(ring: &Ring, len: u64) -> Ticket {
    loop {
        match ring.try_reserve(len) {
            Ok(ticket) => return ticket,
            Err(Refused::Slots { visible }) => assert!(ring.wait_visible(visible + 8)),
            Err(Refused::Gate) => assert!(ring.wait_gate()),
            Err(Refused::Space { end }) => panic!("no space up to {end}"),
        }
    }
}

/// Bytes of the record of each write in a model, and where the first one stands.
const RECORD: u64 = 8;

/// A ring with room for all writes of a model.
pub(crate) fn ring() -> loom::sync::Arc<Ring> {
    let ring = Ring::new(4, RECORD);
    ring.raise_limit(1000);
    loom::sync::Arc::new(ring)
}

fn memset(start: Seq) -> MemtableSet {
    let sizes = MemtableSizes { set_bytes: 1 << 10, table_bytes: 1 << 10 };
    MemtableSet::new(start, sizes, &Arc::new(ChunkPool::new(0)))
}

/// Writes the key into the set; the value says where it was written.
fn put(set: &MemtableSet, key: &[u8], seq: Seq) {
    put_value(set, key, seq, &seq.to_be_bytes());
}

fn put_value(set: &MemtableSet, key: &[u8], seq: Seq, value: &[u8]) {
    apply_bytewise(set.bytewise().table_for(seq), Op::Put { keyspace: 0, key, value }, seq);
}

/// Where the newest version of the key below a position was written.
fn newest(set: &MemtableSet, key: &[u8], below: Seq) -> Option<Seq> {
    let found = set.bytewise().newest_first().find_map(|table| table.get(0, key, below))?;
    assert_eq!(found.kind, Kind::Put);
    Some(Seq::from_be_bytes(found.value.try_into().unwrap()))
}

/// A version with one segment of `file`, which holds the entries from `min_seq` to `max_seq`.
fn version(file: &Arc<RunFile>, min_seq: Seq, max_seq: Seq) -> (Version, Arc<Segment>) {
    let meta = SegmentMeta {
        file: file.id(),
        offset: 64,
        len: 4096,
        tail_len: 100,
        kind: SegmentKind::Data,
        bytewise: true,
        entries: 1,
        deletes: 0,
        shadowed: false,
        raw_bytes: 100,
        min_key: b"a".to_vec(),
        max_key: b"z".to_vec(),
        min_seq,
        max_seq,
        ingested: false,
        specials: Default::default(),
        values: Box::default(),
        checksum: 0,
    };
    let segment = Segment::new(meta, file.clone());
    let base = Arc::new(Run::new(Role::Base, vec![segment.clone()], Vec::new()));
    let partition = Partition { base, ..Partition::default() };
    let tree = Arc::new(Tree::new(vec![Arc::new(partition)]));
    (Version::default().with_trees(vec![(0, Some(tree))]), segment)
}

/// Whether a segment of the state's version holds the entry with this number.
fn in_version(state: &State, seq: Seq) -> bool {
    let mut metas = state.version.segments().map(|segment| segment.meta());
    metas.any(|meta| meta.min_seq <= seq && seq <= meta.max_seq)
}
