//! `esker bench`: the workloads once, on the chosen engines.
//!
//! Files for the results are made before the measurement: a run must not fail after hours because a
//! directory is missing.

use super::args::BenchFlags;
use super::follow::{Follow, finish};
use super::output::{create, json, print};
use super::{origin, page, table};
use crate::ctrl_c;
use esker_bench::{Error, Interrupt, Report, Result};
use std::io::{self, Write};
use std::process::ExitCode;

/// Runs the workloads and prints their report.
pub fn execute(args: &BenchFlags) -> Result<ExitCode> {
    if args.list {
        return list(args.json);
    }
    let settings = args.settings()?;
    settings.check()?;
    // Found out now rather than after the run.
    let plot = args.plot.as_deref().map(|path| Ok((path, create(path)?))).transpose()?;
    let outputs = page::Outputs::open(args)?;
    let mut follow = Follow::new(args);
    listen(&follow.interrupt)?;
    let origin = origin::now();
    let report = Report { origin, ..esker_bench::run(&settings, &mut follow)? };
    if let Some((path, mut file)) = plot {
        let drawing = esker_bench::report::plot::draw(&report)?;
        file.write_all(drawing.as_bytes()).map_err(|e| Error::io("write", path, &e))?;
    }
    if args.json {
        print(&json(&report)?)?
    } else {
        print(&table::report(&report))?
    }
    outputs.write(&report)?;
    match report.complete {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(finish(&report, follow.interrupt.asked())),
    }
}

/// Prints which workloads and engines there are.
pub(super) fn list(as_json: bool) -> Result<ExitCode> {
    let text = if as_json { table::workloads_json().to_string() } else { table::workloads() };
    print(&text).map(|()| ExitCode::SUCCESS)
}

/// Makes Ctrl-C end the suite after the present step, and a second one the program.
fn listen(interrupt: &Interrupt) -> Result<()> {
    let asked = || {
        let again = "interrupted: ending the step under way; once more ends the program at once";
        let _ = writeln!(io::stderr(), "esker: {again}");
    };
    ctrl_c::listen(interrupt, asked).map_err(|error| Error::Failed(error.to_string()))
}
