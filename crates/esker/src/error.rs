//! Errors.
//!
//! One enum serves the whole engine. Every variant names what failed and, in its one-line message,
//! the remedy. Errors are cheap to clone, because every later caller gets a failure of the
//! background (a poisoned log, for example).

mod message;
mod space;

pub use space::{Shortage, SpaceHeld};

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
///
/// # Example
/// ```
/// let error = esker::Db::open("/dev/null/no").unwrap_err();
/// assert!(!error.to_string().is_empty());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file.
    Io {
        /// What was attempted, as a verb: `open`, `read`, `sync`.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// Bytes on disk differ from what was written (contract C3, C4).
    Corruption(Box<Corruption>),
    /// Another handle, in this process or another, has the database open (C6).
    Locked {
        /// The database directory.
        path: PathBuf,
    },
    /// The directory holds something else than an Esker database. It is not changed.
    NotADatabase {
        /// The directory.
        path: PathBuf,
        /// What was found there.
        found: String,
        /// If it belongs to another store: the name of that store for `esker import --from`.
        import: Option<&'static str>,
    },
    /// The directory holds no database and the options forbid creating one.
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// Something already exists at the path of a new database.
    Exists {
        /// The path.
        path: PathBuf,
        /// What exists there: `a database`, `an empty directory`, `a file`, …
        found: String,
    },
    /// The directory holds the incomplete result of an interrupted repair.
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// A file was written by a format version that this build does not know (C9).
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The version it declares.
        found: u32,
        /// The newest version that this build reads.
        supported: u32,
    },
    /// A key is longer than the limit.
    KeyTooLong {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A value is larger than the limit for this memory budget.
    ValueTooLarge {
        /// Its length in bytes.
        len: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// A batch is larger than the limit for this memory budget.
    BatchTooLarge {
        /// Its encoded length in bytes.
        len: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// There is no room for the log or for new runs; writes resume when space returns (C7). Calls
    /// that free space (deletes, range deletes, drops) fail only when the reserve is used up too.
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
        /// What has run out.
        shortage: Shortage,
        /// What holds space in the database, where known.
        held: Option<Arc<SpaceHeld>>,
    },
    /// An earlier failure left the end of the log or manifest unknown. Writes fail until the
    /// database is reopened; reads go on (C2, R8).
    Poisoned {
        /// The failure that caused it.
        cause: Box<Error>,
    },
    /// The database was closed.
    Closed,
    /// This is a child process of the one that opened the database (R26).
    Forked,
    /// The keyspace was dropped.
    KeyspaceDropped {
        /// Its name.
        keyspace: String,
    },
    /// There is no branch or named snapshot of this name, or it was dropped.
    BranchMissing {
        /// Its name.
        branch: String,
    },
    /// There already is a branch or named snapshot of this name.
    BranchExists {
        /// Its name.
        branch: String,
    },
    /// The keyspace's custom comparator was not given at open (R15).
    ComparatorMissing {
        /// The keyspace.
        keyspace: String,
        /// The stored name of its comparator.
        comparator: String,
    },
    /// The keyspace was created with another order than the requested one (R15).
    ComparatorMismatch {
        /// The keyspace.
        keyspace: String,
        /// The stored name of its comparator.
        stored: String,
        /// The requested name.
        asked: String,
    },
    /// The keyspace's merge operator was not given at open.
    MergeOperatorMissing {
        /// The keyspace.
        keyspace: String,
        /// The stored name of its merge operator.
        operator: String,
    },
    /// The keyspace has another merge operator than the requested one.
    MergeOperatorMismatch {
        /// The keyspace.
        keyspace: String,
        /// The stored name of its merge operator; empty if it has none.
        stored: String,
        /// The requested name.
        asked: String,
    },
    /// A merge operator could not apply operands. The operands are kept. The key can be read again
    /// when it is overwritten or the operator accepts the operands.
    MergeFailed {
        /// The keyspace.
        keyspace: String,
        /// The name of its merge operator.
        operator: String,
        /// What the operator says.
        detail: String,
    },
    /// User code that the engine called (a comparator, merge operator or compaction filter)
    /// panicked.
    UserCodePanicked {
        /// The code that panicked.
        what: String,
    },
    /// The database was opened read-only, or the handle is of a named snapshot.
    ReadOnly,
    /// Another write changed what a transaction had read before it could commit, so the transaction
    /// wrote nothing (R20). A new attempt may succeed; [`crate::Db::transact`] makes one.
    Conflict {
        /// The keyspace.
        keyspace: String,
        /// A key that was changed, where known; empty otherwise.
        key: Vec<u8>,
        /// What is known about the change.
        cause: ConflictCause,
    },
    /// Two or more transactions wait for each other's locks; this one has to be rolled back.
    Deadlock {
        /// The keyspace.
        keyspace: String,
        /// The key whose lock was requested.
        key: Vec<u8>,
    },
    /// Another transaction kept a lock for longer than this one waits.
    LockTimeout {
        /// The keyspace.
        keyspace: String,
        /// The key whose lock was requested.
        key: Vec<u8>,
        /// How long it waited.
        waited: Duration,
    },
    /// The program itself ended a transaction (see [`Error::aborted`]).
    Aborted {
        /// Why.
        reason: String,
    },
    /// The call does not accept an argument.
    InvalidArgument {
        /// What is wrong with the argument and what would be right.
        what: String,
    },
}

/// The place of damage and what is known about it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Corruption {
    /// The damaged file.
    pub path: PathBuf,
    /// Offset of the damaged part in the file, in bytes.
    pub offset: u64,
    /// The part of the format: `block`, `segment index`, `log record`, `manifest edit`, …
    pub section: &'static str,
    /// The keyspace, where known.
    pub keyspace: Option<String>,
    /// Lower and upper bound of the keys concerned, where known.
    pub key_range: Option<(Vec<u8>, Vec<u8>)>,
    /// What is wrong.
    pub detail: String,
}

/// What is known about the change that a transaction conflicts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictCause {
    /// A key that the transaction read was written.
    KeyChanged,
    /// A key in a range that the transaction read was written, or a part of the range was deleted.
    RangeChanged,
    /// The transaction began so long ago that some memtables since then are no longer kept, so it
    /// is unknown whether something changed.
    HistoryTooOld,
}

/// The coarse kind of an [`Error`], stable enough for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // Each kind has the name of its variant.
pub enum ErrorKind {
    Io,
    Corruption,
    Locked,
    NotADatabase,
    Missing,
    Exists,
    Unfinished,
    UnknownFormat,
    KeyTooLong,
    ValueTooLarge,
    BatchTooLarge,
    DiskFull,
    Poisoned,
    Closed,
    Forked,
    KeyspaceDropped,
    BranchMissing,
    BranchExists,
    ComparatorMissing,
    ComparatorMismatch,
    MergeOperatorMissing,
    MergeOperatorMismatch,
    MergeFailed,
    UserCodePanicked,
    ReadOnly,
    Conflict,
    Deadlock,
    LockTimeout,
    Aborted,
    InvalidArgument,
}

impl ErrorKind {
    /// The kind as one lower-case word with dashes, as the shell prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Corruption => "corruption",
            Self::Locked => "locked",
            Self::NotADatabase => "not-a-database",
            Self::Missing => "missing",
            Self::Exists => "exists",
            Self::Unfinished => "unfinished",
            Self::UnknownFormat => "unknown-format",
            Self::KeyTooLong => "key-too-long",
            Self::ValueTooLarge => "value-too-large",
            Self::BatchTooLarge => "batch-too-large",
            Self::DiskFull => "disk-full",
            Self::Poisoned => "poisoned",
            Self::Closed => "closed",
            Self::Forked => "forked",
            Self::KeyspaceDropped => "keyspace-dropped",
            Self::BranchMissing => "branch-missing",
            Self::BranchExists => "branch-exists",
            Self::ComparatorMissing => "comparator-missing",
            Self::ComparatorMismatch => "comparator-mismatch",
            Self::MergeOperatorMissing => "merge-operator-missing",
            Self::MergeOperatorMismatch => "merge-operator-mismatch",
            Self::MergeFailed => "merge-failed",
            Self::UserCodePanicked => "user-code-panicked",
            Self::ReadOnly => "read-only",
            Self::Conflict => "conflict",
            Self::Deadlock => "deadlock",
            Self::LockTimeout => "lock-timeout",
            Self::Aborted => "aborted",
            Self::InvalidArgument => "invalid-argument",
        }
    }
}

impl Error {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } => ErrorKind::Io,
            Self::Corruption(_) => ErrorKind::Corruption,
            Self::Locked { .. } => ErrorKind::Locked,
            Self::NotADatabase { .. } => ErrorKind::NotADatabase,
            Self::Missing { .. } => ErrorKind::Missing,
            Self::Exists { .. } => ErrorKind::Exists,
            Self::Unfinished { .. } => ErrorKind::Unfinished,
            Self::UnknownFormat { .. } => ErrorKind::UnknownFormat,
            Self::KeyTooLong { .. } => ErrorKind::KeyTooLong,
            Self::ValueTooLarge { .. } => ErrorKind::ValueTooLarge,
            Self::BatchTooLarge { .. } => ErrorKind::BatchTooLarge,
            Self::DiskFull { .. } => ErrorKind::DiskFull,
            Self::Poisoned { .. } => ErrorKind::Poisoned,
            Self::Closed => ErrorKind::Closed,
            Self::Forked => ErrorKind::Forked,
            Self::KeyspaceDropped { .. } => ErrorKind::KeyspaceDropped,
            Self::BranchMissing { .. } => ErrorKind::BranchMissing,
            Self::BranchExists { .. } => ErrorKind::BranchExists,
            Self::ComparatorMissing { .. } => ErrorKind::ComparatorMissing,
            Self::ComparatorMismatch { .. } => ErrorKind::ComparatorMismatch,
            Self::MergeOperatorMissing { .. } => ErrorKind::MergeOperatorMissing,
            Self::MergeOperatorMismatch { .. } => ErrorKind::MergeOperatorMismatch,
            Self::MergeFailed { .. } => ErrorKind::MergeFailed,
            Self::UserCodePanicked { .. } => ErrorKind::UserCodePanicked,
            Self::ReadOnly => ErrorKind::ReadOnly,
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Deadlock { .. } => ErrorKind::Deadlock,
            Self::LockTimeout { .. } => ErrorKind::LockTimeout,
            Self::Aborted { .. } => ErrorKind::Aborted,
            Self::InvalidArgument { .. } => ErrorKind::InvalidArgument,
        }
    }

    /// Wraps the system's answer to `operation` on `path`. A full device, an exhausted quota and a
    /// file at its size limit become [`Error::DiskFull`].
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let shortage = match source.kind() {
            io::ErrorKind::StorageFull => Shortage::Device,
            io::ErrorKind::QuotaExceeded => Shortage::Quota,
            io::ErrorKind::FileTooLarge => Shortage::FileSize,
            _ => return Self::Io { operation, path: path.to_owned(), source: Arc::new(source) },
        };
        Self::DiskFull { path: path.to_owned(), shortage, held: None }
    }

    /// `found` exists at `path`, where a new database was to be created.
    pub fn exists(path: &Path, found: impl Into<String>) -> Self {
        Self::Exists { path: path.to_owned(), found: found.into() }
    }

    /// Damage at `offset` of `path`, in the part of the format called `section`.
    pub fn corruption(
        path: &Path,
        offset: u64,
        section: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self::Corruption(Box::new(Corruption {
            path: path.to_owned(),
            offset,
            section,
            detail: detail.into(),
            ..Corruption::default()
        }))
    }

    /// An argument that the call does not accept.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::InvalidArgument { what: what.into() }
    }

    /// The error with which the closure of [`crate::Db::transact`] stops it: nothing is written,
    /// and there is no new attempt.
    pub fn aborted(reason: impl Into<String>) -> Self {
        Self::Aborted { reason: reason.into() }
    }

    /// Whether a transaction that ended with this error may succeed in a new attempt.
    pub fn wants_retry(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Deadlock { .. })
    }

    /// This error as the cause of a refusal to write.
    pub fn poisoning(self) -> Self {
        match self {
            poisoned @ Self::Poisoned { .. } => poisoned,
            cause => Self::Poisoned { cause: Box::new(cause) },
        }
    }

    /// Adds the keyspace and the key range to a corruption; other errors stay as they are.
    #[must_use]
    pub fn in_keyspace(mut self, name: &str, range: Option<(&[u8], &[u8])>) -> Self {
        if let Self::Corruption(corruption) = &mut self {
            corruption.keyspace.get_or_insert_with(|| name.to_owned());
            if let Some((low, high)) = range {
                corruption.key_range.get_or_insert_with(|| (low.to_vec(), high.to_vec()));
            }
        }
        self
    }
}

/// Attaches the operation and the path to an [`io::Error`].
pub trait IoContext<T> {
    /// Names what was attempted on which file.
    fn context(self, operation: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, operation: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::io(operation, path, source))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source.as_ref()),
            Self::Poisoned { cause } => Some(cause.as_ref()),
            _ => None,
        }
    }
}
