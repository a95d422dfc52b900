//! The overview: for each workload one picture of ratios in speed to every other engine.
//!
//! It comes first on the page. All pictures have the same axis, and each caption names who leads the
//! workload.

use super::parts::{Place, ratios, signs};
use crate::report::page::error::PageError;
use crate::report::page::figure::Mark;
use crate::report::page::group::{Group, Workload};
use crate::report::page::outcome::{leaders, shown, speed, verdict};
use crate::report::page::ratios::{Row, Scale};
use crate::report::page::words;
use maud::{Markup, html};

/// The whole section; nothing where there is nothing to compare with.
pub fn section(place: &Place, group: &Group) -> Result<Markup, PageError> {
    if !group.compares() {
        return Ok(Markup::default());
    }
    let ours = &group.columns[0].label;
    let panels: Vec<(usize, &Workload, Vec<Row<'_>>)> = shown(group)
        .map(|(number, workload)| (number, workload, rows(group, workload)))
        .filter(|(_, _, rows)| !rows.is_empty())
        .collect();
    let all = panels.iter().flat_map(|(_, _, rows)| rows);
    let scale = Scale::over(all.clone().map(|row| row.verdict));
    let marks: Vec<Mark> = all.map(|row| row.verdict.mark).collect();
    let mut pictures = Vec::new();
    for (number, workload, rows) in &panels {
        let about = format!(
            "How many times as good {ours} is as each other engine, on a logarithmic axis. Right \
             of 1 {ours} is ahead. {}",
            leading(group, workload)
        );
        let caption = html! {
            b { a href={ "#" (place.id(&format!("w{number}"))) } { (workload.title()) } }
            " " span.direction { (speed(workload).name()) ". " }
            span.leading { (leading(group, workload)) }
        };
        let title = format!("Overview of {}", workload.title());
        let id = place.id(&format!("overview{number}"));
        pictures.push(ratios(&id, &title, &about, &caption, rows, &scale)?);
    }
    Ok(html! {
        section.overview aria-labelledby=(place.id("overview")) data-column="0" {
            h3 id=(place.id("overview")) { "Overview" }
            p {
                "How many times as good " b { (ours) } " is as each other engine, in speed. The axis \
                 is logarithmic and the same in all pictures: right of the line at 1 " (ours)
                " is ahead, left of it the other engine. A mark is the ratio of the medians. Its \
                 whisker reaches from the slowest round of " (ours) " against the fastest of the \
                 other to the fastest against the slowest. What is beyond the ends of the axis stands \
                 beside them, with an arrow."
            }
            (signs(&marks))
            div.pictures { @for picture in &pictures { (picture) } }
        }
    })
}

/// A row for every engine that has the workload.
fn rows<'a>(group: &'a Group, workload: &Workload) -> Vec<Row<'a>> {
    let columns = group.columns.iter().enumerate().skip(1);
    let rows = columns.filter_map(|(series, column)| {
        let verdict = verdict(speed(workload), workload, series)?;
        Some(Row { label: &column.label, series, verdict })
    });
    rows.collect()
}

/// Who leads, in a sentence.
fn leading(group: &Group, workload: &Workload) -> String {
    let (leaders, once) = leaders(group, workload);
    let names: Vec<String> =
        leaders.iter().map(|column| group.columns[*column].label.clone()).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] if once => format!("Ahead in one round: {one}."),
        [one] => format!("Winner: {one}."),
        several => format!("No winner: {} tie.", words::listed(several)),
    }
}
