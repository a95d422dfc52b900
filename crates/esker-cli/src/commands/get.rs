//! `esker get`: prints one value.

use crate::failure::Failure;
use crate::flags::{Bytes, KeyspaceFlag, Target, key};
use crate::output;
use clap::Args;
use esker_port::token;
use serde_json::json;
use std::io::{self, Write};

/// Prints the value of a key
#[derive(Debug, Args)]
#[command(after_help = "A value that is not plain text is printed in hexadecimal after 0x; --raw \
    prints its bytes. A key that is not there: exit code 1.\n\nExample:\n  esker get DIR user:1")]
pub struct GetArgs {
    #[command(flatten)]
    target: Target,
    /// The key; 0x… is hexadecimal
    #[arg(value_parser = key)]
    key: Bytes,
    #[command(flatten)]
    keyspace: KeyspaceFlag,
    /// Print the value's bytes and nothing else
    #[arg(long, conflicts_with = "json")]
    raw: bool,
}

/// Runs the command.
pub fn run(args: &GetArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_read_only()?;
    let key = &args.key.0;
    let keyspace = args.keyspace.existing(&db)?;
    if args.raw
        && let Some(mut reader) = keyspace.get_reader(key)?
    {
        // What is in pieces is never in memory as a whole.
        io::copy(&mut reader, out)?;
        drop((reader, keyspace));
        return Ok(db.close()?);
    }
    match &keyspace.get(key)? {
        Some(value) if args.target.json => output::json_line(out, &output::entry_json(key, value))?,
        Some(value) => writeln!(out, "{}", token::encode(value))?,
        None => {
            let key = token::encode(key);
            if args.target.json {
                output::json_line(out, &json!({ "key": key, "value": null }))?;
            }
            let keyspace = &args.keyspace.keyspace;
            return Err(Failure::Negative(format!(
                "key not found: {key} is not in keyspace {keyspace:?}: `esker scan` lists keys"
            )));
        }
    }
    db.close()?;
    Ok(())
}
