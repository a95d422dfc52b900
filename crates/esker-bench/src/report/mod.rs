//! What a suite found out, and the forms in which people read it.
//!
//! `json` is the report itself, made of `run` (one database from open to close), `medians` (engines
//! compared over rounds), `origin` (the command and the build that made it) and `evenness` (spread of latencies and rates). `plot` draws rates over time.
//! `page` reads reports from files and makes one HTML page, or tables in Markdown, of them. The tables
//! that a terminal shows are made by `esker-cli` (`src/bench/table.rs`).

mod evenness;
mod json;
mod medians;
mod origin;
pub mod page;
pub mod plot;
mod run;

pub use evenness::{Evenness, OpenLoopMedian, Spread};
pub use json::{Agreement, EngineReport, FORMAT, Report};
pub use medians::{Comparison, Median, Verdict, compare};
pub use origin::{Build, Origin};
pub use run::RunReport;
