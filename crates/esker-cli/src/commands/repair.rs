//! `esker repair`: reports what a damaged database lost, and saves the rest into a new one, beside
//! it or in its place.

use crate::failure::{Failure, one_line};
use crate::flags::OpenFlags;
use crate::output;
use crate::progress::Spinner;
use clap::{ArgGroup, Args};
use esker::Db;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Reports what of a damaged database can be saved, or saves it; the damaged one is kept as it is
#[derive(Debug, Args)]
#[command(
    after_help = "With --plan the exit code is 1 if something would be lost; the lines that \
    begin with \"lost:\" name it. A repair that is interrupted leaves a directory that cannot be \
    opened; run again, it begins anew. With --in-place an intact database is not changed; a \
    damaged one is renamed to DIR.damaged-1, or the next free number, and a new database with \
    what could be saved is at DIR.\n\nExample:\n  esker repair --plan DIR\n  \
    esker repair DIR --to NEW\n  esker repair DIR --in-place"
)]
#[command(group = ArgGroup::new("what").required(true).args(["plan", "to", "in_place"]))]
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
    /// Save what can be saved, put it in the place of the damaged database, and keep that beside it
    #[arg(long)]
    in_place: bool,
    #[command(flatten)]
    open: OpenFlags,
    /// Print JSON, with the figures besides the report
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &RepairArgs, out: &mut impl Write) -> Result<(), Failure> {
    let options = args.open.options();
    let spinner = match &args.to {
        Some(to) => Spinner::of_directory("repairing", to.clone()),
        None => Spinner::new("repairing"),
    };
    let (mut losses, mut json) = (false, json!({}));
    let report = match &args.to {
        // What it lost is said, but the repair did what it can.
        Some(to) => {
            let salvaged = esker::repair::salvage(&args.dir, to, &options)?;
            json["salvaged"] = esker_json::salvaged(&salvaged);
            salvaged.to_string()
        }
        None if args.in_place => {
            let repaired = Db::repair(&args.dir, &options)?;
            let kept = repaired.kept.as_ref();
            json["kept"] = json!(kept.map(|kept| kept.to_string_lossy().into_owned()));
            json["salvaged"] = json!(repaired.salvaged.as_ref().map(esker_json::salvaged));
            repaired.to_string()
        }
        None => {
            let plan = esker::repair::plan(&args.dir, &options)?;
            json["plan"] = esker_json::plan(&plan);
            losses = plan.has_losses();
            plan.to_string()
        }
    };
    drop(spinner);
    let lines: Vec<String> = report.lines().map(one_line).collect();
    if args.json {
        json["report"] = json!(lines);
        output::json_line(out, &json)?;
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
