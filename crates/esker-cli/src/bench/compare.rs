//! `esker bench compare`: the command around a comparison.
//!
//! It starts this program again for every run. Ctrl-C or a termination signal ends the present run.
//! It always prints the results that it has.

use super::args::CompareArgs;
use super::follow::{Follow, finish, host};
use super::output::{create, json, print};
use super::{origin, page, run, table};
use esker_bench::experiments::compare::process::Stop;
use esker_bench::{Error, Report, Result};
use std::io::Write;
use std::process::ExitCode;

/// Runs the comparison, prints its report, and says how it ended.
pub fn execute(args: &CompareArgs) -> Result<ExitCode> {
    if args.flags.list {
        return run::list(args.flags.json);
    }
    let settings = args.settings()?;
    let plot = args.flags.plot.as_deref().map(|path| Ok((path, create(path)?))).transpose()?;
    let outputs = page::Outputs::open(&args.flags)?;
    let stop = Stop::default();
    let host = host(settings.memory_limit, &stop)?;
    let (origin, mut follow) = (origin::now(), Follow::new(&args.flags));
    let report = esker_bench::experiments::compare::run(&settings, &host, &mut follow)?;
    let report = Report { origin, ..report };
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
