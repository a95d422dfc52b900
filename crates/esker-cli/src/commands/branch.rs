//! `esker branch`: lists, makes and drops branches and named snapshots.

use crate::failure::Failure;
use crate::flags::{Target, WriteFlags};
use crate::output;
use clap::{ArgGroup, Args};
use serde_json::json;
use std::io::Write;

/// Lists the branches and named snapshots of a database, makes one or drops one
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  esker branch DIR\n  esker branch DIR --make trial\n  \
    esker branch DIR --snapshot monday\n  esker branch DIR --drop trial")]
#[command(group = ArgGroup::new("what").args(["make", "snapshot", "drop"]))]
pub struct BranchArgs {
    #[command(flatten)]
    target: Target,
    /// Make a branch of this name
    #[arg(long, value_name = "NAME")]
    make: Option<String>,
    /// Keep the present state as a named snapshot of this name
    #[arg(long, value_name = "NAME")]
    snapshot: Option<String>,
    /// Drop the branch or named snapshot of this name
    #[arg(long, value_name = "NAME")]
    drop: Option<String>,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs the command.
pub fn run(args: &BranchArgs, out: &mut impl Write) -> Result<(), Failure> {
    if args.make.is_none() && args.snapshot.is_none() && args.drop.is_none() {
        return list(args, out);
    }
    let db = args.target.open_to_write(&args.write, false)?;
    if let Some(name) = &args.make {
        db.branch(name)?;
    }
    if let Some(name) = &args.snapshot {
        db.snapshot_named(name)?;
    }
    if let Some(name) = &args.drop
        && !db.drop_branch(name)?
        && !db.drop_named_snapshot(name)?
    {
        let what = format!("there is no branch or named snapshot {name:?}");
        return Err(Failure::Negative(what));
    }
    db.close()?;
    Ok(())
}

fn list(args: &BranchArgs, out: &mut impl Write) -> Result<(), Failure> {
    let db = args.target.open_read_only()?;
    let (branches, snapshots) = (db.branches()?, db.named_snapshots()?);
    db.close()?;
    if args.target.json {
        output::json_line(out, &json!({ "branches": branches, "snapshots": snapshots }))?;
        return Ok(());
    }
    for (kind, names) in [("branch", branches), ("snapshot", snapshots)] {
        for name in names {
            // A name is any UTF-8: control characters, which could break the line, are replaced.
            writeln!(out, "{kind} {}", name.replace(|c: char| c.is_control(), "\u{fffd}"))?;
        }
    }
    Ok(())
}
