//! A line on standard error that tells how far a long command has come: rate, percent, time left.
//!
//! It is shown only where standard error is a terminal; in a pipe or a log nothing is printed.

use esker_port::{Progress, Step, Summary};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The bar counts thousandths.
const WHOLE: u64 = 1000;

/// A line of progress.
pub struct Line {
    bar: Option<ProgressBar>,
    started: Instant,
}

impl Line {
    /// A line that begins with the name of the work.
    pub fn new(verb: &'static str) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(verb);
            bar
        });
        Self { bar, started: Instant::now() }
    }
}

impl Progress for Line {
    fn step(&mut self, step: Step) {
        if let Some(bar) = &self.bar {
            bar.set_position((step.fraction.unwrap_or_default() * WHOLE as f64) as u64);
            bar.set_message(message(step, self.started.elapsed()));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Entries and rate; percent and time left too if the total is known.
pub fn message(step: Step, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let rate = step.entries as f64 / seconds;
    let megabytes = step.bytes as f64 / seconds / 1e6;
    let text = format!("{} entries, {rate:.0}/s, {megabytes:.1} MB/s", step.entries);
    match step.fraction.filter(|fraction| *fraction > 0.0) {
        None => text,
        Some(part) => {
            let left = seconds * (1.0 - part) / part;
            format!("{text}, {:.0} %, {left:.0} s left", part * 100.0)
        }
    }
}

/// Prints what a run did: a line, or JSON.
pub fn summary(
    out: &mut dyn Write,
    verb: &str,
    summary: &Summary,
    as_json: bool,
) -> io::Result<()> {
    if as_json {
        return writeln!(out, "{}", summary_json(summary));
    }
    let resumed = match summary.resumed {
        0 => String::new(),
        resumed => format!(" ({resumed} of them earlier)"),
    };
    writeln!(
        out,
        "{verb} {} entries{resumed}, {} bytes, {} keyspaces, checksum {:016x}, {:.1} s",
        summary.entries,
        summary.bytes,
        summary.keyspaces,
        summary.content,
        summary.elapsed.as_secs_f64()
    )
}

fn summary_json(summary: &Summary) -> Value {
    json!({
        "keyspaces": summary.keyspaces,
        "entries": summary.entries,
        "bytes": summary.bytes,
        "resumed": summary.resumed,
        "checksum": format!("{:016x}", summary.content),
        "stream_bytes": summary.stream_bytes,
        "seconds": summary.elapsed.as_secs_f64(),
    })
}
