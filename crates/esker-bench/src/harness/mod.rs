//! The measuring tool itself: it makes load, times it, and checks what comes back.
//!
//! The load: `workload` lists the workloads by name, `settings` has everything that decides what is done,
//! `keys`, `values` and `dist` make keys, values and the order in which keys are used. The measurement:
//! `runner` carries out workloads on one open database, `measure` has the instruments, `step_report` is
//! what they found out about one step. The checks: `live` knows which keys are present, `check` makes
//! checksums of results. Around it: `workspace` makes and removes directories, `interrupt` ends a run
//! early.
//!
//! The harness must cost little compared to the measured work: one clock read per operation, keys and
//! values made without allocation, counters that only their own thread writes, histograms merged when a
//! workload has ended.

pub mod check;
pub mod dist;
pub mod interrupt;
pub mod keys;
pub mod live;
pub mod measure;
pub mod runner;
pub mod settings;
pub mod step_report;
pub mod values;
pub mod workload;
pub mod workspace;

pub use interrupt::Interrupt;
pub use settings::Settings;
pub use step_report::{CheckScope, StepCheck, WorkloadReport};
pub use workload::{Kind, Workload};
