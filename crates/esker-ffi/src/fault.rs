//! Why a call failed: as this library passes it on, and as C sees it.
//!
//! A call fails with a [`Fault`]. At the border an [`ErrorInfo`] is made of it, the value behind the
//! [`esker_error`] that the caller receives. `error` has the functions that read one.

use crate::code::esker_code;
use crate::code::esker_code::*;
use crate::handle::{Handle, kind};
use crate::text::Text;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The engine failed with this error.
    Engine(esker::Error),
    /// The call itself is wrong: NULL, a wrong handle, a wrong length.
    Misuse(String),
    /// A panic was caught: a defect of the library.
    Panic(String),
    /// A callback passes on an error that it received.
    Told(Box<ErrorInfo>),
}

impl Fault {
    /// Whether a transaction that ended with this may succeed if it is begun again.
    pub(crate) fn wants_retry(&self) -> bool {
        match self {
            Self::Engine(error) => error.wants_retry(),
            Self::Told(info) => {
                matches!(info.code, esker_code::ESKER_CONFLICT | esker_code::ESKER_DEADLOCK)
            }
            Self::Misuse(_) | Self::Panic(_) => false,
        }
    }
}

pub(crate) type Result<T, E = Fault> = std::result::Result<T, E>;

impl From<esker::Error> for Fault {
    fn from(error: esker::Error) -> Self {
        Self::Engine(error)
    }
}

/// Fails because the call is wrong; the text says how.
pub(crate) fn misuse<T>(what: impl Into<String>) -> Result<T> {
    Err(Fault::Misuse(what.into()))
}

/// The details of an error. The caller that receives one frees it with `esker_error_free`.
pub struct esker_error(());

kind!(esker_error, b"eskerror", ErrorInfo);

/// The value behind an [`esker_error`].
pub(crate) struct ErrorInfo {
    pub(crate) code: esker_code,
    pub(crate) message: Text,
    pub(crate) path: Option<Text>,
    pub(crate) offset: Option<u64>,
    pub(crate) section: Option<Text>,
    pub(crate) keyspace: Option<Text>,
    pub(crate) branch: Option<Text>,
    pub(crate) keys: Option<(Text, Text)>,
    pub(crate) os_code: i32,
    /// In microseconds.
    pub(crate) retry_after: u64,
    /// It belongs to this error and is freed only with it.
    pub(crate) cause: Option<Box<Handle<ErrorInfo>>>,
    pub(crate) is_cause: bool,
}

impl std::fmt::Debug for ErrorInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ErrorInfo").field("code", &self.code).finish_non_exhaustive()
    }
}

/// The code of an engine's error.
fn code_of(error: &esker::Error) -> esker_code {
    use esker::ErrorKind as Kind;
    match error.kind() {
        Kind::Io => ESKER_IO,
        Kind::Corruption => ESKER_CORRUPTION,
        Kind::Locked => ESKER_LOCKED,
        Kind::NotADatabase => ESKER_NOT_A_DATABASE,
        Kind::Missing => ESKER_MISSING,
        Kind::Exists => ESKER_EXISTS,
        Kind::UnknownFormat => ESKER_UNKNOWN_FORMAT,
        Kind::KeyTooLong => ESKER_KEY_TOO_LONG,
        Kind::ValueTooLarge => ESKER_VALUE_TOO_LARGE,
        Kind::BatchTooLarge => ESKER_BATCH_TOO_LARGE,
        Kind::DiskFull => ESKER_DISK_FULL,
        Kind::Poisoned => ESKER_POISONED,
        Kind::Closed => ESKER_CLOSED,
        Kind::Forked => ESKER_FORKED,
        Kind::KeyspaceDropped => ESKER_KEYSPACE_DROPPED,
        Kind::ComparatorMissing => ESKER_COMPARATOR_MISSING,
        Kind::ComparatorMismatch => ESKER_COMPARATOR_MISMATCH,
        Kind::UserCodePanicked => ESKER_USER_CODE_PANICKED,
        Kind::ReadOnly => ESKER_READ_ONLY,
        Kind::InvalidArgument => ESKER_INVALID_ARGUMENT,
        Kind::Conflict => ESKER_CONFLICT,
        Kind::Deadlock => ESKER_DEADLOCK,
        Kind::LockTimeout => ESKER_LOCK_TIMEOUT,
        Kind::Aborted => ESKER_ABORTED,
        Kind::MergeOperatorMissing => ESKER_MERGE_OPERATOR_MISSING,
        Kind::MergeOperatorMismatch => ESKER_MERGE_OPERATOR_MISMATCH,
        Kind::MergeFailed => ESKER_MERGE_FAILED,
        Kind::BranchMissing => ESKER_BRANCH_MISSING,
        Kind::BranchExists => ESKER_BRANCH_EXISTS,
        Kind::Unfinished => ESKER_UNFINISHED,
        Kind::WouldBlock => ESKER_WOULD_BLOCK,
        Kind::OutOfOrder => ESKER_OUT_OF_ORDER,
        Kind::Interrupted => ESKER_INTERRUPTED,
        _ => ESKER_OTHER,
    }
}

impl ErrorInfo {
    pub(crate) fn plain(code: esker_code, message: String) -> Self {
        Self {
            code,
            message: Text::new(message),
            path: None,
            offset: None,
            section: None,
            keyspace: None,
            branch: None,
            keys: None,
            os_code: 0,
            retry_after: 0,
            cause: None,
            is_cause: false,
        }
    }

    pub(crate) fn new(fault: Fault) -> Self {
        match fault {
            Fault::Engine(error) => Self::of_engine(&error),
            Fault::Told(info) => *info,
            Fault::Misuse(what) => Self::plain(ESKER_MISUSE, what),
            Fault::Panic(what) => {
                Self::plain(ESKER_PANIC, format!("the library panicked ({what}): please report it"))
            }
        }
    }

    fn of_engine(error: &esker::Error) -> Self {
        use esker::Error;
        let mut info = Self::plain(code_of(error), error.to_string());
        match error {
            Error::Io { path, source, .. } => {
                info.path = Some(Text::of_path(path));
                info.os_code = source.raw_os_error().unwrap_or_default();
            }
            Error::Corruption(corruption) => {
                info.path = Some(Text::of_path(&corruption.path));
                info.offset = Some(corruption.offset);
                info.section = Some(Text::new(corruption.section));
                info.keyspace = corruption.keyspace.as_deref().map(Text::new);
                let keys = corruption.key_range.as_ref();
                info.keys =
                    keys.map(|(low, high)| (Text::new(low.as_slice()), Text::new(high.as_slice())));
            }
            Error::Locked { path }
            | Error::NotADatabase { path, .. }
            | Error::Missing { path }
            | Error::Exists { path, .. }
            | Error::Unfinished { path }
            | Error::UnknownFormat { path, .. }
            | Error::DiskFull { path, .. } => info.path = Some(Text::of_path(path)),
            Error::KeyspaceDropped { keyspace }
            | Error::ComparatorMissing { keyspace, .. }
            | Error::ComparatorMismatch { keyspace, .. }
            | Error::MergeOperatorMissing { keyspace, .. }
            | Error::MergeOperatorMismatch { keyspace, .. }
            | Error::MergeFailed { keyspace, .. } => {
                info.keyspace = Some(Text::new(keyspace.as_str()));
            }
            Error::BranchMissing { branch } | Error::BranchExists { branch } => {
                info.branch = Some(Text::new(branch.as_str()));
            }
            Error::Conflict { keyspace, key, .. }
            | Error::Deadlock { keyspace, key }
            | Error::LockTimeout { keyspace, key, .. } => {
                info.keyspace = Some(Text::new(keyspace.as_str()));
                let known = !key.is_empty();
                info.keys = known.then(|| (Text::new(key.as_slice()), Text::new(key.as_slice())));
            }
            Error::WouldBlock { retry_after, .. } => {
                info.retry_after = u64::try_from(retry_after.as_micros()).unwrap_or(u64::MAX);
            }
            Error::Poisoned { cause } => {
                let cause = Self { is_cause: true, ..Self::of_engine(cause) };
                info.cause = Some(Box::new(Handle::new::<esker_error>(cause)));
            }
            _ => {}
        }
        info
    }
}
