//! What the Tab key offers in a shell on a terminal: the names of commands at the beginning of a line,
//! and those of keyspaces behind the commands that take one.

use super::protocol::HELP;
use esker::Db;
use esker_port::word;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

#[cfg(test)]
mod tests;

/// Completes lines of a shell.
pub struct Complete {
    db: Db,
}

impl Complete {
    /// For a shell on this database.
    pub fn new(db: Db) -> Self {
        Self { db }
    }
}

impl Completer for Complete {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..pos).unwrap_or(line);
        // Without names nothing is offered; the command itself says what is wrong.
        Ok(candidates(before, || self.db.keyspaces().unwrap_or_default()))
    }
}

/// Where the word begins that stands before the cursor, and what it may become.
fn candidates(before: &str, keyspaces: impl Fn() -> Vec<String>) -> (usize, Vec<String>) {
    let line = before.trim_start_matches(' ');
    let start = before.len() - line.len();
    let Some((command, rest)) = line.split_once(' ') else {
        let names = HELP.iter().filter_map(|(usage, _)| usage.split(' ').next());
        let names = names.chain(["exit", "quit"]).filter(|name| name.starts_with(line));
        return (start, names.map(str::to_owned).collect());
    };
    if !matches!(command, "use" | "drop") {
        return (before.len(), Vec::new());
    }
    let typed = rest.trim_start_matches(' ');
    // A name with spaces may be typed without the quotes that it will have.
    let fits = |name: &String| name.starts_with(typed) || word::name(name).starts_with(typed);
    let names = keyspaces().into_iter().filter(fits);
    (before.len() - typed.len(), names.map(|name| word::name(&name)).collect())
}

impl Hinter for Complete {
    type Hint = String;
}

impl Highlighter for Complete {}

impl Validator for Complete {}

impl Helper for Complete {}
