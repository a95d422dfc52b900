//! The types of fields that a metric can show, as numbers.
//!
//! A count is one number, a latency is several: its quantiles, count and sum. A field gives its
//! numbers one by one and takes them back in any order, so an output or an encoding needs to know
//! only numbers. A number that a field does not know is ignored: a newer version wrote it.

use super::metrics::SamplePart;
use super::report::Latency;
use std::time::Duration;

/// A field of the statistics.
pub trait Field {
    /// Calls `visit` with every number of the field.
    fn emit(&self, visit: &mut dyn FnMut(SamplePart, u64));

    /// Takes back a number.
    fn accept(&mut self, part: SamplePart, raw: u64);

    /// The names of its states, if the number is one of several states.
    fn states(&self) -> &'static [&'static str] {
        &[]
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Field for u64 {
    fn emit(&self, visit: &mut dyn FnMut(SamplePart, u64)) {
        visit(SamplePart::Value, *self);
    }

    fn accept(&mut self, part: SamplePart, raw: u64) {
        if part == SamplePart::Value {
            *self = raw;
        }
    }
}

impl Field for Duration {
    fn emit(&self, visit: &mut dyn FnMut(SamplePart, u64)) {
        visit(SamplePart::Value, nanos(*self));
    }

    fn accept(&mut self, part: SamplePart, raw: u64) {
        if part == SamplePart::Value {
            *self = Duration::from_nanos(raw);
        }
    }
}

impl Field for Latency {
    fn emit(&self, visit: &mut dyn FnMut(SamplePart, u64)) {
        visit(SamplePart::Quantile(500), nanos(self.p50));
        visit(SamplePart::Quantile(990), nanos(self.p99));
        visit(SamplePart::Quantile(999), nanos(self.p999));
        visit(SamplePart::Quantile(1000), nanos(self.max));
        visit(SamplePart::Count, self.samples);
        visit(SamplePart::Sum, nanos(self.total));
    }

    fn accept(&mut self, part: SamplePart, raw: u64) {
        let time = Duration::from_nanos(raw);
        match part {
            SamplePart::Quantile(500) => self.p50 = time,
            SamplePart::Quantile(990) => self.p99 = time,
            SamplePart::Quantile(999) => self.p999 = time,
            SamplePart::Quantile(1000) => self.max = time,
            SamplePart::Count => self.samples = raw,
            SamplePart::Sum => self.total = time,
            _ => {}
        }
    }
}
