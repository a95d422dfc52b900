//! `esker dump`: writes a database as one stream.

use crate::failure::Failure;
use crate::flags::{OpenFlags, RangeFlags, keyspace_name};
use crate::progress;
use clap::Args;
use esker::Db;
use esker_port::{DumpOptions, Form, Quiet};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Writes a database as one stream, which `esker load` reads back
#[derive(Debug, Args)]
#[command(after_help = "Without --out the stream goes to standard output. A dump to a file can \
    be gone on with (--resume) as long as nothing that the file holds was changed.\n\nExamples:\n  \
    esker dump DIR --out FILE --compress\n  esker dump DIR --text | less\n  \
    esker dump DIR | esker load COPY")]
pub struct DumpArgs {
    /// The database's directory
    dir: PathBuf,
    #[command(flatten)]
    open: OpenFlags,
    /// The file to write, which must not exist
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Continue an interrupted dump to this file
    #[arg(long, requires = "out")]
    resume: bool,
    /// Write lines of text
    #[arg(long)]
    text: bool,
    /// Compress the binary form
    #[arg(long, conflicts_with = "text")]
    compress: bool,
    /// Only this keyspace; may be given several times [default: all]
    #[arg(long, value_name = "NAME", value_parser = keyspace_name)]
    keyspace: Vec<String>,
    #[command(flatten)]
    range: RangeFlags,
    /// Print what was done as JSON
    #[arg(long, requires = "out")]
    json: bool,
}

/// Runs the command.
pub fn run(args: &DumpArgs, out: &mut (impl Write + Send)) -> Result<(), Failure> {
    if args.out.is_none() && !args.text && std::io::stdout().is_terminal() {
        let what = "the binary form is not for a terminal: give --out FILE, or --text";
        return Err(Failure::Usage(what.to_owned()));
    }
    let mut options = args.open.options();
    options.read_only = true;
    options.create_if_missing = false;
    let db = Db::open_with(&args.dir, options)?;
    let mut options = DumpOptions::default();
    options.form = match (args.text, args.compress) {
        (true, _) => Form::Text,
        (_, true) => Form::Compressed,
        _ => Form::Binary,
    };
    options.keyspaces = Some(args.keyspace.clone()).filter(|names| !names.is_empty());
    options.from = args.range.from.clone().map(|key| key.0);
    options.to = args.range.to.clone().map(|key| key.0);
    match &args.out {
        Some(file) => {
            let mut line = progress::Line::new("dumping");
            let summary = esker_port::dump_to_file(&db, file, &options, args.resume, &mut line)?;
            drop(line);
            progress::summary(out, "dumped", &summary, args.json)?;
        }
        None if std::io::stdout().is_terminal() => {
            esker_port::dump(&db, out, "standard output", &options, &mut Quiet)?;
        }
        None => {
            let mut line = progress::Line::new("dumping");
            esker_port::dump(&db, out, "standard output", &options, &mut line)?;
        }
    }
    db.close()?;
    Ok(())
}
