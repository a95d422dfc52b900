//! Engines side by side, under rules that the program keeps, so that the reader need not check them.
//!
//! Every run of an engine has a process of its own ([`process`]), so that peak memory, CPU time, the
//! allocator's state and a crash are its own. Rounds interleave the engines, and each round starts
//! with another one, so that a drift of the machine and the traces of a neighbour fall on all alike.
//! What engines returned must agree ([`agree`]); a comparison of wrong answers is refused.
//!
//! Whatever ends a comparison early, the report holds what was measured until then and says why:
//! [`crate::Report::stopped`]. Only a command that cannot be carried out at all is an error.
//!
//! Invariants:
//! 1. All engines of a report were opened at one durability class, which each of them offers.
//! 2. All engines of a round got the same operations: the seeds depend on the round, the step and
//!    the thread alone.
//! 3. No run shares a process with another, and none is left behind when the comparison ends.

pub mod agree;
pub mod child;
mod contest;
mod disk;
pub mod host;
mod prepare;
pub mod process;
pub(crate) mod rules;
mod turns;

pub use contest::run;
pub(crate) use disk::disk_is_full;
pub use prepare::{prepare, tuned};
pub(crate) use turns::turns;

#[cfg(test)]
mod tests;
