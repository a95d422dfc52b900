//! `esker drop`: removes a keyspace with all that it holds.

use crate::failure::Failure;
use crate::flags::{DataTarget, WriteFlags, keyspace_name};
use crate::output;
use clap::Args;
use esker_port::word;
use serde_json::json;
use std::io::Write;

/// Removes a keyspace and all it holds, and says whether it was there
#[derive(Debug, Args)]
#[command(
    after_help = "A keyspace that is not there: exit code 1. The keyspace `default` cannot be \
    removed; `esker delrange --all` empties it.\n\nExample:\n  esker drop DIR users"
)]
pub struct DropArgs {
    #[command(flatten)]
    target: DataTarget,
    /// The keyspace's name
    #[arg(value_name = "KEYSPACE", value_parser = keyspace_name)]
    keyspace: String,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs the command.
pub fn run(args: &DropArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_to_write(&args.write, false)?;
    let dropped = db.drop_keyspace(&args.keyspace)?;
    db.close()?;
    let name = word::name(&args.keyspace);
    if args.target.json() {
        output::json_line(out, &json!({ "keyspace": args.keyspace, "dropped": dropped }))?;
    } else if dropped {
        writeln!(out, "dropped {name}")?;
    }
    match dropped {
        true => Ok(()),
        false => Err(Failure::Negative(format!(
            "there is no keyspace {name} in {}: `esker keyspaces` lists them",
            args.target.database.dir.display()
        ))),
    }
}
