//! What one step found out, ready to be serialized.
//!
//! Figures that a system or an engine does not offer are absent (`null` in JSON), never zero. Units are
//! in the names. *Write amplification* is bytes that the process wrote to the device per byte of keys and
//! values that the workload wrote. Background work that is still due at the end of a workload counts
//! for the next one; the figure since open, beside it, does not have this fault.

use super::check::{Checksum, ReadBack};
use super::measure::latency::LatencySummary;
use crate::engines::EngineBytes;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// One workload.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// What the engine says (`stats`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Operations of one call.
    #[serde(default)]
    pub batch: usize,
    /// Whether it wrote in batches only because the engine's single writes are not cheap.
    #[serde(default)]
    pub batched_instead: bool,
    /// The course of the latencies: percentiles and microseconds.
    #[serde(default)]
    pub latency_curve: Vec<(f64, f64)>,
    /// What was found out about its results, if they were checked.
    #[serde(default)]
    pub check: Option<StepCheck>,
    /// The rate at which operations were due, in an open loop.
    #[serde(default)]
    pub open_loop: Option<OpenLoopReport>,
}

/// An open loop: operations were due at a rate, whether or not those before were done, and latencies
/// count from when they were due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OpenLoopReport {
    /// Operations that were due a second.
    pub rate: f64,
    /// The share of the sustained rate that this was, in hundredths, if it was asked for so.
    pub percent: Option<f64>,
    /// That rate: of the same workload as fast as it goes, measured just before.
    pub sustained: Option<f64>,
    /// Whether 99 % of what was due was done.
    pub kept_up: bool,
    /// How late the last operation of the thread that was farthest behind began.
    pub behind_ms: f64,
}

/// How results of a step were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckScope {
    /// Every result of the step itself.
    Results,
    /// A sample that was read back after the step.
    Sample,
}

/// What was found out about the results of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCheck {
    /// What was checked.
    pub scope: CheckScope,
    /// The checksum of the results, in hexadecimal.
    pub checksum: String,
    /// Whether it must be the same for all engines of the round. It need not be once a step was ended
    /// by time while it wrote: what the database holds then depends on the engine's speed.
    pub comparable: bool,
    /// Results of the sample that were compared with what was written.
    pub compared: u64,
    /// Those that were wrong.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Option<String>,
}

impl StepCheck {
    /// Of a step whose results all have a part in the checksum.
    pub fn of_results(checksum: Checksum) -> Self {
        Self {
            scope: CheckScope::Results,
            checksum: format!("{:016x}", checksum.value()),
            comparable: true,
            compared: 0,
            wrong: 0,
            first_wrong: None,
        }
    }

    /// Of a step after which a sample was read.
    pub fn of_sample(sample: ReadBack) -> Self {
        let ReadBack { checksum, compared, wrong, first_wrong } = sample;
        let scope = CheckScope::Sample;
        Self { scope, compared, wrong, first_wrong, ..Self::of_results(checksum) }
    }
}

impl WorkloadReport {
    /// Flush and compaction bytes, by the engine's own count, per byte of keys and values. What an
    /// engine counts as its users' may be more: RocksDB counts whole batches.
    pub fn engine_write_amplification(&self) -> Option<f64> {
        let bytes = self.engine_bytes.filter(|_| self.user_bytes_written > 0)?;
        Some((bytes.flush + bytes.compaction) as f64 / self.user_bytes_written as f64)
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
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct WriterReport {
    /// Writes.
    pub operations: u64,
    /// Writes a second.
    pub ops_per_second: f64,
    /// Their latencies, waiting for the next turn excluded.
    pub latency: LatencySummary,
}

/// The state after one second more.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Since the start.
    pub seconds: f64,
    /// Operations so far.
    pub operations: u64,
}
