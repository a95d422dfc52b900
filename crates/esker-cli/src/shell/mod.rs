//! `esker shell`: commands on a database, for people and for scripts.
//!
//! On a terminal it edits lines, completes the names of commands and keyspaces, keeps a history and
//! prompts with the present keyspace. On a pipe it speaks the line protocol of `protocol` and flushes
//! every answer before it reads the next line. So a program at the other end knows that an answered
//! command is acknowledged; the crash tests of this repository rely on that.
//!
//! On a pipe the exit code is 1 if a line was answered with `err`. The lines after it are run, unless
//! it was asked to stop there.
//!
//! On a terminal Ctrl-C ends a command, and the shell takes the next one: what the command prints, or
//! its wait for a compaction, a flush or a check. What was done stays, and the answer says so. A write,
//! `sync`, `drop` and `close` end by themselves; a second Ctrl-C meanwhile ends the shell as a kill
//! would. A scan that does not say how many entries it wants ends after as many as a person can look
//! at.
//!
//! The end of the input closes the database as `close` does; a batch that was not committed is
//! forgotten.

mod answer;
mod complete;
mod protocol;
mod session;
#[cfg(test)]
mod tests;
mod until;

use crate::ctrl_c;
use crate::failure::Failure;
use crate::flags::{BranchFlag, OpenFlags, ShowFlags, WriteFlags};
use answer::Form;
use clap::Args;
use complete::Complete;
use esker_bench::Interrupt;
use esker_port::word;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};
use session::{Session, Step};
use std::io::{self, BufRead, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

/// Opens a database and takes commands, from a terminal or a pipe
#[derive(Debug, Args)]
#[command(after_help = "On a pipe: one command per line, answered by lines of data and one line \
    `ok …` or `err KIND message`. If a line fails, the lines after it are run all the same, and the \
    exit code is 1; with --stop-on-error no line after it is run. The command `help` lists the \
    commands.\n\nExample:\n  printf 'put a 1\\nget a\\n' | esker shell DIR")]
pub struct ShellArgs {
    /// The database's directory; made if it is missing
    dir: PathBuf,
    /// Change no byte of the database
    #[arg(long)]
    read_only: bool,
    /// Run no more lines after the first that fails; on a terminal it makes no difference
    #[arg(long)]
    stop_on_error: bool,
    /// Answer in JSON: one object per line, of which the one that ends an answer has the field `ok`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    show: ShowFlags,
    #[command(flatten)]
    branch: BranchFlag,
    #[command(flatten)]
    open: OpenFlags,
    #[command(flatten)]
    write: WriteFlags,
}

/// How many entries a scan on a terminal prints that does not say how many.
const SCAN_LIMIT: u64 = 100;

/// Runs the command.
pub fn run(args: ShellArgs) -> Result<(), Failure> {
    let mut options = args.open.options();
    args.write.apply(&mut options);
    options.read_only = args.read_only;
    // A database that is made has no branches.
    options.create_if_missing = !args.read_only && args.branch.branch.is_none();
    let db = args.branch.of(esker::Db::open_with(&args.dir, options)?)?;
    let mut session = Session::new(db);
    session.answer_in(Form { encoding: args.show.encoding(), json: args.json });
    let person = io::stdin().is_terminal() && io::stdout().is_terminal();
    let taken = if person {
        session.limit_scans(SCAN_LIMIT);
        interactive(&mut session).map(|step| (step, None))
    } else {
        piped(&mut session, args.stop_on_error)
    };
    // Also after a broken pipe: acknowledged writes are safe, but a late error must be reported.
    let closed = match taken {
        Ok((Step::End, _)) => Ok(()),
        _ => session.close(),
    };
    let (_, first_failed) = taken?;
    closed?;
    match first_failed {
        None => Ok(()),
        Some(line) => {
            let lines = match session.failed() {
                1 => "1 line".to_owned(),
                failed => format!("{failed} lines"),
            };
            Err(Failure::Negative(format!("{lines} failed, first line {line}: see its answer")))
        }
    }
}

/// Takes lines until the input ends, the database is closed, or a line fails where that is to be the
/// end. Returns the number of the first line that failed, too.
fn piped(session: &mut Session, stop_on_error: bool) -> Result<(Step, Option<u64>), Failure> {
    let mut input = io::stdin().lock();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let (mut line, mut number, mut first_failed) = (Vec::new(), 0, None);
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok((Step::Continue, first_failed));
        }
        number += 1;
        let step = session.execute(&line, &mut out)?;
        out.flush()?;
        if first_failed.is_none() && session.failed() > 0 {
            first_failed = Some(number);
        }
        if step == Step::End || stop_on_error && first_failed.is_some() {
            return Ok((step, first_failed));
        }
    }
}

fn interactive(session: &mut Session) -> Result<Step, Failure> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor: Editor<Complete, DefaultHistory> =
        Editor::with_config(config).map_err(editor_failure)?;
    editor.set_helper(Some(Complete::new(session.db().clone())));
    let history = history_file();
    if let Some(file) = &history {
        // The first shell has no history file, and a shell without its history still works.
        let _ = editor.load_history(file);
    }
    let interrupt = Interrupt::default();
    session.end_when(interrupt.clone());
    ctrl_c::listen(&interrupt, || {}).map_err(|error| Failure::Negative(error.to_string()))?;
    println!("Esker {}: help lists the commands, close leaves.", env!("CARGO_PKG_VERSION"));
    let branch = session.db().branch_name().map(|name| format!("{}/", word::name(name)));
    let branch = branch.unwrap_or_default();
    let step = loop {
        let mark = if session.in_batch() { "*" } else { "" };
        match editor.readline(&format!("{branch}{}{mark}> ", word::name(session.keyspace()))) {
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                let out = &mut io::stdout().lock();
                let step = session.execute(line.as_bytes(), out)?;
                // Who pressed it once more, too late, meant the command that has ended.
                interrupt.forget();
                if step == Step::End {
                    break Step::End;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break Step::Continue,
            Err(error) => return Err(editor_failure(error)),
        }
    };
    if let Some(file) = &history {
        let _ = file.parent().map(std::fs::create_dir_all);
        let _ = editor.save_history(file);
    }
    Ok(step)
}

/// Where the lines of earlier shells are kept: the user's state directory, never the database's.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(|| {
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local").join("state"))
    })?;
    Some(state.join("esker").join("history"))
}

fn editor_failure(error: ReadlineError) -> Failure {
    match error {
        ReadlineError::Io(error) => Failure::Stream(error),
        other => Failure::Negative(format!("cannot edit lines here: {other}: use a pipe")),
    }
}
