//! The sequence numbers that compactions must preserve (R17).
//!
//! Registration reads `visible` under the lock under which a compaction copies the list. So a
//! compaction either sees the snapshot, or the snapshot was taken after the compaction copied the
//! list. Then it is at or above everything the compaction reads, and sees exactly the newest
//! versions, which no compaction drops.

use crate::base::{Millis, Moment, Seq};
use crate::sync::primitives::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The registered snapshots of a database.
#[derive(Debug, Default)]
pub struct Snapshots {
    /// How often each position is registered, and the earliest time among its registrations.
    counts: Mutex<BTreeMap<Seq, (usize, Millis)>>,
    /// The labels of those that have one; only statistics show them.
    labels: Mutex<BTreeMap<Seq, Vec<Arc<str>>>>,
}

/// A registered position, as statistics show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The position.
    pub seq: Seq,
    /// How often it is registered.
    pub count: usize,
    /// The earliest time among its registrations.
    pub time: Millis,
    /// The labels of its registrations, with commas between them.
    pub label: String,
}

impl Snapshots {
    /// Registers a snapshot at the moment that `now` gives.
    pub fn register(&self, now: impl FnOnce() -> Moment) -> Moment {
        let mut counts = self.counts.lock();
        let moment = now();
        // Time does not go back, so the first registration of a position has the earliest time.
        counts.entry(moment.seq).or_insert((0, moment.time)).0 += 1;
        moment
    }

    /// Ends one registration at `seq`.
    pub fn release(&self, seq: Seq) {
        let mut counts = self.counts.lock();
        if let Some((count, _)) = counts.get_mut(&seq) {
            // Seeded: when two snapshots have the same position, releasing one leaves the other
            // unprotected.
            bug!("state_first_release_ends_snapshot", *count = 1);
            *count -= 1;
            if *count == 0 {
                counts.remove(&seq);
            }
        }
    }

    /// Gives a registration at `seq` a label.
    pub fn label(&self, seq: Seq, label: Arc<str>) {
        self.labels.lock().entry(seq).or_default().push(label);
    }

    /// Takes a label of a registration at `seq` back.
    pub fn unlabel(&self, seq: Seq, label: &Arc<str>) {
        let mut labels = self.labels.lock();
        if let Some(of_seq) = labels.get_mut(&seq) {
            if let Some(at) = of_seq.iter().position(|one| Arc::ptr_eq(one, label)) {
                of_seq.remove(at);
            }
            if of_seq.is_empty() {
                labels.remove(&seq);
            }
        }
    }

    /// The oldest registered positions, at most `most` of them.
    pub fn oldest_of(&self, most: usize) -> Vec<Registered> {
        let counts = self.counts.lock();
        let oldest: Vec<_> = counts.iter().take(most).map(|(seq, of)| (*seq, *of)).collect();
        drop(counts);
        let labels = self.labels.lock();
        let registered = |(seq, (count, time))| {
            let label = labels.get(&seq).map_or_else(String::new, |labels| labels.join(", "));
            Registered { seq, count, time, label }
        };
        oldest.into_iter().map(registered).collect()
    }

    /// The registered sequence numbers, ascending, each once.
    pub fn list(&self) -> Vec<Seq> {
        self.counts.lock().keys().copied().collect()
    }

    /// The oldest registered position.
    pub fn first(&self) -> Option<Seq> {
        self.counts.lock().keys().next().copied()
    }

    /// How many positions are registered, and the time of the oldest.
    pub fn oldest(&self) -> (usize, Option<Millis>) {
        let counts = self.counts.lock();
        (counts.len(), counts.values().next().map(|(_, time)| *time))
    }

    /// Prevents snapshots from being registered or released until the guard is dropped, if all
    /// registered positions are in `known`; `None`: there are others.
    pub fn hold(&self, known: &[Seq]) -> Option<impl Sized + '_> {
        let counts = self.counts.lock();
        counts.keys().all(|seq| known.contains(seq)).then_some(counts)
    }

    /// The time of the earliest reader, or `now` if that is earlier.
    pub fn earliest_time(&self, now: Millis) -> Millis {
        let counts = self.counts.lock();
        counts.values().next().map_or(now, |(_, time)| now.min(*time))
    }

    /// The registered moments, ascending, each position once with its earliest time; and the time
    /// that `now` returns, which is not later than that of any snapshot registered afterwards.
    pub fn moments(&self, now: impl FnOnce() -> Millis) -> (Vec<Moment>, Millis) {
        // Seeded: compactions ignore snapshots.
        bug!("state_compactions_ignore_snapshots", return (Vec::new(), now()));
        let counts = self.counts.lock();
        let moment = |(seq, (_, time)): (&Seq, &(usize, Millis))| Moment { seq: *seq, time: *time };
        (counts.iter().map(moment).collect(), now())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
