//! `esker put`: sets one key.

use crate::failure::Failure;
use crate::flags::{Bytes, KeyspaceFlag, Target, WriteFlags, key};
use crate::output;
use clap::Args;
use esker::Batch;
use esker_port::token;
use serde_json::json;
use std::io::Write;

/// Sets a key to a value; makes the database and the keyspace if they are missing
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  esker put DIR user:1 Ada --durability disk")]
pub struct PutArgs {
    #[command(flatten)]
    target: Target,
    /// The key; 0x… is hexadecimal
    #[arg(value_parser = key)]
    key: Bytes,
    /// The value; 0x… is hexadecimal, #N makes up N bytes
    value: String,
    #[command(flatten)]
    keyspace: KeyspaceFlag,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs the command.
pub fn run(args: &PutArgs, out: &mut impl Write) -> Result<(), Failure> {
    // Whatever can be refused is refused before a database is made.
    args.key.fits()?;
    let key = &args.key.0;
    let value = token::decode_value(args.value.as_bytes(), key)?;
    let db = args.target.open_to_write(&args.write, true)?;
    let keyspace = db.keyspace(&args.keyspace.keyspace)?;
    let mut batch = Batch::new();
    batch.insert(&keyspace, key, &value);
    let position = db.write(batch)?;
    db.close()?;
    if args.target.json {
        output::json_line(out, &json!({ "position": position }))?;
    }
    Ok(())
}
