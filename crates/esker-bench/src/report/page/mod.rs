//! Reports as a page that a browser shows.
//!
//! [`read`] takes files that the benchmark wrote as JSON, [`render()`] makes one HTML page of them that
//! needs nothing else: no network and no other file. [`render_since`] adds what has changed since a
//! baseline. What may stand side by side is decided by `group`, what an earlier report has of it by
//! `baseline`, what is compared and who is ahead by `figure` and `outcome`; `chart`, `course` and
//! `ratios` draw, `view` puts it together. [`markdown()`] makes tables for a document of the same
//! comparisons, [`document()`] a document of them. Everything that comes from a file is escaped.
//!
//! The page shows everything without a script. Its own, `script.js`, hides engines and sorts tables.
//! Pictures and tables are there already, so it only toggles classes, moves rows of pictures and puts rows
//! of tables in order. A library for tables would replace the last of these three, which takes forty
//! lines, and would have to be told which figure of a cell counts and that absent figures stand last; a
//! library for plotting would draw nothing without scripts. So there is none.

mod baseline;
mod chart;
mod course;
mod error;
mod figure;
mod group;
mod input;
mod markdown;
mod outcome;
mod ratios;
mod render;
mod view;
mod words;

pub use error::PageError;
pub use group::Merge;
pub use input::{Input, parse, read};
pub use render::{document, markdown, render, render_since};

#[cfg(test)]
mod tests;
