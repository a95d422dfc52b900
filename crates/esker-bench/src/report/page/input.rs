//! Reports as they stand in files.
//!
//! These structures are not those that the benchmark writes, because a page is made of whatever a file
//! has. Only what no page can do without is required. Every other figure may be missing: a system or an
//! engine may not offer it, or the file may come from an earlier version. Machine and settings are kept
//! as names and values, so a setting that this code does not know is still shown, and still separates
//! what was measured differently.

use super::error::PageError;
use crate::report::Origin;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The formats that this code reads where a file names one. They differ in fields that no page shows.
const FORMATS: std::ops::RangeInclusive<u64> = 1..=3;

/// A file that was read.
#[derive(Debug, Clone)]
pub struct Input {
    /// What the page calls it: the name without the directory.
    pub file: String,
    /// What is in it.
    pub document: Document,
}

/// What one call of the benchmark wrote.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Document {
    /// When it was made, by which command and by which build; unknown in older reports.
    #[serde(default)]
    pub origin: Origin,
    /// The machine.
    pub machine: Map<String, Value>,
    /// What was asked for.
    pub settings: Map<String, Value>,
    /// One for each engine and round.
    pub runs: Vec<Run>,
    /// Whether everything was run that was asked for; absent in older reports, which were whole.
    #[serde(default)]
    pub complete: Option<bool>,
    /// Why not everything was run.
    #[serde(default)]
    pub stopped: Option<String>,
    /// What the figures rest on, in sentences.
    #[serde(default)]
    pub rules: Vec<String>,
    /// What is known of each engine.
    #[serde(default)]
    pub engines: Vec<Engine>,
    /// Whether engines returned the same.
    #[serde(default)]
    pub agreements: Vec<Agreement>,
    /// The experiment, if it was one.
    #[serde(default)]
    pub experiment: Option<String>,
    /// What others published of the experiment.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Figures of steps that stand beside their reports.
    #[serde(default)]
    pub figures: Vec<StepFigures>,
}

impl Document {
    /// Puts figures that stand beside the reports of steps into them.
    fn join(&mut self) {
        for found in &self.figures {
            let is = |run: &&mut Run| run.engine == found.engine && run.round == found.round;
            let steps = self.runs.iter_mut().filter(is).flat_map(|run| &mut run.workloads);
            for step in steps.filter(|step| step.name == found.workload) {
                let known = found
                    .figures
                    .iter()
                    .filter_map(|(name, figure)| Some((name.clone(), (*figure)?)));
                step.figures = known.collect();
            }
        }
    }

    /// Why it is not whole, in one sentence.
    pub fn partial(&self) -> Option<String> {
        let failed = || {
            self.runs.iter().find_map(|run| {
                run.failure.as_ref().map(|failure| format!("{}: {failure}", run.engine))
            })
        };
        let unnamed = || (self.complete == Some(false)).then(|| "a run is missing".to_owned());
        self.stopped.clone().or_else(failed).or_else(unnamed)
    }
}

/// An engine as the report describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Engine {
    /// As users name it.
    pub name: String,
    /// As tables name it.
    #[serde(default)]
    pub label: Option<String>,
    /// The engine that it is a variant of.
    #[serde(default)]
    pub kind: Option<String>,
    /// How much was set by hand.
    #[serde(default)]
    pub tuning: Option<String>,
    /// What a reader has to know about it.
    #[serde(default)]
    pub note: Option<String>,
}

/// What engines returned for one step.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Agreement {
    /// The workload.
    pub workload: String,
    /// The engines whose results were compared.
    #[serde(default)]
    pub engines: Vec<String>,
    /// Whether they were the same.
    pub agree: bool,
}

/// One database from open to close.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Run {
    /// The engine, as users name it.
    pub engine: String,
    /// Its name and version, as it says itself.
    #[serde(default)]
    pub version: Option<String>,
    /// Which round, from 1.
    #[serde(default)]
    pub round: u64,
    /// Why it ended early.
    #[serde(default)]
    pub failure: Option<String>,
    /// How it was opened.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// The workloads in order.
    pub workloads: Vec<Step>,
    /// Where it comes from, if that may differ from the report.
    #[serde(default)]
    pub origin: Option<Origin>,
}

/// A figure that can be drawn: neither negative nor beyond all measure.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Figure(pub f64);

impl TryFrom<f64> for Figure {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        let plausible = (0.0..=1e18).contains(&value);
        plausible.then_some(Self(value)).ok_or_else(|| format!("{value} is no figure of a report"))
    }
}

/// One workload of a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Step {
    /// Its name, with threads if they were given.
    pub name: String,
    /// Whether it was one call on the database.
    #[serde(default)]
    pub maintenance: bool,
    /// How long it took.
    pub seconds: Figure,
    /// Operations completed.
    pub operations: Figure,
    /// Operations a second.
    pub ops_per_second: Figure,
    /// Megabytes of keys and values in or out, a second.
    #[serde(default)]
    pub mb_per_second: Option<Figure>,
    /// CPU time for an operation.
    #[serde(default)]
    pub cpu_us_per_op: Option<Figure>,
    /// Context switches for an operation.
    #[serde(default)]
    pub context_switches_per_op: Option<Figure>,
    /// Whether it wrote in batches only because single writes are not cheap for the engine.
    #[serde(default)]
    pub batched_instead: bool,
    /// Latencies.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// What was due, if operations were due at times of their own.
    #[serde(default)]
    pub open_loop: Option<OpenLoop>,
    /// Percentiles and microseconds, ascending.
    #[serde(default)]
    pub latency_curve: Vec<(Figure, Figure)>,
    /// The longest time in which nothing was completed.
    #[serde(default)]
    pub longest_pause_ms: Option<Figure>,
    /// The lowest of the rates of single seconds.
    #[serde(default)]
    pub rate_min: Option<Figure>,
    /// Their median.
    #[serde(default)]
    pub rate_median: Option<Figure>,
    /// Bytes of keys and values written.
    #[serde(default)]
    pub user_bytes_written: Option<Figure>,
    /// Bytes read from the device.
    #[serde(default)]
    pub device_bytes_read: Option<Figure>,
    /// Device bytes written for a byte of keys and values.
    #[serde(default)]
    pub write_amplification: Option<Figure>,
    /// The same since open.
    #[serde(default)]
    pub write_amplification_since_open: Option<Figure>,
    /// Device bytes read for a byte of keys and values.
    #[serde(default)]
    pub read_amplification: Option<Figure>,
    /// Allocated bytes for a byte of live keys and values.
    #[serde(default)]
    pub space_amplification: Option<Figure>,
    /// Allocated bytes.
    #[serde(default)]
    pub disk_bytes: Option<Figure>,
    /// The largest resident size of the process.
    #[serde(default)]
    pub peak_memory_bytes: Option<Figure>,
    /// One point a second.
    #[serde(default)]
    pub rates: Vec<RatePoint>,
    /// One point for every so many operations.
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// What was found out about its results.
    #[serde(default)]
    pub check: Option<Check>,
    /// What the engine says about itself.
    #[serde(default)]
    pub text: Option<String>,
    /// Figures that only an experiment has, by name; in a file they stand beside the runs.
    #[serde(skip)]
    pub figures: BTreeMap<String, f64>,
}

/// Operations that were due at times of their own.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct OpenLoop {
    /// How many were due in a second.
    pub rate: Figure,
    /// Which share of the sustained rate that is, if it was asked for as a share.
    #[serde(default)]
    pub percent: Option<Figure>,
    /// Whether what was due was done.
    #[serde(default)]
    pub kept_up: Option<bool>,
}

/// Quantiles of latencies, in microseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Latency {
    /// How many operations one latency spans.
    #[serde(default)]
    pub operations_per_sample: Option<u64>,
    /// The median.
    pub p50_us: Figure,
    /// The 90th percentile.
    #[serde(default)]
    pub p90_us: Option<Figure>,
    /// The 99th percentile.
    pub p99_us: Figure,
    /// The 99.9th percentile.
    #[serde(default)]
    pub p999_us: Option<Figure>,
    /// The 99.99th percentile.
    #[serde(default)]
    pub p9999_us: Option<Figure>,
    /// The longest.
    pub max_us: Figure,
}

/// The rate of one second.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct RatePoint {
    /// Since the start.
    pub seconds: Figure,
    /// Operations a second since the point before.
    pub ops_per_second: Figure,
}

/// How far a run was after so many operations.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Sample {
    /// Since the start.
    pub seconds: Figure,
    /// Operations so far.
    pub operations: Figure,
}

/// What was found out about results.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Check {
    /// How many were wrong.
    #[serde(default)]
    pub wrong: u64,
}

/// A figure that somebody else published.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Published {
    /// The step or workload.
    pub workload: String,
    /// The engine.
    pub engine: String,
    /// Operations a second.
    pub ops_per_second: Figure,
    /// At which scale.
    #[serde(default)]
    pub scale: Option<Figure>,
    /// Device bytes written for a byte of keys and values, since open.
    #[serde(default)]
    pub write_amplification: Option<Figure>,
    /// Requests for reading to the device for an operation.
    #[serde(default)]
    pub device_reads_per_op: Option<Figure>,
}

/// Figures of one step of one run that stand beside its report.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StepFigures {
    /// The engine, as users name it.
    pub engine: String,
    /// Which round, from 1.
    pub round: u64,
    /// The step.
    pub workload: String,
    /// By name.
    pub figures: BTreeMap<String, Option<f64>>,
}

/// Reads files, in the order given.
pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Input>, PageError> {
    let inputs = paths.iter().map(|path| {
        let path = path.as_ref();
        let shown = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| PageError::Unreadable {
            file: shown.clone(),
            cause: error.to_string(),
        })?;
        let name = path.file_name().map_or(shown.clone(), |name| name.to_string_lossy().into());
        let document = parse(&shown, &bytes)?;
        Ok(Input { file: name, document })
    });
    inputs.collect()
}

/// Understands one file.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Document, PageError> {
    let not_json =
        |cause: &dyn ToString| PageError::NotJson { file: file.into(), cause: cause.to_string() };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(not_json(&"it is empty"));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| not_json(&error))?;
    let format = value.get("format").map(|format| format.as_u64().unwrap_or(0));
    if let Some(found) = format.filter(|format| !FORMATS.contains(format)) {
        let known = if found < *FORMATS.start() { *FORMATS.start() } else { *FORMATS.end() };
        return Err(PageError::Format { file: file.into(), found, known });
    }
    let wrong = |cause: String| PageError::NotAReport { file: file.into(), cause };
    // Deserialized from the value, the message names the field and not a place in one long line.
    let mut document: Document =
        serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
    if document.runs.iter().all(|run| run.workloads.is_empty()) {
        return Err(wrong("it has no finished workload".into()));
    }
    document.join();
    Ok(document)
}
