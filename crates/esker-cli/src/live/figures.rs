//! The numbers of a reading, and the rates between two readings.
//!
//! All numbers come from the table of metrics, so a metric that the engine gains is in the JSON
//! without a change here. Rates are over the time between the two updates that the writing process
//! made, not over the time between the two readings.

use esker::{MetricKind, Observed, Sample, SamplePart};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// The time after which a process that has written nothing has had nothing to write: it writes
/// once per second while something changes.
pub const IDLE_AFTER: Duration = Duration::from_millis(2_500);

/// The numbers of one reading.
#[derive(Debug)]
pub struct Figures {
    /// The reading.
    pub observed: Observed,
    samples: Vec<Sample>,
}

impl Figures {
    /// The numbers of a reading.
    pub fn new(observed: Observed) -> Self {
        let samples = observed.stats.samples();
        Self { observed, samples }
    }

    fn plain(&self, name: &str) -> impl Iterator<Item = &Sample> {
        let wanted = |sample: &&Sample| sample.part == SamplePart::Value;
        let name = name.to_owned();
        self.samples.iter().filter(wanted).filter(move |sample| sample.metric.name == name)
    }

    /// The sum of a metric over its labels; 0 if there is no such metric.
    pub fn total(&self, name: &str) -> f64 {
        // The sum of nothing is a negative zero.
        self.plain(name).map(Sample::value).sum::<f64>() + 0.0
    }

    /// A metric by the value of its first label.
    pub fn by_label(&self, name: &str) -> Vec<(String, f64)> {
        let label = |sample: &Sample| sample.labels.first().map(|(_, value)| value.clone());
        self.plain(name).map(|sample| (label(sample).unwrap_or_default(), sample.value())).collect()
    }

    /// Everything that counts, by name and labels.
    fn counters(&self) -> impl Iterator<Item = (String, f64)> + '_ {
        let counts = |sample: &&Sample| {
            sample.metric.kind == MetricKind::Counter && sample.part == SamplePart::Value
        };
        self.samples.iter().filter(counts).map(|sample| (key(sample), sample.value()))
    }
}

/// A metric and its labels, as OpenMetrics writes them.
fn key(sample: &Sample) -> String {
    let labels: Vec<String> =
        sample.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    match labels.len() {
        0 => sample.metric.name.to_owned(),
        _ => format!("{}{{{}}}", sample.metric.name, labels.join(",")),
    }
}

/// Growth per second, by name and labels.
#[derive(Debug, Default)]
pub struct Rates(HashMap<String, f64>);

impl Rates {
    /// The rates between two readings of one opening; `None` if they are not comparable, or the
    /// same.
    pub fn between(old: &Figures, new: &Figures) -> Option<Self> {
        let (before, after) = (&old.observed, &new.observed);
        if before.opened != after.opened || before.process != after.process {
            return None;
        }
        let passed = after.updated.duration_since(before.updated).ok()?.as_secs_f64();
        if after.update <= before.update || passed <= 0.0 {
            return None;
        }
        let old: HashMap<String, f64> = old.counters().collect();
        let rate = |(key, value): (String, f64)| {
            let grown = value - old.get(&key).copied().unwrap_or(0.0);
            (key, grown.max(0.0) / passed)
        };
        Some(Self(new.counters().map(rate).collect()))
    }

    /// Growth per second of a metric, over all labels.
    pub fn total(&self, name: &str) -> f64 {
        let labelled = format!("{name}{{");
        let fits = |key: &str| key == name || key.starts_with(&labelled);
        self.0.iter().filter(|(key, _)| fits(key)).map(|(_, rate)| rate).sum::<f64>() + 0.0
    }

    /// Growth per second of a metric with one label.
    pub fn of(&self, name: &str, label: &str, value: &str) -> f64 {
        self.0.get(&format!("{name}{{{label}={value:?}}}")).copied().unwrap_or(0.0)
    }
}

/// Readings one after the other, and the rates between the last two that differ.
#[derive(Debug)]
pub struct History {
    /// The last reading.
    pub last: Figures,
    rates: Rates,
}

impl History {
    /// Begins with one reading.
    pub fn new(observed: Observed) -> Self {
        Self { last: Figures::new(observed), rates: Rates::default() }
    }

    /// Takes the next reading.
    pub fn take(&mut self, observed: Observed) {
        let next = Figures::new(observed);
        let same = next.observed.update == self.last.observed.update;
        match Rates::between(&self.last, &next) {
            Some(rates) => self.rates = rates,
            // The writer may be about to write, so the rates hold for a moment.
            None if same && next.observed.age < IDLE_AFTER => {}
            None => self.rates = Rates::default(),
        }
        self.last = next;
    }

    /// The rates.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// All of it as JSON.
    pub fn json(&self, shown: impl Fn(&str) -> String) -> Value {
        let mut rates: Vec<(&String, &f64)> = self.rates.0.iter().collect();
        rates.sort_by(|a, b| a.0.cmp(b.0));
        let rates: Map<String, Value> =
            rates.into_iter().map(|(key, rate)| (key.clone(), json!(rate))).collect();
        json!({
            "observed": esker_json::observed(&self.last.observed),
            "rates_per_second": rates,
            "stats": esker_json::stats(&self.last.observed.stats, shown),
        })
    }
}
