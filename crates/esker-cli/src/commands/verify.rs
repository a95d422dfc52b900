//! `esker verify`: reads every byte of a database and checks it.

use crate::failure::{Failure, one_line};
use crate::flags::Target;
use crate::output;
use crate::progress::Spinner;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads all files of a database and checks them; changes nothing
#[derive(Debug, Args)]
#[command(
    after_help = "All branches are read. Problems are printed one per line, and the exit code \
    is 1 if there are any. If there are none, the last line says so.\n\nExample:\n  esker verify DIR"
)]
pub struct VerifyArgs {
    #[command(flatten)]
    target: Target,
}

/// Runs the command.
pub fn run(args: &VerifyArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_read_only()?;
    let looked_at = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&looked_at);
    let spinner = Spinner::with_figure("verifying", move || {
        format!("{} run segments", shown.load(Ordering::Relaxed))
    });
    // The question, which is asked before each run segment, tells how far it has come.
    let report = db.verify_until(|| {
        looked_at.fetch_add(1, Ordering::Relaxed);
        false
    })?;
    drop(spinner);
    db.close()?;
    let counts = [
        ("files", report.files),
        ("blocks", report.blocks),
        ("entries", report.entries),
        ("bytes", report.bytes),
    ];
    let problems = report.problems.iter().map(|problem| {
        (one_line(&problem.path.display().to_string()), one_line(&problem.error.to_string()))
    });
    if args.target.json {
        let problems: Vec<_> =
            problems.map(|(path, error)| json!({ "path": path, "error": error })).collect();
        let mut report: serde_json::Map<String, serde_json::Value> =
            counts.iter().map(|&(name, count)| (name.to_owned(), json!(count))).collect();
        report.insert("whole".to_owned(), json!(problems.is_empty()));
        report.insert("problems".to_owned(), json!(problems));
        output::json_line(out, &json!(report))?;
    } else {
        for (path, error) in problems {
            writeln!(out, "{path}: {error}")?;
        }
        for (name, count) in counts {
            writeln!(out, "{name} {count}")?;
        }
    }
    match report.problems.len() {
        0 if args.target.json => Ok(()),
        0 => Ok(writeln!(out, "no damage found")?),
        count => Err(Failure::Negative(format!(
            "{count} problems found in {}: run `esker repair --plan` on it",
            args.target.dir.display()
        ))),
    }
}
