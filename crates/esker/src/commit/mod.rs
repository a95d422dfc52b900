//! The way of a write from an encoded batch to the published log (design section 3).
//!
//! Writers elect no leader. A writer reserves log bytes, and with them sequence numbers, by one
//! compare-and-swap; copies its record to its place; applies its batch to the memtable; marks its
//! *ticket* complete. `visible` advances over the contiguous completed prefix, so readers never
//! see a write before an earlier one, and a writer returns only once its own write is visible.
//!
//! Invariants:
//! 1. Space is reserved only inside log files that are prepared and durable (R2, R4).
//! 2. Every reserved ticket is completed, as a batch or as a void, or the pipeline is stopped and
//!    every waiter gets the error (R2). No thread hangs.
//! 3. `visible` never passes a ticket that is not complete, and never goes back.
//! 4. While the gate is closed no thread reserves; its holder sees one position that separates all
//!    earlier writes from all later ones (R3).
//! 5. A position is called synced only after everything before it is in files whose sync, called
//!    later, succeeded, in the order of the log (R5). No file is synced again after a failure (R8).
//!
//! The files: `ring` is the lock-free protocol, small enough to be model-checked with loom; `space`
//! prepares, recycles and frees log files; `rest` says when nobody writes; `group` shares syncs among committers; `pipeline`
//! combines them. The shape follows the reservation logs of Aether (Johnson et al., VLDB 2010) and
//! ERMIA (Kim et al., SIGMOD 2016).

#[cfg(not(loom))]
mod group;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(not(loom))]
mod pipeline;
#[cfg(not(loom))]
mod rest;
mod ring;
#[cfg(not(loom))]
mod space;

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "helpers of tests, too, may panic")]
mod tests;

#[cfg(loom)]
pub(crate) use ring::{Refused, Ring, Ticket};

#[cfg(not(loom))]
pub use pipeline::{Class, LogConfig, LogCounters, Pipeline};
#[cfg(not(loom))]
pub use rest::{RestBytes, Resting};
#[cfg(not(loom))]
pub use space::LogBytes;
