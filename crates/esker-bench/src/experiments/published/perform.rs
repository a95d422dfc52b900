//! One engine's part of an experiment, in the process of the run.
//!
//! Steps that an earlier process finished on the same database are passed: they are not run again, but
//! count for the random streams of those that follow.

use super::catalog;
use super::experiment::Action;
use super::figures::{Figures, device_figures};
use super::{influx, inserts, links};
use crate::engines::OpenOptions;
use crate::harness::measure::disk_use::Device;
use crate::harness::runner::Runner;
use crate::harness::settings::Settings;
use crate::harness::step_report::WorkloadReport;
use crate::{EngineSpec, Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What a process of an experiment has to know beside the order of every run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Assignment {
    /// The experiment's name.
    pub experiment: String,
    /// The steps that an earlier process finished on this database.
    pub finished: Vec<Finished>,
    /// The file of samples, written while the run goes on.
    pub samples: Option<PathBuf>,
}

/// What has to be known of a step that was finished earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Whether what it left in the database is the same for every engine.
    pub settled: bool,
}

impl Finished {
    /// Of a step with this report.
    pub fn of(report: &WorkloadReport) -> Self {
        Self { settled: report.check.as_ref().is_none_or(|check| check.comparable) }
    }
}

/// Follows one engine's part while it runs.
pub trait Listener {
    /// The database is open.
    fn opened(&mut self, version: &str, settings: &[(String, String)]) -> Result<()>;

    /// A step ended.
    fn finished(&mut self, report: &WorkloadReport, figures: &Figures) -> Result<()>;
}

/// Opens the database and carries out the steps that are left. Returns how long closing took.
pub fn perform(
    assignment: &Assignment,
    settings: &Settings,
    spec: &EngineSpec,
    round: usize,
    dir: &Path,
    progress: bool,
    listener: &mut dyn Listener,
) -> Result<f64> {
    let experiment = catalog::find(&assignment.experiment)?;
    let steps = experiment.steps(settings);
    let transactions = experiment.needs_links(settings);
    let Settings { memory, write_buffer_bytes, durability, .. } = *settings;
    let options = OpenOptions { dir, memory, write_buffer_bytes, durability, transactions };
    let engine = spec.open(&options)?;
    listener.opened(&engine.version(), &engine.settings())?;
    let files = spec.has_files().then_some(dir);
    let device = files.and_then(Device::of);
    let mut runner = Runner::new(settings, spec, &*engine, files, round as u64, progress)?;
    let mut finished = assignment.finished.iter();
    for step in &steps {
        let before = device.and_then(|device| device.now());
        if let Some(passed) = finished.next() {
            match step.action {
                Action::Workload(workload) => runner.pass(workload, passed.settled),
                _ => runner.pass_stage(),
            }
            continue;
        }
        let mut tell = |report: WorkloadReport, others: Figures| {
            let after = device.and_then(|device| device.now());
            let used = after.zip(before).map(|(after, before)| after.since(&before));
            let mut figures = device_figures(used, report.seconds, report.operations);
            figures.extend(others);
            listener.finished(&WorkloadReport { name: step.name.clone(), ..report }, &figures)
        };
        match step.action {
            Action::Workload(workload) => {
                runner.run(workload, &mut |report| tell(report, Figures::new()))?;
            }
            Action::Influx(phase) => {
                let points = influx::Points::new(settings);
                let (name, runner) = (&step.name, &mut runner);
                let (report, figures) =
                    points.run(runner, &*engine, spec, settings, name, phase)?;
                tell(report, figures)?;
            }
            Action::Links(phase) => {
                let place = links::Place { engine: &*engine, settings, name: &step.name };
                let graph = links::Graph::new(settings)?;
                let (report, figures) = links::run(&graph, &mut runner, &place, phase)?;
                tell(report, figures)?;
            }
            Action::Inserts => {
                let place = (assignment.samples.as_deref(), device);
                let what = (&*step.name, round);
                let (report, figures) =
                    inserts::run(&mut runner, &*engine, spec, settings, what, place)?;
                tell(report, figures)?;
            }
        }
    }
    if finished.next().is_some() {
        return Err(Error::Failed("more steps are finished than the experiment has".into()));
    }
    drop(runner);
    let closing = Instant::now();
    engine.close()?;
    Ok(closing.elapsed().as_secs_f64())
}
