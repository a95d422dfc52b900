//! What a suite found out, ready to be serialized.
//!
//! Figures that a system or an engine does not offer are absent (`null` in JSON), never zero. Units
//! are in the names. *Write amplification* is bytes written to the device by the process for a byte
//! of keys and values that the workload wrote; what background work still owes at the end of a
//! workload falls on the next one, which is why the sum since open stands beside it.

use crate::measure::latency::LatencySummary;
use crate::measure::machine::Machine;
use crate::settings::Settings;
use crate::{EngineSpec, engine::EngineBytes};
use serde::Serialize;
use std::fmt::Write as _;

/// Everything about one suite.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What it ran on.
    pub machine: Machine,
    /// What was asked for.
    pub settings: Settings,
    /// One for each engine and round, in the order they ran.
    pub runs: Vec<RunReport>,
    /// Medians over rounds, and ratios to the first engine; one for each workload.
    pub comparison: Vec<Comparison>,
}

/// One database from open to close.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// Which engine.
    pub engine: EngineSpec,
    /// Its name and version, as it says itself.
    pub version: String,
    /// Which round, from 1.
    pub round: usize,
    /// How the engine was opened.
    pub settings: Vec<(String, String)>,
    /// The workloads in order.
    pub workloads: Vec<WorkloadReport>,
    /// How long closing took.
    pub close_seconds: f64,
}

/// One workload.
#[derive(Debug, Clone, Serialize)]
pub struct WorkloadReport {
    /// Its name, with threads if they were given.
    pub name: String,
    /// Whether it was one call on the database rather than operations on keys.
    pub maintenance: bool,
    /// Threads that were measured.
    pub threads: usize,
    /// How long it took.
    pub seconds: f64,
    /// Operations completed.
    pub operations: u64,
    /// Operations a second.
    pub ops_per_second: f64,
    /// Megabytes (10⁶) of keys and values that went in or came out, a second.
    pub mb_per_second: f64,
    /// CPU time of the whole process, background work included, for an operation.
    pub cpu_us_per_op: f64,
    /// Context switches of the whole process for an operation.
    pub context_switches_per_op: f64,
    /// Latencies.
    pub latency: LatencySummary,
    /// The longest time in which no thread completed an operation.
    pub longest_pause_ms: f64,
    /// The longest gap that an idle thread saw meanwhile: the machine's own pauses.
    pub idle_gap_ms: f64,
    /// The lowest of the rates of single seconds.
    pub rate_min: f64,
    /// Their median.
    pub rate_median: f64,
    /// Reads or seeks that found an entry.
    pub found: u64,
    /// Reads or seeks that found none.
    pub missing: u64,
    /// Bytes of keys and values written, by the background writer too.
    pub user_bytes_written: u64,
    /// Bytes that the process wrote to the device.
    pub device_bytes_written: Option<u64>,
    /// Bytes that the process read from the device.
    pub device_bytes_read: Option<u64>,
    /// Device bytes written for a byte of keys and values.
    pub write_amplification: Option<f64>,
    /// The same since open.
    pub write_amplification_since_open: Option<f64>,
    /// Bytes that the engine counted by cause.
    pub engine_bytes: Option<EngineBytes>,
    /// Allocated bytes of the directory at the end.
    pub disk_bytes: Option<u64>,
    /// Allocated bytes for a byte of live keys and values.
    pub space_amplification: Option<f64>,
    /// The largest resident size of the process meanwhile.
    pub peak_memory_bytes: Option<u64>,
    /// The background writer, if there was one.
    pub writer: Option<WriterReport>,
    /// One point a second.
    pub rates: Vec<RatePoint>,
    /// One point for every so many operations (`--sample-ops`).
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// What the engine says (`stats`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl WorkloadReport {
    /// Flush and merge bytes for a byte of keys and values, by the engine's own count.
    pub fn engine_write_amplification(&self) -> Option<f64> {
        let bytes = self.engine_bytes.filter(|bytes| bytes.user > 0)?;
        Some((bytes.flush + bytes.merge) as f64 / bytes.user as f64)
    }

    /// The samples as comma-separated values with a head.
    pub fn samples_csv(&self) -> String {
        let mut csv = String::from("seconds,operations,seconds_since_last,ops_per_second\n");
        let mut before = Sample::default();
        for sample in &self.samples {
            let seconds = sample.seconds - before.seconds;
            let rate = (sample.operations - before.operations) as f64 / seconds.max(1e-9);
            // Writing to a string cannot fail.
            let _ =
                writeln!(csv, "{:.6},{},{seconds:.6},{rate:.1}", sample.seconds, sample.operations);
            before = *sample;
        }
        csv
    }
}

/// The writer beside the measured threads.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct WriterReport {
    /// Writes.
    pub operations: u64,
    /// Writes a second.
    pub ops_per_second: f64,
    /// Their latencies, waiting for the next turn excluded.
    pub latency: LatencySummary,
}

/// The state after one second more.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct RatePoint {
    /// Since the start.
    pub seconds: f64,
    /// Operations so far.
    pub operations: u64,
    /// Operations a second since the point before.
    pub ops_per_second: f64,
    /// Bytes a second written to the device since then.
    pub device_written_per_second: Option<f64>,
    /// Bytes a second read from the device since then.
    pub device_read_per_second: Option<f64>,
}

/// The state after so many operations.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Since the start.
    pub seconds: f64,
    /// Operations so far.
    pub operations: u64,
}

/// One workload over all engines and rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Its name.
    pub workload: String,
    /// One for each engine, in the order they were named.
    pub engines: Vec<Median>,
}

/// Medians over rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Median {
    /// Which engine.
    pub engine: EngineSpec,
    /// Operations a second.
    pub ops_per_second: f64,
    /// The same as a multiple of the first engine's.
    pub ratio: f64,
    /// The lowest and highest round.
    pub spread: (f64, f64),
    /// The 99th percentile of latencies.
    pub p99_us: f64,
    /// The longest pause.
    pub longest_pause_ms: f64,
    /// CPU time for an operation.
    pub cpu_us_per_op: f64,
    /// Device bytes written for a byte of keys and values, since open.
    pub write_amplification_since_open: Option<f64>,
    /// Allocated bytes for a byte of live keys and values.
    pub space_amplification: Option<f64>,
}

/// Compares runs of the same list, workload by workload.
pub fn compare(engines: &[EngineSpec], runs: &[RunReport]) -> Vec<Comparison> {
    let Some(first) = runs.first() else { return Vec::new() };
    let steps = first.workloads.iter().enumerate();
    steps
        .map(|(step, workload)| {
            let mut medians: Vec<Median> =
                engines.iter().filter_map(|engine| median_of(engine, step, runs)).collect();
            let base = medians.first().map_or(0.0, |median| median.ops_per_second);
            for median in &mut medians {
                median.ratio = if base > 0.0 { median.ops_per_second / base } else { 0.0 };
            }
            Comparison { workload: workload.name.clone(), engines: medians }
        })
        .collect()
}

fn median_of(engine: &EngineSpec, step: usize, runs: &[RunReport]) -> Option<Median> {
    let rounds: Vec<&WorkloadReport> = runs
        .iter()
        .filter(|run| run.engine == *engine)
        .filter_map(|run| run.workloads.get(step))
        .collect();
    let of = |figure: fn(&WorkloadReport) -> Option<f64>| {
        median(rounds.iter().filter_map(|round| figure(round)).collect())
    };
    let rates = || rounds.iter().map(|round| round.ops_per_second);
    Some(Median {
        engine: engine.clone(),
        ops_per_second: of(|round| Some(round.ops_per_second))?,
        ratio: 1.0,
        spread: (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)),
        p99_us: of(|round| Some(round.latency.p99_us))?,
        longest_pause_ms: of(|round| Some(round.longest_pause_ms))?,
        cpu_us_per_op: of(|round| Some(round.cpu_us_per_op))?,
        write_amplification_since_open: of(|round| round.write_amplification_since_open),
        space_amplification: of(|round| round.space_amplification),
    })
}

/// The median; of an even number, the mean of the middle two. None of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }
}
