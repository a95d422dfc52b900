//! A session: what the shell remembers between lines, and what each command does.
//!
//! The same session serves people, pipes and tests: it takes a line and writes the answer, and
//! does no other input or output. The answer to a line that is not blank is lines of data, if
//! any, and one closing line. After an `err` the session goes on; the contract (C2) says what an
//! error of the engine means for the write that met it.

use super::protocol::{self, Command, HELP, Range, Refusal};
use crate::failure::one_line;
use crate::output;
use esker::{Batch, Db, Durability, ErrorKind, Iter, Keyspace, Snapshot};
use esker_port::token;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Bound;

#[cfg(test)]
mod tests;

/// Whether the shell goes on after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It takes the next line.
    Continue,
    /// The database was closed.
    End,
}

/// The state of one shell.
#[derive(Debug)]
pub struct Session {
    db: Db,
    keyspace: Keyspace,
    snapshots: BTreeMap<Vec<u8>, Snapshot>,
    batch: Option<Batch>,
}

/// A command failed, or its answer could not be written.
enum Stop {
    Refused(Refusal),
    Output(io::Error),
}

impl<E: Into<Refusal>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// The rest of the closing line after `ok`.
type Answer = Result<String, Stop>;

impl Session {
    /// A session on an open database, in its default keyspace.
    pub fn new(db: Db) -> Self {
        let keyspace = db.default_keyspace();
        Self { db, keyspace, snapshots: BTreeMap::new(), batch: None }
    }

    /// The name of the present keyspace.
    pub fn keyspace(&self) -> &str {
        self.keyspace.name()
    }

    /// Whether a batch is open.
    pub fn in_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// Runs one line and writes its answer. Fails only where `out` does.
    pub fn execute(&mut self, line: &[u8], out: &mut impl Write) -> io::Result<Step> {
        let (answer, step) = match protocol::parse(line) {
            Ok(None) => return Ok(Step::Continue),
            Ok(Some(Command::Close)) => (self.close().map_err(Stop::from), Step::End),
            Ok(Some(command)) => (self.run(command, out), Step::Continue),
            Err(refusal) => (Err(Stop::Refused(refusal)), Step::Continue),
        };
        match answer {
            Ok(rest) if rest.is_empty() => writeln!(out, "ok")?,
            Ok(rest) => writeln!(out, "ok {rest}")?,
            Err(Stop::Refused(Refusal { kind, message })) => {
                writeln!(out, "err {kind} {}", one_line(&message))?;
            }
            Err(Stop::Output(error)) => return Err(error),
        }
        Ok(step)
    }

    /// Discards an open batch, releases the snapshots and closes the database.
    pub fn close(&mut self) -> esker::Result<String> {
        self.batch = None;
        self.snapshots.clear();
        self.db.close()?;
        Ok(String::new())
    }

    fn run(&mut self, command: Command, out: &mut impl Write) -> Answer {
        match command {
            Command::Put { key, value, class } => self.put(&key, &value, class),
            Command::Del { key, class } => self.del(&key, class),
            Command::DelRange { range, class } => self.delete_range(range, class),
            Command::Get { key, snapshot } => self.get(&key, snapshot, out),
            Command::Scan { range, limit, reverse, snapshot } => {
                let iter = self.iter(range, snapshot)?;
                scan(iter, limit.unwrap_or(u64::MAX), reverse, out)
            }
            Command::Snap(name) => self.snap(name),
            Command::Unsnap(name) => match self.snapshots.remove(&name) {
                Some(_) => Ok(String::new()),
                None => Err(unknown_snapshot(&name).into()),
            },
            Command::Begin => self.begin(),
            Command::Commit(class) => self.commit(class),
            Command::Abort => self.take_batch().map(|_| String::new()),
            Command::Use(name) => {
                self.keyspace = self.db.keyspace(&name)?;
                Ok(String::new())
            }
            Command::Keyspaces => {
                let names = self.db.keyspaces()?;
                lines(out, names.iter().map(|name| token::encode_first(name.as_bytes())))
            }
            Command::Drop(name) => Ok(u8::from(self.db.drop_keyspace(&name)?).to_string()),
            Command::Flush => done(self.db.flush()),
            Command::Compact(None) => done(self.db.compact()),
            Command::Compact(Some(range)) => done(self.keyspace.compact_range(bounds(range))),
            Command::Sync => done(self.db.sync()),
            Command::Verify => verify(&self.db, out),
            Command::Stats => {
                let stats = output::stats_lines(self.db.stats());
                lines(out, stats.map(|(name, value)| format!("{name} {value}")))
            }
            Command::Help => {
                lines(out, HELP.iter().map(|(usage, meaning)| format!("{usage:<27}{meaning}")))
            }
            // Ends the session, so `execute` sees to it.
            Command::Close => Ok(String::new()),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8], class: Option<Durability>) -> Answer {
        match (&mut self.batch, class) {
            (Some(batch), None) => batch.insert(&self.keyspace, key, value),
            (Some(_), Some(_)) => return Err(class_in_batch().into()),
            (None, None) => self.keyspace.insert(key, value)?,
            (None, Some(class)) => self.keyspace.insert_with(key, value, class)?,
        }
        Ok(String::new())
    }

    fn del(&mut self, key: &[u8], class: Option<Durability>) -> Answer {
        match (&mut self.batch, class) {
            (Some(batch), None) => batch.remove(&self.keyspace, key),
            (Some(_), Some(_)) => return Err(class_in_batch().into()),
            (None, None) => self.keyspace.remove(key)?,
            (None, Some(class)) => self.keyspace.remove_with(key, class)?,
        }
        Ok(String::new())
    }

    fn delete_range(&mut self, range: Range, class: Option<Durability>) -> Answer {
        let range = bounds(range);
        match (&mut self.batch, class) {
            (Some(batch), None) => batch.remove_range(&self.keyspace, range)?,
            (Some(_), Some(_)) => return Err(class_in_batch().into()),
            (None, None) => self.keyspace.remove_range(range)?,
            (None, Some(class)) => {
                let mut batch = Batch::new();
                batch.remove_range(&self.keyspace, range)?;
                self.db.write_with(batch, class)?;
            }
        }
        Ok(String::new())
    }

    fn get(&self, key: &[u8], snapshot: Option<Vec<u8>>, out: &mut impl Write) -> Answer {
        let value = match snapshot {
            None => self.keyspace.get(key)?,
            Some(name) => self.snapshot(&name)?.get(&self.keyspace, key)?,
        };
        lines(out, value.iter().map(|value| token::encode_first(value)))
    }

    fn iter(&self, range: Range, snapshot: Option<Vec<u8>>) -> Result<Iter, Stop> {
        let range = bounds(range);
        Ok(match snapshot {
            None => self.keyspace.range(range)?,
            Some(name) => self.snapshot(&name)?.range(&self.keyspace, range)?,
        })
    }

    fn snap(&mut self, name: Vec<u8>) -> Answer {
        if self.snapshots.contains_key(&name) {
            let name = token::encode(&name);
            let message = format!("there already is a snapshot {name}: unsnap it first");
            return Err(Refusal { kind: ErrorKind::Exists.as_str(), message }.into());
        }
        self.snapshots.insert(name, self.db.snapshot()?);
        Ok(String::new())
    }

    fn snapshot(&self, name: &[u8]) -> Result<&Snapshot, Refusal> {
        self.snapshots.get(name).ok_or_else(|| unknown_snapshot(name))
    }

    fn begin(&mut self) -> Answer {
        if self.batch.is_some() {
            return Err(Refusal::usage("a batch is open: commit or abort it first").into());
        }
        self.batch = Some(Batch::new());
        Ok(String::new())
    }

    fn commit(&mut self, class: Option<Durability>) -> Answer {
        let batch = self.take_batch()?;
        match class {
            None => self.db.write(batch)?,
            Some(class) => self.db.write_with(batch, class)?,
        };
        Ok(String::new())
    }

    fn take_batch(&mut self) -> Result<Batch, Stop> {
        self.batch.take().ok_or_else(|| Refusal::usage("no batch is open: begin one first").into())
    }
}

/// Writes data lines; the answer is their number.
fn lines(out: &mut impl Write, lines: impl Iterator<Item = String>) -> Answer {
    let mut count = 0_u64;
    for line in lines {
        writeln!(out, "{line}").map_err(Stop::Output)?;
        count += 1;
    }
    Ok(count.to_string())
}

/// Writes at most `limit` entries from either end. The lines are written as they are read, so a
/// failure of the iterator shows as an `err` after the entries before it.
fn scan(mut iter: Iter, limit: u64, reverse: bool, out: &mut impl Write) -> Answer {
    let mut count = 0;
    while count < limit {
        let entry = if reverse { iter.next_back_entry()? } else { iter.next_entry()? };
        let Some((key, value)) = entry else { break };
        writeln!(out, "{} {}", token::encode_first(key), token::encode(value))
            .map_err(Stop::Output)?;
        count += 1;
    }
    Ok(count.to_string())
}

fn verify(db: &Db, out: &mut impl Write) -> Answer {
    let report = db.verify()?;
    for problem in &report.problems {
        let line = format!("{}: {}", problem.path.display(), problem.error);
        writeln!(out, "{}", one_line(&line)).map_err(Stop::Output)?;
    }
    match report.problems.len() {
        0 => Ok(format!(
            "{} files {} blocks {} entries {} bytes",
            report.files, report.blocks, report.entries, report.bytes
        )),
        count => {
            let message = format!("{count} problems found: run `esker repair --plan`");
            Err(Refusal { kind: ErrorKind::Corruption.as_str(), message }.into())
        }
    }
}

fn bounds((low, high): Range) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (low.map_or(Bound::Unbounded, Bound::Included), high.map_or(Bound::Unbounded, Bound::Excluded))
}

fn done(result: esker::Result<()>) -> Answer {
    Ok(result.map(|()| String::new())?)
}

fn class_in_batch() -> Refusal {
    Refusal::usage("a batch has one class: give it to commit")
}

fn unknown_snapshot(name: &[u8]) -> Refusal {
    let message = format!("there is no snapshot {}: take it with snap", token::encode(name));
    Refusal { kind: ErrorKind::Missing.as_str(), message }
}
