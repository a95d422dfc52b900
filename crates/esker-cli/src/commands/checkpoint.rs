//! `esker checkpoint`: copies a database into another directory.

use crate::failure::Failure;
use crate::flags::{Target, WriteFlags};
use crate::output;
use crate::progress::Spinner;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Copies a database into another directory, by hard links where possible
#[derive(Debug, Args)]
#[command(after_help = "The copy has the branches and named snapshots too.\n\nExample:\n  \
    esker checkpoint DIR --to NEW")]
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
    let spinner = Spinner::of_directory("copying", args.to.clone());
    let made = db.checkpoint(&args.to);
    let closed = db.close();
    drop(spinner);
    made?;
    closed?;
    let to = args.to.display().to_string();
    if args.target.json {
        output::json_line(out, &json!({ "to": to }))?;
    } else {
        output::tell(&format!("made a copy at {to}"));
    }
    Ok(())
}
