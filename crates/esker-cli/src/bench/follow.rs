//! A run while it goes on, and how it ended.
//!
//! Progress appears on a terminal only. Ctrl-C ends the step under way, and the report says so.

use super::args::BenchFlags;
use super::table;
use crate::ctrl_c;
use crate::failure::one_line;
use esker_bench::experiments::compare::process::{Processes, Stop};
use esker_bench::{EngineSpec, Error, Interrupt, Observer, Report, Result, WorkloadReport};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Shows the progress on a terminal, and writes time series as they come.
pub struct Follow {
    /// Whether progress is shown.
    pub terminal: bool,
    /// Ends the run after the present step.
    pub interrupt: Interrupt,
    /// Where time series go.
    pub samples: Option<PathBuf>,
}

impl Follow {
    /// Follows a run with these flags.
    pub fn new(args: &BenchFlags) -> Self {
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

/// Starts this program again for every run, and lets Ctrl-C end the one under way.
pub fn host(memory_limit: Option<u64>, stop: &Stop) -> Result<Processes> {
    let asked = stop.clone();
    ctrlc::set_handler(move || asked.ask())
        .map_err(|error| Error::Failed(format!("cannot listen for Ctrl-C: {error}")))?;
    let program = std::env::current_exe()
        .map_err(|error| Error::Failed(format!("cannot find this program: {error}")))?;
    Processes::new(program, vec!["bench".into(), "child".into()], memory_limit, stop.clone())
}

/// Says on standard error why a comparison or a run ended early.
pub fn finish(report: &Report, interrupted: bool) -> ExitCode {
    if let Some(dir) = &report.kept {
        let _ = writeln!(io::stderr(), "The databases are in {}.", dir.display());
    }
    let Some(stopped) = &report.stopped else { return ExitCode::SUCCESS };
    let stopped = one_line(stopped);
    // Where standard error leads nowhere, the exit code has to say it.
    let _ = writeln!(io::stderr(), "esker: the report is not complete: {stopped}");
    ExitCode::from(if interrupted { ctrl_c::EXIT_CODE } else { 1 })
}
