//! Settling: what is compressed in a database to which nobody writes.
//!
//! A flush writes raw blocks, because a compaction comes for them soon, and compresses what it foresees
//! to stay. Raw blocks stay in a base all the same: of databases of other options or earlier versions,
//! and where a compaction ended between the foresight of a flush and its end. When nothing is left to
//! tighten ([`calm`](super::calm)), such bases are compacted alone, and the compaction compresses them.
//!
//! 1. It takes partitions without deltas: for deltas a compaction comes, which compresses too.
//! 2. It pays: segments are judged by some of their blocks, once ([`Segment::would_shrink`]), and at
//!    least a sixteenth of a segment's size must be raw. The output is never taken again.
//! 3. What branches share is written once and installed in all of them. What would stay on disk beside
//!    its copy is left alone: that of named snapshots, and of branches that have diverged there.
//! 4. A look judges few segments, so that it is short. The next one goes on where it ended, and the last
//!    one finds all judged. So each segment is looked at a few times, however many there are.
//!
//! Pure: nothing here does I/O, except that the caller looks at blocks to say which segments
//! compression would make smaller.

use super::choice::partition_at;
use super::key::PartitionKey;
use super::uses::Uses;
use crate::base::Bytewise;
use crate::block::Codec;
use crate::catalog::{Catalog, KeyspaceState, Order};
use crate::manifest::{Partition, Store, Version};
use crate::options::settings::Settings;
use crate::run::Segment;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// The segments that one look judges.
const JUDGED: usize = 16;
/// The divisor of the size of a segment that the raw blocks of a partition must reach.
const LEAST_DIVISOR: u64 = 16;

/// How a look sees the database.
pub struct View<'v> {
    /// The trees.
    pub version: &'v Version,
    /// The keyspaces.
    pub catalog: &'v Mutex<Catalog>,
    /// What refers to what.
    pub store: &'v Mutex<Store>,
    /// Sizes.
    pub settings: &'v Settings,
    /// A partition with more bytes is left as it is.
    pub room: u64,
}

impl View<'_> {
    /// The partitions that are compressed now, and whether somebody should look again. `shrinks` says
    /// whether compression would make a segment smaller. `from` is where the look before ended, and
    /// then where this one does.
    pub fn raw_parts(
        &self,
        from: &mut Option<PartitionKey>,
        shrinks: impl Fn(&Segment) -> bool,
    ) -> (Vec<PartitionKey>, bool) {
        // Seeded: data that settled uncompressed waits for a call of `compact`.
        let stays = bug!("compaction_raw_bases_stay");
        if self.settings.codec(true) == Codec::Raw || stays {
            return (Vec::new(), false);
        }
        let bytes = |_: &Uses<'_>, segment: &Segment| {
            if shrinks(segment) { segment.meta().len } else { 0 }
        };
        self.parts(from, Segment::is_judged, bytes)
    }

    /// The settled partitions of which enough `changes` when it is written, in bytes, and whether somebody should
    /// look again. `known`: asking about a segment reads nothing. `changes` gets what its partition has of value
    /// segments.
    pub fn parts(
        &self,
        from: &mut Option<PartitionKey>,
        known: impl Fn(&Segment) -> bool,
        changes: impl Fn(&Uses<'_>, &Segment) -> u64,
    ) -> (Vec<PartitionKey>, bool) {
        let (mut keys, mut taken) = (Vec::new(), HashSet::new());
        let begin = from.take();
        let mut left = JUDGED;
        let least = u64::from(self.settings.segment_bytes) / LEAST_DIVISOR;
        let trees = self.version.trees();
        let first = |begin: &PartitionKey| trees.partition_point(|(id, _)| *id < begin.keyspace);
        for (id, tree) in &trees[begin.as_ref().map_or(0, first)..] {
            let Some(owner) = self.catalog.lock().thawed(*id) else { continue };
            let lower = begin.as_ref().filter(|begin| begin.keyspace == *id);
            let lower = lower.and_then(|begin| begin.lower.as_deref());
            let find = |lower: &[u8]| match &owner.order {
                Order::Custom(order) => tree.rows()[0].find(order, lower),
                _ => tree.rows()[0].find(&Bytewise, lower),
            };
            if matches!(owner.order, Order::Missing(_)) {
                continue;
            }
            let parts = &tree.partitions()[lower.map_or(0, find)..];
            for part in parts.iter().filter(|part| part.deltas.is_empty()) {
                let Some(changing) = changing_of(part, &mut left, (&known, &changes)) else {
                    *from = Some(PartitionKey::of_partition(*id, part.lower.clone()));
                    return (keys, true);
                };
                let bytes: u64 = changing.iter().map(|(_, bytes)| bytes).sum();
                let first = changing.first().filter(|_| bytes >= least);
                let Some((first, _)) = first else { continue };
                // Seeded: what has no room to turn warm is compacted again and again.
                let unbounded = bug!("compaction_settles_without_room");
                // What was cold may take twice as much when it is warm, and values count where they lie.
                let room = if unbounded { u64::MAX } else { self.room / 2 };
                if part.base.bytes().saturating_add(bytes) > room || self.stays(&owner, part) {
                    continue;
                }
                // Another tree gets the result of the first one.
                let first = first.meta().place();
                // Seeded: each branch gets a copy of what they shared.
                if taken.insert(first) || bug!("compaction_each_branch_is_settled") {
                    keys.push(PartitionKey::of_partition(*id, part.lower.clone()));
                }
            }
        }
        // What lies before may have changed since somebody looked there.
        (keys, begin.is_some())
    }

    /// Whether a partition would stay on disk beside its copy: trees refer to it that do not get the
    /// copy.
    fn stays(&self, owner: &KeyspaceState, part: &Arc<Partition>) -> bool {
        // Seeded: what a named snapshot holds is written a second time.
        bug!("compaction_settles_what_stays", return false);
        let possible = self.store.lock().may_be_elsewhere(part);
        possible && self.is_elsewhere(owner, part)
    }

    /// Whether trees refer to segments of a partition that would not get the result of its compaction.
    /// Both parts of a partition that was split count as elsewhere to each other.
    pub fn is_elsewhere(&self, owner: &KeyspaceState, part: &Arc<Partition>) -> bool {
        let store = self.store.lock();
        let traits = owner.traits().names.clone();
        let mut holders = vec![(part.clone(), 1)];
        // Results of compactions with a filter are not shared.
        let shared = traits.filter.is_empty();
        let twins = self.catalog.lock().twins_of(owner, &traits);
        for twin in twins.iter().filter(|_| shared) {
            let Some(tree) = self.version.tree(twin.id) else { continue };
            let same = partition_at(twin, tree, part.lower.as_deref()).ok().flatten();
            let Some(same) = same.filter(|same| same.is_same(part)) else { continue };
            match holders.iter_mut().find(|(holder, _)| Arc::ptr_eq(holder, &same)) {
                Some((_, trees)) => *trees += 1,
                None => holders.push((same, 1)),
            }
        }
        !part.run_segments().all(|segment| store.is_held_by(segment, &holders))
    }
}

/// The segments of a base that change when they are written, with how many bytes; `None`: a look would judge more of them
/// than are `left` to it.
fn changing_of<'p>(
    part: &'p Partition,
    left: &mut usize,
    (known, changes): (&impl Fn(&Segment) -> bool, &impl Fn(&Uses<'_>, &Segment) -> u64),
) -> Option<Vec<(&'p Arc<Segment>, u64)>> {
    let (mut changing, uses) = (Vec::new(), Uses::of(part));
    for segment in part.base.segments() {
        if !known(segment) {
            *left = left.checked_sub(1)?;
        }
        let bytes = changes(&uses, segment);
        if bytes > 0 {
            changing.push((segment, bytes));
        }
    }
    Some(changing)
}
