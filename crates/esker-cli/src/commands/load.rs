//! `esker load`: reads a dump back into a database.

use crate::failure::Failure;
use crate::flags::{BranchFlag, OpenFlags, keyspace_name};
use crate::progress;
use clap::Args;
use esker::Db;
use esker_port::LoadOptions;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Reads a dump back into a new database
#[derive(Debug, Args)]
#[command(
    after_help = "Both forms of a dump are recognised. A load that was cut off goes on when \
    the same dump is loaded again. Into a branch: --branch with --existing, because a branch is rarely \
    empty.\n\nExamples:\n  esker load DIR FILE\n  \
    esker dump OLD | esker load NEW"
)]
pub struct LoadArgs {
    /// The database's directory, which the command makes
    dir: PathBuf,
    /// The dump; `-`: standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Only this keyspace; may be repeated [default: all]
    #[arg(long, value_name = "NAME", value_parser = keyspace_name)]
    keyspace: Vec<String>,
    #[command(flatten)]
    branch: BranchFlag,
    #[command(flatten)]
    open: OpenFlags,
    /// Load into a database that is not empty; entries of the dump replace those with the same key
    #[arg(long)]
    existing: bool,
    /// Read the loaded database afterwards and compare it with the dump
    #[arg(long, conflicts_with = "existing")]
    read_back: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &LoadArgs, out: &mut impl Write) -> Result<(), Failure> {
    let mut options = LoadOptions::default();
    options.existing = args.existing;
    options.keyspaces = (!args.keyspace.is_empty()).then(|| args.keyspace.clone());
    options.read_back = args.read_back;
    let mut line = progress::Line::new("loading");
    let summary = if args.file == Path::new("-") {
        if io::stdin().is_terminal() {
            let what = "standard input is a terminal: name the dump's file, or pipe it in";
            return Err(Failure::Usage(what.to_owned()));
        }
        let db = open(args)?;
        let summary = esker_port::load(&db, io::stdin(), "standard input", &options, &mut line)?;
        db.close()?;
        summary
    } else {
        let name = args.file.display().to_string();
        let failed =
            |source| esker_port::Error::Io { operation: "open", what: name.clone(), source };
        let file = File::open(&args.file).map_err(failed)?;
        options.stream_bytes = file.metadata().ok().map(|meta| meta.len());
        // A file that is no dump is not a reason to make a database.
        let probe = File::open(&args.file).map_err(failed)?;
        esker_port::Reader::new(probe, &name)?;
        let db = open(args)?;
        let summary = esker_port::load(&db, file, &name, &options, &mut line)?;
        db.close()?;
        summary
    };
    drop(line);
    progress::summary(out, "loaded", &summary, args.json)?;
    Ok(())
}

fn open(args: &LoadArgs) -> Result<Db, Failure> {
    let mut options = args.open.options();
    // A database that is made has no branches.
    options.create_if_missing = args.branch.branch.is_none();
    args.branch.of_writable(Db::open_with(&args.dir, options)?)
}
