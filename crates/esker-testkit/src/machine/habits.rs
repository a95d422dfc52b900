//! What some machines do and others do not.
//!
//! A habit costs time or hides something, so no machine has all of them. They follow from the machine's seed
//! without a draw: what machines without a habit do stays what it was. None of the runs that are kept because
//! they found something once has one.

/// What a machine does besides the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Habits {
    /// Some writes do not wait.
    pub impatient: bool,
    /// So many iterators are open that they let their blocks go.
    pub crowded: bool,
}

impl Habits {
    /// Those of the machine with this seed.
    pub(super) fn of(seed: u64) -> Self {
        let impatient = [0, 1, 3, 5, 6, 8, 9].contains(&(seed % 11));
        Self { impatient, crowded: [5, 10, 12].contains(&(seed % 13)) }
    }
}
