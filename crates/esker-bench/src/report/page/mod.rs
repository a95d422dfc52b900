//! Reports as a page that a browser shows.
//!
//! [`read`] takes files that the benchmark wrote as JSON, [`render()`] makes one HTML page of them that
//! needs nothing else: no network, no other file, no script. What may stand side by side is decided
//! by `group`, what is compared and who is ahead by `figure` and `outcome`; `chart` and `course` draw,
//! `view` puts it together. [`markdown()`] makes tables for a document of the same comparisons.
//! Everything that comes from a file is escaped.

mod chart;
mod course;
mod error;
mod figure;
mod group;
mod input;
mod markdown;
mod outcome;
mod render;
mod view;
mod words;

pub use error::PageError;
pub use group::Merge;
pub use input::{Input, parse, read};
pub use render::{markdown, render};

#[cfg(test)]
mod tests;
