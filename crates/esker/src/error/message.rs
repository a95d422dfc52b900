//! The messages of errors: what failed and what to do about it, in one line.

use super::{ConflictCause, Corruption, Error};
use std::fmt;
use std::path::Path;

/// The message about a directory or file that is not a database.
fn foreign(
    f: &mut fmt::Formatter<'_>,
    path: &Path,
    found: &str,
    import: Option<&str>,
) -> fmt::Result {
    let path = path.display();
    write!(f, "{path} is not an Esker database ({found}): ")?;
    if let Some(kind) = import {
        write!(f, "bring it over with `esker import --from {kind} {path} --to NEW`, or ")?;
    }
    write!(f, "name an empty or new directory")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path, source } => {
                write!(f, "cannot {operation} {}: {source}", path.display())
            }
            Self::Corruption(corruption) => write!(f, "{corruption}"),
            Self::Locked { .. }
            | Self::NotADatabase { .. }
            | Self::Missing { .. }
            | Self::Exists { .. }
            | Self::Unfinished { .. }
            | Self::UnknownFormat { .. } => self.fmt_of_directory(f),
            Self::KeyTooLong { len, max } => {
                write!(f, "the key has {len} bytes, the limit is {max}: use a shorter key")
            }
            Self::ValueTooLarge { len, max } => write!(
                f,
                "the value has {len} bytes, the limit is {max}: split it or raise the memory option"
            ),
            Self::BatchTooLarge { len, max } => write!(
                f,
                "the batch has {len} bytes, the limit is {max}: split it, ingest its entries in key order, \
                 or raise the memory option"
            ),
            Self::OutOfOrder { keyspace, key } => write!(
                f,
                "the key {} of keyspace {keyspace:?} is not greater than the one before it: ingest \
                 sorted keys, each once",
                key.escape_ascii()
            ),
            Self::DiskFull { path, shortage, held } => {
                write!(f, "no space left for {}: {shortage}", path.display())?;
                held.as_ref().map_or(Ok(()), |held| write!(f, " ({held})"))
            }
            Self::WouldBlock { reason, retry_after } => write!(
                f,
                "the write would wait ({}): try again after about {retry_after:?}",
                reason.as_str()
            ),
            Self::Poisoned { cause } => {
                write!(f, "the database takes no more writes after a failure ({cause}): reopen it")
            }
            Self::Closed => write!(f, "the database is closed: open it again"),
            Self::Interrupted => {
                write!(f, "the call was interrupted: what it did stays, call it again for the rest")
            }
            Self::Forked => write!(
                f,
                "this process was forked from the one that opened the database: open it here"
            ),
            Self::KeyspaceDropped { .. }
            | Self::BranchMissing { .. }
            | Self::BranchExists { .. }
            | Self::ReadOnly
            | Self::ComparatorMissing { .. }
            | Self::ComparatorMismatch { .. }
            | Self::MergeOperatorMissing { .. }
            | Self::MergeOperatorMismatch { .. }
            | Self::MergeFailed { .. } => self.fmt_of_keyspace(f),
            Self::UserCodePanicked { what } => {
                write!(f, "{what} panicked: fix it and reopen the database")
            }
            Self::Conflict { .. }
            | Self::Deadlock { .. }
            | Self::LockTimeout { .. }
            | Self::Aborted { .. } => self.fmt_of_transaction(f),
            Self::InvalidArgument { what } => write!(f, "{what}"),
        }
    }
}

impl Error {
    /// The messages about the content of a directory.
    fn fmt_of_directory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path } => {
                write!(f, "{} is open elsewhere: close the other handle first", path.display())
            }
            Self::NotADatabase { path, found, import } => foreign(f, path, found, *import),
            Self::Missing { path } => {
                write!(f, "there is no database at {}: check the path", path.display())
            }
            Self::Exists { path, found } => {
                write!(f, "there already is {found} at {}: name another path", path.display())
            }
            Self::Unfinished { path } => write!(
                f,
                "{} holds a repair that was not finished: run it again (it begins anew), or remove \
                 the directory",
                path.display()
            ),
            Self::UnknownFormat { path, found, supported } => write!(
                f,
                "{} has format version {found}, this build reads up to {supported}: use a newer build",
                path.display()
            ),
            _ => Ok(()),
        }
    }

    /// The messages about keyspaces.
    fn fmt_of_keyspace(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyspaceDropped { keyspace } => {
                write!(f, "keyspace {keyspace:?} was dropped: ask for it again to make a new one")
            }
            Self::ReadOnly => write!(
                f,
                "this is read-only: open the database for writing, or make a branch of the snapshot"
            ),
            Self::BranchMissing { branch } => {
                write!(f, "there is no branch or named snapshot {branch:?}: list them first")
            }
            Self::BranchExists { branch } => write!(
                f,
                "there already is a branch or named snapshot {branch:?}: use another name"
            ),
            Self::ComparatorMissing { keyspace, comparator } => write!(
                f,
                "keyspace {keyspace:?} needs comparator {comparator:?}: give it in the options"
            ),
            Self::ComparatorMismatch { keyspace, stored, asked } => write!(
                f,
                "keyspace {keyspace:?} has comparator {stored:?}, not {asked:?}: give the one that it has"
            ),
            Self::MergeOperatorMissing { keyspace, operator } => write!(
                f,
                "keyspace {keyspace:?} needs merge operator {operator:?}: give it in the options"
            ),
            Self::MergeOperatorMismatch { keyspace, stored, asked } => write!(
                f,
                "keyspace {keyspace:?} has merge operator {stored:?}, not {asked:?}: give the one that \
                 it has"
            ),
            Self::MergeFailed { keyspace, operator, detail } => write!(
                f,
                "merge operator {operator:?} failed in keyspace {keyspace:?} ({detail}): \
                 overwrite the key or fix the operator"
            ),
            _ => Ok(()),
        }
    }

    /// The messages of transactions.
    fn fmt_of_transaction(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { keyspace, cause, .. } => {
                let what = match cause {
                    ConflictCause::KeyChanged => "a key that the transaction read was changed",
                    ConflictCause::RangeChanged => "a range that the transaction read was changed",
                    ConflictCause::HistoryTooOld => {
                        "the writes since the transaction began are no longer in memory to check its reads"
                    }
                };
                write!(f, "{what} (keyspace {keyspace:?}): begin it again")
            }
            Self::Deadlock { keyspace, key } => write!(
                f,
                "transactions wait for each other over a key of {} bytes in keyspace {keyspace:?}: \
                 roll this one back and begin it again",
                key.len()
            ),
            Self::LockTimeout { keyspace, key, waited } => write!(
                f,
                "a key of {} bytes in keyspace {keyspace:?} stayed locked for {waited:?}: \
                 roll back, or wait longer",
                key.len()
            ),
            Self::Aborted { reason } => write!(f, "the transaction was ended: {reason}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is damaged at offset {} ({}): {}",
            self.path.display(),
            self.offset,
            self.section,
            self.detail
        )?;
        if let Some(keyspace) = &self.keyspace {
            write!(f, "; keyspace {keyspace:?}")?;
        }
        if let Some((low, high)) = &self.key_range {
            // Keys may be secret: the message gives their lengths, the field holds the bytes.
            write!(f, "; between a key of {} bytes and one of {} bytes", low.len(), high.len())?;
        }
        write!(f, "; run `esker verify`, then `esker repair --plan` on the directory")
    }
}
