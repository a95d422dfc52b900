//! Errors.
//!
//! One enum serves the whole engine. Every variant names what failed and, in its one-line message,
//! the remedy. Errors are cheap to clone, because every later caller gets a failure of the
//! background (a poisoned log, for example).

mod cause;
mod kind;
mod message;
mod problem;
mod space;

pub use cause::Cause;
pub use kind::ErrorKind;
pub use problem::{Problem, VerifyReport};
pub use space::{Shortage, SpaceHeld};

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The result of every fallible call of this crate.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// fn remember(db: &esker::Db, name: &str) -> esker::Result<bool> {
///     let new = !db.contains_key(name)?;
///     db.insert(name, "")?;
///     Ok(new)
/// }
/// assert!(remember(&db, "ann")?);
/// # Ok::<(), esker::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let first = esker::Db::open(&dir)?;
/// use esker::{Db, Error};
/// match Db::open(&dir) {
///     Ok(db) => db.insert("hello", "world")?,
///     Err(Error::Locked { path }) => println!("{} is open elsewhere", path.display()),
///     Err(Error::Corruption(damage)) => println!("{} is damaged", damage.path.display()),
///     // The messages say what to do.
///     Err(other) => println!("{other}"),
/// }
/// # assert!(matches!(Db::open(&dir), Err(Error::Locked { .. })));
/// # Ok::<(), esker::Error>(())
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
    /// A key that is ingested is not greater than the one before it in its keyspace. The ingestion goes
    /// on without it.
    OutOfOrder {
        /// The keyspace.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
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
    /// A call that does not wait ([`crate::Keyspace::try_insert`], [`crate::Keyspace::try_remove`],
    /// [`crate::Db::try_write`]) would have had to. It wrote nothing.
    WouldBlock {
        /// What it would have waited for: flush debt, compaction debt, memory or a full device.
        reason: Cause,
        /// An estimate of the time after which it is worth another try.
        retry_after: Duration,
    },
    /// An earlier failure left the end of the log or manifest unknown. Writes fail until the
    /// database is reopened; reads go on (C2, R8).
    Poisoned {
        /// The failure that caused it.
        cause: Box<Error>,
    },
    /// The database was closed.
    Closed,
    /// The program ended a long call, such as [`crate::Db::compact_until`]. What the call did so far stays, and
    /// nothing is lost.
    Interrupted,
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
///
/// # Example
/// ```
/// use esker::Error;
/// let error = Error::corruption("data/7.run".as_ref(), 4096, "block", "the checksum is wrong");
/// if let Error::Corruption(damage) = &error {
///     assert_eq!((damage.section, damage.offset), ("block", 4096));
///     assert_eq!(damage.keyspace, None); // Not known here.
/// }
/// ```
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
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// use esker::{ConflictCause, Error};
/// let seats = db.keyspace("seats")?;
/// let tx = db.begin()?;
/// tx.insert(&seats, "free", [seats.iter()?.count() as u8])?;
/// let _ = tx.range(&seats, "1".."2")?.count();
/// seats.insert("12A", "bob")?;
/// let Err(Error::Conflict { cause, .. }) = tx.commit() else { panic!("bob came first") };
/// assert_eq!(cause, ConflictCause::RangeChanged);
/// # Ok::<(), esker::Error>(())
/// ```
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

impl Error {
    /// The kind of this error.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::Error::Closed.kind(), esker::ErrorKind::Closed);
    /// ```
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
            Self::OutOfOrder { .. } => ErrorKind::OutOfOrder,
            Self::WouldBlock { .. } => ErrorKind::WouldBlock,
            Self::Poisoned { .. } => ErrorKind::Poisoned,
            Self::Closed => ErrorKind::Closed,
            Self::Interrupted => ErrorKind::Interrupted,
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
    ///
    /// # Example
    /// ```
    /// use std::io;
    /// let full = esker::Error::io("write", "log".as_ref(), io::ErrorKind::StorageFull.into());
    /// assert_eq!(full.kind(), esker::ErrorKind::DiskFull);
    /// let other = esker::Error::io("write", "log".as_ref(), io::ErrorKind::Other.into());
    /// assert_eq!(other.kind(), esker::ErrorKind::Io);
    /// ```
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
    ///
    /// # Example
    /// ```
    /// let error = esker::Error::exists("copy".as_ref(), "a file");
    /// assert!(matches!(error, esker::Error::Exists { found, .. } if found == "a file"));
    /// ```
    pub fn exists(path: &Path, found: impl Into<String>) -> Self {
        Self::Exists { path: path.to_owned(), found: found.into() }
    }

    /// Damage at `offset` of `path`, in the part of the format called `section`.
    ///
    /// # Example
    /// ```
    /// let error = esker::Error::corruption("LOG".as_ref(), 64, "log record", "it ends too early");
    /// assert!(error.to_string().contains("it ends too early"));
    /// ```
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
    ///
    /// # Example
    /// ```
    /// let error = esker::Error::invalid("the age is negative: give 0 or more");
    /// assert!(error.to_string().contains("the age is negative"));
    /// ```
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::InvalidArgument { what: what.into() }
    }

    /// The error with which the closure of [`crate::Db::transact`] stops it: nothing is written,
    /// and there is no new attempt.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let refused = db.transact(|tx| {
    ///     tx.insert(&db.default_keyspace(), "order", "100 nails")?;
    ///     Err::<(), _>(esker::Error::aborted("there are no nails"))
    /// });
    /// assert!(matches!(refused, Err(esker::Error::Aborted { .. })));
    /// assert!(!db.contains_key("order")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn aborted(reason: impl Into<String>) -> Self {
        Self::Aborted { reason: reason.into() }
    }

    /// Whether a transaction that ended with this error may succeed in a new attempt.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let visits = db.default_keyspace();
    /// loop {
    ///     let tx = db.begin()?;
    ///     let count = tx.get(&visits, "count")?.map_or(0, |value| value[0]);
    ///     tx.insert(&visits, "count", [count + 1])?;
    ///     match tx.commit() {
    ///         Ok(_) => break,
    ///         Err(error) if error.wants_retry() => {}
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// assert_eq!(visits.get("count")?, Some(vec![1]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn wants_retry(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Deadlock { .. })
    }

    /// This error as the cause of a refusal to write.
    ///
    /// # Example
    /// ```
    /// use esker::Error;
    /// let cause = Error::io("sync", "log".as_ref(), std::io::ErrorKind::Other.into());
    /// let Error::Poisoned { cause } = cause.poisoning() else { panic!("it is poisoned") };
    /// assert!(matches!(*cause, Error::Io { .. }));
    /// ```
    pub fn poisoning(self) -> Self {
        match self {
            poisoned @ Self::Poisoned { .. } => poisoned,
            cause => Self::Poisoned { cause: Box::new(cause) },
        }
    }

    /// Adds the keyspace and the key range to a corruption; other errors stay as they are.
    ///
    /// # Example
    /// ```
    /// use esker::Error;
    /// let error = Error::corruption("data/7.run".as_ref(), 0, "block", "the checksum is wrong");
    /// let error = error.in_keyspace("users", Some((b"ann", b"bob")));
    /// let Error::Corruption(damage) = error else { panic!("it was corruption") };
    /// assert_eq!(damage.keyspace.as_deref(), Some("users"));
    /// ```
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
