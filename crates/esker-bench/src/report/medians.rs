//! Medians over rounds, and how each engine stands to the base.
//!
//! The base is Esker, or the engine that was named first where Esker is not among them, as on the page
//! and in the tables in Markdown. A ratio has their direction too: above 1 is better for the base. Runs are compared step by step. A difference counts only if it is larger than that between rounds of
//! the same engine ([`Verdict`]); with one round there is no verdict.

use super::evenness::{Evenness, OpenLoopMedian};
use super::run::RunReport;
use crate::engines::EngineSpec;
use crate::harness::measure::median::median;
use crate::harness::step_report::WorkloadReport;
use serde::{Deserialize, Serialize};

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
    /// The base's rate divided by this one: above 1 is better for the base.
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
    /// How it compares with the base.
    #[serde(default)]
    pub verdict: Verdict,
    /// Latencies, the longest gap and the rates of single seconds.
    #[serde(default)]
    pub evenness: Evenness,
    /// What was due, in an open loop.
    #[serde(default)]
    pub open_loop: Option<OpenLoopMedian>,
}

/// How one engine compares with the base, in one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is the base.
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

/// How `other` compares with `base`.
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

/// The engine that others are compared with.
fn base(engines: &[EngineSpec]) -> Option<&EngineSpec> {
    engines.iter().find(|engine| engine.kind() == "esker").or(engines.first())
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
            relate(engines, &mut medians);
            Comparison { workload: workload.name.clone(), engines: medians }
        })
        .collect()
}

/// Fills in how each engine stands to the base. Without the base there is nothing to compare with.
fn relate(engines: &[EngineSpec], medians: &mut [Median]) {
    let is_base = |median: &&Median| base(engines) == Some(&median.engine);
    let Some(base) = medians.iter().find(is_base).cloned() else { return };
    for median in medians {
        median.verdict = match median.engine == base.engine {
            true => Verdict::Base,
            false => verdict(&base, median),
        };
        median.ratio = ratio(base.ops_per_second, median.ops_per_second);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(name: &str, rates: (f64, f64, f64), rounds: usize) -> Median {
        Median {
            engine: crate::engines::lookup::spec(name),
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

    /// As on the page: Esker is the base wherever it was named, and above 1 is better for it.
    #[test]
    fn a_ratio_above_one_is_better_for_esker() {
        let related = |names: &[(&str, f64)]| {
            let of = |(name, rate): &(&str, f64)| rates(name, (*rate, *rate, *rate), 1);
            let mut medians: Vec<Median> = names.iter().map(of).collect();
            let engines: Vec<EngineSpec> = medians.iter().map(|m| m.engine.clone()).collect();
            relate(&engines, &mut medians);
            medians.iter().map(|m| (m.ratio, m.verdict)).collect::<Vec<_>>()
        };
        let (base, other) = (Verdict::Base, Verdict::Unknown);
        let (ours, slow, fast) = (("esker", 100.0), ("mem", 50.0), ("null", 400.0));
        assert_eq!(related(&[slow, ours, fast]), [(2.0, other), (1.0, base), (0.25, other)]);
        assert_eq!(related(&[slow, fast]), [(1.0, base), (0.125, other)]);
    }
}
