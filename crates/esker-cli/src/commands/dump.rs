//! `esker dump`: writes a database, or a branch of it, as one stream.
//!
//! A dump is not all that a database is. The command says what it leaves out: at the end of its
//! answer, or, where the answer is the stream, on standard error if branches or named snapshots are
//! among it that nobody may have thought of.

use crate::failure::Failure;
use crate::flags::{self, BranchFlag, OpenFlags, RangeFlags, keyspace_name};
use crate::output;
use crate::progress;
use clap::Args;
use esker::Db;
use esker_port::{DumpOptions, Form, Quiet, word};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Writes a database as one stream, which `esker load` reads back
#[derive(Debug, Args)]
#[command(after_help = "Without --out the stream goes to standard output. A dump to a file can \
    be gone on with (--resume) as long as nothing that the file holds was changed. A dump holds one \
    branch, or the database without its branches and named snapshots, and no expired entries and no \
    times at which entries expire: the last line says what it leaves out. A copy with everything is \
    made by `esker checkpoint`.\n\nExamples:\n  esker dump DIR --out FILE --compress\n  \
    esker dump DIR --text | less\n  esker dump DIR | esker load COPY")]
pub struct DumpArgs {
    /// The database's directory
    dir: PathBuf,
    #[command(flatten)]
    open: OpenFlags,
    #[command(flatten)]
    branch: BranchFlag,
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
    let db = args.branch.of(flags::open_read_only(&args.dir, &args.open)?)?;
    let left_out = LeftOut::of(args, &db)?;
    let options = args.options();
    let summary = match &args.out {
        Some(file) => {
            let mut line = progress::Line::new("dumping");
            esker_port::dump_to_file(&db, file, &options, args.resume, &mut line)?
        }
        None if std::io::stdout().is_terminal() => {
            esker_port::dump(&db, &mut *out, "standard output", &options, &mut Quiet)?
        }
        None => {
            let mut line = progress::Line::new("dumping");
            esker_port::dump(&db, &mut *out, "standard output", &options, &mut line)?
        }
    };
    if summary.entries == 0 {
        output::warn(&empty(args, &db));
    }
    db.close()?;
    if args.out.is_none() {
        match left_out.is_unasked {
            true => output::warn(&left_out.text()),
            false => output::tell(&left_out.text()),
        }
        return Ok(());
    }
    let more = args.json.then(|| Map::from_iter([("left_out".to_owned(), left_out.json())]));
    progress::summary_with(out, "dumped", &summary, more)?;
    if !args.json {
        writeln!(out, "{}", left_out.text())?;
    }
    Ok(())
}

impl DumpArgs {
    fn options(&self) -> DumpOptions {
        let mut options = DumpOptions::default();
        options.form = match (self.text, self.compress) {
            (true, _) => Form::Text,
            (_, true) => Form::Compressed,
            _ => Form::Binary,
        };
        options.keyspaces = Some(self.keyspace.clone()).filter(|names| !names.is_empty());
        options.from = self.range.from.clone().map(|key| key.0);
        options.to = self.range.to.clone().map(|key| key.0);
        options
    }
}

/// Why a dump has no entries.
fn empty(args: &DumpArgs, db: &Db) -> String {
    let everything = args.keyspace.is_empty() && args.range.is_everything();
    let why = match output::emptiness(db, &db.default_keyspace()) {
        Some(why) if everything => why,
        _ => "there is none in what was asked for".to_owned(),
    };
    format!("the dump has no entries: {why}")
}

/// What a dump does not have of its database.
struct LeftOut {
    /// What this one leaves out, because there is more than one branch or because it was asked for:
    /// kind and name.
    chosen: Vec<(&'static str, String)>,
    /// Whether there are branches or named snapshots, and nobody asked for one of them.
    is_unasked: bool,
}

/// What every dump leaves out.
const ALWAYS: [&str; 5] = [
    "expired entries",
    "the times at which entries expire",
    "earlier versions of entries",
    "compaction filters",
    "statistics",
];

impl LeftOut {
    fn of(args: &DumpArgs, db: &Db) -> Result<Self, Failure> {
        let mut chosen = Vec::new();
        let own = db.branch_name().unwrap_or_default();
        if !own.is_empty() {
            chosen.push(("database", String::new()));
        }
        let of_kind = |kind, names: Vec<String>| names.into_iter().map(move |name| (kind, name));
        let others = |names: &mut Vec<String>| names.retain(|name| name != own);
        let (mut branches, mut snapshots) = (db.branches()?, db.named_snapshots()?);
        others(&mut branches);
        others(&mut snapshots);
        chosen.extend(of_kind("branch", branches));
        chosen.extend(of_kind("snapshot", snapshots));
        let is_unasked = own.is_empty() && !chosen.is_empty();
        if !args.keyspace.is_empty() {
            let mut keyspaces = db.keyspaces()?;
            keyspaces.retain(|name| !args.keyspace.contains(name));
            chosen.extend(of_kind("keyspace", keyspaces));
        }
        if !args.range.is_everything() {
            chosen.push(("range", String::new()));
        }
        Ok(Self { chosen, is_unasked })
    }

    fn text(&self) -> String {
        let shown = |(kind, name): &(&str, String)| match *kind {
            "database" => "the database outside of this branch".to_owned(),
            "range" => "keys outside of the range".to_owned(),
            "snapshot" => format!("named snapshot {}", word::name(name)),
            kind => format!("{kind} {}", word::name(name)),
        };
        let mut parts: Vec<String> = self.chosen.iter().map(shown).collect();
        parts.extend(ALWAYS.map(str::to_owned));
        format!("left out: {}", parts.join(", "))
    }

    fn json(&self) -> Value {
        let names = |kind: &str| {
            let of_kind = self.chosen.iter().filter(|one| one.0 == kind);
            of_kind.map(|one| one.1.as_str()).collect::<Vec<_>>()
        };
        let any = |kind: &str| self.chosen.iter().any(|one| one.0 == kind);
        json!({
            "database": any("database"),
            "branches": names("branch"),
            "snapshots": names("snapshot"),
            "keyspaces": names("keyspace"),
            "keys_outside_the_range": any("range"),
            "always": ALWAYS,
        })
    }
}
