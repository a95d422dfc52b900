//! What an experiment consists of: steps on one database, fixed sizes, and published figures.
//!
//! A step is either a workload of `esker bench` or a *stage*, which has a loop of its own (`influx`,
//! `inserts`, `links`).

use super::figure::Published;
use super::{influx, links};
use crate::harness::settings::Settings;
use crate::{Durability, Workload};
use std::time::Duration;

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
    /// Sets what the experiment fixes. Durations and sizes that the user gave are kept.
    pub(super) settings: fn(&mut Settings),
    /// Its steps.
    pub(super) steps: fn(&Settings) -> Vec<Step>,
    /// What others published, for the settings that come nearest.
    pub(super) published: fn(&Settings) -> Vec<Published>,
}

/// One step of an experiment.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its name, which no other step of the experiment has.
    pub name: String,
    /// What it does.
    pub about: &'static str,
    /// The workload or stage that does it.
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

impl Experiment {
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

    /// How long a step lasts, if a time limit ends it.
    pub fn timed(&self, settings: &Settings, step: &Step) -> Option<Duration> {
        match step.action {
            Action::Workload(workload) if workload.kind.can_repeat() => settings.duration,
            Action::Links(links::Phase::Requests) => settings.duration,
            _ => None,
        }
    }
}
