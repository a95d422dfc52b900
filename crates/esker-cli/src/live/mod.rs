//! A database that another process has open, seen through the file in which it writes its
//! statistics: nothing is opened, locked or written here.
//!
//! `figures` makes rates of two readings, `view` arranges them for people, `screen` shows that on a
//! terminal, `tail` reads the last events, `openmetrics` adds whether the database is open.

pub mod figures;
pub mod openmetrics;
pub mod screen;
pub mod tail;
#[cfg(test)]
mod tests;
pub mod view;

use esker::{Observed, ObservedState};
use std::time::Duration;

/// What a reading is, in words.
pub fn describe(observed: &Observed) -> String {
    let (process, age) = (observed.process, seconds(observed.age));
    match observed.state {
        ObservedState::Live => format!("open in process {process}, statistics of {age} ago"),
        ObservedState::Closed => {
            format!("closed by process {process} {age} ago; these are its last statistics")
        }
        ObservedState::Ended => {
            format!("process {process} ended without closing it; its last statistics, of {age} ago")
        }
        _ => format!("process {process} has written no statistics for {age}; these are its last"),
    }
}

/// A time in seconds, as people write it.
pub fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
