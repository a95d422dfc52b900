//! The reference of metrics in `docs/operations.md`, generated from the engine's table of metrics.
//!
//! The table is Rust code of the engine, so a test of the engine makes the text and compares it with
//! the one that is checked in. The same test writes it when this chore asks for that.

use crate::programs::{call, cargo};
use crate::workspace::Result;
use std::path::Path;

const TEST: &str = "operations::the_reference_of_metrics_is_what_the_table_says";

/// Writes the reference, or only compares it.
pub(crate) fn run(workspace: &Path, check: bool) -> Result<()> {
    let mut command = cargo();
    command.current_dir(workspace);
    command.args([
        "test",
        "--quiet",
        "--package",
        "esker",
        "--test",
        "suite",
        "--",
        "--exact",
        TEST,
    ]);
    if !check {
        command.env("ESKER_WRITE_METRICS", "1");
    }
    call(&mut command)
}
