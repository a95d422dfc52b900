//! OpenMetrics of a database that another process has open.
//!
//! A scraper must not take old figures for present ones. So the figures are given only while they
//! are of now, and `esker_up` says whether that is so.

use esker::{Observed, ObservedState};
use std::fmt::Write;

/// The metrics that only this adds: name, and what it says.
pub const ADDED: [(&str, &str); 2] = [
    ("esker_up", "Whether a process has the database open and writes its statistics."),
    ("esker_statistics_age_seconds", "The age of the last statistics; absent if there are none."),
];

/// The line that ends the text.
const END: &str = "# EOF\n";

/// The text for a reading; `None`: there is nothing to read.
pub fn text(observed: Option<&Observed>) -> String {
    let live = observed.filter(|observed| observed.state == ObservedState::Live);
    let mut text = live.map(|observed| observed.stats.openmetrics()).unwrap_or_default();
    if text.ends_with(END) {
        text.truncate(text.len() - END.len());
    }
    let age = observed.map(|observed| observed.age.as_secs_f64());
    let values = [Some(if live.is_some() { 1.0 } else { 0.0 }), age];
    for ((name, help), value) in ADDED.iter().zip(values) {
        let Some(value) = value else { continue };
        // To write into a string cannot fail.
        let _ = writeln!(text, "# TYPE {name} gauge");
        if name.ends_with("_seconds") {
            let _ = writeln!(text, "# UNIT {name} seconds");
        }
        let _ = writeln!(text, "# HELP {name} {help}\n{name} {value}");
    }
    text.push_str(END);
    text
}
