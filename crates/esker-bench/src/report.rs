//! What a suite found out, ready to be serialized.
//!
//! Figures that a system or an engine does not offer are absent (`null` in JSON), never zero. Units
//! are in the names. *Write amplification* is bytes written to the device by the process for a byte
//! of keys and values that the workload wrote; what background work still owes at the end of a
//! workload falls on the next one, which is why the sum since open stands beside it.

mod evenness;

use crate::check::{Checksum, ReadBack};
use crate::engine::{EngineBytes, EngineSpec, Tuning};
use crate::measure::latency::LatencySummary;
use crate::measure::machine::Machine;
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::PathBuf;

pub use evenness::{Evenness, OpenLoopMedian, Spread};

/// The version of the report's form. It grows when a field is renamed, removed or changes its
/// meaning; a new field does not change it.
pub const FORMAT: u32 = 1;

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
    /// Why not, if not.
    #[serde(default)]
    pub stopped: Option<String>,
    /// Where the databases remain, if they do.
    #[serde(default)]
    pub kept: Option<PathBuf>,
    /// What the figures rest on, in sentences.
    #[serde(default)]
    pub rules: Vec<String>,
    /// The engines, in the order they were named.
    #[serde(default)]
    pub engines: Vec<EngineReport>,
    /// Which results were compared between engines, and whether they agreed.
    #[serde(default)]
    pub agreements: Vec<Agreement>,
    /// What it ran on.
    pub machine: Machine,
    /// What was asked for.
    pub settings: Settings,
    /// One for each engine and round, in the order they ran.
    pub runs: Vec<RunReport>,
    /// Medians over rounds, and ratios to the first engine; one for each workload.
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
        }
    }
}

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
    /// Flush and compaction bytes per byte of keys and values, by the engine's own count.
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

/// One workload over all engines and rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Comparison {
    /// Its name.
    pub workload: String,
    /// One for each engine, in the order they were named.
    pub engines: Vec<Median>,
}

/// Medians over rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    /// Context switches for an operation.
    #[serde(default)]
    pub context_switches_per_op: f64,
    /// Rounds that were completed.
    #[serde(default)]
    pub rounds: usize,
    /// Whether it wrote in batches only because the engine's single writes are not cheap; then it is
    /// not compared with engines that wrote one by one.
    #[serde(default)]
    pub batched_instead: bool,
    /// Operations of one call.
    #[serde(default)]
    pub batch: usize,
    /// How it stands to the first engine.
    #[serde(default)]
    pub verdict: Verdict,
    /// Latencies, the longest gap and the rates of single seconds.
    #[serde(default)]
    pub evenness: Evenness,
    /// What was due, in an open loop.
    #[serde(default)]
    pub open_loop: Option<OpenLoopMedian>,
}

/// How one engine stands to the first, in one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is the first.
    Base,
    /// Every round was faster, by more than rounds differ.
    Faster,
    /// Every round was slower, by more than rounds differ.
    Slower,
    /// The difference is not larger than that between rounds.
    Tie,
    /// There was one round, so nobody knows how much rounds differ.
    #[default]
    Unknown,
    /// The two did not do the same work.
    Unlike,
}

/// How `other` stands to `base`.
fn verdict(base: &Median, other: &Median) -> Verdict {
    if base.batched_instead != other.batched_instead {
        return Verdict::Unlike;
    }
    if base.rounds < 2 || other.rounds < 2 {
        return Verdict::Unknown;
    }
    let width = |median: &Median| median.spread.1 - median.spread.0;
    let difference = (other.ops_per_second - base.ops_per_second).abs();
    let overlap = other.spread.0 <= base.spread.1 && base.spread.0 <= other.spread.1;
    if overlap || difference <= width(base).max(width(other)) {
        Verdict::Tie
    } else if other.ops_per_second > base.ops_per_second {
        Verdict::Faster
    } else {
        Verdict::Slower
    }
}

/// Compares runs of the same list, workload by workload.
pub fn compare(engines: &[EngineSpec], runs: &[RunReport]) -> Vec<Comparison> {
    // The run that came farthest names the workloads.
    let Some(first) = runs.iter().max_by_key(|run| run.workloads.len()) else { return Vec::new() };
    let steps = first.workloads.iter().enumerate();
    steps
        .map(|(step, workload)| {
            let mut medians: Vec<Median> =
                engines.iter().filter_map(|engine| median_of(engine, step, runs)).collect();
            // The first that was named; without it there is nothing to stand to.
            let base = medians.first().filter(|median| engines.first() == Some(&median.engine));
            if let Some(base) = base.cloned() {
                for median in &mut medians {
                    median.verdict = verdict(&base, median);
                    median.ratio = ratio(median.ops_per_second, base.ops_per_second);
                }
                medians[0].verdict = Verdict::Base;
            }
            Comparison { workload: workload.name.clone(), engines: medians }
        })
        .collect()
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
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
        context_switches_per_op: of(|round| Some(round.context_switches_per_op))?,
        rounds: rounds.len(),
        batched_instead: rounds.iter().any(|round| round.batched_instead),
        batch: rounds.iter().map(|round| round.batch).max().unwrap_or(1),
        verdict: Verdict::default(),
        evenness: Evenness::of(&rounds),
        open_loop: OpenLoopMedian::of(&rounds),
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

    fn rates(name: &str, rates: (f64, f64, f64), rounds: usize) -> Median {
        Median {
            engine: crate::engine::spec::spec(name),
            ops_per_second: rates.1,
            ratio: 1.0,
            spread: (rates.0, rates.2),
            p99_us: 0.0,
            longest_pause_ms: 0.0,
            cpu_us_per_op: 0.0,
            write_amplification_since_open: None,
            space_amplification: None,
            context_switches_per_op: 0.0,
            rounds,
            batched_instead: false,
            batch: 1,
            verdict: Verdict::default(),
            evenness: Evenness::default(),
            open_loop: None,
        }
    }

    #[test]
    fn a_difference_smaller_than_the_spread_is_a_tie() {
        let base = rates("esker", (90.0, 100.0, 110.0), 3);
        let cases = [
            ((85.0, 105.0, 108.0), Verdict::Tie),
            // Apart, but not by more than the rounds of one of them differ.
            ((111.0, 118.0, 119.0), Verdict::Tie),
            ((111.0, 125.0, 126.0), Verdict::Faster),
            // One wide spread is enough.
            ((111.0, 125.0, 140.0), Verdict::Tie),
            ((70.0, 75.0, 80.0), Verdict::Slower),
            ((70.0, 75.0, 90.0), Verdict::Tie),
        ];
        for (figures, expected) in cases {
            assert_eq!(verdict(&base, &rates("mem", figures, 3)), expected, "{figures:?}");
        }
        assert_eq!(verdict(&base, &rates("mem", (1.0, 1.0, 1.0), 1)), Verdict::Unknown);
        let batched = Median { batched_instead: true, ..rates("mem", (1.0, 1.0, 1.0), 3) };
        assert_eq!(verdict(&base, &batched), Verdict::Unlike);
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }
}
