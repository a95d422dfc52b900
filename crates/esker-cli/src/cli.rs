//! The command line: which commands the program accepts, and the code that runs each.
//!
//! Each command keeps its own arguments beside its code, and `flags` holds those that several
//! commands share. This file lists the commands, reads the program's arguments and runs the command
//! they name.

use crate::bench::{self, BenchArgs};
use crate::commands::{
    branch, checkpoint, compact, completions, del, delrange, drop, dump, events, explain, get,
    import, inspect, keyspaces, load, man, put, repair, scan, serve_metrics, stats, top, verify,
};
use crate::failure::{Failure, one_line};
use crate::shell::{self, ShellArgs};
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

#[cfg(test)]
mod tests;

/// Esker: an embedded, ordered key-value store
#[derive(Debug, Parser)]
#[command(name = "esker", version, disable_help_subcommand = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[allow(missing_docs)] // Each is described where its arguments are.
pub enum Command {
    Shell(ShellArgs),
    Get(get::GetArgs),
    Put(put::PutArgs),
    Del(del::DelArgs),
    Delrange(delrange::DelrangeArgs),
    Drop(drop::DropArgs),
    Scan(scan::ScanArgs),
    Keyspaces(keyspaces::KeyspacesArgs),
    Stats(stats::StatsArgs),
    Top(top::TopArgs),
    ServeMetrics(serve_metrics::ServeMetricsArgs),
    Explain(explain::ExplainArgs),
    Events(events::EventsArgs),
    Verify(verify::VerifyArgs),
    Branch(branch::BranchArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Compact(compact::CompactArgs),
    Inspect(inspect::InspectArgs),
    Repair(repair::RepairArgs),
    Dump(dump::DumpArgs),
    Load(load::LoadArgs),
    Import(import::ImportArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Bench(Box<BenchArgs>),
}

/// Reads the program's arguments. Help and version are printed here and end the program; an
/// argument that is not understood becomes a message of one line.
pub fn parse(arguments: Vec<OsString>) -> Result<Cli, Failure> {
    let error = match Cli::try_parse_from(&arguments) {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    if !error.use_stderr() || arguments.len() < 2 {
        error.exit();
    }
    // The library's message goes on with a summary of the usage; the help has it too.
    let text = error.to_string();
    let what = text.split("\n\nUsage:").next().unwrap_or_default();
    let what = what.split("\n\nFor more information").next().unwrap_or_default();
    let what = what.trim().trim_start_matches("error: ");
    let words: Vec<&str> = what.split_whitespace().collect();
    let what = words.join(" ").replace(" tip: ", "; ");
    let names = Cli::command();
    let name = arguments.get(1).and_then(|name| name.to_str());
    let name = name.filter(|name| names.find_subcommand(name).is_some());
    let help = name.map_or("esker --help".to_owned(), |name| format!("esker {name} --help"));
    Err(Failure::Usage(one_line(&format!("{what}; see `{help}`"))))
}

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
        // The terminal view writes to standard output by itself.
        Command::Top(args) => {
            drop(out);
            return top::run(&args, &mut io::stdout()).map(|()| ExitCode::SUCCESS);
        }
        Command::Get(args) => get::run(&args, &mut out),
        Command::Put(args) => put::run(&args, &mut out),
        Command::Del(args) => del::run(&args, &mut out),
        Command::Delrange(args) => delrange::run(&args, &mut out),
        Command::Drop(args) => drop::run(&args, &mut out),
        Command::Scan(args) => scan::run(&args, &mut out),
        Command::Keyspaces(args) => keyspaces::run(&args, &mut out),
        Command::Stats(args) => stats::run(&args, &mut out),
        Command::ServeMetrics(args) => serve_metrics::run(&args, &mut out),
        Command::Explain(args) => explain::run(&args, &mut out),
        Command::Events(args) => events::run(&args, &mut out),
        Command::Verify(args) => verify::run(&args, &mut out),
        Command::Branch(args) => branch::run(&args, &mut out),
        Command::Checkpoint(args) => checkpoint::run(&args, &mut out),
        Command::Compact(args) => compact::run(&args, &mut out),
        Command::Inspect(args) => inspect::run(&args, &mut out),
        Command::Import(args) => import::run(&args, &mut out),
        Command::Load(args) => load::run(&args, &mut out),
        Command::Repair(args) => repair::run(&args, &mut out),
        Command::Completions(args) => completions::run(&args, Cli::command(), &mut out),
        Command::Man(args) => man::run(&args, Cli::command(), &mut out),
    };
    // What was printed before a failure is part of the answer: problems found, entries read.
    let flushed = out.flush();
    result?;
    flushed?;
    Ok(ExitCode::SUCCESS)
}
