//! `esker bench`: named workloads on Esker and its rivals.
//!
//! The work is done by the `esker-bench` crate, which prints nothing. Here are the options, the
//! lines that appear on a terminal while it runs (standard error), and the report: tables for a
//! person, or one JSON object for a program (standard output). `esker bench report` makes a page of
//! such objects. Options have `db_bench`'s names where it has the option, with its underscores as
//! hyphens.
//!
//! Exit codes: 0 for a report, 1 if an engine, a file or the disk failed, 2 for a command line that
//! cannot be carried out, 130 for a run that was interrupted. A run that ended early prints what it
//! has.

mod args;
mod compare;
mod experiment;
mod page;
mod table;

pub use args::{BenchArgs, BenchCommand, BenchFlags};

use crate::ctrl_c;
use crate::failure::one_line;
use esker_bench::{EngineSpec, Error, Interrupt, Observer, Report, Result, WorkloadReport};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command and says on standard error what went wrong.
pub fn command(args: BenchArgs) -> ExitCode {
    let done = match &args.command {
        None => execute(&args.flags),
        Some(BenchCommand::Compare(args)) => compare::execute(args),
        Some(BenchCommand::Experiment(args)) => experiment::execute(args),
        Some(BenchCommand::Report(args)) => page::write(args).map(|()| ExitCode::SUCCESS),
        Some(BenchCommand::Child) => Ok(esker_bench::experiments::compare::child::main()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // Where standard error leads nowhere, the exit code has to say it.
            let _ = writeln!(io::stderr(), "esker: {}", one_line(&error.to_string()));
            ExitCode::from(match error {
                Error::Usage(_) => 2,
                Error::Failed(_) => 1,
            })
        }
    }
}

fn execute(args: &BenchFlags) -> Result<ExitCode> {
    if args.list {
        return print(&table::workloads()).map(|()| ExitCode::SUCCESS);
    }
    let settings = args.settings()?;
    settings.check()?;
    // Found out now rather than after the run.
    let plot = args.plot.as_deref().map(|path| Ok((path, create(path)?))).transpose()?;
    let outputs = page::Outputs::open(args)?;
    let mut follow = Follow::new(args);
    listen(&follow.interrupt)?;
    let report = esker_bench::run(&settings, &mut follow)?;
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
        false => Ok(compare::finish(&report, follow.interrupt.asked())),
    }
}

/// Makes Ctrl-C end the suite after the present step, and a second one the program.
fn listen(interrupt: &Interrupt) -> Result<()> {
    let asked = || {
        let again = "interrupted: ending the step under way; once more ends the program at once";
        let _ = writeln!(io::stderr(), "esker: {again}");
    };
    ctrl_c::listen(interrupt, asked).map_err(|error| Error::Failed(error.to_string()))
}

fn create(path: &Path) -> Result<fs::File> {
    fs::File::create(path).map_err(|e| Error::io("make", path, &e))
}

fn json(report: &Report) -> Result<String> {
    serde_json::to_string(report)
        .map_err(|error| Error::Failed(format!("cannot write the report as JSON: {error}")))
}

/// Prints to standard output. A reader that has gone away (`| head`) is not an error.
fn print(text: &str) -> Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Shows the progress on a terminal, and writes time series as they come.
struct Follow {
    terminal: bool,
    interrupt: Interrupt,
    samples: Option<PathBuf>,
}

impl Follow {
    fn new(args: &BenchFlags) -> Self {
        Self {
            terminal: io::stderr().is_terminal(),
            interrupt: Interrupt::default(),
            samples: args.sample_ops.map(|_| args.sample_dir.clone()),
        }
    }
}

impl Observer for Follow {
    fn progress(&self) -> bool {
        self.terminal
    }

    fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    fn opened(
        &mut self,
        engine: &EngineSpec,
        round: usize,
        dir: Option<&Path>,
        _settings: &[(String, String)],
    ) {
        if self.terminal {
            let place = dir.map_or("memory".into(), |dir| dir.display().to_string());
            eprintln!("{engine}, round {round}, in {place}");
        }
    }

    fn finished(
        &mut self,
        engine: &EngineSpec,
        round: usize,
        step: usize,
        report: &WorkloadReport,
    ) -> Result<()> {
        if self.terminal {
            eprintln!("  {}", table::line(report));
        }
        let Some(dir) = &self.samples else { return Ok(()) };
        if report.samples.is_empty() {
            return Ok(());
        }
        // A colon is not a character that every file system takes.
        let workload = report.name.replace(':', "x");
        let path = dir.join(format!("{}-{round}-{}-{workload}.csv", engine.file_name(), step + 1));
        fs::create_dir_all(dir).map_err(|e| Error::io("make", dir, &e))?;
        fs::write(&path, report.samples_csv()).map_err(|e| Error::io("write", &path, &e))
    }
}

#[cfg(test)]
mod tests;
