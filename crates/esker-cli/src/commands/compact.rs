//! `esker compact`: compacts a database, a keyspace or a range of keys now.

use crate::failure::Failure;
use crate::flags::{DataTarget, KeyspaceFlag, RangeFlags, WriteFlags};
use crate::output;
use crate::progress::Spinner;
use clap::Args;
use std::io::Write;

/// Compacts everything in a keyspace, or a range of its keys, and frees dead space
#[derive(Debug, Args)]
#[command(after_help = "With --json it prints the statistics afterwards.\n\nExample:\n  \
    esker compact DIR --from a --to b")]
pub struct CompactArgs {
    #[command(flatten)]
    target: DataTarget,
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
    let spinner = {
        let db = db.clone();
        Spinner::with_figure("compacting", move || megabytes(db.stats().written.compaction))
    };
    if args.range.is_everything() {
        keyspace.compact()?;
    } else {
        keyspace.compact_range(args.range.bounds())?;
    }
    drop(spinner);
    let stats = db.stats();
    db.close()?;
    if args.target.json() {
        output::write_stats_json(out, stats)?;
    } else {
        output::tell(&format!(
            "compacted: {}, and run files take {:.1} MB now",
            megabytes(stats.written.compaction),
            stats.data_file_bytes as f64 / 1e6
        ));
    }
    Ok(())
}

fn megabytes(written: u64) -> String {
    format!("{:.1} MB written", written as f64 / 1e6)
}
