//! The whole document: head, contents, and one article for each comparison.
//!
//! The page has no script, and its content security policy allows none, nor anything from a network.

use super::parts::Place;
use super::{conditions, summary, workload};
use crate::report::page::error::PageError;
use crate::report::page::group::Group;
use crate::report::page::outcome::shown;
use crate::report::page::words;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("../style.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The whole page.
pub fn page(groups: &[Group]) -> Result<String, PageError> {
    let mut articles = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        articles.push(article(&Place { number: i + 1, of: groups.len() }, group, groups)?);
    }
    let names = engines(groups);
    let title = format!("Benchmark of {}", words::listed(&names));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
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
                        "Measured side by side by one harness: same keys, same values, same \
                         durability. Every figure is the median of its rounds, with the lowest \
                         and the highest round beside it."
                    }
                    (contents(groups))
                }
                main id="content" {
                    @for article in &articles { (article) }
                }
                footer {
                    p {
                        "Made by " code { "esker bench report" } ". The page holds everything it \
                         needs: it loads nothing and runs no script."
                    }
                }
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

fn contents(groups: &[Group]) -> Markup {
    html! {
        nav aria-label="Contents" {
            @for (i, group) in groups.iter().enumerate() {
                @let place = Place { number: i + 1, of: groups.len() };
                @if place.of > 1 { p { a href={ "#" (place.id("top")) } { (heading(&place, group)) } } }
                ul {
                    li { a href={ "#" (place.id("summary")) } { "Summary" } }
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
    let what = group.experiment.as_deref().unwrap_or("Comparison");
    if place.of == 1 { what.to_owned() } else { format!("{what} {} of {}", place.number, place.of) }
}

fn article(place: &Place, group: &Group, groups: &[Group]) -> Result<Markup, PageError> {
    let mut sections = Vec::new();
    for (w, workload) in shown(group) {
        sections.push(workload::section(place, group, w, workload)?);
    }
    Ok(html! {
        article aria-labelledby=(place.id("top")) {
            h2 id=(place.id("top")) { (heading(place, group)) }
            (conditions::short(group, groups))
            (conditions::warnings(group))
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
