//! Latency histograms: nanoseconds to three significant digits, up to an hour.
//!
//! Each thread records into its own; they are merged when the workload has ended. The range is fixed
//! beforehand so that recording never allocates.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest latency told apart: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A histogram of latencies.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3);
        Self { histogram: histogram.expect("the bounds are constants that the histogram accepts") }
    }
}

impl Latencies {
    /// Records one latency.
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
    }

    /// Adds what another thread recorded.
    pub fn merge(&mut self, other: &Self) {
        // Fails only for values beyond this histogram's range, and both have the same range.
        self.histogram.add(&other.histogram).expect("histograms of one range merge");
    }

    /// The longest latency recorded, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.histogram.max()
    }

    /// The figures that reports show.
    pub fn summary(&self, operations_per_sample: u64) -> LatencySummary {
        let us = |ns: u64| ns as f64 / 1_000.0;
        let at = |quantile| us(self.histogram.value_at_quantile(quantile));
        LatencySummary {
            samples: self.histogram.len(),
            operations_per_sample,
            mean_us: self.histogram.mean() / 1_000.0,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            p9999_us: at(0.9999),
            max_us: us(self.histogram.max()),
        }
    }
}

/// Quantiles of one workload's latencies, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// How many latencies were recorded.
    pub samples: u64,
    /// How many operations one latency spans (batches, and groups of iterator steps).
    pub operations_per_sample: u64,
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The 99.99th percentile.
    pub p9999_us: f64,
    /// The longest.
    pub max_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_quantiles_are_those_of_all_threads() {
        let mut all = Latencies::default();
        for thread in 0..4_u64 {
            let mut own = Latencies::default();
            (1..=2_500).for_each(|i| own.record((thread * 2_500 + i) * 1_000));
            all.merge(&own);
        }
        let summary = all.summary(1);
        assert_eq!(summary.samples, 10_000);
        for (found, expected) in [
            (summary.p50_us, 5_000.0),
            (summary.p99_us, 9_900.0),
            (summary.p9999_us, 9_999.0),
            (summary.max_us, 10_000.0),
        ] {
            assert!((found - expected).abs() <= expected / 500.0, "{found} for {expected}");
        }
    }

    #[test]
    fn what_is_longer_than_an_hour_counts_as_an_hour() {
        let mut latencies = Latencies::default();
        latencies.record(u64::MAX);
        assert!(latencies.max_ns() >= LONGEST_NS);
    }
}
