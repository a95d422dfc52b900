//! Units of the reports.
//!
//! Durations are shown in microseconds, with a fraction, in every report: the shortest ones that the
//! engine measures are below one microsecond.

use std::time::Duration;

/// A time in microseconds.
pub(crate) fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
