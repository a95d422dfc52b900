//! States that readers may still look at, after newer ones took their place.
//!
//! The epoch scheme lets go of an old state at some later moment, on whatever thread happens to
//! enter an epoch then. Freeing a memtable or a run's indexes takes milliseconds and must not hit
//! a reader. So a second reference to every old state is kept here, and a worker drops it when it
//! is the last one.

use crate::db::state::State;
use crate::sync::pin;
use parking_lot::Mutex;
use std::sync::Arc;

/// Collections that are tried before what is left is taken to be held by iterators.
const ROUNDS: usize = 4;

/// The old states.
#[derive(Debug, Default)]
pub struct Retired {
    states: Mutex<Vec<Arc<State>>>,
}

impl Retired {
    /// Keeps an old state until nobody else does.
    pub fn push(&self, state: Arc<State>) {
        self.states.lock().push(state);
    }

    /// Drops the states that nobody else holds; says whether some are left.
    pub fn collect(&self) -> bool {
        for _ in 0..ROUNDS {
            let mut free = Vec::new();
            let mut states = self.states.lock();
            states.retain(|state| {
                let held = Arc::strong_count(state) > 1;
                if !held {
                    free.push(state.clone());
                }
                held
            });
            let left = !states.is_empty();
            drop(states);
            // The lock is not held while memory is freed.
            drop(free);
            if !left {
                return false;
            }
            pin().flush();
        }
        true
    }
}
