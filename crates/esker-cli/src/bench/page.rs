//! `esker bench report`: reports as a page for a browser.
//!
//! The page is made before its file is touched, so that wrong input never costs an older page.

use esker_bench::page::{self, Merge, PageError};
use esker_bench::{Error, Result};
use std::fs;
use std::path::PathBuf;

/// Make one HTML page of reports that `esker bench --json` wrote
///
/// The page holds everything it needs: no network, no other file. Reports that agree on machine and
/// settings are put side by side, and rounds of the same engine, version and engine settings are
/// counted together, whichever file they come from. What was measured differently stands in a
/// comparison of its own. Exit code: 0, 1 if a file is unreadable or no report, 2 for a command
/// line that makes no sense.
#[derive(Debug, Clone, clap::Args)]
pub struct PageArgs {
    /// Reports as JSON
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Where to write the page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub out: PathBuf,
    /// Keep the engines of each file apart, to compare a build with an earlier one of the same version
    #[arg(long)]
    pub by_file: bool,
}

/// Writes the page.
pub fn write(args: &PageArgs) -> Result<()> {
    let inputs = page::read(&args.files).map_err(PageError::classed)?;
    let merge = Merge { by_file: args.by_file };
    let text = page::render(&inputs, merge).map_err(PageError::classed)?;
    fs::write(&args.out, text).map_err(|error| Error::io("write", &args.out, &error))
}
