//! What has changed since a baseline, for each workload and each engine.
//!
//! The rule is that of the summary, with the same engine at an earlier time in the place of the other
//! engine: a ratio above 1 is better now, and a difference within the spread is a tie.

use super::parts::{Place, mark, median, ratios, scrolling, signs};
use crate::report::page::baseline::Baseline;
use crate::report::page::error::PageError;
use crate::report::page::figure::{COMPARED, Mark, Measure, Spread, Verdict};
use crate::report::page::group::{Group, Workload};
use crate::report::page::input::Step;
use crate::report::page::outcome::{Score, judged, shown, speed};
use crate::report::page::ratios::{Row, Scale};
use crate::report::page::words;
use maud::{Markup, html};

/// A comparison and its baseline.
struct Change<'a> {
    group: &'a Group,
    then: &'a Baseline,
}

impl Change<'_> {
    /// How an engine now compares with itself then; nothing where neither has any of it.
    fn verdict(&self, measure: Measure, workload: usize, column: usize) -> Option<Verdict> {
        let now = &self.group.workloads[workload].rounds[column];
        let then = self.then.rounds(workload, column);
        let none =
            |rounds: &[Step]| Spread::of(measure, rounds).is_none_or(|spread| spread.max == 0.0);
        judged(measure, now, then).filter(|_| !none(now) || !none(then))
    }

    /// All outcomes of a measure in one engine.
    fn marks(&self, of: impl Fn(&Workload) -> Measure, column: usize) -> Vec<Mark> {
        let outcomes = shown(self.group)
            .filter_map(|(number, workload)| self.verdict(of(workload), number, column));
        outcomes.map(|verdict| verdict.mark).collect()
    }

    /// All outcomes of a measure.
    fn all(&self, of: impl Fn(&Workload) -> Measure) -> Vec<Mark> {
        (0..self.group.columns.len()).flat_map(|column| self.marks(&of, column)).collect()
    }

    fn rows(&self, number: usize, workload: &Workload) -> Vec<Row<'_>> {
        let columns = self.group.columns.iter().enumerate();
        let rows = columns.filter_map(|(series, column)| {
            let verdict = self.verdict(speed(workload), number, series)?;
            Some(Row { label: &column.label, series, verdict })
        });
        rows.collect()
    }
}

/// The whole section.
pub fn section(place: &Place, group: &Group, then: &Baseline) -> Result<Markup, PageError> {
    let change = Change { group, then };
    let pictures = pictures(place, &change)?;
    Ok(html! {
        section.change aria-labelledby=(place.id("change")) {
            h3 id=(place.id("change")) { "Change against the baseline" }
            p {
                "The baseline is the median of the rounds in " (words::listed(&then.files)) ". A \
                 ratio says how many times as good an engine is now: its rate now divided by that \
                 of the baseline; for a time, a latency or a cost, the baseline's divided by that of now. "
                b { "Above 1 is better now." }
                " Win, loss and tie follow from the spread of the rounds, then and now, by the same \
                 rule as between engines. The axis of the pictures is logarithmic; what is beyond its \
                 ends stands beside them, with an arrow."
            }
            @for differs in &then.machine {
                p.warning { b { "The machine has changed: " } (differs) "." }
            }
            (engines(&change))
            (signs(&change.all(speed)))
            div.pictures { @for picture in &pictures { (picture) } }
            h4 { "Speed" }
            (table("Speed", &change, speed))
            @for measure in COMPARED { (cost(&change, measure)) }
        }
    })
}

/// What became of each engine, in a sentence.
fn engines(change: &Change<'_>) -> Markup {
    html! {
        ul {
            @for (place, column) in change.group.columns.iter().enumerate() {
                li data-column=(place) {
                    b { (column.label) } ": "
                    @match &change.then.columns[place] {
                        None => { "not in the baseline." }
                        Some(then) => {
                            (Score::of(change.marks(speed, place).into_iter()).words()) " in speed"
                            @if then.version != column.version {
                                "; " (column.version.as_deref().unwrap_or("unknown version"))
                                " now, " (then.version.as_deref().unwrap_or("unknown version"))
                                " before"
                            }
                            @if then.settings != column.settings { "; opened with other settings than before" }
                            "."
                        }
                    }
                }
            }
        }
    }
}

fn pictures(place: &Place, change: &Change<'_>) -> Result<Vec<Markup>, PageError> {
    let panels: Vec<(usize, &Workload, Vec<Row<'_>>)> = shown(change.group)
        .map(|(number, workload)| (number, workload, change.rows(number, workload)))
        .filter(|(_, _, rows)| !rows.is_empty())
        .collect();
    let all = panels.iter().flat_map(|(_, _, rows)| rows);
    let scale = Scale::over(all.map(|row| row.verdict));
    let pictures = panels.iter().map(|(number, workload, rows)| {
        let caption = html! {
            b { (workload.title()) } " " span.direction { (speed(workload).name()) "." }
        };
        let title = format!("Change of {}", workload.title());
        let id = place.id(&format!("change{number}"));
        let about = "How many times as good each engine is as it was, on a logarithmic axis. Right \
                     of 1 it is better now.";
        ratios(&id, &title, about, &caption, rows, &scale)
    });
    pictures.collect()
}

fn cost(change: &Change<'_>, measure: Measure) -> Markup {
    let marks = change.all(|_| measure);
    html! {
        @if !marks.is_empty() {
            details {
                summary { b { (measure.name()) } ": " (Score::of(marks.into_iter()).words()) }
                p { (measure.about()) }
                (table(measure.name(), change, |_| measure))
            }
        }
    }
}

fn table(name: &str, change: &Change<'_>, of: impl Fn(&Workload) -> Measure) -> Markup {
    let body = html! {
        table.summary data-change=(name) {
            caption { (name) ": now against the baseline" }
            thead {
                tr {
                    th scope="col" { "Workload" }
                    @for (place, column) in change.group.columns.iter().enumerate() {
                        th scope="col" data-column=(place) { (column.label) }
                    }
                }
            }
            tbody {
                @for (number, workload) in shown(change.group) {
                    tr data-workload=(workload.title()) {
                        th scope="row" { (workload.title()) }
                        @for (column, engine) in change.group.columns.iter().enumerate() {
                            td data-engine=(engine.engine) data-column=(column) {
                                (cell(change, of(workload), number, column))
                            }
                        }
                    }
                }
            }
        }
    };
    scrolling(&format!("{name}: table of changes"), &body)
}

fn cell(change: &Change<'_>, measure: Measure, number: usize, column: usize) -> Markup {
    let now = &change.group.workloads[number].rounds[column];
    let then = change.then.rounds(number, column);
    let verdict = change.verdict(measure, number, column);
    html! {
        @match verdict {
            Some(Verdict { ratio: Some(ratio), mark: outcome, .. }) if outcome != Mark::Unlike => {
                data.ratio value=(ratio) { (words::ratio(ratio)) } " "
            }
            _ => { span.absent { "no ratio " } }
        }
        @if let Some(verdict) = verdict { (mark(verdict.mark)) }
        span.theirs { "now " (median(measure, now)) ", before " (median(measure, then)) }
    }
}
