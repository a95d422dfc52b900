//! The source of guards: `crossbeam-epoch`, or the model checker's replacement.

#[cfg(not(loom))]
pub use crossbeam_epoch::{Guard, pin};

#[cfg(loom)]
pub use super::checked::{Guard, pin};

/// The number of turns of [`collect`]. Two pass until what was retired goes, and two more for what that retires in turn;
/// each frees a few of the batches that wait. In a model nothing waits, and each turn would be steps to explore.
const TURNS: usize = if cfg!(loom) { 0 } else { 64 };

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
