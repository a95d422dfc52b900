//! `esker put`: sets one key.

use crate::failure::Failure;
use crate::flags::{Bytes, DataTarget, KeyspaceFlag, WriteFlags, bytes, size, time_to_live};
use crate::output;
use clap::Args;
use esker::internals::base::limits::VALUE_BYTES_MAX;
use esker::{Batch, Durability, Error, Keyspace};
use esker_port::word::{self, Encoding};
use serde_json::json;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Sets a key to a value; makes the database and the keyspace if they are missing
#[derive(Debug, Args)]
#[command(
    after_help = "A value from --file may have up to 1 GiB, whatever the memory: it is written in \
    pieces, and is on disk when the command ends. With --ttl it is in memory as a whole, and may have \
    up to an eighth of the memory budget.\n\nExamples:\n  esker put DIR user:1 Ada --durability disk\n  \
    esker put DIR session:7 open --ttl 90s\n  esker put DIR disk.img --file disk.img\n  \
    tar c . | esker put DIR backup --file -"
)]
pub struct PutArgs {
    #[command(flatten)]
    target: DataTarget,
    /// The key; 0x… is hexadecimal
    #[arg(value_parser = bytes)]
    key: Bytes,
    /// The value; 0x… is hexadecimal
    #[arg(
        value_parser = bytes,
        allow_negative_numbers = true,
        required_unless_present_any = ["file", "make_up"]
    )]
    value: Option<Bytes>,
    /// Take the bytes of a file as the value; - is the standard input
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    file: Option<PathBuf>,
    /// Make up a value of this many bytes, which follow from the key
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["value", "file"])]
    make_up: Option<u64>,
    /// Let the entry expire after this time, such as 90s, 15m, 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = time_to_live)]
    ttl: Option<Duration>,
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
    let value = match (&args.value, args.make_up) {
        (_, Some(len)) => word::make_up(len, key)?,
        (Some(value), None) => value.0.clone(),
        (None, None) => Vec::new(),
    };
    let db = args.target.open_to_write(&args.write, true)?;
    let keyspace = db.keyspace(&args.keyspace.keyspace)?;
    let position = db.write(batch(args, &keyspace, &value))?;
    db.close()?;
    if args.target.json() {
        output::json_line(out, &json!({ "position": position }))?;
    } else {
        tell(args, value.len() as u64);
    }
    Ok(())
}

/// Sets the key to what a file holds.
fn put_file(args: &PutArgs, path: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let failed = |operation| move |error: io::Error| Error::io(operation, path, error);
    let mut source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(failed("open"))?)
    };
    // A value that is written in pieces cannot expire by itself, so this one is written as a whole.
    let whole = match args.ttl {
        None => None,
        Some(_) => {
            let mut value = Vec::new();
            let mut most = (&mut source).take(VALUE_BYTES_MAX + 1);
            most.read_to_end(&mut value).map_err(failed("read"))?;
            Some(value)
        }
    };
    let db = args.target.open_to_write(&args.write, true)?;
    let keyspace = db.keyspace(&args.keyspace.keyspace)?;
    let bytes = match whole {
        None => keyspace.insert_reader(&args.key.0, source)?,
        Some(value) => {
            db.write_with(batch(args, &keyspace, &value), Durability::Disk)?;
            value.len() as u64
        }
    };
    db.close()?;
    if args.target.json() {
        output::json_line(out, &json!({ "bytes": bytes }))?;
    } else {
        tell(args, bytes);
    }
    Ok(())
}

/// The entry, with its time to live if it has one.
fn batch(args: &PutArgs, keyspace: &Keyspace, value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    match args.ttl {
        None => batch.insert(keyspace, &args.key.0, value),
        Some(ttl) => batch.insert_with_ttl(keyspace, &args.key.0, value, ttl),
    }
    batch
}

fn tell(args: &PutArgs, bytes: u64) {
    output::tell(&format!("set {} to {bytes} bytes", Encoding::Text.word(&args.key.0)));
}
