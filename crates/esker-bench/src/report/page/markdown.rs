//! Tables for a document: the same comparisons as on the page, as Markdown.
//!
//! A table has a row for each workload and a column for each engine, with ratios; a list of all losses
//! follows. Text from files is escaped, so that it cannot break a table.

use super::figure::{Mark, Measure, Spread};
use super::group::{Column, Group, Workload};
use super::input::Published;
use super::outcome::{Outcome, outcomes, shown, speed, verdict};
use super::words;
use std::fmt::Write as _;

/// The costs that get tables of their own.
const COSTS: [Measure; 4] =
    [Measure::Cpu, Measure::WriteAmplification, Measure::SpaceAmplification, Measure::Pause];

/// All comparisons, one behind the other.
pub fn text(groups: &[Group]) -> String {
    groups.iter().map(comparison).collect::<Vec<_>>().join("\n")
}

fn comparison(group: &Group) -> String {
    let mut text = String::new();
    let what = group.experiment.as_deref().unwrap_or("Comparison");
    let _ = writeln!(text, "### {}\n\n{}\n", escaped(what), escaped(&about(group)));
    for why in &group.partial {
        let _ = writeln!(text, "Not complete: {}\n", escaped(why));
    }
    text += &table("Speed, operations a second", group, speed, |_| true);
    text += &losses(group);
    text += &published(group);
    for measure in COSTS {
        let unit = measure.unit();
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        let title = format!("{}{unit}", measure.name());
        let counts = |workload: &Workload| counts(measure, workload);
        text += &table(&title, group, |_| measure, counts);
    }
    text
}

/// Amplification and the like say nothing of a step that is one call on the database.
fn counts(measure: Measure, workload: &Workload) -> bool {
    let single = workload.any().is_some_and(|step| step.maintenance);
    match measure {
        Measure::WriteAmplification | Measure::SpaceAmplification => true,
        _ => !single,
    }
}

fn about(group: &Group) -> String {
    let setting = |name: &str| {
        let value = group.settings.get(name)?;
        Some(format!("{} {}", words::name(name), words::value(name, value)))
    };
    let names = [
        "num",
        "key_size",
        "value_size",
        "durability",
        "memory",
        "write_buffer_bytes",
        "memory_limit",
        "duration",
    ];
    let set: Vec<String> = names.into_iter().filter_map(setting).collect();
    let rounds: Vec<usize> = group.columns.iter().map(|column| column.rounds).collect();
    let rounds = rounds.iter().copied().min().unwrap_or(0);
    format!("{}; {}.", set.join(", "), words::count(rounds, "round", "rounds"))
}

/// A row for each workload, a column for each engine.
fn table(
    title: &str,
    group: &Group,
    of: impl Fn(&Workload) -> Measure,
    counts: impl Fn(&Workload) -> bool,
) -> String {
    let mut text = String::new();
    let names: Vec<String> = group.columns.iter().map(|column| escaped(&column.label)).collect();
    let _ = writeln!(text, "| {} | {} |", escaped(title), names.join(" | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(names.len()));
    let mut rows = 0;
    for (_, workload) in shown(group).filter(|(_, workload)| counts(workload)) {
        let cells: Vec<String> = group
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| cell(of(workload), workload, place, column))
            .collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            let _ = writeln!(text, "| {} | {} |", escaped(&workload.title()), cells.join(" | "));
            rows += 1;
        }
    }
    if rows == 0 { String::new() } else { text + "\n" }
}

/// The figure, and the ratio to ours: bold where ours is behind.
fn cell(measure: Measure, workload: &Workload, place: usize, column: &Column) -> String {
    let Some(spread) = Spread::of(measure, &workload.rounds[place]) else { return String::new() };
    let figure = match measure {
        // Beside rates stands the unit, because a single call has a time and no rate.
        Measure::Seconds | Measure::P99 => words::with_unit(measure, spread.median),
        _ => words::number(spread.median),
    };
    let compared = (place > 0 && !column.is_yardstick()).then(|| verdict(measure, workload, place));
    let Some(verdict) = compared.flatten() else { return figure };
    match (verdict.mark, verdict.ratio) {
        (Mark::Unlike, _) => format!("{figure} (batches)"),
        (_, None) => figure,
        (Mark::Tie, Some(ratio)) => format!("{figure} ({}, tie)", words::ratio(ratio)),
        (Mark::Win, Some(ratio)) => format!("{figure} ({})", words::ratio(ratio)),
        (Mark::Loss, Some(ratio)) => format!("{figure} (**{}**)", words::ratio(ratio)),
        (Mark::Once, Some(ratio)) if ratio < 1.0 => {
            format!("{figure} (**{}**)", words::ratio(ratio))
        }
        (Mark::Once, Some(ratio)) => format!("{figure} ({})", words::ratio(ratio)),
    }
}

/// Whether ours is behind, as far as the rounds tell.
fn is_behind(outcome: &Outcome<'_>) -> bool {
    match outcome.verdict.mark {
        Mark::Loss => true,
        Mark::Once => outcome.verdict.ratio.is_some_and(|ratio| ratio < 1.0),
        Mark::Win | Mark::Tie | Mark::Unlike => false,
    }
}

/// A number of comparisons in words.
fn compared(count: usize) -> String {
    if count == 1 { "1 comparison".to_owned() } else { format!("{count} comparisons") }
}

/// Where ours is slower, the worst first.
fn losses(group: &Group) -> String {
    let ours = escaped(&group.columns[0].label);
    let speeds = outcomes(group, speed);
    let mut behind: Vec<&Outcome<'_>> =
        speeds.iter().filter(|outcome| is_behind(outcome)).collect();
    behind.sort_by(|a, b| a.share().total_cmp(&b.share()));
    if group.columns.len() < 2 {
        return String::new();
    }
    if behind.is_empty() {
        return format!("{ours} is not behind in speed in any of {}.\n\n", compared(speeds.len()));
    }
    let mut text =
        format!("{ours} is behind in speed in {} of {}:\n\n", behind.len(), compared(speeds.len()));
    for outcome in behind {
        let ratio = outcome.verdict.ratio.map_or("no ratio".into(), words::ratio);
        let (step, other) = (outcome.workload.title(), &group.columns[outcome.column].label);
        let _ = writeln!(text, "- {}, against {}: {ratio}", escaped(&step), escaped(other));
    }
    text + "\n"
}

/// What others published, a column for each system.
fn published(group: &Group) -> String {
    let mut systems: Vec<&str> = Vec::new();
    for figure in &group.published {
        if !systems.contains(&figure.engine.as_str()) {
            systems.push(&figure.engine);
        }
    }
    if systems.is_empty() {
        return String::new();
    }
    let names: Vec<String> = systems.iter().map(|system| escaped(system)).collect();
    let mut text = format!("| Published, operations a second | {} |\n", names.join(" | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(names.len()));
    for (_, workload) in shown(group) {
        let of = |system: &&str| {
            let found =
                |figure: &&Published| figure.workload == workload.name && figure.engine == **system;
            let figure = group.published.iter().find(found);
            figure.map_or(String::new(), |figure| words::number(figure.ops_per_second.0))
        };
        let cells: Vec<String> = systems.iter().map(of).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            let _ = writeln!(text, "| {} | {} |", escaped(&workload.title()), cells.join(" | "));
        }
    }
    text + "\n"
}

/// Text that a table may hold, with nothing that Markdown or HTML would take for its own.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => safe.push(' '),
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '\\' | '*' | '_' | '`' | '[' | ']' => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}
