//! Chores of the workspace that need more than cargo. `cargo xtask help` lists them.
//!
//! Each chore is a module with a function that does it and says in words what went wrong; this
//! file only reads the command line.

mod headers;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Chores of the workspace")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Writes the C headers that are generated from the sources of the C interfaces.
    Headers {
        /// Writes nothing, and fails if a header that is checked in differs.
        #[arg(long)]
        check: bool,
    },
}

/// Why a chore was not done, in words.
type Result<T, E = String> = std::result::Result<T, E>;

/// The directory of the workspace.
fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Headers { check } => headers::run(&workspace(), check),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
