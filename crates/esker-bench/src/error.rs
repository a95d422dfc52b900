//! What can go wrong in a benchmark, sorted by who can correct it.
//!
//! A usage error is corrected by another command line; a failure is in the engine, the disk or the
//! directory. The program has a different exit code for each, so every error is of one kind from the
//! place where it arises.

use std::fmt;
use std::path::Path;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a benchmark ended early. Each message is one line: the thing and the remedy.
#[derive(Debug, Clone)]
pub enum Error {
    /// The settings cannot be carried out as given.
    Usage(String),
    /// An engine, a file or the system failed.
    Failed(String),
}

impl Error {
    /// A usage error with this message.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// A failure of `engine` while it did `what`.
    pub fn engine(engine: &str, what: &str, cause: impl fmt::Display) -> Self {
        Self::Failed(format!("{engine}: {what} failed: {cause}"))
    }

    /// A failure of an operation on a file or directory.
    pub fn io(what: &str, path: &Path, cause: &std::io::Error) -> Self {
        Self::Failed(format!("cannot {what} {}: {cause}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}
