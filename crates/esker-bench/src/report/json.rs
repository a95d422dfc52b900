//! The report of a suite, which `--json` prints and `--out` writes.
//!
//! [`Report`] holds everything about one suite: the machine, the settings, the engines, every run with
//! its steps, and the comparison of medians. Fields that later versions added have defaults, so that
//! files of earlier versions can be read.

use super::medians::Comparison;
use super::origin::Origin;
use super::run::RunReport;
use crate::engines::{EngineSpec, Tuning};
use crate::harness::measure::machine::Machine;
use crate::harness::settings::Settings;
use crate::harness::step_report::CheckScope;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The version of the report's form. It grows when a field is renamed, removed or changes its
/// meaning; a new field does not change it.
pub const FORMAT: u32 = 3;

/// Everything about one suite.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The version of this form ([`FORMAT`]).
    #[serde(default)]
    pub format: u32,
    /// Which command made it.
    #[serde(default)]
    pub command: String,
    /// Whether everything that was asked for was run.
    #[serde(default)]
    pub complete: bool,
    /// The reason if not everything was run.
    #[serde(default)]
    pub stopped: Option<String>,
    /// The directory of the databases, if they were kept.
    #[serde(default)]
    pub kept: Option<PathBuf>,
    /// The rules of the measurement, in sentences.
    #[serde(default)]
    pub rules: Vec<String>,
    /// The engines, in the order they were named.
    #[serde(default)]
    pub engines: Vec<EngineReport>,
    /// Which results were compared between engines, and whether they agreed.
    #[serde(default)]
    pub agreements: Vec<Agreement>,
    /// When it was made, by which command and by which build.
    #[serde(default)]
    pub origin: Origin,
    /// The machine that it ran on.
    pub machine: Machine,
    /// The settings of the suite.
    pub settings: Settings,
    /// One for each engine and round, in the order they ran.
    pub runs: Vec<RunReport>,
    /// Medians over rounds, and ratios to the base; one for each workload.
    pub comparison: Vec<Comparison>,
}

/// One engine, as it was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineReport {
    /// The name that users write.
    pub name: String,
    /// How tables name it.
    pub label: String,
    /// The engine that it is a variant of.
    pub kind: String,
    /// Its name and version, as it says itself; absent if it was never opened.
    pub version: Option<String>,
    /// How much was set by hand.
    pub tuning: Tuning,
    /// What a reader has to know.
    pub note: Option<String>,
    /// Whether single writes are cheap.
    pub cheap_single_writes: bool,
    /// How it was opened.
    pub settings: Vec<(String, String)>,
}

impl EngineReport {
    /// What is known before it is opened.
    pub fn new(spec: &EngineSpec) -> Self {
        Self {
            name: spec.name().to_owned(),
            label: spec.label(),
            kind: spec.kind().to_owned(),
            version: None,
            tuning: spec.tuning(),
            note: spec.note().map(str::to_owned),
            cheap_single_writes: spec.cheap_single_writes(),
            settings: Vec::new(),
        }
    }
}

/// What two or more engines returned for one step of one round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// The round, from 1.
    pub round: usize,
    /// The place of the workload in the list, from 1.
    pub step: usize,
    /// Its name.
    pub workload: String,
    /// What was compared.
    pub scope: CheckScope,
    /// The engines whose results were compared.
    pub engines: Vec<String>,
    /// Whether all returned the same.
    pub agree: bool,
}
