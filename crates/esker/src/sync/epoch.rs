//! The source of guards: `crossbeam-epoch`, or the model checker's replacement.

#[cfg(not(loom))]
pub use crossbeam_epoch::{Guard, pin};

#[cfg(loom)]
pub use super::checked::{Guard, pin};

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
