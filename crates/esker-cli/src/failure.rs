//! How a command fails: one line that names what failed and the remedy, and an exit code.
//!
//! Code 2 means that the command was not understood, code 1 that it did not succeed. It is no
//! failure if a reader closes our standard output early (`esker scan DIR | head`).

use esker::internals::base::limits::VALUE_BYTES_MAX;
use esker_port::token::TokenError;
use std::fmt;
use std::io;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The engine refused or failed.
    Engine(esker::Error),
    /// A dump, load or import failed.
    Port(esker_port::Error),
    /// The arguments make no sense; the text names the argument and the remedy.
    Usage(String),
    /// The command ran and its answer is "no": a missing key, damage found.
    Negative(String),
    /// Standard input or output failed.
    Stream(io::Error),
}

impl Failure {
    /// The exit code for scripts.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Stream(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Port(_) | Self::Engine(_) | Self::Negative(_) | Self::Stream(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => write!(f, "{}", one_line(&error.to_string())),
            Self::Port(error) => write!(f, "{}", one_line(&error.to_string())),
            Self::Usage(what) | Self::Negative(what) => write!(f, "{}", one_line(what)),
            Self::Stream(error) => {
                write!(f, "cannot use standard input or output: {error}: check where they lead")
            }
        }
    }
}

impl From<esker::Error> for Failure {
    fn from(error: esker::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<esker_port::Error> for Failure {
    fn from(error: esker_port::Error) -> Self {
        match error {
            esker_port::Error::Engine(error) => Self::Engine(error),
            // The reader of our output may stop reading it.
            esker_port::Error::Io { operation: "write", source, .. }
                if source.kind() == io::ErrorKind::BrokenPipe =>
            {
                Self::Stream(source)
            }
            other => Self::Port(other),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Stream(error)
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Malformed(what) => Self::Usage(what),
            TokenError::TooLarge { len } => {
                Self::Engine(esker::Error::ValueTooLarge { len, max: VALUE_BYTES_MAX })
            }
        }
    }
}

/// A message without line breaks: paths may hold any character, an answer has one line.
pub fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}
