//! What a walk has seen of segments and partitions so far.
//!
//! Descriptions name segments many times, because partitions and branches share them. Here stands
//! which tree reads a segment, which entries were counted already, and which range tombstones are
//! still in memory, so that nothing is read or counted twice.

use super::merge::Place;
use crate::base::FileId;
use crate::base::rangedel::Fragments;
use crate::manifest::Partition;
use crate::run::SegmentMeta;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What was seen of segments so far.
#[derive(Default)]
pub(super) struct Seen {
    /// The tree that each segment is read for, by number; 0: for none, only to judge it.
    pub readers: HashMap<Place, usize>,
    /// The number of the present tree, from 1 on.
    pub tree: usize,
    /// Where segments begin and end in their files: no two overlap.
    places: HashMap<FileId, BTreeMap<u64, u64>>,
    /// How many entries partitions hold that were merged, by their addresses: branches share them.
    pub entries: HashMap<*const Partition, u64>,
    /// Lists of range tombstones that were read; `None`: they cannot be.
    pub tombstones: HashMap<Place, Option<Arc<Fragments>>>,
    pub tombstones_kept: usize,
}

impl Seen {
    /// Whether a segment is apart from every other one in its file, as all segments are.
    pub(super) fn claim(&mut self, meta: &SegmentMeta) -> bool {
        let file = self.places.entry(meta.file).or_default();
        let (start, end) = (meta.offset, meta.end());
        if file.get(&start) == Some(&end) {
            return true;
        }
        let before = file.range(..=start).next_back().is_some_and(|(_, other)| *other > start);
        let behind = file.range(start..).next().is_some_and(|(other, _)| *other < end);
        if before || behind {
            return false;
        }
        file.insert(start, end);
        true
    }
}
