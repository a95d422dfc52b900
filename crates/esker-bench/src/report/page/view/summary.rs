//! Who is ahead, by how much, and where not.
//!
//! Losses come first: they are what a reader has to know before choosing an engine, and what its
//! developers have to improve.

use super::parts::{Place, mark, median, scrolling};
use crate::report::page::figure::{COMPARED, Mark, Measure, Verdict};
use crate::report::page::group::{Group, Workload};
use crate::report::page::outcome::{Outcome, Score, outcomes, shown, speed, verdict};
use crate::report::page::words;
use maud::{Markup, html};

/// The whole section; nothing where there is nothing to compare with.
pub fn section(place: &Place, group: &Group) -> Markup {
    if !group.compares() {
        return Markup::default();
    }
    let ours = &group.columns[0].label;
    let speeds = outcomes(group, speed);
    html! {
        section aria-labelledby=(place.id("summary")) data-column="0" {
            h3 id=(place.id("summary")) { "Summary" }
            (score(ours, &speeds))
            (behind(group, ours, &speeds))
            (costs_more(group))
            h4 { "Speed" }
            p {
                "Each ratio says how many times as fast " b { (ours) } " is: its operations a \
                 second divided by those of the engine at the head of the column (for a \
                 single call on the database, the other's time divided by its own; where the same rate \
                 was due for all, the other's 99th percentile of latency divided by its own). "
                b { "Above 1 is better for " (ours) "." }
                " A " b { "tie" } " is a difference of medians that is not larger than the \
                 wider of both spreads (highest less lowest round), or rounds that overlap; \
                 nobody has won it."
            }
            @if counted(&speeds).unlike > 0 {
                p {
                    "A cell marked " b { "other work" } " is not compared: one of both engines \
                     wrote in batches, because its single writes are not cheap."
                }
            }
            (table("Speed", group, speed))
            (yardsticks(group))
            h4 { "What it costs" }
            p {
                "Of a cost, less is better. The ratio is the other engine's cost divided by \
                 that of " b { (ours) } ", so that here too above 1 is better for " (ours) "."
            }
            @for measure in COMPARED { (cost(group, measure)) }
        }
    }
}

fn counted(outcomes: &[Outcome<'_>]) -> Score {
    Score::of(outcomes.iter().map(|outcome| outcome.verdict.mark))
}

fn score(ours: &str, outcomes: &[Outcome<'_>]) -> Markup {
    let score = counted(outcomes);
    let parts = [
        (score.wins, "wins", Mark::Win),
        (score.losses, "losses", Mark::Loss),
        (score.ties, "ties", Mark::Tie),
        (score.once, "in one round only", Mark::Once),
    ];
    html! {
        p {
            "In speed, " b { (ours) } " has " (score.words()) " of "
            (words::count(score.total(), "comparison", "comparisons")) "."
        }
        ul.score {
            @for (number, word, kind) in parts.into_iter().filter(|(number, _, kind)| *number > 0 || *kind != Mark::Once) {
                li class=(kind.word().replace("one round", "once")) {
                    span.sign aria-hidden="true" { (kind.sign()) }
                    b { (number) } " " (word)
                }
            }
        }
    }
}

/// What costs more with ours than with another engine, and where it is worst.
fn costs_more(group: &Group) -> Markup {
    let measures = COMPARED.into_iter().filter_map(|measure| {
        let all = outcomes(group, |_| measure);
        let losses = counted(&all).losses;
        let lost = all.iter().filter(|outcome| outcome.verdict.mark == Mark::Loss);
        let worst = lost.min_by(|a, b| a.share().total_cmp(&b.share()))?;
        let worst = format!(
            "{} against {} ({})",
            worst.workload.title(),
            group.columns[worst.column].label,
            worst.verdict.ratio.map_or("no ratio".into(), |r| format!("ratio {}", words::ratio(r)))
        );
        Some((measure, losses, all.len(), worst))
    });
    let measures: Vec<_> = measures.collect();
    html! {
        @if !measures.is_empty() {
            h4 { "What costs more with " (group.columns[0].label) }
            ul.losses {
                @for (measure, losses, all, worst) in measures {
                    li {
                        b { (measure.name()) } ": behind in " (losses) " of "
                        (words::count(all, "comparison", "comparisons")) ", most in " (worst) "."
                    }
                }
            }
        }
    }
}

/// The losses, the worst first.
fn behind(group: &Group, ours: &str, outcomes: &[Outcome<'_>]) -> Markup {
    let mut losses: Vec<&Outcome<'_>> =
        outcomes.iter().filter(|outcome| outcome.verdict.mark == Mark::Loss).collect();
    losses.sort_by(|a, b| a.share().total_cmp(&b.share()));
    html! {
        @if losses.is_empty() {
            p { "In speed, " b { (ours) } " is behind nowhere by more than the spread." }
        } @else {
            h4 { "Where " (ours) " is behind" }
            ul.losses {
                @for loss in losses {
                    li data-column=(loss.column) {
                        b { (loss.workload.title()) } ": " (group.columns[loss.column].label)
                        @match loss.verdict.ratio {
                            Some(ratio) => {
                                " is " (words::ratio(1.0 / ratio).replace('×', " times"))
                                " as fast (ratio " (words::ratio(ratio)) ")."
                            }
                            None => { " is faster; one of both figures is zero." }
                        }
                    }
                }
            }
        }
    }
}

fn cost(group: &Group, measure: Measure) -> Markup {
    let all = outcomes(group, |_| measure);
    html! {
        @if !all.is_empty() {
            details {
                summary { b { (measure.name()) } ": " (counted(&all).words()) }
                p { (measure.about()) }
                (table(measure.name(), group, |_| measure))
            }
        }
    }
}

fn yardsticks(group: &Group) -> Markup {
    let names: Vec<String> = group
        .columns
        .iter()
        .filter(|column| column.is_yardstick())
        .map(|column| column.label.clone())
        .collect();
    html! {
        @if !names.is_empty() {
            p.note {
                (words::listed(&names)) (if names.len() == 1 { " is no store" } else { " are no stores" })
                ": nothing is kept on disk. Such columns show what the harness itself costs; they \
                 are not counted above."
            }
        }
    }
}

fn table(name: &str, group: &Group, of: impl Fn(&Workload) -> Measure) -> Markup {
    let ours = &group.columns[0].label;
    let body = html! {
        table.summary data-measure=(name) {
            caption { (name) ": ratios of " (ours) " to each other engine" }
            thead {
                tr {
                    th scope="col" { "Workload" }
                    th scope="col" { (ours) }
                    @for (place, column) in group.columns.iter().enumerate().skip(1) {
                        th scope="col" data-column=(place) { "against " (column.label) }
                    }
                }
            }
            tbody {
                @for (_, workload) in shown(group) {
                    @let measure = of(workload);
                    tr data-workload=(workload.title()) {
                        th scope="row" { (workload.title()) }
                        td { (median(measure, &workload.rounds[0])) }
                        @for (column, engine) in group.columns.iter().enumerate().skip(1) {
                            td data-engine=(engine.engine) data-column=(column) {
                                @match verdict(measure, workload, column) {
                                    Some(verdict) => (cell(measure, workload, column, verdict)),
                                    None => { span.absent { "not measured" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    scrolling(&format!("{name}: table of ratios"), &body)
}

fn cell(measure: Measure, workload: &Workload, column: usize, verdict: Verdict) -> Markup {
    html! {
        @match verdict.ratio {
            _ if verdict.mark == Mark::Unlike => {}
            Some(ratio) => { data.ratio value=(ratio) { (words::ratio(ratio)) } " " }
            None => { span.absent { "no ratio " } }
        }
        (mark(verdict.mark))
        span.theirs { (median(measure, &workload.rounds[column])) }
    }
}
