//! `esker delrange`: removes a range of keys, at a cost that does not depend on how many there are.

use crate::failure::Failure;
use crate::flags::{Bytes, DataTarget, KeyspaceFlag, RangeFlags, WriteFlags, bytes};
use crate::output;
use clap::{ArgGroup, Args};
use esker::Batch;
use serde_json::json;
use std::io::Write;
use std::ops::Bound;

/// Removes all keys of a range, or all that have a prefix, atomically
#[derive(Debug, Args)]
#[command(
    after_help = "It takes no longer for many keys than for few. A range without keys is no \
    error. Everything in the keyspace is removed only with --all.\n\nExamples:\n  \
    esker delrange DIR --from log:2023 --to log:2024\n  esker delrange DIR --prefix session:"
)]
#[command(group = ArgGroup::new("keys").required(true).multiple(true).args(["from", "to", "prefix", "all"]))]
pub struct DelrangeArgs {
    #[command(flatten)]
    target: DataTarget,
    #[command(flatten)]
    range: RangeFlags,
    /// The keys with this prefix
    #[arg(long, value_parser = bytes, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    prefix: Option<Bytes>,
    /// All keys of the keyspace
    #[arg(long, conflicts_with_all = ["from", "to", "prefix"])]
    all: bool,
    #[command(flatten)]
    keyspace: KeyspaceFlag,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs the command.
pub fn run(args: &DelrangeArgs, out: &mut impl Write) -> Result<(), Failure> {
    let bounds = args.range.bounds();
    // An empty prefix is as much as --all, which has to be said, and so is an empty first key alone.
    let is_everything = match (&args.prefix, &bounds) {
        (Some(prefix), _) => prefix.0.is_empty(),
        (None, (Bound::Included(from), Bound::Unbounded)) => from.is_empty(),
        _ => false,
    };
    if is_everything && !args.all {
        let what = "these bounds are those of all keys: say --all to remove all of them";
        return Err(Failure::Usage(what.to_owned()));
    }
    let db = args.target.open_to_write(&args.write, false)?;
    let keyspace = args.keyspace.existing(&db)?;
    let mut batch = Batch::new();
    match &args.prefix {
        Some(prefix) => batch.remove_prefix(&keyspace, &prefix.0)?,
        None => batch.remove_range(&keyspace, bounds)?,
    }
    let position = db.write(batch)?;
    db.close()?;
    if args.target.json() {
        output::json_line(out, &json!({ "position": position }))?;
    } else {
        output::tell("removed the keys of the range");
    }
    Ok(())
}
