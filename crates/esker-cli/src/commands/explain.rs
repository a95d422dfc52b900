//! `esker explain`: does one operation and prints what it did.

use crate::failure::Failure;
use crate::flags::{Bytes, DataTarget, KeyspaceFlag, WriteFlags, bytes, size};
use crate::output;
use clap::{Args, Subcommand};
use esker::Explanation;
use esker_port::word;
use std::io::Write;
use std::ops::Bound;

/// Does one get, scan or put, and prints what it did and where its time went
#[derive(Debug, Args)]
#[command(
    after_help = "The command opens the database itself, so its caches are empty: a get reads \
    what a get of a running program may find in memory.\n\nExample:\n  esker explain DIR get user:1",
    mut_arg("json", |arg| arg.global(true)),
    mut_arg("branch", |arg| arg.global(true))
)]
pub struct ExplainArgs {
    #[command(flatten)]
    target: DataTarget,
    #[command(subcommand)]
    operation: Operation,
}

/// What is explained.
#[derive(Debug, Subcommand)]
enum Operation {
    /// Look a key up
    Get {
        /// The key; 0x… is hexadecimal
        #[arg(value_parser = bytes)]
        key: Bytes,
        #[command(flatten)]
        keyspace: KeyspaceFlag,
    },
    /// Walk over entries in key order
    Scan {
        /// The first key
        #[arg(value_parser = bytes)]
        from: Option<Bytes>,
        /// The key to stop before
        #[arg(value_parser = bytes)]
        to: Option<Bytes>,
        /// At most this many entries
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u64,
        #[command(flatten)]
        keyspace: KeyspaceFlag,
    },
    /// Set a key to a value: the write is done
    Put {
        /// The key; 0x… is hexadecimal
        #[arg(value_parser = bytes)]
        key: Bytes,
        /// The value; 0x… is hexadecimal
        #[arg(
            value_parser = bytes,
            allow_negative_numbers = true,
            required_unless_present = "make_up"
        )]
        value: Option<Bytes>,
        /// Make up a value of this many bytes, which follow from the key
        #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "value")]
        make_up: Option<u64>,
        #[command(flatten)]
        keyspace: KeyspaceFlag,
        #[command(flatten)]
        write: WriteFlags,
    },
}

/// Runs the command.
pub fn run(args: &ExplainArgs, out: &mut impl Write) -> Result<(), Failure> {
    let mut explanation = explain(args)?;
    if args.target.json() {
        output::json_line(out, &esker_json::explanation(&explanation))?;
    } else {
        explanation.keyspace = word::name(&explanation.keyspace);
        writeln!(out, "{explanation}")?;
    }
    Ok(())
}

fn explain(args: &ExplainArgs) -> Result<Explanation, Failure> {
    let (db, explanation) = match &args.operation {
        Operation::Get { key, keyspace } => {
            let db = args.target.open_read_only()?;
            let explanation = keyspace.existing(&db)?.explain_get(&key.0)?;
            (db, explanation)
        }
        Operation::Scan { from, to, limit, keyspace } => {
            let db = args.target.open_read_only()?;
            let from = from.clone().map_or(Bound::Unbounded, |key| Bound::Included(key.0));
            let to = to.clone().map_or(Bound::Unbounded, |key| Bound::Excluded(key.0));
            let explanation = keyspace.existing(&db)?.explain_scan((from, to), *limit)?;
            (db, explanation)
        }
        Operation::Put { key, value, make_up, keyspace, write } => {
            key.fits()?;
            let value = match (value, make_up) {
                (_, Some(len)) => word::make_up(*len, &key.0)?,
                (value, None) => value.clone().map(|value| value.0).unwrap_or_default(),
            };
            let db = args.target.open_to_write(write, false)?;
            let explanation = keyspace.existing(&db)?.explain_put(&key.0, value)?;
            (db, explanation)
        }
    };
    db.close()?;
    Ok(explanation)
}
