//! The `esker bench` command.

use crate::failure::Failure;

/// Measures a database.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {}

/// Runs the command.
pub fn command(_args: BenchArgs) -> Result<(), Failure> {
    Err(Failure::Negative("this build has no benchmark: use one that has".into()))
}
