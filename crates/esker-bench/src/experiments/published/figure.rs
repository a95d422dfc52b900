//! Figures that others published of an experiment.
//!
//! A figure belongs to a step and to a scale. An experiment gives the figures of the scale that is
//! nearest to the one that was asked for ([`nearest`]).

use serde::{Deserialize, Serialize};

/// One published figure. Other machine, other year: only ratios and shapes may be compared with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The step.
    pub workload: String,
    /// The system, as it was called there.
    pub engine: String,
    /// At which scale.
    pub scale: u64,
    /// Operations a second.
    pub ops_per_second: f64,
    /// Bytes written to the device for a byte of keys and values, where that was published.
    pub write_amplification: Option<f64>,
    /// Reads of the device for an operation, where that was published.
    pub device_reads_per_op: Option<f64>,
}

impl Published {
    /// A rate.
    pub fn rate(workload: &str, engine: &str, scale: u64, ops_per_second: f64) -> Self {
        Self {
            workload: workload.into(),
            engine: engine.into(),
            scale,
            ops_per_second,
            write_amplification: None,
            device_reads_per_op: None,
        }
    }
}

/// Which of the scales comes nearest, by ratio.
pub fn nearest(scales: &[u64], wanted: u64) -> u64 {
    let distance = |scale: &u64| ((*scale as f64).ln() - (wanted.max(1) as f64).ln()).abs();
    let nearer = |a: &&u64, b: &&u64| distance(a).total_cmp(&distance(b));
    scales.iter().min_by(nearer).copied().unwrap_or(wanted)
}
