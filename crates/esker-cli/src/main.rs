//! The `esker` program: a shell, a benchmark and tools for Esker databases.
//!
//! `cli` lists the commands and runs the one that is named, `flags` defines the arguments that they
//! share, `commands`, `shell` and `bench` do the work, `live` sees a database from outside, `ctrl_c` ends it early, `output` prints,
//! `failure` reports errors. Standard output carries answers only; a failure is one line on standard
//! error and the exit code 1, or 2 where the command line was not understood.

mod bench;
mod cli;
mod commands;
mod ctrl_c;
mod failure;
mod flags;
mod live;
mod output;
mod progress;
mod shell;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = cli::parse(std::env::args_os().collect()).and_then(cli::run);
    result.unwrap_or_else(|failure| {
        let code = failure.exit_code();
        if code != 0 {
            // Where standard error leads nowhere, the exit code has to say it.
            let _ = writeln!(io::stderr(), "esker: {failure}");
        }
        ExitCode::from(code)
    })
}
