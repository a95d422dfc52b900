//! States that readers may still use after newer ones have replaced them.
//!
//! The epoch scheme drops an old state at some later time, on whichever thread enters an epoch
//! then. Freeing a memtable or a run's indexes takes milliseconds and must not delay a reader. So
//! this module keeps a second reference to every old state, and a worker drops it when it is the
//! last one.
//!
//! When space is missing, a caller waits for what an old state holds. Calls under way release an
//! old state soon, iterators may not, so only calls are worth waiting for. A state without
//! iterators is *passing* until a caller has waited for it as long as it can wait
//! ([`Retired::settle`]): a call ends without a signal, and a thread that is not scheduled, or that
//! executes a program's own code, may stay in one.

use crate::state::State;
use crate::sync::pin;
use crate::sync::primitives::{self, Mutex};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of collections before the remaining states are taken to be held by iterators.
const ROUNDS: usize = 4;

/// What old states hold that the present one does not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// How many there are.
    pub states: usize,
    /// Bytes of memtables.
    pub memory: u64,
    /// Bytes of runs in files.
    pub data: u64,
    /// Iterators on them.
    pub iterators: u64,
    /// How long ago the oldest of them was replaced.
    pub oldest: Duration,
}

#[derive(Debug)]
struct Old {
    state: primitives::Arc<State>,
    /// When a newer state replaced it.
    since: Instant,
    /// How long a caller has waited for its holders at most.
    waited: Duration,
}

/// The old states.
#[derive(Debug, Default)]
pub struct Retired {
    states: Mutex<Vec<Old>>,
    /// Held while states that were taken out of the list are dropped.
    dropping: Mutex<()>,
}

impl Retired {
    /// Keeps an old state until there is no other reference to it.
    pub fn push(&self, state: primitives::Arc<State>) {
        self.states.lock().push(Old { state, since: Instant::now(), waited: Duration::ZERO });
    }

    /// What the old states hold that `present` does not. It looks at each memtable set, partition
    /// and run once, however many states share it. `present` may have become an old state since the
    /// caller loaded it: then it does not count as one.
    pub fn held(&self, present: &State) -> Held {
        let states = self.states.lock();
        let mut seen = Seen::default();
        seen.count(present);
        let mut held = Held::default();
        let old = states.iter().filter(|old| !std::ptr::eq(&*old.state, present));
        for Old { state, since, .. } in old {
            held.states += 1;
            let (memory, data) = seen.count(state);
            held.memory += memory;
            held.data += data;
            held.iterators += u64::from(state.iterators());
            held.oldest = held.oldest.max(since.elapsed());
        }
        held
    }

    /// Bytes of memtables that the old states hold and `present` does not. It looks at no partition, so it
    /// takes the same time however large the trees are.
    pub fn held_memory(&self, present: &State) -> u64 {
        let states = self.states.lock();
        let mut seen = Seen::default();
        seen.memory(present);
        let old = states.iter().filter(|old| !std::ptr::eq(&*old.state, present));
        old.map(|old| seen.memory(&old.state)).sum()
    }

    /// Whether some of the old states may be released soon, for a caller that can wait so long. If not, the
    /// files of all that were released are known as garbage.
    pub fn is_passing(&self, patience: Duration) -> bool {
        // Who asks would otherwise find that a state is gone before its files are.
        drop(self.dropping.lock());
        self.states.lock().iter().any(|old| old.waited < patience && !old.state.has_iterators())
    }

    /// Records that the holders of the remaining states have not released them while a caller waited so
    /// long.
    pub fn settle(&self, patience: Duration) {
        let mut states = self.states.lock();
        states.iter_mut().for_each(|old| old.waited = old.waited.max(patience));
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.states.lock().len()
    }

    /// Drops the states to which there is no other reference; returns whether some are left.
    pub fn collect(&self) -> bool {
        for _ in 0..ROUNDS {
            let mut free = Vec::new();
            let dropping = self.dropping.lock();
            let mut states = self.states.lock();
            states.retain(|old| {
                let held = primitives::Arc::strong_count(&old.state) > 1;
                if !held {
                    free.push(old.state.clone());
                }
                held
            });
            let left = !states.is_empty();
            drop(states);
            // The lock is not held while memory is freed.
            drop(free);
            drop(dropping);
            if !left {
                return false;
            }
            pin().flush();
        }
        true
    }
}

/// Parts of states that were counted already, by address: the states keep them alive meanwhile.
#[derive(Default)]
struct Seen(HashSet<usize>);

impl Seen {
    fn is_new<T>(&mut self, part: &Arc<T>) -> bool {
        self.0.insert(Arc::as_ptr(part) as *const () as usize)
    }

    /// Bytes of memtables that were not counted before.
    fn memory(&mut self, state: &State) -> u64 {
        let sets = state.memtable_sets.iter().filter(|set| self.is_new(set));
        sets.map(|set| set.bytes()).sum()
    }

    /// Bytes of memtables and of runs that were not counted before.
    fn count(&mut self, state: &State) -> (u64, u64) {
        let (memory, mut data) = (self.memory(state), 0);
        if !self.is_new(&state.version) {
            return (memory, data);
        }
        for (_, tree) in state.version.trees() {
            if !self.is_new(tree) {
                continue;
            }
            for partition in tree.all() {
                if self.is_new(partition) {
                    let runs = partition.runs();
                    let segments =
                        runs.flat_map(|run| run.segments().iter().chain(run.tombstones()));
                    data += segments
                        .flat_map(|segment| segment.with_its_values())
                        .filter(|part| self.is_new(part))
                        .map(|part| part.meta().len)
                        .sum::<u64>();
                }
            }
        }
        (memory, data)
    }
}

#[cfg(test)]
mod tests;
