//! Makes a page, or tables for a document, of reports.
//!
//! Both group the reports first, so that only figures that may be compared stand side by side.

use super::baseline::find;
use super::error::PageError;
use super::group::{Merge, distinct, group};
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

/// Makes the same tables as a document of its own, with a title. `page` is the name of a file with the page
/// of the same reports, to which the document then refers.
///
/// # Errors
///
/// Those of [`render`].
pub fn document(inputs: &[Input], merge: Merge, page: Option<&str>) -> Result<String, PageError> {
    Ok(super::markdown::document(&group(inputs, merge)?, page))
}

/// Makes a page of reports.
///
/// # Errors
///
/// [`PageError::Empty`] without a report, [`PageError::Twice`] if two are the same.
pub fn render(inputs: &[Input], merge: Merge) -> Result<String, PageError> {
    render_since(inputs, &[], merge)
}

/// Makes a page of reports that also shows what has changed since earlier ones.
///
/// # Errors
///
/// Those of [`render`], and [`PageError::OtherConditions`] if nothing was measured as it was then.
pub fn render_since(
    inputs: &[Input],
    baseline: &[Input],
    merge: Merge,
) -> Result<String, PageError> {
    let groups = group(inputs, merge)?;
    distinct(inputs.iter().chain(baseline))?;
    let since = find(&groups, baseline)?;
    view::page(&groups, &since)
}
