//! The `esker` program.

mod bench;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "esker", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the engine, and its rivals, under named workloads.
    Bench(Box<bench::BenchArgs>),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Bench(args) => bench::command(*args),
    }
}
