//! `esker stats`: prints the statistics of a database.
//!
//! If another process has it open, these are the statistics that this process writes for others.
//! If nobody has, the database is opened for a look.

use crate::failure::Failure;
use crate::flags::DataTarget;
use crate::live::{self, openmetrics};
use crate::output;
use clap::Args;
use esker::{Error, Observed, ObservedState, Stats};
use serde_json::Value;
use std::io::Write;

/// Prints statistics and the shape of the trees
#[derive(Debug, Args)]
#[command(after_help = "Counters count since open. If another process has the database open, its \
    statistics are printed, at most about a second old. Otherwise a fresh look shows what open \
    did, and the sizes. With --branch the trees are those of the branch, and the database is opened \
    for it.\n\nExample:\n  esker stats DIR --json")]
pub struct StatsArgs {
    #[command(flatten)]
    target: DataTarget,
    /// Print OpenMetrics
    #[arg(long, conflicts_with = "json")]
    openmetrics: bool,
    /// Print the last statistics of the process that had the database open last, whatever became
    /// of it
    #[arg(long, conflicts_with = "branch")]
    last: bool,
}

/// Runs the command.
pub fn run(args: &StatsArgs, out: &mut impl Write) -> Result<(), Failure> {
    let dir = &args.target.database.dir;
    if args.target.branch.branch.is_some() {
        // What another process writes for others has no branch's trees.
        let db = args.target.open_read_only()?;
        let stats = db.stats();
        db.close()?;
        return args.print(stats, None, out);
    }
    let observed = Observed::read(dir);
    match observed {
        Ok(observed) if args.last || observed.state == ObservedState::Live => {
            return args.print_observed(observed, out);
        }
        Err(error) if args.last => return Err(error.into()),
        _ => {}
    }
    match args.target.open_read_only() {
        Ok(db) => {
            let stats = db.stats();
            db.close()?;
            args.print(stats, observed.ok().filter(|seen| seen.state == ObservedState::Ended), out)
        }
        // Another process has it open, and may have written its first statistics meanwhile.
        Err(locked @ Failure::Engine(Error::Locked { .. })) => match Observed::read(dir) {
            Ok(observed) if is_of_the_opener(observed.state) => args.print_observed(observed, out),
            _ => Err(locked),
        },
        Err(error) => Err(error),
    }
}

/// Whether statistics of this state are of the process that has the database open.
fn is_of_the_opener(state: ObservedState) -> bool {
    matches!(state, ObservedState::Live | ObservedState::Silent)
}

impl StatsArgs {
    /// Prints what another process wrote.
    fn print_observed(&self, observed: Observed, out: &mut impl Write) -> Result<(), Failure> {
        if self.openmetrics {
            write!(out, "{}", openmetrics::text(Some(&observed)))?;
            return Ok(());
        }
        let about = esker_json::observed(&observed);
        if self.target.json() {
            let more = [("source", "statistics file".into()), ("observed", about)];
            output::write_stats_json_with(
                out,
                observed.stats,
                more.map(named).into_iter().collect(),
            )?;
            return Ok(());
        }
        writeln!(out, "{}", live::describe(&observed))?;
        if observed.trees_left_out() {
            let shown = observed.stats.trees.len();
            writeln!(out, "the trees of {shown} of {} keyspaces follow", observed.keyspaces)?;
        }
        writeln!(out)?;
        write_text(out, observed.stats)
    }

    /// Prints what a fresh look shows; `ended`: the last process ended without closing.
    fn print(
        &self,
        stats: Stats,
        ended: Option<Observed>,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        if self.openmetrics {
            write!(out, "{}", stats.openmetrics())?;
            return Ok(());
        }
        if self.target.json() {
            let ended = ended.as_ref().map(esker_json::observed);
            let more = [("source", "opened".into()), ("observed", ended.into())];
            output::write_stats_json_with(out, stats, more.map(named).into_iter().collect())?;
            return Ok(());
        }
        if let Some(ended) = ended {
            writeln!(
                out,
                "nobody has it open; process {} ended without closing it: `--last` prints its last \
                 statistics\n",
                ended.process
            )?;
        }
        write_text(out, stats)
    }
}

/// A field of JSON.
fn named((name, value): (&str, Value)) -> (String, Value) {
    (name.to_owned(), value)
}

/// The counters as lines, and the trees as a table.
fn write_text(out: &mut impl Write, mut stats: Stats) -> Result<(), Failure> {
    let (trees, slowest) = (std::mem::take(&mut stats.trees), std::mem::take(&mut stats.slowest));
    for (name, value) in output::stats_lines(stats) {
        writeln!(out, "{name:<28} {value}")?;
    }
    writeln!(out)?;
    output::write_trees(out, &trees)?;
    output::write_slowest(out, &slowest)?;
    Ok(())
}
