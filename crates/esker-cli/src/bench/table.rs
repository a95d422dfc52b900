//! The report as a person reads it.
//!
//! Each run gets three tables (speed, evenness, cost), since one would be too wide for a terminal.
//! With several engines or rounds a comparison of medians comes first, since it is the answer. A
//! dash stands for a figure that was not measured.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent};
use esker_bench::engines::Tuning;
use esker_bench::harness::StepCheck;
use esker_bench::report::{Comparison, Median, Spread, Verdict};
use esker_bench::{Durability, Report, RunReport, Settings, WorkloadReport};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The whole report.
pub fn report(report: &Report) -> String {
    let mut out = String::new();
    head(&mut out, report);
    if report.runs.len() > 1 {
        section(&mut out, &medians(report), comparison(report));
    }
    if let Some(table) = open_loops(report) {
        section(&mut out, "Open loops: latencies from when an operation was due", table);
    }
    for run in &report.runs {
        run_report(&mut out, run, report.settings.rounds);
    }
    if let Some(stopped) = &report.stopped {
        let _ = writeln!(out, "\nNot complete: {stopped}");
    }
    out.trim_end().to_owned()
}

/// A comparison: the rules, the medians, and the facts about each engine. The JSON has the single
/// runs.
pub fn compare(report: &Report) -> String {
    let mut out = String::new();
    head(&mut out, report);
    for rule in &report.rules {
        let _ = writeln!(out, "- {rule}");
    }
    for engine in &report.engines {
        let version = engine.version.as_deref().unwrap_or("never opened");
        let tuning = match engine.tuning {
            Tuning::Default => "defaults",
            Tuning::Tuned => "tuned",
        };
        let note = engine.note.as_ref().map_or(String::new(), |note| format!(", {note}"));
        let _ = writeln!(out, "\n{}: {version}, {tuning}{note}", engine.name);
        for (name, value) in &engine.settings {
            let _ = writeln!(out, "  {name}: {value}");
        }
    }
    section(&mut out, &medians(report), comparison(report));
    if let Some(table) = open_loops(report) {
        section(&mut out, "Open loops: latencies from when an operation was due", table);
    }
    let agreed = report.agreements.iter().filter(|found| found.agree).count();
    let _ = writeln!(
        out,
        "\n{agreed} of {} steps whose results were compared between engines agreed; {} results were \
         compared with what was written, {} of them were wrong.",
        report.agreements.len(),
        whole(checks(report, |check| check.compared)),
        whole(checks(report, |check| check.wrong)),
    );
    if let Some(stopped) = &report.stopped {
        let _ = writeln!(out, "Not complete: {stopped}");
    }
    out.trim_end().to_owned()
}

/// Every step that had a rate to follow: medians over rounds, and the lowest and highest of each
/// figure if there were several.
fn open_loops(report: &Report) -> Option<Table> {
    let columns = [
        "workload",
        "engine",
        "rounds",
        "due/s",
        "done/s",
        "kept up",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "p99.99",
        "max",
        "longest gap",
        "lowest 1 s",
        "median 1 s",
    ];
    type Of = fn(Spread) -> f64;
    let over: [(&str, Of); 3] = [
        ("median", |figure| figure.median),
        ("lowest", |figure| figure.min),
        ("highest", |figure| figure.max),
    ];
    let mut table = table(&columns, 3);
    for Comparison { workload, engines } in &report.comparison {
        for median in engines {
            let Some(open) = median.open_loop else { continue };
            let (even, (min, max)) = (&median.evenness, median.spread);
            let done = Spread { median: median.ops_per_second, min, max };
            let several = median.rounds > 1;
            for (i, (name, of)) in over.iter().take(if several { 3 } else { 1 }).enumerate() {
                let first = |text: String| if i == 0 { text } else { String::new() };
                let kept_up = match (several, open.kept_up) {
                    (true, kept_up) => format!("{kept_up} of {}", median.rounds),
                    (false, 0) => "no".into(),
                    (false, _) => "yes".into(),
                };
                let mut cells = vec![
                    first(workload.clone()),
                    first(named(median)),
                    if several { (*name).to_owned() } else { "1".to_owned() },
                    whole(of(open.rate)),
                    whole(of(done)),
                    first(kept_up),
                ];
                let latencies = [
                    even.p50_us,
                    even.p90_us,
                    even.p99_us,
                    even.p999_us,
                    even.p9999_us,
                    even.max_us,
                ];
                cells.extend(latencies.map(|latency| micros(of(latency))));
                cells.push(micros(of(even.longest_pause_ms) * 1e3));
                cells.extend([even.rate_min, even.rate_median].map(|rate| whole(of(rate))));
                table.add_row(cells);
            }
        }
    }
    (!table.is_empty()).then_some(table)
}

fn checks(report: &Report, figure: fn(&StepCheck) -> u64) -> f64 {
    let steps = report.runs.iter().flat_map(|run| &run.workloads);
    steps.filter_map(|step| step.check.as_ref()).map(figure).sum::<u64>() as f64
}

/// The title of the table of medians, which says what a ratio is.
fn medians(report: &Report) -> String {
    let all = report.comparison.iter().flat_map(|step| &step.engines);
    let base = all.clone().find(|median| median.verdict == Verdict::Base);
    match base.filter(|_| all.clone().any(|median| median.verdict != Verdict::Base)) {
        Some(base) => format!(
            "Medians over rounds. A ratio is the rate of {0} divided by the engine's: above 1 is better for {0}",
            base.engine
        ),
        None => "Medians over rounds".into(),
    }
}

/// How an engine compares to the base, in words that fit a column.
fn verdict(median: &Median) -> &'static str {
    match median.verdict {
        Verdict::Base => "",
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Tie => "tie",
        Verdict::Unknown => "1 round",
        Verdict::Unlike => "not alike",
    }
}

/// An engine's name, with what a reader must not overlook.
fn named(median: &Median) -> String {
    let note = median.engine.note().map_or(String::new(), |note| format!(" ({note})"));
    match median.batched_instead {
        true => format!("{}{note}, in batches of {}", median.engine, whole(median.batch as f64)),
        false => format!("{}{note}", median.engine),
    }
}

/// One workload in one line, for a terminal while the suite runs.
pub fn line(report: &WorkloadReport) -> String {
    format!(
        "{:22} {:>12} ops/s  {:>8} MB/s  p99 {:>10}  pause {:>10}  {}",
        report.name,
        whole(report.ops_per_second),
        short(report.mb_per_second),
        micros(report.latency.p99_us),
        micros(report.longest_pause_ms * 1e3),
        reads(report),
    )
}

/// All workloads and engines with what they do.
pub fn workloads() -> String {
    let mut out = String::new();
    for (_, name, about) in esker_bench::harness::workload::ALL {
        let _ = writeln!(out, "{name:22} {about}");
    }
    let _ = writeln!(out, "\nThe standard list: {}\n", esker_bench::harness::workload::STANDARD);
    for (name, about) in esker_bench::engines::describe_all() {
        let _ = writeln!(out, "{name:22} {about}");
    }
    out.truncate(out.trim_end().len());
    out
}

/// The same as JSON.
pub fn workloads_json() -> Value {
    let workloads = esker_bench::harness::workload::ALL.iter();
    let workloads = workloads.map(|(_, name, about)| json!({ "name": name, "about": about }));
    let engines = esker_bench::engines::describe_all().into_iter();
    let engines = engines.map(|(usage, about)| json!({ "usage": usage, "about": about }));
    json!({
        "workloads": workloads.collect::<Vec<_>>(),
        "standard": esker_bench::harness::workload::STANDARD.split(',').collect::<Vec<_>>(),
        "engines": engines.collect::<Vec<_>>(),
    })
}

fn head(out: &mut String, report: &Report) {
    let machine = &report.machine;
    let settings = &report.settings;
    let memory = machine.memory.map_or("unknown".into(), size);
    let processor = machine.processor.as_deref().unwrap_or("unknown processor");
    let _ = writeln!(
        out,
        "Machine: {processor}, {} cores, {memory} of memory, {}",
        machine.cores, machine.system
    );
    if machine.debug_build {
        let _ =
            writeln!(out, "Warning: built without optimisation; build with --release to measure");
    }
    let class = match settings.durability {
        Durability::Buffered => "buffered (a finished write survives nothing)",
        Durability::Process => "process (a finished write survives the process)",
        Durability::Disk => "disk (a finished write survives power loss)",
    };
    let _ = writeln!(
        out,
        "Data: {} keys of {} bytes, values of {} bytes that shrink to {} of it: {} in all",
        whole(settings.num as f64),
        settings.key_size,
        settings.value_size,
        settings.compression_ratio,
        size(user_bytes(settings)),
    );
    let _ = writeln!(out, "Durability: {class}; seed {}", settings.seed);
}

fn user_bytes(settings: &Settings) -> u64 {
    settings.num * (settings.key_size + settings.value_size) as u64
}

fn run_report(out: &mut String, run: &RunReport, rounds: usize) {
    let round = if rounds > 1 { format!(", round {}", run.round) } else { String::new() };
    let _ = writeln!(out, "\n{}{round}: {}", run.engine, run.version);
    for (name, value) in &run.settings {
        let _ = writeln!(out, "  {name}: {value}");
    }
    section(out, "How fast", speed(run));
    section(out, "How evenly", evenness(run));
    section(out, "At what cost", cost(run));
    for workload in &run.workloads {
        if let Some(text) = &workload.text {
            let _ = writeln!(out, "\nStatistics of {}:\n{text}", run.engine);
        }
    }
}

/// How the writer beside the workload above is named.
const WRITER: &str = "  its writer";

/// All workloads but `stats`, whose result is text.
fn shown(run: &RunReport) -> impl Iterator<Item = &WorkloadReport> {
    run.workloads.iter().filter(|report| report.text.is_none())
}

fn section(out: &mut String, title: &str, table: Table) {
    let _ = writeln!(out, "\n{title}\n{table}");
}

/// An empty table: text to the left in the first `left` columns, numbers to the right.
pub(super) fn table(columns: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns);
    for (i, column) in table.column_iter_mut().enumerate() {
        let side = if i < left { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(side);
    }
    table
}

fn comparison(report: &Report) -> Table {
    let columns = [
        "workload", "engine", "ops/s", "ratio", "", "lowest", "highest", "p99", "pause", "CPU/op",
        "WA", "SA",
    ];
    let mut table = table(&columns, 2);
    // Of statistics the time says nothing.
    let is_text = |place: usize| {
        let step = |run: &RunReport| run.workloads.get(place).is_some_and(|s| s.text.is_some());
        report.runs.iter().any(step)
    };
    let steps = report.comparison.iter().enumerate().filter(|(place, _)| !is_text(*place));
    for (_, Comparison { workload, engines }) in steps {
        for (i, median) in engines.iter().enumerate() {
            table.add_row([
                if i == 0 { workload.clone() } else { String::new() },
                named(median),
                whole(median.ops_per_second),
                format!("{:.2}", median.ratio),
                verdict(median).to_owned(),
                whole(median.spread.0),
                whole(median.spread.1),
                micros(median.p99_us),
                micros(median.longest_pause_ms * 1e3),
                micros(median.cpu_us_per_op),
                optional(median.write_amplification_since_open),
                optional(median.space_amplification),
            ]);
        }
    }
    table
}

fn speed(run: &RunReport) -> Table {
    let columns = [
        "workload",
        "ops",
        "time",
        "ops/s",
        "MB/s",
        "lowest 1 s",
        "median 1 s",
        "CPU/op",
        "switches/op",
        "found",
    ];
    let mut table = table(&columns, 1);
    for report in shown(run) {
        // A single call on the database has a time, but no rate.
        let rate = |text: String| if report.maintenance { dash() } else { text };
        table.add_row([
            report.name.clone(),
            whole(report.operations as f64),
            micros(report.seconds * 1e6),
            rate(whole(report.ops_per_second)),
            rate(short(report.mb_per_second)),
            rate(whole(report.rate_min)),
            rate(whole(report.rate_median)),
            micros(report.cpu_us_per_op),
            format!("{:.4}", report.context_switches_per_op),
            reads(report),
        ]);
        if let Some(writer) = &report.writer {
            table.add_row([
                WRITER.to_owned(),
                whole(writer.operations as f64),
                String::new(),
                whole(writer.ops_per_second),
            ]);
        }
    }
    table
}

fn evenness(run: &RunReport) -> Table {
    let columns =
        ["workload", "p50", "p99", "p99.9", "p99.99", "max", "longest pause", "idle thread's gap"];
    let mut table = table(&columns, 1);
    for report in shown(run) {
        let row =
            |name: String, latency: &esker_bench::harness::measure::latency::LatencySummary| {
                let spanned = match latency.operations_per_sample {
                    1 => name,
                    operations => format!("{name} (of {operations})"),
                };
                let quantiles = [latency.p50_us, latency.p99_us, latency.p999_us, latency.p9999_us];
                let mut cells = vec![spanned];
                cells.extend(quantiles.iter().chain([&latency.max_us]).map(|us| micros(*us)));
                cells
            };
        let mut cells = row(report.name.clone(), &report.latency);
        cells.push(micros(report.longest_pause_ms * 1e3));
        cells.push(micros(report.idle_gap_ms * 1e3));
        table.add_row(cells);
        if let Some(writer) = &report.writer {
            table.add_row(row(WRITER.to_owned(), &writer.latency));
        }
    }
    table
}

fn cost(run: &RunReport) -> Table {
    let columns = [
        "workload",
        "device write/op",
        "device read/op",
        "WA",
        "WA since open",
        "engine's WA",
        "engine's log",
        "on disk",
        "SA",
        "peak memory",
    ];
    let mut table = table(&columns, 1);
    for report in shown(run) {
        let operations = report.operations.max(1) as f64;
        let per_op = |bytes: Option<u64>| {
            bytes.map_or(dash(), |bytes| format!("{:.1} B", bytes as f64 / operations))
        };
        table.add_row([
            report.name.clone(),
            per_op(report.device_bytes_written),
            per_op(report.device_bytes_read),
            optional(report.write_amplification),
            optional(report.write_amplification_since_open),
            optional(report.engine_write_amplification()),
            report.engine_bytes.map_or(dash(), |bytes| size(bytes.log)),
            report.disk_bytes.map_or(dash(), size),
            optional(report.space_amplification),
            report.peak_memory_bytes.map_or(dash(), size),
        ]);
    }
    table
}

pub(super) fn dash() -> String {
    "–".into()
}

pub(super) fn optional(value: Option<f64>) -> String {
    value.map_or(dash(), |value| format!("{value:.2}"))
}

fn reads(report: &WorkloadReport) -> String {
    match report.found + report.missing {
        0 => String::new(),
        all => format!("{} of {}", whole(report.found as f64), whole(all as f64)),
    }
}

/// A whole number with its thousands apart.
pub(super) fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value {
        value if value >= 99.95 => whole(value),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A time given in microseconds, in the unit that fits.
fn micros(us: f64) -> String {
    match us {
        us if us < 0.9995 => format!("{} ns", short(us * 1e3)),
        us if us < 999.5 => format!("{} µs", short(us)),
        us if us < 999_500.0 => format!("{} ms", short(us / 1e3)),
        us => format!("{} s", short(us / 1e6)),
    }
}

/// A time as hours, minutes and seconds.
pub(super) fn clock(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Bytes in the unit that fits.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1_024.0;
    let mut unit = 0;
    while value >= 1_023.5 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    format!("{} {}", short(value), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(whole(0.4), "0");
        assert_eq!(whole(999.6), "1,000");
        assert_eq!(whole(12_345_678.0), "12,345,678");
        assert_eq!(short(0.126), "0.13");
        assert_eq!(short(12.34), "12.3");
        assert_eq!(short(1234.5), "1,234");
        assert_eq!(micros(0.25), "250 ns");
        assert_eq!(micros(4.211), "4.21 µs");
        assert_eq!(micros(21_000.0), "21.0 ms");
        assert_eq!(micros(2_500_000.0), "2.50 s");
        assert_eq!(size(17), "17 B");
        assert_eq!(size(116 << 20), "116 MiB");
        assert_eq!(size(5 << 40), "5.00 TiB");
        assert_eq!(size((1 << 20) - 1), "1.00 MiB");
    }
}
