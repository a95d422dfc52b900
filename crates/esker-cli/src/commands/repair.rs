//! `esker repair`: says what a damaged database lost, and saves the rest into a new one.

use crate::cli::OpenFlags;
use crate::failure::{Failure, one_line};
use crate::output;
use clap::{ArgGroup, Args};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Says what can be saved of a damaged database, or saves it; changes nothing in it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  esker repair --plan DIR\n  esker repair DIR --to NEW")]
#[command(group = ArgGroup::new("what").required(true).args(["plan", "to"]))]
pub struct RepairArgs {
    /// The damaged database's directory
    dir: PathBuf,
    /// Only say what is damaged and what can be saved
    #[arg(long)]
    plan: bool,
    /// Save what can be saved to this directory, which must not exist
    #[arg(long, value_name = "NEW")]
    to: Option<PathBuf>,
    #[command(flatten)]
    open: OpenFlags,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &RepairArgs, out: &mut impl Write) -> Result<(), Failure> {
    let options = args.open.options();
    let report = match &args.to {
        None => esker::repair::plan(&args.dir, &options)?.to_string(),
        Some(to) => esker::repair::salvage(&args.dir, to, &options)?.to_string(),
    };
    let lines: Vec<String> = report.lines().map(one_line).collect();
    if args.json {
        output::json_line(out, &json!({ "report": lines }))?;
        return Ok(());
    }
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
