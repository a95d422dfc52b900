//! The whole document: head, contents, and one article for each comparison.
//!
//! The page has one script, and its content security policy allows no other, nor anything from a
//! network: the policy has the hash of the script's text, so a browser runs nothing that a report
//! might bring along.

use super::parts::Place;
use super::{change, choice, conditions, overview, summary, workload};
use crate::report::page::baseline::Baseline;
use crate::report::page::error::PageError;
use crate::report::page::group::Group;
use crate::report::page::outcome::shown;
use crate::report::page::words;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("../style.css");
const SCRIPT: &str = include_str!("../script.js");

/// What a browser may load and run.
fn policy() -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; \
         img-src data:; base-uri 'none'; form-action 'none'"
    )
}

/// The whole page: comparisons, and the baseline of each if it has one.
pub fn page(groups: &[Group], since: &[Option<Baseline>]) -> Result<String, PageError> {
    let mut articles = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let place = Place { number: i + 1, of: groups.len() };
        articles.push(article(&place, group, groups, since)?);
    }
    let side_by_side = groups.iter().any(Group::compares);
    let names = engines(groups);
    let title = format!("Benchmark of {}", words::listed(&names));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="color-scheme" content="light dark";
                meta name="generator" content="esker bench report";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to the figures" }
                header.top {
                    h1 { (title) }
                    p.lead {
                        @if side_by_side {
                            "Measured side by side by one harness: same keys, same values, same \
                             durability. "
                        }
                        "Every figure is the median of its rounds, with the lowest and the highest \
                         round beside it."
                    }
                    (contents(groups, since))
                }
                main id="content" {
                    @for article in &articles { (article) }
                }
                footer {
                    p {
                        "Made by " code { "esker bench report" } ". The page holds everything it \
                         needs and loads nothing."
                    }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(page.into_string())
}

/// The engines of all comparisons, each once.
fn engines(groups: &[Group]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in groups.iter().flat_map(|group| &group.columns) {
        if !names.contains(&column.label) {
            names.push(column.label.clone());
        }
    }
    names
}

fn contents(groups: &[Group], since: &[Option<Baseline>]) -> Markup {
    html! {
        nav aria-label="Contents" {
            @for (i, group) in groups.iter().enumerate() {
                @let place = Place { number: i + 1, of: groups.len() };
                @if place.of > 1 { p { a href={ "#" (place.id("top")) } { (heading(&place, group)) } } }
                ul data-comparison=(place.number) {
                    @if group.compares() {
                        li data-column="0" { a href={ "#" (place.id("overview")) } { "Overview" } }
                    }
                    @if since[i].is_some() {
                        li { a href={ "#" (place.id("change")) } { "Change against the baseline" } }
                    }
                    @if group.compares() {
                        li data-column="0" { a href={ "#" (place.id("summary")) } { "Summary" } }
                    }
                    @for (w, workload) in shown(group) {
                        li { a href={ "#" (place.id(&format!("w{w}"))) } { (workload.title()) } }
                    }
                    li { a href={ "#" (place.id("conditions")) } { "Conditions" } }
                }
            }
        }
    }
}

fn heading(place: &Place, group: &Group) -> String {
    let kind = if group.compares() { "Comparison" } else { "Measurement" };
    let what = group.experiment.as_deref().unwrap_or(kind);
    if place.of == 1 { what.to_owned() } else { format!("{what} {} of {}", place.number, place.of) }
}

fn article(
    place: &Place,
    group: &Group,
    groups: &[Group],
    since: &[Option<Baseline>],
) -> Result<Markup, PageError> {
    let mut sections = Vec::new();
    for (w, workload) in shown(group) {
        sections.push(workload::section(place, group, w, workload)?);
    }
    let change = match &since[place.number - 1] {
        Some(then) => change::section(place, group, then)?,
        // Another comparison of the page has one.
        None if since.iter().any(Option::is_some) => html! {
            p.note { "The baseline has nothing that was measured under these conditions." }
        },
        None => Markup::default(),
    };
    let overview = overview::section(place, group)?;
    Ok(html! {
        article aria-labelledby=(place.id("top")) data-comparison=(place.number) {
            h2 id=(place.id("top")) { (heading(place, group)) }
            (conditions::short(group, groups))
            (conditions::warnings(group))
            (choice::boxes(place, group))
            (overview)
            (change)
            (summary::section(place, group))
            h3 { "Workload by workload" }
            p {
                "A bar is the median round; its whisker reaches from the lowest to the highest. \
                 A line is the median round too, other rounds are drawn faintly."
            }
            @for section in &sections { (section) }
            (conditions::section(place, group))
        }
    })
}
