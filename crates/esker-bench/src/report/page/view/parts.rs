//! Parts that several sections of the page use: names of elements, marks, pictures, and boxes that
//! scroll.
//!
//! No part depends on a section. In all sections, whatever belongs to one engine has the engine's
//! column as `data-column`: the page's script hides these elements.

use crate::report::page::chart::{Picture, WIDTH};
use crate::report::page::error::PageError;
use crate::report::page::figure::{Mark, Measure, Spread, Verdict};
use crate::report::page::input::Step;
use crate::report::page::ratios::{Row, Scale, panel};
use crate::report::page::words;
use maud::{Markup, PreEscaped, html};

/// Which of several comparisons.
pub struct Place {
    pub number: usize,
    pub of: usize,
}

impl Place {
    /// A name for an element that no other comparison uses.
    pub fn id(&self, rest: &str) -> String {
        format!("c{}-{rest}", self.number)
    }
}

/// A mark as sign and word: neither needs a colour to be understood.
pub fn mark(mark: Mark) -> Markup {
    let class = match mark {
        Mark::Win => "mark win",
        Mark::Loss => "mark loss",
        Mark::Tie => "mark tie",
        Mark::Once | Mark::Unlike => "mark once",
    };
    html! {
        span class=(class) { span aria-hidden="true" { (mark.sign()) " " } (mark.word()) }
    }
}

/// A box in which a wide table scrolls by itself; the keyboard reaches it.
pub fn scrolling(label: &str, table: &Markup) -> Markup {
    html! {
        div.scroll role="region" aria-label=(label) tabindex="0" { (table) }
    }
}

/// A picture with its name and its description.
pub fn drawn(id: &str, title: &str, desc: &str, picture: &Picture) -> Markup {
    html! {
        svg role="img" viewBox={ "0 0 " (WIDTH) " " (picture.height) }
            aria-labelledby={ (id) "-t" } aria-describedby={ (id) "-d" } {
            title id={ (id) "-t" } { (title) }
            desc id={ (id) "-d" } { (desc) }
            (PreEscaped(&picture.content))
        }
    }
}

/// The median of some rounds with its unit.
pub fn median(measure: Measure, rounds: &[Step]) -> Markup {
    html! {
        @match Spread::of(measure, rounds) {
            Some(spread) => {
                data.figure value=(spread.median) { (words::with_unit(measure, spread.median)) }
            }
            None => { span.absent { "not measured" } }
        }
    }
}

/// A picture of ratios with its caption.
pub fn ratios(
    id: &str,
    title: &str,
    about: &str,
    caption: &Markup,
    rows: &[Row<'_>],
    scale: &Scale,
) -> Result<Markup, PageError> {
    let said = rows.iter().map(|row| {
        let Verdict { range: (worst, best), mark, .. } = row.verdict;
        let known = worst.is_finite() && best.is_finite() && mark != Mark::Once;
        let range = if known && mark != Mark::Unlike {
            format!(" ({} to {})", words::ratio(worst), words::ratio(best))
        } else {
            String::new()
        };
        format!("{}: {}{range}.", row.label, row.text())
    });
    let desc = format!("{about} {}", said.collect::<Vec<_>>().join(" "));
    Ok(html! {
        figure {
            figcaption { (caption) }
            (drawn(id, title, &desc, &panel(rows, scale)?))
        }
    })
}

/// What the signs of these marks mean.
pub fn signs(marks: &[Mark]) -> Markup {
    let known = [
        (Mark::Win, "better by more than the spread, drawn as a triangle that points up"),
        (Mark::Loss, "worse by more than the spread, drawn as a triangle that points down"),
        (Mark::Tie, "no difference beyond the spread, drawn as a square"),
        (Mark::Once, "the spread is not known, drawn as a ring"),
        (Mark::Unlike, "not compared: one of both wrote in batches"),
    ];
    html! {
        ul.signs {
            @for (mark, about) in known.into_iter().filter(|(mark, _)| marks.contains(mark)) {
                li { (self::mark(mark)) " " (about) }
            }
        }
    }
}
