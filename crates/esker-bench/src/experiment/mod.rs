//! The published experiments: what each consists of, and one engine's part of it.
//!
//! An experiment is a list of steps on one database, fixed sizes, and figures that others published.
//! Workloads of `esker bench` are steps as they are; the others are *stages* with a loop of their own.
//! Everything here happens in one process and for one engine. Which engines take their turns, what was
//! finished before, and what is written to files is the affair of [`crate::campaign`].
//!
//! Only ratios and shapes may be compared with published figures: they come from other machines.

mod catalog;
mod influx;
mod inserts;
mod links;
mod perform;
pub mod published;

use crate::measure::disk_use::DeviceUse;
use crate::report::WorkloadReport;
use crate::settings::{Durability, Settings};
use crate::{Error, Result, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub use catalog::ALL;
pub use inserts::HEAD as SAMPLES_HEAD;
pub use perform::{Listener, perform};
pub use published::Published;

/// One experiment.
#[derive(Debug)]
pub struct Experiment {
    /// The name that users write.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// Who published it, and when.
    pub source: &'static str,
    /// What a scale counts.
    pub unit: &'static str,
    /// The default scale.
    pub scale: u64,
    /// What a finished write survives, as published.
    pub durability: Durability,
    /// Bytes of a value, if nobody says otherwise.
    pub value_size: usize,
    /// What differs here from the published one.
    pub differs: &'static [&'static str],
    /// Fixes what the experiment fixes. Durations and sizes that the user gave stay.
    settings: fn(&mut Settings),
    /// Its steps.
    steps: fn(&Settings) -> Vec<Step>,
    /// What others published, for the settings that come nearest.
    published: fn(&Settings) -> Vec<Published>,
}

/// One step of an experiment.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its name, which no other step of the experiment has.
    pub name: String,
    /// What it does.
    pub about: &'static str,
    /// How.
    pub action: Action,
}

/// What a step does.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    /// A workload of `esker bench`.
    Workload(Workload),
    /// A step with time series.
    Influx(influx::Phase),
    /// Random inserts with samples.
    Inserts,
    /// A phase of LinkBench.
    Links(links::Phase),
}

impl Action {
    /// Whether LinkBench's tables are all that it asks for.
    pub fn is_of_links(self) -> bool {
        !matches!(self, Self::Workload(_) | Self::Influx(_) | Self::Inserts)
    }

    /// Whether it changes what the database holds.
    pub fn writes(self) -> bool {
        match self {
            Self::Workload(workload) => {
                workload.kind.writes() || workload.kind.has_background_writer()
            }
            Self::Influx(phase) => phase.writes(),
            Self::Inserts | Self::Links(_) => true,
        }
    }

    /// Whether everything written before is on the device once it has ended.
    pub fn persists(self) -> bool {
        match self {
            Self::Workload(workload) => workload.kind == crate::Kind::Flush,
            Self::Influx(_) | Self::Inserts | Self::Links(_) => false,
        }
    }
}

/// What a process of an experiment is asked to do, besides what every run is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Assignment {
    /// The experiment's name.
    pub experiment: String,
    /// The steps that an earlier process finished on this database.
    pub finished: Vec<Finished>,
    /// Where samples are written as they come.
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

/// Figures of a step that are no part of a workload's report, by name.
pub type Figures = BTreeMap<String, f64>;

impl Experiment {
    /// The experiment of this name.
    pub fn find(name: &str) -> Result<&'static Self> {
        let known = |experiment: &&Self| experiment.name.eq_ignore_ascii_case(name);
        ALL.iter().find(known).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|experiment| experiment.name).collect();
            Error::usage(format!(
                "there is no experiment `{name}`: choose from {}",
                names.join(", ")
            ))
        })
    }

    /// The settings that a user may change: sizes and durability as they were published.
    pub fn defaults(&self) -> Settings {
        Settings { durability: self.durability, value_size: self.value_size, ..Settings::default() }
    }

    /// The settings that it runs with, from those that the user gave.
    pub fn settings(&self, mut settings: Settings) -> Settings {
        (self.settings)(&mut settings);
        let workloads = (self.steps)(&settings).into_iter().map(|step| match step.action {
            Action::Workload(workload) => Some(workload),
            Action::Influx(_) | Action::Inserts | Action::Links(_) => None,
        });
        settings.workloads = workloads.flatten().collect();
        settings
    }

    /// Its steps, for these settings.
    pub fn steps(&self, settings: &Settings) -> Vec<Step> {
        (self.steps)(settings)
    }

    /// What others published of it, at the scale nearest to these settings.
    pub fn published(&self, settings: &Settings) -> Vec<Published> {
        (self.published)(settings)
    }

    /// Whether its engines have to answer for LinkBench's tables.
    pub fn needs_links(&self, settings: &Settings) -> bool {
        self.steps(settings).iter().any(|step| matches!(step.action, Action::Links(_)))
    }

    /// How long a step lasts that time ends, if any does.
    pub fn timed(&self, settings: &Settings, step: &Step) -> Option<Duration> {
        match step.action {
            Action::Workload(workload) if workload.kind.can_repeat() => settings.duration,
            Action::Links(links::Phase::Requests) => settings.duration,
            _ => None,
        }
    }
}

/// What the device did during a step, as figures.
fn device_figures(used: Option<DeviceUse>, seconds: f64, operations: u64) -> Figures {
    let Some(used) = used else { return Figures::new() };
    let per_op = |amount: u64| amount as f64 / operations.max(1) as f64;
    let per_second = |amount: u64| amount as f64 / seconds.max(1e-9);
    [
        ("device_reads_per_op", per_op(used.reads)),
        ("device_read_bytes_per_op", per_op(used.read_bytes)),
        ("device_read_mb_per_second", per_second(used.read_bytes) / 1e6),
        ("device_write_mb_per_second", per_second(used.written_bytes) / 1e6),
        ("device_busy_percent", per_second(used.busy_ms) / 10.0),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests;
