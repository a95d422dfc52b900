//! `esker bench`: named workloads on Esker and its rivals.
//!
//! The work is done by the `esker-bench` crate, which prints nothing. Here are the options, the
//! lines that appear on a terminal while it runs (standard error), and the report: tables for a
//! person, or one JSON object for a program (standard output). `esker bench report` makes a page of
//! such objects. Options have `db_bench`'s names where it has the option, with its underscores as
//! hyphens.
//!
//! Exit codes: 0 for a report, 1 if an engine, a file or the disk failed, 2 for a command line that
//! cannot be carried out, 130 for a run that was interrupted. A run that ended early prints what it
//! has.

mod args;
mod command;
mod compare;
mod experiment;
mod follow;
mod origin;
mod output;
mod page;
mod run;
mod table;
#[cfg(test)]
mod tests;

pub use command::{BenchArgs, command};
#[cfg(test)]
pub use tests::settled;
