//! A line on standard error that tells how far a long command has come: rate, percent, time left, or,
//! where the work tells no numbers, that it goes on and for how long it has.
//!
//! It is shown only where standard error is a terminal; in a pipe or a log nothing is printed.

use esker_port::{Progress, Step, Summary};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde_json::{Map, Value, json};
use std::fmt;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
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

/// A sign that work goes on which does not tell how much is left.
pub struct Spinner(Option<ProgressBar>);

/// How often a spinner is drawn.
const TURN: Duration = Duration::from_millis(100);

impl Spinner {
    /// One that begins with the name of the work, and shows its time.
    pub fn new(verb: &'static str) -> Self {
        Self::with_figure(verb, String::new)
    }

    /// One that also shows a figure, which is asked for each time it is drawn.
    pub fn with_figure(
        verb: &'static str,
        figure: impl Fn() -> String + Clone + Send + Sync + 'static,
    ) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let figure = move |_: &ProgressState, out: &mut dyn fmt::Write| {
                // What cannot be drawn is not shown.
                let _ = out.write_str(&figure());
            };
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {figure}")
            {
                bar.set_style(style.with_key("figure", figure));
            }
            bar.set_prefix(verb);
            // At once, so that short work is seen too.
            bar.tick();
            bar.enable_steady_tick(TURN);
            bar
        });
        Self(bar)
    }
}

impl Spinner {
    /// One that shows how many files are in a database's directory that is being made, and their bytes.
    pub fn of_directory(verb: &'static str, directory: PathBuf) -> Self {
        Self::with_figure(verb, move || {
            let (files, bytes) = contents(&directory);
            format!("{files} files, {:.1} MB", bytes as f64 / 1e6)
        })
    }
}

/// How many files lie in a directory and in the directories of it, and their bytes. What cannot be looked
/// at, or goes away meanwhile, is not counted.
fn contents(directory: &Path) -> (u64, u64) {
    let (mut files, mut bytes) = (0, 0);
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                pending.push(entry.path());
            } else {
                files += 1;
                bytes += meta.len();
            }
        }
    }
    (files, bytes)
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
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
    summary_with(out, verb, summary, as_json.then(Map::new))
}

/// The same, with more fields if it is to be JSON.
pub fn summary_with(
    out: &mut dyn Write,
    verb: &str,
    summary: &Summary,
    as_json: Option<Map<String, Value>>,
) -> io::Result<()> {
    if let Some(more) = as_json {
        let mut fields = summary_json(summary);
        fields.extend(more);
        return writeln!(out, "{}", Value::Object(fields));
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

fn summary_json(summary: &Summary) -> Map<String, Value> {
    let fields = [
        ("keyspaces", json!(summary.keyspaces)),
        ("entries", json!(summary.entries)),
        ("bytes", json!(summary.bytes)),
        ("resumed", json!(summary.resumed)),
        ("checksum", json!(format!("{:016x}", summary.content))),
        ("stream_bytes", json!(summary.stream_bytes)),
        ("seconds", json!(summary.elapsed.as_secs_f64())),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}
