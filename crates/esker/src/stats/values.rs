//! The types of fields that a metric can show, as numbers.
//!
//! A count is one number, a latency is several: its quantiles, count and sum. A field gives its
//! numbers one by one and takes them back in any order, so an output or an encoding needs to know
//! only numbers. A number that a field does not know is ignored: a newer version wrote it.

use super::kinds::SamplePart;
use super::report::{Latency, LogHolder};
use crate::admission::PaceMode;
use crate::waits::{BUCKETS_UPTO, Waited};
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

impl Field for Waited {
    fn emit(&self, visit: &mut dyn FnMut(SamplePart, u64)) {
        let mut upto = 0;
        for (bound, count) in BUCKETS_UPTO.iter().zip(self.buckets) {
            upto += count;
            visit(SamplePart::Bucket(*bound), upto);
        }
        visit(SamplePart::Count, self.count);
        visit(SamplePart::Sum, nanos(self.total));
    }

    fn accept(&mut self, part: SamplePart, raw: u64) {
        match part {
            SamplePart::Count => self.count = raw,
            SamplePart::Sum => self.total = Duration::from_nanos(raw),
            // Buckets come in order, so the ones before are known; each holds what they do not.
            SamplePart::Bucket(bound) => {
                let Some(at) = BUCKETS_UPTO.iter().position(|upto| *upto == bound) else { return };
                let before: u64 = self.buckets.iter().take(at).fold(0, |a, b| a.saturating_add(*b));
                self.buckets[at] = raw.saturating_sub(before);
            }
            _ => {}
        }
    }
}

macro_rules! states {
    ($($name:ident)*) => {
        $(impl Field for $name {
            fn emit(&self, visit: &mut dyn FnMut(SamplePart, u64)) {
                visit(SamplePart::Value, *self as u64);
            }

            fn accept(&mut self, part: SamplePart, raw: u64) {
                if let (SamplePart::Value, Some(state)) = (part, Self::numbered(raw)) {
                    *self = state;
                }
            }

            fn states(&self) -> &'static [&'static str] {
                &Self::NAMES
            }
        })*
    };
}
states! { PaceMode LogHolder }

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
