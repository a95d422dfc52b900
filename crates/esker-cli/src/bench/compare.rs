//! `esker bench compare`: the command around a comparison.
//!
//! It starts this program again for every run. Ctrl-C or a termination signal ends the present run.
//! It always prints the results that it has.

use super::args::CompareArgs;
use super::{Follow, create, json, page, print, table};
use crate::ctrl_c;
use crate::failure::one_line;
use esker_bench::experiments::compare::process::{Processes, Stop};
use esker_bench::{Error, Report, Result};
use std::io::{self, Write};
use std::process::ExitCode;

/// Runs the comparison, prints its report, and says how it ended.
pub fn execute(args: &CompareArgs) -> Result<ExitCode> {
    if args.flags.list {
        print(&table::workloads())?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = args.settings()?;
    let plot = args.flags.plot.as_deref().map(|path| Ok((path, create(path)?))).transpose()?;
    let outputs = page::Outputs::open(&args.flags)?;
    let stop = Stop::default();
    let host = host(settings.memory_limit, &stop)?;
    let report =
        esker_bench::experiments::compare::run(&settings, &host, &mut Follow::new(&args.flags))?;
    if let Some((path, mut file)) = plot {
        let drawing = esker_bench::report::plot::draw(&report)?;
        file.write_all(drawing.as_bytes()).map_err(|e| Error::io("write", path, &e))?;
    }
    if args.flags.json {
        print(&json(&report)?)?
    } else {
        print(&table::compare(&report))?
    }
    let code = finish(&report, stop.asked());
    outputs.write(&report)?;
    Ok(code)
}

/// Starts this program again for every run, and lets Ctrl-C end the one under way.
pub(super) fn host(memory_limit: Option<u64>, stop: &Stop) -> Result<Processes> {
    let asked = stop.clone();
    ctrlc::set_handler(move || asked.ask())
        .map_err(|error| Error::Failed(format!("cannot listen for Ctrl-C: {error}")))?;
    let program = std::env::current_exe()
        .map_err(|error| Error::Failed(format!("cannot find this program: {error}")))?;
    Processes::new(program, vec!["bench".into(), "child".into()], memory_limit, stop.clone())
}

/// Says on standard error why a comparison or a run ended early.
pub(super) fn finish(report: &Report, interrupted: bool) -> ExitCode {
    if let Some(dir) = &report.kept {
        let _ = writeln!(io::stderr(), "The databases are in {}.", dir.display());
    }
    let Some(stopped) = &report.stopped else { return ExitCode::SUCCESS };
    let stopped = one_line(stopped);
    // Where standard error leads nowhere, the exit code has to say it.
    let _ = writeln!(io::stderr(), "esker: the report is not complete: {stopped}");
    ExitCode::from(if interrupted { ctrl_c::EXIT_CODE } else { 1 })
}
