//! Showing a log to a human or to `verify`: every log file and every record, valid or not.

use super::chain::{self, Chain, Policy};
use super::format::Record;
use super::log_file::file_number;
use super::recover::{Place, look, next_candidate};
use super::stream::Stream;
use crate::base::Seq;
use crate::error::{Error, IoContext, Problem, Result, VerifyReport};
use crate::fs::Fs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One item that [`inspect`] found.
#[derive(Debug)]
#[non_exhaustive]
pub enum Inspected {
    /// A log file with a valid header.
    LogFile {
        /// The file.
        path: PathBuf,
        /// Its header.
        header: super::LogFileHeader,
        /// Whether it was prepared since this machine started, on this file.
        same_life: bool,
    },
    /// A log file that was never used.
    Blank {
        /// The file.
        path: PathBuf,
    },
    /// A log file whose header cannot be read.
    BadFile {
        /// What is wrong.
        error: Error,
    },
    /// A whole record.
    Record(Record),
    /// A record whose payload does not match its header.
    BadRecord(Record),
    /// A stretch without records: unused space, a torn end, or damage.
    Gap {
        /// Its first position.
        start: Seq,
        /// The position after it.
        end: Seq,
    },
}

/// Shows all log files of the directory by serial number, then the records of the newest chain that
/// starts at or before `log_start`. Shows errors where possible; only a failed read ends the
/// inspection. Changes nothing.
pub fn inspect(
    fs: &dyn Fs,
    dir: &Path,
    log_start: Seq,
    mut visitor: impl FnMut(Inspected) -> Result<()>,
) -> Result<()> {
    let mut log_files = Vec::new();
    for entry in fs.list(dir).context("list", dir)? {
        if entry.is_dir() || file_number(&entry.name).is_none() {
            continue;
        }
        let path = dir.join(&entry.name);
        match chain::read_header(fs, &path) {
            Ok(Some(log_file)) => log_files.push(log_file),
            Ok(None) => visitor(Inspected::Blank { path })?,
            Err(error @ (Error::Corruption(_) | Error::UnknownFormat { .. })) => {
                visitor(Inspected::BadFile { error })?;
            }
            Err(error) => return Err(error),
        }
    }
    log_files.sort_by_key(|log_file| log_file.header.serial);
    for log_file in &log_files {
        visitor(Inspected::LogFile {
            path: log_file.path.clone(),
            header: log_file.header,
            same_life: log_file.same_life,
        })?;
    }
    let chain = chain::load(fs, dir, log_start, Policy::KeepPrefix)?;
    records(&chain, log_start, visitor)
}

/// Checks the log from where it begins, `log_start`, to what is published, `visible`; writers may
/// continue after that, and log files before a later beginning may be removed meanwhile. Notes in
/// `report` what was read, and what is wrong.
pub fn verify(
    fs: &dyn Fs,
    dir: &Path,
    (log_start, visible): (&dyn Fn() -> Seq, Seq),
    report: &mut VerifyReport,
) -> Result<()> {
    let (start, mut bad) = (log_start(), BTreeMap::new());
    inspect(fs, dir, start, |found| {
        match found {
            Inspected::LogFile { .. } => report.files += 1,
            Inspected::Record(record) => {
                report.entries += u64::from(record.operations);
                report.bytes += u64::from(record.payload_len);
            }
            Inspected::BadRecord(record) if record.position < visible => {
                bad.insert(record.position, "the payload of a record does not match");
            }
            Inspected::Gap { start: at, .. } if (start..visible).contains(&at) => {
                bad.insert(at, "there is no whole record where one was published");
            }
            _ => {}
        }
        Ok(())
    })?;
    for (position, detail) in bad.split_off(&log_start()) {
        let error = Error::corruption(dir, position, "log record", detail);
        report.problems.push(Problem { path: dir.to_owned(), error });
    }
    Ok(())
}

fn records(
    chain: &Chain,
    log_start: Seq,
    mut visitor: impl FnMut(Inspected) -> Result<()>,
) -> Result<()> {
    let mut stream = Stream::new(chain, log_start);
    let mut position = log_start;
    let mut gap: Option<Seq> = None;
    loop {
        let place = look(chain, &mut stream, position)?;
        let (shown, next) = match place {
            Place::Record(record) => (Some(Inspected::Record(record)), record.end()),
            Place::BadPayload(record) => (Some(Inspected::BadRecord(record)), record.end()),
            Place::Overlong(record) => (Some(Inspected::BadRecord(record)), stream.limit()),
            Place::Nothing => (None, next_candidate(&mut stream, position, chain.limit(position))?),
            Place::End => {
                return match gap {
                    Some(start) => visitor(Inspected::Gap { start, end: position }),
                    None => Ok(()),
                };
            }
        };
        match shown {
            None => {
                gap.get_or_insert(position);
            }
            Some(shown) => {
                if let Some(start) = gap.take() {
                    visitor(Inspected::Gap { start, end: position })?;
                }
                visitor(shown)?;
            }
        }
        position = next;
    }
}
