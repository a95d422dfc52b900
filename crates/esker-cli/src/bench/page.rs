//! `esker bench report`, and the files that a run leaves: reports as JSON, and as a page for a
//! browser.
//!
//! A page of reports is made before its file is touched, so that wrong input never destroys an
//! older page. Files for a report are created before the measurement: otherwise hours of it would
//! be lost if the directory did not exist.

use super::args::BenchFlags;
use super::output::{create, json, print};
use esker_bench::report::page::{self, Input, Merge, PageError};
use esker_bench::{Error, Report, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The page's file if none is named.
const PAGE: &str = "report.html";

/// Make one HTML page of reports that `esker bench --json` wrote
///
/// The page needs no network and no other file. --tables writes the same comparisons as Markdown beside it. Reports with the same machine and settings are put
/// side by side, and rounds of the same engine, version and engine settings are counted together,
/// from all files. Other reports get a separate comparison. Exit code: 0, 1 if a file is unreadable
/// or no report, 2 for a command line that makes no sense, or a baseline that was measured under other
/// conditions than every report.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PageArgs {
    /// Reports as JSON
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Where to write it (default: report.html; tables go to standard output)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Make tables in Markdown instead, for a document: speed, losses and costs
    #[arg(long)]
    pub markdown: bool,
    /// Write the tables in Markdown too, as a document of its own
    #[arg(long, value_name = "FILE", conflicts_with = "markdown")]
    pub tables: Option<PathBuf>,
    /// Keep the engines of each file apart, to compare a build with an earlier one of the same
    /// version
    #[arg(long)]
    pub by_file: bool,
    /// An earlier report: the page shows how each engine has changed since (may be repeated)
    #[arg(long, value_name = "FILE", conflicts_with = "markdown")]
    pub baseline: Vec<PathBuf>,
}

/// Writes the page.
pub fn write(args: &PageArgs) -> Result<()> {
    let inputs = page::read(&args.files).map_err(PageError::classed)?;
    let merge = Merge { by_file: args.by_file };
    let text = if args.markdown {
        page::markdown(&inputs, merge)
    } else {
        let baseline = page::read(&args.baseline).map_err(PageError::classed)?;
        page::render_since(&inputs, &baseline, merge)
    };
    let text = text.map_err(PageError::classed)?;
    if args.out.is_none() && args.markdown {
        return print(&text);
    }
    let out = args.out.as_deref().unwrap_or(Path::new(PAGE));
    let tables = args.tables.as_deref().map(|path| {
        let tables = page::document(&inputs, merge, link(path, out).as_deref());
        Ok((path, tables.map_err(PageError::classed)?))
    });
    let tables = tables.transpose()?;
    let save = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| Error::io("write", path, &error))
    };
    save(out, text)?;
    tables.map_or(Ok(()), |(path, text)| save(path, text))
}

/// How a document refers to a page in the same directory; pages elsewhere may move without it.
fn link(from: &Path, page: &Path) -> Option<String> {
    let name = page.file_name()?.to_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (from.parent() == page.parent() && name.chars().all(plain)).then(|| name.to_owned())
}

/// The files that a run leaves.
pub struct Outputs<'a> {
    json: Option<(&'a Path, File)>,
    page: Option<(&'a Path, File)>,
}

impl<'a> Outputs<'a> {
    /// Makes the files that were asked for.
    pub fn open(flags: &'a BenchFlags) -> Result<Self> {
        let made = |path: &'a Option<PathBuf>| {
            path.as_deref().map(|path| Ok((path, create(path)?))).transpose()
        };
        Ok(Self { json: made(&flags.out)?, page: made(&flags.page)? })
    }

    /// Writes them.
    pub fn write(self, report: &Report) -> Result<()> {
        if self.json.is_none() && self.page.is_none() {
            return Ok(());
        }
        let text = json(report)?;
        fill(self.json, &text)?;
        // Of a comparison that was stopped before anything was finished there is nothing to show.
        let nothing = report.runs.iter().all(|run| run.workloads.is_empty());
        if self.page.is_none() || nothing {
            return Ok(());
        }
        let document = page::parse("the report", text.as_bytes()).map_err(PageError::classed)?;
        let inputs = [Input { file: "this run".into(), document }];
        let page = page::render(&inputs, Merge::default()).map_err(PageError::classed)?;
        fill(self.page, &page)
    }
}

fn fill(file: Option<(&Path, File)>, text: &str) -> Result<()> {
    let Some((path, mut file)) = file else { return Ok(()) };
    file.write_all(text.as_bytes()).map_err(|error| Error::io("write", path, &error))
}
