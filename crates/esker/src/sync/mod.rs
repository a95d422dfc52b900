//! The building blocks with which threads work together.
//!
//! Writers publish everything that a reader touches by swapping one pointer ([`EpochCell`]). A
//! reader pins an epoch, follows the pointer and writes to no shared line at all; the thread that
//! replaces the pointee hands the old one to the epoch collector. One [`Latch`] records the first
//! failure of the background threads; every later caller gets it as the cause. Threads wait for
//! each other on a [`Signal`]; none polls.
//!
//! Tests may hold the background at named points ([`Gates`]).
//!
//! Statistics are kept in [`Stripes`]: each thread adds to lines of its own. So are [`Sums`], which are also
//! compared with a bound.
//!
//! Code that also runs under the model checker takes its atomics and locks from `primitives`.
//!
//! The grace period is that of `crossbeam-epoch`'s default collector, so one pin covers every
//! cell of the process: a reader may follow several of them under the same guard.

mod aside;
#[cfg(loom)]
mod checked;
mod contain;
mod epoch;
mod epoch_cell;
mod gates;
mod histogram;
#[cfg(not(loom))]
mod interruption;
mod latch;
pub(crate) mod primitives;
mod signal;
mod stripes;
mod sums;
mod threads;

pub use aside::Aside;
pub use contain::contain;
pub use epoch::{Guard, collect, pin};
pub use epoch_cell::{EpochCell, EpochSlot};
pub use gates::{Gates, KnownGates, Point, pass};
pub use histogram::{Histogram, Latency, nanos_of};
#[cfg(not(loom))]
pub use interruption::Interruption;
pub use latch::Latch;
pub use signal::Signal;
#[cfg(all(test, not(loom)))]
pub use stripes::has_stripe;
pub use stripes::{Apart, Lane, Stripes};
pub use sums::Sums;
pub use threads::{Helper, both, help, spawn};

#[cfg(all(test, not(loom)))]
mod tests;
