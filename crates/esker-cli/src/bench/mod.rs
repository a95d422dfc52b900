//! The `esker bench` command.

use std::process::ExitCode;

/// Measures a database
#[derive(Debug, clap::Args)]
pub struct BenchArgs {}

/// Runs the command.
pub fn command(_args: BenchArgs) -> ExitCode {
    eprintln!("esker: this build has no benchmark: use one that has");
    ExitCode::FAILURE
}
