//! The commands of `esker bench`, and which file carries out each.
//!
//! Without a command, `esker bench` runs the workloads once. Every failure becomes a line on standard
//! error and an exit code.

use super::args::{BenchFlags, CompareArgs};
use super::experiment::{self, ExperimentArgs};
use super::page::{self, PageArgs};
use super::{compare, run};
use crate::failure::one_line;
use esker_bench::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// Measure this machine: named workloads on Esker and other stores
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    /// Other actions
    #[command(subcommand)]
    pub command: Option<BenchCommand>,
    #[command(flatten)]
    pub flags: BenchFlags,
}

/// The commands below `esker bench`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum BenchCommand {
    Compare(Box<CompareArgs>),
    Experiment(Box<ExperimentArgs>),
    Report(PageArgs),
    /// One run of a comparison, as it starts them itself
    #[command(hide = true)]
    Child,
}

/// Runs the command and says on standard error what went wrong.
pub fn command(args: BenchArgs) -> ExitCode {
    let done = match &args.command {
        None => run::execute(&args.flags),
        Some(BenchCommand::Compare(args)) => compare::execute(args),
        Some(BenchCommand::Experiment(args)) => experiment::execute(args),
        Some(BenchCommand::Report(args)) => page::write(args).map(|()| ExitCode::SUCCESS),
        Some(BenchCommand::Child) => Ok(esker_bench::experiments::compare::child::main()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // Where standard error leads nowhere, the exit code has to say it.
            let _ = writeln!(io::stderr(), "esker: {}", one_line(&error.to_string()));
            ExitCode::from(match error {
                Error::Usage(_) => 2,
                Error::Failed(_) => 1,
            })
        }
    }
}
