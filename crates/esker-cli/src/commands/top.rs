//! `esker top`: what a database that another process has open does now.
//!
//! It reads the file in which that process writes its statistics, once per interval, and shows what
//! has changed. It opens nothing and takes no lock.

use crate::failure::Failure;
use crate::live::figures::{History, IDLE_AFTER};
use crate::live::screen::{Happened, Screen};
use crate::live::view;
use crate::output;
use clap::Args;
use esker::{Observed, ObservedState};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Shows what a database that another process has open does now
#[derive(Debug, Args)]
#[command(
    after_help = "On a terminal, `q` ends it. Elsewhere it prints one snapshot and ends. It \
    reads the statistics that the other process writes about once per second, and changes \
    nothing.\n\nExample:\n  esker top DIR --once"
)]
pub struct TopArgs {
    /// The database's directory
    dir: PathBuf,
    /// The time between two readings, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Print two readings' difference once, and end
    #[arg(long)]
    once: bool,
    /// Print one JSON object per interval, or one with `--once`
    #[arg(long)]
    json: bool,
}

/// Reads an interval.
fn interval(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is not an interval: write 0.1 to 3600 seconds");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(wrong())
    }
}

/// Runs the command.
pub fn run(args: &TopArgs, out: &mut impl Write) -> Result<(), Failure> {
    let mut history = History::new(args.read()?);
    if args.json && !args.once {
        loop {
            thread::sleep(args.interval);
            history.take(args.read()?);
            output::json_line(out, &history.json(str::to_owned))?;
            out.flush()?;
        }
    }
    if !args.once && io::stdout().is_terminal() {
        return args.show(history);
    }
    // What is not of now has no rates. A process that writes does so about once per second, so the
    // next reading may be too early.
    let first = history.last.observed.update;
    let waits = |last: &Observed| {
        last.state == ObservedState::Live && last.update == first && last.age < IDLE_AFTER
    };
    while waits(&history.last.observed) {
        thread::sleep(args.interval);
        history.take(args.read()?);
    }
    if args.json {
        output::json_line(out, &history.json(str::to_owned))?;
    } else {
        view::write(out, &args.dir, &history)?;
    }
    Ok(())
}

impl TopArgs {
    fn read(&self) -> Result<Observed, Failure> {
        Ok(Observed::read(&self.dir)?)
    }

    /// The terminal view, until the user ends it.
    fn show(&self, mut history: History) -> Result<(), Failure> {
        let mut screen = Screen::new()?;
        loop {
            let until = Instant::now() + self.interval;
            let head = view::head(&self.dir, &history);
            let sections = view::sections(&self.dir, &history);
            loop {
                screen.draw(&head, &sections)?;
                match screen.wait(until)? {
                    Happened::Quit => return Ok(()),
                    Happened::Resize => {}
                    Happened::Time => break,
                }
            }
            history.take(self.read()?);
        }
    }
}
