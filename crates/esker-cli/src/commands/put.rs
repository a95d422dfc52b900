//! `esker put`: sets one key.

use crate::failure::Failure;
use crate::flags::{Bytes, KeyspaceFlag, Target, WriteFlags, key};
use crate::output;
use clap::Args;
use esker::Batch;
use esker_port::token;
use serde_json::json;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Sets a key to a value; makes the database and the keyspace if they are missing
#[derive(Debug, Args)]
#[command(
    after_help = "A value from --file may have up to 1 GiB, whatever the memory: it is written in \
    pieces, and is on disk when the command ends.\n\nExamples:\n  esker put DIR user:1 Ada --durability \
    disk\n  esker put DIR disk.img --file disk.img\n  tar c . | esker put DIR backup --file -"
)]
pub struct PutArgs {
    #[command(flatten)]
    target: Target,
    /// The key; 0x… is hexadecimal
    #[arg(value_parser = key)]
    key: Bytes,
    /// The value; 0x… is hexadecimal, #N makes up N bytes
    #[arg(required_unless_present = "file")]
    value: Option<String>,
    /// Take the bytes of a file as the value; - is the standard input
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    file: Option<PathBuf>,
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
    if let Some(path) = &args.file {
        return put_file(args, path, out);
    }
    let value = token::decode_value(args.value.as_deref().unwrap_or_default().as_bytes(), key)?;
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

/// Sets the key to what a file holds.
fn put_file(args: &PutArgs, path: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let opened = File::open(path);
        Box::new(opened.map_err(|error| esker::Error::io("open", path, error))?)
    };
    let db = args.target.open_to_write(&args.write, true)?;
    let bytes = db.keyspace(&args.keyspace.keyspace)?.insert_reader(&args.key.0, source)?;
    db.close()?;
    if args.target.json {
        output::json_line(out, &json!({ "bytes": bytes }))?;
    }
    Ok(())
}
