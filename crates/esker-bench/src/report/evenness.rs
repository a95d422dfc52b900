//! How evenly an engine worked, over rounds.
//!
//! Percentiles of rounds are not merged into one histogram. The report has the median of the rounds'
//! percentiles, and the lowest and the highest of them, which show how much rounds differ.

use crate::harness::measure::median::median;
use crate::harness::step_report::WorkloadReport;
use serde::{Deserialize, Serialize};

/// A figure over rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median round; of an even number, the mean of the middle two.
    pub median: f64,
    /// The lowest round.
    pub min: f64,
    /// The highest round.
    pub max: f64,
}

impl Spread {
    /// Of these rounds; zero if there is none.
    pub(super) fn of(rounds: &[&WorkloadReport], figure: impl Fn(&WorkloadReport) -> f64) -> Self {
        let figures: Vec<f64> = rounds.iter().map(|round| figure(round)).collect();
        let min = figures.iter().copied().reduce(f64::min).unwrap_or_default();
        let max = figures.iter().copied().reduce(f64::max).unwrap_or_default();
        Self { median: median(figures).unwrap_or_default(), min, max }
    }
}

/// Latencies, the longest gap, and the rates of single seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Evenness {
    /// The median of latencies.
    pub p50_us: Spread,
    /// Their 90th percentile.
    pub p90_us: Spread,
    /// Their 99th percentile.
    pub p99_us: Spread,
    /// Their 99.9th percentile.
    pub p999_us: Spread,
    /// Their 99.99th percentile.
    pub p9999_us: Spread,
    /// The longest of them.
    pub max_us: Spread,
    /// The longest time in which no thread completed an operation.
    pub longest_pause_ms: Spread,
    /// The lowest of the rates of single seconds.
    pub rate_min: Spread,
    /// Their median.
    pub rate_median: Spread,
}

impl Evenness {
    /// Over these rounds.
    pub fn of(rounds: &[&WorkloadReport]) -> Self {
        Self {
            p50_us: Spread::of(rounds, |round| round.latency.p50_us),
            p90_us: Spread::of(rounds, |round| round.latency.p90_us),
            p99_us: Spread::of(rounds, |round| round.latency.p99_us),
            p999_us: Spread::of(rounds, |round| round.latency.p999_us),
            p9999_us: Spread::of(rounds, |round| round.latency.p9999_us),
            max_us: Spread::of(rounds, |round| round.latency.max_us),
            longest_pause_ms: Spread::of(rounds, |round| round.longest_pause_ms),
            rate_min: Spread::of(rounds, |round| round.rate_min),
            rate_median: Spread::of(rounds, |round| round.rate_median),
        }
    }
}

/// An open loop over rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenLoopMedian {
    /// Operations that were due a second; rounds differ where a share of the sustained rate was asked
    /// for.
    pub rate: Spread,
    /// That share, in hundredths.
    pub percent: Option<f64>,
    /// Rounds in which 99 % of what was due was done.
    pub kept_up: usize,
}

impl OpenLoopMedian {
    /// Over these rounds; none if operations were not due at times of their own.
    pub fn of(rounds: &[&WorkloadReport]) -> Option<Self> {
        let loops = || rounds.iter().filter_map(|round| round.open_loop);
        let first = loops().next()?;
        Some(Self {
            rate: Spread::of(rounds, |round| round.open_loop.map_or(0.0, |due| due.rate)),
            percent: first.percent,
            kept_up: loops().filter(|due| due.kept_up).count(),
        })
    }
}
