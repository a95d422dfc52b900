//! The engine's errors in LevelDB's words. LevelDB knows five kinds of errors, and an error is one
//! line of text that begins with its kind; programs check the beginning, and some a phrase.

use esker::Error;

/// A failure in LevelDB's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) String);

pub(crate) type Result<T, E = Status> = std::result::Result<T, E>;

impl Status {
    pub(crate) fn corruption(what: impl std::fmt::Display) -> Self {
        Self(format!("Corruption: {what}"))
    }

    pub(crate) fn invalid(what: impl std::fmt::Display) -> Self {
        Self(format!("Invalid argument: {what}"))
    }

    pub(crate) fn io(what: impl std::fmt::Display) -> Self {
        Self(format!("IO error: {what}"))
    }

    pub(crate) fn not_found(what: impl std::fmt::Display) -> Self {
        Self(format!("NotFound: {what}"))
    }

    /// A NULL where LevelDB would crash.
    pub(crate) fn null(what: &str) -> Self {
        Self::invalid(format_args!("{what} is NULL"))
    }

    /// The database was made with the comparator `stored`, and `asked` was given.
    pub(crate) fn mismatch(stored: &str, asked: &str) -> Self {
        Self::invalid(format_args!("{stored} does not match existing comparator : {asked}"))
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Self {
        match error {
            Error::Missing { path } => {
                let path = path.display();
                Self::invalid(format_args!("{path}: does not exist (create_if_missing is false)"))
            }
            Error::Exists { path, .. } => {
                let path = path.display();
                Self::invalid(format_args!("{path}: exists (error_if_exists is true)"))
            }
            Error::Locked { path } => Self::io(format_args!(
                "lock {}: already held by this or another process",
                path.join("LOCK").display()
            )),
            Error::ComparatorMismatch { stored, asked, .. } => Self::mismatch(stored, asked),
            Error::Corruption(_) | Error::UnknownFormat { .. } => Self::corruption(error),
            Error::Poisoned { cause } if matches!(**cause, Error::Corruption(_)) => {
                Self::corruption(error)
            }
            Error::NotADatabase { .. }
            | Error::Unfinished { .. }
            | Error::KeyTooLong { .. }
            | Error::ValueTooLarge { .. }
            | Error::BatchTooLarge { .. }
            | Error::ComparatorMissing { .. }
            | Error::InvalidArgument { .. } => Self::invalid(error),
            _ => Self::io(error),
        }
    }
}

#[cfg(test)]
mod tests;
