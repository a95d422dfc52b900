//! The lines of an answer: lines of data, and the one that closes it.
//!
//! As text, the closing line begins with the word `ok` or `err`, and no line of data does. As JSON,
//! each line is an object, and only the closing one has the field `ok`.

use super::protocol::Refusal;
use crate::failure::one_line;
use crate::output;
use esker::{Problem, Stats, VerifyReport};
use esker_port::word::Encoding;
use serde_json::{Value, json};
use std::io::{self, Write};

/// How answers are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Form {
    /// How keys and values are.
    pub encoding: Encoding,
    /// Whether each line is an object of JSON.
    pub json: bool,
}

/// A line of data.
#[derive(Debug)]
pub enum Data<'a> {
    /// The value of the key that was asked for.
    Value(&'a [u8]),
    /// A key and its value.
    Entry(&'a [u8], &'a [u8]),
    /// The name of a keyspace.
    Keyspace(&'a str),
    /// What is damaged.
    Problem(&'a Problem),
    /// A command, and what it does.
    Help(&'a str, &'a str),
}

/// What the closing line of a command that succeeded says.
#[derive(Debug)]
pub enum Closing {
    /// Nothing more.
    Done,
    /// How many lines of data there were, or how many things were changed.
    Count(u64),
    /// The same of a scan that ended because nobody had said how many entries to print.
    Cut(u64),
    /// What was read without finding damage.
    Verified(VerifyReport),
}

/// The width of the commands in the help.
const USAGE_WIDTH: usize = 31;

impl Form {
    /// Writes a line of data.
    pub fn write(&self, out: &mut impl Write, data: &Data<'_>) -> io::Result<()> {
        if self.json {
            return output::json_line(out, &self.json_of(data));
        }
        match data {
            Data::Value(value) => writeln!(out, "{}", self.encoding.first_word(value)),
            Data::Entry(key, value) => {
                let key = self.encoding.first_word(key);
                writeln!(out, "{key} {}", self.encoding.word(value))
            }
            Data::Keyspace(name) => {
                writeln!(out, "{}", Encoding::Text.first_word(name.as_bytes()))
            }
            Data::Problem(problem) => {
                let path = problem.path.display().to_string();
                let path = Encoding::Text.first_word(path.as_bytes());
                writeln!(out, "{path}: {}", one_line(&problem.error.to_string()))
            }
            Data::Help(usage, meaning) => writeln!(out, "{usage:<USAGE_WIDTH$}{meaning}"),
        }
    }

    fn json_of(&self, data: &Data<'_>) -> Value {
        match data {
            Data::Value(value) => json!({ "value": output::bytes_json(value, self.encoding) }),
            Data::Entry(key, value) => output::entry_json(key, value, self.encoding),
            Data::Keyspace(name) => json!({ "keyspace": name }),
            Data::Problem(problem) => json!({
                "path": problem.path.display().to_string(),
                "error": problem.error.to_string(),
            }),
            Data::Help(usage, meaning) => json!({ "usage": usage, "meaning": meaning }),
        }
    }

    /// Writes the statistics: a line for each figure, or one object. Returns the number of lines.
    pub fn statistics(&self, out: &mut impl Write, stats: Stats) -> io::Result<u64> {
        if self.json {
            output::write_stats_json(out, stats)?;
            return Ok(1);
        }
        let mut count = 0;
        for (name, value) in output::stats_lines(stats) {
            writeln!(out, "{name} {value}")?;
            count += 1;
        }
        Ok(count)
    }

    /// Writes the line that closes the answer to a command that succeeded.
    pub fn close(&self, out: &mut impl Write, closing: &Closing) -> io::Result<()> {
        if self.json {
            let closing = match closing {
                Closing::Done => json!({ "ok": true }),
                Closing::Count(count) => json!({ "ok": true, "count": count }),
                Closing::Cut(count) => json!({ "ok": true, "count": count, "more": true }),
                Closing::Verified(report) => json!({
                    "ok": true,
                    "files": report.files,
                    "blocks": report.blocks,
                    "entries": report.entries,
                    "bytes": report.bytes,
                }),
            };
            return output::json_line(out, &closing);
        }
        match closing {
            Closing::Done => writeln!(out, "ok"),
            Closing::Count(count) => writeln!(out, "ok {count}"),
            Closing::Cut(count) => {
                writeln!(out, "ok {count}, and there is more: scan A B LIMIT, where - is no limit")
            }
            Closing::Verified(report) => writeln!(
                out,
                "ok {} files {} blocks {} entries {} bytes",
                report.files, report.blocks, report.entries, report.bytes
            ),
        }
    }

    /// Writes the line that closes the answer to a command that failed.
    pub fn refuse(&self, out: &mut impl Write, refusal: &Refusal) -> io::Result<()> {
        let Refusal { kind, message } = refusal;
        if self.json {
            let closing = json!({ "ok": false, "kind": kind, "message": message });
            return output::json_line(out, &closing);
        }
        writeln!(out, "err {kind} {}", one_line(message))
    }
}
