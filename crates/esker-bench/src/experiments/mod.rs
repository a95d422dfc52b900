//! What runs more than one database.
//!
//! `suite` runs the workloads of `esker bench` over engines and rounds, in one process. `compare` does
//! the same under stricter rules, with a process for each run. `published` has the experiments that
//! others published, as lists of steps. `campaign` runs such an experiment over several engines, and
//! can be stopped and continued.

pub mod campaign;
pub mod compare;
pub mod published;
pub mod suite;
