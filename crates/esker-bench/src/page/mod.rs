//! Reports as a page that a browser shows.
//!
//! [`read`] takes files that the benchmark wrote as JSON, [`render`] makes one HTML page of them that
//! needs nothing else: no network, no other file, no script. What may stand side by side is decided
//! by `group`, what is compared and who is ahead by `figure` and `outcome`; `chart` and `course` draw,
//! `view` puts it together. [`markdown`] makes tables for a document of the same comparisons.
//! Everything that comes from a file is escaped.

mod chart;
mod course;
mod error;
mod figure;
mod group;
mod input;
mod markdown;
mod outcome;
mod view;
mod words;

pub use error::PageError;
pub use group::Merge;
pub use input::{Input, parse, read};

/// Makes tables in Markdown of reports: speed and costs with ratios, and a list of all losses.
///
/// # Errors
///
/// Those of [`render`].
pub fn markdown(inputs: &[Input], merge: Merge) -> Result<String, PageError> {
    Ok(markdown::text(&group::group(inputs, merge)?))
}

/// Makes a page of reports.
///
/// # Errors
///
/// [`PageError::Empty`] without a report, [`PageError::Twice`] if two are the same.
pub fn render(inputs: &[Input], merge: Merge) -> Result<String, PageError> {
    view::page(&group::group(inputs, merge)?)
}

#[cfg(test)]
mod tests;
