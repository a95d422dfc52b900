//! Makes a page, or tables for a document, of reports.
//!
//! Both group the reports first, so that only figures that may be compared stand side by side.

use super::error::PageError;
use super::group::{Merge, group};
use super::input::Input;
use super::view;

/// Makes tables in Markdown of reports: speed and costs with ratios, and a list of all losses.
///
/// # Errors
///
/// Those of [`render`].
pub fn markdown(inputs: &[Input], merge: Merge) -> Result<String, PageError> {
    Ok(super::markdown::text(&group(inputs, merge)?))
}

/// Makes a page of reports.
///
/// # Errors
///
/// [`PageError::Empty`] without a report, [`PageError::Twice`] if two are the same.
pub fn render(inputs: &[Input], merge: Merge) -> Result<String, PageError> {
    view::page(&group(inputs, merge)?)
}
