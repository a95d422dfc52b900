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
//! 4. A look judges few segments, so that it is short. The caller looks again until all are judged.
//!
//! Pure: nothing here does I/O, except that the caller looks at blocks to say which segments
//! compression would make smaller.

use super::choice::partition_at;
use super::queue::PartitionKey;
use crate::block::Codec;
use crate::catalog::{Catalog, KeyspaceState, Order};
use crate::manifest::{Partition, Store, Version};
use crate::options::settings::Settings;
use crate::run::Segment;
use parking_lot::Mutex;
use std::cell::Cell;
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
    /// The partitions that are compressed now, and whether segments are left to judge. `shrinks` says
    /// whether compression would make a segment smaller.
    pub fn raw_parts(&self, shrinks: impl Fn(&Segment) -> bool) -> (Vec<PartitionKey>, bool) {
        let (mut keys, mut taken) = (Vec::new(), HashSet::new());
        // Seeded: data that settled uncompressed waits for a call of `compact`.
        let stays = bug!("compaction_raw_bases_stay");
        if self.settings.codec(true) == Codec::Raw || stays {
            return (keys, false);
        }
        let (left, more) = (Cell::new(JUDGED), Cell::new(false));
        let is_raw = |segment: &&Arc<Segment>| {
            if !segment.is_judged() {
                let Some(less) = left.get().checked_sub(1) else {
                    more.set(true);
                    return false;
                };
                left.set(less);
            }
            shrinks(segment)
        };
        let least = u64::from(self.settings.segment_bytes) / LEAST_DIVISOR;
        for (id, tree) in self.version.trees() {
            let owner = self.catalog.lock().thawed(*id);
            let usable = |owner: &Arc<KeyspaceState>| !matches!(owner.order, Order::Missing(_));
            let Some(owner) = owner.filter(usable) else { continue };
            for part in tree.partitions().iter().filter(|part| part.deltas.is_empty()) {
                let raw: Vec<_> = part.base.segments().iter().filter(is_raw).collect();
                let bytes: u64 = raw.iter().map(|segment| segment.meta().len).sum();
                let Some(first) = raw.first().filter(|_| bytes >= least) else { continue };
                if part.base.bytes() > self.room || self.stays(&owner, part) {
                    continue;
                }
                // Another tree gets the result of the first one.
                let first = (first.meta().file, first.meta().offset);
                // Seeded: each branch gets a copy of what they shared.
                if taken.insert(first) || bug!("compaction_each_branch_is_settled") {
                    keys.push(PartitionKey::of_partition(*id, part.lower.clone()));
                }
            }
        }
        (keys, more.get())
    }

    /// Whether a partition would stay on disk beside its copy: trees refer to it that do not get the
    /// copy.
    fn stays(&self, owner: &KeyspaceState, part: &Arc<Partition>) -> bool {
        let store = self.store.lock();
        // Seeded: what a named snapshot holds is written a second time.
        if bug!("compaction_settles_what_stays") || !store.may_be_elsewhere(part) {
            return false;
        }
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
        !part.segments().all(|segment| store.is_held_by(segment, &holders))
    }
}
