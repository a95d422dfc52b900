//! What a walk has seen of segments and partitions so far.
//!
//! Descriptions name segments many times, because partitions and branches share them. This records
//! which tree reads a segment, which entries are already counted, and which range tombstones are
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
    /// The number of the tree for which each segment is read; 0: for none, only to find its damage.
    pub readers: HashMap<Place, usize>,
    /// The number of the present tree, from 1 on.
    pub tree: usize,
    /// Where segments begin and end in their files: no two overlap.
    places: HashMap<FileId, BTreeMap<u64, u64>>,
    /// The number of entries of each merged partition, by the addresses of the spans above it and
    /// its own, because branches share them.
    pub entries: HashMap<Vec<*const Partition>, u64>,
    /// Lists of range tombstones that were read; `None`: they cannot be.
    pub tombstones: HashMap<Place, Option<Arc<Fragments>>>,
    pub tombstones_kept: usize,
}

impl Seen {
    /// Whether a segment overlaps no other segment of its file, as is the case without damage;
    /// records its place then.
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
