//! Statistics as OpenMetrics text, which Prometheus and its relatives read.
//!
//! The text follows version 1.0 of the OpenMetrics specification: each metric has its type, unit and
//! help, then its samples; counters end in `_total`, and the text ends with `# EOF`. Times are in
//! seconds, written exactly to the nanosecond.

use super::kinds::{MetricKind, MetricUnit, SamplePart};
use super::metrics::{METRICS, Metric};
use super::report::Stats;
use std::fmt::{Display, Write};

/// A number as it is written: nanoseconds as seconds.
struct Shown {
    raw: u64,
    seconds: bool,
}

impl Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.seconds {
            return self.raw.fmt(f);
        }
        let (whole, nanos) = (self.raw / 1_000_000_000, self.raw % 1_000_000_000);
        let text = format!("{whole}.{nanos:09}");
        let text = text.trim_end_matches('0');
        // The specification wants bounds of buckets as floating point numbers: `1.0`, not `1`.
        f.write_str(text)?;
        if text.ends_with('.') { f.write_str("0") } else { Ok(()) }
    }
}

/// The bound of a bucket. The specification has one way to write each power of ten; below 0.0001 it
/// is with an exponent.
fn bound(nanos: u64) -> String {
    match nanos {
        0..100_000 if nanos.is_multiple_of(10_000) => format!("{}e-05", nanos / 10_000),
        _ => Shown { raw: nanos, seconds: true }.to_string(),
    }
}

/// A text in which `escaped` characters and line ends have a backslash before them.
fn escape(text: &str, escaped: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            c if escaped.contains(&c) => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// The labels of a sample, in braces; nothing if there are none.
fn labels(names: &[&str], values: &[&str], own: Option<(&str, &str)>) -> String {
    let pairs = names.iter().copied().zip(values.iter().copied()).chain(own);
    let shown: Vec<_> =
        pairs.map(|(name, value)| format!("{name}=\"{}\"", escape(value, &['\\', '"']))).collect();
    if shown.is_empty() { String::new() } else { format!("{{{}}}", shown.join(",")) }
}

// Writing into a string cannot fail, so the results of `write!` are ignored below.

fn write_head(metric: &Metric, out: &mut String) {
    let Metric { name, kind, unit, .. } = metric;
    let _ = writeln!(out, "# TYPE {name} {}", kind.as_str());
    if *unit != MetricUnit::Count {
        let _ = writeln!(out, "# UNIT {name} {}", unit.as_str());
    }
    let _ = writeln!(out, "# HELP {name} {}", escape(metric.help(), &['\\', '"']));
}

fn write_sample(metric: &Metric, values: &[&str], part: SamplePart, raw: u64, out: &mut String) {
    let timed = metric.unit == MetricUnit::Seconds;
    let amount = Shown { raw, seconds: timed };
    let number = Shown { raw, seconds: false };
    let plain = || labels(metric.labels, values, None);
    let with = |name, value: &str| labels(metric.labels, values, Some((name, value)));
    let name = metric.name;
    let _ = match part {
        SamplePart::Value if metric.kind == MetricKind::StateSet => {
            for (at, state) in metric.states().iter().enumerate() {
                let is = u8::from(at as u64 == raw);
                let _ = writeln!(out, "{name}{} {is}", with(name, state));
            }
            Ok(())
        }
        SamplePart::Value if metric.kind == MetricKind::Counter => {
            writeln!(out, "{name}_total{} {amount}", plain())
        }
        SamplePart::Value => writeln!(out, "{name}{} {amount}", plain()),
        SamplePart::Count => writeln!(out, "{name}_count{} {number}", plain()),
        SamplePart::Sum => writeln!(out, "{name}_sum{} {amount}", plain()),
        SamplePart::Quantile(permille) => {
            let quantile = format!("{:?}", f64::from(permille) / 1000.0);
            writeln!(out, "{name}{} {amount}", with("quantile", &quantile))
        }
        SamplePart::Bucket(u64::MAX) => {
            writeln!(out, "{name}_bucket{} {number}", with("le", "+Inf"))
        }
        SamplePart::Bucket(upto) => {
            writeln!(out, "{name}_bucket{} {number}", with("le", &bound(upto)))
        }
    };
}

impl Stats {
    /// The statistics as text in the format OpenMetrics 1.0, for Prometheus and other collectors.
    /// [`Metric::all`] lists the metrics; `docs/operations.md` describes them. Names of keyspaces,
    /// branches and labels of snapshots are values of labels.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("key", "value")?;
    /// let text = db.stats().openmetrics();
    /// assert!(text.contains("\nesker_puts_total 1\n") && text.ends_with("# EOF\n"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn openmetrics(&self) -> String {
        let mut out = String::new();
        for metric in METRICS {
            write_head(metric, &mut out);
            metric.visit(self, &mut |_, values, part, raw| {
                write_sample(metric, values, part, raw, &mut out);
            });
        }
        out.push_str("# EOF\n");
        out
    }
}

#[cfg(test)]
mod tests;
