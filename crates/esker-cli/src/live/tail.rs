//! The last events of a database, from the file `EVENTS` of its directory.
//!
//! The file is written by the process that has the database open, one JSON object per line. Only
//! its end is read. Whatever else is there, in part or as a whole, is left out.

use esker::fs::OpenMode;
use serde_json::{Map, Value};
use std::path::Path;

/// The file.
const NAME: &str = "EVENTS";
/// The most bytes that are read.
const BYTES_MAX: u64 = 16 << 10;

/// The last events, the newest last, `most` at most.
pub fn last(directory: &Path, most: usize) -> Vec<Map<String, Value>> {
    let read = || {
        // It opens regular files only: a pipe in its place would be waited for.
        let file = esker::fs::os().open(&directory.join(NAME), OpenMode::Read)?;
        let len = file.len()?;
        let from = len.saturating_sub(BYTES_MAX);
        let mut bytes = vec![0; (len - from) as usize];
        file.read_at(&mut bytes, from)?;
        std::io::Result::Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let lines = bytes.split(|&byte| byte == b'\n');
    let mut events: Vec<Map<String, Value>> =
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    events.split_off(events.len().saturating_sub(most))
}

/// An event as a line for people: the time of day (UTC), its name, and its fields.
pub fn line(event: &Map<String, Value>) -> String {
    let seconds = event.get("time").and_then(Value::as_u64).unwrap_or(0) / 1_000;
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let name = event.get("event").and_then(Value::as_str).unwrap_or("?");
    let more = event.iter().filter(|(name, _)| !HEAD.contains(&name.as_str()));
    let field = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!(" {name}={text}"),
        other => format!(" {name}={other}"),
    };
    let more = more.map(field).collect::<String>();
    crate::failure::one_line(&format!("{hour:02}:{minute:02}:{second:02} {name}{more}"))
}

/// The fields with which every event begins.
const HEAD: [&str; 3] = ["time", "seq", "event"];
