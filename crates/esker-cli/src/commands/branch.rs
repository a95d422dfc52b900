//! `esker branch`: lists, makes and drops branches and named snapshots.

use crate::failure::Failure;
use crate::flags::{BranchFlag, Target, WriteFlags, branch_name, no_branch};
use crate::output;
use clap::{ArgGroup, Args};
use esker::Db;
use esker_port::word;
use serde_json::{Value, json};
use std::io::Write;

/// Lists the branches and named snapshots of a database, makes one or drops one
#[derive(Debug, Args)]
#[command(
    after_help = "The commands that read and write data take a branch with --branch. Names are \
    printed as keys are, and taken so.\n\nExample:\n  esker branch DIR\n  esker branch DIR --make trial\n  \
    esker branch DIR --snapshot monday\n  esker branch DIR --make again --branch monday\n  \
    esker branch DIR --drop trial",
    group = ArgGroup::new("what").args(["make", "snapshot", "drop"])
)]
pub struct BranchArgs {
    #[command(flatten)]
    target: Target,
    /// Make a branch of this name
    #[arg(long, value_name = "NAME", value_parser = branch_name)]
    make: Option<String>,
    /// Keep the present state as a named snapshot of this name
    #[arg(long, value_name = "NAME", value_parser = branch_name)]
    snapshot: Option<String>,
    /// Drop the branch or named snapshot of this name
    #[arg(long, value_name = "NAME", value_parser = branch_name, conflicts_with = "branch")]
    drop: Option<String>,
    #[command(flatten)]
    of: BranchFlag,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs the command.
pub fn run(args: &BranchArgs, out: &mut impl Write) -> Result<(), Failure> {
    let what = (&args.make, &args.snapshot, &args.drop);
    if let (None, None, None) = what {
        return list(args, out);
    }
    let db = args.of.of(args.target.open_to_write(&args.write, false)?)?;
    let (done, json) = match what {
        (Some(name), ..) => {
            db.branch(name)?;
            (format!("made the branch {}", word::name(name)), json!({ "branch": name }))
        }
        (None, Some(name), _) => {
            db.snapshot_named(name)?;
            (format!("made the named snapshot {}", word::name(name)), json!({ "snapshot": name }))
        }
        (None, None, name) => drop_named(&db, name.as_deref().unwrap_or_default())?,
    };
    db.close()?;
    if args.target.json {
        output::json_line(out, &json)?;
    } else {
        output::tell(&done);
    }
    Ok(())
}

/// Drops what has a name; returns what is said of it, to a person and to a program.
fn drop_named(db: &Db, name: &str) -> Result<(String, Value), Failure> {
    let kind = if db.drop_branch(name)? {
        "branch"
    } else if db.drop_named_snapshot(name)? {
        "snapshot"
    } else {
        return Err(no_branch(db, name));
    };
    Ok((
        format!("dropped the {kind} {}", word::name(name)),
        json!({ "dropped": name, "kind": kind }),
    ))
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
            writeln!(out, "{kind} {}", word::name(&name))?;
        }
    }
    Ok(())
}
