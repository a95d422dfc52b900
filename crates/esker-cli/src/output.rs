//! What commands print: text for people, JSON for programs, both from one description.
//!
//! Statistics are described once, as JSON; the text form is the same tree with its paths joined
//! by dots. Keys, values and names are tokens (see `token`) in both forms, because JSON has no
//! bytes either.

use crate::token;
use comfy_table::{Table, presets};
use esker::{Latency, LevelShape, Stats, TreeShape};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;

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

/// The statistics as JSON. Times are in microseconds.
pub fn stats_json(stats: &Stats) -> Value {
    json!({
        "puts": stats.puts,
        "deletes": stats.deletes,
        "range_deletes": stats.range_deletes,
        "commits": stats.commits,
        "gets": stats.gets,
        "gets_found": stats.gets_found,
        "scans": stats.scans,
        "scanned": stats.scanned,
        "syncs": stats.syncs,
        "flushes": stats.flushes,
        "merges": stats.merges,
        "segments_adopted": stats.segments_adopted,
        "operands_folded": stats.operands_folded,
        "entries_expired": stats.entries_expired,
        "entries_filtered": stats.entries_filtered,
        "put_latency_us": latency_json(&stats.put_latency),
        "get_latency_us": latency_json(&stats.get_latency),
        "scan_latency_us": latency_json(&stats.scan_latency),
        "sync_latency_us": latency_json(&stats.sync_latency),
        "bytes_written": {
            "user": stats.written.user,
            "log": stats.written.log,
            "flush": stats.written.flush,
            "merge": stats.written.merge,
            "manifest": stats.written.manifest,
        },
        "bytes_read": stats.bytes_read,
        "cache_hits": stats.cache_hits,
        "cache_misses": stats.cache_misses,
        "stalls_us": {
            "flush_debt": micros(stats.stalls.flush_debt),
            "merge_debt": micros(stats.stalls.merge_debt),
            "memory": micros(stats.stalls.memory),
            "log_space": micros(stats.stalls.log_space),
            "sync": micros(stats.stalls.sync),
        },
        "memory": {
            "limit": stats.memory.limit,
            "memtables": stats.memory.memtables,
            "cache": stats.memory.cache,
            "indexes": stats.memory.indexes,
        },
        "merge_debt": stats.merge_debt,
        "data_file_bytes": stats.data_file_bytes,
        "log_file_bytes": stats.log_file_bytes,
        "write_amplification": stats.write_amplification(),
        "trees": stats.trees.iter().map(tree_json).collect::<Vec<_>>(),
    })
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

fn latency_json(latency: &Latency) -> Value {
    json!({
        "samples": latency.samples,
        "p50": micros(latency.p50),
        "p99": micros(latency.p99),
        "p999": micros(latency.p999),
        "max": micros(latency.max),
    })
}

fn tree_json(tree: &TreeShape) -> Value {
    json!({
        "keyspace": token::encode(tree.keyspace.as_bytes()),
        "partitions": tree.partitions,
        "base": level_json(&tree.base),
        "deltas": tree.deltas.iter().map(level_json).collect::<Vec<_>>(),
    })
}

fn level_json(level: &LevelShape) -> Value {
    json!({
        "runs": level.runs,
        "segments": level.segments,
        "bytes": level.bytes,
        "entries": level.entries,
    })
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
