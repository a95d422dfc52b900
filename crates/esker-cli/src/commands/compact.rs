//! `esker compact`: compacts a database, a keyspace or a range of keys now.

use crate::failure::Failure;
use crate::flags::{KeyspaceFlag, RangeFlags, Target, WriteFlags};
use crate::output;
use clap::Args;
use std::io::Write;

/// Compacts everything in a keyspace, or a range of its keys, and frees dead space
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  esker compact DIR --from a --to b")]
pub struct CompactArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    range: RangeFlags,
    #[command(flatten)]
    keyspace: KeyspaceFlag,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs the command.
pub fn run(args: &CompactArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_to_write(&args.write, false)?;
    let keyspace = args.keyspace.existing(&db)?;
    if args.range.is_everything() {
        keyspace.compact()?;
    } else {
        keyspace.compact_range(args.range.bounds())?;
    }
    let stats = db.stats();
    db.close()?;
    if args.target.json {
        output::write_stats_json(out, stats)?;
    }
    Ok(())
}
