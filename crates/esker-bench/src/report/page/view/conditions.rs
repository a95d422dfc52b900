//! The conditions of a comparison: machine, settings, engines and files.
//!
//! A short form stands at the head of a comparison, the whole at its end. Warnings say what makes figures
//! doubtful: a build without optimisation, a run that ended early, results that differ.

use super::parts::{Place, scrolling};
use crate::report::page::group::Group;
use crate::report::page::words;
use maud::{Markup, html};
use serde_json::{Map, Value};

/// One line below a heading: the machine, and what sets this comparison apart from the others.
pub fn short(group: &Group, groups: &[Group]) -> Markup {
    let text = |facts: &Map<String, Value>, name: &str| {
        facts.get(name).filter(|fact| !fact.is_null()).map(|fact| words::value(name, fact))
    };
    let machine = |name| text(&group.machine, name);
    let mut facts: Vec<String> = Vec::new();
    facts.extend(machine("processor"));
    facts.extend(machine("cores").map(|cores| format!("{cores} cores")));
    facts.extend(machine("memory").map(|memory| format!("{memory} of memory")));
    facts.extend(text(&group.settings, "num").map(|num| format!("{num} keys")));
    facts.extend(text(&group.settings, "key_size").map(|size| format!("keys of {size} bytes")));
    facts.extend(text(&group.settings, "value_size").map(|size| format!("values of {size} bytes")));
    facts.extend(text(&group.settings, "durability").map(|class| format!("durability {class}")));
    let apart: Vec<String> = group
        .settings
        .iter()
        .filter(|(name, value)| {
            let shown = ["num", "key_size", "value_size", "durability"].contains(&name.as_str());
            let differs = |other: &Group| other.settings.get(*name) != Some(*value);
            !shown && groups.iter().any(differs)
        })
        .map(|(name, value)| format!("{} {}", words::name(name), words::value(name, value)))
        .collect();
    html! {
        ul.facts { @for fact in &facts { li { (fact) } } }
        @if !apart.is_empty() {
            p { "Different from the other " (kind(group)) "s here: " (apart.join("; ")) "." }
        }
    }
}

/// What figures of one engine or of several are, in a word.
fn kind(group: &Group) -> &'static str {
    if group.compares() { "comparison" } else { "measurement" }
}

/// What spoils the figures.
pub fn warnings(group: &Group) -> Markup {
    let debug = group.machine.get("debug_build") == Some(&Value::Bool(true));
    html! {
        @if debug {
            p.warning { b { "Warning: " } "the program was built without optimisation; its figures mean nothing." }
        }
        @for why in &group.partial {
            p.warning {
                b { "Not complete. " } (why) ". What is missing was not measured."
            }
        }
        @if !group.disagreed.is_empty() {
            p.warning {
                b { "Wrong results. " } "What was read was not what had been written, or not the same "
                "for all engines: " (group.disagreed.join(", ")) ". Such figures are worth nothing."
            }
        }
    }
}

/// The whole section.
pub fn section(place: &Place, group: &Group) -> Markup {
    html! {
        section aria-labelledby=(place.id("conditions")) {
            h3 id=(place.id("conditions")) { "Conditions" }
            p { "From " (words::listed(&group.files)) "." }
            @if !group.origins.is_empty() {
                (scrolling("Where the figures come from", &origins(group)))
            }
            @if group.agreed > 0 {
                p {
                    "Results were checked: engines returned the same in "
                    (words::count(group.agreed, "step", "steps")) " that they have in common."
                }
            }
            @if !group.rules.is_empty() {
                details {
                    summary { "Rules of the " (kind(group)) }
                    ul { @for rule in &group.rules { li { (rule) } } }
                }
            }
            h4 { "Engines" }
            (scrolling("Engines and their settings", &engines(group)))
            details {
                summary { "Machine" }
                (facts(&group.machine))
            }
            details {
                summary { "Settings of the benchmark" }
                (facts(&group.settings))
            }
            (statistics(group))
        }
    }
}

/// When each report was made, by which command and by which build.
fn origins(group: &Group) -> Markup {
    let told = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "not told".into());
    html! {
        table.engines {
            caption { "Where the figures come from" }
            thead {
                tr {
                    th scope="col" { "Report" }
                    th scope="col" { "Date" }
                    th scope="col" { "Command" }
                    th scope="col" { "Commit" }
                    th scope="col" { "Compiler" }
                }
            }
            tbody {
                @for (what, origin) in &group.origins {
                    tr {
                        th scope="row" { (what) }
                        td { (told(&origin.date)) }
                        td { code { (told(&origin.command_line)) } }
                        td { (told(&origin.commit)) }
                        td { (told(&origin.compiler)) }
                    }
                }
            }
        }
    }
}

fn engines(group: &Group) -> Markup {
    html! {
        table.engines {
            caption { "The engines as they were opened" }
            thead {
                tr {
                    th scope="col" { "Engine" }
                    th scope="col" { "Version" }
                    th scope="col" { "Tuning" }
                    th scope="col" { "Rounds" }
                    th scope="col" { "Settings" }
                }
            }
            tbody {
                @for (place, column) in group.columns.iter().enumerate() {
                    tr data-column=(place) {
                        th scope="row" {
                            (column.label)
                            @if column.label != column.engine { " " code { (column.engine) } }
                        }
                        td {
                            (column.version.as_deref().unwrap_or("not told"))
                            @if let Some(note) = &column.note { " (" (note) ")" }
                        }
                        td { (column.tuning.as_deref().unwrap_or("not told")) }
                        td { (column.rounds) }
                        td {
                            @if column.settings.is_empty() { "none" }
                            ul { @for (name, value) in &column.settings { li { (name) ": " (value) } } }
                        }
                    }
                }
            }
        }
    }
}

fn facts(facts: &Map<String, Value>) -> Markup {
    html! {
        dl {
            @for (name, value) in facts {
                div { dt { (words::name(name)) } dd { (words::value(name, value)) } }
            }
        }
    }
}

/// What engines said of themselves.
fn statistics(group: &Group) -> Markup {
    html! {
        @for workload in &group.workloads {
            @for (column, rounds) in workload.rounds.iter().enumerate() {
                @if let Some(text) = rounds.iter().rev().find_map(|step| step.text.as_ref()) {
                    details data-column=(column) {
                        summary {
                            "Statistics that " (group.columns[column].label) " printed ("
                            (workload.title()) ")"
                        }
                        pre tabindex="0" { (text) }
                    }
                }
            }
        }
    }
}
