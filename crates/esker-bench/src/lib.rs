//! One harness that measures Esker and other engines under the same conditions.
//!
//! A *run* opens one database of one engine and executes a list of *workloads* (the names are
//! those of LevelDB's and RocksDB's `db_bench`) on it, in order. A *suite* interleaves runs of
//! several engines over several rounds (A B A B …), so that a drift of the machine falls on all
//! of them alike, and compares medians. Nothing here prints: the caller gets a [`Report`] and
//! decides how a person or a program reads it.
//!
//! The harness must cost little compared to the measured work: one clock read per operation, keys
//! and values made without allocation, counters that only their own thread writes, histograms
//! merged when a workload has ended.
//!
//! Modules, lowest first: `error`, `check`, `keys`, `dist`, `values`, `live`, `workload`,
//! `settings`, `measure`, `links`, `native`, `engine`, `workspace`, `report`, `runner`, `suite`,
//! `experiment`, `compare`, `plot`, `campaign`, `page`.

pub mod campaign;
pub mod check;
pub mod compare;
pub mod dist;
pub mod engine;
mod error;
pub mod experiment;
pub mod interrupt;
pub mod keys;
pub mod links;
pub mod live;
pub mod measure;
#[cfg(any(
    feature = "peer-berkeleydb",
    feature = "peer-capi",
    feature = "peer-splinterdb",
    feature = "peer-wiredtiger"
))]
mod native;
pub mod page;
pub mod plot;
pub mod report;
pub mod runner;
pub mod settings;
pub mod suite;
pub mod values;
pub mod workload;
pub mod workspace;

pub use engine::EngineSpec;
pub use error::{Error, Result};
pub use interrupt::Interrupt;
pub use report::{Report, RunReport, WorkloadReport};
pub use settings::{Durability, Settings};
pub use suite::{Observer, run};
pub use workload::{Kind, Workload};
