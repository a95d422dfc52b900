//! The kind of an error: what scripts and other languages tell errors apart by.

/// The coarse kind of an [`crate::Error`], stable enough for scripts.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use esker::ErrorKind;
/// let mut options = esker::Options::default();
/// options.create_if_missing = false;
/// let error = esker::Db::open_with(dir.path().join("none"), options).unwrap_err();
/// let exit_code = match error.kind() {
///     ErrorKind::Missing | ErrorKind::NotADatabase => 2,
///     ErrorKind::Corruption => 3,
///     _ => 1,
/// };
/// assert_eq!(exit_code, 2);
/// # Ok::<(), esker::Error>(())
/// ```
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
    OutOfOrder,
    DiskFull,
    WouldBlock,
    Poisoned,
    Closed,
    Interrupted,
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
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::ErrorKind::DiskFull.as_str(), "disk-full");
    /// ```
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
            Self::OutOfOrder => "out-of-order",
            Self::DiskFull => "disk-full",
            Self::WouldBlock => "would-block",
            Self::Poisoned => "poisoned",
            Self::Closed => "closed",
            Self::Interrupted => "interrupted",
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
