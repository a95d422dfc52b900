//! The grammar of the shell: one command per line, tokens between spaces.
//!
//! Every command line gets exactly one closing answer line, `ok …` or `err KIND message`, after
//! any lines of data; blank lines get none. Data lines cannot be mistaken for closing lines (see
//! `token::encode_first`). Parsing knows nothing of databases, so a refused line has no effect.

use esker::{Durability, ErrorKind};
use esker_port::token::{self, TokenError};

#[cfg(test)]
mod tests;

/// One parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `put K V [class]`
    Put { key: Vec<u8>, value: Vec<u8>, class: Option<Durability> },
    /// `del K [class]`
    Del { key: Vec<u8>, class: Option<Durability> },
    /// `delrange A B [class]`
    DelRange { range: Range, class: Option<Durability> },
    /// `get K [@S]`
    Get { key: Vec<u8>, snapshot: Option<Vec<u8>> },
    /// `scan A B LIMIT [rev] [@S]`
    Scan { range: Range, limit: Option<u64>, reverse: bool, snapshot: Option<Vec<u8>> },
    /// `snap S`
    Snap(Vec<u8>),
    /// `unsnap S`
    Unsnap(Vec<u8>),
    /// `begin`
    Begin,
    /// `commit [class]`
    Commit(Option<Durability>),
    /// `abort`
    Abort,
    /// `use KEYSPACE`
    Use(String),
    /// `keyspaces`
    Keyspaces,
    /// `drop KEYSPACE`
    Drop(String),
    /// `flush`
    Flush,
    /// `compact [A B]`
    Compact(Option<Range>),
    /// `sync`
    Sync,
    /// `verify`
    Verify,
    /// `stats`
    Stats,
    /// `help`
    Help,
    /// `close`
    Close,
}

/// The keys from the first bound up to, but not including, the second; `None` is no bound.
pub type Range = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Why a line was refused: the kind and the message of the `err` answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One word for scripts.
    pub kind: &'static str,
    /// The rest of the line, for people.
    pub message: String,
}

impl Refusal {
    /// The line is not in the grammar, or makes no sense where it stands.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: "usage", message: message.into() }
    }
}

impl From<esker::Error> for Refusal {
    fn from(error: esker::Error) -> Self {
        Self { kind: error.kind().as_str(), message: error.to_string() }
    }
}

impl From<TokenError> for Refusal {
    fn from(error: TokenError) -> Self {
        let kind = match error {
            TokenError::Malformed(_) => "usage",
            TokenError::TooLarge { .. } => ErrorKind::ValueTooLarge.as_str(),
        };
        Self { kind, message: error.to_string() }
    }
}

/// The commands and what they do, in the order in which `help` shows them.
pub const HELP: &[(&str, &str)] = &[
    ("put K V [CLASS]", "sets K to V; CLASS is buffered, process or disk"),
    ("del K [CLASS]", "removes K"),
    ("delrange A B [CLASS]", "removes the keys from A up to, but not including, B"),
    ("get K [@S]", "prints the value of K, at snapshot S if given"),
    ("scan A B LIMIT [rev] [@S]", "prints at most LIMIT entries from A up to, not including, B"),
    ("snap S", "takes a snapshot called S"),
    ("unsnap S", "gives snapshot S up"),
    ("begin", "starts an atomic batch: put, del and delrange now go to it"),
    ("commit [CLASS]", "writes the batch, whole or not at all"),
    ("abort", "forgets the batch"),
    ("use KEYSPACE", "goes to a keyspace, making it if needed; the first one is `default`"),
    ("keyspaces", "prints the names of all keyspaces"),
    ("drop KEYSPACE", "removes a keyspace and all it holds"),
    ("flush", "writes what is in memory to files of runs"),
    ("compact [A B]", "compacts everything, or the keys from A to B of this keyspace"),
    ("sync", "makes everything written so far survive power loss"),
    ("verify", "reads all files and checks them"),
    ("stats", "prints the statistics"),
    ("help", "prints this list; - is no bound, 0x… is hexadecimal, #N makes up a value"),
    ("close", "closes the database and leaves"),
];

/// Reads one line, without its line break; `None` for a blank one.
pub fn parse(line: &[u8]) -> Result<Option<Command>, Refusal> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut tokens = line.split(|&byte| byte == b' ').filter(|token| !token.is_empty());
    let Some(name) = tokens.next() else { return Ok(None) };
    let arguments: Vec<&[u8]> = tokens.collect();
    command(name, &arguments).map(Some)
}

fn command(name: &[u8], arguments: &[&[u8]]) -> Result<Command, Refusal> {
    Ok(match (name, arguments) {
        (b"put", [key, value, class @ ..]) => {
            let key = token::decode(key)?;
            let value = token::decode_value(value, &key)?;
            Command::Put { key, value, class: optional_class("put", class)? }
        }
        (b"del", [key, class @ ..]) => {
            Command::Del { key: token::decode(key)?, class: optional_class("del", class)? }
        }
        (b"delrange", [low, high, class @ ..]) => Command::DelRange {
            range: range(low, high)?,
            class: optional_class("delrange", class)?,
        },
        (b"get", [key]) => Command::Get { key: token::decode(key)?, snapshot: None },
        (b"get", [key, at]) => {
            Command::Get { key: token::decode(key)?, snapshot: Some(snapshot("get", at)?) }
        }
        (b"scan", [low, high, limit, rest @ ..]) => scan(low, high, limit, rest)?,
        (b"snap", [name]) => Command::Snap(token::decode(name)?),
        (b"unsnap", [name]) => Command::Unsnap(token::decode(name)?),
        (b"begin", []) => Command::Begin,
        (b"commit", class) => Command::Commit(optional_class("commit", class)?),
        (b"abort", []) => Command::Abort,
        (b"use", [name]) => Command::Use(text(name)?),
        (b"keyspaces", []) => Command::Keyspaces,
        (b"drop", [name]) => Command::Drop(text(name)?),
        (b"flush", []) => Command::Flush,
        (b"compact", []) => Command::Compact(None),
        (b"compact", [low, high]) => Command::Compact(Some(range(low, high)?)),
        (b"sync", []) => Command::Sync,
        (b"verify", []) => Command::Verify,
        (b"stats", []) => Command::Stats,
        (b"help", []) => Command::Help,
        (b"close", []) => Command::Close,
        _ => return Err(misused(name)),
    })
}

fn scan(low: &[u8], high: &[u8], limit: &[u8], rest: &[&[u8]]) -> Result<Command, Refusal> {
    let range = range(low, high)?;
    let limit = match limit {
        b"-" => None,
        digits => {
            let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            Some(number.ok_or_else(|| {
                Refusal::usage(format!("LIMIT of scan is a number or -, not {}", shown(digits)))
            })?)
        }
    };
    let (reverse, rest) = match rest {
        [b"rev", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let snapshot = match rest {
        [] => None,
        [at] => Some(snapshot("scan", at)?),
        _ => return Err(misused(b"scan")),
    };
    Ok(Command::Scan { range, limit, reverse, snapshot })
}

fn range(low: &[u8], high: &[u8]) -> Result<Range, Refusal> {
    Ok((token::decode_bound(low)?, token::decode_bound(high)?))
}

fn optional_class(name: &str, tokens: &[&[u8]]) -> Result<Option<Durability>, Refusal> {
    match tokens {
        [] => Ok(None),
        [b"buffered"] => Ok(Some(Durability::Buffered)),
        [b"process"] => Ok(Some(Durability::Process)),
        [b"disk"] => Ok(Some(Durability::Disk)),
        [other] => Err(Refusal::usage(format!(
            "{name} takes buffered, process or disk at its end, not {}",
            shown(other)
        ))),
        _ => Err(misused(name.as_bytes())),
    }
}

fn snapshot(name: &str, token: &[u8]) -> Result<Vec<u8>, Refusal> {
    let Some(snapshot) = token.strip_prefix(b"@") else {
        return Err(Refusal::usage(format!(
            "{name} takes @ and a snapshot's name at its end, not {}",
            shown(token)
        )));
    };
    Ok(token::decode(snapshot)?)
}

fn text(token: &[u8]) -> Result<String, Refusal> {
    String::from_utf8(token::decode(token)?)
        .map_err(|_| Refusal::usage("names of keyspaces are UTF-8: give another one"))
}

/// The command exists and its arguments do not fit, or it does not exist.
fn misused(name: &[u8]) -> Refusal {
    let known =
        HELP.iter().find(|(usage, _)| usage.split(' ').next().map(str::as_bytes) == Some(name));
    Refusal::usage(match known {
        Some((usage, _)) => format!("the command is used as: {usage}"),
        None => format!("there is no command {}: help lists them", shown(name)),
    })
}

/// The start of a token, fit for a message.
fn shown(token: &[u8]) -> String {
    token[..token.len().min(32)].escape_ascii().to_string()
}
