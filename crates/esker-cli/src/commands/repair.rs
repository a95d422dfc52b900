//! `esker repair`: reports what a damaged database lost, and saves the rest into a new one.

use crate::failure::{Failure, one_line};
use crate::flags::OpenFlags;
use crate::output;
use clap::{ArgGroup, Args};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Reports what of a damaged database can be saved, or saves it; never changes that database
#[derive(Debug, Args)]
#[command(
    after_help = "With --plan the exit code is 1 if something would be lost; the lines that \
    begin with \"lost:\" name it. A repair that is interrupted leaves a directory that cannot be \
    opened; run again, it begins anew.\n\nExample:\n  esker repair --plan DIR\n  \
    esker repair DIR --to NEW"
)]
#[command(group = ArgGroup::new("what").required(true).args(["plan", "to"]))]
pub struct RepairArgs {
    /// The damaged database's directory
    dir: PathBuf,
    /// Only report what is damaged and what can be saved
    #[arg(long)]
    plan: bool,
    /// Save what can be saved to this directory, which must not exist, unless an interrupted repair
    /// left it
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
    let (report, losses) = match &args.to {
        None => {
            let plan = esker::repair::plan(&args.dir, &options)?;
            (plan.to_string(), plan.has_losses())
        }
        // What it lost is said, but the repair did what it can.
        Some(to) => (esker::repair::salvage(&args.dir, to, &options)?.to_string(), false),
    };
    let lines: Vec<String> = report.lines().map(one_line).collect();
    if args.json {
        output::json_line(out, &json!({ "report": lines }))?;
    } else {
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    if losses {
        let dir = args.dir.display();
        let what = format!("a repair of {dir} would lose what the lines with \"lost:\" name");
        return Err(Failure::Negative(what));
    }
    Ok(())
}
