//! What `esker top` shows: sections of lines, the same on a terminal and in plain text.

use super::figures::History;
use super::{describe, seconds, tail};
use crate::output;
use esker::{Latency, TreeShape};
use esker_port::word;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// The most keyspaces that are shown.
const TREES_SHOWN: usize = 20;
/// The most branches and the most labelled snapshots that are shown.
const HOLDERS_SHOWN: usize = 3;
/// The most events that are shown.
const EVENTS_SHOWN: usize = 10;

/// A titled table.
#[derive(Debug)]
pub struct Section {
    /// The title.
    pub title: &'static str,
    /// Its rows; the cells of a column are aligned.
    pub rows: Vec<Vec<String>>,
}

impl Section {
    /// The rows as lines: the first column to the left, numbers to the right.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let cell = |(column, text): (usize, &String)| {
            let width = widths[column];
            if column == 0 { format!("{text:<width$}") } else { format!("{text:>width$}") }
        };
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
            cells.join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

/// The line above the sections.
pub fn head(directory: &Path, history: &History) -> String {
    let observed = &history.last.observed;
    let up = observed.updated.duration_since(observed.opened).unwrap_or_default();
    let directory = crate::failure::one_line(&directory.display().to_string());
    format!("{directory}: {}; open for {}", describe(observed), seconds(up))
}

/// All sections.
pub fn sections(directory: &Path, history: &History) -> Vec<Section> {
    let mut all = vec![
        operations(history),
        written(history),
        latencies(history),
        stalls(history),
        slowest(history),
        memory(history),
        pinned(history),
        storage(history),
        keyspaces(history),
    ];
    let events: Vec<Vec<String>> =
        tail::last(directory, EVENTS_SHOWN).iter().map(|event| vec![tail::line(event)]).collect();
    if !events.is_empty() {
        all.push(Section { title: "last events", rows: events });
    }
    all
}

/// Writes head and sections as plain text.
pub fn write(out: &mut dyn Write, directory: &Path, history: &History) -> io::Result<()> {
    writeln!(out, "{}", head(directory, history))?;
    for section in sections(directory, history) {
        writeln!(out, "\n{}", section.title)?;
        section.lines().iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    Ok(())
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn operations(history: &History) -> Section {
    let names = [
        ("puts", "esker_puts"),
        ("deletes", "esker_deletes"),
        ("range deletes", "esker_range_deletes"),
        ("commits", "esker_commits"),
        ("gets", "esker_gets"),
        ("scans", "esker_scans"),
        ("scanned", "esker_scanned_entries"),
        ("log syncs", "esker_syncs"),
        ("flushes", "esker_flushes"),
        ("compactions", "esker_compactions"),
    ];
    let mut rows = vec![row(["", "per second", "since open"])];
    rows.extend(names.map(|(what, name)| {
        let total = history.last.total(name);
        vec![what.to_owned(), rate(history.rates().total(name)), count(total)]
    }));
    Section { title: "operations", rows }
}

fn written(history: &History) -> Section {
    const NAME: &str = "esker_written_bytes";
    let mut rows = vec![row(["", "per second", "since open"])];
    for (purpose, total) in history.last.by_label(NAME) {
        let rate = history.rates().of(NAME, "purpose", &purpose);
        rows.push(vec![format!("written: {purpose}"), bytes(rate), bytes(total)]);
    }
    let read = "esker_block_read_bytes";
    let (rate, total) = (history.rates().total(read), history.last.total(read));
    rows.push(vec!["blocks read".to_owned(), bytes(rate), bytes(total)]);
    let amplification = history.last.observed.stats.write_amplification();
    rows.push(vec!["write amplification".to_owned(), String::new(), format!("{amplification:.2}")]);
    Section { title: "bytes", rows }
}

fn latencies(history: &History) -> Section {
    let stats = &history.last.observed.stats;
    let mut rows = vec![row(["", "p50", "p99", "p99.9", "max"])];
    let timed = [
        ("put", &stats.put_latency),
        ("get", &stats.get_latency),
        ("scan", &stats.scan_latency),
        ("sync", &stats.sync_latency),
    ];
    let line = |(name, latency): (&str, &Latency)| {
        let times = [latency.p50, latency.p99, latency.p999, latency.max].map(time);
        std::iter::once(name.to_owned()).chain(times).collect()
    };
    rows.extend(timed.map(line));
    Section { title: "latencies since open", rows }
}

fn stalls(history: &History) -> Section {
    const NAME: &str = "esker_stall_seconds";
    let mut rows = vec![row(["", "of the time", "since open"])];
    for (cause, total) in history.last.by_label(NAME) {
        // Several writers wait at the same time, so a share may exceed 100 %.
        let share = history.rates().of(NAME, "cause", &cause);
        let share = format!("{:.1} %", share * 100.0);
        rows.push(vec![cause, share, seconds(Duration::from_secs_f64(total.clamp(0.0, 1e15)))]);
    }
    let limit = history.last.total("esker_pace_limit_bytes_per_second");
    let limit = if limit > 0.0 { format!("{}/s", bytes(limit)) } else { "none".to_owned() };
    rows.push(vec!["limit on writes".to_owned(), String::new(), limit]);
    Section { title: "writers waited for", rows }
}

/// The slowest operation of each kind, and the wait or step that took most of it.
fn slowest(history: &History) -> Section {
    let observed = &history.last.observed;
    let mut rows = vec![row(["", "keyspace", "took", "ago", "most of it", "took"])];
    for slow in output::worst_of_each_kind(&observed.stats.slowest) {
        let ago = observed.updated.duration_since(slow.when).unwrap_or_default();
        let explanation = &slow.explanation;
        let waits = explanation.waits.iter().map(|wait| (wait.cause.as_str(), wait.time));
        let steps = explanation.steps.iter().map(|step| (step.source.as_str(), step.time));
        // What is left of a step beside a wait is less telling, so the waits come last.
        let most = steps.chain(waits).max_by_key(|(_, time)| *time);
        let (part, took) = most.map_or(("-", Duration::ZERO), |(part, time)| (part, time));
        rows.push(vec![
            explanation.operation.to_owned(),
            word::name(&explanation.keyspace),
            time(explanation.time),
            seconds(ago),
            part.to_owned(),
            time(took),
        ]);
    }
    Section { title: "slowest operations of the last hour", rows }
}

fn memory(history: &History) -> Section {
    let mut rows = Vec::new();
    for (owner, total) in history.last.by_label("esker_memory_bytes") {
        rows.push(vec![owner, bytes(total)]);
    }
    rows.push(vec!["limit".to_owned(), bytes(history.last.total("esker_memory_limit_bytes"))]);
    Section { title: "memory", rows }
}

/// What keeps old data from being given back.
fn pinned(history: &History) -> Section {
    let stats = &history.last.observed.stats;
    let held = &stats.held;
    let aged = |what: &str, number: u64, age: Duration| {
        let age = if number == 0 { String::new() } else { format!("oldest {}", seconds(age)) };
        vec![what.to_owned(), number.to_string(), age]
    };
    let mut rows = vec![
        aged("snapshots", held.snapshots, held.oldest_snapshot),
        aged("transactions", held.transactions, held.oldest_transaction),
        aged("earlier states", held.states, held.oldest_state),
        vec!["iterators".to_owned(), held.iterators.to_string()],
        vec!["run files".to_owned(), bytes(held.data as f64)],
        vec!["memtables".to_owned(), bytes(stats.memory.held as f64)],
        vec!["blocks".to_owned(), bytes(held.pinned as f64)],
    ];
    for branch in stats.branches.iter().take(HOLDERS_SHOWN) {
        let name = word::name(&branch.name);
        rows.push(vec![format!("branch {name}"), bytes(branch.data as f64)]);
    }
    for snapshot in stats.snapshots.iter().filter(|one| !one.label.is_empty()).take(HOLDERS_SHOWN) {
        let label = word::name(&snapshot.label);
        rows.push(aged(&format!("snapshot {label}"), snapshot.count, snapshot.age));
    }
    Section { title: "pinned", rows }
}

fn storage(history: &History) -> Section {
    let stats = &history.last.observed.stats;
    let lookups = stats.cache_hits + stats.cache_misses;
    let hits = match lookups {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", stats.cache_hits as f64 / lookups as f64 * 100.0),
    };
    let rows = [
        ("run files", bytes(stats.data_file_bytes as f64)),
        ("log files", bytes(stats.log_file_bytes as f64)),
        ("compaction debt", bytes(stats.compaction_debt as f64)),
        ("held by readers", bytes(stats.held.data as f64)),
        ("cache hits since open", hits),
        ("keyspaces", history.last.observed.keyspaces.to_string()),
    ];
    let rows = rows.map(|(what, value)| vec![what.to_owned(), value]).to_vec();
    Section { title: "storage", rows }
}

fn keyspaces(history: &History) -> Section {
    let stats = &history.last.observed.stats;
    let header =
        ["keyspace", "partitions", "base entries", "base", "deltas", "delta entries", "delta"];
    let mut rows = vec![row(header)];
    let mut trees: Vec<&TreeShape> = stats.trees.iter().collect();
    let deltas = |tree: &TreeShape| {
        tree.deltas.iter().chain(&tree.tiers).map(|delta| delta.bytes).sum::<u64>()
    };
    trees.sort_by_key(|tree| std::cmp::Reverse(tree.base.bytes + deltas(tree)));
    for tree in trees.into_iter().take(TREES_SHOWN) {
        rows.push(vec![
            word::name(&tree.keyspace),
            count(tree.partitions as f64),
            count(tree.base.entries as f64),
            bytes(tree.base.bytes as f64),
            tree.deltas.len().to_string(),
            count(tree.deltas.iter().chain(&tree.tiers).map(|delta| delta.entries).sum::<u64>()
                as f64),
            bytes(deltas(tree) as f64),
        ]);
    }
    let left_out = history.last.observed.keyspaces.saturating_sub(rows.len() as u64 - 1);
    if left_out > 0 {
        rows.push(vec![format!("and {left_out} more")]);
    }
    Section { title: "keyspaces, the largest first", rows }
}

/// A number of things per second.
fn rate(value: f64) -> String {
    if value > 0.0 && value < 10.0 { format!("{value:.1}") } else { count(value) }
}

/// A whole number, with its unit where it is large.
fn count(value: f64) -> String {
    scaled(value, 1_000.0, &["", " k", " M", " G", " T"])
}

/// A size in bytes.
pub fn bytes(value: f64) -> String {
    scaled(value, 1_024.0, &[" B", " KiB", " MiB", " GiB", " TiB", " PiB"])
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let (mut value, mut at) = (value, 0);
    while value >= 10.0 * step && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    format!("{value:.0}{}", units[at])
}

/// A latency.
fn time(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    match nanos {
        0.0 => "-".to_owned(),
        nanos if nanos < 1e4 => format!("{nanos:.0} ns"),
        nanos if nanos < 1e7 => format!("{:.0} us", nanos / 1e3),
        nanos if nanos < 1e10 => format!("{:.0} ms", nanos / 1e6),
        nanos => format!("{:.0} s", nanos / 1e9),
    }
}
