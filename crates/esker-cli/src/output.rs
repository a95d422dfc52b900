//! What commands print: text for people, JSON for programs, both from one description.
//!
//! Statistics are described once, as JSON; the text form is the same tree with its paths joined
//! by dots. In text keys, values and names are words (see `word`). In JSON names are strings; a key or
//! a value is a string where it is printable text, and otherwise an object with its bytes in
//! hexadecimal, because JSON has no bytes.
//!
//! Standard output carries answers. What a person wants to know besides goes to standard error: a
//! warning always, and what a command did only where standard error is a terminal. So a script that
//! takes silence for success stays as it is.

use crate::failure::one_line;
use esker::{Db, Keyspace, LevelShape, SlowOperation, Stats, TreeShape};
use esker_port::word::{self, Encoding};
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal, Write};

#[cfg(test)]
mod tests;

/// Writes one JSON document on a line of its own.
pub fn json_line(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value}")
}

/// A key or a value as JSON: a string where it is printable text and nothing else was asked for,
/// otherwise an object with one field, which names the encoding.
pub fn bytes_json(bytes: &[u8], encoding: Encoding) -> Value {
    match (encoding, word::text(bytes)) {
        (Encoding::Text, Some(text)) => json!(text),
        (Encoding::Base64, _) => json!({ "base64": word::base64(bytes) }),
        _ => json!({ "hex": word::hexadecimal(bytes) }),
    }
}

/// An entry as JSON.
pub fn entry_json(key: &[u8], value: &[u8], encoding: Encoding) -> Value {
    json!({ "key": bytes_json(key, encoding), "value": bytes_json(value, encoding) })
}

/// Tells a person what a command did.
pub fn tell(what: &str) {
    if io::stderr().is_terminal() {
        warn(what);
    }
}

/// Tells anybody what is unexpected, and no failure.
pub fn warn(what: &str) {
    // A command that did its work does not fail because nobody hears of it.
    let _ = writeln!(io::stderr(), "esker: {}", one_line(what));
}

/// Says of a keyspace without entries how much else is empty; `None`: it has entries, or nobody can
/// tell.
pub fn emptiness(db: &Db, keyspace: &Keyspace) -> Option<String> {
    let is_empty = |keyspace: &Keyspace| keyspace.first_key_value().map(|entry| entry.is_none());
    if !is_empty(keyspace).ok()? {
        return None;
    }
    let what = match db.branch_name() {
        None => "the database".to_owned(),
        Some(name) => format!("the branch {}", word::name(name)),
    };
    let own = format!("the keyspace {} is empty", word::name(keyspace.name()));
    let mut all_empty = true;
    for name in db.keyspaces().ok()? {
        match db.keyspace(&name).and_then(|keyspace| is_empty(&keyspace)) {
            Ok(empty) => all_empty &= empty,
            // One with a comparator of a program cannot be read here.
            Err(_) => return Some(own),
        }
    }
    Some(if all_empty { format!("{what} is empty") } else { format!("{own}, others are not") })
}

/// Writes the statistics as JSON.
pub fn write_stats_json(out: &mut dyn Write, stats: Stats) -> io::Result<()> {
    write_stats_json_with(out, stats, Map::new())
}

/// Writes the statistics as JSON, with more fields. A database may have hundreds of thousands of
/// trees, so they are made and written one by one.
pub fn write_stats_json_with(
    out: &mut dyn Write,
    mut stats: Stats,
    mut more: Map<String, Value>,
) -> io::Result<()> {
    let trees = std::mem::take(&mut stats.trees);
    let Value::Object(mut fields) = esker_json::stats(&stats, str::to_owned) else {
        return Ok(());
    };
    fields.append(&mut more);
    for (index, (name, value)) in fields.iter().enumerate() {
        write!(out, "{}\"{name}\":", if index == 0 { '{' } else { ',' })?;
        if name != TREES {
            write!(out, "{value}")?;
            continue;
        }
        write!(out, "[")?;
        for (index, tree) in trees.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}{}", esker_json::tree(tree, str::to_owned))?;
        }
        write!(out, "]")?;
    }
    writeln!(out, "}}")
}

/// The slowest operation of each kind; each kind has its slowest one first.
pub fn worst_of_each_kind(slowest: &[SlowOperation]) -> Vec<&SlowOperation> {
    let mut worst: Vec<&SlowOperation> = Vec::new();
    for slow in slowest {
        let operation = slow.explanation.operation;
        if worst.iter().all(|known| known.explanation.operation != operation) {
            worst.push(slow);
        }
    }
    worst
}

/// Writes what the slowest operation of each kind did.
pub fn write_slowest(out: &mut dyn Write, slowest: &[SlowOperation]) -> io::Result<()> {
    for slow in worst_of_each_kind(slowest) {
        let mut explanation = slow.explanation.clone();
        explanation.keyspace = word::name(&explanation.keyspace);
        writeln!(out, "\nslowest of the last hour: {explanation}")?;
    }
    Ok(())
}

/// The field of the trees.
const TREES: &str = "trees";

/// The statistics as `name value` lines, sorted by name; trees are named by their position.
pub fn stats_lines(mut stats: Stats) -> impl Iterator<Item = (String, String)> {
    let trees = std::mem::take(&mut stats.trees);
    let mut before = Vec::new();
    flatten(String::new(), &esker_json::stats(&stats, word::name), &mut before);
    let at = before.partition_point(|(name, _)| name.as_str() < TREES);
    let behind = before.split_off(at);
    let trees = trees.into_iter().enumerate().flat_map(|(index, tree)| {
        let mut lines = Vec::new();
        flatten(format!("{TREES}.{index}"), &esker_json::tree(&tree, word::name), &mut lines);
        lines
    });
    before.into_iter().chain(trees).chain(behind)
}

/// Writes the trees of all keyspaces as a table.
pub fn write_trees(out: &mut dyn Write, trees: &[TreeShape]) -> io::Result<()> {
    let mut widths = HEADER.map(str::len);
    for tree in trees {
        let row = row(tree);
        widths.iter_mut().zip(&row).for_each(|(width, cell)| *width = cell.len().max(*width));
    }
    let mut line = |cells: [&str; COLUMNS]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!(" {cell:<width$} "));
        writeln!(out, "{}", padded.collect::<String>().trim_end())
    };
    line(HEADER)?;
    trees.iter().try_for_each(|tree| line(row(tree).each_ref().map(String::as_str)))
}

const COLUMNS: usize = 7;
const HEADER: [&str; COLUMNS] = [
    "keyspace",
    "partitions",
    "base entries",
    "base bytes",
    "delta runs",
    "delta entries",
    "delta bytes",
];

fn row(tree: &TreeShape) -> [String; COLUMNS] {
    let deltas = |field: fn(&LevelShape) -> u64| {
        tree.deltas.iter().chain(&tree.tiers).map(field).sum::<u64>()
    };
    [
        word::name(&tree.keyspace),
        tree.partitions.to_string(),
        tree.base.entries.to_string(),
        tree.base.bytes.to_string(),
        deltas(|level| level.runs).to_string(),
        deltas(|level| level.entries).to_string(),
        deltas(|level| level.bytes).to_string(),
    ]
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
