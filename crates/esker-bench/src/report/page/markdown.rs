//! Tables for a document: the same comparisons as on the page, as Markdown.
//!
//! A table has a row for each workload and a column for each engine, with ratios; a list of all losses
//! follows. [`document`] makes a file of its own of them, which needs no page around it. Text from files is
//! escaped, so that it cannot break a table.

use super::figure::{Mark, Measure, Spread};
use super::group::{Column, Group, Workload};
use super::input::{Published, Step};
use super::outcome::{Outcome, outcomes, shown, speed, verdict};
use super::words;
use crate::harness::measure::median::median;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The costs that get tables of their own.
const COSTS: [Measure; 6] = [
    Measure::Cpu,
    Measure::WriteAmplification,
    Measure::SpaceAmplification,
    Measure::Disk,
    Measure::Memory,
    Measure::Pause,
];
/// What is told of an open loop beside the rate.
const OPEN_LOOP: [Measure; 4] = [Measure::P50, Measure::P99, Measure::P999, Measure::Longest];

/// All comparisons, one behind the other.
pub fn text(groups: &[Group]) -> String {
    groups.iter().map(|group| comparison(group, "###")).collect::<Vec<_>>().join("\n")
}

/// A document of its own: a title, how a table is read, and all comparisons.
pub fn document(groups: &[Group], page: Option<&str>) -> String {
    let mut text = String::from("# Results\n\n");
    let mut days: Vec<&str> = groups.iter().flat_map(days).collect();
    days.sort_unstable();
    days.dedup();
    if let (Some(first), Some(last)) = (days.first(), days.last()) {
        let to = if first == last { String::new() } else { format!(" to {last}") };
        let _ = writeln!(text, "Measured on {first}{to}.");
    }
    let ours =
        groups.first().map_or("the first engine".into(), |group| escaped(&group.columns[0].label));
    let _ = writeln!(
        text,
        "Figures are medians over rounds. A ratio is the rate of {ours} divided by the other engine's, or\n\
         the other engine's cost divided by that of {ours}: **above 1 is better for {ours}**. Where it is\n\
         behind, the ratio is bold; with one round a ratio is a single observation."
    );
    if let Some(page) = page {
        let _ = writeln!(
            text,
            "[The same as a page with pictures]({page}) has the spread of the rounds."
        );
    }
    for group in groups {
        let _ = write!(text, "\n{}\n", comparison(group, "##").trim_end());
    }
    text
}

/// The days on which a comparison was measured.
fn days(group: &Group) -> impl Iterator<Item = &str> {
    group.origins.iter().filter_map(|(_, origin)| origin.day())
}

fn comparison(group: &Group, level: &str) -> String {
    let mut text = String::new();
    let what = group.experiment.as_deref().unwrap_or("Comparison");
    let _ = writeln!(text, "{level} {}\n", escaped(what));
    text += &origin(group);
    if group.machine.get("debug_build").is_some_and(|debug| debug == true) {
        text += "**The program was built without optimisation; its figures mean nothing.**\n\n";
    }
    let _ = writeln!(text, "{}\n", escaped(&about(group)));
    for why in &group.partial {
        let _ = writeln!(text, "Not complete: {}\n", escaped(why));
    }
    if !group.disagreed.is_empty() {
        let steps = escaped(&group.disagreed.join(", "));
        let _ =
            writeln!(text, "**Wrong results**, so that these figures are worth nothing: {steps}\n");
    }
    text += &table("Speed, operations a second", group, Of::Speed, |_| true);
    text += &losses(group);
    text += &published(group);
    text += &behind_the_rate(group);
    let is_open = |workload: &Workload| workload.any().is_some_and(|step| step.open_loop.is_some());
    for measure in OPEN_LOOP {
        let title = format!("Open loop: {}, {}", measure.name(), measure.unit());
        text += &table(&title, group, Of::One(measure), is_open);
    }
    for measure in COSTS {
        let unit = measure.unit();
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        let title = format!("{}{unit}", measure.name());
        let counts = |workload: &Workload| counts(measure, workload);
        text += &table(&title, group, Of::One(measure), counts);
    }
    text + &further(group)
}

/// The commands, and where and with what they ran.
fn origin(group: &Group) -> String {
    let mut text = String::new();
    let lines = group.origins.iter().filter_map(|(_, origin)| origin.command_line.as_ref());
    let mut lines: Vec<String> = lines.map(|line| line.replace(['\n', '\r'], " ")).collect();
    lines.dedup();
    for line in &lines {
        let _ = writeln!(text, "    {line}");
    }
    if !lines.is_empty() {
        text.push('\n');
    }
    let mut facts: Vec<String> = Vec::new();
    let mut add = |fact: String| {
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    };
    days(group).for_each(|day| add(day.to_owned()));
    let fact = |name: &str| {
        group.machine.get(name).filter(|fact| !fact.is_null()).map(|fact| words::value(name, fact))
    };
    fact("processor").into_iter().for_each(&mut add);
    fact("cores").into_iter().for_each(|cores| add(format!("{cores} cores")));
    fact("memory").into_iter().for_each(|memory| add(format!("{memory} of memory")));
    ["disk", "file_system", "system"].into_iter().filter_map(fact).for_each(&mut add);
    for (_, origin) in &group.origins {
        origin.compiler.iter().for_each(|compiler| add(compiler.clone()));
        origin.commit.iter().for_each(|commit| add(format!("commit {commit}")));
    }
    let _ = writeln!(text, "{}.\n", escaped(&facts.join(", ")));
    let versions = group.columns.iter().filter_map(|column| {
        let version = column.version.as_ref()?;
        Some(format!("{}: {version}", column.label))
    });
    let versions: Vec<String> = versions.collect();
    if !versions.is_empty() {
        let _ = writeln!(text, "Versions: {}.\n", escaped(&versions.join("; ")));
    }
    text
}

/// The engines that did not do what an open loop asked of them.
fn behind_the_rate(group: &Group) -> String {
    let mut found = Vec::new();
    for (_, workload) in shown(group) {
        for (column, rounds) in group.columns.iter().zip(&workload.rounds) {
            let kept_up =
                |step: &&Step| step.open_loop.is_some_and(|open| open.kept_up == Some(false));
            let behind = rounds.iter().filter(kept_up).count();
            if behind > 0 {
                let of = format!("{behind} of {}", words::count(rounds.len(), "round", "rounds"));
                found.push(format!("{} in {} ({of})", column.label, workload.title()));
            }
        }
    }
    match found.is_empty() {
        true => String::new(),
        false => format!("Did not keep up with the rate: {}.\n\n", escaped(&found.join("; "))),
    }
}

/// The figures that only an experiment has: medians over rounds, without ratios, because more may be
/// better or worse.
fn further(group: &Group) -> String {
    let names: Vec<String> = group.columns.iter().map(|column| escaped(&column.label)).collect();
    let mut rows = String::new();
    for (_, workload) in shown(group) {
        let steps = workload.rounds.iter().flatten();
        let figures: BTreeSet<&String> = steps.flat_map(|step| step.figures.keys()).collect();
        for name in figures {
            let of = |rounds: &Vec<Step>| {
                let found = rounds.iter().filter_map(|step| step.figures.get(name).copied());
                median(found.collect()).map_or(String::new(), words::number)
            };
            let cells: Vec<String> = workload.rounds.iter().map(of).collect();
            let title = format!("{}: {}", workload.title(), words::name(name));
            let _ = writeln!(rows, "| {} | {} |", escaped(&title), cells.join(" | "));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let head = format!(
        "| Further figures | {} |\n|---|{}\n",
        names.join(" | "),
        "--:|".repeat(names.len())
    );
    head + &rows + "\n"
}

/// Amplification and the like say nothing of a step that is one call on the database.
fn counts(measure: Measure, workload: &Workload) -> bool {
    let single = workload.any().is_some_and(|step| step.maintenance);
    match measure {
        Measure::WriteAmplification | Measure::SpaceAmplification | Measure::Disk => true,
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

/// What a table shows.
#[derive(Clone, Copy)]
enum Of {
    /// What compares speed, which is not the same for all workloads, so that figures have units.
    Speed,
    /// One measure, with the unit in the head.
    One(Measure),
}

/// A row for each workload, a column for each engine.
fn table(title: &str, group: &Group, of: Of, counts: impl Fn(&Workload) -> bool) -> String {
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
            .map(|(place, column)| cell(of, workload, place, column))
            .collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            let _ = writeln!(text, "| {} | {} |", escaped(&workload.title()), cells.join(" | "));
            rows += 1;
        }
    }
    if rows == 0 { String::new() } else { text + "\n" }
}

/// The figure, and the ratio to ours: bold where ours is behind.
fn cell(of: Of, workload: &Workload, place: usize, column: &Column) -> String {
    let measure = match of {
        Of::Speed => speed(workload),
        Of::One(measure) => measure,
    };
    let Some(spread) = Spread::of(measure, &workload.rounds[place]) else { return String::new() };
    let figure = match (of, measure) {
        // Beside rates stands the unit, because a single call has a time and no rate.
        (Of::Speed, Measure::Seconds | Measure::P99) => words::with_unit(measure, spread.median),
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
