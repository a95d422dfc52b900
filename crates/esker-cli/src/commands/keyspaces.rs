//! `esker keyspaces`: prints the names of the keyspaces.

use crate::failure::Failure;
use crate::flags::Target;
use crate::output;
use clap::Args;
use serde_json::json;
use std::io::Write;

/// Prints the names of all keyspaces
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  esker keyspaces DIR")]
pub struct KeyspacesArgs {
    #[command(flatten)]
    target: Target,
}

/// Runs the command.
pub fn run(args: &KeyspacesArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_read_only()?;
    let names = db.keyspaces()?;
    db.close()?;
    if args.target.json {
        output::json_line(out, &json!(names))?;
        return Ok(());
    }
    for name in names {
        // A name is any UTF-8: one that could break the line is shown escaped.
        writeln!(out, "{}", name.replace(|c: char| c.is_control(), "\u{fffd}"))?;
    }
    Ok(())
}
