//! `esker checkpoint`: copies a database into another directory.

use crate::failure::Failure;
use crate::flags::{Target, WriteFlags};
use crate::output;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Copies a database into another directory, by hard links where possible
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  esker checkpoint DIR --to NEW")]
pub struct CheckpointArgs {
    #[command(flatten)]
    target: Target,
    /// The new database's directory, which must not exist
    #[arg(long, value_name = "NEW")]
    to: PathBuf,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs the command.
pub fn run(args: &CheckpointArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_to_write(&args.write, false)?;
    let made = db.checkpoint(&args.to);
    let closed = db.close();
    made?;
    closed?;
    if args.target.json {
        output::json_line(out, &json!({ "to": args.to.display().to_string() }))?;
    }
    Ok(())
}
