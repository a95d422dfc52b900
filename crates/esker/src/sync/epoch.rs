//! The source of guards: `crossbeam-epoch`, or the model checker's replacement.

#[cfg(not(loom))]
pub use crossbeam_epoch::{Guard, pin};

#[cfg(loom)]
pub use super::checked::{Guard, pin};

/// The number of turns of [`collect`]: two until what was retired goes, and two for what it retires in turn.
const TURNS: usize = 4;

/// Drops what was retired, as far as no thread has been in an epoch since before. What is left goes when threads enter
/// epochs later, on whichever of them.
pub fn collect() {
    for _ in 0..TURNS {
        pin().flush();
    }
}

/// Whether a guard protects what cells and slots hand out.
#[cfg(not(loom))]
pub(super) fn protects(guard: &Guard) -> bool {
    guard.collector() == Some(crossbeam_epoch::default_collector())
}

/// There is one collector.
#[cfg(loom)]
pub(super) fn protects(_: &Guard) -> bool {
    true
}
