//! `esker scan`: prints entries in key order.

use crate::failure::Failure;
use crate::flags::{Bytes, KeyspaceFlag, RangeFlags, Target, key};
use crate::output;
use clap::Args;
use esker::Iter;
use esker_port::token;
use std::io::Write;

/// Prints entries in key order, one per line
#[derive(Debug, Args)]
#[command(after_help = "Lines are `KEY VALUE`, with --json objects. What is not plain text is \
    hexadecimal after 0x.\n\nExample:\n  esker scan DIR --from user:1 --to user:2 --limit 10")]
pub struct ScanArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    range: RangeFlags,
    /// Only keys with this prefix
    #[arg(long, value_parser = key, conflicts_with_all = ["from", "to"])]
    prefix: Option<Bytes>,
    /// At most this many entries
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Go from the last key to the first
    #[arg(long)]
    reverse: bool,
    #[command(flatten)]
    keyspace: KeyspaceFlag,
}

/// Runs the command.
pub fn run(args: &ScanArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_read_only()?;
    let keyspace = args.keyspace.existing(&db)?;
    let iter = match &args.prefix {
        Some(prefix) => keyspace.prefix(&prefix.0)?,
        None => keyspace.range(args.range.bounds())?,
    };
    print(iter, args, out)?;
    db.close()?;
    Ok(())
}

fn print(mut iter: Iter, args: &ScanArgs, out: &mut impl Write) -> Result<(), Failure> {
    for _ in 0..args.limit.unwrap_or(u64::MAX) {
        let entry = if args.reverse { iter.next_back_entry()? } else { iter.next_entry()? };
        let Some((key, value)) = entry else { break };
        if args.target.json {
            output::json_line(out, &output::entry_json(key, value))?;
        } else {
            writeln!(out, "{} {}", token::encode(key), token::encode(value))?;
        }
    }
    Ok(())
}
