//! What commands print: text for people, JSON for programs, both from one description.
//!
//! Statistics are described once, as JSON; the text form is the same tree with its paths joined
//! by dots. Keys, values and names are tokens (see `token`) in both forms, because JSON has no
//! bytes either.

use crate::token;
use comfy_table::{Table, presets};
use esker::{LevelShape, Stats, TreeShape};
use serde_json::{Value, json};
use std::io::{self, Write};

#[cfg(test)]
mod tests;

/// Writes one JSON document on a line of its own.
pub fn json_line(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value}")
}

/// An entry as JSON.
pub fn entry_json(key: &[u8], value: &[u8]) -> Value {
    json!({ "key": token::encode(key), "value": token::encode(value) })
}

/// The statistics as JSON.
pub fn stats_json(stats: &Stats) -> Value {
    esker_json::stats(stats, |name| token::encode(name.as_bytes()))
}

/// The statistics as `name value` lines, sorted by name; trees are named by their position.
pub fn stats_lines(stats: &Stats) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    flatten(String::new(), &stats_json(stats), &mut lines);
    lines
}

/// The trees of all keyspaces as a table.
pub fn trees_table(trees: &[TreeShape]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([
        "keyspace",
        "partitions",
        "base entries",
        "base bytes",
        "delta runs",
        "delta entries",
        "delta bytes",
    ]);
    for tree in trees {
        let deltas = |field: fn(&LevelShape) -> u64| tree.deltas.iter().map(field).sum::<u64>();
        table.add_row([
            token::encode(tree.keyspace.as_bytes()),
            tree.partitions.to_string(),
            tree.base.entries.to_string(),
            tree.base.bytes.to_string(),
            deltas(|level| level.runs).to_string(),
            deltas(|level| level.entries).to_string(),
            deltas(|level| level.bytes).to_string(),
        ]);
    }
    table
}

/// Joins the path of every leaf of `value` with dots.
pub fn flatten(path: String, value: &Value, lines: &mut Vec<(String, String)>) {
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                flatten(below(name), field, lines);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(below(&index.to_string()), item, lines);
            }
        }
        Value::String(text) => lines.push((path, text.clone())),
        leaf => lines.push((path, leaf.to_string())),
    }
}
