//! Figures that a workload's report has no place for.
//!
//! A step of an experiment may count what only it knows, for instance the ids of a graph. What the device
//! did during a step is added to the figures of every step.

use crate::harness::measure::disk_use::DeviceUse;
use std::collections::BTreeMap;

/// Figures of a step that are no part of a workload's report, by name.
pub type Figures = BTreeMap<String, f64>;

/// What the device did during a step, as figures.
pub fn device_figures(used: Option<DeviceUse>, seconds: f64, operations: u64) -> Figures {
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
