//! `esker keyspaces`: prints the names of the keyspaces.

use crate::failure::Failure;
use crate::flags::DataTarget;
use crate::output;
use clap::Args;
use esker_port::word;
use serde_json::json;
use std::io::Write;

/// Prints the names of all keyspaces
#[derive(Debug, Args)]
#[command(
    after_help = "Names are printed as keys are, and --keyspace takes them so.\n\nExample:\n  \
    esker keyspaces DIR"
)]
pub struct KeyspacesArgs {
    #[command(flatten)]
    target: DataTarget,
}

/// Runs the command.
pub fn run(args: &KeyspacesArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_read_only()?;
    let names = db.keyspaces()?;
    db.close()?;
    if args.target.json() {
        output::json_line(out, &json!(names))?;
        return Ok(());
    }
    for name in names {
        writeln!(out, "{}", word::name(&name))?;
    }
    Ok(())
}
