//! The numbers whose gathering takes work in proportion to the size of the database.
//!
//! The device is asked for the size of every run file, what only branches hold is found by a walk
//! over all run segments, and the shapes of trees by a walk over their partitions. A program that
//! asks for statistics gets these numbers as they are. The monitor, which asks about once per
//! second, uses them for longer the more work they took ([`Remeasured`]), so that a database of any
//! size spends little on being looked at. Numbers that took `n` steps are shown by `n / 1000` more
//! looks, and are then measured again.

use super::branches::held_by_branches;
use crate::catalog::Catalog;
use crate::directory::files::Files;
use crate::state::State;
use crate::stats::report::TreeShape;
use parking_lot::Mutex;

/// Steps of work per look of the monitor, on average: a step is a run file that is measured, a
/// hundred run segments that are looked at, a tree whose shape is gathered, or ten runs in it.
const STEPS_PER_LOOK: u64 = 1000;

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Bytes that run files take on the device.
    pub data_file_bytes: u64,
    /// Bytes that only one branch refers to, by branch, the largest first.
    pub branches: Vec<(String, u64)>,
    /// The shapes of trees.
    pub trees: Vec<TreeShape>,
    /// How many steps it took.
    pub steps: u64,
}

impl Measured {
    /// Measures now.
    pub fn now(files: &Files, state: &State, catalog: &Mutex<Catalog>) -> Self {
        let (data_file_bytes, run_files) = files.allocated();
        let (branches, segments) = held_by_branches(state, &catalog.lock());
        let steps = run_files + segments / 100;
        Self { data_file_bytes, branches, trees: Vec::new(), steps }
    }
}

/// Measures again when the last measurement has paid off.
#[derive(Debug, Default)]
pub struct Remeasured {
    latest: Measured,
    /// Looks for which the latest measurement is still used.
    rest: u64,
}

impl Remeasured {
    /// What one more look shows; `measure` runs only if it is due.
    pub fn look(&mut self, measure: impl FnOnce() -> Measured) -> Measured {
        match self.rest.checked_sub(1) {
            Some(rest) => self.rest = rest,
            None => {
                self.latest = measure();
                self.rest = self.latest.steps / STEPS_PER_LOOK;
            }
        }
        self.latest.clone()
    }
}

#[cfg(test)]
mod tests;
