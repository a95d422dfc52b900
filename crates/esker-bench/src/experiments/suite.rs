//! Rounds over engines, in one process: what `esker bench` runs.
//!
//! Every round runs the whole list on every engine, each on a new database, one engine after the other.
//! Runs share nothing but the process. A database is removed before the next one is made, except the
//! last of each engine if the user named the directory.

use crate::engines::OpenOptions;
use crate::harness::interrupt::INTERRUPTED;
use crate::harness::measure::caches;
use crate::harness::measure::machine::Machine;
use crate::harness::runner::Runner;
use crate::harness::settings::Settings;
use crate::harness::step_report::WorkloadReport;
use crate::harness::workspace::Workspace;
use crate::report::{EngineReport, FORMAT, Origin, Report, RunReport, compare};
use crate::{EngineSpec, Interrupt, Result};
use std::path::Path;
use std::time::Instant;

/// Follows a suite while it runs. Every method has an empty default.
pub trait Observer {
    /// Whether a progress bar is wanted; it appears only on a terminal.
    fn progress(&self) -> bool {
        false
    }

    /// How the suite is asked to end early.
    fn interrupt(&self) -> Interrupt {
        Interrupt::default()
    }

    /// An engine said what it is and what it set.
    fn version(&mut self, _version: &str, _settings: &[(String, String)]) {}

    /// A database was opened. `dir` is absent where the engine has no files.
    fn opened(
        &mut self,
        _engine: &EngineSpec,
        _round: usize,
        _dir: Option<&Path>,
        _settings: &[(String, String)],
    ) {
    }

    /// A workload ended.
    fn finished(
        &mut self,
        _engine: &EngineSpec,
        _round: usize,
        _step: usize,
        _report: &WorkloadReport,
    ) -> Result<()> {
        Ok(())
    }
}

/// Runs everything that the settings ask for, or, if it is interrupted, what there was time for. The
/// caller knows where the report comes from and fills in [`Report::origin`].
pub fn run(settings: &Settings, observer: &mut dyn Observer) -> Result<Report> {
    settings.check()?;
    let workspace = Workspace::new(settings)?;
    let mut runs = Vec::new();
    let interrupt = observer.interrupt();
    if workspace.is_temporary() {
        interrupt.leaves(workspace.root());
    }
    'rounds: for round in 1..=settings.rounds {
        for (turn, engine) in settings.engines.iter().enumerate() {
            if interrupt.asked() {
                break 'rounds;
            }
            let database = workspace.database(engine)?;
            let run = run_one(settings, engine, round, database.path(), observer)?;
            runs.push(RunReport { turn: turn + 1, ..run });
            if workspace.is_temporary() || round < settings.rounds {
                database.remove()?;
            }
        }
    }
    let comparison = compare(&settings.engines, &runs);
    let mut engines: Vec<EngineReport> = settings.engines.iter().map(EngineReport::new).collect();
    for (engine, run) in engines.iter_mut().zip(&runs) {
        (engine.version, engine.settings) = (Some(run.version.clone()), run.settings.clone());
    }
    Ok(Report {
        format: FORMAT,
        command: "bench".into(),
        complete: !interrupt.asked(),
        stopped: interrupt.asked().then(|| INTERRUPTED.to_owned()),
        kept: (!workspace.is_temporary()).then(|| workspace.root().to_owned()),
        rules: Vec::new(),
        engines,
        agreements: Vec::new(),
        origin: Origin::default(),
        machine: Machine::inspect(workspace.root()),
        settings: settings.clone(),
        runs,
        comparison,
    })
}

/// One run, from open to close. The observer has seen every workload that was completed before a
/// failure.
pub(crate) fn run_one(
    settings: &Settings,
    spec: &EngineSpec,
    round: usize,
    dir: &Path,
    observer: &mut dyn Observer,
) -> Result<RunReport> {
    let options = OpenOptions {
        dir,
        memory: settings.memory,
        write_buffer_bytes: settings.write_buffer_bytes,
        durability: settings.durability,
        transactions: false,
    };
    if spec.has_files() {
        caches::write_back();
    }
    let engine = spec.open(&options)?;
    let dir = spec.has_files().then_some(dir);
    let opened_with = engine.settings();
    let version = engine.version();
    observer.version(&version, &opened_with);
    observer.opened(spec, round, dir, &opened_with);
    let mut workloads = Vec::new();
    let interrupt = observer.interrupt();
    let mut runner = Runner::new(settings, spec, &*engine, dir, round as u64, observer.progress())?;
    runner.end_when(interrupt.clone());
    for workload in &settings.workloads {
        let done = runner.run(*workload, &mut |report| {
            observer.finished(spec, round, workloads.len(), &report)?;
            workloads.push(report);
            Ok(())
        });
        if interrupt.asked() {
            break;
        }
        done?;
    }
    drop(runner);
    let closing = Instant::now();
    engine.close()?;
    let close_seconds = closing.elapsed().as_secs_f64();
    Ok(RunReport {
        version,
        settings: opened_with,
        workloads,
        close_seconds,
        ..RunReport::begun(spec, round, 1)
    })
}
