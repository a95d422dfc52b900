//! The sequence numbers that merges must preserve (R17).
//!
//! Registration reads `visible` while it holds the same lock under which a merge copies the list.
//! So a merge either sees the snapshot, or the snapshot was taken after the merge copied the list;
//! then it is at or above everything the merge reads, and sees exactly the newest versions, which
//! no merge drops.

use crate::base::Seq;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The registered snapshots of a database.
#[derive(Debug, Default)]
pub struct Snapshots {
    counts: Mutex<BTreeMap<Seq, usize>>,
}

impl Snapshots {
    /// Registers a snapshot at the position that `visible` gives.
    pub fn register(&self, visible: impl FnOnce() -> Seq) -> Seq {
        let mut counts = self.counts.lock();
        let seq = visible();
        *counts.entry(seq).or_default() += 1;
        seq
    }

    /// Ends one registration at `seq`.
    pub fn release(&self, seq: Seq) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&seq) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&seq);
            }
        }
    }

    /// The registered sequence numbers, ascending, each once.
    pub fn list(&self) -> Vec<Seq> {
        self.counts.lock().keys().copied().collect()
    }
}

#[cfg(test)]
mod tests;
