//! `esker shell`: commands on a database, for people and for scripts.
//!
//! On a terminal it edits lines, keeps a history and prompts with the present keyspace. On a pipe
//! it speaks the line protocol of `protocol` and flushes every answer before it reads the next
//! line. So a program at the other end knows that an answered command is acknowledged; the crash
//! tests of this repository rely on that.
//!
//! On a terminal Ctrl-C ends a command's output, and the shell takes the next command. A command
//! that prints nothing, such as a compaction, goes on until a second Ctrl-C ends the shell as a
//! kill would.
//!
//! The end of the input closes the database as `close` does; a batch that was not committed is
//! forgotten.

mod protocol;
mod session;
#[cfg(test)]
mod tests;

use crate::ctrl_c;
use crate::failure::Failure;
use crate::flags::{OpenFlags, WriteFlags};
use clap::Args;
use esker_bench::Interrupt;
use esker_port::token;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use session::{Session, Step};
use std::io::{self, BufRead, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

/// Opens a database and takes commands, from a terminal or a pipe
#[derive(Debug, Args)]
#[command(after_help = "On a pipe: one command per line, answered by lines of data and one line \
    `ok …` or `err KIND message`.\n\nExample:\n  printf 'put a 1\\nget a\\n' | esker shell DIR")]
pub struct ShellArgs {
    /// The database's directory; made if it is missing
    dir: PathBuf,
    /// Change no byte of the database
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    open: OpenFlags,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs the command.
pub fn run(args: ShellArgs) -> Result<(), Failure> {
    let mut options = args.open.options();
    args.write.apply(&mut options);
    options.read_only = args.read_only;
    options.create_if_missing = !args.read_only;
    let db = esker::Db::open_with(&args.dir, options)?;
    let mut session = Session::new(db);
    let person = io::stdin().is_terminal() && io::stdout().is_terminal();
    let taken = if person { interactive(&mut session) } else { piped(&mut session) };
    // Also after a broken pipe: acknowledged writes are safe, but a late error must be reported.
    let closed = match taken {
        Ok(Step::End) => Ok(()),
        _ => session.close().map(|_| ()),
    };
    taken?;
    Ok(closed?)
}

/// Takes lines until the input ends or the database is closed.
fn piped(session: &mut Session) -> Result<Step, Failure> {
    let mut input = io::stdin().lock();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(Step::Continue);
        }
        let step = session.execute(&line, &mut out)?;
        out.flush()?;
        if step == Step::End {
            return Ok(step);
        }
    }
}

fn interactive(session: &mut Session) -> Result<Step, Failure> {
    let mut editor = DefaultEditor::new().map_err(editor_failure)?;
    let history = history_file();
    if let Some(file) = &history {
        // The first shell has no history file, and a shell without its history still works.
        let _ = editor.load_history(file);
    }
    let interrupt = Interrupt::default();
    ctrl_c::listen(&interrupt, || {}).map_err(|error| Failure::Negative(error.to_string()))?;
    println!("Esker {}: help lists the commands, close leaves.", env!("CARGO_PKG_VERSION"));
    let step = loop {
        let mark = if session.in_batch() { "*" } else { "" };
        match editor.readline(&format!("{}{mark}> ", token::encode(session.keyspace().as_bytes())))
        {
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                let out = &mut io::stdout().lock();
                if take(session, line.as_bytes(), out, &interrupt)? == Step::End {
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

/// Runs a command whose output ends when it is interrupted.
fn take(
    session: &mut Session,
    line: &[u8],
    out: &mut impl Write,
    interrupt: &Interrupt,
) -> io::Result<Step> {
    interrupt.forget();
    match session.execute(line, &mut Until { out, interrupt }) {
        Err(_) if interrupt.asked() => {
            writeln!(out, "err Interrupted the command was interrupted")?;
            Ok(Step::Continue)
        }
        taken => taken,
    }
}

/// A writer that takes nothing more once the command is interrupted.
struct Until<'a, W> {
    out: &'a mut W,
    interrupt: &'a Interrupt,
}

impl<W: Write> Write for Until<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interrupt.asked() {
            // Not of the kind `Interrupted`, after which a write is tried again.
            return Err(io::Error::other("interrupted"));
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
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
