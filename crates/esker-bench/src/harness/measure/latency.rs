//! Latency histograms: nanoseconds to three significant digits, up to an hour.
//!
//! Each thread records into its own; they are merged when the workload has ended. The range is fixed
//! beforehand so that recording never allocates.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest latency told apart: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The percentiles of a curve.
const PERCENTILES: [f64; 21] = [
    0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5,
    99.9, 99.95, 99.99, 99.999, 99.9999,
];

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

    /// The course of the quantiles: percentiles and microseconds, ascending, as far as there are
    /// enough latencies to tell one percentile from the next.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let count = self.histogram.len();
        if count == 0 {
            return Vec::new();
        }
        let told_apart = |percentile: &f64| (1.0 - percentile / 100.0) * count as f64 >= 0.999;
        let within = PERCENTILES.iter().copied().take_while(told_apart);
        let at = |percentile: f64| self.histogram.value_at_quantile(percentile / 100.0);
        within
            .map(|percentile| (percentile, at(percentile) as f64 / 1_000.0))
            .chain([(100.0, self.histogram.max() as f64 / 1_000.0)])
            .collect()
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
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            p9999_us: at(0.9999),
            max_us: us(self.histogram.max()),
        }
    }
}

/// Quantiles of one workload's latencies, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// How many latencies were recorded.
    pub samples: u64,
    /// How many operations one latency spans (batches, and groups of iterator steps).
    pub operations_per_sample: u64,
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 90th percentile.
    #[serde(default)]
    pub p90_us: f64,
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
    fn curves_ascend_as_far_as_percentiles_differ() {
        let mut latencies = Latencies::default();
        assert!(latencies.curve().is_empty());
        (1..=1_000).for_each(|i| latencies.record(i * 1_000));
        let curve = latencies.curve();
        assert_eq!(curve.first().unwrap().0, 0.0);
        assert_eq!(curve.last().unwrap().0, 100.0);
        assert!(curve.iter().any(|(percentile, _)| *percentile == 99.9));
        assert!(curve.iter().all(|(percentile, _)| *percentile != 99.99));
        assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
    }

    #[test]
    fn what_is_longer_than_an_hour_counts_as_an_hour() {
        let mut latencies = Latencies::default();
        latencies.record(u64::MAX);
        assert!(latencies.max_ns() >= LONGEST_NS);
    }
}
