//! Parts that several sections of the page use: names of elements, marks, and boxes that scroll.
//!
//! No part depends on a section.

use crate::report::page::figure::Mark;
use maud::{Markup, html};

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
