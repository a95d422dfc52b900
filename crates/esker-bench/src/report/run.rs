//! One run: a database of one engine, from open to close.
//!
//! It holds the reports of its steps in order. A run that ended early holds the steps that were
//! completed, and says why it ended.

use super::origin::Origin;
use crate::engines::EngineSpec;
use crate::harness::step_report::WorkloadReport;
use serde::{Deserialize, Serialize};

/// One database from open to close.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunReport {
    /// Which engine.
    pub engine: EngineSpec,
    /// Its name and version, as it says itself.
    #[serde(default)]
    pub version: String,
    /// Which round, from 1.
    pub round: usize,
    /// How the engine was opened.
    pub settings: Vec<(String, String)>,
    /// The workloads in order.
    pub workloads: Vec<WorkloadReport>,
    /// How long closing took.
    pub close_seconds: f64,
    /// Its turn in the round, from 1.
    #[serde(default)]
    pub turn: usize,
    /// Why it ended early, if it did.
    #[serde(default)]
    pub failure: Option<String>,
    /// The command and the build that measured it, in an experiment: another command may have gone on
    /// with it. Else they are those of the report.
    #[serde(default)]
    pub origin: Option<Origin>,
}

impl RunReport {
    /// A run of which nothing is known yet.
    pub fn begun(spec: &EngineSpec, round: usize, turn: usize) -> Self {
        Self {
            engine: spec.clone(),
            version: String::new(),
            round,
            settings: Vec::new(),
            workloads: Vec::new(),
            close_seconds: 0.0,
            turn,
            failure: None,
            origin: None,
        }
    }
}
