//! `esker scan`: prints entries in key order.

use crate::failure::Failure;
use crate::flags::{Bytes, DataTarget, KeyspaceFlag, RangeFlags, ShowFlags, bytes};
use crate::output;
use clap::Args;
use esker::Iter;
use std::io::Write;

/// Prints entries in key order, one per line
#[derive(Debug, Args)]
#[command(after_help = "Lines are `KEY VALUE`, with --json objects. Printable text is printed as \
    such, between double quotes where it has spaces or could be mistaken for something else; what is \
    not is hexadecimal after 0x. Standard error says if there is no entry at all.\n\nExample:\n  \
    esker scan DIR --from user:1 --to user:2 --limit 10")]
pub struct ScanArgs {
    #[command(flatten)]
    target: DataTarget,
    #[command(flatten)]
    range: RangeFlags,
    /// Only keys with this prefix
    #[arg(long, value_parser = bytes, conflicts_with_all = ["from", "to"])]
    prefix: Option<Bytes>,
    /// At most this many entries
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Go from the last key to the first
    #[arg(long)]
    reverse: bool,
    #[command(flatten)]
    keyspace: KeyspaceFlag,
    #[command(flatten)]
    show: ShowFlags,
}

/// Runs the command.
pub fn run(args: &ScanArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_read_only()?;
    let keyspace = args.keyspace.existing(&db)?;
    let iter = match &args.prefix {
        Some(prefix) => keyspace.prefix(&prefix.0)?,
        None => keyspace.range(args.range.bounds())?,
    };
    if print(iter, args, out)? == 0
        && let Some(empty) = output::emptiness(&db, &keyspace)
    {
        output::warn(&empty);
    }
    db.close()?;
    Ok(())
}

/// Prints what was asked for; returns how many entries that are.
fn print(mut iter: Iter, args: &ScanArgs, out: &mut impl Write) -> Result<u64, Failure> {
    let encoding = args.show.encoding();
    let mut printed = 0;
    while printed < args.limit.unwrap_or(u64::MAX) {
        let entry = if args.reverse { iter.next_back_entry()? } else { iter.next_entry()? };
        let Some((key, value)) = entry else { break };
        if args.target.json() {
            output::json_line(out, &output::entry_json(key, value, encoding))?;
        } else {
            writeln!(out, "{} {}", encoding.word(key), encoding.word(value))?;
        }
        printed += 1;
    }
    Ok(printed)
}
