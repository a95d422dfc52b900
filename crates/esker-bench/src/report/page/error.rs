//! Why a page could not be made.
//!
//! Each case names the file and what to do about it. The program decides on its exit code by the
//! kind of the crate's own error, so each case also says which kind it is.

use std::fmt;

/// Why a page could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageError {
    /// No file was given.
    Empty,
    /// A file could not be read.
    Unreadable {
        /// The file.
        file: String,
        /// What the system said.
        cause: String,
    },
    /// A file is not JSON.
    NotJson {
        /// The file.
        file: String,
        /// What is wrong with it, and where.
        cause: String,
    },
    /// A file is JSON, and not what the benchmark writes.
    NotAReport {
        /// The file.
        file: String,
        /// What is missing or wrong.
        cause: String,
    },
    /// A file has a format that this program does not know.
    Format {
        /// The file.
        file: String,
        /// The number in the file.
        found: u64,
        /// The nearest number that this program knows.
        known: u64,
    },
    /// Two files hold the same runs, which must not count twice.
    Twice {
        /// The first file.
        first: String,
        /// The second.
        second: String,
    },
    /// A baseline was measured under other conditions than every report.
    OtherConditions {
        /// The baseline.
        file: String,
        /// What differs, in words.
        differences: String,
    },
    /// A picture could not be drawn.
    Drawing {
        /// What the library said.
        cause: String,
    },
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                f.write_str("no report was given: name files that `esker bench --json` wrote")
            }
            Self::Unreadable { file, cause } => {
                write!(f, "cannot read {file}: {cause}: check the name and the permissions")
            }
            Self::NotJson { file, cause } => write!(
                f,
                "{file} is not JSON ({cause}): give a file that `esker bench --json` wrote whole"
            ),
            Self::NotAReport { file, cause } => write!(
                f,
                "{file} is not a report of this benchmark ({cause}): measure again with \
                 `esker bench --json`"
            ),
            Self::Format { file, found, known } if found > known => write!(
                f,
                "{file} has format {found}, and this program knows formats up to {known}: use the \
                 newer program that wrote it"
            ),
            Self::Format { file, found, known } => write!(
                f,
                "{file} has format {found}, which is older than {known}, the oldest that this \
                 program knows: measure again with `esker bench --json`"
            ),
            Self::Twice { first, second } => {
                write!(f, "{first} and {second} hold the same runs: name one of them")
            }
            Self::OtherConditions { file, differences } => write!(
                f,
                "{file} is no baseline of these reports, it was measured under other conditions \
                 ({differences}): name one of the same machine and settings"
            ),
            Self::Drawing { cause } => write!(f, "cannot draw a picture of the page: {cause}"),
        }
    }
}

impl std::error::Error for PageError {}

impl PageError {
    /// As an error of the crate: a usage error if another command line is the answer.
    pub fn classed(self) -> crate::Error {
        match self {
            Self::Empty | Self::Twice { .. } | Self::OtherConditions { .. } => {
                crate::Error::Usage(self.to_string())
            }
            _ => crate::Error::Failed(self.to_string()),
        }
    }
}
