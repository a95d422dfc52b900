//! `esker stats`: prints the statistics of a database.

use crate::failure::Failure;
use crate::flags::Target;
use crate::output;
use clap::Args;
use std::io::Write;

/// Prints statistics and the shape of the trees
#[derive(Debug, Args)]
#[command(after_help = "Counters count since open, so a fresh look shows what open did, and the \
    sizes.\n\nExample:\n  esker stats DIR --json")]
pub struct StatsArgs {
    #[command(flatten)]
    target: Target,
    /// Print the format OpenMetrics 1.0, for Prometheus and other collectors
    #[arg(long, conflicts_with = "json")]
    openmetrics: bool,
}

/// Runs the command.
pub fn run(args: &StatsArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_read_only()?;
    let mut stats = db.stats();
    db.close()?;
    if args.openmetrics {
        out.write_all(stats.openmetrics().as_bytes())?;
        return Ok(());
    }
    if args.target.json {
        output::write_stats_json(out, stats)?;
        return Ok(());
    }
    // The trees follow as a table.
    let trees = std::mem::take(&mut stats.trees);
    for (name, value) in output::stats_lines(stats) {
        writeln!(out, "{name:<28} {value}")?;
    }
    writeln!(out)?;
    output::write_trees(out, &trees)?;
    Ok(())
}
