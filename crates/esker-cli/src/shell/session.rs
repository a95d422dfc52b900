//! A session: what the shell remembers between lines, and what each command does.
//!
//! The same session serves people, pipes and tests: it takes a line and writes the answer, and
//! does no other input or output. The answer to a line that is not blank is lines of data, if
//! any, and one closing line. After an `err` the session goes on; the contract (C2) says what an
//! error of the engine means for the write that met it.

use super::answer::{Closing, Data, Form};
use super::protocol::{self, Command, HELP, Limit, Range, Refusal};
use super::until::Until;
use esker::{Batch, Db, Durability, ErrorKind, Iter, Keyspace, Snapshot};
use esker_bench::Interrupt;
use esker_port::word::Encoding;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Bound;
use std::time::Duration;

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
    form: Form,
    /// How many entries a scan prints that does not say how many.
    scan_limit: Option<u64>,
    /// How many lines were answered with `err`.
    failed: u64,
    /// Ends the command under way.
    interrupt: Interrupt,
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

/// What the closing line says after `ok`.
type Answer = Result<Closing, Stop>;

impl Session {
    /// A session on an open database, in its default keyspace.
    pub fn new(db: Db) -> Self {
        let keyspace = db.default_keyspace();
        Self {
            db,
            keyspace,
            snapshots: BTreeMap::new(),
            batch: None,
            form: Form::default(),
            scan_limit: None,
            failed: 0,
            interrupt: Interrupt::default(),
        }
    }

    /// Writes its answers in this form from now on.
    pub fn answer_in(&mut self, form: Form) {
        self.form = form;
    }

    /// Ends a scan after this many entries if it does not say how many.
    pub fn limit_scans(&mut self, limit: u64) {
        self.scan_limit = Some(limit);
    }

    /// Ends commands when somebody asks for it while they run.
    pub fn end_when(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// How many lines were answered with `err`.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// The database, or the branch, that it works on.
    pub fn db(&self) -> &Db {
        &self.db
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
        // What was asked for before was not about this command.
        self.interrupt.forget();
        let (answer, step) = match protocol::parse(line) {
            Ok(None) => return Ok(Step::Continue),
            Ok(Some(Command::Close)) => (done(self.close()), Step::End),
            Ok(Some(command)) => {
                let interrupt = self.interrupt.clone();
                (self.run(command, &mut Until { out, interrupt }), Step::Continue)
            }
            Err(refusal) => (Err(Stop::Refused(refusal)), Step::Continue),
        };
        let refusal = match answer {
            Ok(closing) => {
                self.form.close(out, &closing)?;
                return Ok(step);
            }
            Err(Stop::Refused(refusal)) => refusal,
            Err(Stop::Output(_)) if self.interrupt.asked() => interrupted(OUTPUT_ENDED),
            Err(Stop::Output(error)) => return Err(error),
        };
        self.failed += 1;
        self.form.refuse(out, &refusal)?;
        Ok(step)
    }

    /// Discards an open batch, releases the snapshots and closes the database.
    pub fn close(&mut self) -> esker::Result<()> {
        self.batch = None;
        self.snapshots.clear();
        self.db.close()
    }

    fn run(&mut self, command: Command, out: &mut impl Write) -> Answer {
        match command {
            Command::Put { key, value, class, ttl } => self.put(&key, &value, class, ttl),
            Command::Del { key, class } => self.del(&key, class),
            Command::DelRange { range, class } => self.delete_range(range, class),
            Command::Get { key, snapshot } => self.get(&key, snapshot, out),
            Command::Scan { range, limit, reverse, snapshot } => {
                let iter = self.iter(range, snapshot)?;
                self.scan(iter, limit, reverse, out)
            }
            Command::Snap(name) => self.snap(name),
            Command::Unsnap(name) => match self.snapshots.remove(&name) {
                Some(_) => Ok(Closing::Done),
                None => Err(unknown_snapshot(&name).into()),
            },
            Command::Begin => self.begin(),
            Command::Commit(class) => self.commit(class),
            Command::Abort => self.take_batch().map(|_| Closing::Done),
            Command::Use(name) => {
                self.keyspace = self.db.keyspace(&name)?;
                Ok(Closing::Done)
            }
            Command::Keyspaces => {
                let names = self.db.keyspaces()?;
                self.lines(out, names.iter().map(|name| Data::Keyspace(name)))
            }
            Command::Drop(name) => Ok(Closing::Count(self.db.drop_keyspace(&name)?.into())),
            Command::Flush => {
                unless_ended(self.db.flush_until(|| self.interrupt.asked()), FLUSH_ENDED)
            }
            Command::Compact(range) => self.compact(range),
            Command::Sync => done(self.db.sync()),
            Command::Verify => self.verify(out),
            Command::Stats => {
                let count = self.form.statistics(out, self.db.stats()).map_err(Stop::Output)?;
                Ok(Closing::Count(count))
            }
            Command::Help => {
                self.lines(out, HELP.iter().map(|(usage, meaning)| Data::Help(usage, meaning)))
            }
            // Ends the session, so `execute` sees to it.
            Command::Close => Ok(Closing::Done),
        }
    }

    fn put(
        &mut self,
        key: &[u8],
        value: &[u8],
        class: Option<Durability>,
        ttl: Option<Duration>,
    ) -> Answer {
        match (&mut self.batch, class, ttl) {
            (Some(batch), None, None) => batch.insert(&self.keyspace, key, value),
            (Some(batch), None, Some(ttl)) => {
                batch.insert_with_ttl(&self.keyspace, key, value, ttl);
            }
            (Some(_), Some(_), _) => return Err(class_in_batch().into()),
            (None, None, None) => self.keyspace.insert(key, value)?,
            (None, Some(class), None) => self.keyspace.insert_with(key, value, class)?,
            (None, None, Some(ttl)) => self.keyspace.insert_with_ttl(key, value, ttl)?,
            (None, Some(class), Some(ttl)) => {
                let mut batch = Batch::new();
                batch.insert_with_ttl(&self.keyspace, key, value, ttl);
                self.db.write_with(batch, class)?;
            }
        }
        Ok(Closing::Done)
    }

    fn del(&mut self, key: &[u8], class: Option<Durability>) -> Answer {
        match (&mut self.batch, class) {
            (Some(batch), None) => batch.remove(&self.keyspace, key),
            (Some(_), Some(_)) => return Err(class_in_batch().into()),
            (None, None) => self.keyspace.remove(key)?,
            (None, Some(class)) => self.keyspace.remove_with(key, class)?,
        }
        Ok(Closing::Done)
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
        Ok(Closing::Done)
    }

    fn get(&self, key: &[u8], snapshot: Option<Vec<u8>>, out: &mut impl Write) -> Answer {
        let value = match snapshot {
            None => self.keyspace.get(key)?,
            Some(name) => self.snapshot(&name)?.get(&self.keyspace, key)?,
        };
        self.lines(out, value.iter().map(|value| Data::Value(value)))
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
            let name = Encoding::Text.word(&name);
            let message = format!("there already is a snapshot {name}: unsnap it first");
            return Err(Refusal { kind: ErrorKind::Exists.as_str(), message }.into());
        }
        self.snapshots.insert(name, self.db.snapshot()?);
        Ok(Closing::Done)
    }

    fn snapshot(&self, name: &[u8]) -> Result<&Snapshot, Refusal> {
        self.snapshots.get(name).ok_or_else(|| unknown_snapshot(name))
    }

    fn begin(&mut self) -> Answer {
        if self.batch.is_some() {
            return Err(Refusal::usage("a batch is open: commit or abort it first").into());
        }
        self.batch = Some(Batch::new());
        Ok(Closing::Done)
    }

    fn commit(&mut self, class: Option<Durability>) -> Answer {
        let batch = self.take_batch()?;
        match class {
            None => self.db.write(batch)?,
            Some(class) => self.db.write_with(batch, class)?,
        };
        Ok(Closing::Done)
    }

    fn take_batch(&mut self) -> Result<Batch, Stop> {
        self.batch.take().ok_or_else(|| Refusal::usage("no batch is open: begin one first").into())
    }

    /// Writes data lines; the answer is their number.
    fn lines<'a>(&self, out: &mut impl Write, lines: impl Iterator<Item = Data<'a>>) -> Answer {
        let mut count = 0;
        for line in lines {
            self.form.write(out, &line).map_err(Stop::Output)?;
            count += 1;
        }
        Ok(Closing::Count(count))
    }

    /// Writes at most `limit` entries from either end. The lines are written as they are read, so a
    /// failure of the iterator shows as an `err` after the entries before it.
    fn scan(&self, mut iter: Iter, limit: Limit, reverse: bool, out: &mut impl Write) -> Answer {
        let most = match limit {
            Limit::Unsaid => self.scan_limit.unwrap_or(u64::MAX),
            Limit::All => u64::MAX,
            Limit::Most(most) => most,
        };
        let mut count = 0;
        loop {
            // Whether there is more than what nobody limited has to be known.
            if count == most && limit != Limit::Unsaid {
                return Ok(Closing::Count(count));
            }
            let entry = if reverse { iter.next_back_entry()? } else { iter.next_entry()? };
            let Some((key, value)) = entry else { return Ok(Closing::Count(count)) };
            if count == most {
                return Ok(Closing::Cut(count));
            }
            self.form.write(out, &Data::Entry(key, value)).map_err(Stop::Output)?;
            count += 1;
        }
    }

    fn compact(&self, range: Option<Range>) -> Answer {
        let asked = || self.interrupt.asked();
        let compacted = match range {
            None => self.db.compact_until(asked),
            Some(range) => self.keyspace.compact_range_until(bounds(range), asked),
        };
        unless_ended(compacted, COMPACTION_ENDED)
    }

    fn verify(&self, out: &mut impl Write) -> Answer {
        let report = self.db.verify_until(|| self.interrupt.asked())?;
        if report.interrupted {
            let (bytes, problems) = (report.bytes, report.problems.len());
            let message = format!(
                "the check was interrupted: {problems} problems in {bytes} bytes that were read, the rest is unknown"
            );
            return Err(interrupted(message).into());
        }
        for problem in &report.problems {
            self.form.write(out, &Data::Problem(problem)).map_err(Stop::Output)?;
        }
        match report.problems.len() {
            0 => Ok(Closing::Verified(report)),
            count => {
                let message = format!("{count} problems found: run `esker repair --plan`");
                Err(Refusal { kind: ErrorKind::Corruption.as_str(), message }.into())
            }
        }
    }
}

fn bounds((low, high): Range) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (low.map_or(Bound::Unbounded, Bound::Included), high.map_or(Bound::Unbounded, Bound::Excluded))
}

fn done(result: esker::Result<()>) -> Answer {
    Ok(result.map(|()| Closing::Done)?)
}

/// What was and was not done of a command that was interrupted.
const OUTPUT_ENDED: &str = "the command was interrupted: the rest of its answer is not shown";
const FLUSH_ENDED: &str = "the wait was interrupted: what of the flush had begun goes on in the background, and \
                           nothing is lost";
const COMPACTION_ENDED: &str = "the compaction was interrupted: what it finished stays, what it had begun ends in \
                                the background, and the rest is as it was; nothing is lost";

/// The answer to a command that ended early if somebody asked for that.
fn unless_ended(result: esker::Result<()>, ended: &str) -> Answer {
    match result {
        Err(esker::Error::Interrupted) => Err(interrupted(ended).into()),
        other => done(other),
    }
}

fn interrupted(message: impl Into<String>) -> Refusal {
    Refusal { kind: ErrorKind::Interrupted.as_str(), message: message.into() }
}

fn class_in_batch() -> Refusal {
    Refusal::usage("a batch has one class: give it to commit")
}

fn unknown_snapshot(name: &[u8]) -> Refusal {
    let message = format!("there is no snapshot {}: take it with snap", Encoding::Text.word(name));
    Refusal { kind: ErrorKind::Missing.as_str(), message }
}
