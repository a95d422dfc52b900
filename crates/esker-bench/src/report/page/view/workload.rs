//! One workload: its pictures, and all its figures as tables.
//!
//! Bars show speed and costs, lines show latencies by percentile and rates over time. The table below
//! them has a column for each measure that at least one engine has.

use super::parts::{Place, drawn, scrolling};
use super::published;
use crate::report::page::chart::{self, Bar, code, colour};
use crate::report::page::course;
use crate::report::page::error::PageError;
use crate::report::page::figure::{COLUMNS, COSTS, Measure, Spread, batched};
use crate::report::page::group::{Group, Workload};
use crate::report::page::input::Step;
use crate::report::page::outcome::speed;
use crate::report::page::words;
use maud::{Markup, html};

/// The whole section.
pub fn section(
    place: &Place,
    group: &Group,
    number: usize,
    workload: &Workload,
) -> Result<Markup, PageError> {
    let id = |rest: &str| place.id(&format!("w{number}{rest}"));
    let mut figures = vec![bars(&id, group, workload, speed(workload))?];
    figures.push(latencies(&id, group, workload)?);
    figures.push(rates(&id, group, workload)?);
    let mut costs = Vec::new();
    for measure in COSTS {
        costs.push(bars(&id, group, workload, measure)?);
    }
    Ok(html! {
        section.workload aria-labelledby=(id("")) data-workload=(workload.title()) {
            h4 id=(id("")) { (workload.title()) }
            p.about { (about(workload)) }
            (due(group, workload))
            div.pictures { @for figure in figures.iter().flatten() { (figure) } }
            @if costs.iter().any(Option::is_some) {
                h5 { "Costs" }
                div.pictures { @for figure in costs.iter().flatten() { (figure) } }
            }
            (table(group, workload))
            (tenths(group, workload))
            (published::section(group, workload))
        }
    })
}

/// What the workload does, where its name is known, and on how many threads.
fn about(workload: &Workload) -> String {
    let name = workload.name.split(':').next().unwrap_or_default();
    let known = crate::harness::workload::ALL.iter().find(|(_, known, _)| *known == name);
    let mut text = known.map_or(String::new(), |(_, _, about)| {
        let mut letters = about.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        format!("{}{}. ", first.unwrap_or_default(), letters.as_str())
    });
    let spans = workload.any().and_then(|step| step.latency.as_ref()?.operations_per_sample);
    if let Some(spans) = spans.filter(|spans| *spans > 1) {
        text.push_str(&format!("Each latency spans {spans} operations."));
    }
    text.trim_end().to_owned()
}

/// What an open loop asked for, and who did not do it.
fn due(group: &Group, workload: &Workload) -> Markup {
    let columns = workload.rounds.iter().zip(&group.columns).enumerate();
    let loops = columns.filter_map(|(place, (rounds, column))| {
        let due = rounds.iter().find_map(|step| step.open_loop)?;
        let late = |step: &Step| step.open_loop.is_some_and(|due| due.kept_up == Some(false));
        let late = rounds.iter().filter(|step| late(step)).count();
        let share = due.percent.map_or(String::new(), |percent| {
            format!(" ({} % of its sustained rate)", words::short(percent.0))
        });
        let rate = words::with_unit(Measure::Rate, due.rate.0);
        Some((place, format!("{}: {rate}{share}", column.label), late, rounds.len()))
    });
    let loops: Vec<_> = loops.collect();
    html! {
        @if !loops.is_empty() {
            p {
                "Operations were due at times of their own, and latency counts from when an \
                 operation was due, so that a pause falls on everything that had to wait for it."
            }
            ul {
                @for (place, text, late, rounds) in loops {
                    li data-column=(place) {
                        (text)
                        @if late > 0 {
                            ". " b { "It did not keep up in " (late) " of " (words::count(rounds, "round", "rounds")) "." }
                        } @else { ", kept up." }
                    }
                }
            }
        }
    }
}

fn better(measure: Measure) -> &'static str {
    if measure.more_is_better() { "Longer is better." } else { "Shorter is better." }
}

/// A figure of bars; nothing if no engine has the measure, or if all of it is zero.
fn bars(
    id: &dyn Fn(&str) -> String,
    group: &Group,
    workload: &Workload,
    measure: Measure,
) -> Result<Option<Markup>, PageError> {
    let bars: Vec<Bar<'_>> = group
        .columns
        .iter()
        .enumerate()
        .filter_map(|(series, column)| {
            let spread = Spread::of(measure, &workload.rounds[series])?;
            let mut text = words::with_unit(measure, spread.median);
            if measure == Measure::Rate && batched(&workload.rounds[series]) {
                text.push_str(" in batches");
            }
            Some(Bar { label: &column.label, series, spread, text })
        })
        .collect();
    if bars.iter().all(|bar| bar.spread.max == 0.0) {
        return Ok(None);
    }
    let said: Vec<String> = bars.iter().map(|bar| spoken(bar)).collect();
    let picture = chart::bars(&bars)?;
    let desc = format!("{} {} {}", measure.about(), better(measure), said.join(" "));
    let title = format!("{} of {}", measure.name(), workload.title());
    Ok(Some(html! {
        figure {
            figcaption {
                b { (measure.name()) } " " span.direction { (better(measure)) }
            }
            (drawn(&id(&format!("-{measure:?}")), &title, &desc, &picture))
        }
    }))
}

fn spoken(bar: &Bar<'_>) -> String {
    let Spread { min, max, rounds, .. } = bar.spread;
    let range = if rounds > 1 {
        format!(" ({} to {})", words::number(min), words::number(max))
    } else {
        String::new()
    };
    format!("{}: {}{range}.", bar.label, bar.text)
}

/// Which line is whose, by the same colour and dashes as in the picture.
fn legend(group: &Group, columns: impl Iterator<Item = usize>) -> Markup {
    html! {
        ul.legend {
            @for column in columns {
                li data-column=(column) {
                    svg viewBox="0 0 60 12" aria-hidden="true" focusable="false" {
                        polyline points="0,6 60,6" fill="none" stroke-width="5"
                            stroke=(code(colour(column))) {}
                    }
                    (group.columns[column].label)
                }
            }
        }
    }
}

fn latencies(
    id: &dyn Fn(&str) -> String,
    group: &Group,
    workload: &Workload,
) -> Result<Option<Markup>, PageError> {
    let Some(picture) = course::latencies(workload)? else { return Ok(None) };
    let curves = course::curves(workload);
    let said = curves.iter().map(|(column, curve)| {
        let us =
            |place: usize| curve.get(place).map_or(String::new(), |(_, us)| words::number(*us));
        let last = curve.len().saturating_sub(1);
        let label = &group.columns[*column].label;
        format!("{label}: median {} µs, longest {} µs.", us(0), us(last))
    });
    let desc = format!(
        "Latency in microseconds on a logarithmic axis by the share of operations that took no \
         longer. Lower is better. {}",
        said.collect::<Vec<_>>().join(" ")
    );
    let title = format!("Latency of {} by percentile", workload.title());
    Ok(Some(html! {
        figure {
            figcaption {
                b { "Latency by percentile" } " " span.direction { "Lower is better." }
            }
            (drawn(&id("-latency"), &title, &desc, &picture))
            (legend(group, curves.iter().map(|(column, _)| *column)))
        }
    }))
}

fn rates(
    id: &dyn Fn(&str) -> String,
    group: &Group,
    workload: &Workload,
) -> Result<Option<Markup>, PageError> {
    let Some(rates) = course::rates(workload)? else { return Ok(None) };
    let shown =
        |column: &usize| workload.rounds[*column].iter().any(|step| course::points(step).len() > 1);
    let title = format!("Rate of {} over time", workload.title());
    let desc = |axis: &str| {
        format!(
            "Operations a second on a {axis} axis by the seconds since the start. Higher and \
             steadier is better. The table of tenths below has its figures."
        )
    };
    let name = id("-scale");
    Ok(Some(html! {
        figure {
            figcaption {
                b { "Rate over time" } " " span.direction { "Higher and steadier is better." }
            }
            fieldset.scale {
                legend { "Scale of the rate" }
                input.choose-log type="radio" name=(name) id={ (name) "-log" } checked;
                label for={ (name) "-log" } { "logarithmic" }
                input.choose-linear type="radio" name=(name) id={ (name) "-linear" };
                label for={ (name) "-linear" } { "linear" }
                div.log { (drawn(&id("-log"), &title, &desc("logarithmic"), &rates.logarithmic)) }
                div.linear { (drawn(&id("-linear"), &title, &desc("linear"), &rates.linear)) }
            }
            (legend(group, (0..group.columns.len()).filter(shown)))
        }
    }))
}

/// All figures of all engines.
fn table(group: &Group, workload: &Workload) -> Markup {
    let has = |measure: &Measure| {
        let single = workload.any().is_some_and(|step| step.maintenance);
        (!measure.more_is_better() || !single)
            && workload.rounds.iter().any(|rounds| Spread::of(*measure, rounds).is_some())
    };
    let measures: Vec<Measure> = COLUMNS.into_iter().filter(has).collect();
    let body = html! {
        table.figures {
            caption { "All figures of " (workload.title()) ": median (lowest to highest round)" }
            thead {
                tr {
                    th scope="col" { "Measure" }
                    @for (place, column) in group.columns.iter().enumerate() {
                        th scope="col" data-column=(place) { (column.label) }
                    }
                }
            }
            tbody {
                @for measure in measures {
                    tr data-measure=(measure.name()) {
                        th scope="row" {
                            (measure.name())
                            @if !measure.unit().is_empty() { ", " (measure.unit()) }
                        }
                        @for (place, rounds) in workload.rounds.iter().enumerate() {
                            td data-column=(place) { (spread(measure, rounds)) }
                        }
                    }
                }
            }
        }
    };
    html! {
        details {
            summary { "Figures of " (workload.title()) " as a table" }
            (scrolling(&format!("All figures of {}", workload.title()), &body))
        }
    }
}

fn spread(measure: Measure, rounds: &[Step]) -> Markup {
    html! {
        @match Spread::of(measure, rounds) {
            Some(spread) => {
                data value=(spread.median) { (words::number(spread.median)) }
                @if spread.rounds > 1 {
                    span.range { " (" (words::number(spread.min)) " to " (words::number(spread.max)) ")" }
                }
            }
            None => { span.absent { "not measured" } }
        }
    }
}

/// The course over time as figures.
fn tenths(group: &Group, workload: &Workload) -> Markup {
    let courses: Vec<(usize, Vec<f64>)> = workload
        .rounds
        .iter()
        .enumerate()
        .filter_map(|(column, rounds)| Some((column, course::tenths(rounds)?)))
        .collect();
    let body = html! {
        table.figures {
            caption {
                "Operations a second of " (workload.title()) " in each tenth of the median round"
            }
            thead {
                tr {
                    th scope="col" { "Tenth" }
                    @for (column, _) in &courses {
                        th scope="col" data-column=(column) { (group.columns[*column].label) }
                    }
                }
            }
            tbody {
                @for tenth in 0..10 {
                    tr {
                        th scope="row" { (tenth + 1) }
                        @for (column, course) in &courses {
                            td data-column=(column) { data value=(course[tenth]) { (words::number(course[tenth])) } }
                        }
                    }
                }
            }
        }
    };
    html! {
        @if !courses.is_empty() {
            details {
                summary { "Rate of " (workload.title()) " over time as a table" }
                (scrolling(&format!("Rate of {} over time", workload.title()), &body))
            }
        }
    }
}
