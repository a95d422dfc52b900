//! `esker del`: removes keys, all of them or none.

use crate::failure::Failure;
use crate::flags::{Bytes, DataTarget, KeyspaceFlag, WriteFlags, bytes};
use crate::output;
use clap::Args;
use esker::Batch;
use serde_json::json;
use std::io::Write;

/// Removes keys, in one atomic batch; keys that are not there are no error
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  esker del DIR user:1 user:2")]
pub struct DelArgs {
    #[command(flatten)]
    target: DataTarget,
    /// The keys; 0x… is hexadecimal
    #[arg(value_parser = bytes, required = true, value_name = "KEY")]
    keys: Vec<Bytes>,
    #[command(flatten)]
    keyspace: KeyspaceFlag,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs the command.
pub fn run(args: &DelArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_to_write(&args.write, false)?;
    let keyspace = args.keyspace.existing(&db)?;
    let mut batch = Batch::new();
    for key in &args.keys {
        batch.remove(&keyspace, &key.0);
    }
    let position = db.write(batch)?;
    db.close()?;
    if args.target.json() {
        output::json_line(out, &json!({ "position": position }))?;
    } else {
        output::tell(&format!("removed {} keys, as far as they were there", args.keys.len()));
    }
    Ok(())
}
