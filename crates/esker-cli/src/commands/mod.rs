//! The commands that do one thing and end.
//!
//! Each has its own file with its arguments and a function that opens the database, does the work
//! and prints the answer. Commands that only read open the database read-only and change no byte.

pub mod branch;
pub mod checkpoint;
pub mod compact;
pub mod del;
pub mod dump;
pub mod get;
pub mod import;
pub mod inspect;
pub mod keyspaces;
pub mod load;
pub mod put;
pub mod repair;
pub mod scan;
pub mod stats;
pub mod verify;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::{bench, shell};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Runs the given command.
pub fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let result = match cli.command {
        // These see to their output themselves.
        Command::Shell(args) => {
            drop(out);
            return shell::run(args).map(|()| ExitCode::SUCCESS);
        }
        Command::Bench(args) => {
            drop(out);
            return Ok(bench::command(*args));
        }
        // Its second thread writes, and the lock of standard output stays with one thread.
        Command::Dump(args) => {
            drop(out);
            return dump::run(&args, &mut io::stdout()).map(|()| ExitCode::SUCCESS);
        }
        Command::Get(args) => get::run(&args, &mut out),
        Command::Put(args) => put::run(&args, &mut out),
        Command::Del(args) => del::run(&args, &mut out),
        Command::Scan(args) => scan::run(&args, &mut out),
        Command::Keyspaces(args) => keyspaces::run(&args, &mut out),
        Command::Stats(args) => stats::run(&args, &mut out),
        Command::Verify(args) => verify::run(&args, &mut out),
        Command::Branch(args) => branch::run(&args, &mut out),
        Command::Checkpoint(args) => checkpoint::run(&args, &mut out),
        Command::Compact(args) => compact::run(&args, &mut out),
        Command::Inspect(args) => inspect::run(&args, &mut out),
        Command::Import(args) => import::run(&args, &mut out),
        Command::Load(args) => load::run(&args, &mut out),
        Command::Repair(args) => repair::run(&args, &mut out),
    };
    // What was printed before a failure is part of the answer: problems found, entries read.
    let flushed = out.flush();
    result?;
    flushed?;
    Ok(ExitCode::SUCCESS)
}
