//! What the commands of `esker bench` write: standard output, and files that are named on the command
//! line.
//!
//! A reader of standard output may go away; files must be there before a measurement begins.

use esker_bench::{Error, Report, Result};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Makes a file for results.
pub fn create(path: &Path) -> Result<fs::File> {
    fs::File::create(path).map_err(|e| Error::io("make", path, &e))
}

/// The report as one JSON object.
pub fn json(report: &Report) -> Result<String> {
    serde_json::to_string(report)
        .map_err(|error| Error::Failed(format!("cannot write the report as JSON: {error}")))
}

/// Prints to standard output. A reader that has gone away (`| head`) is not an error.
pub fn print(text: &str) -> Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
