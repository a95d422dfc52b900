//! What a transaction has read: keys, found or not, and ranges as far as its iterators advanced.
//!
//! A read counts from the position at which it was made (`since`). The transaction may commit if
//! nothing that it read was written between that position and its own position in the log.
//!
//! 1. An entry that an iterator shows, and that no other lies in between, is noted before the
//!    program sees the entry.
//! 2. The memory is bounded: if the keys and bounds of a keyspace exceed the limit, the whole
//!    keyspace counts as read. That may cause conflicts, and never hides one.

use crate::base::{KeyBuf, Seq};
use crate::catalog::KeyspaceState;
use crate::iter::Bounds;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The memory of one noted key beyond its bytes.
const KEY_OVERHEAD_BYTES: u64 = 64;
/// The memory of one noted range beyond its bounds.
const RANGE_OVERHEAD_BYTES: u64 = 256;

/// An iterator that was repositioned this often counts as having read its whole range.
const STRETCHES_MAX: usize = 256;

/// What was read of one keyspace.
#[derive(Debug)]
pub struct KeyspaceReads {
    /// The keyspace.
    pub keyspace: Arc<KeyspaceState>,
    /// Keys, each with the oldest position at which it was read.
    pub keys: BTreeMap<Vec<u8>, Seq>,
    /// Ranges; iterators may still advance in some of them.
    pub ranges: Vec<Arc<RangeRead>>,
}

/// A range, as far as an iterator advanced in it.
#[derive(Debug)]
pub struct RangeRead {
    /// The position at which it was read.
    pub since: Seq,
    bounds: Bounds,
    progress: Mutex<Progress>,
}

/// How far an iterator advanced from both ends.
#[derive(Debug)]
struct Progress {
    /// Stretches that were read before the front was repositioned, or that are read to their end.
    done: Vec<Bounds>,
    /// Where the front began.
    front_start: Bound<KeyBuf>,
    /// The last key that the front showed.
    front: Option<Vec<u8>>,
    /// The last key that the back showed.
    back: Option<Vec<u8>>,
}

impl RangeRead {
    /// Nothing of `bounds` is read yet.
    pub fn new(since: Seq, bounds: Bounds) -> Self {
        let front_start = bounds.low.clone();
        let progress = Progress { done: Vec::new(), front_start, front: None, back: None };
        Self { since, bounds, progress: Mutex::new(progress) }
    }

    /// All of `bounds` is read.
    pub fn whole(since: Seq, bounds: Bounds) -> Self {
        let read = Self::new(since, bounds.clone());
        read.progress.lock().done.push(bounds);
        read
    }

    /// The front shows `key`.
    pub fn front(&self, key: &[u8]) {
        put(&mut self.progress.lock().front, key);
    }

    /// The back shows `key`.
    pub fn back(&self, key: &[u8]) {
        put(&mut self.progress.lock().back, key);
    }

    /// The front found nothing more, up to the back or to the upper bound.
    pub fn front_done(&self) {
        let mut progress = self.progress.lock();
        let (low, high) = (progress.front_start.clone(), self.bounds.high.clone());
        progress.done.push(Bounds { low, high });
        progress.front = None;
        progress.front_start = self.bounds.high.clone();
    }

    /// The back found nothing more, down to the front or to the lower bound.
    pub fn back_done(&self) {
        let mut progress = self.progress.lock();
        let (low, high) = (progress.front_start.clone(), self.bounds.high.clone());
        progress.done.push(Bounds { low, high });
    }

    /// The front is repositioned.
    pub fn seek(&self, start: Bound<KeyBuf>) {
        let mut progress = self.progress.lock();
        if let Some(high) = progress.front.take() {
            let low = progress.front_start.clone();
            progress.done.push(Bounds { low, high: Bound::Included(high.into()) });
        }
        if progress.done.len() >= STRETCHES_MAX {
            progress.done = vec![self.bounds.clone()];
        }
        progress.front_start = start;
    }

    /// The stretches that were read so far.
    pub fn stretches(&self) -> Vec<Bounds> {
        let progress = self.progress.lock();
        let mut stretches = progress.done.clone();
        if let Some(high) = progress.front.clone() {
            let low = progress.front_start.clone();
            stretches.push(Bounds { low, high: Bound::Included(high.into()) });
        }
        if let Some(low) = progress.back.clone() {
            let high = self.bounds.high.clone();
            stretches.push(Bounds { low: Bound::Included(low.into()), high });
        }
        stretches
    }
}

fn put(place: &mut Option<Vec<u8>>, key: &[u8]) {
    let place = place.get_or_insert_default();
    place.clear();
    place.extend_from_slice(key);
}

/// Everything that a transaction has read.
#[derive(Debug)]
pub struct ReadSet {
    spaces: Vec<KeyspaceReads>,
    bytes: u64,
    bytes_max: u64,
}

impl ReadSet {
    /// Nothing is read yet; the noted reads may take up to `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Self {
        Self { spaces: Vec::new(), bytes: 0, bytes_max }
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// About the bytes that it takes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a keyspace with a custom comparator was read.
    pub fn has_custom_comparator(&self) -> bool {
        self.spaces.iter().any(|space| space.keyspace.has_custom_comparator())
    }

    /// What was read, by keyspace.
    pub fn spaces(&self) -> &[KeyspaceReads] {
        &self.spaces
    }

    fn space(&mut self, keyspace: &Arc<KeyspaceState>) -> &mut KeyspaceReads {
        let at = self.spaces.iter().position(|space| space.keyspace.id == keyspace.id);
        let at = at.unwrap_or_else(|| {
            let keyspace = keyspace.clone();
            self.spaces.push(KeyspaceReads { keyspace, keys: BTreeMap::new(), ranges: Vec::new() });
            self.spaces.len() - 1
        });
        &mut self.spaces[at]
    }

    /// Notes that `key` was read at `since`.
    pub fn key(&mut self, keyspace: &Arc<KeyspaceState>, key: &[u8], since: Seq) {
        let space = self.space(keyspace);
        if let Some(known) = space.keys.get_mut(key) {
            *known = since.min(*known);
            return;
        }
        space.keys.insert(key.to_vec(), since);
        self.grow(key.len() as u64 + KEY_OVERHEAD_BYTES);
    }

    /// Notes that an iterator is about to read `bounds` at `since`; the iterator reports its
    /// progress to the result.
    pub fn range(
        &mut self,
        keyspace: &Arc<KeyspaceState>,
        bounds: Bounds,
        since: Seq,
    ) -> Arc<RangeRead> {
        let mut bytes = RANGE_OVERHEAD_BYTES;
        for bound in [&bounds.low, &bounds.high] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                // The progress may later hold keys of this size, too.
                bytes += 2 * key.len() as u64;
            }
        }
        let read = Arc::new(RangeRead::new(since, bounds));
        self.space(keyspace).ranges.push(read.clone());
        self.grow(bytes);
        read
    }

    /// Counts memory; beyond the limit, whole keyspaces replace the noted keys and ranges.
    fn grow(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.bytes <= self.bytes_max {
            return;
        }
        self.bytes = 0;
        for space in &mut self.spaces {
            let ranges = space.ranges.iter().map(|range| range.since);
            let oldest = space.keys.values().copied().chain(ranges).min();
            space.keys.clear();
            // The whole keyspace also covers ranges in which iterators still advance.
            space.ranges.clear();
            if let Some(since) = oldest {
                space.ranges.push(Arc::new(RangeRead::whole(since, Bounds::default())));
                self.bytes += RANGE_OVERHEAD_BYTES;
            }
        }
    }
}

#[cfg(test)]
mod tests;
