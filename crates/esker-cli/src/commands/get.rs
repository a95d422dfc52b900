//! `esker get`: prints one value.

use crate::failure::Failure;
use crate::flags::{Bytes, DataTarget, KeyspaceFlag, ShowFlags, bytes};
use crate::output;
use clap::Args;
use esker_port::word::{self, Encoding};
use serde_json::json;
use std::io::{self, Write};

/// Prints the value of a key
#[derive(Debug, Args)]
#[command(after_help = "A value that is printable text is printed as such, between double quotes \
    where it could be mistaken for something else; what is not is printed in hexadecimal after 0x. \
    --raw prints its bytes. A key that is not there: exit code 1.\n\nExample:\n  \
    esker get DIR user:1")]
pub struct GetArgs {
    #[command(flatten)]
    target: DataTarget,
    /// The key; 0x… is hexadecimal
    #[arg(value_parser = bytes)]
    key: Bytes,
    #[command(flatten)]
    keyspace: KeyspaceFlag,
    /// Print the value's bytes and nothing else
    #[arg(long, conflicts_with_all = ["json", "hex", "base64"])]
    raw: bool,
    #[command(flatten)]
    show: ShowFlags,
}

/// Runs the command.
pub fn run(args: &GetArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_read_only()?;
    let (key, encoding) = (&args.key.0, args.show.encoding());
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
        Some(value) if args.target.json() => {
            output::json_line(out, &output::entry_json(key, value, encoding))?;
        }
        Some(value) => writeln!(out, "{}", encoding.word(value))?,
        None => {
            if args.target.json() {
                let key = output::bytes_json(key, encoding);
                output::json_line(out, &json!({ "key": key, "value": null }))?;
            }
            let key = Encoding::Text.word(key);
            let remedy = match output::emptiness(&db, &keyspace) {
                Some(empty) => empty,
                None => "`esker scan` lists keys".to_owned(),
            };
            let keyspace = word::name(&args.keyspace.keyspace);
            return Err(Failure::Negative(format!(
                "key not found: {key} is not in keyspace {keyspace}: {remedy}"
            )));
        }
    }
    db.close()?;
    Ok(())
}
