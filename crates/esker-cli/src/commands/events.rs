//! `esker events`: what happened in a database, from its files `EVENTS.1` and `EVENTS`.
//!
//! The files are only read, without the lock of the database, so it may be open in another process.
//! Lines that are not events are skipped and counted. With `--follow` the command waits for more:
//! another process writes the file and cannot give this one a signal, so it looks again after a
//! fixed time.

use crate::failure::{Failure, one_line};
use clap::Args;
use esker::fs::{File, Fs, OpenMode, os, within};
use esker::internals::directory::{EVENTS_BEFORE_NAME, EVENTS_NAME};
use esker::internals::monitor::{EVENTS_BYTES_MAX, LINE_BYTES_MAX};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How long to wait before looking for more events.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Nothing behind is read: the database does not write longer files.
const BYTES_MAX: u64 = EVENTS_BYTES_MAX + LINE_BYTES_MAX as u64;

/// Prints what happened in a database lately, also while it is open elsewhere; changes nothing
#[derive(Debug, Args)]
#[command(
    after_help = "One line per event, the oldest first; times are UTC. Lines that cannot be \
    read are skipped, and standard error says how many.\n\nExamples:\n  esker events DIR\n  \
    esker events DIR --follow --json"
)]
pub struct EventsArgs {
    /// The database's directory
    dir: PathBuf,
    /// Print new events as they come, until the program is ended
    #[arg(long)]
    follow: bool,
    /// Print the events as they are in the file: one object of JSON per line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &EventsArgs, out: &mut impl Write) -> Result<(), Failure> {
    let fs = os();
    if fs.kind(&args.dir).map_err(|error| unreadable(&args.dir, &error))?.is_none() {
        return Err(esker::Error::Missing { path: args.dir.clone() }.into());
    }
    let fs = within(&fs, &args.dir).map_err(|error| unreadable(&args.dir, &error))?;
    let mut reader = Reader { json: args.json, skipped: 0 };
    let mut present = Present::find(&fs, &args.dir.join(EVENTS_NAME))?;
    let before = Present::find(&fs, &args.dir.join(EVENTS_BEFORE_NAME))?;
    if before.is_none() && present.is_none() && !args.follow {
        let what = "no database that was open for writing has written events there";
        return Err(Failure::Negative(format!(
            "{} holds no file EVENTS: {what}",
            args.dir.display()
        )));
    }
    if let Some(mut before) = before {
        before.read(&mut reader, out)?;
        if present.as_ref().is_some_and(|present| present.is_same(before.file.as_ref())) {
            // The database renamed it between the two openings.
            present = Some(before);
        }
    }
    loop {
        if let Some(now) = &mut present {
            now.read(&mut reader, out)?;
        }
        if !args.follow {
            break;
        }
        let found = Present::find(&fs, &args.dir.join(EVENTS_NAME))?;
        match (&mut present, found) {
            (Some(now), Some(found)) if !now.is_same(found.file.as_ref()) => {
                // It was renamed; what was written to it before that is still to be read.
                now.read(&mut reader, out)?;
                present = Some(found);
            }
            (None, found) => present = found,
            _ => {
                out.flush()?;
                thread::park_timeout(LOOK_AGAIN);
            }
        }
    }
    if reader.skipped > 0 {
        writeln!(io::stderr(), "esker: {} lines could not be read", reader.skipped)?;
    }
    Ok(())
}

/// A file of events, and how far it is read.
struct Present {
    file: Arc<dyn File>,
    path: PathBuf,
    read: u64,
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::Negative(format!("cannot read {}: {error}", path.display()))
}

impl Present {
    /// The file at a path, if there is one.
    fn find(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<Self>, Failure> {
        match fs.open(path, OpenMode::Read) {
            Ok(file) => Ok(Some(Self { file, path: path.to_owned(), read: 0 })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(path, &error)),
        }
    }

    /// Whether another opening is of the same file. If the system cannot tell, a shorter file is
    /// taken for another one.
    fn is_same(&self, other: &dyn File) -> bool {
        let (here, there) = (self.file.incarnation(), other.incarnation());
        here == there && other.len().is_ok_and(|len| len >= self.read)
    }

    /// Prints the whole lines that were not read yet.
    fn read(&mut self, reader: &mut Reader, out: &mut impl Write) -> Result<(), Failure> {
        let end = self.file.len().map_err(|error| unreadable(&self.path, &error))?.min(BYTES_MAX);
        let len = usize::try_from(end.saturating_sub(self.read)).unwrap_or(0);
        let mut bytes = vec![0; len];
        match self.file.read_at(&mut bytes, self.read) {
            // The database has just emptied the file.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read.map_err(|error| unreadable(&self.path, &error))?,
        }
        let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let whole = bytes.get(..last).unwrap_or_default();
        for line in whole.split(|byte| *byte == b'\n') {
            reader.print(line, out)?;
        }
        self.read += last as u64 + 1;
        Ok(())
    }
}

/// Prints lines, and counts those that cannot be read.
struct Reader {
    json: bool,
    skipped: u64,
}

impl Reader {
    fn print(&mut self, line: &[u8], out: &mut impl Write) -> Result<(), Failure> {
        let event = serde_json::from_slice::<Map<String, Value>>(line).ok();
        let Some(text) = event.as_ref().and_then(readable) else {
            self.skipped += 1;
            return Ok(());
        };
        if self.json {
            out.write_all(line)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{text}")?;
        }
        Ok(())
    }
}

/// An event as a line to read; `None`: it is none.
fn readable(event: &Map<String, Value>) -> Option<String> {
    let (time, _) = (event.get("time")?.as_u64()?, event.get("seq")?.as_u64()?);
    let mut line = format!("{} {}", utc(time), one_line(event.get("event")?.as_str()?));
    for (name, value) in event {
        if ["time", "seq", "event"].contains(&name.as_str()) {
            continue;
        }
        let (name, value) = match (name.strip_suffix("_us"), value) {
            (Some(name), Value::Object(times)) => (name, list(times)),
            (Some(name), value) => (name, duration(value)),
            (None, Value::String(text)) => (name.as_str(), format!("{text:?}")),
            (None, value) => (name.as_str(), value.to_string()),
        };
        line.push_str(&one_line(&format!("  {name}={value}")));
    }
    Some(line)
}

/// Durations by name.
fn list(times: &Map<String, Value>) -> String {
    let one = |(name, value): (&String, &Value)| format!("{name}:{}", duration(value));
    times.iter().map(one).collect::<Vec<_>>().join(",")
}

/// A number of microseconds, in a unit that suits it.
fn duration(micros: &Value) -> String {
    micros.as_u64().map_or(micros.to_string(), |n| format!("{:?}", Duration::from_micros(n)))
}

/// A time in milliseconds since 1970 as date and time of day (UTC).
fn utc(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    // Days since 0000-03-01, in eras of 400 years; years begin in March, so that the day that is
    // not in every year is the last one (Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, more) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + more;
    let (seconds, millis) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}
