//! Runs workloads, and the stages of experiments, on one open database.
//!
//! [`Runner`] (`run`) carries out one step after the other. `plan` makes threads, operations and time
//! of a workload's name. `job`, `loops`, `ycsb` and `thread` are what the measured threads do;
//! `monitor` watches them. `state` is what the runner remembers between steps, `verify` checks results
//! with it, and `summary` makes the report of a step. `stage` runs a loop that an experiment brings.

mod job;
mod loops;
mod measured;
mod monitor;
mod plan;
mod run;
mod stage;
mod state;
mod summary;
mod thread;
mod verify;
mod ycsb;

pub use run::Runner;
pub use stage::Stage;

#[cfg(test)]
mod tests;
