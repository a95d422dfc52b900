//! One harness that measures Esker and other engines under the same conditions.
//!
//! A *run* opens one database of one engine and executes a list of *workloads* (the names are those of
//! LevelDB's and RocksDB's `db_bench`) on it, in order. A *suite* interleaves runs of several engines
//! over several rounds (A B A B …), so that a drift of the machine affects all of them alike, and
//! compares medians. Nothing here prints: the caller gets a [`Report`] and decides how a person or a
//! program reads it.
//!
//! There are four modules. Each imports only those to its left, and all of them the small `error` (only
//! tests reach to the right):
//!
//! `engines` ← `harness` ← `report` ← `experiments`
//!
//! - [`engines`]: the interface of an engine, the adapters, and the registry of their names.
//! - [`harness`]: workloads, settings, measurement, and the runner that carries out one step on one
//!   database.
//! - [`report`]: the JSON report, medians and verdicts, plots, and the page for a browser.
//! - [`experiments`]: what runs several databases: suites, comparisons, published experiments and
//!   campaigns.
//!
//! `docs/benchmark-map.md` lists the files of each module, follows one `esker bench` through them, and
//! says where to add a workload, an engine, a counter, an experiment or a column.

pub mod engines;
mod error;
pub mod experiments;
pub mod harness;
pub mod report;

pub use engines::{Durability, EngineSpec};
pub use error::{Error, Result};
pub use experiments::suite::{Observer, run};
pub use harness::{Interrupt, Kind, Settings, Workload, WorkloadReport};
pub use report::{Report, RunReport};
