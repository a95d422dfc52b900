//! What others published of a workload, beside what was measured here.
//!
//! The table has ratios among the published figures and ratios among ours, and never a ratio between
//! the two: published figures come from other machines.

use super::parts::scrolling;
use crate::harness::measure::median::median;
use crate::report::page::figure::{Measure, Spread, batched};
use crate::report::page::group::{Group, Workload};
use crate::report::page::input::{Published, Step};
use crate::report::page::words;
use maud::{Markup, html};

/// A line of the table.
struct Row {
    label: String,
    /// The scale, if it is known.
    at: Option<f64>,
    rate: f64,
    /// The first of its kind, ours or theirs, divided by it: above 1 is better for the first.
    ratio: Option<f64>,
    figures: [Option<f64>; 2],
    /// The column, if it was measured here.
    column: Option<usize>,
    /// What a reader must not overlook.
    note: &'static str,
}

/// The table; nothing where nothing was published.
pub fn section(group: &Group, workload: &Workload) -> Markup {
    let theirs = theirs(group, workload);
    if theirs.is_empty() {
        return Markup::default();
    }
    let rows: Vec<Row> = ours(group, workload).into_iter().chain(theirs).collect();
    // A column of which nobody knows anything is left out.
    let known = |place: usize| rows.iter().any(|row| row.figures[place].is_some());
    let heads = ["Write amplification since open", "Device reads for an operation"];
    let columns: Vec<usize> = (0..heads.len()).filter(|place| known(*place)).collect();
    let body = html! {
        table.figures {
            caption { "Published figures of " (workload.title()) " beside ours" }
            thead {
                tr {
                    th scope="col" { "Engine" }
                    th scope="col" { "Scale" }
                    th scope="col" { (Measure::Rate.name()) }
                    th scope="col" { "Ratio" }
                    @for place in &columns { th scope="col" { (heads[*place]) } }
                }
            }
            tbody {
                @for row in &rows {
                    tr data-column=[row.column] {
                        th scope="row" {
                            @if row.column.is_none() { "published: " }
                            (row.label) (row.note)
                        }
                        td { (figure(row.at)) }
                        td { (figure(Some(row.rate))) }
                        td {
                            @match row.ratio {
                                Some(ratio) => { data value=(ratio) { (words::ratio(ratio)) } }
                                None => { span.absent { "none" } }
                            }
                        }
                        @for place in &columns { td { (figure(row.figures[*place])) } }
                    }
                }
            }
        }
    };
    html! {
        details {
            summary { "Published figures of " (workload.title()) }
            p {
                "From other machines and years: compare ratios and shapes, not figures. A ratio is \
                 the rate of the first engine measured here, or of the first that was published, divided by \
                 the engine's: above 1 is better for the first."
            }
            (scrolling(&format!("Published figures of {}", workload.title()), &body))
        }
    }
}

fn figure(figure: Option<f64>) -> Markup {
    html! {
        @match figure {
            Some(figure) => { data value=(figure) { (words::number(figure)) } }
            None => { span.absent { "not known" } }
        }
    }
}

fn ratio(rate: f64, base: Option<f64>) -> Option<f64> {
    base.filter(|_| rate > 0.0).map(|base| base / rate)
}

/// Medians over rounds of what was measured here.
fn ours(group: &Group, workload: &Workload) -> Vec<Row> {
    let rate = |rounds: &Vec<Step>| Spread::of(Measure::Rate, rounds).map(|spread| spread.median);
    let base = workload.rounds.first().and_then(rate);
    let at = group.settings.get("num").and_then(serde_json::Value::as_f64);
    let columns = group.columns.iter().zip(&workload.rounds).enumerate();
    let row = columns.filter_map(|(place, (column, rounds))| {
        let rate = rate(rounds)?;
        let written = Spread::of(Measure::WriteAmplification, rounds).map(|spread| spread.median);
        let reads = rounds.iter().filter_map(|step| step.figures.get("device_reads_per_op"));
        Some(Row {
            label: column.label.clone(),
            at,
            rate,
            ratio: ratio(rate, base),
            figures: [written, median(reads.copied().collect())],
            column: Some(place),
            note: if batched(rounds) { " (in batches)" } else { "" },
        })
    });
    row.collect()
}

fn theirs(group: &Group, workload: &Workload) -> Vec<Row> {
    let published = || group.published.iter().filter(|row| row.workload == workload.name);
    let base = published().next().map(|row| row.ops_per_second.0);
    let row = |row: &Published| Row {
        label: row.engine.clone(),
        at: row.scale.map(|scale| scale.0),
        rate: row.ops_per_second.0,
        ratio: ratio(row.ops_per_second.0, base),
        figures: [row.write_amplification, row.device_reads_per_op].map(|f| f.map(|f| f.0)),
        column: None,
        note: "",
    };
    published().map(row).collect()
}
